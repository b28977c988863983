"""tol=: how far off runs end, what rounding and events add, and which steps are tried when a tolerance is missed."""

from __future__ import annotations

import warnings
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import leastaction as la
from leastaction import single, tries
from leastaction.ends import SAMPLES, Ends
from leastaction.many import judged
from leastaction.pilots import ways
from seeds import fresh_generator
from tolerances import error_of


def test_an_error_that_was_not_estimated_is_told(monkeypatch):
    """A run that takes long is not done twice. Where formulas give its error, nothing is unknown; else a warning tells
    that nobody has looked.
    """
    monkeypatch.setattr(tries, "CHECKED_SECONDS", 0.0)
    path = la.integrate(la.Quadratic([1.0], [1.0]), q0=[1.0], v0=[0.0], t_end=10, tol=1e-6)
    assert path.advice.reached is None and "not estimated" in repr(path.advice)
    kepler = la.problems.get("kepler")
    with pytest.warns(RuntimeWarning, match="may have been missed.*not estimated.*Compare with method='P"):
        path = la.integrate(kepler.system, q0=kepler.q0, p0=kepler.p0, t_end=10, tol=1e-6)
    assert path.advice.reached is None
    with pytest.warns(RuntimeWarning, match="may have been missed.*cannot be kept.*until t ="):
        la.integrate(kepler.system, q0=kepler.q0, p0=kepler.p0, t_end=2e5, tol=1e-10, every=10**6)


@pytest.mark.parametrize("s", [8, 12])
def test_no_time_for_shorter_steps_is_no_reason_for_an_alarm(s, monkeypatch):
    """Two runs differ by the error of the one with longer steps. That of the other one is far smaller, by its order."""
    problem, tol = la.problems.get("pendulum"), 1e-6
    question = single.Question(problem.system, (problem.q0, problem.p0, None), 3.7, 0.0, None, None)
    advice, truth = question.advice(tol), problem.exact(3.7)[0]
    monkeypatch.setattr(tries, "FURTHER_SECONDS", 0.0)

    def run(h):
        path = la.integrate(problem.system, f"P{s}N{s}Q{2 * s}Gau", problem.q0, problem.p0, h=h, t_end=3.7)
        return np.abs(path.q[-1] - truth).max() / advice.size

    h = next(h for h in 3.7 / np.geomspace(800 / s, 30 / s, 400) if run(h) > 1.2 * tol)
    chosen = replace(advice.chosen, method=f"P{s}N{s}Q{2 * s}Gau", h=h, seconds=1e-3)
    one = replace(advice, chosen=chosen, options=(chosen,), rounding=0.0)
    path = tries.advised(question, one, {"output": None, "store": None, "every": 1, "events": None})
    assert error_of(path, truth) <= path.advice.reached <= tol


@pytest.mark.parametrize(("eccentricity", "pace"), [("0.6", None), ("0.6", "auto"), ("0.9", "auto")])
def test_the_walk_of_rounding(eccentricity, pace, monkeypatch):
    """In 3,000 orbits the rounding of all steps adds up to more than that of the start, and two runs may agree by
    chance. The bound, three standard deviations at the worst phase, is above the scatter of runs, and not far above.
    With a pace E₀ does not walk, and the scatter is smaller.
    """
    if pace is None:
        monkeypatch.setattr(single, "worth_a_pace", lambda system: False)
    problem = la.problems.get("kepler", eccentricity=eccentricity)
    given = {"q0": problem.q0, "p0": problem.p0, "t_end": 3000.31 * problem.period, "pace": pace}
    question = single.Question(problem.system, (problem.q0, problem.p0, None), given["t_end"], 0.0, None, pace)
    advice = question.advice(1e-9)
    h, ends = advice.chosen.h / tries.FINER, []
    for k in range(10):
        step = h * 0.98**k if pace else tries.timely(h * 0.98**k, given["t_end"])
        run = la.integrate(problem.system, advice.chosen.method, **given, h=step, every=2**40)
        ends.append(run.q[-1] / advice.size)
    scatter = np.std(ends, axis=0).max()
    assert 1.5 * scatter < advice.rounding < 40 * scatter


