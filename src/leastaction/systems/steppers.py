"""Which backend computes the steps of one trajectory: the system's own in float64, or flint at more digits."""

from __future__ import annotations

from typing import Any

from leastaction.backends.rows import Row
from leastaction.backends.stepper import Start, Stepper
from leastaction.methods import Method
from leastaction.numbers.rounding import Digits, Reals
from leastaction.systems.protocol import System


def mechanics(system: System, values: Any, reals: Reals) -> Any:
    """momentum, velocity and energy of a system in this arithmetic: in float64 the system itself."""
    if not isinstance(reals, Digits):
        return system
    from leastaction import flint

    return flint.mechanics(system, values, reals)


def stepper(system: System, method: Method, start: Start, row: Row | None = None, at: Any = None) -> Stepper:
    """The stepper of one trajectory; `at` is what `mechanics` gives. `System.check_stable` checks h."""
    if at is not None and at is not system:
        from leastaction import flint

        return flint.stepper(at, method, start, row)
    return system.stepper(method, start, row)
