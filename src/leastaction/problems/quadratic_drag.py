"""A body that falls through the air: drag that grows with the square of the speed.

    L(q, v) = ½ m v² + m g q   (q downwards),    F = −k v |v|,      v∞ = √(m g / k)
    v(t) = v∞ tanh y,    q(t) = q₀ + (v∞²/g) ln (cosh y / cosh y₀),    y = y₀ + g t / v∞,    tanh y₀ = v₀/v∞

while the body falls, y ≥ 0; a body that rises first has no solution here. The body begins slower than v∞, the speed
that weight and drag allow.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import sympy as sp

from leastaction.numbers.formulas import Arithmetic
from leastaction.problems.problem import Data, ExactMotion, Number, Parts, Positive, catalogued


def lagrangian(q: Any, v: Any, m: Any, g: Any) -> Any:
    return 0.5 * m * v[0] ** 2 + m * g * q[0]


def drag(q: Any, v: Any, k: Any) -> Any:
    return -k * v[0] * np.abs(v[0])


@catalogued(
    "Fall with quadratic drag",
    "A body falls through the air towards its terminal speed.",
    "J. R. Taylor, Classical Mechanics, University Science Books 2005, section 2.4",
)
def quadratic_drag(
    m: Positive = 1, g: Positive = "9.81", k: Positive = "1/100", q0: Number = 0, p0: Number = 15
) -> Parts:
    """A mass m that falls with the drag k v²."""
    if not 0 <= p0 / m < sp.sqrt(m * g / k):
        raise ValueError(
            f"it must fall slower than √(m g / k) = {float(sp.sqrt(m * g / k)):g}; got v₀ = {float(p0 / m):g}"
        )
    return Parts(
        lagrangian=lagrangian,
        force=drag,
        solution=solution,
    )


def solution(d: Data) -> ExactMotion:
    m, g, k = (d.params[name] for name in ("m", "g", "k"))
    terminal = mpmath.sqrt(m * g / k)
    y0 = mpmath.atanh(d.p0[0] / m / terminal)

    def log_cosh(x: Arithmetic, y: Any) -> Any:
        return y + x.log((1 + x.exp(-2 * y)) / 2)

    def at(x: Arithmetic, t: Any) -> Any:
        y = x(g / terminal) * t + x(y0)
        y = np.where(y < 0, x(mpmath.nan), y)
        small = x.exp(-2 * y)
        q = x(d.q0[0]) + x(terminal**2 / g) * (log_cosh(x, y) - log_cosh(x, x(y0)))
        return (q,), (x(m * terminal) * (1 - small) / (1 + small),)

    return ExactMotion(at)
