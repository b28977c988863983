"""Lagrange top: a heavy symmetric top with a fixed point, in Euler angles q = (φ, θ, ψ), precession, nutation, spin.

    L = ½ I₃ (ψ' + φ' cos θ)² + ½ I (φ'² sin²θ + θ'²) − μ cos θ,    μ = m g l
    H = p_θ²/(2I) + (p_φ − p_ψ cos θ)²/(2I sin²θ) + p_ψ²/(2I₃) + μ cos θ

p_φ and p_ψ are conserved with H. Let c = H − p_ψ²/(2I₃). Then x = cos θ obeys

    x'² = f(x) = (2/I)(c − μx)(1 − x²) − (p_φ − p_ψ x)²/I²,    with roots −1 ≤ x₁ ≤ x₂ ≤ 1 ≤ x₃

and swings between x₁ and x₂:

    x = x₁ + (x₂ − x₁) sn²(u, k²),    u = u₀ + κt,    κ² = μ(x₃ − x₁)/(2I),    k² = (x₂ − x₁)/(x₃ − x₁),    period 2K(k²)/κ

This is Weierstrass' cos θ = (2I/μ) ℘(t + ω₃ + const) + (2Ic + p_ψ²)/(6Iμ), since ℘(z + ω₃) = e₃ + (e₂ − e₃) sn²(z√(e₁ − e₃)).
Precession and spin follow by elliptic integrals of the third kind Π(n; u) = ∫ du/(1 − n sn²u):

    φ = φ₀ + α₋ ΔΠ(n₋) + α₊ ΔΠ(n₊),    ψ = ψ₀ + p_ψ(1/I₃ − 1/I) t − α₋ ΔΠ(n₋) + α₊ ΔΠ(n₊)
    α∓ = (p_φ ∓ p_ψ)/(2Iκ(1 ∓ x₁)),    n∓ = ±(x₂ − x₁)/(1 ∓ x₁)

Reduced, p_φ and p_ψ being numbers, to the first order system of y = (φ, θ, ξ):

    φ' = (p_φ − p_ψ cos θ)/(I sin²θ),    θ' = ξ,    ξ' = (μ/I + φ'² cos θ − p_ψ φ'/I) sin θ

Source: J. A. Rojas-Quintero, F. Dubois, F. Jourdan, Simpson variational integrator for nonlinear systems: a tutorial on
the Lagrange top, 2025, eqs. (16)–(25). "lagrange-top" has the data of Table 3, a motion with loops, with g = 9.81, which
the paper does not tell. In its (20), where m stands for μ/I, the denominator 6Im is a misprint of 6I²m.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import sympy as sp

from leastaction.problems.arithmetic import Arithmetic
from leastaction.problems.elliptic import sncndn
from leastaction.problems.first_order import FirstOrder
from leastaction.problems.problem import Data, Motion, Problem
from leastaction.problems.reals import exact_vector, positive


def lagrangian(q: Any, v: Any, m: Any, g: Any, l: Any, I: Any, I3: Any) -> Any:
    cos, sin = np.cos(q[1]), np.sin(q[1])
    kinetic = 0.5 * I3 * (v[2] + v[0] * cos) ** 2 + 0.5 * I * ((v[0] * sin) ** 2 + v[1] ** 2)
    return kinetic - m * g * l * cos


def lagrange_top(
    m: Any = "0.1",
    g: Any = "9.81",
    l: Any = "0.15",
    I: Any = "2.33e-3",
    I3: Any = "1.25e-4",
    q0: Any = (0, "pi/3", 0),
    v0: Any = ("9.2", 0, 252),
) -> Problem:
    """A motion with loops; from the angles q0 with the angular velocities v0 = (φ', θ', ψ')."""
    return top(
        {"m": m, "g": g, "l": l, "I": I, "I3": I3},
        q0,
        v0,
        name="lagrange-top",
        title="Lagrange top with loops",
        description="A toy top that nutates while it precesses, its axis drawing loops.",
        source="Rojas-Quintero, Dubois and Jourdan 2025, section 4.2, eqs. (16)–(20), Table 3",
    )


def top(params: dict[str, Any], q0: Any, v0: Any, **words: str) -> Problem:
    params = {name: positive(value, name) for name, value in params.items()}
    q0, v0 = exact_vector(q0, 3, "q0"), exact_vector(v0, 3, "v0")
    if not 0 < q0[1] < sp.pi:
        raise ValueError(f"the nutation q0[1] must lie between 0 and pi, where Euler angles are regular; got {q0[1]}")
    cos, sin, I, I3 = sp.cos(q0[1]), sp.sin(q0[1]), params["I"], params["I3"]
    spin = I3 * (v0[2] + v0[0] * cos)
    p0 = (sp.expand(spin * cos + I * v0[0] * sin**2), I * v0[1], sp.expand(spin))
    return Problem(
        **words,
        lagrangian=lagrangian,
        q0=q0,
        p0=p0,
        params=params,
        settings={**params, "q0": q0, "v0": v0},
        invariants={
            "energy": energy,
            "momentum-phi": lambda x, c, q, p: p[0],
            "momentum-psi": lambda x, c, q, p: p[2],
        },
        solution=solution,
        period_of="nutation",
        reduced=reduced,
    )


def energy(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    cos, sin = x.cos(q[1]), x.sin(q[1])
    turning = (p[1] ** 2 + ((p[0] - p[2] * cos) / sin) ** 2) / (2 * c.I) + p[2] ** 2 / (2 * c.I3)
    return turning + c.m * c.g * c.l * cos


def reduced(problem: Problem) -> FirstOrder:
    """The first order system for y = (φ, θ, ξ)."""

    def rhs(x: Arithmetic, c: Any, y: Any) -> Any:
        _, theta, xi = y
        cos, sin = x.cos(theta), x.sin(theta)
        phi_dot = (c.p_phi - c.p_psi * cos) / (c.I * sin**2)
        return phi_dot, xi, (c.A + phi_dot**2 * cos - c.p_psi * phi_dot / c.I) * sin

    (p_phi, p_theta, p_psi), values = problem.exact_p0, problem.exact_params
    I = values["I"]

    def exact(t: Any, digits: int | None = None) -> Any:
        q, p = problem.exact(t, digits)
        inertia = problem.params["I"] if digits is None else problem.data(digits).params["I"]
        return np.stack([q[..., 0], q[..., 1], p[..., 1] / inertia], axis=-1)

    return FirstOrder(
        names=("phi", "theta", "xi"),
        exact_y0=(*problem.exact_q0[:2], p_theta / I),
        exact_params={"I": I, "A": values["m"] * values["g"] * values["l"] / I, "p_phi": p_phi, "p_psi": p_psi},
        formula=rhs,
        exact=exact,
    )


def solution(d: Data) -> Motion:
    I, I3 = d.params["I"], d.params["I3"]
    mu = d.params["m"] * d.params["g"] * d.params["l"]
    (phi0, theta0, psi0), (p_phi, p_theta, p_psi) = d.q0, d.p0
    x0, s0 = mpmath.cos(theta0), mpmath.sin(theta0)
    c = p_theta**2 / (2 * I) + ((p_phi - p_psi * x0) / s0) ** 2 / (2 * I) + mu * x0
    x1, x2, x3 = three_real_roots(
        -(c + p_psi**2 / (2 * I)) / mu, p_phi * p_psi / (I * mu) - 1, (c - p_phi**2 / (2 * I)) / mu
    )
    if 1 - x2 < mpmath.eps**0.25 or 1 + x1 < mpmath.eps**0.25:
        raise ValueError(
            "this top passes through the vertical, where Euler angles are singular; change q0 or v0 so that p_phi and "
            "p_psi differ in size"
        )
    width = x2 - x1
    k2, m1, kappa = width / (x3 - x1), (x3 - x2) / (x3 - x1), mpmath.sqrt(mu * (x3 - x1) / (2 * I))
    K = mpmath.ellipk(k2)
    am0 = mpmath.mpf(0)
    if width:
        # From both x₀ and x₀': where the axis turns, x₀ alone would tell u₀ to half the digits only.
        sn2 = (x0 - x1) / width
        double_sine = -s0 * p_theta / (I * kappa * width * mpmath.sqrt(1 - k2 * sn2))
        am0 = mpmath.atan2(double_sine, 1 - 2 * sn2) / 2
    u0 = mpmath.ellipf(am0, k2)
    n = width / (1 - x1), -width / (1 + x1)
    alpha = (p_phi - p_psi) / (2 * I * kappa * (1 - x1)), (p_phi + p_psi) / (2 * I * kappa * (1 + x1))
    Pi = tuple(mpmath.ellippi(ni, k2) for ni in n)
    Pi0 = tuple(mpmath.ellippi(ni, am0, k2) for ni in n)

    def at(x: Arithmetic, t: Any) -> Any:
        turns, r = x.turns(t, 2 * K / kappa)
        more, u = x.turns(x(u0) + x(kappa) * r, 2 * K)
        sn, cn, dn = sncndn(x, u, m1)
        below, above = x(1 - x2) + x(width) * cn**2, x(1 + x1) + x(width) * sn**2  # 1 ∓ cos θ
        theta = 2 * x.arctan2(x.sqrt(below), x.sqrt(above))
        p_nutation = x(-2 * I * kappa * width) * sn * cn * dn / x.sqrt(below * above)
        angles = []
        for i, ratio in enumerate((below / x(1 - x1), above / x(1 + x1))):
            # Π(n; u) = u + (n/3) sn³u R_J(cn²u, dn²u, 1, 1 − n sn²u), |u| ≤ K (Carlson)
            part = u + x(n[i] / 3) * sn**3 * x.elliprj(cn**2, dn**2, t * 0 + x(1), ratio) - x(Pi0[i])
            angles.append(x(alpha[i]) * part + x(2 * alpha[i] * Pi[i]) * (turns + more))
        minus, plus = angles
        phi = x(phi0) + (minus + plus)
        psi = x(psi0) + x(p_psi * (1 / I3 - 1 / I)) * t + (plus - minus)
        return (phi, theta, psi), (t * 0 + x(p_phi), p_nutation, t * 0 + x(p_psi))

    return Motion(at, 2 * K / kappa)


def three_real_roots(b: Any, c: Any, d: Any) -> tuple[Any, Any, Any]:
    """The roots of x³ + bx² + cx + d, all real, in ascending order (Viète)."""
    Q, R = (b**2 - 3 * c) / 9, (2 * b**3 - 9 * b * c + 27 * d) / 54
    size = mpmath.sqrt(Q)
    angle = mpmath.acos(max(min(R / size**3, mpmath.mpf(1)), mpmath.mpf(-1)))
    x1, x2, x3 = sorted(-2 * size * mpmath.cos((angle + 2 * mpmath.pi * j) / 3) - b / 3 for j in (-1, 0, 1))
    return x1, x2, x3
