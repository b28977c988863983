"""Scalar and Array: what the user's function sees in place of numbers.

A Scalar is a value of the Program being written; arithmetic on it writes instructions. An Array is a NumPy array of
Scalars and numbers. Both answer NumPy's own dispatch (`__array_ufunc__`, `__array_function__`), so that a Lagrangian
written for floats needs no other namespace.

A Scalar or an Array is a number or logical, a truth value. A comparison that meets a number is 0 or 1, and a sum of
comparisons counts, as in NumPy. Arithmetic of comparisons alone, in which NumPy's meaning is another one (+ is "or",
a sine has three digits), is refused.
"""

from __future__ import annotations

import dis
import numbers
import reprlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from leastaction.errors import TraceError
from leastaction.program import LOGICAL
from leastaction.trace.algebra import Algebra

# The program being written in this thread, if one is.
ACTIVE: ContextVar[Algebra | None] = ContextVar("ACTIVE", default=None)

# During a trace a look at np.… takes time (`numpy_view`).
TRUTHS, NDARRAY = (bool, np.bool_), np.ndarray
PLAIN = (*TRUTHS, int, float)

# The dtype of traced floats as np.result_type gives it: np.zeros(n, dtype=np.result_type(q, v)) makes room for them.
ROOM = np.dtype(float, metadata={"traced": True})


def makes_room(dtype: Any) -> bool:
    """Whether a dtype is that of traced values: q.dtype, or np.result_type of them; not dtype=object itself."""
    return isinstance(dtype, np.dtype) and (dtype.kind == "O" or dtype.metadata == ROOM.metadata)


def asks_for_logical(dtype: Any, called: str) -> bool:
    """Whether a `dtype=` asks for truth values; if not, for numbers. An array of objects holds numbers."""
    kind = np.dtype(dtype)
    if kind not in (np.dtype(float), np.dtype(object), np.dtype(bool)):
        raise TraceError(
            f"{called} asks for {kind}; traced values are float64 or bool. Leave dtype out; for whole numbers write "
            "np.trunc(x) or np.floor(x), and keep floats"
        )
    return kind == np.dtype(bool)


@contextmanager
def active(builder: Algebra) -> Iterator[None]:
    """Write to this program from here on."""
    token = ACTIVE.set(builder)
    try:
        yield
    finally:
        ACTIVE.reset(token)


def lift(builder: Algebra, x: Any) -> int:
    """The value of a Scalar or of a number in the program being written."""
    if isinstance(x, Scalar):
        if x.builder is not builder:
            raise TraceError(
                "a traced value of another call is used: the function keeps q, v or a result outside itself"
            )
        return x.index
    if isinstance(x, PLAIN):
        if x != x:
            raise TraceError(
                "a constant in the function is NaN; look for 0/0, inf − inf or the root of a negative number"
            )
        return builder.const(float(x) if isinstance(x, (float, bool, np.bool_)) else Fraction(x))
    if isinstance(x, numbers.Rational):
        return builder.const(Fraction(int(x.numerator), int(x.denominator)))
    if isinstance(x, (numbers.Real, np.floating, np.integer)):
        return builder.const(float(x))
    if isinstance(x, np.ndarray) and x.ndim == 0:
        return lift(builder, plain(x).item())
    if isinstance(x, numbers.Complex):
        raise TraceError(f"the complex number {x!r} appears in the function; a Lagrangian is real")
    raise TraceError(
        f"{reprlib.repr(x)} of type {type(x).__name__} meets q, v or a parameter; only numbers and arrays of them can"
    )


def apply(op: str, *args: Any) -> Scalar:
    """Write one operation on Scalars and numbers."""
    builder = ACTIVE.get()
    if builder is None:
        raise TraceError("a traced value is used after its function has returned")
    return Scalar(builder, builder.written(op, *(lift(builder, x) for x in args)), op in LOGICAL)


def is_logical(x: Any) -> bool:
    """Whether one of Python's or NumPy's numbers, a Scalar or an array is a truth value."""
    if isinstance(x, NDARRAY) and not isinstance(x, Array):
        if x.dtype == object:
            return bool(x.size) and all(map(is_logical, x.flat))
        return bool(x.dtype == bool)
    return isinstance(x, TRUTHS) or getattr(x, "logical", False)


def truth(x: Any) -> Any:
    """x ≠ 0, as a comparison."""
    if isinstance(x, Scalar):
        return x if x.logical else apply("ne", x, 0)
    return np.bool_(x)


