"""What ensembles compute on the way, and their events: energy ranges, orders, impacts, stopping."""

from __future__ import annotations

import math

import numpy as np
import pytest

import leastaction as la
from ensembles import KEPLER, PENDULUM, chain
from leastaction.run import Status


def test_energy_range_is_that_of_the_stored_states():
    Q = np.random.default_rng(5).uniform(-1, 1, (10, 2))
    paths = la.ensemble(PENDULUM, "simpson", Q, [0.0, 0.0], h=0.02, steps=200, reduce={"E": la.EnergyRange()})
    E = paths.energy()
    np.testing.assert_allclose(paths.reduced["E"][:, 0], E.min(axis=1), rtol=0, atol=1e-13)
    np.testing.assert_allclose(paths.reduced["E"][:, 1], E.max(axis=1), rtol=0, atol=1e-13)


def test_energy_range_where_the_momentum_is_not_linear_in_the_velocity():
    def relativistic(q, v):
        return -np.sqrt(1 - v @ v) - 0.5 * (q @ q)

    system = la.Lagrangian(relativistic, n=2)
    Q = np.random.default_rng(6).normal(size=(8, 2))
    paths = la.ensemble(system, "simpson", Q, [0.5, 0.0], h=0.02, steps=200, reduce={"E": la.EnergyRange()})
    E = paths.energy()
    np.testing.assert_allclose(paths.reduced["E"][:, 0], E.min(axis=1), rtol=0, atol=1e-13)
    np.testing.assert_allclose(paths.reduced["E"][:, 1], E.max(axis=1), rtol=0, atol=1e-13)


def crossings(name, h):
    """Times, positions and momenta where 200 double pendulums cross two surfaces, after 0.3 s and more.

    The error depends on where in a step the crossing lies: many trajectories, crossing everywhere, show its size.
    """
    Q = np.array([0.4, -0.6]) + np.random.default_rng(7).uniform(-0.2, 0.2, (200, 2))
    events = {
        "q": la.Event(lambda q, p: q[1] - 0.2 * q[0], +1, most=1),
        "p": la.Event(lambda t, q, p, m: p[0] + 5 * m * q[1] + 0.1 * np.sin(t), +1, most=1),
    }
    found = la.ensemble(PENDULUM, name, Q, [0.3, 0.1], h=h, t_end=1.6, final_only=True, events=events).events
    return {f"{key} at {surface}": getattr(x, key)[:, 0] for surface, x in found.items() for key in ("t", "q", "p")}


@pytest.mark.parametrize(
    ("method", "order", "h"),
    [("midpoint", 2, 0.04), ("simpson", 4, 0.02), ("P3N3Q6Gau", 6, 0.02)],
)
def test_event_times_and_states_have_the_order_of_the_method(method, order, h):
    """2s, of each of t, q and p, against P6N6Q12Gau with small steps, whose own error is round-off."""
    exact = crossings("P6N6Q12Gau", 0.01)
    hs = h / 2.0 ** np.arange(3)
    runs = [crossings(method, h) for h in hs]
    for key, values in exact.items():
        assert np.isfinite(values).all(), key
        errors = [np.sqrt(np.mean((run[key] - values) ** 2)) for run in runs]
        slope = np.polyfit(np.log(hs), np.log(errors), 1)[0]
        assert abs(slope - order) < 0.2, (key, slope, errors)


@pytest.mark.parametrize(("system", "method"), [(PENDULUM, "P4N4Q8Gau"), (la.Lagrangian(chain, n=12), "simpson")])
def test_an_event_found_alone_is_the_one_found_in_company(system, method):
    Q = np.random.default_rng(12).uniform(-1, 1, (5, system.n))

    def found(steps, which):
        events = {"x": la.Event(lambda q, p: p[0], most=40)}
        options = {"h": 0.02, "steps": steps, "final_only": True, "events": events, "threads": 1}
        return la.ensemble(system, method, Q[which], np.zeros(system.n), **options).events["x"]

    most = found(1200, slice(None))
    assert (most.count > 1).all()
    for i in range(5):
        steps = int(np.ceil(most.t[i, 0] / 0.02)) + 1
        one = found(steps, [i])
        assert one.count >= 1
        for part in ("t", "q", "p"):
            np.testing.assert_array_equal(getattr(one, part)[0, 0], getattr(most, part)[i, 0])


WATCHED = {
    "turn": la.Event(lambda q, p: p[0], most=3),
    "both": la.Event(lambda t, q, p, m: q[0] + q[1] - 0.1 * m * np.sin(t)),
    "far": la.Event(lambda q, p: q[1] - 2.4, +1, stop=True),
}
BOUNDED = {"wall": la.Impact(lambda q: 0.9 - q[1], restitution=0.7), "turn": la.Event(lambda q, p: p[1], -1)}


