"""Modes of ½ q̇ᵀMq̇ − ½ qᵀKq: all of a small system, the lowest k and the highest of a large one, and the exact motion by
all of them.

K φ_i = ω_i² M φ_i with φᵀMφ = 1 turns the motion into independent oscillators a_i = φ_iᵀ M q, b_i = φ_iᵀ p:

    a_i(t) = a_i cos ω_i t + b_i t sinc(ω_i t),     b_i(t) = b_i cos ω_i t − a_i ω_i sin ω_i t,

valid without a special case for repeated frequencies (any orthonormal basis of the eigenspace will do) and for ω_i = 0,
where sinc(0) = 1 leaves the uniform motion of a free body.

The largest λ = ω² of a regular mesh lie close together, and Lanczos' process on M⁻¹K takes thousands of products to
tell the last from its neighbours. But the process comes near the end of the spectrum soon. So the search for the
highest frequency has three parts: an estimate θ ≤ λ_max from some dozen products; a σ slightly above θ, for which a
factorisation shows that σM − K is positive definite, that is λ_max < σ; and then Lanczos' process on (σM − K)⁻¹M, whose
largest eigenvalue 1/(σ − λ_max) stands apart. Each round leaves a hundredth of σ − θ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.linear.definite import positive_definite, ritz
from leastaction.linear.factor import Factorised, factor, one_thread
from leastaction.linear.matrices import is_sparse

if TYPE_CHECKING:
    from leastaction.linear.system import Quadratic

FloatArray = NDArray[np.float64]

ALL_MODES = 1500  # up to this size frequencies come from a full eigenvalue decomposition
HIGHEST_TOLERANCE = 1e-8  # of λ_max, relative
FIRST_GUESS = 4e-3  # how far above the first estimate λ_max is looked for, relative
ROUNDS = 8
FIRST_SHIFT, LEAST_SHIFT = 1e-8, 1e-13  # μ, relative to the largest K_ii/M_ii: the first one, and the least
LOOK, TOLERANCE = 1e-2, 1e-11  # of 1/(λ + μ), relative: in the rough computation, and in the last one


@dataclass(frozen=True, eq=False)
class Modes:
    """Frequencies and shapes of a linear system: K φ_i = ω_i² M φ_i. `la.Quadratic.modes` gives them.

    Attributes
    ----------
    omega : ndarray, shape (k,)
        Frequencies in radians per unit of time, ascending.
    shape : ndarray, shape (n, k)
        The columns are the shapes φ_i, with φᵀMφ = 1.
    dual : ndarray, shape (n, k)
        M φ.

    Examples
    --------
    >>> import leastaction as la
    >>> la.Quadratic([1.0, 1.0], [4.0, 9.0]).modes(1).shape.shape
    (2, 1)
    """

    omega: FloatArray
    shape: FloatArray
    dual: FloatArray

    def __repr__(self) -> str:
        with np.printoptions(precision=6, threshold=12):
            return f"Modes({len(self.omega)} of {len(self.shape)}, omega={self.omega})"

    def lowest(self, k: int) -> Modes:
        """The first k of them."""
        return Modes(self.omega[:k], self.shape[:, :k], self.dual[:, :k])

    def motion(self, q0: FloatArray, p0: FloatArray, t: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """q and p at the times t: shape (n,) for one time, t.shape + (n,) for many."""
        a, b = self.dual.T @ q0, self.shape.T @ p0
        t = np.asarray(t, dtype=float)[..., None]
        angle = self.omega * t
        cos, sin = np.cos(angle), np.sin(angle)
        q = a * cos + b * t * np.sinc(angle / np.pi)
        p = b * cos - a * self.omega * sin
        return q @ self.shape.T, p @ self.dual.T


def modes(M: Any, K: Any) -> Modes:
    """All modes of dense M and K, ascending. Frequencies that are zero to round-off are zero.

    The solver's ω² have an error of ε ω²_max, which would drown the slow modes of a stiff system. Rayleigh's quotient
    φᵀKφ, of second order in the error of φ, has an error of ε |φ|ᵀ|K||φ| instead. A quotient below this error cannot be
    told from zero.
    """
    from scipy.linalg import eigh

    M, K = (a.toarray() if is_sparse(a) else a for a in (M, K))
    _, shape = eigh(K, M)
    return _by_quotient(shape, M, K)


def lowest_modes(system: Quadratic, k: int) -> Modes:
    """The k lowest modes of a large system: Lanczos on (K + μM)⁻¹M (ARPACK), after one to three factorisations.

    K + μM is positive definite for μ > 0, also where a structure floats freely and K is singular. The lowest modes
    stand apart if μ is not far above the k-th λ = ω²: a rough computation with a μ that is surely large enough gives a
    better μ.
    """
    from scipy.sparse.linalg import LinearOperator, eigsh

    n, M, K = system.n, system.M, system.K
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 0 < k < n // 2:
        raise ValueError(f"modes(k) gives the lowest k of n = {n} modes, 0 < k < {n // 2}; got k = {k!r}")
    largest = float((K.diagonal() / M.diagonal()).max())
    if largest == 0:
        raise ValueError("K is zero: every frequency is zero, and any basis is a basis of modes")
    start = np.random.default_rng(0).standard_normal(n)
    with one_thread():
        mu = FIRST_SHIFT * largest
        while True:
            inverse = LinearOperator((n, n), matvec=factor(K + mu * M).solve, dtype=float)
            how = {"k": k, "M": M, "sigma": -mu, "OPinv": inverse, "v0": start, "ncv": min(n, max(2 * k + 1, 30))}
            nearer = max(float(eigsh(K, tol=LOOK, **how)[0].max()), LEAST_SHIFT * largest)
            if nearer > mu / 10:
                _, shape = eigsh(K, tol=TOLERANCE, **how)
                return _by_quotient(shape, M, K)
            mu = nearer


def _by_quotient(shape: FloatArray, M: Any, K: Any) -> Modes:
    """Frequencies from the shapes, by Rayleigh's quotient; see `modes`."""
    squares = np.sum(shape * (K @ shape), axis=0)
    size = np.sum(np.abs(shape) * (abs(K) @ np.abs(shape)), axis=0)
    summands = int(np.diff(K.indptr).max()) if is_sparse(K) else len(K)
    squares[squares < 4 * summands * np.finfo(float).eps * size] = 0.0
    order = np.argsort(squares, kind="stable")
    shape = np.ascontiguousarray(shape[:, order])
    return Modes(np.sqrt(squares[order]), shape, M @ shape)


def highest_frequency(system: Quadratic) -> float:
    """ω_max, to half of HIGHEST_TOLERANCE."""
    with one_thread():
        theta, _ = highest_estimate(system)
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
            if min(1.0, error / top) * (sigma - theta) <= HIGHEST_TOLERANCE * theta:
                break
            width = max(1e-2 * (sigma / theta - 1), HIGHEST_TOLERANCE)
    return float(np.sqrt(theta))


def highest_estimate(system: Quadratic) -> tuple[float, float]:
    """A Ritz value θ ≤ λ_max, and the size of its residual."""
    return _largest(system, system.mass_factor, system.K)


def _largest(system: Quadratic, factor: Factorised, a: Any) -> tuple[float, float]:
    """The largest Ritz value of v ↦ B⁻¹A v with a factor of B, which is symmetric in the inner product of M."""
    return ritz(lambda v: factor.solve(a @ v), lambda v: np.asarray(system.M @ v), system.n)[1:]
