"""Exact numbers as people write them: 2√2, not 2*sqrt(2)."""

from __future__ import annotations

import re
from typing import Any

import sympy as sp


def root(x: Any) -> str:
    """A SymPy number in one line of plain text; roots that have no radicals with eight digits.

    >>> root(2 * sp.sqrt(2)), root(sp.sqrt(22 - 2 * sp.sqrt(61))), root(sp.Rational(3, 2)), root(sp.oo)
    ('2√2', '√(22 − 2√61)', '3/2', '∞')
    """
    x = sp.sympify(x)
    text = str(sp.N(x, 8) if x.has(sp.CRootOf) else x)
    for code, sign in (("oo", "∞"), ("sqrt", "√"), ("*", ""), ("-", "−")):
        text = text.replace(code, sign)
    return re.sub(r"√\((\d+)\)", r"√\1", text)
