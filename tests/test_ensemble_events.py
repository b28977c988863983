"""Reductions of ensembles: energy ranges, crossings and their order, stopping."""

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

    The error inside a step depends on where in it the crossing lies, and vanishes at some places: many trajectories,
    crossing everywhere in a step, show its size.
    """
    Q = np.array([0.4, -0.6]) + np.random.default_rng(7).uniform(-0.2, 0.2, (200, 2))
    events = {
        "q": la.Crossings(lambda q, p: q[1] - 0.2 * q[0], +1, most=1),
        "p": la.Crossings(lambda t, q, p, m: p[0] + 5 * m * q[1] + 0.1 * np.sin(t), +1, most=1),
    }
    reduced = la.ensemble(PENDULUM, name, Q, [0.3, 0.1], h=h, t_end=1.6, final_only=True, reduce=events).reduced
    return {f"{key} at {surface}": getattr(x, key)[:, 0] for surface, x in reduced.items() for key in ("t", "q", "p")}


@pytest.mark.parametrize(
    ("method", "order", "h"),
    [("midpoint", 2, 0.04), ("simpson", 3, 0.005), ("P3N3Q6Gau", 4, 0.04), ("P4N4Q8Gau", 5, 0.04)],
)
def test_event_times_and_states_have_the_order_of_the_dense_output(method, order, h):
    """s + 1, of each of t, q and p, against P6N6Q12Gau with small steps, whose own error is round-off.

    Simpson's states at the ends of steps have the order 4, inside 3: only small steps tell them apart.
    """
    exact = crossings("P6N6Q12Gau", 0.01)
    hs = h / 2.0 ** np.arange(4)
    runs = [crossings(method, h) for h in hs]
    for key, values in exact.items():
        assert np.isfinite(values).all(), key
        errors = [np.sqrt(np.mean((run[key] - values) ** 2)) for run in runs]
        slope = np.polyfit(np.log(hs), np.log(errors), 1)[0]
        assert abs(slope - order) < 0.2, (key, slope, errors)


@pytest.mark.parametrize(("system", "method"), [(PENDULUM, "P4N4Q8Gau"), (la.Lagrangian(chain, n=12), "simpson")])
def test_a_crossing_found_alone_is_the_one_found_in_company(system, method):
    Q = np.random.default_rng(12).uniform(-1, 1, (5, system.n))

    def found(steps, which):
        reduce = {"x": la.Crossings(lambda q, p: p[0], most=40)}
        options = {"h": 0.02, "steps": steps, "final_only": True, "reduce": reduce, "threads": 1}
        return la.ensemble(system, method, Q[which], np.zeros(system.n), **options).reduced["x"]

    most = found(1200, slice(None))
    assert (most.count > 1).all()
    for i in range(5):
        steps = int(np.ceil(most.t[i, 0] / 0.02)) + 1
        one = found(steps, [i])
        assert one.count >= 1
        for part in ("t", "q", "p"):
            np.testing.assert_array_equal(getattr(one, part)[0, 0], getattr(most, part)[i, 0])


def test_crossings_of_an_oscillator():
    system = la.Lagrangian(lambda q, v, w: 0.5 * v[0] ** 2 - 0.5 * w**2 * q[0] ** 2, n=1, params={"w": 1.0})
    w = np.array([1.0, 2.0, 3.0])
    reduce = {
        "all": la.Crossings(lambda q, p: q[0], most=4),
        "up": la.Crossings(lambda q, p: q[0], +1, most=2),
        "down": la.FirstCrossing(lambda q, p: q[0], -1),
        "never": la.FirstCrossing(lambda q, p: q[0] - 2),
    }
    paths = la.ensemble(
        system, "P4N4Q8Gau", [1.0], [0.0], params={"w": w}, h=0.05, t_end=10, final_only=True, reduce=reduce
    )
    zeros = (np.arange(40) + 0.5) * np.pi
    for i in range(3):
        t = zeros / w[i]
        assert paths.reduced["all"].count[i] == (t < 10).sum()
        np.testing.assert_allclose(paths.reduced["all"].t[i][:4], np.where(t[:4] < 10, t[:4], np.nan), rtol=1e-8)
        np.testing.assert_allclose(paths.reduced["up"].t[i], np.where(t[1:5:2] < 10, t[1:5:2], np.nan), rtol=1e-8)
    np.testing.assert_allclose(paths.reduced["down"], np.pi / 2 / w, rtol=1e-8)
    assert np.isnan(paths.reduced["never"]).all()


def test_stopping_at_the_first_crossing():
    Q = np.array([[3.0, 3.0], [0.1, 0.1], [2.5, 2.9]])
    event = {"flip": la.FirstCrossing(lambda q, p: np.cos(q[1] / 2), stop=True)}
    free = la.ensemble(
        PENDULUM, "simpson", Q, [0.0, 0.0], h=0.01, steps=500, reduce={"flip": la.FirstCrossing(event["flip"].g)}
    )
    paths = la.ensemble(PENDULUM, "simpson", Q, [0.0, 0.0], h=0.01, steps=500, reduce=event)
    np.testing.assert_array_equal(paths.reduced["flip"], free.reduced["flip"])
    for i in range(3):
        t = free.reduced["flip"][i]
        if np.isnan(t):
            assert paths.status[i] == Status.COMPLETE
            continue
        assert paths.status[i] == Status.STOPPED
        assert not paths.failed[i]
        last = math.ceil(t / 0.01)
        assert paths.steps[i] == last
        np.testing.assert_array_equal(paths.q[i, : last + 1], free.q[i, : last + 1])
        assert np.isnan(paths.q[i, last + 1 :]).all()
    assert (paths.status == Status.STOPPED).sum() >= 1


def test_reductions_are_checked():
    arguments = {"q0": [1.0, 0.0], "p0": [0.0, 1.0], "h": 0.1, "steps": 1}
    for reduce, message in (
        ({"E": 3}, "la.EnergyRange"),
        ([la.EnergyRange()], "mapping"),
        ({"x": la.Crossings(lambda q, p: q[0], 2)}, "direction"),
        ({"x": la.Crossings(lambda q, p: q[0], most=0)}, "most"),
        ({"x": la.FirstCrossing(3)}, "must be a function"),
        ({f"x{i}": la.FirstCrossing(lambda q, p: q[0]) for i in range(17)}, "at most 16"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            la.ensemble(KEPLER, "simpson", reduce=reduce, **arguments)
    with pytest.raises(la.TraceError, match="event function of 'x'"):
        la.ensemble(KEPLER, "simpson", reduce={"x": la.FirstCrossing(lambda q, p: q)}, **arguments)


@pytest.mark.parametrize("direction", [-1, 0, 1])
def test_an_event_that_is_no_number_counts_no_crossing(direction):
    """log(q) has no value once q falls below zero: the crossing of log(q) = −1 counts, what follows does not."""
    falling = la.Lagrangian(lambda q, v: 0.5 * v @ v - q[0], n=1)
    with pytest.warns(RuntimeWarning, match="no number"):
        paths = la.ensemble(
            falling,
            "simpson",
            np.linspace(0.9, 1.1, 9)[:, None],
            [0.0],
            h=0.01,
            t_end=3.0,
            final_only=True,
            reduce={"log": la.Crossings(lambda q, p: np.log(q[0]) + 1, direction, most=4)},
        )
    assert (paths.reduced["log"].count == (0 if direction == 1 else 1)).all()
