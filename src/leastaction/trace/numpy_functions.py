"""What NumPy's functions mean on traced values.

Element-wise functions are given on one element; broadcasting, reductions and accumulations then come from NumPy
itself. Functions that only move elements or are sums and products run NumPy's own code. Those that would need the
values (sorting, eigenvalues, FFT, Bessel functions, ...) are refused by name.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from leastaction.errors import TraceError
from leastaction.trace.scalar import (
    ROOM,
    Scalar,
    apply,
    arithmetic_of_comparisons,
    asks_for_logical,
    cast,
    cast_all,
    is_logical,
    numpys_own,
    plain,
    truth,
    typed,
    wrap,
)

ADJUGATE_LIMIT = 6
CLIP = np._core.umath.clip  # type: ignore[attr-defined]  # the universal function behind np.clip
EINSUM: Any = np.einsum._implementation  # type: ignore[attr-defined]  # NumPy's own code (`numpy_view`)


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


def _cbrt(x: Any) -> Any:
    return apply("mul", apply("sign", x), power(apply("abs", x), Fraction(1, 3)))


def _fmax(op: str) -> Callable[[Any, Any], Any]:
    """The larger or the smaller one, the other one where one is NaN."""

    def f(x: Any, y: Any) -> Any:
        return apply("select", apply("ne", x, x), y, apply("select", apply("ne", y, y), x, apply(op, x, y)))

    return f


def _remainder(x: Any, y: Any) -> Any:
    """fmod(x, y), and y more where the signs differ, as in NumPy: 1 % 0.1 is 0.0999…, not 0."""
    rest = apply("fmod", x, y)
    other = apply("and", apply("ne", rest, 0), apply("ne", apply("lt", rest, 0), apply("lt", y, 0)))
    return apply("select", other, apply("add", rest, y), rest)


def _floor_divide(x: Any, y: Any) -> Any:
    """⌊x/y⌋ of the exact quotient, as in NumPy: 1 // 0.1 is 9, although 1/0.1 is rounded to 10."""
    rest = apply("fmod", x, y)
    other = apply("and", apply("ne", rest, 0), apply("ne", apply("lt", rest, 0), apply("lt", y, 0)))
    quotient = apply("div", apply("sub", x, rest), y) - apply("select", other, 1, 0)
    below = apply("floor", quotient)
    found = below + apply("select", apply("lt", 0.5, quotient - below), 1, 0)
    return apply("select", apply("eq", y, 0), apply("floor", apply("div", x, y)), found)


