"""Methods are data: a table and a name. One registry serves integration, tests, command line and documentation."""

from leastaction.methods.composition import Composition, compose
from leastaction.methods.galerkin import Branch, Galerkin, Table, galerkin
from leastaction.methods.registry import ALIASES, Method, family, method, with_branch
from leastaction.methods.rk4 import Form, RungeKutta4, rk4

__all__ = [
    "ALIASES",
    "Branch",
    "Composition",
    "Form",
    "Galerkin",
    "Method",
    "RungeKutta4",
    "Table",
    "compose",
    "family",
    "galerkin",
    "method",
    "rk4",
    "with_branch",
]
