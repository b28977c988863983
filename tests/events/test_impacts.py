"""Impacts: against exact motions, energy over many of them, tangent maps, resting contact."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import leastaction as la
from leastaction.results.inside_steps import states
from thrift import rest_slow


def thrown(q, v, g):
    return 0.5 * (v @ v) - g * q[0]


BALL = la.Lagrangian(thrown, n=1, params={"g": 1.0})
FREE = la.Lagrangian(lambda q, v: 0.5 * (v @ v), n=2)
FLOOR = {"floor": la.Impact(lambda q: q[0])}
CIRCLE = {"wall": la.Impact(lambda q: 1 - q @ q)}


def stadium(q):
    """Two half circles of radius 1, one wide apart: the distance of the wall from the segment between their centres."""
    x = np.maximum(np.abs(q[0]) - 0.5, 0.0)
    return 1 - x**2 - q[1] ** 2


@pytest.mark.parametrize("method", ["midpoint", "simpson", "P4N4Q8Gau", "P8N8Q16Gau", "rk4"])
@pytest.mark.parametrize("h", [0.1, 1.0])
def test_a_ball_bounces_at_exact_times(method, h):
    """Both methods solve free fall exactly: after √2 and then every 2√2, also thrice in a step."""
    if method == "midpoint":
        system, q0, p0, exact = FREE, [1.0, 0.0], [-1.0, 0.5], np.arange(1, 30, 2.0)
        walls = {"floor": la.Impact(lambda q: q[0]), "lid": la.Impact(lambda q: 1 - q[0])}
        path = la.integrate(system, method, q0, p0, h=h, t_end=30, events=walls)
        np.testing.assert_allclose(path.events["lid"].t, exact + 1, rtol=1e-13)
    else:
        path = la.integrate(BALL, method, [1.0], [0.0], h=h, t_end=30, events=FLOOR)
        exact = math.sqrt(2) * np.arange(1, 30 / math.sqrt(2), 2)
        np.testing.assert_allclose(path.events["floor"].p, -math.sqrt(2), rtol=1e-13)
        np.testing.assert_allclose(path.energy(), 1.0, rtol=1e-13)
    np.testing.assert_allclose(path.events["floor"].t, exact, rtol=1e-13)
    np.testing.assert_allclose(path.events["floor"].p_after[:, 0], -path.events["floor"].p[:, 0], rtol=1e-13)
    np.testing.assert_allclose(path.t, h * np.arange(len(path)), rtol=1e-15)


@pytest.mark.parametrize("every", [1, 4, 100])
@pytest.mark.parametrize("method", ["simpson", "rk4"])
def test_dense_output_knows_of_impacts(every, method):
    path = la.integrate(BALL, method, [1.0], [0.0], h=0.3, steps=40, every=every, events=FLOOR)
    t = np.linspace(0, path.t[-1], 301)
    since = (t + math.sqrt(2)) % (2 * math.sqrt(2)) - math.sqrt(2)
    np.testing.assert_allclose(path(t)[:, 0], 1 - since**2 / 2, atol=1e-12)


def test_the_law_of_reflection_in_a_circle():
    """Angular momentum and energy are kept, and so are the angles: chords of one length."""
    path = la.integrate(FREE, "midpoint", [0.3, 0.1], [0.7, 0.4], h=0.5, steps=1000, events=CIRCLE)
    wall = path.events["wall"]
    np.testing.assert_allclose(wall.q[:, 0] ** 2 + wall.q[:, 1] ** 2, 1, rtol=1e-14)
    np.testing.assert_allclose(path.energy(), path.energy()[0], rtol=1e-12)
    spin = path.q[:, 0] * path.p[:, 1] - path.q[:, 1] * path.p[:, 0]
    np.testing.assert_allclose(spin, spin[0], rtol=0, atol=1e-13)
    chords = np.diff(wall.t)
    speed, nearest = math.hypot(0.7, 0.4), abs(0.3 * 0.4 - 0.1 * 0.7) / math.hypot(0.7, 0.4)
    np.testing.assert_allclose(chords, 2 * math.sqrt(1 - nearest**2) / speed, rtol=1e-11)


@pytest.mark.slow
def test_the_energy_in_a_stadium():
    wall = {"wall": la.Impact(stadium)}
    path = la.integrate(FREE, "midpoint", [0.1, 0.2], [0.8, 0.6], h=0.7, steps=1500, events=wall)
    assert path.events["wall"].count > 500
    assert np.abs(path.energy() / path.energy()[0] - 1).max() < 1e-13
    assert min(stadium(q) for q in path.q) > -1e-13


def test_the_metric_is_that_of_the_mass():
    """Two masses on a line meet: as momentum and energy say."""
    m, M = 1.0, 3.0
    system = la.Lagrangian(lambda q, v, m, M: 0.5 * m * v[0] ** 2 + 0.5 * M * v[1] ** 2, n=2, params={"m": m, "M": M})
    for e in (1.0, 0.4):
        meet = {"meet": la.Impact(lambda q: q[1] - q[0], restitution=e)}
        path = la.integrate(system, "simpson", [0.0, 1.0], v0=[2.0, -1.0], h=0.1, steps=20, events=meet)
        v = path.velocity()[-1]
        np.testing.assert_allclose(v @ [m, M], 2 * m - M, rtol=1e-14)
        np.testing.assert_allclose(v[1] - v[0], e * 3, rtol=1e-14)


def test_a_wall_that_moves():
    """A piston that comes with the speed u throws a ball at rest back with 2u."""
    piston = {"piston": la.Impact(lambda t, q: q[0] - 0.5 * t + 1)}
    path = la.integrate(FREE, "simpson", [0.0, 0.0], [0.0, 0.0], h=0.3, steps=20, events=piston)
    np.testing.assert_allclose(path.events["piston"].t, [2.0], rtol=1e-14)
    np.testing.assert_allclose(path.p[-1], [1.0, 0.0], rtol=1e-14)


def test_a_lagrangian_that_is_not_quadratic_in_v():
    system = la.Lagrangian(lambda q, v: -np.sqrt(1 - v @ v), n=2)
    path = la.integrate(system, "simpson", [0.5, 0.0], v0=[-0.9, 0.3], h=0.1, steps=20, events=FLOOR)
    np.testing.assert_allclose(path.velocity()[-1], [0.9, 0.3], rtol=1e-13)


def test_a_corner_is_left_by_the_way_it_was_entered():
    walls = {"x": la.Impact(lambda q: q[0]), "y": la.Impact(lambda q: q[1])}
    path = la.integrate(FREE, "midpoint", [1.0, 1.0], [-1.0, -1.0], h=0.3, steps=10, events=walls)
    np.testing.assert_allclose(path.p[-1], [1.0, 1.0], rtol=1e-14)
    assert path.events["x"].count == path.events["y"].count == 1


@pytest.mark.parametrize(("method", "order", "h"), [("simpson", 4, 0.1), ("P3N3Q6Gau", 6, 0.2)])
def test_the_order_is_kept_through_impacts(method, order, h):
    """Pendulums against a wall, of all starts together: one error depends on where in their steps the impacts lie."""
    system = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    wall = {"wall": la.Impact(lambda q: q[0] + 0.3, restitution=0.9)}

    def ends(method, h):
        paths = [la.integrate(system, method, [x], [0.0], h=h, t_end=10, events=wall) for x in np.linspace(0.8, 1.4, 7)]
        return np.array([[path.events["wall"].t[1], path.q[-1, 0], path.p[-1, 0]] for path in paths])

    exact = ends("P8N8Q16Gau", 0.1)
    hs = h / 2.0 ** np.arange(4)
    errors = np.sqrt([np.mean((ends(method, h) - exact) ** 2, axis=0) for h in hs])
    for error in errors.T:
        slope = np.polyfit(np.log(hs), np.log(error), 1)[0]
        assert abs(slope - order) < 0.2, error


def test_a_motion_that_begins_on_a_wall_and_goes_into_it():
    for method in ("simpson", "rk4"):
        path = la.integrate(FREE, method, [0.0, 0.0], [-1.0, 1.0], h=0.1, steps=10, events=FLOOR)
        np.testing.assert_allclose(path.q[-1], [1.0, 1.0], rtol=1e-14)
        assert path.events["floor"].t.tolist() == [0.0]


@pytest.mark.parametrize("restitution", rest_slow([0.0, 0.5, 0.9], [0.0, 0.5]))
def test_resting_contact_ends_the_run(restitution):
    """The run ends where a flight of length T, T²/8 high, lies within eight roundings of h²/2, by which the ball would
    fall in the rest of a step.
    """
    floor = {"floor": la.Impact(lambda q: q[0], restitution=restitution)}
    with pytest.raises(la.RestingContact, match="'floor' follow each other without end") as caught:
        la.integrate(BALL, "simpson", [1.0], [0.0], h=0.1, steps=1000, events=floor)
    path, e = caught.value.path, restitution
    rest = math.sqrt(2) * (1 + e) / (1 - e)  # the sum of all flights
    last = 0.1 * math.sqrt(32 * np.finfo(float).eps)
    assert abs(path.events["floor"].t[-1] - rest) < 1e-12 + last * e / (1 - e)
    assert path.t[-1] <= rest
    flights = np.diff(path.events["floor"].t)[:20]
    np.testing.assert_allclose(flights, 2 * math.sqrt(2) * e ** np.arange(1, len(flights) + 1), rtol=1e-6)
    assert isinstance(caught.value, la.StepFailed)


def test_events_and_impacts_together():
    """The apex of every flight, and the end at the third impact's flight."""
    events = {**FLOOR, "apex": la.Event(lambda q, p: p[0], -1, stop=True, most=3)}
    path = la.integrate(BALL, "simpson", [1.0], [0.0], h=0.37, steps=100, events=events)
    np.testing.assert_allclose(path.events["apex"].t, 2 * math.sqrt(2) * np.arange(1, 4), rtol=1e-13)
    np.testing.assert_allclose(path.events["apex"].q, 1, rtol=1e-13)
    assert path.t[-1] == path.events["apex"].t[-1]
    assert path.events["floor"].count == 3


