"""Native loops that were compiled before they are needed.

The loops are the same for every Lagrangian, so their machine code can be made once for each kind of processor and come
with the package; `build` makes it. A file is used only if the text of the loops has not changed since the file was
compiled, and if the file is for this system and this kind of processor; a processor of no known kind has no file.
Without a file the loops are translated and compiled at the first run, which takes some 40 seconds of the processor.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from leastaction.disk import replacing, signature, signed_payload
from leastaction.kernel import cache as entries
from leastaction.kernel import compiler, processor_kind, target_triple

FOLDER = Path(__file__).parent / "machine_code"
_MAGIC = b"leastaction-loop-1\n"


def file_of(name: str) -> Path:
    """The path of the file with a loop's machine code; the file may be missing."""
    return FOLDER / f"{name}.{processor_kind()}.o"


class Built(NamedTuple):
    """A loop's machine code, and the compiler that it came from."""

    code: bytes
    compiler: str


def find(name: str, key: str) -> Built | None:
    """The machine code of a loop that belongs to `key`; None if the package has no such code."""
    found = _read(name)
    return Built(found[2], found[1]) if found is not None and found[0] == _heading(key) else None


@cache
def _read(name: str) -> tuple[str, str, bytes] | None:
    """From a loop's file: the key that decides the code, the compiler that made the code, and the code."""
    if processor_kind() == "native":
        return None
    try:
        payload = signed_payload(_MAGIC, file_of(name).read_bytes())
    except OSError:
        return None
    if payload is None:
        return None
    key, made_by, code = bytes(payload).split(b"\n", 2)
    return key.decode(), made_by.decode(), code


def _heading(key: str) -> str:
    return entries.key("loop", target_triple(), key)


def keep(name: str, key: str, code: bytes) -> None:
    """Put the machine code of a loop into the package, under its `key`."""
    FOLDER.mkdir(exist_ok=True)
    payload = f"{_heading(key)}\n{compiler()}\n".encode() + code
    with replacing(file_of(name)) as file:
        file.write(signature(_MAGIC, payload) + payload)
