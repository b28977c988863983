"""Where a function turns: Brent's search for a minimum (*Algorithms for Minimization without Derivatives*, 1973,
chapter 5), golden sections and the lowest points of parabolas through three values, in any numbers.

A minimum is known to half the digits of its value, so that the search ends at √ε.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

GOLDEN = 0.3819660112501051
MOST_VALUES = 200


def lowest(f: Callable[[Any], Any], a: Any, x: Any, b: Any, eps: Any) -> tuple[Any, Any]:
    """The first place found between a and b where f is negative, or else the place where f is least; and the value of f
    there. The search begins at x.
    """
    near = eps ** (eps**0 / 2)
    fx = f(x)
    w, v, fw, fv = x, x, fx, fx  # the places of the second and the third lowest value
    last = before = b - a  # how far the last two steps went
    for _ in range(MOST_VALUES):
        middle, least = (a + b) / 2, near * abs(x) + near / 4
        if fx < 0 or fx != fx or abs(x - middle) <= 2 * least - (b - a) / 2:
            break
        step, earlier = None, before
        if abs(earlier) > least:
            step = _parabola(x, w, v, fx, fw, fv)
        before = last
        if step is not None and abs(step) < abs(earlier) / 2 and a < x + step < b:
            if min(x + step - a, b - x - step) < 2 * least:
                step = least if x < middle else -least
        else:
            before = b - x if x < middle else a - x
            step = GOLDEN * before
        last = step
        u = x + (step if abs(step) >= least else least if step > 0 else -least)
        fu = f(u)
        if fu != fu:
            break
        if fu <= fx:
            a, b = (x, b) if u >= x else (a, x)
            v, w, x, fv, fw, fx = w, x, u, fw, fx, fu
            continue
        a, b = (u, b) if u < x else (a, u)
        if fu <= fw or w == x:
            v, w, fv, fw = w, u, fw, fu
        elif fu <= fv or v in (x, w):
            v, fv = u, fu
    return x, fx


def _parabola(x: Any, w: Any, v: Any, fx: Any, fw: Any, fv: Any) -> Any | None:
    """How far from x the parabola through three values is lowest; None where it has no such place."""
    left, right = (x - w) * (fx - fv), (x - v) * (fx - fw)
    bend = 2 * (right - left)
    return None if bend == 0 else -((x - v) * right - (x - w) * left) / bend
