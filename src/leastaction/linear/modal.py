"""The exact motion of ½ q̇ᵀMq̇ − ½ qᵀKq by its modes.

K φ_i = ω_i² M φ_i with φᵀMφ = 1 turns the motion into independent oscillators a_i = φ_iᵀ M q, b_i = φ_iᵀ p:

    a_i(t) = a_i cos ω_i t + b_i t sinc(ω_i t),     b_i(t) = b_i cos ω_i t − a_i ω_i sin ω_i t,

valid without a special case for repeated frequencies (any orthonormal basis of the eigenspace will do) and for ω_i = 0,
where sinc(0) = 1 leaves the uniform motion of a free body.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.linear.matrices import is_sparse

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Modes:
    """omega (n,) ascending; shape (n, n): the columns φ_i; dual = M φ (n, n)."""

    omega: FloatArray
    shape: FloatArray
    dual: FloatArray

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
    φᵀKφ, of second order in the error of φ, has one of ε |φ|ᵀ|K||φ| instead, and below that nothing tells it from zero.
    """
    from scipy.linalg import eigh

    M, K = (a.toarray() if is_sparse(a) else a for a in (M, K))
    _, shape = eigh(K, M)
    squares = np.sum(shape * (K @ shape), axis=0)
    size = np.sum(np.abs(shape) * (np.abs(K) @ np.abs(shape)), axis=0)
    squares[squares < 4 * len(M) * np.finfo(float).eps * size] = 0.0
    order = np.argsort(squares, kind="stable")
    shape = shape[:, order]
    return Modes(np.sqrt(squares[order]), shape, M @ shape)
