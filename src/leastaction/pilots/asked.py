"""A run whose method, step and pace are asked for, and the members of the family that may be chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MEMBERS = (2, 3, 4, 6, 8, 12)  # degrees s of PsNsQ2sGau
HIGHEST = 8  # degree that finds the answer …
OWN_CODE, OWN = 28, 4  # unknowns of a step with constraints that has machine code of its own, about; the degree there …
SHARED, MOST_UNKNOWNS = 6, 120  # … and where steps share loops, if a step has no more unknowns
COMPILING, COMPILING_OWN = 0.05, 0.4  # seconds to compile a member, over its degree; with such code of its own

Run = Callable[..., Any]  # (method, h, t_end, pace, every, tangent, most) ↦ Path


@dataclass(frozen=True, eq=False)
class Asked:
    """A run to be advised: the function that runs it, t0 and t_end, and facts about the system at the start.

    run     (method, h, t_end, pace, every, tangent, most) ↦ Path
    paces   that may be tried, None first
    linear  whether errors are known to grow like t, as where the equations are linear
    held    constraints
    near    where runs carry no derivatives: (step, method, h, t_end, every) ↦ Path that begins a small step beside
    omega   the largest frequency or growth rate at the start; at least one over the length of the run
    """

    run: Run
    name: str
    n: int
    t0: float
    t_end: float
    paces: tuple[Any, ...]
    linear: bool
    held: int = 0
    omega: float = 0.0
    near: Run | None = None

    @property
    def length(self) -> float:
        return abs(self.t_end - self.t0)

    @property
    def reference(self) -> int:
        """The degree of the member that finds the answer. Where constraints hold, each step is solved by Newton with a
        dense matrix: steps of high degree are dear, and if they have machine code of their own, it takes long to
        compile. So a first advice has time for one member alone, which must be one that is worth to be chosen.
        """
        if not self.held:
            return HIGHEST
        if self.own_code(OWN):
            return OWN
        return max((s for s in MEMBERS if s <= SHARED and self._unknowns(s) <= MOST_UNKNOWNS), default=MEMBERS[1])

    def scouting(self, cheap: int) -> int:
        """The degree of the member that finds a first step: this cheap one, which is measured anyway, where constraints
        hold and steps share loops, since long steps are continued there by Newton's iteration with dense matrices; else
        that of the answer, since each further member has code of its own.
        """
        return cheap if self.held and not self.own_code(cheap) else self.reference

    def compiling(self, s: int) -> float:
        """The seconds that it may take to compile a member, at least."""
        return s * (COMPILING_OWN if self.own_code(s) else COMPILING)

    def own_code(self, s: int) -> bool:
        """Whether steps of this degree have machine code of their own, and others where constraints hold have not."""
        return self.held > 0 and self._unknowns(s) <= OWN_CODE

    def _unknowns(self, s: int) -> int:
        return s * (self.n + self.held)


def member(s: int) -> str:
    return f"P{s}N{s}Q{2 * s}Gau"
