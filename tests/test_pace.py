"""Pace: the same orbits in steps of another time, symplectic, reversible, of the method's order."""

from __future__ import annotations

import pickle
import warnings

import mpmath
import numpy as np
import pytest

import leastaction as la
from leastaction.errors import TraceError


def kepler(q, v, k):
    return 0.5 * (v[0] ** 2 + v[1] ** 2) + k / np.sqrt(q[0] ** 2 + q[1] ** 2)


def distance(q):
    return np.sqrt(q[0] ** 2 + q[1] ** 2)


SYSTEM = la.Lagrangian(kepler, n=2, params={"k": 1.0})


def start(e: float) -> dict[str, list[float]]:
    """The pericentre of an orbit with semi-axis one."""
    return {"q0": [1 - e, 0.0], "p0": [0.0, np.sqrt((1 + e) / (1 - e))]}


def exact(e: float, t) -> np.ndarray:
    """Positions by Kepler's equation."""
    mean = np.asarray(t, float)
    low, high = mean - e, mean + e
    for _ in range(80):
        middle = (low + high) / 2
        after = middle - e * np.sin(middle) > mean
        low, high = np.where(after, low, middle), np.where(after, middle, high)
    E = (low + high) / 2
    return np.stack([np.cos(E) - e, np.sqrt(1 - e * e) * np.sin(E)], axis=-1)


@pytest.mark.parametrize("name, order", [("midpoint", 2), ("simpson", 4), ("P3N3Q6Gau", 6), ("P2N3Q6Gau", 4)])
def test_order(name, order):
    e, errors, times = 0.7, [], []
    counts = (200, 400) if order == 2 else (48, 96)
    for count in counts:
        path = la.integrate(SYSTEM, name, **start(e), h=2 * np.pi / count, steps=3 * count // 4, pace=distance)
        errors.append(np.abs(path.q[-1] - exact(e, path.t[-1])).max())
        times.append(abs(path.t[-1] - (1.5 * np.pi + e)))  # dt = r ds: s is the eccentric anomaly
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.2)
    assert np.log2(times[0] / times[1]) == pytest.approx(order, abs=0.2)


def test_comet_in_eighty_steps():
    """Kepler, e = 0.99, ten orbits: position, time, dense output, and the end at a time asked for."""
    e, h = 0.99, 2 * np.pi / 80
    path = la.integrate(SYSTEM, "P8N8Q16Gau", **start(e), h=h, steps=800, pace=distance)
    assert path.t[-1] == pytest.approx(20 * np.pi, abs=1e-11)
    assert np.abs(path.q[-1] - path.q[0]).max() < 1e-12
    assert np.abs(path.p[-1] - path.p[0]).max() < 1e-9  # p changes by 10⁴ in a unit of time there
    until = la.integrate(SYSTEM, "P8N8Q16Gau", **start(e), h=h, t_end=63.0, pace=distance)
    assert until.t[-1] == 63.0
    assert np.abs(until.q[-1] - exact(e, 63.0)).max() < 1e-11
    assert np.array_equal(until.q[:800], path.q[:800])
    t = np.linspace(0, 63, 333)
    assert np.abs(until(t) - exact(e, t)).max() < 1e-9
    assert np.abs(until(until.t[7]) - until.q[7]).max() < 1e-14


def test_dense_output_between_states_that_were_not_kept():
    every = la.integrate(SYSTEM, "P4N4Q8Gau", **start(0.9), h=0.05, t_end=9.0, pace=distance)
    some = la.integrate(SYSTEM, "P4N4Q8Gau", **start(0.9), h=0.05, t_end=9.0, pace=distance, every=13)
    t = np.linspace(0, 9, 200)
    assert np.abs(every(t) - some(t)).max() < 1e-13
    assert some(3.0).shape == (2,)
    assert np.abs(every([0.0, 9.0]) - every.q[[0, -1]]).max() < 1e-11
    with pytest.raises(ValueError, match="the path covers"):
        every(9.1)


