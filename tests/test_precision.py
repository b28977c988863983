"""Any precision: the same runs with 50, 64, 200 digits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import flint
import mpmath
import numpy as np
import pytest
import sympy

import leastaction as la
from leastaction import problems
from leastaction.exact import Digits, Float64, exact, to_text
from leastaction.methods import family
from leastaction.precision.arithmetic import ball, balls, mpf
from leastaction.precision.evaluate import function
from leastaction.program import BINARY, UNARY, Builder
from leastaction.working import flint_bits

METHODS = ["midpoint", "stormer-verlet", "simpson", "P3N3Q6Gau", "P4N5Q8Lob", "P6N6Q12Gau", "rk4", "rk4-lagrange"]


def spring(q, v, k, c):
    """Two coupled degrees of freedom, with a mass that depends on q and a Lagrangian that is not separable."""
    return (1 + q[0] ** 2) * v[0] ** 2 / 2 + v[1] ** 2 / 2 + c * v[0] * v[1] * np.sin(q[1]) - k * np.cosh(q[0] - q[1])


SPRING = la.Lagrangian(spring, n=2, params={"k": "1.3", "c": "1/3"})
START = {"q0": ["1/5", "-2/7"], "p0": ["0.4", "0.1"]}


def largest(x):
    return max(abs(entry) for entry in np.asarray(x).flat)


# Numbers as the user means them.


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("9.81", Fraction(981, 100)),
        (" 1/3 ", Fraction(1, 3)),
        ("1e-3", Fraction(1, 1000)),
        ("0x1.8p-1", Fraction(3, 4)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Fraction(2, 7), Fraction(2, 7)),
        (3, Fraction(3)),
        (np.int32(-2), Fraction(-2)),
        (sympy.Rational(1, 7), Fraction(1, 7)),
        (0.1, Fraction(0.1)),
        (np.float64(0.1), Fraction(0.1)),
        (mpmath.mpf(0.1), Fraction(0.1)),
        (sympy.Float(0.1), Fraction(0.1)),
        ("pi/6", sympy.pi / 6),
        ("0.1*pi", sympy.pi / 10),
        ("-sqrt(2)/2", -sympy.sqrt(2) / 2),
        (sympy.pi / 6, sympy.pi / 6),
        (0.5 * sympy.pi, sympy.pi / 2),
        (mpmath.pi, sympy.pi),
    ],
)
def test_exact_numbers(given, meant):
    assert exact(given) == meant
    assert exact(to_text(given)) == meant


@pytest.mark.parametrize(
    "wrong", ["abc", "1/0", "inf", "sqrt(-1)", "__import__('os')", "pi.real", 1j, None, float("nan")]
)
def test_not_numbers(wrong):
    with pytest.raises((TypeError, ValueError), match=r"number"):
        exact(wrong)


def test_a_float_among_text_keeps_its_binary_value():
    assert Float64().array(["1/3", 0.1]).tolist() == [1 / 3, 0.1]
    assert Digits(40).array(["1/3", 0.1])[1] == mpmath.mpf(0.1)


def test_exact_input_is_the_same_number_however_it_is_written():
    ways = [
        {"q0": ["pi/6", "1/3"], "p0": ["0.25", 0], "h": "0.01", "params": {"k": "9.81"}},
        {
            "q0": [sympy.pi / 6, sympy.Rational(1, 3)],
            "p0": [0.25, 0],
            "h": Fraction(1, 100),
            "params": {"k": Decimal("9.81")},
        },
    ]
    a, b = (la.integrate(SPRING, "simpson", steps=3, digits=64, **way) for way in ways)
    assert (a.q == b.q).all() and (a.p == b.p).all() and (a.t == b.t).all()
    rounded = la.integrate(SPRING, "simpson", steps=3, digits=64, **{**ways[0], "h": 0.01})
    assert 0 < abs(rounded.t[-1] - a.t[-1]) < 1e-17


def test_text_in_float64_runs_and_parameters():
    as_text = la.Lagrangian(spring, n=2, params={"k": "1.3", "c": Fraction(1, 3)})
    as_floats = la.Lagrangian(spring, n=2, params={"k": 1.3, "c": 1 / 3})
    assert as_text.params == as_floats.params
    a = la.integrate(as_text, "simpson", ["0.2", "1/3"], v0=[0, "1"], h="1/10", t_end="2")
    b = la.integrate(as_floats, "simpson", [0.2, 1 / 3], v0=[0, 1], h=0.1, t_end=2)
    assert (a.q == b.q).all() and a.h == b.h


def test_arrays_of_exact_parameters():
    system = la.Lagrangian(lambda q, v, w: v @ v / 2 - w @ q**2 / 2, n=2, params={"w": ["1/3", sympy.sqrt(2)]})
    path = la.integrate(system, "midpoint", [1, 1], [0, 0], h="1/8", steps=1, digits=50)
    with mpmath.workdps(50):
        assert abs(path.params["w"][0] - mpmath.mpf(1) / 3) < 1e-50
        assert abs(path.params["w"][1] - mpmath.sqrt(2)) < 1e-49


# The operations, each against mpmath.

EXPECTED = {
    **{name: getattr(mpmath, name) for name in ("sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh")},
    **{name: getattr(mpmath, name) for name in ("tanh", "asinh", "atanh", "exp", "log", "expm1", "log1p", "erf")},
    **{name: getattr(mpmath, name) for name in ("sign", "floor", "ceil", "acosh", "atan2", "hypot")},
    "neg": lambda x: -x, "sq": lambda x: x * x, "abs": abs, "not": lambda x: mpmath.mpf(x == 0),
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y, "fmod": lambda x, y: x - y * int(x / y), "min": min, "max": max,
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
    top, kepler = problems.get("lagrange-top"), problems.get("kepler")
    path = la.integrate(top.system, method, top.exact_q0, top.exact_p0, h="1/100", steps=20, digits=64)
    orbit = la.integrate(kepler.system, method, kepler.exact_q0, kepler.exact_p0, h="1/50", steps=20, digits=64)
    with mpmath.workdps(64):
        assert largest(path.p[:, [0, 2]] - path.p[0, [0, 2]]) < 1e-60
        turning = orbit.q[:, 0] * orbit.p[:, 1] - orbit.q[:, 1] * orbit.p[:, 0]
        assert largest(turning - turning[0]) < 1e-60


# Nothing on the way is a float64.


def test_no_hidden_float64_pendulum_at_200_digits():
    """Gauss with 24 nodes, h = 10⁻⁵: the error, of the order of h⁴⁸, leaves nothing to hide behind."""
    pendulum = problems.get("pendulum")
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


# Orders.


def order(errors):
    with mpmath.workdps(20):
        return float(mpmath.log(errors[0] / errors[1], 2))


def kepler_order(method, steps):
    kepler = problems.get("kepler", eccentricity="0.3")
    start = kepler.exact(["1/3"], digits=70)
    errors = []
    q, p = kepler.exact(["4/3"], digits=70)
    for N in (steps, 2 * steps):
        path = la.integrate(
            kepler.system, method, start[0][0], start[1][0], h=Fraction(1, N), steps=N, digits=70, every=N
        )
        with mpmath.workdps(70):
            errors.append(max(largest(path.q[-1] - q[0]), largest(path.p[-1] - p[0])))
    return order(errors)


def spring_order(method, steps):
    ends = []
    for N in (steps, 2 * steps, 4 * steps):
        path = la.integrate(SPRING, method, h=Fraction(1, N), steps=N, digits=70, every=N, **START)
        ends.append(np.concatenate([path.q[-1], path.p[-1]]))
    with mpmath.workdps(70):
        return order([largest(a - b) for a, b in pairwise(ends)])


@pytest.mark.parametrize("name", ["P2N3Q4Lob", "P3N3Q6Gau"])
def test_order(name):
    method = la.method(name)
    assert abs(kepler_order(method, 12) - method.order) < 0.05
    assert abs(spring_order(method, 12) - method.order) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("measure", [kepler_order, spring_order])
@pytest.mark.parametrize("method", list(family(6)), ids=repr)
def test_order_of_the_family(method, measure):
    assert abs(measure(method, 24) - method.order) < 0.05


# Published tables, recomputed with the 64 digits they were computed with.

# Rojas-Quintero, Dubois and Jourdan (2025), Table 2: ‖e_H‖∞ for h = 0.04, 0.02, 0.01.
TABLE_2 = {
    (1, "midpoint"): "7.61e-4 2.09e-4 5.35e-5",
    (1, "rk4"): "7.28e-5 2.11e-6 6.25e-8",
    (1, "simpson"): "8.09e-6 4.94e-7 3.07e-8",
    (10, "midpoint"): "8.31e-4 2.29e-4 5.78e-5",
    (10, "rk4"): "1.04e-3 3.41e-5 1.08e-6",
    (10, "simpson"): "8.83e-6 5.47e-7 3.42e-8",
}
# Tables 4 and 5: ‖e_θ‖∞ and ‖e_H‖∞ for h = 1/50, 1/100, 1/200 of the period of nutation.
TABLES_4_AND_5 = {
    (1, "midpoint"): ("1.53e-1 3.70e-2 9.21e-3", "1.02e-5 2.60e-6 6.52e-7"),
    (1, "rk4-lagrange"): ("2.84e-3 1.66e-4 1.01e-5", "6.73e-7 4.47e-8 2.87e-9"),
    (1, "simpson"): ("2.66e-4 1.64e-5 1.02e-6", "3.56e-8 2.20e-9 1.37e-10"),
    (10, "midpoint"): ("3.22e0 5.48e-1 1.21e-1", "1.02e-5 2.60e-6 6.52e-7"),
    (10, "rk4-lagrange"): ("9.32e-2 3.72e-3 1.71e-4", "1.28e-6 4.47e-8 2.87e-9"),
    (10, "simpson"): ("1.61e-3 9.46e-5 5.81e-6", "3.56e-8 2.20e-9 1.37e-10"),
}


def agree(computed, printed):
    """Whether numbers round to those printed with three digits."""
    return [f"{float(x):.2e}" for x in computed] == [f"{float(x):.2e}" for x in printed.split()]


def energy_error(path):
    with mpmath.workdps(64):
        energy = path.energy()
        return largest((energy - energy[0]) / energy[0])


def long_ones_slow(cells):
    return [pytest.param(*key, marks=[pytest.mark.slow] * (key[0] > 1 or extra)) for key, extra in cells]


@pytest.mark.parametrize(("T", "method"), long_ones_slow((key, False) for key in TABLE_2))
def test_table_2(T, method):
    pendulum = problems.get("double-pendulum")
    errors = []
    for N in (25, 50, 100):
        path = la.integrate(
            pendulum.system, method, pendulum.exact_q0, pendulum.exact_p0, h=Fraction(1, N), steps=N * T, digits=64
        )
        errors.append(energy_error(path))
    assert agree(errors, TABLE_2[T, method])


@pytest.mark.parametrize(("T", "method"), long_ones_slow((key, key[1] != "simpson") for key in TABLES_4_AND_5))
def test_tables_4_and_5(T, method):
    top = problems.get("lagrange-top")
    period = top.data(70).period
    nutation, energy = [], []
    for N in (50, 100, 200):
        with mpmath.workdps(70):
            h = period / N
        path = la.integrate(top.system, method, top.exact_q0, top.exact_p0, h=h, steps=N * T, digits=64)
        theta = top.exact(path.t, digits=20)[0][:, 1]
        with mpmath.workdps(20):
            nutation.append(largest((path.q[:, 1] - theta) / theta))
        energy.append(energy_error(path))
    assert agree(nutation, TABLES_4_AND_5[T, method][0])
    assert agree(energy, TABLES_4_AND_5[T, method][1])


# Paths.


def test_save_and_load_keep_every_digit(tmp_path):
    system = la.Lagrangian(spring, n=2, params={"k": sympy.sqrt(2), "c": Fraction(1, 3)})
    path = la.integrate(system, "simpson", h="1/10", t_end="pi/2", every=3, digits=80, **START)
    path.save(tmp_path / "path.npz")
    again = la.Path.load(tmp_path / "path.npz")
    assert again.digits == 80 and again.h == path.h and again.params == path.params
    for name in ("t", "q", "p"):
        assert (getattr(again, name) == getattr(path, name)).all()
    assert (again.energy() == path.energy()).all()
    assert (again("1/7") == path("1/7")).all()
    longer = la.integrate(again.system, "simpson", h="1/10", steps=2, digits=150, **START)
    direct = la.integrate(system, "simpson", h="1/10", steps=2, digits=150, **START)
    assert (longer.q == direct.q).all()  # the defaults come back exact, not as 80 digits of them


def test_dense_output_is_the_polynomial_of_the_step():
    """It meets the nodes, does not depend on `every`, and is a polynomial of degree s."""
    path = la.integrate(SPRING, "P3N3Q6Gau", h="1/5", steps=6, digits=64, **START)
    sparse = la.integrate(SPRING, "P3N3Q6Gau", h="1/5", steps=6, every=4, digits=64, **START)
    ts = ["1/20", "1/10", "3/20", "1/5", "0.77", "6/5"]
    with mpmath.workdps(64):
        assert largest(path(path.t) - path.q) < 1e-63
        assert largest(path(ts) - sparse(ts)) < 1e-63
        z = path(["0", "1/20", "1/10", "3/20", "1/5"])
        assert largest(z[0] - 4 * z[1] + 6 * z[2] - 4 * z[3] + z[4]) < 1e-63
    assert path("1/3").shape == (2,) and path([["1/3"]]).shape == (1, 1, 2)
    with pytest.raises(ValueError, match=r"covers t = 0 … 1\.2; asked for t = 1\.5"):
        path("3/2")


def test_t_end_every_and_stats():
    path = la.integrate(SPRING, "simpson", h="1/10", t_end="1/3", every=3, digits=50, **START)
    with mpmath.workdps(50):
        assert path.t[-1] == Digits(50).array("1/3") and abs(path.h - mpmath.mpf(1) / 12) < 1e-50
    assert len(path) == 3 and path.stats["steps"] == 4
    assert path.stats["floor"] < 1e-58 and path.stats["time_per_step"] > 0
    assert "50 digits" in repr(path)
    assert json.dumps(dict(path.stats))


def test_plot():
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    path = la.integrate(SPRING, "simpson", h="1/10", steps=5, digits=40, **START)
    for what in ("configuration", "phase", "energy"):
        path.plot(what)
    plt.close("all")


def test_precision_of_the_caller_is_left_alone():
    before = mpmath.mp.prec, flint.ctx.prec
    la.integrate(SPRING, "simpson", h="1/10", steps=2, digits=300, **START).energy()
    assert (mpmath.mp.prec, flint.ctx.prec) == before


def test_a_system_at_rest_stays_there_and_numpy_integers_are_digits(tmp_path):
    path = la.integrate(SPRING, "simpson", [0, 0], [0, 0], h="1/10", steps=3, digits=np.int64(40))
    assert not path.q.any()
    assert path.stats["floor"] == 0.0
    path.save(tmp_path / "run.npz")
    assert la.Path.load(tmp_path / "run.npz").digits == 40


def test_threads_do_not_disturb_each_others_precision():
    """flint and mpmath have one precision for the whole process."""

    def run(digits):
        return la.integrate(SPRING, "simpson", h="1/30", t_end="7/3", digits=digits, **START)

    def linear(k):
        return la.integrate(la.Quadratic([1.0, 2.0 + k], [1.0, 1.0]), "P3N3Q6Gau", [1, 1], [0, 0], h=0.1, steps=2)

    alone = {digits: run(digits) for digits in (30, 200)}
    before = mpmath.mp.prec, flint.ctx.prec
    with ThreadPoolExecutor(5) as pool:
        others = [pool.submit(linear, k) for k in range(20)]
        paths = list(pool.map(run, [30, 200] * 6))
        assert all(np.isfinite(other.result().q).all() for other in others)
    for path in paths:
        for name in "tqp":
            assert (getattr(path, name) == getattr(alone[path.digits], name)).all()
    assert (mpmath.mp.prec, flint.ctx.prec) == before


# What goes wrong.


@pytest.mark.parametrize("digits", [0, -3, 1, 2.5, "64", True])
def test_digits_must_be_a_number_of_digits(digits):
    with pytest.raises(ValueError, match="digits must be an integer"):
        la.integrate(SPRING, "simpson", h="1/10", steps=1, digits=digits, **START)


def test_wrong_input_is_named():
    with pytest.raises(TypeError, match="h must be a number"):
        la.integrate(SPRING, "simpson", h="fast", steps=1, digits=30, **START)
    with pytest.raises(TypeError, match="q0 must be 2 numbers"):
        la.integrate(SPRING, "simpson", ["x", 1], [0, 0], h=1, steps=1, digits=30)
    with pytest.raises(ValueError, match=r"q0 must have shape \(2,\)"):
        la.integrate(SPRING, "simpson", ["1"], [0, 0], h=1, steps=1, digits=30)
    with pytest.raises(TypeError, match="parameter 'k' must be a number"):
        la.integrate(SPRING, "simpson", h=1, steps=1, params={"k": "stiff"}, digits=30, **START)


def test_degenerate_lagrangian():
    system = la.Lagrangian(lambda q, v: v[0] ** 2 / 2 - q[0] * q[1], n=2)
    with pytest.raises(la.DegenerateLagrangianError, match=r"∂L/∂v\[1\] does not depend on v"):
        la.integrate(system, "simpson", [1, 1], v0=[0, 0], h="1/10", steps=1, digits=40)


def test_a_step_that_has_no_solution_fails_as_in_float64():
    system = la.Lagrangian(lambda q, v: v[0] ** 2 / 2 + q[0] ** 4 / 4, n=1)
    failures = []
    for digits in (None, 40):
        with pytest.raises(la.StepFailed) as caught:
            la.integrate(system, "midpoint", ["1/2"], v0=[1], h="1/10", steps=50, digits=digits)
        failures.append(caught.value)
    a, b = failures
    assert a.step == b.step and len(a.path) == len(b.path) == b.step + 1
    assert str(b).split(" (")[0] == str(a).split(" (")[0]
    assert isinstance(b.path.q[0, 0], mpmath.mpf)


@pytest.mark.parametrize("method", ["P2N3Q6Gau", "P2N5Q8Lob", "P2N6Q10Lob"])
def test_a_step_beyond_a_fold_fails_within_a_run(method):
    """Five steps in a revolution: the branch of the fifth ends just before h = 1, where a wrong root is near."""
    kepler = problems.get("kepler-galerkin")
    for digits in (None, 40):
        with pytest.raises(la.StepFailed, match="connected with the motion") as caught:
            la.integrate(kepler.system, method, kepler.q0, kepler.p0, h=1, steps=25, digits=digits)
        assert caught.value.step == 4


@pytest.mark.parametrize("method", ["rk4", "rk4-lagrange", "simpson"])
def test_leaving_the_domain_of_the_lagrangian_fails(method):
    system = la.Lagrangian(lambda q, v: v[0] ** 2 / 2 - q[0] ** la.const("3/2"), n=1)
    failures = []
    for digits in (None, 40):
        with pytest.raises(la.StepFailed) as caught:
            la.integrate(system, method, ["1/4"], v0=[-5], h="1/20", steps=5, digits=digits)
        failures.append(caught.value)
    assert failures[0].step == failures[1].step == 0


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_interrupt_returns_what_there_is():
    script = """
