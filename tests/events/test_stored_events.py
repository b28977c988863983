"""Events of stored runs: what happened is kept, and a run in parts is the run in one."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import numpy as np
import pytest

import leastaction as la
from processes import started, wait_for
from seeds import generator
from thrift import rest_slow

pytest.importorskip("zarr")


def ball(q, v, g):
    return 0.5 * v[0] ** 2 - g * q[0] - q[0] ** 2 / 8


SYSTEMS = {
    "Lagrangian": la.Lagrangian(ball, n=1, params={"g": 1.0}),
    "Quadratic": la.Quadratic([[1]], [["1/4"]], f=[-1]),
}
EVENTS = {
    "floor": la.Impact(lambda q: q[0]),
    "top": la.Event(lambda q, p: p[0], -1, most=3),
    "line": la.Event(lambda q, p: q[0] - 0.3),
}
STEPS = 60


def run(kind, method, digits, steps=STEPS, events=EVENTS, many=False, **how):
    options = {"h": "1/10", "steps": steps, "digits": digits, "events": events, **how}
    if many:
        return la.ensemble(SYSTEMS[kind], method, [["1"], ["3/2"], ["1/2"]], ["1/5"], **options)
    return la.integrate(SYSTEMS[kind], method, ["1"], ["1/5"], **options)


def same(stored, path):
    for name in ("t", "q", "p"):
        found, expected = np.asarray(getattr(stored, name)), getattr(path, name)
        assert found.shape == expected.shape and (found == expected).all(), name
    assert stored.events.keys() == path.events.keys()
    for name, found in path.events.items():
        again, table = stored.events[name].table(), found.table()
        assert (np.asarray(stored.events[name].count) == found.count).all() and np.all(found.count > 0)
        assert again.shape == table.shape and ((again == table) | (table != table)).all()


@pytest.mark.parametrize("digits", [None, 30])
@pytest.mark.parametrize(
    ("kind", "method"),
    [
        ("Lagrangian", "simpson"),
        pytest.param("Lagrangian", "P8N8Q16Gau", marks=pytest.mark.slow),
        ("Lagrangian", "rk4"),
        ("Quadratic", "simpson"),
    ],
)
def test_stored_and_resumed(tmp_path, kind, method, digits):
    path = run(kind, method, digits, every=7)
    same(run(kind, method, digits, every=7, store=tmp_path / "whole.zarr"), path)
    same(la.open(tmp_path / "whole.zarr"), path)
    run(kind, method, digits, steps=23, every=7, store=tmp_path / "parts.zarr")
    la.resume(tmp_path / "parts.zarr", steps=8)
    again = la.resume(tmp_path / "parts.zarr", steps=STEPS - 31)
    same(again, path)
    middle = path.t[-1] / 2
    with path.reals.working():
        assert abs(again(middle) - path(middle)).max() < 1e-14  # its steps are counted from another state


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("digits", [None, 30])
def test_derivatives_and_chosen_degrees_of_freedom(tmp_path, every, digits):
    """Beside events: some of all states, and in float64 the derivatives through the impacts."""
    options = {"tangent": True} if digits is None else {"output": [0]}
    path = run("Lagrangian", "P4N4Q8Gau", digits, every=every, **options)
    stored = run("Lagrangian", "P4N4Q8Gau", digits, steps=20, every=every, store=tmp_path / "run.zarr", **options)
    stored = la.resume(tmp_path / "run.zarr", steps=STEPS - 20)
    same(stored, path)
    if digits is None:
        assert (np.asarray(stored.tangent) == path.tangent).all()


@pytest.mark.parametrize("every", [1, 4, 1000])
@pytest.mark.parametrize(("method", "digits"), [("simpson", None), ("rk4", None), ("simpson", 30)])
def test_a_run_that_an_event_has_stopped(tmp_path, every, method, digits):
    events = EVENTS | {"top": la.Event(lambda q, p: p[0], -1, stop=True, most=2)}
    path = run("Lagrangian", method, digits, every=every, events=events)
    stored = run("Lagrangian", method, digits, every=every, events=events, store=tmp_path / "run.zarr")
    same(stored, path)
    same(la.open(tmp_path / "run.zarr"), path)
    assert stored.standing == "stopped" and stored.t[-1] == path.events["top"].t[-1]
    with pytest.raises(la.StoreError, match="an event has stopped the run"):
        la.resume(tmp_path / "run.zarr", steps=3)


def test_resting_contact(tmp_path):
    events = {"floor": la.Impact(lambda q: q[0], restitution=0.5)}
    with pytest.raises(la.RestingContact) as error:
        run("Lagrangian", "simpson", None, events=events, store=tmp_path / "run.zarr")
    assert error.value.path.events["floor"].count > 10
    stored = la.open(tmp_path / "run.zarr")
    assert stored.standing == "failed"
    assert stored.events["floor"].count == error.value.path.events["floor"].count


def test_trajectories_of_one_chunk_with_unlike_numbers_of_events_at_more_digits(tmp_path):
    """Of eighteen trajectories two share a chunk, and its checkpoint has empty places where one has fewer events."""
    system = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - 0.5 * q[0] ** 2, n=1)
    start = system, "midpoint", np.ones((18, 1)), np.linspace(0, -9, 18)[:, None]
    how = {"h": 0.25, "digits": 20, "events": {"zero": la.Event(lambda q, p: q[0])}}
    paths = la.ensemble(*start, steps=8, **how)
    begun = la.ensemble(*start, steps=2, **how, store=tmp_path / "run.zarr")
    assert set(begun.events["zero"].count) == {0, 1}
    stored = la.resume(tmp_path / "run.zarr", steps=6)
    assert (np.asarray(stored.q) == paths.q).all()
    assert (stored.events["zero"].count == paths.events["zero"].count).all()
    assert (stored.events["zero"].t == paths.events["zero"].t).all()


def on_a_rod(**driven):
    return la.Lagrangian(lambda q, v: 0.5 * (v @ v) - 9.81 * q[1], n=2, constraints=lambda q: (q @ q - 1) / 2, **driven)


AT_A_WALL = {"line": la.Event(lambda q, p: q[0]), "wall": la.Impact(lambda q: q[0] + 0.5, restitution=0.95)}


@pytest.mark.parametrize("method", ["simpson", "P4N4Q8Gau"])
@pytest.mark.parametrize("how", ["alone", "with everything", "in lanes"])
def test_a_constrained_run_in_parts_meets_its_wall_as_the_run_in_one_does(tmp_path, method, how):
    """Events are located by single steps: those after a resume have no step before them."""
    steps, driven, more = 120, {}, {}
    if how == "with everything":
        driven = {"force": lambda q, v, u: u * v[::-1] - 0.01 * v, "inputs": {"u": 1}}
        more = {"inputs": {"u": 0.1 * np.sin(np.arange(float(steps)))[:, None]}, "tangent": True}
    start = on_a_rod(**driven), method, [1.0, 0.0], [0.0, 0.3]
    integrate = la.integrate
    if how == "in lanes":
        start, integrate = (*start[:3], np.linspace([0.0, 0.1], [0.0, 0.9], 5)), la.ensemble
    options = {"h": 0.1, "events": AT_A_WALL, **more}
    path, file = integrate(*start, steps=steps, **options), tmp_path / "run.zarr"
    integrate(*start, steps=15, **options, store=file)
    for _ in range(6):
        la.resume(file, steps=15)
    stored = la.resume(file, steps=15)
    same(stored, path)
    if path.tangent is not None:
        assert (np.asarray(stored.tangent) == path.tangent).all()


def test_a_stiff_sum_in_parts_meets_its_wall_as_the_run_in_one_does(tmp_path):
    """Some of the single steps need derivatives that others do not: each finds that out by itself."""
    n, file = 300, tmp_path / "run.zarr"
    masses = la.Term(lambda q, v: 0.5 * v[0] ** 2 - 0.5 * q[0] ** 2, over=np.arange(n))
    pairs = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    springs = la.Term(lambda q, v: -50 * (q[1] - q[0]) ** 2 - 25 * (q[1] - q[0]) ** 4, over=pairs)
    events = {"line": la.Event(lambda q, p: q[2]), "wall": la.Impact(lambda q: q[0] + 0.3, restitution=0.9)}
    start = la.Lagrangian.sum([masses, springs], n=n), "simpson", 1 + 0.3 * np.sin(np.arange(float(n))), np.zeros(n)
    path = la.integrate(*start, h=0.1, steps=60, events=events)
    la.integrate(*start, h=0.1, steps=10, events=events, store=file)
    for _ in range(4):
        la.resume(file, steps=10)
    same(la.resume(file, steps=10), path)


# ---------------------------------------------------------------------------------------------- kills

SCRIPT = """
import sys
from leastaction.run import archive
from test_stored_events import LONG, run

