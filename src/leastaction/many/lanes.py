"""Trajectories in SIMD lanes: whole steps fused into kernels, or the solver's loops where a step is too long."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from leastaction.backends import points
from leastaction.backends.layout import CONTINUED, ITERATIONS, STATUS, STEPS
from leastaction.backends.trajectories import Backend, Trajectories, backend
from leastaction.kernel import native_lanes
from leastaction.many.job import Block, Job, Standing, Start, Status, Tick
from leastaction.many.refine import galerkin_curve, roots
from leastaction.methods import Galerkin

FloatArray = NDArray[np.float64]

PIECE_SECONDS = 0.1  # how long the native loop runs between looks at the keyboard and the progress bar


def fits(job: Job) -> bool:
    """Whether the run can go in lanes: energies and events on the way need a fused step."""
    return isinstance(job.method, Galerkin) and (not job.plan.kinds or backend_of(job).fused)


def width(job: Job) -> int:
    """Trajectories that go side by side: the lanes, or one."""
    return native_lanes() if fits(job) else 1


def backend_of(job: Job) -> Backend:
    assert isinstance(job.method, Galerkin)
    return backend(job.system, job.method, native_lanes(), job.plan.program, job.plan.energy)


def state_size(job: Job) -> int:
    """How many numbers it takes to go on with a trajectory."""
    return int(backend_of(job).lasting.sum())


def compiled(job: Job) -> None:
    """Compile what a run needs."""
    how = backend_of(job)
    _ = how.kernels, how.solvers()


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


class _Batch:
    """Trajectories of a job with their state, between pieces."""

    def __init__(self, job: Job, start: Start, standing: Standing, block: Block) -> None:
        self.job, self.start, self.standing, self.block = job, start, standing, block
        events = [(event.direction, event.most, event.stop) for event in job.plan.events]
        self.backend = backend_of(job)
        self.lanes = Trajectories(
            self.backend, len(start), job.t0, job.h, events=events,
            every=job.every or job.steps, last=job.steps,
            skipped=block.first if job.every else 1, rows=block.rows.shape[1],
        )  # fmt: skip
        self.places, self._name = self.backend.places, f"lanes_{self.backend.layout:015x}"
        # Lanes beyond the last trajectory are never alive, and store nothing.
        self._rows = block.rows
        if not standing.state:
            self._begin()
        self._restore()

    def _begin(self) -> None:
        """The trajectories' state before the first step."""
        job, start, n, size = self.job, self.start, self.job.system.n, len(self.start)
        alive = (start.status == Status.COMPLETE).astype(float)[:, None]
        row = self.lanes.begin(job.t0, job.h, start.q, start.p, start.params, alive)
        at = np.concatenate([np.full((size, 1), job.t0), start.q, start.p, start.params], axis=1)
        if job.plan.program is not None:
            row[:, self.places["directions"]] = [float(event.direction) for event in job.plan.events]
            row[:, self.places["g"]] = points.evaluate(job.plan.program, at)
        if job.plan.energy:
            at[:, 1 + n : 1 + 2 * n] = start.v
            L = points.evaluate(job.system.program, at)[:, 0]
            E = (np.einsum("ki,ki->k", start.p, start.v) - L)[:, None]
            row[:, self.places["lowest"]] = row[:, self.places["highest"]] = E
        self.standing.state[self._name] = row[:, self.backend.lasting]
        self.standing.status[:] = start.status
        if job.every:
            self.block.rows[:, 0] = np.concatenate([start.q, start.p], axis=1)

    def _restore(self) -> None:
        """The trajectories' state into the lanes."""
        standing, size = self.standing, len(self.start)
        if self._name not in standing.state:
            raise ValueError(
                f"the trajectories stand as {', '.join(standing.state)}, while this version of leastaction goes on "
                f"from {self._name}; go on with the version that wrote it"
            )
        values = np.zeros((size, len(self.backend.lasting)))
        values[:, self.backend.lasting] = standing.state[self._name]
        self.lanes.put(values)
        for counted, array in self._counted():
            self.lanes.counts[:size, counted] = array

    def _counted(self) -> list[tuple[int | slice, NDArray[np.generic]]]:
        """Where the loop counts what the standing tells."""
        standing = self.standing
        return [
            (STATUS, standing.status),
            (STEPS, standing.steps),
            (ITERATIONS, standing.iterations),
            (CONTINUED, standing.continued),
            (self.lanes.crossings, standing.counts),
        ]

    @property
    def done(self) -> int:
        """Steps done by those that go on, all of them equally many."""
        standing = self.standing
        return int(standing.steps[standing.status == Status.COMPLETE].max(initial=0))

    @property
    def alive(self) -> bool:
        return self.lanes.alive

    def advance(self, first: int, steps: int) -> None:
        self.lanes.advance(first, steps, self._rows)

    def finish(self) -> None:
        """State, counts, energies and refined crossings into the standing."""
        standing, size = self.standing, len(self.start)
        for counted, array in self._counted():
            array[...] = self.lanes.counts[:size, counted]
        final = self.lanes.get()
        standing.state[self._name] = final[:, self.backend.lasting]
        if self.job.plan.energy:
            standing.energy[:, 0] = final[:, self.places["lowest"]][:, 0]
            standing.energy[:, 1] = final[:, self.places["highest"]][:, 0]
        if self.job.every == 0:
            self.block.rows[:, 0] = final[:, self.places["q"].start : self.places["p"].stop]
        if self.job.plan.events:
            self._refine()

    def _refine(self) -> None:
        job, n = self.job, self.job.system.n
        assert job.plan.program is not None and isinstance(job.method, Galerkin)
        records = self.lanes.records[: len(self.start)]
        lane, place = np.nonzero(np.isfinite(records[:, :, 0]))
        if not len(lane):
            return
        found = records[lane, place]
        t = job.t0 + found[:, 0] * job.h
        q, p = found[:, 1 : 1 + n], found[:, 1 + n : 1 + 2 * n]
        z = found[:, 1 + 2 * n :].reshape(len(found), -1, n)
        params = self.start.params[lane]
        event = np.repeat(np.arange(len(job.plan.events)), [event.most for event in job.plan.events])[place]
        curve = galerkin_curve(job.system, job.method, job.h, t, q, p, z, params)
        when, q, p = roots(job.plan.program, event, curve, job.h, t, params)
        self.standing.crossings[lane, place] = np.concatenate([when[:, None], q, p], axis=1)
