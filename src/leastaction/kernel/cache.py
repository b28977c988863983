"""Machine code on disk, shared by all processes of a user.

An entry is a file named by the SHA-256 of everything that decides its content (the IR or source, the
compiler's version, the processor), so an entry can never be stale, only unused. It begins with the
checksum of its payload, so a damaged one is recognised, dropped and made again; it is written to a
temporary file and renamed, so that processes starting at once see a whole entry or none.

A checksum proves that an entry is whole, not who wrote it, and an entry is executed. So the folder and its entries must
be the user's own, or root's, and nobody else may be able to write them; other folders and entries are not used. What
was not used for `MOST_DAYS`, and what is too much for `MOST_BYTES`, is removed. To look through forty thousand entries
takes a third of a second, so a process does it only where none has done it lately (`EVERY`), or if it stores many.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import stat
import time
import warnings
from pathlib import Path

import platformdirs

from leastaction.disk import UNFINISHED, replacing, signature, signed_payload

_MAGIC = b"leastaction-1\n"

MOST_BYTES = 2**29  # of all entries together
MOST_DAYS = 90  # that an entry stays without being used
OFTEN = 64  # entries are looked through once in so many times that one is stored …
EVERY = 3600.0  # … and when the first one is, unless any process has done so for so many seconds
LOOKED = ".looked"  # the file whose time says when
_DAY = 86_400.0

_ELSEWHERE = "Every process compiles anew; name a folder of your own in LEASTACTION_CACHE"
_said: set[tuple[Path, str]] = set()
_stored = itertools.count()


def missed() -> None:
    """Called before anything is compiled; who waits for it may put another function here (`run.waiting`)."""


def directory() -> Path:
    """Where the entries are: $LEASTACTION_CACHE if set, else the user's cache directory."""
    return Path(os.environ.get("LEASTACTION_CACHE") or platformdirs.user_cache_dir("leastaction"))


def key(*parts: str) -> str:
    """The name of the entry that belongs to all these texts together."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:".encode())
        digest.update(part.encode())
    return digest.hexdigest()


def load(name: str) -> bytes | None:
    """The payload of an entry; None if there is none, it is damaged (then it is removed), or it is not the user's."""
    path = directory() / name
    try:
        if not _own(directory()):
            return None
        # A pipe is opened without waiting for its writer, and a link is not followed.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or not _trusted(status, path):
                return None
            data = file.read()
        if time.time() - status.st_mtime > _DAY:
            os.utime(path)  # it was used today
    except OSError as error:
        if error.errno == errno.ELOOP:
            _say(f"{path} is a link: compiled code behind it is not used. Remove it, or: {_ELSEWHERE}", "used")
        return None
    payload = signed_payload(_MAGIC, data)
    if payload is not None:
        return bytes(payload)
    with contextlib.suppress(OSError):
        path.unlink()
    return None


def store(name: str, payload: bytes) -> None:
    """Keep a payload. A disk that is full or read-only costs the next process time, not this one its result."""
    folder = directory()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _own(folder):
            return
        with replacing(folder / name, mode=0o600) as file:
            file.write(signature(_MAGIC, payload) + payload)
        stored = next(_stored) % OFTEN
        if stored == OFTEN - 1 or (stored == 0 and _due(folder)):
            evict(folder)
    except OSError as error:
        _say(f"compiled code cannot be kept in {folder} ({error.strerror or error}). {_ELSEWHERE}", "kept")


def _due(folder: Path) -> bool:
    """Whether no process has looked through the entries lately."""
    try:
        return not 0.0 <= time.time() - (folder / LOOKED).lstat().st_mtime < EVERY
    except OSError:
        return True


def evict(folder: Path) -> None:
    """Remove what nobody has used for long, and of the rest the oldest, until the rest is small enough."""
    (folder / LOOKED).touch(mode=0o600)
    found = []
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                found.append((status.st_mtime, status.st_size, path))
    left = sum(size for _, size, _ in found)
    for used, size, path in sorted(found):
        days = (time.time() - used) / _DAY
        if left > MOST_BYTES or days > (1 if path.name.startswith(UNFINISHED) else MOST_DAYS):
            with contextlib.suppress(OSError):
                path.unlink()
            left -= size


def _own(folder: Path) -> bool:
    """Whether code in this folder, if the folder exists, may be executed."""
    return not folder.exists() or _trusted(folder.stat(), folder)


def _trusted(status: os.stat_result, path: Path) -> bool:
    """Whether only the user, or root, can have written this."""
    if not hasattr(os, "getuid"):
        return True  # elsewhere folders of a user are not open to others
    if status.st_uid not in (os.getuid(), 0):
        _say(f"{path} belongs to another user: compiled code in it is not used. {_ELSEWHERE}", "used")
        return False
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        _say(f"others may write to {path}: compiled code in it is not used. Take their right, or: {_ELSEWHERE}", "used")
        return False
    return True


def _say(message: str, about: str) -> None:
    """Warn, once for a folder: of entries that are not used the first one is named."""
    if (directory(), about) not in _said:
        _said.add((directory(), about))
        warnings.warn(message, RuntimeWarning, stacklevel=2)
