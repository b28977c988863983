"""Cyclic coordinates are left out of chords: the same step, with fewer unknowns."""

import numpy as np
import pytest

import leastaction as la
from leastaction.backends.backend import backend
from leastaction.backends.fused import programs
from leastaction.problems.tops import heavy_top as lagrangian
from leastaction.step.cyclic import reduced
from leastaction.step.form import step_of
from leastaction.step.poles import steep
from systems import catalogued
from thrift import rest_slow

TOP = catalogued("lagrange-top")


def pendulum(q, v, m=1.3, l=0.8, g=9.81):
    """A spherical pendulum in angles (θ, φ)."""
    return 0.5 * m * l**2 * (v[0] ** 2 + (np.sin(q[0]) * v[1]) ** 2) + m * g * l * np.cos(q[0])


def cart(q, v, M=2.0, m=0.7, l=0.9, g=9.81):
    """A cart with a pendulum (θ, x): the cart's velocity depends on the pendulum's."""
    return (
        0.5 * (M + m) * v[1] ** 2
        + m * l * v[0] * v[1] * np.cos(q[0])
        + 0.5 * m * (l * v[0]) ** 2
        + m * g * l * np.cos(q[0])
    )


def turning(q, v):
    """Two cyclic coordinates that are coupled with each other and with two free ones, and a gyroscopic term."""
    mass = 1.5 + 0.3 * np.cos(q[1]), 0.4 * np.sin(q[3]), 2.0 + 0.2 * np.sin(q[1] + q[3])
    kinetic = 0.5 * mass[0] * v[0] ** 2 + mass[1] * v[0] * v[2] + 0.5 * mass[2] * v[2] ** 2
    mixed = 0.3 * v[0] * v[1] * np.cos(q[3]) + 0.2 * v[2] * v[3]
    return kinetic + mixed + 0.5 * (v[1] ** 2 + v[3] ** 2) + 0.7 * q[1] * v[2] - np.cosh(0.5 * q[1]) - 0.5 * q[3] ** 2


