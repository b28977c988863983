"""Is a symmetric matrix positive definite? Decided without an eigenvalue, by what is cheapest first.

1. Dominance. If some x > 0 has a_ii x_i > Σ_{j≠i} |a_ij| x_j for all i, then A is positive definite: Gershgorin's
   circles of X⁻¹AX lie right of zero. x begins with ones and follows Perron's vector of D⁻¹|A − D| for a few
   products. This decides for chains and lattices, and for meshes unless the answer is close.
2. A direction x with xᵀAx < 0 proves the contrary. Lanczos' process finds one in a few dozen products, unless the
   answer is close.
3. Cholesky's factorisation exists exactly for positive definite matrices. Elimination without pivoting is stable until
   the first pivot that is not positive. If all pivots are positive, Σ_k l_ik² d_k = a_ii leaves no room for growth: so
   the signs of the pivots are right for A, up to changes of its entries by rounding (Sylvester's law of inertia).
   SuperLU factorises sparse matrices so.

Small M and K of a user are judged by their eigenvalues. For large ones step 2 must not find the contrary, and large
dense ones must have a factor of Cholesky, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.linear.factor import sparse_lu
from leastaction.linear.matrices import is_sparse

FloatArray = NDArray[np.float64]

DENSE_CHECK = 1500  # up to this size eigenvalues are computed from the full matrix
LANCZOS_STEPS = 60
DOMINANCE_STEPS = 12
MARGIN = 1e-12  # what rounding may do to a sum of many entries, relative


def positive_definite(a: Any) -> bool:
    """Whether a symmetric matrix, dense or sparse, is positive definite, to working precision."""
    d = a.diagonal()
    if d.min() <= 0:
        return False
    if dominant(a):
        return True
    if len(d) > DENSE_CHECK:
        smallest, largest = extremes(a, 1 / np.sqrt(d))
        if smallest < -MARGIN * largest:
            return False
    return has_cholesky(a)


def dominant(a: Any) -> bool:
    """Whether a is diagonally dominant, its diagonal positive, in a scale that a few products find."""
    d, size = a.diagonal(), abs(a)
    x = np.ones(len(d))
    for _ in range(DOMINANCE_STEPS):
        y = (size @ x) / d - x  # D⁻¹|A − D| x
        if (y < (1 - MARGIN) * x).all():
            return True
        if (y >= x).all():  # the spectral radius is not below one (Collatz and Wielandt)
            return False
        x += y
        x /= x.max()
        x = np.maximum(x, np.finfo(float).tiny)
    return False


def has_cholesky(a: Any) -> bool:
    """Whether every pivot is positive, by one factorisation."""
    try:
        if not is_sparse(a):
            np.linalg.cholesky(a)
            return True
        lu = sparse_lu(a, definite=True)
    except (np.linalg.LinAlgError, ArithmeticError):
        return False
    return bool((lu.perm_r == lu.perm_c).all() and (lu.U.diagonal() > 0).all())


def require_positive_definite(a: Any, name: str) -> None:
    """Raise unless a (or the diagonal matrix of a vector) is positive definite to working precision."""
    d = np.asarray(a if a.ndim == 1 else a.diagonal())
    if d.min() <= 0:
        i = int(d.argmin())
        what = "singular" if d[i] == 0 else "indefinite"
        raise ValueError(
            f"{name} must be positive definite; it is {what}: entry ({i}, {i}) is {d[i]:.3g}. "
            "A degree of freedom without inertia has no momentum: condense it statically, or give it a small mass."
        )
    if a.ndim == 1:
        return
    scale = 1 / np.sqrt(d)  # rotations and displacements have different units
    smallest, largest = extremes(a, scale)
    n = len(d)
    slack = 4 * n * np.finfo(float).eps * largest
    small = n <= DENSE_CHECK
    doubtful = smallest <= slack and (small or smallest < 0)
    if doubtful or not (small or is_sparse(a) or has_cholesky(scale[:, None] * a * scale - slack * np.eye(n))):
        what = "indefinite" if smallest < -slack else "singular to working precision"
        found = "is" if small else "is at most"
        raise ValueError(
            f"{name} must be positive definite; it is {what}: scaled to a unit diagonal its smallest eigenvalue "
            f"{found} {smallest:.3g}, its largest {largest:.3g}."
        )


def require_positive_semidefinite(a: Any, name: str) -> None:
    """Raise if a has an eigenvalue below zero by more than round-off."""
    d = np.asarray(a if a.ndim == 1 else a.diagonal())
    if d.min() < 0:
        i = int(d.argmin())
        raise ValueError(f"{name} must not be indefinite: entry ({i}, {i}) is {d[i]:.3g}, below zero")
    if a.ndim == 1:
        return
    n = len(d)
    smallest, largest = extremes(a, np.ones(n))
    slack = max(1e-12, 4 * n * np.finfo(float).eps) * largest
    small = n <= DENSE_CHECK
    if smallest < -slack or not (small or is_sparse(a) or largest == 0 or has_cholesky(a + slack * np.eye(n))):
        found = f"is {smallest:.3g}" if small or smallest < -slack else f"is below {-slack:.3g}"
        raise ValueError(
            f"{name} must not be indefinite: its smallest eigenvalue {found}, its largest {largest:.3g}. "
            "Zero eigenvalues (free-floating structures) are legal, negative ones are not."
        )


def extremes(a: Any, scale: FloatArray) -> tuple[float, float]:
    """Smallest and largest eigenvalue of diag(scale) a diag(scale), or Ritz values between them for large a."""
    n = len(scale)
    if n <= DENSE_CHECK:
        dense = a.toarray() if is_sparse(a) else a
        eigenvalues = np.linalg.eigvalsh(scale[:, None] * dense * scale)
        return float(eigenvalues[0]), float(eigenvalues[-1])
    return ritz(lambda v: scale * (a @ (scale * v)), lambda v: v, n)[:2]


def ritz(
    apply: Callable[[FloatArray], FloatArray], weigh: Callable[[FloatArray], FloatArray], n: int
) -> tuple[float, float, float]:
    """The smallest and the largest Ritz value of an operator, and the residual of the largest, by some products. The
    operator is symmetric in the inner product vᵀ weigh(v).
    """
    v = np.random.default_rng(0).standard_normal(n)
    weighed = weigh(v)
    before, beta = np.zeros(n), float(np.sqrt(v @ weighed))
    alphas, betas = [], [0.0]
    for _ in range(LANCZOS_STEPS):
        v, weighed = v / beta, weighed / beta
        w = apply(v) - betas[-1] * before
        alphas.append(float(w @ weighed))
        w -= alphas[-1] * v
        before, v, weighed = v, w, weigh(w)
        beta = float(np.sqrt(max(float(w @ weighed), 0.0)))
        betas.append(beta)
        if beta <= np.finfo(float).eps * abs(alphas[0]):
            break
    off = betas[1:-1]
    values, vectors = np.linalg.eigh(np.diag(alphas) + np.diag(off, 1) + np.diag(off, -1))
    return float(values[0]), float(values[-1]), float(betas[-1] * abs(vectors[-1, -1]))
