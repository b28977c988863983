"""Pilot runs: each is done once, and its time is counted."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import StepFailed
from leastaction.pilots.asked import Asked, member
from leastaction.pilots.budget import Budget

FloatArray = NDArray[np.float64]

LONGEST = 1000  # steps 2/ω of a pilot
MOST = 40 * LONGEST  # steps of a pilot run: a run that needs more is given up, …
MOST_SECONDS = 3.0  # … and so is one that would take longer
ROOM = 1.05  # with a pace steps half as long may be a little more than twice as many
LONGER = 1.25  # times as long are steps that may be tried where MOST steps have not led to the end
LONG_ENOUGH = 5e-3  # seconds that are measured once; shorter times twice
STRAINED_PART = 1 / 8  # of a pilot's steps, that needs continuation: shorter steps may cost less
TAUT_PART = 1 / 400  # of a pilot's steps, at least two: a quarter of its time, so that longer steps cost no less
ENOUGH = 64  # steps that tell how long one takes
MANY = 640  # steps that take half of the time of their run, at least
LAST = 2**40  # as `every`: only the last state is stored
FAILING = (StepFailed, ArithmeticError, np.linalg.LinAlgError)  # what a pilot may end with


@dataclass(frozen=True, eq=False)
class Pilot:
    """One short run: its end, its length in t, or in s with a pace, and its cost. Steps that need continuation are a
    hundred times as dear as others.
    """

    s: int
    h: float
    state: FloatArray
    steps: int
    length: float
    seconds: float
    continued: int

    @property
    def strained(self) -> bool:
        """Whether so many steps needed continuation that shorter steps may cost less."""
        return self.continued >= STRAINED_PART * self.steps

    @property
    def taut(self) -> bool:
        """Whether so many steps needed continuation that longer steps, which need more of it, cost no less. The first
        step often needs it.
        """
        return self.continued > max(1, TAUT_PART * self.steps)

    def longer(self, whole: float) -> float:
        """How many times as long as this one a run of this length is, at least once."""
        return max(1.0, whole / self.length)


class Lab:
    """Pilot runs of one motion until `t_end`, each at most once."""

    def __init__(self, asked: Asked, t_end: float, before: Lab | None = None) -> None:
        self.asked, self.t_end = asked, t_end
        self._known: dict[Any, Pilot | None] = {} if before is None or before.t_end != t_end else before._known
        self.budget: Budget = Budget(asked.compiling, asked.own_code) if before is None else before.budget
        # What each member costs at least with each pace.
        self._fixed: dict[Any, float] = {} if before is None else before._fixed
        # The longest steps of which MOST do not lead to the end, with each pace.
        self._exhausted: dict[int, float] = {} if before is None or before.t_end != t_end else before._exhausted
        # The latest pilot with each member and pace, until whatever end.
        self.latest: dict[Any, Pilot] = {} if before is None else before.latest
        # The seconds of a step of each member with each pace.
        self.each: dict[Any, float] = {} if before is None else before.each
        # The latest time, after the start, at which a step could not be solved.
        self.failed: float = 0.0 if before is None else before.failed
        # How far each pace leads (`reach`).
        self.reaches: dict[Any, Any] = {} if before is None or before.t_end != t_end else before.reaches
        self.strained: bool = False if before is None else before.strained  # whether the first steps of a pilot were

    @property
    def length(self) -> float:
        return abs(self.t_end - self.asked.t0)

    def signed(self, h: float) -> float:
        return math.copysign(h, self.t_end - self.asked.t0)

    def pilot(self, s: int, h: float, pace: Any) -> Pilot | None:
        """The end of a run; None if a step cannot be solved."""
        key = _key(s, h, pace)
        if key not in self._known:
            self._known[key] = self._run(s, h, pace)
        return self._known[key]

    def _run(self, s: int, h: float, pace: Any) -> Pilot | None:
        if h < (1 - 1e-9) * self.shortest(pace):
            return None
        try:
            path, spent = self.timed(s, h, self.t_end, pace)
        except FAILING:
            return None
        return self.noted(s, h, pace, path, spent)

    def shortest(self, pace: Any) -> float:
        """The shortest steps that may be tried: MOST of shorter ones, or as many as can be done in MOST_SECONDS, do not
        lead to the end.
        """
        if pace is None:
            return self.length * max(1 / MOST, self.each.get((self.asked.reference, id(pace)), 0.0) / MOST_SECONDS)
        known = [
            ROOM * one.h * one.steps / MOST for (*_, place), one in self._known.items() if one and place == id(pace)
        ]
        return max(min(known, default=0.0), LONGER * self._exhausted.get(id(pace), 0.0))

    def done(self, s: int, h: float, pace: Any) -> bool:
        """Whether a pilot has been run, so that it costs no more time."""
        return _key(s, h, pace) in self._known

    def known(self, s: int, pace: Any) -> list[Pilot]:
        """The pilots of a member that have led to the end, the longest steps first."""
        found = [one for (degree, _, place), one in self._known.items() if degree == s and place == id(pace)]
        return sorted((one for one in found if one is not None), key=lambda one: -one.h)

    def coarsest(self, s: int, pace: Any) -> float:
        """The longest steps of a member that have led to the end without strain."""
        return max((one.h for one in self.known(s, pace) if not one.strained), default=0.0)

    def noted(self, s: int, h: float, pace: Any, path: Any, spent: float) -> Pilot | None:
        """A run as a pilot; None if it has not come to the end, or has no numbers there."""
        state, steps = np.concatenate([path.q[-1], path.p[-1]]), int(path.stats["steps"])
        length = abs(float((path if path.pace is None else path.pace).t[-1]) - (self.asked.t0 if pace is None else 0.0))
        if abs(path.t[-1] - self.t_end) > 1e-9 * self.length:
            if steps >= MOST:
                self._exhausted[id(pace)] = max(h, self._exhausted.get(id(pace), 0.0))
            return None
        if not np.isfinite(state).all():
            return None
        found = Pilot(s, h, state, steps, length, spent, int(path.stats.get("continued", 0)))
        self._known[_key(s, h, pace)] = self.latest[s, id(pace)] = found
        if steps >= ENOUGH:
            self.each[s, id(pace)] = spent / steps
        return found

    def timed(
        self, s: int, h: float, t_end: float, pace: Any, every: int = LAST, tangent: bool = False, most: int = MOST
    ) -> tuple[Any, float]:
        """A run, and all seconds of the processor that the run took, without those in which code was loaded."""
        self._load(s, pace)
        return self._clocked(s, h, t_end, pace, every, tangent, most)

    def _clocked(self, s: int, h: float, t_end: float, pace: Any, *options: Any) -> tuple[Any, float]:
        before = self.budget.spent
        path = self.counted(self.asked.run, member(s), self.signed(h), t_end, pace, *options)
        return path, self.budget.spent - before

    def counted(self, run: Any, *given: Any) -> Any:
        """Another run, whose time counts."""
        clock = time.thread_time()
        try:
            return run(*given)
        except StepFailed as failure:
            if failure.path.pace is None:
                self.failed = max(self.failed, abs(failure.time - self.asked.t0))
            raise
        finally:
            self.budget.spent += time.thread_time() - clock

    def _load(self, s: int, pace: Any) -> None:
        """Once, a run of the shortest step: it compiles or loads code, which is not counted as time of pilots."""
        if not self.budget.loaded(s, pace):
            before = self.budget.spent
            try:
                self._shortest(s, pace)
            finally:
                self.budget.loads[s, id(pace)] = self.budget.spent - before
                self.budget.spent = before

    def _shortest(self, s: int, pace: Any) -> float:
        """The seconds of a run of the shortest step."""
        h = 1e-3 * min(1.0 / self.asked.omega, self.length)
        return self._clocked(s, h, self.asked.t0 + self.signed(h), pace, LAST, False, MOST)[1]

    def fixed(self, s: int, pace: Any) -> float:
        """The seconds that even the shortest run takes: to prepare the run, to find its first step, and to hand back
        its path.
        """
        if (s, pace) not in self._fixed:
            try:
                self._load(s, pace)
                first = self._shortest(s, pace)
                self._fixed[s, pace] = first if first > LONG_ENOUGH else min(first, self._shortest(s, pace))
            except FAILING:
                self._fixed[s, pace] = 0.0
        return self._fixed[s, pace]

    def seconds(self, pace: Any, one: Pilot, longer: float) -> float:
        """The seconds of a run that is `longer` times as long as this pilot. Of many steps it is certain that they take
        time, though clocks may say that the shortest run took as long.
        """
        fixed = min(self.fixed(one.s, pace), one.seconds / (2 if one.steps > MANY else 1))
        return fixed + (one.seconds - fixed) * longer


def _key(s: int, h: float, pace: Any) -> tuple[Any, ...]:
    return s, round(h, 12 - math.floor(math.log10(h))), id(pace)


def off(one: Pilot, known: Pilot, scale: FloatArray) -> float:
    """How much two ends differ, each of the 2n numbers on its scale."""
    return float(np.abs((one.state - known.state) / scale).max())


def apart(one: Pilot, other: Pilot) -> float:
    """How much two ends differ, relative to the largest number of the state."""
    return float(np.abs(one.state - other.state).max() / np.maximum(np.abs(one.state).max(), 1e-300))
