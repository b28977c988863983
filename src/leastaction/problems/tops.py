"""The Lagrange top: a heavy symmetric top with a fixed point, in Euler angles q = (φ, θ, ψ), precession, nutation,
spin.

    L = ½ I₃ (ψ' + φ' cos θ)² + ½ I (φ'² sin²θ + θ'²) − μ cos θ,    μ = m g l
    H = p_θ²/(2I) + (p_φ − p_ψ cos θ)²/(2I sin²θ) + p_ψ²/(2I₃) + μ cos θ

p_φ and p_ψ are conserved with H. Reduced, p_φ and p_ψ being numbers, to the first order system of y = (φ, θ, ξ):

    φ' = (p_φ − p_ψ cos θ)/(I sin²θ),    θ' = ξ,    ξ' = (μ/I + φ'² cos θ − p_ψ φ'/I) sin θ

Source: J. A. Rojas-Quintero, F. Dubois, F. Jourdan, Simpson variational integrator for nonlinear systems: a tutorial on
the Lagrange top, 2025, eqs. (16)–(26). "lagrange-top" has the data of Table 3, a motion with loops, with g = 9.81,
which the paper does not give. In its (20), where m stands for μ/I, the denominator, 6Im as read, has to be 6I²m.

"lagrange-top-cusps" has those of Table 6: released with its axis at rest, φ'(0) = θ'(0) = 0: p_φ = p_ψ cos θ₀, and the
axis comes to rest again, in a cusp, once in every nutation. With I₃ = 2I = 2, θ₀ = π/6, ψ'(0) = 2π and μ/I = A = 4π²,
p_φ = 2π√3 and p_ψ = 4π; g has no influence: l = A I/(m g). "lagrange-top-cusps-reduced" is the same nutation as a
Lagrangian system with one degree of freedom, by Routh's function

    R = ½ I θ'² − (p_φ − p_ψ cos θ)²/(2I sin²θ) − I A cos θ,

whose Euler–Lagrange equation is that of ξ; RK4 on the state (θ, θ') gives the θ and ξ of RK4 on (26), φ being a
quadrature. p_φ and p_ψ are parameters there.

The exact motion. With the conserved p_φ, p_ψ and H, let c = H − p_ψ²/(2I₃). Then x = cos θ obeys

    x'² = f(x) = (2/I)(c − μx)(1 − x²) − (p_φ − p_ψ x)²/I²,    with roots −1 ≤ x₁ ≤ x₂ ≤ 1 ≤ x₃

and swings between x₁ and x₂:

    x = x₁ + (x₂ − x₁) sn²(u, k²),  u = u₀ + κt,  κ² = μ(x₃ − x₁)/(2I),  k² = (x₂ − x₁)/(x₃ − x₁),  period 2K(k²)/κ

This is Weierstrass' cos θ = (2I/μ) ℘(t + ω₃ + const) + (2Ic + p_ψ²)/(6Iμ), because ℘(z + ω₃) =
e₃ + (e₂ − e₃) sn²(z√(e₁ − e₃)). Precession and spin follow by elliptic integrals of the third kind,

    φ = φ₀ + ΔP₋ + ΔP₊,    ψ = ψ₀ + p_ψ(1/I₃ − 1/I) t − ΔP₋ + ΔP₊,    P∓(u) = (p_φ ∓ p_ψ)/(2I) ∫ dt/(1 ∓ cos θ)

whose integrands have poles where cos θ = ±1, at u = K ± ib₋ and at u = ±ib₊. Since x' = ±i(p_φ ∓ p_ψ)/I there, the
residues are ±i/2, and with w = πu/(2K), y = πb/(2K) and s∓ the sign of p_φ ∓ p_ψ

    P₋ = λ₋u − s₋ arg θ₂(w + iy₋),    P₊ = λ₊u − s₊ arg θ₁(w + iy₊)

where λ follows from the complete integrals, P∓(K) = (p_φ ∓ p_ψ)/(2Iκ(1 ∓ x₁)) Π(±(x₂ − x₁)/(1 ∓ x₁), k²).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import sympy as sp
from numpy.typing import NDArray

from leastaction.numbers.formulas import MPFS, Arithmetic
from leastaction.numbers.rounding import to_float
from leastaction.problems.elliptic import sncndn, theta_angle, theta_series
from leastaction.problems.problem import (
    Data,
    ExactMotion,
    Formula,
    Number,
    Parts,
    Positive,
    Problem,
    Vector,
    catalogued,
)


@dataclass(frozen=True, eq=False)
class FirstOrder:
    """y' = f(y)."""

    names: tuple[str, ...]  # of the components of y
    exact_y0: tuple[Any, ...]  # initial values, as SymPy numbers; y0 as doubles
    rhs: Formula  # f(y), y of shape (n,) or (K, n); f(y, digits=N) takes and gives mpmath numbers with N digits
    exact: Callable[..., NDArray[Any]]  # y at the times t, (n,) or (K, n); exact(t, digits=N)

    @property
    def y0(self) -> NDArray[np.float64]:
        return np.array([to_float(y) for y in self.exact_y0])


