"""The highest frequency of a large system: the largest λ = ω² with K x = λ M x.

The largest eigenvalues of a regular mesh lie close together, and Lanczos' process on M⁻¹K takes thousands of products
to tell the last from its neighbours. But the process comes near the end of the spectrum soon. So the search has three
parts: an estimate θ ≤ λ_max from some dozen products; a σ slightly above θ, for which a factorisation shows that σM − K
is positive definite, that is λ_max < σ; and then Lanczos' process on (σM − K)⁻¹M, whose largest eigenvalue
1/(σ − λ_max) stands apart. Each round leaves a hundredth of σ − θ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.linear.definite import positive_definite, ritz
from leastaction.linear.factor import Factor, factor, one_thread

if TYPE_CHECKING:
    from leastaction.linear.system import Quadratic

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
            top, error = _largest(system, factor(sigma * system.M - system.K), system.M)
            theta = sigma - 1 / top
            if min(1.0, error / top) * (sigma - theta) <= TOLERANCE * theta:
                break
            width = max(1e-2 * (sigma / theta - 1), TOLERANCE)
    return float(np.sqrt(theta))


def estimate(system: Quadratic) -> tuple[float, float]:
    """A Ritz value θ ≤ λ_max, and the size of its residual."""
    return _largest(system, system.mass_factor, system.K)


def _largest(system: Quadratic, factor: Factor, a: Any) -> tuple[float, float]:
    """The largest Ritz value of v ↦ B⁻¹A v with a factor of B, which is symmetric in the inner product of M."""
    return ritz(lambda v: factor.solve(a @ v), lambda v: np.asarray(system.M @ v), system.n)[1:]
