"""What NumPy's functions mean on traced values.

Element-wise functions are given on one element; broadcasting, reductions and accumulations then come from NumPy
itself. Functions that only move elements or are sums and products run NumPy's own code. Those that would need the
values (sorting, eigenvalues, FFT, Bessel functions, ...) are refused by name.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from leastaction.errors import TraceError
from leastaction.program import LOGICAL as TRUTHS
from leastaction.trace.number_kinds import (
    BOOL,
    FLOAT,
    INT,
    NAMES,
    ROOM,
    asked_kind,
    common_kind,
    kind_of_number,
    loop_kinds,
)
from leastaction.trace.scalar import (
    ACTIVE,
    Array,
    Scalar,
    apply,
    cast,
    cast_all,
    lift,
    numpys_own,
    of_kind,
    plain,
    truth,
    typed,
    uniform,
    within,
    wrap,
)

ADJUGATE_LIMIT = 6
CLIP = np._core.umath.clip  # type: ignore[attr-defined]  # the universal function behind np.clip
# NumPy's own code; during a trace np.diff is another function (`numpy_view`).
OWN: Any = [f._implementation for f in (np.einsum, np.diff, np.fill_diagonal)]  # type: ignore[union-attr]
EINSUM, DIFF, FILL_DIAGONAL = OWN


def pi() -> Scalar:
    """π = acos(−1), exact at any precision."""
    return apply("acos", -1)


def where(c: Any, a: Any, b: Any) -> Any:
    return apply("select", truth(c), a, b) if isinstance(c, Scalar) else a if c else b


def power(x: Any, y: Any) -> Any:
    return apply("pow", x, y)


def on(op: str) -> Callable[..., Any]:
    return lambda *args: apply(op, *args)


def _log_to_base(base: int) -> Callable[[Any], Any]:
    return lambda x: apply("log", x) / apply("log", base)


def _logaddexp(x: Any, y: Any) -> Any:
    # Two smooth branches; max(x, y) would have a kink where they meet.
    d = apply("sub", x, y)
    return where(d > 0, x + apply("log1p", apply("exp", -d)), y + apply("log1p", apply("exp", d)))


def _exactly(x: Any) -> bool:
    """Whether the sign of x has to be right where x is zero."""
    builder = ACTIVE.get()
    assert builder is not None
    return not builder.forgets(lift(builder, x))


def _cbrt(x: Any) -> Any:
    root = apply("mul", apply("sign", x), power(apply("abs", x), Fraction(1, 3)))
    return apply("copysign", root, x) if _exactly(root) else root


def _fmax(op: str) -> Callable[[Any, Any], Any]:
    """The larger or the smaller one, the other one where one is NaN."""

    def f(x: Any, y: Any) -> Any:
        return apply("select", apply("ne", x, x), y, apply("select", apply("ne", y, y), x, apply(op, x, y)))

    return f


def _remainder(x: Any, y: Any) -> Any:
    """fmod(x, y), and y more where the signs differ, as in NumPy: 1 % 0.1 is 0.0999…, not 0."""
    rest = apply("fmod", x, y)
    other = apply("and", apply("ne", rest, 0), apply("ne", apply("lt", rest, 0), apply("lt", y, 0)))
    # A zero has the sign of y.
    signed = apply("select", apply("lt", y, 0), -(-rest + 0.0), rest + 0.0)
    return apply("select", other, apply("add", rest, y), signed)


def _floor_divide(x: Any, y: Any) -> Any:
    """⌊x/y⌋ of the exact quotient, as in NumPy: 1 // 0.1 is 9, although 1/0.1 is rounded to 10."""
    rest = apply("fmod", x, y)
    other = apply("and", apply("ne", rest, 0), apply("ne", apply("lt", rest, 0), apply("lt", y, 0)))
    quotient = apply("div", apply("sub", x, rest), y) - apply("select", other, 1, 0)
    below = apply("floor", quotient)
    found = below + apply("select", apply("lt", 0.5, quotient - below), 1, 0)
    if _exactly(found):
        found = apply("select", apply("eq", quotient, 0), apply("copysign", 0, apply("div", x, y)), found)
    return apply("select", apply("eq", y, 0), apply("floor", apply("div", x, y)), found)


