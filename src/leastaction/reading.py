"""Files from strangers are data: what a file says is checked here, before anything is done with it.

A file may come from anybody. Its numbers are compared with their possible values, its sizes with its own length; a
device or a pipe in place of a file is not opened. All errors are ValueErrors that say what was expected and what came.
"""

from __future__ import annotations

import io
import math
import os
import re
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_STEPS = 2**53  # the largest number that float64 and the native loops can count to
MOST_LETTERS = 20_000  # of the text of a method, with nodes and weights of its own
MOST_INSTRUCTIONS = 100_000  # of a Program in a file: derivatives and machine code of longer ones take hours
LONGEST_TEXT = 10_000  # of one number in a file …
LONGEST_EXPRESSION = 200  # … and of one that is an expression, such as sqrt(2)*pi
EXPANSION = 10  # unpacked data have at most this many times the bytes of the file

_LITERAL = re.compile(r"[-+0-9a-fA-FxXpP./_]*")
_KINDS = "biufU"  # kinds of entries of arrays: truth values, integers, floats, text


def contents(file: Path) -> bytes:
    """All bytes of a file; a folder, a pipe or a device is refused, and never waited for."""
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        require_regular(os.fstat(descriptor), file)
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            return stream.read()
    finally:
        os.close(descriptor)


def require_regular(status: os.stat_result, file: object) -> None:
    """Refuse what is not a plain file."""
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{file} is not a plain file, but a folder, a pipe or a device")


def unpacked(data: bytes | memoryview) -> dict[str, NDArray[Any]]:
    """The arrays that np.savez wrote. Sizes are compared with the length of the data before anything is allocated."""
    arrays: dict[str, NDArray[Any]] = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        whole = sum(member.file_size for member in members)
        if whole > EXPANSION * len(data):
            raise ValueError(f"its {len(data)} bytes would unpack to {whole}, more than {EXPANSION} times as many")
        for member in members:
            name, ending, rest = member.filename.rpartition(".npy")
            if not ending or rest or name in arrays:
                raise ValueError(f"expected arrays, each of its own name; got the member {member.filename!r}")
            try:
                arrays[name] = _array(archive.read(member))
            except ValueError as error:
                raise ValueError(f"its array {name!r}: {error}") from error
    return arrays


def _array(data: bytes) -> NDArray[Any]:
    """One array in NumPy's own format."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"expected version 1.0 or 2.0 of the format; got {version}")
    shape, fortran, dtype = readers[version](stream)
    if dtype.kind not in _KINDS or dtype.itemsize == 0:
        raise ValueError(f"expected numbers or text; got entries of type {dtype}")
    length = len(data) - stream.tell()
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != length:
        raise ValueError(f"shape {shape} of {dtype} does not fit its {length} bytes")
    found = np.frombuffer(data, dtype, offset=stream.tell()).reshape(shape, order="F" if fortran else "C")
    return found.copy(order="K")


def mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{what} must be a mapping of names; got {_shown(value)}")
    return value


def entry(record: Any, name: str) -> Any:
    """What a record says under a name."""
    if name not in mapping(record, "what holds " + name):
        raise ValueError(f"{name} is missing")
    return record[name]


def integer(value: Any, what: str, low: int = 0, high: int = MOST_STEPS) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{what} must be an integer from {low} to {high}; got {_shown(value)}")
    return value


def text(value: Any, what: str, longest: int = LONGEST_TEXT) -> str:
    if not isinstance(value, str) or len(value) > longest:
        raise ValueError(f"{what} must be text of at most {longest} letters; got {_shown(value)}")
    return value


def real(value: Any, what: str) -> float:
    """A finite float, written in hexadecimal."""
    try:
        found = float.fromhex(text(value, what))
    except (ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise ValueError(f"{what} must be a finite number in hexadecimal; got {_shown(value)}")
    return found


def listing(value: Any, what: str, length: int | None = None) -> list[Any]:
    if not isinstance(value, list | tuple) or length not in (None, len(value)):
        count = "" if length is None else f" of {length} entries"
        raise ValueError(f"{what} must be a list{count}; got {_shown(value)}")
    return list(value)


def floats(arrays: Mapping[str, Any], name: str, shape: tuple[int | None, ...], dtype: Any = float) -> NDArray[Any]:
    """An array with this type and this shape, where None stands for any length."""
    found = entry(arrays, name)
    if not isinstance(found, np.ndarray) or found.dtype != np.dtype(dtype):
        raise ValueError(f"{name} must be an array of {np.dtype(dtype)}; got {getattr(found, 'dtype', type(found))}")
    fits = found.ndim == len(shape) and all(want in (None, have) for want, have in zip(shape, found.shape, strict=True))
    if not fits:
        wanted = ", ".join("any" if k is None else str(k) for k in shape)
        raise ValueError(f"{name} must have shape ({wanted}); got {found.shape}")
    return found


def numbers(value: Any, what: str) -> Any:
    """Numbers, texts of numbers, and nested lists of them, as they stand in JSON."""
    stack = [value]
    while stack:
        x = stack.pop()
        if isinstance(x, list):
            stack.extend(x)
        elif isinstance(x, str):
            text(x, what, LONGEST_TEXT if _LITERAL.fullmatch(x) else LONGEST_EXPRESSION)
        elif not isinstance(x, int | float):
            raise ValueError(f"{what} must hold numbers; got {_shown(x)}")
    return value


def _shown(value: Any) -> str:
    shown = repr(value) if isinstance(value, int | float | str | None) else f"{type(value).__name__}"
    return shown if len(shown) <= 60 else shown[:60] + "…"
