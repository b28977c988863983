"""Linear systems for the tests: random ones for hypothesis, and a few fixed ones."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from scipy.sparse import csr_array

import leastaction as la


def definite(rng: np.random.Generator, n: int) -> np.ndarray:
    """A random symmetric positive definite matrix with condition number up to about 10."""
    Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    M = (Q * rng.uniform(0.5, 5.0, n)) @ Q.T
    return (M + M.T) / 2


def semidefinite(rng: np.random.Generator, n: int, rank: int) -> np.ndarray:
    """A random symmetric positive semidefinite matrix of given rank."""
    Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    K = (Q[:, :rank] * rng.uniform(0.1, 4.0, rank)) @ Q[:, :rank].T
    return (K + K.T) / 2


@st.composite
def matrices(draw: st.DrawFn, max_n: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """M definite, K semidefinite (its rank may be less than n)."""
    n = draw(st.integers(1, max_n))
    rank = draw(st.integers(0, n))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return definite(rng, n), semidefinite(rng, n, rank)


def state(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    q, p = np.random.default_rng(seed).standard_normal((2, n))
    return q, p


def chain(n: int) -> la.Quadratic:
    """n unit masses in a row, springs between them and to a wall at the left; sparse."""
    K = np.diag(np.full(n, 2.0)) - np.eye(n, k=1) - np.eye(n, k=-1)
    K[-1, -1] = 1.0
    return la.Quadratic(np.ones(n), csr_array(K))


def sparse(system: la.Quadratic) -> la.Quadratic:
    """The same system with sparse matrices."""
    C = system.C if system.C is None or isinstance(system.C, la.linear.Rayleigh) else csr_array(system.C)
    return la.Quadratic(csr_array(system.M), csr_array(system.K), C=C, f=system.f)
