"""Bead on a rotating hoop: a constraint that moves, in Cartesian coordinates.

    L = ½ m |v|² − m g z,        x² + y² + z² = R²,        x sin Ωt − y cos Ωt = 0

The hoop turns about the vertical with Ω, so the energy is not kept, but Jacobi's integral E − Ω J_z is. Beyond Ω² = g/R
the bead rests, seen from the hoop, at cos θ = g/(Ω² R).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from leastaction.numbers.formulas import Arithmetic
from leastaction.problems.problem import Number, Parts, Positive, catalogued


def lagrangian(q: Any, v: Any, m: Any, g: Any) -> Any:
    return 0.5 * m * (v @ v) - m * g * q[2]


def hoop(t: Any, q: Any, R: Any, Omega: Any) -> Any:
    return np.array([q @ q - R**2, q[0] * np.sin(Omega * t) - q[1] * np.cos(Omega * t)])


@catalogued(
    "Bead on a rotating hoop",
    "A bead on a hoop that a motor turns: two constraints, one of them moves.",
    "J. R. Taylor, Classical Mechanics, University Science Books 2005, examples 7.6 and 7.7",
)
def rotating_hoop(
    m: Positive = 1, g: Positive = "9.81", R: Positive = 1, Omega: Number = 4, theta0: Number = "pi/6", w0: Number = 0
) -> Parts:
    """From the angle theta0 off the lowest point, moving along the hoop with the angular velocity w0."""
    sine, cosine = sp.sin(theta0), sp.cos(theta0)
    return Parts(
        lagrangian=lagrangian,
        constraints=hoop,
        q0=(R * sine, 0, -R * cosine),
        p0=(m * R * w0 * cosine, m * Omega * R * sine, m * R * w0 * sine),
        invariants={"jacobi": jacobi},
    )


def jacobi(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    E = (p[0] ** 2 + p[1] ** 2 + p[2] ** 2) / (2 * c.m) + c.m * c.g * q[2]
    return E - c.Omega * (q[0] * p[1] - q[1] * p[0])
