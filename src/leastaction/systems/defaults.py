"""What a system answers a run (`protocol`), unless it has another answer: where the time stands, why a step failed, …

Steps are equal in time, and the rows of a run are (t, q, p). With a pace (`systems.pace`) they are equal in s: the rows
are (s, q, p), the last number of q or of p is the time, and the last number of the other is E or −E.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from leastaction.kernel import fingerprint
from leastaction.methods import Method
from leastaction.program import Program
from leastaction.step.status import (
    BRANCH,
    EVENT,
    ITERATION,
    NOT_CONVERGED,
    NOT_FINITE,
    PREDICTION,
    SINGULAR,
    Failure,
)

if TYPE_CHECKING:
    from leastaction.engine.run import Engine

FloatArray = NDArray[np.float64]


_REASONS = {
    PREDICTION: "the state at its start has no velocity, so that the step has nothing to begin with",
    ITERATION: "Newton's iteration did not converge",
    BRANCH: "no solution of this size of step is connected with the motion",
    EVENT: "an event in it could not be located, since a shorter step from its start could not be solved",
}
_NUMBERS = {
    NOT_FINITE: "the Lagrangian or a derivative became infinite or not a number",
    SINGULAR: "the equations became singular",
}
_ADVICE = {
    PREDICTION: "L must be regular in its velocities wherever the motion goes: stop before, with an event",
    ITERATION: "Try a smaller step, h = {h:g}, or a method with more nodes; near a singularity of L (a collision, a "
    "chart's pole) other coordinates help",
    BRANCH: "Try a smaller step, h = {h:g}, or a method with more nodes, since this step is too coarse for its forces; "
    "near a singularity of L (a collision, a chart's pole) other coordinates help",
    EVENT: "Try a smaller step, h = {h:g}, or leave out the event and look for it between the stored states",
}


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


class Usual:
    """A system in time, of which nothing is known before a run."""

    n: int
    names: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    constraints: Program | None = None
    inputs: Mapping[str, tuple[int, ...]] = MappingProxyType({})  # nothing drives the system from outside

    @cached_property
    def clock(self) -> Clock:
        """Where the time stands in a run."""
        return Clock("t", self.n)

    @property
    def has_tangent(self) -> bool:
        """Whether a run can carry the derivatives of its states: it can."""
        return True

    def expanded(self) -> Any:
        """The system without sums over rows: itself."""
        return self

    @property
    def in_time(self) -> Any:
        """The system whose motion in time this is: itself."""
        return self

    @property
    def digest(self) -> str | None:
        """None: copies of the system have no code to share."""
        return None

    def longest_step(self, t0: float) -> float | None:
        """None: the system has no kinks in time."""
        return None

    @property
    def mass_varies_with_position(self) -> bool:
        """No, as for what it is asked: whether charts have poles."""
        return False

    def engine(self, method: Method, width: int = 1, energy: bool = False, varied: int = 0) -> Engine | None:
        """None: no native function of a whole run steps this system."""
        return None

    def explain(self, failure: Failure, h: float) -> tuple[str, str]:
        """Why a step that failed so could not be done, and what to try; h is a smaller step."""
        reason = _REASONS[failure.stage]
        if failure.stage == ITERATION and failure.status != NOT_CONVERGED:
            reason = _NUMBERS.get(failure.status, reason)
        return reason, _ADVICE[failure.stage].format(h=h)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that a file has beside the header: none."""
        return {}

    def machine(self) -> str:
        """The facts about the machine that decide the last bits of a run in float64."""
        return fingerprint()
