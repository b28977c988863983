"""Pace: the same orbits in steps of another time, symplectic, reversible, of the method's order."""

from __future__ import annotations

import pickle
import re
import warnings

import mpmath
import numpy as np
import pytest

import leastaction as la
import leastaction.run.plan
from leastaction.errors import TraceError
from leastaction.numbers.rounding import FLOAT64
from leastaction.systems.pace import OWN, paced
from systems import catalogued
from thrift import rest_slow


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


@pytest.mark.parametrize("name, order", [("P4N4Q8Gau", 8), ("P4N4Q6Lob", 6), ("P5N5Q10Gau", 10), ("P6N7Q12Lob", 12)])
def test_order_beyond_float64(name, order):
    """Higher orders need digits: 60, on an exact ellipse, at the time that the run has come to.

    Not with σ = |q|, for which the equations of an ellipse are linear, and orders are seen later.
    """
    problem, errors = la.problems.get("kepler", eccentricity="1/2"), []
    for count in (24, 48):
        path = la.integrate(
            problem.system, name, problem.exact_q0, problem.exact_p0, h=f"2*pi/{count}", steps=count // 4,
            pace=lambda q: distance(q) ** 1.5, digits=60,
        )  # fmt: skip
        with mpmath.workdps(60):
            errors.append(float(max(abs(path.q[-1] - problem.exact(path.t[-1], digits=60)[0]))))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.2)


def truth(given: dict[str, list[float]], t) -> np.ndarray:
    """Positions on the orbit of these very floats, from Kepler's equation with 40 digits."""
    problem = la.problems.get("kepler", q0=tuple(given["q0"]), p0=tuple(given["p0"]))
    with mpmath.workdps(40):
        return np.array([problem.exact(mpmath.mpf(float(x)), digits=40)[0].astype(float) for x in np.atleast_1d(t)])


def test_comet_in_eighty_steps():
    """Kepler, e = 0.99, ten orbits: position, time, dense output, and the end at a time asked for."""
    e, h = 0.99, 2 * np.pi / 80
    path = la.integrate(SYSTEM, "P8N8Q16Gau", **start(e), h=h, steps=800, pace=distance)
    assert path.t[-1] == pytest.approx(20 * np.pi, abs=5e-12)  # the floats of the start are not quite those of e
    assert np.abs(path.q[-1] - path.q[0]).max() < 5e-13
    assert np.abs(path.p[-1] - path.p[0]).max() < 5e-10  # 3e-11: the orbit turns by rounding, and p is quick there
    until = la.integrate(SYSTEM, "P8N8Q16Gau", **start(e), h=h, t_end=63.0, pace=distance)
    assert until.t[-1] == 63.0
    assert np.abs(until.q[-1] - truth(start(e), 63.0)).max() < 1e-12
    assert np.array_equal(until.q[:800], path.q[:800])
    t = np.linspace(0, 63, 84)
    assert np.abs(until(t) - truth(start(e), t)).max() < 3e-12
    assert np.abs(until(until.t[7]) - until.q[7]).max() < 1e-14


@pytest.mark.parametrize("method", ["midpoint", "P3N3Q6Gau", "P8N8Q16Gau"])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_last_step_is_a_shorter_one(method, sign):
    """Forwards and backwards: the loop looks for the end by itself, and the run ends as one with more events does."""
    given = {**start(0.5), "h": sign * 0.05, "t_end": sign * 2.3, "pace": distance}
    path = la.integrate(SYSTEM, method, **given)
    assert path.t[-1] == given["t_end"]
    never = {"never": la.Event(lambda q, p: q[0] - 100.0)}
    other = la.integrate(SYSTEM, method, **given, events=never)
    np.testing.assert_allclose(path.q, other.q, rtol=0, atol=1e-15)
    np.testing.assert_allclose(path.p, other.p, rtol=0, atol=2e-15)
    np.testing.assert_allclose(path.t, other.t, rtol=0, atol=1e-15)
    assert path.stats["steps"] == other.stats["steps"] == len(path.t) - 2


