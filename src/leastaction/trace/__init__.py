"""A plain NumPy function → its Program; the gradient and the Hessian of L, the Jacobian of any other."""

from leastaction.trace.differentiate import derivatives, jacobian
from leastaction.trace.function import const, trace

__all__ = ["const", "derivatives", "jacobian", "trace"]