# Comparisons and logical functions take truth values, too.
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
# On truth values.
BITWISE: dict[str, Callable[..., Any]] = {
    "bitwise_or": on("or"), "bitwise_and": on("and"), "bitwise_xor": on("ne"), "invert": on("not"),
}  # fmt: skip
COMPARISONS = {
    "less", "less_equal", "equal", "not_equal", "greater", "greater_equal", "logical_not", "logical_and", "logical_or",
    "logical_xor", "signbit",
}  # fmt: skip
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
def _on_arrays(name: str, count: int, numbers: bool) -> Any:
    """The function of arrays; with `numbers` some operands are truth values that count as numbers."""
    function = BITWISE.get(name) or ELEMENTWISE[name]

    def element(*args: Any) -> Any:
        return function(*(cast(x, False) for x in args))

    # identity=None tells NumPy that the order of a reduction does not matter, so that it may run over several axes.
    return np.frompyfunc(element if numbers else function, count, 1, identity=None)


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """NumPy calls this for a universal function, or its reduce, accumulate, outer, ..., on traced values."""
    name, called = ufunc.__name__, title(ufunc)
    arrays = [np.array(x) if isinstance(x, (list, tuple)) else x for x in inputs]
    if set("".join(ufunc.types)) <= set("O->"):  # made from a Python function, by np.vectorize or np.frompyfunc
        return wrap(getattr(ufunc, method)(*map(plain, arrays), **{k: plain(x) for k, x in kwargs.items()}))
    if name not in ELEMENTWISE and name not in BITWISE and name not in BILINEAR:
        raise unsupported(ufunc)
    options = dict(kwargs)
    out, dtype, mask = options.pop("out", None), options.pop("dtype", None), options.pop("where", True)
    casting = options.pop("casting", "same_kind")
    if {"sig", "signature"} & options.keys() or casting not in ("safe", "same_kind", "unsafe"):
        raise TraceError(f"{called} with signature= or casting={casting!r} cannot be traced; leave these out")
    folds = method in ("reduce", "accumulate", "reduceat")
    operands = arrays[:1] if folds else arrays[::2] if method == "at" else arrays
    truths = [is_logical(x) for x in operands]
    given = name in COMPARISONS or name in BITWISE
    wanted = given if dtype is None else asks_for_logical(dtype, called)
    counts = folds and name in ("add", "multiply") and method != "reduceat"
    if name == "multiply" and all(truths) and not folds and dtype is None:
        return call_ufunc(np.bitwise_and, method, inputs, kwargs)
    if name in BITWISE and not all(truths):
        raise TraceError("&, |, ^ and ~ join comparisons, as in (q[0] > 0) & (q[1] > 0); mind the brackets")
    if all(truths) and counts and isinstance(start := options.get("initial"), float) and start % 1:
        counts = False  # NumPy counts in whole numbers, from 0
    if wanted != given or (all(truths) and not (given or counts or dtype is not None)):
        raise arithmetic_of_comparisons(called)
    targets = [x for x in (out or ()) if x is not None] + ([inputs[0]] if method == "at" else [])
    for x in targets:
        if x.dtype != object:
            raise TraceError(
                f"the result of {called} is written into an array of floats, as x += q does; "
                "write x = x + q, or start from np.zeros(n, dtype=object)"
            )
        if is_logical(x) and not given and casting != "unsafe":
            raise TraceError(f"NumPy refuses to write the numbers of {called} into truth values; write x = x + y")
    numbers = any(truths) and not given
    if folds:
        result = _folded(ufunc, method, arrays, given, mask, options)
    elif name in BILINEAR:
        result = getattr(ufunc, method)(*(plain(cast_all(x, False)) for x in arrays), **options)
    else:
        result = getattr(_on_arrays(name, ufunc.nin, numbers), method)(*map(plain, arrays), **options)
        if mask is not True:
            if not targets:
                raise TraceError(f"{called} with where= leaves entries without a value; write np.where(mask, …, …)")
            result = plain(_where(mask, result, targets[0]))
    if out is None:
        return wrap(result, given)
    out[0][...] = result
    return out[0]


def _folded(ufunc: np.ufunc, method: str, arrays: list[Any], given: bool, mask: Any, options: Any) -> Any:
    """A reduction or accumulation along axes."""
    name = ufunc.__name__
    function = ufunc if name in ("add", "multiply") else _on_arrays(name, ufunc.nin, False)
    values = plain(arrays[0] if given else cast_all(arrays[0], False))
    if (name, method) in _FIRST:
        values = plain(np.frompyfunc(_FIRST[name, method], 1, 1)(values))
    if options.get("initial") is not None:
        options["initial"] = cast(options["initial"], given)
    if mask is not True:
        options["where"] = plain(mask)
        if name in _IDENTITY:
            options.setdefault("initial", cast(_IDENTITY[name], given))
    result = getattr(function, method)(values, *arrays[1:], **options)
    return result if values.size else cast_all(result, given)


