"""A run warns, once, of an autonomous motion that does not keep its energy, and never of one that does."""

import warnings

import numpy as np
import pytest

import leastaction as la
from leastaction.run import motion_checks
from seeds import generator
from systems import catalogued
from thrift import rest_slow

LARGE = motion_checks.LARGE
FALL = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + 1 / q[0], n=1)
STIFF = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - 0.5e4 * q[0] ** 2, n=1)
KEPLER = la.problems.get("kepler", eccentricity="0.99")


def three_bodies(q, v):
    m, x, u = np.array([3.0, 4.0, 5.0]), q.reshape(3, 2), v.reshape(3, 2)
    pairs = ((0, 1), (1, 2), (2, 0))
    return 0.5 * m @ (u**2).sum(axis=1) + sum(m[i] * m[j] / np.linalg.norm(x[i] - x[j]) for i, j in pairs)


PYTHAGOREAN = {"q0": [1.0, 3.0, -2.0, -1.0, 1.0, -1.0], "p0": np.zeros(6)}
LOST = {
    "tunnel": (FALL, "stormer-verlet", {"q0": [1.0], "p0": [0.0], "h": 0.01, "steps": 1000}),
    "pericentre": (KEPLER.system, "simpson", {"q0": KEPLER.q0, "p0": KEPLER.p0, "h": 2 * np.pi / 1000, "steps": 3000}),
    "collision": (la.Lagrangian(three_bodies, n=6), "simpson", {**PYTHAGOREAN, "h": 1e-3, "steps": 5000}),
    "unstable": (STIFF, "simpson", {"q0": [1.0], "p0": [0.0], "h": 0.1, "steps": 60}),
    "beyond floats": (STIFF, "simpson", {"q0": [1.0], "p0": [0.0], "h": 0.1, "steps": 90}),
    "rk4": (STIFF, "rk4", {"q0": [1.0], "p0": [0.0], "h": 0.1, "steps": 20}),
}