def test_rounding_that_two_runs_share_is_told():
    """Runs with two steps may agree to the last bit, and both be wrong by rounding: of the end, whose numbers are large
    beside its motion; of E₀, which all runs with a pace share; of states on the way, where later errors grow.
    """
    free = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2, n=1)
    with pytest.warns(RuntimeWarning, match="was missed"):  # 2·10⁻¹² beside 1: rounding is 10⁻⁴ of the motion
        la.integrate(free, q0=[1.0], v0=[2.0], t_end=1e-12, tol=1e-6)
    start = {"q0": (1.999, 0.0), "p0": (0.0, np.sqrt(0.001 / 1.999))}
    comet = la.problems.get("kepler", **start)
    truth = comet.exact(mpmath.mpf(30), digits=40)[0].astype(float)
    for tol, allowed in ((1e-12, 1e-11), (1e-14, 1e-11)):  # such a tolerance is no reason to do worse than rounding
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            path = la.integrate(comet.system, **start, t_end=30.0, tol=tol)
        assert error_of(path, truth) <= tol or told
        assert error_of(path, truth) <= allowed
    pendulum = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    with pytest.warns(RuntimeWarning, match="was missed"):  # it stands upside down twice
        la.integrate(pendulum, q0=[np.pi - 1e-6], v0=[0.0], t_end=40.0, tol=1e-8)


@pytest.mark.parametrize(("common", "kept"), [(0.0, True), (1.0, False)])
def test_rounding_on_the_way_is_seen_in_further_runs(common, kept, monkeypatch):
    """What one unit in the last place may do at the worst time is a bound, a thousand times too large near encounters:
    further runs, whose rounding is another one, show what it does. What all runs have in common they do not show.
    """
    problem, runs, run = la.problems.get("pendulum"), [], single.run_one
    question = single.Question(problem.system, (problem.q0, problem.p0, None), 3.7, 0.0, None, None)
    advice = replace(question.advice(1e-6), rounding=1.0, common=common)
    monkeypatch.setattr(single, "run_one", lambda *args, **how: (runs.append(how["h"]), run(*args, **how))[1])
    options = {"output": None, "store": None, "every": 1, "events": None}
    if kept:
        path = tries.advised(question, advice, options)
        assert len(set(runs)) == 2 + SAMPLES and path.advice.reached <= 1e-6
        assert np.abs(path.q[-1] - problem.exact(3.7)[0]).max() <= path.advice.reached * path.advice.size
    else:
        with pytest.warns(RuntimeWarning, match="was missed"):
            tries.advised(question, advice, options)


@pytest.mark.parametrize(("horizon", "noise"), [(None, False), (1.0, False), (1.0, True)])
def test_a_horizon_is_no_reason_for_long_steps(horizon, noise, monkeypatch):
    """Pilots may take rounding for larger than it is, as van der Pol's with μ = 100 until 300 and tol = 10⁻¹² do: where
    shorter steps help, they are taken. Where they do not (`noise` that keeps the error), one is tried.
    """
    problem, runs, run = la.problems.get("pendulum"), [], single.run_one
    question = single.Question(problem.system, (problem.q0, problem.p0, None), 3.7, 0.0, None, None)
    advice = question.advice(1e-9)
    coarse = replace(advice.chosen, method="P3N3Q6Gau", h=0.02 if noise else 0.1)
    advice = replace(advice, chosen=coarse, options=(coarse,), horizon=horizon, rounding=0.0, common=0.0)

    def noisy(*args, **how):
        path = run(*args, **how)
        runs.append(how["h"])
        return path if not noise else replace(path, q=path.q + 1e-6 * len(runs))

    monkeypatch.setattr(single, "run_one", noisy)
    options = {"output": None, "store": None, "every": 1, "events": None}
    if not noise:
        path = tries.advised(question, advice, options)
        assert path.advice.reached <= 1e-9 and path.advice.horizon is None and len(runs) > 2
        assert error_of(path, problem.exact(3.7)[0]) <= 1e-9
    else:
        with pytest.warns(RuntimeWarning, match="was missed"):
            path = tries.advised(question, advice, options)
        assert len(runs) == 4 and path.advice.horizon == horizon


