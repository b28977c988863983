"""States between the stored ones, in float64, as pictures need them.

q is the method's own polynomial. Its slope gives p where the degree is high; a low one has kinks in it, and there the
cubic through four neighbouring stored momenta is better, O(h⁴).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.methods import Galerkin
from leastaction.quadrature import lagrange

if TYPE_CHECKING:
    from leastaction.path import Path

FloatArray = NDArray[np.float64]

HIGH = 4  # the degree from which on the slope is the better one
MOST = 1 << 22  # stored momenta that are read at once


def states(path: Path, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """q and p at any times of the run."""
    q = np.asarray(path(t)).astype(float)
    low = not isinstance(path.method, Galerkin) or path.method.s < HIGH
    close = path.pace is None and path.every == 1 and 4 <= len(path) <= MOST // path.q.shape[1]
    return q, _by_neighbours(path, t) if low and close else _by_slope(path, t, q)


def _by_neighbours(path: Path, t: FloatArray) -> FloatArray:
    place = (t - float(path.t[0])) / float(path.h)
    first = np.clip(np.floor(place).astype(np.int64) - 1, 0, len(path) - 4)
    weights = lagrange(np.arange(4.0), place - first)
    p = np.asarray(path.p).astype(float)
    return np.asarray(np.einsum("kj,kjn->kn", weights, p[first[:, None] + np.arange(4)]))


def _by_slope(path: Path, t: FloatArray, q: FloatArray) -> FloatArray:
    step = abs(float(path.h)) if path.pace is None else float(np.abs(np.diff(np.asarray(path.t).astype(float))).min())
    small = 1e-4 * step
    low, high = sorted((float(path.t[0]), float(path.t[-1])))
    before, after = np.clip(t - small, low, high), np.clip(t + small, low, high)
    left, right = (np.asarray(path(x)).astype(float) for x in (before, after))
    v = (right - left) / (after - before)[:, None]
    params: Any = {name: np.asarray(value).astype(float) for name, value in path.params.items()}
    return np.asarray(path.system.momentum(q, v, t, params))
