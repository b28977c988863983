"""Poincaré sections of a path: its states where a coordinate passes a value, or once in every period of a force.

A crossing is noticed when the coordinate passes the value between two stored states, and refined on the method's own
polynomial, `path(t)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leastaction.numbers.zeros import zeros
from leastaction.results.inside_steps import states
from leastaction.results.looks import look

if TYPE_CHECKING:
    from leastaction.results.path import Path

FloatArray = NDArray[np.float64]

CLOSE = 1e-10  # in parts of a step


@dataclass(frozen=True, eq=False)
class Points:
    """Times and states of a section: t (K,), q and p (K, n)."""

    t: FloatArray
    q: FloatArray
    p: FloatArray

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, some: slice) -> Points:
        return Points(self.t[some], self.q[some], self.p[some])


def crossings(path: Path, coordinate: int = 0, value: float = 0.0, direction: int = 1) -> Points:
    """The states where q[coordinate] passes `value`, rising (+1), falling (−1) or either (0); angles modulo 2π."""
    n = path.system.n
    if n < 2:
        raise ValueError("a section by a coordinate needs two degrees of freedom; for a driven system give period=")
    if not 0 <= coordinate < n:
        raise ValueError(f"coordinate must be one of 0 … {n - 1}; got {coordinate!r}")
    if direction not in (-1, 0, 1):
        raise ValueError(f"direction must be +1 (rising), −1 (falling) or 0 (either); got {direction!r}")
    angle = coordinate in look(path.system).angles
    away = _distance(angle, float(value))
    t, d = np.asarray(path.t).astype(float), away(np.asarray(path.q[:, coordinate]).astype(float))
    passed = (d[:-1] < 0) != (d[1:] < 0)
    if angle:
        passed &= np.abs(d[1:] - d[:-1]) < math.pi  # a jump by 2π on the other side does not pass the value
    if direction:
        passed &= (d[1:] > d[:-1]) == (direction > 0)
    k = np.flatnonzero(passed)
    begin, length = t[k], t[k + 1] - t[k]

    def values(some: NDArray[np.intp], x: FloatArray) -> FloatArray:
        return away(np.asarray(path(begin[some] + x * length[some])[:, coordinate]).astype(float))

    x, _ = zeros(values, np.stack([0 * length, 0 * length + 1, d[k], d[k + 1]], axis=1), CLOSE)
    return _at(path, begin + x * length)


def strobe(path: Path, period: float) -> Points:
    """The states at the beginning of every period."""
    if not (math.isfinite(period) and period > 0):
        raise ValueError(f"period must be a positive number; got {period!r}")
    begin, end = float(path.t[0]), float(path.t[-1])
    count = int(abs(end - begin) / period * (1 + 1e-12))
    times = begin + math.copysign(period, end - begin) * np.arange(count + 1)
    return _at(path, np.clip(times, min(begin, end), max(begin, end)))


def _distance(angle: bool, value: float) -> Callable[[FloatArray], FloatArray]:
    if angle:
        return lambda x: np.asarray((x - value + math.pi) % (2 * math.pi) - math.pi)
    return lambda x: x - value


def _at(path: Path, t: FloatArray) -> Points:
    if not len(t):
        return Points(t, np.empty((0, path.system.n)), np.empty((0, path.system.n)))
    return Points(t, *states(path, t))


def wrapped(x: FloatArray) -> FloatArray:
    """An angle between −π and π."""
    return np.asarray((x + math.pi) % (2 * math.pi) - math.pi)
