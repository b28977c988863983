"""The watcher books the events of steps: it looks closely at them, notes what happened, and throws back at impacts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.events.examine import Examined, Examiner, Occurrence, signs_of
from leastaction.events.kinds import Watch
from leastaction.events.log import Log
from leastaction.events.motion import Motion, Survey
from leastaction.events.saltation import Direction, Saltation
from leastaction.step.status import EVENT, HELD, NOT_CONVERGED, RESTING, STOPPED, Failure

SHORTEST = 1e-9  # flights between impacts on one wall, in steps: shorter flights follow each other without end
MOST_IMPACTS = 10_000  # in one step
LEAST_REST = 16  # roundings of h: if the rest of a step after an impact is shorter, there is no rest
AT_END = Failure(STOPPED, 0.0, 0, 1.0)  # no failure: an event has ended the run
UNSOLVED = Failure(NOT_CONVERGED, stage=EVENT)
AT_REST = Failure(RESTING, 0.0)
UNSEEN = 1024  # roundings of t and h: in a shorter rest of a step rounding hides the function of a wall


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
            elif what.failure is UNSOLVED:  # found now, perhaps many steps later
                time = float(starts[row, self.motion.system.clock.place])
                halted[i] = row, Ended(replace(UNSOLVED, step=int(steps[row]), time=time))
            else:
                halted[i] = row, what
        return halted | {i: (halted[i][0], outcome) for i, outcome in self._thrown(flights).items()}

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
        found_there: list[tuple[int, Occurrence | Ended]] = [(row, Ended(UNSOLVED)) for row in found.unsolved]
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
                halted[row] = Ended(AT_END, one.state, tangent)
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
                    outcomes[flight.who] = Ended(UNSOLVED if lost[row] else AT_REST)
                elif ended is None:
                    self._signs[flight.who] = found.end[row]
                    self.tangent = self._stepped(flight.start, flight.length, flight.along, flight.ends)
                    outcomes[flight.who] = survey.ends[row]
                elif isinstance(ended, Ended):
                    outcomes[flight.who] = ended
                elif ended.event == flight.impact.event and abs(ended.tau * flight.length) < SHORTEST * abs(self.h):
                    outcomes[flight.who] = Ended(AT_REST)
                else:
                    flight.found, flight.impact = found, ended
                    flying.append(flight)
            flights = flying
        return outcomes | {flight.who: Ended(AT_REST) for flight in flights}

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
                outcomes[i] = Ended(Failure(HELD, 0.0))
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
        return np.where(jumps, signs_of(new), signs).astype(np.int8)


def directions(D: NDArray[Any], step: int, P: int) -> Direction:
    """D after this number of steps as a Direction: rows by the state and, if D has more rows, by P parameters and h."""
    C, n2 = D.shape
    params, time, longer = np.zeros((C, P)), np.zeros(C), np.zeros(C)
    if n2 < C:
        params[n2:-1], time[-1], longer[-1] = np.eye(P), step, 1.0
    return Direction(D.copy(), time, params, longer)