def cast(x: Any, logical: bool) -> Any:
    """A Scalar or a number as a truth value or as a number."""
    if logical:
        return truth(x)
    if isinstance(x, Scalar):
        return Scalar(x.builder, x.index) if x.logical else x
    return float(x) if isinstance(x, (int, np.integer, np.bool_)) else x


def numpys_own(x: Any) -> Any:
    """A constant of an array as NumPy gives it: np.float64, which makes float64 of float32; Python's float does not."""
    kind = x.__class__
    return np.bool_(x) if kind is bool else np.float64(x) if kind is float or kind is int else x


def arithmetic_of_comparisons(called: str) -> TraceError:
    return TraceError(
        f"{called} of comparisons alone cannot be traced, since NumPy's meaning is another one than that of numbers. "
        "Join them by & and |, or make floats first: 1.0 * (x > 0); np.sum counts them"
    )


def _operator(op: str, name: str, swap: bool = False) -> Callable[[Scalar, Any], Any]:
    joins = op not in LOGICAL

    def method(self: Scalar, other: Any) -> Any:
        if isinstance(other, NDARRAY):
            return NotImplemented  # the array's own operator broadcasts
        if joins and self.logical and is_logical(other):
            if op != "mul":
                raise arithmetic_of_comparisons(f"np.{name}")
            return apply("and", self, other)
        return apply(op, other, self) if swap else apply(op, self, other)

    return method


def _through(name: str, swap: bool = False) -> Callable[[Scalar, Any], Any]:
    """An operator whose meaning is that of a NumPy function."""
    ufunc = getattr(np, name)
    return lambda self, other: ufunc(other, self) if swap else ufunc(self, other)


