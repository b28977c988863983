"""Write the Lagrangian, get the motion.

>>> import numpy as np, leastaction as la
>>> def pendulum(q, v, g):
...     return 0.5 * v[0] ** 2 + g * np.cos(q[0])
>>> system = la.Lagrangian(pendulum, n=1, params={"g": 9.81})
>>> path = la.integrate(system, "simpson", q0=[1.0], v0=[0.0], h=0.01, t_end=10)
>>> bool(abs(path.energy() - path.energy()[0]).max() < 1e-6)
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from leastaction import linear, problems
from leastaction.archives import open, resume
from leastaction.ensemble import ensemble
from leastaction.errors import (
    ChartWarning,
    ConstraintError,
    DegenerateLagrangianError,
    EnergyWarning,
    RestingContact,
    StepFailed,
    StoreError,
    TraceError,
    UnstableStepError,
)
from leastaction.events import Event, Impact
from leastaction.integrate import advise, integrate
from leastaction.linear import Quadratic
from leastaction.methods import compose, galerkin, method, rk4
from leastaction.methods.quadrature import chebyshev, clenshaw_curtis, gauss, lobatto, radau, rule
from leastaction.results import looks
from leastaction.results.citations import cite
from leastaction.results.path import Path
from leastaction.results.paths import Paths
from leastaction.run import EnergyRange
from leastaction.step.samples import Samples
from leastaction.systems.lagrangian import Lagrangian
from leastaction.systems.projection import project
from leastaction.systems.sums import Term
from leastaction.trace import const
from leastaction.version import __version__

if TYPE_CHECKING:
    from leastaction import analysis
    from leastaction.analysis.discrete_lagrangian import discrete_lagrangian
    from leastaction.analysis.tangent import tangent

# Modules that are imported when they are asked for: they would take a tenth of the time of the whole import.
_LATER = {"analysis": "analysis", "discrete_lagrangian": "analysis.discrete_lagrangian", "tangent": "analysis.tangent"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'leastaction' has no attribute {name!r}")
    module = import_module(f"leastaction.{_LATER[name]}")
    found = globals()[name] = module if name == "analysis" else getattr(module, name)
    return found


def _momenta(system: Any, params: Any) -> Any:
    """The conserved quantities that a page shows for a system that no finder knows: the momenta of its symmetries."""
    return import_module("leastaction.analysis.symmetries").momenta(system, params)


looks.momenta.append(_momenta)


def __dir__() -> list[str]:
    """The public face alone."""
    return list(__all__)


__all__ = [
    "ChartWarning", "ConstraintError", "DegenerateLagrangianError", "EnergyRange", "EnergyWarning", "Event", "Impact",
    "Lagrangian", "Path", "Paths", "Quadratic", "RestingContact", "Samples", "StepFailed", "StoreError", "Term",
    "TraceError", "UnstableStepError", "__version__", "advise", "analysis", "chebyshev", "cite", "clenshaw_curtis",
    "compose", "const", "discrete_lagrangian", "ensemble", "galerkin", "gauss", "integrate", "linear", "lobatto",
    "method", "open", "problems", "project", "radau", "resume", "rk4", "rule", "tangent",
]  # fmt: skip
