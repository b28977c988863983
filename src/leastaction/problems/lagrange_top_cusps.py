"""Lagrange top with cusps, and its reduction to the nutation alone.

The top of lagrange_top.py released with its axis at rest, φ'(0) = θ'(0) = 0: p_φ = p_ψ cos θ₀, and the axis comes to
rest again, in a cusp, once in every nutation. With I₃ = 2I = 2, θ₀ = π/6, ψ'(0) = 2π and μ/I = A = 4π², p_φ = 2π√3
and p_ψ = 4π.

`problem.reduced` is the first order system of (φ, θ, ξ), eqs. (26):

    φ' = 2π(√3 − 2 cos θ)/sin²θ,    θ' = ξ,    ξ' = (4π² + φ'² cos θ − 4π φ') sin θ

"lagrange-top-cusps-reduced" is the same nutation as a Lagrangian system with one degree of freedom, by Routh's function

    R = ½ I θ'² − (p_φ − p_ψ cos θ)²/(2I sin²θ) − I A cos θ

whose Euler–Lagrange equation is that of ξ; RK4 on the state (θ, θ') gives the θ and ξ of RK4 on (26), φ being a
quadrature. p_φ and p_ψ are parameters there.

Source: J. A. Rojas-Quintero, F. Dubois, F. Jourdan, Simpson variational integrator for nonlinear systems: a tutorial on
the Lagrange top, 2025, section 4.3, eqs. (21)–(26), Table 6. g has no influence: l = A I/(m g).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from leastaction.numbers.formulas import Arithmetic
from leastaction.problems.lagrange_top import top
from leastaction.problems.problem import Data, ExactMotion, Number, Parts, Positive, catalogued
from leastaction.problems.top_solution import find_nutation

SOURCE = "Rojas-Quintero, Dubois and Jourdan 2025, section 4.3, eqs. (21)–(26), Table 6"


@catalogued("Lagrange top with cusps", "A top released with its axis at rest, whose axis draws cusps.", SOURCE)
def lagrange_top_cusps(
    m: Positive = 1,
    g: Positive = "9.81",
    I: Positive = 1,
    I3: Positive = 2,
    A: Positive = "4*pi**2",
    theta0: Number = "pi/6",
    spin: Number = "2*pi",
) -> Parts:
    """Released at the nutation theta0 with the angular velocity `spin` about its own axis."""
    return top({"m": m, "g": g, "l": A * I / (m * g), "I": I, "I3": I3}, (0, theta0, 0), (0, 0, spin))


def routh(q: Any, v: Any, I: Any, A: Any, p_phi: Any, p_psi: Any) -> Any:
    cos, sin = np.cos(q[0]), np.sin(q[0])
    return 0.5 * I * v[0] ** 2 - (p_phi - p_psi * cos) ** 2 / (2 * I * sin**2) - I * A * cos


@catalogued(
    "Lagrange top with cusps, reduced to nutation",
    "The nutation of the top with cusps as a system of its own, its two other momenta being constants.",
    SOURCE,
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
        invariants={"energy": energy},
        solution=solution,
    )


def energy(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    cos, sin = x.cos(q[0]), x.sin(q[0])
    return (p[0] ** 2 + ((c.p_phi - c.p_psi * cos) / sin) ** 2) / (2 * c.I) + c.I * c.A * cos


def solution(d: Data) -> ExactMotion:
    c = d.params
    nutation = find_nutation(c["I"], c["I"] * c["A"], d.q0[0], c["p_phi"], d.p0[0], c["p_psi"])

    def at(x: Arithmetic, t: Any) -> Any:
        theta, p_theta = nutation.at(x, nutation.phase(x, t)[1])
        return (theta,), (p_theta,)

    return ExactMotion(at, nutation.period)
