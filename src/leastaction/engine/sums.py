"""Sums over rows of tables, as scripts see them: jobs, points and the mass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.summands import Blocks, JobList, Rows
from leastaction.engine.long_steps import MOST_KINDS, LongSteps, Middle, Sweep
from leastaction.engine.rescue import Rescue, Unsolved
from leastaction.kernel.script import Blocked, Each, Jobs, Operation, Place, Zero
from leastaction.methods import Galerkin
from leastaction.step.form import samples, stencils
from leastaction.step.status import NOT_FINITE, SINGULAR, Failure

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Facts:
    """What a state asks of a step, where nothing is written out."""

    n: int
    method: Galerkin
    params: int = 0
    channels: int = 0
    multipliers: int = 0
    end: None = None
    terms: tuple[()] = ()

    @property
    def checked(self) -> bool:
        """Whether a step has to have the root that is connected with the motion at h → 0 (`Step.checked`)."""
        return self.method.branch == "followed"

    @property
    def s(self) -> int:
        return self.method.s


class Summed:
    """A sum and a method."""

    channels, vectors = 0, 0
    stiffness: tuple[str, ...] = ("m_v", "f_q")

    def __init__(self, system: Any, method: Galerkin) -> None:
        self.system, self.method, self.n = system, method, system.n
        self.sums = system.assembly
        self.step = Facts(self.n, method, len(system.values()), multipliers=system.m)
        self.diagonal, self.constant = self.sums.mass.diagonal and self.sums.mass.constant, self.sums.mass.constant
        self.separable = self.sums.separable and self.sums.mass.diagonal and not self.sums.m
        kinds = self.sums.kinds
        names, own = np.unique(kinds, return_inverse=True)
        self.kinds = len(names) if len(names) <= MOST_KINDS else 0
        self.kind_of = own

    @cached_property
    def slopes(self) -> Blocks:
        """All derivatives of f and m, as matrices."""
        return Blocks(self.n, self.sums.summands, "m_v", "f_q", "f_v", "m_q", whole=True)

    def rescue(self, params: FloatArray) -> SumRescue:
        return SumRescue(self, params)

    @cached_property
    def jobs(self) -> JobList:
        return JobList(self.sums.forces if self.separable else self.sums._gradient("f", "m"))

    def sweep(self, form: LongSteps, name: str, nodes: Sequence[int]) -> Sweep:
        work, count = form.work, form.count
        f = work.arrays(f"{name} f", len(nodes), count)
        m = f if self.separable else work.arrays(f"{name} m", len(nodes), count)
        if form.job_slot < 0:
            form.job_slot = work.slot(2)
        q = form.place("q") if name == "last" else work.arrays(f"{name} q", len(nodes), count)
        v = q if self.separable else work.arrays(f"{name} v", len(nodes), count)
        jobs = [
            Jobs(form.job_slot, form.times.only(i), q.only(k), v.only(k), f.only(k), m.only(k))
            for k, i in enumerate(nodes)
        ]
        return Sweep(jobs, form.times.only(*nodes), q, v, f, m, True)

    def around(self, form: LongSteps, before: Each, sweep: Sweep, after: Each) -> list[Operation]:
        cells, (jobs,) = self.sums.cells, sweep.operations
        if cells.phases[1] == 1:
            return [before, jobs, after]
        work, W, owned = form.work, form.lanes, cells.owned
        # A vector that a later phase touches waits for it.
        vectors = np.stack([owned[:, 1] // W, -(-owned[:, 2] // W), -(-owned[:, 3] // W), owned[:, 4] // W], axis=1)
        vectors[:, 3] = np.where(owned[:, 4] == owned[:, 2], vectors[:, 1], vectors[:, 3])
        vectors[:, 3] = np.maximum(vectors[:, 2], vectors[:, 3])
        counts = np.bincount([cell for cell, *_ in self.jobs.pieces], minlength=cells.phases[-1])
        slot = work.keep(np.concatenate([[0], np.cumsum(counts)]))
        work.keep(np.searchsorted(owned[:, 0], np.arange(cells.phases[1] + 1)))
        work.keep(np.ascontiguousarray(vectors))
        assert isinstance(jobs, Jobs)
        return [Blocked(slot, before, jobs, after, cells.phases[1], cells.phases[-1], len(vectors))]

    def driven(self, form: LongSteps) -> list[Operation]:
        return []

    def middle(self, form: LongSteps, what: Sequence[str]) -> Middle:
        work = form.work
        blocks = self.sums.matrices if "f_q" in what else self.sums.mass
        upper = np.flatnonzero(blocks.row <= blocks.column)
        mirror = np.searchsorted(blocks.keys, blocks.column * blocks.size + blocks.row)
        name, count = " ".join(what), len(blocks.keys)
        q, v = (work.arrays(f"{name} middle {x}", 1, form.count) for x in "qv")
        operations: list[Operation] = []
        entries = {}
        for block in what:
            entries[block] = work.block(f"{name} {block}", count + form.lanes)
            at, jobs = Place("work", (entries[block],)), JobList(Rows(blocks.strips[block]))
            slot = work.slot(2)
            form.further.append((slot, jobs))
            operations += [Zero(at, count), Jobs(slot, form.times.only(-1), q, v, at, at)]
        return Middle(operations, q, v, entries, blocks.row[upper], blocks.column[upper], upper, mirror[upper])

    def fill(self, form: LongSteps, work: FloatArray, params: FloatArray) -> Any:
        kept = []
        for slot, jobs in [(form.job_slot, self.jobs), *form.further]:
            table, arrays = jobs.given(params)
            kept.append((table, arrays))
            work.view(np.int64)[slot : slot + 2] = table.ctypes.data, len(table)
        (begin,) = form.mass_place.begins
        work[begin : begin + form.count * form.lanes] = 1.0
        mass, nothing = self.sums.mass, np.zeros(self.n)
        if self.diagonal:
            M = mass.entries("m_v", 0.0, nothing, nothing, params)
            work[begin : begin + self.n] = 1.0 / M[mass.row == mass.column]
        if form.kinds > 1:
            (begin,) = form.kind.begins
            work[begin : begin + self.n] = self.kind_of
        return kept

    def velocity(self, t: float, q: FloatArray, p: FloatArray, params: FloatArray) -> FloatArray:
        return self.sums.at(params).velocity(t, q, p)


class SumRescue(Rescue):
    """Single steps of a sum with these parameters: sparse equations of all points together, solved by SuperLU."""

    def __init__(self, how: Summed, params: FloatArray) -> None:
        self.how, self.system, self.params = how, how.system, params
        self.step: Any = how.step
        self.sums = how.sums
        self.at = self.sums.at(params)
        self.controls = np.array([float(d) for d in how.method.exact_table(20)["d"][1:]])

    def velocity(self, t: float, q: FloatArray, p: FloatArray) -> FloatArray:
        v = self.at.velocity(t, q, p) if np.isfinite(q).all() and np.isfinite(p).all() else None
        if v is None:
            raise Unsolved(Failure(SINGULAR if np.isfinite(p).all() else NOT_FINITE, np.inf, 0, 0.0))
        return v

    def equations(
        self, t: float, q: FloatArray, p: FloatArray, h: float, z: FloatArray, inputs: FloatArray
    ) -> tuple[FloatArray, Any, FloatArray]:
        from scipy.sparse import csc_array

        n, s, table, slopes = self.step.n, self.step.s, stencils(samples(self.how.method), h), self.how.slopes
        R, J, impulse = np.zeros((s, n)), np.zeros((s, s, len(slopes.keys))), np.zeros(n)
        R[-1] = -p
        for i, (time, weight) in enumerate(zip(table.times, table.weights, strict=True)):
            gather = {"q": table.gather["q"][i], "v": table.gather["v"][i]}
            point = t + time, q + gather["q"] @ z, gather["v"] @ z
            f, m = (x[:n] for x in self.sums.gradient(*point, self.params))
            for name, given in (("f", f), ("m", m)):
                scatter = weight * table.scatter[name][i]
                R += np.outer(scatter, given)
                for block in ("q", "v"):
                    if slopes.strips[f"{name}_{block}"]:
                        entries = slopes.entries(f"{name}_{block}", *point, self.params)
                        J += np.outer(scatter, gather[block])[:, :, None] * entries
            impulse += weight * f
        row, column = (np.broadcast_to(x, J.shape) for x in (
            n * np.arange(s)[:, None, None] + slopes.row, n * np.arange(s)[:, None] + slopes.column
        ))  # fmt: skip
        return R.ravel(), csc_array((J.ravel(), (row.ravel(), column.ravel())), shape=(s * n, s * n)), impulse

    def acceleration(self, t: float, q: FloatArray, v: FloatArray, inputs: FloatArray) -> FloatArray:
        found = self.at.motion(t, q, v)
        return np.full(self.step.n, np.nan) if found is None else found[0]

    def increment(self, J: Any, R: FloatArray) -> FloatArray | None:
        from scipy.sparse.linalg import splu

        try:
            return -np.asarray(splu(J).solve(R))
        except (RuntimeError, ValueError):
            return None

    def turned(self, J: Any) -> bool:
        from scipy.sparse.linalg import splu

        try:
            found = splu(J)
        except (RuntimeError, ValueError):
            return False
        odd = sum(map(_odd, (found.perm_r, found.perm_c))) + int((found.U.diagonal() < 0).sum())
        return odd % 2 == 1

    def unit(self, scale: FloatArray) -> FloatArray:
        kinds = self.how.kind_of
        most = np.zeros(kinds.max() + 1)
        np.maximum.at(most, kinds, scale)
        return most[kinds] if self.how.kinds else scale


def _odd(order: NDArray[Any]) -> int:
    """Whether a permutation takes an odd number of exchanges: 0 or 1."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = len(order)
    cycles, _ = connected_components(csr_array((np.ones(n), (np.arange(n), order)), shape=(n, n)))
    return (n - cycles) % 2


@lru_cache(maxsize=64)
def summed(system: Any, method: Galerkin) -> Summed:
    return Summed(system, method)