# On floats. Comparisons and logical functions take all kinds of numbers.
ELEMENTWISE: dict[str, Callable[..., Any]] = {
    **{op: on(op) for op in ("sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "expm1", "log1p")},
    **{op: on(op) for op in ("sign", "floor", "ceil", "hypot", "fmod", "copysign", "erf", "minimum", "maximum")},
    **{f"arc{op[1:]}": on(op) for op in ("asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2")},
    "add": on("add"), "subtract": on("sub"), "multiply": on("mul"), "divide": on("div"), "power": power,
    "float_power": power, "square": on("sq"), "negative": on("neg"), "absolute": on("abs"), "fabs": on("abs"),
    "positive": lambda x: x, "conjugate": lambda x: x, "reciprocal": lambda x: apply("div", 1, x), "cbrt": _cbrt,
    "exp2": lambda x: apply("pow", 2, x), "log2": _log_to_base(2), "log10": _log_to_base(10), "logaddexp": _logaddexp,
    "expit": lambda x: 1 / (1 + apply("exp", apply("neg", x))),
    "deg2rad": lambda x: x * (pi() / 180), "radians": lambda x: x * (pi() / 180),
    "rad2deg": lambda x: x * (180 / pi()), "degrees": lambda x: x * (180 / pi()),
    "fmin": _fmax("min"), "fmax": _fmax("max"),
    "clip": lambda x, low, high: apply("minimum", apply("maximum", x, low), high),
    "floor_divide": _floor_divide, "remainder": _remainder,
    "trunc": lambda x: apply("select", apply("lt", x, 0), apply("ceil", x), apply("floor", x)),
    "heaviside": lambda x, middle: apply("select", apply("eq", x, 0), middle, (apply("sign", x) + 1) / 2),
    "signbit": lambda x: apply("lt", apply("copysign", 1, x), 0),
    "less": on("lt"), "less_equal": on("le"), "equal": on("eq"), "not_equal": on("ne"),
    "greater": lambda x, y: apply("lt", y, x), "greater_equal": lambda x, y: apply("le", y, x),
    "logical_not": lambda x: apply("not", truth(x)),
    "logical_and": lambda x, y: apply("and", truth(x), truth(y)),
    "logical_or": lambda x, y: apply("or", truth(x), truth(y)),
    "logical_xor": lambda x, y: apply("ne", truth(x), truth(y)),
}  # fmt: skip
# On logical values, where NumPy's meaning is another one.
LOGICAL: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("add", "maximum", "fmax", "bitwise_or"), on("or")),
    **dict.fromkeys(("multiply", "minimum", "fmin", "bitwise_and"), on("and")),
    **dict.fromkeys(("absolute", "floor", "ceil", "trunc", "conjugate", "positive"), lambda x: x),
    "bitwise_xor": on("ne"), "invert": on("not"),
    "clip": lambda x, low, high: apply("and", apply("or", x, low), high),
}  # fmt: skip
COMPARISONS = {
    "less", "less_equal", "equal", "not_equal", "greater", "greater_equal", "logical_not", "logical_and", "logical_or",
    "logical_xor",
}  # fmt: skip
# Functions that take whole numbers to the same whole numbers as if they were floats.
WHOLE = {
    "add", "subtract", "multiply", "negative", "positive", "conjugate", "absolute", "square", "sign", "minimum",
    "maximum", "fmin", "fmax", "clip", "floor", "ceil", "trunc", "power", "floor_divide", "remainder",
}  # fmt: skip
LARGEST_WHOLE = 2**53  # floats are exact up to here, and int64 does not overflow
COUNTS = {np.ndim, np.size, np.iscomplexobj, np.isrealobj}  # their results are Python's own numbers
# Sums of products, which NumPy writes itself from + and *.
BILINEAR = {"matmul", "vecdot", "matvec", "vecmat"}

