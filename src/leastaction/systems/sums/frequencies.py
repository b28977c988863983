"""The largest frequency or growth rate of a large sum, whose derivatives are nowhere written out as a matrix.

The motion linearised about a state is δ̈ = A δ + B δ̇ with A = ∂a/∂q, B = ∂a/∂v. Differences of accelerations give
products with A and B, and iterating them the largest eigenvalues: ω² of A, and the rate of B.

A step that is too long takes a large sum long to refuse, and frequencies rise where bodies meet. So the frequency that
is told is CAREFUL times the one found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from leastaction.systems.sums.system import Sum

FloatArray = NDArray[np.float64]

PRODUCTS = 12  # with A, and with B: the largest eigenvalue of many is then known up to some parts in a hundred
NEAR = 1e-6  # how far a neighbour is, of the size of the state
CAREFUL = 4.0


def fastest(system: Sum, t: float, q: FloatArray, v: FloatArray, params: FloatArray) -> float:
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
