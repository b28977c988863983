"""Sums over rows of tables, as scripts see them: jobs, points and the mass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.engine.long_form import Held, LongForm, Middle, Sweep
from leastaction.engine.rescue import Rescue, Unsolved
from leastaction.engine.sum_jobs import Blocks, JobList
from leastaction.kernel.script import Blocked, Each, Jobs, Operation, Place, Zero
from leastaction.methods import Galerkin
from leastaction.step.constraints import rate, squares
from leastaction.step.form import samples, stencils
from leastaction.step.status import NOT_FINITE, SINGULAR, Failure

FloatArray = NDArray[np.float64]

MOST_KINDS = 16  # that are judged together; with more each coordinate is judged by itself


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

    channels, vectors, weighted, hollow = 0, 0, False, False  # whether a mass is hollow a term alone does not tell
    stiffness: tuple[str, ...] = ("m_v", "f_q")

    def __init__(self, system: Any, method: Galerkin) -> None:
        self.system, self.method, self.n = system, method, system.n
        self.sums = system.assembly
        self.step = Facts(self.n, method, len(system.values()), multipliers=system.m)
        self.diagonal, self.constant = self.sums.mass.diagonal and self.sums.mass.constant, self.sums.mass.constant
        self.separable = self.sums.separable and self.sums.mass.diagonal
        kinds = self.sums.kinds
        names, own = np.unique(kinds, return_inverse=True)
        self.kinds = len(names) if len(names) <= MOST_KINDS else 0
        self.kind_of = own
        self.curved = system.m > 0 and any(summand.node.depends("m_v", "v") for summand in self.sums.summands)

    @cached_property
    def slopes(self) -> Blocks:
        """All derivatives of f and m, as matrices."""
        return Blocks(self.n, self.sums.summands, "m_v", "f_q", "f_v", "m_q", whole=True)

    @cached_property
    def bent(self) -> Blocks:
        """∂(Gᵀλ)/∂q, and G and Gᵀ."""
        return Blocks(self.n, (), "f_q", "m_v", held=self.sums.held, size=self.sums.size)

    def rescue(self, params: FloatArray) -> SumRescue:
        return SumRescue(self, params)

    @cached_property
    def jobs(self) -> JobList:
        return JobList(self.sums.forces if self.separable else self.sums._gradient("f", "m"))

    def sweep(self, form: LongForm, name: str, nodes: Sequence[int]) -> Sweep:
        work, count = form.work, form.count
        f = work.arrays(len(nodes), count)
        m = f if self.separable else work.arrays(len(nodes), count)
        if form.job_slot < 0:
            form.job_slot = work.slot(2)
        q = form.place("q") if name == "last" and not self.sums.m else work.arrays(len(nodes), count)
        v = q if self.separable else work.arrays(len(nodes), count)
        jobs = [
            Jobs(form.job_slot, form.times.only(i), q.only(k), v.only(k), f.only(k), m.only(k))
            for k, i in enumerate(nodes)
        ]
        return Sweep(jobs, form.times.only(*nodes), q, v, f, m, True)

    def around(self, form: LongForm, before: Each, sweep: Sweep, after: Each) -> list[Operation]:
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

    def driven(self, form: LongForm) -> list[Operation]:
        return []

    def held(self, form: LongForm, name: str, times: Sequence[int]) -> Held:
        """What constraints give at points (`long_held.Held`)."""
        work, sums, behind = form.work, self.sums, form.count * form.lanes
        vectors, slot = form.height // form.lanes, form.work.slot(2)
        if name == "reaction":
            rows = sums.reactions
        elif name == "end":
            rows = [*sums._gradient("m"), *sums.of_rows(rate, held=True)]
        else:
            rows = sums.of_rows(squares, held=True)
        form.further.append((slot, JobList(rows)))
        q, found = (work.arrays(len(times), vectors) for _ in range(2))
        by = _further(q, behind) if name == "reaction" else work.arrays(len(times), form.count)
        operations: list[Operation] = []
        for k, i in enumerate(times):
            at, to = q.only(k), found.only(k)
            other = at if name == "reaction" else by.only(k)
            operations += [Zero(to, vectors * form.lanes), Jobs(slot, form.times.only(i), at, other, to, to)]
        return Held(operations, q, by, found, _further(found, behind))

    @cached_property
    def masses(self) -> Blocks:
        """The mass, and beside it G and Gᵀ."""
        sums = self.sums
        return Blocks(sums.n, sums.summands, "m_v", held=sums.held, size=sums.size) if sums.m else sums.mass

    def middle(self, form: LongForm, what: Sequence[str], time: int) -> Middle:
        work, vectors = form.work, form.height // form.lanes
        blocks = self.sums.matrices if "f_q" in what else self.masses
        upper = np.flatnonzero(blocks.row <= blocks.column)
        mirror = np.searchsorted(blocks.keys, blocks.column * blocks.size + blocks.row)
        count = len(blocks.keys)
        q, v = (work.arrays(1, vectors) for _ in "qv")
        operations: list[Operation] = []
        entries = {}
        for block in what:
            entries[block] = work.block(count + form.lanes)
            at, jobs = Place("work", (entries[block],)), JobList(blocks.strips[block])
            slot = work.slot(2)
            form.further.append((slot, jobs))
            operations += [Zero(at, count), Jobs(slot, form.times.only(time), q, v, at, at)]
        row, column = (np.searchsorted(blocks.unknowns, x[upper]) for x in (blocks.row, blocks.column))
        held = _further(q, form.count * form.lanes)
        return Middle(operations, q, v, entries, row, column, upper, mirror[upper], held)

    def fill(self, form: LongForm, work: FloatArray, params: FloatArray) -> Any:
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
        return kept

    def marks(self, params: FloatArray) -> FloatArray:
        return self.kind_of.astype(float)

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
    ) -> tuple[FloatArray, Any, FloatArray, FloatArray]:
        from scipy.sparse import block_array, csc_array, kron

        n, s, count, held = self.step.n, self.step.s, self.step.multipliers, z[:, self.step.n :]
        table, slopes, z = stencils(samples(self.how.method), h), self.how.slopes, z[:, :n]
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
        whole = csc_array((J.ravel(), (row.ravel(), column.ravel())), shape=(s * n, s * n))
        if not count:
            return R.ravel(), whole, impulse, R
        # The reactions, at the control points.
        table, blocks, size = stencils(samples(self.how.method, "controls"), h), self.how.bent, self.sums.size
        begin, parts, g = size - count, [whole, 0, 0], np.zeros((s, count))
        for i, (time, weight) in enumerate(zip(table.times, table.weights, strict=True)):
            gather, scatter = table.gather, {"f": weight * table.scatter["f"][i], "g": table.scatter["g"][i]}
            x = np.zeros(size)
            x[:n], x[begin:] = q + gather["q"][i] @ z, gather["multipliers"][i] @ held
            point = t + time, x, np.zeros(size)
            found = self.sums.reacting(*point, self.params)[0]
            R += np.outer(scatter["f"], found[:n])
            g += np.outer(scatter["g"], found[begin:])
            impulse += weight * found[:n]
            F, G = (csc_array((blocks.entries(name, *point, self.params), (blocks.row, blocks.column)))
                    for name in ("f_q", "m_v"))  # fmt: skip
            for k, (out, by, block) in enumerate(
                (("f", "q", F[:n, :n]), ("f", "multipliers", G[:n, begin:]), ("g", "q", G[begin:, :n]))
            ):
                parts[k] = parts[k] + kron(np.outer(scatter[out], gather[by][i]), block)
        J = block_array([[parts[0], parts[1]], [parts[2], None]]).tocsc()
        return np.concatenate([R.ravel(), g.ravel()]), J, impulse, R

    def acceleration(self, t: float, q: FloatArray, v: FloatArray, inputs: FloatArray) -> FloatArray:
        found = self.at.motion(t, q, v)
        return np.full(self.step.n + self.step.multipliers, np.nan) if found is None else np.concatenate(found)

    def increment(self, J: Any, R: FloatArray) -> FloatArray | None:
        from scipy.sparse.linalg import splu

        try:
            return -np.asarray(splu(J).solve(R))
        except (RuntimeError, ValueError):
            return None

    def floor(self, J: Any, rough: FloatArray) -> float:
        return 0.0  # coordinates of a kind have one scale

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


def _further(places: Place, by: int) -> Place:
    """The places of what lies behind coordinates."""
    return replace(places, begins=tuple(begin + by for begin in places.begins))


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