# What a reduction makes of an entry that meets no other one, as the first of an accumulation or the only one of a row.
_FIRST: dict[tuple[str, str], Callable[[Any], Any]] = {
    **{
        (name, method): truth
        for name in ("logical_and", "logical_or", "logical_xor")
        for method in ("reduce", "accumulate", "reduceat")
    },
    ("hypot", "reduce"): on("abs"),
}

# Where a reduction with a mask begins: NumPy knows no identity of arrays of objects.
_IDENTITY = {"add": 0, "multiply": 1, "logical_or": False, "logical_and": True}


def _method(name: str) -> Callable[..., Any]:
    ufunc = getattr(np, name)
    return lambda *args: ufunc(*args)


for _name in ELEMENTWISE:
    # NumPy calls these methods for arrays that were made without this package, as by np.zeros(3, dtype=object).
    if hasattr(np, _name) and not hasattr(Scalar, _name):
        setattr(Scalar, _name, _method(_name))


@functools.cache
def _on_arrays(name: str, kinds: tuple[Any, ...], loop: tuple[Any, ...]) -> Any:
    """The function of arrays whose operands have these kinds, and for which NumPy takes this loop."""
    *taken, given = loop
    if name in COMPARISONS or all(kind is FLOAT for kind in taken):
        function = ELEMENTWISE[name]
    elif all(kind is BOOL for kind in taken) and name in LOGICAL:
        function = LOGICAL[name]
    elif all(kind is INT for kind in taken) and name in WHOLE and not (name == "power" and BOOL in kinds):
        function = _whole(name)
    else:
        raise TraceError(
            f"np.{name} of {NAMES[taken[0]]} cannot be traced: NumPy computes it by a rule of its own. "
            "Make floats first: 1.0 * x"
        )

    def element(*args: Any) -> Any:
        return cast(function(*(cast(x, kind) for x, kind in zip(args, taken, strict=True))), given)

    as_they_are = name in COMPARISONS or not {*kinds, *loop} & {BOOL, bool, INT}
    # identity=None tells NumPy that the order of a reduction does not matter, so that it may run over several axes.
    return np.frompyfunc(function if as_they_are else element, len(taken), 1, identity=None)


def _whole(name: str) -> Callable[..., Any]:
    function = ELEMENTWISE[name]

    def of_whole_numbers(*args: Any) -> Any:
        if name in ("floor_divide", "remainder") and (isinstance(args[1], Scalar) or args[1] == 0):
            raise TraceError(f"np.{name} of whole numbers needs a divisor that is a number ≠ 0; make floats: 1.0 * x")
        if name == "power" and not (isinstance(args[1], int) and args[1] >= 0):
            raise TraceError(
                "a power of whole numbers needs an exponent that is a number ≥ 0; make floats: (1.0 * x)**y"
            )
        size = _largest_of(name, *map(_largest, args))
        if max(size, *map(_largest, args)) > LARGEST_WHOLE:
            raise TraceError(f"whole numbers beyond {LARGEST_WHOLE} may overflow in NumPy. Make floats first: 1.0 * x")
        result = of_kind(apply("add", function(*args), 0), INT)  # no whole number is −0
        result.builder.largest[result.index] = size
        return result

    return of_whole_numbers


def _largest_of(name: str, *sizes: float) -> float:
    """A bound of |f(x, …)|, given bounds of |x|, …"""
    match name:
        case "add" | "subtract":
            return sum(sizes)
        case "multiply":
            return sizes[0] * sizes[1]
        case "square":
            return sizes[0] * sizes[0]
        case "power":
            return sizes[0] ** sizes[1] if sizes[0] <= 1 or sizes[1] < 64 else math.inf
        case "floor_divide":
            return sizes[0] + 1
    return max(1, *sizes)