def call_function(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """NumPy calls this for any other of its functions on traced values."""
    if func not in FUNCTIONS and title(func) not in OWN_CODE:
        raise unsupported(func)
    args = [typed(plain(x), x.logical) if isinstance(x, Scalar) else x for x in args]
    kwargs = {k: typed(plain(x), x.logical) if isinstance(x, Scalar) else x for k, x in kwargs.items()}
    function: Any = FUNCTIONS.get(func) or func._implementation  # type: ignore[attr-defined]
    try:
        result = wrap(function(*args, **kwargs))
        return result if func in COUNTS else numpys_own(result)
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


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None or y is None:
        raise TraceError(
            "np.where(condition) asks which elements are non-zero; give it both branches, (condition, a, b)"
        )
    x, y = (np.array(z) if isinstance(z, (list, tuple)) else z for z in (x, y))
    logical = is_logical(x) and is_logical(y)

    def choose(c: Any, a: Any, b: Any) -> Any:
        return apply("or", apply("and", c, a), apply("and", apply("not", c), b)) if logical else where(c, a, b)

    return np.frompyfunc(choose, 3, 1)(plain(cast_all(condition, True)), *(plain(cast_all(z, logical)) for z in (x, y)))


def _select(conditions: Any, choices: Any, default: Any = 0) -> Any:
    if not all(map(is_logical, conditions)):
        raise TraceError("np.select needs conditions that are comparisons, as in np.select([q > 1, q > 0], [a, b])")
    result = default
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = np.where(condition, choice, result)
    return result


def _clip(
    a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None, **kwargs: Any
) -> Any:
    low, high = a_min if a_min is not None else min, a_max if a_max is not None else max
    if low is None:
        return a if high is None else np.minimum(a, high, out=out, **kwargs)
    return np.maximum(a, low, out=out, **kwargs) if high is None else CLIP(a, low, high, out=out, **kwargs)


def _einsum(*operands: Any, out: Any = None, **kwargs: Any) -> Any:
    factors = [x for x in operands if isinstance(x, (np.ndarray, Scalar))]
    if all(map(is_logical, factors)):
        raise arithmetic_of_comparisons("np.einsum")
    if out is not None or kwargs.keys() - {"optimize"}:
        raise TraceError("np.einsum with out=, dtype=, order= or casting= cannot be traced; leave these out")
    return EINSUM(
        *(plain(cast_all(x, False)) if isinstance(x, (np.ndarray, Scalar)) else x for x in operands), **kwargs
    )


def _joined(function: Callable[..., Any]) -> Callable[..., Any]:
    """concatenate and its kin, with a kind that is asked for."""

    def join(arrays: Any, *args: Any, dtype: Any = None, casting: str = "same_kind", **kwargs: Any) -> Any:
        result = wrap(function._implementation(arrays, *args, **kwargs))  # type: ignore[attr-defined]
        return result if dtype is None else result.astype(dtype, casting=casting)

    return join


def _of_first_kind(function: Callable[..., Any]) -> Callable[..., Any]:
    """Functions whose result has the kind of their first argument, whatever they put between its elements."""

    def keep(a: Any, *args: Any, **kwargs: Any) -> Any:
        a = np.asarray(a)
        result = function._implementation(a, *args, **kwargs)  # type: ignore[attr-defined]
        return cast_all(plain(result), is_logical(a))

    return keep


def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    call_ufunc(
        np.positive,
        "__call__",
        (src if where is True else np.where(where, src, dst),),
        {"out": (dst,), "casting": casting},
    )


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
        a = plain(cast_all(np.asanyarray(a), False))
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
    a = plain(cast_all(np.asanyarray(a), False))
    adjugate = _stacked(_adjugate, name)(a)
    return adjugate, 1 / np.matmul(a[..., :1, :], adjugate[..., :, :1])


def _solve(a: Any, b: Any) -> Any:
    """a⁻¹ b: for b one vector, or for matrices of columns, whose stack is broadcast against that of a."""
    adjugate, inverse_det = _divided(a, "solve")
    b = plain(cast_all(np.asanyarray(b), False))
    if b.ndim == 0:
        raise ValueError("np.linalg.solve needs a vector or a matrix of columns on the right; got a number")
    return np.matmul(adjugate, b) * (inverse_det[..., 0] if b.ndim == 1 else inverse_det)


def _slogdet(a: Any) -> Any:
    det = wrap(_stacked(_det, "slogdet")(a))
    return np.sign(det), np.log(np.abs(det))


def _like(function: Callable[..., Any]) -> Callable[..., Any]:
    """zeros_like and its kin make room for traced values of the kind that is asked for."""

    def like(a: Any, *args: Any, dtype: Any = None, **kwargs: Any) -> Any:
        logical = is_logical(a) if dtype is None else asks_for_logical(dtype, title(function))
        return cast_all(function(np.empty(np.shape(a), dtype=object), *map(plain, args), **kwargs), logical)

    return like


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _where, np.select: _select, np.clip: _clip,
    np.result_type: lambda *values: np.dtype(bool) if all(map(is_logical, values)) else ROOM,
    np.count_nonzero: lambda a, axis=None, *, keepdims=False: np.sum(
        np.logical_not(np.logical_not(a)), axis=axis, keepdims=keepdims
    ),
    np.copyto: _copyto,
    np.einsum: _einsum, **{f: _joined(f) for f in (np.concatenate, np.stack, np.vstack, np.hstack)},
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
            "cumsum", "cumulative_prod", "cumulative_sum", "delete", "diagonal", "diff", "dot", "dsplit",
            "dstack", "ediff1d", "expand_dims", "fill_diagonal", "flip", "fliplr", "flipud", "gradient", "hsplit",
            "inner", "iscomplexobj", "isrealobj", "kron", "matrix_transpose", "max", "mean", "meshgrid",
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
