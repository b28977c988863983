"""The classical Runge–Kutta method at work on a vector field, at any precision, with its derivative where asked for.

Time is counted in steps, t = t₀ + σ h: with y′(σ) = h f(t₀ + σ h, y) every step has the length one, and h is a
parameter like the others. The derivative D of y = (q, p) or (q, v) goes through the stages with y, column by column:
that of a step is RK4 itself on the equations of the derivative.
"""

from __future__ import annotations

from typing import Any

import flint
import numpy as np

from leastaction.flint.evaluate import function, number
from leastaction.flint.mechanics import Mechanics, solve
from leastaction.flint.run import Driven, Run, behind
from leastaction.methods import RungeKutta4
from leastaction.methods.rk4 import increments
from leastaction.numbers.conversion import Balls, ball, balls
from leastaction.numbers.precision import flint_bits
from leastaction.numbers.rounding import to_mpf
from leastaction.step.field import explicit, field, momenta, slopes
from leastaction.step.status import NOT_FINITE, SINGULAR, Failure
from leastaction.step.stepper import Start
from leastaction.step.stored_row import Row


class RK4Stepper(Run):
    """Runs from a start; `v` is where the search for a velocity begins."""

    NUMBERS = ("y", "D", "v")

    def __init__(self, mechanics: Mechanics, method: RungeKutta4, start: Start, row: Row | None = None) -> None:
        self.row = row or Row.whole(mechanics.n)
        self.mechanics, self.n, self.bits, self.form = mechanics, mechanics.n, mechanics.bits, method.form
        system, C = mechanics.system, self.row.varied
        outer = ("params", "t") if 2 * self.n < C else ()
        whole, self._implicit = field(system, method.form), not explicit(system, method.form)
        rate = slopes(system, method.form, outer) if C else whole.select("rate")
        momentum = momenta(system, *(("q", "v", *outer) if C else ()))
        with flint_bits(self.bits):
            self._t, self._h, given, self.v = ball(start.t), ball(start.h), balls(start.params), balls(start.v)
            self.y = balls(start.q) + (balls(start.p) if method.form == "hamilton" else self.v)
            self._equation, self._rate, self._momentum = (
                function(program, program.results, given) for program in (whole.select("gap", "mass"), rate, momentum)
            )
            self._c, self._weights = [number(c) for c in method.c], method.weights(number)
            self._driven = Driven(system, start, np.array([to_mpf(c, self.bits) for c in method.c], dtype=object))
        self.count_from(0)

    def count_from(self, step: int) -> None:
        super().count_from(step)
        n, C = self.n, self.row.varied
        with flint_bits(self.bits):
            self.begin_derivative()
            if C and self.form == "lagrange":  # dv = p_v⁻¹ (dp − p_q dq − p_w dw − p_t dt)
                by, rows = self._momenta()[1].tolist(), flint.arb_mat(2 * n, C, self.D).tolist()
                still = flint.arb_mat([[*row[:n], *[0] * n, *row[2 * n :]] for row in by])
                mass = flint.arb_mat([row[n : 2 * n] for row in by])
                right = flint.arb_mat(rows[n:]) - still * self._turned(self.D, step)
                self.D = [*self.D[: n * C], *solve(mass, right).entries()]

    def step(self) -> Failure | None:
        given, stages, n = self._driven.step(self.done), len(self._c), 2 * self.n
        size = len(given) // stages

        def slope(i: int, y: Balls) -> Balls | None:
            y = [x.mid() for x in y]
            return self._field(self.done + self._c[i], y[:n], y[n:], given[i * size : (i + 1) * size])

        before = self.y + self.D
        moves = increments(self._weights, before, slope)
        if moves is None or not all(x.is_finite() for x in moves):
            return Failure(SINGULAR if moves is None else NOT_FINITE)
        found = [(x + move).mid() for x, move in zip(before, moves, strict=True)]
        self.y, self.D = found[:n], found[n:]
        return None

    def now(self) -> Balls:
        n, C, y, D = self.n, self.row.varied, self.y, self.D
        if self.form == "lagrange":
            p, by = self._momenta()
            y = y[:n] + p
            D = [*D[: n * C], *(by * self._turned(D, self.done)).mid().entries()] if C else []
        return y + behind(D, C)

    def _time(self, sigma: Any) -> Any:
        return (self._t + sigma * self._h).mid()

    def _field(self, sigma: Any, y: Balls, D: Balls, u: Balls) -> Balls | None:
        """h ẏ at y, after σ steps, with the inputs u, and behind it that of D; None where the mass is singular."""
        n, C, t, x = self.n, self.row.varied, self._time(sigma), [flint.arb(0)] * self.n
        if self._implicit:
            found = self.mechanics.search(t, y[:n], y[n:], self.v)
            if found is None:
                return None
            x = self.v = found
        if C or not self._implicit:
            equation = self._equation(t, *y, *u, *x)
            mass = flint.arb_mat(n, n, equation[n:])
        if not self._implicit:
            solved = solve(mass, flint.arb_mat(n, 1, equation[:n]))
            if solved is None:
                return None
            x = list(solved.entries())
        found = self._rate(t, *y, *u, *x)
        rate = found[: 2 * n]
        if not C:
            return [z * self._h for z in rate]
        d = self._turned(D, sigma)
        width = d.nrows() + n
        by = [found[i : i + width] for i in range(2 * n, len(found), width)]
        dx = solve(mass, flint.arb_mat([row[:-n] for row in by[2 * n :]]) * d)
        change = (flint.arb_mat(by[: 2 * n]) * flint.arb_mat(d.tolist() + dx.tolist()) * self._h).tolist()
        for row, z in zip(change if 2 * n < C else [], rate, strict=False):  # the rate grows with h
            row[-1] += z
        return [z * self._h for z in rate] + [z for row in change for z in row]

    def _momenta(self) -> tuple[Balls, Any]:
        """p of the state (q, v), and its derivatives by q, v, and where they vary by w and t."""
        n = self.n
        found = self._momentum(self._time(self.done), *self.y)
        return found[:n], flint.arb_mat(n, len(found) // n - 1, found[n:]).mid()

    def _turned(self, D: Balls, sigma: Any) -> Any:
        """How much q and p or v, the parameters and t = t₀ + σ h vary with each quantity: t varies with h."""
        n, C = self.n, self.row.varied
        outer = [[int(i == j) for j in range(C)] for i in range(2 * n, C - 1)]
        last = [[*[0] * (C - 1), sigma]] if 2 * n < C else []
        return flint.arb_mat(flint.arb_mat(2 * n, C, D).tolist() + outer + last)