def test_a_low_order_that_pilots_took_for_good():
    """Where tol is missed by far, and another member that was measured would need far fewer steps, it is taken; what
    all runs have in common, here above tol, is no reason to stay with a larger error.
    """
    problem = la.problems.get("pendulum")
    question = single.Question(problem.system, (problem.q0, problem.p0, None), 3.7, 0.0, None, None)
    advice = question.advice(1e-12)
    ways = [replace(advice.chosen, method=f"P{s}N{s}Q{2 * s}Gau", h=0.1, seconds=1e-3) for s in (2, 8)]
    for common in (0.0, 3e-12):
        told = replace(advice, options=tuple(ways), chosen=ways[0], horizon=1.0, rounding=0.0, common=common)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            path = tries.advised(question, told, {"output": None, "store": None, "every": 1, "events": None})
        assert path.advice.chosen.method == path.method.name == "P8N8Q16Gau"
        assert path.advice.reached <= max(1e-12, common) and (path.advice.horizon is None) == (common == 0)
        assert error_of(path, problem.exact(3.7)[0]) <= 1e-12


def test_what_further_runs_tell_is_seldom_too_small():
    """Errors of runs that rounding scatters at random: the difference of two runs is below the error in a third of all
    cases, what all runs together tell in less than one of a hundred.
    """
    random, cases = fresh_generator(), 20_000
    q, other = random.normal(size=(2, cases, 1))
    there = Ends(q, np.ones(cases), np.zeros(cases), np.full(cases, 10.0))
    errors = there.errors(other)
    told = there.with_rounding(errors, 1.0, lambda part: random.normal(size=(cases, 1)))
    true = np.abs(q[:, 0])
    assert np.mean(errors < true) > 0.3 and np.mean(told < true) < 0.01


def test_nothing_is_rounded_at_rest():
    """A motion that stays where it begins has no size, and no error."""
    free = la.Lagrangian(lambda q, v: 0.5 * (v @ v), n=2)
    path = la.integrate(free, q0=[1.0, 2.0], v0=[0.0, 0.0], t_end=10.0, tol=1e-6)  # a warning would fail the test
    assert path.advice.reached == 0.0 and np.array_equal(path.q[-1], [1.0, 2.0])


@pytest.mark.parametrize(("h", "length"), [(0.39, 1e4), (0.0123, -77.7), (2.0, 1.0), (1e-9, 3.3e-5)])
def test_steps_that_meet_the_end(h, length):
    """The rounding of h becomes an error of the time at the end: a step is taken for which it is small."""
    found = tries.timely(np.copysign(h, length), length)
    count = round(length / found)
    assert abs(found) <= h and abs(found) >= min(0.96 * h, abs(length))
    assert abs(Fraction(found) * count - Fraction(length)) <= Fraction(abs(length)) * Fraction(1, 2**56)