SYSTEMS = {
    "top": (TOP.system, TOP.q0, TOP.p0, 0.04, (1,)),
    "pendulum": (la.Lagrangian(pendulum, n=2), [1.0, 0.2], [0.3, 1.1], 0.1, (0,)),
    "cart": (la.Lagrangian(cart, n=2), [1.0, 0.2], [0.3, 1.1], 0.1, (0,)),
    "turning": (la.Lagrangian(turning, n=4), [0.1, 0.5, -0.2, 0.4], [0.3, 0.2, -0.5, 0.1], 0.2, (1, 3)),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_which_coordinates_are_free(name):
    system, _, _, _, free = SYSTEMS[name]
    assert reduced(step_of(system, la.method("P4N4Q8Gau"))).of.free == free


@pytest.mark.parametrize(
    "fn",
    [
        lambda q, v: 0.5 * v[0] ** 2 + np.exp(v[1] ** 2) * (1 + q[0] ** 2),  # a mass of v
        lambda q, v: (
            0.5 * v[0] ** 2 * (2 + np.floor(q[1])) + 0.5 * v[1] ** 2 - q[0] ** 2
        ),  # q₁ is read, with a slope of zero
        lambda q, v: v[0] * v[1] - 0.5 * q[0] ** 2 * v[0] ** 2,  # without a mass of its own
        lambda q, v: 0.5 * v[0] ** 2 + 0.5 * v[1] ** 2 * (1 + q[0] ** 2) - q[1],  # a force
    ],
)
def test_coordinates_that_only_seem_to_be_cyclic(fn):
    step = step_of(la.Lagrangian(fn, n=2), la.method("P4N4Q8Gau"))
    assert reduced(step) is step


def test_a_force_on_a_coordinate_that_nothing_reads():
    """The momentum changes, so the coordinate is not cyclic."""
    system = la.Lagrangian(pendulum, n=2, force=lambda q, v: [0.0 * v[0], -0.1 * v[1]])
    assert reduced(step_of(system, la.method("P4N4Q8Gau"))).of is None


@pytest.mark.parametrize(
    "name, s",
    rest_slow(
        [(name, s) for name in SYSTEMS for s in (1, 3, 4, 8, 9)],
        kept=[("top", 4), ("turning", 1)],
    ),
)
def test_it_is_the_same_step(name, s):
    """One trajectory and lanes against forty digits, where nothing is left out; momenta of cyclic coordinates stay."""
    system, q0, p0, h, free = SYSTEMS[name]
    method, h, steps = la.galerkin(s, la.gauss(s)), h * min(s, 4) / 4, 12
    exact = la.integrate(system, method, q0, p0, h=h, steps=steps, digits=40)
    one = la.integrate(system, method, q0, p0, h=h, steps=steps)
    many = la.ensemble(system, method, q0=np.tile(q0, (3, 1)), p0=np.tile(p0, (3, 1)), h=h, steps=steps)
    for q, p in ((one.q, one.p), (many.q[1], many.p[1])):
        for found, known in ((q, exact.q), (p, exact.p)):
            known = np.array(known, float)
            np.testing.assert_allclose(found, known, rtol=0, atol=1e-13 * max(1.0, np.abs(known).max()))
        kept = [j for j in range(system.n) if j not in free]
        assert (p[:, kept] == np.array(p0, float)[kept]).all()


def test_what_chords_hold():
    """Of a top chords have one coordinate of three; alone they need forces, in lanes the mass of every node."""
    alone, lanes = (backend(TOP.system, la.method("P8N8Q16Gau"), count).programs for count in (1, 4))
    blocks = dict(alone.kernels["advance"].inputs), dict(lanes.kernels["advance"].inputs)
    assert "kicks" in blocks[0] and blocks[1]["speeds"] == 8
    whole = step_of(TOP.system, la.method("P8N8Q16Gau"))
    assert programs._soft_step(whole, 8).step.n == 1


def test_coarse_steps_of_a_top_do_not_fall_off():
    """Chords that fail begin again from the motion itself; where they contract badly, as near the upright top, Newton's
    iteration begins where they stand."""
    path = la.integrate(TOP.system, "P8N8Q16Gau", TOP.q0, TOP.p0, h=0.23, steps=1500, every=1500)
    assert path.stats["continued"] == 0
    assert path.stats["newton_iterations"] < 16 * 1500


@pytest.mark.parametrize("s", [4, 5, 6, 8, 16])
def test_slopes_at_nodes_tell_of_a_pole(s):
    """Wherever motions over sin²θ = 0 are asked, uniform ones of up to nine radians and accelerated ones."""
    rng, count, c = np.random.default_rng(20261118), 100_000, np.array([0.0, *la.gauss(s).c], float)
    speed, force = rng.uniform(0, 9, (count, 1)), rng.uniform(-4, 4, (count, 1)) * (rng.random((count, 1)) < 0.5)
    theta = rng.uniform(0, np.pi, (count, 1)) + speed * c + 0.5 * force * c**2
    over = (theta < 0).any(axis=1) | (theta > np.pi).any(axis=1)
    change = np.sin(2 * theta[:, 1:-1]) * np.diff(theta[:, 1:])
    told = steep(np.sin(theta[:, 1:-1]) ** 2, change).any(axis=1)
    assert over.sum() > 10_000
    assert told[over].all()


def strays(seeds, method):
    """Later steps of spherical pendulums that pass near poles: those with another root than a first step; and all."""
    system, how = la.Lagrangian(lambda q, v: pendulum(q, v, 1.0, 1.0, 1.0), n=2), {"method": method, "h": 1.0}
    astray = steps = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        q0, p0 = [rng.uniform(1.0, 2.0), 0.0], [rng.normal(), 0.05 * rng.normal()]
        try:
            path = la.integrate(system, q0=q0, p0=p0, steps=20, **how)
        except la.StepFailed as failed:
            path = failed.path
        for k in range(1, len(path) - 1):
            try:
                one = la.integrate(system, q0=path.q[k], p0=path.p[k], steps=1, **how)
            except la.StepFailed:
                continue
            steps += 1
            astray += np.abs(one.q[1] - path.q[k + 1]).max() > 1e-7
    return astray, steps


@pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning", "ignore::leastaction.ChartWarning")
@pytest.mark.parametrize("s, seeds", [(8, 12), *(pytest.param(s, 60, marks=pytest.mark.slow) for s in (4, 6, 8))])
def test_coarse_steps_do_not_leap_over_a_pole(s, seeds):
    """Of 916 steps none goes astray; 27 of 957 while only pivots of M_cc at neighbouring nodes were compared, 366 of
    2,285 before that."""
    astray, steps = strays(range(seeds), f"P{s}N{s}Q{2 * s}Gau")
    assert steps > 50
    assert astray == 0


@pytest.mark.parametrize("method", ["P4N4Q8Gau", "P8N8Q16Gau", "P12N12Q24Gau"])
def test_ordinary_steps_leap_over_nothing(method):
    """Neither the top nor an eccentric orbit in polar coordinates, whose M_cc = r² grows by a factor of 81."""
    top = la.integrate(TOP.system, method, TOP.q0, TOP.p0, h=0.1, steps=1000, every=1000)
    kepler = la.Lagrangian(lambda q, v: 0.5 * (v[0] ** 2 + (q[0] * v[1]) ** 2) + 1 / q[0], n=2)
    orbit = la.integrate(kepler, method, [0.2, 0.0], [0.0, 0.6], h=0.02, steps=1000, every=1000)
    assert top.stats["continued"] == orbit.stats["continued"] == 0


def test_events_and_energies_see_all_coordinates():
    """The polynomial of a cyclic coordinate is that of its velocities."""
    h, steps = 0.04, 50
    path = la.integrate(
        TOP.system, "P8N8Q16Gau", TOP.q0, TOP.p0, h=h, steps=steps, events={"turn": la.Event(lambda q, p: q[0] - 3.0)}
    )
    (t,) = path.events["turn"].t
    assert abs(path(t)[0] - 3.0) < 1e-12
    fine = la.integrate(TOP.system, "P8N8Q16Gau", TOP.q0, TOP.p0, h=h / 4, steps=4 * steps)
    np.testing.assert_allclose(path(0.7 * h), fine(0.7 * h), rtol=1e-9)
    many = la.ensemble(
        TOP.system, "P8N8Q16Gau", q0=[TOP.q0] * 2, p0=[TOP.p0] * 2, h=h, steps=steps, reduce={"E": la.EnergyRange()}
    )
    low, high = many.reduced["E"].T
    assert (high - low < 1e-13 * np.abs(low)).all()


def constant(q, v, a):
    """A constant mass that is regular, while its first pivot is a."""
    return v[0] * v[1] + 0.5 * a * v[0] ** 2 + 0.5 * v[2] ** 2 + np.cos(q[2])


def two(q, v, a):
    """Two cyclic coordinates: M is regular, while the first pivot of M_cc is a."""
    return 0.5 * v[0] * v[1] * (2 + np.cos(q[2])) + 0.5 * a * (v[0] ** 2 + v[1] ** 2) + 0.5 * v[2] ** 2 + np.cos(q[2])


def one(q, v, a):
    """One cyclic coordinate, with a small mass beside what couples it with the other one."""
    return 0.5 * a * v[0] ** 2 + 0.5 * v[0] * v[1] * (2 + np.cos(q[1])) + 0.5 * v[1] ** 2 + np.cos(q[1])


def late(q, v):
    """The second pivot of the cyclic coordinates is zero."""
    return 0.5 * (v[0] + v[1]) ** 2 + v[1] * v[2] + 0.5 * v[2] ** 2 * (2 + np.cos(q[2])) + np.cos(q[2])


@pytest.mark.parametrize("fn, n", [(late, 3), (lambda q, v: one(q, v, 1e-9), 2), (lambda q, v: two(q, v, 1e-9), 3)])
def test_small_pivots_are_seen_before_steps(fn, n):
    step = step_of(la.Lagrangian(fn, n=n), la.method("P4N4Q8Gau"))
    assert reduced(step).of is None


@pytest.mark.parametrize(
    "known, a", rest_slow([(k, a) for k in (True, False) for a in (0.0, 1e-9)], kept=[(True, 0.0), (False, 1e-9)])
)
@pytest.mark.parametrize("fn, n, method", [(constant, 3, "verlet"), (two, 3, "P4N4Q8Gau"), (one, 2, "P4N4Q8Gau")])
def test_small_pivots_are_seen_in_steps(fn, n, method, known, a):
    """A regular mass that is not definite may have a part that is singular, or nearly so: always, or for some
    parameters alone."""
    if known:
        system = la.Lagrangian(lambda q, v: fn(q, v, a), n=n)
    else:
        system = la.Lagrangian(fn, n=n, params={"a": a})
    q0, p0 = [0.0, 0.0, 1.0][-n:], [0.4, 0.3, 0.1][-n:]
    exact = np.array(la.integrate(system, method, q0, p0, h=0.05, steps=20, digits=30).q[-1], float)
    alone = la.integrate(system, method, q0, p0, h=0.05, steps=20)
    many = la.ensemble(system, method, q0=[q0] * 3, p0=[p0] * 3, h=0.05, steps=20)
    for found in (alone.q[-1], many.q[1, -1]):
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12)


def test_which_coordinates_are_left_out_does_not_depend_on_units():
    units = np.array([2.0**60, 1.0, 2.0**-60])
    system = la.Lagrangian(lambda q, v: lagrangian(q * units, v * units, 0.1, 9.81, 0.15, 2e-3, 1e-3), n=3)
    assert reduced(step_of(system, la.method("P4N4Q8Gau"))).of.free == (1,)
