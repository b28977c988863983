"""The classical Runge–Kutta method at work, at any precision: on (q, p), or on (q, v).

Time is counted in steps, t = t₀ + σ h: with y′(σ) = h f(t₀ + σ h, y) every step has the length one, and h is a
parameter like the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from leastaction.backends.flint.driven import Driven
from leastaction.backends.flint.evaluate import number
from leastaction.backends.flint.mechanics import Mechanics
from leastaction.backends.flint.run import Run
from leastaction.backends.rows import Row
from leastaction.backends.status import NOT_FINITE, SINGULAR, Failure
from leastaction.backends.stepper import Start
from leastaction.methods import RungeKutta4
from leastaction.numbers.conversion import Balls, ball, balls, mpfs
from leastaction.numbers.precision import flint_bits
from leastaction.numbers.rounding import to_mpf


class RK4Stepper(Run):
    """Runs from a start."""

    def __init__(self, mechanics: Mechanics, method: RungeKutta4, start: Start, row: Row | None = None) -> None:
        self.row = row or Row.whole(mechanics.n)
        self.mechanics, self.n, self.bits, self.form = mechanics, mechanics.n, mechanics.bits, method.form
        with flint_bits(self.bits):
            self._t, self._h = ball(start.t), ball(start.h)
            self._v = balls(start.v)
            self._y = balls(start.q) + (balls(start.p) if method.form == "hamilton" else self._v)
            self._c, self._b = ([number(x) for x in row] for row in (method.c, method.b))
            self._driven = Driven(
                mechanics.system, start, np.array([to_mpf(c, self.bits) for c in method.c], dtype=object)
            )
            self._u: Balls = [flint.arb(0)] * mechanics.system.channels  # the inputs of the stage that is worked on
            self._a = [[number(x) for x in row] for row in method.a]

    def step(self) -> Failure | None:
        rates: list[Balls] = []
        given, stages = self._driven.step(self.done), len(self._c)
        size = len(given) // stages
        for i, (c, a) in enumerate(zip(self._c, self._a, strict=True)):
            self._u = given[i * size : (i + 1) * size]
            rate = self._field(self.done + c, self._moved(a, rates))
            if rate is None:
                return Failure(SINGULAR, float("nan"), 0, 0.0)
            rates.append(rate)
        after = self._moved(self._b, rates)
        if not all(x.is_finite() for x in after):
            return Failure(NOT_FINITE, float("nan"), 0, 0.0)
        self._y = after
        return None

    def now(self) -> Balls:
        q, p = self._y[: self.n], self._y[self.n : 2 * self.n]
        return q + (p if self.form == "hamilton" else self.mechanics.momentum_balls(self._time(self.done), q, p))

    def saved(self) -> dict[str, NDArray[Any]]:
        return {"integers": np.array([self.done]), "y": mpfs(self._y), "v": mpfs(self._v)}

    def load(self, saved: Mapping[str, NDArray[Any]]) -> None:
        self.done, self._y, self._v = int(saved["integers"][0]), balls(saved["y"]), balls(saved["v"])

    def _time(self, sigma: Any) -> Any:
        return (self._t + sigma * self._h).mid()

    def _moved(self, weights: Balls, rates: list[Balls]) -> Balls:
        """y + Σ_j weights_j rates_j."""
        y = list(self._y)
        for weight, rate in zip(weights, rates, strict=True):
            if not weight.is_zero():
                y = [a + weight * b for a, b in zip(y, rate, strict=True)]
        return [x.mid() for x in y]

    def _field(self, sigma: Any, y: Balls) -> Balls | None:
        """h (q̇, ṗ) or h (q̇, v̇) at y, after σ steps."""
        n, mechanics, t = self.n, self.mechanics, self._time(sigma)
        q, v = y[:n], y[n : 2 * n]
        if self.form == "lagrange":
            rate = mechanics.accelerate(t, q, v, self._u)
        else:
            found = mechanics.invert(t, q, v, self._v)
            if found is None:
                return None
            v = self._v = found
            rate = mechanics.force_balls(t, q, v, self._u)
        return None if rate is None else [x * self._h for x in v + rate]
