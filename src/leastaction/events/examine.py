"""All events of some steps, in the order in which they happen."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.events.curve import FURTHER, through_steps
from leastaction.events.isolate import MOST_PARTS, Part, parts
from leastaction.events.kinds import Watch
from leastaction.events.motion import EPS, Motion, Survey
from leastaction.kernel import loops

# Steps; events; rows of four: two places between which the function changes its sign, and its values there; and whether
# up (+1) or down (−1).
Brackets = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[Any], NDArray[np.int8]]

MOST_NUMBERS = 2**22  # the most numbers of states that are looked at together
BEYOND = 2.0**-10  # in parts of a step: how far to look beyond its end
SHORTEST = 1e-9  # in parts of t: in shorter steps all functions are nearly constant
UNSEEN = 8.0  # roundings of states: a wall that is nearer than these is met; and of times, which then are the same
GOLDEN = 0.3819660112501051
GROWS = 1e4  # if g is this many times larger than at both ends of its bracket, g has no zero there but a pole


@dataclass(frozen=True, eq=False)
class Occurrence:
    """An event in a step: which of the examined steps, the place τ in the step, which event, up (+1) or down (−1), and
    its time and state, (t, q, p).
    """

    row: int
    tau: Any
    event: int
    direction: int
    at: NDArray[Any]

    @property
    def state(self) -> NDArray[Any]:
        return self.at[1:]


@dataclass(frozen=True, eq=False)
class Examined:
    """What was found: occurrences in order, and the signs of the event functions, (K, events): at the start of the
    steps, the first nonzero signs after the start, and at the end. `unsolved` are the steps in which an event could not
    be located, or the function of a wall is NaN.
    """

    occurrences: list[Occurrence]
    begin: NDArray[np.int8]
    leaving: NDArray[np.int8]
    end: NDArray[np.int8]
    unsolved: frozenset[int]

    def without(self, rows: frozenset[int]) -> Examined:
        """The same result without the findings in these steps."""
        some = [one for one in self.occurrences if one.row not in rows] if rows else self.occurrences
        return Examined(some, self.begin, self.leaving, self.end, self.unsolved - rows)

    def signs(self, one: Occurrence) -> NDArray[np.int8]:
        """The signs just after an occurrence."""
        begin = self.begin[one.row]
        # At the very start of a step no function has left its zero: a motion may begin on several walls.
        signs = begin.copy() if one.tau == 0 else np.where(begin == 0, self.leaving[one.row], begin)
        for earlier in self.occurrences[: self.occurrences.index(one) + 1]:
            if earlier.row == one.row:
                signs[earlier.event] = earlier.direction
        return signs


@dataclass(frozen=True, eq=False)
class _Steps:
    """Steps of lengths h, (K,), from rows (t, q, p) of these trajectories, which are surveyed already."""

    motion: Motion
    who: NDArray[np.intp]
    survey: Survey
    starts: NDArray[Any]
    h: NDArray[Any]

    @property
    def t(self) -> NDArray[Any]:
        return self.starts[:, 0]

    def flow(self, rows: NDArray[np.intp], tau: NDArray[Any]) -> NDArray[Any]:
        """The states after parts of some steps."""
        return self.motion.steps(self.who[rows], self.starts[rows], tau * self.h[rows])

    def value(self, row: int, event: int, tau: Any) -> Any:
        """An event function in a step."""
        which, place = np.array([row]), np.array([tau], dtype=self.starts.dtype)
        t, states = self.t[which] + place * self.h[which], self.flow(which, place)
        return self.motion.values(self.who[which], t, states)[0, event]

    def beyond(self, row: int, event: int) -> Any:
        """An event function a little after a step."""
        return self.value(row, event, 0 * self.t[row] + 1 + BEYOND)


class Examiner:
    """Looks closely at steps for the events of one run."""

    def __init__(self, watch: Watch, motion: Motion) -> None:
        self.watch, self.motion = watch, motion
        self._walls = np.array([item.restitution is not None for item in watch.items])
        self._monotone = np.array([item.monotone for item in watch.items])
        self._told: set[int] = set()  # events whose functions were found to be NaN …
        self._given_up: set[int] = set()  # … or zero everywhere

    def __call__(
        self,
        who: NDArray[np.intp],
        survey: Survey,
        starts: NDArray[Any],
        h: NDArray[Any],
        follows: NDArray[np.bool_],
        known: Mapping[int, NDArray[np.int8]],
    ) -> Examined:
        """Examine steps of lengths h, (K,), from rows (t, q, p) of these trajectories, which are surveyed already.

        An event function has the same sign at the end of a step and at the start of the next, even if rounding gives
        two signs. `follows` tells which steps follow the step in the row before; `known` has the signs with which other
        steps begin. If the function touches zero at such a place, its sign there is the sign before.
        """
        steps = _Steps(self.motion, who, survey, starts, h)
        unseen = self._unseen(steps)
        begin, end = signs_of(survey.begin, unseen), signs_of(survey.end, unseen)
        for k, signs in known.items():
            begin[k] = signs
        divided = self._divided(steps)
        self._meet(steps, divided, end)

        def nodes(k: int, e: int) -> list[tuple[Any, Any, int]]:
            """Place, value and sign at both ends of a step that is divided, and in its parts."""
            found = [(0 * starts[k, 0], survey.begin[k, e], int(begin[k, e]))]
            for part in divided[k, e]:
                found.append(self._node(steps, k, e, part, found[-1][2] or int(end[k, e]) or 1, unseen[k, e]))
            return [*found, (0 * starts[k, 0] + 1, survey.end[k, e], int(end[k, e]))]

        for k, e in np.argwhere(end == 0).tolist():
            if (k, e) in divided:
                before = next((x for *_, x in nodes(k, e)[::-1] if x), end[k - 1, e] if follows[k] else begin[k, e])
                after = int(signs_of(steps.beyond(k, e), unseen[k, e]))
                end[k, e] = before if after in (before, 0) else 0
        begin[1:] = np.where(follows[1:, None], end[:-1], begin[1:])
        # If a known sign differs from the sign at the end, the sign has changed, whatever rounding makes of the values.
        near = survey.near | ((begin != 0) & (end != 0) & (begin != end))
        leaving = np.where(near, 0, begin).astype(np.int8)
        row, event = np.nonzero(near)
        pairs = zip(row.tolist(), event.tolist(), strict=True)
        whole = np.fromiter((pair not in divided for pair in pairs), np.bool_, len(row))
        plain, lost = self._crossed(steps, begin, leaving, end, row[whole], event[whole])
        found = [plain]
        for k, e in divided:
            brackets, missing = self._inside(nodes(k, e), starts[:, 0], leaving, k, e)
            found.append(brackets)
            lost += missing
        # Impacts of a motion that begins on a wall, and goes into it.
        into = np.argwhere(near & self._walls & (begin == 0) & (leaving == -1))
        at_once = [Occurrence(k, 0 * starts[k, 0], e, -1, starts[k]) for k, e in into.tolist()]
        joined: Any = tuple(np.concatenate(part) for part in zip(*found, strict=True))
        occurrences = at_once + (self._located(steps, joined, lost) if len(joined[0]) else [])
        return Examined(self._in_order(who, occurrences), begin, leaving, end, frozenset(lost))

    def _crossed(
        self, steps: _Steps, begin: NDArray[np.int8], leaving: NDArray[np.int8], end: NDArray[np.int8],
        row: NDArray[np.intp], event: NDArray[np.intp],
    ) -> tuple[Brackets, list[int]]:  # fmt: skip
        """Changes of sign in steps that need not be divided, and the steps in which the function of a wall is NaN."""
        first, last, old, new = (x[row, event] for x in (steps.survey.begin, steps.survey.end, begin, end))
        nothing = (first != first) | (last != last)
        lost: list[int] = []
        for i in np.flatnonzero(nothing):
            lost += self._no_number(int(row[i]), int(event[i]), steps.t[row[i]])
        leaving[row, event] = np.where(nothing, 0, new)
        # Where a sign was known before, rounding may put the value on the other side.
        k = np.flatnonzero(~nothing & (old != 0) & (new != old))
        old, zero = old[k], 0 * first[k]
        enclosing = np.stack([zero, zero + 1, abs(first[k]) * old, -abs(last[k]) * old], axis=1)
        return (row[k], event[k], enclosing, -old), lost

    def _inside(
        self, nodes: list[tuple[Any, Any, int]], t: NDArray[Any], leaving: NDArray[np.int8], row: int, event: int
    ) -> tuple[Brackets, list[int]]:
        """The changes of sign of one event in a step that is divided."""
        lost: list[int] = []
        found: list[tuple[Any, ...]] = []
        if any(value != value for _, value, _ in nodes):
            lost = self._no_number(row, event, t[row])
        else:
            # A zero inside is a touch, or lies within a change of sign; a zero at the end of the step is such a change.
            signed = [*(node for node in nodes[:-1] if node[2]), nodes[-1]]
            leaving[row, event] = next((sign for *_, sign in nodes[1:] if sign), 0)
            for (x, fx, old), (y, fy, new) in pairwise(signed):
                if new != old:
                    found.append((x, y, abs(fx) * old, -abs(fy) * old, -old))
        table = np.array(found, dtype=t.dtype).reshape(len(found), 5)
        which = np.full((2, len(found)), [[row], [event]])
        return (which[0], which[1], table[:, :4], table[:, 4].astype(np.int8)), lost

    def _no_number(self, row: int, event: int, t: Any) -> list[int]:
        """Warn, once, that an event function is NaN. Return the step if the event is a wall: the run cannot go on."""
        item = self.watch.items[event]
        if event not in self._told:
            self._told.add(event)
            missed = "no events of it are found there" if item.restitution is None else "its wall cannot be seen there"
            _warn(f"the function of event {item.name!r} is not a number near t = {float(t):.6g}: {missed}")
        return [] if item.restitution is None else [row]

    def _divided(self, steps: _Steps) -> dict[tuple[int, int], list[Part]]:
        """For each (step, event), the parts of the step that have a node."""
        survey, starts = steps.survey, steps.starts
        rows = np.flatnonzero((survey.near & survey.turning).any(axis=1))
        if not len(rows):
            return {}
        t, h, columns = starts[rows, 0].astype(float), steps.h[rows].astype(float), self.motion.columns
        begin, end = starts[rows, 1:][:, columns], survey.ends[rows][:, columns]
        together = max(1, MOST_NUMBERS // starts.shape[1])

        def read(some: NDArray[np.intp], tau: NDArray[Any]) -> NDArray[Any]:
            cuts = np.arange(together, len(some), together)
            pieces = zip(np.split(rows[some], cuts), np.split(tau, cuts), strict=True)
            return np.concatenate([steps.flow(which, places)[:, columns] for which, places in pieces])

        curve = through_steps(t, h, begin, end, read)
        wanted = survey.near[rows] & survey.turning[rows]
        found, given_up = parts(self.watch, curve, self.motion.params[steps.who[rows]], wanted)
        for k, event in given_up:
            item = self.watch.items[event]
            if abs(h[k]) > SHORTEST * abs(t[k]) and event not in self._given_up and item.restitution is None:
                self._given_up.add(event)
                _warn(
                    f"the function of event {item.name!r} hardly differs from zero all along near t = {t[k]:.6g}, or "
                    f"has more than {MOST_PARTS // 2} zeros in a step: not all of its events can be found. If the "
                    "motion conserves it, it has none; if it is fast, take shorter steps"
                )
        return {(int(rows[row]), event): some for (row, event), some in found.items()}

    def _unseen(self, steps: _Steps) -> NDArray[Any]:
        """How large the functions of walls may be by rounding alone, (K, events): bodies that stay together without a
        force between them have a distance that is zero up to rounding. Zero for events without a wall.
        """
        if not self._walls.any():
            return np.zeros(steps.survey.end.shape)
        columns, bounds = self.motion.columns, self.watch.bounds
        begin, ends = steps.starts[:, 1:][:, columns].astype(float), steps.survey.ends[:, columns].astype(float)
        t, size = (steps.t + steps.h).astype(float)[:, None], np.maximum(np.abs(begin), np.abs(ends))
        given = [t, ends, self.motion.params[steps.who], UNSEEN * EPS * np.abs(t), UNSEEN * EPS * size]
        radius = loops.evaluate(bounds, np.concatenate(given, axis=1))[:, bounds.output_slice("g_radius")]
        radius = radius * float(self.motion.eps / EPS)
        return np.where(self._walls & np.isfinite(radius), radius, 0.0)

    def _meet(self, steps: _Steps, divided: Mapping[tuple[int, int], Any], end: NDArray[np.int8]) -> None:
        """Set the signs at the ends of steps to zero where a function would be zero after no more than the rounding of
        time: such an event is at the end of the step, and so in a run that ends there. The rate of a function is that
        of the whole step if it only rises or only falls there, else that of a short way beyond the end.
        """
        t, h, survey = steps.t, steps.h, steps.survey
        near = np.minimum(UNSEEN * self.motion.eps * np.maximum(abs(t + h), abs(h)) / abs(h), FURTHER / 2)
        there = (abs(survey.end) <= near[:, None] * abs(survey.end - survey.begin)) | self._monotone
        met = survey.near & (end == signs_of(survey.begin)) & there
        for k, e in divided:
            last = survey.end[k, e]
            ahead = steps.beyond(k, e) - last
            met[k, e] = last * ahead < 0 and abs(last) * BEYOND <= near[k] * abs(ahead)
        end[met] = 0

    def _node(
        self, steps: _Steps, row: int, event: int, part: Part, sign: int, unseen: Any
    ) -> tuple[Any, Any, int]:  # fmt: skip
        """The node in a part of a step: place, value and sign.

        If the sign is not certain, the node is the place where the event function, which has this sign before, comes
        nearest to zero, or passes zero.
        """
        begin, nearest, last, certain = part
        zero = 0 * steps.t[row]
        if certain is not None:
            return zero + nearest, zero + certain, 1 if certain > 0 else -1

        def at(tau: Any) -> Any:
            return sign * steps.value(row, event, tau) + unseen

        tau, value = lowest(at, zero + begin, zero + nearest, zero + last, self.motion.eps)
        value = sign * (value - unseen)
        return tau, value, int(signs_of(value, unseen))

    def _located(self, steps: _Steps, brackets: Brackets, unsolved: list[int]) -> list[Occurrence]:
        """The events between these places."""
        row, event, enclosing, direction = brackets
        starts, h = steps.starts[row], steps.h[row]
        tau, value, states = self.motion.crossings(steps.who[row], event, starts, h, enclosing)
        failed = (states != states).any(axis=1)
        nothing = ~failed & (value != value)
        pole = ~failed & ~nothing & (abs(value) > GROWS * abs(enclosing[:, 2:]).max(axis=1))
        times = starts[:, 0] + tau * h
        for k in np.flatnonzero(failed | nothing | pole):
            if failed[k]:
                unsolved.append(int(row[k]))
            elif nothing[k]:
                unsolved += self._no_number(int(row[k]), int(event[k]), times[k])
            else:
                _warn(
                    f"the function of event {self.watch.items[event[k]].name!r} changes its sign near t = "
                    f"{float(times[k]):.6g} without a zero: it has a pole there, which is no event. Write g without "
                    "the pole, as its numerator alone"
                )
        right = np.flatnonzero(~(failed | nothing | pole))
        table = np.concatenate([times[:, None], states], axis=1)[right]
        return [
            *map(Occurrence, row[right].tolist(), tau[right], event[right].tolist(), direction[right].tolist(), table)
        ]

    def _in_order(self, who: NDArray[np.intp], occurrences: list[Occurrence]) -> list[Occurrence]:
        """At one time impacts come first, since they throw back functions that touch zero there; ends come last. The
        end of a paced run comes after what happens at the same time, up to rounding.
        """
        items = self.watch.items
        order = [0 if item.restitution is not None else 2 if item.stop else 1 for item in items]
        occurrences.sort(key=lambda one: (one.row, one.tau, order[one.event], one.event))
        last = len(items) - 1
        for end in [one for one in occurrences if items[-1].monotone and one.event == last]:
            k = occurrences.index(end)
            near = UNSEEN * self.motion.eps * abs(self.motion.params[who[end.row], -1])
            after = k + 1
            while after < len(occurrences) and occurrences[after].row == end.row:
                other = occurrences[after].at
                value = self.motion.values(who[[end.row]], other[:1], other[None, 1:])[0, last]
                if abs(value) > near:
                    break
                after += 1
            occurrences = [*occurrences[:k], *occurrences[k + 1 : after], end, *occurrences[after:]]
        return occurrences


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=3)


def signs_of(values: NDArray[Any], unseen: Any = 0) -> NDArray[np.int8]:
    """+1, −1 or, for values that are no larger than what is unseen, 0."""
    return np.asarray(values > unseen).astype(np.int8) - np.asarray(values < -unseen).astype(np.int8)


def lowest(f: Callable[[Any], Any], a: Any, x: Any, b: Any, eps: Any) -> tuple[Any, Any]:
    """The first place found between a and b where f is negative, or else the place where f is least; and the value of f
    there. The search begins at x, goes by golden sections, and ends at √ε: a minimum is known to half the digits of its
    value.
    """
    near, fx = eps ** (eps**0 / 2), f(x)
    while fx >= 0 and b - a > near * (1 + abs(x)):
        u = x + GOLDEN * (b - x) if b - x > x - a else x - GOLDEN * (x - a)
        fu = f(u)
        if fu != fu:
            break
        if fu <= fx:
            a, b = (x, b) if u >= x else (a, x)
            x, fx = u, fu
        else:
            a, b = (a, u) if u > x else (u, b)
    return x, fx
