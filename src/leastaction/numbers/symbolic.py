"""Exact numbers for SymPy: 981/100, π/2, √3, from what a user may write. Errors name the number that is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

from leastaction.numbers.notation import exact


def symbolic(value: Any, name: str = "the value") -> Any:
    """A SymPy number from whatever the user wrote.

    >>> symbolic("9.81"), symbolic(0.5), symbolic(Fraction(1, 3)), symbolic("2*pi")
    (981/100, 1/2, 1/3, 2*pi)
    """
    try:
        number = None if isinstance(value, bool | np.bool_) else exact(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{_wanted(name)}; got {value!r}: {error}") from None
    if number is None:
        raise ValueError(f"{_wanted(name)}; got {value!r}")
    return sp.Rational(number.numerator, number.denominator) if isinstance(number, Fraction) else number


def _wanted(name: str) -> str:
    return f'{name} must be a finite real number, such as 2, 0.5, "9.81", "pi/2" or "sqrt(3)"'


def symbolic_vector(values: Any, n: int, name: str) -> tuple[Any, ...]:
    """n SymPy numbers from a sequence; a single number will do for n = 1."""
    if n == 1 and (isinstance(values, str) or not isinstance(values, Iterable)):
        values = (values,)
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(f"{name} must be {n} numbers; got {values!r}")
    found = tuple(values)
    if len(found) != n:
        raise ValueError(f"{name} must be {n} numbers, one per degree of freedom; got {len(found)}: {values!r}")
    return tuple(symbolic(value, f"{name}[{k}]") for k, value in enumerate(found))


def positive(value: Any, name: str) -> Any:
    """A SymPy number > 0."""
    number = symbolic(value, name)
    if not number > 0:
        raise ValueError(f"{name} must be positive; got {value!r}")
    return number
