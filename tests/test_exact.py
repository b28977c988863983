"""Exact numbers: what may be written for one, one reader for all of the library, and an end to their size."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import flint
import mpmath
import pytest
import sympy

import leastaction as la
from leastaction.exact import exact
from leastaction.precision.evaluate import function
from leastaction.problems import reals
from leastaction.program import Builder
from leastaction.working import flint_bits

HUGE = ["1e1000000000", "1e-1000000000", "2*1e1000000000", "10**10**10", "10**-(10**10)", "2**(10**9 + 1/2)",
        "sqrt(2)**10**9", "pi**10**10", "exp(exp(exp(100)))", "gamma(10**8)", "0x1p99999999999"]  # fmt: skip


@pytest.mark.parametrize("text", HUGE)
def test_text_of_a_huge_number_is_refused_at_once(text):
    with pytest.raises(ValueError, match="is too large or too small: exact numbers have at most"):
        exact(text)
    with pytest.raises(ValueError, match=r"the length must be a finite real number.*too large"):
        reals.exact(text, "the length")


@pytest.mark.parametrize("number", [Decimal("1e1000000000"), mpmath.ldexp(1, 10**9), mpmath.ldexp(1, -(10**9))])
def test_huge_numbers_are_refused_at_once(number):
    with pytest.raises(ValueError, match="exact numbers have at most"):
        exact(number)


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
    assert sympy.sympify(exact(value)) == reals.exact(value)


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
