"""Events of single runs: their order, none missed, and the run undisturbed."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.special import ellipk

import leastaction as la
from ensembles import KEPLER, PENDULUM
from leastaction.events import watch
from leastaction.events.motion import GalerkinMotion
from leastaction.step.stepper import Start
from seeds import generator
from thrift import rest_slow


def pendulum(q, v, g):
    return 0.5 * v[0] ** 2 + g * np.cos(q[0])


def oscillator(q, v, w):
    return 0.5 * v[0] ** 2 - 0.5 * w**2 * q[0] ** 2


SIMPLE = la.Lagrangian(pendulum, n=1, params={"g": 1.0})
OSCILLATOR = la.Lagrangian(oscillator, n=1, params={"w": 1.0})
QUARTER = ellipk(math.sin(0.5) ** 2)  # of the period of a pendulum let go at the angle 1


def slope(hs, errors):
    return np.polyfit(np.log(hs), np.log(errors), 1)[0]


@pytest.mark.parametrize(
    ("method", "order", "h"),
    [
        ("midpoint", 2, 0.1), ("simpson", 4, 0.2), ("P3N3Q6Gau", 6, 0.4), ("P3N4Q6Lob", 6, 0.25), ("P4N4Q8Gau", 8, 0.5),
        ("rk4", 4, 0.1), ("rk4-lagrange", 4, 0.1), ("yoshida(P1N2Q2Lob)", 4, 0.1),
    ],
)  # fmt: skip
def test_times_of_a_pendulum_have_the_order_of_the_method(method, order, h):
    """It passes its lowest point after the odd quarter periods, and turns after the even ones."""
    hs = h / 2.0 ** np.arange(4 if order < 6 else 3)
    errors = {"bottom": [], "turn": []}
    for step in hs:
        events = {"bottom": la.Event(lambda q, p: q[0]), "turn": la.Event(lambda q, p: p[0])}
        found = la.integrate(SIMPLE, method, [1.0], [0.0], h=step, t_end=20, events=events).events
        for name, first in (("bottom", 1), ("turn", 2)):
            exact = QUARTER * np.arange(first, 20 / QUARTER, 2)
            assert found[name].count == len(exact)
            errors[name].append(np.abs(found[name].t - exact).max())
    for name in errors:
        assert abs(slope(hs, errors[name]) - order) < 0.2, (name, errors[name])


@pytest.mark.parametrize(("method", "order", "h"), [("simpson", 4, 0.02), ("P3N3Q6Gau", 6, 0.15)])
def test_apsides_of_kepler(method, order, h):
    """r·v rises through zero at the pericentre, falls through it at the apocentre; states as exact as times."""
    e = 0.1
    q0, p0 = [1 - e, 0.0], [0.0, math.sqrt((1 + e) / (1 - e))]
    hs = h / 2.0 ** (np.arange(4) / 2)
    errors = []
    for step in hs:
        events = {
            "near": la.Event(lambda q, p: q @ p, direction=+1),
            "far": la.Event(lambda q, p: q @ p, direction=-1),
        }
        found = la.integrate(KEPLER, method, q0, p0, h=step, t_end=20, events=events).events
        assert (found["near"].count, found["far"].count) == (3, 3)
        times = np.abs(found["near"].t - 2 * np.pi * np.arange(1, 4)).max()
        halves = np.abs(found["far"].t - 2 * np.pi * (np.arange(3) + 0.5)).max()
        places = np.abs(found["far"].q - [-1 - e, 0.0]).max()
        momenta = np.abs(found["near"].p - p0).max()
        errors.append([times, halves, places, momenta])
    for error in np.transpose(errors):
        assert abs(slope(hs, error) - order) < 0.2, error


@pytest.mark.parametrize("method", ["midpoint", "simpson", "P4N4Q8Gau", "P8N8Q16Gau", "P3N3Q4Lob"])
@pytest.mark.parametrize("system", [PENDULUM, la.Lagrangian(lambda q, v: 0.5 * v @ v - q @ q / 2, n=6)])
def test_watching_does_not_change_a_bit(method, system):
    q0, p0 = np.linspace(1.0, 0.4, system.n), np.zeros(system.n)
    events = {"a": la.Event(lambda q, p: q[0]), "b": la.Event(lambda t, q, p: p[0] + np.sin(2 * t))}
    events["c"] = la.Event(lambda q, p: q[0] - 100, stop=True)
    plain = la.integrate(system, method, q0, p0, h=0.05, steps=400)
    watched = la.integrate(system, method, q0, p0, h=0.05, steps=400, events=events)
    for name in ("t", "q", "p"):
        np.testing.assert_array_equal(getattr(watched, name), getattr(plain, name))
    assert watched.events["a"].count > 3
    assert {key: watched.stats[key] for key in ("steps", "newton_iterations")} == {
        key: plain.stats[key] for key in ("steps", "newton_iterations")
    }


def test_large_systems_and_chosen_degrees_of_freedom():
    """A system whose steps are too long to be written out; some of its states stored."""
    n = 24

    def rotors(q, v):
        pull = sum(np.cos(q[k] - q[j]) for k in range(n) for j in range(k)) / n
        linked = sum(v[k] * v[k + 1] * np.cos(q[k] - q[k + 1]) for k in range(n - 1))
        return 0.5 * v @ v + 0.1 * linked - 0.5 * q @ q + pull

    system = la.Lagrangian(rotors, n=n)
    q0, p0 = np.cos(np.arange(n) * 0.3), np.zeros(n)
    events = {
        "x": la.Event(lambda q, p: q[0]),
        "p": la.Event(lambda q, p: p[1], -1),
        "wall": la.Impact(lambda q: q[7] + 9),
    }
    options = {"h": 0.05, "steps": 201}
    plain = la.integrate(system, "P4N4Q8Gau", q0, p0, **options)
    path = la.integrate(system, "P4N4Q8Gau", q0, p0, events=events, output=[5, 0], every=3, **options)
    np.testing.assert_array_equal(path.q, plain.q[::3, [5, 0]])
    np.testing.assert_array_equal(path.p, plain.p[::3, [5, 0]])
    found = path.events
    assert found["x"].count == (plain.q[:-1, 0] * plain.q[1:, 0] < 0).sum() > 2
    assert found["p"].count == ((plain.p[:-1, 1] > 0) & (plain.p[1:, 1] < 0)).sum() > 0
    assert found["wall"].count == 0
    np.testing.assert_allclose(found["x"].q[:, 0], 0, atol=1e-14)
    np.testing.assert_allclose(found["x"].q, plain(found["x"].t), atol=1e-7)


def test_two_crossings_in_one_step():
    """cos t passes 1 − δ twice around t = 2π, within a small part of a step of 0.5; and so near the turn as 10⁻⁵."""
    for depth in (1e-2, 1e-4, 1e-6, 1e-8, 1e-10):
        event = la.Event(lambda q, p, d=depth: q[0] - (1 - d))
        path = la.integrate(OSCILLATOR, "P8N8Q16Gau", [1.0], [0.0], h=0.5, steps=14, events={"top": event})
        half = math.acos(1 - depth)
        found = path.events["top"]
        np.testing.assert_allclose(found.t, [half, 2 * np.pi - half, 2 * np.pi + half], atol=2e-14 / half)
        assert found.count == 3


def test_many_crossings_in_one_step():
    event = la.Event(lambda q, p: np.sin(40 * q[0]))
    path = la.integrate(OSCILLATOR, "P8N8Q16Gau", [1.02], [0.0], h=1.0, steps=3, events={"line": event})
    levels = np.arange(-12, 13) * np.pi / 40 / 1.02
    exact = np.sort(np.arccos(levels[np.abs(levels) < 1]))
    np.testing.assert_allclose(path.events["line"].t, exact[exact < 3], atol=1e-9)


EVERYWHERE = [
    (OSCILLATOR, "midpoint", None), (OSCILLATOR, "simpson", None), (OSCILLATOR, "rk4", None),
    (OSCILLATOR, "rk4-lagrange", None), (OSCILLATOR, "yoshida(P1N2Q2Lob)", None), (OSCILLATOR, "P3N3Q6Gau", 20),
    (OSCILLATOR, "rk4", 20), (la.Quadratic([1.0], [1.0]), "simpson", None), (la.Quadratic([1], [1]), "simpson", 20),
]  # fmt: skip


@pytest.mark.parametrize(("system", "method", "digits"), EVERYWHERE)
@pytest.mark.parametrize("h", rest_slow([1.0, 0.5], [1.0]))
def test_many_crossings_in_one_step_of_every_method(system, method, digits, h):
    """A motion from one turn to the next passes all 25 lines, however many of them in one step."""

    def g(q, p):
        return np.sin(40 * q[0])

    path = la.integrate(
        system, method, ["1.02"], ["0"], h=h, steps=round(3 / h), digits=digits, events={"x": la.Event(g)}
    )
    assert path.events["x"].count == 25
    q = path.events["x"].q[:, 0].astype(float)
    np.testing.assert_allclose(q, np.arange(12, -13, -1) * np.pi / 40, atol=1e-14)
    assert (np.diff(path.events["x"].t) > 0).all()


@pytest.mark.parametrize("method", ["midpoint", "simpson", "rk4"])
def test_crossings_of_a_motion_without_curvature(method):
    """That of a free body, and one at rest: g alone bends."""
    free = la.Lagrangian(lambda q, v: 0.5 * v @ v, n=1)
    events = {"q": la.Event(lambda q, p: np.sin(40 * q[0])), "t": la.Event(lambda t, q, p: np.sin(40 * t))}
    found = la.integrate(free, method, [0.01], [1.0], h=0.5, steps=6, events=events).events
    np.testing.assert_allclose(found["q"].t, np.arange(1, 39) * np.pi / 40 - 0.01, rtol=1e-12)
    found = la.integrate(free, method, [0.0], [0.0], h=0.5, steps=6, events={"t": events["t"]}).events
    np.testing.assert_allclose(found["t"].t, np.arange(1, 39) * np.pi / 40, rtol=1e-12)


@pytest.mark.parametrize("depth", [20, 36])
def test_grazing_at_forty_digits(depth):
    """cos t passes 1 − δ once after the start and twice around 2π, within 10⁻¹⁰ and 10⁻¹⁸ of the turn."""
    event = la.Event(lambda q, p: (q[0] - 1) * 10**depth + 1)
    path = la.integrate(OSCILLATOR, "P6N6Q12Gau", [1], [0], h="3/4", steps=9, digits=40, events={"top": event})
    assert path.events["top"].count == 3
    with mpmath.workdps(50):
        _, before, after = path.events["top"].t
        half = mpmath.acos(1 - mpmath.mpf(10) ** -depth)
        assert abs((after - before) / (2 * half) - 1) < mpmath.mpf(10) ** -3


JUMPS = {
    "side": lambda q, p: np.where(q[0] > 0.33, 1.0, -1.0),
    "saw": lambda q, p: np.fmod(3 * q[0], 1.0) - 0.3,
    "floor": lambda q, p: np.floor(q[0] * 7) % 2 - 0.5,
    "sign": lambda q, p: np.sign(q[0] - 0.4) * q[0],
    "and back": lambda q, p: q[0] - 0.1 - 2.0 * (q[0] > 0.3) + 2.0 * (q[0] > 0.45),
    "grows": lambda q, p: np.where(q[0] < 1, np.exp(9 * q[0]), -np.exp(9 * q[0])),
    "angle": lambda q, p: np.arctan2(np.sin(5 * q[0]), np.cos(5 * q[0])),
}


@pytest.mark.parametrize(
    ("method", "digits", "h"),
    rest_slow(
        [(*how, h) for how in (("midpoint", None), ("rk4", None), ("simpson", 20)) for h in (0.6, 0.15)],
        [("midpoint", None, 0.15), ("rk4", None, 0.6), ("simpson", 20, 0.6)],
    ),
)
def test_every_jump_over_zero_is_an_event(method, digits, h):
    free = la.Lagrangian(lambda q, v: 0.5 * v @ v, n=1)
    events = {name: la.Event(g) for name, g in JUMPS.items()}
    found = la.integrate(free, method, [0.01], [1.0], h=h, steps=round(3 / h), digits=digits, events=events).events
    q = np.linspace(0.01, 3.01, 100_001)[1:]
    for name, g in JUMPS.items():
        values = g(q[None], None)
        signs, places = np.sign(values[values != 0]), q[values != 0]
        change = np.flatnonzero(signs[1:] != signs[:-1])
        np.testing.assert_allclose(found[name].q[:, 0].astype(float), places[change], atol=7e-5, err_msg=name)


@pytest.mark.parametrize("digits", [None, 25])
@pytest.mark.parametrize("method", ["simpson", "rk4"])
def test_a_touch_at_the_end_of_a_step_is_no_event(method, digits):
    free = la.Lagrangian(lambda q, v: 0.5 * v @ v, n=1)
    events = {"above": la.Event(lambda q, p: (q[0] - 0.5) ** 2), "below": la.Event(lambda q, p: -((q[0] - 1) ** 4))}
    events["through"] = la.Event(lambda q, p: (q[0] - 0.5) ** 3)
    for t_end in (0.5, 1.0, 2.0):
        path = la.integrate(free, method, [0.0], [1.0], h=0.25, t_end=t_end, digits=digits, events=events)
        assert path.events["above"].count == path.events["below"].count == 0
    assert path.events["through"].count == 1


def test_directions_and_most():
    events = {
        "both": la.Event(lambda q, p: q[0]),
        "up": la.Event(lambda q, p: q[0], +1),
        "down": la.Event(lambda q, p: q[0], -1, most=2),
    }
    found = la.integrate(OSCILLATOR, "P4N4Q8Gau", [1.0], [0.0], h=0.1, steps=300, events=events).events
    zeros = (np.arange(10) + 0.5) * np.pi
    zeros = zeros[zeros < 30]
    np.testing.assert_allclose(found["both"].t, zeros, atol=1e-8)
    np.testing.assert_allclose(found["up"].t, zeros[1::2], atol=1e-8)
    np.testing.assert_allclose(found["down"].t, zeros[::2][:2], atol=1e-8)
    assert (found["down"].count, len(found["down"])) == (len(zeros[::2]), 2)
    np.testing.assert_allclose(np.abs(found["both"].p[:, 0]), 1, atol=1e-8)
    np.testing.assert_allclose(found["both"].q, 0, atol=1e-15)


def test_events_of_one_step_come_in_order():
    """Three thresholds passed within one step of a free motion, two of them at the same time."""
    system = la.Lagrangian(lambda q, v: 0.5 * v @ v, n=1)
    events = {f"at {x}": la.Event(lambda q, p, x=x: q[0] - x) for x in (0.7, 0.2, 0.5)}
    events["too"] = la.Event(lambda q, p: 0.5 - q[0])
    found = la.integrate(system, "midpoint", [0.0], [1.0], h=1.0, steps=1, events=events).events
    for x in (0.2, 0.5, 0.7):
        np.testing.assert_allclose(found[f"at {x}"].t, [x], rtol=1e-15)
    stops = {name: la.Event(event.g, stop=True) for name, event in events.items()}
    path = la.integrate(system, "midpoint", [0.0], [1.0], h=1.0, steps=1, events=stops)
    assert [path.events[name].count for name in events] == [0, 1, 0, 0]
    np.testing.assert_allclose(path.t, [0.0, 0.2], rtol=1e-15)


def test_a_run_that_begins_at_an_event_does_not_count_it():
    events = {"x": la.Event(lambda q, p: q[0]), "y": la.Event(lambda q, p: p[0])}
    path = la.integrate(OSCILLATOR, "P4N4Q8Gau", [0.0], [1.0], h=0.1, steps=50, events=events)
    np.testing.assert_allclose(path.events["x"].t, [np.pi], atol=1e-9)
    np.testing.assert_allclose(path.events["y"].t, [np.pi / 2, 3 * np.pi / 2], atol=1e-9)


def test_an_event_at_the_end_of_a_step_counts_once():
    system = la.Lagrangian(lambda q, v: 0.5 * v @ v, n=1)
    events = {"x": la.Event(lambda q, p: q[0] - 1.0), "t": la.Event(lambda t, q, p: t - 2.0)}
    found = la.integrate(system, "simpson", [0.0], [1.0], h=0.25, steps=20, events=events).events
    assert found["x"].t.tolist() == [1.0]
    assert found["t"].t.tolist() == [2.0]
    system = la.Lagrangian(lambda q, v, x: 0.5 * v @ v, n=1, params={"x": 0.0})
    event = {"x": la.Event(lambda q, p, x: q[0] - x)}
    for k in range(1, 60):
        for shift in (0.0, 1e-16, -1e-16):
            place = {"x": k * 0.1 + shift}
            path = la.integrate(system, "simpson", [0.0], [1.0], h=0.1, steps=80, params=place, events=event)
            assert path.events["x"].count == 1, place


@pytest.mark.parametrize("every", [1, 7, 10**6])
def test_stop_ends_the_run_at_the_event(every):
    event = {"down": la.Event(lambda q, p: q[0], stop=True), "turn": la.Event(lambda q, p: p[0])}
    free = la.integrate(SIMPLE, "P4N4Q8Gau", [1.0], [0.0], h=0.05, steps=500, every=every)
    path = la.integrate(SIMPLE, "P4N4Q8Gau", [1.0], [0.0], h=0.05, steps=500, every=every, events=event)
    assert abs(path.t[-1] - QUARTER) < 1e-12
    assert abs(path.q[-1, 0]) < 1e-15
    assert path.t[-1] == path.events["down"].t[0]
    assert path.p[-1, 0] == path.events["down"].p[0, 0]
    np.testing.assert_array_equal(path.q[:-1], free.q[: len(path) - 1])
    assert not path.stats["interrupted"]
    inside = np.linspace(0, path.t[-1], 11)
    dense = la.integrate(SIMPLE, "P4N4Q8Gau", [1.0], [0.0], h=0.05, steps=500)
    np.testing.assert_allclose(path(inside), dense(inside), atol=1e-12)


def test_stop_at_the_third():
    event = {"x": la.Event(lambda q, p: q[0], stop=True, most=3)}
    path = la.integrate(OSCILLATOR, "P4N4Q8Gau", [1.0], [0.0], h=0.1, steps=500, events=event)
    np.testing.assert_allclose(path.events["x"].t, (np.arange(3) + 0.5) * np.pi, atol=1e-9)
    assert path.t[-1] == path.events["x"].t[-1]


def test_backward_in_time():
    event = {"x": la.Event(lambda q, p: q[0], +1)}
    path = la.integrate(OSCILLATOR, "P4N4Q8Gau", [1.0], [0.0], h=-0.1, steps=60, events=event)
    np.testing.assert_allclose(path.events["x"].t, [-1.5 * np.pi], atol=1e-9)


def test_parameters_come_by_name_and_may_be_given_for_the_run():
    event = {"x": la.Event(lambda t, q, p, w: p[0] - 0 * t + w * q[0])}
    path = la.integrate(OSCILLATOR, "P4N4Q8Gau", [1.0], [0.0], h=0.02, steps=100, params={"w": 2.0}, events=event)
    np.testing.assert_allclose(path.events["x"].t, np.arange(np.pi / 8, 2, np.pi / 2), atol=1e-9)


COARSE = [
    (PENDULUM, "midpoint", None, 0.02), (PENDULUM, "simpson", None, 0.05), (PENDULUM, "P4N4Q8Gau", None, 0.15),
    (PENDULUM, "rk4", None, 0.05), (PENDULUM, "rk4-lagrange", None, 0.05), (PENDULUM, "yoshida(P1N2Q2Lob)", None, 0.05),
    (PENDULUM, "P3N3Q6Gau", 20, 0.1), (PENDULUM, "rk4", 20, 0.05),
    (la.Quadratic([[2, 1], [1, 2]], [[9, 1], [1, 3]]), "simpson", None, 0.2),
    (la.Quadratic([[2, 1], [1, 2]], [[9, 1], [1, 3]]), "P3N3Q6Gau", 20, 0.3),
]  # fmt: skip


@pytest.mark.parametrize(("system", "method", "digits", "h"), COARSE)
@pytest.mark.parametrize("draw", rest_slow([0, 1], [0]))
def test_no_crossing_is_lost_that_a_finer_run_sees(system, method, digits, h, draw):
    """Random functions of a double pendulum at coarse steps, against the signs along a run of 100 times finer ones.

    A pair of crossings counts where the function goes further beyond zero between them than the coarse run is off.
    """
    rng = generator()
    a, b, c = rng.normal(size=(3, 5))

    def g(t, q, p):
        waves = a[0] * np.sin(3 * b[0] * q[0] + c[0]) + a[1] * np.cos(2 * b[1] * q[1] + t) + a[2] * p[0] * q[1] / 5
        return waves + a[3] * np.exp(-((b[3] * q[0] - q[1]) ** 2)) + a[4] * np.tanh(p[1]) + 0.3 * c[4]

    q0, p0 = rng.uniform(-1, 1, 2), rng.uniform(-1, 1, 2)
    steps = round((4 if digits is None else 1.5) / h)
    events = {"g": la.Event(g), "up": la.Event(g, +1)}
    coarse = la.integrate(system, method, q0, p0, h=h, steps=steps, digits=digits, events=events)
    fine = la.integrate(system, method, q0, p0, h=h / 100, steps=100 * steps)
    values = g(fine.t, fine.q.T, fine.p.T)
    off = np.abs(values[::100] - g(*(x.astype(float).T for x in (coarse.t, coarse.q, coarse.p)))).max()
    # Where the finer run is beyond zero by more than the coarse one is off, so is the coarse one.
    certain = np.abs(values) > 4 * off
    signs, times = np.sign(values[certain]), fine.t[certain]
    change = np.flatnonzero(signs[1:] != signs[:-1])
    assert len(change) > 0 or abs(values).min() > 0
    rising = coarse.events["up"].t
    for k in change:
        between = (coarse.events["g"].t > times[k]) & (coarse.events["g"].t < times[k + 1])
        assert between.sum() % 2 == 1, (times[k], times[k + 1], coarse.events["g"].t)
        up = (rising > times[k]) & (rising < times[k + 1])
        assert up.sum() - (between.sum() - up.sum()) == (1 if signs[k + 1] > 0 else -1)
    seen = np.concatenate([[0.0], times[change], [times[-1]]])
    assert coarse.events["g"].count >= len(seen) - 2


def test_a_function_that_is_zero_all_along_ends():
    """p + sin t is zero but for the method's error: the run promises only to end, and to say so."""
    event = {"x": la.Event(lambda t, q, p: p[0] + np.sin(t))}
    with pytest.warns(RuntimeWarning, match="hardly differs from zero all along near t = 0"):
        path = la.integrate(OSCILLATOR, "simpson", [1.0], [0.0], h=0.05, steps=40, events=event)
    assert len(path) == 41