def test_symplectic_reversible_momenta_kept():
    path = la.integrate(SYSTEM, "P3N3Q6Gau", **start(0.8), h=0.3, steps=40, pace=distance, tangent=True)
    D = path.tangent[-1]
    J = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.eye(2), np.zeros((2, 2))]])
    assert np.abs(D.T @ J @ D - J).max() < 1e-12 * np.abs(D).max() ** 2
    whole = path.pace.tangent[-1]
    JJ = np.block([[np.zeros((3, 3)), np.eye(3)], [-np.eye(3), np.zeros((3, 3))]])
    assert np.abs(whole.T @ JJ @ whole - JJ).max() < 1e-12 * np.abs(whole).max() ** 2
    run = path.pace  # E is that of the start, not of the state that the method has come to
    back = la.integrate(run.system, "P3N3Q6Gau", q0=run.q[-1], p0=run.p[-1], h=-0.3, steps=40)
    assert np.abs(back.q[-1] - path.q[0]).max() < 1e-12
    assert np.abs(back.p[-1] - path.p[0]).max() < 1e-12
    assert abs(back.t[-1]) < 1e-12
    momentum = path.q[:, 0] * path.p[:, 1] - path.q[:, 1] * path.p[:, 0]
    assert np.abs(momentum - momentum[0]).max() < 1e-14


def test_tangent_is_the_derivative():
    def end(z):
        run = la.integrate(SYSTEM, "simpson", q0=z[:2], p0=z[2:], h=0.2, steps=9, pace=distance)
        return run

    z = np.array([0.5, 0.1, -0.2, 1.5])
    run = la.integrate(SYSTEM, "simpson", q0=z[:2], p0=z[2:], h=0.2, steps=9, pace=distance, tangent="all")
    # With E fixed: what E does by way of the start is a column of the whole derivative.
    whole, small = run.pace.tangent[-1], 1e-6
    gradient = np.array([z[0] / np.hypot(*z[:2]) ** 3, z[1] / np.hypot(*z[:2]) ** 3, z[2], z[3]])
    for k in range(4):
        step = small * np.eye(4)[k]
        left, right = end(z - step), end(z + step)
        found = (np.r_[right.q[-1], right.p[-1], right.t[-1]] - np.r_[left.q[-1], left.p[-1], left.t[-1]]) / (2 * small)
        rows = [0, 1, 3, 4, 5]
        columns = [0, 1, 3, 4]
        wanted = whole[rows, columns[k]] + whole[rows, 2] * gradient[k]
        assert found == pytest.approx(wanted, rel=1e-7, abs=1e-7)
    assert run.tangent[-1] == pytest.approx(whole[np.ix_([0, 1, 3, 4], [0, 1, 3, 4])])
    assert run.sensitivity.shape == (10, 4, 2)


def test_digits_agree_with_float64():
    given = {"h": 0.1, "t_end": 3.0, "pace": distance}
    rough = la.integrate(SYSTEM, "P4N4Q8Gau", **start(0.9), **given)
    fine = la.integrate(SYSTEM, "P4N4Q8Gau", **start(0.9), **given, digits=40)
    assert len(rough) == len(fine)
    assert np.abs(rough.q - fine.q.astype(float)).max() < 1e-12
    assert np.abs(rough.t - fine.t.astype(float)).max() < 1e-13
    assert abs(fine.t[-1] - 3) < mpmath.mpf(10) ** -39
    with mpmath.workdps(45):
        energy = fine.energy()
        assert abs(energy[-1] - energy[0]) < 1e-6
    t = np.array([0.3, 1.7])
    assert np.abs(rough(t) - fine(t).astype(float)).max() < 1e-12


def test_lanes_are_single_runs():
    e = np.linspace(0.1, 0.9, 11)
    q0, p0 = np.stack([1 - e, 0 * e], 1), np.stack([0 * e, np.sqrt((1 + e) / (1 - e))], 1)
    paths = la.ensemble(SYSTEM, "simpson", q0, p0, h=0.05, steps=100, every=10, pace=distance)
    assert paths.t.shape == (11, 11)
    for i in (0, 5, 10):
        one = la.integrate(SYSTEM, "simpson", q0[i], p0[i], h=0.05, steps=100, every=10, pace=distance)
        assert np.abs(paths.q[i] - one.q).max() < 1e-13
        assert np.abs(paths.t[i] - one.t).max() < 1e-13
        assert np.abs(paths[i](1.0) - one(1.0)).max() < 1e-13
    assert paths.end_time == pytest.approx(paths.t[:, -1])
    assert np.ptp(paths.energy(), axis=1).max() < 1e-2
    assert "s = 0 … 5" in repr(paths)
    own = la.ensemble(SYSTEM, "simpson", q0[0], p0[0], params={"k": [0.9, 1.0]}, h=0.05, steps=10, pace=distance)
    assert own[1].params == {"k": 1.0} and own[0].t[-1] != own[1].t[-1]


