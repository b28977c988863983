"""Which backend computes the steps of one trajectory: by the arithmetic, and by the kind of system."""

from __future__ import annotations

from typing import Any

from leastaction.backends import stepper as native
from leastaction.backends.rows import Row
from leastaction.backends.stepper import Start, Stepper
from leastaction.linear import Quadratic
from leastaction.linear.guard import require_stable
from leastaction.linear.stepper import LinearStepper
from leastaction.methods import Method
from leastaction.numbers.rounding import Digits, Reals
from leastaction.systems.lagrangian import Lagrangian
from leastaction.systems.protocol import System
from leastaction.systems.sums import Sum


def mechanics(system: System, values: Any, reals: Reals) -> Any:
    """momentum, velocity and energy of a system in this arithmetic: in float64 the system itself."""
    if not isinstance(reals, Digits):
        return system
    from leastaction.backends import flint

    return flint.mechanics(system, values, reals)


def stepper(system: System, method: Method, start: Start, row: Row | None = None, at: Any = None) -> Stepper:
    """The stepper of one trajectory; `at` is what `mechanics` gives. `check_stable` checks whether h is stable."""
    if at is not None and at is not system:
        from leastaction.backends import flint

        return flint.stepper(at, method, start, row)
    if isinstance(system, Quadratic):
        return LinearStepper(system, method, start, row)
    assert isinstance(system, Lagrangian | Sum)
    return native.stepper(system, method, start, row)


def check_stable(system: System, method: Method, h: Any) -> None:
    """Refuse a step that is too large for the highest frequency of a linear system."""
    if isinstance(system, Quadratic):
        require_stable(system.propagator(method, float(h)))
