"""Other Python processes: what they print, and what they do meanwhile."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 1000.0  # seconds, then a wait is taken for a hang: the slowest of them takes ten where nothing else runs


def started(code: str, *arguments: object, folder: Path | None = None) -> subprocess.Popen[bytes]:
    """A process that runs the code, which may import what is in the folder."""
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], cwd=folder)


def printed_by(code: str, *arguments: object, folder: Path | None = None, **environment: str) -> str:
    """What a process that runs the code prints; it has to end well."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    known = os.environ | environment
    done = subprocess.run(command, cwd=folder, env=known, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def wait_for(condition: Callable[[], object], process: subprocess.Popen[bytes] | None = None) -> None:
    """Until the condition holds, which the process, if one is given, should bring about."""
    end = time.monotonic() + PATIENCE
    while True:
        ended = process is not None and process.poll() is not None
        if condition():
            return
        assert not ended, "the process has ended before"
        assert time.monotonic() < end, f"for {PATIENCE} s not so"
        time.sleep(0.005)
