"""Steppers that carry the derivative of the run along: the state after k steps by the state before, and by w and h.

`D` has the shape (C, 2n): a row for each thing varied, q₀, p₀ and, if wanted, the parameters and h, holding the
derivative of (q_k, p_k) by it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leastaction.discrete import fusible, tangent_program
from leastaction.kernel import compile_program
from leastaction.methods import Galerkin, Method, RungeKutta4
from leastaction.program import Program
from leastaction.stepping import layout
from leastaction.stepping.native import loop, loop_address
from leastaction.stepping.rk4_tangent import one_steps
from leastaction.stepping.stepper import Failure, GalerkinStepper, RK4Stepper, Start

if TYPE_CHECKING:
    from leastaction.lagrangian import Lagrangian

FloatArray = NDArray[np.float64]


def tangent_stepper(
    system: Lagrangian, method: Method, start: Start, rows: int, parameters: bool = False
) -> GalerkinTangent | RK4Tangent:
    """The stepper of a method on a system, with its derivative; it stores `rows` of them beside the states."""
    if isinstance(method, Galerkin):
        return GalerkinTangent(system, method, start, rows, parameters)
    return RK4Tangent(system, method, start, rows, parameters)


class Carried:
    """The derivatives carried: `D` now, and those stored with the states, (rows, C, 2n); the first is the identity."""

    def __init__(self, n: int, extra: int, rows: int) -> None:
        self.D = np.zeros((2 * n + extra, 2 * n))
        self.D[: 2 * n] = np.eye(2 * n)
        try:
            self.stored = np.zeros((rows, *self.D.shape))
        except MemoryError:
            raise MemoryError(
                f"{rows} derivatives of shape {self.D.shape} need {rows * self.D.nbytes / 2**30:.1f} GiB; "
                "keep fewer with every="
            ) from None
        self.stored[0] = self.D
        self.written = 1


class WithTangent:
    """What both steppers tell of the derivative."""

    carried: Carried

    def by_state(self, rows: int) -> FloatArray:
        """∂(q, p)/∂(q₀, p₀), (rows, 2n, 2n)."""
        return self.carried.stored[:rows, : self.carried.D.shape[1]].transpose(0, 2, 1)

    def by_parameters(self, rows: int) -> FloatArray | None:
        """∂(q, p)/∂(w, h), (rows, 2n, P + 1), if it is carried."""
        by = self.carried.stored[:rows, self.carried.D.shape[1] :].transpose(0, 2, 1)
        return by if by.shape[2] else None


class GalerkinTangent(GalerkinStepper, WithTangent):
    """A member of the PsNrQu family at work, and its derivative."""

    def __init__(self, system: Lagrangian, method: Galerkin, start: Start, rows: int, parameters: bool) -> None:
        super().__init__(system, method, start)
        n, N = self.n, self.N
        extra = len(start.params) + 1 if parameters else 0
        fused = None if parameters else _tangent_program(system.point, method, n)
        kernel = compile_program(fused or (system.sensitivity if parameters else system.point))
        run = loop_address("galerkin.run")
        self._code = kernel  # kept as long as its address is
        self._kernel = np.array([kernel.address, extra, kernel.outputs, fused is not None, run], np.int64)
        sizes = [2 * n, kernel.outputs, N * N, N * n, N * extra, n * N, n * n, n * extra, N, kernel.work]
        self._scratch = np.zeros(sum(sizes))
        self.carried = Carried(n, extra, rows)
        self._run = self._run_with_tangent

    def _run_with_tangent(self, *arrays: FloatArray) -> None:
        D, stored = self.carried.D, self.carried.stored[self.carried.written :]
        loop("tangent.run")(*arrays, self._kernel, self._scratch, D, stored)

    def advance(self, steps: int, every: int, last: int, rows: FloatArray) -> tuple[int, int, Failure | None]:
        done, stored, failure = super().advance(steps, every, last, rows)
        self.carried.written += stored
        return done, stored, failure


class RK4Tangent(RK4Stepper, WithTangent):
    """The classical Runge–Kutta method at work, and its derivative, through the derivatives of the stages."""

    def __init__(self, system: Lagrangian, method: RungeKutta4, start: Start, rows: int, parameters: bool) -> None:
        super().__init__(system, method, start)
        self.n = system.n
        self._state = np.concatenate([start.q, start.p])
        self._parameters = parameters
        self.carried = Carried(system.n, len(start.params) + 1 if parameters else 0, rows)

    def advance(self, steps: int, every: int, last: int, rows: FloatArray) -> tuple[int, int, Failure | None]:
        first = int(self._space.integers[layout.FIRST])
        states = np.zeros((steps + 1, 2 * self.n))
        states[0] = self._state
        done, _, failure = super().advance(steps, 1, last, states[1:])
        t, h = self._reals[[layout.START, layout.STEP]]
        k = np.arange(first, first + done)
        state, extra = one_steps(
            self._system, self._method, t + k * h, states[:done], h, self._params, k if self._parameters else None
        )
        carried, stored = self.carried, 0
        for i in range(done):
            carried.D = carried.D @ state[i].T
            carried.D[2 * self.n :] += extra[i].T
            if (first + i + 1) % every == 0 or first + i + 1 == last:
                rows[stored] = states[i + 1]
                carried.stored[carried.written + stored] = carried.D
                stored += 1
        carried.written += stored
        self._state = states[done]
        return done, stored, failure


@lru_cache(maxsize=64)
def _tangent_program(point: Program, method: Galerkin, n: int) -> Program | None:
    """Φ' of a whole step as one kernel, where a whole Newton step is one."""
    first = point.select("Lq", "Lv", "Lqq", "Lqv", "Lvv")
    return tangent_program(first, method.table, n) if fusible(first, method.table, n) else None
