"""Any precision: the same Programs, tables and equations on flint numbers.

arithmetic   flint's numbers and precision, to and from mpmath
evaluate     a Program → a Python function on them
mechanics    momentum, velocity, energy, acceleration
sweep        the equations of a Step as matrix products
verdict      the verdict on an iteration
iteration    their solution by Newton
prediction   where the next step's iteration begins
run          steps one after the other
galerkin     runs of the family
rk4          runs of the Runge–Kutta method
tangent      both, with their derivatives
linear       Quadratic systems: one matrix, applied again and again
"""

from __future__ import annotations

from typing import Any

import flint

from leastaction.backends.flint.galerkin import GalerkinStepper
from leastaction.backends.flint.linear import LinearMechanics, LinearStepper
from leastaction.backends.flint.mechanics import Mechanics
from leastaction.backends.flint.rk4 import RK4Stepper
from leastaction.backends.flint.tangent import GalerkinTangent, LinearTangent, RK4Tangent
from leastaction.backends.flint.run import Run
from leastaction.backends.rows import Row
from leastaction.backends.stepper import Start
from leastaction.exact import Digits
from leastaction.lagrangian import Lagrangian
from leastaction.linear import Quadratic
from leastaction.methods import Galerkin, Method
from leastaction.step.form import step_of

__all__ = ["LinearMechanics", "Mechanics", "Run", "libraries", "mechanics", "stepper"]


def libraries() -> str:
    """What decides the last bits of a run."""
    return f"python-flint {flint.__version__}, FLINT {flint.__FLINT_VERSION__}"


def mechanics(system: Lagrangian | Quadratic, values: Any, reals: Digits) -> Mechanics | LinearMechanics:
    """A system at one precision, with the values of its parameters as mpmath numbers."""
    if isinstance(system, Quadratic):
        return LinearMechanics(system, reals)
    return Mechanics(system, values, reals)


def stepper(mechanics: Mechanics | LinearMechanics, method: Method, start: Start, row: Row | None = None) -> Run:
    """The stepper of a method on a system, with its derivative if a row is to have it."""
    tangent = row is not None and row.varied > 0
    if isinstance(mechanics, LinearMechanics):
        return (LinearTangent if tangent else LinearStepper)(mechanics, method, start, row)
    if isinstance(method, Galerkin):
        step = step_of(mechanics.system, method)
        return (GalerkinTangent if tangent else GalerkinStepper)(mechanics, step, start, row)
    return (RK4Tangent if tangent else RK4Stepper)(mechanics, method, start, row)
