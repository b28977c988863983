"""Any precision: the same Programs, tables and equations on flint numbers.

Numbers are `arb` balls of which only the midpoint is used. Of what Python offers (measured from 30 to 1000 digits),
arb does a product of 64 digits in 0.12 µs and a sine in 0.6 µs; gmpy2's mpfr is as fast in arithmetic but four
times slower in functions, flint's generic reals (`gr`) are no faster in arithmetic and have no functions, and
mpmath is six to fifteen times slower. The radii, which a run of many steps would blow up, are dropped after each
evaluation.

sizes        how large numbers are
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

from leastaction.backends.flint.galerkin import GalerkinStepper
from leastaction.backends.flint.linear import LinearMechanics, LinearStepper
from leastaction.backends.flint.mechanics import Mechanics
from leastaction.backends.flint.rk4 import RK4Stepper
from leastaction.backends.flint.tangent import GalerkinTangent, LinearTangent, RK4Tangent
from leastaction.backends.stepper import Start, Stepper
from leastaction.lagrangian import Lagrangian
from leastaction.linear import Quadratic
from leastaction.methods import Galerkin, Method
from leastaction.numbers.rounding import Digits
from leastaction.step.form import step_of

__all__ = ["LinearMechanics", "Mechanics", "mechanics", "stepper", "tangent_stepper"]


def mechanics(system: Lagrangian | Quadratic, values: Any, reals: Digits) -> Mechanics | LinearMechanics:
    """A system at one precision, with the values of its parameters as mpmath numbers."""
    if isinstance(system, Quadratic):
        return LinearMechanics(system, reals)
    return Mechanics(system, values, reals)


def stepper(mechanics: Mechanics | LinearMechanics, method: Method, start: Start) -> Stepper:
    """The stepper of a method on a system."""
    if isinstance(mechanics, LinearMechanics):
        return LinearStepper(mechanics, method, start)
    if isinstance(method, Galerkin):
        return GalerkinStepper(mechanics, step_of(mechanics.system, method), start)
    return RK4Stepper(mechanics, method, start)


def tangent_stepper(
    mechanics: Mechanics | LinearMechanics, method: Method, start: Start, rows: int, parameters: bool
) -> Stepper:
    """The stepper of a method on a system, with its derivative; it stores `rows` of them beside the states."""
    if isinstance(mechanics, LinearMechanics):
        return LinearTangent(mechanics, method, start, rows)
    if isinstance(method, Galerkin):
        return GalerkinTangent(mechanics, step_of(mechanics.system, method), start, rows, parameters)
    return RK4Tangent(mechanics, method, start, rows, parameters)
