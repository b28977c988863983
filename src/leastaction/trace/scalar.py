"""Scalar and Array: what the user's function sees in place of numbers.

A Scalar is a value of the Program being written; arithmetic on it writes instructions. An Array is a NumPy array of
Scalars and numbers. Both answer NumPy's own dispatch (`__array_ufunc__`, `__array_function__`), so that a Lagrangian
written for floats needs no other namespace.
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
from leastaction.trace.algebra import LOGICAL, Algebra

# The program being written in this thread, if one is.
ACTIVE: ContextVar[Algebra | None] = ContextVar("ACTIVE", default=None)


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
    if isinstance(x, (bool, np.bool_, int, float)):
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
        return lift(builder, x.item())
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
    values = [lift(builder, x) for x in args]
    if op == "mul":
        return Scalar(builder, builder.product(*values))
    if op == "div":
        return Scalar(builder, builder.quotient(*values))
    return Scalar(builder, builder.op(op, *values))


def _operator(op: str, swap: bool = False) -> Callable[[Scalar, Any], Any]:
    def method(self: Scalar, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented  # the array's own operator broadcasts
        return apply(op, other, self) if swap else apply(op, self, other)

    return method


def _through(name: str, swap: bool = False) -> Callable[[Scalar, Any], Any]:
    """An operator whose meaning is that of a NumPy function."""
    ufunc = getattr(np, name)
    return lambda self, other: ufunc(other, self) if swap else ufunc(self, other)


class Scalar:
    """One value of the Program being written; behaves as a NumPy float, except that its number is not known."""

    __slots__ = ("builder", "index")
    __hash__ = None  # type: ignore[assignment]
    shape: tuple[int, ...] = ()
    ndim = 0
    size = 1
    dtype = np.dtype(object)

    def __init__(self, builder: Algebra, index: int) -> None:
        self.builder = builder
        self.index = index

    def __repr__(self) -> str:
        return f"<traced value: {self.builder.code[self.index][0]}>"

    __add__, __radd__ = _operator("add"), _operator("add", swap=True)
    __sub__, __rsub__ = _operator("sub"), _operator("sub", swap=True)
    __mul__, __rmul__ = _operator("mul"), _operator("mul", swap=True)
    __truediv__, __rtruediv__ = _operator("div"), _operator("div", swap=True)
    __lt__, __gt__ = _operator("lt"), _operator("lt", swap=True)
    __le__, __ge__ = _operator("le"), _operator("le", swap=True)
    __eq__, __ne__ = _operator("eq"), _operator("ne")
    __pow__, __rpow__ = _through("power"), _through("power", swap=True)
    __mod__, __rmod__ = _through("remainder"), _through("remainder", swap=True)
    __floordiv__, __rfloordiv__ = _through("floor_divide"), _through("floor_divide", swap=True)
    __and__, __rand__ = _through("bitwise_and"), _through("bitwise_and", swap=True)
    __or__, __ror__ = _through("bitwise_or"), _through("bitwise_or", swap=True)
    __xor__, __rxor__ = _through("bitwise_xor"), _through("bitwise_xor", swap=True)

    def __neg__(self) -> Scalar:
        return apply("neg", self)

    def __pos__(self) -> Scalar:
        return self

    def __abs__(self) -> Scalar:
        return apply("abs", self)

    def __invert__(self) -> Scalar:
        return np.invert(self)

    def conjugate(self) -> Scalar:
        return self

    @property
    def real(self) -> Scalar:
        return self

    @property
    def T(self) -> Scalar:
        return self

    @property
    def logical(self) -> bool:
        return self.builder.code[self.index][0] in LOGICAL

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

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from leastaction.trace.numpy_functions import call_ufunc

        return call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        from leastaction.trace.numpy_functions import call_function

        return call_function(func, args, kwargs)


class Array(np.ndarray):
    """A NumPy array of Scalars and numbers; every NumPy function on it comes to this package first."""

    def __getitem__(self, key: Any) -> Any:
        _check_index(key)
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        _check_index(key)
        super().__setitem__(key, value)

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        if np.issubdtype(dtype, np.floating):
            return self.copy()  # a traced number stands for a float already
        return super().astype(dtype, *args, **kwargs)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from leastaction.trace.numpy_functions import call_ufunc

        return call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        from leastaction.trace.numpy_functions import call_function

        return call_function(func, args, kwargs)


def _check_index(key: Any) -> None:
    for k in key if isinstance(key, tuple) else (key,):
        if isinstance(k, (Scalar, Array)):
            raise TraceError(
                "an index or mask depends on q, v or a parameter, so that the shape is not known; use np.where"
            )


def wrap(result: Any) -> Any:
    """Arrays of traced values, in whatever a NumPy function returned, become Arrays, those of no axes Scalars."""
    if isinstance(result, tuple):
        parts = [wrap(part) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    if isinstance(result, list):
        return [wrap(part) for part in result]
    if isinstance(result, np.ndarray) and result.dtype == object:
        return result.item() if result.ndim == 0 else result.view(Array)
    return result


def plain(x: Any) -> Any:
    """The same array or Scalar as a bare NumPy array, which NumPy handles by itself."""
    if isinstance(x, Scalar):
        bare = np.empty((), dtype=object)
        bare[()] = x
        return bare
    return x.view(np.ndarray) if isinstance(x, Array) else x
