"""How much time is left for pilots: an advice is to take no longer than the run that it chooses, and a second.

Two clocks run. `spent` are the seconds of the processor that pilots took; `loading` those in which members got their
machine code, from the cache or from the compiler. A member that has not run before may have to be compiled: for as long
as others took, or for longer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

PATIENCE = 0.7  # seconds of all pilots beside those of the best run found: then no further pilot is run
SOON = 1.0  # seconds of all that was run and loaded: then no further member is loaded only to carry derivatives
WITH_A_PACE = 3.0  # times as long as without it takes it to compile a member with a pace
OFTEN_RUN = 50.0  # code has to pay after so many runs


@dataclass
class Budget:
    """The seconds that pilots took, and those in which each member, with each pace, was loaded; and by the degree of a
    member the seconds that it may take to compile it, and whether its code is its own where others share loops.
    """

    compiling: Callable[[int], float]
    own_code: Callable[[int], bool]
    spent: float = 0.0
    loads: dict[tuple[int, int], float] = field(default_factory=dict)

    @property
    def loading(self) -> float:
        return sum(self.loads.values())

    def loaded(self, s: int, pace: Any) -> bool:
        """Whether a member has run before with this pace."""
        return (s, id(pace)) in self.loads

    def degrees(self, pace: Any) -> list[int]:
        """The degrees of the members that have run before with this pace."""
        return sorted(s for s, place in self.loads if place == id(pace))

    def expected(self, s: int, pace: Any) -> float:
        """The seconds to load a member that has not run before with this pace."""
        compiling = self.compiling(s) * (1.0 if pace is None else WITH_A_PACE)
        return max(compiling, s * self.loading / max(1, sum(degree for degree, _ in self.loads)))

    def allows(self, best: float, seconds: float) -> bool:
        """Whether there is time left for a pilot that takes so long, if the best run found so far takes `best`."""
        return self.spent + seconds <= PATIENCE + best

    def allows_loading(self, s: int, pace: Any, best: float) -> bool:
        """Whether there is time left to load a member. All time until now counts; and the code has to pay."""
        loading = self.expected(s, pace)
        return self.spent + self.loading + loading <= PATIENCE + best and loading <= OFTEN_RUN * best

    def _longer(self, s: int, pace: Any) -> float:
        """The seconds by which an advice takes longer than its run if it loads a member: none where the others share
        loops and this one has quicker code of its own, since the run that will be chosen has to compile it, too.
        """
        alone = self.own_code(s) and not any(map(self.own_code, self.degrees(pace)))
        return 0.0 if alone else self.expected(s, pace)

    def easy(self, s: int) -> float:
        """The seconds of a run with equal steps that are too few for a pace to pay: less than it took to load members,
        or less than pays for the code of this member with a pace after many runs.
        """
        return max(self.loading, WITH_A_PACE * self.compiling(s) / OFTEN_RUN)

    def at_hand(self, s: int, pace: Any) -> int:
        """This degree, if its member has run before or can be loaded SOON; else the next higher one that has run."""
        if self.loaded(s, pace) or self.spent + self.loading + self._longer(s, pace) <= SOON:
            return s
        return min((degree for degree in self.degrees(pace) if degree > s), default=s)
