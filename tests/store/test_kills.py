"""Runs killed at random moments and resumed are, bit for bit, those that were never stopped."""

import random
import shutil
import time

import numpy as np
import pytest

import leastaction as la
from hostile_workers import STORED_RUNS
from processes import PATIENCE, started, wait_for
from seeds import generator
from systems import catalogued

CODE = "import sys; from hostile_workers import stored_run; stored_run(sys.argv[1], sys.argv[2])"


def arrays(run):
    """All numbers of a run, the last bit of each."""
    found = [run.t, run.q, run.p, run.tangent]
    found += [getattr(some, name) for some in run.events.values() for name in ("count", "t", "q", "p", "p_after")]
    if not isinstance(run, la.Path):
        found += [run.status, run.steps, *run.reduced.values()]
    return [_bits(x) for x in found if x is not None]


def _bits(x):
    x = np.asarray(x)
    return [str(number) for number in x.flat] if x.dtype == object else x.tobytes()


def start(kind, file):
    """A run in a process of its own: with the same libraries and threads every time."""
    return started(CODE, kind, file)


def begun_or_ended(file, process):
    wait_for(lambda: (file / "checkpoint" / "state").exists() or process.poll() is not None)


def kill_and_resume(kind, file, rng):
    """Kill a run at some moment after its archive is there, resume it, kill that, and so on; then let it end.

    How many kills there were.
    """
    kills = 0
    while rng.random() < 0.7 or not file.exists():
        process = start(kind, file)
        begun_or_ended(file, process)
        time.sleep(rng.uniform(0, 0.6))
        kills += process.poll() is None
        process.kill()
        process.wait()
    assert start(kind, file).wait(PATIENCE) == 0
    return kills


def killed(kind, folder, rng, kills):
    """At least so many kills of one kind of run; how many there were."""
    assert start(kind, folder / "whole").wait(PATIENCE) == 0
    wanted, done, k = arrays(la.open(folder / "whole")), 0, 0
    while done < kills:
        file = folder / f"run-{k}"
        done += kill_and_resume(kind, file, rng)
        assert arrays(la.open(file)) == wanted
        shutil.rmtree(file)
        k += 1
    return done


def test_killed_runs_go_on_to_the_last_bit(tmp_path):
    """One kind of run, another every time."""
    rng = random.Random(int(generator().integers(2**31)))
    killed(rng.choice(STORED_RUNS), tmp_path, rng, 1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", STORED_RUNS)
def test_killed_runs_go_on_to_the_last_bit_at_length(kind, tmp_path):
    """Some hundred kills at random moments, over all kinds."""
    rng = random.Random(int(generator().integers(2**31)))
    print(f"{kind}: {killed(kind, tmp_path, rng, 7)} kills")


STOPPED_AT = """
import os, sys
import leastaction as la
from leastaction.store.archive import Archive

name, file = sys.argv[1:]
kepler, commit = la.problems.get("kepler"), Archive.commit

def stop(archive, checkpoint, kind="state"):
    if kind.startswith(name):
        os._exit(9)
    commit(archive, checkpoint, kind)

Archive.commit = stop
la.integrate(kepler.system, "simpson", kepler.q0, kepler.p0, h=0.01, steps=300, store=file)
"""


def test_a_run_killed_before_its_first_steps_are_written_is_none_or_goes_on(tmp_path):
    """Killed while its archive is made there is none; killed after that, before any step, `la.resume` does them all."""
    kepler, file = catalogued("kepler"), tmp_path / "run"
    start = {"q0": kepler.q0, "p0": kepler.p0, "h": 0.01, "steps": 300}
    whole = la.integrate(kepler.system, "simpson", **start)
    for name in ("state", "chunk-"):
        assert started(STOPPED_AT, name, file).wait(PATIENCE) == 9
        assert file.exists() == (name == "chunk-")
    assert np.array_equal(la.resume(file).q, whole.q)
