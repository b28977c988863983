"""Constraints: orders, both levels at round-off, structure, starts, and what is refused."""

from __future__ import annotations

import pickle

import mpmath
import numpy as np
import pytest
from scipy.optimize import least_squares

import leastaction as la
from leastaction.systems.projection import tangent_basis
from systems import catalogued
from thrift import rest_slow

ROUND_OFF = 64 * 2.0**-52


def double(q, v, m1, m2, g):
    """Two points in the plane under gravity."""
    return 0.5 * m1 * (v[:2] @ v[:2]) + 0.5 * m2 * (v[2:] @ v[2:]) - g * (m1 * q[1] + m2 * q[3])


def rods(q, l1, l2):
    """A rod from the origin to the first, and one from there to the second."""
    return np.array([q[:2] @ q[:2] - l1**2, (q[2:] - q[:2]) @ (q[2:] - q[:2]) - l2**2])


VALUES = {"m1": 1.0, "m2": 2.0, "g": 9.81, "l1": 1.0, "l2": 0.7}
PENDULUMS = la.Lagrangian(double, n=4, params=VALUES, constraints=rods)
ROD = la.Lagrangian(
    lambda q, v, g: 0.5 * (v @ v) - g * q[1],
    n=2,
    params={"g": 9.81, "l": 2.0},
    constraints=lambda q, l: (q @ q - l**2) / 2,
)


def places(a, b, l1=1.0, l2=0.7):
    """The two points, from the angles of the rods."""
    x, y = l1 * np.sin(a), -l1 * np.cos(a)
    return np.array([x, y, x + l2 * np.sin(b), y - l2 * np.cos(b)])


def speeds(a, b, va, vb, l1=1.0, l2=0.7):
    x, y = l1 * va * np.cos(a), l1 * va * np.sin(a)
    return np.array([x, y, x + l2 * vb * np.cos(b), y + l2 * vb * np.sin(b)])


def levels(path):
    """g and ġ at every stored time, in units of what each is summed from along the path."""
    from leastaction.systems.projection import look_at_constraints as look

    params = np.tile(path.system.values(path.params), (len(path), 1))
    here = look(path.system, path.t, path.q, path.velocity(), params)
    g_size, c_size = here.g_size.max(axis=0), here.c_size.max(axis=0)
    return np.abs(here.g / g_size).max(), np.abs(here.c / c_size).max()


# -------------------------------------------------------------------------------------------------- orders


def inseparable(t, q, v):
    """A mass that depends on q, and on the time."""
    mixed = 0.3 * np.sin(q[1]) * v[0] * v[2]
    return (
        0.5 * (1 + 0.5 * q[1] ** 2) * v[0] ** 2 + 0.5 * (v[1] ** 2 + v[2] ** 2) + v[3] ** 2 + mixed - 3 * (q[1] + q[3])
    )


def breathing(t, q):
    """A rod whose length changes with time, and one that does not."""
    return np.array([q[:2] @ q[:2] - (1 + 0.1 * np.sin(t)) ** 2, (q[2:] - q[:2]) @ (q[2:] - q[:2]) - 1])


def pushed(t, q, v):
    return -0.2 * v + 0.3 * np.array([np.cos(t), 0.0 * t, np.sin(2 * t), 0.1 + 0.0 * t])


HARD = la.Lagrangian(inseparable, n=4, constraints=breathing, force=pushed)
UNFORCED = la.Lagrangian(inseparable, n=4, constraints=breathing)


def ends(system, name, h, t_end=1.0):
    q0, v0 = la.project(system, [0.6, -0.8, 1.4, -1.4], [0.3, 0.4, -0.2, 0.5])
    path = la.integrate(system, name, q0=q0, v0=v0, h=h, t_end=t_end)
    return path.q[-1], path.p[-1], path.multipliers[-1]


MEMBERS = [
    *("P1N1Q2Gau", "P1N2Q2Lob", "P1N2Q4Gau", "P2N2Q4Gau", "P2N3Q4Lob", "P2N3Q6Gau"),
    *("P3N3Q6Gau", "P3N4Q6Lob", "P4N4Q8Gau", "P4N5Q8Lob"),
]


@pytest.mark.slow
@pytest.mark.parametrize("system", [HARD, UNFORCED], ids=["forced", "free"])
def test_the_order_is_that_without_constraints(system):
    """2s in q, in p and in λ, for Gauss and Lobatto rules alike: a mass that depends on t and q, a constraint on t."""
    exact = ends(system, "P5N5Q10Gau", 0.02)
    for name in MEMBERS:
        s = la.method(name).s
        hs = {1: (0.05, 0.025), 2: (0.1, 0.05), 3: (0.0625, 0.05), 4: (0.125, 0.1)}[s]
        errors = [[abs(a - b).max() for a, b in zip(ends(system, name, h), exact, strict=True)] for h in hs]
        orders = np.log(np.array(errors[0]) / np.array(errors[1])) / np.log(hs[0] / hs[1])
        assert (abs(orders - 2 * s) < 0.2).all(), (name, orders, errors)


def test_stormer_verlet_is_rattle():
    """s = 1 with the trapezoidal rule: Andersen's RATTLE, written out here, to the last bits."""
    h, M = 0.01, np.array([1.0, 1.0, 2.0, 2.0])
    q, v = places(0.7, 1.1), speeds(0.7, 1.1, 0.4, -0.3)
    path = la.integrate(PENDULUMS, "stormer-verlet", q0=q, v0=v, h=h, steps=50)
    force = -9.81 * M * [0, 1, 0, 1]

    def G(q):
        d = q[2:] - q[:2]
        return 2 * np.array([[*q[:2], 0, 0], [*-d, *d]])

    p = M * v
    for k in range(50):
        push, at = np.zeros(2), G(q)
        for _ in range(20):
            half = p + h / 2 * (force + at.T @ push)
            end = q + h * half / M
            push = push - np.linalg.solve(G(end) @ (at.T / M[:, None]) * h**2 / 2, rods(end, 1.0, 0.7))
        p = half + h / 2 * force
        at = G(end)
        p = p - at.T @ np.linalg.solve(at @ (at.T / M[:, None]), at @ (p / M))
        q = end
        np.testing.assert_allclose(path.q[k + 1], q, rtol=0, atol=1e-13)
        np.testing.assert_allclose(path.p[k + 1], p, rtol=0, atol=3e-13)


@pytest.mark.parametrize("lanes", (1, 5))
def test_coordinates_that_turn_back_leave_no_doubt(lanes):
    """Every coordinate of a point on a rod turns back all the time. Its increments are nearly zero there."""
    q0 = np.array([places(0.3 + 0.01 * k, 0.2) for k in range(lanes)])
    paths = la.ensemble(PENDULUMS, "stormer-verlet", q0=q0, v0=np.zeros((lanes, 4)), h=0.05, steps=1000)
    assert paths.stats["continued"] == 0
    for path in paths:
        assert max(levels(path)) <= ROUND_OFF