def heavy_top(q: Any, v: Any, m: Any, g: Any, l: Any, I: Any, I3: Any) -> Any:
    cos, sin = np.cos(q[1]), np.sin(q[1])
    kinetic = 0.5 * I3 * (v[2] + v[0] * cos) ** 2 + 0.5 * I * ((v[0] * sin) ** 2 + v[1] ** 2)
    return kinetic - m * g * l * cos


@catalogued(
    "Lagrange top with loops",
    "A toy top that nutates while it precesses, its axis drawing loops.",
    "Rojas-Quintero, Dubois and Jourdan 2025, section 4.2, eqs. (16)–(20), Table 3",
)
def lagrange_top(
    m: Positive = "0.1", g: Positive = "9.81", l: Positive = "0.15", I: Positive = "2.33e-3", I3: Positive = "1.25e-4",
    q0: Vector = (0, "pi/3", 0), v0: Vector = ("9.2", 0, 252),
) -> Parts:  # fmt: skip
    """A motion with loops; from the angles q0 with the angular velocities v0 = (φ', θ', ψ')."""
    return top({"m": m, "g": g, "l": l, "I": I, "I3": I3}, q0, v0)


def top(params: dict[str, Any], q0: Any, v0: Any) -> Parts:
    """A top with these parameters, angles and angular velocities."""
    if not 0 < q0[1] < sp.pi:
        raise ValueError(f"the nutation q0[1] must lie between 0 and pi, where Euler angles are regular; got {q0[1]}")
    cos, sin, I, I3 = sp.cos(q0[1]), sp.sin(q0[1]), params["I"], params["I3"]
    spin = I3 * (v0[2] + v0[0] * cos)
    p0 = (sp.expand(spin * cos + I * v0[0] * sin**2), I * v0[1], sp.expand(spin))
    return Parts(
        lagrangian=heavy_top,
        q0=q0,
        p0=p0,
        params=params,
        invariants={"momentum-phi": lambda x, c, q, p: p[0], "momentum-psi": lambda x, c, q, p: p[2]},
        solution=top_motion,
        period_of="nutation",
        reduced=reduced,
    )


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

    constants = {"I": I, "A": values["m"] * values["g"] * values["l"] / I, "p_phi": p_phi, "p_psi": p_psi}
    return FirstOrder(
        names=("phi", "theta", "xi"),
        exact_y0=(*problem.exact_q0[:2], p_theta / I),
        rhs=Formula(rhs, constants),
        exact=exact,
    )


CUSPS = "Rojas-Quintero, Dubois and Jourdan 2025, section 4.3, eqs. (21)–(26), Table 6"


@catalogued("Lagrange top with cusps", "A top released with its axis at rest, whose axis draws cusps.", CUSPS)
def lagrange_top_cusps(
    m: Positive = 1, g: Positive = "9.81", I: Positive = 1, I3: Positive = 2, A: Positive = "4*pi**2",
    theta0: Number = "pi/6", spin: Number = "2*pi",
) -> Parts:  # fmt: skip
    """Released at the nutation theta0 with the angular velocity `spin` about its own axis."""
    return top({"m": m, "g": g, "l": A * I / (m * g), "I": I, "I3": I3}, (0, theta0, 0), (0, 0, spin))


def routh(q: Any, v: Any, I: Any, A: Any, p_phi: Any, p_psi: Any) -> Any:
    cos, sin = np.cos(q[0]), np.sin(q[0])
    return 0.5 * I * v[0] ** 2 - (p_phi - p_psi * cos) ** 2 / (2 * I * sin**2) - I * A * cos


