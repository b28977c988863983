"""Every combination of arithmetic, system, one or many, memory or archive, and what is kept, works and agrees.

The reference of a combination is the same run in memory, whole: states after every step, without anything else. What
is refused, and why, stands in docs/runs.md.
"""

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


def swing(t, q, v, m):
    return 0.5 * m * (v @ v) + v[0] * v[1] * np.cos(q[0] - q[1]) / 4 + np.cos(q[0]) + np.cos(q[1] - t / 3)


SYSTEMS = {
    "Lagrangian": la.Lagrangian(swing, n=2, params={"m": "3/2"}),
    "Quadratic": la.Quadratic([[2, 1], [1, "3/2"]], [[3, 1], [1, 2]], C=[["1/10", 0], [0, "1/5"]], f=["1/3", "-1/7"]),
}
METHODS = (
    "simpson",
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in ("P3N3Q6Gau", "P2N2Q3RadR", "yoshida(P1N2Q2Lob)", "rk4", "rk4-lagrange")
    ),
)
STEPS, EVERY = 17, 5
KEPT = (
    {"every": EVERY, "output": [1]},
    {"every": EVERY, "tangent": True},
    {"final_only": True},
    {"final_only": True, "tangent": True, "output": [1, 0]},
)
Q0 = [["1/3", "1/5"], ["-1/2", "3/4"], ["1/7", "1"]]


def run(system, method, many, digits, steps=STEPS, **how):
    q0, v0 = (Q0, ["1/10", "1/5"]) if many else (Q0[1], ["1/10", "1/5"])
    if not many and how.pop("final_only", False):
        how["every"] = 10**6  # of one path the first state and the last are kept
    act = la.ensemble if many else la.integrate
    return act(system, method, q0, v0=v0, h="1/10", steps=steps, digits=digits, **how)


def numbers(result, name):
    return np.asarray(getattr(result, name))


def parts(how):
    return ("t", "q", "p", *(("tangent",) if "tangent" in how else ()))


def check(result, whole, how, many, steps=STEPS):
    """The rows and columns of a whole run that this way of keeping it leaves."""
    rows = [steps] if "final_only" in how else [*range(0, steps, how["every"]), steps]
    if "final_only" in how and not many:
        rows = [0, steps]
    dofs = how.get("output", [0, 1])
    for name in parts(how):
        found, expected = numbers(result, name), numbers(whole, name)
        if name == "t":
            assert (found == expected[rows]).all()
            continue
        expected = expected[..., rows, :] if name != "tangent" else expected[..., rows, :, :]
        expected = expected[..., dofs] if name != "tangent" else expected
        assert found.shape == expected.shape
        if name == "tangent" and found.dtype == float:  # powers of one matrix are taken in other steps
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
        else:
            assert (found == expected).all()


def same(one, other, how):
    for name in parts(how):
        a, b = numbers(one, name), numbers(other, name)
        assert a.shape == b.shape and (a == b).all(), name


@pytest.mark.parametrize("method", rest_slow(["simpson", "P3N3Q6Gau", "rk4", "rk4-lagrange"], ["simpson", "rk4"]))
def test_a_run_with_derivatives_has_the_bits_of_one_without(method):
    whole, plain = (run(SYSTEMS["Lagrangian"], method, False, None, tangent=tangent) for tangent in (True, False))
    assert (whole.q == plain.q).all()
    assert (whole.p == plain.p).all()


@pytest.mark.parametrize("digits", [None, 30])
@pytest.mark.parametrize("kind", SYSTEMS)
@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
@pytest.mark.parametrize("method", METHODS)
def test_every_combination(tmp_path, method, many, kind, digits):
    system = SYSTEMS[kind]
    whole = run(system, method, many, digits, tangent=True)
    plain = run(system, method, many, digits)
    assert (numbers(plain, "q")[..., -1, :] == numbers(whole, "q")[..., -1, :]).all() or many
    for number, how in enumerate(KEPT):
        reference = whole if "tangent" in how or not many else plain
        in_memory = run(system, method, many, digits, **how)
        check(in_memory, reference, how, many)
        file = tmp_path / f"{number}.zarr"
        same(run(system, method, many, digits, **how, store=file), in_memory, how)
        same(la.open(file), in_memory, how)
        parted = tmp_path / f"{number}-parts.zarr"
        run(system, method, many, digits, steps=6, **how, store=parted)
        same(la.resume(parted, steps=STEPS - 6), in_memory, how)
        if "output" not in how:
            assert np.isfinite(np.asarray(la.open(parted).energy()).astype(float)).all()