import os, signal, threading, warnings
import leastaction as la
system = la.Lagrangian(lambda q, v: v[0] ** 2 / 2 - q[0] ** 2 / 2, n=1)
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    path = la.integrate(system, "simpson", [1], [0], h="1/10", steps=10**6, every=10, digits=64)
assert path.stats["interrupted"] and 1 < len(path) < 10**5 and "interrupted" in str(caught[-1].message)
"""
    assert signal.SIGINT and subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0


# Quadratic systems.

STIFFNESS = {"k": ["1/3", "sqrt(2)"]}
QUADRATIC = la.Quadratic([[2, 1], ["1", 1]], [["1/3", 0], [0, sympy.sqrt(2)]])
AS_LAGRANGIAN = la.Lagrangian(
    lambda q, v, k: v[0] ** 2 + v[0] * v[1] + v[1] ** 2 / 2 - k @ q**2 / 2, n=2, params=STIFFNESS
)


@pytest.mark.parametrize("method", ["midpoint", "simpson", "P3N4Q6Lob", "P5N5Q10Gau", "rk4", "rk4-lagrange"])
def test_quadratic_is_the_lagrangian_of_its_matrices(method, tmp_path):
    run = {"q0": ["1/2", "pi/7"], "v0": [0, "1/9"], "h": "1/10", "steps": 20, "every": 7}
    a = la.integrate(QUADRATIC, method, digits=64, **run)
    b = la.integrate(AS_LAGRANGIAN, method, digits=64, **run)
    ts = ["1/3", "1.77", "2"]
    with mpmath.workdps(70):
        for x, y in ((a.t, b.t), (a.q, b.q), (a.p, b.p), (a.energy(), b.energy()), (a(ts), b(ts))):
            assert largest(x - y) < 1e-63
    double = la.integrate(QUADRATIC, method, **run)
    np.testing.assert_allclose(a.q.astype(float), double.q, rtol=0, atol=1e-14)
    a.save(tmp_path / "path.npz")
    again = la.Path.load(tmp_path / "path.npz")
    assert (again.q == a.q).all() and (again.energy() == a.energy()).all() and (again(ts) == a(ts)).all()


def test_quadratic_by_its_exact_motion():
    system = la.Quadratic(["1/3"], ["2/7"])
    path = la.integrate(system, "P20N20Q40Gau", [1], [0], h="1e-4", steps=2, digits=150)
    with mpmath.workdps(150):
        w = mpmath.sqrt(mpmath.mpf(6) / 7)
        assert largest(path.q[:, 0] - [mpmath.cos(w * t) for t in path.t]) < mpmath.mpf(10) ** -145


def test_quadratic_at_the_callers_low_precision():
    """Nothing is rounded to the 15 digits mpmath has unless told."""
    path = la.integrate(la.Quadratic(["1/3"], ["2/7"]), "simpson", [1], v0=["1/9"], h="1/10", steps=1, digits=50)
    v = path.velocity()[0, 0]
    with mpmath.workdps(50):
        assert abs(v - mpmath.mpf(1) / 9) < 1e-50
        assert abs(path.energy()[0] - (mpmath.mpf(1) / 7 + mpmath.mpf(1) / 486)) < 1e-50


@pytest.mark.parametrize("wrap", [list, np.array])
def test_quadratic_keeps_integers_beyond_float64(wrap):
    assert la.Quadratic([1], wrap([2**60 + 1])).exact_matrices(Digits(30))[1][0, 0] == 2**60 + 1


def test_quadratic_limits():
    with pytest.raises(la.UnstableStepError):
        la.integrate(QUADRATIC, "simpson", [1, 1], [0, 0], h=100, steps=1, digits=40)
    with pytest.raises(ValueError, match="output= is for float64"):
        la.integrate(QUADRATIC, "simpson", [1, 1], [0, 0], h="1/10", steps=1, digits=40, output=[0])


def test_a_momentum_that_no_velocity_has_is_refused():
    """L = √(1 + v²): |p| < 1."""
    system = la.Lagrangian(lambda q, v: np.sqrt(1 + v[0] ** 2), n=1)
    for digits in (None, 40):
        with pytest.raises(la.DegenerateLagrangianError, match="no velocity"):
            la.integrate(system, "simpson", [0], [2], h="1/10", steps=1, digits=digits)
        path = la.integrate(system, "simpson", [0], ["3/5"], h="1/10", steps=1, digits=digits)
        assert abs(path.velocity()[0, 0] - 0.75) < 1e-15


@pytest.mark.parametrize("digits", [None, 40])
@pytest.mark.parametrize("wrong", [{"q0": [0, float("nan")]}, {"h": float("inf")}, {"params": {"k": -np.inf}}])
def test_what_is_not_finite_is_named(digits, wrong):
    with pytest.raises(
        ValueError, match=f"{'parameter .k.' if 'params' in wrong else next(iter(wrong))} must be finite"
    ):
        la.integrate(SPRING, "simpson", **{**START, "h": "1/10", "steps": 1, "digits": digits, **wrong})
