"""Where a method is stable on a system of oscillators: from its exact step on one of them."""

from __future__ import annotations

import math
from functools import lru_cache

from leastaction.methods import Method
from leastaction.methods import method as by_name
from leastaction.methods.oscillator import bands, exact_step

Interval = tuple[float, float]


@lru_cache(maxsize=128)
def stable_intervals(method: Method | str) -> tuple[Interval, ...]:
    """Every interval of x = hω in which the powers of a method's step stay bounded, as floats.

    `la.analysis.stability` has the exact ends.

    Parameters
    ----------
    method : str or method
        The method.

    Returns
    -------
    tuple of (lower, upper)
        Ascending. The first interval begins at 0.

    Examples
    --------
    >>> import leastaction as la
    >>> la.linear.stable_intervals("newmark"), la.linear.stable_intervals("stormer-verlet")
    (((0.0, inf),), ((0.0, 2.0),))
    """
    roots, positive = bands(exact_step(by_name(method)))
    ends = [0.0, *map(float, roots), math.inf]
    return tuple((ends[k], ends[k + 1]) for k, stable in enumerate(positive) if stable)
