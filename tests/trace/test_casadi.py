"""Gradient and Hessian against CasADi's, an independent automatic differentiation."""

import casadi
import numpy as np
import pytest

from leastaction.trace import derivatives, trace


def double_pendulum(q, v, m, l, g):
    T = m * l**2 * (v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * np.cos(q[0] - q[1]))
    return T + m * g * l * (2 * np.cos(q[0]) + np.cos(q[1]))


def chain(q, v, g):
    x, y = np.cumsum(np.cos(q) * v), np.cumsum(np.sin(q) * v)
    return 0.5 * np.sum(x**2 + y**2) + g * np.sum(np.cumsum(np.cos(q)))


def relativistic(t, q, v, c, w):
    return -(c**2) * np.sqrt(1 - (v @ v) / c**2) - np.exp(-(q @ q)) * np.cos(w * t) + q[0] * v[1] ** 3


UNARY = {"neg": lambda x: -x, "sq": lambda x: x * x, "sqrt": casadi.sqrt, "sin": casadi.sin, "cos": casadi.cos,
         "exp": casadi.exp}  # fmt: skip
BINARY = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y,
          "pow": lambda x, y: x**y}  # fmt: skip


def on_casadi(program, x):
    values = []
    for op, *args in program.code:
        if op == "input":
            values.append(x[args[0]])
        elif op == "const":
            values.append(casadi.SX(float(args[0])))
        else:
            values.append((UNARY | BINARY)[op](*(values[a] for a in args)))
    return values[program.output("L")[0]]


@pytest.mark.parametrize(
    ("fn", "n", "params", "time"),
    [
        (double_pendulum, 2, {"m": 1.3, "l": 0.7, "g": 9.81}, False),
        (chain, 8, {"g": 9.81}, False),
        (relativistic, 3, {"c": 4.0, "w": 2.0}, True),
    ],
)
def test_derivatives_equal_those_of_casadi(fn, n, params, time):
    L = trace(fn, n, dict.fromkeys(params, ()), time)
    rng = np.random.default_rng(1)
    point = rng.uniform(-1, 1, 1 + 2 * n)
    x = casadi.SX.sym("x", L.input_size)
    H, g = casadi.hessian(on_casadi(L, x), x)
    H, g = casadi.Function("f", [x], [H, g])([*point, *params.values()])
    H, g = np.array(H), np.array(g).ravel()
    ours = derivatives(L, second=True)(point[:1], point[1 : 1 + n], point[1 + n :], list(params.values()))
    q, v = slice(1, 1 + n), slice(1 + n, 1 + 2 * n)
    expected = {"Lq": g[q], "Lv": g[v], "Lqq": H[q, q], "Lqv": H[q, v], "Lvv": H[v, v], "Lvt": H[v, 0]}
    for name, block in expected.items():
        np.testing.assert_allclose(ours[name], block.ravel(), rtol=1e-12, atol=1e-12 * np.abs(H).max(), err_msg=name)
