"""Any precision: the same Programs, tables and equations on flint numbers.

arithmetic   flint's numbers and precision, to and from mpmath
evaluate     a Program → a Python function on them
mechanics    momentum, velocity, energy, acceleration
equations    the discrete equations of a step as matrix products
newton       their solution
steppers     runs in the making
linear       Quadratic systems: one matrix, applied again and again
"""

from __future__ import annotations

from typing import Any

from leastaction.exact import Digits
from leastaction.lagrangian import Lagrangian
from leastaction.linear import Quadratic
from leastaction.precision.linear import LinearMechanics
from leastaction.precision.mechanics import Mechanics
from leastaction.precision.steppers import stepper

__all__ = ["LinearMechanics", "Mechanics", "mechanics", "stepper"]


def mechanics(system: Lagrangian | Quadratic, values: Any, reals: Digits) -> Mechanics | LinearMechanics:
    """A system at one precision, with the values of its parameters as mpmath numbers."""
    if isinstance(system, Quadratic):
        return LinearMechanics(system, reals)
    return Mechanics(system, values, reals)
