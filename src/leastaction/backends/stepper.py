"""Trajectories at work: what a run asks of a backend, and the steppers of the native loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.fused.rk4 import rk4_program
from leastaction.backends.layout import CONTINUED, ITERATIONS, RK4, RK4_LANES, STATUS, STEPS
from leastaction.backends.native import loop
from leastaction.backends.points import evaluate, room
from leastaction.backends.records import Memory, aligned
from leastaction.backends.rk4_tangent import STAGES, one_steps
from leastaction.backends.rows import Row
from leastaction.backends.status import GOING_WELL, STOPPED, Failure
from leastaction.backends.trajectories import NEVER, Trajectories, backend
from leastaction.kernel import Native, compile_program
from leastaction.methods import Composition, Galerkin, Method, RungeKutta4
from leastaction.program import Program
from leastaction.step.inputs import Inputs

if TYPE_CHECKING:
    from leastaction.systems.lagrangian import Lagrangian
    from leastaction.systems.sums import Sum

FloatArray = NDArray[np.float64]

RK4_STAGES = np.array([c for c, _ in STAGES])


@dataclass(frozen=True)
class Start:
    """Where a run begins: time, position, momentum, velocity; its step and parameters; what drives it.

    Floats, or mpmath numbers for a run at another precision. Trajectories in lanes have a row each, (B, n).
    """

    t: Any
    q: NDArray[Any]
    p: NDArray[Any]
    v: NDArray[Any]
    h: Any
    params: NDArray[Any]
    inputs: Inputs | None = None


def require_inputs(system: Any, start: Start) -> None:
    """Refuse to step a system without what drives it."""
    if system.inputs and start.inputs is None:
        raise ValueError(
            f"{system.name} is driven by {', '.join(map(repr, system.inputs))}, and no values are given here: "
            "la.integrate and la.ensemble take inputs="
        )


class Stepper(Protocol):
    """Trajectories at work, in step with each other: one, or B in lanes.

    done       steps done by each trajectory that goes on, the same number for all
    INTEGERS   what the integers of its state are, in their order
    """

    INTEGERS: tuple[str, ...]

    @property
    def done(self) -> int: ...

    def advance(self, steps: int, every: int, first: int, rows: NDArray[Any]) -> int:
        """Do at most so many steps; returns how many were done.

        The state after k steps, for every k that `every` divides, goes to rows[:, k // every − first], (B, …, width);
        `every` = 0 stores nothing.
        """
        ...

    def note(self, after: list[int]) -> bool:
        """Keep the states after these steps, which are to be done next; False where no stepper of this kind can."""
        ...

    def noted(self) -> NDArray[Any]:
        """The states (q, p) that were to be kept, (B, …, 2n); NaN where a trajectory has not come there."""
        ...

    def steps(self) -> NDArray[np.int64]:
        """The steps done by each trajectory, (B,)."""
        ...

    def status(self) -> NDArray[np.int8]:
        """The status of each trajectory, (B,): GOING_WELL, or what has ended it."""
        ...

    def at(self) -> NDArray[Any]:
        """The whole states that the trajectories have reached, (q, p) and the derivatives carried, (B, whole_width)."""
        ...

    def spent(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Iterations, and steps solved by continuation, of each trajectory, (B,)."""
        ...

    def counts(self) -> dict[str, Any]:
        """What the solver has to say about the steps so far."""
        ...

    def failure(self) -> Failure | None:
        """Why the trajectory failed that failed last."""
        ...

    def finish(self, standing: Any) -> None:
        """Bring what was computed on the way to where it is kept."""
        ...

    def state(self) -> dict[str, NDArray[Any]]:
        """Copies of everything that the steps to come depend on, with a row for each trajectory."""
        ...

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from such copies, to the last bit as if there had been no pause."""
        ...


class PolynomialStepper(Stepper, Protocol):
    """A stepper whose steps are polynomials."""

    def polynomials(self, starts: NDArray[Any]) -> tuple[NDArray[Any], int]:
        """The increments z, (K, s, n), of single steps from rows (t, q, p), and how many could be solved."""
        ...


class Forgetful:
    """A stepper that keeps no states on its way but those of its rows."""

    def note(self, after: list[int]) -> bool:
        return False

    def noted(self) -> NDArray[Any]:
        raise NotImplementedError("nobody asks for states that `note` has refused to keep")


class Alone(Forgetful):
    """What the stepper of one trajectory tells about the trajectory."""

    done = 0
    failed: Failure | None = None

    def steps(self) -> NDArray[np.int64]:
        return np.array([self.done], np.int64)

    def status(self) -> NDArray[np.int8]:
        return np.array([GOING_WELL if self.failed is None else self.failed.status], np.int8)

    def spent(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        counts = self.counts()
        iterations, continued = (np.array([counts.get(name, 0)]) for name in ("newton_iterations", "continued"))
        return iterations, continued

    def counts(self) -> dict[str, Any]:
        return {}

    def failure(self) -> Failure | None:
        return self.failed

    def finish(self, standing: Any) -> None:
        """Nothing is computed on the way."""

    def count_from(self, step: int) -> None:
        """Before the first step: as if so many had been done, so that time and what varies with h count these, too."""
        self.done = step


def stepper(
    system: Lagrangian | Sum, method: Method, start: Start, row: Row | None = None
) -> GalerkinStepper | ComposedStepper | RK4Stepper:
    """The stepper of a method on one trajectory of a Lagrangian system."""
    if isinstance(method, Composition):
        return ComposedStepper(cast("Lagrangian", system), method, start, row)
    if isinstance(method, Galerkin):
        return GalerkinStepper(system, method, start, row)
    if row is not None and row.varied:
        return RK4Tangent(cast("Lagrangian", system), method, start, row)
    return RK4Stepper(cast("Lagrangian", system), method, start, row)


class GalerkinStepper:
    """A member of the PsNrQu family at work, on one trajectory or on many in lanes.

    energy   fused steps in lanes also compute the range of the energy
    threads  that may share the work of one trajectory
    check    whether an event may lie in a step, asked after every one (`looks`)
    phase    of a composition: where in a whole step these steps begin, and how long they are, in parts of h
    """

    # The integers of its state: what the loops count, the most iterations, and what the state means.
    INTEGERS: tuple[str, ...] = ("status", "steps", "iterations", "continued", "most", "stiff", "layout")
    threads = 1

    def __init__(
        self,
        system: Lagrangian | Sum,
        method: Galerkin,
        start: Start,
        row: Row | None = None,
        lanes: int = 1,
        energy: bool = False,
        check: Program | None = None,
        phase: tuple[float, float] | None = None,
    ) -> None:
        require_inputs(system, start)
        self.row, self._start = row or Row.whole(system.n), start
        q, p = np.atleast_2d(start.q), np.atleast_2d(start.p)
        self.size = len(q)
        self.D = self.row.directions() if self.row.varied else None
        how = backend(system, method, lanes, energy, phase is not None)
        self._energy, self._system = energy, system
        offset, part = phase or (0.0, 1.0)
        self._points = offset + part * method.table.c  # in whole steps
        self._notes = np.zeros(0), np.zeros((self.size, 0, 0))
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

    def advance(self, steps: int, every: int, first: int, rows: FloatArray) -> int:
        begun = self.done
        self.drive(begun, steps)
        self.run.advance(begun + steps, every, first, rows, self.threads)
        done = int(self.run.counts[: self.size, STEPS].max())
        if self.run.counts[0, STATUS] != GOING_WELL and self.run.backend.softly:
            self._stiffen()
            return done - begun + self.advance(steps - (done - begun), every, first, rows)
        return done - begun

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
        how.give(self.run.solvers, int(self.run.solvers.memory.I[self.run.number("alone")]), self._start.params)
        values = old.get()
        old.block(values, "alive")[...] = 1.0
        self.run.put(values)
        self.run.counts[...] = old.counts
        self.run.counts[0, STATUS] = GOING_WELL
        self.run.set(most=old.tally("most"))
        self.run.real("undone")[:] = old.real("undone")
        self.run.note(*self._notes)

    def note(self, after: list[int]) -> bool:
        states = np.full((self.size, len(after), 2 * self.run.backend.room), np.nan)
        self._notes = np.array(after, float), states
        self.run.note(*self._notes)
        return True

    def noted(self) -> FloatArray:
        n, how = self.row.n, self.run.backend
        return self._notes[1] if how.room == n else self._notes[1][..., how.numbers(np.arange(2 * n))]

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
        if len(failed) and self.run.backend.softly:
            self._stiffen()
            return self.polynomials(starts)
        return z, int(failed[0]) if len(failed) else len(z)

    def single_steps(self, starts: FloatArray, lengths: FloatArray) -> FloatArray:
        """The states (q, p) after single steps of these lengths; NaN where one is not solved."""
        z, impulses = self.solved_steps(starts, lengths)
        ends = starts[:, 1:] + np.concatenate([z[:, -1], impulses], axis=1)
        if np.isnan(ends).any() and self.run.backend.softly:
            self._stiffen()
            return self.single_steps(starts, lengths)
        return ends

    def count_from(self, step: int) -> None:
        """Before the first step: as if so many had been done, so that time counts these, too."""
        values = self.run.get()
        self.run.block(values, "t")[...] += step * float(self._start.h)
        self.run.put(values)
        self.run.counts[: self.size, STEPS] = step

    def solved_steps(
        self,
        starts: FloatArray,
        lengths: FloatArray,
        params: FloatArray | None = None,
        who: NDArray[np.intp] | None = None,
        inputs: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """The increments z, (K, s, n), and impulses, (K, n), of single steps, with the run's parameters or others, and
        the inputs of the trajectories `who`, or others; NaN where one is not solved.
        """
        params = self._start.params if params is None else params
        given = self.driving(starts[:, 0], lengths, who) if inputs is None else inputs
        return self.run.polynomials(np.ascontiguousarray(starts), lengths, params, given)

    def driving(self, t: FloatArray, lengths: FloatArray, who: NDArray[np.intp] | None = None) -> FloatArray | None:
        """The inputs at the nodes of single steps, (K, r, channels), where there are any."""
        inputs = self._start.inputs
        return None if inputs is None else inputs.nodes(t, lengths, self._points, who)

    def crossings(
        self, event: Program, which: NDArray[np.int64], starts: FloatArray, lengths: FloatArray, z: FloatArray,
        brackets: FloatArray, params: FloatArray, who: NDArray[np.intp],
    ) -> tuple[FloatArray, FloatArray, FloatArray]:  # fmt: skip
        """Where event functions change their signs in single steps, by `Trajectories.crossings_of`; inputs stay as they
        are in steps that are cut short.
        """
        inputs = self.driving(starts[:, 0], lengths, who)
        return self.run.crossings_of(event, which, starts, lengths, z, brackets, params, inputs)

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


class ComposedStepper(Forgetful):
    """A composition at work, on one trajectory or on many in lanes: a stepper of its method for each factor.

    A trajectory that fails inside a step stands where the step began.
    """

    INTEGERS: tuple[str, ...] = ("status", "steps")

    def __init__(
        self, system: Lagrangian, method: Composition, start: Start, row: Row | None = None, lanes: int = 1
    ) -> None:
        self.row, self._method, self._start = row or Row.whole(system.n), method, start
        parts = method.parts
        offsets = np.concatenate([[0.0], np.cumsum(parts)[:-1]])
        self.phases = [
            GalerkinStepper(system, method.root, start, self.row, lanes, phase=phase)
            for phase in zip(offsets.tolist(), parts.tolist(), strict=True)
        ]
        first = self.phases[0]
        self.size, self.D = first.size, first.D
        for phase in self.phases:
            phase.D = self.D
            if self.D is not None:
                phase.run.D = self.D
        lanes_there = len(first.run.counts)
        self._home = np.zeros((lanes_there, 2 * system.n))
        self._home[: self.size] = np.concatenate([np.atleast_2d(start.q), np.atleast_2d(start.p)], axis=1)
        self._directions = np.zeros(1) if self.D is None else self.D.copy()
        self._loop, self._run = loop("composed.run"), loop("run.run")

    def leave(self, status: NDArray[np.int8]) -> None:
        """Before the first step: which trajectories cannot begin."""
        for phase in self.phases:
            phase.leave(status)

    @property
    def done(self) -> int:
        return int(self.steps()[self.status() == GOING_WELL].max(initial=0))

    def advance(self, steps: int, every: int, first: int, rows: FloatArray) -> int:
        begun, last = self.done, len(self.phases) - 1
        for phase in self.phases:
            phase.drive(begun, steps)
        table = [
            phase.run.addresses(*((every, first, rows) if k == last else (0, 0, rows)))
            for k, phase in enumerate(self.phases)
        ]
        numbers = len(table), begun, steps, self._run.address  # type: ignore[attr-defined]
        self._loop(np.array(table, np.int64), *numbers, self._home, self._directions)
        return int(self.steps().max()) - begun

    def steps(self) -> NDArray[np.int64]:
        return self.phases[-1].steps()

    def status(self) -> NDArray[np.int8]:
        return np.max([phase.status() for phase in self.phases], axis=0)

    def at(self) -> FloatArray:
        found = self._home[: self.size].copy()
        return found if self.D is None else np.concatenate([found, self._directions.reshape(1, -1)], axis=1)

    def spent(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        spent = [phase.spent() for phase in self.phases]
        return sum(one for one, _ in spent), sum(other for _, other in spent)  # type: ignore[return-value]

    def count_from(self, step: int) -> None:
        """Before the first step: as if so many had been done, so that time and what varies with h count these, too."""
        for phase in self.phases:
            values = phase.run.get()
            phase.run.block(values, "t")[...] += step * float(self._start.h)
            phase.run.put(values)
            phase.run.counts[: self.size, STEPS] = step

    def single_steps(self, starts: FloatArray, lengths: FloatArray) -> FloatArray:
        """The states (q, p) after single steps of these lengths; NaN where one is not solved."""
        states, solver = starts.copy(), self.phases[0]
        for part, phase in zip(self._method.parts, self.phases, strict=True):
            given = phase.driving(starts[:, 0], lengths)
            z, impulses = solver.solved_steps(states, part * lengths, inputs=given)
            states[:, 1:] += np.concatenate([z[:, -1], impulses], axis=1)
            states[:, 0] += part * lengths
        return states[:, 1:]

    def counts(self) -> dict[str, Any]:
        found = [phase.counts() for phase in self.phases]
        sums = {name: sum(one[name] for one in found) for name in ("newton_iterations", "continued")}
        return sums | {name: max(one[name] for one in found) for name in ("most_iterations", "floor")}

    def failure(self) -> Failure | None:
        return next((found for phase in self.phases if (found := phase.failure()) is not None), None)

    def finish(self, standing: Any) -> None:
        """Nothing is computed on the way."""

    def state(self) -> dict[str, NDArray[Any]]:
        state: dict[str, NDArray[Any]] = {"integers": np.stack([self.status(), self.steps()], axis=1).astype(np.int64)}
        state["home"] = self._home[: self.size].copy()
        if self.D is not None:
            state["directions"] = self._directions.reshape(self.D.shape)[None].copy()
        for k, phase in enumerate(self.phases):
            state |= {f"{name}_{k}": array for name, array in phase.state().items() if name != "directions"}
        return state

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self._home[: self.size] = state["home"]
        if self.D is not None:
            self._directions[...] = self.D[...] = state["directions"][0]
        for k, phase in enumerate(self.phases):
            own = {name: state[f"{name}_{k}"] for name in ("state", "integers", "floor")}
            phase.restore(own if self.D is None else own | {"directions": self.D[None]})


class RK4Stepper(Alone):
    """The classical Runge–Kutta method at work, on (q, p) or (q, v)."""

    INTEGERS: tuple[str, ...] = ("steps",)

    def __init__(self, system: Lagrangian, method: RungeKutta4, start: Start, row: Row | None = None) -> None:
        require_inputs(system, start)
        self._system, self._method, self._params = system, method, start.params
        self.row = row or Row.whole(system.n)
        n = system.n
        self._kernel, fields = self.fields(system, method, start)
        self._memory = Memory()
        self._place = self._memory.add((RK4, fields))
        self._memory.finish()
        self._memory.array(self._place, "at")[1 + 2 * n : 1 + 2 * n + len(start.params)] = start.params
        self._t, self._h, self._inputs = float(start.t), float(start.h), start.inputs
        self._table: FloatArray = np.zeros(1)
        self.y = np.concatenate([start.q, start.p if method.form == "hamilton" else start.v])

    @staticmethod
    def fields(system: Lagrangian, method: RungeKutta4, start: Start) -> tuple[Native, dict[str, Any]]:
        """The kernel of a point, and the record of one trajectory."""
        n = system.n
        kernel, fields = room(system.node, n)
        return kernel, {
            **fields, "hamilton": method.form == "hamilton", "every": NEVER,
            "first": 0, "steps": 0, "done": 0, "stored": 0, "status": 0, "start": [start.t], "step": [start.h],
            "tableau": STAGES, "rate": 2 * n, "argument": 2 * n, "total": 2 * n, "own": 2 * n, "v": start.v,
            "channels": system.channels, "given": 4 * system.channels, "table": 0, "table_step": 0, "table_node": 0,
        }  # fmt: skip

    def _number(self, name: str) -> int:
        return self._memory.number(self._place, RK4, name)

    def advance(self, steps: int, every: int, first: int, rows: FloatArray) -> int:
        begun = self.done
        states, k = self._states(steps, every)
        if len(k):
            rows[0, k // every - first, : len(self.row.columns)] = states[:, self.row.columns]
        return self.done - begun

    def _states(self, steps: int, every: int) -> tuple[FloatArray, NDArray[np.int64]]:
        """Do steps; the states (q, p) after every so many of them, and after how many each is."""
        I, first = self._memory.I, self.done
        names = ("first", "steps", "every", "done", "stored")
        I[[self._number(name) for name in names]] = first, steps, every or NEVER, 0, 0
        if self._inputs is not None:
            self._table = self._inputs.along(self._t, self._h, first, steps, RK4_STAGES)[0]
            pitches = {"table": self._table.ctypes.data, "table_step": self._table.strides[0] // 8}
            pitches["table_node"] = self._table.strides[1] // 8 if self._table.shape[1] > 1 else 0
            for name, value in pitches.items():
                I[self._number(name)] = value
        k = np.arange(first + 1, first + steps + 1)
        k = k[k % every == 0] if every else k[:0]
        states = np.empty((len(k), len(self.y)))
        loop("rk4.run")(I, self._memory.D, self._place, self.y, states)
        done, stored, status = (int(I[self._number(name)]) for name in ("done", "stored", "status"))
        self.done = first + done
        if status != GOING_WELL:
            self.failed = Failure(status, float("nan"), 0, 0.0)
        return self._momenta(states[:stored], k[:stored]), k[:stored]

    def _momenta(self, states: FloatArray, k: NDArray[np.int64]) -> FloatArray:
        """The states (q, p) after k steps, from the states (q, p) or (q, v) of the method."""
        if self._method.form == "lagrange" and len(states):
            n = self._system.n
            t = self._t + k * self._h
            states[:, n:] = self._system.momentum(states[:, :n], states[:, n:], t, self._params)
        return states

    def at(self) -> FloatArray:
        return self._momenta(self.y[None].copy(), np.array([self.done]))

    def state(self) -> dict[str, NDArray[Any]]:
        velocity = self._memory.array(self._place, "v").copy()
        return {"y": self.y[None].copy(), "velocity": velocity[None], "integers": np.array([[self.done]])}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self.y[:], self.done = state["y"][0], int(state["integers"][0, 0])
        self._memory.array(self._place, "v")[:] = state["velocity"][0]


class RK4Lanes(Forgetful):
    """The classical Runge–Kutta method at work on many trajectories, side by side."""

    INTEGERS: tuple[str, ...] = ("status", "steps")

    def __init__(
        self, system: Lagrangian, method: RungeKutta4, start: Start, row: Row, lanes: int, status: NDArray[np.int8]
    ) -> None:
        program = rk4_program(system, method)
        assert program is not None
        self._system, self._method, self._start, self.row = system, method, start, row
        self.size, n, P, L = len(start.q), system.n, start.params.shape[1], lanes
        self._kernel = compile_program(program, L, bounded=True)
        groups = -(-self.size // L)
        self._memory = Memory()
        self._one = RK4Stepper.fields(
            system, method, Start(start.t, start.q[0], start.p[0], np.zeros(n), start.h, start.params[0])
        )
        self._before = 2 + P + 4 * system.channels  # numbers of a trajectory's state in front of y
        self._table: FloatArray = np.zeros(1)
        alone = self._memory.add((RK4, self._one[1]))
        self._place = self._memory.add(
            (RK4_LANES, {
                "kernel": self._kernel.address, "alone": alone, "n": n, "param_count": P, "lanes": L, "groups": groups,
                "channels": system.channels, "trajectories": self.size, "table": 0, "table_trajectory": 0,
                "table_step": 0, "table_node": 0, "every": NEVER, "skipped": 0, "rows": 0, "first": 0, "steps": 0,
                "start": [start.t], "step": [start.h],
            })
        )  # fmt: skip
        self._memory.finish()
        self._states = aligned(np.zeros((groups, self._before + 2 * n, L)))
        self._Y, self._work = aligned(np.zeros((2 * n, L))), aligned(np.zeros(self._kernel.work))
        self._counts = np.zeros((groups * L, 2), np.int64)
        self._counts[self.size :, 0] = STOPPED  # lanes beyond the last trajectory never begin
        self._counts[: self.size, 0] = status
        y = np.concatenate([start.q, start.p if method.form == "hamilton" else start.v], axis=1)
        driven = np.zeros((self.size, 4 * system.channels))
        self._put(np.concatenate([np.full((self.size, 2), [start.t, start.h]), start.params, driven, y], axis=1))

    def _put(self, values: FloatArray) -> None:
        groups, numbers, L = self._states.shape
        padded = np.zeros((groups * L, numbers))
        padded[: self.size], padded[self.size :] = values, values[-1]
        self._states[...] = padded.reshape(groups, L, numbers).transpose(0, 2, 1)

    def _get(self) -> FloatArray:
        groups, numbers, L = self._states.shape
        return self._states.transpose(0, 2, 1).reshape(groups * L, numbers)[: self.size]

    @property
    def done(self) -> int:
        return int(self.steps()[self.status() == GOING_WELL].max(initial=0))

    def advance(self, steps: int, every: int, first: int, rows: FloatArray) -> int:
        begun, n = self.done, self._system.n
        k = np.arange(begun + 1, begun + steps + 1)
        k = k[k % every == 0] if every else k[:0]
        states = np.full((self.size, len(k), 2 * n), np.nan)
        I, place = self._memory.I, self._place
        numbers = {"first": begun, "steps": steps, "every": every or NEVER, "rows": len(k)}
        numbers["skipped"] = k[0] // every if len(k) else 0
        start = self._start
        if start.inputs is not None:
            table = self._table = start.inputs.along(start.t, start.h, begun, steps, RK4_STAGES)
            names = ("table_trajectory", "table_step", "table_node")
            lengths = zip(names, table.shape, table.strides, strict=False)
            numbers |= {name: 0 if length == 1 else pitch // 8 for name, length, pitch in lengths}
            numbers["table"] = table.ctypes.data
        for name, value in numbers.items():
            I[self._memory.number(place, RK4_LANES, name)] = value
        arrays = self._states, self._Y, self._counts, states, self._work
        loop("rk4.lanes")(I, self._memory.D, place, *arrays)
        if len(k):
            there = self.steps()[:, None] >= k
            i, j = np.nonzero(there)
            found = self._momenta(states[there], k[j], self._start.params[i])
            rows[i, k[j] // every - first] = found[:, self.row.columns]
        return int(self.steps().max()) - begun

    def _momenta(self, states: FloatArray, k: NDArray[np.int64], params: FloatArray) -> FloatArray:
        """The states (q, p) after k steps, from the states (q, p) or (q, v) of the method."""
        n = self._system.n
        if self._method.form == "lagrange" and len(states):
            t = np.asarray(self._start.t + k * self._start.h, float)
            at = np.concatenate([t[:, None], states, params], axis=1)
            states = np.concatenate([states[:, :n], evaluate(self._system.gradient.select("Lv"), at)], axis=1)
        return states

    def steps(self) -> NDArray[np.int64]:
        return self._counts[: self.size, 1].copy()

    def status(self) -> NDArray[np.int8]:
        return self._counts[: self.size, 0].astype(np.int8)

    def at(self) -> FloatArray:
        return self._momenta(self._get()[:, -2 * self._system.n :].copy(), self.steps(), self._start.params)

    def spent(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.zeros(self.size, np.int64), np.zeros(self.size, np.int64)

    def counts(self) -> dict[str, Any]:
        return {}

    def failure(self) -> Failure | None:
        failed = self.status()[self.status() != GOING_WELL]
        return Failure(int(failed[-1]), float("nan"), 0, 0.0) if failed.size else None

    def finish(self, standing: Any) -> None:
        """Nothing is computed on the way."""

    def state(self) -> dict[str, NDArray[Any]]:
        return {"y": self._get()[:, -2 * self._system.n :].copy(), "integers": self._counts[: self.size].copy()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        values = self._get().copy()
        values[:, -2 * self._system.n :] = state["y"]
        self._put(values)
        self._counts[: self.size] = state["integers"]


class RK4Tangent(RK4Stepper):
    """The classical Runge–Kutta method at work, and its derivative, through the derivatives of the stages."""

    def __init__(self, system: Lagrangian, method: RungeKutta4, start: Start, row: Row) -> None:
        super().__init__(system, method, start, row)
        self._state = np.concatenate([start.q, start.p])
        self.D = row.directions()

    def advance(self, steps: int, every: int, first: int, rows: FloatArray) -> int:
        begun, n, kept = self.done, self._system.n, len(self.row.columns)
        after, _ = self._states(steps, 1)
        states = np.concatenate([self._state[None], after])
        k = np.arange(begun, self.done)
        driven = None
        if self._inputs is not None:
            table = self._inputs.along(self._t, self._h, begun, len(k), RK4_STAGES)[0]
            driven = np.broadcast_to(table, (len(k), len(RK4_STAGES), table.shape[2]))
        state, extra = one_steps(
            self._system, self._method, np.asarray(self._t + k * self._h, float), states[:-1], self._h, self._params,
            k if self.row.varied > 2 * n else None, driven,
        )  # fmt: skip
        for i, number in enumerate(k + 1):
            self.D = self.D @ state[i].T
            self.D[2 * n :] += extra[i].T
            if every and number % every == 0:
                row = rows[0, number // every - first]
                row[:kept], row[kept:] = states[i + 1, self.row.columns], self.D.ravel()
        self._state = states[-1]
        return self.done - begun

    def at(self) -> FloatArray:
        return np.concatenate([super().at(), self.D.reshape(1, -1)], axis=1)

    def state(self) -> dict[str, NDArray[Any]]:
        return super().state() | {"directions": self.D[None].copy(), "at": self._state[None].copy()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        super().restore(state)
        self.D[...], self._state = state["directions"][0], state["at"][0].copy()
