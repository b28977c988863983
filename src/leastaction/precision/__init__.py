"""Any precision: the same Programs, tables and equations on flint numbers.

arithmetic   flint's numbers and precision, to and from mpmath
evaluate     a Program → a Python function on them
mechanics    momentum, velocity, energy, acceleration
equations    the discrete equations of a step as matrix products
newton       their solution
steppers     runs in the making
"""

from leastaction.precision.mechanics import Mechanics
from leastaction.precision.steppers import GalerkinStepper, RK4Stepper, stepper

__all__ = ["GalerkinStepper", "Mechanics", "RK4Stepper", "stepper"]