@pytest.mark.parametrize("digits", [None, 30])
@pytest.mark.parametrize("method", ["simpson", "rk4"])
def test_watched_steppers_go_on_from_their_state(method, digits):
    """They go on as an interrupted run does, wherever it was interrupted: also just after an impact."""
    from leastaction.run.drive import at_work
    from leastaction.run.plan import plan_run
    from leastaction.run.standing import Standing

    system = la.Lagrangian(lambda q, v, g: 0.5 * v @ v - g * q[0] - q[0] ** 2, n=1, params={"g": 1.0})
    asked = {"floor": la.Impact(lambda q: q[0], restitution=0.95), "top": la.Event(lambda q, p: p[0], -1)}
    options = {"h": "0.3", "steps": 12, "t_end": None, "t0": "0", "params": None, "every": 1, "digits": digits}
    plan, starts = plan_run(system, method, (["1.0"], ["0.0"], None), **options, events=asked)
    standing = Standing.begin(plan, starts)

    def begun():
        return at_work(plan, starts, Standing.begin(plan, starts))

    with plan.reals.working():
        whole, rows = begun(), np.empty((1, 12, 2), plan.dtype)
        assert whole.advance(12, 1, 1, rows) == 12
        happened = whole.watcher.logs[0].happened()
        for cut in range(1, 12) if digits is None else (4, 5):
            first, part = begun(), np.empty_like(rows)
            assert first.advance(cut, 1, 1, part) == cut
            standing.take(0, 1, first)
            again = at_work(plan, starts, standing)
            assert again.advance(12 - cut, 1, 1, part) == 12 - cut
            assert (part == rows).all(), cut
            for name, found in again.watcher.logs[0].happened().items():
                assert (found.table() == happened[name].table()).all()
                assert found.count == happened[name].count > 1