THROUGH_IMPACTS = [
    (driven, method, every)
    for driven in (False, True)
    for method, every in (
        ("P3N3Q6Gau", 1), ("P3N3Q6Gau", 3), ("P4N4Q8Gau", 3), ("P8N8Q16Gau", 1),
        ("rk4", 1), ("rk4-lagrange", 3), ("yoshida(P1N2Q2Lob)", 3),
    )
]  # fmt: skip


@pytest.mark.parametrize(
    ("driven", "method", "every"),
    rest_slow(
        THROUGH_IMPACTS,
        [(False, "P3N3Q6Gau", 3), (True, "P8N8Q16Gau", 1), (True, "rk4", 1), (True, "yoshida(P1N2Q2Lob)", 3)],
    ),
)
def test_the_tangent_map_passes_impacts(driven, method, every):
    """Against differences of runs: by the initial state, by the parameters, and by h."""

    def swing(t, q, v, a, m):
        force = a * np.sin(t) * q[0] if driven else 0.0
        return 0.5 * (1 + m * q[1] ** 2) * v[0] ** 2 + 0.5 * m * v[1] ** 2 - q[0] ** 2 - 0.5 * q[1] ** 4 + force

    system = la.Lagrangian(swing, n=2, params={"a": 0.7, "m": 1.3})
    wall = {"wall": la.Impact(lambda t, q, a: q[0] + 0.2 * q[1] ** 2 + 0.4 * a + 0.05 * np.cos(t), restitution=0.8)}

    def end(x, tangent=False):
        q0, p0, (a, m, h) = x[:2], x[2:4], x[4:]
        options = {"params": {"a": a, "m": m}, "h": h, "steps": 90, "every": every, "events": wall, "tangent": tangent}
        return la.integrate(system, method, q0, p0, **options)

    x = np.array([0.9, 0.4, 0.1, -0.3, 0.7, 1.3, 0.11])
    path = end(x, "all")
    assert path.events["wall"].count >= 2
    exact = np.concatenate([path.tangent, path.sensitivity], axis=2)

    def difference(j, small):
        ahead, behind = (end(x + sign * small * np.eye(7)[j]) for sign in (1, -1))
        return (np.hstack([ahead.q, ahead.p]) - np.hstack([behind.q, behind.p])) / (2 * small)

    for j in range(7):
        slope = (4 * difference(j, 1e-5) - difference(j, 2e-5)) / 3
        np.testing.assert_allclose(exact[:, :, j], slope, atol=1e-7 * np.abs(slope).max())
    if not driven and not method.startswith("rk4"):
        np.testing.assert_allclose(np.abs(np.linalg.det(path.tangent[1:3])), 1, rtol=1e-10)


