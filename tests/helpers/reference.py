"""Programs evaluated with mpmath, and their derivatives checked against differences of L in 60 digits."""

from fractions import Fraction

import mpmath

from leastaction.program import Program
from leastaction.trace import derivatives

MP = {
    "neg": lambda x: -x, "sq": lambda x: x * x, "abs": abs, "not": lambda x: mpmath.mpf(not x),
    "asin": mpmath.asin, "acos": mpmath.acos, "atan": mpmath.atan, "log1p": mpmath.log1p, "expm1": mpmath.expm1,
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y,
    **dict.fromkeys(("min", "minimum"), min), **dict.fromkeys(("max", "maximum"), max),
    "select": lambda c, x, y: x if c else y, "pow": lambda x, y: x**y, "fmod": mpmath.fmod, "ceil": mpmath.ceil,
    "copysign": lambda x, y: abs(x) if y >= 0 else -abs(x),
    "lt": lambda x, y: x < y, "le": lambda x, y: x <= y, "eq": lambda x, y: x == y, "ne": lambda x, y: x != y,
    "and": lambda x, y: bool(x and y), "or": lambda x, y: bool(x or y), "if": lambda c, x: x if c else mpmath.mpf(0),
}  # fmt: skip


def evaluate(program: Program, *blocks):
    """The program's outputs at mpmath's current precision, as one list."""
    x = [value for block in blocks for value in block]
    values = []
    for op, *args in program.code:
        if op == "input":
            values.append(mpmath.mpf(x[args[0]]))
        elif op == "const":
            exact = Fraction(args[0])
            values.append(mpmath.mpf(exact.numerator) / exact.denominator)
        else:
            function = MP.get(op) or getattr(mpmath, op)
            values.append(mpmath.mpf(function(*(values[a] for a in args))))
    return [values[k] for k in program.results]


def check_derivatives(program: Program, t, q, v, params, tol=1e-20):
    """Every output of `derivatives` against central differences of L in 60 digits."""
    with mpmath.workdps(60):
        n, h = len(q), mpmath.mpf(10) ** -15
        point = [mpmath.mpf(float(x)) for x in (t, *q, *v)]

        def L(*shifts):
            x = list(point)
            for i, sign in shifts:
                x[i] += sign * h
            return evaluate(program, x, params)[0]

        def first(i):
            return (L((i, 1)) - L((i, -1))) / (2 * h)

        def second(i, j):
            return (L((i, 1), (j, 1)) - L((i, 1), (j, -1)) - L((i, -1), (j, 1)) + L((i, -1), (j, -1))) / (4 * h * h)

        iq, iv = range(1, n + 1), range(n + 1, 2 * n + 1)
        expected = [L(), *map(first, iq), *map(first, iv)]
        expected += [second(i, j) for a, b in ((iq, iq), (iq, iv), (iv, iv)) for i in a for j in b]
        expected += [second(i, 0) for i in iv]
        got = evaluate(derivatives(program, second=True), point, params)
        for x, y in zip(got, expected, strict=True):
            assert abs(x - y) <= tol * (1 + abs(y))
        short = derivatives(program, second=False)
        assert short.outputs == (("L", 1), ("Lq", n), ("Lv", n))
        for x, y in zip(evaluate(short, point, params), expected, strict=False):
            assert abs(x - y) <= tol * (1 + abs(y))


def constants(program):
    return {args[0] for op, *args in program.code if op == "const"}
