"""What is to be integrated, and the answer to compare with: a problem with an exact solution, or a fine reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from leastaction.errors import measuring
from leastaction.integrate import integrate
from leastaction.methods import Method, galerkin
from leastaction.methods.quadrature import gauss
from leastaction.results.path import Path
from leastaction.systems.protocol import System, check_system

FINEST = 64  # the reference takes at most this many steps for each step of the run
At = Literal["nodes", "end"]


@dataclass(frozen=True, eq=False)
class Case:
    """A system with its start, its parameters and, where one is known, its solution: exact(t) ↦ q, p."""

    name: str
    system: System
    start: Mapping[str, Any]
    exact: Callable[..., tuple[Any, Any]] | None
    t_end: Any
    digits: int | None = None

    def run(self, method: Method, h: Any, t_end: Any = None, every: int = 1) -> Path:
        options: dict[str, Any] = {} if self.digits is None else {"digits": self.digits}
        with measuring():
            until = self.t_end if t_end is None else t_end
            return integrate(self.system, method, **self.start, h=h, t_end=until, every=every, **options)

    def errors(self, path: Path, at: At) -> tuple[float, float, float, float]:
        """Errors of q and p, the larger one relative to the size of its values, and the part that may be round-off."""
        q, p, uncertainty = self._answer(path)
        rows = slice(None) if at == "nodes" else slice(-1, None)
        of_q, of_p = (float(abs(x - y)[rows].max()) for x, y in ((path.q, q), (path.p, p)))
        larger = max(x / (float(abs(y).max()) or 1.0) for x, y in ((of_q, q), (of_p, p)))
        # Rounding is a random walk over the steps, and no answer is known better than to its last digits.
        steps = round(float((path.t[-1] - path.t[0]) / path.h))
        return of_q, of_p, larger, float(self._epsilon * np.sqrt(max(steps, 1)) / 4 + uncertainty)

    @property
    def _epsilon(self) -> float:
        """The relative error of one rounding."""
        return float(np.finfo(float).eps) if self.digits is None else 10.0 ** (1 - self.digits)

    def _answer(self, path: Path) -> tuple[Any, Any, float]:
        """q and p at the times of a path, and how far off they may be, relative to their sizes.

        Without an exact solution: by Gauss collocation of an order higher than that of the method under test. Steps
        shrink until two runs agree: their difference is the error of the coarser one.
        """
        if self.exact is not None:
            return *(self.exact(path.t) if self.digits is None else self.exact(path.t, digits=self.digits)), 0.0
        s = max(8, path.method.order // 2 + 4, 0 if self.digits is None else self.digits // 4)
        fine, parts, before = galerkin(s, gauss(s)), 1, None
        while True:
            run = self.run(fine, path.h / parts, path.t[-1], parts * path.every)
            if before is not None:
                away, scale = (_relative(x.q - run.q, run.q) + _relative(x.p - run.p, run.p) for x in (before, path))
                if away <= max(1e-3 * scale, 64 * self._epsilon) or parts >= FINEST:
                    return run.q, run.p, away
            before, parts = run, parts * 2


def case_of(
    what: Any, q0: Any = None, p0: Any = None, v0: Any = None, h: Any = None, *, t_end: Any,
    exact: Callable[..., Any] | None = None, digits: int | None = None, params: Mapping[str, Any] | None = None,
) -> tuple[Case, Any]:  # fmt: skip
    """The Case of what `la.analysis.convergence` and its like were given, and the steps h."""
    own = {name: x for name, x in (("q0", q0), ("p0", p0), ("v0", v0)) if x is not None}
    system = what
    if hasattr(what, "system"):
        system, t_end = what.system, getattr(what, "period", None) if t_end is None else t_end
        if h is None and list(own) == ["q0"]:  # q0 alone is no start
            h, own = q0, {}
        if not own:
            exactly = "exact_" if digits is not None and hasattr(what, "exact_q0") else ""
            own = {name: getattr(what, f"{exactly}{name}") for name in ("q0", "p0")}
            if getattr(what, "has_exact", False) and not params:  # other parameters have another motion
                exact = exact or what.exact
    check_system(system)
    if not own:
        raise TypeError(f"{system.name} needs a start: give q0, and p0 or v0, or a problem, as from la.problems.get(…)")
    if t_end is None or not np.isfinite(float(t_end)):
        raise ValueError(f"{system.name} has no period: say until when with t_end=")
    return Case(system.name, system, {**own, "params": params}, exact, t_end, digits), h


def _relative(error: Any, values: Any) -> float:
    return float(abs(error).max()) / (float(abs(values).max()) or 1.0)
