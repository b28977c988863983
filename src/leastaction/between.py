"""States between the stored ones, in float64, as pictures need them.

q is the method's own polynomial. Its slope gives p where the degree is high; a low one has kinks in it, and there the
cubic through four neighbouring stored momenta is better, O(h⁴). To have the polynomial, steps are solved once more:
where states lie close, the cubics through them are as good to the eye and much quicker.
"""

from __future__ import annotations

from collections.abc import Callable
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
    low = not isinstance(path.method, Galerkin) or path.method.s < HIGH
    close = path.pace is None and path.every == 1 and 4 <= len(path) <= MOST // path.q.shape[1]
    return (np.asarray(path(t)).astype(float), _by_neighbours(path, t)) if low and close else _by_slope(path, t)


def cubics(path: Path) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
    """t ↦ q and p by the cubics through the positions and velocities of the stored states."""
    times, q, p = (np.asarray(x).astype(float) for x in (path.t, path.q, path.p))
    params: Any = {name: np.asarray(value).astype(float) for name, value in path.params.items()}
    v, forward = path.system.velocity(q, p, times, params), 1 if times[-1] >= times[0] else -1

    def at(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        k = np.clip(np.searchsorted(forward * times, forward * t, "right") - 1, 0, len(times) - 2)
        h = (times[k + 1] - times[k])[:, None]
        x, rise = (t - times[k])[:, None] / h, (q[k + 1] - q[k]) / h
        a, b = v[k] - rise, v[k + 1] - rise
        place = q[k] + h * x * (rise + (1 - x) * ((1 - x) * a - x * b))
        slope = rise + (1 - x) * (1 - 3 * x) * a - x * (2 - 3 * x) * b
        return place, np.asarray(path.system.momentum(place, slope, t, params))

    return at


def _by_neighbours(path: Path, t: FloatArray) -> FloatArray:
    place = (t - float(path.t[0])) / float(path.h)
    first = np.clip(np.floor(place).astype(np.int64) - 1, 0, len(path) - 4)
    weights = lagrange(np.arange(4.0), place - first)
    p = np.asarray(path.p).astype(float)
    return np.asarray(np.einsum("kj,kjn->kn", weights, p[first[:, None] + np.arange(4)]))


def _by_slope(path: Path, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    step = abs(float(path.h)) if path.pace is None else float(np.abs(np.diff(np.asarray(path.t).astype(float))).min())
    small = 1e-4 * step
    low, high = sorted((float(path.t[0]), float(path.t[-1])))
    before, after = np.clip(t - small, low, high), np.clip(t + small, low, high)
    q, left, right = np.split(np.asarray(path(np.concatenate([t, before, after]))).astype(float), 3)
    v = (right - left) / (after - before)[:, None]
    params: Any = {name: np.asarray(value).astype(float) for name, value in path.params.items()}
    return q, np.asarray(path.system.momentum(q, v, t, params))
