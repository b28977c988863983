"""The highest frequency of a large system: the largest λ = ω² with K x = λ M x.

The largest eigenvalues of a regular mesh lie close together, and Lanczos' process on M⁻¹K takes thousands of products
to tell the last from its neighbours. But the process comes near the end of the spectrum soon. So the search has three
parts: an estimate θ ≤ λ_max from some dozen products; a σ slightly above θ, for which a factorisation shows that σM − K
is positive definite, that is λ_max < σ; and then Lanczos' process on (σM − K)⁻¹M, whose largest eigenvalue
1/(σ − λ_max) stands apart. Each round leaves a hundredth of σ − θ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leastaction.linear.definite import LANCZOS_STEPS, cholesky, positive_definite
from leastaction.linear.factor import one_thread

if TYPE_CHECKING:
    from leastaction.linear.system import Quadratic

FloatArray = NDArray[np.float64]

TOLERANCE = 1e-8  # of λ_max, relative
FIRST_GUESS = 4e-3  # how far above the first estimate λ_max is looked for, relative
ROUNDS = 8


def highest_frequency(system: Quadratic) -> float:
    """ω_max, to half of TOLERANCE."""
    with one_thread():
        theta, _ = estimate(system)
        if theta <= 0:
            return 0.0  # free masses
        width = FIRST_GUESS
        for _ in range(ROUNDS):
            sigma = theta * (1 + width)
            while not positive_definite(sigma * system.M - system.K):
                width *= 4
                sigma = theta * (1 + width)
            top, error = _largest(_Inverse(sigma, system), system)
            theta = sigma - 1 / top
            if min(1.0, error / top) * (sigma - theta) <= TOLERANCE * theta:
                break
            width = max(1e-2 * (sigma / theta - 1), TOLERANCE)
    return float(np.sqrt(theta))


class _Inverse:
    """v ↦ (σM − K)⁻¹ M v."""

    def __init__(self, sigma: float, system: Quadratic) -> None:
        self.M, self.factor = system.M, cholesky(sigma * system.M - system.K)

    def __call__(self, v: FloatArray) -> FloatArray:
        return self.factor.solve(self.M @ v)


def estimate(system: Quadratic) -> tuple[float, float]:
    """A Ritz value θ ≤ λ_max, and the size of its residual."""
    solve = system.mass_factor.solve
    return _largest(lambda v: solve(system.K @ v), system)


def _largest(apply: Callable[[FloatArray], FloatArray], system: Quadratic) -> tuple[float, float]:
    """The largest Ritz value of an operator that is symmetric in the inner product of M, and its residual."""
    v = np.random.default_rng(0).standard_normal(system.n)
    Mv = system.M @ v
    beta = float(np.sqrt(v @ Mv))
    before, alphas, betas = np.zeros(system.n), [], [0.0]
    for _ in range(LANCZOS_STEPS):
        v, Mv = v / beta, Mv / beta
        w = apply(v) - betas[-1] * before
        alphas.append(float(w @ Mv))
        w -= alphas[-1] * v
        Mw = system.M @ w
        beta = float(np.sqrt(max(w @ Mw, 0.0)))
        betas.append(beta)
        if beta <= np.finfo(float).eps * abs(alphas[0]):
            break
        before, v, Mv = v, w, Mw
    off = betas[1:-1]
    values, vectors = np.linalg.eigh(np.diag(alphas) + np.diag(off, 1) + np.diag(off, -1))
    return float(values[-1]), float(betas[-1] * abs(vectors[-1, -1]))
