"""Spherical pendulum: a point on a rigid rod in space, in Cartesian coordinates.

    L = ½ m |v|² − m g z,        x² + y² + z² = l²

Energy and the angular momentum about the vertical are kept; the motion goes between two heights, and precesses.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from leastaction.numbers.formulas import Arithmetic
from leastaction.problems.problem import Number, Parts, Positive, catalogued


def lagrangian(q: Any, v: Any, m: Any, g: Any) -> Any:
    return 0.5 * m * (v @ v) - m * g * q[2]


def rod(q: Any, l: Any) -> Any:
    return q @ q - l**2


@catalogued(
    "Spherical pendulum",
    "A point mass on a rigid rod in space: it swings between two heights and precesses.",
    "E. T. Whittaker, Analytical Dynamics, Cambridge 1937, section 55",
)
def spherical_pendulum(
    m: Positive = 1, g: Positive = "9.81", l: Positive = 1, theta0: Number = "pi/3", u0: Number = 2
) -> Parts:
    """From the angle theta0 off the vertical, with the horizontal speed u0 across it."""
    return Parts(
        lagrangian=lagrangian,
        constraints=rod,
        q0=(l * sp.sin(theta0), 0, -l * sp.cos(theta0)),
        p0=(0, m * u0, 0),
        invariants={"energy": energy, "angular-momentum": angular_momentum},
    )


def energy(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    return (p[0] ** 2 + p[1] ** 2 + p[2] ** 2) / (2 * c.m) + c.m * c.g * q[2]


def angular_momentum(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    return q[0] * p[1] - q[1] * p[0]
