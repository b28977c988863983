"""Exact numbers as people write them: 2√2, not 2*sqrt(2)."""

from __future__ import annotations

from typing import Any

import sympy as sp


def root(x: Any) -> str:
    """A SymPy number in one line of plain text.

    >>> root(2 * sp.sqrt(2)), root(sp.sqrt(22 - 2 * sp.sqrt(61))), root(sp.Rational(3, 2)), root(sp.oo)
    ('2√2', '√(22 − 2√61)', '3/2', '∞')
    """
    return _sum(sp.sympify(x))


def _sum(x: Any) -> str:
    if not x.is_Add:
        return _product(x)
    positive_first = sorted(x.args, key=lambda term: (term.could_extract_minus_sign(), not term.is_Rational))
    first, *rest = positive_first
    text = _product(first)
    for term in rest:
        minus = term.could_extract_minus_sign()
        text += f" {'−' if minus else '+'} {_product(-term if minus else term)}"
    return text


def _product(x: Any) -> str:
    if x.could_extract_minus_sign():
        return f"−{_product(-x)}"
    numerator, denominator = sp.fraction(x)
    if denominator != 1:
        return f"{_factor(numerator)}/{_factor(denominator)}"
    if x.is_Mul:
        coefficient, rest = x.as_coeff_Mul()
        return ("" if coefficient == 1 else _factor(coefficient)) + "".join(map(_factor, sp.Mul.make_args(rest)))
    return _factor(x)


def _factor(x: Any) -> str:
    if x is sp.oo:
        return "∞"
    if x.is_Integer or x.is_Symbol:
        return str(x)
    if x.is_Mul:
        return _product(x)
    if x.is_Pow and x.exp == sp.Rational(1, 2):
        inside = _sum(x.base)
        return f"√{inside}" if x.base.is_Integer else f"√({inside})"
    if x.is_Add:
        return f"({_sum(x)})"
    return str(sp.N(x, 8))
