"""The classical Runge–Kutta method at work, at any precision: on (q, p), or on (q, v)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.flint.arithmetic import Balls, ball, balls, mpfs
from leastaction.backends.flint.evaluate import number
from leastaction.backends.flint.mechanics import Mechanics
from leastaction.methods import RungeKutta4
from leastaction.stepping.layout import NOT_FINITE, SINGULAR
from leastaction.stepping.stepper import Failure, Start
from leastaction.working import flint_bits

Mpfs = NDArray[np.object_]
Advanced = tuple[int, int, Failure | None]


class RK4Stepper:
    """Runs from a start."""

    def __init__(self, mechanics: Mechanics, method: RungeKutta4, start: Start) -> None:
        self.mechanics, self.n, self.form, self._first = mechanics, mechanics.n, method.form, 0
        with flint_bits(mechanics.bits):
            self._t, self._h = ball(start.t), ball(start.h)
            self._v = balls(start.v)
            self._y = balls(start.q) + (balls(start.p) if method.form == "hamilton" else self._v)
            # h c_i, h a_ij, h b_j
            self._c, *self._a = ([(number(x) * self._h).mid() for x in row] for row in (method.c, *method.a, method.b))

    def advance(self, steps: int, every: int, last: int, rows: Mpfs) -> Advanced:
        """Do steps, write the stored states (q, p) to rows; return steps done, rows written, and a failure."""
        stored = 0
        with flint_bits(self.mechanics.bits):
            for k in range(self._first, self._first + steps):
                after = self._step((self._t + k * self._h).mid())
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
        if self.form == "lagrange":
            p = self.mechanics.momentum_balls((self._t + k * self._h).mid(), q, p)
        return mpfs(q + p)

    def _step(self, t: Any) -> Balls | int:
        """y after one step, or the status that ended it."""
        slopes: list[Balls] = []
        for c, a in zip(self._c, self._a, strict=False):
            slope = self._field(t + c, self._moved(a, slopes))
            if slope is None:
                return SINGULAR
            slopes.append(slope)
        after = self._moved(self._a[-1], slopes)
        return after if all(x.is_finite() for x in after) else NOT_FINITE

    def _moved(self, weights: Balls, slopes: list[Balls]) -> Balls:
        """y + Σ_j weights_j k_j."""
        y = list(self._y)
        for weight, slope in zip(weights, slopes, strict=True):
            if not weight.is_zero():
                y = [a + weight * b for a, b in zip(y, slope, strict=True)]
        return [x.mid() for x in y]

    def _field(self, t: Any, y: Balls) -> Balls | None:
        """(q̇, ṗ) or (q̇, v̇) at y."""
        n, mechanics = self.n, self.mechanics
        q, v = y[:n], y[n:]
        if self.form == "lagrange":
            a = mechanics.accelerate(t, q, v)
            return None if a is None else v + a
        found = mechanics.invert(t, q, y[n:], self._v)
        if found is None:
            return None
        self._v = found
        return found + mechanics.force_balls(t, q, found)

    def counts(self) -> dict[str, float]:
        return {}
