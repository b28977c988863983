"""Arrays for native code: they begin with a cache line, and with LEASTACTION_GUARD=1 they lie between guard zones.

Native code that writes beyond an array corrupts what lies there, and the process fails later and elsewhere. Guard zones
hold a mark, and a call after which a mark has changed is an error that names the array. The mark is no number as a
double and no place as an integer, so code that reads beyond an array shows itself, too.
"""

from __future__ import annotations

import ctypes
import math
import os
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

GUARDING = os.environ.get("LEASTACTION_GUARD", "0") not in ("", "0")
LINE = 8  # numbers in a cache line: arrays begin with one, so that no vector lies across two
ZONE = 4 * LINE if GUARDING else 0  # numbers before an array, and behind it up to a whole line
MARK = 0x7FF8_6A09_E667_F3BC
_BYTES = ctypes.c_char * 0

_guarded: dict[int, tuple[str, int, int]] = {}  # by the identity of a memory: name, begin and end of its array


def guarded(shape: tuple[int, ...], name: str, dtype: Any = np.float64) -> NDArray[Any]:
    """Zeros for native code."""
    size = math.prod(shape)
    memory = np.zeros(LINE + ZONE + -(-max(size, 1) // LINE) * LINE + ZONE, dtype)
    begin = ZONE + -ctypes.addressof(_BYTES.from_buffer(memory)) % (8 * LINE) // 8
    if GUARDING:
        memory.view(np.int64)[:] = MARK
        memory[begin : begin + size] = 0
        _guarded[id(memory)] = name, begin, begin + size
        weakref.finalize(memory, _guarded.pop, id(memory)).atexit = False
    return memory[begin : begin + size].reshape(shape)


def check_zones(*arrays: NDArray[Any]) -> None:
    """Raise an error if something was written into the guard zones of these arrays; with no zones, do nothing."""
    for array in arrays if GUARDING else ():
        memory = _memory(array)
        if id(memory) not in _guarded:
            continue
        name, begin, end = _guarded[id(memory)]
        broken = memory.view(np.int64) != MARK
        for place, part in (("before", broken[:begin]), ("behind", broken[end:])):
            if part.any():
                raise RuntimeError(
                    f"native code wrote {place} {name}, {part.sum()} numbers or more: this is a defect of leastaction"
                )


@contextmanager
def between_zones(name: str, given: Sequence[Any]) -> Iterator[list[Any]]:
    """What a native call is given, its arrays between guard zones: those that have none are copied there and back."""
    own: dict[int, tuple[NDArray[Any], NDArray[Any]]] = {}
    for k, x in enumerate(given):
        if isinstance(x, np.ndarray) and id(_memory(x)) not in _guarded:
            copy = guarded(x.shape, f"argument {k} of {name}", x.dtype)
            copy[...] = x
            own[id(x)] = x, copy
    safe = [own[id(x)][1] if id(x) in own else x for x in given]
    yield safe
    check_zones(*(x for x in safe if isinstance(x, np.ndarray)))
    for x, copy in own.values():
        if x.flags.writeable:
            x[...] = copy


def _memory(array: Any) -> NDArray[Any]:
    """The array that owns the memory of this one."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