@catalogued(
    "Lagrange top with cusps, reduced to nutation",
    "The nutation of the top with cusps as a system of its own, its two other momenta being constants.",
    CUSPS,
)
def lagrange_top_cusps_reduced(
    I: Positive = 1, I3: Positive = 2, A: Positive = "4*pi**2", theta0: Number = "pi/6", spin: Number = "2*pi"
) -> Parts:
    """The nutation of "lagrange-top-cusps" alone."""
    if not 0 < theta0 < sp.pi:
        raise ValueError(f"theta0 must lie between 0 and pi, where Euler angles are regular; got {theta0}")
    return Parts(
        lagrangian=routh,
        q0=(theta0,),
        p0=(0,),
        params={"I": I, "A": A, "p_phi": I3 * spin * sp.cos(theta0), "p_psi": I3 * spin},
        solution=nutation_motion,
    )


def nutation_motion(d: Data) -> ExactMotion:
    c = d.params
    nutation = find_nutation(c["I"], c["I"] * c["A"], d.q0[0], c["p_phi"], d.p0[0], c["p_psi"])

    def at(x: Arithmetic, t: Any) -> Any:
        theta, p_theta = nutation.at(x, nutation.phase(x, t)[1])
        return (theta,), (p_theta,)

    return ExactMotion(at, nutation.period)


def top_motion(d: Data) -> ExactMotion:
    """All three angles."""
    I, I3 = d.params["I"], d.params["I3"]
    mu = d.params["m"] * d.params["g"] * d.params["l"]
    (phi0, theta0, psi0), (p_phi, p_theta, p_psi) = d.q0, d.p0
    nutation = find_nutation(I, mu, theta0, p_phi, p_theta, p_psi)
    angles = find_angles(nutation, p_phi, p_psi)
    start = tuple(P(MPFS, MPFS(nutation.u0))[0] for P in angles)

    def at(x: Arithmetic, t: Any) -> Any:
        turns, u = nutation.phase(x, t)
        theta, p_theta = nutation.at(x, u)
        minus, plus = (P(x, u) - x(P0) + x(2 * P.complete) * turns for P, P0 in zip(angles, start, strict=True))
        phi = x(phi0) + (minus + plus)
        psi = x(psi0) + x(p_psi * (1 / I3 - 1 / I)) * t + (plus - minus)
        return (phi, theta, psi), (t * 0 + x(p_phi), p_theta, t * 0 + x(p_psi))

    return ExactMotion(at, nutation.period)


@dataclass(frozen=True)
class Nutation:
    """cos θ = x₁ + (x₂ − x₁) sn²(u₀ + κt)."""

    I: Any
    x1: Any
    x2: Any
    x3: Any
    kappa: Any
    k2: Any
    u0: Any
    K: Any

    @property
    def period(self) -> Any:
        return 2 * self.K / self.kappa

    def phase(self, x: Arithmetic, t: Any) -> Any:
        """N and u with u₀ + κt = 2KN + u, |u| ≤ K."""
        turns, r = x.turns(t, self.period)
        more, u = x.turns(x(self.u0) + x(self.kappa) * r, 2 * self.K)
        return turns + more, u

    def at(self, x: Arithmetic, u: Any) -> Any:
        """θ and p_θ."""
        x1, x2, width = self.x1, self.x2, self.x2 - self.x1
        sn, cn, dn = sncndn(x, u, (self.x3 - x2) / (self.x3 - x1))
        one_minus, one_plus = x(1 - x2) + x(width) * cn**2, x(1 + x1) + x(width) * sn**2  # 1 ∓ cos θ
        theta = 2 * x.arctan2(x.sqrt(one_minus), x.sqrt(one_plus))
        return theta, x(-2 * self.I * self.kappa * width) * sn * cn * dn / x.sqrt(one_minus * one_plus)


def find_nutation(I: Any, mu: Any, theta0: Any, p_phi: Any, p_theta: Any, p_psi: Any) -> Nutation:
    x0, s0 = mpmath.cos(theta0), mpmath.sin(theta0)
    c = p_theta**2 / (2 * I) + ((p_phi - p_psi * x0) / s0) ** 2 / (2 * I) + mu * x0
    x1, x2, x3 = three_real_roots(
        -(c + p_psi**2 / (2 * I)) / mu, p_phi * p_psi / (I * mu) - 1, (c - p_phi**2 / (2 * I)) / mu
    )
    if min(1 - x2, 1 + x1) < mpmath.eps**0.25:
        raise ValueError(
            "this top passes through the vertical, where Euler angles are singular; change its start so that p_phi and "
            "p_psi differ in size"
        )
    if x2 - x1 < mpmath.eps**0.45:  # no nutation, as far as a double root can tell
        x1 = x2 = x0
    k2, kappa = (x2 - x1) / (x3 - x1), mpmath.sqrt(mu * (x3 - x1) / (2 * I))
    am0 = mpmath.mpf(0)
    if k2:
        # From both x₀ and x₀': where the axis turns, x₀ alone would give only half the digits of u₀.
        sn2 = (x0 - x1) / (x2 - x1)
        double_sine = -s0 * p_theta / (I * kappa * (x2 - x1) * mpmath.sqrt(1 - k2 * sn2))
        am0 = mpmath.atan2(double_sine, 1 - 2 * sn2) / 2
    return Nutation(I, x1, x2, x3, kappa, k2, mpmath.ellipf(am0, k2), mpmath.ellipk(k2))


