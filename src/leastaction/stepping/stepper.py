"""A run in the making: state and kernels, advanced piece by piece by the native loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from leastaction.discrete import fusible, newton_program
from leastaction.methods import Galerkin, Method, RungeKutta4
from leastaction.program import Program
from leastaction.stepping import layout
from leastaction.stepping.native import loop
from leastaction.stepping.workspace import Workspace, workspace

if TYPE_CHECKING:
    from leastaction.lagrangian import Lagrangian

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Start:
    """Where a run begins: time, position, momentum, velocity; its step and parameters.

    Floats, or mpmath numbers for a run at another precision.
    """

    t: Any
    q: NDArray[Any]
    p: NDArray[Any]
    v: NDArray[Any]
    h: Any
    params: NDArray[Any]


@dataclass(frozen=True)
class Failure:
    """Why a piece ended early: a status of `layout`, and what the solver had reached."""

    status: int
    residual: float
    iterations: int
    reach: float


class Stepper(Protocol):
    """What `integrate` needs of a method at work."""

    def advance(self, steps: int, every: int, last: int, rows: NDArray[Any]) -> tuple[int, int, Failure | None]:
        """Do steps, write the stored states (q, p) to rows; return steps done, rows written, and a failure.

        With a failure, the state before the step that failed is stored too.
        """
        ...

    def counts(self) -> dict[str, float]:
        """What the solver has to say about the steps so far."""
        ...


class ResumableStepper(Stepper, Protocol):
    """A stepper that can be taken down and set up again."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Copies of everything that the steps to come depend on."""
        ...

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from such copies, to the last bit as if there had been no pause."""
        ...


class PolynomialStepper(Stepper, Protocol):
    """A stepper whose steps are polynomials."""

    def polynomials(self, starts: NDArray[Any]) -> tuple[NDArray[Any], int]:
        """The increments z, (K, s, n), of single steps from rows (t, q, p), and how many could be solved."""
        ...


def stepper(system: Lagrangian, method: Method, start: Start) -> ResumableStepper:
    """The stepper of a method on a Lagrangian system."""
    if isinstance(method, Galerkin):
        return GalerkinStepper(system, method, start)
    return RK4Stepper(system, method, start)


class GalerkinStepper:
    """A member of the PsNrQu family at work.

    `x` = (t, h, q, p, z, params) is the kernel's input and, with `carry`, two integers, the number of steps done, the
    length of the last step but one and the last velocity found, the whole state: a run continued from a copy of them
    goes on to the last bit.
    """

    _KEPT = (layout.STARTED, layout.PREDICTOR, layout.FIRST, layout.ITERATIONS, layout.MOST, layout.CONTINUED)
    _KEPT_REALS = (layout.FLOOR, layout.LENGTH)

    def __init__(self, system: Lagrangian, method: Galerkin, start: Start) -> None:
        n, s = system.n, method.s
        self.n, self.N = n, n * s
        self._run = loop("galerkin.run")
        self._space = galerkin_workspace(system, method)
        self._table = method_table(self._space, method)
        self._reals = np.zeros(layout.REALS)
        self._reals[[layout.START, layout.STEP]] = start.t, start.h
        self.x = np.concatenate([[start.t, start.h], start.q, start.p, np.zeros(self.N), start.params])
        self.carry = np.zeros(2 * n)
        self._space.memory[_velocity_place(self._space, n)] = start.v

    def advance(self, steps: int, every: int, last: int, rows: FloatArray) -> tuple[int, int, Failure | None]:
        I = self._space.integers
        I[[layout.STEPS, layout.EVERY, layout.LAST, layout.DONE, layout.STORED]] = steps, every, last, 0, 0
        self._run(I, self._reals, self._table, self.x, self.carry, rows, self._space.memory, self._space.pivots)
        done, stored = int(I[layout.DONE]), int(I[layout.STORED])
        I[layout.FIRST] += done
        failure = None
        if I[layout.STATUS] != layout.GOING_WELL:
            residual, reach, spent = self._reals[[layout.RESIDUAL, layout.REACH, layout.SPENT]].tolist()
            failure = Failure(int(I[layout.STATUS]), residual, int(spent), reach)
            if I[layout.FIRST] % every:
                rows[stored] = self.x[2 : 2 + 2 * self.n]
                stored += 1
        return done, stored, failure

    def polynomials(self, starts: FloatArray) -> tuple[FloatArray, int]:
        """The increments z, (K, s, n), of single steps from rows (t, q, p), and how many could be solved."""
        I = self._space.integers
        I[[layout.STEPS, layout.DONE]] = len(starts), 0
        z = np.zeros((len(starts), self.N))
        solve = loop("galerkin.polynomials")
        solve(I, self._reals, self._table, self.x, starts, z, self._space.memory, self._space.pivots)
        return z.reshape(len(starts), -1, self.n), int(I[layout.DONE])

    def counts(self) -> dict[str, float]:
        I = self._space.integers
        return {
            "newton_iterations": int(I[layout.ITERATIONS]),
            "most_iterations": int(I[layout.MOST]),
            "floor": float(self._reals[layout.FLOOR]),
            "continued": int(I[layout.CONTINUED]),
        }

    def state(self) -> dict[str, NDArray[Any]]:
        return {
            "x": self.x.copy(),
            "carry": self.carry.copy(),
            "velocity": self._space.memory[_velocity_place(self._space, self.n)].copy(),
            "integers": self._space.integers[list(self._KEPT)],
            "reals": self._reals[list(self._KEPT_REALS)],
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self.x[:], self.carry[:] = state["x"], state["carry"]
        self._space.memory[_velocity_place(self._space, self.n)] = state["velocity"]
        self._space.integers[list(self._KEPT)] = state["integers"]
        self._reals[list(self._KEPT_REALS)] = state["reals"]


class RK4Stepper:
    """The classical Runge–Kutta method at work, on (q, p) or (q, v)."""

    def __init__(self, system: Lagrangian, method: RungeKutta4, start: Start) -> None:
        self._system, self._method, self._params = system, method, start.params
        self._run = loop("rk4.run")
        self._space = workspace(system.n, 1, len(start.params), hessian=system.point)
        self._space.integers[layout.FORM] = 0 if method.form == "hamilton" else 1
        self._reals = np.zeros(layout.REALS)
        self._reals[[layout.START, layout.STEP]] = start.t, start.h
        self.y = np.concatenate([start.q, start.p if method.form == "hamilton" else start.v])
        self._space.memory[_velocity_place(self._space, system.n)] = start.v

    def advance(self, steps: int, every: int, last: int, rows: FloatArray) -> tuple[int, int, Failure | None]:
        I = self._space.integers
        I[[layout.STEPS, layout.EVERY, layout.LAST, layout.DONE, layout.STORED]] = steps, every, last, 0, 0
        first = int(I[layout.FIRST])
        self._run(I, self._reals, self.y, self._params, rows, self._space.memory, self._space.pivots)
        done, stored = int(I[layout.DONE]), int(I[layout.STORED])
        I[layout.FIRST] += done
        k = np.arange(first + 1, first + done + 1)
        k = k[(k % every == 0) | (k == last)]
        failure = None
        if I[layout.STATUS] != layout.GOING_WELL:
            failure = Failure(int(I[layout.STATUS]), float("nan"), 0, 0.0)
            if (first + done) % every:
                rows[stored] = self.y
                k, stored = np.append(k, first + done), stored + 1
        if self._method.form == "lagrange" and stored:
            self._to_momenta(rows[:stored], k)
        return done, stored, failure

    def _to_momenta(self, rows: FloatArray, k: NDArray[np.int64]) -> None:
        """Replace the velocities that were stored after k steps by momenta."""
        n = self._system.n
        t = self._reals[layout.START] + k * self._reals[layout.STEP]
        rows[:, n:] = self._system.momentum(rows[:, :n], rows[:, n:], t, self._params)

    def counts(self) -> dict[str, float]:
        return {}

    def state(self) -> dict[str, NDArray[Any]]:
        return {
            "y": self.y.copy(),
            "velocity": self._space.memory[_velocity_place(self._space, self._system.n)].copy(),
            "integers": self._space.integers[[layout.FIRST]],
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self.y[:] = state["y"]
        self._space.memory[_velocity_place(self._space, self._system.n)] = state["velocity"]
        self._space.integers[[layout.FIRST]] = state["integers"]


def _velocity_place(space: Workspace, n: int) -> slice:
    """Where the loops look for their first guess of the velocity."""
    place = int(space.integers[layout.WORK + 11])
    return slice(place, place + n)


def method_table(space: Workspace, method: Galerkin) -> FloatArray:
    """The method's table in one array, its places entered in the workspace."""
    table = method.table
    places = layout.offsets(layout.table_sizes(method.s, method.rule.r))
    space.integers[layout.TABLE : layout.TABLE + len(places)] = places
    space.integers[[layout.NODES, layout.PREDICTOR]] = method.rule.r, method.s
    arrays = (table.c, table.b, table.d, *table.equations, table.slope, table.modes, table.growth)
    return np.concatenate([array.ravel() for array in arrays])


def galerkin_workspace(system: Lagrangian, method: Galerkin) -> Workspace:
    """Memory for a member of the family on a system, its kernels compiled."""
    newton = _newton_program(system.point, method, system.n)
    gradient = system.gradient.select("Lq", "Lv") if newton is None else None
    count = system.point.inputs[-1][1]
    space = workspace(system.n, method.s, count, hessian=system.point, gradient=gradient, newton=newton)
    space.integers[layout.FUSED] = newton is not None
    return space


@lru_cache(maxsize=64)
def _newton_program(point: Program, method: Galerkin, n: int) -> Program | None:
    """The fused Newton step, or None where the loops over the nodes are the better choice."""
    first = point.select("Lq", "Lv", "Lqq", "Lqv", "Lvv")
    return newton_program(first, method.table, n) if fusible(first, method.table, n) else None
