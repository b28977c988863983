"""Where the time of a motion stands in a run.

Steps are equal in time, and the rows of a run are (t, q, p). With a pace (`systems.pace`) they are equal in s: the rows
are (s, q, p), the last number of q or of p is the time, and the last number of the other is E or −E.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Clock:
    """Where the time stands in the rows of a system of n coordinates.

    block    the part of the row in which it is: "t"; or "q" or "p", whose last number it is
    """

    block: Literal["t", "q", "p"]
    n: int

    @property
    def steady(self) -> bool:
        """Whether equal steps are steps of equal time."""
        return self.block == "t"

    @property
    def place(self) -> int:
        """Which number of a row (t, q, p) is the time."""
        return {"t": 0, "q": self.n, "p": 2 * self.n}[self.block]

    def times(self, t: Any, states: NDArray[Any]) -> Any:
        """The times of states (…, 2n) in rows that begin with t."""
        return t if self.steady else states[..., self.place - 1]

    def motion(self, states: NDArray[Any]) -> NDArray[Any]:
        """(q, p) of the motion in time: states (…, 2n) without time and energy."""
        if self.steady:
            return states
        return np.concatenate([states[..., : self.n - 1], states[..., self.n : 2 * self.n - 1]], axis=-1)
