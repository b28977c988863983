"""Scalar and Array: what the user's function sees in place of numbers.

A Scalar is a value of the Program being written; arithmetic on it writes instructions. An Array is a NumPy array of
Scalars and numbers, all of one kind (`number_kinds`). Both answer NumPy's own dispatch (`__array_ufunc__`,
`__array_function__`), so that a Lagrangian written for floats needs no other namespace.
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
from leastaction.trace.number_kinds import BOOL, FLOAT, INT, NAMES, asked_kind, common_kind, kind_of_number

# The program being written in this thread, if one is.
ACTIVE: ContextVar[Algebra | None] = ContextVar("ACTIVE", default=None)


# Whether NumPy's own code runs on arrays of traced values, which have their kinds.
WITHIN: ContextVar[bool] = ContextVar("WITHIN", default=False)


# During a trace a look at np.… takes time (`numpy_view`).
PLAIN, NDARRAY = (bool, np.bool_, int, float), np.ndarray


@contextmanager
def within() -> Iterator[None]:
    """NumPy's own code runs here."""
    token = WITHIN.set(True)
    try:
        yield
    finally:
        WITHIN.reset(token)


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
    """Write one operation on Scalars and numbers, whatever their kind."""
    builder = ACTIVE.get()
    if builder is None:
        raise TraceError("a traced value is used after its function has returned")
    index = builder.written(op, *(lift(builder, x) for x in args))
    return Scalar(builder, index, BOOL if op in LOGICAL else FLOAT)


def truth(x: Any) -> Any:
    """x ≠ 0, as a comparison."""
    if isinstance(x, Scalar):
        return x if x.kind is BOOL else apply("ne", x, 0)
    return np.bool_(x)


def of_kind(x: Any, kind: np.dtype[Any]) -> Any:
    """A Scalar that is known to be a number of this kind; numbers as they are."""
    return Scalar(x.builder, x.index, kind) if isinstance(x, Scalar) else x


def numpys_own(x: Any, kind: np.dtype[Any]) -> Any:
    """A constant of an array as NumPy gives it: np.float64, which makes float64 of float32; Python's float does not."""
    return kind.type(x) if x.__class__ in (float, int, bool) else x


def cast(x: Any, kind: np.dtype[Any]) -> Any:
    """A Scalar or a number as one of another kind, as NumPy converts it."""
    if isinstance(x, Scalar):
        if x.kind is kind:
            return x
        if kind is BOOL:
            return truth(x)
        if kind is INT and x.kind is FLOAT:
            raise TraceError(
                "a traced float would become a whole number, as astype(int) and dtype=int make it; "
                "write np.trunc(x) or np.floor(x), and keep floats"
            )
        return of_kind(x, kind)
    if kind is BOOL:
        return np.bool_(x)
    if kind is INT:
        return int(np.asarray(x).astype(INT))
    return float(x) if isinstance(x, (int, np.integer, np.bool_)) else x


def _operator(op: str, name: str, swap: bool = False) -> Callable[[Scalar, Any], Any]:
    ufunc = getattr(np, name)

    def method(self: Scalar, other: Any) -> Any:
        if isinstance(other, NDARRAY):
            return NotImplemented  # the array's own operator broadcasts
        kind = other.__class__
        if self.kind is FLOAT and (kind is float or kind is int or (kind is Scalar and other.kind is FLOAT)):
            return apply(op, other, self) if swap else apply(op, self, other)
        if self.kind is BOOL and name in ("add", "multiply"):
            _check_who_joins(sys._getframe(1), kind is Scalar and other.kind is BOOL)
        return ufunc(other, self) if swap else ufunc(self, other)

    return method


MATRIX_PRODUCTS = (4, 17)  # @ and @= among the operators of Python's BINARY_OP


