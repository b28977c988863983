"""Bounds of a Program over a box of its inputs, written as a Program.

Every value w becomes a ball: its value at the centre of the box, and a radius ρ such that |w(x) − w(centre)| ≤ ρ for
all x of the box. Each operation has a rule that makes its ball from the balls of its arguments, for instance

    |ab − a₀b₀| ≤ |a₀| ρ_b + |b₀| ρ_a + ρ_a ρ_b,      |sin a − sin a₀| ≤ min(ρ_a, 2).

Where an operation is not defined on the whole ball (a division by a ball that contains zero) the radius is infinite or
not a number, and stays so: every comparison with such a radius is false.
The centre is computed in float64: a few units in the last place of every value are added to its radius.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from leastaction.program import Builder, Program, Value

ROUNDING = 2.0**-51  # what one operation may be off by, relative to its result


def enclosed(program: Program, moving: Sequence[str]) -> Program:
    """The program's inputs and `<block>_radius` for each block that moves ↦ its outputs and `<output>_radius`."""
    B, centres, radii = _balls(program, moving, tight=True)
    outputs: dict[str, list[int]] = {}
    for name, _ in program.outputs:
        outputs[name] = [centres[k].k for k in program.output(name)]
        outputs[f"{name}_radius"] = [radii[k].k for k in program.output(name)]
    return B.build(**outputs)


def radii(program: Program, moving: Sequence[str]) -> Program:
    """The radii without the outputs themselves, and cheaper: a sine counts as large as one, and centres count as exact.
    So the radii may be too small by their own rounding, a few parts in 10¹⁶.
    """
    B, _, found = _balls(program, moving, tight=False)
    return B.build(**{f"{name}_radius": [found[k].k for k in program.output(name)] for name, _ in program.outputs})


def jumping(program: Program, moving: Sequence[str], output: str) -> Program:
    """The same inputs ↦ `jumps`: for each value of an output 0 where it is continuous on the box, else infinite.

    Kinks, such as that of |x|, are no jumps. A result that a condition may change counts as a jump.
    """
    B, centres, radii = _balls(program, moving, tight=True)
    zero, one, jumps = Value(B, B.const(0.0)), Value(B, B.const(1.0)), list[Value]()
    for op, *args in program.code:
        own = [] if op in ("input", "const") else [jumps[a] for a in args]
        if op in _CONTINUOUS_WHERE and any(B.constant(radii[a].k) != 0 for a in args):
            fixed, rule = one, _CONTINUOUS_WHERE[op]
            for a in args:
                fixed = fixed & radii[a].op("eq", 0.0)
            own.append((fixed | rule(*(x for a in args for x in (centres[a], radii[a])))).where(0.0, math.inf))
        own = [x for x in own if B.constant(x.k) != 0]
        total = zero
        for x in own:
            total = total + x
        jumps.append(total)
    return B.build(jumps=[jumps[k].k for k in program.output(output)])


def _balls(program: Program, moving: Sequence[str], tight: bool) -> tuple[Builder, list[Value], list[Value]]:
    """Centre and radius of every value; unless `tight`, the radii do not need the centre of a sine."""
    sizes = dict(program.inputs)
    B = Builder([*program.inputs, *((f"{name}_radius", sizes[name]) for name in moving)])
    zero, one = Value(B, B.const(0.0)), Value(B, B.const(1.0))
    flat = [value for name, _ in program.inputs for value in B.values(name)]
    spread = [value for name, _ in program.inputs for value in _radii(B, name, sizes[name], moving)]
    centres: list[Value] = []
    radii: list[Value] = []
    rounding = ROUNDING if tight else 0.0  # rounding of the centres
    large: list[Value | None] = []  # a bound of |centre| that does not need the centre
    for op, *args in program.code:
        bound: Value | None = None
        if op == "input":
            centre, radius = flat[args[0]], spread[args[0]]
        elif op == "const":
            centre = Value(B, B.const(args[0]))
            radius = abs(centre) * rounding if isinstance(B.constant(centre.k), Fraction) else zero
        else:
            centre = centres[args[0]].op(op, *(centres[a] for a in args[1:]))
            if not tight:
                bound = _bound(op, one, [(large[a], abs(centres[a])) for a in args])
            size = abs(centre) if bound is None else bound
            exact = op in _EXACT or (op in ("mul", "div") and _power_of_two(B.constant(centres[args[1]].k)))
            if all(B.constant(radii[a].k) == 0 for a in args):
                radius = zero if exact or B.constant(centre.k) is not None else size * rounding
            else:
                if op == "mul":
                    (x, rx), (y, ry) = (
                        (abs(centres[a]) if (known := large[a]) is None else known, radii[a]) for a in args
                    )
                    radius = x * ry + y * rx + rx * ry
                else:
                    radius = RULES[op](centre, *(x for a in args for x in (centres[a], radii[a])))
                radius = radius if exact else radius + size * rounding
        centres.append(centre)
        radii.append(radius)
        large.append(bound)
    return B, centres, radii


