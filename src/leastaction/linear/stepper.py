"""A linear run in the making: what `integrate` asks of a method at work, for Quadratic systems.

The state is the unevaluated sum y + carry of what is stored and what rounding lost, so that increments are never lost
in something big. Small dense systems run in the native loop, large ones solve.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.backends.layout import LINEAR
from leastaction.backends.native import loop
from leastaction.backends.records import Memory
from leastaction.backends.status import GOING_WELL, NOT_FINITE, Failure
from leastaction.linear.factor import one_thread
from leastaction.linear.forcing import Samples
from leastaction.linear.guard import require_stable
from leastaction.linear.matrices import chosen_dofs
from leastaction.linear.system import Quadratic
from leastaction.methods import Method

FloatArray = NDArray[np.float64]
Advanced = tuple[int, int, Failure | None]

PIECE_SECONDS = 0.2  # a piece of solves ends after this long, however many steps were asked for
LOADED_STEPS = 1000  # … and one of the native loop after this many, where each needs the load from Python


class LinearStepper:
    """One method on one Quadratic system, from (q, p) at t.

    output            the degrees of freedom to store, in this order; all of them unless told
    allow_unstable    do not ask whether h is stable
    """

    def __init__(
        self,
        system: Quadratic,
        method: Method,
        t: float,
        q: FloatArray,
        p: FloatArray,
        h: float,
        *,
        output: ArrayLike | None = None,
        allow_unstable: bool = False,
    ) -> None:
        self.propagator = system.propagator(method, h)
        self.stability_time = -time.perf_counter()
        if not allow_unstable:
            require_stable(self.propagator)
        self.stability_time += time.perf_counter()
        n = system.n
        dofs = stored_dofs(output, n)
        self.columns = np.concatenate([dofs, n + dofs]).astype(np.int64)
        self.y, self.carry = np.concatenate([q, p]), np.zeros(2 * n)
        self.t, self.first = t, 0
        self.propagator.prepare()

    def require_load(self, steps: int) -> None:
        """Ask for the load at both ends of so many steps now, not then: samples may be too few."""
        f = self.propagator.system.f
        if isinstance(f, Samples):
            f(self.t)
            f(self.t + steps * self.propagator.h)

    def advance(self, steps: int, every: int, last: int, rows: FloatArray) -> Advanced:
        """At most `steps` steps; the stored states go to rows. Returns steps done, rows written, and a failure."""
        if self.propagator.small:
            done, stored, finite = self._loop(steps, every, last, rows)
        else:
            with one_thread() if self.propagator.system.sparse else nullcontext():
                done, stored, finite = self._solve(steps, every, last, rows)
        self.first += done
        if finite:
            return done, stored, None
        if self.first % every:  # where the run has come to
            rows[stored] = self.y[self.columns]
            stored += 1
        return done, stored, Failure(NOT_FINITE, float("nan"), 0, 0.0)

    def _loop(self, steps: int, every: int, last: int, rows: FloatArray) -> tuple[int, int, bool]:
        op, h = self.propagator.operator, self.propagator.h
        n = len(self.y) // 2
        F, nodes = np.zeros((1, 1)), 0
        if self.propagator.system.f is not None:
            steps, nodes = min(steps, LOADED_STEPS), len(op.c)
            F = np.array([self.propagator.load(self.t + (self.first + k) * h) for k in range(steps)])
        memory = Memory()
        numbers = {"n": 2 * n, "loads": nodes * n, "width": len(self.columns), "first": self.first, "steps": steps}
        place = memory.add((LINEAR, numbers | {"every": every, "last": last, "done": 0, "stored": 0, "status": 0}))
        I, D = memory.finish().I, memory.D
        arrays = (op.W, op.W_low, op.G, F, self.y, self.carry, np.empty(2 * n), self.columns, rows)
        loop("linear.run")(I, D, place, *arrays)
        done, stored, status = (int(I[memory.number(place, LINEAR, name)]) for name in ("done", "stored", "status"))
        return done, stored, status == GOING_WELL

    def _solve(self, steps: int, every: int, last: int, rows: FloatArray) -> tuple[int, int, bool]:
        h, n = self.propagator.h, len(self.y) // 2
        q, p = self.y[:n], self.y[n:]
        clock, stored = time.perf_counter(), 0
        for k in range(self.first, self.first + steps):
            with np.errstate(over="ignore", invalid="ignore"):
                z, dp = self.propagator.increments(q, p, self.t + k * h)
                finite = bool(np.isfinite(q + z).all() and np.isfinite(p + dp).all())
            if not finite:
                return k - self.first, stored, False
            _add(q, self.carry[:n], z)
            _add(p, self.carry[n:], dp)
            if (k + 1) % every == 0 or k + 1 == last:
                rows[stored] = self.y[self.columns]
                stored += 1
            if time.perf_counter() - clock > PIECE_SECONDS:
                return k + 1 - self.first, stored, True
        return steps, stored, True

    def polynomials(self, starts: FloatArray) -> tuple[FloatArray, int]:
        """The increments z, (K, s, n), of single steps from rows (t, q, p), and how many could be solved."""
        n = len(self.y) // 2
        z = [self.propagator.polynomial(row[1 : n + 1], row[n + 1 :], row[0]) for row in starts]
        return np.array(z), len(starts)

    def state(self) -> dict[str, NDArray[Any]]:
        return {"y": self.y.copy(), "carry": self.carry.copy(), "first": np.array(self.first)}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self.y[:], self.carry[:], self.first = state["y"], state["carry"], int(state["first"])

    def counts(self) -> dict[str, Any]:
        return {"stability_time": self.stability_time, **self.propagator.counts()}


def stored_dofs(output: ArrayLike | None, n: int) -> NDArray[np.int64]:
    """The degrees of freedom to store, checked; all of them for None."""
    return np.arange(n) if output is None else chosen_dofs(output, n, "output")


def _add(x: FloatArray, carry: FloatArray, d: FloatArray) -> None:
    """x + carry ← x + carry + d, in place (Knuth's two-sum); d is used up."""
    d += carry
    after = x + d
    rounded = after - x
    np.subtract(x, after - rounded, out=carry)
    d -= rounded
    carry += d
    x[:] = after
