"""Where a method is stable on a system of oscillators: from its exact step on one of them."""

from __future__ import annotations

import math
from functools import lru_cache

from leastaction.methods import Galerkin, Method, RungeKutta4
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
    method = by_name(method)
    if isinstance(method, RungeKutta4):
        return ((0.0, math.sqrt(8.0)),)  # RK4: |1 + ix − x²/2 − ix³/6 + x⁴/24| ≤ 1 up to x = 2√2
    roots, positive = bands(exact_step(method).rho)
    ends = [0.0, *map(float, roots), math.inf]
    return tuple((ends[k], ends[k + 1]) for k, stable in enumerate(positive) if stable)


def stable_alternative(method: Method) -> Galerkin:
    """The member PsNsQ2sGau, stable for every h, of the same order or the next even one."""
    s = max(1, (method.order + 1) // 2)
    alternative = by_name(f"P{s}N{s}Q{2 * s}Gau")
    assert isinstance(alternative, Galerkin)
    return alternative