def _power_of_two(x: Fraction | float | None) -> bool:
    """Whether a factor is a power of two: products with it are exact."""
    return x is not None and math.isfinite(x) and abs(math.frexp(x)[0]) == 0.5


def _bound(op: str, one: Value, arguments: list[tuple[Value | None, Value]]) -> Value | None:
    """A bound of the size of a result, if the bound of some argument is known without its centre; else None."""
    if op in ("sin", "cos"):
        return one
    if op not in ("neg", "abs", "add", "sub", "mul") or all(known is None for known, _ in arguments):
        return None
    sizes = [size if known is None else known for known, size in arguments]
    if len(sizes) == 1:
        return sizes[0]
    return sizes[0] * sizes[1] if op == "mul" else sizes[0] + sizes[1]


def _radii(B: Builder, name: str, size: int, moving: Sequence[str]) -> list[Value]:
    return B.values(f"{name}_radius") if name in moving else [Value(B, B.const(0.0))] * size


# Operations that do not round.
_EXACT = {"neg", "abs", "sign", "floor", "ceil", "not", "lt", "le", "eq", "ne", "and", "or", "if", "select"} | {
    "min", "max", "minimum", "maximum", "copysign",
}  # fmt: skip

Rule = Callable[..., Value]


def _where(condition: Value, yes: Any) -> Value:
    """`yes` where the condition holds, else no bound."""
    return condition.where(yes, math.inf)


def _at_most(bound: Any, *radii: Value) -> Value:
    """A bound that holds wherever the arguments are defined: none, if one of their balls has none."""
    defined = radii[0] < math.inf
    for r in radii[1:]:
        defined = defined & (r < math.inf)
    return _where(defined, bound)


def _same(m: Value, a: Value, r: Value) -> Value:
    return r


def _sum(m: Value, a: Value, ra: Value, b: Value, rb: Value) -> Value:
    return ra + rb


def _div(m: Value, a: Value, ra: Value, b: Value, rb: Value) -> Value:
    least = abs(b) - rb
    return _where(least > 0.0, (ra + abs(m) * rb) / least)


def _tan(m: Value, a: Value, r: Value) -> Value:
    """tan(a + δ) − tan a = tan δ (1 + tan² a)/(1 − tan a tan δ)."""
    t, T = r.op("tan"), abs(m)
    return _where((r < 1.5) & (T * t < 1.0), t * (1.0 + T * T) / (1.0 - T * t))


def _arc(m: Value, a: Value, r: Value) -> Value:
    x = abs(a) + r
    return _where(x < 1.0, r / (1.0 - x * x).op("sqrt"))


def _floor(m: Value, a: Value, r: Value) -> Value:
    return ((a - r).op("floor").op("eq", (a + r).op("floor")) & (a - r).op("ceil").op("eq", (a + r).op("ceil"))).where(
        0.0, r + 1.0
    )


def _apart(a: Value, ra: Value, b: Value, rb: Value) -> Value:
    """Whether a comparison has one answer: the balls are apart, or both are points."""
    radius = ra + rb
    return (abs(a - b) > radius) | radius.op("eq", 0.0)


def _compared(m: Value, a: Value, ra: Value, b: Value, rb: Value) -> Value:
    return _apart(a, ra, b, rb).where(0.0, 1.0)


def _certain(a: Value, r: Value) -> Value:
    """Whether all of a ball is zero, or none of it."""
    return r.op("eq", 0.0) | (r < abs(a))


def _logical(m: Value, a: Value, ra: Value, b: Value, rb: Value) -> Value:
    return (_certain(a, ra) & _certain(b, rb)).where(0.0, 1.0)


def _if(m: Value, c: Value, rc: Value, x: Value, rx: Value) -> Value:
    return _certain(c, rc).where(c.where(rx, 0.0), abs(x) + rx)


def _select(m: Value, c: Value, rc: Value, x: Value, rx: Value, y: Value, ry: Value) -> Value:
    return _certain(c, rc).where(c.where(rx, ry), abs(x - y) + rx + ry)


