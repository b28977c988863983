"""A run whose method, step and pace are asked for, and the members of the family that may be chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MEMBERS = (2, 3, 4, 6, 8, 12)  # degrees s of PsNsQ2sGau
HIGHEST = 8  # degree that finds the answer …
FEWEST_UNKNOWNS, MOST_UNKNOWNS = 40, 120  # … of a step with constraints: below, its code takes long to compile

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
        dense matrix; steps with few unknowns have machine code of their own, others share loops.
        """
        if not self.held:
            return HIGHEST
        fit = [s for s in MEMBERS if (self.n + self.held) * s <= MOST_UNKNOWNS] or [MEMBERS[1]]
        high = [s for s in fit if s >= HIGHEST and (self.n + self.held) * s > FEWEST_UNKNOWNS]
        return min(high, default=max(fit))


def member(s: int) -> str:
    return f"P{s}N{s}Q{2 * s}Gau"
