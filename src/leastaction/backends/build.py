"""Compile the native loops into the package: `python -m leastaction.backends.build` for this kind of processor (as
`make setup` does), with `--all` for every x86-64 level (as a release does)."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from leastaction.backends.built import keep
from leastaction.backends.native import LOOPS, compiled, source
from leastaction.kernel import LEVELS, processor_kind


def build() -> int:
    """Compile all loops for this kind of processor; returns how many bytes they are together."""
    total = 0
    for name in LOOPS:
        code = compiled(name)
        keep(name, source(name), code)
        total += len(code)
    return total


def _build_for(level: str) -> None:
    command = [sys.executable, "-m", "leastaction.backends.build"]
    subprocess.run(command, env={**os.environ, "LEASTACTION_CPU": level}, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m leastaction.backends.build", description="Compile the native loops."
    )
    parser.add_argument("--all", action="store_true", help="for every x86-64 level, not only for this processor")
    if parser.parse_args().all:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(_build_for, LEVELS))
    elif processor_kind() == "native":
        print("this processor is of no known kind: the native loops are compiled at the first run")
    else:
        print(f"native loops for {processor_kind()}: {build() / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
