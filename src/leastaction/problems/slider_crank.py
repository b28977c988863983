"""Slider-crank: a crank turns, a rod pushes a slider to and fro. Uniform bars, no gravity.

The crank goes from the origin to A = (x, y), the rod from A to the slider at (X, 0):

    L = m₁/6 v_A² + m₂/6 (v_A² + v_x V + V²) + m₃/2 V²,        x² + y² = a²,        (X − x)² + y² = b² .

One freedom and a constant energy E = ½ I(θ) θ'²: the time of a turn is ∮ √(I(θ)/2E) dθ. Bars as in `four_bar_linkage`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from leastaction.numbers.formulas import Arithmetic
from leastaction.problems.problem import Number, Parts, Positive, catalogued


def lagrangian(q: Any, v: Any, m1: Any, m2: Any, m3: Any) -> Any:
    A, V = v[:2], v[2]
    return (m1 * (A @ A) + m2 * (A @ A + A[0] * V + V**2)) / 6 + 0.5 * m3 * V**2


def bars(q: Any, a: Any, b: Any) -> Any:
    x, y, X = q[0], q[1], q[2]
    return np.array([x**2 + y**2 - a**2, (X - x) ** 2 + y**2 - b**2])


@catalogued(
    "Slider-crank",
    "A crank, a rod and a slider, uniform bars: the time of a turn is a quadrature.",
    "J. J. Uicker, G. R. Pennock, J. E. Shigley, Theory of Machines and Mechanisms, Oxford 2011, section 1.9",
)
def slider_crank(
    m1: Positive = 1,
    m2: Positive = 2,
    m3: Positive = 3,
    a: Positive = 1,
    b: Positive = 3,
    theta0: Number = "pi/3",
    w0: Number = 5,
) -> Parts:
    """From the crank's angle theta0 with its angular velocity w0; the rod is longer than the crank."""
    if not b > a:
        raise ValueError(f"the rod b must be longer than the crank a, so that it can turn; got b = {b}, a = {a}")
    x, y = a * sp.cos(theta0), a * sp.sin(theta0)
    u, w = -w0 * y, w0 * x
    X = x + sp.sqrt(b**2 - y**2)
    V = u - y * w / (X - x)
    return Parts(
        lagrangian=lagrangian,
        constraints=bars,
        q0=(x, y, X),
        p0=((m1 + m2) * u / 3 + m2 * V / 6, (m1 + m2) * w / 3, m2 * u / 6 + (m2 / 3 + m3) * V),
        invariants={"energy": energy},
    )


def energy(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    first, mixed, last = (c.m1 + c.m2) / 3, c.m2 / 6, c.m2 / 3 + c.m3
    level = last * p[0] ** 2 - 2 * mixed * p[0] * p[2] + first * p[2] ** 2
    return level / (2 * (first * last - mixed**2)) + p[1] ** 2 / (2 * first)
