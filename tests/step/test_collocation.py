"""Gauss' rules with as many nodes as degrees, on inseparable systems: one trajectory, and trajectories in lanes."""

import numpy as np
import pytest

import leastaction as la
from precise import exact
from systems import catalogued
from thrift import rest_slow

EPS = np.finfo(float).eps


def random_system(seed, n=3):
    """A mass that depends on q, a potential, a magnetic force; with an odd seed the energy is not quadratic in v, or a
    force depends on velocities and on time."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.normal(size=(n, n)) / 3, rng.normal(size=n), rng.normal(size=(n, n)) / 3

    def L(t, q, v):
        w = v + 0.4 * np.sin(a @ q + b * np.cos(t)) * (b @ v)
        quartic = 0.02 * np.sum(v**4) if seed % 2 else 0.0
        return 0.5 * w @ w + quartic + np.sum(np.cos(q + b)) + np.sin(c @ q) @ v

    def F(t, q, v):
        return -0.1 * v * np.cos(q) + 0.05 * np.sin(t + b)

    return la.Lagrangian(L, n=n, force=F if seed % 3 else None), rng.normal(size=n), rng.normal(size=n)


@pytest.mark.parametrize("s", rest_slow([*range(1, 9)], [2, 8]))
@pytest.mark.parametrize("seed", rest_slow([*range(6)], [1]))
def test_random_systems_take_the_steps_of_twenty_digits(seed, s):
    system, q0, v0 = random_system(seed)
    method, how = f"P{s}N{s}Q{2 * s}Gau", {"h": 0.05, "steps": 6}
    q, p = exact(system, method, q0, v0=v0, **how)
    one = la.integrate(system, method, q0, v0=v0, **how)
    many = la.ensemble(system, method, np.tile(q0, (3, 1)), v0=np.tile(v0, (3, 1)), **how)
    for found in ((one.q, one.p), (many.q[0], many.p[0]), (many.q[2], many.p[2])):
        np.testing.assert_allclose(found[0], q, rtol=0, atol=1e-13)
        np.testing.assert_allclose(found[1], p, rtol=0, atol=1e-13)


def test_inputs_reach_the_nodes():
    """Where a force has inputs the derivatives of the middle are those of the last inputs: iterations, not errors."""
    system = la.Lagrangian(
        lambda q, v: 0.5 * (1 + 0.5 * np.cos(q[0])) * v[0] ** 2 + np.cos(q[0]),
        n=1,
        force=lambda q, v, u: u * np.sin(q) - 0.1 * u * v,
        inputs={"u": 1},
    )
    drive = {"v0": [0.5], "inputs": {"u": np.sin(0.3 * np.arange(10))[:, None]}, "h": 0.1, "steps": 10}
    q, _ = exact(system, "P4N4Q8Gau", [0.3], **drive)
    np.testing.assert_allclose(la.integrate(system, "P4N4Q8Gau", [0.3], **drive).q, q, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "method", "h"),
    rest_slow(
        [
            ("lagrange-top", "P8N8Q16Gau", 0.1923),
            ("double-pendulum-chaotic", "P8N8Q16Gau", 0.1),
            ("lagrange-top", "P5N5Q10Gau", 0.2),
        ],
        [("lagrange-top", "P8N8Q16Gau", 0.1923)],
    ),
)
def test_coarse_steps_are_those_without_a_step_before_them(name, method, h):
    """The last polynomial, prolonged, leads nowhere in a tenth of such steps: the motion itself predicts them."""
    problem = catalogued(name)
    run = la.integrate(problem.system, method, problem.q0, problem.p0, h=h, steps=60)
    assert run.stats["continued"] <= 1
    single = la.ensemble(problem.system, method, run.q[1:60:4], run.p[1:60:4], h=h, steps=1).q[:, 1]
    found = run.q[2:61:4]
    size = np.maximum(1, np.abs(found).max(axis=1, keepdims=True))  # a run goes on from q and what rounding left over
    np.testing.assert_allclose(found / size, single / size, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    "n, s, count",
    [(2, 6, 40), *(pytest.param(n, s, 400, marks=pytest.mark.slow) for n in (1, 2, 3) for s in (4, 6, 8))],
)
@pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning")
def test_roots_in_lanes_are_those_of_single_steps(n, s, count):
    """Coarse steps over waves: the march predicts them, and most of those that it leads astray fail."""
    rng, method = np.random.default_rng(10 * n + s), f"P{s}N{s}Q{2 * s}Gau"
    k, f = 2 * rng.normal(size=(count, 3, n)), rng.uniform(0, 6, (count, 3))
    params = {"k": k, "f": f, "a": rng.uniform(0.1, 5.0, (count, 3)) / (k**2).sum(2)}
    system = la.Lagrangian(waves, n=n, params={name: values[0] for name, values in params.items()})
    run = la.ensemble(
        system, method, rng.normal(size=(count, n)), v0=rng.normal(size=(count, n)), h=1.0, steps=4, params=params
    )
    which, step = np.nonzero(np.isfinite(run.q[:, 1:]).all(axis=2))
    own = {name: values[which] for name, values in params.items()}
    one = la.ensemble(system, method, run.q[which, step], run.p[which, step], h=1.0, steps=1, params=own).q[:, 1]
    found = np.isfinite(one).all(axis=1)
    assert found.sum() > 2 * count
    np.testing.assert_allclose(run.q[which, step + 1][found], one[found], rtol=0, atol=1e-9)


def waves(q, v, k, f, a):
    """Coarse steps over waves have many roots; the mass changes with the place, too."""
    return 0.5 * (1 + 0.5 * np.sin(k[0] @ q + f[1])) * (v @ v) - np.sum(a * np.cos(k @ q + f)) - 0.1 * (q @ q) ** 2


def test_chords_that_stand_still_by_rounding_are_ended_by_newton():
    """The angle of the top moves by little, and what it is summed from rounds to 10⁻¹³ of that: chords come so far and
    stand still. Newton's iteration ended them from the prediction, or continuation did; from the place where chords
    stand it always can, and from then on chords know what rounding does.
    """
    problem = catalogued("lagrange-top")
    run = {"h": 10 / 52, "every": 2000, "steps": 2000}
    path = la.integrate(problem.system, "P8N8Q16Gau", problem.q0, problem.p0, **run)
    assert path.stats["continued"] == 0
    # Rounding decides how often chords stand still: 15,900 to 16,400 iterations, if h differs by 2 %. Continuation, as
    # of the first step, takes some 360 a step, and 131 of these steps were continued.
    assert path.stats["newton_iterations"] < 9 * 2000


def energy_errors(steps, samples, count=32, method="P8N8Q16Gau"):
    """E(t) − E(0) of double pendulums with steps so short that truncation is far below ε; in units of ε E."""
    system = catalogued("double-pendulum").system
    q0 = np.random.default_rng(0).uniform(-0.5, 0.5, (count, 2))
    paths = la.ensemble(system, method, q0, np.zeros_like(q0), h=0.03, steps=steps, every=steps // samples)
    energy = paths.energy()
    return (energy - energy[:, :1]) / abs(energy[:, :1]) / EPS


def test_energies_scatter_and_do_not_drift():
    """Forces of the velocities before the last increment let every trajectory drift, by some 10⁻⁴ ε a step."""
    errors = energy_errors(30_000, 1)[:, -1]
    assert errors.std() < 4
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(len(errors))


@pytest.mark.slow
def test_no_drift_in_a_million_steps():
    errors = energy_errors(10**6, 4)
    spread = errors.std(axis=0)
    assert spread[4] < 3 * spread[1]  # a walk doubles in four times the steps, a drift is four times as long
    assert spread[4] < 30
    assert abs(errors[:, -1].mean()) < 4 * spread[4] / np.sqrt(len(errors))


@pytest.mark.slow
def test_mass_chords_of_other_members_do_not_drift():
    """Forces of the increments before the last one let trajectories drift: by 5.5 ε on the average, 4.8 times its
    standard deviation.
    """
    errors = energy_errors(100_000, 1, 64, "P8N9Q16Lob")[:, -1]
    assert errors.std() < 8
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(len(errors))


@pytest.mark.slow
def test_no_drift_of_single_runs_over_ten_million_steps():
    """Six double pendulums, each alone, the nodes of a step side by side."""
    system, steps, errors = catalogued("double-pendulum").system, 10**7, []
    for q0 in np.random.default_rng(1).uniform(-0.5, 0.5, (6, 2)):
        energy = la.integrate(system, "P8N8Q16Gau", q0, [0.0, 0.0], h=0.02, steps=steps, every=steps // 16).energy()
        errors.append((energy - energy[0]) / abs(energy[0]) / EPS)
    errors = np.array(errors)
    assert abs(errors).max() < 100, errors[:, ::4]
    assert abs(errors[:, -1].mean()) < 4 * errors[:, -1].std(ddof=1) / np.sqrt(len(errors)), errors[:, ::4]


def test_energy_stays_where_predictions_lead_far_away():
    """Four steps a period of order 32: a first increment is longer than the step, and its rounding must not stay."""

    def relativistic(q, v):
        return -np.sqrt(1 - v @ v) - 0.5 * (q @ q) - 0.1 * q[0] * q[1] ** 2

    system = la.Lagrangian(relativistic, n=2)
    path = la.integrate(system, "P16N16Q32Gau", [0.5, 0.3], v0=[0.2, -0.1], h=1.575, steps=40_000, every=40_000)
    E = path.energy()
    assert abs(E[-1] - E[0]) < 200 * np.spacing(abs(E[0]))  # random rounding leaves some 20; a drift left 1500


def test_a_degree_at_which_rounding_makes_real_shifts_of_a_pair():
    """With s = 32 float64 finds two real eigenvalues where there is a pair, and one shift more."""
    problem = la.problems.get("double-pendulum")
    low, high = (
        la.integrate(problem.system, f"P{s}N{s}Q{2 * s}Gau", [1.0, 1.0], [0.0, 0.0], h=0.1, steps=3) for s in (12, 32)
    )
    np.testing.assert_allclose(high.q, low.q, atol=1e-13)
