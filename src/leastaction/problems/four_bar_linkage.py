"""Four-bar linkage: a crank, a coupler and a rocker, uniform bars, closed by the ground.

The crank goes from O = (0, 0) to A, the coupler from A to B, the rocker from B to C = (c, 0). A uniform bar of mass m
between points with velocities u and w has the kinetic energy m (u² + u·w + w²)/6, so

    L = m₁/6 v_A² + m₂/6 (v_A² + v_A·v_B + v_B²) + m₃/6 v_B² − g (m₁ y_A + m₂ (y_A + y_B) + m₃ y_B)/2,
    |A|² = a²,    |B − A|² = b²,    |B − C|² = d² .

With a + c < b + d (Grashof, a the shortest) the crank turns around and the rocker rocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from leastaction.numbers.formulas import Arithmetic
from leastaction.problems.problem import Number, Parts, Positive, catalogued


def lagrangian(q: Any, v: Any, m1: Any, m2: Any, m3: Any, g: Any) -> Any:
    A, B = v[:2], v[2:]
    kinetic = (m1 * (A @ A) + m2 * (A @ A + A @ B + B @ B) + m3 * (B @ B)) / 6
    return kinetic - g * ((m1 + m2) * q[1] + (m2 + m3) * q[3]) / 2


def bars(q: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    A, B = q[:2], q[2:]
    return np.array([A @ A - a**2, (B - A) @ (B - A) - b**2, (B[0] - c) ** 2 + B[1] ** 2 - d**2])


@catalogued(
    "Four-bar linkage",
    "Crank, coupler and rocker, uniform bars: three constraints leave one freedom.",
    "J. J. Uicker, G. R. Pennock, J. E. Shigley, Theory of Machines and Mechanisms, Oxford 2011, 1.9 and chapter 2",
)
def four_bar_linkage(
    m1: Positive = 1,
    m2: Positive = 3,
    m3: Positive = 2,
    a: Positive = 1,
    b: Positive = 3,
    c: Positive = "7/2",
    d: Positive = "5/2",
    g: Number = "9.81",
    theta0: Number = "pi/2",
    w0: Number = 10,
) -> Parts:
    """From the crank's angle theta0 with its angular velocity w0, the linkage open upwards."""
    A, vA = a * sp.Matrix([sp.cos(theta0), sp.sin(theta0)]), a * w0 * sp.Matrix([-sp.sin(theta0), sp.cos(theta0)])
    C = sp.Matrix([c, 0])
    far = C - A
    reach = sp.sqrt(far.dot(far))
    along = (reach**2 + b**2 - d**2) / (2 * reach)
    if not b**2 - along**2 > 0:
        raise ValueError(f"the bars do not close: with a crank at {theta0} no bars b = {b} and d = {d} meet")
    across = sp.sqrt(b**2 - along**2)
    B = A + (along * far + across * sp.Matrix([-far[1], far[0]])) / reach
    # The velocity of B: (B − A)·(v_B − v_A) = 0 and (B − C)·v_B = 0, by Cramer's rule.
    r, s = B - A, B - C
    known, det = r.dot(vA), r[0] * s[1] - r[1] * s[0]
    vB = sp.Matrix([known * s[1], -known * s[0]]) / det
    pA, pB = ((m1 + m2) * vA / 3 + m2 * vB / 6), (m2 * vA / 6 + (m2 + m3) * vB / 3)
    return Parts(
        lagrangian=lagrangian,
        constraints=bars,
        q0=(*A, *B),
        p0=(*pA, *pB),
        invariants={"energy": energy},
    )


def energy(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    first, mixed, last = (c.m1 + c.m2) / 3, c.m2 / 6, (c.m2 + c.m3) / 3
    kinetic = sum(last * p[k] ** 2 - 2 * mixed * p[k] * p[k + 2] + first * p[k + 2] ** 2 for k in (0, 1))
    height = ((c.m1 + c.m2) * q[1] + (c.m2 + c.m3) * q[3]) / 2
    return kinetic / (2 * (first * last - mixed**2)) + c.g * height
