"""Runs in the making, at any precision: what `integrate` asks of a method at work."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from leastaction.methods import Galerkin, Method, RungeKutta4
from leastaction.precision.arithmetic import ball, balls, largest, log2, matrix, mpfs
from leastaction.precision.equations import Coefficients, Equations
from leastaction.precision.linear import LinearMechanics, LinearStepper
from leastaction.precision.mechanics import Mechanics
from leastaction.precision.newton import Reached, continue_from_rest, solve_step
from leastaction.backends.status import GOING_WELL, NOT_FINITE, SINGULAR, Failure
from leastaction.backends.stepper import Start, Stepper
from leastaction.step.prediction import WHOLE as WHOLE_POLYNOMIAL
from leastaction.step.verdict import ON_THE_BRANCH
from leastaction.working import flint_bits

Mpfs = NDArray[np.object_]
Advanced = tuple[int, int, Failure | None]


def stepper(mechanics: Mechanics | LinearMechanics, method: Method, start: Start) -> Stepper:
    """The stepper of a method on a system."""
    if isinstance(mechanics, LinearMechanics):
        return LinearStepper(mechanics, method, start)
    if isinstance(method, Galerkin):
        return GalerkinStepper(mechanics, method, start)
    return RK4Stepper(mechanics, method, start)


class GalerkinStepper:
    """A member of the PsNrQu family at work; the algorithm is that of `stepping.loops.galerkin`.

    Compensated sums have no place here: the guard bits hold what they would save.
    """

    def __init__(self, mechanics: Mechanics, method: Galerkin, start: Start) -> None:
        self.mechanics, self.n, self.s, self.bits = mechanics, mechanics.n, method.s, mechanics.bits
        table = method.exact_table(round(self.bits * 0.302) + 2)
        with flint_bits(self.bits):
            self._t, self._h = ball(start.t), ball(start.h)
            self._q, self._p, self._v = balls(start.q), balls(start.p), balls(start.v)
            self._coefficients = Coefficients(table)
            self._d = balls(table["d"])
            self._modes, self._growth = matrix(table["modes"]), matrix(table["growth"])
            self._equations = lru_cache(maxsize=64)(self._at_fraction)
        self._z: list[Any] | None = None  # of the last step; the first is found by continuation
        self._length = -math.inf  # log₂ of the last step but one
        self._degree, self._first = method.s, 0
        self._prediction: float | None = None
        self._iterations = self._most = self._continued = 0
        self._floor = 0.0

    def _at_fraction(self, fraction: float) -> Equations:
        return Equations(self._coefficients, self._h if fraction == 1.0 else (self._h * fraction).mid(), self.mechanics)

    def advance(self, steps: int, every: int, last: int, rows: Mpfs) -> Advanced:
        """Do steps, write the stored states (q, p) to rows; return steps done, rows written, and a failure."""
        n, s = self.n, self.s
        stored = 0
        with flint_bits(self.bits):
            for k in range(self._first, self._first + steps):
                t = (self._t + k * self._h).mid()
                if self._z is None:
                    found = self._continue(t)
                else:
                    length, modes = log2(largest(self._z)), (self._modes * flint.arb_mat(s, n, self._z)).mid()
                    found = self._solve(t, self._predicted(modes, self._degree), max(length, self._length))
                    self._length = length
                solution = found.solution
                self._iterations += found.iterations
                self._most = max(self._most, found.iterations)
                if found.status != GOING_WELL:
                    failure = Failure(found.status, solution.left, found.iterations, found.fraction)
                    if k % every:
                        rows[stored] = mpfs(self._q + self._p)
                        stored += 1
                    done, self._first = k - self._first, k
                    return done, stored, failure
                self._floor = max(self._floor, solution.left)
                if self._z is not None and s > WHOLE_POLYNOMIAL:
                    self._degree = self._best_degree(modes, solution.z)
                self._z = solution.z
                self._q = [(a + b).mid() for a, b in zip(self._q, solution.z[-n:], strict=True)]
                self._p = [(a + b).mid() for a, b in zip(self._p, solution.impulse, strict=True)]
                if (k + 1) % every == 0 or k + 1 == last:
                    rows[stored] = mpfs(self._q + self._p)
                    stored += 1
            self._first += steps
        return steps, stored, None

    def _solve(self, t: Any, z: list[Any], length: float) -> Reached:
        """The step from the state at t, predicted by z; it may go thrice as far as 2^length."""
        reach = math.log2(3) + length
        solution = solve_step(self._equations(1.0), t, self._q, self._p, z, self.bits, reach, self._prediction)
        self._prediction = solution.first
        if solution.status == GOING_WELL and solution.contraction <= ON_THE_BRANCH:
            return Reached(solution, GOING_WELL, solution.iterations, 1.0)
        self._continued += 1
        found = self._continue(t)
        found.iterations += solution.iterations
        return found

    def _continue(self, t: Any) -> Reached:
        """The step from the state at t, followed from h = 0."""
        v = self.mechanics.invert(t, self._q, self._p, self._v)
        return continue_from_rest(self._equations, self._d, t, self._q, self._p, v, self.bits)

    def _predicted(self, modes: Any, degree: int) -> list[Any]:
        """The last step's polynomial, cut to so many velocity modes and prolonged over the next step."""
        n, s = self.n, self.s
        if degree == s:
            return list((self._growth * modes).mid().entries())
        kept = flint.arb_mat(s, n, [x if i < degree * n else 0 for i, x in enumerate(modes.entries())])
        return list((self._growth * kept).mid().entries())

    def _best_degree(self, modes: Any, z: list[Any]) -> int:
        """The degree that would have predicted the step just solved best."""
        errors = []
        for degree in range(1, self.s + 1):
            predicted = self._predicted(modes, degree)
            errors.append(largest([(a - b).mid() for a, b in zip(predicted, z, strict=True)]))
        return 1 + min(range(self.s), key=lambda i: errors[i])

    def polynomials(self, starts: Mpfs) -> tuple[Mpfs, int]:
        """The increments z, (K, s, n), of single steps from rows (t, q, p), and how many could be solved."""
        n, s = self.n, self.s
        result = np.empty((len(starts), s, n), dtype=object)
        with flint_bits(self.bits):
            for k, (t, *state) in enumerate(starts):
                self._q, self._p, time = balls(state[:n]), balls(state[n:]), ball(t)
                v = self.mechanics.invert(time, self._q, self._p, self._v)
                if v is None:
                    return result, k
                self._v = v
                z = [(x * self._h * speed).mid() for x in self._d[1:] for speed in v]
                found = self._solve(time, z, log2(largest(z)))
                if found.status != GOING_WELL:
                    return result, k
                result[k] = mpfs(found.solution.z).reshape(s, n)
        return result, len(starts)

    def counts(self) -> dict[str, float]:
        return {
            "newton_iterations": self._iterations,
            "most_iterations": self._most,
            "floor": self._floor,
            "continued": self._continued,
        }