def test_store_resume_save(tmp_path):
    given = {**start(0.9), "h": 0.05, "pace": distance}
    whole = la.integrate(SYSTEM, "simpson", **given, t_end=9.0, every=3)
    stored = la.integrate(SYSTEM, "simpson", **given, t_end=9.0, every=3, store=tmp_path / "a.zarr")
    assert stored.standing == "complete"
    for path in (stored, la.open(tmp_path / "a.zarr"), stored.in_memory()):
        for name in ("t", "q", "p"):
            assert np.array_equal(np.asarray(getattr(path, name)), getattr(whole, name))
        assert np.array_equal(path([1.0, 5.0]), whole([1.0, 5.0]))
        assert path.events == {}
    with pytest.raises(la.StoreError, match="t_end"):
        la.resume(tmp_path / "a.zarr", steps=3)
    first = la.integrate(SYSTEM, "simpson", **given, steps=50, store=tmp_path / "b.zarr")
    assert len(first) == 51
    with pytest.raises(ValueError, match="with a pace goes on by steps="):
        la.resume(tmp_path / "b.zarr", t_end=9.0)
    more = la.resume(tmp_path / "b.zarr", steps=30)
    once = la.integrate(SYSTEM, "simpson", **given, steps=80)
    assert np.array_equal(np.asarray(more.t), once.t) and np.array_equal(np.asarray(more.q), once.q)
    whole.save(tmp_path / "c.npz")
    again = la.Path.load(tmp_path / "c.npz")
    assert np.array_equal(again.t, whole.t) and np.array_equal(again(4.0), whole(4.0))
    assert pickle.loads(pickle.dumps(whole))(4.0) == pytest.approx(whole(4.0))
    whole.to_csv(tmp_path / "c.csv")


def test_stored_ensembles(tmp_path):
    q0 = np.array([[0.5, 0.0], [0.4, 0.0], [0.3, 0.0]])
    given = {"p0": [0.0, 1.5], "h": 0.05, "pace": distance}
    paths = la.ensemble(SYSTEM, "simpson", q0, **given, steps=20, store=tmp_path / "e.zarr")
    more = la.resume(tmp_path / "e.zarr", steps=10)
    once = la.ensemble(SYSTEM, "simpson", q0, **given, steps=30)
    assert len(paths[0]) == 21
    assert np.array_equal(np.asarray(more.t), once.t) and np.array_equal(np.asarray(more.q), once.q)


def test_output_of_some_coordinates():
    whole = la.integrate(SYSTEM, "simpson", **start(0.5), h=0.1, t_end=2.0, pace=distance)
    some = la.integrate(SYSTEM, "simpson", **start(0.5), h=0.1, t_end=2.0, pace=distance, output=[1])
    assert np.array_equal(some.q, whole.q[:, 1:]) and np.array_equal(some.t, whole.t)
    assert some.output.tolist() == [1]


