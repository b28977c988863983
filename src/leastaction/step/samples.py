"""Samples: a function of time that is known at some times, and the rule by which it goes on between them."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.numbers.rounding import FLOAT64, Reals, all_finite

RULES = ("previous", "linear", "cubic")
SAME = 1e-9  # part of a step, or of the whole span: times so near each other are the same


class Samples:
    """A function of time that is known at some times, u(t_j) = values[j], and a rule for the times between.

    Samples are inputs of a run (``la.integrate(…, inputs={"u": samples})``) and loads of a Quadratic system
    (``la.Quadratic(M, K, f=samples)``). A method of order above 2 sees the kinks of straight lines, and one of order
    above 4 those of a spline, unless they fall on the ends of its steps.

    Parameters
    ----------
    times : array_like, shape (m,)
        Ascending, at least two.
    values : array_like, shape (m, …) or (B, m, …)
        A number or an array for each time; with one more axis of length B in front, those of the B trajectories of an
        ensemble. A load has n numbers for each time.
    rule : {"previous", "linear", "cubic"}, default "cubic"
        What holds between the times. "previous": a value stays until the next one comes. "linear": straight lines.
        "cubic": the spline with two continuous derivatives and no knot at the second time and at the last but one.

    Attributes
    ----------
    times, values : ndarray
        As given, in float64.
    rule : str
        As given.
    start, end : float
        The first and the last of the times.

    Raises
    ------
    TypeError
        Times or values are not numbers.
    ValueError
        Times do not ascend, shapes do not fit, numbers are not finite, or there is no such rule; or a call or a run
        asks for a time outside the samples.

    Notes
    -----
    ``samples(t)`` is the value at one time t, an array of shape (…).

    Examples
    --------
    >>> import leastaction as la
    >>> u = la.Samples([0, 1, 3], [0.0, 2.0, 4.0], rule="linear")
    >>> u(0.5), u(2.0)
    (array(1.), array(3.))
    >>> la.Samples([0, 1, 3], [0.0, 2.0, 4.0], rule="previous")(2.9)
    array(2.)
    """

    def __init__(self, times: ArrayLike, values: ArrayLike, rule: str = "cubic") -> None:
        if rule not in RULES:
            raise ValueError(f"the rule of samples must be one of {', '.join(map(repr, RULES))}; got {rule!r}")
        self.given, self.rule = (times, values), rule
        self.times, self.values = self._read(FLOAT64)

    def _read(self, reals: Reals) -> tuple[NDArray[Any], NDArray[Any]]:
        """Times and values, checked, in this arithmetic."""
        arrays = []
        for what, given in zip(("times", "values"), self.given, strict=True):
            try:
                arrays.append(reals.array(given))
            except (TypeError, ValueError) as error:
                raise TypeError(f"the {what} of samples must be numbers; got {given!r} ({error})") from None
            if not all_finite(arrays[-1]):
                raise ValueError(f"the {what} of samples must be finite; some are NaN or infinite")
        t, u = arrays
        if t.ndim != 1 or len(t) < 2 or not all(a < b for a, b in pairwise(t)):
            raise ValueError(f"sample times must be at least two, in one dimension, and ascending; got {str(t)[:80]}")
        if len(t) not in u.shape[:2]:
            raise ValueError(
                f"samples at {len(t)} times must have values of shape ({len(t)}, …), one for each time, or "
                f"(B, {len(t)}, …) for an ensemble; got {u.shape}"
            )
        return t, u

    @classmethod
    def of(cls, times: NDArray[Any], values: NDArray[Any], rule: str) -> Samples:
        """From numbers that are known to be samples."""
        found = cls.__new__(cls)
        found.given, found.rule, found.times, found.values = (times, values), rule, times, values
        return found

    @property
    def start(self) -> float:
        return float(self.times[0])

    @property
    def end(self) -> float:
        return float(self.times[-1])

    def rounded(self, reals: Reals) -> Samples:
        """The same samples in another arithmetic."""
        return self if reals is FLOAT64 else Samples.of(*self._read(reals), self.rule)

    def __call__(self, t: Any) -> NDArray[Any]:
        """The values at one time or many, shape t.shape + …, all of them within the samples."""
        asked = np.asarray(t, dtype=self.times.dtype)
        slack = SAME * (self.end - self.start)
        outside = asked[(asked < self.start - slack) | (asked > self.end + slack)]
        if outside.size:
            raise ValueError(
                f"the samples are known from t = {self.start:g} to {self.end:g}; the run asks for "
                f"t = {float(outside.flat[0]):g}"
            )
        return np.asarray(self.at(asked))

    def at(self, t: NDArray[Any], axis: int = 0, who: NDArray[np.intp] | None = None) -> NDArray[Any]:
        """The values at any times, shape t.shape + …, the last ones beyond the ends; `axis` of the values is time.

        For values of many trajectories, (B, m, …), `who` tells whose value is wanted at each time; it has the shape of
        t.
        """
        times, values = self.times, np.moveaxis(self.values, axis, 0)
        t = np.minimum(np.maximum(t, times[0]), times[-1])
        k = np.searchsorted(times, t, side="right") - 1
        if self.rule == "previous":
            return np.asarray(values[k] if who is None else values[k, who])
        k = np.minimum(k, len(times) - 2)
        place = k if who is None else (k, who)
        x = np.reshape(t - times[k], (*np.shape(t), *[1] * (values.ndim - (1 if who is None else 2))))
        *lower, found = (coefficient[place] for coefficient in self._coefficients(axis))
        for coefficient in lower[::-1]:
            found = found * x + coefficient
        return np.asarray(found)

    def _coefficients(self, axis: int) -> list[NDArray[Any]]:
        """The coefficients of the polynomials from one time to the next, by powers of t − t_j, each (m − 1, …)."""
        if axis not in self._known:
            u = np.moveaxis(self.values, axis, 0)
            d = (self.times[1:] - self.times[:-1]).reshape(-1, *[1] * (u.ndim - 1))
            chord = (u[1:] - u[:-1]) / d
            self._known[axis] = [u[:-1], chord]
            if self.rule == "cubic":
                slope = _spline_slopes(self.times, u, d, chord)
                left, right = (slope[:-1] - chord) / d, (slope[1:] - chord) / d
                self._known[axis] = [u[:-1], slope[:-1], -(2 * left + right), (left + right) / d]
        return self._known[axis]

    @cached_property
    def _known(self) -> dict[int, list[NDArray[Any]]]:
        return {}

    def __repr__(self) -> str:
        return (
            f"Samples({len(self.times)} times from {self.start:g} to {self.end:g}, values of shape "
            f"{self.values.shape}, rule={self.rule!r})"
        )


def _spline_slopes(t: NDArray[Any], u: NDArray[Any], d: NDArray[Any], s: NDArray[Any]) -> NDArray[Any]:
    """The slopes at the knots of the cubic spline through u(t) without a knot at the second and the last but one time,
    in any arithmetic: from the lengths d_j = t_{j+1} − t_j and the slopes s_j of the chords.

    Two continuous derivatives ask for d_j u′_{j−1} + 2 (d_{j−1} + d_j) u′_j + d_{j−1} u′_{j+1} = 3 (d_j s_{j−1} +
    d_{j−1} s_j), and no knot at t_1 for d_1 u′_0 + (d_0 + d_1) u′_1 = ((3 d_0 + 2 d_1) d_1 s_0 + d_0² s_1)/(d_0 + d_1);
    likewise at the end. Through two or three samples that is the line or the parabola.
    """
    m = len(t)
    if m == 2:
        return np.concatenate([s, s])
    if m == 3:
        bend = (s[1:] - s[:1]) / (t[2] - t[0])
        return np.concatenate([s[:1] - bend * d[:1], s[:1] + bend * d[:1], s[1:] + bend * d[1:]])
    ends = []
    for (near, far), (one, other) in ((d[:2], s[:2]), (d[:-3:-1], s[:-3:-1])):
        ends.append(((3 * near + 2 * far) * far * one + near**2 * other) / (near + far))
    right = np.concatenate([ends[:1], 3 * (d[1:] * s[:-1] + d[:-1] * s[1:]), ends[1:]])
    d = d.ravel()
    lower = np.concatenate([d[1:], [d[-1] + d[-2]]])
    middle = np.concatenate([d[1:2], 2 * (d[:-1] + d[1:]), d[-2:-1]])
    upper = np.concatenate([[d[0] + d[1]], d[:-1]])
    if t.dtype != object:
        from scipy.linalg import solve_banded

        bands = np.stack([np.append(0.0, upper), middle, np.append(lower, 0.0)])
        return np.asarray(solve_banded((1, 1), bands, right.reshape(m, -1))).reshape(right.shape)
    for j in range(1, m):
        ratio = lower[j - 1] / middle[j - 1]
        middle[j] = middle[j] - ratio * upper[j - 1]
        right[j] = right[j] - ratio * right[j - 1]
    right[-1] = right[-1] / middle[-1]
    for j in range(m - 2, -1, -1):
        right[j] = (right[j] - upper[j] * right[j + 1]) / middle[j]
    return right
