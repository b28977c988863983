"""Bead on a rotating hoop: a constraint that moves, in Cartesian coordinates.

    L = ½ m |v|² − m g z,        x² + y² + z² = R²,        x sin Ωt − y cos Ωt = 0

The hoop turns about the vertical with Ω, so the energy is not kept, but Jacobi's integral E − Ω J_z is. Beyond Ω² = g/R
the bead rests, seen from the hoop, at cos θ = g/(Ω² R). Source: J. R. Taylor, Classical Mechanics, University Science
Books 2005, examples 7.6 and 7.7.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from leastaction.numbers.formulas import Arithmetic
from leastaction.numbers.symbolic import positive, symbolic
from leastaction.problems.problem import Problem


def lagrangian(q: Any, v: Any, m: Any, g: Any) -> Any:
    return 0.5 * m * (v @ v) - m * g * q[2]


def hoop(t: Any, q: Any, R: Any, Omega: Any) -> Any:
    return np.array([q @ q - R**2, q[0] * np.sin(Omega * t) - q[1] * np.cos(Omega * t)])


def rotating_hoop(
    m: Any = 1, g: Any = "9.81", R: Any = 1, Omega: Any = 4, theta0: Any = "pi/6", w0: Any = 0
) -> Problem:
    """From the angle theta0 off the lowest point, moving along the hoop with the angular velocity w0."""
    m, g, R, Omega = positive(m, "m"), positive(g, "g"), positive(R, "R"), symbolic(Omega, "Omega")
    theta0, w0 = symbolic(theta0, "theta0"), symbolic(w0, "w0")
    sine, cosine = sp.sin(theta0), sp.cos(theta0)
    params = {"m": m, "g": g, "R": R, "Omega": Omega}
    return Problem(
        name="rotating-hoop",
        title="Bead on a rotating hoop",
        description="A bead on a hoop that a motor turns: two constraints, one of them moves.",
        source="Taylor, Classical Mechanics, examples 7.6 and 7.7",
        lagrangian=lagrangian,
        constraints=hoop,
        q0=(R * sine, sp.Integer(0), -R * cosine),
        p0=(m * R * w0 * cosine, m * Omega * R * sine, m * R * w0 * sine),
        params=params,
        settings={**params, "theta0": theta0, "w0": w0},
        invariants={"jacobi": jacobi},
    )


def jacobi(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    E = (p[0] ** 2 + p[1] ** 2 + p[2] ** 2) / (2 * c.m) + c.m * c.g * q[2]
    return E - c.Omega * (q[0] * p[1] - q[1] * p[0])
