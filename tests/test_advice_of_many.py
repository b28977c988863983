"""tol= for ensembles, for large sums and for many bodies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import leastaction as la
from leastaction import single
from leastaction.ends import SAMPLES
from leastaction.many import Many, judged
from leastaction.systems.sums.frequencies import CAREFUL
from leastaction.systems.sums.system import Sum


def hardening_chain(n):
    """Masses between walls, on springs that harden, as a sum."""
    masses = la.Term(lambda q, v: 0.5 * v[0] ** 2, over=np.arange(n))
    springs = la.Term(
        lambda q, v: -0.5 * (q[1] - q[0]) ** 2 - 0.25 * (q[1] - q[0]) ** 4,
        over=np.stack([np.arange(n - 1), np.arange(1, n)], axis=1),
    )
    walls = la.Term(lambda q, v: -0.5 * q[0] ** 2 - 0.25 * q[0] ** 4, over=[0, n - 1])
    return la.Lagrangian.sum([masses, springs, walls], n=n)


@pytest.mark.parametrize(("common", "kept"), [(0.0, True), (1.0, False)])
def test_rounding_of_ensembles_is_seen_in_further_runs(common, kept):
    """As of single runs."""
    problem, runs = la.problems.get("pendulum"), []
    starts = {"q0": np.linspace(0.1, 2.0, 9)[:, None], "p0": np.zeros((9, 1))}
    many = Many(problem.system, (starts["q0"], starts["p0"], None), 3.7, 0.0, None, None, None)
    advice = replace(many.advice(1e-6), rounding=1.0, common=common, horizon=2.0)

    def run(h, every, some):
        runs.append(h)
        return la.ensemble(problem.system, advice.chosen.method, h=h, t_end=3.7, every=every, **many.of(some))

    if kept:
        found = judged(advice, 9, run)
        assert len(set(runs)) == 2 + SAMPLES and found.reached <= 1e-6 and found.horizon is None
        made = la.ensemble(problem.system, found.chosen.method, h=found.chosen.h, t_end=3.7, **starts)
        fine = la.ensemble(problem.system, "P8N8Q16Gau", h=0.02, t_end=3.7, **starts)
        assert np.all(np.abs(made.last["q"] - fine.last["q"]) <= found.reached * np.ptp(made.q, axis=1))
    else:
        with pytest.warns(RuntimeWarning, match="missed by 9 of 9 trajectories"):
            judged(advice, 9, run)


@pytest.mark.slow
def test_one_advice_for_an_ensemble():
    """Pendulums from small to large swings, whose periods differ: all keep the tolerance."""
    problem, angles = la.problems.get("pendulum"), np.linspace(0.2, 2.8, 9)
    paths = la.ensemble(problem.system, q0=angles[:, None], p0=[0.0], t_end=5.0, tol=1e-8, final_only=True)
    assert (paths.end_time == 5.0).all()
    for angle, q in zip(angles, paths.q[:, -1], strict=True):
        exact, _ = la.problems.get("pendulum", theta0=float(angle)).exact(5.0)
        assert abs(q - exact) < 1e-8 * 2 * angle
    assert "one advice for 9 trajectories, from 4 of them" in repr(paths.advice)
    eccentricity = np.linspace(0.8, 0.99, 6)
    comets = [la.problems.get("kepler", eccentricity=str(e)) for e in eccentricity]
    given = {"q0": [one.q0 for one in comets], "p0": [one.p0 for one in comets], "t_end": 9.0, "tol": 1e-8}
    paths = la.ensemble(comets[0].system, **given)
    assert paths.advice.chosen.pace == "auto" and (paths.end_time == 9.0).all() and paths.advice.reached < 1e-8
    for comet, q, path in zip(comets, paths.last["q"], paths, strict=True):
        assert np.abs(q - comet.exact(9.0)[0]).max() < 1e-8 * np.ptp(path.q, axis=0).max()
    with pytest.raises(ValueError, match="none of method, h, steps"):
        la.ensemble(problem.system, "simpson", q0=angles[:, None], p0=[0.0], t_end=5.0, tol=1e-8)
    with pytest.raises(ValueError, match="give method= and h="):
        la.ensemble(problem.system, q0=angles[:, None], p0=[0.0], t_end=5.0)


def test_an_odd_trajectory_of_an_ensemble_keeps_the_tolerance_too():
    """Of forty double pendulums one swings high: it is not among those that are measured, and all are judged."""
    problem, q0 = la.problems.get("double-pendulum"), np.full((40, 2), 0.1)
    q0[17] = [2.9, -2.5]
    odd = la.integrate(problem.system, "P8N8Q16Gau", q0[17], [0, 0], h=0.002, t_end=3.0)
    for tol in (1e-3, 1e-8):
        paths = la.ensemble(problem.system, q0=q0, p0=[0, 0], t_end=3.0, tol=tol, final_only=True)
        assert np.abs(paths.last["q"][17] - odd.q[-1]).max() <= tol * np.ptp(odd.q, axis=0).max()
        assert paths.advice.reached <= tol


def test_steps_far_too_long_for_an_odd_trajectory():
    """Runs with steps that are far too long for one trajectory end anywhere. That they do not come nearer to each other
    is no reason to stop, as it is where errors are rounding: then, with small `noise`, two tries more are enough.
    """
    problem, starts = la.problems.get("pendulum"), {"q0": np.linspace(0.5, 1.0, 5)[:, None], "p0": [0.0]}
    advice = Many(problem.system, (starts["q0"], [0.0], None), 3.7, 0.0, None, None, None).advice(1e-6)
    chosen = replace(advice.chosen, method="P6N6Q12Gau", h=0.3, seconds=1e-3)
    advice = replace(advice, chosen=chosen, horizon=None, rounding=0.0, common=0.0)
    for noise in (0.3, 1e-5):
        steps: list[float] = []

        def run(h, every, some, steps=steps, noise=noise):
            steps.append(h)
            paths = la.ensemble(problem.system, "P6N6Q12Gau", h=h, t_end=3.7, every=every, **starts)
            away = np.zeros((5, 1))
            away[3] = noise * (len(steps) % 2) if len(steps) <= 6 else 0.0
            return replace(paths, last=paths.last | {"q": paths.last["q"] + away})

        if noise > 1e-3:
            assert judged(advice, 5, run).reached <= 1e-6
        else:
            with pytest.warns(RuntimeWarning, match="missed by 1 of 5 trajectories, by most by trajectory 3"):
                judged(advice, 5, run)
            assert len(steps) == 6


def test_a_chaotic_trajectory_of_an_ensemble_is_told():
    problem, q0 = la.problems.get("double-pendulum-chaotic"), np.full((10, 2), 0.1)
    q0[4] = problem.q0
    with pytest.warns(RuntimeWarning, match="missed by 1 of 10 trajectories, by most by trajectory 4"):
        paths = la.ensemble(problem.system, q0=q0, p0=[0, 0], t_end=30.0, tol=1e-6, final_only=True)
    assert paths.advice.reached > 1e-6


def test_bodies_are_advised_as_any_lagrangian():
    """Bodies, which are a sum over pairs, take a tolerance, events and all, at the error of the orbit's own answer."""
    bodies = la.problems.n_body([1.0, 1e-3], [[0, 0], [1, 0]], [[0, 0], [0, 1.1]])
    near = {"far": la.Event(lambda q, p: (q[2] - q[0]) * (p[2] * 1e3 - p[0]) + (q[3] - q[1]) * (p[3] * 1e3 - p[1]))}
    path = la.integrate(bodies.system, q0=bodies.q0, p0=bodies.p0, t_end=15, tol=1e-7, events=near)
    assert path.advice.reached < 1e-7 and path.events["far"].count > 0
    fine = la.integrate(bodies.system, "P8N8Q16Gau", bodies.q0, bodies.p0, h=0.02, t_end=15)
    assert np.abs(path.q[-1] - fine.q[-1]).max() < 1e-6
    assert bodies.system.expanded() is bodies.system.expanded()