@pytest.mark.parametrize("events", [WATCHED, BOUNDED], ids=["watched", "bounded"])
@pytest.mark.parametrize(
    ("method", "tolerance"), [("simpson", 1e-10), ("P4N4Q8Gau", 1e-10), ("rk4", 0.0)], ids=["simpson", "P4", "rk4"]
)
def test_events_of_an_ensemble_are_those_of_its_trajectories(method, tolerance, events):
    """One by one where there are no lanes, bit for bit; in lanes to round-off, grown with the motion."""
    rng = np.random.default_rng(3)
    Q, masses = rng.uniform(-0.8, 0.8, (11, 2)), rng.uniform(0.5, 2, 11)
    options = {"h": 0.01, "steps": 150, "every": 10, "events": events}
    paths = la.ensemble(PENDULUM, method, Q, [0.5, 6.0], params={"m": masses}, **options)
    happened = 0
    for i, path in enumerate(paths):
        alone = la.integrate(PENDULUM, method, Q[i], [0.5, 6.0], params={"m": masses[i]}, **options)
        np.testing.assert_allclose(path.t, alone.t, rtol=0, atol=tolerance)
        for part in ("q", "p"):
            np.testing.assert_allclose(getattr(path, part), getattr(alone, part), rtol=0, atol=10 * tolerance)
        assert paths.end_time[i] == path.t[-1]
        for name, found in alone.events.items():
            assert path.events[name].count == paths.events[name].count[i] == found.count
            np.testing.assert_allclose(path.events[name].table(), found.table(), rtol=0, atol=10 * tolerance)
            assert np.isnan(paths.events[name].t[i, len(found) :]).all()
            happened += found.count
    assert happened > 10
    assert len({*paths.status}) == (2 if events is WATCHED else 1)


def test_events_leave_an_ensemble_as_it_is():
    Q = np.random.default_rng(5).uniform(-2, 2, (9, 2))
    options = {"h": 0.01, "steps": 300}
    plain = la.ensemble(PENDULUM, "simpson", Q, [0.0, 0.0], **options)
    watched = la.ensemble(PENDULUM, "simpson", Q, [0.0, 0.0], events={"x": la.Event(lambda q, p: q[0])}, **options)
    np.testing.assert_array_equal(plain.q, watched.q)
    np.testing.assert_array_equal(plain.p, watched.p)
    assert watched.events["x"].count.min() > 0


def test_many_steps_in_doubt_in_one_group():
    """An event function that is near zero all along halts its group again and again, and changes nothing."""
    Q = np.random.default_rng(6).uniform(0.5, 1, (6, 2))
    options = {"h": 0.01, "steps": 200}
    plain = la.ensemble(PENDULUM, "simpson", Q, [0.0, 0.0], **options)
    near = {"near": la.Event(lambda q, p: 1e-9 + 1e-8 * np.sin(20 * q[0]) ** 2), "zero": la.Event(lambda q, p: q[1])}
    watched = la.ensemble(PENDULUM, "simpson", Q, [0.0, 0.0], events=near, **options)
    np.testing.assert_array_equal(plain.q, watched.q)
    assert (watched.events["near"].count == 0).all()
    assert watched.events["near"].t.shape == (6, 0)
    for i in range(6):
        signs = np.signbit(plain.q[i, :, 1])
        assert watched.events["zero"].count[i] == (signs[1:] != signs[:-1]).sum()


def test_a_trajectory_that_comes_to_rest_leaves_the_others_alone():
    ball = la.Lagrangian(lambda q, v: 0.5 * v @ v - q[0], n=1)
    floor = {"floor": la.Impact(lambda q: q[0], restitution=0.5)}
    heights = np.array([0.1, 30.0, 0.2, 40.0, 50.0])[:, None]
    paths = la.ensemble(ball, "simpson", heights, [0.0], h=0.05, t_end=5.0, events=floor)
    assert paths.status.tolist() == [Status.RESTING, 0, Status.RESTING, 0, 0]
    for i in (1, 3, 4):
        np.testing.assert_allclose(paths.q[i, -1, 0], heights[i, 0] - 12.5, rtol=1e-12)
    fall = np.sqrt(2 * heights[0, 0])
    n = np.arange(paths.events["floor"].count[0])
    np.testing.assert_allclose(paths[0].events["floor"].t, fall * (3 - 2 * 0.5**n), rtol=1e-9)


