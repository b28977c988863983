"""Any precision: the same Programs, tables and equations on flint numbers, with guard digits.

Numbers are `arb` balls, the fastest for Python (docs/precision.md). A ball's radius tells what rounding may have done,
which decides when an iteration ends. States are midpoints: over many steps their radii would grow without sense.

evaluate   a Program → a Python function on such numbers
mechanics  momentum, velocity, energy, acceleration
equations  the equations of a Step as matrix products, and of its end with constraints
newton     Newton's iteration, and continuation in h
run        steps one after the other
galerkin   runs of the family and of compositions
rk4        runs of the Runge–Kutta method
linear     Quadratic systems: one matrix, applied again and again
boundary   a step between two positions
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.flint.evaluate import function
from leastaction.flint.galerkin import GalerkinStepper
from leastaction.flint.linear import LinearMechanics, LinearStepper
from leastaction.flint.mechanics import Mechanics
from leastaction.flint.rk4 import RK4Stepper
from leastaction.flint.run import Run
from leastaction.methods import Composition, Galerkin, Method, RungeKutta4
from leastaction.numbers.conversion import balls, mpfs
from leastaction.numbers.precision import flint_bits
from leastaction.numbers.rounding import Digits
from leastaction.program import Program
from leastaction.step.form import step_of
from leastaction.step.stepper import Start
from leastaction.step.stored_row import Row

__all__ = ["LinearMechanics", "Mechanics", "Run", "evaluated", "mechanics", "stepper"]


def evaluated(
    program: Program, rows: NDArray[np.object_], params: NDArray[np.object_], reals: Digits
) -> NDArray[np.object_]:
    """The outputs (K, outputs) of a program for rows (K, …) of its inputs, mpmath numbers, and one set of params."""
    with flint_bits(reals.bits):
        f = function(program, program.results, balls(params))
        found = [mpfs(f(*balls(row))) for row in rows]
    return np.array(found, dtype=object).reshape(len(rows), program.output_size)


def mechanics(system: Any, values: Any, reals: Digits) -> Mechanics | LinearMechanics:
    """A system at one precision, with the values of its parameters as mpmath numbers."""
    return LinearMechanics(system, reals) if system.linear else Mechanics(system, values, reals)


def stepper(mechanics: Mechanics | LinearMechanics, method: Method, start: Start, row: Row | None = None) -> Run:
    """The stepper of a method on a system; it carries the derivative where `row` asks for it."""
    row = row or Row.whole(mechanics.n)
    if isinstance(mechanics, LinearMechanics):
        return LinearStepper(mechanics, method, start, row)
    if isinstance(method, Composition):
        factors = method.factors(round(mechanics.bits * 0.302) + 2)
        return GalerkinStepper(mechanics, step_of(mechanics.system, method.root), start, row, factors)
    if isinstance(method, Galerkin):
        return GalerkinStepper(mechanics, step_of(mechanics.system, method), start, row)
    if isinstance(method, RungeKutta4):
        return RK4Stepper(mechanics, method, start, row)
    raise TypeError(f"no stepper is known for {method.name}")