@pytest.mark.parametrize(
    ("how", "h"), [("alone", 0.07), ("alone", -0.07), ("beside an event", -0.07), ("in lanes", 0.07)]
)
def test_a_run_may_end_where_a_step_does(h, how):
    """By rounding a step may end just before the end of the run, and the next one begin behind it: such ends were
    missed, and the runs went on for a million steps.
    """
    method, given = "P6N6Q12Gau", {**start(0.6), "h": h, "pace": distance}
    many = {"q0": [given["q0"]] * 2, "p0": [given["p0"]] * 2, "h": h, "pace": distance}
    free = la.integrate(SYSTEM, method, **given, steps=40)
    times = la.ensemble(SYSTEM, method, **many, steps=40).t[0] if how == "in lanes" else free.t
    events = {"never": la.Event(lambda q, p: q[0] - 100.0)} if how == "beside an event" else None
    for k in range(1, 40, 3 if events else 1):
        for t_end in times[k], np.nextafter(times[k], np.inf), np.nextafter(times[k], -np.inf):
            if how == "in lanes":
                assert len(la.ensemble(SYSTEM, method, **many, t_end=t_end).q[0]) in (k, k + 1)
                continue
            path = la.integrate(SYSTEM, method, **given, t_end=t_end, events=events)
            assert abs(path.t[-1] - t_end) <= 2 * np.spacing(abs(t_end)) and len(path.t) in (k + 1, k + 2)
            np.testing.assert_allclose(path.q[-1], free.q[k], rtol=0, atol=1e-14)


def test_dense_output_between_states_that_were_not_kept():
    every = la.integrate(SYSTEM, "P4N4Q8Gau", **start(0.9), h=0.05, t_end=9.0, pace=distance)
    some = la.integrate(SYSTEM, "P4N4Q8Gau", **start(0.9), h=0.05, t_end=9.0, pace=distance, every=13)
    t = np.linspace(0, 9, 200)
    assert np.abs(every(t) - some(t)).max() < 1e-13
    assert some(3.0).shape == (2,)
    assert np.abs(every([0.0, 9.0]) - every.q[[0, -1]]).max() < 1e-12  # 3e-13: roundings of t = 9, times the speed
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
    # E is fixed here: the effect of the start through E is a column of the whole derivative.
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
    with pytest.raises(ValueError, match="has come to its t_end"):  # as other runs that have done what was planned
        la.resume(tmp_path / "a.zarr")
    first = la.integrate(SYSTEM, "simpson", **given, steps=50, store=tmp_path / "b.zarr")
    assert len(first) == 51
    with pytest.raises(ValueError, match="with a pace can be continued with steps="):
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
        (lambda t, q: t, ValueError, "σ = 0"),
        (lambda t, v: t, TraceError, "function σ\\(q\\)"),
        (lambda q, mass: mass, TraceError, "it has none|k"),
        (2.0, TypeError, "pace must be a function"),
        ("fast", (TypeError, ValueError), "pace"),
    ],
)
def test_bad_paces(pace, error, message):
    with pytest.raises(error, match=message), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        la.integrate(SYSTEM, "simpson", **start(0.5), h=0.1, steps=3, pace=pace)


@pytest.mark.parametrize("more", [{}, {"digits": 20}, {"forced": True}], ids=["float64", "digits", "forced"])
@pytest.mark.parametrize(
    ("pace", "name", "value"),
    [
        (lambda q: np.where(q[0] > 0, 1, -1), "midpoint", "-1"),
        (lambda q: np.sqrt(1.1 - distance(q)), "P4N4Q8Gau", "nan"),
        (lambda q: 1 / q[0], "P4N4Q8Gau", r"-[\d.]+"),
    ],
)
def test_a_pace_that_is_not_positive_on_the_way(pace, name, value, more):
    """The pace comes first, with the place and the value there; then the step that failed."""
    system, options = (FORCED, {}) if "forced" in more else (SYSTEM, more)
    wanted = rf"^the pace must be a positive number .* t ≈ ([\d.]+), q ≈ \[([^]]*)\], it is σ = {value}\. Give a pace"
    with pytest.raises(la.StepFailed, match=wanted) as failed:
        la.integrate(system, name, **start(0.5), h=0.1, steps=400, pace=pace, **options)
    t, q = re.match(wanted, str(failed.value)).groups()
    assert float(t) > failed.value.time > 0 and len(failed.value.path.t) > 1
    with np.errstate(invalid="ignore"):
        assert not pace(np.array(q.split(), float)) > 0


