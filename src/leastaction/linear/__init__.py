"""Quadratic Lagrangians ½ vᵀMv − ½ qᵀKq, dense and sparse: the same method tables, no tracing.

Quadratic, Rayleigh, Samples    the system, proportional damping, a load from samples
newmark, simpson_first, simpson_second, members    the schemes as matrices X, Y, A, B, Φ, ξ, ζ
stable_intervals                where a method is stable, exactly
free, eliminate                 degrees of freedom that stay when some are fixed
Propagator, Run, run            one method at one step on one system; the run
"""

from leastaction.linear.forcing import Rayleigh, Samples
from leastaction.linear.matrices import eliminate, free
from leastaction.linear.propagator import Propagator
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
    "Propagator",
    "Quadratic",
    "Rayleigh",
    "Samples",
    "Scheme",
    "SimpsonWithMiddle",
    "eliminate",
    "free",
    "members",
    "newmark",
    "simpson_L",
    "simpson_first",
    "simpson_second",
    "stable_intervals",
]
