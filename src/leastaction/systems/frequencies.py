"""How quickly a motion may change: the frequencies and growth rates of a system, linearised where the motion is.

Of a large sum no derivative is written out as a matrix. Its motion is δ̈ = A δ + B δ̇ with A = ∂a/∂q, B = ∂a/∂v:
differences of accelerations give products with A and B, and iterating them the largest eigenvalues, ω² of A and the
rate of B. A step that is too long takes a large sum long to refuse, and frequencies rise where bodies meet. So the
frequency that is told of a sum is CAREFUL times the one found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leastaction.kernel.loops import evaluate
from leastaction.step.field import slopes

if TYPE_CHECKING:
    from leastaction.systems.mechanics import Mechanics
    from leastaction.systems.sums.system import Sum

FloatArray = NDArray[np.float64]

SOON = 0.25  # in units of 1/ω: a frequency ω is that of the start if the motion meets it within this time …
LATE = 4.0  # … and later than this the motion, as inside a wall, would have turned before
HALVINGS = 50  # of the time in which the motion comes to a wall
PRODUCTS = 12  # with A, and with B: the largest eigenvalue of many is then known up to some parts in a hundred
NEAR = 1e-6  # how far a neighbour is, of the size of the state
CAREFUL = 4.0


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


def fastest_of_sum(system: Sum, t: float, q: FloatArray, v: FloatArray, params: FloatArray) -> float:
    """CAREFUL times the largest frequency or growth rate at a state."""
    here = system.acceleration(q, v, t, params)
    size = float(np.abs(q).max()), float(np.abs(v).max())

    def bent(d: FloatArray) -> FloatArray:
        return system.acceleration(q + d, v, t, params) - here

    def dragged(d: FloatArray) -> FloatArray:
        return system.acceleration(q, v + d, t, params) - here

    squared, rate = (
        _largest(product, NEAR * (part or max(size) or 1.0), system.n)
        for product, part in zip((bent, dragged), size, strict=True)
    )
    return CAREFUL * max(float(np.sqrt(squared)), rate)


def _largest(product: Callable[[FloatArray], FloatArray], near: float, n: int) -> float:
    """The size of the largest eigenvalue of a linear map that takes small vectors."""
    d, found = np.random.default_rng(0).choice([-1.0, 1.0], n), 0.0
    for _ in range(PRODUCTS):
        moved = product(near * d) / near
        length = float(np.linalg.norm(moved) / np.linalg.norm(d))
        if not np.isfinite(length) or length == 0.0:
            break
        found, d = length, moved / np.abs(moved).max()
    return found
