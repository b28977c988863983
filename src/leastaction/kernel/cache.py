"""Machine code on disk, shared by all processes.

An entry is a file named by the SHA-256 of everything that decides its content (the IR or source, the
compiler's version, the processor), so an entry can never be stale, only unused. It begins with the
checksum of its payload, so a damaged one is recognised, dropped and made again; it is written to a
temporary file and renamed, so that processes starting at once see a whole entry or none.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

import platformdirs

_MAGIC = b"leastaction-1\n"


def directory() -> Path:
    """Where the entries are: $LEASTACTION_CACHE if set, else the user's cache directory."""
    return Path(os.environ.get("LEASTACTION_CACHE") or platformdirs.user_cache_dir("leastaction"))


def key(*parts: str) -> str:
    """The name of the entry that these texts, all together, decide."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:".encode())
        digest.update(part.encode())
    return digest.hexdigest()


def load(name: str) -> bytes | None:
    """The payload of an entry, or None if there is none or it is damaged (a damaged one is removed)."""
    path = directory() / name
    try:
        data = path.read_bytes()
    except OSError:
        return None
    head = len(_MAGIC) + 32
    payload = data[head:]
    if data[: len(_MAGIC)] == _MAGIC and hashlib.sha256(payload).digest() == data[len(_MAGIC) : head]:
        return payload
    with contextlib.suppress(OSError):
        path.unlink()
    return None


def store(name: str, payload: bytes) -> None:
    """Keep a payload. A disk that is full or read-only costs the next process time, not this one its result."""
    folder = directory()
    temporary = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".new-")
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + hashlib.sha256(payload).digest() + payload)
        os.replace(temporary, folder / name)
    except OSError:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
