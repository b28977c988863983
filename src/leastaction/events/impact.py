"""What an impact does to the momentum.

At g(t, q) = 0, met with the rate ġ⁻ = ∇g·v + g_t < 0, an impulse along ∇g throws the motion back:

    p⁺ = p + λ ∇g,   λ such that   ġ⁺ = ∇g·v(q, p⁺) + g_t = −e ġ⁻.

Where L is quadratic in v this is λ = −(1 + e) ġ⁻ / (∇g·M⁻¹∇g), M = ∂²L/∂v²; elsewhere that is the first step of
Newton's iteration, each of whose steps is halved until it helps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import DegenerateLagrangianError

MOST_ITERATIONS, MOST_HALVINGS = 60, 60


def thrown_back(
    mechanics: Any, gradient: NDArray[Any], g_t: Any, restitution: float, t: Any, q: NDArray[Any], p: NDArray[Any],
    eps: Any,
) -> NDArray[Any]:  # fmt: skip
    """p⁺; `mechanics` has velocity(t, q, p) and inverse_mass(t, q, v, direction) in the arithmetic of the run."""
    v = mechanics.velocity(t, q, p)
    before = gradient @ v + g_t
    missing = -(1 + restitution) * before  # of the rate
    moved, after = 0 * missing, p
    for _ in range(MOST_ITERATIONS):
        step = missing / (gradient @ mechanics.inverse_mass(t, q, v, gradient))
        for _ in range(MOST_HALVINGS):
            after = p + (moved + step) * gradient
            if not mechanics.nonlinear:
                return after
            try:
                v_after = mechanics.velocity(t, q, after)
            except DegenerateLagrangianError:
                step = step / 2
                continue
            left = -restitution * before - gradient @ v_after - g_t
            if abs(left) < abs(missing):
                break
            if abs(step) <= 8 * eps * abs(moved):
                return after
            step = step / 2
        moved, missing, v = moved + step, left, v_after
        if missing == 0:
            return after
    raise ArithmeticError(
        f"no impulse along the wall's gradient throws the motion back at t = {float(t):.6g}, q = {np.asarray(q, float)}"
    )