@pytest.mark.parametrize("system", [SIMPLE, la.Quadratic([[1.0]], [[2.0]])])
@pytest.mark.parametrize("every", [1, 5])
def test_other_methods_systems_and_digits_are_not_disturbed(system, every):
    events = {"a": la.Event(lambda q, p: q[0]), "b": la.Event(lambda t, q, p: p[0] + np.sin(2 * t))}
    for method, digits, steps in (("rk4", None, 300), ("rk4", 30, 12), ("P3N3Q6Gau", 30, 12)):
        options = {"h": "1/5", "steps": steps, "every": every, "digits": digits}
        plain = la.integrate(system, method, ["1"], ["0"], **options)
        watched = la.integrate(system, method, ["1"], ["0"], events=events, **options)
        assert all((getattr(plain, name) == getattr(watched, name)).all() for name in "tqp")
        assert watched.events["a"].count > 0


def test_fifty_digits():
    """A pendulum's quarter period with 50 digits, to the order 16 of the method; and the state on the section."""
    errors = []
    for h in ("1/5", "1/10"):
        path = la.integrate(
            SIMPLE, "P8N8Q16Gau", [1], [0], h=h, t_end=4, digits=50, events={"x": la.Event(lambda q, p: q[0])}
        )
        with mpmath.workdps(60):
            exact = mpmath.ellipk(mpmath.sin(mpmath.mpf(1) / 2) ** 2)
            errors.append(abs(path.events["x"].t[0] - exact))
            assert abs(path.events["x"].q[0, 0]) < mpmath.mpf(10) ** -49
    assert abs(mpmath.log(errors[0] / errors[1], 2) - 16) < 0.2