def told(run):
    """What a run gives, and what it says of its energy."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = run()
    return result, [str(warning.message) for warning in found if warning.category is la.EnergyWarning]


@pytest.mark.parametrize("case", LOST)
def test_a_lost_energy_is_told_once(case):
    system, method, start = LOST[case]
    path, messages = told(lambda: la.integrate(system, method, **start))
    assert len(messages) == 1 and "smaller h" in messages[0]
    right, wrong, error, size = path.stats["energy_lost"]
    assert start["h"] * start["steps"] >= wrong > right >= 0
    E = path.energy()
    assert abs(E - E[0])[path.t >= wrong - start["h"] / 2][0] == pytest.approx(error, rel=1e-6)
    assert error > motion_checks.LARGE * size


@pytest.mark.parametrize("case", LOST)
def test_it_is_told_of_a_run_that_keeps_the_last_state_alone(case):
    system, method, start = LOST[case]
    start = {**start, "every": start["steps"]}
    path, messages = told(lambda: la.integrate(system, method, **start))
    assert len(messages) == 1 and path.stats["energy_lost"][:2] == [0, path.t[-1]]
    one, messages = told(lambda: la.integrate(system, method, **start, output=[0], tangent=True))
    assert len(messages) == 1
    assert one.stats["energy_lost"] == pytest.approx(path.stats["energy_lost"], rel=1e-6)


def test_at_more_digits():
    system, method, start = LOST["unstable"]
    whole, _ = told(lambda: la.integrate(system, method, **start))
    path, messages = told(lambda: la.integrate(system, method, **start, digits=30))
    assert len(messages) == 1
    assert path.stats["energy_lost"] == pytest.approx(whole.stats["energy_lost"], rel=1e-9)


@pytest.mark.parametrize("method", ["simpson", "P8N8Q16Gau", "rk4"])
def test_the_trajectories_of_an_ensemble_that_lose_their_energy_are_named(method):
    """In lanes and one by one: those that go round are right, those that fall in are not."""
    p = np.array([[0.0, 1.0], [0.0, 1e-3], [0.0, 1.1], [0.0, 2e-3], [0.0, 0.9]])
    system = catalogued("kepler").system
    start = {"q0": [1.0, 0.0], "p0": p, "h": 0.05, "steps": 300}
    paths, messages = told(lambda: la.ensemble(system, method, **start, final_only=True))
    lost = {i for i in np.flatnonzero(paths.status == 0) if abs(paths.energy()[i, -1] - p[i] @ p[i] / 2 + 1) > 0.5}
    assert set(paths.stats.get("energy_lost", [])) >= lost and not {0, 2, 4} & set(paths.stats.get("energy_lost", []))
    assert len(messages) == bool(paths.stats.get("energy_lost"))


ANGLES = la.Lagrangian(lambda q, v: 0.5 * (v[0] ** 2 + (np.sin(q[0]) * v[1]) ** 2) + 9.81 * np.cos(q[0]), n=2)


@pytest.mark.parametrize("steps", [400, 500])
def test_an_energy_that_comes_and_goes(steps):
    """A spherical pendulum that passes a pole of its chart within one step, with another energy every time: it is wrong
    by more than a fifth of the kinetic energy after 400 steps, and at the end of 500 steps no longer.
    """
    path, messages = told(lambda: la.integrate(ANGLES, "P8N8Q16Gau", [1.0, 0.0], [0.0, 0.01], h=0.01, steps=steps))
    E, K = path.energy(), 0.5 * (path.p[:, 0] ** 2 + (path.p[:, 1] / np.sin(path.q[:, 0])) ** 2)
    assert (abs(E - E[0]) > motion_checks.LARGE * np.maximum.accumulate(K)).any()
    assert len(messages) == 1


def test_stored_and_resumed(tmp_path):
    system, method, start = LOST["tunnel"]
    whole, messages = told(lambda: la.integrate(system, method, **start, store=tmp_path / "whole"))
    assert len(messages) == 1
    assert la.open(tmp_path / "whole").stats["energy_lost"] == whole.stats["energy_lost"]
    first, messages = told(lambda: la.integrate(system, method, **{**start, "steps": 30}, store=tmp_path / "parts"))
    assert not messages and "energy_lost" not in first.stats
    rest, messages = told(lambda: la.resume(tmp_path / "parts", steps=970))
    assert len(messages) == 1
    assert rest.stats["energy_lost"][1:] == whole.stats["energy_lost"][1:]  # the energy was last right at another time
    paths, messages = told(
        lambda: la.ensemble(system, method, np.array([[1.0], [1.0]]), [0.0], h=0.01, steps=300, store=tmp_path / "many")
    )
    assert len(messages) == 1 and paths.stats["energy_lost"] == [0, 1]
    assert la.open(tmp_path / "many").stats["energy_lost"] == [0, 1]


UNTAMED = {"q0": [1.0, 0.0], "p0": [0.0, 0.05], "h": 0.1, "steps": 400, "pace": lambda q: 1 + 0 * q[0]}


def test_with_a_pace(tmp_path):
    """H of the motion in time is looked at, and the times are those of t, not of s."""
    system = catalogued("kepler").system
    path, messages = told(lambda: la.integrate(system, "stormer-verlet", **UNTAMED))
    assert len(messages) == 1
    right, wrong, error, size = path.stats["energy_lost"]
    E = path.energy()
    assert right in path.t and abs(E - E[0])[path.t == wrong][0] == pytest.approx(error, rel=1e-9)
    assert error > motion_checks.LARGE * size
    paths, messages = told(
        lambda: la.ensemble(system, "stormer-verlet", **{**UNTAMED, "p0": [[0.0, 0.9], [0.0, 0.05]]})
    )
    assert len(messages) == 1 and paths.stats["energy_lost"] == [1]
    _, messages = told(lambda: la.integrate(system, "stormer-verlet", **{**UNTAMED, "steps": 40}, digits=20))
    assert len(messages) == 1
    stored, messages = told(lambda: la.integrate(system, "stormer-verlet", **UNTAMED, store=tmp_path / "run"))
    assert len(messages) == 1 and stored.stats["energy_lost"] == path.stats["energy_lost"]
    assert la.open(tmp_path / "run").stats["energy_lost"] == path.stats["energy_lost"]


@pytest.mark.parametrize("method", ["simpson", "P4N4Q8Gau"])
@pytest.mark.parametrize("x", [1.0, 1.1])
def test_a_pace_that_vanishes_on_the_way(method, x):
    """Where σ = 0 time stands still; the motion in s came back from there, and went on in time as another motion."""
    run = {"q0": [x, 0.0], "v0": [0.0, 1.0], "h": 0.1, "t_end": 3.0, "pace": lambda q: q[0] - 0.5}
    system = catalogued("kepler").system
    path, messages = told(lambda: la.integrate(system, method, **run))
    assert len(messages) == 1 and 1 < path.stats["energy_lost"][1] < 1.3
    _, messages = told(lambda: la.ensemble(system, method, **run | {"q0": [[x, 0.0], [x + 0.01, 0.0]]}))
    assert len(messages) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kepler", "pendulum", "henon-heiles", "double-pendulum", "figure-eight"])
def test_never_of_ordinary_paces(name, monkeypatch):
    monkeypatch.setattr(motion_checks, "LARGE", motion_checks.LARGE / 4)
    problem = catalogued(name)
    period = problem.period if problem.period is not None and np.isfinite(problem.period) else 2 * np.pi
    for method in ("midpoint", "simpson", "P4N4Q8Gau"):
        for steps in (1, 13, 100, 517):
            run = {"h": period / 100, "steps": steps, "pace": "auto"}
            path, messages = told(
                lambda method=method, run=run: la.integrate(problem.system, method, problem.q0, problem.p0, **run)
            )
            assert not messages and "energy_lost" not in path.stats


@pytest.mark.parametrize("e", [0.9, 0.99, 0.999])
def test_never_of_a_comet_at_its_pace(e):
    """H wanders near the centre, where a step of s is short in t: by less than the kinetic energy there."""
    q0, p0 = [1 - e, 0.0], [0.0, ((1 + e) / (1 - e)) ** 0.5]
    for method in ("simpson", "P4N4Q8Gau"):
        run = {"h": 0.02, "steps": 1000, "pace": lambda q: np.sqrt(q @ q)}
        path, messages = told(
            lambda method=method, run=run: la.integrate(catalogued("kepler").system, method, q0, p0, **run)
        )
        assert not messages and "energy_lost" not in path.stats


def test_a_run_that_ends_early_keeps_and_tells_what_it_lost():
    """Beyond floats the step fails at last; the energy was wrong long before."""
    system, method, start = LOST["unstable"]
    with pytest.raises(la.StepFailed, match="Its energy was wrong before: from t = ") as failed:
        la.integrate(system, method, **{**start, "steps": 1000})
    right, wrong, error, size = failed.value.path.stats["energy_lost"]
    assert 0 <= right < wrong <= failed.value.time and error > motion_checks.LARGE * size


def in_units(q, v, a, c, shift, gauge):
    """A particle on its way over −1/x, with a constant and d(q³)/dt added; in units a of q and c of L."""
    x, u = q / a, v / a
    return c * (0.5 * u[0] ** 2 + 1 / x[0] + shift + gauge * 3 * x[0] ** 2 * u[0])


@pytest.mark.parametrize("steps, lost", [(35, False), (300, True)])
def test_neither_units_nor_what_does_not_matter_in_L_change_the_verdict(steps, lost):
    system = la.Lagrangian(in_units, n=1, params={"a": 1.0, "c": 1.0, "shift": 0.0, "gauge": 0.0})
    rng = generator()
    cases = [(1.0, 1.0, 0.0, 0.0), (1.0, 1.0, 1e6, 0.0), (1.0, 1.0, -1e6, 0.0), (1.0, 1.0, 0.0, 0.3)]
    cases += [(2.0**i, 2.0**j, 0.0, 0.0) for i, j in rng.integers(-300, 300, (5, 2))]
    for a, c, shift, gauge in cases:
        params = {"a": a, "c": c, "shift": shift, "gauge": gauge}
        start = {"q0": [a], "v0": [0.0], "h": 0.01, "steps": steps, "params": params}
        path, messages = told(lambda start=start: la.integrate(system, "stormer-verlet", **start))
        assert ("energy_lost" in path.stats) == lost == bool(messages), params


AUTONOMOUS = [
    name
    for name in la.problems.names()
    if not (catalogued(name).system.forced or catalogued(name).system.depends_on_time)
]
# Steps in a period, or in 2π where there is none. Pleiades has close encounters, and its period is a time unit.
ORDINARY = {
    "pleiades": 200,
    "chain": 500,
    "slider-crank": 1000,
    "four-bar-linkage": 1000,
    "n-four-bar": 1000,
    "andrews-squeezer": 1000,
}
# Close encounters, for which equal steps are never ordinary: the warning is right there.
ENCOUNTERS = ("arenstorf", "butterfly", "moth", "pythagorean", "yin-yang")
METHODS = ("midpoint", "stormer-verlet", "simpson", "rk4", "rk4-lagrange", "P4N4Q8Gau")
# RK4 has no multipliers for constraints.
RUNS = [
    pytest.param(name, method, marks=() if method in ("simpson", "rk4") else pytest.mark.slow)
    for name in AUTONOMOUS
    for method in METHODS
    if name not in ENCOUNTERS and not (method.startswith("rk4") and catalogued(name).system.m)
]


@pytest.mark.parametrize("name", ENCOUNTERS)
def test_close_encounters_with_equal_steps_are_told(name):
    problem = catalogued(name)
    period = problem.period or 2 * np.pi
    run = {"h": period / 50, "steps": 350}
    _, messages = told(lambda: la.integrate(problem.system, "rk4", problem.q0, problem.p0, **run))
    assert len(messages) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("name", "method"), RUNS)
def test_never_over_the_catalogue(name, method, monkeypatch):
    """No warning after one step, within a period, after whole periods, where all is as it was, and later, of a run that
    keeps the last state alone; nor, if a third of the error were enough, of a run that keeps all.
    """
    problem = catalogued(name)
    period = problem.period if problem.period is not None and np.isfinite(problem.period) else 2 * np.pi
    N = ORDINARY.get(name, 50)
    for steps in (1, 2, N // 4, N, 7 * N, 10 * N + N // 3):
        for every, part in ((steps, 1), (1, 3)):
            monkeypatch.setattr(motion_checks, "LARGE", LARGE / part)
            run = {"h": period / N, "steps": steps, "every": every}
            path, messages = told(lambda run=run: la.integrate(problem.system, method, problem.q0, problem.p0, **run))
            assert not messages and "energy_lost" not in path.stats


def chain(q, v, rest):
    stretch = np.diff(q) - rest
    return 0.5 * (v @ v) - np.sum(0.5 * stretch**2 + 0.25 * stretch**4)


REST = [
    ("bottom", lambda q, v: 0.5 * v[0] ** 2 + 9.81 * np.cos(q[0]), [0.0], {}),
    ("top", lambda q, v: 0.5 * v[0] ** 2 + 9.81 * np.cos(q[0]), [np.pi], {}),
    ("deep", lambda q, v: 0.5 * v[0] ** 2 + 1e9 * np.cos(q[0] - 0.1), [0.1 + 1e-9], {}),
    ("far away", chain, [1e6, 1e6 + 0.1, 1e6 + 0.2, 1e6 + 0.3], {"rest": 0.1}),
    ("shallow", chain, [0.0, 0.1 + 1e-12, 0.2, 0.3], {"rest": 0.1}),
    ("turning", lambda q, v: 0.5 * v @ v + 1.3 * (q[0] * v[1] - q[1] * v[0]) + np.exp(-q @ q), [1e-9, 0.0], {}),
    ("nothing", lambda q, v: 0.5 * v @ v, [1.0, 2.0], {}),
]


@pytest.mark.parametrize(
    "method",
    rest_slow(["midpoint", "stormer-verlet", "simpson", "rk4", "P6N6Q12Gau"], ["midpoint", "rk4", "P6N6Q12Gau"]),
)
@pytest.mark.parametrize("name, L, q0, params", REST, ids=[name for name, *_ in REST])
def test_never_of_a_motion_that_is_rounding_alone(name, L, q0, params, method):
    system = la.Lagrangian(L, n=len(q0), params=params)
    h = 1e-6 if name == "deep" else 0.05
    for steps in (1, 10, 500):
        path, messages = told(lambda steps=steps: la.integrate(system, method, q0, np.zeros(len(q0)), h=h, steps=steps))
        assert not messages and "energy_lost" not in path.stats


def test_masses_of_both_signs():
    """½ v₀² − ½ v₁²: T is zero all the time, its terms are not."""
    system = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - 0.5 * v[1] ** 2 - 0.5 * q[0] ** 2 + 0.5 * q[1] ** 2, n=2)
    _, messages = told(lambda: la.integrate(system, "stormer-verlet", [1.0, 1.0], [0.0, 0.0], h=0.2, steps=100))
    assert not messages


def test_forces_times_and_walls_may_take_energy():
    L = lambda q, v: 0.5 * v[0] ** 2 - 10 * q[0]  # noqa: E731
    drag = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2, n=1, force=lambda q, v: -v)
    driven = la.Lagrangian(lambda t, q, v: 0.5 * v[0] ** 2 + 10 * t * q[0], n=1)
    ball = la.Lagrangian(L, n=1)
    start = {"q0": [1.0], "p0": [0.0], "h": 0.05, "steps": 100}
    runs = [
        lambda: la.integrate(drag, "simpson", **{**start, "p0": [1.0]}),
        lambda: la.integrate(driven, "simpson", **start),
        lambda: la.integrate(ball, "simpson", **start, events={"wall": la.Impact(lambda q: q[0])}),
        lambda: la.integrate(ball, "simpson", **start, events={"w": la.Impact(lambda t, q: q[0] - 0.3 * np.sin(t))}),
        lambda: la.integrate(
            ball, "simpson", **{**start, "steps": 20}, events={"w": la.Impact(lambda q: q[0], restitution=0.5)}
        ),
    ]
    for run in runs:
        _, messages = told(run)
        assert not messages


FAR, BEYOND = la.Impact(lambda q: 1e3 - q[0]), la.Impact(lambda q: q[0] + 1e200)
BESIDE_WALLS = {
    "pace": ("pericentre", {"pace": lambda q: 1 + 0 * q[0], "events": {"wall": FAR}}),
    "timed pace": ("pericentre", {"pace": lambda t, q: 1 + 0 * q[0] * t, "events": {"wall": FAR}}),
    "event of time": ("unstable", {"events": {"wall": BEYOND, "noon": la.Event(lambda t, q, p: t - 3)}}),
    "moving": ("unstable", {"events": {"wall": la.Impact(lambda t, q: q[0] + 1e200 + t)}}),
    "inelastic": ("unstable", {"events": {"wall": la.Impact(lambda q: q[0] + 0.3, restitution=0.5)}}),
    "inelastic, rk4": ("rk4", {"events": {"wall": la.Impact(lambda q: q[0] + 0.3, restitution=0.5)}}),
}  # fmt: skip


@pytest.mark.parametrize("case", BESIDE_WALLS)
def test_a_lost_energy_is_told_beside_walls(case):
    """Walls that do not move, that move, and that take energy hide no error of the method."""
    motion, more = BESIDE_WALLS[case]
    system, method, start = LOST[motion]
    path, messages = told(lambda: la.integrate(system, method, **start, **more))
    assert len(messages) == 1 and "energy_lost" in path.stats, path.stats


BALL = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - 10 * q[0], n=1)


@pytest.mark.parametrize("method", ["simpson", "midpoint", "rk4", "P4N4Q8Gau"])
def test_never_of_what_walls_take_or_give(method):
    """Impacts anywhere, at the very end of a step (the ball falls for four steps), and in the step in which the run is
    stopped; steps of both signs.
    """
    rng = generator()
    for steps in (1, 4, 5, 9, 20):
        h, e, speed = rng.choice([0.05, 0.03, -0.04]), rng.choice([0.5, 0.9, 1.0]), rng.choice([0.0, 0.5])
        events = {"wall": la.Impact(lambda t, q, speed=speed: q[0] - speed * np.sin(t), restitution=e)}
        if rng.random() < 0.5:
            events["stop"] = la.Event(lambda t, q, p, last=h * (steps - 0.3): t - last, stop=True)
        start = {"q0": [rng.choice([80 * h**2, 1.0])], "p0": [0.0], "h": h, "steps": steps, "events": events}
        try:
            path, messages = told(lambda start=start: la.integrate(BALL, method, **start))
        except la.RestingContact as contact:
            path, messages = contact.path, []
        assert not messages and "energy_lost" not in path.stats, start


def test_what_walls_take_is_known_after_a_pause(tmp_path):
    """In an archive, resumed; in an ensemble; at 20 digits; with a pace."""
    soft = {"wall": la.Impact(lambda q: q[0], restitution=0.7)}
    start = {"q0": [1.0], "p0": [0.0], "h": 0.05, "steps": 15}
    _, first = told(lambda: la.integrate(BALL, "simpson", **start, events=soft, store=tmp_path / "run"))
    path, rest = told(lambda: la.resume(tmp_path / "run", steps=15))
    assert path.events["wall"].count == 2 and abs(path.energy()[-1]) < 5 and not first + rest
    many = {**start, "q0": [[0.5], [0.8], [1.0]], "steps": 24}
    assert not told(lambda: la.ensemble(BALL, "simpson", **many, events=soft))[1]
    assert not told(lambda: la.integrate(BALL, "simpson", **start, events=soft, digits=20))[1]
    piston = {"wall": la.Impact(lambda t, q: q[0] - 0.2 * np.sin(2 * t))}
    pace = {"pace": lambda t, q: 1 + 0.1 * np.sin(t) + 0 * q[0]}
    path, messages = told(lambda: la.integrate(BALL, "simpson", **{**start, "steps": 90}, **pace, events=piston))
    assert path.events["wall"].count > 3 and np.ptp(path.energy()) > 1 and not messages


@pytest.mark.parametrize("N", [2, 3, 4, 5, 7, 14, 37, 74])
def test_never_of_long_steps_of_high_order_that_come_back(N):
    """A pendulum from rest, after one period of few steps: it is at rest again, as at every time it was looked at."""
    problem = catalogued("pendulum")
    for method in ("P4N4Q8Gau", "P8N8Q16Gau", "P12N12Q24Gau"):
        run = {"h": problem.period / N, "steps": N, "every": N}
        try:
            path, messages = told(
                lambda method=method, run=run: la.integrate(problem.system, method, problem.q0, problem.p0, **run)
            )
        except la.StepFailed:
            continue
        assert not messages and "energy_lost" not in path.stats


@pytest.mark.parametrize("run", [la.integrate, la.ensemble])
def test_of_a_few_coordinates_the_end_is_looked_at(run):
    """The pericentre, one coordinate of two stored: whole states are known at the end alone."""
    system, method, start = LOST["pericentre"]
    found, messages = told(lambda: run(system, method, **start, output=[1], every=100))
    assert len(messages) == 1 and "energy_lost" in found.stats
