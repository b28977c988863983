"""Exact real numbers: what a user may write for one, and its value at any precision.

Exact numbers are SymPy numbers: 981/100, π/2, √3. A float means its binary value, a string what it says.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import sympy as sp
from sympy.parsing.sympy_parser import parse_expr, rationalize, standard_transformations

from leastaction.working import mpmath_digits

_NAMES = {
    "__builtins__": {},
    **{name: getattr(sp, name) for name in ("pi", "E", "sqrt", "cbrt", "sin", "cos", "tan", "asin", "acos", "atan")},
    **{name: getattr(sp, name) for name in ("exp", "log", "Integer", "Float", "Rational", "Symbol", "Function")},
}


def exact(value: Any, name: str = "the value") -> Any:
    """A SymPy number from whatever the user wrote.

    >>> exact("9.81"), exact(0.5), exact(Fraction(1, 3)), exact("2*pi")
    (981/100, 1/2, 1/3, 2*pi)
    """
    try:
        number = _read(value)
    except Exception:
        number = None
    if not isinstance(number, sp.Expr) or not number.is_number or not number.is_finite or number.is_real is False:
        raise ValueError(
            f'{name} must be a finite real number, such as 2, 0.5, "9.81", "pi/2" or "sqrt(3)"; got {value!r}'
        )
    return number


def _read(value: Any) -> Any:
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, str):
        return parse_expr(value, transformations=(*standard_transformations, rationalize), global_dict=dict(_NAMES))
    if isinstance(value, sp.Float | mpmath.mpf):
        sign, mantissa, exponent, _ = value._mpf_
        return (-1) ** sign * sp.Integer(int(mantissa)) * sp.Integer(2) ** exponent
    if isinstance(value, sp.Expr):
        return value
    if isinstance(value, np.ndarray) and value.shape == ():
        return _read(value.item())
    if isinstance(value, numbers.Integral):
        return sp.Integer(int(value))
    if isinstance(value, numbers.Real):
        ratio = Fraction(value) if isinstance(value, Fraction) else Fraction(float(value))
        return sp.Rational(ratio.numerator, ratio.denominator)
    return None


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
