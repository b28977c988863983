"""Numbers as the user means them, and the two arithmetics they are rounded to.

What is given for a parameter, an initial value, a time or a step may be

    "9.81", "1/3", "pi/6"      text: exactly that number
    Fraction, Decimal, int     exactly that number
    sympy.pi / 6               exactly that number
    0.1, mpmath.mpf, np.float  exactly that binary number: 0.1 is not 1/10

`exact` keeps it without rounding, as a Fraction or a SymPy number; `Float64` and `Digits` round it once.
"""

from __future__ import annotations

import ast
import math
import numbers
import operator
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol

import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.working import mpmath_bits

# Kept beyond the digits asked for: the roundings of some 10⁹ steps stay below the last digit.
GUARD_BITS = 32

_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow, ast.USub: operator.neg, ast.UAdd: operator.pos,
}  # fmt: skip
_CONSTANTS = {"pi": "pi", "E": "E", "e": "E"}
_FUNCTIONS = {
    "sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
    "asinh", "acosh", "atanh", "gamma", "elliptic_k",
}  # fmt: skip


_HEXADECIMAL = re.compile(r"([+-]?)0x([0-9a-f]+)\.?([0-9a-f]*)p([+-]?[0-9]+)", re.IGNORECASE)
BINARY_NUMBER = re.compile(r"-?0x[0-9a-f]+p-?[0-9]{1,9}")  # what `to_text` makes of a number of many digits
_DECIMAL_EXPONENT = re.compile(r"e([+-]?[0-9_]+)\s*$", re.IGNORECASE)

# Exact numbers are held with all their bits, so that there is an end to their size: about 10^±120000.
MOST_BITS = 400_000
# Functions whose value is far larger than their argument, and up to where.
_GROWING = {"exp": 1e5, "sinh": 1e5, "cosh": 1e5, "gamma": 1e4}


class _TooLargeError(ValueError):
    """A number with more than MOST_BITS bits."""

    def __init__(
        self, message: str = f"exact numbers have at most {MOST_BITS} bits, about 10^±{MOST_BITS * 3 // 10}"
    ) -> None:
        super().__init__(message)


class Reals(Protocol):
    """The arithmetic of a run: how it holds numbers."""

    @property
    def digits(self) -> int | None:
        """Decimal digits; None in float64."""
        ...

    def array(self, value: Any) -> NDArray[Any]:
        """What the user gave, each number rounded once; the shape stays."""
        ...

    def working(self) -> AbstractContextManager[Any]:
        """Inside, arithmetic on these numbers is done at their precision."""
        ...


@dataclass(frozen=True)
class Float64:
    """Double precision: NumPy arrays of floats."""

    digits: None = None

    def array(self, value: Any) -> NDArray[np.float64]:
        # NumPy, left alone with a list, would turn a number beside text into text, and so change what it means.
        given = value if isinstance(value, np.ndarray) else np.asarray(value, dtype=object)
        if given.dtype.kind in "biuf" or all(isinstance(x, int | float) for x in given.flat):
            return np.array(given, dtype=float)
        return np.array([_to_float(x) for x in given.flat], dtype=float).reshape(given.shape)

    def working(self) -> AbstractContextManager[None]:
        return nullcontext()


@dataclass(frozen=True)
class Digits:
    """Any precision: object arrays of mpmath numbers, of `digits` decimal digits and a few guard bits.

    >>> with Digits(40).working():
    ...     print(mpmath.nstr(Digits(40).array("1/3")[()], 40))
    0.3333333333333333333333333333333333333333
    """

    digits: int

    def __post_init__(self) -> None:
        digits = self.digits
        if isinstance(digits, bool) or not isinstance(digits, int | np.integer) or digits < 2:
            raise ValueError(f"digits must be an integer, at least 2 (None means float64); got {digits!r}")
        object.__setattr__(self, "digits", int(digits))  # a NumPy integer would not go into a file's header

    @property
    def bits(self) -> int:
        """Working precision."""
        return math.ceil(self.digits * math.log2(10)) + GUARD_BITS

    def array(self, value: Any) -> NDArray[np.object_]:
        given = np.asarray(value, dtype=object)
        result = np.empty(given.size, dtype=object)
        result[:] = [_to_mpf(x, self.bits) for x in given.flat]
        return result.reshape(given.shape)

    def working(self) -> AbstractContextManager[Any]:
        return mpmath_bits(self.bits)


FLOAT64 = Float64()


def reals(digits: int | None) -> Reals:
    """The arithmetic with this many digits; float64 for None."""
    return FLOAT64 if digits is None else Digits(digits)


def exact(x: Any) -> Any:
    """The number x without rounding: a Fraction, or a SymPy number where it is not rational."""
    if isinstance(x, np.ndarray) and x.ndim == 0:
        return exact(x.item())
    if isinstance(x, str):
        return _read(x)
    if isinstance(x, np.bool_):
        return Fraction(int(x))
    if isinstance(x, numbers.Rational):
        return Fraction(int(x.numerator), int(x.denominator))
    if isinstance(x, mpmath.mpf):
        return _binary(x._mpf_, x)
    if hasattr(x, "as_integer_ratio"):  # float, NumPy's floats, Decimal
        if isinstance(x, Decimal) and x.is_finite():
            _check_bits(4 * abs(int(x.as_tuple().exponent)))
        try:
            return Fraction(*map(int, x.as_integer_ratio()))
        except (OverflowError, ValueError):
            raise _not_finite(x) from None
    if isinstance(x, type(mpmath.pi)) and x.name in _CONSTANTS:
        return _read(x.name)
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


