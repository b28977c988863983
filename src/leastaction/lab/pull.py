"""Pull: the configuration in which a point of the drawing is nearest to a given place.

The method of Gauss and Newton with Levenberg's damping. Of all small changes of q that move the point as wanted, the
method takes the smallest.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

DELTA = 1e-6
LONGEST = 0.5  # the largest change of q in one step: angles are drawn by their sines


def pull(place: Callable[[FloatArray], FloatArray], q: FloatArray, target: FloatArray) -> FloatArray:
    """q with place(q) as near to the target as small steps lead."""
    best, missed = q.copy(), target - place(q)
    for _ in range(40):
        J = np.stack(
            [(place(best + DELTA * e) - place(best - DELTA * e)) / (2 * DELTA) for e in np.eye(len(q))], axis=1
        )
        size = float(np.abs(J).max(initial=0.0))
        if size == 0 or not np.isfinite(J).all():
            break
        step = J.T @ np.linalg.solve(J @ J.T + 1e-6 * size**2 * np.eye(len(target)), missed)
        longest = float(np.abs(step).max())
        step *= min(1.0, LONGEST / longest) if longest else 0.0
        for _ in range(8):
            found = target - place(best + step)
            if float(found @ found) < float(missed @ missed):
                break
            step = step / 2
        else:
            break
        best, before, missed = best + step, float(missed @ missed), found
        if before - float(missed @ missed) < 1e-12 * before:
            break
    return best
