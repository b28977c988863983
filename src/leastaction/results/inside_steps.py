"""States between the stored ones, in float64, as pictures need them.

q is the method's own polynomial. Its slope gives p if the degree is high. The slope of a low degree has kinks; then the
cubic spline through the momenta is better, O(h⁴): stored momenta, and those before and after impacts. Between two
impacts lies a flight, and a spline takes only momenta of one flight. So p is right on both sides of a jump;
at the impact itself p is the momentum after the impact.

The polynomial needs steps to be solved once more. If states lie close, the cubics through them look the same and are
much quicker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.methods import Galerkin

if TYPE_CHECKING:
    from leastaction.results.path import Path

FloatArray = NDArray[np.float64]

Picture = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]  # t, q, p of M states ↦ (M, …)

STRAIGHT = 1 / 2000  # the error of a straight line, in parts of the picture's size: a third of a pixel
SMOOTH = 40_000  # the most numbers of a curve on paper
HIGH = 4  # from this degree on the slope is better than the cubic
MOST = 1 << 22  # stored momenta that are read at once
ALIKE = 1e-6  # in parts of a step: times nearer than this are equal


def states(path: Path, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """q and p at any times of the run."""
    low = not isinstance(path.method, Galerkin) or path.method.s < HIGH
    close = path.pace is None and path.every == 1 and 4 <= len(path) <= MOST // path.q.shape[1]
    return (np.asarray(path(t)).astype(float), _by_neighbours(path, t)) if low and close else _by_slope(path, t)


def smooth(path: Path, picture: Picture) -> tuple[FloatArray, FloatArray, FloatArray]:
    """t, q and p of a curve that looks smooth: the stored states, and states between them if the stored ones are few.

    Long steps of a high order leave few states, and straight lines between them would be no picture of the motion.
    Long runs, runs that store one state in several steps, and runs whose steps are costly to solve again are drawn as
    they are stored.
    """
    t, q, p = (np.asarray(x).astype(float) for x in (path.t, path.q, path.p))
    known, parts = (t, q, p), 1
    cheap = path.every == 1 and path.output is None and path.digits is None
    while cheap and missed(flat(picture, t, q, p)) > STRAIGHT and 2 * parts * len(path) * q.shape[1] <= SMOOTH:
        parts *= 2
        t = np.interp(np.arange(parts * (len(path) - 1) + 1) / parts, np.arange(len(path)), known[0])
        try:
            q, p = states(path, t)
        except ArithmeticError:  # a step cannot be solved again: take the stored states
            return known
        q[::parts], p[::parts] = known[1:]
    return t, q, p


def flat(picture: Picture, t: FloatArray, q: FloatArray, p: FloatArray) -> FloatArray:
    """The points drawn, in parts of the picture's size; lines between them must be nearly straight."""
    X = np.asarray(picture(t, q, p), float)
    size = max(float(np.ptp(X[..., d])) for d in range(X.shape[-1])) or 1.0
    return X.reshape(len(t), -1) / size


def missed(X: FloatArray) -> float:
    """The largest distance of the middle of three neighbours from the line between the outer two."""
    if len(X) < 3:
        return 0.0
    last = len(X) - 1 - (len(X) - 1) % 2
    return float(np.abs(X[1:last:2] - (X[0 : last - 1 : 2] + X[2 : last + 1 : 2]) / 2).max())


def _impacts(path: Path) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Times of all impacts of a run, in its order, with the sign that makes them grow; momenta before and after."""
    forward = 1.0 if float(path.h) > 0 else -1.0
    thrown = [one for one in path.events.values() if one.p_after is not None and len(one.t)]
    n = path.q.shape[1]
    if not thrown:
        return np.empty(0), np.empty((0, n)), np.empty((0, n))
    t = forward * np.concatenate([one.t for one in thrown]).astype(float)
    order = np.argsort(t, kind="stable")
    before, after = (
        np.concatenate([np.asarray(getattr(one, name)) for one in thrown]).astype(float)[order]
        for name in ("p", "p_after")
    )
    return t[order], before, after


def _by_neighbours(path: Path, t: FloatArray) -> FloatArray:
    """p by the cubic spline through the momenta of the flight, or a polynomial where it has fewer than four."""
    from scipy.interpolate import make_interp_spline

    forward = 1.0 if float(path.h) > 0 else -1.0
    bounds, before, after = _impacts(path)
    stored, times = forward * np.asarray(path.t).astype(float), forward * t
    p, flight = np.asarray(path.p).astype(float), np.searchsorted(bounds, stored, "right")
    if len(bounds):  # a stored state at an impact is replaced by the states of this impact
        near = np.abs(stored - bounds[np.searchsorted(bounds, stored).clip(max=len(bounds) - 1)])
        alone, count = near > ALIKE * abs(float(path.h)), np.arange(len(bounds))
        stored = np.concatenate([stored[alone], bounds, bounds])
        p, flight = np.concatenate([p[alone], before, after]), np.concatenate([flight[alone], count, count + 1])
        order = np.lexsort([stored, flight])
        stored, p, flight = stored[order], p[order], flight[order]
    mine, found = np.searchsorted(bounds, times, "right"), np.empty((len(t), p.shape[1]))
    for number in np.unique(mine):
        here, nodes = mine == number, flight == number
        found[here] = make_interp_spline(stored[nodes], p[nodes], k=min(3, int(nodes.sum()) - 1))(times[here])
    return found


def _by_slope(path: Path, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    forward = 1.0 if float(path.h) > 0 else -1.0
    step = (
        abs(float(path.h)) if path.pace is None else float(np.median(np.abs(np.diff(np.asarray(path.t).astype(float)))))
    )
    small = 1e-4 * step
    bounds, _, _ = _impacts(path)
    ends = forward * np.array([float(path.t[0]), float(path.t[-1])])
    bounds = np.concatenate([ends[:1], bounds, ends[1:]])
    times = forward * t
    flight = np.clip(np.searchsorted(bounds, times, "right"), 1, len(bounds) - 1)
    low, high = bounds[flight - 1], bounds[flight]
    # The parabola goes through three places a little inside the flight, so that all lie on the flight's polynomial.
    inside = np.minimum(small, (high - low) / 4)
    first = np.clip(times - small, low + inside / 4, high - inside / 4 - 2 * inside)
    half = np.minimum(small, (high - inside / 4 - first) / 2)
    places = np.concatenate([t, *(forward * (first + k * half) for k in range(3))])
    q, left, middle, right = np.split(np.asarray(path(places)).astype(float), 4)
    off = ((times - first) / half - 1)[:, None]  # the place in it, from −1 to 1
    slopes = (off - 0.5) * left - 2 * off * middle + (off + 0.5) * right
    v = forward * slopes / half[:, None]
    params: Any = {name: np.asarray(value).astype(float) for name, value in path.params.items()}
    return q, np.asarray(path.system.momentum(q, v, t, params))
