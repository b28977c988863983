"""A run whose method, step and pace are asked for, and the members of the family that may be chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MEMBERS = (2, 3, 4, 6, 8, 12)  # degrees s of PsNsQ2sGau
HIGHEST = 8  # degree that finds the answer …
HELD, MOST_UNKNOWNS = 6, 108  # … and where constraints hold: at most this one, with at most so many unknowns of a step

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
        dense matrix, and code for high degrees takes long to compile.
        """
        if not self.held:
            return HIGHEST
        return max((s for s in MEMBERS if s <= HELD and (self.n + self.held) * s <= MOST_UNKNOWNS), default=MEMBERS[1])


def member(s: int) -> str:
    return f"P{s}N{s}Q{2 * s}Gau"