def test_a_path_with_events_survives_a_file(tmp_path):
    events = {"x": la.Event(lambda q, p: q[0], most=2), "wall": la.Impact(lambda q: q[0] + 0.5)}
    for digits in (None, 25):
        path = la.integrate(SIMPLE, "simpson", [1], [0], h=0.125, steps=60, digits=digits, events=events)
        path.save(tmp_path / "run.npz")
        again = la.Path.load(tmp_path / "run.npz")
        for name, found in path.events.items():
            assert again.events[name].count == found.count > 0
            assert (again.events[name].table() == found.table()).all()
        with path.reals.working():
            assert (again(path.t[-1] / 2) == path(path.t[-1] / 2)).all()


def test_a_pole_is_no_event():
    event = {"x": la.Event(lambda q, p: 1 / q[0])}
    with pytest.warns(RuntimeWarning, match="pole"):
        path = la.integrate(OSCILLATOR, "P4N4Q8Gau", [1.0], [0.0], h=0.1, steps=30, events=event)
    assert path.events["x"].count == 0


def test_bad_input():
    def run(events, **options):
        return la.integrate(SIMPLE, "simpson", [1.0], [0.0], h=0.1, steps=3, events=events, **options)

    for events, message in (
        ([la.Event(lambda q, p: q[0])], "mapping of names"),
        ({"x": lambda q, p: q[0]}, r"la\.Event\(g\) or la\.Impact\(g\)"),
        ({3: la.Event(lambda q, p: q[0])}, "must be text"),
    ):
        with pytest.raises(TypeError, match=message):
            run(events)
    with pytest.raises(TypeError, match=r"g\(q, p\) or g\(t, q, p\)"):
        la.Event(3)
    for options, message in (
        ({"direction": 2}, "direction must be"),
        ({"most": 0}, "positive integer or None"),
        ({"most": 1.5}, "positive integer or None"),
        ({"stop": "yes"}, "stop must be"),
    ):
        with pytest.raises(ValueError, match=message):
            la.Event(lambda q, p: q[0], **options)
    for g, message in (
        (lambda q: q[0], r"must be g\(q, p\) or g\(t, q, p\)"),
        (lambda q, p, mass: q[0], "may ask for parameters of the system by name \\(g\\)"),
        (lambda q, p: q, None),
        (lambda q, p: [q[0], p[0]], "returned an array"),
        (lambda q, p: None, "None"),
        (lambda q, p: q[1], "line"),
        (lambda q, p, g=3.0: q[0] - g, "a default for its argument 'g', which is a parameter of the system, too"),
    ):
        if message is None:
            assert run({"x": la.Event(g)}).events["x"].count == 0  # one number in an array is a number
            continue
        with pytest.raises(la.TraceError, match=message) as caught:
            run({"x": la.Event(g)})
        assert "'x'" in str(caught.value)
    assert run({}).events == {}
    assert run(None).events == {}


