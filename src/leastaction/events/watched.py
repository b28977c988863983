"""A stepper that is watched: it steps as before, and records the events on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.engine.form import Watching
from leastaction.engine.stepper import FormStepper
from leastaction.events.check import check_program
from leastaction.events.curve import AROUND, through_states
from leastaction.events.examine import MOST_NUMBERS, signs_of
from leastaction.events.isolate import surveyed
from leastaction.events.kinds import Watch
from leastaction.events.motion import DetachedMotion, GalerkinMotion, Make, Survey
from leastaction.events.saltation import Direction
from leastaction.events.watcher import AT_END, Ended, Watcher, directions
from leastaction.methods import Galerkin
from leastaction.numbers.rounding import Digits, Reals
from leastaction.step.status import GOING_WELL, Failure
from leastaction.step.stepper import Alone, Start
from leastaction.step.stored_row import Row
from leastaction.systems.lagrangian import Lagrangian
from leastaction.systems.protocol import System

FloatArray = NDArray[np.float64]

LAST_STATES = AROUND - 1  # states before the next step: the curve goes through them and the end of the step
SUMS = {"newton_iterations", "continued"}  # counts of steppers that are added; of other counts the largest is told


class WatchedForms:
    """A member of the family on a Lagrangian system, in float64, and its events: one trajectory, or many in lanes.

    The native code asks after every step whether an event may lie in it (`check`), and goes on if none may. Steps in
    doubt are looked at together, or at once if a run may have to end or be thrown back: then a group of lanes stops
    after the step, and a trajectory that is thrown back goes on from the end of that step, beside the others.
    """

    def __init__(
        self, system: Lagrangian, method: Galerkin, start: Start, row: Row, watch: Watch, lanes: int = 1,
        energy: bool = False,
    ) -> None:  # fmt: skip
        watching = Watching(check_program(watch, system, method))
        self._solver = FormStepper(system, method, start, row, lanes, watching, energy)
        self._motion = GalerkinMotion(system, method, start, watch)
        self.watcher = Watcher(watch, self._motion, system.n, start.h, self._directions if row.varied else None)
        self._start, self._n, self._s, self.row = start, system.n, method.s, row
        self._ended: dict[int, Ended] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._solver, name)

    def _drive(self, end: int) -> None:
        """Give the solver the inputs of the steps to this one."""
        going = self._solver.steps()[self._solver.status() == GOING_WELL]
        first = int(going.min(initial=end))
        self._solver.drive(first, end - first)

    def _looked(self, who: NDArray[np.intp], looks: FloatArray) -> dict[int, tuple[int, FloatArray | Ended]]:
        """The trajectories stopped or thrown back in these steps: rows (step, t, h, q, p, z, impulse, last)."""
        n, s, count, motion = self._n, self._s, len(looks), self._motion
        steps, starts = looks[:, 0].astype(np.int64), np.concatenate([looks[:, 1:2], looks[:, 3 : 3 + 2 * n]], axis=1)
        z = looks[:, 3 + 2 * n : 3 + 2 * n + s * n].reshape(count, s, n)
        impulse, last = np.split(looks[:, 3 + (2 + s) * n : 3 + (4 + s) * n], [n], axis=1)
        survey = motion.survey_solved(who, starts, np.full(count, self.watcher.h), z, impulse, last)
        return self.watcher.look(who, steps, starts, survey)

    def at(self) -> FloatArray:
        found: FloatArray = self._solver.at()
        for i, ended in self._ended.items():
            if ended.state is not None:
                D = [] if ended.tangent is None else [ended.tangent.ravel()]
                given = np.concatenate([ended.state, *D])
                found[i, : len(given)] = given
        return found

    def failure(self) -> Failure | None:
        return next((ended.failure for ended in self._ended.values()), None) or self._solver.failure()

    def finish(self, standing: Any) -> None:
        self._solver.finish(standing)
        self.watcher.finish(standing)

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self._solver.restore(state)
        self.watcher.restore(state)
        for i, log in enumerate(self.watcher.logs):
            if log.stopped is not None:
                self._ended[i] = Ended(AT_END, log.stopped[1:])

    def advance(self, steps: int, every: int, first: int, rows: FloatArray) -> int:
        solver = self._solver
        begun, end = solver.done, solver.done + steps
        self._drive(end)
        while solver.going(end):
            solver.advance_to(end, every, first, rows)
            self._look(every, first, rows)
        return int(solver.furthest - begun)

    def _look(self, every: int, first: int, rows: FloatArray) -> None:
        """Look at the steps in doubt; a trajectory whose step was stopped or thrown back is over, or restarts."""
        solver, thrown = self._solver, {}
        who, looks = solver.looks()
        if not len(looks):
            return
        for i, (k, outcome) in self._looked(who, looks).items():
            if isinstance(outcome, Ended):
                begin = looks[k, 3 : 3 + 2 * self._n]  # where a step begins that does not count
                self._ended[i] = outcome if outcome.state is not None else replace(outcome, state=begin)
                solver.end(i, outcome.failure.status)
            else:
                thrown[i] = int(looks[k, 0]) + 1, outcome
        for i, (step, state) in thrown.items():
            solver.restart(i, step, state)
            if self.row.varied:
                assert self.watcher.tangent is not None
                solver.D = self.watcher.tangent
            if every and step % every == 0:
                rows[i, step // every - first] = self.row.kept(solver.at()[i])

    def _directions(self, step: int) -> Direction:
        """The derivatives at the start of this step, the last one that was done."""
        return directions(self._solver.earlier, step, self._motion.params.shape[1])

    def state(self) -> dict[str, NDArray[Any]]:
        return self._solver.state() | self.watcher.state()


class WatchedStates(Alone):
    """Any method on any system at any precision, and its events: the states after all steps are looked at.

    A step is looked at closely if the event function's ball over the curve through neighbouring states contains zero.
    Where the run is thrown back, a new stepper begins.
    """

    INTEGERS: tuple[str, ...] = ("steps", "origin", "last_count")

    def __init__(
        self, make: Make, system: System, mechanics: Any, reals: Reals, start: Start, row: Row, watch: Watch
    ) -> None:
        self._make, self._reals, self._start, self._n, self.row = make, reals, start, len(start.q), row
        with reals.working():
            self._motion = DetachedMotion(make, system, mechanics, reals, start, watch)
            self.watcher = Watcher(watch, self._motion, self._n, start.h, self._directions if row.varied else None)
            self._inner = make(start.t, start.q, start.p, start.h, varied=row.varied)
        # `_states`: the last states, at most LAST_STATES, since the run began or was thrown back, and what would have
        # come before; each row ends with its derivatives.
        self._entry = reals.array(row.directions())  # the derivatives with which the stepper at work began …
        self._states = self._with_past(0, np.concatenate([start.q, start.p, self._entry.ravel()]))
        self._piece_of = self._states  # the same, with the states of the piece that is looked at
        self._origin = 0  # … and the number of steps after which it began
        self._ended: Ended | None = None
        self._before: dict[str, Any] = {}  # the counts of earlier steppers of the run
        urgent = any(item.urgent for item in watch.items)
        together = (1 if urgent else 8) if isinstance(reals, Digits) else (16 if urgent else 256)
        self._together = max(1, min(together, MOST_NUMBERS // (row.whole_width + len(start.params))))

    def _with_past(self, step: int, state: NDArray[Any]) -> NDArray[Any]:
        """A state before this step, behind those from which the motion would have come to it: three steps backwards
        tell as much as the many steps of other lengths that a first step without states before it would need. The state
        alone, where steps of any length are dear, or where the past is not known.
        """
        start, states = self._start, [state]
        if self.row.varied or start.inputs is not None or not self._motion.any_length:
            return state[None]
        with self._reals.working():
            for k in range(step, step - LAST_STATES + 1, -1):
                begin = np.concatenate([[start.t + k * start.h], states[0]])
                states.insert(0, self._motion.steps(np.zeros(1, np.intp), begin[None], np.array([-start.h]))[0])
        found = np.array(states)
        return state[None] if (found != found).any() else found

    def advance(self, steps: int, every: int, first: int, rows: NDArray[Any]) -> int:
        begun = self.done
        with self._reals.working():
            while self.done < begun + steps and self.failed is None:
                now = self.done
                states = self._piece(min(self._together, begun + steps - now))
                k = np.arange(now + 1, self.done + 1)
                kept = k[k % every == 0] if every else k[:0]
                if len(kept):
                    rows[0, kept // every - first] = self.row.kept(states[kept - now - 1])
        return self.done - begun

    def _piece(self, steps: int) -> NDArray[Any]:
        """Do at most this number of steps; return the states after them."""
        inner, begun = self._inner, self.done
        buffer = np.empty((steps, self.row.whole_width), self._motion.dtype)
        done = inner.advance(steps, 1, inner.done + 1, buffer[None])
        if self._origin and self.row.varied:
            buffer[:done, 2 * self._n :] = self._since_entry(buffer[:done, 2 * self._n :])
        self._piece_of = states = np.concatenate([self._states, buffer[:done]])
        happened = self._look(states[:, : 2 * self._n], done) if done else None
        step, outcome = happened or (begun + done, None)
        if outcome is None or isinstance(outcome, Ended):
            done, self._ended = step - begun, outcome
            self.failed = inner.failure() if outcome is None else outcome.failure
            self._states = states[: len(self._states) + done][-LAST_STATES:]
        else:
            done = step + 1 - begun
            tangent = self.watcher.tangent if self.row.varied else self._entry
            assert tangent is not None
            buffer[done - 1] = np.concatenate([outcome, tangent.ravel()])
            self._throw(step + 1, buffer[done - 1])
            self._states = self._with_past(step + 1, buffer[done - 1])
        self.done = begun + done
        return buffer[:done]

    def _since_entry(self, own: NDArray[Any]) -> NDArray[Any]:
        """The derivatives of the run, from the derivatives of the present stepper: the chain rule, row by row."""
        D = own.reshape(len(own), -1, 2 * self._n)
        whole = np.array([self._entry @ one[: 2 * self._n] for one in D])
        whole[:, 2 * self._n :] += D[:, 2 * self._n :]
        return whole.reshape(own.shape)

    def _directions(self, step: int) -> Direction:
        """The derivatives at the start of a step of the piece that is looked at."""
        D = self._piece_of[len(self._states) - 1 + step - self.done, 2 * self._n :].reshape(-1, 2 * self._n)
        return directions(D, step, self._motion.params.shape[1])

    def _look(self, states: NDArray[Any], done: int) -> tuple[int, NDArray[Any] | Ended] | None:
        """Look at the last `done` steps between these states; return the step that was stopped or thrown back."""
        watcher, h = self.watcher, self._start.h
        step = np.arange(self.done, self.done + done)
        begin = len(states) - 1 - done
        t = self._start.t + np.arange(self.done - begin, self.done + done + 1) * h
        motion = self._motion
        values = motion.values(np.zeros(done + 1, np.intp), t[begin:], states[begin:])
        sides = signs_of(values)
        near, turning = np.ones((2, *values[1:].shape), bool)
        young = max(0, LAST_STATES - 1 - begin)  # steps with too few states before them for a curve
        if young < done:
            seen = states[:, motion.columns].astype(float)
            curve = through_states(t.astype(float), float(h), seen, begin + young)
            params = np.broadcast_to(motion.params, (done - young, motion.params.shape[1]))
            near[young:], turning[young:] = surveyed(motion.watch, curve, params)
        near |= ~(sides[:-1] * sides[1:] > 0)  # in doubt whatever the curve through the states tells
        for k, item in enumerate(watcher.watch.items):
            if item.monotone:
                near[:, k], turning[:, k] = ~(sides[:-1, k] * sides[1:, k] > 0), False
        rows = np.flatnonzero(near.any(axis=1))
        if not len(rows):
            return None
        starts = np.concatenate([t[begin + rows, None], states[begin + rows]], axis=1)
        ends = states[begin + rows + 1]
        survey = Survey(values[rows], values[rows + 1], near[rows], turning[rows], ends)
        found = watcher.look(np.zeros(len(rows), np.intp), step[rows], starts, survey).get(0)
        return None if found is None else (int(step[rows[found[0]]]), found[1])

    def _throw(self, step: int, state: NDArray[Any]) -> None:
        """Go on, before this step, from another state with its derivatives."""
        self._before = self.counts()
        n, start, varied = self._n, self._start, self.row.varied
        self._inner = self._make(start.t, state[:n], state[n : 2 * n], start.h, number=step, varied=varied)
        self._states, self._origin = state[None], step
        self._entry = state[2 * n :].reshape(varied, 2 * n)

    def at(self) -> NDArray[Any]:
        if self._ended is None or self._ended.state is None:
            return self._states[-1:]
        tangent = self._entry if self._ended.tangent is None else self._ended.tangent
        return np.concatenate([self._ended.state, tangent.ravel()])[None]

    def finish(self, standing: Any) -> None:
        self.watcher.finish(standing)

    def state(self) -> dict[str, NDArray[Any]]:
        inner = {f"inner_{name}": array for name, array in self._inner.state().items()}
        count = len(self._states)
        last = np.concatenate([self._states, np.repeat(self._states[:1], LAST_STATES - count, axis=0)])
        own = {"last_states": last[None], "integers": np.array([[self.done, self._origin, count]])}
        if self.row.varied:
            own["entry"] = np.asarray(self._entry, self._motion.dtype)[None].copy()
        return inner | own | self.watcher.state()

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        with self._reals.working():
            self.done, step, count = state["integers"][0].tolist()
            last = state["last_states"][0, :count].copy()
            self._throw(step, last[-1])
            self._states, self._before = last, {}
            if self.row.varied:
                self._entry = state["entry"][0].copy()
            self._inner.restore({name[6:]: array for name, array in state.items() if name.startswith("inner_")})
            self.watcher.restore(state)

    def counts(self) -> dict[str, Any]:
        now = self._inner.counts()
        added = {name: self._before.get(name, 0) + now[name] for name in SUMS & now.keys()}
        return now | {name: max(value, self._before.get(name, value)) for name, value in now.items()} | added