def test_large_sums_keep_a_tolerance():
    """Three hundred masses, too many for a tangent map: errors grow as the distance of two motions does."""
    rng = np.random.default_rng(7)
    system, start = hardening_chain(300), {"q0": rng.normal(size=300), "p0": rng.normal(size=300), "t_end": 10.0}
    path = la.integrate(system, **start, tol=1e-8, every=2**40)
    fine = la.integrate(system, "P8N8Q16Gau", **start, h=0.02, every=2**40)
    assert path.advice.growth is not None and path.advice.reached <= 1e-8
    assert np.abs(path.q[-1] - fine.q[-1]).max() <= 1e-8 * path.advice.size


def test_many_bodies_stay_a_sum():
    """Hundreds of pairs written out would take minutes to differentiate and to compile; with a pace they must be."""
    bodies = [
        la.problems.n_body(np.ones(N), np.random.default_rng(N).normal(size=(N, 3)), np.zeros((N, 3))).system
        for N in (10, 60)
    ]
    few, many = (single.measurable(system, None) for system in bodies)
    assert isinstance(few, la.Lagrangian) and isinstance(many, Sum)
    assert isinstance(single.measurable(bodies[0], "auto"), la.Lagrangian)


def test_steps_in_haste_are_not_continued():
    """A step over an encounter is continued, which takes a large sum minutes; in haste it fails."""
    comet = la.problems.n_body([1.0, 1e-3], [[0, 0], [1, 0]], [[0, 0], [0, 0.1]])
    run = {"h": 0.05, "t_end": 3.0}
    start = comet.q0, comet.p0, None
    with pytest.raises(la.StepFailed, match="did not converge") as failed:
        single.run_one(comet.system, "P8N8Q16Gau", start, hasty=True, **run)
    try:
        patient = single.run_one(comet.system, "P8N8Q16Gau", start, **run).stats["newton_iterations"]
    except la.StepFailed as failure:
        patient = failure.iterations
    assert failed.value.iterations < patient


