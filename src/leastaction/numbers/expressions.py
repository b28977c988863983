"""The number that a text stands for: a decimal, a ratio, or an expression in pi, E and elementary functions.

Exact numbers are held with all their bits, so their size is limited: MOST_BITS.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

MOST_BITS = 400_000  # about 10^±120000
CONSTANTS = {"pi": "pi", "E": "E", "e": "E"}
UNREADABLE = (SyntaxError, KeyError, TypeError, ValueError, RecursionError, MemoryError)  # what `parse` may raise

_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow, ast.USub: operator.neg, ast.UAdd: operator.pos,
}  # fmt: skip
_FUNCTIONS = {
    "sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
    "asinh", "acosh", "atanh", "gamma", "elliptic_k",
}  # fmt: skip
# Functions whose value is far larger than their argument, and the largest argument allowed.
_GROWING = {"exp": 1e5, "sinh": 1e5, "cosh": 1e5, "gamma": 1e4}
_HEXADECIMAL = re.compile(r"([+-]?)0x([0-9a-f]+)\.?([0-9a-f]*)p([+-]?[0-9]+)", re.IGNORECASE)
_DECIMAL_EXPONENT = re.compile(r"e([+-]?[0-9_]+)\s*$", re.IGNORECASE)


class TooLargeError(ValueError):
    """A number with more than MOST_BITS bits."""

    def __init__(
        self, message: str = f"exact numbers have at most {MOST_BITS} bits, about 10^±{MOST_BITS * 3 // 10}"
    ) -> None:
        super().__init__(message)


def check_bits(bits: float) -> None:
    if bits > MOST_BITS:
        raise TooLargeError()


def read(text: str) -> Any:
    """The number of a text, as a Fraction or, where it is not rational, a SymPy number."""
    try:
        number = _literal(text)
        if number is None:
            number = parse(text)
    except TooLargeError as error:
        raise ValueError(f"{text!r} is too large or too small: {error}") from None
    except UNREADABLE:
        number = None
    if number is None or not (isinstance(number, Fraction) or (number.is_real and number.is_finite)):
        raise ValueError(f"cannot read {text!r} as a number; write it as in '9.81', '1/3', '2*pi' or 'sqrt(2)'")
    return number


def parse(text: str) -> Any:
    """The number of an expression; UNREADABLE lists the errors raised where the text is no number."""
    tree = ast.parse(text.strip(), mode="eval").body
    # SymPy takes 30 MB: a name that means nothing is refused without it.
    if any(isinstance(node, ast.Name) and node.id not in (*CONSTANTS, *_FUNCTIONS) for node in ast.walk(tree)):
        raise ValueError(text)
    return plain(_build(tree, text.strip()))


def plain(x: Any) -> Any:
    """A SymPy number, as a Fraction if it is rational."""
    return Fraction(int(x.p), int(x.q)) if x.is_Rational else x


def _literal(text: str) -> Fraction | None:
    """The number that is written as one decimal, one ratio, or in hexadecimal; None if it is written otherwise."""
    if match := _HEXADECIMAL.fullmatch(text.strip()):
        sign, whole, part, exponent = match.groups(default="")
        check_bits(abs(int(exponent)))
        return int(sign + whole + part, 16) * Fraction(2) ** (int(exponent) - 4 * len(part))
    if match := _DECIMAL_EXPONENT.search(text):
        check_bits(4 * abs(int(match[1])))
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


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
            return getattr(sympy, CONSTANTS[name])
        case ast.UnaryOp(op=op, operand=operand):
            return _OPERATORS[type(op)](_build(operand, text))
        case ast.BinOp(left=left, op=op, right=right):
            x, y = _build(left, text), _build(right, text)
            if isinstance(op, ast.Pow):
                check_bits(abs(sympy.N(y, 15)) * _bits(x))
            return _OPERATORS[type(op)](x, y)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            values = [_build(arg, text) for arg in args]
            if any(abs(sympy.N(x, 15)) > _GROWING.get(name, math.inf) for x in values):
                raise TooLargeError()
            return getattr(sympy, name)(*values)
    raise ValueError(ast.dump(node))


def _bits(x: Any) -> Any:
    """About how many bits a power of x has for each unit of the exponent."""
    import sympy

    if x.is_Rational:
        return max(int(x.p).bit_length(), int(x.q).bit_length())
    return 1 + abs(sympy.log(abs(sympy.N(x, 15)), 2)) if x != 0 else 1
