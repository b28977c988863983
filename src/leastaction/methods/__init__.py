"""Methods are data: a table and a name. One registry serves integration, tests, command line and documentation; what a
method has to answer stands in `protocol`.
"""

from leastaction.methods.composition import Composition, compose
from leastaction.methods.galerkin import Galerkin, Table, galerkin, require_member
from leastaction.methods.linear_form import LinearForm
from leastaction.methods.protocol import Branch, Method
from leastaction.methods.registry import ALIASES, family, method, with_branch
from leastaction.methods.rk4 import Form, RungeKutta4, rk4

__all__ = [
    "ALIASES", "Branch", "Composition", "Form", "Galerkin", "LinearForm", "Method", "RungeKutta4", "Table",
    "compose", "family", "galerkin", "method", "require_member", "rk4", "with_branch",
]  # fmt: skip