@pytest.mark.parametrize("digits", [None, 30])
@pytest.mark.parametrize("kind", SYSTEMS)
@pytest.mark.parametrize(
    "method", rest_slow(["simpson", "P3N3Q6Gau", "rk4", "rk4-lagrange"], ["simpson", "rk4-lagrange"])
)
def test_many_are_one_and_one_and_one(method, kind, digits):
    """An ensemble's trajectories are those of single runs: to the bit, but for lanes, which round otherwise."""
    system = SYSTEMS[kind]
    paths = run(system, method, True, digits, tangent=True)
    for path, q0 in zip(paths, Q0, strict=True):
        one = la.integrate(system, method, q0, v0=["1/10", "1/5"], h="1/10", steps=STEPS, digits=digits, tangent=True)
        for name in ("t", "q", "p", "tangent"):
            assert (getattr(path, name) == getattr(one, name)).all(), name
    lanes = run(system, method, True, digits)
    close = 1e-13 if digits is None else 0
    assert abs(lanes.q - paths.q).max() <= close and abs(lanes.p - paths.p).max() <= close


# ---------------------------------------------------------------------------------------------- kills

SCRIPT = """
import sys
from leastaction.run import archive
from test_combinations import LONG, SYSTEMS, run

archive.CHECKPOINT_SECONDS = 0.02
file, kind, many, digits = sys.argv[1], sys.argv[2], sys.argv[3] == "True", eval(sys.argv[4])
run(SYSTEMS[kind], "simpson", many, digits, steps=LONG[digits], every=7, tangent=True, store=file)
"""
LONG = {None: 60_000, 30: 900}


@pytest.mark.slow  # some kinds of runs are killed in every run of the tests: store/test_kills.py
@pytest.mark.parametrize("digits", [None, 30])
@pytest.mark.parametrize("kind", SYSTEMS)
@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_killed_and_resumed_bit_for_bit(tmp_path, many, kind, digits):
    """Killed at a random moment after the first checkpoint."""
    file, rng = tmp_path / "run.zarr", generator()
    process = started(SCRIPT, file, kind, many, digits, folder=Path(__file__).parent)
    wait_for(lambda: list(file.glob("checkpoint/chunk-*")) or process.poll() is not None)
    time.sleep(rng.uniform(0.0, 0.3))
    process.send_signal(signal.SIGKILL)
    assert process.wait() in (-signal.SIGKILL, 0)
    how = {"every": 7, "tangent": True}
    whole = run(SYSTEMS[kind], "simpson", many, digits, steps=LONG[digits], **how)
    partial = la.open(file)
    if not many:
        rows = len(partial)
        assert (numbers(partial, "q") == whole.q[:rows]).all() and (
            numbers(partial, "tangent") == whole.tangent[:rows]
        ).all()
    if many or partial.standing != "complete":
        partial = la.resume(file)
    same(partial, whole, how)


@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
@pytest.mark.parametrize("digits", [None, 30])
def test_sensitivities_everywhere(tmp_path, digits, many):
    system = SYSTEMS["Lagrangian"]
    for method in ("simpson", "rk4"):
        path = run(system, method, many, digits, every=4, tangent="all")
        file = tmp_path / f"{method}.zarr"
        run(system, method, many, digits, steps=6, every=4, tangent="all", store=file)
        stored = la.resume(file, steps=STEPS - 6)
        assert path.sensitivity.shape[-2:] == (4, 2)
        assert (np.asarray(stored.sensitivity) == path.sensitivity).all()


EVENTS = {
    "turn": la.Event(lambda q, p: q[1] - 0.76, most=2),
    "wall": la.Impact(lambda q: 1.02 - q[1], restitution=0.9),
    "stop": la.Event(lambda t, q, p: q[0] + q[1] - 1.3 + t / 100, +1, stop=True),
}