def to_texts(value: Any) -> Any:
    """Numbers and nested lists of them as JSON keeps them without loss: floats and integers, or text."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [to_texts(entry) for entry in value]
    return value if isinstance(value, int | float) else to_text(value)


def all_finite(values: NDArray[Any]) -> bool:
    """np.isfinite, on either arithmetic."""
    if values.dtype == object:
        return all(mpmath.isfinite(x) for x in values.flat)
    return bool(np.isfinite(values).all())


def _binary(parts: Any, x: Any) -> Fraction:
    sign, mantissa, exponent, _ = parts
    if not mantissa and exponent:
        raise _not_finite(x)
    _check_bits(abs(int(exponent)))
    return (-1 if sign else 1) * Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _check_bits(bits: float) -> None:
    if bits > MOST_BITS:
        raise _TooLargeError()


def _not_finite(x: Any) -> ValueError:
    return ValueError(f"expected a finite number; got {x!r}")


def _from_sympy(x: Any) -> Any:
    """A SymPy number, its floats replaced by what they are; one that `_parse` could not read back is refused."""
    import sympy

    if not (x.is_number and x.is_extended_real):
        raise TypeError(f"expected a real number; got the SymPy expression {x}")
    if not x.is_finite:
        raise _not_finite(x)
    x = x.xreplace({atom: sympy.Rational(_binary(atom._mpf_, atom)) for atom in x.atoms(sympy.Float)})
    if x.is_Rational:
        return _plain(x)
    try:
        return _plain(_parse(str(x)))
    except _TooLargeError:
        raise
    except _UNREADABLE:
        raise TypeError(
            f"the SymPy number {x} is made of more than rational numbers, pi, E, roots and elementary functions; "
            "evaluate it (`x.evalf(digits)`)"
        ) from None


def _read(text: str) -> Any:
    """A number from its text: a decimal, a ratio, or an expression in pi, E and elementary functions."""
    try:
        number = _literal(text)
        if number is None:
            number = _plain(_parse(text))
    except _TooLargeError as error:
        raise ValueError(f"{text!r} is too large or too small: {error}") from None
    except _UNREADABLE:
        number = None
    if number is None or not (isinstance(number, Fraction) or (number.is_real and number.is_finite)):
        raise ValueError(f"cannot read {text!r} as a number; write it as in '9.81', '1/3', '2*pi' or 'sqrt(2)'")
    return number


_UNREADABLE = (SyntaxError, KeyError, TypeError, ValueError, RecursionError, MemoryError)


def _literal(text: str) -> Fraction | None:
    """The number that is written as one decimal, one ratio, or in hexadecimal; None if it is written otherwise."""
    if match := _HEXADECIMAL.fullmatch(text.strip()):
        sign, whole, part, exponent = match.groups(default="")
        _check_bits(abs(int(exponent)))
        return int(sign + whole + part, 16) * Fraction(2) ** (int(exponent) - 4 * len(part))
    if match := _DECIMAL_EXPONENT.search(text):
        _check_bits(4 * abs(int(match[1])))
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def _plain(x: Any) -> Any:
    """A SymPy number, as a Fraction if it is rational."""
    return Fraction(int(x.p), int(x.q)) if x.is_Rational else x


def _parse(text: str) -> Any:
    return _build(ast.parse(text.strip(), mode="eval").body, text.strip())


def _build(node: ast.expr, text: str) -> Any:
    """The SymPy number of a parsed expression. Literals are read again from the text, so that 0.1 is 1/10."""
    import sympy

    match node:
        case ast.Constant(value=int() | float()):
            fraction = _literal(ast.get_source_segment(text, node) or "")
            if fraction is None:
                raise ValueError(ast.dump(node))
            return sympy.Rational(fraction.numerator, fraction.denominator)
        case ast.Name(id=name):
            return getattr(sympy, _CONSTANTS[name])
        case ast.UnaryOp(op=op, operand=operand):
            return _OPERATORS[type(op)](_build(operand, text))
        case ast.BinOp(left=left, op=op, right=right):
            x, y = _build(left, text), _build(right, text)
            if isinstance(op, ast.Pow):
                _check_bits(abs(sympy.N(y, 15)) * _bits(x))
            return _OPERATORS[type(op)](x, y)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            values = [_build(arg, text) for arg in args]
            if any(abs(sympy.N(x, 15)) > _GROWING.get(name, math.inf) for x in values):
                raise _TooLargeError()
            return getattr(sympy, name)(*values)
    raise ValueError(ast.dump(node))


def _bits(x: Any) -> Any:
    """About how many bits a power of x has for each unit of the exponent."""
    import sympy

    if x.is_Rational:
        return max(int(x.p).bit_length(), int(x.q).bit_length())
    return 1 + abs(sympy.log(abs(sympy.N(x, 15)), 2)) if x != 0 else 1


def _to_float(x: Any) -> float:
    """x rounded to float64; what is not finite stays so, for the caller to say where it came from."""
    try:
        return float(x if isinstance(x, float) else exact(x))
    except OverflowError:
        return math.inf


def _to_mpf(x: Any, bits: int) -> Any:
    """x rounded to so many bits; a float that is not finite stays so, for the caller to say where it came from."""
    if isinstance(x, float) and not math.isfinite(x):
        return mpmath.mpf(x)
    number = exact(x)
    if isinstance(number, Fraction):
        return mpmath.mp.make_mpf(mpmath.libmp.from_rational(number.numerator, number.denominator, bits, "n"))
    import sympy

    near = sympy.N(number, math.ceil(bits / math.log2(10)) + 5)
    return mpmath.mp.make_mpf(mpmath.libmp.mpf_pos(near._mpf_, bits, "n"))