def test_a_step_that_fails_where_the_pace_is_positive():
    """A collision: the pace is not named as the cause."""
    with pytest.raises(la.StepFailed, match=r"^step .* could not be solved"):
        la.integrate(SYSTEM, "simpson", [1.0, 0.0], [0.0, 0.0], h=0.5, steps=50, pace=lambda q: 1 + q @ q)


@pytest.mark.parametrize(
    ("pace", "roots"),
    [
        (distance, 1),
        (lambda q: 1 / (1 / distance(q) + 2.0), 0),
        (lambda q: np.sqrt(1 + q[0] * q[0]) * distance(q) ** 2, 1),
        (lambda q: distance(q) - 0.1, 2),
        (lambda q: 2 + q[0], 1),
    ],
)
def test_the_form_of_a_pace_may_tell_its_sign(pace, roots):
    """A root makes NaN of a negative σ; none is taken where σ cannot be negative."""
    program = paced(SYSTEM, pace, FLOAT64).program
    assert sum(op == "sqrt" for op, *_ in program.code) == roots


def slowing(q):
    return (q[0] - 0.5) ** 4


VANISHING = {"q0": [1.0, 0.0], "v0": [0.0, 1.0], "h": 0.1, "t_end": 3.0, "pace": slowing}


def test_time_that_stands_still():
    """Where a pace has a zero of higher order the motion never comes to it: the run ends, and says why."""
    with pytest.raises(la.StepFailed, match="time stands still") as failed:
        la.integrate(SYSTEM, "simpson", **VANISHING, every=10_000)
    path = failed.value.path
    assert 1 < path.t[-1] < 1.05 and path.stats["steps"] >= 2**20
    E = path.energy()
    assert np.abs(E - E[0]).max() < 1e-3


def test_time_that_stands_still_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(leastaction.run.plan, "AT_LEAST", 1000)
    monkeypatch.setattr(leastaction.run.plan, "AT_MOST", 1)
    for more in ({"store": tmp_path / "run"}, {"digits": 20}):
        with pytest.raises(la.StepFailed, match=r"after 1000 steps .* time stands still"):
            la.integrate(SYSTEM, "simpson", **VANISHING, **more)
    assert la.open(tmp_path / "run").standing == "failed"
    assert len(la.resume(tmp_path / "run", steps=10)) == 1011
    v0 = [[0.0, 1.0], [0.5, 1.0], [0.0, 1.2]]
    for more in ({}, {"store": tmp_path / "many"}):
        paths = la.ensemble(SYSTEM, "simpson", **VANISHING | {"v0": v0, "t_end": 2.0}, **more)
        assert paths.failed.tolist() == [True, False, True] and paths.end_time[1] == 2
    assert la.open(tmp_path / "many").failed.tolist() == [True, False, True]


def test_what_a_pace_does_not_go_with():
    given = {"h": 0.1, "steps": 3, "pace": lambda q: 1 + q[0] ** 2}
    with pytest.raises(ValueError, match="the same everywhere"):
        la.integrate(la.Quadratic(np.eye(2), np.eye(2)), "simpson", [1.0, 0], [0.0, 0], **given)
    with pytest.raises(ValueError, match="Galerkin family"):
        la.integrate(SYSTEM, "rk4", **start(0.5), **given)
    paced = la.integrate(SYSTEM, "simpson", **start(0.5), **given).pace
    with pytest.raises(ValueError, match="has a pace already"):
        la.integrate(paced.system, "simpson", paced.q[0], paced.p[0], **given)
    with pytest.raises(ValueError, match="reduce="):
        la.ensemble(SYSTEM, "simpson", **start(0.5), **given, reduce={"E": la.EnergyRange()})


def test_pictures(tmp_path):
    path = la.integrate(SYSTEM, "simpson", **start(0.9), h=0.1, t_end=6.0, pace=distance)
    path.to_html(tmp_path / "path.html")
    for what in ("configuration", "energy", "spectrum"):
        path.plot(what)
    assert "by its pace" in repr(path)


