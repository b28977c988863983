"""SymPy Lagrangians: the same numbers, exact constants, and every way they can be wrong."""

from fractions import Fraction

import pytest
import sympy as sp
from sympy.physics.mechanics import dynamicsymbols

import leastaction as la
from leastaction.errors import TraceError
from leastaction.trace.from_sympy import trace_sympy
from reference import check_derivatives, constants

x, y = dynamicsymbols("x y")
t = dynamicsymbols._t
m, k = sp.symbols("m k")
xdot, ydot = x.diff(t), y.diff(t)
SYMPY = [
    m * (xdot**2 + ydot**2) / 2 - k * sp.sqrt(x**2 + y**2) ** 3 / 3,
    sp.exp(-x) * sp.cos(t) * xdot / (1 + y**2) ** sp.Rational(3, 2) + sp.pi * y - sp.E * x + sp.log(x, 2) + 0.1 * k,
    sp.Piecewise((x, x > 1), (x**2, sp.And(y > 0, x < 5)), (0, True)) + sp.Piecewise((x, x < 0), (2 * x, x >= 0)),
    sp.Abs(x - 1) + sp.Max(x, y, m) * sp.Min(xdot, k) + sp.atan2(y, x) + sp.sign(y),
    sp.Heaviside(x - 1) * y + sp.Mod(x, 0.3),
    sp.cot(x) + sp.sec(y) + sp.csc(x) + sp.coth(x) + sp.sech(x) + sp.csch(y) + sp.asin(x) + sp.acot(y) + sp.erf(x),
    sp.Matrix([[xdot, ydot]]) * sp.Matrix([[m, 0], [0, k]]) * sp.Matrix([xdot, ydot]),
    sp.floor(3 * x) * sp.ceiling(y) + x ** sp.Rational(1, 3) + k**x + sp.asinh(x) + sp.tanh(y),
    sp.acosh(1 + x) + sp.atanh(y),
]  # fmt: skip


@pytest.mark.parametrize("L", SYMPY)
def test_sympy(L):
    program, names = trace_sympy(L, [x, y])
    values = {"k": 1.25, "m": 0.75}
    point = 0.5, [0.55, 0.65], [0.35, -0.45], [values[name] for name in names]
    expected = (L[0, 0] if isinstance(L, sp.MatrixBase) else L).subs({xdot: 0.35, ydot: -0.45}).subs({x: 0.55, y: 0.65})
    expected = expected.subs({t: 0.5, m: 0.75, k: 1.25})
    assert program(point[:1], *point[1:])["L"][0] == pytest.approx(float(expected), rel=1e-13)
    check_derivatives(program, *point)


def test_sympy_symbols_and_exact_numbers():
    a, b, c = sp.symbols("a b c")
    program, names = trace_sympy(b**2 / 3 - sp.Rational(7, 5) * c * a + sp.Float("0.1", 30), [a], [b])
    assert names == ("c",)
    assert {Fraction(1, 3), Fraction(-7, 5)} <= constants(program)
    assert any(abs(number - Fraction(1, 10)) < Fraction(1, 10**29) for number in constants(program) - {0.0})


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((sp.besselj(0, m), [m], [k]), "besselj"), ((sp.Integral(sp.sin(t**2), (t, 0, m)), [m], [k]), "Integral.*doit"),
        ((x + m, [m], [k]), r"x\(t\) .* neither in q nor in v"), ((x.diff(t, 2), [x]), "Derivative"),
        ((sp.Matrix([m, k]), [m], [k]), r"shape \(2, 1\)"), ((sp.I * m, [m], [k]), "ImaginaryUnit"),
        ((sp.Piecewise((m, m > 0)), [m], [k]), "True"), ((m, [m]), "velocities v are needed"),
        ((m, [m], [k, t]), "1 coordinates"), ((m, [m], [m]), "repeat"), ((m, [2 * m], [k]), "neither a symbol"),
        ((m * sp.Symbol("k", positive=True) + k, [m], [x]), "called 'k'"), ((m > 0, [m], [k]), "SymPy expression"),
        ((x, [x, sp.Function("z")(m)]), "one time"),
    ],
)  # fmt: skip
def test_sympy_mistakes(arguments, message):
    with pytest.raises(TraceError, match=message):
        trace_sympy(*arguments)


@pytest.mark.parametrize(
    ("q", "v"),
    [(x, xdot), ([x], [xdot]), ((x,), (xdot,)), (sp.Matrix([x]), sp.Matrix([xdot])), (sp.Array([x]), sp.Tuple(xdot))],
)
def test_coordinates_in_any_container(q, v):
    system = la.Lagrangian.from_sympy(m * xdot**2 / 2 - k * x**2 / 2, q, v, params={m: 2, "k": 3})
    assert system.n == 1 and system.params == {"m": 2, "k": 3}
    assert system.energy([1.0], [4.0]) == 5.5


@pytest.mark.parametrize(("q", "v", "name"), [(None, xdot, "q"), (x, 3.0, "v"), ("x", xdot, "q")])
def test_what_is_no_list_of_symbols(q, v, name):
    with pytest.raises(TraceError, match=f"{name} must be a list of symbols"):
        la.Lagrangian.from_sympy(xdot**2 / 2, q, v)


def test_text_is_not_executed(capfd):
    x, u = sp.symbols("x u")
    attack = "__import__('os').system('echo executed')"
    for given in (
        {"L": attack},
        {"q": [attack]},
        {"v": [attack]},
        {"t": attack},
        {"force": attack},
        {"force": [attack]},
        {"dissipation": attack},
    ):
        with pytest.raises(TraceError, match="text is not executed"):
            la.Lagrangian.from_sympy(**{"L": u**2 / 2, "q": [x], "v": [u], **given})
    assert "executed\n" not in capfd.readouterr().out


def test_expressions_have_an_end():
    x, u = sp.symbols("x u")
    deep = x
    for _ in range(2000):
        deep = sp.sin(deep, evaluate=False)
    with pytest.raises(TraceError, match="nested too deeply"):
        la.Lagrangian.from_sympy(deep, [x], [u])
    with pytest.raises(ValueError, match="a constant has 33220 bits; those of a Lagrangian"):
        la.Lagrangian.from_sympy(u**2 / 2 + sp.Integer(10) ** 10_000 * x, [x], [u])
    with pytest.raises(TraceError, match="a constant has"):
        la.Lagrangian(lambda q, v: 0.5 * v @ v - 10**10_000 * q[0], n=1)
    with pytest.raises(TraceError, match="must be a SymPy expression, got object"):
        la.Lagrangian.from_sympy(object(), [x], [u])
