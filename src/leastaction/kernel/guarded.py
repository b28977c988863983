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
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

GUARDING = os.environ.get("LEASTACTION_GUARD", "0") not in ("", "0")
LINE = 8  # numbers in a cache line: arrays begin with one, so that no vector lies across two
ZONE = 4 * LINE if GUARDING else 0  # numbers before the first array of a memory, and behind each
MARK = 0x7FF8_6A09_E667_F3BC
_BYTES = ctypes.c_char * 0


@dataclass(frozen=True)
class _Zones:
    """The guard zones of a memory, counted from its first line: where marks are, and arrays by where they begin."""

    marked: NDArray[np.intp]
    begins: Sequence[int]
    names: Sequence[str]


_guarded: dict[int, tuple[int, _Zones]] = {}  # by the identity of a memory, while it lives: where its first line begins


def guarded(shape: tuple[int, ...], name: str, dtype: Any = np.float64) -> NDArray[Any]:
    """Zeros for native code."""
    size = math.prod(shape)
    return _allocated(*_layout(((name, size),)), dtype)[:size].reshape(shape)


def side_by_side(arrays: Sequence[tuple[str, NDArray[Any]]], dtype: Any = np.float64) -> NDArray[Any]:
    """One array of flat ones with names, each a `pitch` behind the one before."""
    whole, at = _allocated(*_layout(tuple((name, len(array)) for name, array in arrays)), dtype), 0
    for _, array in arrays:
        whole[at : at + len(array)] = array
        at += pitch(len(array))
    return whole


def pitch(length: int) -> int:
    """From the beginning of an array of this length to that of the next one beside it."""
    return -(-max(length, 1) // LINE) * LINE + ZONE


def copied(array: NDArray[Any]) -> NDArray[Any]:
    """A copy of what `side_by_side` made, with its guard zones."""
    _, zones = _guarded.get(id(_memory(array)), (0, None)) if GUARDING else (0, None)
    copy = _allocated(len(array), zones, array.dtype)
    copy[:] = array
    return copy


def check_zones(*arrays: NDArray[Any]) -> None:
    """Raise an error if something was written into the guard zones of these arrays; with no zones, do nothing."""
    for array in arrays if GUARDING else ():
        memory = _memory(array)
        line, zones = _guarded.get(id(memory), (0, None))
        if zones is None:
            continue
        broken = zones.marked[memory.view(np.int64)[line:][zones.marked] != MARK]
        if broken.size:
            k = int(np.searchsorted(zones.begins, broken[0], "right")) - 1
            place = f"behind {zones.names[k]}" if k >= 0 else f"before {zones.names[0]}"
            raise RuntimeError(
                f"native code wrote {place}, {broken.size} numbers or more: this is a defect of leastaction"
            )


@contextmanager
def between_zones(name: str, given: Sequence[Any]) -> Iterator[list[Any]]:
    """What a native call is given, its arrays between guard zones: those that have none are copied there and back."""
    if not GUARDING:
        yield list(given)
        return
    own = {
        id(x): (x, side_by_side([(f"argument {k} of {name}", x.ravel())], x.dtype)[: x.size].reshape(x.shape))
        for k, x in enumerate(given)
        if isinstance(x, np.ndarray) and id(_memory(x)) not in _guarded
    }
    safe = [own[id(x)][1] if id(x) in own else x for x in given]
    yield safe
    check_zones(*(x for x in safe if isinstance(x, np.ndarray)))
    for x, copy in own.values():
        if x.flags.writeable:
            x[...] = copy


@lru_cache(maxsize=256)
def _layout(arrays: tuple[tuple[str, int], ...]) -> tuple[int, _Zones | None]:
    """How long arrays of these names and lengths are side by side, and their guard zones."""
    size = sum(pitch(length) for _, length in arrays)
    if not GUARDING:
        return size, None
    marked, begins = np.ones(ZONE + size, bool), [ZONE]
    for _, length in arrays:
        marked[begins[-1] : begins[-1] + length] = False
        begins.append(begins[-1] + pitch(length))
    return size, _Zones(np.flatnonzero(marked), begins[:-1], [name for name, _ in arrays])


def _allocated(size: int, zones: _Zones | None, dtype: Any) -> NDArray[Any]:
    """Zeros from a cache line on, and behind a guard zone if there are zones."""
    memory = np.zeros(LINE + ZONE + size, dtype)
    line = -ctypes.addressof(_BYTES.from_buffer(memory)) % (8 * LINE) // 8
    if zones is not None:
        memory.view(np.int64)[line:][zones.marked] = MARK
        _guarded[id(memory)] = line, zones
        weakref.finalize(memory, _guarded.pop, id(memory)).atexit = False
    return memory[line + ZONE : line + ZONE + size]


def _memory(array: Any) -> NDArray[Any]:
    """The array that owns the memory of this one."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
