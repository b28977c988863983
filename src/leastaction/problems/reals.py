"""The exact real numbers of a problem, as SymPy numbers: 981/100, π/2, √3; and their values at any precision.

What a user may write for one is said, and read, in `leastaction.exact`.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from leastaction.exact import exact as exactly
from leastaction.working import mpmath_digits


def exact(value: Any, name: str = "the value") -> Any:
    """A SymPy number from whatever the user wrote.

    >>> exact("9.81"), exact(0.5), exact(Fraction(1, 3)), exact("2*pi")
    (981/100, 1/2, 1/3, 2*pi)
    """
    try:
        number = None if isinstance(value, bool | np.bool_) else exactly(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{_wanted(name)}; got {value!r}: {error}") from None
    if number is None:
        raise ValueError(f"{_wanted(name)}; got {value!r}")
    return sp.Rational(number.numerator, number.denominator) if isinstance(number, Fraction) else number


def _wanted(name: str) -> str:
    return f'{name} must be a finite real number, such as 2, 0.5, "9.81", "pi/2" or "sqrt(3)"'


def exact_vector(values: Any, n: int, name: str) -> tuple[Any, ...]:
    """n SymPy numbers from a sequence; a single number will do for n = 1."""
    if n == 1 and (isinstance(values, str) or not isinstance(values, Iterable)):
        values = (values,)
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(f"{name} must be {n} numbers; got {values!r}")
    found = tuple(values)
    if len(found) != n:
        raise ValueError(f"{name} must be {n} numbers, one per degree of freedom; got {len(found)}: {values!r}")
    return tuple(exact(value, f"{name}[{k}]") for k, value in enumerate(found))


def positive(value: Any, name: str) -> Any:
    """A SymPy number > 0."""
    number = exact(value, name)
    if not number > 0:
        raise ValueError(f"{name} must be positive; got {value!r}")
    return number


def to_mpf(value: Any) -> Any:
    """The number, exact or not, as an mpf of the working precision."""
    if isinstance(value, mpmath.mpf):
        return value
    if isinstance(value, int | float):
        return mpmath.mpf(value)
    number = exact(value) if not isinstance(value, sp.Expr) else value
    if isinstance(number, sp.Rational):
        return mpmath.mpf(int(number.p)) / int(number.q)
    return mpmath.mpf(sp.N(number, mpmath.mp.dps + 5)._to_mpmath(mpmath.mp.prec + 10))


def to_float(number: Any) -> float:
    """The nearest double of an exact number."""
    with mpmath_digits(50):
        return float(to_mpf(number))