def test_automatic_pace_of_a_comet():
    """σ = 1 at the start, and some fifty steps an orbit at e = 0.99, begun at either end of the orbit.

    At the far end the error is a rounding of E, on which the period depends: with sixty e from 0.985 to 0.991 its
    median was 2 to 3·10⁻¹², the largest 10⁻¹¹.
    """
    for e, most, error in ((0.99, 50, 2e-12), (-0.99, 230, 5e-12)):
        errors = []
        for near in e + 1e-4 * np.arange(-3, 4):
            h = 0.24 * (1 - near) ** 1.5
            path = la.integrate(SYSTEM, "P8N8Q16Gau", **start(near), h=h, t_end=20 * np.pi, pace="auto")
            assert len(path) < 10 * most
            assert path.t[1] / h == pytest.approx(1, abs=0.02)
            assert path.params == {"k": 1.0}
            errors.append(np.abs(path.q[-1] - truth(start(near), path.t[-1])).max())
        assert np.median(errors) < error and max(errors) < 10 * error


def test_automatic_pace_where_frequencies_vanish():
    """A pendulum at rest at 90°, where its potential turns from convex to concave."""
    pendulum = la.problems.get("pendulum", theta0="pi/2")
    path = la.integrate(pendulum.system, "P4N4Q8Gau", pendulum.q0, pendulum.p0, h=0.01, t_end=5.0, pace="auto")
    q, _ = pendulum.exact(path.t)
    assert np.abs(path.q - q).max() < 3e-12
    steps = np.diff(path.t)[:-1]
    assert 2.0 < steps.max() / steps.min() < 2.5  # where the forces vanish, and where the frequency does


def test_automatic_pace_of_each_trajectory():
    e = np.array([0.3, 0.9])
    q0, p0 = np.stack([1 - e, 0 * e], 1), np.stack([0 * e, np.sqrt((1 + e) / (1 - e))], 1)
    paths = la.ensemble(SYSTEM, "simpson", q0, p0, h=0.001, steps=10, pace="auto")
    assert paths.t[:, 1] == pytest.approx([0.001, 0.001], rel=1e-2)
    assert paths.values.shape == (2, 1)
    free = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2, n=1)
    with pytest.raises(ValueError, match="L has no frequency at"):
        la.integrate(free, "simpson", [1.0], [0.0], h=0.1, steps=3, pace="auto")
    stars = catalogued("pleiades")
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
        unit, energy = (float(path.pace.params[name]) for name in OWN)
        assert (found.advice.made.unit, found.advice.made.energy) == (unit, energy)
        assert found.advice.chosen.method == "P4N4Q8Gau" and found.advice.chosen.h == 0.003
        assert f"σ₀ = {unit:.6g}, W = {energy:.6g}" in repr(found.advice)
        with pytest.raises(ValueError, match="about the pace alone"):
            found.advice.plot()
    assert la.integrate(SYSTEM, "simpson", **start(0.5), h=0.1, steps=3, pace=distance).advice is None


# Where the energy changes, the time is a coordinate and −E its momentum.


def driven(t, q, v):
    return 0.5 * (v[0] ** 2 + v[1] ** 2) + (1 + 0.1 * np.sin(2 * t)) / np.sqrt(q[0] ** 2 + q[1] ** 2)


def drag(t, q, v, k):
    return -0.02 * v + 0.01 * np.sin(t) * q


DRIVEN = la.Lagrangian(driven, n=2)
FORCED = la.Lagrangian(kepler, n=2, params={"k": 1.0}, force=drag)
BOTH = [pytest.param(DRIVEN, id="explicit time"), pytest.param(FORCED, id="forced")]
CHANGING = pytest.mark.parametrize("system", BOTH)
# The same of both, as what follows from time as a coordinate: one kind in every run.
ONE_KIND = pytest.mark.parametrize("system", [BOTH[0], pytest.param(FORCED, id="forced", marks=pytest.mark.slow)])


@CHANGING
@pytest.mark.parametrize(
    "name, order", rest_slow([("midpoint", 2), ("simpson", 4), ("P3N3Q6Gau", 6)], [("simpson", 4)])
)
def test_order_where_the_energy_changes(system, name, order):
    """Against many equal steps: position, time and −E, at the end and between."""
    given = {**start(0.7), "t_end": 5.0}
    exact = la.integrate(system, "P8N8Q16Gau", **given, h=0.005)
    errors = []
    for count in (200, 400) if order == 2 else (96, 192):
        path = la.integrate(system, name, **given, h=2 * np.pi / count, pace=distance)
        assert path.t[-1] == 5.0
        between = np.abs(path([1.0, 3.0]) - exact([1.0, 3.0])).max() if order == 2 else 0.0
        energy = np.abs(path.energy()[-1] - exact.energy()[-1])
        errors.append([np.abs(path.q[-1] - exact.q[-1]).max(), energy, between])
    errors = np.array(errors)
    assert np.log2(errors[0, :2] / errors[1, :2]) == pytest.approx([order, order], abs=0.2)
    if order == 2:
        assert errors[0, 2] / errors[1, 2] > 3