def test_walls_and_ends_belong_to_the_motion():
    """The run that judges the error meets the same walls and ends at the same events: no tolerance seems missed."""
    ball = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - 9.81 * q[0], n=1)
    floor = {"floor": la.Impact(lambda q: q[0])}
    path = la.integrate(ball, q0=[1.0], v0=[0.0], t_end=3.0, tol=1e-6, events=floor)  # a warning is an error here
    fall = np.sqrt(2 / 9.81)
    assert abs(path.q[-1, 0] - (1 - 9.81 / 2 * (3.0 % (2 * fall)) ** 2)) < 1e-6
    pendulum = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    turn = {"turn": la.Event(lambda q, p: p[0], stop=True, most=2)}
    path = la.integrate(pendulum, q0=[1.0], v0=[0.0], t_end=10.0, tol=1e-6, events=turn)
    assert abs(path.t[-1] - 6.69997566437) < 1e-5 and path.advice.reached < 1e-6
    paths = la.ensemble(ball, q0=[[1.0], [1.5]], v0=[0.0], t_end=3.0, tol=1e-6, events=floor)
    assert np.abs(paths.last["q"][0] - (1 - 9.81 / 2 * (3.0 % (2 * fall)) ** 2)).max() < 1e-6


def test_an_event_that_ends_a_chaotic_run_early():
    """Nobody can follow this motion until t = 200, but it is asked for until its first crossing alone."""
    problem = la.problems.get("double-pendulum-chaotic")
    start = {
        "q0": problem.q0,
        "p0": problem.p0,
        "t_end": 200.0,
        "events": {"down": la.Event(lambda q, p: q[0], stop=True)},
    }
    path = la.integrate(problem.system, **start, tol=1e-9)  # a warning would fail the test
    fine = la.integrate(problem.system, "P8N8Q16Gau", **start, h=0.005)
    assert path.advice.horizon is None and path.advice.reached <= 1e-9
    assert path.advice.t_end == pytest.approx(fine.t[-1], rel=0.02) and path.t[-1] == pytest.approx(
        fine.t[-1], abs=1e-8
    )


def test_relaxation_oscillations():
    """Van der Pol's oscillator with μ = 20: errors shrink for long and grow in its jumps, so a pilot tells little."""
    system = la.Lagrangian(
        lambda q, v: 0.5 * v[0] ** 2 - 0.5 * q[0] ** 2, n=1, force=lambda q, v: 20 * (1 - q[0] ** 2) * v
    )
    start = {"q0": [2.0], "v0": [0.0], "t_end": 60.0}
    fine = la.integrate(system, "P8N8Q16Gau", **start, h=1e-3, every=10**6)
    for tol in (1e-3, 1e-6):
        path = la.integrate(system, **start, tol=tol)
        assert error_of(path, fine.q[-1]) <= tol and path.advice.horizon is None
        assert not any("cannot be kept" in note for note in path.advice.notes)


@pytest.mark.parametrize(("method", "h"), [("P2N2Q4Gau", 0.46511), ("P4N4Q8Gau", 0.533482), ("P4N4Q8Gau", 0.385)])
def test_steps_that_pilots_took_for_short_enough(method, h, monkeypatch):
    """Pilots that end before the first jump of a relaxation oscillation choose steps that are far too long. Shorter
    ones are tried until the tolerance is kept. A run that cannot be solved, while the one before it could, is one more
    try: so the last of these cases comes to h = 0.19, where two runs agree to 2e-5 by chance, and a third tells.
    """
    system = la.Lagrangian(
        lambda q, v: 0.5 * v[0] ** 2 - 0.5 * q[0] ** 2, n=1, force=lambda q, v: 20 * (1 - q[0] ** 2) * v
    )
    start = {"q0": [2.0], "v0": [0.0], "t_end": 60.0}
    fine = la.integrate(system, "P8N8Q16Gau", **start, h=1e-3, every=10**6)
    advice, run, runs = la.advise(system, **start, tol=1e-3), single.Question.run, []
    chosen = replace(advice.chosen, method=method, h=h, seconds=1e-3, steps=round(60 / h))
    only = replace(advice, chosen=chosen, options=(chosen,), horizon=None, notes=())
    monkeypatch.setattr(single.Question, "advice", lambda question, tol: only)

    def fails_at_first(question, *given, **options):
        runs.append(given)
        if len(runs) == 1:
            return run(question, "simpson", 3.0, *given[2:], **options)  # cannot be solved
        return run(question, *given, **options)

    monkeypatch.setattr(single.Question, "run", fails_at_first)
    path = la.integrate(system, **start, tol=1e-3)
    assert len(runs) > 2 and path.advice.reached <= 1e-3
    assert error_of(path, fine.q[-1]) <= 1e-3


