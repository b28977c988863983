"""Runs killed at random moments and resumed are, bit for bit, those that were never stopped."""

import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import leastaction as la
from hostile_workers import STORED_RUNS
from seeds import fresh_generator

HERE = Path(__file__).parents[1]
CODE = "import sys; from hostile_workers import stored_run; stored_run(sys.argv[1], sys.argv[2])"


def arrays(run):
    return [np.asarray(run.t), np.asarray(run.q), np.asarray(run.p)]


def start(kind, file):
    """A run in a process of its own: with the same libraries and threads every time."""
    return subprocess.Popen([sys.executable, "-c", CODE, kind, str(file)], cwd=HERE)


def kill_and_resume(kind, file, rng):
    """Kill a run at some moment after its archive is there, resume it, kill that, and so on; then let it end."""
    while rng.random() < 0.7 or not file.exists():
        process = start(kind, file)
        begun = time.monotonic()
        while not (file / "checkpoint" / "state").exists() and process.poll() is None:
            assert time.monotonic() - begun < 120
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.6))
        process.kill()
        process.wait()
    assert start(kind, file).wait(120) == 0


@pytest.mark.parametrize("kind", STORED_RUNS)
def test_killed_runs_go_on_to_the_last_bit(kind, tmp_path):
    rng = random.Random(int(fresh_generator().integers(2**31)))
    assert start(kind, tmp_path / "whole").wait(120) == 0
    kill_and_resume(kind, tmp_path / "run", rng)
    for found, wanted in zip(arrays(la.open(tmp_path / "run")), arrays(la.open(tmp_path / "whole")), strict=True):
        assert found.tobytes() == wanted.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("kind", STORED_RUNS)
@pytest.mark.parametrize("repeat", range(20))
def test_killed_runs_go_on_to_the_last_bit_at_length(kind, repeat, tmp_path):
    test_killed_runs_go_on_to_the_last_bit(kind, tmp_path)