@ONE_KIND
def test_few_steps_where_the_energy_changes(system):
    """e = 0.9, a time of 10: sixty steps of order 16 do what thirty thousand equal ones do."""
    given = {**start(0.9), "t_end": 10.0}
    exact = la.integrate(system, "P8N8Q16Gau", **given, h=1 / 3000, every=10)
    t = np.linspace(0, 10, 99)
    for pace, h in ((distance, 0.1), ("auto", 0.01), (lambda t, q: distance(q) * (1 + 0.1 * np.sin(t)), 0.1)):
        path = la.integrate(system, "P8N8Q16Gau", **given, h=h, pace=pace)
        assert len(path) < 150 and path.t[-1] == 10.0
        assert np.abs(path.q[-1] - exact.q[-1]).max() < 1e-11
        assert np.abs(path(t) - exact(t)).max() < 1e-9
        assert np.abs(path.energy() + path.pace.p[:, -1]).max() < 1e-9  # −E is followed as the momentum of t


@ONE_KIND
def test_all_that_goes_with_it_where_the_energy_changes(system, tmp_path):
    given = {**start(0.8), "h": 0.1, "pace": distance}
    path = la.integrate(system, "P4N4Q8Gau", **given, t_end=3.0, tangent=True)
    fine = la.integrate(system, "P4N4Q8Gau", **given, t_end=3.0, digits=30)
    assert np.abs(path.q - fine.q.astype(float)).max() < 1e-13 and np.abs(path.t - fine.t.astype(float)).max() < 1e-13
    assert np.abs(path([1.0, 2.5]) - fine([1.0, 2.5]).astype(float)).max() < 1e-13
    stored = la.integrate(system, "P4N4Q8Gau", **given, t_end=3.0, store=tmp_path / "a.zarr")
    path.save(tmp_path / "a.npz")
    for found in (stored, la.open(tmp_path / "a.zarr"), la.Path.load(tmp_path / "a.npz")):
        assert np.array_equal(np.asarray(found.t), path.t) and np.array_equal(found([0.5, 2.0]), path([0.5, 2.0]))
    first = la.integrate(system, "P4N4Q8Gau", **given, steps=10, store=tmp_path / "b.zarr")
    assert len(first) == 11
    more, once = la.resume(tmp_path / "b.zarr", steps=5), la.integrate(system, "P4N4Q8Gau", **given, steps=15)
    assert np.array_equal(np.asarray(more.q), once.q) and np.array_equal(np.asarray(more.t), once.t)
    events = {"apocentre": la.Event(lambda t, q, p: q @ p, direction=-1)}
    seen = la.integrate(system, "P4N4Q8Gau", **given, t_end=9.0, events=events)
    equal = la.integrate(system, "P8N8Q16Gau", **start(0.8), h=0.002, t_end=9.0, events=events)
    assert seen.events["apocentre"].t == pytest.approx(equal.events["apocentre"].t, abs=1e-8)
    back = la.integrate(system, "P4N4Q8Gau", seen.q[-1], seen.p[-1], h=-0.1, t0=9.0, t_end=0.0, pace=distance)
    assert abs(back.t[-1]) < 1e-15 and np.abs(back.q[-1] - seen.q[0]).max() < 1e-6
    whole = path.pace.tangent[-1]
    small, columns = 1e-6, []
    for k in range(4):
        z = np.r_[given["q0"], given["p0"]]
        ends = []
        for sign in (1, -1):
            shifted = z + sign * small * np.eye(4)[k]
            run = la.integrate(system, "P4N4Q8Gau", shifted[:2], shifted[2:], h=0.1, steps=9, pace=distance)
            ends.append(np.r_[run.q[-1], run.p[-1], run.t[-1]])
        columns.append((ends[0] - ends[1]) / (2 * small))
    carried = la.integrate(system, "P4N4Q8Gau", **given, steps=9, tangent=True).pace.tangent[-1]
    gradient = np.r_[z[:2] / np.hypot(*z[:2]) ** 3, z[2:]]  # of E, the start of −p_t
    rows = [0, 1, 3, 4, 2]
    wanted = carried[np.ix_(rows, [0, 1, 3, 4])] - np.outer(carried[rows, 5], gradient)
    assert np.abs(np.array(columns).T - wanted).max() < 1e-6 * np.abs(wanted).max()
    if system is DRIVEN:
        J = np.block([[np.zeros((3, 3)), np.eye(3)], [-np.eye(3), np.zeros((3, 3))]])
        assert np.abs(whole.T @ J @ whole - J).max() < 1e-12 * np.abs(whole).max() ** 2