def test_events_of_an_oscillator():
    system = la.Lagrangian(lambda q, v, w: 0.5 * v[0] ** 2 - 0.5 * w**2 * q[0] ** 2, n=1, params={"w": 1.0})
    w = np.array([1.0, 2.0, 3.0])
    events = {
        "all": la.Event(lambda q, p: q[0], most=4),
        "up": la.Event(lambda q, p: q[0], +1, most=2),
        "down": la.Event(lambda q, p: q[0], -1, most=1),
        "never": la.Event(lambda q, p: q[0] - 2),
    }
    paths = la.ensemble(
        system, "P4N4Q8Gau", [1.0], [0.0], params={"w": w}, h=0.05, t_end=10, final_only=True, events=events
    )
    zeros = (np.arange(40) + 0.5) * np.pi
    for i in range(3):
        t = zeros / w[i]
        assert paths.events["all"].count[i] == (t < 10).sum()
        np.testing.assert_allclose(paths.events["all"].t[i], np.where(t[:4] < 10, t[:4], np.nan), rtol=1e-8)
        np.testing.assert_allclose(paths.events["up"].t[i], np.where(t[1:5:2] < 10, t[1:5:2], np.nan), rtol=1e-8)
    np.testing.assert_allclose(paths.events["down"].t[:, 0], np.pi / 2 / w, rtol=1e-8)
    assert paths.events["never"].t.shape == (3, 0)


@pytest.mark.parametrize("final_only", [False, True])
def test_stopping_at_an_event(final_only):
    Q = np.array([[3.0, 3.0], [0.1, 0.1], [2.5, 2.9]])
    flip = {"flip": la.Event(lambda q, p: np.cos(q[1] / 2), most=1)}
    stop = {"flip": la.Event(flip["flip"].g, stop=True)}
    options = {"h": 0.01, "steps": 500, "final_only": final_only}
    free = la.ensemble(PENDULUM, "simpson", Q, [0.0, 0.0], **options, events=flip)
    paths = la.ensemble(PENDULUM, "simpson", Q, [0.0, 0.0], **options, events=stop)
    for i in range(3):
        if not free.events["flip"].count[i]:
            assert paths.status[i] == Status.COMPLETE
            continue
        t = free.events["flip"].t[i, 0]
        np.testing.assert_array_equal(paths.events["flip"].t[i, 0], t)
        assert paths.status[i] == Status.STOPPED
        assert not paths.failed[i]
        last = math.floor(t / 0.01)
        assert paths.steps[i] == last
        assert paths.end_time[i] == paths[i].t[-1] == t
        np.testing.assert_array_equal(paths[i].q[-1], free.events["flip"].q[i, 0])
        if final_only:
            np.testing.assert_array_equal(paths.q[i, 0], free.events["flip"].q[i, 0])
            assert len(paths[i]) == 1
        else:
            np.testing.assert_array_equal(paths.q[i, : last + 1], free.q[i, : last + 1])
            assert np.isnan(paths.q[i, last + 1 :]).all()
            assert len(paths[i]) == last + 2
    assert (paths.status == Status.STOPPED).sum() >= 1


def test_bad_input():
    arguments = {"q0": [[1.0, 0.0], [2.0, 0.0]], "p0": [0.0, 1.0], "h": 0.1, "steps": 1}
    for reduce, message in (({"E": 3}, "la.EnergyRange"), ([la.EnergyRange()], "mapping")):
        with pytest.raises(TypeError, match=message):
            la.ensemble(KEPLER, "simpson", reduce=reduce, **arguments)
    for event, message in (
        (la.Impact(lambda q: 1.5 - q[0]), "behind the wall of 'x' of trajectory 1"),
        (la.Event(lambda q, p: np.sqrt(1.5 - q[0])), "not a number at the start of trajectory 1"),
    ):
        with pytest.raises(ValueError, match=message):
            la.ensemble(KEPLER, "simpson", events={"x": event}, **arguments)
    with pytest.raises(la.TraceError, match="function of event 'x'"):
        la.ensemble(KEPLER, "simpson", events={"x": la.Event(lambda q, p: q)}, **arguments)


@pytest.mark.parametrize("direction", [-1, 0, 1])
def test_an_event_that_is_no_number_is_none(direction):
    """log(q) has no value once q falls below zero: log(q) = −1 counts, what follows does not."""
    falling = la.Lagrangian(lambda q, v: 0.5 * v @ v - q[0], n=1)
    with pytest.warns(RuntimeWarning, match="is not a number near"):
        paths = la.ensemble(
            falling,
            "simpson",
            np.linspace(0.9, 1.1, 9)[:, None],
            [0.0],
            h=0.01,
            t_end=3.0,
            final_only=True,
            events={"log": la.Event(lambda q, p: np.log(q[0]) + 1, direction, most=4)},
        )
    assert (paths.events["log"].count == (0 if direction == 1 else 1)).all()
