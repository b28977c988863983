"""The inverse of the Legendre transform: p = ∂L/∂v(t, q, v) solved for v, at one point or many.

Where L is quadratic in v, one linear system is solved, and refined once. Else Newton's iteration is done with
backtracking. A step that leaves the domain of L, or does not bring the momentum nearer, is halved. The distance is the
largest |p_j − L_v_j|/|p_j|, so that a heavy coordinate does not hide a light one. For p_j = 0 the distance is counted
in the size of what that momentum is summed from, |L_vv_jk v_k| at the largest velocities on the way. Rounding is
measured by the same size. No point depends on the others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leastaction.kernel.loops import evaluate
from leastaction.program import Program

FloatArray = NDArray[np.float64]
Indices = NDArray[np.intp]

MOST_ITERATIONS = 100
SHORTEST = 1e-12  # relative to v: where a step as short as this does not bring the momentum nearer, none will …
ROUNDING = 1e-10  # … and that is rounding if the momentum is missed by this part of what it is summed from, at most
CLOSE = 4 * 2.0**-52
OUTSIDE = 1e300  # a miss that is infinite or not a number
TOGETHER = 2**18  # numbers of points that are solved at once: they stay in the cache


def velocities(
    point: Program, curved: bool, t: FloatArray, q: FloatArray, p: FloatArray, params: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """v at K points, and a mask of the points that have one; NaN elsewhere.

    `point` is a Program of (t, q, v, params, …) that gives m = L_v and m_v = L_vv, and `rest`, a velocity to begin
    with, where L has no value at v = 0. `params` is one set or a row for each point. `curved`: L is not quadratic in v.
    """
    n, rows, p = q.shape[1], np.zeros((len(q), point.input_size)), np.asarray(p, float)
    rows[:, 0], rows[:, 1 : 1 + n] = t, q
    rows[:, 1 + 2 * n : 1 + 2 * n + params.shape[-1]] = params
    count = max(1, TOGETHER // (point.input_size + point.output_size))
    with np.errstate(all="ignore"):
        for begin in range(0, len(rows), count):
            some = _Points(point, rows[begin : begin + count], p[begin : begin + count])
            if curved:
                some.invert()
            else:
                some.solve()
    v = rows[:, 1 + n : 1 + 2 * n].copy()
    return v, v[:, 0] == v[:, 0]


class _Points:
    """Some points, with v in their rows: L_vv, what L_v misses p by, and how far that is."""

    def __init__(self, point: Program, rows: FloatArray, p: FloatArray) -> None:
        (K, n), self.point, self.rows, self.p = p.shape, point, rows, p
        self.v, self.fastest = rows[:, 1 + n : 1 + 2 * n], np.zeros((K, n))
        self.gap, self.mass = np.zeros((K, n)), np.zeros((K, n, n))
        self.missed, self.rough = np.zeros((2, K))  # in units of p, and of what L_v is summed from

    def look(self, k: Indices) -> None:
        """Evaluate at v."""
        found, n = evaluate(self.point, self.rows[k]), self.v.shape[1]
        mass = found[:, self.point.output_slice("m_v")].reshape(-1, n, n)
        gap = self.p[k] - found[:, self.point.output_slice("m")]
        self.gap[k], self.mass[k] = gap, mass
        self.fastest[k] = np.fmax(self.fastest[k], np.abs(self.v[k]))
        off, size = np.abs(gap), np.abs(self.p[k])
        whole = size + np.einsum("kij,kj->ki", np.abs(mass), self.fastest[k])
        part = np.where(off > 0, np.where(whole > 0, off / whole, 1.0), 0.0)
        inside = (off < OUTSIDE).all(axis=1)
        self.rough[k] = np.where(inside, part.max(axis=1), OUTSIDE)
        self.missed[k] = np.where(inside, np.where(size > 0, off / size, part).max(axis=1), OUTSIDE)

    def moves(self, k: Indices, right: FloatArray) -> FloatArray:
        """L_vv⁻¹ of right-hand sides, (K, n), or of their first components; not finite where L_vv is singular.

        Each row is divided by its largest entry, so that units do not choose the pivots.
        """
        mass = self.mass[k][:, : right.shape[1], : right.shape[1]]
        unit = np.abs(mass).max(axis=2, initial=0.0)
        mass, right = mass / unit[:, :, None], right / unit
        try:
            return np.asarray(np.linalg.solve(mass, right[:, :, None])[:, :, 0])
        except np.linalg.LinAlgError:  # at some of the points
            if len(k) == 1:
                return np.full(right.shape, np.nan)
            return np.concatenate([self.moves(k[i : i + 1], right[i : i + 1] * unit[i]) for i in range(len(k))])

    def solve(self) -> None:
        """v where L is quadratic in v, L_v = L_v(v = 0) + L_vv v; solved again where rounding left too much."""
        found, n = evaluate(self.point, self.rows), self.v.shape[1]
        self.mass = found[:, self.point.output_slice("m_v")].reshape(-1, n, n)
        gap, k = self.p - found[:, self.point.output_slice("m")], np.arange(len(self.p))
        left = gap
        for tolerance in (CLOSE, ROUNDING):
            self.v[k] += self.moves(k, left[k])
            left = gap - np.einsum("kij,kj->ki", self.mass, self.v)
            whole = np.abs(self.p) + np.einsum("kij,kj->ki", np.abs(self.mass), np.abs(self.v))
            k = np.flatnonzero(~(np.abs(left) <= tolerance * whole).all(axis=1))
            if not len(k):
                return
        self.v[k] = np.nan

    def invert(self) -> None:
        """v from v = 0 or from `rest`. Where that fails, as it does if L_vv is singular at rest, v = p is tried."""
        every = np.arange(len(self.p))
        if "rest" in dict(self.point.outputs):
            self.v[:] = evaluate(self.point, self.rows)[:, self.point.output_slice("rest")]
            self._hold_time(every)
        left = every[~self._iterated(every)]
        if len(left):
            self.v[left] = self.p[left]
            self.v[left[~self._iterated(left)]] = np.nan

    def _iterated(self, k: Indices) -> NDArray[np.bool_]:
        """Newton's iteration from the guess in v: at which of the points it came to an end."""
        whole, done = k, np.zeros(len(self.p), bool)
        self.fastest[k] = 0.0
        self.look(k)
        outside = k[~(self.missed[k] < OUTSIDE)]
        if len(outside):
            self.v[outside] = 0.0
            self.look(outside)
        for _ in range(MOST_ITERATIONS):
            done[k[self.missed[k] <= CLOSE]] = True
            k = k[~done[k]]
            if not len(k):
                break
            move = self.moves(k, self.gap[k])
            solved = np.isfinite(move).all(axis=1)
            k, move, before = k[solved], move[solved], self.missed[k[solved]]
            length = np.where(move == 0, 0.0, np.abs(move) / (np.abs(self.v[k]) + np.abs(move))).max(axis=1, initial=0)
            self.v[k] += move
            self.look(k)
            while True:
                worse = ~(self.missed[k] < before)
                again = worse & (length > SHORTEST)
                if not again.any():
                    break
                length[again] /= 2
                move[again] /= 2
                self.v[k[again]] -= move[again]
                self.look(k[again])
            done[k[worse]] = self.rough[k[worse]] <= ROUNDING
            k = k[~worse]
        return done[whole]

    def _hold_time(self, k: Indices) -> None:
        """One iteration for all velocities but the last, the rate u of time in u L(t, q, w/u): at the right u it is
        exact where L is quadratic in v. An iteration for all together would lead to u < 0 if the motion is fast.
        """
        self.look(k)
        before = self.v.copy()
        move = self.moves(k, self.gap[:, :-1])
        self.v[:, :-1] += np.where(np.isfinite(move).all(axis=1, keepdims=True), move, 0.0)
        self.look(k)
        lost = np.flatnonzero(~(self.missed < OUTSIDE))
        self.v[lost] = before[lost]
