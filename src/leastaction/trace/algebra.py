"""Algebra: a Builder with the identities that keep Lagrangians and their derivatives short, exact and free of 0 · ∞."""

from __future__ import annotations

import math
from fractions import Fraction

from leastaction.program import LOGICAL, Builder, finite, in_range, negative_zero

EVEN = frozenset({"cos", "cosh", "abs", "sq"})
ODD = frozenset({"sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf"})
# Functions of a constant whose value is rational; all others wait for the precision of the backend.
KNOWN: dict[tuple[str, float | Fraction | None], int] = {
    **{(op, 0): 0 for op in ODD | {"sign", "sqrt", "abs", "expm1", "log1p", "floor", "ceil"}},
    **{(op, 0): 1 for op in ("cos", "cosh", "exp")},
    **{(op, 1): 1 for op in ("sqrt", "abs", "sign")},
    **{(op, 1): 0 for op in ("log", "acos", "acosh")},
}
NEVER_NEGATIVE = LOGICAL | {"sqrt", "sq", "abs", "exp", "cosh", "hypot", "acos", "acosh"}
MOST_LOOKS = 1000  # operations
# Constants of more bits than this no longer take part: an exact product of hundreds of floats helps nobody.
LONGEST = 1024


class Algebra(Builder):
    """A Builder that also knows x − x, x·x, parity, that cos(a − b) = cos(b − a) and that a norm squared has no root.

    `times` and `plus` serve derivatives. Constant factors that meet multiply exactly; like terms are collected; and a
    value known to vanish where a condition fails keeps the form ("if", c, x) through sums and products, so that outside
    the branch of `np.where` that was taken 0 · ∞ never arises.

    Rules may change the sign of a zero: x + 0 is written as x, and 0 − x as −x.
    """

    def written(self, op: str, *args: int) -> int:
        """The value of an operation of the function that is traced, in the form that has the best derivatives."""
        if op == "mul":
            return self.product(*args)
        if op == "div":
            return self.quotient(*args)
        if op == "select":
            return self.select(*args)
        if op == "pow" and (exponent := self.constant(args[1])) is not None and finite(exponent):
            return self.raised(args[0], Fraction(exponent))
        return self.op(op, *args)

    def op(self, op: str, *args: int) -> int:
        a = args[0]
        if len(args) == 1:
            if (known := KNOWN.get((op, self.constant(a)))) is not None:
                return self.const(known)
            inner, *x = self.code[a]
            if op in EVEN and inner in ("neg", "abs"):
                return self.op(op, *x)
            if op in ODD and inner == "neg":
                return self.op("neg", self.op(op, *x))
            if op == "neg" and inner == "if":
                return self.op("if", x[0], self.op("neg", x[1]))
            if op == "sqrt" and inner == "sq":
                return self.op("abs", *x)
            if op == "sq" and inner == "sqrt":
                return self.squared_root(a, x[0])
            if op == "sq" and inner == "hypot":
                return self.add(self.op("sq", x[0]), self.op("sq", x[1]))
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
            if divisor and finite(divisor) and in_range(divisor) and abs(math.frexp(divisor)[0]) == 0.5:
                return self.mul(a, self.const(1 / Fraction(divisor)))
        elif op == "copysign":
            sign = self.constant(args[1])
            if sign is not None:  # decided here: other arithmetics know no −0
                size = self.op("abs", a)
                return self.op("neg", size) if sign < 0 or negative_zero(sign) else size
        elif op == "if":
            condition = self.constant(a)
            if condition is not None:
                return args[1] if condition else self.const(0.0)
            if self.constant(args[1]) == 0:
                return args[1]
            inner, *x = self.code[args[1]]
            if inner == "if":
                return args[1] if x[0] == a else self.op("if", self.op("and", a, x[0]), x[1])
        return super().op(op, *args)

    def squared_root(self, root: int, x: int) -> int:
        """(√x)²: x, but NaN where x is negative. The derivatives of x are those of (√x)², and finite at x = 0."""
        return x if self.never_negative(x) else self.select(self.op("le", self.const(0.0), x), x, root)

    def never_negative(self, a: int) -> bool:
        """Whether value a is at no place negative, as far as its last few operations tell."""
        pending, looked = [a], 0
        while pending:
            op, *args = self.code[pending.pop()]
            looked += 1
            if op in ("add", "mul", "div") and looked < MOST_LOOKS:
                pending += args
            elif op == "pow":  # NaN where the base is negative
                pending += args[:1]
            elif op not in NEVER_NEGATIVE and not (op == "const" and args[0] >= 0):
                return False
        return True

    def split(self, a: int) -> tuple[Fraction | int, int]:
        """(c, x) with a = c·x."""
        op, *args = self.code[a]
        if op == "neg":
            c, x = self.split(args[0])
            return -c, x
        if op == "mul":
            for k, x in (args, args[::-1]):
                number = self.constant(k)
                if number and finite(number) and Fraction(number).numerator.bit_length() < LONGEST:
                    return Fraction(number), x
        return 1, a

    def scaled(self, c: Fraction | float, a: int) -> int:
        """c·a"""
        if c == 1:
            return a
        op, *args = self.code[a]
        if op == "if":
            return self.op("if", args[0], self.scaled(c, args[1]))
        factor, x = self.split(a)
        if factor == 1:
            return self.op("mul", self.const(c), a)
        return self.op("mul", self.const(Fraction(c) * factor), x)

    def product(self, a: int, b: int) -> int:
        """a·b with constant factors in front, so that 2·v_i·v_j and v_j·3·v_i share v_i·v_j."""
        c, x = self.split(a)
        d, y = self.split(b)
        return self.scaled(c * d, self.mul(x, y))

    def quotient(self, a: int, b: int) -> int:
        """a/b; with a root or a power below, as a·x^(−c), whose derivatives need no other division."""
        factor, x = self.split(b)
        op, *args = self.code[x]
        exponent = Fraction(1, 2) if op == "sqrt" else self.constant(args[1]) if op == "pow" else None
        if exponent is None or not finite(exponent):
            return self.div(a, b)
        return self.scaled(1 / Fraction(factor), self.product(a, self.raised(args[0], -Fraction(exponent))))

    def times(self, a: int, b: int) -> int:
        for x, y in ((a, b), (b, a)):
            op, *args = self.code[x]
            if op == "const":
                number = args[0]
                return self.scaled(number, y) if finite(number) else self.mul(x, y)
            if op == "if":
                return self.op("if", args[0], self.times(args[1], y))
            if op in LOGICAL:
                return self.op("if", x, y)
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
                return self.op("if", args[0], self.plus(args[1], args_b[1]))
            return self.op("if", self.op("or", args[0], args_b[0]), self.add(a, b))
        c, x = self.split(a)
        d, y = self.split(b)
        return self.scaled(c + d, x) if x == y else self.add(a, b)

    def raised(self, a: int, exponent: Fraction) -> int:
        """a^exponent in the form that has the best derivatives: |v|³ is (v²)^{3/2}, smooth at v = 0."""
        inner, *x = self.code[a]
        if inner == "sqrt" and exponent.denominator == 1 and exponent not in (0, 1):
            # An even power would have a value where the root has none.
            base = self.squared_root(a, x[0]) if exponent % 2 == 0 else x[0]
            return self.raised(base, exponent / 2)
        if inner == "abs" and exponent % 2 == 0:
            return self.raised(x[0], exponent)
        if exponent in (-1, 0, 1, 2, Fraction(1, 2)):
            return self.power(a, exponent)
        return self.op("pow", a, self.const(exponent))

    def power(self, a: int, exponent: Fraction) -> int:
        """a^exponent in the form that is fastest: small integers and half-integers by products and a square root."""
        if exponent < 0 and exponent.denominator <= 2:
            root = a if exponent.denominator == 1 else self.op("sqrt", a)
            return self.power(self.div(self.const(1.0), root), Fraction(-exponent.numerator))
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