@pytest.mark.parametrize("method", ["P3N3Q6Gau", "rk4", "rk4-lagrange", "yoshida(P1N2Q2Lob)"])
def test_the_tangent_map_passes_impacts_at_more_digits(method):
    """It is that of float64, with more digits: by state, parameters and h, with a wall and a Lagrangian of t."""

    def swing(t, q, v, a):
        return 0.5 * (1 + q[1] ** 2) * v[0] ** 2 + 0.5 * v[1] ** 2 - q[0] ** 2 - 0.5 * q[1] ** 4 + a * np.sin(t) * q[0]

    system = la.Lagrangian(swing, n=2, params={"a": 0.7})
    wall = {"wall": la.Impact(lambda t, q, a: q[0] + 0.2 * q[1] ** 2 + 0.4 * a + 0.05 * np.cos(t), restitution=0.8)}
    given = {"q0": [0.9, 0.4], "p0": [0.1, -0.3], "h": 0.11, "steps": 40, "events": wall, "tangent": "all"}
    path, more = la.integrate(system, method, **given), la.integrate(system, method, **given, digits=25)
    assert path.events["wall"].count == more.events["wall"].count >= 1
    for name in ("q", "p", "tangent", "sensitivity"):
        wanted = getattr(more, name).astype(float)
        np.testing.assert_allclose(getattr(path, name), wanted, atol=1e-9 * np.abs(wanted).max())