def test_coarse_steps_of_rattle_are_those_of_continuation():
    """A first step is found by continuation: so is one from any state of a run, and it leads to the next."""
    path = la.integrate(PENDULUMS, "stormer-verlet", q0=places(2.5, 1.0), v0=np.zeros(4), h=0.02, steps=120)
    for k in range(1, 120, 3):
        one = la.integrate(PENDULUMS, "stormer-verlet", q0=path.q[k], p0=path.p[k], h=0.02, steps=1)
        np.testing.assert_allclose(one.q[-1], path.q[k + 1], rtol=0, atol=1e-14)
        np.testing.assert_allclose(one.p[-1], path.p[k + 1], rtol=0, atol=1e-13)


def test_rattle_with_all_that_goes_with_it():
    """A force of place and time, an input, a full mass, a constraint that moves: as the loops compute it."""
    M = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 3.0]])
    system = la.Lagrangian(
        lambda q, v, k: 0.5 * (v @ (M @ v)) - k * (q @ q) ** 2,
        n=3,
        params={"k": 0.4},
        force=lambda t, q, v, u: np.array([u[0] * np.cos(t), -q[0] * q[1], u[1]]),
        inputs={"u": 2},
        constraints=lambda t, q: q @ q - (1 + 0.1 * np.sin(t)) ** 2,
    )
    start = la.project(system, [0.6, 0.0, 0.8], [0.1, 0.5, 0.0], digits=20)
    u = np.random.default_rng(0).standard_normal((200, 2))
    run = {"method": "stormer-verlet", "h": 0.02, "steps": 200, "inputs": {"u": u}}
    precise = la.integrate(system, q0=start[0], v0=start[1], digits=20, **run)
    path = la.integrate(system, q0=start[0].astype(float), v0=start[1].astype(float), **run)
    np.testing.assert_allclose(path.q, precise.q.astype(float), rtol=0, atol=1e-12)
    np.testing.assert_allclose(path.p, precise.p.astype(float), rtol=0, atol=1e-12)


def test_against_the_angle():
    """The pendulum in the plane is the pendulum with one angle."""
    angle = la.Lagrangian(lambda q, v, g, l: 0.5 * l**2 * v[0] ** 2 + g * l * np.cos(q[0]), n=1, params=ROD.params)
    a, w = 1.2, 0.5
    free = la.integrate(angle, "P6N6Q12Gau", q0=[a], v0=[w], h=0.05, steps=100)
    path = la.integrate(
        ROD,
        "P6N6Q12Gau",
        q0=[2 * np.sin(a), -2 * np.cos(a)],
        v0=[2 * w * np.cos(a), 2 * w * np.sin(a)],
        h=0.05,
        steps=100,
    )
    np.testing.assert_allclose(path.q, 2 * np.stack([np.sin(free.q[:, 0]), -np.cos(free.q[:, 0])], axis=1), atol=1e-11)
    # The rod's pull: G = q, so λ l = −(g cos θ + l θ'²).
    pull = -(9.81 * np.cos(free.q[:, 0]) + 2 * free.velocity()[:, 0] ** 2) / 2
    np.testing.assert_allclose(path.multipliers[:, 0], pull, rtol=1e-10)
    np.testing.assert_allclose(path.reaction(), path.q * path.multipliers, rtol=1e-13)


@pytest.mark.parametrize("digits", [None, 25])
def test_compositions_keep_the_constraints(digits):
    """Yoshida's composition of RATTLE has order four, and its derivative is symplectic on the manifold."""
    method = la.compose("stormer-verlet", "yoshida")
    q0, v0 = la.project(HARD, [0.6, -0.8, 1.4, -1.4], [0.3, 0.4, -0.2, 0.5], digits=digits)
    runs = [la.integrate(HARD, method, q0=q0, v0=v0, h=h, t_end="1/2", digits=digits) for h in ("1/16", "1/32")]
    exact = la.integrate(HARD, "P5N5Q10Gau", q0=q0, v0=v0, h="1/32", t_end="1/2", digits=digits)
    errors = [float(abs(run.q[-1] - exact.q[-1]).max()) for run in runs]
    assert abs(np.log2(errors[0] / errors[1]) - 4) < 0.3
    if digits is None:
        assert max(levels(runs[0])) < ROUND_OFF
        assert la.analysis.symplectic_defect(PENDULUMS, method, *curve(0.0), 0.05) < 1e-13
    by_h = la.integrate(HARD, method, q0=q0, v0=v0, h="1/16", steps=8, tangent="all", digits=digits).sensitivity[-1]
    ends = [la.integrate(HARD, method, q0=q0, v0=v0, h=1 / 16 + d, steps=8, digits=digits) for d in (1e-6, -1e-6)]
    change = np.concatenate([(getattr(ends[0], x)[-1] - getattr(ends[1], x)[-1]).astype(float) / 2e-6 for x in "qp"])
    np.testing.assert_allclose(by_h[:, -1].astype(float), change, rtol=1e-6, atol=1e-6)


# ----------------------------------------------------------------------------------------------- structure


@pytest.mark.parametrize(
    "name", rest_slow(["midpoint", "simpson", "P3N3Q6Gau", "P5N6Q10Lob"], ["midpoint", "P3N3Q6Gau"])
)
def test_both_levels_hold_at_every_step(name):
    path = la.integrate(PENDULUMS, name, q0=places(2.0, 1.0), v0=speeds(2.0, 1.0, 1.0, -2.0), h=0.01, steps=3000)
    g, c = levels(path)
    assert g < ROUND_OFF and c < ROUND_OFF


