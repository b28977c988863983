"""The checkpoint of a stored run: one file that is always whole, and a lock that dies with its holder.

It begins with the checksum of what follows, and is replaced by renaming a complete new one over it, so that a run
killed at any moment leaves the old one or the new one.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.reading import contents, entry, mapping, require_regular, unpacked
from leastaction.store.errors import StoreError

_MAGIC = b"leastaction checkpoint\n"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Where a run stands.

    facts    steps done and planned, rows in whole chunks, how the run stands, what the solver counted
    tail     rows (q, p) after the last whole chunk
    state    the stepper's arrays, with which the run goes on to the last bit
    """

    facts: Mapping[str, Any]
    tail: NDArray[np.float64]
    state: Mapping[str, NDArray[Any]]

    def write(self, file: Path) -> None:
        stream = io.BytesIO()
        arrays: dict[str, Any] = {f"state_{name}": value for name, value in self.state.items()}
        np.savez(stream, facts=np.array(json.dumps(dict(self.facts))), tail=self.tail, **arrays)
        payload = stream.getbuffer()
        temporary = file.with_name(f".new-{secrets.token_hex(8)}")
        try:
            with open(temporary, "xb") as out:  # with the permissions that new files have here
                out.write(_MAGIC + hashlib.sha256(payload).digest())
                out.write(payload)
                out.flush()
                os.fsync(out.fileno())
            os.replace(temporary, file)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise

    @classmethod
    def read(cls, file: Path) -> Checkpoint:
        try:
            data = contents(file)
        except FileNotFoundError:
            raise StoreError(
                f"{file.parent.parent} has no checkpoint: its run was ended before the first; remove it and start again"
            ) from None
        except ValueError as error:
            raise StoreError(f"the checkpoint cannot be read: {error}") from None
        head = len(_MAGIC) + 32
        payload = memoryview(data)[head:]
        if data[: len(_MAGIC)] != _MAGIC or hashlib.sha256(payload).digest() != data[len(_MAGIC) : head]:
            raise StoreError(f"the checkpoint {file} is damaged: its checksum does not fit")
        try:
            arrays = unpacked(payload)
            facts = mapping(json.loads(str(entry(arrays, "facts"))), "what it says of the run")
            state = {name[6:]: array for name, array in arrays.items() if name.startswith("state_")}
            return cls(facts, entry(arrays, "tail"), state)
        except Exception as error:
            raise StoreError(f"the checkpoint {file} is damaged: {error}") from error


@contextlib.contextmanager
def lock(file: Path, run: Path) -> Iterator[None]:
    """Hold the run's lock, or say who else is writing; the system frees it when the process ends, however it ends."""
    handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            _patient(handle)
        except OSError:
            holder = os.pread(handle, 64, 0).decode(errors="replace").strip() if hasattr(os, "pread") else ""
            raise StoreError(
                f"{run} is being written by another process{f' (number {holder})' if holder else ''}; "
                "one run at a time can write to an archive, while la.open may read it"
            ) from None
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
        yield
    finally:
        os.close(handle)


def is_held(file: Path) -> bool:
    """Whether a process writes; where locks cannot be asked, as on Windows or of a pipe, yes."""
    try:
        import fcntl

        require_regular(file.stat(), file)
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    except (ImportError, OSError, ValueError):
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared, and gone in a moment: writers try twice
    except BlockingIOError:
        return True
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _patient(handle: int) -> None:
    """Lock, and if somebody has it, once more after the moment that `is_held` takes."""
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
