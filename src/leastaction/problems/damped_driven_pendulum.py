"""Damped driven pendulum: friction and a motor, the usual way into chaos.

    L(q, v) = ½ v² + ω₀² cos q,    D = β v²,    F = γ ω₀² cos ωt
    q̈ + 2β q̇ + ω₀² sin q = γ ω₀² cos ωt

With ω = 2π, ω₀ = 3π, β = ω₀/4 and a start at q = −π/2 the motion settles to the period 1 for γ = 1.06, to 2 for γ =
1.078 and to 4 for γ = 1.081, and is chaotic beyond γ ≈ 1.0829. No closed form is known.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from leastaction.problems.problem import Number, Parts, Positive, catalogued


def lagrangian(q: Any, v: Any, omega0: Any) -> Any:
    return 0.5 * v[0] ** 2 + omega0**2 * np.cos(q[0])


def friction(q: Any, v: Any, beta: Any) -> Any:
    return beta * v[0] ** 2


def motor(t: Any, q: Any, v: Any, omega0: Any, gamma: Any, omega: Any) -> Any:
    return gamma * omega0**2 * np.cos(omega * t)


@catalogued(
    "Damped driven pendulum",
    "A pendulum with viscous friction and a periodic torque: period doubling, then chaos.",
    "J. R. Taylor, Classical Mechanics, University Science Books 2005, sections 12.2 to 12.5",
)
def damped_driven_pendulum(
    omega0: Positive = "3*pi",
    beta: Positive = "3*pi/4",
    gamma: Number = "1.078",
    omega: Positive = "2*pi",
    theta0: Number = "-pi/2",
    p0: Number = 0,
) -> Parts:
    """A pendulum of frequency omega0 with friction beta, driven at omega with gamma times its weight."""
    return Parts(
        lagrangian=lagrangian,
        dissipation=friction,
        force=motor,
        q0=(theta0,),
        period=2 * sp.pi / omega,
        period_of="the drive",
    )