@pytest.mark.parametrize("steps", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name, h", [("P4N4Q8Gau", 0.02), ("P5N6Q10Lob", 0.02)])
def test_neither_energy_nor_constraints_drift(name, h, steps):
    path = la.integrate(PENDULUMS, name, q0=places(0.3, 0.2), v0=np.zeros(4), h=h, steps=steps, every=steps // 1000)
    E = path.energy()
    assert abs(E - E[0]).max() < 400 * 2.0**-52 * np.sqrt(steps / 1e4) * abs(E[0])
    g, c = levels(path)
    assert g < ROUND_OFF and c < ROUND_OFF


@pytest.mark.parametrize("name", ["stormer-verlet", "simpson", "P3N3Q6Gau"])
def test_reversal(name):
    """A run with −h from the end comes back to the start."""
    q0, v0 = places(2.0, 1.0), speeds(2.0, 1.0, 1.0, -2.0)
    there = la.integrate(PENDULUMS, name, q0=q0, v0=v0, h=0.01, steps=200)
    back = la.integrate(PENDULUMS, name, q0=there.q[-1], p0=there.p[-1], h=-0.01, steps=200)
    np.testing.assert_allclose(back.q[-1], q0, atol=1e-9)
    np.testing.assert_allclose(back.p[-1], there.p[0], atol=1e-8)


@pytest.mark.parametrize("name", rest_slow(["midpoint", "simpson", "P4N5Q8Lob"], ["simpson"]))
def test_momentum_maps(name):
    """A triangle of rods in free flight keeps its momentum and its angular momentum."""

    def free(q, v, m):
        v = v.reshape(3, 2)
        return 0.5 * (m @ (v**2).sum(axis=1))

    def triangle(q):
        x = q.reshape(3, 2)
        d = x - x[[1, 2, 0]]
        return (d**2).sum(axis=1) - 1.0

    system = la.Lagrangian(free, n=6, params={"m": [1.0, 2.0, 3.0]}, constraints=triangle)
    q0, v0 = la.project(system, [0, 0, 1, 0, 0.5, 0.8], [1.0, 0.2, -0.3, 0.5, 0.1, -0.7])
    path = la.integrate(system, name, q0=q0, v0=v0, h=0.05, steps=2000)
    x, p = path.q.reshape(-1, 3, 2), path.p.reshape(-1, 3, 2)
    total = p.sum(axis=1)
    spin = (x[..., 0] * p[..., 1] - x[..., 1] * p[..., 0]).sum(axis=1)
    assert abs(total - total[0]).max() < 1e-12
    drift = spin - spin[0]
    assert abs(drift).max() < 1e-10  # x itself grows with time
    E = path.energy()
    assert abs(E - E[0]).max() < 1e-3 * abs(E[0])


def test_a_kinetic_energy_that_is_not_quadratic():
    """A relativistic point on a rod: order, both levels, symplecticity, digits, and lanes."""

    def relativistic(q, v, c, g):
        return -(c**2) * np.sqrt(1 - (v @ v) / c**2) - g * q[1]

    given = {"c": 3.0, "g": 1.0, "l": 2.0}
    system = la.Lagrangian(relativistic, n=2, params=given, constraints=lambda q, l: (q @ q - l**2) / 2)
    q0, v0 = [2 * np.sin(1.0), -2 * np.cos(1.0)], [1.5 * np.cos(1.0), 1.5 * np.sin(1.0)]
    exact = la.integrate(system, "P5N5Q10Gau", q0=q0, v0=v0, h=0.02, t_end=2.0)
    for name in ("midpoint", "simpson", "P3N3Q6Gau"):
        runs = [la.integrate(system, name, q0=q0, v0=v0, h=h, t_end=2.0) for h in (0.1, 0.05)]
        errors = [abs(run.q[-1] - exact.q[-1]).max() for run in runs]
        assert abs(np.log2(errors[0] / errors[1]) - la.method(name).order) < 0.2
        assert max(levels(runs[0])) < ROUND_OFF
        assert la.analysis.symplectic_defect(system, name, exact.q[0], exact.p[0], 0.1) < 1e-14
    run = la.integrate(system, "simpson", q0=q0, v0=v0, h=0.1, steps=20, tangent=True)
    fine = la.project(system, q0, v0, digits=30)
    more = la.integrate(system, "simpson", q0=fine[0], v0=fine[1], h=0.1, steps=20, tangent=True, digits=30)
    np.testing.assert_allclose(more.q.astype(float), run.q, rtol=0, atol=1e-13)
    np.testing.assert_allclose(more.tangent.astype(float), run.tangent, rtol=0, atol=1e-12)
    many = la.ensemble(system, "simpson", q0=[q0] * 3, v0=[v0] * 3, h=0.1, steps=20)
    np.testing.assert_allclose(many.q[1], run.q, rtol=0, atol=1e-13)
    with pytest.raises(ValueError, match="quadratic in the velocities"):
        la.integrate(system, "simpson", q0=q0, v0=v0, h=0.1, steps=2, events={"wall": la.Impact(lambda q: q[0])})


def test_a_mass_that_is_not_positive():
    """Its diagonal has zeros: elimination has to pivot."""
    system = la.Lagrangian(
        lambda q, v: v[0] * v[1] + 0.5 * v[2] ** 2 - q[0] * q[1] - q[2] ** 2,
        n=3,
        constraints=lambda q: q[0] + q[1] - q[2] - 0.1 * q[0] ** 2,
    )
    q0, v0 = la.project(system, [0.3, 0.2, 0.45], [0.1, 0.2, 0.3])
    path = la.integrate(system, "P3N3Q6Gau", q0=q0, v0=v0, h=0.05, steps=100)
    assert max(levels(path)) < ROUND_OFF
    E = path.energy()
    assert abs(E - E[0]).max() < 1e-8


def test_units_do_not_matter():
    """Ångström and atomic masses: the same run, whatever the units."""
    q0, v0 = places(0.7, 1.1), speeds(0.7, 1.1, 0.4, -0.3)
    plain = la.integrate(PENDULUMS, "simpson", q0=q0, v0=v0, h=0.01, steps=300)
    m, l, t = 2.0**-90, 2.0**-34, 2.0**-40
    small = {"m1": m, "m2": 2 * m, "g": 9.81 * l / t**2, "l1": l, "l2": 0.7 * l}
    tiny = la.integrate(PENDULUMS, "simpson", q0=q0 * l, v0=v0 * l / t, h=0.01 * t, steps=300, params=small)
    np.testing.assert_allclose(tiny.q / l, plain.q, rtol=0, atol=1e-11)
    np.testing.assert_allclose(tiny.p / (m * l / t), plain.p, rtol=0, atol=1e-10)


@pytest.mark.parametrize("h", [1e-5, 1e-8, 1e-10])
def test_small_steps(h):
    path = la.integrate(PENDULUMS, "simpson", q0=places(0.7, 1.1), v0=speeds(0.7, 1.1, 0.4, -0.3), h=h, steps=300)
    assert max(levels(path)) < ROUND_OFF
    E = path.energy()
    assert abs(E - E[0]).max() < 1e-13 * abs(E[0])


def test_rest_and_almost_rest():
    path = la.integrate(PENDULUMS, "simpson", q0=places(0, 0), v0=np.zeros(4), h=0.01, steps=300)
    np.testing.assert_allclose(path.q, np.broadcast_to(path.q[0], path.q.shape), rtol=0, atol=1e-15)
    np.testing.assert_allclose(path.multipliers[-1], [-9.81 * 3 / 2, -9.81 * 2 / 1.4], rtol=1e-12)
    path = la.integrate(PENDULUMS, "simpson", q0=places(1e-6, 1e-6), v0=np.zeros(4), h=0.01, steps=300)
    assert max(levels(path)) < ROUND_OFF
    assert 1e-7 < abs(path.q[:, 2]).max() < 1e-5


def tangents(q, p):
    """A basis of the directions (dq, dp) tangent to g = 0 and ġ = 0, of the pendulums."""
    M = np.array([1.0, 1.0, 2.0, 2.0])

    def rows(x):
        d = x[2:] - x[:2]
        return 2 * np.array([[*x[:2], 0, 0], [*-d, *d]])

    level = np.block([[rows(q), np.zeros((2, 4))], [rows(p / M), rows(q) / M]])
    return np.linalg.svd(level)[2][4:].T


def curve(e):
    """Consistent states along a curve, as (q, p)."""
    a, b = 0.7 + 0.3 * e, 1.1 - 0.2 * e
    return places(a, b), speeds(a, b, 0.4 + e, -0.3 + 0.5 * e) * np.array([1.0, 1.0, 2.0, 2.0])


@pytest.mark.parametrize(
    ("name", "digits"), [("midpoint", None), ("P2N2Q4Gau", None), ("P3N4Q6Lob", None), ("P2N2Q4Gau", 30)]
)
def test_the_tangent_map_is_symplectic_on_the_manifold(name, digits):
    """And it is the derivative: along a curve of consistent states, by gravity and by h."""
    q, p = curve(0.0)
    q0, v0 = la.project(PENDULUMS, q, p / np.array([1.0, 1.0, 2.0, 2.0]), digits=digits)
    path = la.integrate(PENDULUMS, name, q0=q0, v0=v0, h=0.02, steps=20, tangent="all", digits=digits)
    T, S = path.tangent[-1].astype(float), path.sensitivity[-1].astype(float)
    N = tangents(q, p)
    J = np.block([[np.zeros((4, 4)), np.eye(4)], [-np.eye(4), np.zeros((4, 4))]])
    assert abs(N.T @ (T.T @ J @ T - J) @ N).max() < 1e-13
    B = tangents(path.q[-1].astype(float), path.p[-1].astype(float))
    assert abs(T @ N - B @ (B.T @ T @ N)).max() < 1e-13  # what it leads to is tangent again

    def end(e=0.0, g=9.81, h=0.02):
        q, p = curve(e)
        found = la.integrate(PENDULUMS, name, q0=q, p0=p, h=h, steps=20, params={"g": g})
        return np.concatenate([found.q[-1], found.p[-1]])

    d = 1e-4
    along = (np.concatenate(curve(d)) - np.concatenate(curve(-d))) / (2 * d)
    np.testing.assert_allclose(T @ along, (end(d) - end(-d)) / (2 * d), atol=1e-7)
    np.testing.assert_allclose(S[:, 2], (end(g=9.81 + d) - end(g=9.81 - d)) / (2 * d), atol=1e-7)
    np.testing.assert_allclose(S[:, -1], (end(h=0.02 + 1e-6) - end(h=0.02 - 1e-6)) / 2e-6, rtol=1e-6, atol=1e-4)


def test_time_in_the_constraints_counts_in_the_tangent_map():
    q0, v0 = la.project(HARD, [0.6, -0.8, 1.4, -1.4], [0.3, 0.4, -0.2, 0.5])
    by_h = la.integrate(HARD, "simpson", q0=q0, v0=v0, h=0.05, steps=10, tangent="all").sensitivity[-1][:, -1]

    def end(h):
        path = la.integrate(HARD, "simpson", q0=q0, v0=v0, h=h, steps=10)
        return np.concatenate([path.q[-1], path.p[-1]])

    np.testing.assert_allclose(by_h, (end(0.05 + 1e-6) - end(0.05 - 1e-6)) / 2e-6, rtol=1e-6, atol=1e-7)


# -------------------------------------------------------------------------------------------------- starts


def test_project_gives_the_nearest_state():
    """q − q0 and v − v0 are M⁻¹Gᵀ times something: the condition for the nearest, in the metric of the mass."""
    q0, v0 = places(0.7, 1.1) + np.array([0.1, 0.02, -0.05, 0.03]), np.array([1.0, 0.5, -0.2, 0.3])
    q, v = la.project(PENDULUMS, q0, v0)
    assert abs(rods(q, 1.0, 0.7)).max() < 1e-15
    d = q[2:] - q[:2]
    G, M = 2 * np.array([[*q[:2], 0, 0], [*-d, *d]]), np.array([1.0, 1.0, 2.0, 2.0])
    assert abs(G @ v).max() < 1e-15
    for change in (q - q0, v - v0):
        part = np.linalg.lstsq((G / M).T, change, rcond=None)[0]
        np.testing.assert_allclose((G / M).T @ part, change, atol=1e-13)
    same = la.project(PENDULUMS, q, v)
    np.testing.assert_allclose(np.concatenate(same), np.concatenate([q, v]), rtol=0, atol=1e-15)


def test_project_goes_shorter_ways_where_the_linearised_one_leads_away():
    """From q₀ = 3 Newton's iteration for arctan q₀ = 0 goes to −9.5, and further away with every iteration."""
    system = la.Lagrangian(lambda q, v: 0.5 * v @ v, n=2, constraints=lambda q: np.arctan(q[0]))
    q, v = la.project(system, [3.0, 0.5], [1.0, 2.0])
    np.testing.assert_allclose([*q, *v], [0.0, 0.5, 0.0, 2.0], rtol=0, atol=1e-15)


def test_project_knows_time_and_parameters():
    q, v = la.project(HARD, [0.6, -0.8, 1.4, -1.4], [0, 0, 0, 0], t=0.5)
    slope = 0.1 * np.cos(0.5)
    assert abs(q[:2] @ q[:2] - (1 + 0.1 * np.sin(0.5)) ** 2) < 1e-15
    assert abs(q[:2] @ v[:2] - (1 + 0.1 * np.sin(0.5)) * slope) < 1e-15
    q, _ = la.project(PENDULUMS, places(0.7, 1.1), np.zeros(4), params={"l1": 2.0})
    assert abs(q[:2] @ q[:2] - 4.0) < 1e-14


def test_starts_that_are_off_are_refused_with_their_distances():
    q0, v0 = places(0.7, 1.1), speeds(0.7, 1.1, 0.4, -0.3)
    off = v0 + np.array([1e-8, 0, 0, 0])
    with pytest.raises(la.ConstraintError, match=r"q0 is off the constraints, g = \[2e-09, .*la\.project"):
        la.integrate(PENDULUMS, "simpson", q0=places(0.7, 1.1, 1.0 + 1e-9), v0=v0, h=0.01, steps=1)
    with pytest.raises(la.ConstraintError, match=r"the velocity of v0 leaves them"):
        la.integrate(PENDULUMS, "simpson", q0=q0, v0=off, h=0.01, steps=1)
    with pytest.raises(la.ConstraintError, match=r"the velocity of p0 leaves them"):
        la.integrate(PENDULUMS, "simpson", q0=q0, p0=off, h=0.01, steps=1)
    with pytest.raises(la.ConstraintError, match=r"of trajectory 2"):
        la.ensemble(PENDULUMS, "simpson", q0=[q0, q0, q0 * 1.001], v0=v0, h=0.01, steps=1)


def test_constraints_that_depend_on_each_other_are_named():
    def with_rows(g):
        return la.Lagrangian(double, n=4, params=VALUES, constraints=g)

    q0 = places(0.7, 1.1)
    twice = with_rows(lambda q, l1, l2: np.array([*(r := rods(q, l1, l2)), r[0] + 2 * r[1]]))
    with pytest.raises(la.ConstraintError, match=r"row 2 depends on rows 0, 1\. Leave out"):
        la.integrate(twice, "simpson", q0=q0, v0=np.zeros(4), h=0.01, steps=1)
    against = with_rows(lambda q, l1, l2: np.array([*(r := rods(q, l1, l2)), r[0] + 1]))
    for ask in (la.integrate, None):
        with pytest.raises(la.ConstraintError, match="row 2 depends on row 0, and contradicts it"):
            if ask is None:
                la.project(against, q0, np.zeros(4))
            else:
                ask(against, "simpson", q0=q0, v0=np.zeros(4), h=0.01, steps=1)
    idle = with_rows(lambda q, l1, l2: np.array([rods(q, l1, l2)[0], l2 - 0.7]))
    with pytest.raises(la.ConstraintError, match="row 1 does not change with q"):
        la.integrate(idle, "simpson", q0=q0, v0=np.zeros(4), h=0.01, steps=1)
    for size in (1e-200, 1e200):
        foreign = with_rows(lambda q, l1, l2, size=size: np.array([1.0, size]) * rods(q, l1, l2))
        with pytest.raises(la.ConstraintError, match=r"row 1 of ∂g/∂q is of the size .* beyond float64: divide"):
            la.integrate(foreign, "simpson", q0=q0, v0=np.zeros(4), h=0.01, steps=1)
        with pytest.raises(la.ConstraintError, match=r"row 1 of ∂g/∂q is of the size .* beyond float64: divide"):
            la.project(foreign, q0, np.zeros(4))
    # Both rods in one line with the height: a singular configuration, and independent beside it.
    height = with_rows(lambda q, l1, l2: np.array([*rods(q, l1, l2), q[3] + 1.7]))
    with pytest.raises(la.ConstraintError, match="singular configuration"):
        la.integrate(height, "simpson", q0=places(0, 0), v0=np.zeros(4), h=0.01, steps=1)


def kaleidocycle():
    """Six regular tetrahedra in a ring, joined along edges: a linkage of Bricard's, which moves though it should not.

    The lengths of its thirty edges between twelve points, less one; and points nearby.
    """
    edges = [(2 * i, 2 * i + 1) for i in range(6)]
    edges += [(2 * i + a, (2 * i + 2) % 12 + b) for i in range(6) for a in (0, 1) for b in (0, 1)]
    begin, end = (3 * np.array(points)[:, None] + np.arange(3) for points in zip(*edges, strict=True))
    near = []
    for angle in np.arange(6) * np.pi / 3:
        middle, half = 0.9 * np.array([np.cos(angle), np.sin(angle), 0.0]), np.array([0.0, 0.0, 0.5])
        if len(near) % 12 == 0:
            half = 0.5 * np.array([-np.sin(angle), np.cos(angle), 0.0])
        near += [*(middle - half), *(middle + half)]

    def lengths(q):
        d = q[begin] - q[end]
        return np.sum(d * d, axis=1) - 1.0

    return lengths, np.array(near) + 0.05 * np.random.default_rng(3).standard_normal(36)


def test_mechanisms_with_more_constraints_than_needed():
    """Rows follow from others on all states of the mechanism, and nowhere else: that is no singular configuration."""
    lengths, near = kaleidocycle()
    q0 = least_squares(lengths, near, xtol=1e-15, ftol=1e-15, gtol=1e-15).x

    def ring(rows):
        return la.Lagrangian(lambda q, v: 0.5 * (v @ v), n=36, constraints=lambda q: lengths(q)[rows])

    with pytest.raises(la.ConstraintError, match=r"row 28 depends on rows .*; row 29 depends on rows .*\. Leave out"):
        la.project(ring(list(range(30))), q0, np.zeros(36))
    system = ring(list(range(28)))
    spin = np.random.default_rng(0).standard_normal(36)
    q0, v0 = la.project(system, q0, spin / np.sqrt(spin @ spin))
    path = la.integrate(system, "simpson", q0=q0, v0=v0, h=0.05, steps=40)
    assert max(np.abs(lengths(q)).max() for q in path.q) < 1e-13
    assert np.ptp(path.energy()) < 1e-6
    apart = np.linalg.norm((path.q[-1] - path.q[0]).reshape(12, 3), axis=1)
    assert apart.max() > 0.1


@pytest.mark.parametrize("name", rest_slow(("stormer-verlet", "simpson"), ["stormer-verlet"]))
def test_peaucellier_draws_a_straight_line(name):
    """Seven bars: a point on a circle through the origin drives one that moves on a line, to round-off."""
    long, short, c = 3.0, 1.2, 1.1
    bars = [(1, None, long), (2, None, long), (1, 0, short), (2, 0, short), (3, 1, short), (3, 2, short)]

    def held(q):
        x = q.reshape(4, 2)
        ends = [x[i] if k is None else x[i] - x[k] for i, k, _ in bars]
        circle = x[0] - np.array([c, 0.0])
        return np.array([circle @ circle - c**2, *(d @ d - bar[2] ** 2 for d, bar in zip(ends, bars, strict=True))])

    m = np.repeat([1.0, 0.5, 0.7, 2.0], 2)
    system = la.Lagrangian(
        lambda q, v, g: 0.5 * (m * v) @ v - g * ((m * q)[1::2].sum()), 8, {"g": 9.81}, constraints=held
    )
    drive = c * np.array([1 + np.cos(0.35), np.sin(0.35)])
    along = (drive @ drive + long**2 - short**2) / (2 * drive @ drive) * drive
    aside = np.sqrt(long**2 - along @ along) / np.sqrt(drive @ drive) * np.array([-drive[1], drive[0]])
    places = [drive, along + aside, along - aside, 2 * along - drive]
    q0, v0 = la.project(system, np.concatenate(places), np.zeros(8))
    path = la.integrate(system, name, q0=q0, v0=v0, h=0.002, steps=150)
    assert np.abs(path.q[:, 6] - (long**2 - short**2) / (2 * c)).max() < 1e-14
    assert np.ptp(path.q[:, 7]) > 0.1


def test_a_singular_configuration_on_the_way():
    """The end is pulled beyond the reach of the rods: the run ends with the reason, and keeps what was before."""
    pulled = la.Lagrangian(
        double, n=4, params=VALUES, constraints=lambda t, q, l1, l2: np.array([*rods(q, l1, l2), q[2] - 1.2 - t])
    )
    q0, v0 = la.project(pulled, [0.8, -0.6, 1.2, -0.2], np.zeros(4))
    with pytest.raises(la.StepFailed, match=r"rows 0, 1, 2 of the constraints nearly depend") as failed:
        la.integrate(pulled, "simpson", q0=q0, v0=v0, h=0.01, steps=100)
    path = failed.value.path
    assert 40 < len(path) < 52 and max(levels(path)) < ROUND_OFF


def test_what_is_refused():
    with pytest.raises(ValueError, match="4 constraints on n = 4 coordinates leave nothing free"):
        la.Lagrangian(double, n=4, params=VALUES, constraints=lambda q, l1, l2: q)
    with pytest.raises(TypeError, match="constraints must be a function of q"):
        la.Lagrangian(double, n=4, params=VALUES, constraints=[1.0])
    with pytest.raises(la.TraceError, match=r"the constraint will be called as fn\(q"):
        la.Lagrangian(lambda q, v: v @ v, n=2, constraints=lambda q, v: q @ v)
    with pytest.raises(la.TraceError, match="one or more numbers that are held at zero"):
        la.Lagrangian(lambda q, v: v @ v, n=2, constraints=lambda q: [])
    with pytest.raises(la.TraceError, match="one or more numbers that are held at zero"):
        la.Lagrangian(lambda q, v: v @ v, n=4, constraints=lambda q: q.reshape(2, 2))
    with pytest.raises(la.TraceError, match="returned None"):
        la.Lagrangian(lambda q, v: v @ v, n=2, constraints=lambda q: None)
    with pytest.raises(ValueError, match="rk4 has no multipliers"):
        la.integrate(PENDULUMS, "rk4", q0=places(1, 1), v0=np.zeros(4), h=0.01, steps=1)
    with pytest.raises(ValueError, match=r"has constraints\. A step between two positions"):
        la.discrete_lagrangian(PENDULUMS, "simpson", 0.1)
    free = la.Lagrangian(lambda q, v: v @ v, n=2)
    with pytest.raises(TypeError, match="project is for systems with constraints"):
        la.project(free, [0, 0], [0, 0])
    with pytest.raises(ValueError, match="q0 must be 4 finite numbers"):
        la.project(PENDULUMS, [1, 2], np.zeros(4))
    for system in (free, la.Quadratic(np.eye(2), np.eye(2))):
        path = la.integrate(system, "simpson", q0=[0, 0], v0=[1, 0], h=0.1, steps=3)
        assert path.multipliers.shape == (4, 0) and not path.reaction().any()


# ------------------------------------------------------------------------------------------- all kinds of runs


def test_sympy_writes_the_same():
    import sympy as sp

    x, y, vx, vy, g, l = sp.symbols("x y vx vy g l")
    written = la.Lagrangian.from_sympy(
        (vx**2 + vy**2) / 2 - g * y, [x, y], [vx, vy], params=ROD.params, constraints=(x**2 + y**2 - l**2) / 2
    )
    start = {"q0": [1.2, -1.6], "v0": [0.8, 0.6], "h": 0.02, "steps": 50}
    np.testing.assert_allclose(la.integrate(written, "simpson", **start).q, la.integrate(ROD, "simpson", **start).q)
    with pytest.raises(la.TraceError, match="constraints are of t and q alone"):
        la.Lagrangian.from_sympy(vx**2 + vy**2, [x, y], [vx, vy], constraints=[x * vy])


def test_ensembles_are_runs_side_by_side():
    angles = np.linspace(0.3, 2.0, 9)
    q0, v0 = np.array([places(a, 1.0) for a in angles]), np.array([speeds(a, 1.0, 0.5, a) for a in angles])
    paths = la.ensemble(PENDULUMS, "simpson", q0=q0, v0=v0, h=0.01, steps=200, every=50)
    for k in range(len(angles)):
        path = la.integrate(PENDULUMS, "simpson", q0=q0[k], v0=v0[k], h=0.01, steps=200, every=50)
        np.testing.assert_allclose(paths.q[k], path.q, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["simpson", "P6N6Q12Gau"])
def test_events_and_impacts_of_ensembles(name):
    """In lanes, by fused kernels and by loops: as one by one."""
    angles = np.linspace(0.6, 1.4, 7)
    q0 = 2 * np.stack([np.sin(angles), -np.cos(angles)], axis=1)
    events = {"bottom": la.Event(lambda q, p: q[0]), "wall": la.Impact(lambda q: q[0] + 0.3)}
    rest = {"h": 0.05, "steps": 60, "events": events}
    paths = la.ensemble(ROD, name, q0=q0, v0=np.zeros((7, 2)), **rest)
    for k in range(7):
        path = la.integrate(ROD, name, q0=q0[k], v0=[0, 0], **rest)
        np.testing.assert_allclose(paths.q[k], path.q, rtol=0, atol=1e-11)
        assert paths.events["wall"].count[k] == path.events["wall"].count > 0


def test_one_of_an_ensemble_may_come_to_a_singular_configuration():
    """Its end is pulled beyond the reach of the rods; the others, pulled slower, go on."""

    def pulled(t, q, l1, l2, u):
        return np.array([*rods(q, l1, l2), q[2] - 1.2 - u * t])

    system = la.Lagrangian(double, n=4, params=VALUES | {"u": 0.1}, constraints=pulled)
    speeds_of = np.array([0.01, 0.02, 1.0, 0.03, 0.05])
    starts = [la.project(system, [0.8, -0.6, 1.2, -0.2], np.zeros(4), params={"u": u}) for u in speeds_of]
    q0, v0 = (np.array(x) for x in zip(*starts, strict=True))
    paths = la.ensemble(system, "simpson", q0=q0, v0=v0, params={"u": speeds_of}, h=0.01, steps=60)
    assert (paths.status != 0).tolist() == [False, False, True, False, False]
    assert 40 < paths.steps[2] < 52 and np.isfinite(paths.q[2, 1:40]).all()
    for k in (0, 4):
        one = la.integrate(system, "simpson", q0=q0[k], v0=v0[k], params={"u": speeds_of[k]}, h=0.01, steps=60)
        assert max(levels(one)) < ROUND_OFF
        np.testing.assert_allclose(paths.q[k], one.q, rtol=0, atol=1e-11)


def test_files_and_processes(tmp_path):
    q0, v0 = places(0.7, 1.1), speeds(0.7, 1.1, 0.4, -0.3)
    whole = la.integrate(PENDULUMS, "simpson", q0=q0, v0=v0, h=0.01, steps=100)
    whole.save(tmp_path / "run.npz")
    again = la.Path.load(tmp_path / "run.npz")
    np.testing.assert_array_equal(again.multipliers, whole.multipliers)
    assert pickle.loads(pickle.dumps(PENDULUMS)).digest == PENDULUMS.digest == again.system.digest
    stored = la.integrate(PENDULUMS, "simpson", q0=q0, v0=v0, h=0.01, steps=40, store=tmp_path / "run.zarr")
    np.testing.assert_array_equal(stored.multipliers, whole.multipliers[:41])
    resumed = la.resume(tmp_path / "run.zarr", steps=60)
    np.testing.assert_array_equal(np.asarray(resumed.q[:]), whole.q)
    np.testing.assert_array_equal(np.asarray(resumed.p[:]), whole.p)


def test_digits_are_the_same_motion():
    """At 40 digits: both levels to all of them, and float64 is its rounding."""
    q0, v0 = la.project(HARD, [0.6, -0.8, 1.4, -1.4], [0.3, 0.4, -0.2, 0.5], digits=40)
    fine = la.integrate(HARD, "simpson", q0=q0, v0=v0, h="1/20", steps=20, digits=40)
    rough = la.integrate(HARD, "simpson", q0=q0.astype(float), v0=v0.astype(float), h=0.05, steps=20)
    np.testing.assert_allclose(fine.q.astype(float), rough.q, rtol=0, atol=1e-14)
    np.testing.assert_allclose(fine.multipliers.astype(float), rough.multipliers, rtol=0, atol=1e-13)
    np.testing.assert_allclose(fine.reaction().astype(float), rough.reaction(), rtol=0, atol=1e-13)
    from leastaction.numbers.rounding import Digits
    from leastaction.systems.projection import sizes_at

    with fine.reals.working():
        at = sizes_at(HARD, Digits(40), fine.t[-1], fine.q[-1], fine.velocity()[-1], HARD.values(None, Digits(40)))
        assert all(abs(x) < 1e-40 for x in (*at["g"], *at["c"]))
    with pytest.raises(la.ConstraintError, match=r"la\.project\(system, q0, v0, digits=40\)"):
        la.integrate(HARD, "simpson", q0=q0.astype(float), v0=v0.astype(float), h=0.05, steps=20, digits=40)


@pytest.mark.slow
def test_orders_at_60_digits():
    """2s for s ≤ 6, in q, p and λ; Gauss with r = s and s + 1, Lobatto with r = s + 1."""
    q0, v0 = la.project(HARD, [0.6, -0.8, 1.4, -1.4], [0.3, 0.4, -0.2, 0.5], digits=60)

    def end(name, h):
        path = la.integrate(HARD, name, q0=q0, v0=v0, h=h, t_end="1/2", digits=60)
        return [path.q[-1], path.p[-1], path.multipliers[-1]]

    exact = end("P9N9Q18Gau", "1/96")
    for s in range(1, 7):
        for name in (f"P{s}N{s}Q{2 * s}Gau", f"P{s}N{s + 1}Q{2 * s + 2}Gau", f"P{s}N{s + 1}Q{2 * s}Lob"):
            errors = [
                [float(abs(a - b).max()) for a, b in zip(end(name, h), exact, strict=True)] for h in ("1/32", "1/64")
            ]
            orders = np.log2(np.array(errors[0]) / np.array(errors[1]))
            assert (abs(orders - 2 * s) < 0.2).all(), (name, orders)


# ---------------------------------------------------------------------------------------- events and impacts


def test_events_lie_on_the_constraints():
    a = 1.2
    path = la.integrate(
        ROD, "P4N4Q8Gau", q0=[2 * np.sin(a), -2 * np.cos(a)], v0=[0, 0], h=0.05, steps=100,
        events={"bottom": la.Event(lambda q, p: q[0]), "end": la.Event(lambda t, q, p: t - 4.33, stop=True)},
    )  # fmt: skip
    bottom = path.events["bottom"]
    assert bottom.count == 3 and abs((bottom.q**2).sum(axis=1) - 4).max() < 1e-14
    np.testing.assert_allclose(np.diff(bottom.t), bottom.t[0] * 2, rtol=1e-9)
    assert path.t[-1] == 4.33


@pytest.mark.parametrize("digits", [None, 25])
def test_impacts_keep_the_constraints(digits):
    """A rod against a wall: as the pendulum with one angle does it, with its derivative."""
    a = 1.2
    q0, v0 = la.project(ROD, [2 * np.sin(a), -2 * np.cos(a)], [0, 0], digits=digits)
    path = la.integrate(
        ROD,
        "P4N4Q8Gau",
        q0=q0,
        v0=v0,
        h=0.05,
        steps=80,
        digits=digits,
        events={"wall": la.Impact(lambda q: q[0] + 0.5)},
    )
    angle = la.Lagrangian(lambda q, v, g, l: 0.5 * l**2 * v[0] ** 2 + g * l * np.cos(q[0]), n=1, params=ROD.params)
    wall = la.Impact(lambda q: 2 * np.sin(q[0]) + 0.5)
    free = la.integrate(angle, "P4N4Q8Gau", q0=[a], v0=[0], h=0.05, steps=80, events={"wall": wall})
    assert path.events["wall"].count == free.events["wall"].count == 2
    np.testing.assert_allclose(path.events["wall"].t.astype(float), free.events["wall"].t, atol=1e-11)
    np.testing.assert_allclose(path.q[:, 0].astype(float), 2 * np.sin(free.q[:, 0]), atol=1e-10)
    if digits is None:
        assert max(levels(path)) < ROUND_OFF


def test_the_derivative_passes_impacts():
    def start(e):
        a = 1.2 + e
        return [2 * np.sin(a), -2 * np.cos(a)], [0.6 * np.cos(a), 0.6 * np.sin(a)]

    def run(e, **more):
        q0, v0 = start(e)
        wall = {"wall": la.Impact(lambda q: q[0] + 0.5, restitution=0.8)}
        return la.integrate(ROD, "P4N4Q8Gau", q0=q0, v0=v0, h=0.05, steps=60, events=wall, **more)

    path = run(0.0, tangent=True)
    assert path.events["wall"].count == 2
    left, right = run(-1e-5), run(1e-5)
    change = np.concatenate([right.q[-1] - left.q[-1], right.p[-1] - left.p[-1]]) / 2e-5
    along = (np.concatenate(start(1e-5)) - np.concatenate(start(-1e-5))) / 2e-5
    np.testing.assert_allclose(path.tangent[-1] @ along, change, atol=1e-8)


def test_no_impulse_leads_away_from_a_wall_that_the_constraints_hold():
    with pytest.raises(la.StepFailed) as failed:
        la.integrate(
            ROD, "simpson", q0=[2.0, 0.0], v0=[0, 0], h=0.05, steps=80,
            events={"wall": la.Impact(lambda t, q: q @ q - 3.02 - t)},
        )  # fmt: skip
    assert len(failed.value.path) == 20


# -------------------------------------------------------------------------------------------------- analysis


def test_directions_along_the_manifold_know_that_the_mass_changes():
    """ġ = 0 is a condition on q and p: where M depends on q, v changes with q though p does not."""
    system = la.Lagrangian(
        lambda q, v: 0.5 * (v[0] ** 2 + (1 + q[0] ** 2) * v[1] ** 2) - q[1], n=2, constraints=lambda q: q @ q - 1
    )
    q, small = np.array([0.6, -0.8]), 1e-6
    p = system.momentum(q, [0.8, 0.6])

    def rate(q, p):
        return q @ system.velocity(q, p)

    for dq, dp in tangent_basis(system, 0.0, q, p, system.values()).T.reshape(2, 2, 2):
        assert abs(q @ dq) < 1e-15
        change = rate(q + small * dq, p + small * dp) - rate(q - small * dq, p - small * dp)
        assert abs(change) < 1e-9 * small


def test_analysis_knows_constraints():
    q, p = curve(0.0)
    for name in ("midpoint", "simpson"):
        assert la.analysis.symplectic_defect(PENDULUMS, name, q, p, 0.05) < 1e-13
        assert la.analysis.reversibility_defect(PENDULUMS, name, q, p, 0.05) < 1e-13
    found = la.analysis.convergence(PENDULUMS, "simpson", q, p, t_end=0.5)
    assert abs(found.order - 4) < 0.1
    found = la.analysis.convergence(catalogued("pendulum-cartesian"), "P3N3Q6Gau")
    assert abs(found.order - 6) < 0.1
    exponents = la.analysis.lyapunov(PENDULUMS, "simpson", q0=places(2, 2.5), v0=np.zeros(4), h=0.01, steps=3000)
    assert exponents.exponents.shape == (4,) and exponents.largest > 0.5 and exponents.pairing < 0.3


def test_symmetries_of_constrained_systems():
    """What L and the constraints both have: a rod takes away translations, a hoop that turns the rotation."""
    assert la.analysis.symmetries(PENDULUMS).names == ()
    assert [one.name for one in la.analysis.symmetries(PENDULUMS).discrete] == ["reflection of q0, q2"]
    sphere = la.analysis.symmetries(catalogued("spherical-pendulum").system)
    assert sphere.names == ("rotation in the plane (q0, q1)",) and sphere.energy
    hoop = la.analysis.symmetries(catalogued("rotating-hoop").system)
    assert hoop.names == () and not hoop.energy

    def free(q, v, m):
        return 0.5 * (m @ (v.reshape(3, 2) ** 2).sum(axis=1))

    def triangle(q):
        x = q.reshape(3, 2)
        return ((x - x[[1, 2, 0]]) ** 2).sum(axis=1) - 1.0

    rest = {"n": 6, "params": {"m": [1.0, 2.0, 3.0]}, "constraints": triangle}
    for system in (la.Lagrangian(free, **rest), la.Lagrangian(free, **rest, force=lambda q, v: -0.1 * v)):
        found = la.analysis.symmetries(system)
        assert len(found) == 4  # two translations, the rotation, and that of the centre alone
        q0, v0 = la.project(system, [0, 0, 1, 0, 0.5, 0.8], [1.0, 0.2, -0.3, 0.5, 0.1, -0.7])
        check = found.check(la.integrate(system, "simpson", q0=q0, v0=v0, h=0.05, steps=200))
        assert "to round-off" in repr(check).splitlines()[4]
        assert all("to round-off" in line for line in repr(check).splitlines()[2:6])


def parallelogram(q):
    B = np.array([1.0, 0.0])
    return np.array([q[:2] @ q[:2] - 1, (q[2:] - B) @ (q[2:] - B) - 1, (q[2:] - q[:2]) @ (q[2:] - q[:2]) - 1])


def folding(angle):
    """A parallelogram whose crank turns by one radian a second and lies flat after `angle` seconds."""
    with mpmath.workdps(50):
        crank = np.array([mpmath.cos(angle), mpmath.sin(angle)])
        return np.concatenate([crank, [crank[0] + 1, crank[1]]]), np.tile([crank[1], -crank[0]], 2)


# The rescue takes the rounding of g at its word: beside a fold that is much, and the step passes with |g| = 3e-11.
PASSES = pytest.mark.xfail(reason="a rescued step that ends flat passes, and the energy jumps by a fifth", strict=True)
FOLDS = [
    ("stormer-verlet", 50 * np.arcsin(0.01)),
    pytest.param("simpson", 0.5, marks=PASSES),
    pytest.param("P3N3Q6Gau", 0.5, marks=pytest.mark.slow),
]


@pytest.mark.parametrize("method, angle", FOLDS)
def test_a_step_that_ends_where_a_parallelogram_folds_fails(method, angle):
    """Step 50 would end flat, where two motions part and G has rank two: rounding would decide its velocity. A run that
    passes beside this place goes on, with the accuracy that is left.
    """
    system = la.Lagrangian(lambda q, v: 0.5 * (v @ v), 4, constraints=parallelogram)
    q0, v0 = (np.array(x, float) for x in folding(angle))
    with pytest.raises(la.StepFailed, match=r"the equations became singular.*a singular configuration") as failed:
        la.integrate(system, method, q0=q0, v0=v0, h=0.01, steps=56)
    path = failed.value.path
    assert len(path) == 50 and np.abs([parallelogram(q) for q in path.q]).max() < 1e-14
    paths = la.ensemble(system, method, np.tile(q0, (3, 1)), v0=np.tile(v0, (3, 1)), h=0.01, steps=56)
    assert (paths.steps == 49).all() and (paths.status == 4).all()
    q0, v0 = (np.array(x, float) for x in folding(angle + 1e-6))
    beside = la.integrate(system, method, q0=q0, v0=v0, h=0.01, steps=56)
    assert np.ptp(beside.energy()) < 1e-8 and np.abs([parallelogram(q) for q in beside.q]).max() < 1e-14


def test_a_parallelogram_that_folds_at_any_precision():
    system = la.Lagrangian(lambda q, v: 0.5 * (v @ v), 4, constraints=parallelogram)
    q0, v0 = folding(mpmath.mpf("0.5"))
    with pytest.raises(la.StepFailed, match="singular") as failed:
        la.integrate(system, "P12N12Q24Gau", q0=q0, v0=v0, h="0.01", steps=56, digits=30)
    assert len(failed.value.path) == 50


def test_quaternions_turn_a_body():
    """A heavy body by unit quaternions, |q|² = 1: rotations act on q by matrices, so the momentum about the vertical is
    kept to round-off. The mass along q, which the constraint holds, makes momenta determine velocities.
    """

    def body(q, v):
        omega = 2 * (q[0] * v[1:] - v[0] * q[1:] - np.cross(q[1:], v[1:]))
        height = 1 - 2 * (q[1] ** 2 + q[2] ** 2)
        return 0.5 * np.sum(np.array([2.0, 3.0, 5.0]) * omega**2) + 2 * (q @ v) ** 2 - 1.5 * height

    system = la.Lagrangian(body, n=4, constraints=lambda q: [q @ q - 1])
    q, v = la.project(system, [0.8, 0.1, 0.5, 0.2], [0.1, 1.0, -1.0, 2.0])
    path = la.integrate(system, "stormer-verlet", q0=q, v0=v, h=0.02, steps=2000)
    turning = np.stack([-path.q[:, 3], -path.q[:, 2], path.q[:, 1], path.q[:, 0]], axis=1) / 2  # ∂q/∂angle
    assert np.ptp((path.p * turning).sum(axis=1)) < 1e-13
    assert np.ptp(path.energy()) < 0.02
