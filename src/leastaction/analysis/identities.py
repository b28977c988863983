"""Whether a function of a Program vanishes identically: decided on the Program, not at places where it might be small.

A Program is evaluated modulo the prime P = 2³¹ − 1 at random points. Its rational operations are those of the field; an
elementary function is replaced by an arbitrary one with the same identities,

    sin² + cos² = 1,    sin(−x) = −sin x,    exp(x) exp(−x) = 1,    cosh² − sinh² = 1,

and a comparison c by an arbitrary number, with ("if", c, x) = c x and ("not", c) = 1 − c. If an output vanishes for all
such functions and numbers, it vanishes for the true ones, on every branch, whatever the sizes are. The converse does
not hold: an output may vanish for a reason that is not among these identities.

A polynomial that is not zero vanishes at a random point with a probability of about its degree / P (Schwartz and
Zippel); here there are many points.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from flint import nmod_mat
from numpy.typing import NDArray

from leastaction.program import Program

P = 2**31 - 1  # prime, and 3 modulo 4

Field = NDArray[np.uint64]  # numbers below P: products of two fit

_EVEN = {"abs"}
_ODD = {"asin", "atan", "asinh", "atanh", "erf", "sign"}
_SYMMETRIC = {"min", "max", "minimum", "maximum", "hypot"}
_JUMPS = {"lt", "le", "eq", "ne", "floor", "ceil", "sign", "copysign", "fmod"}


def evaluate(program: Program, inputs: Field) -> Field:
    """The program's outputs (K, outputs) modulo P for rows (K, inputs) of inputs modulo P."""
    values: list[Field] = []
    count = len(inputs)
    for op, *args in program.code:
        if op == "input":
            values.append(inputs[:, args[0]])
        elif op == "const":
            values.append(np.full(count, residue(args[0]), np.uint64))
        else:
            values.append(_operation(op, args, values, program))
    if not program.results:
        return np.zeros((count, 0), np.uint64)
    return np.stack([values[k] for k in program.results], axis=1)


def residue(x: float | Fraction) -> int:
    """A constant modulo P; one that is not finite stands for an arbitrary number."""
    if not isinstance(x, Fraction) and not math.isfinite(x):
        return hash(("infinite", x)) % P
    exact = Fraction(x)
    return exact.numerator * pow(exact.denominator, -1, P) % P


def times(x: Field, y: Field) -> Field:
    return x * y % np.uint64(P)


def minus(x: Field, y: Field) -> Field:
    return (x + np.uint64(P) - y) % np.uint64(P)


def power(x: Field, exponent: int) -> Field:
    result, base = np.ones_like(x), x
    while exponent:
        if exponent & 1:
            result = times(result, base)
        base, exponent = times(base, base), exponent >> 1
    return result


def inverse(x: Field) -> Field:
    return power(x, P - 2)


def null_space_size(rows: Field) -> int:
    """The number of independent solutions x of rows · x = 0 modulo P."""
    return int(rows.shape[1] - nmod_mat(len(rows), rows.shape[1], rows.ravel().tolist(), P).rank())


def jumps(program: Program) -> list[Program]:
    """The functions, each as L of a program of its own, at whose zeros or steps the values of a program may jump."""
    found: dict[tuple[int, ...], Program] = {}
    length = len(program.code)
    for op, *args in program.code:
        if op in _JUMPS:
            # For copysign(x, y) and sign(y) this is y, for fmod both arguments, for a comparison x − y.
            pairs = [args[1:]] if op == "copysign" else [[a] for a in args] if op == "fmod" else [args]
            for pair in pairs:
                code = program.code if len(pair) == 1 else (*program.code, ("sub", *pair))
                result = pair[0] if len(pair) == 1 else length
                found[tuple(pair)] = Program(program.inputs, (("L", 1),), code, (result,)).select("L")
    return list(found.values())


