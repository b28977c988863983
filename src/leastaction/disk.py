"""Files that are whole or absent, checksums that show damage, and locks that end with the process that holds them.

A file is written under another name and renamed when all of it is there: a reader sees the old file or the new file,
whenever the writer was killed. A signed file begins with a mark of its kind and the checksum of what follows.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from leastaction.reading import require_regular

UNFINISHED = ".new-"  # the prefix of files that are being written, or whose writer was killed


@contextlib.contextmanager
def replacing(file: Path, *, durable: bool = False, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Write a file; an existing file is replaced only when all is written, and, if `durable`, is on the disk.

    The permissions of the file are the bits of the mode that the user's mask allows.
    """
    temporary = file.with_name(f"{UNFINISHED}{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(
            os.open(temporary, flags, mode), "wb"
        ) as stream:  # with the permissions that new files have here
            yield stream
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        os.replace(temporary, file)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def signature(mark: bytes, payload: bytes | memoryview) -> bytes:
    """What stands before a payload: the mark of its kind, and its checksum."""
    return mark + hashlib.sha256(payload).digest()


def signed_payload(mark: bytes, data: bytes) -> memoryview | None:
    """The payload of a signed file's bytes; None if they are of another kind, or damaged."""
    head = len(mark) + hashlib.sha256().digest_size
    payload = memoryview(data)[head:]
    return payload if data[:head] == signature(mark, payload) else None


@contextlib.contextmanager
def lock(file: Path) -> Iterator[None]:
    """Hold a lock, which the system frees when the process ends, however it ends; BlockingIOError names the holder."""
    handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            _patient(handle)
        except OSError:
            holder = os.pread(handle, 64, 0).decode(errors="replace").strip() if hasattr(os, "pread") else ""
            raise BlockingIOError(f"another process{f' (number {holder})' if holder else ''}") from None
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
        yield
    finally:
        os.close(handle)


def is_held(file: Path) -> bool:
    """Whether a process holds a lock; True if that cannot be known, as on Windows or for a pipe."""
    try:
        import fcntl

        require_regular(file.stat(), file)
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    except (ImportError, OSError, ValueError):
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # a shared lock, released at once: writers try twice
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _patient(handle: int) -> None:
    """Lock; if the lock is taken, try once more after the moment for which `is_held` holds it."""
    try:
        _lock(handle)
    except OSError:
        time.sleep(0.05)
        _lock(handle)


def _lock(handle: int) -> None:
    try:
        import fcntl
    except ImportError:
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        return
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
