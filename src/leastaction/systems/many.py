"""Many states at once, each with its own parameters: what a run asks before and between its steps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from leastaction.backends import points
from leastaction.backends.status import GOING_WELL, NOT_FINITE, SINGULAR
from leastaction.program import Builder, Program
from leastaction.systems.frequencies import fastest
from leastaction.systems.mechanics import Mechanics
from leastaction.systems.regularity import ORDINARY, dominant, equilibrated

FloatArray = NDArray[np.float64]


class Many(Mechanics):
    """The mechanics of K states with K sets of parameters."""

    def velocities(
        self, t: FloatArray, q: FloatArray, p: FloatArray, params: FloatArray
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """v(t, q, p) at K points with parameters (K, …), and a mask of the points that have a v; NaN elsewhere."""
        v, failed = self._inverse(t, q, p, params)
        found = np.ones(len(q), bool)
        if failed is None:
            return v, found
        v[failed:], found[failed:] = np.nan, False
        begin = failed + 1
        while begin < len(q):
            rest = slice(begin, None)
            part, failed = self._inverse(t[rest], q[rest], p[rest], params[rest])
            end = len(q) if failed is None else begin + failed
            v[begin:end], found[begin:end] = part[: end - begin], True
            begin = end + 1
        return v, found

    def energies(self, t: FloatArray, q: FloatArray, p: FloatArray, params: FloatArray) -> FloatArray:
        """E = p·v − L at K points with parameters (K, …)."""
        v, _ = self.velocities(t, q, p, params)
        L = points.evaluate(self.program, np.concatenate([t[:, None], q, v, params], axis=1))[:, 0]
        return np.asarray(np.einsum("ki,ki->k", p, v) - L)

    def terms_of_energy(
        self, t: float, q: FloatArray, p: FloatArray, params: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """v and L, and f and m at rest, at many states (K, n), each with its parameters; NaN where there is no v."""
        head = np.full((len(q), 1), t)
        v, _ = self.velocities(head[:, 0], q, p, params)
        found = points.evaluate(self._of_energy, np.concatenate([head, q, v, params], axis=1))
        return v, found[:, 0], found[:, 1 : 1 + self.n], found[:, 1 + self.n :]

    @cached_property
    def _of_energy(self) -> Program:
        """(t, q, v, params) ↦ L, and f = ∂L/∂q and m = ∂L/∂v at rest."""
        B = Builder(self.program.inputs)
        given = {name: B.input(name) for name, _ in B.inputs}
        rest = B.inline(self.gradient, **(given | {"v": [B.const(0.0)] * self.n}))
        return B.build(L=B.inline(self.program, **given)["L"], f=rest["Lq"], m=rest["Lv"])

    def places_ahead(
        self, t: float, q: FloatArray, v: FloatArray, params: FloatArray, times: Sequence[float]
    ) -> FloatArray:
        """q + v τ + ½ a τ² for these τ, (times, B, n), with a as without constraints; NaN where there is no a."""
        size, n = q.shape
        node = points.evaluate(self.node, np.concatenate([np.full((size, 1), t), q, v, params], axis=1))
        f, m_q, m_v = (node[:, self.node.output_slice(name)] for name in ("f", "m_q", "m_v"))
        right = f - np.einsum("bjk,bk->bj", m_q.reshape(size, n, n), v)
        try:
            a = np.linalg.solve(m_v.reshape(size, n, n), right[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:  # constraints may make up for a singular mass
            a = np.full((size, n), np.nan)
        return np.array([q + v * tau + a * tau**2 / 2 for tau in times])

    def frequency(
        self, t: float, q: FloatArray, p: FloatArray, v: FloatArray, params: FloatArray, length: float
    ) -> float:
        """The largest frequency or growth rate of the linearised motion at its start, or soon after."""
        return fastest(self, t, q, v, params, length)

    def begin(
        self,
        t: float,
        q: FloatArray,
        p: FloatArray | None,
        v: FloatArray | None,
        params: FloatArray,
        inputs: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray, NDArray[np.int8]]:
        """Momenta, velocities and a status of trajectories that begin at q with p or v, a row for each."""
        n, size, times = self.n, len(q), np.full(len(q), t)
        status = np.zeros(size, np.int8)
        if v is None:
            assert p is not None
            v, found = self.velocities(times, q, p, params)
            status[~found] = SINGULAR
        at = np.concatenate([times[:, None], q, v, params], axis=1)
        driven = at if inputs is None else np.concatenate([at, inputs], axis=1)
        values = points.evaluate(self.node, driven)
        block = {name: values[:, self.node.output_slice(name)] for name, _ in self.node.outputs}
        p = block["m"] if p is None else p
        m_q, Lvv = block["m_q"].reshape(size, n, n), block["m_v"].reshape(size, n, n)
        right = block["f"] - (m_q @ v[:, :, None])[:, :, 0] - block["m_t"]
        L = points.evaluate(self.program, at)
        terms = np.abs(np.concatenate([p, right, L], axis=1))
        if not status.any() and dominant(Lvv) and (terms < 1 / ORDINARY).all():
            return p, v, status
        finite = np.isfinite(Lvv).all(axis=(1, 2))
        usable = finite & (np.abs(Lvv).max(axis=2) > 0).all(axis=1)
        safe = np.where(usable[:, None, None], Lvv, np.eye(n))
        regular = usable & (np.linalg.matrix_rank(equilibrated(safe)) == n)
        a = np.linalg.solve(np.where(regular[:, None, None], safe, np.eye(n)), right[:, :, None])[:, :, 0]
        status[finite & ~regular] = SINGULAR
        known = finite & np.isfinite(np.concatenate([p, a, L], axis=1)).all(axis=1)
        status[(status == GOING_WELL) & ~known] = NOT_FINITE
        return p, v, status
