"""Who waits for a run: a line while its code compiles, a bar while it goes on, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
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


@contextmanager
def interruptible(stop: Callable[[], None], finished: Callable[[], bool]) -> Iterator[None]:
    """Ctrl-C, in the main thread, asks the run to stop between two pieces; a second one is an ordinary interrupt.

    An interrupt is never lost: if it came during the last piece, the run is `finished` all the same, and a warning
    tells of the interrupt. Where SIGINT is ignored, as in a job that a script runs in the background, it stays so.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (None, signal.SIG_IGN):
        yield
        return
    asked = False

    def ask(number: int, frame: Any) -> None:
        nonlocal asked
        asked = True
        stop()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked and finished():
        warnings.warn("interrupted in the last moments of the run: all of its steps were done", RuntimeWarning, 6)


@contextmanager
def preparing(rest: str) -> Iterator[None]:
    """Ctrl-C before the first step is an ordinary interrupt, whose message says what was interrupted.

    Python drops an exception that is raised while an object is freed: an interrupt that came then is raised again.
    """
    before = signal.getsignal(signal.SIGINT)
    ours = threading.current_thread() is threading.main_thread() and callable(before)
    asked = False

    def note(number: int, frame: Any) -> None:
        nonlocal asked
        assert callable(before)
        try:
            before(number, frame)
        except KeyboardInterrupt:
            asked = True
            raise

    if ours:
        signal.signal(signal.SIGINT, note)
    try:
        yield
        if asked:
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted while the run was prepared, before its first step: {rest}") from None
    finally:
        if ours:
            signal.signal(signal.SIGINT, before)


@contextmanager
def progress_bar(total: int | None, wanted: bool) -> Iterator[Callable[[int], Any]]:
    """A bar with the rate and the time left, if wanted; the run tells the bar how far it has come."""
    if not wanted:
        yield lambda _: None
        return
    with bar(total, " steps", unit_scale=True) as shown:
        yield shown.update
