"""How errors grow: from two runs with the same steps whose starts differ by one unit in the last place.

Their distance at the end is what rounding makes of it: rounding of the start, and of all steps, which differs between
the two runs. The time at which the distance passes the tolerance is the time until which the tolerance can be kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leastaction.run.advice import EPS
from leastaction.tolerance.constants import RESOLVED, SURE
from leastaction.tolerance.trials import Trial

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Growth:
    """What rounding does, at the states of two runs; the sizes of motions are those of the first run.

    length     of time since the start, (K,)
    rounding   (B, K)
    """

    length: FloatArray
    rounding: FloatArray

    @property
    def end(self) -> FloatArray:
        """What rounding makes of the end of each motion, (B,): the most in the last eighth, since at a turn of a motion
        an error of its phase does not show.
        """
        found: FloatArray = self.rounding[:, self.length >= 7 / 8 * self.length[-1]].max(axis=1)
        return found

    def kept(self, tol: float) -> FloatArray:
        """How long rounding stays below this, (B,); infinite if until the end."""
        over = np.maximum.accumulate(SURE * self.rounding, axis=1) > tol
        found = np.full(len(over), math.inf)
        for i in np.flatnonzero(over[:, -1]):
            k = int(np.argmax(over[i]))
            t, row = self.length[max(0, k - 1) : k + 1], np.maximum(SURE * self.rounding[i, max(0, k - 1) : k + 1], EPS)
            found[i] = np.interp(math.log(tol), np.log(row), t) if k else 0.0  # growth is exponential between two
        return found

    @property
    def rate(self) -> float:
        """The rate of the quickest exponential growth; 0 if errors grow no faster than t³ in the second half. Where two
        motions have come apart, errors grow no more: this part does not count.
        """
        rates = []
        for row in np.maximum.accumulate(self.rounding, axis=1):
            near = row[: int(np.searchsorted(row, RESOLVED)) or 1]
            k = int(np.searchsorted(self.length, self.length[len(near) - 1] / 2))
            if len(near) > 2 and near[k] > 0 and near[-1] > 2**3 * near[k]:
                rates.append(math.log(near[-1] / near[k]) / (self.length[len(near) - 1] - self.length[k]))
        return max(rates, default=0.0)


def growth(one: Trial, moved: Trial) -> Growth:
    """From two runs with the same steps."""
    rounding = np.nan_to_num(one.differences(moved))
    K = rounding.shape[1]
    t = one.t[np.argmax(np.isfinite(one.t).sum(axis=1))]
    return Growth(np.abs(np.append(t[: K - 1], t[-1]) - t[0]), rounding)