def _operation(op: str, args: list[int], values: list[Field], program: Program) -> Field:
    x = values[args[0]]
    y = values[args[1]] if len(args) > 1 else x
    one = np.uint64(1)
    exact: dict[str, Callable[[], Field]] = {
        "add": lambda: (x + y) % np.uint64(P), "sub": lambda: minus(x, y), "mul": lambda: times(x, y),
        "div": lambda: times(x, inverse(y)), "neg": lambda: minus(np.zeros_like(x), x), "sq": lambda: times(x, x),
        "sqrt": lambda: power(x, (P + 1) // 4), "expm1": lambda: minus(_exp(x), np.full_like(x, one)),
        "exp": lambda: _exp(x), "log1p": lambda: _any("log", (x + one) % np.uint64(P)),
        "sin": lambda: _circle(x)[0], "cos": lambda: _circle(x)[1],
        "tan": lambda: times(_circle(x)[0], inverse(_circle(x)[1])),
        "sinh": lambda: _hyperbola(x)[0], "cosh": lambda: _hyperbola(x)[1],
        "tanh": lambda: times(_hyperbola(x)[0], inverse(_hyperbola(x)[1])),
        "not": lambda: minus(np.full_like(x, one), x), "and": lambda: times(x, y), "if": lambda: times(x, y),
        "or": lambda: minus((x + y) % np.uint64(P), times(x, y)),
        "select": lambda: (times(x, minus(y, values[args[2]])) + values[args[2]]) % np.uint64(P),
    }  # fmt: skip
    if op in exact:
        return exact[op]()
    if op == "pow":
        exponent = program.code[args[1]]
        if exponent[0] == "const" and Fraction(exponent[1]).denominator == 1:
            whole = int(exponent[1])
            return power(x if whole >= 0 else inverse(x), abs(whole))
    if op in ("lt", "le", "eq", "ne"):
        return _any(op, minus(x, y))
    if len(args) == 2:
        low, high = (np.minimum(x, y), np.maximum(x, y)) if op in _SYMMETRIC else (x, y)
        return _any(op, _any("pair", low) ^ high)
    if op in _EVEN:
        return _any(op, np.minimum(x, minus(np.zeros_like(x), x)))
    return _odd(op, x) if op in _ODD else _any(op, x)


def _any(name: str, x: Field) -> Field:
    """An arbitrary function: the bits of x, stirred (the finalizer of SplitMix64)."""
    z = x.astype(np.uint64) + np.uint64(int.from_bytes(name.encode()[:7], "little"))
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) % np.uint64(P)


def _odd(name: str, x: Field) -> Field:
    """An arbitrary function with f(−x) = −f(x)."""
    opposite = minus(np.zeros_like(x), x)
    value = _any(name, np.minimum(x, opposite))
    value = np.where(x == 0, np.uint64(0), value)
    return np.where(x <= opposite, value, minus(np.zeros_like(x), value))


def _circle(x: Field) -> tuple[Field, Field]:
    """sine and cosine: 2u/(1 + u²) and (1 − u²)/(1 + u²)."""
    u = _odd("circle", x)
    one, square = np.ones_like(u), times(u, u)
    r = inverse((one + square) % np.uint64(P))
    return times((u + u) % np.uint64(P), r), times(minus(one, square), r)


def _exp(x: Field) -> Field:
    opposite = minus(np.zeros_like(x), x)
    value = _any("exp", np.minimum(x, opposite))
    value = np.where(x == 0, np.uint64(1), np.maximum(value, np.uint64(2)))
    return np.where(x <= opposite, value, inverse(value))


def _hyperbola(x: Field) -> tuple[Field, Field]:
    """sinh and cosh: (e − 1/e)/2 and (e + 1/e)/2."""
    e = _exp(x)
    r, half = inverse(e), np.uint64((P + 1) // 2)
    return times(minus(e, r), np.full_like(e, half)), times((e + r) % np.uint64(P), np.full_like(e, half))
