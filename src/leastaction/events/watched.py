"""A stepper that is watched: it steps as before, and knows what happened on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import gt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends import points
from leastaction.backends.rows import Row
from leastaction.backends.status import NOT_CONVERGED, RESTING, STOPPED, Failure
from leastaction.backends.stepper import Alone, GalerkinStepper, Start
from leastaction.events.check import check_program
from leastaction.events.curve import Curve, neighbours_curve
from leastaction.events.examine import Examined, Examiner, Occurrence
from leastaction.events.isolate import surveyed
from leastaction.events.kinds import Watch
from leastaction.events.motion import DetachedMotion, GalerkinMotion, Make, Motion, Survey
from leastaction.events.saltation import Direction, Saltation
from leastaction.lagrangian import Lagrangian
from leastaction.methods import Galerkin
from leastaction.numbers.rounding import Digits, Reals

FloatArray = NDArray[np.float64]

SHORTEST = 1e-9  # flights between impacts on one wall, in steps: shorter ones have no end
MOST_IMPACTS = 10_000  # in one step
GROWING = ("event_rows", "last_states")  # of the state: how many rows they have is not known beforehand
SUMS = {"newton_iterations", "continued"}  # of what steppers count; of the rest the largest is told


@dataclass(frozen=True, eq=False)
class Happened:
    """The events of one name.

    count     how many there were, also beyond those kept
    t, q, p   time and state of those kept, (m,), (m, n), (m, n); of an impact the state before it
    p_after   the momentum after an impact, (m, n)
    """

    count: int
    t: NDArray[Any]
    q: NDArray[Any]
    p: NDArray[Any]
    p_after: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.t)

    @classmethod
    def of(cls, count: int, table: NDArray[Any], n: int) -> Happened:
        """From rows (t, q, p), or (t, q, p, p after)."""
        after = table[:, 1 + 2 * n :] if table.shape[1] > 1 + 2 * n else None
        return cls(count, table[:, 0], table[:, 1 : 1 + n], table[:, 1 + n : 1 + 2 * n], after)

    def in_time(self) -> Happened:
        """The same events of a paced run, whose last momentum is the time."""
        after = None if self.p_after is None else self.p_after[:, :-1]
        return Happened(self.count, self.p[:, -1], self.q[:, :-1], self.p[:, :-1], after)

    def table(self) -> NDArray[Any]:
        """Rows (t, q, p), or (t, q, p, p after)."""
        after = [] if self.p_after is None else [self.p_after]
        return np.concatenate([self.t[:, None], self.q, self.p, *after], axis=1)


class Log:
    """What has happened so far: for each event the count and the rows that are kept, (t, q, p), of an impact with p
    after it.
    """

    def __init__(self, watch: Watch, n: int, dtype: Any) -> None:
        self.watch, self.n, self.dtype = watch, n, dtype
        self.counts = [0] * len(watch)
        self.rows: list[list[NDArray[Any]]] = [[] for _ in watch.items]

    def add(self, event: int, t: Any, *state: NDArray[Any]) -> bool:
        """Note an event; whether it ends the run."""
        item = self.watch.items[event]
        self.counts[event] += 1
        if item.most is None or self.counts[event] <= item.most:
            self.rows[event].append(np.concatenate([[t], *state]))
        return item.ends(self.counts[event])

    def state(self) -> dict[str, NDArray[Any]]:
        """Counts, how many rows are kept of each event, and these rows one after the other, filled up with zeros."""
        wide = [np.concatenate([row, 0 * row[1 : 2 + 3 * self.n - len(row)]]) for rows in self.rows for row in rows]
        kept = [len(rows) for rows in self.rows]
        table = np.array(wide, self.dtype).reshape(len(wide), 1 + 3 * self.n)
        return {"event_counts": np.array([self.counts, kept], np.int64), "event_rows": table}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        counts, kept = state["event_counts"].tolist()
        if min(kept) < 0 or sum(kept) != len(state["event_rows"]) or any(map(gt, kept, counts)):
            raise ValueError(f"of {counts} events {kept} cannot be kept in {len(state['event_rows'])} rows")
        self.counts, ends = counts, np.cumsum([0, *kept])
        for k, item in enumerate(self.watch.items):
            width = 1 + (2 if item.restitution is None else 3) * self.n
            self.rows[k] = list(state["event_rows"][ends[k] : ends[k + 1], :width])

    @property
    def stopped(self) -> Any:
        """When an event has ended the run; None if none has."""
        for item, count, rows in zip(self.watch.items, self.counts, self.rows, strict=True):
            if item.ends(count):
                return rows[-1][0]
        return None

    def happened(self) -> dict[str, Happened]:
        """By name."""
        found = {}
        for item, count, rows in zip(self.watch.items, self.counts, self.rows, strict=True):
            width = 1 + (2 if item.restitution is None else 3) * self.n
            found[item.name] = Happened.of(count, np.array(rows, self.dtype).reshape(len(rows), width), self.n)
        return found


@dataclass(frozen=True, eq=False)
class Ended:
    """A step that did not go to its end: why; the state at which a run stopped, as asked, and its derivative."""

    failure: Failure
    state: NDArray[Any] | None = None
    tangent: FloatArray | None = None


class Watcher:
    """Books the events of a run: looks closely at steps, notes what happened, and takes a step through its impacts."""

    def __init__(self, watch: Watch, motion: Motion, n: int, h: Any) -> None:
        self.watch, self.motion, self.n, self.h = watch, motion, n, h
        self.log = Log(watch, n, motion.dtype)
        self._examine = Examiner(watch, motion)
        self._signs: NDArray[np.int8] | None = None  # of the event functions at the end of the last step in doubt
        self._after = -1  # and that step's number
        self.saltation: Saltation | None = None  # where derivatives are carried, how they pass an impact …
        self.along: Direction | None = None  # … and those at the start of the step that is looked at
        self.tangent: FloatArray | None = None  # and at its end, where it was thrown back

    def begin(self, start: Start) -> None:
        """Refuse a run that begins behind a wall, by more than rounding."""
        state = np.concatenate([start.q, start.p]).astype(float)
        radius = 1e-14 * np.abs(np.concatenate([[float(start.t)], state]))
        row = np.concatenate([[float(start.t)], state, self.motion.params, radius])
        program = self.watch.bounds
        found = points.evaluate(program, row[None])[0]
        for item, g, spread in zip(self.watch.items, *np.split(found, 2), strict=True):
            if item.restitution is not None and g < -spread:
                raise ValueError(
                    f"the motion begins behind the wall of {item.name!r}, at g = {g:.3g}: an impact keeps it where "
                    "g ≥ 0. Begin on that side, or give −g"
                )

    def state(self) -> dict[str, NDArray[Any]]:
        """What the events to come depend on, and those that were."""
        signs = np.zeros(len(self.watch), np.int8) if self._signs is None else self._signs
        return {**self.log.state(), "event_signs": np.append(signs.astype(np.int64), self._after)}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self.log.restore(state)
        *signs, self._after = state["event_signs"].tolist()
        self._signs = None if self._after < 0 else np.array(signs, np.int8)

    def look(
        self, steps: NDArray[np.int64], starts: NDArray[Any], survey: Survey
    ) -> tuple[int, NDArray[Any] | Ended] | None:
        """Note the events of steps from rows (t, q, p), up to the first that ends the run or throws it back.

        That step's place among those given, with the state at its end if the run goes on; None if there is none.
        """
        follows = np.diff(steps, prepend=self._after) == 1
        found = self._examine(survey, starts, self.h, follows, self._signs)
        self._signs, self._after = found.end[-1], int(steps[-1])
        row, ended = self._noted(found, starts, self.h)
        if ended is None:
            return None
        if isinstance(ended, Occurrence):
            self._after = int(steps[row])
            return row, self._thrown(found, ended, starts[row])
        return row, ended

    def _noted(self, found: Examined, starts: NDArray[Any], length: Any) -> tuple[int, Occurrence | Ended | None]:
        """Note what was found, up to an impact, which is returned, or to the end of the run."""
        for one in found.occurrences:
            if found.unsolved is not None and one.row >= found.unsolved:
                break
            item = self.watch.items[one.event]
            if item.direction not in (0, one.direction):
                continue
            if item.restitution is not None:
                return one.row, one
            t = starts[one.row, 0] + one.tau * length
            if self.log.add(one.event, t, one.state):
                tangent = self._stepped(starts[one.row], one.tau * length, 0.0)
                return one.row, Ended(Failure(STOPPED, 0.0, 0, 1.0), one.state, tangent)
        if found.unsolved is not None:
            return found.unsolved, Ended(Failure(NOT_CONVERGED, float("nan"), 0, 0.0))
        return 0, None

    def _stepped(self, start: NDArray[Any], length: Any, ends: Any) -> FloatArray | None:
        """The derivatives a step further on, whose end changes by `ends` along the directions."""
        if self.saltation is None or self.along is None:
            return None
        return self.saltation.stepped(start, length, self.along, ends - self.along.time)

    def _thrown(self, found: Examined, impact: Occurrence, start: NDArray[Any]) -> NDArray[Any] | Ended:
        """The rest of a step after an impact in it, through all that follow; the state at its end."""
        n, begin, passed = self.n, start[0], 0 * self.h
        length, starts = self.h, start[None]
        ends = 0.0 if self.along is None else self.along.time + self.along.longer
        for _ in range(MOST_IMPACTS):
            flight = impact.tau * length
            passed = passed + flight
            t = begin + passed
            p = self.motion.after_impact(impact.event, t, impact.state)
            self.log.add(impact.event, t, impact.state, p)
            if self.saltation is not None and self.along is not None:
                at = np.concatenate([[t], impact.state])
                self.along = self.saltation.thrown(starts[0], flight, impact.event, at, self.along)
            state = np.concatenate([impact.state[:n], p])
            signs = found.signs(impact)
            signs[impact.event] = 0
            length = self.h - passed
            if abs(length) <= self.motion.eps * abs(self.h):
                self._signs = signs
                self.tangent = None if self.along is None else self.along.state
                return state
            starts = np.concatenate([[t], state])[None]
            survey = self.motion.survey(starts, length)
            if (survey.ends != survey.ends).any():
                return Ended(Failure(NOT_CONVERGED, float("nan"), 0, 0.0))
            found = self._examine(survey, starts, length, np.array([True]), signs)
            if found.leaving[0, impact.event] < 0:
                return Ended(Failure(RESTING, 0.0, 0, 0.0))
            _, ended = self._noted(found, starts, length)
            if ended is None:
                self._signs = found.end[0]
                self.tangent = self._stepped(starts[0], length, ends)
                return survey.ends[0]
            if isinstance(ended, Ended):
                return ended
            if ended.event == impact.event and abs(ended.tau * length) < SHORTEST * abs(self.h):
                return Ended(Failure(RESTING, 0.0, 0, 0.0))
            impact = ended
        return Ended(Failure(RESTING, 0.0, 0, 0.0))


class WatchedGalerkin(Alone):
    """A member of the family on a Lagrangian system, in float64, and its events.

    The native loop asks after every step whether an event may lie in it (`check`), and goes on where none may. Steps
    in doubt are looked at together, or at once where the run may have to end or be thrown back: then the loop halts
    with the step solved but not done, so that it goes on, where nothing happened, as if it had not been watched.
    """

    INTEGERS: tuple[str, ...] = GalerkinStepper.INTEGERS

    def __init__(self, system: Lagrangian, method: Galerkin, start: Start, row: Row, watch: Watch) -> None:
        self._solver = GalerkinStepper(system, method, start, row, check=check_program(watch, system, method))
        self._motion = GalerkinMotion(system, method, start, watch)
        self.watcher = Watcher(watch, self._motion, system.n, start.h)
        self.watcher.begin(start)
        self._start, self._n, self._s, self.row = start, system.n, method.s, row
        self._ended: Ended | None = None
        if row.varied:
            self.watcher.saltation = Saltation(system, method, watch, start.params)

    def advance(self, steps: int, every: int, first: int, rows: FloatArray) -> int:
        begun, solver = self.done, self._solver
        while self.done < begun + steps and self.failed is None:
            self.done += solver.advance(begun + steps - self.done, every, first, rows)
            happened, self.failed = self._look(), solver.failure()
            if isinstance(happened, Ended):
                self._ended, self.failed = happened, happened.failure
            elif happened is not None:
                self.done += 1
                t = float(self._start.t + self.done * self._start.h)
                solver.restart(self.done, happened)
                solver.run.last[:] = self._motion.lead(np.concatenate([[t], happened]), self.watcher.h)
                if solver.D is not None:
                    assert self.watcher.tangent is not None
                    solver.D[:] = self.watcher.tangent
                if every and self.done % every == 0:
                    rows[0, self.done // every - first] = solver.at()[0]
        return self.done - begun

    def _directions(self) -> Direction | None:
        """The derivatives at the start of the next step: rows by the state and, if wanted, by the parameters and h."""
        D, n = self._solver.D, self._n
        if D is None:
            return None
        params = np.zeros((len(D), len(self._motion.params)))
        time, longer = np.zeros(len(D)), np.zeros(len(D))
        if len(D) > 2 * n:
            params[2 * n : -1], time[-1], longer[-1] = np.eye(len(D) - 2 * n - 1), self.done, 1.0
        return Direction(D.copy(), time, params, longer)

    def _look(self) -> NDArray[Any] | Ended | None:
        """Look at the steps in doubt; where the one at which the run halts led, if not to its own end."""
        looks = self._solver.looks()
        if not len(looks):
            return None
        n, s, count = self._n, self._s, len(looks)
        starts = np.concatenate([looks[:, 1:2], looks[:, 3 : 3 + 2 * n]], axis=1)
        z = looks[:, 3 + 2 * n : 3 + 2 * n + s * n].reshape(count, s, n)
        impulse = looks[:, 3 + (2 + s) * n : 3 + (3 + s) * n]
        last = looks[:, 3 + (3 + s) * n : 3 + (4 + s) * n]
        survey = self._motion.survey_solved(starts, self.watcher.h, z, impulse, last)
        self.watcher.along = self._directions()
        found = self.watcher.look(looks[:, 0].astype(np.int64), starts, survey)
        return None if found is None else found[1]

    def at(self) -> FloatArray:
        if self._ended is None or self._ended.state is None:
            return self._solver.at()
        found, D = self._ended.state[None, self.row.columns], self._ended.tangent
        return found if D is None else np.hstack([found, D.reshape(1, -1)])

    def counts(self) -> dict[str, Any]:
        return self._solver.counts()

    def state(self) -> dict[str, NDArray[Any]]:
        own = {"event_lead": self._solver.run.last.copy(), **self.watcher.state()}
        return self._solver.state() | {name: array[None] for name, array in own.items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self._solver.restore(state)
        self.done = int(self._solver.steps()[0])
        self._solver.run.last[:] = state["event_lead"][0]
        self.watcher.restore({name: array[0] for name, array in state.items()})


class WatchedStates(Alone):
    """Any method on any system at any precision, and its events: the states after all steps are looked at.

    A step is looked at closely where the event function's ball over the curve through neighbouring states contains
    zero. Where the run is thrown back, another stepper begins.
    """

    INTEGERS: tuple[str, ...] = ("steps", "origin")

    def __init__(self, make: Make, mechanics: Any, reals: Reals, start: Start, row: Row, watch: Watch) -> None:
        self._make, self._reals, self._start, self._n, self.row = make, reals, start, len(start.q), row
        with reals.working():
            self._motion = DetachedMotion(make, mechanics, reals, start, watch)
            self.watcher = Watcher(watch, self._motion, self._n, start.h)
            self.watcher.begin(start)
            self._inner = make(start.t, start.q, start.p, start.h)
        self._states = np.concatenate([start.q, start.p])[None]  # the last, at most three, since the run was thrown
        self._origin = 0  # steps after which the stepper at work began
        self._ended: Ended | None = None
        self._before: dict[str, Any] = {}  # what steppers counted that the run has left
        urgent = any(item.urgent for item in watch.items)
        self._together = (1 if urgent else 8) if isinstance(reals, Digits) else (16 if urgent else 256)

    def advance(self, steps: int, every: int, first: int, rows: NDArray[Any]) -> int:
        begun = self.done
        with self._reals.working():
            while self.done < begun + steps and self.failed is None:
                now = self.done
                states = self._piece(min(self._together, begun + steps - now))
                k = np.arange(now + 1, self.done + 1)
                kept = k[k % every == 0] if every else k[:0]
                if len(kept):
                    rows[0, kept // every - first] = states[kept - now - 1][:, self.row.columns]
        return self.done - begun

    def _piece(self, steps: int) -> NDArray[Any]:
        """Do at most so many steps; the states after them."""
        inner, begun = self._inner, self.done
        buffer = np.empty((steps, 2 * self._n), self._motion.dtype)
        done = inner.advance(steps, 1, inner.done + 1, buffer[None])
        states = np.concatenate([self._states, buffer[:done]])
        happened = self._look(states, done) if done else None
        step, outcome = happened or (begun + done, None)
        if outcome is None or isinstance(outcome, Ended):
            done, self._ended = step - begun, outcome
            self.failed = inner.failure() if outcome is None else outcome.failure
            self._states = states[: len(self._states) + done][-3:]
        else:
            done = step + 1 - begun
            buffer[done - 1] = outcome
            self._throw(step + 1, outcome)
        self.done = begun + done
        return buffer[:done]

    def _look(self, states: NDArray[Any], done: int) -> tuple[int, NDArray[Any] | Ended] | None:
        """Look at the last `done` steps between these states; that which ended early or was thrown back, and how."""
        watcher, h = self.watcher, self._start.h
        count = len(states)
        step = np.arange(self.done, self.done + done)
        begin = count - 1 - done
        t = self._start.t + np.arange(self.done - begin, self.done + done + 1) * h
        curve = neighbours_curve(t.astype(float), float(h), states.astype(float), begin)
        near, turning = surveyed(watcher.watch, curve, self._motion.params)
        if count < 4:
            near[:] = turning[:] = True
        for k, item in enumerate(watcher.watch.items):
            if item.monotone:
                g = [
                    self._motion.values(t[begin + i : count - 1 + i], states[begin + i : count - 1 + i])[:, k]
                    for i in (0, 1)
                ]
                near[:, k], turning[:, k] = ~(g[0] * g[1] > 0), False
        rows = np.flatnonzero(near.any(axis=1))
        if not len(rows):
            return None
        starts = np.concatenate([t[begin + rows, None], states[begin + rows]], axis=1)
        ends = states[begin + rows + 1]
        values = [self._motion.values(t[begin + rows + k], states[begin + rows + k]) for k in (0, 1)]

        def some(of: NDArray[np.intp]) -> Curve:
            return Curve(curve.t[rows[of]], curve.h, curve.coefficients[rows[of]], curve.off[rows[of]])

        survey = Survey(values[0], values[1], near[rows], turning[rows], ends, some)
        found = watcher.look(step[rows], starts, survey)
        return None if found is None else (int(step[rows[found[0]]]), found[1])

    def _throw(self, step: int, state: NDArray[Any]) -> None:
        """Go on from another state before this step."""
        self._before = self.counts()
        n, start = self._n, self._start
        self._inner = self._make(start.t + step * start.h, state[:n], state[n:], start.h)
        self._states, self._origin = state[None], step

    def at(self) -> NDArray[Any]:
        state = None if self._ended is None else self._ended.state
        return (self._states[-1] if state is None else state)[None, self.row.columns]

    def state(self) -> dict[str, NDArray[Any]]:
        inner = {f"inner_{name}": array for name, array in self._inner.state().items()}
        own = {"last_states": self._states, "integers": np.array([self.done, self._origin]), **self.watcher.state()}
        return inner | {name: array[None].copy() for name, array in own.items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        with self._reals.working():
            own = {name: array[0] for name, array in state.items()}
            self.done, step = own["integers"].tolist()
            self._throw(step, own["last_states"][-1])
            self._states, self._before = own["last_states"].copy(), {}
            self._inner.restore({name[6:]: array for name, array in state.items() if name.startswith("inner_")})
            self.watcher.restore(own)

    def counts(self) -> dict[str, Any]:
        now = self._inner.counts()
        added = {name: self._before.get(name, 0) + now[name] for name in SUMS & now.keys()}
        return now | {name: max(value, self._before.get(name, value)) for name, value in now.items()} | added
