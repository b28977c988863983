"""Ensembles: lanes against single runs, isolation, independence of order and threads; the interface."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import leastaction as la
from ensembles import KEPLER, PENDULUM, chain
from interrupts import pressed_after
from leastaction.run import Status
from leastaction.run.drive import usual_parts
from leastaction.run.plan import plan_run
from thrift import rest_slow


def random_system(seed):
    """½ v·M(q)v + b(q)·v − V(q) with random smooth M, b, V: no symmetry, no structure but regularity."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 3))
    A, b, K = rng.normal(size=(n, n)) / 3, rng.normal(size=n) / 3, rng.normal(size=(n, n))
    w = rng.normal(size=n)

    def L(q, v, mass, strength):
        u = v + A @ v * np.sin(q.sum()) / 2
        return (
            0.5 * mass * (v @ v + u @ u)
            + (b * np.cos(q)) @ v
            - strength * (q @ q + np.exp(-((K @ q) @ (K @ q))) + np.cos(w @ q))
        )

    return la.Lagrangian(L, n=n, params={"mass": 1.0, "strength": 1.0}), rng


@pytest.mark.parametrize("seed", rest_slow(range(4), [0]))
@pytest.mark.parametrize("method", ["simpson", "midpoint", "P3N3Q6Gau", "P4N4Q8Gau"])
def test_lanes_equal_single_runs_to_round_off(seed, method):
    system, rng = random_system(seed)
    B = 11
    Q, P = rng.normal(size=(B, system.n)), rng.normal(size=(B, system.n))
    mass = rng.uniform(0.5, 2, B)
    paths = la.ensemble(system, method, Q, P, params={"mass": mass}, h=0.05, steps=60, every=7)
    assert paths.stats["lanes"] > 1
    assert not paths.failed.any()
    for i in range(B):
        single = la.integrate(system, method, Q[i], P[i], params={"mass": mass[i]}, h=0.05, steps=60, every=7)
        np.testing.assert_allclose(paths.q[i], single.q, rtol=0, atol=2e-12)
        np.testing.assert_allclose(paths.p[i], single.p, rtol=0, atol=2e-12)
        np.testing.assert_array_equal(paths.t, single.t)
        assert paths[i].params == single.params


@pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning")  # by steps that are far too long, as they are here
def test_coarse_lanes_are_what_single_runs_are():
    """A step so large that the prediction is not enough."""
    Q = np.array([[1.0, 0.5], [2.0, 2.5], [3.0, -1.0]])
    paths = la.ensemble(PENDULUM, "simpson", Q, np.zeros((3, 2)), h=0.18, steps=40)
    singles = []
    for i in range(3):
        try:
            singles.append(la.integrate(PENDULUM, "simpson", Q[i], [0.0, 0.0], h=0.18, steps=40))
        except la.StepFailed as failure:
            singles.append(failure.path)
    for i, single in enumerate(singles):
        assert len(paths[i]) == len(single)
        np.testing.assert_allclose(paths[i].q, single.q, rtol=1e-9, atol=1e-9)


def test_one_worker_has_one_chunk_in_memory():
    """Each chunk costs a millisecond; more workers may go on with a stored run, so that has chunks for them."""
    rest = np.zeros((64, 2))
    plan, _ = plan_run(PENDULUM, "simpson", (rest, rest, None), h=0.01, steps=10, every=1, many=True)
    assert usual_parts(plan, 64, None, 1) == [(0, 64)]
    assert len(usual_parts(plan, 64, None, 1, stored=True)) > 1  # a stored run has them on any processor …
    assert len(usual_parts(plan, 64, None, 2)) > 1  # … while in memory they have as many trajectories as lanes


