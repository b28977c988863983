"""The classical Runge–Kutta method at work on a vector field, at any precision, with its derivative where asked for.

Time is counted in steps, t = t₀ + σ h: with y′(σ) = h f(t₀ + σ h, y) every step has the length one, and h is a
parameter like the others. The derivative D stands behind (q, p) or (q, v) in y: that of a step is RK4 itself on the
equations of the derivative.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from leastaction.backends.field import explicit, field, momenta, slopes
from leastaction.backends.flint.driven import Driven
from leastaction.backends.flint.evaluate import function, number
from leastaction.backends.flint.mechanics import Mechanics, solve, solve_matrix
from leastaction.backends.flint.run import Run
from leastaction.backends.rows import Row
from leastaction.backends.status import NOT_FINITE, SINGULAR, Failure
from leastaction.backends.stepper import Start
from leastaction.methods import RungeKutta4
from leastaction.methods.rk4 import after
from leastaction.numbers.conversion import Balls, ball, balls, mpfs
from leastaction.numbers.precision import flint_bits
from leastaction.numbers.rounding import to_mpf


class RK4Stepper(Run):
    """Runs from a start."""

    def __init__(self, mechanics: Mechanics, method: RungeKutta4, start: Start, row: Row | None = None) -> None:
        self.row = row or Row.whole(mechanics.n)
        self.mechanics, self.n, self.bits, self.form = mechanics, mechanics.n, mechanics.bits, method.form
        system, C = mechanics.system, self.row.varied
        outer = ("params", "t") if 2 * self.n < C else ()
        whole, self._implicit = field(system, method.form), not explicit(system, method.form)
        rate = slopes(system, method.form, outer) if C else whole.select("rate")
        momentum = momenta(system, *(("q", "v", *outer) if C else ()))
        with flint_bits(self.bits):
            self._t, self._h, given = ball(start.t), ball(start.h), balls(start.params)
            self._v = balls(start.v)
            self._y = balls(start.q) + (balls(start.p) if method.form == "hamilton" else self._v)
            self._equation, self._rate, self._momentum = (
                function(program, program.results, given) for program in (whole.select("gap", "mass"), rate, momentum)
            )
            self._c = [number(c) for c in method.c]
            self._weights = method.weights(number)
            self._driven = Driven(system, start, np.array([to_mpf(c, self.bits) for c in method.c], dtype=object))
        self.count_from(0)

    def count_from(self, step: int) -> None:
        super().count_from(step)
        n, C = self.n, self.row.varied
        with flint_bits(self.bits):
            D = flint.arb_mat([[int(i == j) for j in range(C)] for i in range(2 * n)])
            if C and self.form == "lagrange":  # dv = p_v⁻¹ (dp − p_q dq − p_w dw − p_t dt)
                by, rows = self._momenta()[1].tolist(), D.tolist()
                still = flint.arb_mat([[*row[:n], *[0] * n, *row[2 * n :]] for row in by])
                mass = flint.arb_mat([row[n : 2 * n] for row in by])
                right = flint.arb_mat(rows[n:]) - still * self._turned(D, step)
                D = flint.arb_mat(rows[:n] + solve_matrix(mass, right).tolist())
            self._y = self._y[: 2 * n] + _columns(D)

    def step(self) -> Failure | None:
        given, stages = self._driven.step(self.done), len(self._c)
        size = len(given) // stages

        def slope(i: int, y: Balls) -> Balls | None:
            return self._field(self.done + self._c[i], _rounded(y), given[i * size : (i + 1) * size])

        found = after(self._weights, self._y, slope)
        if found is None:
            return Failure(SINGULAR)
        found = _rounded(found)
        if not all(x.is_finite() for x in found):
            return Failure(NOT_FINITE)
        self._y = found
        return None

    def now(self) -> Balls:
        if self.form == "hamilton":
            return self._y
        n, D = self.n, self._derivative(self._y)
        p, by = self._momenta()
        pushed = (by * self._turned(D, self.done)).mid().tolist() if self.row.varied else []
        return self._y[:n] + p + _columns(flint.arb_mat(D.tolist()[:n] + pushed))

    def saved(self) -> dict[str, NDArray[Any]]:
        return {"integers": np.array([self.done]), "y": mpfs(self._y), "v": mpfs(self._v)}

    def load(self, saved: Mapping[str, NDArray[Any]]) -> None:
        self.done, self._y, self._v = int(saved["integers"][0]), balls(saved["y"]), balls(saved["v"])

    def _time(self, sigma: Any) -> Any:
        return (self._t + sigma * self._h).mid()

    def _field(self, sigma: Any, y: Balls, u: Balls) -> Balls | None:
        """h ẏ at y, after σ steps, with the inputs u; None where the mass is singular."""
        n, C, t = self.n, self.row.varied, self._time(sigma)
        state, x = y[: 2 * n], [flint.arb(0)] * n
        if self._implicit:
            found = self.mechanics.invert(t, y[:n], y[n : 2 * n], self._v)
            if found is None:
                return None
            x = self._v = found
        if C or not self._implicit:
            equation = self._equation(t, *state, *u, *x)
            mass = flint.arb_mat(n, n, equation[n:])
        if not self._implicit:
            solved = solve(mass, flint.arb_mat(n, 1, equation[:n]))
            if solved is None:
                return None
            x = solved
        found = _rounded(self._rate(t, *state, *u, *x))
        rate = found[: 2 * n]
        if not C:
            return [z * self._h for z in rate]
        d = self._turned(self._derivative(y), sigma)
        by = [found[2 * n + i : 2 * n + i + d.nrows() + n] for i in range(0, 3 * n * (d.nrows() + n), d.nrows() + n)]
        dx = solve_matrix(mass, flint.arb_mat([row[: d.nrows()] for row in by[2 * n :]]) * d)
        change = (flint.arb_mat(by[: 2 * n]) * flint.arb_mat(d.tolist() + dx.tolist()) * self._h).tolist()
        for row, z in zip(change if 2 * n < C else [], rate, strict=False):  # the rate grows with h
            row[-1] += z
        return [z * self._h for z in rate] + _columns(flint.arb_mat(change))

    def _momenta(self) -> tuple[Balls, Any]:
        """p of the state (q, v), and its derivatives by q, v, and where they vary by w and t."""
        n = self.n
        found = _rounded(self._momentum(self._time(self.done), *self._y[: 2 * n]))
        return found[:n], flint.arb_mat(n, len(found) // n - 1, found[n:])

    def _derivative(self, y: Balls) -> Any:
        """D, which stands behind (q, p) or (q, v) in y."""
        n = self.n
        return flint.arb_mat([y[2 * n + i :: 2 * n] for i in range(2 * n)])

    def _turned(self, D: Any, sigma: Any) -> Any:
        """How much q and p or v, the parameters and t = t₀ + σ h vary with each quantity: t varies with h."""
        n, C = self.n, self.row.varied
        outer = [[int(i == j) for j in range(C)] for i in range(2 * n, C - 1)]
        last = [[*[0] * (C - 1), sigma]] if 2 * n < C else []
        return flint.arb_mat(D.tolist() + outer + last)


def _rounded(x: Balls) -> Balls:
    return [each.mid() for each in x]


def _columns(D: Any) -> Balls:
    return list(D.transpose().entries())
