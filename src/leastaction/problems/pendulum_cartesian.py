"""Pendulum in the plane: a point on a rigid rod, in Cartesian coordinates.

    L = ½ m (v_x² + v_y²) − m g y,        x² + y² = l²

The smallest constrained system with a closed form: x = l sin θ, y = −l cos θ, where θ is the motion of `pendulum` with
ω² = g/l, by Jacobi's functions. The rod pulls with m (g cos θ + l θ'²), so λ = −m (g cos θ + l θ'²)/(2l).
"""

from __future__ import annotations

from typing import Any

import mpmath
import sympy as sp

from leastaction.numbers.formulas import Arithmetic
from leastaction.problems import pendulum
from leastaction.problems.problem import Data, ExactMotion, Number, Parts, Positive, catalogued


def lagrangian(q: Any, v: Any, m: Any, g: Any) -> Any:
    return 0.5 * m * (v @ v) - m * g * q[1]


def rod(q: Any, l: Any) -> Any:
    return q @ q - l**2


@catalogued(
    "Pendulum in the plane",
    "A point mass on a rigid rod, in Cartesian coordinates: one constraint, and a closed form.",
    "E. Hairer, C. Lubich, G. Wanner, Geometric Numerical Integration, Springer 2006, VII.1.1, example 1.1",
)
def pendulum_cartesian(
    m: Positive = 1, g: Positive = "9.81", l: Positive = 1, theta0: Number = "pi/2", w0: Number = 0
) -> Parts:
    """From the angle theta0 off the downward vertical, with the angular velocity w0."""
    sine, cosine = sp.sin(theta0), sp.cos(theta0)
    return Parts(
        lagrangian=lagrangian,
        constraints=rod,
        q0=(l * sine, -l * cosine),
        p0=(m * l * w0 * cosine, m * l * w0 * sine),
        invariants={"energy": energy},
        solution=solution,
    )


def energy(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    return (p[0] ** 2 + p[1] ** 2) / (2 * c.m) + c.m * c.g * q[1]


def solution(d: Data) -> ExactMotion:
    """The motion that follows from the angle, which has the mass m l²."""
    m, g, l = (d.params[name] for name in ("m", "g", "l"))
    (x, y), (px, py) = d.q0, d.p0
    data = {"m": m * l**2, "omega": mpmath.sqrt(g / l)}
    angle = pendulum.solution(Data((mpmath.atan2(x, -y),), (x * py - y * px,), data))

    def at(x: Arithmetic, t: Any) -> Any:
        if mpmath.isfinite(angle.period):  # after a turn the place is the same, though the angle is not
            _, t = x.turns(t, angle.period)
        (theta,), (spin,) = angle.at(x, t)
        sine, cosine, size = x.sin(theta), x.cos(theta), x(l)
        return (size * sine, -size * cosine), (spin / size * cosine, spin / size * sine)

    return ExactMotion(at, angle.period)
