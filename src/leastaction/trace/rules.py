"""Partial derivatives of every operation: the table that differentiation reads.

A rule gets the algebra, the value w = f(x) or f(x, y), and the arguments; it returns

    UNARY     f_x, f_xx
    BINARY    f_x, f_y, f_xx, f_xy, f_yy
    select    of c, x, y ↦ x where c, else y: f_c, f_x, f_y; all second ones are zero

At a kink (abs, minimum, maximum, copysign) it takes the derivative of one side.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from leastaction.trace.algebra import Algebra

Partials = tuple[int, ...]
HALF = Fraction(1, 2)


def _sqrt(b: Algebra, w: int, x: int) -> Partials:
    r = b.div(b.const(1.0), w)
    return b.scaled(HALF, r), b.scaled(-HALF * HALF, b.times(r, b.op("sq", r)))


def _tangent(sign: int) -> Callable[[Algebra, int, int], Partials]:
    """f_x = 1 ± f², hence f_xx = ±2 f f_x: tan, tanh."""

    def rule(b: Algebra, w: int, x: int) -> Partials:
        slope = (b.add if sign > 0 else b.sub)(b.const(1.0), b.op("sq", w))
        return slope, b.scaled(2 * sign, b.times(w, slope))

    return rule


def _log(b: Algebra, w: int, x: int) -> Partials:
    r = b.div(b.const(1.0), x)
    return r, b.op("neg", b.op("sq", r))


def _erf(b: Algebra, w: int, x: int) -> Partials:
    # 2/√π, with π = acos(−1), is exact at any precision.
    scale = b.div(b.const(2.0), b.op("sqrt", b.op("acos", b.const(-1.0))))
    slope = b.times(scale, b.op("exp", b.op("neg", b.op("sq", x))))
    return slope, b.scaled(-2, b.times(x, slope))


def _inverse_root(sign: int, constant: int, square: int) -> Callable[[Algebra, int, int], Partials]:
    """f_x = ±1/√(c + s x²), hence f_xx = −s x f_x/(c + s x²): asin, acos, asinh, acosh."""

    def rule(b: Algebra, w: int, x: int) -> Partials:
        radicand = b.add(b.const(constant), b.scaled(square, b.op("sq", x)))
        slope = b.div(b.const(sign), b.op("sqrt", radicand))
        return slope, b.scaled(-square, b.times(x, b.div(slope, radicand)))

    return rule


def _inverse(square: int) -> Callable[[Algebra, int, int], Partials]:
    """f_x = 1/(1 + s x²), hence f_xx = −2 s x f_x²: atan, atanh."""

    def rule(b: Algebra, w: int, x: int) -> Partials:
        slope = b.div(b.const(1.0), b.add(b.const(1.0), b.scaled(square, b.op("sq", x))))
        return slope, b.scaled(-2 * square, b.times(x, b.op("sq", slope)))

    return rule


UNARY: dict[str, Callable[[Algebra, int, int], Partials]] = {
    "neg": lambda b, w, x: (b.const(-1.0), b.const(0.0)),
    "abs": lambda b, w, x: (b.op("sign", x), b.const(0.0)),
    "sq": lambda b, w, x: (b.scaled(2, x), b.const(2.0)),
    "sqrt": _sqrt,
    "sin": lambda b, w, x: (b.op("cos", x), b.op("neg", w)),
    "cos": lambda b, w, x: (b.op("neg", b.op("sin", x)), b.op("neg", w)),
    "tan": _tangent(1), "tanh": _tangent(-1),
    "asin": _inverse_root(1, 1, -1), "acos": _inverse_root(-1, 1, -1), "atan": _inverse(1),
    "sinh": lambda b, w, x: (b.op("cosh", x), w), "cosh": lambda b, w, x: (b.op("sinh", x), w),
    "asinh": _inverse_root(1, 1, 1), "acosh": _inverse_root(1, -1, 1), "atanh": _inverse(-1),
    "exp": lambda b, w, x: (w, w), "expm1": lambda b, w, x: (b.op("exp", x),) * 2,
    "log": _log, "log1p": lambda b, w, x: _log(b, w, b.add(b.const(1.0), x)), "erf": _erf,
}  # fmt: skip


def _slopes(f: Callable[[Algebra, int, int, int], tuple[int, int]]) -> Callable[[Algebra, int, int, int], Partials]:
    """A rule whose second derivatives are zero."""
    return lambda b, w, x, y: (*f(b, w, x, y), *[b.const(0.0)] * 3)


def _div(b: Algebra, w: int, x: int, y: int) -> Partials:
    r = b.div(b.const(1.0), y)
    slope = b.op("neg", b.times(w, r))
    return r, slope, b.const(0.0), b.op("neg", b.op("sq", r)), b.scaled(-2, b.times(slope, r))


def _pow(b: Algebra, w: int, x: int, y: int) -> Partials:
    exponent = b.constant(y)
    if exponent is not None:
        c = Fraction(exponent)
        zero = b.const(0.0)
        second = b.scaled(c * (c - 1), b.power(x, c - 2)) if c != 1 else zero
        return b.scaled(c, b.power(x, c - 1)), zero, second, zero, zero
    one, log = b.const(1.0), b.op("log", x)
    less = b.op("pow", x, b.sub(y, one))
    least = b.op("pow", x, b.sub(y, b.const(2.0)))
    mixed = b.times(less, b.add(one, b.times(y, log)))
    slope = b.times(w, log)
    return b.times(y, less), slope, b.times(b.times(y, b.sub(y, one)), least), mixed, b.times(slope, log)


def _atan2(b: Algebra, w: int, x: int, y: int) -> Partials:
    xx, yy = b.op("sq", x), b.op("sq", y)
    r = b.div(b.const(1.0), b.add(xx, yy))
    rr = b.op("sq", r)
    bend = b.scaled(-2, b.times(b.times(x, y), rr))
    return b.times(y, r), b.op("neg", b.times(x, r)), bend, b.times(b.sub(xx, yy), rr), b.op("neg", bend)


def _hypot(b: Algebra, w: int, x: int, y: int) -> Partials:
    r = b.div(b.const(1.0), w)
    c, s = b.times(x, r), b.times(y, r)
    return c, s, b.times(b.op("sq", s), r), b.op("neg", b.times(b.times(c, s), r)), b.times(b.op("sq", c), r)


def _choice(op: str) -> Callable[[Algebra, int, int, int], Partials]:
    """The smaller or the larger one: the derivative of the argument taken, the first if they are equal."""

    def slopes(b: Algebra, w: int, x: int, y: int) -> tuple[int, int]:
        first = b.op("le", x, y) if op in ("min", "minimum") else b.op("le", y, x)
        return first, b.op("not", first)

    return _slopes(slopes)


BINARY: dict[str, Callable[[Algebra, int, int, int], Partials]] = {
    "add": _slopes(lambda b, w, x, y: (b.const(1.0), b.const(1.0))),
    "sub": _slopes(lambda b, w, x, y: (b.const(1.0), b.const(-1.0))),
    "mul": lambda b, w, x, y: (y, x, b.const(0.0), b.const(1.0), b.const(0.0)),
    "div": _div, "pow": _pow, "atan2": _atan2, "hypot": _hypot,
    "fmod": _slopes(lambda b, w, x, y: (b.const(1.0), b.div(b.sub(w, x), y))),
    "copysign": _slopes(lambda b, w, x, y: (b.times(b.op("sign", x), b.op("copysign", b.const(1.0), y)), b.const(0.0))),
    **{op: _choice(op) for op in ("min", "max", "minimum", "maximum")},
    "if": _slopes(lambda b, w, c, x: (b.const(0.0), b.op("if", c, b.const(1.0)))),
}  # fmt: skip


def select_slopes(b: Algebra, w: int, c: int, x: int, y: int) -> Partials:
    """The partial derivatives of ("select", c, x, y)."""
    zero, one = b.const(0.0), b.const(1.0)
    return zero, b.op("if", c, one), b.op("if", b.op("not", c), one), *([zero] * 6)
