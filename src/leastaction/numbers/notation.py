"""Numbers as the user means them.

What is given for a parameter, an initial value, a time or a step may be

    "9.81", "1/3", "pi/6"      text: exactly that number
    Fraction, Decimal, int     exactly that number
    sympy.pi / 6               exactly that number
    0.1, mpmath.mpf, np.float  exactly that binary number: 0.1 is not 1/10

`exact` keeps it without rounding, as a Fraction or a SymPy number; `to_text` writes it down again.
"""

from __future__ import annotations

import numbers
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from leastaction.numbers.conversion import fraction
from leastaction.numbers.expressions import CONSTANTS, UNREADABLE, TooLargeError, check_bits, parse, plain, read

BINARY_NUMBER = re.compile(r"-?0x[0-9a-f]+p-?[0-9]{1,9}")  # what `to_text` makes of a number of many digits


def exact(x: Any) -> Any:
    """The number x without rounding: a Fraction, or a SymPy number where it is not rational."""
    if isinstance(x, np.ndarray) and x.ndim == 0:
        return exact(x.item())
    if isinstance(x, str):
        return read(x)
    if isinstance(x, np.bool_):
        return Fraction(int(x))
    if isinstance(x, numbers.Rational):
        return Fraction(int(x.numerator), int(x.denominator))
    if isinstance(x, mpmath.mpf):
        return _binary(x)
    if hasattr(x, "as_integer_ratio"):  # float, NumPy's floats, Decimal
        if isinstance(x, Decimal) and x.is_finite():
            check_bits(4 * abs(int(x.as_tuple().exponent)))
        try:
            return Fraction(*map(int, x.as_integer_ratio()))
        except (OverflowError, ValueError):
            raise _not_finite(x) from None
    if isinstance(x, type(mpmath.pi)) and x.name in CONSTANTS:
        return read(x.name)
    if hasattr(x, "is_number") and hasattr(x, "evalf"):
        return _from_sympy(x)
    raise TypeError(f"expected a real number, or its text such as '9.81', '1/3' or 'pi/6'; got {x!r}")


def to_text(x: Any) -> str:
    """A number as text that `exact` reads back without loss; binary numbers in hexadecimal."""
    if isinstance(x, float):
        return x.hex()
    if isinstance(x, mpmath.mpf):
        sign, mantissa, exponent, _ = x._mpf_
        return f"{'-' if sign else ''}0x{int(mantissa):x}p{int(exponent)}"
    return str(exact(x))


def readable(x: Any) -> str:
    """A number as people write it: a decimal where it is a finite one, else as it stands; also tuples of numbers.

    >>> readable(Fraction(147956104143, 500000000000000)), readable((Fraction(1, 3), 2)), readable("2*pi")
    ('0.000295912208286', '(1/3, 2)', '2*pi')
    """
    if isinstance(x, tuple):
        return f"({', '.join(map(readable, x))}{',' if len(x) == 1 else ''})"
    number = exact(x)
    if not isinstance(number, Fraction):
        return str(x)
    decimal = Decimal(number.numerator) / Decimal(number.denominator)
    return f"{decimal:f}" if Fraction(decimal) == number else str(number)


def to_texts(value: Any) -> Any:
    """Numbers and nested lists of them as JSON keeps them without loss: floats and integers, or text."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [to_texts(entry) for entry in value]
    return value if isinstance(value, int | float) else to_text(value)


def _binary(x: Any) -> Fraction:
    """A float of mpmath or SymPy."""
    _, mantissa, exponent, _ = x._mpf_
    if not mantissa and exponent:
        raise _not_finite(x)
    check_bits(abs(int(exponent)))
    return fraction(x)


def _not_finite(x: Any) -> ValueError:
    return ValueError(f"expected a finite number; got {x!r}")


def _from_sympy(x: Any) -> Any:
    """A SymPy number, its floats made exact; a number that `parse` could not read back is refused."""
    import sympy

    if not (x.is_number and x.is_extended_real):
        raise TypeError(f"expected a real number; got the SymPy expression {x}")
    if not x.is_finite:
        raise _not_finite(x)
    x = x.xreplace({atom: sympy.Rational(_binary(atom)) for atom in x.atoms(sympy.Float)})
    if x.is_Rational:
        return plain(x)
    try:
        return parse(str(x))
    except TooLargeError:
        raise
    except UNREADABLE:
        raise TypeError(
            f"the SymPy number {x} is made of more than rational numbers, pi, E, roots and elementary functions; "
            "evaluate it (`x.evalf(digits)`)"
        ) from None
