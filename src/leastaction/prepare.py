"""Which stepper a run needs, ready to go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.backends.stepper import Stepper, WithTangent, stepper, tangent_stepper
from leastaction.border import phase_point, start
from leastaction.lagrangian import Lagrangian
from leastaction.linear import Quadratic
from leastaction.linear.guard import require_stable
from leastaction.linear.stepper import LinearStepper, stored_dofs
from leastaction.methods import Method
from leastaction.numbers.rounding import Digits, Reals


@dataclass(frozen=True, eq=False)
class Request:
    """A run as asked for, its numbers checked: system, method, initial (q0, p0, v0), times, and what to keep."""

    arithmetic: Reals
    system: Lagrangian | Quadratic
    method: Method
    initial: tuple[Any, Any, Any]
    t0: Any
    h: Any
    count: int
    every: int
    values: NDArray[Any]
    output: ArrayLike | None
    allow_unstable: bool
    tangent: bool | Literal["all"]

    def __post_init__(self) -> None:
        linear = isinstance(self.system, Quadratic)
        if not linear and (self.output is not None or self.allow_unstable):
            raise ValueError("output= and allow_unstable= are for Quadratic systems")
        if self.output is not None and self.arithmetic.digits is not None:
            raise ValueError("output= is for float64 runs of Quadratic systems; with digits= the whole state is stored")
        if self.tangent not in (False, True, "all"):
            raise ValueError(f"tangent must be True, False or 'all'; got {self.tangent!r}")
        if linear and self.tangent and (self.tangent == "all" or self.output is not None):
            raise ValueError(
                "a Quadratic system has no parameters to vary, and its tangent is whole: give tangent=True"
            )

    @property
    def rows(self) -> int:
        """How many states the run stores."""
        return self.count // self.every + 1 + (self.count % self.every != 0)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A stepper, the state it starts from, and the degrees of freedom it stores."""

    stepper: Stepper
    q: NDArray[Any]
    p: NDArray[Any]
    dofs: NDArray[np.int64]

    def tangent(self, steps: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """The derivative of the states after these numbers of steps by the first, if it was asked for."""
        if isinstance(self.stepper, WithTangent) and self.stepper.carried is not None:
            return self.stepper.by_state(len(steps))
        return self.stepper.propagator.powers(steps) if isinstance(self.stepper, LinearStepper) else None

    def sensitivity(self, rows: int) -> NDArray[np.float64] | None:
        """The derivative of the first `rows` states by parameters and h, if it was asked for."""
        if isinstance(self.stepper, WithTangent) and self.stepper.carried is not None:
            return self.stepper.by_parameters(rows)
        return None


def prepare(request: Request) -> Prepared:
    """The stepper for this arithmetic and this kind of system."""
    if isinstance(request.arithmetic, Digits):
        return _at_digits(request, request.arithmetic)
    if isinstance(request.system, Quadratic):
        return _linear(request, request.system)
    system = request.system
    begin = start(system, *request.initial, request.t0, request.h, request.values)
    if request.tangent:
        solver: Stepper = tangent_stepper(system, request.method, begin, request.rows, request.tangent == "all")
    else:
        solver = stepper(system, request.method, begin)
    return Prepared(solver, begin.q, begin.p, np.arange(system.n))


def _linear(request: Request, system: Quadratic) -> Prepared:
    q, p = phase_point(system, *request.initial)
    solver = LinearStepper(
        system,
        request.method,
        request.t0,
        q,
        p,
        request.h,
        output=request.output,
        allow_unstable=request.allow_unstable,
    )
    solver.require_load(request.count)
    return Prepared(solver, q, p, stored_dofs(request.output, system.n))


def _at_digits(request: Request, arithmetic: Digits) -> Prepared:
    from leastaction.backends import flint

    system, h = request.system, request.h
    if isinstance(system, Quadratic) and not request.allow_unstable:
        require_stable(system.propagator(request.method, float(h)))
    mechanics = flint.mechanics(system, request.values, arithmetic)
    begin = start(mechanics, *request.initial, request.t0, h, request.values, arithmetic)
    if request.tangent:
        solver = flint.tangent_stepper(mechanics, request.method, begin, request.rows, request.tangent == "all")
    else:
        solver = flint.stepper(mechanics, request.method, begin)
    return Prepared(solver, begin.q, begin.p, np.arange(system.n))