def _check_who_joins(frame: Any, both: bool) -> None:
    """A list of logical values that NumPy adds up by itself is an array to NumPy; its Scalars do not know of it."""
    if WITHIN.get():
        return
    operation, operator = frame.f_code.co_code[frame.f_lasti : frame.f_lasti + 2]
    if dis.opname[operation].startswith("BINARY"):
        if operator not in MATRIX_PRODUCTS:
            return
    elif not both:
        return  # sum((q[0] > 0, q[1] > 0)) starts from 0, and counts
    raise TraceError(
        "comparisons are added or multiplied that are no array, as np.add.reduce([q[0] > 0, q[1] > 0]) does; "
        "write np.array([…]) around them"
    )


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
    """One value of the Program being written; behaves as a NumPy number, except that the number is not known.

    kind   BOOL, INT or FLOAT: what NumPy would have here
    """

    __slots__ = ("builder", "index", "kind")
    __hash__ = None  # type: ignore[assignment]
    shape: tuple[int, ...] = ()
    ndim = 0
    size = 1
    dtype = np.dtype(object)

    def __init__(self, builder: Algebra, index: int, kind: np.dtype[Any] = FLOAT) -> None:
        self.builder = builder
        self.index = index
        self.kind = kind

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
        return cast(self, asked_kind(dtype, f"astype({dtype!r})"))

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
    """A NumPy array of Scalars and numbers of one kind; every NumPy function on it comes to this package first."""

    kind: np.dtype[Any] = FLOAT

    def __array_finalize__(self, origin: Any) -> None:
        self.kind = getattr(origin, "kind", FLOAT)

    def __getitem__(self, key: Any) -> Any:
        _check_index(key)
        return numpys_own(super().__getitem__(key), self.kind)

    def __setitem__(self, key: Any, value: Any) -> None:
        _check_index(key)
        super().__setitem__(key, cast_all(value, self.kind))

    def item(self, *args: Any) -> Any:
        return self._bare("item")(*args)

    def tolist(self) -> Any:
        return self._bare("tolist")()

    def _bare(self, method: str) -> Callable[..., Any]:
        """A method whose results are Python's own numbers: True + True is 2 there, and True in NumPy."""
        if self.kind is BOOL:
            raise TraceError(f"{method}() of comparisons gives Python's True and False; write x[i], or list(x)")
        return getattr(plain(self), method)

    def fill(self, value: Any) -> None:
        self[...] = value

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        kind = asked_kind(dtype, f"astype({dtype!r})")
        casting = args[1] if len(args) > 1 else kwargs.get("casting", "unsafe")
        if not np.can_cast(self.kind, kind, casting):
            raise TraceError(f"NumPy refuses to make {NAMES[kind]} of {NAMES[self.kind]} with casting={casting!r}")
        return typed(cast_all(plain(self), kind), kind)

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


def typed(bare: np.ndarray, kind: np.dtype[Any]) -> Array:
    """An array of objects, all of this kind, as an Array."""
    array = bare.view(Array)
    array.kind = kind
    return array


def cast_all(values: Any, kind: np.dtype[Any]) -> Any:
    """Scalars and numbers, one or an array of them, as those of another kind."""
    if not isinstance(values, (np.ndarray, list, tuple)):
        return cast(values, kind)
    if isinstance(values, Array) and values.kind is kind and values.dtype == object:
        return plain(values)
    if not isinstance(values, np.ndarray):
        values = np.array(values, dtype=object)
    result = np.empty(values.shape, dtype=object)
    result[...] = np.frompyfunc(cast, 2, 1)(plain(values), kind)
    return result


def kinds_within(x: Any) -> set[Any]:
    """The kinds that lists and arrays hold. An array tells its own: among objects float32 become Python's floats."""
    if isinstance(x, (list, tuple)):
        return set().union(*map(kinds_within, x))
    if isinstance(x, (Array, Scalar)):
        return {x.kind}
    if isinstance(x, np.ndarray):
        return set().union(*map(kinds_within, x.flat)) if x.dtype == object else {x.dtype}
    return {kind_of_number(x)}


def uniform(bare: np.ndarray, kinds: set[Any] | None = None) -> Array:
    """An array of objects as an Array: its entries become those of the kind that NumPy would give to the array.

    `kinds` are those of what the array was made from, where these are others than those of its entries.
    """
    kinds = kinds_within(bare) if kinds is None else kinds
    kind = common_kind("an array of traced values", *map(np.dtype, kinds))
    alike = kinds <= ({kind, float} if kind is FLOAT else {kind})
    return typed(bare if alike else cast_all(bare, kind), kind)


def wrap(result: Any, kind: np.dtype[Any] | None = None) -> Any:
    """Arrays of traced values, in whatever a NumPy function returned, become Arrays, those of no axes Scalars."""
    if isinstance(result, tuple):
        parts = [wrap(part, kind) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    if isinstance(result, list):
        return [wrap(part, kind) for part in result]
    if isinstance(result, np.ndarray) and result.dtype == object:
        if kind is None and isinstance(result, Array) and not result.size:
            kind = result.kind  # which no entry tells
        array = uniform(plain(result)) if kind is None else typed(plain(result), kind)
        return numpys_own(plain(array).item(), array.kind) if array.ndim == 0 else array
    return result if kind is None else numpys_own(cast(result, kind), kind)


def plain(x: Any) -> Any:
    """The same array or Scalar as a bare NumPy array, which NumPy handles by itself."""
    if isinstance(x, Scalar):
        bare = np.empty((), dtype=object)
        bare[()] = x
        return bare
    return x.view(np.ndarray) if isinstance(x, Array) else x
