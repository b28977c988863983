"""A stepper that is watched: it steps as before, and records the events on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import gt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.galerkin import GalerkinStepper
from leastaction.backends.layout import STEPS
from leastaction.backends.rows import Row
from leastaction.backends.status import GOING_WELL, HELD, NOT_CONVERGED, RESTING, STOPPED, Failure
from leastaction.backends.stepper import Alone, Start
from leastaction.backends.workspace import Check
from leastaction.events.check import check_program
from leastaction.events.curve import AROUND, through_states
from leastaction.events.examine import MOST_NUMBERS, Examined, Examiner, Occurrence, signs_of
from leastaction.events.isolate import surveyed
from leastaction.events.kinds import Watch
from leastaction.events.motion import DetachedMotion, GalerkinMotion, Make, Motion, Survey
from leastaction.events.saltation import Direction, Saltation
from leastaction.methods import Galerkin
from leastaction.numbers.rounding import Digits, Reals
from leastaction.systems.clock import Clock
from leastaction.systems.lagrangian import Lagrangian
from leastaction.systems.protocol import System

FloatArray = NDArray[np.float64]

SHORTEST = 1e-9  # flights between impacts on one wall, in steps: shorter flights follow each other without end
MOST_IMPACTS = 10_000  # in one step
LEAST_REST = 16  # roundings of h: if the rest of a step after an impact is shorter, there is no rest
UNSEEN = 1024  # roundings of t and h: in a shorter rest of a step rounding hides the function of a wall
LAST_STATES = AROUND - 1  # states before the next step: the curve goes through them and the end of the step
GROWING = ("event_rows",)  # arrays of the state whose number of rows is not known beforehand
SUMS = {"newton_iterations", "continued"}  # counts of steppers that are added; of other counts the largest is told


@dataclass(frozen=True, eq=False)
class Happened:
    """The events of one name: what `path.events[name]` holds.

    Of an ensemble every array has one more axis in front, for the trajectories, with NaN where a trajectory has fewer
    events than another.

    Attributes
    ----------
    count : int
        How many there were, also beyond those kept.
    t : ndarray, shape (m,)
        Times of those kept.
    q, p : ndarray, shape (m, n)
        States of those kept. Of an impact: the state before it.
    p_after : ndarray, shape (m, n), or None
        The momentum after an impact.

    Examples
    --------
    >>> import leastaction as la
    >>> spring = la.Quadratic([1.0], [1.0])
    >>> turn = {"turn": la.Event(lambda q, p: p[0])}
    >>> path = la.integrate(spring, "P4N4Q8Gau", [0.0], [1.0], h=0.1, t_end=10, events=turn)
    >>> path.events["turn"].t.round(6)
    array([1.570796, 4.712389, 7.853982])
    """

    count: Any
    t: NDArray[Any]
    q: NDArray[Any]
    p: NDArray[Any]
    p_after: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.t)

    @classmethod
    def of(cls, count: Any, table: NDArray[Any], n: int) -> Happened:
        """Made from rows (t, q, p), or (t, q, p, p after)."""
        after = table[..., 1 + 2 * n :] if table.shape[-1] > 1 + 2 * n else None
        return cls(count, table[..., 0], table[..., 1 : 1 + n], table[..., 1 + n : 1 + 2 * n], after)

    def in_time(self, clock: Clock) -> Happened:
        """The same events of a paced run, whose last coordinate or momentum is the time."""
        after = None if self.p_after is None else self.p_after[..., :-1]
        t = (self.q if clock.block == "q" else self.p)[..., -1]
        return Happened(self.count, t, self.q[..., :-1], self.p[..., :-1], after)

    def table(self) -> NDArray[Any]:
        """Rows (t, q, p), or (t, q, p, p after)."""
        after = [] if self.p_after is None else [self.p_after]
        return np.concatenate([self.t[..., None], self.q, self.p, *after], axis=-1)

    def one(self, i: int) -> Happened:
        """The events of trajectory i of an ensemble."""
        count = int(self.count[i])
        return Happened.of(count, self.table()[i, : min(count, self.t.shape[1])], self.q.shape[-1])


def together(logs: Sequence[Log], nothing: Any) -> dict[str, Happened]:
    """The events of the trajectories of an ensemble, by name; `nothing` fills the empty places."""
    found = {}
    for item, *of_each in zip(logs[0].watch.items, *(log.happened().values() for log in logs), strict=True):
        tables = [one.table() for one in of_each]
        whole = np.full((len(logs), max(map(len, tables)), tables[0].shape[1]), nothing, tables[0].dtype)
        for i, table in enumerate(tables):
            whole[i, : len(table)] = table
        found[item.name] = Happened.of(np.array([one.count for one in of_each]), whole, logs[0].n)
    return found


class Log:
    """What has happened so far: for each event its count and the rows that are kept, (t, q, p); the row of an impact
    also has p after it.
    """

    def __init__(self, watch: Watch, n: int, dtype: Any) -> None:
        self.watch, self.n, self.dtype = watch, n, dtype
        self.counts = [0] * len(watch)
        self.rows: list[list[NDArray[Any]]] = [[] for _ in watch.items]

    @property
    def at_end(self) -> bool:
        """Whether a run that is to end at a given time has reached this time, which is its last event."""
        return self.counts[-1] > 0

    def add(self, event: int, row: NDArray[Any]) -> bool:
        """Note an event by its row; return whether the event ends the run."""
        item = self.watch.items[event]
        count = self.counts[event] = self.counts[event] + 1
        if item.most is None or count <= item.most:
            self.rows[event].append(row)
        return item.ends(count)

    def state(self) -> dict[str, NDArray[Any]]:
        """Counts, the numbers of rows kept of each event, and these rows one after the other, filled up with zeros."""
        kept = [len(rows) for rows in self.rows]
        ends = np.cumsum([0, *kept])
        table = np.zeros((ends[-1], 1 + 3 * self.n), self.dtype)
        for k, rows in enumerate(self.rows):
            if rows:
                table[ends[k] : ends[k + 1], : len(rows[0])] = rows
                table[ends[k] : ends[k + 1], len(rows[0]) :] = 0 * rows[0][0]
        return {"event_counts": np.array([self.counts, kept], np.int64), "event_rows": table}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        counts, kept = state["event_counts"].tolist()
        if min(kept) < 0 or sum(kept) > len(state["event_rows"]) or any(map(gt, kept, counts)):
            raise ValueError(f"of {counts} events {kept} cannot be kept in {len(state['event_rows'])} rows")
        self.counts, ends = counts, np.cumsum([0, *kept])
        for k, item in enumerate(self.watch.items):
            width = 1 + (2 if item.restitution is None else 3) * self.n
            self.rows[k] = list(state["event_rows"][ends[k] : ends[k + 1], :width])

    @property
    def stopped(self) -> NDArray[Any] | None:
        """The event that has ended the run, (t, q, p); None if no event has."""
        for item, count, rows in zip(self.watch.items, self.counts, self.rows, strict=True):
            if item.ends(count):
                return rows[-1]
        return None

    def happened(self) -> dict[str, Happened]:
        """What has happened, by the names of the events."""
        found = {}
        for item, count, rows in zip(self.watch.items, self.counts, self.rows, strict=True):
            width = 1 + (2 if item.restitution is None else 3) * self.n
            found[item.name] = Happened.of(count, np.array(rows, self.dtype).reshape(len(rows), width), self.n)
        return found


@dataclass(frozen=True, eq=False)
class Ended:
    """A step that did not reach its end: the reason, and, if an event stopped the run, the state and its derivative."""

    failure: Failure
    state: NDArray[Any] | None = None
    tangent: NDArray[Any] | None = None


@dataclass(eq=False)
class Flight:
    """A trajectory on its way through the impacts of one step.

    start, length   the start (t, q, p) of its last piece, and the length of this piece
    found, impact   what happens in this piece, and the impact that ends it
    along           derivatives at the start of the piece
    passed          the part of the step before the piece
    signs           of the event functions, after the impact
    """

    who: int
    start: NDArray[Any]
    length: Any
    found: Examined
    impact: Occurrence
    along: Direction | None

    def __post_init__(self) -> None:
        self.begin, self.passed = self.start[0], 0 * self.length
        self.ends: Any = 0.0 if self.along is None else self.along.time + self.along.longer
        self.signs: NDArray[np.int8] = self.found.begin[self.impact.row]


class Watcher:
    """Books the events of trajectories: looks closely at steps, notes what happened, and takes a step through its
    impacts.

    Where derivatives are carried, there is one trajectory: `directions` gives the derivatives at the start of a step,
    by its number; `tangent` has those at the end of the last step that was thrown back.
    """

    def __init__(
        self, watch: Watch, motion: Motion, n: int, h: Any, directions: Callable[[int], Direction] | None = None
    ) -> None:
        self.watch, self.motion, self.n, self.h = watch, motion, n, h
        self.logs = [Log(watch, n, motion.dtype) for _ in motion.params]
        self._examine = Examiner(motion.watch, motion)
        # The signs of the event functions at the end of the last step that was looked at, and that step's number.
        self._signs = np.zeros((len(self.logs), len(watch)), np.int8)
        self._after = np.full(len(self.logs), -1, np.int64)
        self._directions = directions
        self._saltation: Saltation | None = None
        if directions is not None:
            P = motion.params.shape[1]
            self._saltation = Saltation(motion.system, watch, P, motion.derivative, motion.evaluate)
        self.tangent: NDArray[Any] | None = None

    def state(self) -> dict[str, NDArray[Any]]:
        """The state on which later events depend, and the events so far; a row for each trajectory."""
        logs = [log.state() for log in self.logs]
        rows = [log["event_rows"] for log in logs]
        table = np.zeros((len(rows), max(map(len, rows)), 1 + 3 * self.n), rows[0].dtype)
        for i, some in enumerate(rows):
            table[i, : len(some)] = some
        signs = np.concatenate([self._signs.astype(np.int64), self._after[:, None]], axis=1)
        counts = np.array([log["event_counts"] for log in logs])
        return {"event_counts": counts, "event_rows": table, "event_signs": signs}

    def finish(self, standing: Any) -> None:
        """The log of one trajectory alone; the logs of many are read from their state."""
        if len(self.logs) == 1:
            standing.told["logs"] = self.logs

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        for i, log in enumerate(self.logs):
            log.restore({name: state[name][i] for name in ("event_counts", "event_rows")})
        self._signs[:], self._after[:] = state["event_signs"][:, :-1], state["event_signs"][:, -1]

    def look(
        self, who: NDArray[np.intp], steps: NDArray[np.int64], starts: NDArray[Any], survey: Survey
    ) -> dict[int, tuple[int, NDArray[Any] | Ended]]:
        """Note the events of steps from rows (t, q, p), one trajectory after the other, up to the first event that ends
        its run or throws it back.

        Returns, for each such trajectory, the row of this step, and the state at its end if the run goes on.
        """
        if self.watch.only_ends:
            begin, end, near = (values[:, 0] for values in (survey.begin, survey.end, survey.near))
            return self.look_for_end(who, steps, starts, begin, end, survey.z, near)
        first, follows = np.ones(len(who), bool), np.zeros(len(who), bool)
        first[1:] = who[1:] != who[:-1]
        follows[1:] = (steps[1:] == steps[:-1] + 1) & ~first[1:]
        known = {
            int(row): self._signs[who[row]]
            for row in np.flatnonzero(first)
            if self._after[who[row]] >= 0 and steps[row] == self._after[who[row]] + 1
        }
        lengths = np.full(len(who), self.h, self.motion.dtype)
        found = self._examine(who, survey, starts, lengths, follows, known)
        last = np.flatnonzero(np.append(first[1:], True))
        self._signs[who[last]], self._after[who[last]] = found.end[last], steps[last]
        along = [None if self._directions is None else self._directions(step) for step in steps.tolist()]
        halted: dict[int, tuple[int, NDArray[Any] | Ended]] = {}
        flights = []
        for row, what in self._noted(who, found, starts, lengths, along).items():
            i = int(who[row])
            if isinstance(what, Occurrence):
                self._after[i] = steps[row]
                flights.append(Flight(i, starts[row], self.h, found, what, along[row]))
                halted[i] = row, starts[row]  # replaced when the flight has come to its end
            else:
                halted[i] = row, what
        return halted | {i: (halted[i][0], outcome) for i, outcome in self._thrown(flights).items()}

    def look_for_end(
        self, who: NDArray[np.intp], steps: NDArray[np.int64], starts: NDArray[Any], begin: NDArray[Any],
        end: NDArray[Any], z: NDArray[Any] | None, near: NDArray[np.bool_],
    ) -> dict[int, tuple[int, NDArray[Any] | Ended]]:  # fmt: skip
        """The same for runs that look for nothing but their end: its function only grows, or only falls, and begins and
        ends the steps with these values. It is zero in steps that are `near`, or it is at their ends but for rounding.
        """
        (item,), first = self.watch.items, signs_of(begin)
        end = np.where(near & (signs_of(end) == first), 0 * end, end)
        rows = np.flatnonzero((first == -item.direction) & (signs_of(end) != first))
        if not len(rows):
            return {}
        enclosing = np.stack([0 * begin, 0 * begin + 1, begin, end], axis=1)[rows]
        lengths = np.full(len(rows), self.h, self.motion.dtype)
        which, solved = np.zeros(len(rows), np.int64), None if z is None else z[rows]
        tau, _, states = self.motion.crossings(who[rows], which, starts[rows], lengths, solved, enclosing)
        halted: dict[int, tuple[int, NDArray[Any] | Ended]] = {}
        for k, row in enumerate(rows.tolist()):
            i = int(who[row])
            if i not in halted:
                halted[i] = row, self.ended(i, int(steps[row]), starts[row], tau[k], states[k])
        return halted

    def ended(self, i: int, step: int, start: NDArray[Any], part: Any, state: NDArray[Any]) -> Ended:
        """Note that the run of trajectory i has come to its end with this part of a step, in this state; NaN where the
        step could not be solved.
        """
        if (state != state).any():
            return Ended(Failure(NOT_CONVERGED, float("nan"), 0, 0.0))
        length = part * self.h
        self.logs[i].add(0, np.concatenate([start[:1] + length, state]))
        tangent = None
        if self._directions is not None:
            tangent = self._stepped(start, length, self._directions(step), 0.0)
        return Ended(Failure(STOPPED, 0.0, 0, 1.0), state, tangent)

    def _noted(
        self,
        who: NDArray[np.intp],
        found: Examined,
        starts: NDArray[Any],
        lengths: NDArray[Any],
        along: Sequence[Direction | None],
    ) -> dict[int, Occurrence | Ended]:
        """Note what was found, for each trajectory up to an impact or to the end of its run. Returns these impacts and
        ends, by their rows; `along` are the directions at the starts of the steps.
        """
        halted: dict[int, Occurrence | Ended] = {}
        wanted = [item.direction for item in self.watch.items]
        if not found.unsolved and not any(item.urgent for item in self.watch.items):
            whose = who.tolist()
            for each in found.occurrences:
                if wanted[each.event] in (0, each.direction):
                    self.logs[whose[each.row]].add(each.event, each.at)
            return halted
        over: set[int] = set()  # trajectories with an impact or an end
        found_there: list[tuple[int, Occurrence | Ended]] = [
            (row, Ended(Failure(NOT_CONVERGED, float("nan"), 0, 0.0))) for row in found.unsolved
        ]
        found_there += [(one.row, one) for one in found.occurrences if one.row not in found.unsolved]
        for row, one in sorted(found_there, key=lambda pair: pair[0]):
            i = int(who[row])
            if i in over:
                continue
            if isinstance(one, Ended):
                halted[row] = one
                over.add(i)
                continue
            if wanted[one.event] not in (0, one.direction):
                continue
            if self.watch.items[one.event].restitution is not None:
                halted[row] = one
                over.add(i)
            elif self.logs[i].add(one.event, one.at):
                tangent = self._stepped(starts[row], one.tau * lengths[row], along[row], 0.0)
                halted[row] = Ended(Failure(STOPPED, 0.0, 0, 1.0), one.state, tangent)
                over.add(i)
        return halted

    def _stepped(self, start: NDArray[Any], length: Any, along: Direction | None, ends: Any) -> NDArray[Any] | None:
        """The derivatives after a step whose end changes by `ends` along the directions."""
        if self._saltation is None or along is None:
            return None
        return self._saltation.stepped(start, length, along, ends - along.time)

    def _thrown(self, flights: list[Flight]) -> dict[int, NDArray[Any] | Ended]:
        """Run the rests of steps after impacts, through all further impacts: the states at the ends, by trajectory."""
        outcomes: dict[int, NDArray[Any] | Ended] = {}
        for _ in range(MOST_IMPACTS):
            flights = self._bounced(flights, outcomes)
            if not flights:
                return outcomes
            who = np.array([flight.who for flight in flights])
            starts = np.array([flight.start for flight in flights])
            lengths = np.array([flight.length for flight in flights], self.motion.dtype)
            survey = self.motion.survey(who, starts, lengths)
            for row, flight in enumerate(flights):
                if abs(flight.length) <= UNSEEN * self.motion.eps * (abs(self.h) + abs(flight.start[0])):
                    # Too short to distinguish g from zero: the motion leaves the wall, as its momentum says.
                    event = flight.impact.event
                    flight.signs[event] = 1
                    survey.near[row, event], survey.end[row, event] = False, abs(survey.end[row, event]) + 1
            known = {row: flight.signs for row, flight in enumerate(flights)}
            found = self._examine(who, survey, starts, lengths, np.zeros(len(who), bool), known)
            lost = (survey.ends != survey.ends).any(axis=1)
            resting = np.array([found.leaving[row, flight.impact.event] < 0 for row, flight in enumerate(flights)])
            over = frozenset(np.flatnonzero(lost | resting).tolist())
            noted = self._noted(who, found.without(over), starts, lengths, [flight.along for flight in flights])
            flying: list[Flight] = []
            for row, flight in enumerate(flights):
                ended = noted.get(row)
                if row in over:
                    why = Failure(NOT_CONVERGED, float("nan"), 0, 0.0) if lost[row] else Failure(RESTING, 0.0, 0, 0.0)
                    outcomes[flight.who] = Ended(why)
                elif ended is None:
                    self._signs[flight.who] = found.end[row]
                    self.tangent = self._stepped(flight.start, flight.length, flight.along, flight.ends)
                    outcomes[flight.who] = survey.ends[row]
                elif isinstance(ended, Ended):
                    outcomes[flight.who] = ended
                elif ended.event == flight.impact.event and abs(ended.tau * flight.length) < SHORTEST * abs(self.h):
                    outcomes[flight.who] = Ended(Failure(RESTING, 0.0, 0, 0.0))
                else:
                    flight.found, flight.impact = found, ended
                    flying.append(flight)
            flights = flying
        return outcomes | {flight.who: Ended(Failure(RESTING, 0.0, 0, 0.0)) for flight in flights}

    def _bounced(self, flights: list[Flight], outcomes: dict[int, NDArray[Any] | Ended]) -> list[Flight]:
        """Throw trajectories back where they meet their walls; return those whose step is not yet at its end."""
        if not flights:
            return flights
        n, who = self.n, np.array([flight.who for flight in flights])
        for flight in flights:
            flight.passed = flight.passed + flight.impact.tau * flight.length
        t = np.array([flight.begin + flight.passed for flight in flights], self.motion.dtype)
        states = np.array([flight.impact.state for flight in flights])
        event = np.array([flight.impact.event for flight in flights])
        momenta = self.motion.after_impacts(who, event, np.concatenate([t[:, None], states], axis=1))
        after = states.copy()
        for row, p in enumerate(momenta):
            if p is not None:
                after[row, n:] = p
        signs = self._signs_after(who, flights, t, states, after)
        flying: list[Flight] = []
        for row, flight in enumerate(flights):
            i = flight.who
            if momenta[row] is None:
                outcomes[i] = Ended(Failure(HELD, 0.0, 0, 0.0))
                continue
            at = np.concatenate([[t[row]], states[row]])
            self.logs[i].add(flight.impact.event, np.concatenate([at, after[row, n:]]))
            if self._saltation is not None and flight.along is not None:
                length = flight.impact.tau * flight.length
                flight.along = self._saltation.thrown(flight.start, length, flight.impact.event, at, flight.along)
            flight.start, flight.length = np.concatenate([[t[row]], after[row]]), self.h - flight.passed
            flight.signs = signs[row]
            if abs(flight.length) <= LEAST_REST * self.motion.eps * abs(self.h):
                self._signs[i] = flight.signs
                self.tangent = None if flight.along is None else flight.along.state
                outcomes[i] = after[row]
            else:
                flying.append(flight)
        return flying

    def _signs_after(
        self, who: NDArray[np.intp], flights: list[Flight], t: NDArray[Any], states: NDArray[Any], after: NDArray[Any]
    ) -> NDArray[np.int8]:
        """The signs of the event functions after impacts: zero for the walls that were met; new signs for functions
        that the jump of the momentum changes, since this change is no event.
        """
        signs = np.array([flight.found.signs(flight.impact) for flight in flights])
        signs[np.arange(len(who)), [flight.impact.event for flight in flights]] = 0
        values = self.motion.values(np.tile(who, 2), np.tile(t, 2), np.concatenate([states, after]))
        old, new = values[: len(who)], values[len(who) :]
        jumps = (old != new) & np.array([item.restitution is None for item in self.watch.items])
        return np.where(jumps, (new > 0).astype(np.int8) - (new < 0).astype(np.int8), signs).astype(np.int8)


def directions(D: NDArray[Any], step: int, P: int) -> Direction:
    """D after this number of steps as a Direction: rows by the state and, if D has more rows, by P parameters and h."""
    C, n2 = D.shape
    params, time, longer = np.zeros((C, P)), np.zeros(C), np.zeros(C)
    if n2 < C:
        params[n2:-1], time[-1], longer[-1] = np.eye(P), step, 1.0
    return Direction(D.copy(), time, params, longer)


class WatchedGalerkin:
    """A member of the family on a Lagrangian system, in float64, and its events: one trajectory, or many in lanes.

    The native loop asks after every step whether an event may lie in the step (`check`), and goes on if none may. Steps
    in doubt are looked at together, or at once if a run may have to end or be thrown back. Then the group of lanes
    halts with the step solved but not done; if nothing happened, the group goes on as if it had not been watched.

    A trajectory that is thrown back waits until the trajectories beside it have done the step, and restarts after it.
    """

    INTEGERS: tuple[str, ...] = GalerkinStepper.INTEGERS

    def __init__(
        self,
        system: Lagrangian,
        method: Galerkin,
        start: Start,
        row: Row,
        watch: Watch,
        lanes: int = 1,
        energy: bool = False,
    ) -> None:
        program = check_program(watch, system, method)
        alone = watch.only_ends and lanes == 1
        check = Check(program, watch.program, watch.items[0].direction) if alone else Check(program)
        self._solver = GalerkinStepper(system, method, start, row, lanes, energy, check)
        self._motion = GalerkinMotion(system, method, start, watch)
        self.watcher = Watcher(watch, self._motion, system.n, start.h, self._directions if row.varied else None)
        self._start, self._n, self._s, self.row = start, system.n, method.s, row
        self._ends = alone  # the native loop finds the end of the run by itself
        self._ended: dict[int, Ended] = {}
        self._thrown: dict[int, FloatArray] = {}  # trajectories that wait, and the states from which they go on

    def leave(self, status: NDArray[np.int8]) -> None:
        """Before the first step, mark the trajectories that cannot begin."""
        self._solver.leave(status)

    @property
    def done(self) -> int:
        return self._solver.done

    def note(self, after: list[int]) -> bool:
        return self._solver.note(after)

    def noted(self) -> FloatArray:
        return self._solver.noted()

    def advance(self, steps: int, every: int, first: int, rows: FloatArray) -> int:
        begun, solver = self.done, self._solver
        end = begun + steps
        if self._start.inputs is not None:
            going = solver.steps()[solver.status() == GOING_WELL]
            solver.drive(int(going.min(initial=end)), end - int(going.min(initial=end)))
        while self._thrown or solver.going(end):
            solver.run.advance(end, every, first, rows)
            if self._thrown:
                self._restart(every, first, rows)
            self._look()
        return solver.furthest - begun

    def _look(self) -> None:
        """Look at the steps in doubt; a trajectory whose step was stopped or thrown back is over, or waits."""
        run = self._solver.run
        who, looks = run.looks()
        if not len(looks):
            return
        if self._ends:
            n = self._n
            for i, row in zip(who.tolist(), looks, strict=True):
                start, part, state = row[1 : 2 + 2 * n], row[2 + 2 * n], row[3 + 2 * n : 3 + 4 * n]
                self._ended[i] = self.watcher.ended(i, int(row[0]), start, part, state)
            return
        for i, (_, outcome) in self._looked(who, looks).items():
            if isinstance(outcome, Ended):
                self._ended[i] = outcome
                run.end(i, outcome.failure.status)
            else:
                self._thrown[i] = outcome
                run.end(i)
                run.halt(i, 2)

    def _looked(self, who: NDArray[np.intp], looks: FloatArray) -> dict[int, tuple[int, FloatArray | Ended]]:
        """The trajectories that are stopped or thrown back in these steps: rows (step, what the check reads)."""
        n, s, count, motion = self._n, self._s, len(looks), self._motion
        steps, starts = looks[:, 0].astype(np.int64), np.concatenate([looks[:, 1:2], looks[:, 3 : 3 + 2 * n]], axis=1)
        z = looks[:, 3 + 2 * n : 3 + 2 * n + s * n].reshape(count, s, n)
        impulse = looks[:, 3 + (2 + s) * n : 3 + (3 + s) * n]
        if self.watcher.watch.only_ends:
            ends = starts + np.concatenate([np.full((count, 1), self.watcher.h), z[:, -1], impulse], axis=1)
            both = np.concatenate([starts, ends])
            values = motion.values(np.concatenate([who, who]), both[:, 0], both[:, 1:])[:, 0]
            near = np.ones(count, bool)  # else the check would not have asked
            return self.watcher.look_for_end(who, steps, starts, values[:count], values[count:], z, near)
        last = looks[:, 3 + (3 + s) * n : 3 + (4 + s) * n]
        survey = motion.survey_solved(who, starts, np.full(count, self.watcher.h), z, impulse, last)
        return self.watcher.look(who, steps, starts, survey)

    def _restart(self, every: int, first: int, rows: FloatArray) -> None:
        """Restart the waiting trajectories, after the others beside them have done the step."""
        solver = self._solver
        run = solver.run
        L, who = run.backend.lanes, np.array([*self._thrown], np.intp)
        t = self._start.t + (run.counts[who, STEPS] + 1) * self._start.h
        starts = np.concatenate([t[:, None], np.array([*self._thrown.values()])], axis=1)
        leads = self._motion.leads(who, starts, self.watcher.h)
        for (i, state), lead in zip(self._thrown.items(), leads, strict=True):
            step = int(run.counts[i, STEPS]) + 1
            solver.restart(i, step, state)
            run.last[i // L, i % L] = lead
            if solver.D is not None:
                assert self.watcher.tangent is not None
                solver.D[:] = self.watcher.tangent
            if every and step % every == 0:
                rows[i, step // every - first] = self.row.kept(solver.at()[i])
        self._thrown.clear()

    def _directions(self, step: int) -> Direction:
        """The derivatives at the start of this step, the next to be done."""
        assert self._solver.D is not None
        return directions(self._solver.D, step, self._motion.params.shape[1])

    def steps(self) -> NDArray[np.int64]:
        return self._solver.steps()

    def status(self) -> NDArray[np.int8]:
        return self._solver.status()

    def at(self) -> FloatArray:
        found = self._solver.at()
        for i, ended in self._ended.items():
            if ended.state is not None:
                D = [] if ended.tangent is None else [ended.tangent.ravel()]
                found[i] = np.concatenate([ended.state, *D])
        return found

    def spent(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self._solver.spent()

    def counts(self) -> dict[str, Any]:
        return self._solver.counts()

    def failure(self) -> Failure | None:
        return next((ended.failure for ended in self._ended.values()), self._solver.failure())

    def finish(self, standing: Any) -> None:
        self._solver.finish(standing)
        self.watcher.finish(standing)

    def state(self) -> dict[str, NDArray[Any]]:
        lead = self._solver.run.last.reshape(-1, self._n)[: self._solver.size].copy()
        return self._solver.state() | {"event_lead": lead, **self.watcher.state()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self._solver.restore(state)
        L = self._solver.run.backend.lanes
        for i, lead in enumerate(state["event_lead"]):
            self._solver.run.last[i // L, i % L] = lead
        self.watcher.restore(state)
        for i, log in enumerate(self.watcher.logs):
            if log.stopped is not None:
                self._ended[i] = Ended(Failure(STOPPED, 0.0, 0, 1.0), log.stopped[1:])


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
        curve = through_states(t.astype(float), float(h), states[:, motion.columns].astype(float), begin)
        params = np.broadcast_to(motion.params, (done, motion.params.shape[1]))
        near, turning = surveyed(motion.watch, curve, params)
        values = motion.values(np.zeros(done + 1, np.intp), t[begin:], states[begin:])
        sides = np.where(values > 0, 1, np.where(values < 0, -1, 0))
        near |= ~(sides[:-1] * sides[1:] > 0)  # in doubt whatever the curve through the states tells
        young = slice(max(0, LAST_STATES - 1 - begin))  # steps with too few states before them to trust a curve
        near[young] = turning[young] = True
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
