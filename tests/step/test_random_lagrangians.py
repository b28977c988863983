"""Random Lagrangians against an independent integration: SymPy's derivatives, SciPy's Runge–Kutta of order 8."""

from functools import partial

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp

import leastaction as la
from random_lagrangians import Words, random_lagrangian
from seeds import generator

FEW, MANY = 2, 60
T = 1.5


def independent(L, n, q0, v0):
    """q(T) from M(q) a = L_q − L_vq v, computed independently."""
    q, v = sp.symbols(f"q:{n}"), sp.symbols(f"v:{n}")
    expression = L(Words(sp), q, v)
    Lv = [sp.diff(expression, x) for x in v]
    M = sp.lambdify((q, v), [[sp.diff(a, x) for x in v] for a in Lv], "numpy")
    force = [sp.diff(expression, q[i]) - sum(sp.diff(Lv[i], q[j]) * v[j] for j in range(n)) for i in range(n)]
    F = sp.lambdify((q, v), force, "numpy")

    def rate(t, y):
        return np.concatenate([y[n:], np.linalg.solve(np.array(M(y[:n], y[n:]), float), np.array(F(y[:n], y[n:])))])

    solution = solve_ivp(rate, (0, T), np.concatenate([q0, v0]), method="DOP853", rtol=1e-12, atol=1e-13)
    return solution.y[:n, -1]


def check(rng, count):
    for _ in range(count):
        n = int(rng.integers(1, 4))
        L = random_lagrangian(rng, n)
        q0, v0 = rng.uniform(-1, 1, (2, n))
        system = la.Lagrangian(partial(L, Words(np)), n=n)
        wanted = independent(L, n, q0, v0)
        for method, h, tolerance in (("P6N6Q12Gau", 0.05, 1e-9), ("P4N5Q8Lob", 0.03, 1e-9), ("rk4", 0.002, 1e-8)):
            path = la.integrate(system, method, q0, v0=v0, h=h, t_end=T)
            np.testing.assert_allclose(path.q[-1], wanted, atol=tolerance, err_msg=method)


def test_random_lagrangians():
    check(generator(), FEW)


@pytest.mark.slow
def test_random_lagrangians_at_length():
    check(generator(), MANY)