def test_results_depend_neither_on_order_nor_lane_nor_threads():
    rng = np.random.default_rng(3)
    B = 37
    Q, P, m = rng.uniform(-2, 2, (B, 2)), rng.normal(size=(B, 2)), rng.uniform(0.5, 2, B)
    watched = {"reduce": {"E": la.EnergyRange()}, "events": {"x": la.Event(lambda q, p: np.sin(q[1]), most=3)}}

    def run(order, **options):
        start = {"q0": Q[order], "p0": P[order], "params": {"m": m[order]}}
        return la.ensemble(PENDULUM, "simpson", **start, h=0.02, steps=150, **watched, **options)

    base = run(np.arange(B), threads=1)
    for order, options in (
        (np.arange(B), {"threads": 3}),
        (rng.permutation(B), {"threads": 2}),
        (np.array([5]), {}),
        (np.array([5, 5, 30]), {}),
    ):
        other = run(order, **options)
        np.testing.assert_array_equal(other.q, base.q[order])
        np.testing.assert_array_equal(other.p, base.p[order])
        np.testing.assert_array_equal(other.reduced["E"], base.reduced["E"][order])
        for i, k in enumerate(order):
            np.testing.assert_array_equal(other[i].events["x"].table(), base[k].events["x"].table())


@pytest.mark.parametrize("width", [2, 4])
def test_narrower_vectors_give_the_same_result(monkeypatch, width):
    """As on processors with fewer lanes: the instructions of a lane are the same."""
    Q = np.random.default_rng(11).uniform(-2, 2, (19, 2))
    watched = {"reduce": {"E": la.EnergyRange()}, "events": {"x": la.Event(lambda q, p: np.sin(q[1]), most=3)}}
    here = la.ensemble(PENDULUM, "simpson", Q, [0.1, 0.2], h=0.02, steps=100, **watched)
    monkeypatch.setattr("leastaction.run.drive.native_lanes", lambda: width)
    there = la.ensemble(PENDULUM, "simpson", Q, [0.1, 0.2], h=0.02, steps=100, **watched)
    assert there.stats["lanes"] == width
    np.testing.assert_allclose(there.q, here.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(there.reduced["E"], here.reduced["E"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(there.events["x"].t, here.events["x"].t, rtol=0, atol=1e-11)


def test_angles_beyond_the_vector_sine_are_solved_alone():
    """At 2³⁰ full turns and more the lanes' sine gives up, and single steps take over. Forces and energies, of slopes
    up to 3 · 9.81, know angles to their last place.
    """
    turns = np.array([0.0, 2.0**30, -(2.0**31)]) * 2 * np.pi
    Q = np.stack([0.3 + turns, np.full(3, 0.4)], axis=1)
    paths = la.ensemble(PENDULUM, "simpson", Q, [0.0, 0.0], h=0.01, steps=50, reduce={"E": la.EnergyRange()})
    assert not paths.failed.any()
    for i in range(3):
        single = la.integrate(PENDULUM, "simpson", Q[i], [0.0, 0.0], h=0.01, steps=50)
        known = 1e-12 + 3 * 9.81 * np.spacing(abs(turns[i]))
        np.testing.assert_allclose(paths.p[i], single.p, rtol=0, atol=known)
        E = single.energy()
        np.testing.assert_allclose(paths.reduced["E"][i], [E.min(), E.max()], rtol=0, atol=known)


def test_lanes_at_rest_stay_there():
    """At an equilibrium, and so near to it that the increments have no digits."""
    Q = np.array([[0.0, 0.0], [1e-300, 0.0], [5e-324, 1e-310], [0.1, 0.0]])
    paths = la.ensemble(PENDULUM, "simpson", Q, [0.0, 0.0], h=0.01, steps=200)
    assert not paths.failed.any()
    assert (np.abs(paths.q[:3]) < 1e-299).all()
    np.testing.assert_array_equal(paths.q[0], 0.0)


def test_a_failing_lane_is_marked_and_disturbs_nobody():
    """A radial orbit falls into the centre; its neighbours are round."""
    B, bad = 9, 4
    phase = np.linspace(0, 2, B)
    Q = np.stack([np.cos(phase), np.sin(phase)], axis=1)
    V = np.stack([-np.sin(phase), np.cos(phase)], axis=1)
    V[bad] = 0.0
    paths = la.ensemble(KEPLER, "simpson", Q, v0=V, h=0.05, steps=100)
    with pytest.raises(la.StepFailed) as caught:
        la.integrate(KEPLER, "simpson", Q[bad], v0=V[bad], h=0.05, steps=100)
    assert list(np.flatnonzero(paths.failed)) == [bad]
    assert paths.steps[bad] == caught.value.step
    assert paths.end_time[bad] == pytest.approx(caught.value.time)
    assert Status(paths.status[bad]) not in (Status.COMPLETE, Status.STOPPED)
    assert len(paths[bad]) == len(caught.value.path)
    np.testing.assert_allclose(paths[bad].q, caught.value.path.q, rtol=1e-9)
    assert np.isnan(paths.q[bad, caught.value.step + 1 :]).all()
    others = np.arange(B) != bad
    without = la.ensemble(KEPLER, "simpson", Q[others], v0=V[others], h=0.05, steps=100)
    np.testing.assert_array_equal(paths.q[others], without.q)
    np.testing.assert_array_equal(paths.p[others], without.p)


def test_a_trajectory_that_cannot_begin_is_marked():
    Q = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    paths = la.ensemble(KEPLER, "simpson", Q, [0.1, 0.2], h=0.01, steps=10)
    assert list(paths.status) == [Status.COMPLETE, Status.NOT_FINITE, Status.COMPLETE]
    assert paths.steps[1] == 0
    assert np.isnan(paths.q[1, 1:]).all()
    with pytest.raises(la.DegenerateLagrangianError, match="no trajectory"):
        la.ensemble(KEPLER, "simpson", [0.0, 0.0], [0.1, 0.2], h=0.01, steps=10)


def test_large_systems_go_in_lanes():
    """Also with values computed on the way: the chords are kernels, where Newton's iteration would be too long."""
    system = la.Lagrangian(chain, n=12)
    rng = np.random.default_rng(4)
    Q, P = rng.normal(size=(2, 5, 12))
    watched = {"reduce": {"E": la.EnergyRange()}, "events": {"x": la.Event(lambda q, p: q[0], +1, most=2)}}
    paths = la.ensemble(system, "simpson", Q, P, h=0.02, steps=300, every=70, **watched)
    assert paths.stats["lanes"] > 1
    for i in range(5):
        single = la.integrate(system, "simpson", Q[i], P[i], h=0.02, steps=300)
        np.testing.assert_allclose(paths.q[i], single.q[[0, 70, 140, 210, 280, 300]], rtol=0, atol=1e-11)
        E, x = single.energy(), single.q[:, 0]
        np.testing.assert_allclose(paths.reduced["E"][i], [E.min(), E.max()], rtol=1e-13)
        assert paths.events["x"].count[i] == ((x[:-1] < 0) & (x[1:] >= 0)).sum()


@pytest.mark.parametrize(
    ("system", "method"),
    [(PENDULUM, "rk4"), (PENDULUM, "rk4-lagrange")],
    ids=["rk4", "rk4-lagrange"],
)
def test_what_does_not_fit_the_lanes_goes_one_by_one(system, method):
    rng = np.random.default_rng(4)
    Q, P = rng.normal(size=(5, system.n)), rng.normal(size=(5, system.n))
    events = {"x": la.Event(lambda q, p: q[0], +1, most=2), "f": la.Event(lambda q, p: p[1])}
    watched = {"reduce": {"E": la.EnergyRange()}, "events": events}
    paths = la.ensemble(system, method, Q, P, h=0.02, steps=300, every=70, **watched)
    last = la.ensemble(system, method, Q, P, h=0.02, steps=300, final_only=True)
    plain = la.ensemble(system, method, Q, P, h=0.02, steps=300, every=70)
    assert paths.stats["lanes"] == 1
    # If nothing is computed on the way, a large system runs in lanes, which round differently.
    atol = 0 if plain.stats["lanes"] == 1 else 1e-11
    np.testing.assert_allclose(paths.q, plain.q, rtol=0, atol=atol)
    np.testing.assert_allclose(paths.q[:, -1:], last.q, rtol=0, atol=atol)
    for i in range(5):
        single = la.integrate(system, method, Q[i], P[i], h=0.02, steps=300)
        np.testing.assert_array_equal(paths.q[i], single.q[[0, 70, 140, 210, 280, 300]])
        E = single.energy()
        np.testing.assert_allclose(paths.reduced["E"][i], [E.min(), E.max()], rtol=1e-13)
        x = single.q[:, 0]
        assert paths.events["x"].count[i] == ((x[:-1] < 0) & (x[1:] >= 0)).sum()
        np.testing.assert_allclose(paths[i].events["x"].q[:, 0], 0, atol=1e-12)


def test_a_large_system_that_fails_or_stops_is_marked():
    def wells(q, v):
        return 0.5 * (v @ v) + 0.01 / np.sqrt(q[0] ** 2) - 0.5 * (q[1:] @ q[1:])

    system = la.Lagrangian(wells, n=9)
    Q = np.ones((3, 9))
    V = np.zeros((3, 9))
    V[1, 0] = -1.0
    watched = {"reduce": {"E": la.EnergyRange()}, "events": {"x": la.Event(lambda q, p: q[8], stop=True)}}
    paths = la.ensemble(system, "simpson", Q, v0=V, h=0.1, steps=40, **watched)
    assert list(paths.status[[0, 2]]) == [Status.STOPPED] * 2
    assert paths.failed[1]
    np.testing.assert_allclose(paths.events["x"].t[[0, 2], 0], np.pi / 2, atol=1e-4)
    assert list(paths.steps[[0, 2]]) == [15, 15]
    assert len(paths[0]) == 17


def test_the_last_state_of_one_that_fails_is_the_one_it_has_reached():
    def wells(q, v):
        return 0.5 * (v @ v) + 0.01 / np.sqrt(q[0] ** 2) - 0.5 * (q[1:] @ q[1:])

    for system in (la.Lagrangian(wells, n=2), la.Lagrangian(wells, n=9)):
        Q, V = np.ones((2, system.n)), np.zeros((2, system.n))
        V[1, 0] = -1.0
        paths = la.ensemble(system, "simpson", Q, v0=V, h=0.1, steps=40)
        last = la.ensemble(system, "simpson", Q, v0=V, h=0.1, steps=40, final_only=True)
        assert paths.failed[1] and 0 < paths.steps[1] < 40
        np.testing.assert_array_equal(last.q[1, 0], paths.q[1, paths.steps[1]])
        np.testing.assert_array_equal(last.p[1, 0], paths.p[1, paths.steps[1]])


def test_broadcasting_shapes_and_indexing():
    k = np.array([1.0, 1.1, 1.2])
    paths = la.ensemble(KEPLER, "simpson", [1.0, 0.0], [0.0, 1.0], params={"k": k}, h=0.1, steps=25, every=10)
    assert paths.q.shape == paths.p.shape == (3, 4, 2)
    np.testing.assert_allclose(paths.t, [0, 1, 2, 2.5])
    assert paths.energy().shape == (3, 4)
    np.testing.assert_allclose(paths.energy(), (0.5 - k)[:, None] * np.ones(4), atol=1e-4)
    path = paths[1]
    assert path.params["k"] == 1.1
    np.testing.assert_allclose(path.energy(), paths.energy()[1], rtol=1e-15)  # the products are summed in another order
    single = la.integrate(KEPLER, "simpson", [1.0, 0.0], [0.0, 1.0], params={"k": 1.1}, h=0.1, steps=25)
    np.testing.assert_allclose(path(1.234), single(1.234), atol=1e-12)
    assert len(list(paths)) == len(paths) == 3
    np.testing.assert_array_equal(paths[-1].q, paths[2].q)
    with pytest.raises(IndexError, match="3 trajectories"):
        paths[3]
    assert "3 trajectories of kepler" in repr(paths)
    assert paths.to_xarray().sizes == {"trajectory": 3, "t": 4, "dof": 2}


def test_one_trajectory_is_taken_by_its_number():
    paths = la.ensemble(KEPLER, "simpson", [[1.0, 0.0], [2.0, 0.0]], [0.0, 1.0], h=0.1, steps=2)
    assert paths[np.int64(-1)].q[0].tolist() == [2.0, 0.0]
    with pytest.raises(TypeError, match="'slice' object cannot be interpreted as an integer"):
        paths[0:1]


def test_rising_is_meant_as_the_run_goes():
    oscillator = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - 0.5 * q[0] ** 2, n=1)
    rising = {"up": la.Event(lambda q, p: q[0], direction=1)}
    paths = la.ensemble(oscillator, "P4N4Q8Gau", [1.0], [0.0], h=-0.1, steps=60, events=rising)
    assert paths.events["up"].t == pytest.approx(-1.5 * np.pi, abs=1e-6)


def test_the_last_state_alone_and_other_ways_to_say_how_long():
    Q = np.array([[1.0, 0.0], [0.9, 0.1]])
    full = la.ensemble(KEPLER, "simpson", Q, [0.0, 1.0], h=-0.1, t_end=-2.55, t0=0.5)
    last = la.ensemble(KEPLER, "simpson", Q, [0.0, 1.0], h=-0.1, t_end=-2.55, t0=0.5, final_only=True)
    assert last.q.shape == (2, 1, 2)
    assert last.t[0] == full.t[-1] == -2.55
    np.testing.assert_array_equal(last.q[:, 0], full.q[:, -1])


def test_one_degree_of_freedom_takes_a_plain_list_of_numbers():
    system = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    paths = la.ensemble(system, "simpson", [0.1, 0.2, 0.3], [0.0], h=0.1, steps=3)
    assert paths.q.shape == (3, 4, 1)
    assert la.ensemble(system, "simpson", 0.1, 0.0, h=0.1, steps=3).q.shape == (1, 4, 1)


def test_exact_numbers_are_initial_data_as_in_single_runs():
    system = la.Lagrangian(lambda q, v, k: 0.5 * v[0] ** 2 - k * q[0] ** 2, n=1, params={"k": 1.0})
    paths = la.ensemble(system, "simpson", ["1/3", Fraction(2, 3)], ["0"], params={"k": ["1/7", 1]}, h="1/10", steps=3)
    assert paths.q[:, 0, 0].tolist() == [1 / 3, 2 / 3]
    assert paths.values[:, 0].tolist() == [1 / 7, 1]


def test_arguments_are_checked():
    for change, error, message in (
        ({"q0": np.ones((3, 3))}, ValueError, r"q0 must have shape \(2,\)"),
        ({"q0": np.ones((3, 2)), "p0": np.ones((4, 2))}, ValueError, "batch sizes differ"),
        ({"q0": [[np.nan, 1.0]]}, ValueError, "finite"),
        ({"q0": "no"}, TypeError, "q0 must be numbers"),
        ({"q0": [1j, 0.0]}, TypeError, "q0 must be numbers"),
        ({"params": {"mass": 1.0}}, ValueError, "no parameter 'mass'"),
        ({"params": {"k": np.ones((2, 2))}}, ValueError, "k must have shape"),
        ({"v0": [1.0, 0.0]}, ValueError, "either p0"),
        ({"threads": 0}, ValueError, "threads must be a positive integer"),
        ({"steps": None}, ValueError, "say how long"),
        ({"system": 3}, TypeError, "expected a system"),
    ):
        arguments = {"system": KEPLER, "method": "simpson", "q0": [1.0, 0.0], "p0": [0.0, 1.0], "h": 0.1, "steps": 3}
        with pytest.raises(error, match=message):
            la.ensemble(**{**arguments, **change})


@pytest.mark.parametrize("method", ["simpson", "rk4"])
def test_interrupt_returns_what_there_is(method):
    Q = np.random.default_rng(7).uniform(-1, 1, (64, 2))
    with pressed_after(1000), pytest.warns(RuntimeWarning, match="interrupted"):
        paths = la.ensemble(PENDULUM, method, Q, [0.0, 0.0], h=0.01, steps=3_000_000, every=1_000_000)
    assert paths.stats["interrupted"]
    assert (paths.status == Status.INTERRUPTED).any()
    assert not paths.failed.any()


def test_progress_counts_all_steps(capsys):
    la.ensemble(KEPLER, "simpson", np.eye(2), [0.3, 0.4], h=0.1, steps=50, progress=True)
    assert "100%" in capsys.readouterr().err


@pytest.mark.slow
def test_energy_over_long_times_is_as_good_as_in_single_runs():
    """Gauss with s = 4 at a step where its own error is round-off: what is left is rounding, compensated."""
    Q = np.random.default_rng(8).uniform(-0.5, 0.5, (16, 2))
    reduce = {"E": la.EnergyRange()}
    paths = la.ensemble(PENDULUM, "P4N4Q8Gau", Q, [0.0, 0.0], h=0.01, steps=200_000, every=1000, reduce=reduce)
    lanes = np.abs(paths.energy() - paths.energy()[:, :1]).max(axis=1)
    single = []
    for q in Q[:4]:
        E = la.integrate(PENDULUM, "P4N4Q8Gau", q, [0.0, 0.0], h=0.01, steps=200_000, every=1000).energy()
        single.append(np.abs(E - E[0]).max())
    assert np.median(lanes) < 4 * np.median(single)