ON_THE_GRID = {
    "end": lambda q, p: q[0] - 0.8,
    "sign": lambda q, p: 0.8 - q[0],
    "square": lambda q, p: (q[0] - 0.5) ** 2,
}


@pytest.mark.parametrize("digits", [None, 25])
@pytest.mark.parametrize("method, linear", [("simpson", False), ("rk4", False), ("simpson", True)])
def test_events_do_not_depend_on_the_pieces_of_a_run(method, digits, linear, monkeypatch):
    """Where pieces end is a matter of time. Also an event at the very end of a step is found, once."""
    system = la.Quadratic(np.eye(1), np.zeros((1, 1))) if linear else la.Lagrangian(lambda q, v: 0.5 * v @ v, n=1)
    found = []
    for seconds, first in ((1e-9, 1), (1e-9, 3), (10.0, 1), (10.0, 20)):
        monkeypatch.setattr("leastaction.run.drive.PIECE_SECONDS", seconds)
        monkeypatch.setattr("leastaction.run.drive.first_piece", lambda plan, first=first: first)
        events = {name: la.Event(g) for name, g in ON_THE_GRID.items()}
        path = la.integrate(system, method, [0.0], [1.0], h=0.1, steps=20, digits=digits, events=events)
        found.append({name: [*path.events[name].t] for name in events})
    assert all(one == found[0] for one in found)
    assert np.allclose(np.array(found[0]["end"], float), [0.8], rtol=1e-14)
    assert found[0]["end"] == found[0]["sign"]