def test_lanes_where_the_energy_changes():
    q0 = np.stack([np.linspace(0.1, 0.3, 9), np.zeros(9)], 1)  # the far ones leave: E > 0
    p0 = start(0.9)["p0"]
    paths = la.ensemble(FORCED, "P3N3Q6Gau", q0, p0, h=0.05, steps=60, every=10, pace=distance)
    for i in (0, 3, 8):
        one = la.integrate(FORCED, "P3N3Q6Gau", q0[i], p0, h=0.05, steps=60, every=10, pace=distance)
        assert paths.q[i] == pytest.approx(one.q, rel=1e-11, abs=1e-13)
        assert paths.t[i] == pytest.approx(one.t, rel=1e-11, abs=1e-13)
        assert np.abs(paths.energy()[i] - one.energy()).max() < 1e-11


def test_work_along_a_pace():
    friction = la.Lagrangian(kepler, n=2, params={"k": 1.0}, force=lambda q, v, k: -0.05 * v)
    path = la.integrate(friction, "P8N8Q16Gau", **start(0.8), h=0.1, t_end=4.0, pace=distance)
    equal = la.integrate(friction, "P8N8Q16Gau", **start(0.8), h=0.005, t_end=4.0)
    assert path.work()[-1] == pytest.approx(equal.work()[-1], abs=1e-11)
    assert np.abs(path.energy() - path.energy()[0] - path.work()).max() < 1e-9
    with pytest.raises(ValueError, match="neither L nor σ depends on t"):
        la.integrate(
            friction, "simpson", **start(0.8), h=0.1, steps=3, pace=lambda t, q: distance(q) * (2 + np.sin(t))
        ).work()


def test_constraints_with_a_pace():
    """A pendulum in the plane whose rod changes its length: order six, on the constraint to rounding."""
    system = la.Lagrangian(
        lambda q, v: 0.5 * (v @ v) - q[1], n=2, constraints=lambda t, q: (q @ q - (1 + 0.1 * np.sin(t)) ** 2) / 2
    )
    given = {"q0": [0.6, -0.8], "v0": [0.06, -0.08], "t_end": 5.0}
    exact, errors = la.integrate(system, "P6N6Q12Gau", **given, h=0.02), []
    for h in (0.1, 0.05):
        path = la.integrate(system, "P3N3Q6Gau", **given, h=h, pace=lambda q: 1 + q[0] ** 2)
        errors.append(np.abs(path.q[-1] - exact.q[-1]).max())
        assert np.abs(np.sum(path.q**2, axis=1) - (1 + 0.1 * np.sin(path.t)) ** 2).max() < 1e-14
        assert path.multipliers[-1] == pytest.approx(exact.multipliers[-1], abs=1e-7)
    assert np.log2(errors[0] / errors[1]) == pytest.approx(6, abs=0.2)
    with pytest.raises(ValueError, match="without constraints"):
        la.integrate(system, "simpson", **given, h=0.1, pace="auto")


