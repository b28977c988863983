"""Any precision: the same runs with 50, 64, 200 digits."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy

import leastaction as la
from leastaction.flint.evaluate import function
from leastaction.numbers.conversion import ball, balls, mpf
from leastaction.numbers.precision import flint_bits
from leastaction.numbers.rounding import Digits
from leastaction.program import BINARY, UNARY, Builder
from precise import SPRING, START, largest
from systems import catalogued

METHODS = ["midpoint", "stormer-verlet", "simpson", "P3N3Q6Gau", "P4N5Q8Lob", "P6N6Q12Gau", "rk4", "rk4-lagrange"]

# The operations, each against mpmath.

EXPECTED = {
    **{name: getattr(mpmath, name) for name in ("sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh")},
    **{name: getattr(mpmath, name) for name in ("tanh", "asinh", "atanh", "exp", "log", "expm1", "log1p", "erf")},
    **{name: getattr(mpmath, name) for name in ("sign", "floor", "ceil", "acosh", "atan2", "hypot")},
    "neg": lambda x: -x, "sq": lambda x: x * x, "abs": abs, "not": lambda x: mpmath.mpf(x == 0),
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y, "fmod": lambda x, y: x - y * int(x / y),
    "min": min, "max": max, "minimum": min, "maximum": max,
    "copysign": lambda x, y: abs(x) if y >= 0 else -abs(x),
    "lt": lambda x, y: mpmath.mpf(x < y), "le": lambda x, y: mpmath.mpf(x <= y),
    "eq": lambda x, y: mpmath.mpf(x == y), "ne": lambda x, y: mpmath.mpf(x != y),
    "and": lambda x, y: mpmath.mpf(bool(x) and bool(y)), "or": lambda x, y: mpmath.mpf(bool(x) or bool(y)),
    "if": lambda x, y: y if x else mpmath.mpf(0),
}  # fmt: skip


@pytest.mark.parametrize("op", sorted(UNARY.keys() | BINARY.keys()))
def test_every_operation_to_all_digits(op):
    count = 1 if op in UNARY else 2
    B = Builder([("t", 0), ("x", count), ("params", 0)])
    program = B.build(y=[B.op(op, *B.input("x"))])
    reals = Digits(60)
    samples = {"acosh": ["4/3"], "pow": ["2/3", "7/5"]}.get(op, ["2/3", "-7/5"][:count])
    with reals.working():
        x = reals.array(samples)
        expected = EXPECTED[op](*x)
        with flint_bits(reals.bits):
            (value,) = function(program, program.results, [])(*balls(x))
            assert abs(mpf(value) - expected) <= mpmath.mpf(10) ** -60 * max(1, abs(expected))


def test_constants_of_programs_are_exact():
    B = Builder([("t", 0), ("x", 0), ("params", 0)])
    program = B.build(y=[B.const(Fraction(1, 3)), B.const(0.1)])
    reals = Digits(60)
    with reals.working(), flint_bits(reals.bits):
        third, tenth = function(program, program.results, [])()
        assert abs(mpf(third) - mpmath.mpf(1) / 3) < mpmath.mpf(10) ** -60
        assert mpf(tenth) == mpmath.mpf(0.1)
        assert mpf(ball(mpmath.mpf(1) / 3)) == mpmath.mpf(1) / 3


# Against float64, and against itself.


@pytest.mark.parametrize("method", METHODS)
def test_agrees_with_float64_to_its_floor(method):
    a = la.integrate(SPRING, method, h="1/20", t_end=5, every=7, **START)
    b = la.integrate(SPRING, method, h="1/20", t_end=5, every=7, digits=64, **START)
    assert b.digits == 64 and a.digits is None and len(a) == len(b)
    ts = np.linspace(0, 5, 23)
    for x, y in ((a.t, b.t), (a.q, b.q), (a.p, b.p), (a.energy(), b.energy()), (a.velocity(), b.velocity())):
        assert y.shape == x.shape and isinstance(y.flat[0], mpmath.mpf)
        np.testing.assert_allclose(y.astype(float), x, rtol=0, atol=2e-13)
    np.testing.assert_allclose(b(ts).astype(float), a(ts), rtol=0, atol=2e-13)


def test_more_digits_only_add_digits():
    a = la.integrate(SPRING, "P3N4Q6Lob", h="1/10", steps=20, digits=64, **START)
    b = la.integrate(SPRING, "P3N4Q6Lob", h="1/10", steps=20, digits=130, **START)
    with mpmath.workdps(130):
        assert largest(a.q - b.q) < 1e-64 and largest(a.p - b.p) < 1e-64
        assert largest(a.energy() - b.energy()) < 1e-64


def test_time_dependent_lagrangian():
    def driven(t, q, v):
        return v[0] ** 2 / 2 - q[0] ** 2 / 2 + q[0] * np.sin(la.const("1/3") * t)

    system = la.Lagrangian(driven, n=1)
    path = la.integrate(system, "P12N12Q24Gau", [1], [0], h="1/4", t_end=2, t0=0, digits=40)
    with mpmath.workdps(40):
        w = mpmath.mpf(1) / 3
        t = path.t[-1]
        amplitude = 1 / (1 - w**2)
        expected = mpmath.cos(t) + amplitude * (mpmath.sin(w * t) - w * mpmath.sin(t))
        assert abs(path.q[-1, 0] - expected) < 1e-30


# Structure, at 10⁻⁶⁰.


def test_symplectic():
    """Φ'ᵀ J Φ' = J, with Φ' by central differences of 10⁻⁴⁰ in a run with 140 digits."""
    digits, delta = 140, mpmath.mpf(10) ** -40
    reals = Digits(digits)
    J = np.block([[np.zeros((2, 2), int), np.eye(2, dtype=int)], [-np.eye(2, dtype=int), np.zeros((2, 2), int)]])
    for method in ("simpson", "P4N4Q8Gau", "P3N3Q4Lob"):
        with reals.working():
            y = np.concatenate([reals.array(START["q0"]), reals.array(START["p0"])])

            def image(y, method=method):
                path = la.integrate(SPRING, method, y[:2], y[2:], h="1/5", steps=2, digits=digits)
                return np.concatenate([path.q[-1], path.p[-1]])

            columns = [(image(y + delta * e) - image(y - delta * e)) / (2 * delta) for e in np.eye(4, dtype=int)]
            D = np.stack(columns, axis=1)
            assert largest(D.T @ J @ D - J) < 1e-60


