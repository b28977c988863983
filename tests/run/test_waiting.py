"""The first run on a machine says what it does before anybody takes it for hung."""

import os
import re
import subprocess
import sys
import time

import pytest

from leastaction.kernel import cache
from leastaction.run import waiting
from processes import PATIENCE, wait_for

RUN = """
import sys
import leastaction as la
from leastaction.run import waiting

waiting.PATIENCE = float(sys.argv[1])
print("imported", file=sys.stderr, flush=True)
system = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - 0.5 * q[0] ** 2, n=1)
la.integrate(system, "simpson", [1.0], [0.0], h=0.1, steps=10)
la.integrate(system, "simpson", [1.0], [0.0], h=0.1, steps=10)
"""


def run_in(cache, patience):
    return subprocess.run(
        [sys.executable, "-c", RUN, str(patience)],
        env={**os.environ, "LEASTACTION_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    ).stderr


@pytest.mark.slow
def test_a_first_run_says_that_it_compiles_and_a_second_one_nothing(tmp_path):
    said = run_in(tmp_path, waiting.PATIENCE)
    assert re.fullmatch(
        rf"imported\nleastaction: compiling for this machine; the code is kept in {re.escape(str(tmp_path))} .*…\n"
        r"leastaction: compiled in \d+ s\n",
        said,
    ), said
    assert run_in(tmp_path, PATIENCE) == "imported\n"  # loading may take longer than the patience of the library


def test_a_short_wait_is_silent_and_a_long_one_is_told_once(capsys, monkeypatch):
    monkeypatch.setattr(waiting, "PATIENCE", PATIENCE)
    with waiting.compiling():
        cache.missed()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(waiting, "PATIENCE", 0.01)
    said = []
    with waiting.compiling(), waiting.compiling():
        cache.missed()
        wait_for(lambda: said.append(capsys.readouterr().err) or said[-1])
    lines = "".join([*said, capsys.readouterr().err]).splitlines()
    assert len(lines) == 2 and "compiling" in lines[0] and "compiled" in lines[1]
    monkeypatch.setenv("LEASTACTION_QUIET", "1")
    with waiting.compiling():
        cache.missed()
        time.sleep(5 * waiting.PATIENCE)
    assert capsys.readouterr().err == ""
