"""Random Lagrangians with random constraints against an independent integration: SymPy's derivatives, the accelerations
with their multipliers, SciPy's Runge–Kutta of order 8.
"""

from functools import partial

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp

import leastaction as la
from random_lagrangians import Words, random_lagrangian
from seeds import generator

FEW, MANY = 1, 40
T = 0.8


def random_constraints(rng, n, m):
    """A function of (words, t, q): surfaces that are bent and, some of them, move."""
    A, b = rng.uniform(-0.3, 0.3, (m, n, n)), rng.uniform(-1, 1, (m, n))
    b += 1.5 * np.eye(m, n)  # far enough from each other
    c, moving = rng.uniform(-0.3, 0.3, m), rng.uniform(-0.2, 0.2, m)

    def g(w, t, q):
        rows = []
        for k in range(m):
            bent = sum(A[k, i, j] * w.sin(q[i]) * q[j] for i in range(n) for j in range(n))
            rows.append(sum(b[k, i] * q[i] for i in range(n)) + bent - c[k] - moving[k] * w.sin(t))
        return rows

    return g


def independent(L, g, n, q0, v0):
    """q(T) from M a = L_q − L_vq v + Gᵀλ and g̈ = 0, computed independently."""
    t, q, v = sp.Symbol("t"), sp.symbols(f"q:{n}"), sp.symbols(f"v:{n}")
    expression, rows = L(Words(sp), q, v), g(Words(sp), t, q)
    Lv = [sp.diff(expression, x) for x in v]
    rates = [sp.diff(row, t) + sum(sp.diff(row, q[i]) * v[i] for i in range(n)) for row in rows]
    bends = [sp.diff(rate, t) + sum(sp.diff(rate, q[i]) * v[i] for i in range(n)) for rate in rates]
    force = [sp.diff(expression, q[i]) - sum(sp.diff(Lv[i], q[j]) * v[j] for j in range(n)) for i in range(n)]
    everything = [
        [[sp.diff(a, x) for x in v] for a in Lv],
        force,
        [[sp.diff(row, x) for x in q] for row in rows],
        bends,
    ]
    evaluate = sp.lambdify((t, q, v), everything, "numpy")

    def accelerations(t, y):
        M, f, G, bend = (np.array(x, float) for x in evaluate(t, y[:n], y[n:]))
        m = len(G)
        whole = np.block([[M, -G.T], [G, np.zeros((m, m))]])
        return np.linalg.solve(whole, np.concatenate([f, -bend]))

    def rate(t, y):
        return np.concatenate([y[n:], accelerations(t, y)[:n]])

    start = np.concatenate([q0, v0])
    solution = solve_ivp(rate, (0, T), start, method="DOP853", rtol=1e-12, atol=1e-13)
    return solution.y[:, -1], accelerations(T, solution.y[:, -1])[n:]


def check(rng, count):
    done = 0
    while done < count:
        n = int(rng.integers(2, 5))
        m = int(rng.integers(1, n))
        L, g = random_lagrangian(rng, n), random_constraints(rng, n, m)
        system = la.Lagrangian(partial(L, Words(np)), n=n, constraints=lambda t, q, g=g: g(Words(np), t, q))
        try:
            q0, v0 = la.project(system, *rng.uniform(-0.5, 0.5, (2, n)))
        except la.ConstraintError:  # these surfaces do not meet nearby
            continue
        wanted, multipliers = independent(L, g, n, q0, v0)
        for method, h in (("P6N6Q12Gau", 0.04), ("P4N5Q8Lob", 0.02), ("P3N3Q6Gau", 0.005)):
            path = la.integrate(system, method, q0=q0, v0=v0, h=h, t_end=T)
            np.testing.assert_allclose(path.q[-1], wanted[:n], atol=1e-8, err_msg=method)
            np.testing.assert_allclose(path.velocity()[-1], wanted[n:], atol=1e-7, err_msg=method)
            np.testing.assert_allclose(path.multipliers[-1], multipliers, atol=1e-6, err_msg=method)
            assert abs(np.array(g(Words(np), T, path.q[-1]))).max() < 1e-13
        done += 1


def test_random_constraints():
    check(generator(), FEW)


@pytest.mark.slow
def test_random_constraints_at_length():
    check(generator(), MANY)
