"""Linear systems for the tests: random ones for hypothesis, and a few fixed ones."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

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


def shaken_beam(n: int, *, lumped: bool = False, general: bool = False, rule: str = "cubic") -> la.Quadratic:
    """A clamped beam of n/2 elements (Hermite's cubics), its ground shaken for ten seconds; the tip is number n − 2.

    Its lowest frequencies are 10 and 62.7, with 2 % of critical damping; the highest is above 2000 n².
    """
    e, l = n // 2, 2 / n
    k = (10 / 3.516015) ** 2 / l**3 * np.array(
        [[12, 6 * l, -12, 6 * l], [6 * l, 4 * l * l, -6 * l, 2 * l * l],
         [-12, -6 * l, 12, -6 * l], [6 * l, 2 * l * l, -6 * l, 4 * l * l]]
    )  # fmt: skip
    m = l / 420 * np.array(
        [[156, 22 * l, 54, -13 * l], [22 * l, 4 * l * l, 13 * l, -3 * l * l],
         [54, 13 * l, 156, -22 * l], [-13 * l, -3 * l * l, -22 * l, 4 * l * l]]
    )  # fmt: skip
    if lumped:
        m = np.diag([l / 2, l**3 / 24, l / 2, l**3 / 24])
    at = 2 * np.arange(e)[:, None] + np.arange(4)
    where = np.repeat(at, 4, axis=1).ravel(), np.tile(at, (1, 4)).ravel()
    K, M = (coo_array((np.tile(a.ravel(), e), where), (n + 2, n + 2)).tocsr() for a in (k, m))
    times = np.linspace(0, 10, 1001)
    waves = [a * np.sin(w * times + a) for a, w in zip((0.4, -1.1, 0.9, 1.3), (3.0, 11.0, 27.0, 48.0), strict=True)]
    ground = np.sin(np.pi * times / 10) ** 2 * np.sum(waves, axis=0)
    damping = la.linear.Rayleigh.from_ratios((10.0, 0.02), (62.7, 0.02))
    C = damping.alpha * M + damping.beta * K if general else damping
    M = M.diagonal() if lumped else M
    load = la.linear.Load.base(M, np.tile([1.0, 0.0], e + 1), times, ground, rule)
    return la.Quadratic.without([0, 1], M, K, C=C, f=load)
