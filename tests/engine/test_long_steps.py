"""Long steps, scripts with loops over coordinates, are those of the short forms, where every number is written out."""

import numpy as np
import pytest

import leastaction as la
from leastaction.engine import long_chords, run

METHODS = ["simpson", "stormer-verlet", "P4N4Q8Gau", "P8N8Q16Gau", "P3N4Q6Lob", "midpoint"]


def pendulums(q, v, c):
    return v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * np.cos(q[0] - q[1]) + 2 * np.cos(q[0]) + np.cos(q[1])


def friction(t, q, v, c):
    return np.array([-c * v[0] + c * np.sin(2 * t), -c * v[1]])


def pushed(q, v, c, u):
    return np.array([c * u - c * v[0], 0.0])


def charge(q, v, B):
    return 0.5 * v @ v + 0.5 * B * (q[0] * v[1] - q[1] * v[0]) - 0.1 * (q @ q) ** 2


def coupled(q, v):
    return 0.5 * v @ v + np.sum((1 + 0.1 * np.arange(9)) * np.cos(q)) - 0.5 * np.sum(np.diff(q) ** 2)


def dense(q, v):
    M = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.0]])
    return 0.5 * v @ (M @ v) - np.sum(q**2) - 0.3 * np.sum(q**4)


def stiff(q, v):
    return 0.5 * v @ v - np.sum(np.cos(q)) - 0.5e4 * np.sum(np.diff(q) ** 2)


SYSTEMS = {
    "pendulums": (la.Lagrangian(pendulums, n=2, params={"c": 0.1}, force=friction), [0.6, 0.4], [0.1, 0.0], 0.02),
    "charge": (la.Lagrangian(charge, n=2, params={"B": 2.0}), [1.0, 0.0], [0.0, 1.0], 0.02),
    "coupled": (la.Lagrangian(coupled, n=9), np.linspace(0.3, 0.8, 9), np.zeros(9), 0.02),
    "dense": (la.Lagrangian(dense, n=3), [0.5, 0.2, -0.3], [0.0, 0.1, 0.0], 0.02),
    "stiff": (la.Lagrangian(stiff, n=11), np.sin(np.arange(11.0)) / 100, np.zeros(11), 0.1),
}


@pytest.fixture
def long(monkeypatch):
    """As if every step were too long to be written out."""
    run.engine.cache_clear()
    monkeypatch.setattr(run, "LONGEST", -1)
    monkeypatch.setattr(run, "LONGEST_NEWTON", -1)
    yield
    run.engine.cache_clear()


def both(request, *args, **how):
    """The paths of short forms and of scripts."""
    short = la.integrate(*args, **how)
    request.getfixturevalue("long")
    path = la.integrate(*args, **how)
    return short, path


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SYSTEMS)
def test_scripts_are_the_forms(name, method, request):
    system, q, v, h = SYSTEMS[name]
    if name == "stiff" and not method.endswith("Gau"):
        h = 0.005  # others are unstable with long steps
    short, path = both(request, system, method, q0=q, v0=v, h=h, steps=30)
    assert path.q == pytest.approx(short.q, abs=1e-12) and path.p == pytest.approx(short.p, abs=1e-11)
    assert path([0.3 * h, 4.5 * h])[0] == pytest.approx(short([0.3 * h, 4.5 * h])[0], abs=1e-12)
    assert path.stats["continued"] <= 1


@pytest.mark.parametrize("method", ["simpson", "P4N4Q8Gau"])
def test_derivatives_are_carried(method, request):
    system, q, v, h = SYSTEMS["pendulums"]
    short, path = both(request, system, method, q0=q, v0=v, h=h, steps=20, tangent="all")
    assert path.tangent == pytest.approx(short.tangent, abs=1e-11)
    assert path.sensitivity == pytest.approx(short.sensitivity, abs=1e-11)


def test_inputs_events_and_compositions(request):
    system = la.Lagrangian(pendulums, n=2, params={"c": 0.1}, force=pushed, inputs={"u": ()})
    how = {"q0": [0.6, 0.4], "v0": [0.0, 0.0], "h": 0.02, "steps": 100}
    driven = {**how, "inputs": {"u": np.sin(np.arange(100))}}
    free = SYSTEMS["pendulums"][0]
    composed = la.compose("simpson", "yoshida")
    events = {"down": la.Event(lambda q, p: q[0])}
    short = [la.integrate(system, "simpson", **driven), la.integrate(free, composed, **how)]
    met = la.integrate(free, "P4N4Q8Gau", **how, events=events).events["down"].t
    request.getfixturevalue("long")
    found = [la.integrate(system, "simpson", **driven), la.integrate(free, composed, **how)]
    for one, other in zip(short, found, strict=True):
        assert other.q == pytest.approx(one.q, abs=1e-12)
    assert len(met) and la.integrate(free, "P4N4Q8Gau", **how, events=events).events["down"].t == pytest.approx(met)


def test_resumed_runs_are_those_without_a_pause(tmp_path, long):
    system, q, v, h = SYSTEMS["dense"]
    whole = la.integrate(system, "P4N4Q8Gau", q0=q, v0=v, h=h, steps=40)
    la.integrate(system, "P4N4Q8Gau", q0=q, v0=v, h=h, steps=25, store=tmp_path / "run.zarr")
    assert np.array_equal(la.resume(tmp_path / "run.zarr", steps=15).q[-1], whole.q[-1])


def test_each_trajectory_has_its_own_parameters(long):
    """The work of a script holds parameters and factors: those of one trajectory are not another's."""
    system, q, v, h = SYSTEMS["charge"]
    B = np.array([0.5, 1.0, 2.0, 3.0])
    many = la.ensemble(system, "simpson", q0=q, v0=v, h=h, steps=20, params={"B": B}, threads=2)
    for k, b in enumerate(B):
        assert np.array_equal(many.q[k], la.integrate(system, "simpson", q0=q, v0=v, h=h, steps=20, params={"B": b}).q)


def test_wide_profiles_are_those_of_superlu(monkeypatch):
    """A square of stiff springs, eliminated along its profile and by SuperLU."""
    k = np.arange(64).reshape(8, 8)
    pairs = np.concatenate([np.stack([a.ravel(), b.ravel()], 1) for a, b in ((k[:-1], k[1:]), (k[:, :-1], k[:, 1:]))])
    start = {"q0": np.random.default_rng(0).normal(0, 0.01, 64), "v0": np.zeros(64), "h": 0.1, "steps": 10}

    def path():
        masses = la.Term(lambda q, v: 0.5 * v[0] ** 2 * (1 + 0.01 * q[0] ** 2), over=np.arange(64))
        springs = la.Term(lambda q, v: -0.5e4 * (q[1] - q[0]) ** 2 - 10 * (q[1] - q[0]) ** 4, over=pairs)
        return la.integrate(la.Lagrangian.sum([masses, springs], n=64), "P2N2Q4Gau", **start)

    along = path()
    monkeypatch.setattr(long_chords, "MOST_PRODUCTS", 0.0)
    assert path().q == pytest.approx(along.q, abs=1e-14) and along.stats["continued"] == 0
