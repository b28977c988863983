"""How far off runs end: by runs with other steps, and by what rounding hides from their difference.

Two runs with other steps differ by all errors except rounding that both have in common. Pilots bound it (`Advice`):

    common   what all runs have in common: the rounding of the start, of E₀ of a pace, and of the end
    unseen   this, with the rounding on the way, grown until the end; it is another one in every run

The second bound may be a thousand times as large as what rounding does. So where it, or what chance may hide, is above
tol, a few further runs, whose steps differ by little, show how far rounding moves the end. Arrays have a row for each
trajectory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.pilots import UNKEPT, UNSURE
from leastaction.run.advice import EPS, Advice

FloatArray = NDArray[np.float64]

ULPS = 2.0  # units in the last place by which rounding may move the end of a run
NOISY, LUCKY = 30.0, 3.0  # if rounding is this near to tol, an error may be so many times the difference of two runs
SAMPLES, SCATTERED = 3, 1.5  # further runs that show what rounding does; times their largest difference an error is …
BETWEEN = 0.93  # … at most; and by how much the steps of each are shorter than those of the one before


@dataclass(frozen=True, eq=False)
class Ends:
    """The positions q at the end of runs, the sizes of their motions, and the errors that differences do not show."""

    q: FloatArray
    size: FloatArray
    common: FloatArray
    unseen: FloatArray

    def errors(self, other: Any) -> FloatArray:
        """The errors of the run of which these are the ends, by those of another run."""
        return np.maximum(self._apart(other), self.common)

    def with_rounding(self, errors: FloatArray, tol: float, again: Callable[[float], Any] | None) -> FloatArray:
        """These errors, and what rounding on the way adds: `again` gives the ends of a run with so many times as long
        steps; None: there is no time for further runs, and the bound is told. Where rounding comes near to tol, the
        difference of two runs may be small by chance.
        """
        noisy = (self.unseen > tol / NOISY) & (errors > self.common)
        bound = np.maximum(np.where(noisy, LUCKY, 1.0) * errors, self.unseen)
        if again is None or np.all(bound <= tol):
            return bound
        scatter = np.max([errors, *(self._apart(again(BETWEEN**k)) for k in range(1, SAMPLES + 1))], axis=0)
        return np.where(bound <= tol, bound, np.maximum(SCATTERED * scatter, self.common))

    def _apart(self, other: Any) -> FloatArray:
        found: FloatArray = np.abs(self.q - np.asarray(other, float)).max(axis=1) / self.size
        return found


def ends(advice: Advice, q: Any, size: Any, moving: Any = True) -> Ends:
    """The ends of runs with this advice. Nothing is rounded at rest."""
    q, size = np.asarray(q, float), np.asarray(size, float)
    last = ULPS * EPS * np.abs(q).max(axis=1) / size
    bounds = (np.maximum(np.nan_to_num(bound), last) for bound in (advice.common, advice.rounding))
    return Ends(q, size, *(np.where(moving, bound, 0.0) for bound in bounds))


def assured(advice: Advice) -> Advice:
    """The advice of a run that has kept its tolerance, without the doubts of its pilots: their errors shrink later, or
    their bounds of rounding are too large.
    """
    sure = tuple(one for one in advice.notes if not one.startswith((UNKEPT, UNSURE)))
    return replace(advice, horizon=None, notes=sure)
