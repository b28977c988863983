"""Trajectories in SIMD lanes: for systems and methods whose Newton step is one fused Program."""

from __future__ import annotations

import hashlib
import math
import time
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.discrete import FUSED_INSTRUCTIONS, fused_length
from leastaction.kernel import Native, compile_program, native_lanes
from leastaction.lagrangian import Lagrangian
from leastaction.many.job import Block, Job, Standing, Start, Status, Tick
from leastaction.many.programs import LanePrograms, lane_programs
from leastaction.many.refine import galerkin_curve, roots
from leastaction.methods import Galerkin
from leastaction.program import Program
from leastaction.stepping import layout, pointwise
from leastaction.stepping.native import loop
from leastaction.stepping.stepper import galerkin_workspace, method_table

FloatArray = NDArray[np.float64]

LINE = 8  # numbers in a cache line
PIECE_SECONDS = 0.1  # how long the native loop runs between looks at the keyboard and the progress bar


def fits(job: Job) -> bool:
    """Whether the run can go in lanes."""
    return isinstance(job.method, Galerkin) and _fits(job.system, job.method)


@lru_cache(maxsize=32)
def _fits(system: Lagrangian, method: Galerkin) -> bool:
    point = system.point.select("Lq", "Lv", "Lqq", "Lqv", "Lvv")
    return fused_length(point, method.table, system.n) <= FUSED_INSTRUCTIONS


def width(job: Job) -> int:
    """Trajectories that go side by side: the lanes, or one."""
    return native_lanes() if fits(job) else 1


def _programs(job: Job) -> LanePrograms:
    assert isinstance(job.method, Galerkin)
    return _cached(job.system, job.method, job.plan.program, job.plan.energy)


@lru_cache(maxsize=32)
def _cached(system: Lagrangian, method: Galerkin, event: Program | None, energy: bool) -> LanePrograms:
    return lane_programs(system, method, event, energy)


def _lasting(advance: Program) -> NDArray[np.bool_]:
    """Which numbers of a lane's state the next step depends on: all but those of the last Jacobian."""
    lasting = np.ones(advance.input_size, bool)
    lasting[advance.input_slice("slopes")] = lasting[advance.input_slice("factors")] = False
    return lasting


def state_size(job: Job) -> int:
    """How many numbers it takes to go on with a trajectory."""
    return int(_lasting(_programs(job).advance).sum())


def compiled(job: Job) -> tuple[Native, Native, Native]:
    """The kernels of a run."""
    programs, L = _programs(job), native_lanes()
    loop("lanes.run")
    # A lane whose angles are out of the bounded sine's range gets a NaN, and has its step solved alone.
    fresh, chord = (compile_program(program, L, True, True) for program in (programs.fresh, programs.chord))
    return fresh, chord, compile_program(programs.advance, L, in_place=True)


def advance(job: Job, start: Start, standing: Standing, block: Block, tick: Tick) -> None:
    """From where these trajectories stand to the end of the block, in pieces, or as far as the tick lets them."""
    batch = _Batch(job, start, standing, block)
    done, end, piece = batch.done, block.end(job), 16
    while done < end and batch.alive:
        clock = time.perf_counter()
        todo = min(piece, end - done)
        batch.advance(done, todo)
        done += todo
        if not tick(todo * len(start)):
            break
        spent = max(time.perf_counter() - clock, 1e-6)
        piece = max(1, int(piece * min(8.0, PIECE_SECONDS / spent)))
    else:
        tick((end - done) * len(start))
    batch.finish()


def _aligned(shape: tuple[int, ...]) -> FloatArray:
    """Zeros that begin with a cache line, so that no vector lies across two."""
    count = math.prod(shape)
    memory = np.zeros(count + LINE)
    begin = -memory.ctypes.data % (8 * LINE) // 8
    return memory[begin : begin + count].reshape(shape)


