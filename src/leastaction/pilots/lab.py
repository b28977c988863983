"""Pilot runs: each is done once, and its time is counted; and how much time is left for more of them.

Two clocks run. `spent` are the seconds of the processor that pilots took; `loading` those in which members got their
machine code, from the cache or from the compiler. A member that has not run before may have to be compiled: for as
long as others took, or for longer.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import StepFailed
from leastaction.pilots.asked import Asked, member

FloatArray = NDArray[np.float64]

LONGEST = 1000  # steps 2/ω of a pilot
MOST = 40 * LONGEST  # steps of a pilot run: a run that needs more is given up
PATIENCE = 0.7  # seconds of all pilots, or the time of the best run found, if longer: then no more members are measured
COMPILING, OFTEN_RUN = 0.05, 50.0  # seconds to compile a member, over its degree; they have to pay after so many runs
SOON = 1.0  # seconds of all that was run and loaded: then no further member is loaded only to carry derivatives
LONG = 0.05  # seconds of the best run found: then a member that has run before is measured in any case
LONG_ENOUGH = 5e-3  # seconds that are measured once; shorter times twice
STRAINED = 1 / 8  # the part of a pilot's steps that needs continuation
LAST = 2**40  # as `every`: only the last state is stored
FAILING = (StepFailed, ArithmeticError, np.linalg.LinAlgError)  # what a pilot may end with


@dataclass(frozen=True, eq=False)
class Pilot:
    """One short run: its end, its length in t, or in s with a pace, and its cost. Strained: some steps of it needed
    continuation, which is a hundred times as dear, so that shorter steps may cost less.
    """

    s: int
    h: float
    state: FloatArray
    steps: int
    length: float
    seconds: float
    strained: bool

    def longer(self, whole: float) -> float:
        """How many times as long as this one a run of this length is, at least once."""
        return max(1.0, whole / self.length)


class Lab:
    """Pilot runs of one motion until `t_end`, each at most once."""

    def __init__(self, asked: Asked, t_end: float, before: Lab | None = None) -> None:
        self.asked, self.t_end = asked, t_end
        self._known: dict[Any, Pilot | None] = {} if before is None or before.t_end != t_end else before._known
        # Members and paces that have run before, and what each costs at least.
        self._warm: set[Any] = set() if before is None else before._warm
        self._fixed: dict[Any, float] = {} if before is None else before._fixed
        # The latest pilot with each member and pace, until whatever end.
        self.latest: dict[Any, Pilot] = {} if before is None else before.latest
        # How far each pace leads (`reach`).
        self.reaches: dict[Any, Any] = {} if before is None or before.t_end != t_end else before.reaches
        self.strained: bool = False if before is None else before.strained  # whether the first steps of a pilot were
        self.spent: float = 0.0 if before is None else before.spent
        self.loading: float = 0.0 if before is None else before.loading

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
        if pace is None and self.length > MOST * h:
            return None
        try:
            path, spent = self.timed(s, h, self.t_end, pace)
        except FAILING:
            return None
        return self.noted(s, h, pace, path, spent)

    def coarsest(self, s: int, pace: Any) -> float:
        """The longest steps of a member that have led to the end without strain."""
        known = [one for (degree, _, place), one in self._known.items() if degree == s and place == id(pace)]
        return max((one.h for one in known if one is not None and not one.strained), default=0.0)

    def noted(self, s: int, h: float, pace: Any, path: Any, spent: float) -> Pilot | None:
        """A run as a pilot; None if it has not come to the end, or has no numbers there."""
        state, steps = np.concatenate([path.q[-1], path.p[-1]]), int(path.stats["steps"])
        length = abs(float((path if path.pace is None else path.pace).t[-1]) - (self.asked.t0 if pace is None else 0.0))
        if abs(path.t[-1] - self.t_end) > 1e-9 * self.length or not np.isfinite(state).all():
            return None
        found = Pilot(s, h, state, steps, length, spent, path.stats.get("continued", 0) >= STRAINED * steps)
        self._known[_key(s, h, pace)] = self.latest[s, id(pace)] = found
        return found

    def timed(
        self, s: int, h: float, t_end: float, pace: Any, every: int = LAST, tangent: bool = False, most: int = MOST
    ) -> tuple[Any, float]:
        """A run, and all seconds of the processor that the run took, without those in which code was loaded."""
        self._load(s, pace)
        return self._clocked(s, h, t_end, pace, every, tangent, most)

    def _clocked(self, s: int, h: float, t_end: float, pace: Any, *options: Any) -> tuple[Any, float]:
        before = self.spent
        path = self.counted(self.asked.run, member(s), self.signed(h), t_end, pace, *options)
        return path, self.spent - before

    def counted(self, run: Any, *given: Any) -> Any:
        """Another run, whose time counts."""
        clock = time.thread_time()
        try:
            return run(*given)
        finally:
            self.spent += time.thread_time() - clock

    def _load(self, s: int, pace: Any) -> None:
        """Once, a run of the shortest step: it compiles or loads code, which is not counted as time of pilots."""
        if not self.loaded(s, pace):
            self._warm.add((s, id(pace)))
            before = self.spent
            try:
                self._shortest(s, pace)
            finally:
                self.loading += self.spent - before
                self.spent = before

    def _shortest(self, s: int, pace: Any) -> float:
        """The seconds of a run of the shortest step."""
        h = 1e-3 * min(1.0 / self.asked.omega, self.length)
        return self._clocked(s, h, self.asked.t0 + self.signed(h), pace, LAST, False, MOST)[1]

    def loaded(self, s: int, pace: Any) -> bool:
        """Whether a member has run before with this pace."""
        return (s, id(pace)) in self._warm

    def patient(self, s: int, pace: Any, best: float) -> bool:
        """Whether there is time left to measure a member, if the best run found so far takes this long. A member that
        has not run before may first have to be compiled, so that the time until now counts as a whole.
        """
        if math.isinf(best) or self.loaded(s, pace):
            return self.spent <= max(PATIENCE, best) or LONG < best < math.inf
        loading = self._expected(s)
        return self.spent + self.loading + loading <= max(PATIENCE, best) and loading <= OFTEN_RUN * best

    def _expected(self, s: int) -> float:
        """The seconds to load a member that has not run before."""
        return s * max(COMPILING, self.loading / max(1, sum(degree for degree, _ in self._warm)))

    def at_hand(self, s: int, pace: Any) -> int:
        """This degree, if its member has run before or can be loaded SOON; else the next higher one that has run."""
        if self.loaded(s, pace) or self.spent + self.loading + self._expected(s) <= SOON:
            return s
        return min((degree for degree, place in self._warm if place == id(pace) and degree > s), default=s)

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
        """The seconds of a run that is `longer` times as long as this pilot."""
        fixed = min(self.fixed(one.s, pace), one.seconds)
        return fixed + (one.seconds - fixed) * longer


def _key(s: int, h: float, pace: Any) -> tuple[Any, ...]:
    return s, round(h, 12 - math.floor(math.log10(h))), id(pace)


def off(one: Pilot, known: Pilot, scale: FloatArray) -> float:
    """How much two ends differ, each of the 2n numbers on its scale."""
    return float(np.abs((one.state - known.state) / scale).max())


def apart(one: Pilot, other: Pilot) -> float:
    """How much two ends differ, relative to the largest number of the state."""
    return float(np.abs(one.state - other.state).max() / np.maximum(np.abs(one.state).max(), 1e-300))
