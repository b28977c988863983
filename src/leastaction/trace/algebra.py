"""Algebra: a Builder with the identities that keep Lagrangians and their derivatives short, exact and free of 0 · ∞."""

from __future__ import annotations

import math
from fractions import Fraction

from leastaction.program import Builder

LOGICAL = frozenset({"lt", "le", "eq", "ne", "and", "or", "not"})
EVEN = frozenset({"cos", "cosh", "abs", "sq"})
ODD = frozenset({"sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf", "sign"})
# Functions of a constant whose value is rational; all others wait for the precision of the backend.
KNOWN = {
    **{(op, 0): 0 for op in ODD | {"sqrt", "abs", "expm1", "log1p", "floor", "ceil"}},
    **{(op, 0): 1 for op in ("cos", "cosh", "exp")},
    ("sqrt", 1): 1,
    ("log", 1): 0,
    ("acos", 1): 0,
    ("acosh", 1): 0,
    ("abs", 1): 1,
    ("sign", 1): 1,
}


class Algebra(Builder):
    """A Builder that also knows x − x, x·x, parity, and that cos(a − b) = cos(b − a).

    `times` and `plus` serve derivatives. Constant factors that meet multiply exactly; like terms are collected; and a
    value known to vanish where a condition fails keeps the form ("if", c, x) through sums and products, so that outside
    the branch of `np.where` that was taken 0 · ∞ never arises.
    """

    def op(self, op: str, *args: int) -> int:
        a = args[0]
        if len(args) == 1:
            known = KNOWN.get((op, self.constant(a)))
            if known is not None:
                return self.const(known)
            if self.code[a][0] == "neg":
                if op in EVEN:
                    return self.op(op, self.code[a][1])
                if op in ODD:
                    return self.op("neg", self.op(op, self.code[a][1]))
        elif op == "mul":
            if a == args[1]:
                return self.op("sq", a)
        elif op == "sub":
            if a == args[1]:
                return self.const(0.0)
            opposite = self._place.get(("sub", args[1], a))
            if opposite is not None:
                return self.op("neg", opposite)
        elif op == "div":
            divisor = self.constant(args[1])
            # Dividing by a power of two is the same as multiplying by its inverse, and slower.
            if divisor and math.isfinite(divisor) and abs(math.frexp(divisor)[0]) == 0.5:
                return self.mul(a, self.const(1 / Fraction(divisor)))
        return super().op(op, *args)

    def split(self, a: int) -> tuple[Fraction | int, int]:
        """(c, x) with a = c·x."""
        op, *args = self.code[a]
        if op == "neg":
            c, x = self.split(args[0])
            return -c, x
        if op == "mul":
            for k, x in (args, args[::-1]):
                number = self.constant(k)
                if number is not None and math.isfinite(number):
                    return Fraction(number), x
        return 1, a

    def scaled(self, c: Fraction | float, a: int) -> int:
        """c·a"""
        if c == 1:
            return a
        factor, x = self.split(a)
        if factor == 1:
            return self.op("mul", self.const(c), a)
        return self.op("mul", self.const(Fraction(c) * factor), x)

    def when(self, c: int, x: int) -> int:
        """x where c holds, else 0."""
        if self.constant(x) == 0:
            return x
        op, *args = self.code[x]
        return x if op == "if" and args[0] == c else self.op("if", c, x)

    def times(self, a: int, b: int) -> int:
        for x, y in ((a, b), (b, a)):
            op, *args = self.code[x]
            if op == "const":
                number = args[0]
                return self.scaled(number, y) if math.isfinite(number) else self.mul(x, y)
            if op == "if":
                return self.when(args[0], self.times(args[1], y))
            if op in LOGICAL:
                return self.when(x, y)
        c, x = self.split(a)
        d, y = self.split(b)
        if x == y or c * d == 1 or c * d == -1:
            return self.scaled(c * d, self.mul(x, y))
        # A sign moves out, where a sum absorbs it; any other factor stays with the value it already belongs to.
        if c == -1:
            return self.op("neg", self.mul(x, b))
        if d == -1:
            return self.op("neg", self.mul(a, y))
        return self.mul(a, b)

    def plus(self, a: int, b: int) -> int:
        (op, *args), (op_b, *args_b) = self.code[a], self.code[b]
        if op == op_b == "if":
            if args[0] == args_b[0]:
                return self.when(args[0], self.plus(args[1], args_b[1]))
            return self.when(self.op("or", args[0], args_b[0]), self.add(a, b))
        c, x = self.split(a)
        d, y = self.split(b)
        return self.scaled(c + d, x) if x == y else self.add(a, b)

    def power(self, a: int, exponent: Fraction) -> int:
        """a^exponent; small integers and half-integers by products and a square root."""
        if exponent < 0 and exponent.denominator <= 2:
            return self.div(self.const(1.0), self.power(a, -exponent))
        whole, half = divmod(exponent, 1)
        if whole > 16 or half not in (0, Fraction(1, 2)):
            return self.op("pow", a, self.const(exponent))
        result = self.op("sqrt", a) if half else self.const(1.0)
        base = a
        while whole:
            if whole % 2:
                result = self.mul(result, base)
            whole //= 2
            if whole:
                base = self.op("sq", base)
        return result
