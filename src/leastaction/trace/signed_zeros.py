"""The sign of a zero: which values of a program are asked for it.

0.0 and −0.0 are equal, and few functions tell them apart: copysign(x, ±0) = ±|x|, atan2(±0, −1) = ±π, 1/±0 = ±∞. Others
pass the sign on to what uses their result (−x, x·y, sin x), or drop it (x², |x|, cos x, x < y).

So a function is traced with rules that forget the sign (`Algebra.forgets`). Where a value is asked for a sign that may
be forgotten, the function is traced once more without these rules (`keeps_zeros`). Afterwards they are used where no
sign is asked for (`simplified`).
"""

from __future__ import annotations

from collections.abc import Sequence

from leastaction.program import Instruction
from leastaction.trace.algebra import Algebra

# Operations that tell the zeros apart, and at which arguments.
_TELL = {"copysign": (1,), "atan2": (0, 1), "div": (1,), "pow": (0,)}
# Operations whose result has a sign of zero that comes from these arguments.
_PASS = {
    **dict.fromkeys(("neg", "sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf"), (0,)),
    **dict.fromkeys(("expm1", "log1p", "sqrt", "floor", "ceil", "fmod", "div"), (0,)),
    **dict.fromkeys(("add", "sub", "mul", "min", "max", "minimum", "maximum"), (0, 1)),
    "if": (1,), "select": (1, 2),
}  # fmt: skip


def asked(code: Sequence[Instruction], results: Sequence[int]) -> list[bool]:
    """For each value, whether a result depends on the sign that the value has where it is zero."""
    needed, found = [False] * len(code), [False] * len(code)
    for k in results:
        needed[k] = True
    for k in range(len(code) - 1, -1, -1):
        op, *args = code[k]
        if not needed[k] or op in ("input", "const"):
            continue
        for place, a in enumerate(args):
            needed[a] = True
            found[a] |= place in _TELL.get(op, ()) or (found[k] and place in _PASS.get(op, ()))
    return found


def signs_are_forgotten(builder: Algebra, results: Sequence[int]) -> bool:
    """Whether results depend on the sign of a zero that a rule may have changed."""
    found = asked(builder.code, results)
    return any(found[k] for k in builder.forgotten)


def simplified(exact: Algebra, results: Sequence[int]) -> tuple[Algebra, list[int]]:
    """A program that kept all signs, written again: it keeps those that are asked for."""
    keep = asked(exact.code, results)
    B = Algebra(exact.inputs)
    place: list[int] = []
    for k, (op, *args) in enumerate(exact.code):
        B.keeps_zeros = keep[k]
        if op == "input":
            place.append(B._emit(op, *args))
        elif op == "const":
            place.append(B.const(args[0]))
        else:
            place.append(B.written(op, *(place[a] for a in args)))
    return B, [place[k] for k in results]