def test_a_wall_without_parameters_and_what_is_refused():
    ball = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - q[0], n=1)
    path = la.integrate(ball, "simpson", [1.0], [0.0], h=0.1, steps=30, events=FLOOR, tangent="all")
    assert path.events["floor"].count == 1 and path.sensitivity.shape == (31, 2, 1)
    with pytest.raises(ValueError, match="matrix for one h"):
        la.integrate(la.Quadratic([1.0], [1.0]), "simpson", [1.0], [0.0], h=0.1, steps=3, events=FLOOR, tangent=True)


def slower(q):
    return 1 + q[0] ** 2 / 4


BETWEEN = [("midpoint", None), ("simpson", None), ("P5N5Q10Gau", None), ("rk4", None), ("P5N5Q10Gau", slower)]


@pytest.mark.parametrize("h", [0.2, -0.2])
@pytest.mark.parametrize(("method", "pace"), BETWEEN)
def test_states_between_are_right_on_both_sides_of_an_impact(method, h, pace):
    """Of a ball, whose bounces are known: q and p just before each, at it, just after it, and anywhere."""
    ball = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - q[0], n=1)
    run = {"h": h, "events": FLOOR} | ({"steps": 60} if pace is None else {"t_end": math.copysign(12, h), "pace": pace})
    path = la.integrate(ball, method, [1.0], [0.0], **run)
    hits = path.events["floor"].t
    assert len(hits) >= 4
    t = np.concatenate([hits - 1e-9 * h, hits, hits + 1e-9 * h, np.linspace(path.t[0], path.t[-1], 501)])
    q, p = states(path, t)
    after = np.abs(t) + math.sqrt(2)  # since the bounce before the start
    since = np.where(np.abs(t[:, None]) >= np.abs(hits), np.abs(hits) + math.sqrt(2), 0.0).max(axis=1)
    exact = math.copysign(1.0, h) * (math.sqrt(2) - (after - since))
    np.testing.assert_allclose(p[:, 0], exact, atol=1e-8 if pace is None else 1e-6)
    if method != "midpoint":  # whose polynomial is a straight line
        np.testing.assert_allclose(q[:, 0], 1 - exact**2 / 2, atol=1e-8)


def test_fifty_digits():
    path = la.integrate(BALL, "simpson", [1], [0], h="1/10", steps=100, digits=50, events=FLOOR)
    with mpmath.workdps(55):
        for k, t in enumerate(path.events["floor"].t):
            assert abs(t - mpmath.sqrt(2) * (2 * k + 1)) < mpmath.mpf(10) ** -48
        assert max(abs(path.energy() - 1)) < mpmath.mpf(10) ** -48


def test_bad_input():
    with pytest.raises(TypeError, match=r"g\(q\) or g\(t, q\)"):
        la.Impact(3)
    for e in (-0.1, 1.1, "1", True, float("nan")):
        with pytest.raises(ValueError, match="restitution must be a number from 0 to 1"):
            la.Impact(lambda q: q[0], restitution=e)
    with pytest.raises(la.TraceError, match=r"must be g\(q\) or g\(t, q\)"):
        la.integrate(BALL, "simpson", [1.0], [0.0], h=0.1, steps=3, events={"x": la.Impact(lambda q, p: q[0])})
    with pytest.raises(ValueError, match="begins behind the wall"):
        la.integrate(BALL, "simpson", [-1.0], [0.0], h=0.1, steps=3, events=FLOOR)


SQUARE = {
    "left": la.Impact(lambda q: q[0]), "right": la.Impact(lambda q: 1 - q[0]),
    "floor": la.Impact(lambda q: q[1]), "roof": la.Impact(lambda q: 1 - q[1]),
}  # fmt: skip
CORNER = {"floor": la.Impact(lambda q: q[1]), "left": la.Impact(lambda q: q[0])}
THROWN = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - q[0], n=1)


