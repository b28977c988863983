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

from leastaction.linear.definite import cholesky, positive_definite, ritz
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
            inverse = cholesky(sigma * system.M - system.K)
            top, error = _largest(lambda v, solve=inverse.solve: solve(system.M @ v), system)
            theta = sigma - 1 / top
            if min(1.0, error / top) * (sigma - theta) <= TOLERANCE * theta:
                break
            width = max(1e-2 * (sigma / theta - 1), TOLERANCE)
    return float(np.sqrt(theta))


def estimate(system: Quadratic) -> tuple[float, float]:
    """A Ritz value θ ≤ λ_max, and the size of its residual."""
    solve = system.mass_factor.solve
    return _largest(lambda v: solve(system.K @ v), system)


def _largest(apply: Callable[[FloatArray], FloatArray], system: Quadratic) -> tuple[float, float]:
    return ritz(apply, lambda v: np.asarray(system.M @ v), system.n)[1:]
