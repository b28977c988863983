"""How quickly a motion may change: the frequencies and growth rates of a Lagrangian, linearised where the motion is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.field import slopes
from leastaction.backends.points import evaluate

if TYPE_CHECKING:
    from leastaction.systems.mechanics import Mechanics

FloatArray = NDArray[np.float64]

SOON = 0.25  # in units of 1/ω: a frequency ω is that of the start if the motion meets it within this time …
LATE = 4.0  # … and later than this the motion, as inside a wall, would have turned before
HALVINGS = 50  # of the time in which the motion comes to a wall


def fastest(
    system: Mechanics, t: float, q: FloatArray, v: FloatArray, params: FloatArray, length: float
) -> float:  # fmt: skip
    """The largest frequency or growth rate at the start of a motion of this length, or soon after."""
    a = system.acceleration(q, v, t, params)
    found = _rate(system, t, q, v, a, params)

    def later(tau: float) -> float:
        then = q + tau * (v + tau * a / 2)
        return _rate(system, t, then, v + tau * a, system.acceleration(then, v + tau * a, t, params), params)

    before = 0.0
    for tau in length * 4.0 ** np.arange(-30.0, 1.0):
        if tau * found >= SOON:
            break
        rate = later(tau)
        if rate * tau >= SOON:
            for _ in range(HALVINGS):
                if rate * tau <= LATE:
                    break
                middle = (before + tau) / 2
                there = later(middle)
                before, tau, rate = (before, middle, there) if there * middle >= SOON else (middle, tau, rate)
            return max(found, min(rate, LATE / tau))
        before = tau
    return found


def _rate(system: Mechanics, t: float, q: FloatArray, v: FloatArray, a: FloatArray, params: FloatArray) -> float:
    """The largest eigenvalue of ∂(q̇, v̇)/∂(q, v); zero where L is not regular."""
    n = system.n
    given = np.concatenate([[t], q, v, params, a])
    by = evaluate(slopes(system, "lagrange", ()), given[None])[0, 2 * n :].reshape(3 * n, 3 * n)
    mass, right = -by[2 * n :, 2 * n :], by[2 * n :, : 2 * n]
    try:
        whole = np.concatenate([np.eye(n, 2 * n, n), np.linalg.solve(mass, right)])
        return float(np.abs(np.linalg.eigvals(whole)).max())
    except np.linalg.LinAlgError:
        return 0.0