archive.CHECKPOINT_SECONDS = 0.02
file, kind, method, digits, many = sys.argv[1], *map(eval, sys.argv[2:])
run(kind, method, digits, steps=LONG[digits], every=7, many=many, store=file)
"""
LONG = {None: 1500, 30: 200}
KILLED = [
    (kind, method, digits, many)
    for kind, method in (("Lagrangian", "simpson"), ("Lagrangian", "rk4"), ("Quadratic", "simpson"))
    for digits in (None, 30)
    for many in (False, True)
] + [("Lagrangian", "P4N4Q8Gau", None, False), ("Lagrangian", "yoshida(P1N2Q2Lob)", None, True)]


@pytest.mark.parametrize(
    ("kind", "method", "digits", "many"), rest_slow(KILLED, [("Lagrangian", "simpson", None, False)])
)
def test_killed_and_resumed_bit_for_bit(tmp_path, kind, method, digits, many):
    """Killed at a random moment after the first checkpoint: through impacts, one trajectory and some."""
    file, rng = tmp_path / "run.zarr", generator()
    process = started(SCRIPT, file, *map(repr, (kind, method, digits, many)), folder=Path(__file__).parent)
    wait_for(lambda: list(file.glob("checkpoint/chunk-*")) or process.poll() is not None)
    time.sleep(rng.uniform(0, 0.2))
    process.send_signal(signal.SIGKILL)
    process.wait()
    stored = la.open(file)
    if many or stored.standing != "complete":
        stored = la.resume(file)
    same(stored, run(kind, method, digits, steps=LONG[digits], every=7, many=many))