def test_events_and_impacts_in_time():
    events = {"apocentre": la.Event(lambda t, q, p: q @ p, direction=-1)}
    path = la.integrate(SYSTEM, "P8N8Q16Gau", **start(0.9), h=0.1, t_end=20.0, pace=distance, events=events)
    assert path.events["apocentre"].t == pytest.approx(np.pi * np.array([1, 3, 5]), abs=1e-11)
    assert path.events["apocentre"].q.shape == (3, 2)
    stop = {"time": la.Event(lambda t, q, p: t - 1.25, stop=True)}
    short = la.integrate(SYSTEM, "P8N8Q16Gau", **start(0.9), h=0.1, t_end=20.0, pace=distance, events=stop)
    assert short.t[-1] == pytest.approx(1.25, abs=1e-14)
    fall = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - q[0], n=1)
    wall = {"floor": la.Impact(lambda q: q[0])}
    hop = la.integrate(fall, "P5N5Q10Gau", [1.0], [0.0], h=0.1, t_end=6.0, pace=lambda q: 1 + q[0] ** 2, events=wall)
    t = np.linspace(0, 6, 50)
    flight = np.sqrt(2.0)
    since = (t + flight) % (2 * flight) - flight
    assert hop.events["floor"].t == pytest.approx([flight, 3 * flight], abs=1e-9)
    assert hop(t)[:, 0] == pytest.approx(1 - since**2 / 2, abs=1e-6)
    moving = {"floor": la.Impact(lambda t, q: q[0] - 0.1 * t)}
    with pytest.raises(ValueError, match="must not move"):
        la.integrate(fall, "simpson", [1.0], [0.0], h=0.3, t_end=6.0, pace=lambda q: 1 + q[0] ** 2, events=moving)


def test_energy_comes_back_after_an_encounter():
    path = la.integrate(SYSTEM, "simpson", **start(0.9), h=2 * np.pi / 100, steps=100, pace=distance)
    error = np.abs(path.energy() + 0.5)
    assert error[-1] < 1e-3 * error.max()


@pytest.mark.parametrize(
    "pace, error, message",
    [
        (lambda q: 0.0, ValueError, "σ = 0"),
        (lambda q: -distance(q), ValueError, "positive number everywhere"),
        (lambda q: np.sqrt(q[0] - 1), ValueError, "σ = nan"),
        (lambda q: q, TraceError, "one number"),
        (lambda q: None, TraceError, "return"),
        (lambda q, v: v[0], TraceError, "function σ\\(q\\)"),
        (lambda t, q: t, TraceError, "function σ\\(q\\)"),
        (lambda q, mass: mass, TraceError, "it has none|k"),
        (2.0, TypeError, "pace must be a function"),
        ("fast", (TypeError, ValueError), "pace"),
    ],
)
def test_bad_paces(pace, error, message):
    with pytest.raises(error, match=message), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        la.integrate(SYSTEM, "simpson", **start(0.5), h=0.1, steps=3, pace=pace)


def test_a_pace_that_is_not_positive_on_the_way():
    with pytest.raises(la.StepFailed, match="where the pace σ is not positive") as failed:
        la.integrate(SYSTEM, "midpoint", **start(0.5), h=0.1, steps=400, pace=lambda q: np.where(q[0] > 0, 1, -1))
    assert len(failed.value.path.t) > 1 and failed.value.time > 0


def test_what_a_pace_does_not_go_with():
    given = {"h": 0.1, "steps": 3, "pace": lambda q: 1 + q[0] ** 2}
    driven = la.Lagrangian(lambda t, q, v: v[0] ** 2 / 2 + t * q[0], n=1)
    forced = la.Lagrangian(lambda q, v: v[0] ** 2 / 2, n=1, force=lambda q, v: -v)
    with pytest.raises(ValueError, match="depends on t"):
        la.integrate(driven, "simpson", [1.0], [0.0], **given)
    with pytest.raises(ValueError, match="external forces"):
        la.integrate(forced, "simpson", [1.0], [0.0], **given)
    with pytest.raises(ValueError, match="the same everywhere"):
        la.integrate(la.Quadratic(np.eye(2), np.eye(2)), "simpson", [1.0, 0], [0.0, 0], **given)
    with pytest.raises(ValueError, match="Galerkin family"):
        la.integrate(SYSTEM, "rk4", **start(0.5), **given)
    paced = la.integrate(SYSTEM, "simpson", **start(0.5), **given).pace
    with pytest.raises(ValueError, match="has a pace already"):
        la.integrate(paced.system, "simpson", paced.q[0], paced.p[0], **given)
    with pytest.raises(ValueError, match="steps of its own"):
        la.ensemble(SYSTEM, "simpson", **start(0.5), h=0.1, t_end=1.0, pace=distance)
    with pytest.raises(ValueError, match="reduce="):
        la.ensemble(SYSTEM, "simpson", **start(0.5), **given, reduce={"E": la.EnergyRange()})