AT_THE_END = {
    "event": la.Event(lambda q, p: q[0]),
    "curved": la.Event(lambda q, p: q[0] * (2 - q[0])),
    "stop": la.Event(lambda q, p: q[0], stop=True),
    "impact": la.Impact(lambda q: -q[0]),
}


@pytest.mark.parametrize(
    ("system", "pace"),
    [(SIMPLE, None), (la.Quadratic([1.0], [1.0]), None), (SIMPLE, lambda q: 1 / (1 + q[0] ** 2))],
    ids=["Lagrangian", "Quadratic", "paced"],
)
def test_an_event_at_the_end_of_a_step_in_which_its_function_has_turned(system, pace):
    """sin 5πt has a maximum where the last step begins, and in float64 it is 6e-16 where the step ends, at t = 1."""
    for method in ("simpson", "rk4") if pace is None else ("simpson",):
        events = {
            "beat": la.Event(lambda t, q, p: np.sin(5 * np.pi * t)),
            "touch": la.Event(lambda t, q, p: (t - 1) ** 2),
        }
        found = la.integrate(system, method, [1.0], [0.0], h=0.1, t_end=1.0, events=events, pace=pace).events
        np.testing.assert_allclose(found["beat"].t, np.arange(1, 6) / 5, rtol=1e-14)
        assert found["touch"].count == 0


