"""Where to look next for a change of sign: Chandrupatla's rule (Advances in Engineering Software 28, 1997, 145–149).

x1 and x2 enclose the root, x1 is the last place seen, and x3 is the place that was dropped for it. Inverse quadratic
interpolation is taken where the function is nearly enough linear for it, else bisection. Some eight values reach the
last bit of a smooth function, and no function needs many more values than bisection alone would.

Both are plain Python on numbers: the native loops translate them, other backends call them.
"""

from __future__ import annotations

from typing import Any

MOST_VALUES = 200


def tolerance(x: Any, eps: Any) -> Any:
    """How near to each other two places of a step, x ∈ [0, 1], count as the same."""
    return 2 * eps * abs(x) + eps / 2


def next_place(x1: Any, x2: Any, x3: Any, f1: Any, f2: Any, f3: Any, near: Any) -> Any:
    """The place between x1 and x2 to look at next; not nearer to either than `near` half."""
    part = 0.5
    if f1 != f2 and f2 != f3 and f1 != f3 and x2 != x3:
        xi, phi = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
        if phi * phi < xi and (1 - phi) * (1 - phi) < 1 - xi:
            part = f1 / (f2 - f1) * f3 / (f2 - f3) + (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f3 - f2)
    least = near / abs(x2 - x1) / 2
    return x1 + max(least, min(1 - least, part)) * (x2 - x1)