def test_a_wall_that_moves_along_a_pace():
    """A ball between a floor and a piston, elastic: with σ(t, q) the time is a coordinate, and the wall may move."""
    free = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2, n=1)
    walls = {"floor": la.Impact(lambda q: q[0]), "piston": la.Impact(lambda t, q: 1 - 0.1 * t - q[0])}
    # At t = 3 the ball meets the piston again; a run that ends there has an impact or has none, by the error of a step.
    equal = la.integrate(free, "P4N4Q8Gau", [0.5], [1.0], h=0.01, t_end=3.1, events=walls)
    pace = la.integrate(
        free, "P4N4Q8Gau", [0.5], [1.0], h=0.03, t_end=3.1, events=walls, pace=lambda t, q: 1 + 0.5 * q[0] + 0.1 * t
    )
    assert pace.events["piston"].t == pytest.approx(equal.events["piston"].t, abs=1e-10)
    assert np.array([pace.q[-1], pace.p[-1]]) == pytest.approx(np.array([equal.q[-1], equal.p[-1]]), abs=1e-9)
    lossy = {"floor": la.Impact(lambda q: q[0], restitution=0.5)}
    with pytest.raises(ValueError, match="elastic"):
        la.integrate(free, "simpson", [0.5], [-1.0], h=0.01, t_end=3.0, events=lossy, pace=lambda q: 1 + q[0] ** 2)


def test_names_of_parameters_are_free():
    """A system may call its own parameters as a pace does."""
    own = la.Lagrangian(lambda q, v, W: 0.5 * (v[0] ** 2 + v[1] ** 2) + W / distance(q), n=2, params={"W": 1.0})
    path = la.integrate(own, "simpson", **start(0.5), h=0.1, steps=9, pace="auto", params={"W": 1.5})
    other = la.integrate(SYSTEM, "simpson", **start(0.5), h=0.1, steps=9, pace="auto", params={"k": 1.5})
    assert path.params == {"W": 1.5} and np.array_equal(path.q, other.q)


def orbits(count: int) -> dict[str, np.ndarray]:
    e = np.linspace(0.1, 0.95, count)
    return {"q0": np.stack([1 - e, 0 * e], 1), "p0": np.stack([0 * e, np.sqrt((1 + e) / (1 - e))], 1)}


@pytest.mark.parametrize("method", rest_slow(["simpson", "P8N8Q16Gau"], ["simpson"]))
def test_ensembles_until_a_time(method, tmp_path):
    """Each trajectory comes to t_end after another number of steps, in lanes, on threads, stored: all end there."""
    starts = orbits(21)
    events = {"apocentre": la.Event(lambda t, q, p: q @ p, direction=-1), "late": la.Event(lambda t, q, p: t - 5.0)}
    given = {"h": 0.03, "t_end": 20.0, "pace": distance, "every": 3, "events": events}
    paths = la.ensemble(SYSTEM, method, **starts, **given)
    assert (paths.end_time == 20.0).all() and not paths.status.any() and len(set(paths.steps.tolist())) > 1
    assert paths.events["late"].t == pytest.approx(np.full((21, 1), 5.0), abs=1e-14)
    assert paths.events["late"].q.shape == (21, 1, 2)
    for i in (0, 13, 20):
        one = la.integrate(SYSTEM, method, starts["q0"][i], starts["p0"][i], **given)
        path = paths[i]
        assert len(path) == len(one) and path.t[-1] == 20.0
        assert np.abs(path.q - one.q).max() < 2e-13 and np.abs(path.t - one.t).max() < 2e-13
        assert np.abs(paths.last["q"][i] - one.q[-1]).max() < 2e-13
        assert np.abs(path([1.0, 17.0]) - one([1.0, 17.0])).max() < 2e-13
        assert np.abs(path.events["apocentre"].t - one.events["apocentre"].t).max() < 1e-12
    last = la.ensemble(SYSTEM, method, **starts, **(given | {"every": 1}), final_only=True, threads=2)
    assert np.array_equal(last.q[:, 0], paths.last["q"])
    stored = la.ensemble(SYSTEM, method, **starts, **given, store=tmp_path / "e.zarr")
    for found in (stored, la.open(tmp_path / "e.zarr")):
        for name in ("q", "p", "t"):
            assert np.array_equal(np.asarray(getattr(found, name)), getattr(paths, name), equal_nan=True)
        assert np.array_equal(found.last["q"], paths.last["q"]) and not found.status.any()
        assert np.array_equal(found.events["apocentre"].t, paths.events["apocentre"].t, equal_nan=True)
    with pytest.raises(la.StoreError, match="end at their t_end"):
        la.resume(tmp_path / "e.zarr", steps=5)
    with pytest.raises(ValueError, match="or to the t_end that it was begun with"):
        la.resume(tmp_path / "e.zarr", t_end=30.0)


