"""Trajectories one after the other, for systems too large for the lanes and for methods outside the family.

Where something is to be computed on the way, every step's state is looked at, a block of steps at a time.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from leastaction.backends import points, stepper
from leastaction.backends.stepper import GalerkinStepper
from leastaction.many.job import Block, Job, Standing, Start, Status, Tick
from leastaction.many.refine import Curve, galerkin_curve, hermite_curve, roots
from leastaction.many.starts import energies, velocities

FloatArray = NDArray[np.float64]

BLOCK = 4096  # steps that are looked at together, at most
PIECE_SECONDS = 0.1  # how long a stepper runs between looks at the keyboard and the progress bar


def advance(job: Job, start: Start, standing: Standing, block: Block, tick: Tick) -> None:
    """From where each of these trajectories stands to the end of the block, or as far as the tick lets them."""
    if not standing.state:
        standing.status[:] = start.status
        standing.state["at"] = np.concatenate([start.q, start.p], axis=1)
        stored = slice(None) if job.every else start.status != Status.COMPLETE
        block.rows[stored, 0] = standing.state["at"][stored]
    piece = 16
    for i in np.flatnonzero(standing.going(block.end(job))):
        single = _Single(job, start, standing, block, int(i), piece)
        if not single.go(tick):
            return
        piece = single.piece


class _Single:
    """One trajectory and where its results go; `piece` steps at a time."""

    def __init__(self, job: Job, start: Start, standing: Standing, block: Block, i: int, piece: int) -> None:
        self.job, self.standing, self.block, self.i, self.piece = job, standing, block, i, piece
        self.params = start.params[i]
        self.state: FloatArray = standing.state["at"][i].copy()
        begin = stepper.Start(job.t0, start.q[i], start.p[i], start.v[i], job.h, self.params)
        self.solver = stepper.stepper(job.system, job.method, begin)
        self.begin = begin
        self.observed = bool(job.plan.kinds)
        self.every = 1 if self.observed else job.every or job.steps
        self.done = int(standing.steps[i])
        if self.done:
            self.solver.restore({name: standing.state[f"stepper_{name}"][i] for name in self.solver.state()})

    def go(self, tick: Tick) -> bool:
        """To the end of the block; False if the tick has ended it before."""
        job, n, i, standing, end = self.job, self.job.system.n, self.i, self.standing, self.block.end(self.job)
        goes_on = True
        while goes_on and self.done < end and standing.status[i] == Status.COMPLETE:
            clock = time.perf_counter()
            todo = min(self.piece, end - self.done)
            rows, before = np.zeros((todo // self.every + 2, 2 * n)), self.solver.state()
            done, stored, failure = self.solver.advance(todo, self.every, job.steps, rows)
            reached = rows[stored - 1].copy() if stored else self.state
            if failure is not None and (self.done + done) % self.every:
                stored -= 1  # the state before the step that failed has no place among the others
            first, rows = self.done, rows[:stored]
            stopped = self._observe(first, done, rows) if self.observed else None
            if stopped is not None:
                done, rows = stopped - first, rows[: stopped - first]
                self.solver.restore(before)  # as if it had not gone beyond
                self.solver.advance(done, self.every, job.steps, np.zeros((done + 1, 2 * n)))
                standing.status[i] = Status.STOPPED
            elif failure is not None:
                standing.status[i] = failure.status
            self.done += done
            self._store(first, rows)
            self.state = reached if stopped is None else rows[-1]
            goes_on = tick(done)
            if done == self.piece:
                spent = max(time.perf_counter() - clock, 1e-6)
                self.piece = min(BLOCK, max(1, int(self.piece * min(8.0, PIECE_SECONDS / spent))))
        if goes_on:
            tick(end - self.done)
        self._save()
        return goes_on

    def _save(self) -> None:
        """Where this trajectory stands now."""
        standing, i = self.standing, self.i
        counts = self.solver.counts()
        standing.steps[i] = self.done
        standing.iterations[i] = counts.get("newton_iterations", 0)
        standing.continued[i] = counts.get("continued", 0)
        standing.state["at"][i] = self.state
        for name, array in self.solver.state().items():
            place = f"stepper_{name}"
            if place not in standing.state:
                standing.state[place] = np.zeros((len(standing.steps), *array.shape), array.dtype)
            standing.state[place][i] = array
        if self.job.every == 0 and not standing.going(self.job.steps)[i]:
            self.block.rows[i, 0] = self.state

    def _store(self, first: int, rows: FloatArray) -> None:
        """The rows that are to be kept, out of those the stepper gave."""
        job = self.job
        if job.every == 0:
            return
        if self.every == 1:
            k = np.arange(first + 1, first + len(rows) + 1)
        else:
            k = np.arange(first // self.every + 1, first // self.every + len(rows) + 1) * self.every
            k = np.minimum(k, job.steps)
        wanted = (k % job.every == 0) | (k == job.steps)
        place = np.where(k % job.every == 0, k // job.every, job.kept - 1) - self.block.first
        self.block.rows[self.i, place[wanted]] = rows[wanted]

    def _observe(self, first: int, done: int, rows: FloatArray) -> int | None:
        """Energy and events over the steps first … first + done; the step after which to stop, if any."""
        job, plan, n, i = self.job, self.job.plan, self.job.system.n, self.i
        states = np.concatenate([self.state[None], rows])
        k = np.arange(first, first + done + 1)
        t = np.asarray(job.t0 + k * job.h, float)
        params = np.broadcast_to(self.params, (len(k), len(self.params)))
        stop = None
        if plan.program is not None:
            g = points.evaluate(plan.program, np.concatenate([t[:, None], states, params], axis=1))
            stop = self._events(first, g, states)
        if plan.energy:
            last = None if stop is None else stop - first + 1
            part = slice(last)
            E = energies(job.system, t[part], states[part, :n], states[part, n:], np.ascontiguousarray(params[part]))
            low, high = self.standing.energy[i]
            self.standing.energy[i] = np.fmin(low, E.min()), np.fmax(high, E.max())
        return stop

    def _events(self, first: int, g: FloatArray, states: FloatArray) -> int | None:
        plan, i = self.job.plan, self.i
        old, new = g[:-1], g[1:]
        direction = np.array([event.direction for event in plan.events])
        up, down = (old < 0) & (new >= 0), (old > 0) & (new <= 0)
        crossed = (up & (direction >= 0)) | (down & (direction <= 0))
        stops = np.array([event.stop for event in plan.events])
        ending = np.flatnonzero((crossed & stops).any(axis=1))
        stop = int(ending[0]) + 1 if len(ending) else None
        crossed = crossed[:stop]
        place = 0
        for e, event in enumerate(plan.events):
            k = np.flatnonzero(crossed[:, e])
            kept = int(min(self.standing.counts[i, e], event.most))
            self.standing.counts[i, e] += len(k)
            k = k[: event.most - kept]
            if len(k):
                found = self._refined(e, first + k, states[k], states[k + 1])
                self.standing.crossings[i, place + kept : place + kept + len(k)] = found
            place += event.most
        return None if stop is None else first + stop

    def _refined(self, e: int, k: NDArray[np.int64], left: FloatArray, right: FloatArray) -> FloatArray:
        """(t, q, p) at the crossings of event e in steps k."""
        job = self.job
        assert job.plan.program is not None
        t = np.asarray(job.t0 + k * job.h, float)
        params = np.ascontiguousarray(np.broadcast_to(self.params, (len(k), len(self.params))))
        curve = self._curve(t, left, right, params)
        when, q, p = roots(job.plan.program, np.full(len(k), e), curve, job.h, t, params)
        return np.concatenate([when[:, None], q, p], axis=1)

    def _curve(self, t: FloatArray, left: FloatArray, right: FloatArray, params: FloatArray) -> Curve:
        job, n = self.job, self.job.system.n
        if isinstance(job.method, stepper.Galerkin):
            # Solved again by a stepper of its own, so that the run's goes on undisturbed.
            solver = GalerkinStepper(job.system, job.method, self.begin)
            z, _ = solver.polynomials(np.ascontiguousarray(np.concatenate([t[:, None], left], axis=1)))
            return galerkin_curve(job.system, job.method, job.h, t, left[:, :n], left[:, n:], z, params)
        rates = []
        for when, state in ((t, left), (t + job.h, right)):
            v, _ = velocities(job.system, when, state[:, :n].copy(), state[:, n:].copy(), params)
            at = np.concatenate([when[:, None], state[:, :n], v, params], axis=1)
            rates.append(np.concatenate([v, points.evaluate(job.system.gradient.select("Lq"), at)], axis=1))
        return hermite_curve(job.h, left, right, rates[0], rates[1])
