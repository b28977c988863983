"""Steppers that compute something on the way: the range of the energy, and crossings of event functions.

In lanes that is part of the fused step. One trajectory alone has every step's state looked at, some steps at a time.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends import points
from leastaction.backends.rows import Row
from leastaction.backends.status import GOING_WELL, STOPPED, Failure
from leastaction.backends.stepper import GalerkinStepper, Start, stepper
from leastaction.lagrangian import Lagrangian
from leastaction.methods import Galerkin
from leastaction.run.refine import Curve, galerkin_curve, hermite_curve, roots

if TYPE_CHECKING:
    from leastaction.run.plan import Plan
    from leastaction.run.standing import Standing

FloatArray = NDArray[np.float64]

BLOCK = 4096  # steps that are looked at together, at most


def _tell_no_number(g: FloatArray) -> None:
    """Warn of event functions that are no number."""
    if np.isnan(g).any():
        warnings.warn(
            "an event function has become no number: where it is none, its crossings are not noticed",
            RuntimeWarning,
            stacklevel=2,
        )


class WatchedLanes(GalerkinStepper):
    """Trajectories in lanes, and what their fused steps compute on the way."""

    def __init__(self, plan: Plan, start: Start, status: NDArray[np.int8], lanes: int) -> None:
        system, method, watch = plan.system, plan.method, plan.watch
        assert isinstance(system, Lagrangian) and isinstance(method, Galerkin)
        events = [(event.direction, event.most, event.stop) for event in watch.events]
        super().__init__(system, method, start, plan.row, lanes, watch.program, events, watch.energy)
        self.plan, self._begin = plan, start
        numbers: dict[str, Any] = {}
        at = np.concatenate([np.full((self.size, 1), start.t), start.q, start.p, start.params], axis=1)
        if watch.program is not None:
            numbers["directions"] = [float(event.direction) for event in watch.events]
            numbers["g"] = points.evaluate(watch.program, at)
        if watch.energy:
            at[:, 1 + system.n : 1 + 2 * system.n] = start.v
            L = points.evaluate(system.program, at)[:, 0]
            numbers["lowest"] = numbers["highest"] = (np.einsum("ki,ki->k", start.p, start.v) - L)[:, None]
        self.put(status, **numbers)

    def finish(self, standing: Standing) -> None:
        """Energies, and crossings, refined."""
        if self.plan.watch.energy:
            for k, name in enumerate(("lowest", "highest")):
                standing.energy[:, k] = self.run.values(name)[:, 0]
        standing.counts[...] = self.run.counts[: self.size, self.run.crossings]
        if self.plan.watch.program is not None:
            _tell_no_number(self.run.values("g")[standing.status == GOING_WELL])
            self._refine(standing)

    def _refine(self, standing: Standing) -> None:
        plan, system, method, n = self.plan, self.plan.system, self.plan.method, self.plan.row.n
        assert plan.watch.program is not None and isinstance(system, Lagrangian) and isinstance(method, Galerkin)
        records = self.run.records[: self.size]
        lane, place = np.nonzero(np.isfinite(records[:, :, 0]))
        if not len(lane):
            return
        found = records[lane, place]
        t = plan.t0 + found[:, 0] * plan.h
        q, p = found[:, 1 : 1 + n], found[:, 1 + n : 1 + 2 * n]
        z = found[:, 1 + 2 * n :].reshape(len(found), -1, n)
        params = self._begin.params[lane]
        event = np.repeat(np.arange(len(plan.watch.events)), [event.most for event in plan.watch.events])[place]
        curve = galerkin_curve(system, method, plan.h, t, q, p, z, params)
        when, q, p = roots(plan.watch.program, event, curve, plan.h, t, params)
        standing.crossings[lane, place] = np.concatenate([when[:, None], q, p], axis=1)


class Watched:
    """One trajectory, its steps looked at; energies and crossings go where it stands."""

    def __init__(self, plan: Plan, start: Start, standing: Standing) -> None:
        assert isinstance(plan.system, Lagrangian)
        self.plan, self.system, self._begin, self._standing = plan, plan.system, start, standing
        self.params = start.params
        self.solver = stepper(plan.system, plan.method, start, Row.whole(plan.system.n))
        self.INTEGERS: tuple[str, ...] = self.solver.INTEGERS
        self._stopped = False

    @property
    def done(self) -> int:
        return self.solver.done

    def advance(self, steps: int, every: int, first: int, rows: FloatArray) -> int:
        steps, begun = min(steps, BLOCK), self.solver.done
        before, now = self.solver.state(), self.solver.at()
        found = np.empty((1, steps, now.shape[1]))
        self.solver.advance(steps, 1, begun + 1, found)
        done = int(self.solver.steps()[0]) - begun
        states = np.concatenate([now, found[0, :done]])
        stop = self._observe(begun, states)
        if stop is not None:
            done = stop - begun
            self.solver.restore(before)  # as if it had not gone beyond
            self.solver.advance(done, 0, 0, found)
            self._stopped = True
        k = np.arange(begun + 1, begun + done + 1)
        kept = k[k % every == 0] if every else k[:0]
        rows[0, kept // every - first if every else kept] = states[kept - begun]
        return done

    def steps(self) -> NDArray[np.int64]:
        return self.solver.steps()

    def status(self) -> NDArray[np.int8]:
        return np.array([STOPPED], np.int8) if self._stopped else self.solver.status()

    def at(self) -> FloatArray:
        return self.solver.at()

    def spent(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self.solver.spent()

    def counts(self) -> dict[str, Any]:
        return self.solver.counts()

    def failure(self) -> Failure | None:
        return self.solver.failure()

    def finish(self, standing: Standing) -> None:
        """Everything is there already."""

    def state(self) -> dict[str, NDArray[Any]]:
        return self.solver.state()

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self.solver.restore(state)

    def _observe(self, first: int, states: FloatArray) -> int | None:
        """Energy and events over the steps that begin with the first; the step after which to stop, if any."""
        plan, watch, n = self.plan, self.plan.watch, self.system.n
        k = np.arange(first, first + len(states))
        t = np.asarray(plan.t0 + k * plan.h, float)
        params = np.broadcast_to(self.params, (len(k), len(self.params)))
        stop = None
        if watch.program is not None:
            g = points.evaluate(watch.program, np.concatenate([t[:, None], states, params], axis=1))
            _tell_no_number(g)
            stop = self._events(first, g, states)
        if watch.energy:
            part = slice(None if stop is None else stop - first + 1)
            q, p = states[part, :n], states[part, n:]
            E = self.system.energies(t[part], q.copy(), p.copy(), np.ascontiguousarray(params[part]))
            low, high = self._standing.energy[0]
            self._standing.energy[0] = np.fmin(low, E.min()), np.fmax(high, E.max())
        return stop

    def _events(self, first: int, g: FloatArray, states: FloatArray) -> int | None:
        watch, standing = self.plan.watch, self._standing
        old, new = g[:-1], g[1:]
        direction = np.array([event.direction for event in watch.events])
        up, down = (old < 0) & (new >= 0), (old > 0) & (new <= 0)
        crossed = (up & (direction >= 0)) | (down & (direction <= 0))
        stops = np.array([event.stop for event in watch.events])
        ending = np.flatnonzero((crossed & stops).any(axis=1))
        stop = int(ending[0]) + 1 if len(ending) else None
        crossed = crossed[:stop]
        place = 0
        for e, event in enumerate(watch.events):
            k = np.flatnonzero(crossed[:, e])
            kept = int(min(standing.counts[0, e], event.most))
            standing.counts[0, e] += len(k)
            k = k[: event.most - kept]
            if len(k):
                found = self._refined(e, first + k, states[k], states[k + 1])
                standing.crossings[0, place + kept : place + kept + len(k)] = found
            place += event.most
        return None if stop is None else first + stop

    def _refined(self, e: int, k: NDArray[np.int64], left: FloatArray, right: FloatArray) -> FloatArray:
        """(t, q, p) at the crossings of event e in steps k."""
        plan = self.plan
        assert plan.watch.program is not None
        t = np.asarray(plan.t0 + k * plan.h, float)
        params = np.ascontiguousarray(np.broadcast_to(self.params, (len(k), len(self.params))))
        curve = self._curve(t, left, right, params)
        when, q, p = roots(plan.watch.program, np.full(len(k), e), curve, plan.h, t, params)
        return np.concatenate([when[:, None], q, p], axis=1)

    def _curve(self, t: FloatArray, left: FloatArray, right: FloatArray, params: FloatArray) -> Curve:
        plan, system, n = self.plan, self.system, self.system.n
        if isinstance(plan.method, Galerkin):
            # Solved again by a stepper of its own, so that the run's goes on undisturbed.
            solver = GalerkinStepper(system, plan.method, self._begin)
            z, _ = solver.polynomials(np.ascontiguousarray(np.concatenate([t[:, None], left], axis=1)))
            return galerkin_curve(system, plan.method, plan.h, t, left[:, :n], left[:, n:], z, params)
        rates = []
        for when, state in ((t, left), (t + plan.h, right)):
            v, _ = system.velocities(when, state[:, :n].copy(), state[:, n:].copy(), params)
            at = np.concatenate([when[:, None], state[:, :n], v, params], axis=1)
            rates.append(np.concatenate([v, points.evaluate(system.node.select("f"), at)], axis=1))
        return hermite_curve(plan.h, left, right, rates[0], rates[1])
