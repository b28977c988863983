"""What is to be integrated, and the answer to compare with: a problem with an exact solution, or a fine reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastaction.errors import measuring
from leastaction.integrate import integrate
from leastaction.linear import Quadratic
from leastaction.methods import Method, galerkin
from leastaction.methods.quadrature import gauss
from leastaction.results.path import Path
from leastaction.systems.lagrangian import Lagrangian
from leastaction.systems.protocol import check_system

FINEST = 64  # the reference takes at most this many steps for each step of the run


@dataclass(frozen=True, eq=False)
class Case:
    """A system with initial data and, where one is known, its exact solution: exact(t) or exact(t, digits=N) ↦ q, p."""

    name: str
    system: Lagrangian | Quadratic
    q0: Any
    p0: Any
    exact: Callable[..., tuple[Any, Any]] | None
    period: Any

    def run(self, method: str | Method, h: Any, t_end: Any, digits: int | None, **options: Any) -> Path:
        if digits is not None:
            options["digits"] = digits
        with measuring():
            return integrate(self.system, method, self.q0, self.p0, h=h, t_end=t_end, **options)


def as_case(problem: Any, digits: int | None = None) -> Case:
    """A Case from a problem of the catalogue, or (system, q0, p0), or (system, q0, p0, exact)."""
    if isinstance(problem, Case):
        return problem
    if isinstance(problem, tuple):
        if len(problem) not in (3, 4):
            raise TypeError(f"expected (system, q0, p0) or (system, q0, p0, exact); got {len(problem)} things")
        system, q0, p0, exact = (*problem, None)[:4]
        check_system(system)
        return Case(system.name, system, q0, p0, exact, None)
    if not all(hasattr(problem, name) for name in ("system", "q0", "p0")):
        raise TypeError(f"expected a problem, as from la.problems.get(…), or (system, q0, p0); got {problem!r}")
    known = getattr(problem, "has_exact", hasattr(problem, "exact"))
    exactly = "exact_" if digits is not None and hasattr(problem, "exact_q0") else ""
    return Case(
        getattr(problem, "name", problem.system.name),
        problem.system,
        getattr(problem, f"{exactly}q0"),
        getattr(problem, f"{exactly}p0"),
        problem.exact if known else None,
        getattr(problem, "period", None),
    )


@dataclass(frozen=True, eq=False)
class Answer:
    """q and p at the times of a path, and how far off they may be, relative to their sizes."""

    q: Any
    p: Any
    uncertainty: float


def answer(case: Case, path: Path, digits: int | None) -> Answer:
    """The answer at the times of a path."""
    if case.exact is not None:
        q, p = case.exact(path.t) if digits is None else case.exact(path.t, digits=digits)
        return Answer(q, p, 0.0)
    return _reference(case, path, digits)


def _reference(case: Case, path: Path, digits: int | None) -> Answer:
    """The answer by Gauss collocation of high order: steps shrink until two runs agree (Richardson's estimate).

    The order of the reference is higher than that of the method under test. Halving the step divides the error by two
    to the power of the order, so the difference of two runs is the error of the coarser one.
    """
    s = max(8, path.method.order // 2 + 4, 0 if digits is None else digits // 4)
    fine = galerkin(s, gauss(s))
    parts, before = 1, None
    while True:
        run = case.run(fine, path.h / parts, path.t[-1], digits, every=parts * path.every, params=path.params or None)
        if before is not None:
            away = relative(before.q - run.q, run.q) + relative(before.p - run.p, run.p)
            scale = relative(path.q - run.q, run.q) + relative(path.p - run.p, run.p)
            target = max(1e-3 * scale, 64 * epsilon(digits))
            if away <= target or parts >= FINEST:
                return Answer(run.q, run.p, away)
        before, parts = run, parts * 2


def epsilon(digits: int | None) -> float:
    """The relative error of one rounding."""
    return float(np.finfo(float).eps) if digits is None else 10.0 ** (1 - digits)


def relative(error: Any, values: Any) -> float:
    """The largest |error|, relative to the largest |value|."""
    size = float(abs(values).max())
    return float(abs(error).max()) / (size or 1.0)
