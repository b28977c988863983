"""A word to who waits: the first run on a machine compiles for some seconds, and is not to be taken for hung."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 1.0  # seconds without a word

_here = threading.local()


@contextmanager
def compiling() -> Iterator[None]:
    """While code is made ready: after a second a line on stderr, and one when it is done; LEASTACTION_QUIET=1 none."""
    if getattr(_here, "busy", False) or os.environ.get("LEASTACTION_QUIET"):
        yield
        return
    begun, said = time.perf_counter(), threading.Event()

    def say() -> None:
        from leastaction.kernel import cache

        said.set()
        _print(f"leastaction: compiling for this machine; the code is kept in {cache.directory()} for the next time …")

    timer = threading.Timer(PATIENCE, say)
    timer.daemon = True
    _here.busy = True
    timer.start()
    try:
        yield
    finally:
        _here.busy = False
        timer.cancel()
        if said.is_set():
            _print(f"leastaction: compiled in {time.perf_counter() - begun:.0f} s")


def _print(line: str) -> None:
    if sys.stderr is not None:  # as under pythonw
        print(line, file=sys.stderr, flush=True)
