"""A Lagrangian as a plain NumPy function → the Program of L, of its gradient and of its Hessian."""

from leastaction.trace.differentiate import derivatives
from leastaction.trace.function import const, trace

__all__ = ["const", "derivatives", "trace"]
