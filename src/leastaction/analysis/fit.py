"""The order of convergence from errors over h, fitted where it shows.

log e = log C + p log h holds for h between two limits: for large h higher terms still matter, for small h round-off
does. The fit uses the finest run of points above the round-off whose slopes agree with one another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.docstrings import described
from leastaction.numbers.arrays import FloatArray

AGREE = 0.15  # slopes between neighbours that differ from the fitted one by less than this agree with it
ABOVE = 30.0  # times the round-off: below, an error is not the method's alone


@described
@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted order of convergence. `la.analysis.fit_order` gives it."""

    order: Annotated[float, "The slope; nan where no two errors stand above the round-off."]
    constant: Annotated[float, "C of e = C h^p."]
    used: Annotated[NDArray[np.bool_], "shape (K,)", "Which points were fitted."]
    slopes: Annotated[FloatArray, "shape (K,)", "The slope to the next coarser point; nan for the first."]
    settled: Annotated[bool, "Whether three points agree. If not, the order is a guess from the finest three."]


def fit_order(h: Any, errors: Any, round_off: Any) -> Fit:
    """The order of errors over h, from the finest run of points above the round-off whose slopes agree.

    Parameters
    ----------
    h : array_like, shape (K,)
        Steps, descending.
    errors : array_like, shape (K,)
        Errors; nan where there is none.
    round_off : array_like, shape (K,)
        What of each error may be round-off.

    Examples
    --------
    >>> import leastaction as la
    >>> round(la.analysis.fit_order([0.4, 0.2, 0.1], [1.6e-1, 4e-2, 1e-2], [1e-15] * 3).order, 6)
    2.0
    """
    x, e = np.log(np.asarray(h, float)), np.asarray(errors, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.log(e)
        slopes = np.concatenate([[np.nan], np.diff(y) / np.diff(x)])
    good = np.isfinite(y) & (e > ABOVE * np.asarray(round_off, float))
    below = np.isfinite(e) & (e <= ABOVE * np.asarray(round_off, float))
    if below.any():  # once the round-off is reached, finer steps have nothing to say
        good[int(np.flatnonzero(below)[0]) :] = False
    finest = int(np.flatnonzero(good)[-1]) if good.any() else -1

    def agree(first: int, last: int) -> bool:
        window = slice(first, last + 1)
        order = np.polyfit(x[window], y[window], 1)[0] if good[window].all() else 0.0
        # An error that does not shrink shows no order.
        return bool(order > 0.5 and np.abs(slopes[first + 1 : last + 1] - order).max() <= AGREE)

    # Round-off may still disturb the finest point above it. A window that ends before the second finest shows nothing.
    ends = range(finest, max(1, finest - 2), -1)
    best = next(((first, last) for last in ends for first in range(last - 1) if agree(first, last)), None)
    used = np.zeros(len(x), bool)
    settled = best is not None
    if best is None:
        first = finest
        while first > max(0, finest - 2) and good[first - 1]:
            first -= 1
        if finest - first < 1:
            return Fit(float("nan"), float("nan"), used, slopes, False)
        best = (first, finest)
    window = slice(best[0], best[1] + 1)
    used[window] = True
    order, offset = np.polyfit(x[window], y[window], 1)
    return Fit(float(order), float(np.exp(offset)), used, slopes, settled)
