"""States between the stored ones, in float64, as pictures need them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from leastaction.path import Path

FloatArray = NDArray[np.float64]


def states(path: Path, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """q and p at any times, p from the slope of q; in float64, whatever the run has."""
    small = 1e-4 * abs(float(path.h))
    low, high = sorted((float(path.t[0]), float(path.t[-1])))
    before, after = np.clip(t - small, low, high), np.clip(t + small, low, high)
    q, left, right = (np.asarray(path(x)).astype(float) for x in (t, before, after))
    v = (right - left) / (after - before)[:, None]
    params: Any = {name: np.asarray(value).astype(float) for name, value in path.params.items()}
    return q, np.asarray(path.system.momentum(q, v, t, params))
