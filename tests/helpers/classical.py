"""Classical integrators in plain NumPy, to compare with; nothing is shared with the library but float64.

A Lagrangian quadratic in v is taken apart numerically: L_v(q, v) = M(q) v + A(q). Derivatives come from the complex
step, Im L(x + iε)/ε with ε = 10⁻¹⁰⁰, which is exact to round-off for an analytic L.
"""

import mpmath
import numpy as np

EPSILON = 1e-100
SWEEPS = 300


def gradient(f, x):
    """∂f/∂x by the complex step."""
    steps = x + 1j * EPSILON * np.eye(len(x))
    return np.array([f(row).imag / EPSILON for row in steps])


def legendre(L, q):
    """M(q) and A(q) of L_v = M v + A."""
    n = len(q)
    A = gradient(lambda v: L(q, v), np.zeros(n))
    M = np.stack([gradient(lambda v: L(q, v), e) - A for e in np.eye(n)], axis=1)
    return M, A


def hamilton(L):
    """The right-hand sides q̇ = v(q, p) and ṗ = L_q(q, v)."""

    def q_dot(q, p):
        M, A = legendre(L, q)
        return np.linalg.solve(M, p - A)

    def p_dot(q, p):
        v = q_dot(q, p)
        return gradient(lambda x: L(x, v), q)

    return q_dot, p_dot


def integrals(c):
    """a_ij = ∫₀^{c_i} l_j, the collocation tableau on the nodes c: Σ_j a_ij c_j^k = c_i^{k+1}/(k+1)."""
    s = len(c)
    with mpmath.workdps(50):
        V, rows = mpmath.matrix(s, s), mpmath.matrix(s, s)
        for k in range(s):
            for i in range(s):
                V[k, i] = c[i] ** k
                rows[i, k] = c[i] ** (k + 1) / (k + 1)
        return np.array((rows * V.T**-1).tolist(), dtype=float)


def partitioned_runge_kutta(L, a, a_hat, b, q, p, h):
    """One step: Q_i = q + h Σ a_ij q̇_j, P_i = p + h Σ â_ij ṗ_j, by fixed-point iteration to round-off."""
    q_dot, p_dot = hamilton(L)
    s = len(b)
    Q, P = np.tile(q, (s, 1)), np.tile(p, (s, 1))
    for _ in range(SWEEPS):
        V = np.array([q_dot(x, y) for x, y in zip(Q, P, strict=True)])
        F = np.array([p_dot(x, y) for x, y in zip(Q, P, strict=True)])
        before, Q, P = (Q, P), q + h * a @ V, p + h * a_hat @ F
        if abs(Q - before[0]).max() + abs(P - before[1]).max() < 1e-16:
            break
    return q + h * b @ V, p + h * b @ F
