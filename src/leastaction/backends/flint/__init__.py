"""Any precision: the same Programs, tables and equations on flint numbers.

Numbers are `arb` balls of which only the midpoint is used. Among the libraries for Python (measured from 30 to 1000
digits), arb does a product of 64 digits in 0.12 µs and a sine in 0.6 µs; gmpy2's mpfr is as fast in arithmetic but four
times slower in functions, flint's generic reals (`gr`) are no faster in arithmetic and have no functions, and mpmath is
six to fifteen times slower. The radii, which a run of many steps would blow up, are dropped after each evaluation.

sizes        how large numbers are
evaluate     a Program → a Python function on such numbers
mechanics    momentum, velocity, energy, acceleration
sweep        the equations of a Step as matrix products
constraints  where a step with constraints ends
driven       inputs, step by step
verdict      the verdict on an iteration
iteration    the equations of a Step, solved by Newton
prediction   where the next step's iteration begins
run          steps one after the other
galerkin     runs of the family
rk4          runs of the Runge–Kutta method, and their derivatives
tangent      runs of the family and of linear systems, with their derivatives
composed     runs of compositions
linear       Quadratic systems: one matrix, applied again and again
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.flint.composed import ComposedStepper
from leastaction.backends.flint.evaluate import function
from leastaction.backends.flint.galerkin import GalerkinStepper
from leastaction.backends.flint.linear import LinearMechanics, LinearStepper
from leastaction.backends.flint.mechanics import Mechanics
from leastaction.backends.flint.rk4 import RK4Stepper
from leastaction.backends.flint.run import Run
from leastaction.backends.flint.tangent_runs import GalerkinTangent, LinearTangent
from leastaction.backends.rows import Row
from leastaction.backends.stepper import Start
from leastaction.methods import Composition, Galerkin, Method
from leastaction.numbers.conversion import balls, mpfs
from leastaction.numbers.precision import flint_bits
from leastaction.numbers.rounding import Digits
from leastaction.program import Program
from leastaction.step.form import step_of

__all__ = ["LinearMechanics", "Mechanics", "Run", "evaluated", "mechanics", "stepper"]


def evaluated(
    program: Program, rows: NDArray[np.object_], params: NDArray[np.object_], reals: Digits
) -> NDArray[np.object_]:
    """The outputs (K, outputs) of a program for rows (K, …) of its inputs, mpmath numbers, and one set of params."""
    with flint_bits(reals.bits):
        f = function(program, program.results, balls(params))
        found = [mpfs([x.mid() for x in f(*balls(row))]) for row in rows]
    return np.array(found, dtype=object).reshape(len(rows), program.output_size)


def mechanics(system: Any, values: Any, reals: Digits) -> Mechanics | LinearMechanics:
    """A system at one precision, with the values of its parameters as mpmath numbers."""
    return LinearMechanics(system, reals) if system.linear else Mechanics(system, values, reals)


def stepper(mechanics: Mechanics | LinearMechanics, method: Method, start: Start, row: Row | None = None) -> Run:
    """The stepper of a method on a system; it carries the derivative where `row` asks for it."""
    row = row or Row.whole(mechanics.n)
    if isinstance(mechanics, LinearMechanics):
        return (LinearTangent if row.varied else LinearStepper)(mechanics, method, start, row)
    if isinstance(method, Composition):
        return ComposedStepper(mechanics, method, start, row)
    if isinstance(method, Galerkin):
        step = step_of(mechanics.system, method)
        return (GalerkinTangent if row.varied else GalerkinStepper)(mechanics, step, start, row)
    return RK4Stepper(mechanics, method, start, row)
