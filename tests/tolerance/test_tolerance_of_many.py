"""tol= for ensembles, for large sums and for many bodies."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.results.assembly import execute
from leastaction.systems.frequencies import CAREFUL
from systems import catalogued


def hardening_chain(n):
    """Masses between walls, on springs that harden, as a sum."""
    masses = la.Term(lambda q, v: 0.5 * v[0] ** 2, over=np.arange(n))
    springs = la.Term(
        lambda q, v: -0.5 * (q[1] - q[0]) ** 2 - 0.25 * (q[1] - q[0]) ** 4,
        over=np.stack([np.arange(n - 1), np.arange(1, n)], axis=1),
    )
    walls = la.Term(lambda q, v: -0.5 * q[0] ** 2 - 0.25 * q[0] ** 4, over=[0, n - 1])
    return la.Lagrangian.sum([masses, springs, walls], n=n)


def test_one_advice_for_an_ensemble():
    """Pendulums from small to large swings, whose periods differ: all keep the tolerance, twice with the same bits."""
    problem, angles = catalogued("pendulum"), np.linspace(0.2, 2.8, 9)
    given = {"q0": angles[:, None], "p0": [0.0], "t_end": 5.0, "tol": 1e-8, "final_only": True}
    paths = la.ensemble(problem.system, **given)
    assert (paths.end_time == 5.0).all() and paths.advice.reached <= 1e-8
    for angle, q in zip(angles, paths.q[:, -1], strict=True):
        exact, _ = la.problems.get("pendulum", theta0=float(angle)).exact(5.0)
        assert abs(q - exact) < 1e-8 * 2 * angle
    assert np.array_equal(la.ensemble(problem.system, **given).q, paths.q)
    assert "la.ensemble(system" in paths.advice.code
    with pytest.raises(ValueError, match="none of method, h, steps"):
        la.ensemble(problem.system, "simpson", q0=angles[:, None], p0=[0.0], t_end=5.0, tol=1e-8)
    with pytest.raises(ValueError, match="give method= and h="):
        la.ensemble(problem.system, q0=angles[:, None], p0=[0.0], t_end=5.0)


def test_comets_with_a_pace():
    """Each comes to its end after another number of steps."""
    comets = [la.problems.get("kepler", eccentricity=str(e)) for e in np.linspace(0.8, 0.99, 6)]
    given = {"q0": [one.q0 for one in comets], "p0": [one.p0 for one in comets], "t_end": 9.0, "tol": 1e-8}
    paths = la.ensemble(comets[0].system, **given, pace="auto")
    assert (paths.end_time == 9.0).all() and paths.advice.reached < 1e-8
    for comet, q, path in zip(comets, paths.last["q"], paths, strict=True):
        assert np.abs(q - comet.exact(9.0)[0]).max() < 1e-8 * np.ptp(path.q, axis=0).max()


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_an_odd_trajectory_of_an_ensemble_keeps_the_tolerance_too(tol):
    """Of seventy double pendulums one swings high: it is not among those of the search, and all are judged."""
    problem, q0 = catalogued("double-pendulum"), np.full((70, 2), 0.1)
    q0[17] = [2.9, -2.5]
    odd = la.integrate(problem.system, "P8N8Q16Gau", q0[17], [0, 0], h=0.002, t_end=3.0)
    paths = la.ensemble(problem.system, q0=q0, p0=[0, 0], t_end=3.0, tol=tol, final_only=True)
    assert np.abs(paths.last["q"][17] - odd.q[-1]).max() <= tol * np.ptp(odd.q, axis=0).max()
    assert paths.advice.reached <= tol


def test_a_chaotic_trajectory_of_an_ensemble_is_told():
    problem, q0 = catalogued("double-pendulum-chaotic"), np.full((10, 2), 0.1)
    q0[4] = problem.q0
    with pytest.warns(RuntimeWarning, match="missed by 1 of 10 trajectories, by most by trajectory 4"):
        paths = la.ensemble(problem.system, q0=q0, p0=[0, 0], t_end=30.0, tol=1e-6, final_only=True)
    assert paths.advice.reached > 1e-6
    calm = la.integrate(problem.system, "P8N8Q16Gau", q0[0], [0, 0], h=0.01, t_end=30.0)
    assert np.abs(paths.last["q"][0] - calm.q[-1]).max() <= 1e-6 * np.ptp(calm.q, axis=0).max()


def test_walls_and_ends_belong_to_the_motions():
    ball = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - 9.81 * q[0], n=1)
    floor, fall = {"floor": la.Impact(lambda q: q[0])}, np.sqrt(2 / 9.81)
    paths = la.ensemble(ball, q0=[[1.0], [1.5]], v0=[0.0], t_end=3.0, tol=1e-6, events=floor)
    assert np.abs(paths.last["q"][0] - (1 - 9.81 / 2 * (3.0 % (2 * fall)) ** 2)).max() < 1e-6
    system, stop = catalogued("pendulum").system, {"stop": la.Event(lambda q, p: q[0], stop=True)}
    start = {"t_end": 1.0, "events": stop}
    fine = la.integrate(system, "P8N8Q16Gau", [2.0], v0=[0.0], **start, h=0.01)
    paths = la.ensemble(system, q0=[[2.0], [1.9]], v0=[[0.0], [0.0]], **start, tol=1e-6)
    assert abs((paths.end_time[0] - fine.t[-1]) * fine.velocity()[-1, 0]) / 2.0 <= 1e-6


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
    """Three hundred masses, which stay a sum."""
    rng = np.random.default_rng(7)
    system, start = hardening_chain(300), {"q0": rng.normal(size=300), "p0": rng.normal(size=300), "t_end": 10.0}
    path = la.integrate(system, **start, tol=1e-8, every=2**40)
    fine = la.integrate(system, "P8N8Q16Gau", **start, h=0.02, every=2**40)
    assert path.system is system and path.advice.rate is not None and path.advice.reached <= 1e-8
    assert np.abs(path.q[-1] - fine.q[-1]).max() <= 1e-8 * path.advice.size


def test_steps_in_haste_are_not_continued():
    """A step over an encounter is continued, which takes a large sum minutes; in haste, as in trials, it fails."""
    comet = la.problems.n_body([1.0, 1e-3], [[0, 0], [1, 0]], [[0, 0], [0, 0.1]])
    run = {"h": 0.05, "t_end": 3.0}
    start = comet.q0, comet.p0, None
    with pytest.raises(la.StepFailed, match="did not converge") as failed:
        execute(comet.system, "P8N8Q16Gau", start, hasty=True, **run)
    try:
        patient = execute(comet.system, "P8N8Q16Gau", start, **run).stats["newton_iterations"]
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