def _largest(x: Any) -> float:
    """A bound of |x|: whole numbers come from numbers, comparisons, choices of them, and functions in WHOLE."""
    if not isinstance(x, Scalar):
        return abs(float(x))
    if x.index in x.builder.largest:
        return x.builder.largest[x.index]
    op, *args = x.builder.code[x.index]
    if op in TRUTHS:
        return 1.0
    if op == "const":
        return abs(float(args[0]))
    chosen = args[1:] if op in ("select", "if") else []
    return max((_largest(Scalar(x.builder, a, INT)) for a in chosen), default=math.inf)


def _kind(x: Any) -> Any:
    """The kind of an operand."""
    if isinstance(x, Scalar):
        return x.kind
    if not isinstance(x, np.ndarray):
        return kind_of_number(x)
    if x.dtype != object:  # also an Array of constants alone that NumPy has cast
        return x.dtype
    if isinstance(x, Array):
        return x.kind
    if any(isinstance(entry, Scalar) and entry.kind is BOOL for entry in x.flat):
        raise TraceError(
            "comparisons stand in an array of objects, where NumPy keeps no kind of numbers; "
            "build the array with np.array([…])"
        )
    return uniform(x).kind


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """NumPy calls this for a universal function, or its reduce, accumulate, outer, ..., on traced values."""
    name, called = ufunc.__name__, title(ufunc)
    arrays = [np.array(x) if isinstance(x, (list, tuple)) else x for x in inputs]
    if set("".join(ufunc.types)) <= set("O->"):  # made from a Python function, by np.vectorize or np.frompyfunc
        if any(_kind(x) is BOOL for x in arrays if isinstance(x, (Scalar, Array))):
            raise TraceError(
                "np.vectorize and np.frompyfunc give comparisons to their function as Python's True and False, "
                "which add up to 2. Make floats first: 1.0 * x"
            )
        return wrap(getattr(ufunc, method)(*map(plain, arrays), **{k: plain(x) for k, x in kwargs.items()}))
    if name not in ELEMENTWISE and name not in LOGICAL and name not in BILINEAR:
        raise unsupported(ufunc)
    options = dict(kwargs)
    out, dtype, mask = options.pop("out", None), options.pop("dtype", None), options.pop("where", True)
    if {"sig", "signature"} & options.keys():
        raise TraceError(f"{called} with signature= cannot be traced; leave signature out")
    casting = options.pop("casting", "same_kind")
    if dtype is not None:
        dtype = asked_kind(dtype, called)
    folds = method in ("reduce", "accumulate", "reduceat")
    kinds = tuple(_kind(x) for x in (arrays[:1] * ufunc.nin if folds else arrays[::2] if method == "at" else arrays))
    if folds and dtype is None and name in ("add", "multiply") and kinds[0] is BOOL:
        dtype = INT
    loop = _loop(ufunc, kinds, dtype, "unsafe" if folds else casting, called)
    targets = [x for x in (out or ()) if x is not None] + ([inputs[0]] if method == "at" else [])
    for x in targets:
        if x.dtype != object:
            raise TraceError(
                f"the result of {called} is written into an array of floats, as x += q does; "
                "write x = x + q, or start from np.zeros(n, dtype=object)"
            )
        if isinstance(x, Array) and not np.can_cast(loop[-1], x.kind, casting):
            raise TraceError(
                f"NumPy refuses to write the {NAMES[loop[-1]]} of {called} into an array of {NAMES[x.kind]}, as x += y "
                "does; write x = x + y"
            )
    if folds:
        result = _folded(ufunc, method, arrays, loop, mask, options)
    elif name in BILINEAR:
        with within():
            result = getattr(ufunc, method)(
                *(plain(cast_all(x, kind)) for x, kind in zip(arrays, loop, strict=False)), **options
            )
    else:
        result = getattr(_on_arrays(name, kinds, loop), method)(*map(plain, arrays), **options)
        if mask is not True:
            if not targets:
                raise TraceError(f"{called} with where= leaves entries without a value; write np.where(mask, …, …)")
            result = plain(_where(mask, result, targets[0]))
    if out is None:
        return wrap(result, loop[-1])
    out[0][...] = result
    return out[0]