def test_pictures(tmp_path):
    path = la.integrate(SYSTEM, "simpson", **start(0.9), h=0.1, t_end=6.0, pace=distance)
    path.to_html(tmp_path / "path.html")
    for what in ("configuration", "energy", "spectrum"):
        path.plot(what)
    assert "by its pace" in repr(path)


def test_automatic_pace_of_a_comet():
    """σ = 1 at the start, and some fifty steps an orbit at e = 0.99, begun at either end of the orbit."""
    for e, most in ((0.99, 50), (-0.99, 230)):
        h = 0.24 * (1 - e) ** 1.5
        path = la.integrate(SYSTEM, "P8N8Q16Gau", **start(e), h=h, t_end=20 * np.pi, pace="auto")
        assert len(path) < 10 * most
        assert path.t[1] / h == pytest.approx(1, abs=0.02)
        assert np.abs(path.q[-1] - path.q[0]).max() < 1e-10
        assert path.params == {"k": 1.0}


def test_automatic_pace_where_frequencies_vanish():
    """A pendulum at rest at 90°, where its potential turns from convex to concave."""
    pendulum = la.problems.get("pendulum", theta0="pi/2")
    path = la.integrate(pendulum.system, "P4N4Q8Gau", pendulum.q0, pendulum.p0, h=0.01, t_end=5.0, pace="auto")
    q, _ = pendulum.exact(path.t)
    assert np.abs(path.q - q).max() < 1e-9
    steps = np.diff(path.t)[:-1]
    assert steps.max() / steps.min() < 5


def test_automatic_pace_of_each_trajectory():
    e = np.array([0.3, 0.9])
    q0, p0 = np.stack([1 - e, 0 * e], 1), np.stack([0 * e, np.sqrt((1 + e) / (1 - e))], 1)
    paths = la.ensemble(SYSTEM, "simpson", q0, p0, h=0.001, steps=10, pace="auto")
    assert paths.t[:, 1] == pytest.approx([0.001, 0.001], rel=1e-2)
    assert paths.values.shape == (2, 1)
    free = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2, n=1)
    with pytest.raises(ValueError, match="it has none there"):
        la.integrate(free, "simpson", [1.0], [0.0], h=0.1, steps=3, pace="auto")
    stars = la.problems.get("pleiades")
    with pytest.raises(ValueError, match="minutes to compile"):
        la.integrate(stars.system, "simpson", stars.q0, stars.p0, h=0.1, steps=3, pace="auto")


def test_automatic_pace_stored_and_at_more_digits(tmp_path):
    given = {**start(0.9), "h": 0.003, "pace": "auto"}
    path = la.integrate(SYSTEM, "P4N4Q8Gau", **given, t_end=2.0)
    stored = la.integrate(SYSTEM, "P4N4Q8Gau", **given, t_end=2.0, store=tmp_path / "auto.zarr")
    assert np.array_equal(np.asarray(stored.t), path.t) and np.array_equal(stored(1.0), path(1.0))
    fine = la.integrate(SYSTEM, "P4N4Q8Gau", **given, t_end=2.0, digits=30)
    assert np.abs(fine.t.astype(float) - path.t).max() < 1e-12
    path.save(tmp_path / "auto.npz")
    for found in (path, stored, la.open(tmp_path / "auto.zarr"), la.Path.load(tmp_path / "auto.npz"), fine):
        unit, energy = (float(path.pace.params[name]) for name in ("σ₀", "W"))
        assert (found.advice.made.unit, found.advice.made.energy) == (unit, energy)
        assert found.advice.chosen.method == "P4N4Q8Gau" and found.advice.chosen.h == 0.003
        assert f"σ₀ = {unit:.6g}, W = {energy:.6g}" in repr(found.advice)
        with pytest.raises(ValueError, match="about the pace alone"):
            found.advice.plot()
    assert la.integrate(SYSTEM, "simpson", **start(0.5), h=0.1, steps=3, pace=distance).advice is None