class RK4Stepper:
    """The classical Runge–Kutta method at work, on (q, p) or (q, v)."""

    def __init__(self, mechanics: Mechanics, method: RungeKutta4, start: Start) -> None:
        self.mechanics, self.n, self._form, self._first = mechanics, mechanics.n, method.form, 0
        with flint_bits(mechanics.bits):
            self._t, self._h = ball(start.t), ball(start.h)
            self._v = balls(start.v)
            self._y = balls(start.q) + (balls(start.p) if method.form == "hamilton" else self._v)

    def advance(self, steps: int, every: int, last: int, rows: Mpfs) -> Advanced:
        """Do steps, write the stored states (q, p) to rows; return steps done, rows written, and a failure."""
        h, stored = self._h, 0
        with flint_bits(self.mechanics.bits):
            for k in range(self._first, self._first + steps):
                after = self._step((self._t + k * h).mid())
                if isinstance(after, int):
                    if k % every:
                        rows[stored] = self._state(k)
                        stored += 1
                    done, self._first = k - self._first, k
                    return done, stored, Failure(after, float("nan"), 0, 0.0)
                self._y = after
                if (k + 1) % every == 0 or k + 1 == last:
                    rows[stored] = self._state(k + 1)
                    stored += 1
            self._first += steps
        return steps, stored, None

    def _state(self, k: int) -> Mpfs:
        """(q, p) after k steps."""
        q, p = self._y[: self.n], self._y[self.n :]
        if self._form == "lagrange":
            p = self.mechanics.momentum_balls((self._t + k * self._h).mid(), q, p)
        return mpfs(q + p)

    def _step(self, t: Any) -> list[Any] | int:
        """y after one step, or the status that ended it."""
        y, h = self._y, self._h
        argument, slopes = y, []
        for behind, ahead in ((0, h / 2), (h / 2, h / 2), (h / 2, h), (h, None)):
            slope = self._field(t + behind, argument)
            if slope is None:
                return SINGULAR
            slopes.append(slope)
            if ahead is not None:
                argument = [(a + ahead * b).mid() for a, b in zip(y, slope, strict=True)]
        total = [(a + 2 * (b + c) + d) * h / 6 for a, b, c, d in zip(*slopes, strict=True)]
        result = [(a + b).mid() for a, b in zip(y, total, strict=True)]
        return result if all(x.is_finite() for x in result) else NOT_FINITE

    def _field(self, t: Any, y: list[Any]) -> list[Any] | None:
        """(q̇, ṗ) or (q̇, v̇) at y."""
        n, mechanics = self.n, self.mechanics
        q, v = y[:n], y[n:]
        if self._form == "lagrange":
            a = mechanics.accelerate(t, q, v)
            return None if a is None else v + a
        found = mechanics.invert(t, q, y[n:], self._v)
        if found is None:
            return None
        self._v = found
        return found + [x.mid() for x in mechanics.force(t, *q, *found)[:n]]

    def counts(self) -> dict[str, float]:
        return {}
