"""A Program → a Python function on flint numbers.

The Program is written out once as straight-line Python, a local variable per value, and compiled by
Python itself. What depends on parameters and constants only is computed once, when the function is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import flint

from leastaction.program import OPERATIONS, Program

Function = Callable[..., list[Any]]

# Where a function's domain ends or a decision is taken, the midpoint stands for the ball.
_TEMPLATES = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} / {1}",
    "neg": "-{0}", "sq": "{0} * {0}", "pow": "{0}.mid() ** {1}.mid()",
    "abs": "abs({0}.mid())", "sign": "{0} if {0}.is_nan() else {0}.mid().sgn()",
    "atan2": "arb.atan2({0}.mid(), {1}.mid())", "hypot": "({0} * {0} + {1} * {1}).mid().sqrt()",
    "fmod": "fmod({0}.mid(), {1}.mid())", "copysign": "-abs({0}) if {1}.mid() < 0 else abs({0})",
    "min": "{1} if {1}.mid() < {0}.mid() else {0}", "max": "{1} if {1}.mid() > {0}.mid() else {0}",
    "minimum": "{1} if {1}.is_nan() or {1}.mid() < {0}.mid() else {0}",
    "maximum": "{1} if {1}.is_nan() or {1}.mid() > {0}.mid() else {0}",
    "lt": "one if {0}.mid() < {1}.mid() else zero", "le": "one if {0}.mid() <= {1}.mid() else zero",
    "eq": "one if {0}.mid() == {1}.mid() else zero", "ne": "zero if {0}.mid() == {1}.mid() else one",
    "and": "zero if {0}.is_zero() or {1}.is_zero() else one", "or": "zero if {0}.is_zero() and {1}.is_zero() else one",
    "not": "one if {0}.is_zero() else zero",
    "if": "zero if {0}.is_zero() else {1}", "select": "{2} if {0}.is_zero() else {1}",
    **{f: "{0}." + f + "()" for f in ("sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh")},
    **{f: "{0}." + f + "()" for f in ("exp", "expm1", "erf")},
    **{f: "{0}.mid()." + f + "()" for f in ("sqrt", "log", "log1p", "asin", "acos", "acosh", "atanh", "floor", "ceil")},
}  # fmt: skip
assert _TEMPLATES.keys() == OPERATIONS


def function(program: Program, results: Sequence[int], params: Sequence[Any]) -> Function:
    """The values `results` of a program as a function of its inputs, with the numbers of the block `params` put in, at
    the working precision.
    """
    program = program.with_outputs(y=results)
    names: dict[str, Any] = {"arb": flint.arb, "zero": flint.arb(0), "one": flint.arb(1), "fmod": _fmod}
    names |= {f"x{k}": number(args[0]) for k, (op, *args) in enumerate(program.code) if op == "const"}
    names |= {f"p{i}": value for i, value in enumerate(params)}
    exec(_source(program), names)
    return names["make"]()


def number(x: float | Fraction) -> Any:
    """A Program's constant, rounded once."""
    if isinstance(x, Fraction):
        return (flint.arb(x.numerator) / flint.arb(x.denominator)).mid()
    return flint.arb(x)


@lru_cache(maxsize=256)
def _source(program: Program) -> Any:
    """The code of `make()`, which computes what does not vary and returns the function."""
    inputs = range(program.input_size)
    given = inputs[program.input_slice("params")] if "params" in dict(program.inputs) else range(0)
    turned = {(op, args[0]): k for k, (op, *args) in enumerate(program.code) if op in ("sin", "cos")}
    fixed: list[str] = []
    varying: list[str] = []
    varies: set[int] = set()
    for k, (op, *args) in enumerate(program.code):
        if op == "const":
            continue
        outer = op == "input" and args[0] in given
        if (op == "input" and not outer) or (op != "input" and varies.intersection(args)):
            varies.add(k)
        name = f"x{k}"
        if op == "input":
            text = f"p{args[0] - given.start}" if outer else f"i{args[0]}"
        elif (
            op in ("sin", "cos")
            and len(pair := [turned.get((f, args[0]), -1) for f in ("sin", "cos")])
            and -1 not in pair
        ):
            name, text = f"x{pair[0]}, x{pair[1]}", f"x{args[0]}.sin_cos()"
            if k == max(pair):  # both are known
                continue
        else:
            text = _TEMPLATES[op].format(*(f"x{a}" for a in args))
        (varying if k in varies else fixed).append(f"{name} = {text}")
    lines = ["def make():", *(f"    {line}" for line in fixed)]
    lines += [f"    def f({', '.join(f'i{i}' for i in inputs if i not in given)}):", *(f"        {x}" for x in varying)]
    lines += [f"        return [{', '.join(f'x{k}' for k in program.results)}]", "    return f"]
    return compile("\n".join(lines), f"<program {program.digest[:12]}>", "exec")


def _fmod(x: Any, y: Any) -> Any:
    """x − y trunc(x/y), exactly: x = m 2^a and y = n 2^b are whole multiples of 2^min(a, b)."""
    if not x.is_finite() or y.is_nan() or y == 0:
        return flint.arb("nan")
    if abs(x) < abs(y):
        return x
    (m, a), (n, b) = ((int(part) for part in number.man_exp()) for number in (x, y))
    n = abs(n)
    # Only the remainder of 2^(a − b) is needed: a quotient of any size costs no more than the digits of y.
    rest = abs(m) * pow(2, a - b, n) % n if a >= b else abs(m) % (n << (b - a))
    return flint.arb((rest if m > 0 else -rest, min(a, b)))
