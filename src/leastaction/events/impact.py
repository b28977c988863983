"""What an impact does to the momentum.

At g(t, q) = 0, met with the rate ġ⁻ = ∇g·v + g_t < 0, an impulse along ∇g throws the motion back:

    p⁺ = p + λ ∇g,   λ such that   ġ⁺ = ∇g·v(q, p⁺) + g_t = −e ġ⁻.

If L is quadratic in v, λ = −(1 + e) ġ⁻ / (∇g·M⁻¹∇g), M = ∂²L/∂v². Otherwise this λ is the first step of Newton's
iteration; each step of the iteration is halved until it helps.

Where constraints hold, their reactions are part of the impulse: it goes along d = ∇g − Gᵀ (G M⁻¹Gᵀ)⁻¹ G M⁻¹∇g. The rows
of G are the gradients of the constraints, so that the rates of the constraints stay zero. This holds for L quadratic in
v. Of a large sum d comes from one sparse system, M x − Gᵀy = ∇g, G x = 0, d = ∇g + Gᵀy (`Sum.freely`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import DegenerateLagrangianError

MOST_ITERATIONS, MOST_HALVINGS = 60, 60


def thrown_back(
    mechanics: Any, gradient: NDArray[Any], g_t: Any, restitution: float, t: Any, q: NDArray[Any], p: NDArray[Any],
    eps: Any, freely: Callable[[NDArray[Any]], NDArray[Any]] | None,
) -> NDArray[Any]:  # fmt: skip
    """p⁺; `mechanics` has velocity(t, q, p) and inverse_mass(t, q, v, direction) in the arithmetic of the run. Where
    constraints hold, freely(v) is d, the gradient without what they take up.
    """
    v = mechanics.velocity(t, q, p)
    along = gradient
    if freely is not None:
        along = freely(v)
        _require_free(mechanics, gradient, along, t, q, v)
    before = gradient @ v + g_t
    missing = -(1 + restitution) * before  # the change of the rate that is still to be made
    moved, after = 0 * missing, p
    for _ in range(MOST_ITERATIONS):
        step = missing / (gradient @ mechanics.inverse_mass(t, q, v, along))
        for _ in range(MOST_HALVINGS):
            after = p + (moved + step) * along
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


def free_of(
    mechanics: Any, gradient: NDArray[Any], G: NDArray[Any], t: Any, q: NDArray[Any], v: NDArray[Any], eps: Any
) -> NDArray[Any]:
    """The gradient without what the constraints with the gradients G, (m, n), take up: d = ∇g − Gᵀ y with G M⁻¹ d = 0.

    Solved in float64 and refined: each time some fifteen digits more are right.
    """
    pulled = np.array([mechanics.inverse_mass(t, q, v, row) for row in G]).T
    inverse = np.linalg.inv(np.asarray(G @ pulled, float))
    d = gradient
    for _ in range(2 + int(-np.log10(float(eps) if eps > 1e-300 else 1e-300)) // 12):
        d = d - G.T @ (inverse @ (G @ mechanics.inverse_mass(t, q, v, d)))
    return d


def _require_free(
    mechanics: Any, gradient: NDArray[Any], d: NDArray[Any], t: Any, q: NDArray[Any], v: NDArray[Any]
) -> None:
    """Raise where the constraints take up all of the gradient."""
    left = np.sqrt(float(d @ mechanics.inverse_mass(t, q, v, d)))
    if not left > 1e-9 * np.sqrt(float(gradient @ mechanics.inverse_mass(t, q, v, gradient))):
        raise ArithmeticError(
            f"the wall met at t = {float(t):.6g}, q = {np.asarray(q, float)} depends on the constraints: no motion "
            "that they leave free goes away from it"
        )
