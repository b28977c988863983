"""Systems with cyclic coordinates: steps, events, energies; masses whose part of these coordinates is singular."""

import numpy as np
import pytest

import leastaction as la
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


def test_coarse_steps_of_a_top_do_not_fall_off():
    """Chords that fail begin again from the motion itself; where they contract badly, as near the upright top, Newton's
    iteration begins where they stand."""
    path = la.integrate(TOP.system, "P8N8Q16Gau", TOP.q0, TOP.p0, h=0.23, steps=1500, every=1500)
    assert path.stats["continued"] == 0
    assert path.stats["newton_iterations"] < 16 * 1500


@pytest.mark.parametrize("method", rest_slow(["P4N4Q8Gau", "P8N8Q16Gau", "P12N12Q24Gau"], ["P8N8Q16Gau"]))
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