@pytest.mark.parametrize("method", ["simpson", "P5N6Q10Lob", "P2N2Q4Gau"])
def test_reversal(method):
    there = la.integrate(SPRING, method, h="1/10", steps=30, digits=64, **START)
    back = la.integrate(SPRING, method, there.q[-1], there.p[-1], h="-1/10", steps=30, digits=64)
    with mpmath.workdps(64):
        assert largest(back.q[-1] - there.q[0]) < 1e-60 and largest(back.p[-1] - there.p[0]) < 1e-60


@pytest.mark.parametrize("method", ["midpoint", "simpson", "P4N5Q8Lob"])
def test_noether_momenta(method):
    top, kepler = catalogued("lagrange-top"), catalogued("kepler")
    path = la.integrate(top.system, method, top.exact_q0, top.exact_p0, h="1/100", steps=20, digits=64)
    orbit = la.integrate(kepler.system, method, kepler.exact_q0, kepler.exact_p0, h="1/50", steps=20, digits=64)
    with mpmath.workdps(64):
        assert largest(path.p[:, [0, 2]] - path.p[0, [0, 2]]) < 1e-60
        turning = orbit.q[:, 0] * orbit.p[:, 1] - orbit.q[:, 1] * orbit.p[:, 0]
        assert largest(turning - turning[0]) < 1e-60


# No intermediate number is a float64.


@pytest.mark.slow
def test_no_hidden_float64_pendulum_at_200_digits():
    """Gauss with 24 nodes, h = 10⁻⁵: the error, of the order of h⁴⁸, leaves nothing to hide behind."""
    pendulum = catalogued("pendulum")
    path = la.integrate(
        pendulum.system, "P24N24Q48Gau", pendulum.exact_q0, pendulum.exact_p0, h="1e-5", steps=3, digits=200
    )
    q, p = pendulum.exact(path.t, digits=200)
    times = [Fraction(1, 300000), "1.7e-5"]
    between = pendulum.exact([sympy.Rational(1, 300000), sympy.Rational(17, 1000000)], digits=200)[0]
    with mpmath.workdps(200):
        assert largest(path.q - q) < mpmath.mpf(10) ** -195
        assert largest(path.p - p) < mpmath.mpf(10) ** -195
        assert largest(path(times) - between) < mpmath.mpf(10) ** -120  # h²⁵ between the nodes
        energy = path.energy()
        assert largest(energy - energy[0]) < mpmath.mpf(10) ** -195
        assert abs(energy[0] - pendulum.invariants["energy"](q[0], p[0], digits=200)) < mpmath.mpf(10) ** -195


def test_no_hidden_float64_in_functions_and_constants():
    """A motion that is known, in a Lagrangian full of functions: v²/2 − V(q) with V' = −ω² q written in a long way."""

    def wordy(q, v, w):
        third = la.const("1/3") * np.sqrt(la.const(2)) ** 2 / 2
        x = np.sqrt(q[0] ** 2) ** (3 * third) * np.exp(np.log1p(w)) * (np.tanh(q[0] ** 2) / np.tanh(q[0] ** 2))
        one = np.sin(q[0]) ** 2 + np.cos(q[0]) ** 2 + np.arctan2(q[0], 1.0) - np.arctan(q[0])
        return v[0] ** 2 / 2 - one * x**2 / 2 * la.const("pi") / np.arccos(la.const("-1") * v[0] ** 0)

    system = la.Lagrangian(wordy, n=1, params={"w": "-1/7"})
    path = la.integrate(system, "P20N20Q40Gau", ["1/2"], [0], h="1e-4", steps=2, digits=150)
    with mpmath.workdps(150):
        w = mpmath.mpf(6) / 7
        assert largest(path.q[:, 0] - [mpmath.cos(w * t) / 2 for t in path.t]) < mpmath.mpf(10) ** -145


@pytest.mark.parametrize("method", ["rk4", "rk4-lagrange"])
def test_rk4_is_the_exponential_series_to_fourth_order(method):
    oscillator = la.Lagrangian(lambda q, v: v[0] ** 2 / 2 - q[0] ** 2 / 2, n=1)
    path = la.integrate(oscillator, method, [1], [0], h="1/3", steps=1, digits=100)
    with mpmath.workdps(100):
        x = mpmath.mpf(1) / 3
        assert abs(path.q[1, 0] - (1 - x**2 / 2 + x**4 / 24)) < mpmath.mpf(10) ** -100
        assert abs(path.p[1, 0] + (x - x**3 / 6)) < mpmath.mpf(10) ** -100