class _Batch:
    """Groups of lanes with their state, between pieces."""

    def __init__(self, job: Job, start: Start, standing: Standing, block: Block) -> None:
        assert isinstance(job.method, Galerkin)
        self.job, self.start, self.standing, self.block = job, start, standing, block
        self.method = job.method
        n, s, L = job.system.n, job.method.s, native_lanes()
        self.lanes = L
        self.groups = -(-len(start) // L)
        programs = _programs(job)
        self.places = {name: programs.advance.input_slice(name) for name, _ in programs.advance.inputs}
        self.layout = f"lanes_{hashlib.sha256(repr(programs.advance.inputs).encode()).hexdigest()[:8]}"
        self._lasting = _lasting(programs.advance)
        self._kernels = kernels = compiled(job)  # kept as long as their addresses are
        self._run = loop("lanes.run")
        self._space = galerkin_workspace(job.system, job.method)
        self._table = method_table(self._space, job.method)
        self._reals = np.zeros(layout.REALS)
        self._reals[[layout.START, layout.STEP]] = job.t0, job.h
        I = self._space.integers
        I[[layout.EVERY, layout.LAST]] = job.every or job.steps, job.steps
        self._A = self._integers(*(kernel.address for kernel in kernels))
        self.states = _aligned((self.groups, programs.advance.input_size, L))
        self._Y = _aligned((1 + max(kernel.outputs for kernel in kernels), L))
        self._counts = np.zeros((self.groups * L, layout.LANE_COUNTS), np.int64)
        self._records = np.full((self.groups * L, job.plan.records, 1 + 2 * n + n * s), np.nan)
        self._x = np.zeros(2 + 2 * n + n * s + start.params.shape[1])
        self._scratch = _aligned((max(kernel.work for kernel in kernels),))
        if not standing.state:
            self._begin()
        self._restore()

    def _integers(self, fresh: int, chord: int, advance: int) -> NDArray[np.int64]:
        """What the loop needs to know of the lanes."""
        plan, at = self.job.plan, {name: place.start for name, place in self.places.items()}
        size = self.places["trouble"].stop
        A = np.zeros(layout.LANE_INTEGERS, np.int64)
        values = {
            layout.FRESH: fresh, layout.CHORD: chord, layout.ADVANCE: advance,
            layout.LANES: self.lanes, layout.GROUPS: self.groups, layout.INPUTS: size,
            layout.Q_PLACE: at["q"], layout.Z_PLACE: at["z"], layout.IMPULSE_PLACE: at["impulse"],
            layout.FRESH_PLACE: at["fresh"], layout.CHORD_PLACE: at["chord"], layout.TROUBLE_PLACE: at["trouble"],
            layout.ITERATIONS_PLACE: at["iterations"], layout.PARAMS_PLACE: at["params"],
            layout.ALIVE_PLACE: at["alive"], layout.JACOBIAN_PLACE: at["slopes"],
            layout.JACOBIAN_SIZE: self.places["factors"].stop - at["slopes"],
            layout.EVENTS_PLACE: at["g"], layout.EVENTS: len(plan.events), layout.RECORDS: plan.records,
            layout.SKIPPED: self.block.first if self.job.every else 1, layout.KEPT: self.block.rows.shape[1],
        }  # fmt: skip
        A[list(values)] = list(values.values())
        first = 0
        for e, event in enumerate(plan.events):
            A[layout.EVENT + 4 * e : layout.EVENT + 4 * e + 4] = event.direction, event.most, first, event.stop
            first += event.most
        return A

    def _begin(self) -> None:
        """The trajectories' state before the first step."""
        job, start, n, size = self.job, self.start, self.job.system.n, len(self.start)
        row = np.zeros((size, self.states.shape[1]))

        def put(name: str, value: ArrayLike) -> None:
            row[:, self.places[name]] = np.asarray(value, float)

        alive = (start.status == Status.COMPLETE).astype(float)[:, None]
        put("t", job.t0)
        put("h", job.h)
        put("params", start.params)
        put("q", start.q)
        put("p", start.p)
        if "degree" in self.places:
            put("degree", [float(self.method.s), 0.0])
        put("alive", alive)
        put("fresh", alive)
        points = np.concatenate([np.full((size, 1), job.t0), start.q, start.p, start.params], axis=1)
        if job.plan.program is not None:
            put("directions", [float(event.direction) for event in job.plan.events])
            put("g", pointwise.evaluate(job.plan.program, points))
        if job.plan.energy:
            points[:, 1 + n : 1 + 2 * n] = start.v
            L = pointwise.evaluate(job.system.program, points)[:, 0]
            E = (np.einsum("ki,ki->k", start.p, start.v) - L)[:, None]
            put("lowest", E)
            put("highest", E)
        self.standing.state[self.layout] = row[:, self._lasting]
        self.standing.status[:] = start.status
        if job.every:
            self.block.rows[:, 0] = np.concatenate([start.q, start.p], axis=1)

    def _restore(self) -> None:
        """The trajectories' state into the lanes; those beyond the last trajectory repeat it and are not alive."""
        standing, size = self.standing, len(self.start)
        if self.layout not in standing.state:
            raise ValueError(
                f"the trajectories stand as {', '.join(standing.state)}, while this version of leastaction goes on "
                f"from {self.layout}; go on with the version that wrote it"
            )
        values = np.zeros((self.groups * self.lanes, self.states.shape[1]))
        values[:size, self._lasting] = standing.state[self.layout]
        values[size:] = values[size - 1]
        values[size:, self.places["alive"]] = values[size:, self.places["fresh"]] = 0.0
        self.states[...] = values.reshape(self.groups, self.lanes, -1).transpose(0, 2, 1)
        for counted, array in self._counted():
            self._counts[:size, counted] = array

    def _counted(self) -> list[tuple[int | slice, NDArray[Any]]]:
        """Where the loop counts what the standing tells."""
        standing, events = self.standing, len(self.job.plan.events)
        return [
            (layout.LANE_STATUS, standing.status),
            (layout.LANE_STEPS, standing.steps),
            (layout.LANE_ITERATIONS, standing.iterations),
            (layout.LANE_CONTINUED, standing.continued),
            (slice(layout.LANE_CROSSINGS, layout.LANE_CROSSINGS + events), standing.counts),
        ]

    @property
    def done(self) -> int:
        """Steps done by those that go on, all of them equally many."""
        standing = self.standing
        return int(standing.steps[standing.status == Status.COMPLETE].max(initial=0))

    @property
    def alive(self) -> bool:
        return bool(self.states[:, self.places["alive"]].any())

    def advance(self, first: int, steps: int) -> None:
        I = self._space.integers
        I[[layout.FIRST, layout.STEPS]] = first, steps
        self._run(
            I, self._reals, self._A, self._table, self.states, self._Y, self._counts, self.block.rows,
            self._records, self._x, self._scratch, self._space.memory, self._space.pivots,
        )  # fmt: skip

    def finish(self) -> None:
        """State, counts, energies and refined crossings into the standing."""
        standing, size = self.standing, len(self.start)
        for counted, array in self._counted():
            array[...] = self._counts[:size, counted]
        final = self.states.transpose(0, 2, 1).reshape(-1, self.states.shape[1])[:size]
        standing.state[self.layout] = final[:, self._lasting]
        if self.job.plan.energy:
            standing.energy[:, 0] = final[:, self.places["lowest"]][:, 0]
            standing.energy[:, 1] = final[:, self.places["highest"]][:, 0]
        if self.job.every == 0:
            self.block.rows[:, 0] = final[:, self.places["q"].start : self.places["p"].stop]
        if self.job.plan.events:
            self._refine()

    def _refine(self) -> None:
        job, n = self.job, self.job.system.n
        assert job.plan.program is not None
        records = self._records[: len(self.start)]
        lane, place = np.nonzero(np.isfinite(records[:, :, 0]))
        if not len(lane):
            return
        found = records[lane, place]
        t = job.t0 + found[:, 0] * job.h
        q, p = found[:, 1 : 1 + n], found[:, 1 + n : 1 + 2 * n]
        z = found[:, 1 + 2 * n :].reshape(len(found), -1, n)
        params = self.start.params[lane]
        event = np.repeat(np.arange(len(job.plan.events)), [event.most for event in job.plan.events])[place]
        curve = galerkin_curve(job.system, self.method, job.h, t, q, p, z, params)
        when, q, p = roots(job.plan.program, event, curve, job.h, t, params)
        self.standing.crossings[lane, place] = np.concatenate([when[:, None], q, p], axis=1)
