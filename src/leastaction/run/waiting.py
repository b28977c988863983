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

from leastaction.kernel import cache

if TYPE_CHECKING:
    from tqdm import tqdm

PATIENCE = 1.0  # seconds before the line is printed
ON_TERMINAL, IN_FILE = 0.1, 30.0  # seconds between two states of a bar; in a file every state is a line

_here = threading.local()


class _Wait:
    """A wait for a compiler: when it began, and what prints the line, if anything is compiled."""

    def __init__(self) -> None:
        self.begun, self.told = time.perf_counter(), False
        self.timer: threading.Timer | None = None

    def compile(self) -> None:
        """Something is to be compiled: print the line after a second."""
        if self.timer is None:
            self.timer = threading.Timer(max(0.0, PATIENCE - self.seconds()), self._tell)
            self.timer.daemon = True
            self.timer.start()

    def _tell(self) -> None:
        self.told = True
        _print(f"leastaction: compiling for this machine; the code is kept in {cache.directory()} for the next time …")

    def seconds(self) -> float:
        return time.perf_counter() - self.begun

    def end(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self.told:
            _print(f"leastaction: compiled in {self.seconds():.0f} s")


@contextmanager
def compiling() -> Iterator[None]:
    """While code is compiled: a line on stderr after a second, and one at the end; none with LEASTACTION_QUIET=1."""
    if getattr(_here, "wait", None) is not None or os.environ.get("LEASTACTION_QUIET"):
        yield
        return
    _here.wait = wait = _Wait()
    try:
        yield
    finally:
        _here.wait = None
        wait.end()


def _compile() -> None:
    wait: _Wait | None = getattr(_here, "wait", None)
    if wait is not None:
        wait.compile()


cache.missed = _compile


def bar(total: int | None, unit: str, **how: Any) -> tqdm:
    """A progress bar on stderr: ten times a second on a terminal, twice a minute where stderr is a file."""
    from tqdm import tqdm

    terminal = sys.stderr is not None and sys.stderr.isatty()
    return tqdm(total=total, unit=unit, mininterval=ON_TERMINAL if terminal else IN_FILE, miniters=0, **how)


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
    """Ctrl-C before the first step is an ordinary interrupt, whose message says what was interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted while the run was prepared, before its first step: {rest}") from None


@contextmanager
def progress_bar(total: int | None, wanted: bool) -> Iterator[Callable[[int], Any]]:
    """A bar with the rate and the time left, if wanted; the run tells the bar how far it has come."""
    if not wanted:
        yield lambda _: None
        return
    with bar(total, " steps", unit_scale=True) as shown:
        yield shown.update
