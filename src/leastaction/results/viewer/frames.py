"""Frames: the states that a picture is made of, few enough to send and close enough to be joined by straight lines.

Frames are equally spaced in time, except the last. Of many states only every k-th is taken; where states are
far apart, the motion in between is the method's own polynomial, `path(t)`. The spacing is the widest for which the
middle of two frames lies on the straight line between them, up to a small part of the picture.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from leastaction.numbers.arrays import FloatArray
from leastaction.results.inside_steps import STRAIGHT, Picture, flat, missed, states

if TYPE_CHECKING:
    from leastaction.results.path import Path

QUICK_STRAIGHT, QUICK_MOST = 1 / 600, 4000
FEWEST = 200  # frames, if the path has as many
MOST_ROWS = 1 << 20  # states looked at
FINEST = 4096  # the most frames for each stored state


@dataclass(frozen=True, eq=False)
class Frames:
    """States at t[k] = t[0] + k dt, except the last; `whole` tells whether straight lines may join them."""

    t: FloatArray
    q: FloatArray
    p: FloatArray
    dt: float
    whole: bool

    def __len__(self) -> int:
        return len(self.t)


def frames(path: Path, most: int, picture: Picture, begin: int = 0, quick: bool = False) -> Frames:
    """At most `most` frames of a path from its stored state `begin` on; `quick`: speed matters more than a pixel."""
    straight = QUICK_STRAIGHT if quick else STRAIGHT
    count = len(path) - begin
    skip = max(1, math.ceil((count - 1) / min(most, MOST_ROWS))) if count > 1 else 1
    if path.pace is not None and count > 1 and path.output is None:
        return _even(path, min(most, QUICK_MOST) if quick else most, picture, begin, straight)
    t, q, p = rows(path, begin, skip)
    if count <= 2:
        return Frames(t, q, p, float(t[-1] - t[0]), True)
    X = flat(picture, t, q, p)
    off = missed(X)
    if off > straight and skip == 1 and path.output is None:
        return _refined(path, t, q, p, min(most, QUICK_MOST) if quick else most, picture, straight)
    keep = 1
    while len(t[:: 2 * keep]) > FEWEST and missed(X[::keep]) < straight:
        keep *= 2
    places = np.unique([*range(0, len(t), keep), len(t) - 1])
    return Frames(t[places], q[places], p[places], float(t[keep] - t[0]), off < straight)


def _even(path: Path, most: int, picture: Picture, begin: int, straight: float) -> Frames:
    """Frames of a path with a pace, whose states are not equally spaced: twice as many until lines are straight."""
    count = min(most, FEWEST)
    while True:
        t = np.linspace(float(path.t[begin]), float(path.t[-1]), count)
        q, p = states(path, t)
        whole = missed(flat(picture, t, q, p)) < straight
        if whole or 2 * count > most:
            return Frames(t, q, p, float(t[1] - t[0]), whole)
        count *= 2


def rows(path: Path, begin: int = 0, skip: int = 1) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Every `skip`-th stored state from `begin` on, and the last one, as float64."""
    places = [slice(begin, None, skip)]
    if (len(path) - 1 - begin) % skip:
        places.append(slice(len(path) - 1, None))
    t, q, p = (
        np.concatenate([np.asarray(array[place]).astype(float) for place in places])
        for array in (path.t, path.q, path.p)
    )
    return t, q, p


def _refined(
    path: Path, t: FloatArray, q: FloatArray, p: FloatArray, most: int, picture: Picture, straight: float
) -> Frames:
    """Halve the spacing until lines are straight or there is no more room."""
    parts, found = 1, Frames(t, q, p, float(t[1] - t[0]), False)
    while 2 * parts * (len(t) - 1) < most and parts < FINEST:
        parts *= 2
        try:
            found = _between(path, t, q, p, parts)
        except ArithmeticError:  # a step cannot be solved again: take the frames so far
            return found
        if missed(flat(picture, found.t, found.q, found.p)) < straight:
            return replace(found, whole=True)
    return found


def _between(path: Path, t: FloatArray, q: FloatArray, p: FloatArray, parts: int) -> Frames:
    """The stored states with parts − 1 others between each two; the last interval may be shorter than the others."""
    dt = (t[1] - t[0]) / parts
    k = np.arange(math.ceil((abs(t[-1] - t[0]) / abs(dt)) * (1 - 1e-12)))
    times = np.append(t[0] + k * dt, t[-1])
    positions, momenta = states(path, times)
    stored = np.arange(0, len(times) - 1, parts)
    positions[stored], momenta[stored] = q[: len(stored)], p[: len(stored)]
    positions[-1], momenta[-1] = q[-1], p[-1]
    return Frames(times, positions, momenta, float(dt), False)
