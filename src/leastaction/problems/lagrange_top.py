"""Lagrange top: a heavy symmetric top with a fixed point, in Euler angles q = (φ, θ, ψ), precession, nutation, spin.

    L = ½ I₃ (ψ' + φ' cos θ)² + ½ I (φ'² sin²θ + θ'²) − μ cos θ,    μ = m g l
    H = p_θ²/(2I) + (p_φ − p_ψ cos θ)²/(2I sin²θ) + p_ψ²/(2I₃) + μ cos θ

p_φ and p_ψ are conserved with H. The exact motion, by elliptic functions, is in top_solution.py.

Reduced, p_φ and p_ψ being numbers, to the first order system of y = (φ, θ, ξ):

    φ' = (p_φ − p_ψ cos θ)/(I sin²θ),    θ' = ξ,    ξ' = (μ/I + φ'² cos θ − p_ψ φ'/I) sin θ

Source: J. A. Rojas-Quintero, F. Dubois, F. Jourdan, Simpson variational integrator for nonlinear systems: a tutorial on
the Lagrange top, 2025, eqs. (16)–(25). "lagrange-top" has the data of Table 3, a motion with loops, with g = 9.81,
which the paper does not give. In its (20), where m stands for μ/I, the denominator, 6Im as read, has to be 6I²m.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from leastaction.numbers.formulas import Arithmetic
from leastaction.problems.first_order import FirstOrder
from leastaction.problems.problem import Parts, Positive, Problem, Vector, catalogued
from leastaction.problems.top_solution import solution


def lagrangian(q: Any, v: Any, m: Any, g: Any, l: Any, I: Any, I3: Any) -> Any:
    cos, sin = np.cos(q[1]), np.sin(q[1])
    kinetic = 0.5 * I3 * (v[2] + v[0] * cos) ** 2 + 0.5 * I * ((v[0] * sin) ** 2 + v[1] ** 2)
    return kinetic - m * g * l * cos


@catalogued(
    "Lagrange top with loops",
    "A toy top that nutates while it precesses, its axis drawing loops.",
    "Rojas-Quintero, Dubois and Jourdan 2025, section 4.2, eqs. (16)–(20), Table 3",
)
def lagrange_top(
    m: Positive = "0.1",
    g: Positive = "9.81",
    l: Positive = "0.15",
    I: Positive = "2.33e-3",
    I3: Positive = "1.25e-4",
    q0: Vector = (0, "pi/3", 0),
    v0: Vector = ("9.2", 0, 252),
) -> Parts:
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
        lagrangian=lagrangian,
        q0=q0,
        p0=p0,
        params=params,
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
