"""Random Lagrangians against an independent integration: SymPy's derivatives, SciPy's Runge–Kutta of order 8."""

from functools import partial

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp

import leastaction as la
from seeds import fresh_generator

FEW, MANY = 2, 60
T = 1.5


class Words:
    """The functions that a random Lagrangian is made of, for NumPy and for SymPy."""

    def __init__(self, module):
        self.sin, self.cos, self.exp, self.sqrt, self.tanh, self.log = (
            getattr(module, name) for name in ("sin", "cos", "exp", "sqrt", "tanh", "log")
        )


def random_lagrangian(rng, n):
    """A function of (words, q, v): a mass matrix that is diagonally dominant, a potential that is bounded below."""
    tree = rng.integers(0, 6, (n, 3))
    c = rng.uniform(0.2, 1.0, (n, 6))

    def term(w, x, kind, a, b):
        kinds = (
            lambda: w.cos(x + b),
            lambda: w.exp(-x * x),
            lambda: w.sqrt(1 + x * x),
            lambda: w.tanh(b * x),
            lambda: w.log(2 + x * x),
            lambda: x * x / (1 + x * x),
        )
        return a * kinds[kind]()

    def L(w, q, v):
        total = 0
        for i in range(n):
            j = (i + 1) % n
            mass = 2 + n + term(w, q[j], tree[i, 0], c[i, 0], c[i, 1])
            total = total + 0.5 * mass * v[i] ** 2 + 0.3 * c[i, 2] * w.sin(q[i] - q[j]) * v[i] * v[j]
            total = total + 0.2 * c[i, 5] * w.cos(q[i]) * v[j] - 0.5 * c[i, 3] * q[i] ** 2
            total = total - term(w, q[i] - 0.5 * q[j], tree[i, 1], c[i, 4], c[i, 5])
        return total

    return L


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
    check(fresh_generator(), FEW)


@pytest.mark.slow
def test_random_lagrangians_at_length():
    check(fresh_generator(), MANY)
