"""Slider-crank: a crank turns, a rod pushes a slider to and fro. Uniform bars, no gravity.

The crank goes from the origin to A = (x, y), the rod from A to the slider at (X, 0):

    L = m₁/6 v_A² + m₂/6 (v_A² + v_x V + V²) + m₃/2 V²,        x² + y² = a²,        (X − x)² + y² = b² .

One freedom and a constant energy E = ½ I(θ) θ'²: the time of a turn is ∮ √(I(θ)/2E) dθ. Source: J. J. Uicker, G. R.
Pennock, J. E. Shigley, Theory of Machines and Mechanisms, Oxford 2011, section 1.9; bars as in `four_bar_linkage`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from leastaction.numbers.formulas import Arithmetic
from leastaction.numbers.symbolic import positive, symbolic
from leastaction.problems.problem import Problem


def lagrangian(q: Any, v: Any, m1: Any, m2: Any, m3: Any) -> Any:
    A, V = v[:2], v[2]
    return (m1 * (A @ A) + m2 * (A @ A + A[0] * V + V**2)) / 6 + 0.5 * m3 * V**2


def bars(q: Any, a: Any, b: Any) -> Any:
    x, y, X = q[0], q[1], q[2]
    return np.array([x**2 + y**2 - a**2, (X - x) ** 2 + y**2 - b**2])


def slider_crank(
    m1: Any = 1, m2: Any = 2, m3: Any = 3, a: Any = 1, b: Any = 3, theta0: Any = "pi/3", w0: Any = 5
) -> Problem:
    """From the crank's angle theta0 with its angular velocity w0; the rod is longer than the crank."""
    m1, m2, m3 = positive(m1, "m1"), positive(m2, "m2"), positive(m3, "m3")
    a, b, theta0, w0 = positive(a, "a"), positive(b, "b"), symbolic(theta0, "theta0"), symbolic(w0, "w0")
    if not b > a:
        raise ValueError(f"the rod b must be longer than the crank a, so that it can turn; got b = {b}, a = {a}")
    x, y = a * sp.cos(theta0), a * sp.sin(theta0)
    u, w = -w0 * y, w0 * x
    X = x + sp.sqrt(b**2 - y**2)
    V = u - y * w / (X - x)
    params = {"m1": m1, "m2": m2, "m3": m3, "a": a, "b": b}
    return Problem(
        name="slider-crank",
        title="Slider-crank",
        description="A crank, a rod and a slider, uniform bars: the time of a turn is a quadrature.",
        source="Uicker, Pennock, Shigley, Theory of Machines and Mechanisms, 1.9",
        lagrangian=lagrangian,
        constraints=bars,
        q0=(x, y, X),
        p0=((m1 + m2) * u / 3 + m2 * V / 6, (m1 + m2) * w / 3, m2 * u / 6 + (m2 / 3 + m3) * V),
        params=params,
        settings={**params, "theta0": theta0, "w0": w0},
        invariants={"energy": energy},
    )


def energy(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    first, mixed, last = (c.m1 + c.m2) / 3, c.m2 / 6, c.m2 / 3 + c.m3
    level = last * p[0] ** 2 - 2 * mixed * p[0] * p[2] + first * p[2] ** 2
    return level / (2 * (first * last - mixed**2)) + p[1] ** 2 / (2 * first)
