"""A plain NumPy function, or a SymPy expression (`from_sympy`) → its Program; its derivatives.

Of L these are the gradient and the Hessian, of any other function the Jacobian.
"""

from leastaction.trace.differentiate import derivatives, jacobian
from leastaction.trace.function import EVENT, const, trace

__all__ = ["EVENT", "const", "derivatives", "jacobian", "trace"]