def _pow(m: Value, a: Value, ra: Value, b: Value, rb: Value) -> Value:
    exponent = b.B.constant(b.k)
    if exponent is not None and exponent == int(exponent) and exponent >= 0:
        return (abs(a) + ra).op("pow", b) - abs(a).op("pow", b)
    if exponent is not None:  # monotone where a is positive
        ends = ((a + ra).op("pow", b) - m, (a - ra).op("pow", b) - m)
        return _where(a > ra, abs(ends[0]).op("max", abs(ends[1])))
    logarithm, spread = a.op("log"), -(-ra / a).op("log1p")
    exponent_radius = abs(b) * spread + abs(logarithm) * rb + spread * rb
    return _where(a > ra, m * exponent_radius.op("expm1"))


def _atan2(m: Value, y: Value, ry: Value, x: Value, rx: Value) -> Value:
    distance, off = y.op("hypot", x), ry.op("hypot", rx)
    turn = (off < distance).where((off / distance).op("min", 1.0).op("asin"), 2 * math.pi)
    angle = ((rx < x) | (ry < abs(y))).where(turn, 2 * math.pi)  # otherwise the angle may cross the cut
    return _at_most(angle, ry, rx)


def _fmod(m: Value, a: Value, ra: Value, b: Value, rb: Value) -> Value:
    low, high = ((abs(a) + sign * ra) / abs(b) for sign in (-1.0, 1.0))
    whole = low.op("floor").op("eq", high.op("floor")) & (low > 0.0)
    return _where(rb.op("eq", 0.0), (whole | ra.op("eq", 0.0)).where(ra, ra + 2.0 * abs(b)))


# The rule of a product stands in `_balls`: it needs sizes only.
RULES: dict[str, Rule] = {
    "neg": _same, "abs": _same, "atan": _same, "tanh": _same, "asinh": _same,
    "sqrt": lambda m, a, r: _where(a > r, r / m),
    "sq": lambda m, a, r: 2.0 * abs(a) * r + r * r,
    "sin": lambda m, a, r: _at_most(r.op("min", 2.0), r), "cos": lambda m, a, r: _at_most(r.op("min", 2.0), r),
    "tan": _tan,
    "asin": _arc, "acos": _arc,
    "sinh": lambda m, a, r: r * (abs(a) + r).op("cosh"), "cosh": lambda m, a, r: r * (abs(a) + r).op("sinh"),
    "acosh": lambda m, a, r: _where(a - r > 1.0, r / ((a - r) * (a - r) - 1.0).op("sqrt")),
    "atanh": lambda m, a, r: _where(abs(a) + r < 1.0, r / (1.0 - (abs(a) + r) * (abs(a) + r))),
    "exp": lambda m, a, r: m * r.op("expm1"), "expm1": lambda m, a, r: (m + 1.0) * r.op("expm1"),
    "log": lambda m, a, r: _where(a > r, -(-r / a).op("log1p")),
    "log1p": lambda m, a, r: _where(a + 1.0 > r, -(-r / (a + 1.0)).op("log1p")),
    "erf": lambda m, a, r: 1.1284 * r,
    "sign": lambda m, a, r: _at_most((abs(a) > r).where(0.0, 2.0), r), "floor": _floor, "ceil": _floor,
    "add": _sum, "sub": _sum,
    "div": _div,
    "pow": _pow, "atan2": _atan2, "hypot": lambda m, a, ra, b, rb: ra.op("hypot", rb), "fmod": _fmod,
    "copysign": lambda m, a, ra, b, rb: (abs(b) > rb).where(ra, 2.0 * abs(a) + ra),
    "min": _sum, "max": _sum, "minimum": _sum, "maximum": _sum,
    "lt": _compared, "le": _compared, "eq": _compared, "ne": _compared,
    "and": _logical, "or": _logical, "not": lambda m, a, r: _certain(a, r).where(0.0, 1.0),
    "if": _if, "select": _select,
}  # fmt: skip


def _whole(a: Value, r: Value) -> Value:
    """Whether no whole number, and no zero, is among a ± r, or a alone is."""
    return ((a - r).op("floor").op("eq", (a + r).op("floor")) & (abs(a) > r)) | r.op("eq", 0.0)


# Conditions under which operations that may jump do not jump.
_CONTINUOUS_WHERE: dict[str, Callable[..., Value]] = {
    "sign": lambda a, r: abs(a) > r, "floor": _whole, "ceil": _whole,
    "fmod": lambda a, ra, b, rb: _whole(a / b, (ra + abs(a / b) * rb) / (abs(b) - rb)) & (abs(b) > rb),
    "copysign": lambda a, ra, b, rb: abs(b) > rb,
    "atan2": lambda y, ry, x, rx: (rx < x) | (ry < abs(y)),
    "lt": _apart, "le": _apart, "eq": _apart, "ne": _apart,
}  # fmt: skip
