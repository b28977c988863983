"""No Ctrl-C is lost, whenever it comes."""

import contextlib
import importlib
import signal
import subprocess
import sys

import numpy as np
import pytest

import leastaction as la
from hostile_workers import kepler
from leastaction.cli import main
from processes import PATIENCE, printed_by
from seeds import SEED

drive_module, assembly = (importlib.import_module(f"leastaction.{name}") for name in ("run.drive", "results.assembly"))
START = {"q0": [1.0, 0.0], "p0": [0.0, 1.1], "h": 0.01}


class PressesAtTheEnd:
    """A progress bar that presses Ctrl-C when the last step was done."""

    def __init__(self, total):
        self.total, self.done = total, 0

    def __call__(self, steps):
        self.done += steps
        if self.done >= self.total:
            signal.raise_signal(signal.SIGINT)


@contextlib.contextmanager
def pressing(total, wanted):
    yield PressesAtTheEnd(total)


@pytest.mark.parametrize("stored", [False, True])
def test_an_interrupt_with_the_last_step_is_told(tmp_path, monkeypatch, stored):
    """Ctrl-C was once lost here: the run was complete, and nothing said that somebody had pressed Ctrl-C."""
    monkeypatch.setattr(drive_module, "progress_bar", pressing)
    where = {"store": tmp_path / "run"} if stored else {}
    with pytest.warns(RuntimeWarning, match="interrupted in the last moments"):
        path = la.integrate(la.Lagrangian(kepler, n=2), "simpson", **START, steps=50, **where)
    assert len(path) == 51
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_with_the_last_step_of_an_ensemble_is_told(monkeypatch):
    monkeypatch.setattr(drive_module, "progress_bar", pressing)
    with pytest.warns(RuntimeWarning, match="interrupted"):
        paths = la.ensemble(la.Lagrangian(kepler, n=2), "simpson", np.eye(2), [0.0, 1.1], h=0.01, steps=50, threads=1)
    assert not paths.failed.any()


@pytest.mark.parametrize("kind", ["path", "stored", "ensemble", "stored ensemble"])
def test_an_interrupt_during_preparation_says_what_it_ended(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(assembly, "prepare", lambda *plan: signal.raise_signal(signal.SIGINT))
    where = {"store": tmp_path / "run"} if "stored" in kind else {}
    run = la.ensemble if "ensemble" in kind else la.integrate
    with pytest.raises(KeyboardInterrupt, match="run was prepared, before its first step"):
        run(la.Lagrangian(kepler, n=2), "simpson", **START, steps=50, **where)
    assert not (tmp_path / "run").exists()


IGNORED = """
import os, signal, threading
import leastaction as la

def kepler(q, v):
    if PREPARING:
        signal.raise_signal(signal.SIGINT)
    return v @ v / 2 + 1 / (q @ q) ** 0.5

assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
how = dict(h=0.01, steps=200_000, every=200_000)
if not PREPARING:
    pressed = threading.Event()

    def press():
        while not pressed.wait(0.001):
            os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
try:
    found = la.RUN(la.Lagrangian(kepler, n=2), "simpson", [[1.0, 0.0]] if MANY else [1.0, 0.0], [0.0, 1.1], **how)
finally:
    PREPARING or pressed.set()
assert found.t[-1] == 2000.0 and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
"""


@pytest.mark.parametrize("preparing", [True, False], ids=["preparing", "running"])
@pytest.mark.parametrize("run", ["integrate", "ensemble"])
def test_where_interrupts_are_ignored_runs_go_on(run, preparing):
    """A shell without job control starts jobs in the background with SIGINT ignored: Ctrl-C is for another program."""
    code = IGNORED.replace("PREPARING", str(preparing)).replace("MANY", str(run == "ensemble")).replace("RUN", run)
    command = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr


def test_the_command_line_says_it_too(monkeypatch, capsys):
    monkeypatch.setattr(assembly, "prepare", lambda *plan: signal.raise_signal(signal.SIGINT))
    assert main(["run", "pendulum", "--method", "simpson", "--h", "0.1", "--t-end", "1"]) == 130
    assert "run was prepared" in capsys.readouterr().err


AT_ANY_MOMENT = """
import os, signal, sys, threading, time, warnings
import numpy as np
import leastaction as la
from hostile_workers import kepler

system, rng = la.Lagrangian(kepler, n=2), np.random.default_rng(int(sys.argv[1]))
how = dict(q0=[1.0, 0.0], p0=[0.0, 1.1], h=0.01, steps=20_000, every=100)
la.integrate(system, "simpson", **how)
clock = time.perf_counter()
la.integrate(system, "simpson", **how)
usual = time.perf_counter() - clock
told = 0
for k in range(int(sys.argv[2])):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pressed = threading.Timer(rng.uniform(0, 1.2 * usual), os.kill, (os.getpid(), signal.SIGINT))
        try:
            pressed.start()
            while pressed.is_alive() and not caught:
                la.integrate(system, "simpson", **how)
            pressed.join()
            told += any("interrupted" in str(w.message) for w in caught)
        except KeyboardInterrupt:
            told += 1
        pressed.join()
print(told)
"""


def at_any_moment(trials):
    assert printed_by(AT_ANY_MOMENT, SEED, trials) == str(trials)


def test_no_interrupt_is_lost():
    at_any_moment(20)


@pytest.mark.slow
def test_no_interrupt_is_lost_at_length():
    at_any_moment(300)