def test_the_time_of_a_stop_is_judged():
    """Runs that an event stops end on its surface, however wrong they are; they differ by when they come there."""
    system, stop = la.problems.get("pendulum").system, {"stop": la.Event(lambda q, p: q[0], stop=True)}
    start = {"q0": [2.0], "v0": [0.0], "t_end": 1.0, "events": stop}
    fine = la.integrate(system, "P8N8Q16Gau", **start, h=0.01)

    def late(t, size):
        return abs((t - fine.t[-1]) * fine.velocity()[-1, 0]) / size

    for tol in (1e-2, 1e-6, 1e-10):
        path = la.integrate(system, **start, tol=tol)
        some = la.integrate(system, **start, tol=tol, output=[0])
        for one in (path, some):
            assert late(one.t[-1], one.advice.size) <= min(tol, 3 * one.advice.reached + 1e-14)
        paths = la.ensemble(system, **start | {"q0": [[2.0], [1.9]], "v0": [[0.0], [0.0]]}, tol=tol)
        assert late(paths.end_time[0], 2.0) <= tol


def test_a_pilot_that_ends_in_a_jump(monkeypatch):
    """Errors grow in a jump of a relaxation oscillation, and not so until the end: the tolerance is kept."""
    system = la.Lagrangian(
        lambda q, v: 0.5 * v[0] ** 2 - 0.5 * q[0] ** 2, n=1, force=lambda q, v: 20 * (1 - q[0] ** 2) * v
    )
    monkeypatch.setattr(ways, "affordable", lambda lab, pace: 20.0)
    path = la.integrate(system, q0=[2.0], v0=[0.0], t_end=60.0, tol=1e-6)
    assert path.advice.reached <= 1e-6 and path.advice.horizon is None


def test_what_is_told_of_the_last_try_is_what_is_kept(tmp_path, monkeypatch):
    """Where all tries miss the tolerance, the archive and the ensemble are runs with the steps of the last try, whose
    error is told, and not with those of a try that would follow.
    """
    problem, runs, run = la.problems.get("pendulum"), [], single.run_one
    question = single.Question(problem.system, (problem.q0, problem.p0, None), 3.7, 0.0, None, None)
    advice = question.advice(1e-9)
    chosen = replace(advice.chosen, method="P6N6Q12Gau", h=0.2, seconds=1e-3)
    advice = replace(advice, chosen=chosen, options=(chosen,), horizon=None, rounding=0.0, common=0.0)

    def noisy(*args, **how):
        path = run(*args, **how)
        runs.append(how["h"])
        return path if how.get("store") else replace(path, q=path.q + 0.6 ** len(runs) * 1e-3)

    monkeypatch.setattr(single, "run_one", noisy)
    options = {"output": None, "store": tmp_path / "run.zarr", "every": 1, "events": None}
    with pytest.warns(RuntimeWarning, match="was missed"):
        path = tries.advised(question, advice, options)
    assert len(runs) == 2 * single.TRIES + 1 and runs[-1] == runs[-2]
    assert float(path.h) == path.advice.chosen.h

    starts, steps = {"q0": np.linspace(0.5, 1.0, 5)[:, None], "p0": [0.0]}, []

    def many(h, every, some):
        steps.append(h)
        paths = la.ensemble(problem.system, "P6N6Q12Gau", h=h, t_end=3.7, every=every, **starts)
        return replace(paths, last=paths.last | {"q": paths.last["q"] + 0.6 ** len(steps) * 1e-3})

    with pytest.warns(RuntimeWarning, match="missed by 5 of 5 trajectories"):
        found = judged(advice, 5, many)
    assert len(steps) == 2 * single.TRIES and found.chosen.h == steps[-1]