def _loop(ufunc: np.ufunc, kinds: tuple[Any, ...], dtype: Any, casting: str, called: str) -> tuple[Any, ...]:
    if ufunc.__name__ in LOGICAL.keys() - ELEMENTWISE.keys() and not all(np.dtype(kind) is BOOL for kind in kinds):
        raise TraceError("&, |, ^ and ~ join comparisons, as in (q[0] > 0) & (q[1] > 0); mind the brackets")
    return loop_kinds(ufunc, kinds, dtype, casting, called)


def _folded(ufunc: np.ufunc, method: str, arrays: list[Any], loop: tuple[Any, ...], mask: Any, options: Any) -> Any:
    """A reduction or accumulation along axes."""
    name = ufunc.__name__
    plainly = name in ("add", "multiply") and loop[0] is not BOOL
    function = ufunc if plainly else _on_arrays(name, loop[:-1], loop)
    values = plain(cast_all(arrays[0], loop[0]))
    if (name, method) in _FIRST:
        values = plain(np.frompyfunc(_FIRST[name, method], 1, 1)(values))
    if options.get("initial") is not None:
        options["initial"] = cast(options["initial"], loop[-1])
    if mask is not True:
        options["where"] = plain(mask)
        if name in _IDENTITY:
            options.setdefault("initial", cast(_IDENTITY[name], loop[-1]))
    with within():
        result = getattr(function, method)(values, *arrays[1:], **options)
    return result if values.size else cast_all(result, loop[-1])