@pytest.mark.slow
def test_a_hundred_bodies_that_meet_are_refused():
    """No equal steps that can be afforded lead through the encounters, and no pace can be made: the error says so."""
    N, rng = 100, np.random.default_rng(5)
    bodies = la.problems.n_body(np.ones(N) / N, rng.normal(size=(N, 3)), 0.3 * rng.normal(size=(N, 3)))
    with pytest.raises(la.StepFailed) as failed:
        la.integrate(bodies.system, q0=bodies.q0, p0=bodies.p0, t_end=10.0, tol=1e-6)
    assert any("tol= has tried shorter and shorter steps" in note for note in failed.value.__notes__)


def test_neighbours_grow_as_the_tangent_map_does(monkeypatch):
    """What rounding makes of the end of a chain is about as much by two motions as by derivatives."""
    rng = np.random.default_rng(8)
    start = {"q0": 2 * rng.normal(size=6), "p0": 2 * rng.normal(size=6), "t_end": 12.0, "tol": 1e-6}
    by_tangent = la.advise(hardening_chain(6), **start)
    monkeypatch.setattr(Sum, "has_tangent", property(lambda self: False))
    by_neighbours = la.advise(hardening_chain(6), **start)
    assert 0.01 < by_neighbours.rounding / by_tangent.rounding < 100


def test_the_fastest_oscillation_of_a_large_sum():
    """A chain of masses on linear springs: its highest frequency is nearly 2, found without a matrix."""
    n = 400
    masses = la.Term(lambda q, v: 0.5 * v[0] ** 2, over=np.arange(n))
    springs = la.Term(
        lambda q, v: -0.5 * (q[1] - q[0]) ** 2, over=np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    )
    chain = la.Lagrangian.sum([masses, springs], n=n)
    q, v = np.sin(np.arange(n)), np.zeros(n)
    assert 0.9 < chain.frequency(0.0, q, v, v, chain.values(), 10.0) / (2 * CAREFUL) <= 1.0