@pytest.mark.parametrize("kind", AT_THE_END)
@pytest.mark.parametrize("method, pace", [("simpson", None), ("rk4", None), ("P6N6Q12Gau", lambda q: 1 + 0.1 * q[0])])
def test_an_event_at_the_end_of_a_run_belongs_to_it(kind, method, pace, tmp_path):
    """A body comes to zero at t_end. Rounding puts its event a little before the end or after it, and does not matter;
    nor is the event counted twice where the run goes on.
    """
    free = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2, n=1)
    events = {"zero": AT_THE_END[kind]}
    for v, t_end, count in [(0.3, 0.7, 10), (0.7, 2.3, 37), (0.3, 3.0, 10), (1.0, 0.7, 37)]:
        given = {"q0": [-v * t_end], "p0": [v], "h": t_end / count, "t_end": t_end, "events": events}
        path = la.integrate(free, method, **given, pace=pace)
        assert path.events["zero"].count == 1, (v, t_end)
        assert abs(path.events["zero"].t[0] - t_end) < 1e-14 * t_end
    if kind != "stop" and pace is None:
        la.integrate(free, method, **given, store=tmp_path / "run.zarr")
        on = la.resume(tmp_path / "run.zarr", steps=10)
        assert on.events["zero"].count == 1 and on.q[-1, 0] == pytest.approx(
            (-10 if kind == "impact" else 10) * v * t_end / 37
        )