def call_function(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """NumPy calls this for any other of its functions on traced values."""
    if func not in FUNCTIONS and title(func) not in OWN_CODE:
        raise unsupported(func)
    args = [typed(plain(x), x.kind) if isinstance(x, Scalar) else x for x in args]
    kwargs = {k: typed(plain(x), x.kind) if isinstance(x, Scalar) else x for k, x in kwargs.items()}
    function: Any = FUNCTIONS.get(func) or func._implementation  # type: ignore[attr-defined]
    _common(title(func), *(x for x in (*args, *kwargs.values()) if isinstance(x, np.ndarray)))
    try:
        with within():
            result = wrap(function(*args, **kwargs))
            return result if func in COUNTS else numpys_own(result, INT if result.__class__ is int else FLOAT)
    except TraceError:
        raise
    except (TypeError, AttributeError) as error:
        if func in FUNCTIONS:
            raise
        raise unsupported(func) from error


def title(function: Any) -> str:
    module = (getattr(function, "__module__", None) or "numpy").replace("numpy", "np")
    return f"{module}.{function.__name__}" if hasattr(np, function.__name__) or "np." in module else function.__name__


def unsupported(function: Any) -> TraceError:
    return TraceError(
        f"{title(function)} cannot be traced: it has no derivative here or needs the values of its arguments. "
        "Write it with arithmetic, np.where and elementary functions; what does not depend on q, v or a parameter can "
        "be computed before, outside the function"
    )


def _common(called: str, *values: Any) -> np.dtype[Any]:
    """The kind that arrays and numbers have together."""
    return common_kind(called, *(_kind(np.array(x) if isinstance(x, (list, tuple)) else x) for x in values))


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None or y is None:
        raise TraceError(
            "np.where(condition) asks which elements are non-zero; give it both branches, (condition, a, b)"
        )
    kind = _common("np.where", x, y)

    def choose(c: Any, a: Any, b: Any) -> Any:
        either = apply("or", apply("and", c, a), apply("and", apply("not", c), b)) if kind is BOOL else where(c, a, b)
        return of_kind(either, kind)

    return np.frompyfunc(choose, 3, 1)(plain(cast_all(condition, BOOL)), *(plain(cast_all(z, kind)) for z in (x, y)))


def _select(conditions: Any, choices: Any, default: Any = 0) -> Any:
    if any(np.dtype(_kind(condition)) is not BOOL for condition in conditions):
        raise TraceError("np.select needs conditions that are comparisons, as in np.select([q > 1, q > 0], [a, b])")
    kind = _common("np.select", *choices, default)
    result = cast_all(default, kind)
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = np.where(condition, cast_all(choice, kind), result)
    return result


def _clip(
    a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None, **kwargs: Any
) -> Any:
    low, high = a_min if a_min is not None else min, a_max if a_max is not None else max
    if low is None:
        return a if high is None else np.minimum(a, high, out=out, **kwargs)
    return np.maximum(a, low, out=out, **kwargs) if high is None else CLIP(a, low, high, out=out, **kwargs)


def _einsum(*operands: Any, out: Any = None, **kwargs: Any) -> Any:
    """NumPy's sum of products starts from 0, which counts; of logical values it is "or" of "and"."""
    factors = [x for x in operands if isinstance(x, (np.ndarray, Scalar))]
    kind = _common("np.einsum", *factors)
    if out is not None or kwargs.keys() - {"optimize"}:
        raise TraceError("np.einsum with out=, dtype=, order= or casting= cannot be traced; leave these out")
    values = [plain(cast_all(x, kind)) if isinstance(x, (np.ndarray, Scalar)) else x for x in operands]
    result = EINSUM(*values, **kwargs)
    return cast_all(result, kind)


def _joined(function: Callable[..., Any]) -> Callable[..., Any]:
    """concatenate and its kin, with a kind that is asked for."""

    def join(arrays: Any, *args: Any, dtype: Any = None, casting: str = "same_kind", **kwargs: Any) -> Any:
        _common(title(function), *arrays)
        result = wrap(function._implementation(arrays, *args, **kwargs))  # type: ignore[attr-defined]
        return result if dtype is None else result.astype(dtype, casting=casting)

    return join


def _of_first_kind(function: Callable[..., Any]) -> Callable[..., Any]:
    """Functions whose result has the kind of their first argument, whatever they put between its elements."""

    def keep(a: Any, *args: Any, **kwargs: Any) -> Any:
        a = np.asarray(a)
        result = function._implementation(a, *args, **kwargs)  # type: ignore[attr-defined]
        return cast_all(plain(result), np.dtype(_kind(a)))

    return keep


def _of_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Functions that put zeros between their operands: of logical values these would count."""

    def of_numbers(*operands: Any) -> Any:
        if _common(title(function), *operands) is BOOL:
            raise TraceError(f"{title(function)} of logical values cannot be traced. Make floats first: 1.0 * x")
        return function._implementation(*operands)  # type: ignore[attr-defined]

    return of_numbers


def _own_kind(x: Any) -> Any:
    return _kind(x) if isinstance(x, (Scalar, Array)) else x


def _fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    FILL_DIAGONAL(plain(a), cast_all(val, a.kind) if isinstance(a, Array) else val, wrap)


def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    call_ufunc(
        np.positive,
        "__call__",
        (src if where is True else np.where(where, src, dst),),
        {"out": (dst,), "casting": casting},
    )


def _diff(a: Any, n: int = 1, axis: int = -1, **kwargs: Any) -> Any:
    if np.dtype(_kind(a)) is BOOL:
        raise TraceError("np.diff of logical values tells where they change; write x[1:] != x[:-1]")
    return DIFF(a, n, axis, **kwargs)


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    x = np.asanyarray(x).astype(float)
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if (ord is not None or axis is not None) and len(axes) not in (1, 2):
        raise ValueError(f"np.linalg.norm with ord={ord!r}, axis={axis!r} is of vectors or matrices")
    vector = len(axes) == 1
    if ord is None or (ord == 2 and vector) or (ord in ("fro", "f") and not vector):
        return np.sqrt(np.sum(np.square(x), axis=axis, keepdims=keepdims))
    if vector and ord == 1:
        return np.sum(np.abs(x), axis=axis, keepdims=keepdims)
    if vector and ord in (np.inf, -np.inf):
        return (np.max if ord > 0 else np.min)(np.abs(x), axis=axis, keepdims=keepdims)
    if vector and isinstance(ord, (int, float)) and ord != 0:
        return np.sum(np.abs(x) ** ord, axis=axis, keepdims=keepdims) ** (1 / Fraction(ord))
    raise TraceError(f"np.linalg.norm with ord={ord!r} cannot be traced")


def _determinant(rows: tuple[tuple[Any, ...], ...]) -> Any:
    """Laplace expansion along the first row, minors remembered by the columns they keep: n 2ⁿ⁻¹ products."""

    @functools.cache
    def minor(columns: tuple[int, ...]) -> Any:
        if not columns:
            return 1
        row = rows[len(rows) - len(columns)]
        total: Any = 0
        for i, j in enumerate(columns):
            term = row[j] * minor(columns[:i] + columns[i + 1 :])
            total = total - term if i % 2 else total + term
        return total

    return minor(tuple(range(len(rows))))


def _stacked(function: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
    """A function of one square matrix, giving a number or a matrix of its size, as one of any stack of them."""

    def on_stack(a: Any) -> Any:
        a = plain(cast_all(np.asanyarray(a), FLOAT))
        n = a.shape[-1] if a.ndim > 1 else 0
        if a.ndim < 2 or a.shape[-2] != n:
            raise ValueError(f"expected a square matrix, got shape {a.shape}")
        if n > ADJUGATE_LIMIT:
            # Cofactors need no pivot, which could not be chosen without values, but grow like 2ⁿ.
            raise TraceError(f"np.linalg.{name} of a traced {n} × {n} matrix: the limit is {ADJUGATE_LIMIT}")
        if a.ndim == 2:
            return function(a)
        results = [np.asanyarray(on_stack(m)) for m in a]
        return np.stack(results) if results else np.empty(a.shape[:-2], dtype=object)

    return on_stack


def _det(a: Any) -> Any:
    return _determinant(tuple(map(tuple, a)))


def _adjugate(a: Any) -> Any:
    """The transposed cofactors, adj(a) a = det(a)."""
    n = len(a)
    result = np.empty((n, n), dtype=object)
    for i, j in itertools.product(range(n), repeat=2):
        keep = [k for k in range(n) if k != j]
        minor = _determinant(tuple(tuple(a[r, keep]) for r in range(n) if r != i))
        result[j, i] = minor if (i + j) % 2 == 0 else -minor
    return result


def _divided(a: Any, name: str) -> tuple[Any, Any]:
    """adj(a) of a stack of matrices, and 1/det(a), expanded along the first row."""
    a = plain(cast_all(np.asanyarray(a), FLOAT))
    adjugate = _stacked(_adjugate, name)(a)
    return adjugate, 1 / np.matmul(a[..., :1, :], adjugate[..., :, :1])


def _solve(a: Any, b: Any) -> Any:
    """a⁻¹ b: for b one vector, or for matrices of columns, whose stack is broadcast against that of a."""
    adjugate, inverse_det = _divided(a, "solve")
    b = plain(cast_all(np.asanyarray(b), FLOAT))
    if b.ndim == 0:
        raise ValueError("np.linalg.solve needs a vector or a matrix of columns on the right; got a number")
    return np.matmul(adjugate, b) * (inverse_det[..., 0] if b.ndim == 1 else inverse_det)


def _slogdet(a: Any) -> Any:
    det = wrap(_stacked(_det, "slogdet")(a))
    return np.sign(det), np.log(np.abs(det))


def _like(function: Callable[..., Any]) -> Callable[..., Any]:
    """zeros_like and its kin make room for traced values of the kind that is asked for."""

    def like(a: Any, *args: Any, dtype: Any = None, **kwargs: Any) -> Any:
        kind = np.dtype(_kind(np.asarray(a))) if dtype is None else asked_kind(dtype, title(function))
        bare = function(np.empty(np.shape(a), dtype=object), *map(plain, args), **kwargs)
        return cast_all(bare, common_kind(title(function), kind))

    return like


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _where, np.select: _select, np.clip: _clip, np.fill_diagonal: _fill_diagonal,
    np.result_type: lambda *values: ROOM if (kind := np.result_type(*map(_own_kind, values))) == FLOAT else kind,
    np.count_nonzero: lambda a, axis=None, *, keepdims=False: np.sum(
        np.logical_not(np.logical_not(a)), axis=axis, keepdims=keepdims
    ),
    np.copyto: _copyto,
    np.einsum: _einsum, np.diff: _diff, **{f: _joined(f) for f in (np.concatenate, np.stack, np.vstack, np.hstack)},
    **{f: _of_numbers(f) for f in (np.polyadd, np.polysub)},
    **{f: _of_first_kind(f) for f in (np.insert, np.pad, np.tril, np.triu, np.diag, np.diagflat)},
    np.zeros_like: _like(np.zeros_like), np.ones_like: _like(np.ones_like), np.full_like: _like(np.full_like),
    np.empty_like: _like(np.zeros_like), np.imag: lambda val: np.zeros_like(val),
    np.linalg.norm: _norm, np.linalg.det: _stacked(_det, "det"),
    np.linalg.inv: lambda a: operator.mul(*_divided(a, "inv")),
    np.linalg.solve: _solve, np.linalg.slogdet: _slogdet,
}  # fmt: skip
# Functions whose own code is right on arrays of traced values: it moves elements, or adds and multiplies them. Each is
# compared with NumPy in tests/trace/test_numpy_functions.py; all others are refused.
OWN_CODE = {
    *(
        f"np.{name}"
        for name in (
            "all", "amax", "amin", "any", "append", "apply_along_axis", "array_split", "astype",
            "atleast_1d", "atleast_2d", "atleast_3d", "average", "block", "broadcast_arrays", "broadcast_to",
            "column_stack", "compress", "convolve", "copy", "corrcoef", "correlate", "cov", "cross", "cumprod",
            "cumsum", "cumulative_prod", "cumulative_sum", "delete", "diagonal", "dot", "dsplit",
            "dstack", "ediff1d", "expand_dims", "flip", "fliplr", "flipud", "gradient", "hsplit", "inner",
            "iscomplexobj", "isrealobj", "kron", "matrix_transpose", "max", "mean", "meshgrid",
            "min", "moveaxis", "ndim", "outer", "polyder", "polyint", "polyval",
            "prod", "ptp", "ravel", "real", "real_if_close", "repeat", "reshape", "resize", "roll",
            "rollaxis", "rot90", "shape", "size", "split", "squeeze", "std", "sum", "swapaxes", "take",
            "take_along_axis", "tensordot", "tile", "trace", "transpose", "trapezoid", "unstack",
            "vander", "var", "vdot", "vsplit", "tril_indices_from", "triu_indices_from", "diag_indices_from", "ix_",
        )
    ),
    *(
        f"np.linalg.{name}"
        for name in (
            "cross", "diagonal", "matmul", "matrix_norm", "matrix_power", "matrix_transpose", "multi_dot", "outer",
            "tensordot", "trace", "vecdot", "vector_norm",
        )
    ),
    "np.extract", "np.fft.fftshift", "np.fft.ifftshift", "np.lib.stride_tricks.sliding_window_view",
}  # fmt: skip
