"""What kind of number a traced value stands for: logical, whole or real, as NumPy's own result would be.

NumPy's meaning depends on it: + of two logical arrays is "or", their − is refused, their sine has three digits. Here
NumPy is asked which loop it would take (`ufunc.resolve_dtypes`). What it would compute with other numbers than bool,
int64 and float64 is refused.
"""

from __future__ import annotations

import functools
import numbers
from typing import Any

import numpy as np

from leastaction.errors import TraceError

BOOL, INT, FLOAT = np.dtype(bool), np.dtype(np.int64), np.dtype(float)
KINDS = (BOOL, INT, FLOAT)
NAMES = {BOOL: "logical values", INT: "whole numbers", FLOAT: "floats"}


# The kind of traced floats as np.result_type gives it: np.zeros(n, dtype=np.result_type(q, v)) makes room for them.
ROOM = np.dtype(float, metadata={"traced": True})


def makes_room(dtype: Any) -> bool:
    """Whether a dtype is that of traced values: q.dtype, or np.result_type of them; not dtype=object itself."""
    return isinstance(dtype, np.dtype) and (dtype.kind == "O" or dtype.metadata == ROOM.metadata)


def kind_of_number(x: Any) -> Any:
    """The kind of a number: one of Python's own types, which may give way to the kind it meets, or NumPy's."""
    if isinstance(x, np.generic):
        return x.dtype
    if type(x) in (bool, int, float):
        return type(x)
    if isinstance(x, numbers.Real):
        return FLOAT
    return np.dtype(complex if isinstance(x, numbers.Complex) else object)


def asked_kind(dtype: Any, called: str) -> np.dtype[Any]:
    """The kind that a `dtype=` asks for. An array of objects holds what it is given: floats."""
    kind = np.dtype(dtype)
    if kind.kind == "O":
        return FLOAT
    if kind not in KINDS:
        raise TraceError(f"{called} asks for {kind}; traced values are float64, int64 or bool. Leave dtype out")
    return next(own for own in KINDS if own == kind)


def common_kind(called: str, *kinds: Any) -> np.dtype[Any]:
    """The kind that values of several kinds have together in one array."""
    kind = np.result_type(*(x(0) if _weak(x) else np.dtype(x) for x in kinds)) if kinds else FLOAT
    if kind not in KINDS:
        raise TraceError(
            f"{called}: NumPy would compute with {kind} here; traced values are float64, int64 or bool. "
            f"Make floats first: 1.0 * x"
        )
    return kind


@functools.cache
def loop_kinds(ufunc: np.ufunc, kinds: tuple[Any, ...], dtype: Any, casting: str, called: str) -> tuple[Any, ...]:
    """The kinds that NumPy would cast the operands to, and those of the results."""
    kinds = tuple(kind if _weak(kind) else np.dtype(kind) for kind in kinds)
    asked = {} if dtype is None else {"signature": (*[None] * ufunc.nin, *[dtype] * ufunc.nout)}
    try:
        loop = ufunc.resolve_dtypes((*kinds, *[None] * ufunc.nout), casting=casting, **asked)  # type: ignore[arg-type]
    except TypeError as error:
        operands = " and ".join(_named(kind) for kind in kinds)
        raise TraceError(f"NumPy refuses {called} of {operands}: {error}") from None
    if wrong := [kind for kind in loop if kind not in KINDS]:
        if wrong[0].kind == "c":
            raise TraceError(
                f"a complex number meets a traced value in {called}; a Lagrangian is real: "
                "write real and imaginary parts, np.hypot(x, y) and np.arctan2(y, x)"
            )
        operands = " and ".join(_named(kind) for kind in kinds)
        raise TraceError(
            f"NumPy computes {called} of {operands} with {wrong[0]}, other numbers than float64, int64 and bool. "
            f"Make floats first: 1.0 * x"
        )
    return tuple(loop)


def _weak(kind: Any) -> bool:
    return kind is int or kind is float  # NumPy's own are equal to these


def _named(kind: Any) -> str:
    return f"Python's {kind.__name__}" if _weak(kind) else NAMES.get(kind) or str(kind)
