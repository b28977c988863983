"""Quadratic Lagrangians ½ vᵀMv − ½ qᵀKq, dense and sparse: the same method tables, no tracing.

Quadratic, Rayleigh             the system, proportional damping
Load                            loads that are vectors times records (Load.base); n numbers at each time: la.Samples
newmark, simpson_first, simpson_second, members    the schemes as matrices X, Y, A, B, Φ, ξ, ζ
stable_intervals                where a method is stable, exactly
free, eliminate                 degrees of freedom that stay when some are fixed
Propagator                      one method at one step on one system
reactions                       the forces of held degrees of freedom in a run
Spectrum, response_spectrum     the largest answers of damped oscillators to a ground's acceleration
"""

from leastaction.linear.forcing import Load, Rayleigh
from leastaction.linear.matrices import eliminate, free
from leastaction.linear.propagator import Propagator
from leastaction.linear.response import Spectrum, reactions, response_spectrum
from leastaction.linear.schemes import (
    Scheme,
    SimpsonWithMiddle,
    members,
    newmark,
    simpson_first,
    simpson_L,
    simpson_second,
)
from leastaction.linear.stability import stable_intervals
from leastaction.linear.system import Quadratic

__all__ = [
    "Load", "Propagator", "Quadratic", "Rayleigh", "Scheme", "SimpsonWithMiddle", "Spectrum", "eliminate", "free",
    "members", "newmark", "reactions", "response_spectrum", "simpson_L", "simpson_first", "simpson_second",
    "stable_intervals",
]  # fmt: skip
