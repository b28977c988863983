"""Ctrl-C at a moment that does not depend on the clock."""

import importlib
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest import mock

drive = importlib.import_module("leastaction.run.drive")


@contextmanager
def pressed_after(steps: int) -> Iterator[None]:
    """Ctrl-C when a run reports that it has done so many steps of all trajectories together, or more."""

    @contextmanager
    def bar(total: int | None, wanted: bool) -> Iterator[Callable[[int], None]]:
        done = 0

        def report(more: int) -> None:
            nonlocal done
            before, done = done, done + more
            if before < steps <= done:
                # To the main thread, as the system does: it waits, and would not wake from a signal of another thread.
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        yield report

    with mock.patch.object(drive, "progress_bar", bar):
        yield
