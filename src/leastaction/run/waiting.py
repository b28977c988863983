"""Messages for people who wait: a line while a first run compiles, a bar while a long run goes on."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm

PATIENCE = 1.0  # seconds before the line is printed
POLL = 0.1  # seconds between looks at who waits
IDLE = 5.0  # seconds after which nobody looks any more
ON_TERMINAL, IN_FILE = 0.1, 30.0  # seconds between two states of a bar; in a file every state is a line

_here = threading.local()
_lock = threading.Lock()
_waiting: dict[int, _Wait] = {}
_watcher: threading.Thread | None = None


class _Wait:
    """A wait: when it began, and whether the line was printed."""

    def __init__(self) -> None:
        self.begun, self.told = time.perf_counter(), False


@contextmanager
def compiling() -> Iterator[None]:
    """While code is compiled: a line on stderr after a second, and one at the end; none with LEASTACTION_QUIET=1.

    One thread watches all waits, and ends some seconds after the last one: a thread for every run would cost short runs
    more than their steps.
    """
    if getattr(_here, "busy", False) or os.environ.get("LEASTACTION_QUIET"):
        yield
        return
    wait = _Wait()
    _here.busy = True
    with _lock:
        _waiting[id(wait)] = wait
        _watch()
    try:
        yield
    finally:
        _here.busy = False
        with _lock:
            del _waiting[id(wait)]
        if wait.told:
            _print(f"leastaction: compiled in {time.perf_counter() - wait.begun:.0f} s")


def bar(total: int | None, unit: str, **how: Any) -> tqdm:
    """A progress bar on stderr: ten times a second on a terminal, twice a minute where stderr is a file."""
    from tqdm import tqdm

    terminal = sys.stderr is not None and sys.stderr.isatty()
    return tqdm(total=total, unit=unit, mininterval=ON_TERMINAL if terminal else IN_FILE, miniters=0, **how)


def _watch() -> None:
    """Start the thread that watches the waits, if none runs; the caller holds the lock."""
    global _watcher
    if _watcher is None or not _watcher.is_alive():
        _watcher = threading.Thread(target=_look, name="leastaction waiting", daemon=True)
        _watcher.start()


def _look() -> None:
    global _watcher
    last = time.perf_counter()
    while True:
        time.sleep(min(POLL, PATIENCE))
        now = time.perf_counter()
        with _lock:
            late = [wait for wait in _waiting.values() if not wait.told and now - wait.begun >= PATIENCE]
            for wait in late:
                wait.told = True
            last = now if _waiting else last
            if now - last > IDLE:
                _watcher = None
                return
        for _ in late:
            _say()


def _say() -> None:
    from leastaction.kernel import cache

    _print(f"leastaction: compiling for this machine; the code is kept in {cache.directory()} for the next time …")


def _print(line: str) -> None:
    if sys.stderr is not None:  # under pythonw stderr is None
        print(line, file=sys.stderr, flush=True)