class Traced:
    """What NumPy asks for the meaning of its functions."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from leastaction.trace.numpy_functions import call_ufunc

        return call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        from leastaction.trace.numpy_functions import call_function

        return call_function(func, args, kwargs)


class Scalar(Traced):
    """One value of the Program being written; behaves as a NumPy number, except that the number is not known."""

    __slots__ = ("builder", "index", "logical")
    __hash__ = None  # type: ignore[assignment]
    shape: tuple[int, ...] = ()
    ndim = 0
    size = 1
    dtype = np.dtype(object)

    def __init__(self, builder: Algebra, index: int, logical: bool = False) -> None:
        self.builder, self.index, self.logical = builder, index, logical

    def __repr__(self) -> str:
        return f"<traced value: {self.builder.code[self.index][0]}>"

    __add__, __radd__ = _operator("add", "add"), _operator("add", "add", swap=True)
    __sub__, __rsub__ = _operator("sub", "subtract"), _operator("sub", "subtract", swap=True)
    __mul__, __rmul__ = _operator("mul", "multiply"), _operator("mul", "multiply", swap=True)
    __truediv__, __rtruediv__ = _operator("div", "divide"), _operator("div", "divide", swap=True)
    __lt__, __gt__ = _operator("lt", "less"), _operator("lt", "less", swap=True)
    __le__, __ge__ = _operator("le", "less_equal"), _operator("le", "less_equal", swap=True)
    __eq__, __ne__ = _operator("eq", "equal"), _operator("ne", "not_equal")
    __pow__, __rpow__ = _through("power"), _through("power", swap=True)
    __mod__, __rmod__ = _through("remainder"), _through("remainder", swap=True)
    __floordiv__, __rfloordiv__ = _through("floor_divide"), _through("floor_divide", swap=True)
    __and__, __rand__ = _through("bitwise_and"), _through("bitwise_and", swap=True)
    __or__, __ror__ = _through("bitwise_or"), _through("bitwise_or", swap=True)
    __xor__, __rxor__ = _through("bitwise_xor"), _through("bitwise_xor", swap=True)

    __neg__, __pos__ = (lambda self: np.negative(self)), (lambda self: np.positive(self))
    __abs__, __invert__ = (lambda self: np.absolute(self)), (lambda self: np.invert(self))

    def conjugate(self) -> Scalar:
        return self

    @property
    def real(self) -> Scalar:
        return self

    @property
    def T(self) -> Scalar:
        return self

    def astype(self, dtype: Any) -> Scalar:
        return cast(self, asks_for_logical(dtype, f"astype({dtype!r})"))

    def __bool__(self) -> NoReturn:
        raise TraceError(
            "the function decides by the value of a traced number (if, while, and, or, not, max, min, sorted); "
            "write np.where(condition, a, b), np.maximum(a, b), np.logical_and(a, b) instead"
        )

    def __float__(self) -> NoReturn:
        frame = sys._getframe(1)
        if dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith("STORE_S"):
            raise TraceError(
                "a traced value is assigned into an array of floats; "
                "build the array with np.array([...]), or start from np.zeros(n, dtype=object) or np.zeros_like(q)"
            )
        raise TraceError(
            "the function asks for the float value of a traced number, as math.sin(q[0]) and float(q[0]) do; "
            "use np.sin and the other NumPy functions"
        )

    def __complex__(self) -> NoReturn:
        raise TraceError("the function asks for the complex value of a traced number; a Lagrangian is real")

    def __int__(self) -> NoReturn:
        raise TraceError("the function asks for the integer value of a traced number; use np.floor or np.where")

    def __index__(self) -> NoReturn:
        raise TraceError("a traced number is used as an index or a count; only constants can be")

    def __len__(self) -> NoReturn:
        raise TraceError("len() of a traced scalar: it is a number, not an array")


def _of_floats(name: str) -> Callable[..., Any]:
    own = getattr(np.ndarray, name)
    return lambda self, *args, **kwargs: own(self.astype(float), *args, **kwargs)


class Array(Traced, np.ndarray):
    """A NumPy array of Scalars and numbers; every NumPy function on it comes to this package first."""

    logical: bool = False

    def __array_finalize__(self, origin: Any) -> None:
        self.logical = getattr(origin, "logical", False)

    def __getitem__(self, key: Any) -> Any:
        _check_index(key)
        return numpys_own(super().__getitem__(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        _check_index(key)
        super().__setitem__(key, cast_all(value, self.logical))

    def item(self, *args: Any) -> Any:
        return plain(self).item(*args)

    def tolist(self) -> Any:
        return plain(self).tolist()

    def fill(self, value: Any) -> None:
        self[...] = value

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        logical = asks_for_logical(dtype, f"astype({dtype!r})")
        casting = args[1] if len(args) > 1 else kwargs.get("casting", "unsafe")
        if logical and not self.logical and casting != "unsafe":
            raise TraceError(f"NumPy refuses to make truth values of floats with casting={casting!r}")
        return typed(cast_all(plain(self), logical), logical)

    @property  # type: ignore[misc]
    def imag(self) -> Any:
        return np.zeros_like(self)

    def dot(self, *args: Any, **kwargs: Any) -> Any:
        return np.dot(self, *args, **kwargs)

    mean, var, std = (_of_floats(name) for name in ("mean", "var", "std"))


def _check_index(key: Any) -> None:
    for k in key if isinstance(key, tuple) else (key,):
        if isinstance(k, (Scalar, Array)):
            raise TraceError(
                "an index or mask depends on q, v or a parameter, so that the shape is not known; use np.where"
            )


def typed(bare: np.ndarray, logical: bool) -> Array:
    """An array of objects as an Array."""
    array = bare.view(Array)
    array.logical = logical
    return array


def cast_all(values: Any, logical: bool) -> Any:
    """Scalars and numbers, one or an array of them, as truth values or as numbers."""
    if not isinstance(values, (np.ndarray, list, tuple)):
        return cast(values, logical)
    if isinstance(values, Array) and values.logical == logical and values.dtype == object:
        return plain(values)
    if not isinstance(values, np.ndarray):
        values = np.array(values, dtype=object)
    result = np.empty(values.shape, dtype=object)
    result[...] = np.frompyfunc(cast, 2, 1)(plain(values), logical)
    return result


def uniform(bare: np.ndarray) -> Array:
    """An array of objects as an Array: logical if all entries are, else their numbers."""
    logical = is_logical(bare)
    return typed(cast_all(bare, logical), logical)


def wrap(result: Any, logical: bool | None = None) -> Any:
    """Arrays of traced values, in whatever a NumPy function returned, become Arrays, those of no axes Scalars."""
    if isinstance(result, tuple):
        parts = [wrap(part, logical) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    if isinstance(result, list):
        return [wrap(part, logical) for part in result]
    if isinstance(result, np.ndarray) and result.dtype == object:
        if logical is None and isinstance(result, Array) and not result.size:
            logical = result.logical  # which no entry tells
        array = uniform(plain(result)) if logical is None else typed(plain(result), logical)
        return numpys_own(plain(array).item()) if array.ndim == 0 else array
    return result if logical is None else numpys_own(cast(result, logical))


def plain(x: Any) -> Any:
    """The same array or Scalar as a bare NumPy array, which NumPy handles by itself."""
    if isinstance(x, Scalar):
        bare = np.empty((), dtype=object)
        bare[()] = x
        return bare
    return x.view(np.ndarray) if isinstance(x, Array) else x
