"""Who waits for a run: a progress bar, and Ctrl-C."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from leastaction.run import waiting


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
    with waiting.bar(total, " steps", unit_scale=True) as bar:
        yield bar.update
