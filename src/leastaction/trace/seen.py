"""NumPy as the function that is traced sees it: np.array, np.asarray and their kin notice traced values.

np.array, np.asarray, np.asanyarray and np.full do not ask what they are given: from [q[0], v[1]] they make an array
that knows nothing of tracing. So a function that is traced gets versions of them that differ in one thing: the result
is an Array if it holds traced values. No other function gets them. Nothing is ever written to the module itself: during
a trace it belongs to a class that looks who asks, and a caller that does not trace gets what stands in the module. In
every other thread np.array is np.array, to call, to compare, to pickle and to keep.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

from leastaction.errors import TraceError
from leastaction.trace.kinds import FLOAT, NAMES
from leastaction.trace.scalar import ACTIVE, Array, Scalar, typed, uniform


def _noticing(original: Callable[..., Any]) -> Callable[..., Any]:
    place = {"array": 1, "asarray": 1, "asanyarray": 1, "full": 2}[original.__name__]  # of dtype among the arguments

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
        if result.dtype != object:
            return result
        if isinstance(args[0], Array):
            array = typed(result.view(np.ndarray), args[0].kind)
        elif any(isinstance(entry, Scalar) for entry in result.flat):
            array = uniform(result)
        else:
            return result
        if dtype is None:
            return array
        if np.dtype(dtype) == object and array.kind is not FLOAT:
            raise TraceError(
                f"np.{original.__name__} makes an array of objects of {NAMES[array.kind]}; leave dtype=object out"
            )
        return array.astype(dtype)

    return build


_SEEN = {name: _noticing(getattr(np, name)) for name in ("array", "asarray", "asanyarray", "full")}


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