def test_ensembles_until_a_time_in_other_ways():
    """At more digits, with tangent maps, where the energy changes, with one that fails, stopped and thrown back."""
    starts = orbits(5)
    fine = la.ensemble(SYSTEM, "simpson", **starts, h=0.2, t_end=2.0, pace=distance, digits=25)
    rough = la.ensemble(SYSTEM, "simpson", **starts, h=0.2, t_end=2.0, pace=distance, tangent=True)
    for a, b in zip(fine, rough, strict=True):
        assert np.abs(a.q.astype(float) - b.q).max() < 1e-12 and float(a.t[-1]) == b.t[-1] == 2.0
    forced = la.ensemble(FORCED, "P4N4Q8Gau", **starts, h=0.1, t_end=4.0, pace=distance)
    one = la.integrate(FORCED, "P4N4Q8Gau", starts["q0"][2], starts["p0"][2], h=0.1, t_end=4.0, pace=distance)
    assert forced.end_time == pytest.approx(np.full(5, 4.0), abs=1e-15)
    assert np.abs(forced[2].q - one.q).max() < 1e-12
    stop = {"out": la.Event(lambda q, p: q @ q - 1.2**2, stop=True)}
    ended = la.ensemble(SYSTEM, "P4N4Q8Gau", **starts, h=0.1, t_end=4.0, pace=distance, events=stop)
    assert ended.status.tolist() == [0, *[5] * 4] or (ended.end_time < 4.0).sum() == 4
    fall = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - q[0], n=1)
    wall = {"floor": la.Impact(lambda q: q[0])}
    hops = la.ensemble(
        fall, "P5N5Q10Gau", [[1.0], [0.5]], [0.0], h=0.1, t_end=6.0, pace=lambda q: 1 + q[0] ** 2, events=wall
    )
    assert hops.events["floor"].t[0, :2] == pytest.approx(np.sqrt(2.0) * np.array([1, 3]), abs=1e-9)
    assert hops.events["floor"].count.tolist() == [2, 3]


def test_a_passive_event_ends_no_run_that_goes_on_without_it():
    """A pendulum on a rod that begins slowly: at its lowest point the kinetic energy is 200 times that of the start,
    and the velocities there were not found, by which the crossing of x = 0 is located.
    """
    rod = la.Lagrangian(lambda q, v: 0.5 * (v @ v) - 9.81 * q[1], n=2, constraints=lambda q: q @ q - 1)
    run = {"q0": [1.0, 0.0], "p0": [0.0, 0.3], "h": 0.02, "t_end": 30}
    run["pace"] = lambda q: 1 / (2 + q[1])
    plain = la.integrate(rod, "simpson", **run)
    path = la.integrate(rod, "simpson", **run, events={"x": la.Event(lambda q, p: q[0])})
    assert np.array_equal(path.q, plain.q) and np.array_equal(path.p, plain.p)
    passed = np.flatnonzero(plain.q[1:, 0] * plain.q[:-1, 0] < 0)
    assert path.events["x"].count == len(passed) > 0
    assert abs(path.events["x"].q[:, 0]).max() < 1e-14


def test_the_velocities_of_a_motion_that_has_become_fast():
    """Their rate of time is held first: its equation alone would lead to a negative one (any C in L̂ gives them)."""
    rod = la.Lagrangian(lambda q, v: 0.5 * (v @ v) - 9.81 * q[1], n=2, constraints=lambda q: q @ q - 1)
    system = paced(rod, lambda q: 1 / (2 + q[1]), FLOAT64)
    rng = np.random.default_rng(0)
    for C in 10.0 ** rng.uniform(-4, 4, 20):
        q, p, values = rng.uniform(-1, 1, 2), 10 ** rng.uniform(-2, 3) * rng.normal(size=2), np.array([C, 1.0])
        state = np.append(q, 0.0), np.append(p, -(0.5 * p @ p + 9.81 * q[1]))
        sigma = 1 / (2 + q[1])
        v = system.velocity(*state, 0.0, values)
        assert abs(v - sigma * np.append(p, 1.0)).max() <= 1e-9 * sigma * max(1.0, abs(p).max())