def find_angles(o: Nutation, p_phi: Any, p_psi: Any) -> tuple[ThirdKind, ThirdKind]:
    """P₋ and P₊."""
    width, (above, below) = o.x2 - o.x1, angle_terms(o.x1, o.x2, o.x3)
    return (
        third_kind(p_phi - p_psi, o.I * o.kappa * (1 - o.x1), width / (1 - o.x1), o.k2, above),
        third_kind(p_phi + p_psi, o.I * o.kappa * (1 + o.x1), -width / (1 + o.x1), o.k2, below),
    )


@dataclass(frozen=True)
class ThirdKind:
    """P(u) = λu + s·angle(πu/(2K)) for |u| ≤ K, and its complete value P(K)."""

    complete: Any
    slope: Any
    sign: Any
    rate: Any
    terms: list[tuple[Any, Any]]

    def __call__(self, x: Arithmetic, u: Any) -> Any:
        return x(self.slope) * u + int(self.sign) * theta_angle(x, x(self.rate) * u, self.terms)


def third_kind(difference: Any, scale: Any, n: Any, k2: Any, terms: list[tuple[Any, Any]]) -> ThirdKind:
    """P with P' = difference/(2·scale·(1 − n sn²u)); its poles are in the terms of its angle, which is π/2 at u = K."""
    K, sign = mpmath.ellipk(k2), mpmath.sign(difference)
    complete = difference / (2 * scale) * mpmath.ellippi(n, k2)
    return ThirdKind(complete, (complete - sign * mpmath.pi / 2) / K, sign, mpmath.pi / (2 * K), terms)


def angle_terms(x1: Any, x2: Any, x3: Any) -> tuple[list[tuple[Any, Any]], list[tuple[Any, Any]]]:
    """Terms of −arg θ₂(w + iy₋) and of π/2 − arg θ₁(w + iy₊), with y∓ = πb∓/(2K).

    cos θ = 1 at sn²(K + ib₋) = 1/dn²(b₋, 1 − k²), cos θ = −1 at sn²(ib₊) = −(sn/cn)²(b₊, 1 − k²).
    """
    if x1 == x2:  # steady precession: no nutation, only the slope
        return [(1, 1)], [(1, 1)]
    k2, m1 = (x2 - x1) / (x3 - x1), (x3 - x2) / (x3 - x1)
    K = mpmath.ellipk(k2)
    nome = mpmath.exp(-mpmath.pi * mpmath.ellipk(m1) / K)
    b_minus = mpmath.ellipf(mpmath.atan2(mpmath.sqrt((1 - x2) * (x3 - x1)), mpmath.sqrt((x2 - x1) * (x3 - 1))), m1)
    b_plus = mpmath.ellipf(mpmath.atan2(mpmath.sqrt(1 + x1), mpmath.sqrt(x2 - x1)), m1)
    minus, plus = (theta_series(mpmath.pi * b / (2 * K), nome) for b in (b_minus, b_plus))
    return [(s, c) for c, s in minus], [((-1) ** n * c, (-1) ** n * s) for n, (c, s) in enumerate(plus)]


def three_real_roots(b: Any, c: Any, d: Any) -> tuple[Any, Any, Any]:
    """The roots of x³ + bx² + cx + d, all real, in ascending order (Viète)."""
    Q, R = (b**2 - 3 * c) / 9, (2 * b**3 - 9 * b * c + 27 * d) / 54
    size = mpmath.sqrt(Q)
    angle = mpmath.acos(max(min(R / size**3, mpmath.mpf(1)), mpmath.mpf(-1)))
    x1, x2, x3 = sorted(-2 * size * mpmath.cos((angle + 2 * mpmath.pi * j) / 3) - b / 3 for j in (-1, 0, 1))
    return x1, x2, x3
