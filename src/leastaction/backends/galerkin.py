"""A member of the PsNrQu family at work, by the native loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.layout import CONTINUED, ITERATIONS, SOLVER, STATUS, STEPS
from leastaction.backends.trajectories import Trajectories, single_steps
from leastaction.backends.workspace import Check
from leastaction.methods import Galerkin
from leastaction.step.status import GOING_WELL, Failure
from leastaction.step.stepper import Start, require_inputs
from leastaction.step.stored_row import Row

if TYPE_CHECKING:
    from leastaction.backends.backend import Backend
    from leastaction.backends.singles import SingleSteps
    from leastaction.systems.lagrangian import Lagrangian
    from leastaction.systems.sums import Sum

FloatArray = NDArray[np.float64]


class GalerkinStepper:
    """A member of the PsNrQu family at work, on one trajectory or on many in lanes.

    energy   fused steps in lanes also compute the range of the energy
    threads  that may share the work of one trajectory
    hasty    whether a step fails that only continuation could solve (`hurry`)
    check    whether an event may lie in a step, asked after every one (`looks`)
    phase    of a composition: where in a whole step these steps begin, and how long they are, in parts of h
    """

    # The integers of its state: what the loops count, the most iterations, and what the state means.
    INTEGERS: tuple[str, ...] = ("status", "steps", "iterations", "continued", "most", "stiff", "layout")
    threads, hasty = 1, False

    def __init__(
        self,
        system: Lagrangian | Sum,
        method: Galerkin,
        start: Start,
        row: Row | None = None,
        lanes: int = 1,
        energy: bool = False,
        check: Check | None = None,
        phase: tuple[float, float] | None = None,
    ) -> None:
        require_inputs(system, start)
        self.row, self._start = row or Row.whole(system.n), start
        q, p = np.atleast_2d(start.q), np.atleast_2d(start.p)
        self.size = len(q)
        self.D = self.row.directions() if self.row.varied else None
        how = system.backend(method, lanes, energy, phase is not None)
        assert how is not None, "sums go one by one"
        self._energy, self._system = energy, system
        offset, part = phase or (0.0, 1.0)
        self._points = offset + part * method.table.c  # in whole steps
        self._singles: dict[int, SingleSteps] = {}  # with further derivatives, by how many those before them have
        self.run = Trajectories(how, self.size, start.t, start.h, self.row, D=self.D, check=check, phase=(offset, part))
        values = self.run.begin(start.t + offset * start.h, part * start.h, q, p, start.params, 1.0)
        if energy:
            E = self._energies(np.full(self.size, start.t), np.concatenate([q, p], axis=1), start.params)
            for name in ("lowest", "highest"):
                self.run.block(values, name)[:, 0] = E
        self.run.put(values)

    def leave(self, status: NDArray[np.int8]) -> None:
        """Before the first step: which trajectories cannot begin."""
        for i in np.flatnonzero(status != GOING_WELL):
            self.run.end(int(i), int(status[i]))

    @property
    def done(self) -> int:
        if self.size == 1:
            return int(self.run.counts[0, STEPS]) if self.run.counts[0, STATUS] == GOING_WELL else 0
        counts = self.run.counts[: self.size]
        return int(counts[counts[:, STATUS] == GOING_WELL, STEPS].max(initial=0))

    def going(self, end: int) -> bool:
        """Whether a trajectory goes on that has done fewer steps than these."""
        counts = self.run.counts[: self.size]
        if self.size == 1:
            return bool(counts[0, STATUS] == GOING_WELL and counts[0, STEPS] < end)
        return bool(((counts[:, STATUS] == GOING_WELL) & (counts[:, STEPS] < end)).any())

    @property
    def furthest(self) -> int:
        """The most steps of a trajectory."""
        return int(self.run.counts[0, STEPS] if self.size == 1 else self.run.counts[: self.size, STEPS].max())

    def advance(self, steps: int, every: int, first: int, rows: FloatArray) -> int:
        begun = self.done
        self.drive(begun, steps)
        self.run.advance(begun + steps, every, first, rows, self.threads)
        done = self.furthest
        if self.run.counts[0, STATUS] != GOING_WELL and self.run.backend.softly:
            self._stiffen()
            return done - begun + self.advance(steps - (done - begun), every, first, rows)
        return done - begun

    def hurry(self) -> None:
        """From now on a step after the first fails that only continuation could solve: in large systems that takes
        minutes.
        """
        self.hasty, memory = True, self.run.solvers.memory
        memory.I[memory.number(self.run.tally("alone"), SOLVER, "hasty")] = 1

    def drive(self, first: int, count: int) -> None:
        """The inputs of the steps to come, where there are any."""
        start = self._start
        if start.inputs is not None:
            table = start.inputs.along(start.t, start.h, first, count, self._points)
            self.run.drive(np.ascontiguousarray(table) if table.strides[-1] != 8 else table, first)

    def _stiffen(self) -> None:
        """A step of a sum failed: go on from before it with further derivatives, which are there from now on."""
        old = self.run
        how = replace(old.backend, stiff=old.backend.stiff + 1)
        self.run = Trajectories(how, self.size, self._start.t, self._start.h, self.row)
        if self.hasty:
            self.hurry()
        how.give(self.run.solvers, int(self.run.solvers.memory.I[self.run.number("alone")]), self._start.params)
        values = old.get()
        old.block(values, "alive")[...] = 1.0
        self.run.put(values)
        self.run.counts[...] = old.counts
        self.run.counts[0, STATUS] = GOING_WELL
        self.run.set(most=old.tally("most"))
        self.run.real("undone")[:] = old.real("undone")

    def steps(self) -> NDArray[np.int64]:
        return self.run.counts[: self.size, STEPS].copy()

    def status(self) -> NDArray[np.int8]:
        return self.run.counts[: self.size, STATUS].astype(np.int8)

    def at(self) -> FloatArray:
        found = np.concatenate([self.run.values("q"), self.run.values("p")], axis=1)
        return found if self.D is None else np.concatenate([found, self.D.reshape(1, -1)], axis=1)

    def spent(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        counts = self.run.counts[: self.size]
        return counts[:, ITERATIONS].copy(), counts[:, CONTINUED].copy()

    def polynomials(self, starts: FloatArray) -> tuple[FloatArray, int]:
        """The increments z, (K, s, n), of single steps from rows (t, q, p), and how many could be solved."""
        z, _ = self.solved_steps(starts, np.full(len(starts), float(self._start.h)))
        failed = np.flatnonzero(np.isnan(z[:, 0, 0]))
        return z, int(failed[0]) if len(failed) else len(z)

    def single_steps(self, starts: FloatArray, lengths: FloatArray) -> FloatArray:
        """The states (q, p) after single steps of these lengths; NaN where one is not solved."""
        z, impulses = self.solved_steps(starts, lengths)
        return starts[:, 1:] + np.concatenate([z[:, -1], impulses], axis=1)

    def count_from(self, step: int) -> None:
        """Before the first step: as if so many had been done, so that time counts these, too."""
        values = self.run.get()
        self.run.block(values, "t")[...] += step * float(self._start.h)
        self.run.put(values)
        self.run.counts[: self.size, STEPS] = step

    def solved_steps(
        self, starts: FloatArray, lengths: FloatArray, inputs: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """The increments z, (K, s, n), and impulses, (K, n), of single steps, with the run's inputs or others; NaN
        where one is not solved.

        Every step of a sum is tried without further derivatives first, whatever others needed: its bits are its own.
        """
        params = self._start.params
        given = self.driving(starts[:, 0], lengths) if inputs is None else inputs
        z, impulses = self.run.singles.polynomials(starts, lengths, params, given)
        how = self.run.backend
        while how.softly and np.isnan(z[:, 0, 0]).any():
            failed, stiffer = np.flatnonzero(np.isnan(z[:, 0, 0])), self._stiffer(how)
            own = None if given is None else given[failed]
            z[failed], impulses[failed] = stiffer.polynomials(starts[failed], lengths[failed], params, own)
            how = stiffer.backend
        return z, impulses

    def _stiffer(self, how: Backend) -> SingleSteps:
        """Single steps with further derivatives than these have."""
        found = self._singles.get(how.stiff)
        if found is None:
            found = self._singles[how.stiff] = single_steps(replace(how, stiff=how.stiff + 1))
            found.backend.give(found.solvers, found.alone, self._start.params)
        return found

    def driving(self, t: FloatArray, lengths: FloatArray) -> FloatArray | None:
        """The inputs at the nodes of single steps, (K, r, channels), where there are any."""
        inputs = self._start.inputs
        return None if inputs is None else inputs.nodes(t, lengths, self._points, None)

    def restart(self, i: int, step: int, state: FloatArray) -> None:
        """Trajectory i goes on from another state (q, p) before this step, like a new run."""
        run, start = self.run, self._start
        t, params = float(start.t + step * start.h), np.atleast_2d(start.params)[i]
        run.restart(i, step, t, start.h, state, params)
        if self._energy:
            (E,) = self._energies(np.array([t]), state[None], params[None])
            lane, places = run.lane(i), run.backend.places
            lane[places["lowest"]] = np.fmin(lane[places["lowest"]], E)
            lane[places["highest"]] = np.fmax(lane[places["highest"]], E)

    def _energies(self, t: FloatArray, states: FloatArray, params: FloatArray) -> FloatArray:
        q, p = (np.ascontiguousarray(part) for part in np.split(states, 2, axis=1))
        return self._system.energies(t, q, p, np.ascontiguousarray(params))

    def counts(self) -> dict[str, Any]:
        iterations, continued = self.spent()
        return {
            "newton_iterations": int(iterations.sum()),
            "most_iterations": self.run.tally("most"),
            "floor": float(self.run.real("undone")[0]),
            "continued": int(continued.sum()),
        }

    def failure(self) -> Failure | None:
        failed = self.status()[self.status() != GOING_WELL]
        if not failed.size:
            return None
        residual, reach, iterations = self.run.real("failure").tolist()
        return Failure(int(failed[-1]), residual, int(iterations), reach)

    def finish(self, standing: Any) -> None:
        """The range of the energy."""
        if self._energy:
            for k, name in enumerate(("lowest", "highest")):
                standing.energy[:, k] = self.run.values(name)[:, 0]

    def state(self) -> dict[str, NDArray[Any]]:
        run, size = self.run, self.size
        further = np.tile(np.array([run.tally("most"), run.backend.stiff, run.backend.layout]), (size, 1))
        state = {
            "state": run.get()[:, run.backend.lasting],
            "integers": np.concatenate([run.counts[:size], further], axis=1),
            "floor": np.tile(run.real("undone"), (size, 1)),
        }
        return state if self.D is None else state | {"directions": self.D[None].copy()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        counts, (most, stiff, layout) = state["integers"][:, :-3], state["integers"][0, -3:].tolist()
        while self.run.backend.stiff < stiff:
            self._stiffen()
        run, size = self.run, self.size
        run.backend.require(layout)
        values = np.zeros((size, len(run.backend.lasting)))
        values[:, run.backend.lasting] = state["state"]
        run.put(values)
        run.counts[:size] = counts
        run.set(most=most)
        run.real("undone")[:] = state["floor"][0]
        if self.D is not None:
            self.D[...] = state["directions"][0]
