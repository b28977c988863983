"""What NumPy's functions mean on traced values.

Element-wise functions are given on one element; broadcasting, reductions and accumulations then come from NumPy
itself. Functions that only move elements or are sums and products run NumPy's own code. Those that would need the
values (sorting, eigenvalues, FFT, Bessel functions, ...) are refused by name.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from leastaction.errors import TraceError
from leastaction.program import finite
from leastaction.trace.scalar import ACTIVE, Array, Scalar, apply, lift, plain, wrap

ADJUGATE_LIMIT = 6


def pi() -> Scalar:
    """π = acos(−1), exact at any precision."""
    return apply("acos", -1)


def truth(x: Any) -> Any:
    """x ≠ 0, as a comparison."""
    return x if isinstance(x, (bool, np.bool_)) or (isinstance(x, Scalar) and x.logical) else apply("ne", x, 0)


def boolean(x: Any) -> Any:
    if isinstance(x, (bool, np.bool_)) or (isinstance(x, Scalar) and x.logical):
        return x
    raise TraceError("&, |, ^ and ~ join comparisons, as in (q[0] > 0) & (q[1] > 0); mind the brackets")


def where(c: Any, a: Any, b: Any) -> Any:
    if not isinstance(c, Scalar):
        return a if c else b
    c = truth(c)
    return apply("add", apply("if", c, a), apply("if", apply("not", c), b))


def power(x: Any, y: Any) -> Any:
    builder = ACTIVE.get()
    assert builder is not None
    exponent = builder.constant(lift(builder, y))
    if exponent is None or not finite(exponent):
        return apply("pow", x, y)
    return Scalar(builder, builder.raised(lift(builder, x), Fraction(exponent)))


def _on(op: str) -> Callable[..., Any]:
    return lambda *args: apply(op, *args)


def _log_to_base(base: int) -> Callable[[Any], Any]:
    return lambda x: apply("log", x) / apply("log", base)


def _logaddexp(x: Any, y: Any) -> Any:
    # Two smooth branches; max(x, y) would have a kink where they meet.
    d = apply("sub", x, y)
    return where(d > 0, x + apply("log1p", apply("exp", -d)), y + apply("log1p", apply("exp", d)))


ELEMENTWISE: dict[str, Callable[..., Any]] = {
    **{op: _on(op) for op in ("sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "expm1", "log1p")},
    **{op: _on(op) for op in ("sign", "floor", "ceil", "hypot", "fmod", "copysign", "erf")},
    **{f"arc{op[1:]}": _on(op) for op in ("asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2")},
    "add": _on("add"), "subtract": _on("sub"), "multiply": _on("mul"), "divide": _on("div"), "power": power,
    "float_power": power, "square": _on("sq"), "negative": _on("neg"), "absolute": _on("abs"), "fabs": _on("abs"),
    "positive": lambda x: x, "conjugate": lambda x: x, "reciprocal": lambda x: apply("div", 1, x),
    "cbrt": lambda x: apply("sign", x) * power(apply("abs", x), Fraction(1, 3)),
    "exp2": lambda x: apply("pow", 2, x), "log2": _log_to_base(2), "log10": _log_to_base(10), "logaddexp": _logaddexp,
    "expit": lambda x: 1 / (1 + apply("exp", apply("neg", x))),
    "deg2rad": lambda x: x * (pi() / 180), "radians": lambda x: x * (pi() / 180),
    "rad2deg": lambda x: x * (180 / pi()), "degrees": lambda x: x * (180 / pi()),
    "minimum": _on("min"), "maximum": _on("max"), "fmin": _on("min"), "fmax": _on("max"),
    "clip": lambda x, low, high: apply("min", apply("max", x, low), high),
    "floor_divide": lambda x, y: apply("floor", apply("div", x, y)),
    "remainder": lambda x, y: x - y * apply("floor", apply("div", x, y)),
    "trunc": lambda x: where(x < 0, apply("ceil", x), apply("floor", x)),
    "heaviside": lambda x, middle: where(apply("eq", x, 0), middle, apply("lt", 0, x)),
    "signbit": lambda x: apply("lt", x, 0),
    "less": _on("lt"), "less_equal": _on("le"), "equal": _on("eq"), "not_equal": _on("ne"),
    "greater": lambda x, y: apply("lt", y, x), "greater_equal": lambda x, y: apply("le", y, x),
    "logical_not": lambda x: apply("not", truth(x)), "invert": lambda x: apply("not", boolean(x)),
    "logical_and": lambda x, y: apply("and", truth(x), truth(y)),
    "logical_or": lambda x, y: apply("or", truth(x), truth(y)),
    "logical_xor": lambda x, y: apply("ne", truth(x), truth(y)),
    "bitwise_and": lambda x, y: apply("and", boolean(x), boolean(y)),
    "bitwise_or": lambda x, y: apply("or", boolean(x), boolean(y)),
    "bitwise_xor": lambda x, y: apply("ne", boolean(x), boolean(y)),
}  # fmt: skip
# Sums of products, which NumPy writes itself from + and *.
BILINEAR = {"matmul", "vecdot", "matvec", "vecmat"}

# What a reduction makes of an entry that meets no other one, as the first of an accumulation or the only one of a row.
_FIRST: dict[tuple[str, str], Callable[[Any], Any]] = {
    **{
        (name, method): truth
        for name in ("logical_and", "logical_or", "logical_xor")
        for method in ("reduce", "accumulate", "reduceat")
    },
    ("hypot", "reduce"): _on("abs"),
}

# Where a reduction with a mask begins: NumPy knows no identity of arrays of objects.
_IDENTITY = {"add": 0, "multiply": 1, "logical_or": False, "logical_and": True}

for _name, _function in ELEMENTWISE.items():
    # NumPy calls these methods for arrays that were made without this package, as by np.zeros(3, dtype=object).
    if not hasattr(Scalar, _name):
        setattr(Scalar, _name, _function)


@functools.cache
def _on_arrays(name: str, arity: int) -> Any:
    # identity=None tells NumPy that the order of a reduction does not matter, so that it may run over several axes.
    return np.frompyfunc(ELEMENTWISE[name], arity, 1, identity=None)


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """NumPy calls this for a universal function, or its reduce, accumulate, outer, ..., on traced values."""
    name = ufunc.__name__
    if name in BILINEAR:
        function: Any = ufunc
    elif name in ELEMENTWISE:
        function = ufunc if name in ("add", "multiply") and method != "__call__" else _on_arrays(name, ufunc.nin)
    elif set("".join(ufunc.types)) <= set("O->"):
        function = ufunc  # made from a Python function, by np.vectorize or np.frompyfunc
    else:
        raise unsupported(ufunc)
    if "where" in kwargs and method == "reduce" and name in _IDENTITY:
        kwargs.setdefault("initial", _IDENTITY[name])
    out = kwargs.pop("out", None)
    kwargs.pop("dtype", None)
    targets = [x for x in (out or ()) if x is not None] + ([inputs[0]] if method == "at" else [])
    if any(x.dtype != object for x in targets):
        raise TraceError(
            f"the result of {title(ufunc)} is written into an array of floats, as x += q does; "
            "write x = x + q, or start from np.zeros(n, dtype=object)"
        )
    arrays = [plain(x) for x in inputs]
    if method != "__call__" and (name, method) in _FIRST:
        arrays[0] = np.frompyfunc(_FIRST[name, method], 1, 1)(arrays[0])
    result = getattr(function, method)(*arrays, **{k: plain(x) for k, x in kwargs.items()})
    if out is None:
        return wrap(result)
    out[0][...] = result
    return out[0]


def call_function(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """NumPy calls this for any other of its functions on traced values."""
    args = [plain(x).view(Array) if isinstance(x, Scalar) else x for x in args]
    kwargs = {k: plain(x).view(Array) if isinstance(x, Scalar) else x for k, x in kwargs.items()}
    function: Any = FUNCTIONS.get(func) or func._implementation  # type: ignore[attr-defined]
    try:
        return wrap(function(*args, **kwargs))
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
    return np.frompyfunc(where, 3, 1)(plain(condition), plain(x), plain(y))


def _select(conditions: Any, choices: Any, default: Any = 0) -> Any:
    result = default
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = np.where(condition, choice, result)
    return result


def _clip(x: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    low, high = a_min if a_min is not None else min, a_max if a_max is not None else max
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    x = np.asanyarray(x)
    vector = x.ndim == 1 or isinstance(axis, int)
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
        a = plain(np.asanyarray(a))
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
    a = plain(np.asanyarray(a))
    adjugate = _stacked(_adjugate, name)(a)
    return adjugate, 1 / np.matmul(a[..., :1, :], adjugate[..., :, :1])


def _inv(a: Any) -> Any:
    adjugate, inverse_det = _divided(a, "inv")
    return adjugate * inverse_det


def _solve(a: Any, b: Any) -> Any:
    """a⁻¹ b: for b one vector, or for matrices of columns, whose stack is broadcast against that of a."""
    adjugate, inverse_det = _divided(a, "solve")
    b = plain(np.asanyarray(b))
    if b.ndim == 0:
        raise ValueError("np.linalg.solve needs a vector or a matrix of columns on the right; got a number")
    return np.matmul(adjugate, b) * (inverse_det[..., 0] if b.ndim == 1 else inverse_det)


def _slogdet(a: Any) -> Any:
    det = wrap(_stacked(_det, "slogdet")(a))
    return np.sign(det), np.log(np.abs(det))


def _like(function: Callable[..., Any]) -> Callable[..., Any]:
    """zeros_like and its kin make room for traced values whatever dtype is asked for."""
    return lambda a, *args, dtype=None, **kwargs: function(np.empty(np.shape(a), dtype=object), *args, **kwargs)


def _sinc(x: Any) -> Any:
    # NumPy's form is right at 0, its second derivative is not.
    raise unsupported(np.sinc)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _where, np.select: _select, np.clip: _clip, np.sinc: _sinc,
    np.zeros_like: _like(np.zeros_like), np.ones_like: _like(np.ones_like), np.full_like: _like(np.full_like),
    np.empty_like: _like(np.zeros_like),
    np.linalg.norm: _norm, np.linalg.det: _stacked(_det, "det"), np.linalg.inv: _inv,
    np.linalg.solve: _solve, np.linalg.slogdet: _slogdet,
}  # fmt: skip
