"""A run in the making: one trajectory, advanced piece by piece by the native loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.layout import CONTINUED, ITERATIONS, MOST_EVENTS, RK4, STATUS, STEPS
from leastaction.backends.native import loop
from leastaction.backends.points import room
from leastaction.backends.records import Memory
from leastaction.backends.rk4_tangent import STAGES, one_steps
from leastaction.backends.status import GOING_WELL, Failure
from leastaction.backends.trajectories import Trajectories, backend
from leastaction.methods import Galerkin, Method, RungeKutta4

if TYPE_CHECKING:
    from leastaction.lagrangian import Lagrangian

FloatArray = NDArray[np.float64]
Advanced = tuple[int, int, Failure | None]


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


class Stepper(Protocol):
    """What `integrate` needs of a method at work."""

    def advance(self, steps: int, every: int, last: int, rows: NDArray[Any]) -> Advanced:
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


class Carried:
    """The derivatives carried along: `D` now, (C, 2n), a row for each thing varied, q₀, p₀ and, if wanted, the
    parameters and h; and those stored with the states, (rows, C, 2n), of which the first is the identity.
    """

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
    """What steppers that carry derivatives tell of them."""

    carried: Carried | None

    def by_state(self, rows: int) -> FloatArray:
        """∂(q, p)/∂(q₀, p₀), (rows, 2n, 2n)."""
        assert self.carried is not None
        return self.carried.stored[:rows, : self.carried.D.shape[1]].transpose(0, 2, 1)

    def by_parameters(self, rows: int) -> FloatArray | None:
        """∂(q, p)/∂(w, h), (rows, 2n, P + 1), if it is carried."""
        assert self.carried is not None
        by = self.carried.stored[:rows, self.carried.D.shape[1] :].transpose(0, 2, 1)
        return by if by.shape[2] else None


def stepper(system: Lagrangian, method: Method, start: Start) -> GalerkinStepper | RK4Stepper:
    """The stepper of a method on a Lagrangian system."""
    if isinstance(method, Galerkin):
        return GalerkinStepper(system, method, start)
    return RK4Stepper(system, method, start)


def tangent_stepper(
    system: Lagrangian, method: Method, start: Start, rows: int, parameters: bool = False
) -> GalerkinStepper | RK4Tangent:
    """The stepper of a method on a system, with its derivative; it stores `rows` of them beside the states."""
    if isinstance(method, Galerkin):
        carried = Carried(system.n, len(start.params) + 1 if parameters else 0, rows)
        return GalerkinStepper(system, method, start, carried)
    return RK4Tangent(system, method, start, rows, parameters)


class GalerkinStepper(WithTangent):
    """A member of the PsNrQu family at work."""

    # The integers of its state: what the loops count, the next step, the most iterations, and what the state means.
    INTEGERS = ("status", "steps", "iterations", "continued", *["crossings"] * MOST_EVENTS, "first", "most", "layout")

    def __init__(self, system: Lagrangian, method: Galerkin, start: Start, carried: Carried | None = None) -> None:
        self.n, self.carried, self._start = system.n, carried, start
        self._run = Trajectories(
            backend(system, method, 1), 1, start.t, start.h, every=1, last=1, skipped=0, rows=1, carried=carried
        )
        state = self._run.begin(start.t, start.h, start.q, start.p, start.params, 1.0)
        self._run.put(state)
        self._first = 0

    def advance(self, steps: int, every: int, last: int, rows: FloatArray) -> Advanced:
        run, first, count = self._run, self._first, self._run.counts[0]
        run.set(every=every, last=last, skipped=first // every + 1, rows=last // every - first // every + 1)
        before = int(count[STEPS])
        tangents = None if self.carried is None else self.carried.stored[self.carried.written :]
        run.advance(first, steps, rows, tangents)
        done = int(count[STEPS]) - before
        self._first = end = first + done
        stored = end // every - first // every + (end == last and end % every != 0)
        if self.carried is not None:
            self.carried.written += stored
        if count[STATUS] == GOING_WELL:
            return done, stored, None
        residual, reach, spent = run.real("failure").tolist()
        if end % every:
            rows[stored] = np.concatenate([run.values("q")[0], run.values("p")[0]])
            stored += 1
        return done, stored, Failure(int(count[STATUS]), residual, int(spent), reach)

    def polynomials(self, starts: FloatArray) -> tuple[FloatArray, int]:
        """The increments z, (K, s, n), of single steps from rows (t, q, p), and how many could be solved."""
        return self._run.polynomials(starts, self._start.h, self._start.params)

    def counts(self) -> dict[str, float]:
        count = self._run.counts[0]
        return {
            "newton_iterations": int(count[ITERATIONS]),
            "most_iterations": self._run.tally("most"),
            "floor": float(self._run.real("undone")[0]),
            "continued": int(count[CONTINUED]),
        }

    def state(self) -> dict[str, NDArray[Any]]:
        run = self._run
        return {
            "state": run.get()[0, run.backend.lasting],
            "integers": np.append(run.counts[0], [self._first, run.tally("most"), run.backend.layout]),
            "floor": run.real("undone").copy(),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        run = self._run
        *counts, first, most, layout = state["integers"].tolist()
        run.backend.require(layout)
        values = np.zeros((1, len(run.backend.lasting)))
        values[0, run.backend.lasting] = state["state"]
        run.put(values)
        run.counts[0], self._first = counts, first
        run.set(most=most)
        run.real("undone")[:] = state["floor"]


class RK4Stepper:
    """The classical Runge–Kutta method at work, on (q, p) or (q, v)."""

    def __init__(self, system: Lagrangian, method: RungeKutta4, start: Start) -> None:
        self._system, self._method, self._params = system, method, start.params
        n = system.n
        self._kernel, fields = room(system.node, n)
        self._memory = Memory()
        self._place = self._memory.add(
            (RK4, {
                **fields, "hamilton": method.form == "hamilton", "every": 1, "last": 0,
                "first": 0, "steps": 0, "done": 0, "stored": 0, "status": 0, "start": [start.t], "step": [start.h],
                "tableau": STAGES, "rate": 2 * n, "argument": 2 * n, "total": 2 * n, "v": start.v,
            })
        )  # fmt: skip
        self._memory.finish()
        self._memory.array(self._place, "at")[1 + 2 * n :] = start.params
        self._t, self._h = float(start.t), float(start.h)
        self.y = np.concatenate([start.q, start.p if method.form == "hamilton" else start.v])

    def _number(self, name: str) -> int:
        return self._memory.number(self._place, RK4, name)

    def advance(self, steps: int, every: int, last: int, rows: FloatArray) -> Advanced:
        I, names = self._memory.I, ("steps", "every", "last", "done", "stored")
        I[[self._number(name) for name in names]] = steps, every, last, 0, 0
        first = self.first
        loop("rk4.run")(I, self._memory.D, self._place, self.y, rows)
        done, stored, status = (int(I[self._number(name)]) for name in ("done", "stored", "status"))
        self.first = first + done
        k = np.arange(first + 1, first + done + 1)
        k = k[(k % every == 0) | (k == last)]
        failure = None
        if status != GOING_WELL:
            failure = Failure(status, float("nan"), 0, 0.0)
            if (first + done) % every:
                rows[stored] = self.y
                k, stored = np.append(k, first + done), stored + 1
        if self._method.form == "lagrange" and stored:
            self._to_momenta(rows[:stored], k)
        return done, stored, failure

    @property
    def first(self) -> int:
        """The next step."""
        return int(self._memory.I[self._number("first")])

    @first.setter
    def first(self, value: int) -> None:
        self._memory.I[self._number("first")] = value

    def _to_momenta(self, rows: FloatArray, k: NDArray[np.int64]) -> None:
        """Replace the velocities that were stored after k steps by momenta."""
        n = self._system.n
        rows[:, n:] = self._system.momentum(rows[:, :n], rows[:, n:], self._t + k * self._h, self._params)

    def counts(self) -> dict[str, float]:
        return {}

    def state(self) -> dict[str, NDArray[Any]]:
        velocity = self._memory.array(self._place, "v").copy()
        return {"y": self.y.copy(), "velocity": velocity, "integers": np.array([self.first])}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self.y[:], self.first = state["y"], int(state["integers"][0])
        self._memory.array(self._place, "v")[:] = state["velocity"]


class RK4Tangent(RK4Stepper, WithTangent):
    """The classical Runge–Kutta method at work, and its derivative, through the derivatives of the stages."""

    def __init__(self, system: Lagrangian, method: RungeKutta4, start: Start, rows: int, parameters: bool) -> None:
        super().__init__(system, method, start)
        self.n = system.n
        self._state = np.concatenate([start.q, start.p])
        self._parameters = parameters
        self.carried = Carried(system.n, len(start.params) + 1 if parameters else 0, rows)

    def advance(self, steps: int, every: int, last: int, rows: FloatArray) -> Advanced:
        first, carried = self.first, self.carried
        assert carried is not None
        states = np.zeros((steps + 1, 2 * self.n))
        states[0] = self._state
        done, _, failure = super().advance(steps, 1, last, states[1:])
        k = np.arange(first, first + done)
        state, extra = one_steps(
            self._system, self._method, np.asarray(self._t + k * self._h, float), states[:done], self._h, self._params,
            k if self._parameters else None,
        )  # fmt: skip
        stored = 0
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