@pytest.mark.parametrize("v0", [(1.0, 1.0), (1.0, 2.0)])
@pytest.mark.parametrize("h", rest_slow([0.05, 0.1, 0.125, 0.3], [0.1, 0.125]))
@pytest.mark.parametrize("method", rest_slow(["midpoint", "simpson", "P4N4Q8Gau", "rk4"], ["simpson", "rk4"]))
def test_a_square_keeps_what_meets_its_corners_at_the_end_of_a_step(method, h, v0):
    path = la.integrate(FREE, method, [0.5, 0.5], v0, h=h, steps=100, events=SQUARE)
    assert np.abs(path.q - 0.5).max() < 0.5 + 1e-12
    np.testing.assert_allclose(np.abs(path.p), np.tile(v0, (101, 1)), rtol=1e-12)


@pytest.mark.parametrize("digits", [None, 30])
@pytest.mark.parametrize("start", [0.0, 0.9])
def test_a_corner_throws_back_from_both_walls(start, digits):
    how = {"h": 0.3, "steps": 12, "events": CORNER, "digits": digits}
    path = la.integrate(FREE, "midpoint", [start, start], [-1.0, -1.0], **how)
    np.testing.assert_allclose(path.q[-1].astype(float), 3.6 - start, rtol=1e-12)


@pytest.mark.parametrize("v0", rest_slow([0.7, 1.0, 3.0, 5.0], [1.0, 5.0]))
@pytest.mark.parametrize("h", rest_slow([0.05, 0.1, 0.2, 0.3], [0.1, 0.3]))
@pytest.mark.parametrize("method", ["simpson", "P4N4Q8Gau"])
def test_an_impact_at_the_end_of_a_step_is_no_resting_contact(method, h, v0):
    free = la.Lagrangian(lambda q, v: 0.5 * v @ v, n=1)
    walls = {"right": la.Impact(lambda q: 1 - q[0]), "left": la.Impact(lambda q: q[0])}
    path = la.integrate(free, method, [0.5], [v0], h=h, steps=150, events=walls)
    assert np.abs(path.q - 0.5).max() < 0.5 + 1e-12


@pytest.mark.parametrize(("method", "digits"), [("simpson", None), ("P4N4Q8Gau", None), ("simpson", 20), ("rk4", None)])
def test_the_jump_of_a_momentum_is_no_event_and_hides_none(method, digits):
    """The velocity of a ball is zero at its apexes alone, however many bounces a step has."""
    events = {"wall": la.Impact(lambda q: q[0]), "up": la.Event(lambda q, p: p[0], +1)}
    path = la.integrate(THROWN, method, [1.0], [0.0], h=0.25, steps=20, digits=digits, events=events)
    assert path.events["up"].count == 0
    events = {"wall": la.Impact(lambda q: q[0]), "apex": la.Event(lambda q, p: p[0], -1)}
    path = la.integrate(THROWN, method, [1.0], [0.0], h=3.0, t_end=15, digits=digits, events=events)
    assert path.events["apex"].count == 5


@pytest.mark.parametrize("method", ["simpson", "rk4"])
@pytest.mark.parametrize(("place", "way", "speed"), [(0.1, 0.7, 1.3), (0.37, 1.1, 0.77), (0.0, 0.3, 0.7)])
def test_newtons_cradle(method, place, way, speed):
    """Of three equal masses, two of which touch, the first stops, the third goes on: one impact of each pair."""
    masses = la.Lagrangian(lambda q, v: 0.5 * v @ v, n=3)
    pairs = {"left": la.Impact(lambda q: q[1] - q[0]), "right": la.Impact(lambda q: q[2] - q[1])}
    path = la.integrate(masses, method, [place - way, place, place], [speed, 0.0, 0.0], h=0.3, steps=6, events=pairs)
    np.testing.assert_allclose(path.p[-1], [0.0, 0.0, speed], atol=1e-14)
    for pair in path.events.values():
        np.testing.assert_allclose(pair.t, [way / speed], rtol=1e-14)


def test_events_at_one_time_do_not_depend_on_the_order_of_their_names():
    wall, touch = la.Impact(lambda q: q[0]), la.Event(lambda q, p: q[0], stop=True)
    for events in ({"wall": wall, "touch": touch}, {"touch": touch, "wall": wall}):
        path = la.integrate(THROWN, "simpson", [1.0], [0.0], h=0.1, steps=100, events=events)
        assert (path.events["wall"].count, path.events["touch"].count) == (4, 0)
    end, other = la.Event(lambda q, p: q[0] - 1, stop=True), la.Event(lambda q, p: 2 * q[0] - 2)
    for events in ({"end": end, "other": other}, {"other": other, "end": end}):
        path = la.integrate(FREE, "simpson", [0.5, 0.0], [1.0, 0.0], h=0.3, steps=10, events=events)
        assert path.events["other"].count == 1
