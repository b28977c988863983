"""A linear run in the making: what a run asks of a backend, for Quadratic systems.

The state is the unevaluated sum y + carry of what is stored and what rounding lost, so that increments are never lost
in something big. Small dense systems run in the native loop, large ones solve.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.kernel.loops import linear, padded
from leastaction.linear.factor import one_thread
from leastaction.linear.system import Quadratic
from leastaction.methods import Method
from leastaction.step.status import NOT_FINITE, Failure
from leastaction.step.stepper import Alone, Start
from leastaction.step.stored_row import Row

FloatArray = NDArray[np.float64]

NEVER = 2**62  # so many steps a state is stored after where none is to be stored
PIECE_SECONDS = 0.2  # a piece of solves ends after this long, however many steps were asked for
LOADED_STEPS = 1000  # … and one of the native loop after this many, where each needs the load from Python …
LOADED_NUMBERS = 2**20  # … and one of solves when the loads of its steps are as many numbers


class LinearStepper(Alone):
    """One method on one Quadratic system, from a start.

    row    what is stored of a state
    """

    INTEGERS: tuple[str, ...] = ("steps", "carried")

    def __init__(self, system: Quadratic, method: Method, start: Start, row: Row | None = None) -> None:
        self.propagator = system.propagator(method, start.h)
        self.row = row or Row.whole(system.n)
        self._padded = np.zeros((2, padded(2 * system.n)))
        self.y, self.carry = self._padded[:, : 2 * system.n]
        self.y[:] = np.concatenate([start.q, start.p])
        self.t = start.t
        self.D: FloatArray = self.row.directions()  # after `_carried` steps; empty if nothing is varied
        self._carried = 0
        self.propagator.prepare()

    def advance(self, steps: int, every: int, first: int, rows: FloatArray) -> int:
        """At most `steps` steps, fewer where they take long; see `Stepper`."""
        begun = self.done
        place = begun // every + 1 - first if every else 0
        target = rows[0, place:]
        if self.propagator.small:
            done, stored, finite = self._loop(steps, every or NEVER, target)
        else:
            with one_thread() if self.propagator.system.sparse else nullcontext():
                done, stored, finite = self._solve(steps, every or NEVER, target)
        self.done += done
        if self.row.varied:
            for i, row in enumerate(target[:stored]):
                self._carry((begun // every + 1 + i) * every)
                row[len(self.row.columns) :] = self.D.ravel()
        if not finite:
            self.failed = Failure(NOT_FINITE)
        return done

    def count_from(self, step: int) -> None:
        super().count_from(step)
        self._carried = step

    def _carry(self, k: int) -> None:
        """The derivative after k steps: a power of the matrix of one."""
        self.D = self.D @ self.propagator.power(k - self._carried).T
        self._carried = k

    def _loop(self, steps: int, every: int, rows: FloatArray) -> tuple[int, int, bool]:
        op, h = self.propagator.operator, self.propagator.h
        size, loads, F = len(self.y), 0, np.zeros((1, 1))
        if self.propagator.system.f is not None:
            steps = min(steps, LOADED_STEPS)
            loaded = self.propagator.load(self.t + (self.done + np.arange(steps)) * h)
            assert loaded is not None
            loads, F = op.G.shape[1], loaded
        arrays = (*self._matrices, F, *self._padded, np.zeros(self._padded.shape[1]), self.row.columns, rows)
        lengths = (size, self._padded.shape[1], loads, len(self.row.columns), self.row.width)
        done = linear(size)(*arrays, *lengths, every - self.done % every, every, steps)
        return done, (self.done + done) // every - self.done // every, done == steps

    @cached_property
    def _matrices(self) -> list[FloatArray]:
        """W, W_low and G, transposed and padded with zeros."""
        op, pad = self.propagator.operator, self._padded.shape[1] - len(self.y)
        return [np.ascontiguousarray(np.pad(a, ((0, pad), (0, 0))).T) for a in (op.W, op.W_low, op.G)]

    def _solve(self, steps: int, every: int, rows: FloatArray) -> tuple[int, int, bool]:
        solves, n = self.propagator.solves, len(self.y) // 2
        steps = min(steps, max(1, LOADED_NUMBERS // (n * len(solves.c))))
        loads = self.propagator.load(self.t + (self.done + np.arange(steps)) * self.propagator.h)
        clock, stored, columns = time.perf_counter(), 0, self.row.columns
        change = np.empty(2 * n)
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(steps):
                load = None if loads is None else loads[k]
                change[:n], change[n:] = solves.increments(self.y[:n], self.y[n:], load)
                if not self._add(change):
                    return k, stored, False
                if (self.done + k + 1) % every == 0:
                    rows[stored, : len(columns)] = self.y[columns]
                    stored += 1
                if time.perf_counter() - clock > PIECE_SECONDS:
                    return k + 1, stored, True
        return steps, stored, True

    def _add(self, d: FloatArray) -> bool:
        """y + carry ← y + carry + d (Knuth's two-sum), unless that is not finite; d is used up."""
        x, carry = self.y, self.carry
        d += carry
        after = x + d
        if not np.isfinite(after).all():
            return False
        rounded = after - x
        np.subtract(x, after - rounded, out=carry)
        d -= rounded
        carry += d
        x[:] = after
        return True

    def polynomials(self, starts: FloatArray) -> tuple[FloatArray, int]:
        """The increments z, (K, s, n), of single steps from rows (t, q, p), and how many could be solved."""
        n = len(self.y) // 2
        z = [self.propagator.polynomial(row[1 : n + 1], row[n + 1 :], row[0]) for row in starts]
        return np.array(z), len(starts)

    def at(self) -> FloatArray:
        found = self.y[None].copy()
        if not self.row.varied:
            return found
        D = self.D @ self.propagator.power(self.done - self._carried).T
        return np.concatenate([found, D.reshape(1, -1)], axis=1)

    def state(self) -> dict[str, NDArray[Any]]:
        integers = np.array([[self.done, self._carried]])
        state = {"y": self.y[None].copy(), "carry": self.carry[None].copy(), "integers": integers}
        return state | {"directions": self.D[None].copy()} if self.row.varied else state

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self.y[:], self.carry[:] = state["y"][0], state["carry"][0]
        self.done, self._carried = state["integers"][0].tolist()
        if self.row.varied:
            self.D = state["directions"][0].copy()

    def counts(self) -> dict[str, Any]:
        return self.propagator.counts()
