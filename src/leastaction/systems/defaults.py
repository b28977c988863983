"""What a system answers a run (`protocol`), unless it has another answer."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.methods import Method, RungeKutta4
from leastaction.program import Program
from leastaction.systems.clock import Clock

if TYPE_CHECKING:
    from leastaction.linear.choice import Choice

FloatArray = NDArray[np.float64]


class Usual:
    """A system in time, of which nothing is known before a run."""

    n: int
    names: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    constraints: Program | None = None

    @cached_property
    def clock(self) -> Clock:
        """Where the time stands in a run."""
        return Clock("t", self.n)

    @property
    def has_tangent(self) -> bool:
        """Whether a run can carry the derivatives of its states: it can."""
        return True

    @property
    def in_time(self) -> Any:
        """The system whose motion in time this is: itself."""
        return self

    @property
    def digest(self) -> str | None:
        """None: copies of the system have no code to share."""
        return None

    def chosen(self, q: FloatArray, p: FloatArray, t0: float, t_end: float, tol: float) -> Choice | None:
        """None: no formula gives the error of a run."""
        return None

    def check_span(self, t0: float, t_end: float) -> None:
        """Accept all times: the system is known at all times."""

    def check_stable(self, method: Method, h: float) -> None:
        """Accept all steps: whether a step is stable is not known before the run."""

    def rk4(self, method: RungeKutta4) -> Program | None:
        """None: a step of RK4 is not written as a Program."""
        return None