@pytest.mark.parametrize("digits", [None, pytest.param(30, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", SYSTEMS)
@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
@pytest.mark.parametrize("method", METHODS)
def test_events_in_every_combination(tmp_path, method, many, kind, digits):
    """In memory, stored, and stored in two parts; an ensemble's are those of its trajectories."""
    system = SYSTEMS[kind]
    kept = [{"every": EVERY}, {"every": 1, "output": [1]}, {"final_only": True}]
    if kind == "Lagrangian":  # through impacts, too; of linear systems below
        kept.append({"every": 2, "tangent": True})
    for number, how in enumerate(kept):
        whole = run(system, method, many, digits, **how, events=EVENTS)
        run(system, method, many, digits, steps=6, **how, events=EVENTS, store=tmp_path / f"{number}.zarr")
        parted = la.resume(tmp_path / f"{number}.zarr", steps=STEPS - 6)
        stored = run(system, method, many, digits, **how, events=EVENTS, store=tmp_path / f"{number}-whole.zarr")
        for other in (parted, stored, la.open(tmp_path / f"{number}.zarr")):
            for one, another in zip(whole, other, strict=True) if many else ((whole, other),):
                same(one, another, how)
            for name, found in whole.events.items():
                assert (np.asarray(found.count) == np.asarray(other.events[name].count)).all()
                a, b = found.table(), other.events[name].table()
                assert a.shape == b.shape and ((a == b) | (a != a)).all()
        if many:
            for i, path in enumerate(whole):
                options = {"h": "1/10", "steps": STEPS, "digits": digits, "events": EVENTS}
                alone = la.integrate(system, method, Q0[i], v0=["1/10", "1/5"], **options)
                close = 1e-12 if digits is None else 0
                assert abs(path.t[-1] - alone.t[-1]) <= close
                for name, found in alone.events.items():
                    assert len(found) == len(path.events[name])
                    assert (abs(found.table() - path.events[name].table()) <= close).all()
    assert np.sum([np.sum(found.count) for found in whole.events.values()]) > 0


STOPS = {"turn": EVENTS["turn"], "stop": la.Event(lambda t, q, p: t - 0.77 + q[0] / 10, stop=True)}


@pytest.mark.parametrize("digits", [None, 30])
@pytest.mark.parametrize("kind", SYSTEMS)
@pytest.mark.parametrize("method", METHODS)
def test_derivatives_beside_events(tmp_path, method, kind, digits):
    """Without walls the derivatives are those of the run without events. At an event that stops the run they are the
    derivatives of the state there by the state at the start, at this fixed time: checked by differences.
    """
    system = SYSTEMS[kind]
    path = run(system, method, False, digits, tangent=True, events=STOPS)
    plain = run(system, method, False, digits, tangent=True)
    steps = len(path) - 2
    assert path.events["stop"].count == 1 and abs(path.tangent[: steps + 1] - plain.tangent[: steps + 1]).max() == 0
    run(system, method, False, digits, steps=3, tangent=True, events=STOPS, store=tmp_path / "run.zarr")
    stored = la.resume(tmp_path / "run.zarr", steps=STEPS - 3)
    assert (np.asarray(stored.tangent) == path.tangent).all()

    tau, state = path.t[-1] - path.t[-2], np.concatenate([path.q[-2], path.p[-2]])
    small = 1e-5 if digits is None else 1e-9
    local = np.linalg.solve(path.tangent[-2].T.astype(float), path.tangent[-1].T.astype(float)).T
    begin = {"h": tau, "t0": path.t[-2], "steps": 1, "digits": digits}
    for j in range(4):
        starts = [state + sign * small * (np.arange(4) == j) for sign in (1, -1)]
        last = [la.integrate(system, method, x[:2], x[2:], **begin) for x in starts]
        ahead, behind = (np.concatenate([one.q[-1], one.p[-1]]).astype(float) for one in last)
        np.testing.assert_allclose(local[:, j], (ahead - behind) / (2 * small), atol=1e-7 * np.abs(local).max())


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"tangent": "all", "kind": "Quadratic"}, "no parameters to vary"),
        ({"allow_unstable": True, "kind": "Lagrangian"}, "is for Quadratic systems"),
        ({"reduce": {"E": la.EnergyRange()}, "kind": "Quadratic"}, "reduce= is for float64 ensembles of Lagrangian"),
        ({"reduce": {"E": la.EnergyRange()}, "kind": "Lagrangian", "digits": 30}, "reduce= is for float64 ensembles"),
        ({"reduce": {"E": la.EnergyRange()}, "kind": "Lagrangian", "tangent": True}, "reduce= is for float64"),
        ({"output": [2], "kind": "Lagrangian"}, "indices below n = 2"),
        ({"tangent": "some", "kind": "Lagrangian"}, "tangent must be True, False or 'all'"),
    ],
)
def test_what_is_refused_says_why(tmp_path, how, message):
    how = dict(how)
    system, digits = SYSTEMS[how.pop("kind")], how.pop("digits", None)
    with pytest.raises(ValueError, match=message):
        run(system, "simpson", True, digits, **how, store=tmp_path / "run.zarr")
    assert not list(tmp_path.iterdir())


def test_a_load_that_is_a_function_cannot_be_stored(tmp_path):
    system = la.Quadratic([1.0], [1.0], f=lambda t: np.array([np.cos(t)]))
    for act in (la.integrate, la.ensemble):
        with pytest.raises(ValueError, match="is a function cannot be saved"):
            act(system, "simpson", [1.0], [0.0], h=0.1, steps=3, store=tmp_path / "run.zarr")
    assert not list(tmp_path.iterdir())
