"""Zeros of many functions at once, by Chandrupatla's rule (Advances in Engineering Software 28, 1997, 145–149).

x1 and x2 enclose a zero, x1 is the last place seen, and x3 is the place that was dropped for it. Inverse quadratic
interpolation is taken where the function is nearly enough linear for it, else bisection; the first place is the
secant's. Some six values reach the last bit of a smooth function, and no function needs many more values than bisection
alone would.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_VALUES = 200


def zeros(
    values: Callable[[NDArray[np.intp], NDArray[Any]], NDArray[Any]], brackets: NDArray[Any], eps: Any
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The zeros of K functions, and what is left of the values there, by rows (a, b, f(a), f(b)) of two places and the
    values there. `values` gives the values of some of the functions, by their numbers, each at one place.
    """
    x1, x2, f1, f2 = brackets.T
    x3, f3, live, found = x2, f2, np.arange(len(brackets)), np.empty_like(brackets[:, :2])
    with np.errstate(all="ignore"):  # functions may be evaluated at poles, too
        for left in range(MOST_VALUES, -1, -1):
            near = eps * (2 * np.where(abs(f1) < abs(f2), abs(x1), abs(x2)) + 0.5)
            going = ~((f1 == 0) | (f2 == 0) | (f1 != f1) | (abs(x2 - x1) <= near)) & (left > 0)
            if not going.all():
                other = abs(f2) < abs(f1)
                found[live] = np.stack([np.where(other, x2, x1), np.where(other, f2, f1)], axis=1)
                if not going.any():
                    break
                live, x1, x2, x3, f1, f2, f3, near = (one[going] for one in (live, x1, x2, x3, f1, f2, f3, near))
            x = _next_places(x1, x2, x3, f1, f2, f3, near)
            f = values(live, x)
            same = (f > 0) == (f1 > 0)
            x3, f3 = np.where(same, x1, x2), np.where(same, f1, f2)
            x2, f2 = np.where(same, x2, x1), np.where(same, f2, f1)
            x1, f1 = x, f
    return found[:, 0], found[:, 1]


def _next_places(x1: Any, x2: Any, x3: Any, f1: Any, f2: Any, f3: Any, near: Any) -> NDArray[Any]:
    """The places between x1 and x2 to look at next, not nearer to either than `near` half."""
    dx, df, ends = x3 - x2, f3 - f2, f3 - f1
    secant = np.where(dx == 0, f1 / (f1 - f2), 0.5)
    dx[dx == 0], df[df == 0], ends[ends == 0] = np.inf, np.inf, np.inf
    length, xi, phi = x2 - x1, (x1 - x2) / dx, (f1 - f2) / df
    inverse = f1 / (f2 - f1) * (-f3 / df + (x3 - x1) / length * (f2 - f1) / ends * f2 / df)
    part = np.where((phi * phi < xi) & ((1 - phi) ** 2 < 1 - xi), inverse, secant)
    least = near / abs(length) / 2
    return np.asarray(x1 + np.minimum(np.maximum(part, least), 1 - least) * length)
