"""NumPy as the function that is traced sees it: np.array, np.sum and their kin notice traced values in lists.

np.array, np.asarray, np.asanyarray and np.full do not ask what they are given: from [q[0], v[1]] they make an array
that knows nothing of tracing. So a function that is traced gets versions of them that differ in one thing: the result
is an Array if it holds traced values. np.zeros, np.ones and np.empty make an Array, too, where dtype=q.dtype asks for
room for traced values. np.sum and all others that do not ask what a list holds, either, get such an Array in place of
the list. No other function gets these versions. Nothing is ever written to the module itself: during
a trace it belongs to a class that looks who asks, and a caller that does not trace gets what stands in the module. In
every other thread np.array is np.array, to call, to compare, to pickle and to keep.
"""

from __future__ import annotations

import functools
import importlib
import numbers
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

from leastaction.errors import TraceError
from leastaction.trace.scalar import ACTIVE, Array, Scalar, cast_all, makes_room, typed, uniform

EMPTY = ("zeros", "ones", "empty")
CONTENT = ("object", "a", "fill_value")  # what np.array, np.asarray and np.full call what they make an array from
NOTICING = ("array", "asarray", "asanyarray", "full", *EMPTY)


def _noticing(original: Callable[..., Any]) -> Callable[..., Any]:
    place = {"full": 2}.get(original.__name__, 1)  # of dtype among the arguments; the content stands before it

    @functools.wraps(original)
    def build(*args: Any, **kwargs: Any) -> Any:
        if ACTIVE.get() is None:  # kept by the function, and called after its trace
            return original(*args, **kwargs)
        dtype = args[place] if len(args) > place else kwargs.get("dtype")
        try:
            result = original(*args, **kwargs)
        except TraceError:  # dtype=float on traced values, which stand for floats already
            others = {**kwargs, "dtype": object} if len(args) <= place else kwargs
            result = original(*args[:place], *([object, *args[place + 1 :]] if len(args) > place else []), **others)
        if original.__name__ in EMPTY and makes_room(dtype):
            return typed(cast_all(result, False), False)
        if result.dtype != object:
            return result
        content = (
            args[place - 1] if len(args) >= place else next((kwargs[name] for name in CONTENT if name in kwargs), None)
        )
        if isinstance(content, Array):
            array = typed(result.view(np.ndarray), content.logical)
        elif any(isinstance(entry, Scalar) for entry in result.flat) or _holds_arrays(content):
            array = uniform(result)
        else:
            return result
        return array if dtype is None else array.astype(dtype)

    return build


def _holds_arrays(x: Any) -> bool:
    return isinstance(x, (list, tuple)) and any(isinstance(entry, Array) or _holds_arrays(entry) for entry in x)


@functools.cache
def _listing(original: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy function that takes a list of traced values for the array that NumPy would make of it."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        return original(*map(_as_array, args), **{name: _as_array(x) for name, x in kwargs.items()})

    return call


class _Listing:
    """A universal function that takes lists in the same way, with its methods reduce, outer, …"""

    def __init__(self, original: np.ufunc) -> None:
        self.original = original
        self.call = _listing(original)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        own = getattr(self.original, name)
        return _listing(own) if name in METHODS else own


METHODS = ("reduce", "accumulate", "reduceat", "outer", "at")


def _as_array(x: Any) -> Any:
    if not isinstance(x, (list, tuple)) or not any(isinstance(entry, Scalar) for entry in x):
        return x
    simple = all(isinstance(entry, (Scalar, numbers.Real, np.bool_)) for entry in x)
    return _SEEN["array"](x) if simple else x


_SEEN: dict[str, Any] = {
    **{name: _Listing(own) for name, own in vars(np).items() if isinstance(own, np.ufunc)},
    **{name: _listing(own) for name, own in vars(np).items() if hasattr(own, "_implementation")},
    **{name: _noticing(getattr(np, name)) for name in NOTICING},
}


class _Seen(ModuleType):
    """The module while somebody traces. What it holds, and all that is written to it, is the module's own."""

    def __getattribute__(self, name: str) -> Any:
        if name in _SEEN and ACTIVE.get() is not None and not _importing():
            return _SEEN[name]
        return super().__getattribute__(name)

    def __reduce__(self) -> tuple[Callable[[str], ModuleType], tuple[str]]:
        """A module is pickled by its name, as by cloudpickle, which looks for the class ModuleType itself."""
        return importlib.import_module, (self.__name__,)


def _importing() -> bool:
    """Whether the text of a module asks, not a function: a module keeps what it takes when it is imported."""
    return sys._getframe(2).f_code.co_name == "<module>"


_lock = threading.Lock()
_tracers = 0


@contextmanager
def numpy_seen() -> Iterator[None]:
    """While this lasts, whoever traces sees np.array and its kin that notice traced values."""
    global _tracers
    with _lock:
        _tracers += 1
        np.__class__ = _Seen
    try:
        yield
    finally:
        with _lock:
            _tracers -= 1
            if _tracers == 0:
                np.__class__ = ModuleType
