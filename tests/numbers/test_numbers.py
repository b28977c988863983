"""Exact numbers: how a user may write them, one reader for the whole library, and a limit to their size."""

from __future__ import annotations

import math
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import flint
import mpmath
import numpy as np
import pytest
import sympy

import leastaction as la
from leastaction.flint.evaluate import function
from leastaction.numbers.notation import exact, to_text
from leastaction.numbers.precision import flint_bits
from leastaction.numbers.rounding import Digits, Float64
from leastaction.numbers.symbolic import symbolic
from leastaction.program import Builder
from precise import SPRING, spring

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


def test_sympy_floats_of_many_digits():
    """More than the 4300 that Python turns into text."""
    third = sympy.Rational(1, 3).evalf(6000)
    assert 0 < abs(3 * exact(third) - 1) < Fraction(1, 10**5999)


@pytest.mark.parametrize(
    "wrong", ["abc", "1/0", "inf", "sqrt(-1)", "__import__('os')", "pi.real", 1j, None, float("nan")]
)
def test_not_numbers(wrong):
    with pytest.raises((TypeError, ValueError), match=r"number"):
        exact(wrong)


def test_a_float_among_text_keeps_its_binary_value():
    assert Float64().array(["1/3", 0.1]).tolist() == [1 / 3, 0.1]
    assert Digits(40).array(["1/3", 0.1])[1] == mpmath.mpf(0.1)


def test_numbers_are_rounded_to_the_nearest():
    """Of rational and irrational numbers alike; the distance is compared exactly."""
    for k in range(1, 300):
        for number in (sympy.pi * sympy.Rational(k, 7), sympy.sqrt(3 * k), sympy.sin(k), sympy.Rational(k, 7)):
            meant = exact(Digits(60).array(number)[()])
            rounded = Float64().array(number).item()
            assert abs(Fraction(rounded) - meant) <= Fraction(math.ulp(rounded)) / 2
            assert Digits(15).array(rounded)[()] == rounded
    assert Digits(2).array(1 / 3)[()] == mpmath.mpf(1 / 3, prec=Digits(2).bits) != 1 / 3


@pytest.mark.parametrize("beyond", ["1e400", "-1e400", Fraction(10) ** 400, math.inf, -mpmath.inf, mpmath.mpf("1e400")])
def test_what_float64_cannot_hold_is_infinite(beyond):
    assert Float64().array([beyond, "1"]).tolist() == [math.copysign(math.inf, -1 if str(beyond)[0] == "-" else 1), 1.0]


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


# A limit to their size.

HUGE = ["1e1000000000", "1e-1000000000", "2*1e1000000000", "10**10**10", "10**-(10**10)", "2**(10**9 + 1/2)",
        "sqrt(2)**10**9", "pi**10**10", "exp(exp(exp(100)))", "gamma(10**8)", "0x1p99999999999"]  # fmt: skip


@pytest.mark.parametrize("text", HUGE)
def test_text_of_a_huge_number_is_refused_at_once(text):
    with pytest.raises(ValueError, match="is too large or too small: exact numbers have at most"):
        exact(text)
    with pytest.raises(ValueError, match=r"the length must be a finite real number.*too large"):
        symbolic(text, "the length")


@pytest.mark.parametrize("number", [Decimal("1e1000000000"), mpmath.ldexp(1, 10**9), mpmath.ldexp(1, -(10**9))])
def test_huge_numbers_are_refused_at_once(number):
    with pytest.raises(ValueError, match="exact numbers have at most"):
        exact(number)
    for arithmetic in (Float64(), Digits(40)):
        with pytest.raises(ValueError, match="exact numbers have at most"):
            arithmetic.array([number])


@pytest.mark.parametrize(
    "text", ["(" * 5000 + "1", "-" * 50000 + "1", "1" * 10000, "1/0", "log(0)", "sqrt(-1)", "x", ""]
)
def test_text_that_is_no_number_is_refused(text):
    with pytest.raises(ValueError, match="cannot read"):
        exact(text)


def test_large_numbers_are_read():
    assert exact("1e99999") == exact("10**99999") == Fraction(10) ** 99999
    assert exact("0x1p-300000") == exact(mpmath.ldexp(1, -300000)) == Fraction(1, 2**300000)
    assert exact(sympy.Integer(7) ** 10000) == Fraction(7) ** 10000


@pytest.mark.parametrize(
    "value", ["9.81", 0.1, 3, Fraction(1, 3), Decimal("0.7"), "pi/6", sympy.sqrt(3), mpmath.mpf(0.3), mpmath.pi]
)
def test_problems_read_the_same_numbers(value):
    assert sympy.sympify(exact(value)) == symbolic(value)


@pytest.mark.parametrize("value", [True, None, "abc", [1.0], math.nan, math.inf])
def test_problems_say_what_they_want(value):
    with pytest.raises(ValueError, match=r"m must be a finite real number, such as .*; got"):
        la.problems.get("pendulum", m=value)


@pytest.mark.parametrize(
    ("x", "y"),
    [("5.5", "2"), ("-5.5", "2"), ("5.5", "-2"), ("1e40", "3"), ("-1e40", "0.7"), ("1e300", "1e-300"), ("3", "1e40"),
     ("6", "3"), ("123456789e60", "0.001953125")],
)  # fmt: skip
def test_remainder_is_exact_for_any_quotient(x, y):
    """x − y trunc(x/y), of the numbers as rounded to the working precision."""
    B = Builder([("t", 1), ("params", 0)])
    (t,) = B.input("t")
    program = B.build(x=[B.op("fmod", t, B.const(float(y)))])
    with flint_bits(128):
        given = flint.arb(x).mid()
        (found,) = function(program, program.results, [])(given)
        exact_x, exact_found = (Fraction(int(m)) * Fraction(2) ** int(e) for m, e in (given.man_exp(), found.man_exp()))
    by = Fraction(float(y))
    assert exact_found == exact_x - by * math.trunc(exact_x / by)


def test_a_name_is_refused_without_sympy():
    """SymPy takes 30 MB, which the first refusal of a symbol cost."""
    code = """
import sys
from leastaction.numbers.notation import exact
for text in ("dt", "2*h", "sin(x)", "f(2)"):
    try:
        exact(text)
    except ValueError as error:
        assert "cannot read" in str(error)
print("sympy" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