def motion_of(system, method, event):
    """How an event sees the motion, by steps of any length."""
    start = Start(0.0, np.zeros(system.n), np.zeros(system.n), np.zeros(system.n), 0.3, system.values())
    return GalerkinMotion(system, la.method(method), start, watch({"one": event}, system))


def test_a_crossing_is_where_a_step_of_that_length_ends():
    """An event may also lie at the very end of the step."""
    motion = motion_of(KEPLER, "P8N8Q16Gau", la.Event(lambda q, p: q[1] - 0.3))
    start, h, one = np.array([[0.0, 0.4, 0.0, 0.0, 2.0]]), np.array([0.3]), np.zeros(1, np.int64)
    end = motion.steps(one, start, h)
    tau, value, states = motion.crossings(one, one, start, h, np.array([[0.0, 1.0, -0.3, end[0, 1] - 0.3]]))
    assert abs(value[0]) < 1e-15 and states[0, 1] == pytest.approx(0.3, abs=1e-15)
    np.testing.assert_array_equal(states, motion.steps(one, start, tau * h))
    tau, _, states = motion.crossings(one, one, start, h, np.array([[0.0, 1.0, -0.3, 0.0]]))
    assert tau[0] == 1.0
    np.testing.assert_array_equal(states, end)


@pytest.mark.parametrize("method", ["simpson", "P4N4Q8Gau"])
def test_a_crossing_does_not_depend_on_the_steps_solved_before(method):
    """Found together, or alone by a motion that has solved no step before: the same bits, multipliers or not."""
    system = la.Lagrangian(lambda q, v: 0.5 * (v @ v) - 9.81 * q[1], n=2, constraints=lambda q: (q @ q - 1) / 2)
    event, angles = la.Event(lambda q, p: q[0] - 0.1), np.linspace(-1.5, -0.01, 40)
    q = np.stack([np.sin(angles), -np.cos(angles)], axis=1)
    p = np.linspace(0.5, 5.0, 40)[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    starts, h, who = np.concatenate([np.zeros((40, 1)), q, p], axis=1), np.full(40, 0.3), np.zeros(40, np.int64)
    motion = motion_of(system, method, event)
    begin, end = starts[:, 1] - 0.1, motion.steps(who, starts, h)[:, 0] - 0.1
    rows = np.flatnonzero(begin * end < 0)
    assert len(rows) > 10
    brackets = np.stack([0 * h, 0 * h + 1, begin, end], axis=1)
    together = motion.crossings(who[rows], who[rows], starts[rows], h[rows], brackets[rows])
    for i, k in enumerate(rows):
        alone = motion_of(system, method, event).crossings(who[:1], who[:1], starts[[k]], h[[k]], brackets[[k]])
        for found, wanted in zip(together, alone, strict=True):
            np.testing.assert_array_equal(found[[i]], wanted)
