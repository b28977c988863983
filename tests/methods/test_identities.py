"""Members of the family that are known methods under other names, step for step to round-off."""

import numpy as np
import pytest

import leastaction as la
from classical import gradient, hamilton, integrals, legendre, partitioned_runge_kutta
from precise import exact
from systems import NAMES, case, double_pendulum, inseparable, pendulum, separable, step
from thrift import rest_slow

STEPS = 5
TIGHT = {"rtol": 0, "atol": 1e-14}  # of states of size one, after STEPS steps


def start(name):
    system, q0, v0 = case(name)
    return system, np.array(q0), system.momentum(q0, v0)


def plain(name):
    """The Lagrangian as a function of (q, v)."""
    params = case(name).system.params
    fn = {"inseparable": inseparable, "separable": separable, "double-pendulum": double_pendulum}[name]
    return lambda q, v: fn(q, v, **params)


@pytest.mark.parametrize("name", ["inseparable", "double-pendulum"])
def test_gradient_of_the_comparison_is_the_library(name):
    """The complex step and the traced derivative agree, so what follows compares methods."""
    _, q, p = start(name)
    L, v = plain(name), np.array(case(name).v0)
    assert gradient(lambda x: L(q, x), v) == pytest.approx(p, abs=1e-15)
    assert hamilton(L)[0](q, p) == pytest.approx(v, abs=1e-15)
    M, _ = legendre(L, q)
    np.testing.assert_allclose(M, M.T, **TIGHT)


@pytest.mark.parametrize("name", ["inseparable", "double-pendulum", "separable"])
def test_p1n1q2gau_is_the_implicit_midpoint_rule(name):
    """(q, p)₁ = (q, p)₀ + h J∇H((q, p)₀ + (q, p)₁)/2)."""
    system, q, p = start(name)
    h = 0.1
    q_dot, p_dot = hamilton(plain(name))
    path = la.integrate(system, "midpoint", q, p, h=h, steps=STEPS)
    for k in range(STEPS):
        q_new, p_new = q, p
        for _ in range(100):
            middle = (q + q_new) / 2, (p + p_new) / 2
            q_new, p_new = q + h * q_dot(*middle), p + h * p_dot(*middle)
        q, p = q_new, p_new
        np.testing.assert_allclose(path.q[k + 1], q, **TIGHT)
        np.testing.assert_allclose(path.p[k + 1], p, **TIGHT)


def test_p1n2q2lob_is_stormer_verlet():
    """p½ = p₀ − h/2 V′(q₀), q₁ = q₀ + h M⁻¹ p½, p₁ = p½ − h/2 V′(q₁)."""
    system, q, p = start("separable")
    L = plain("separable")
    h, M, zero = 0.1, legendre(L, q)[0], np.zeros(2)

    def force(x):
        return gradient(lambda y: L(y, zero), x)

    path = la.integrate(system, "stormer-verlet", q, p, h=h, steps=STEPS)
    for k in range(STEPS):
        p_half = p + h / 2 * force(q)
        q = q + h * np.linalg.solve(M, p_half)
        p = p_half + h / 2 * force(q)
        np.testing.assert_allclose(path.q[k + 1], q, **TIGHT)
        np.testing.assert_allclose(path.p[k + 1], p, **TIGHT)


@pytest.mark.parametrize("name", ["inseparable", "double-pendulum"])
@pytest.mark.parametrize("s", [1, 2, 3, 4])
def test_psnsq2sgau_is_gauss_collocation(s, name):
    """PsNsQ2sGau is the s-stage Gauss Runge–Kutta method on Hamilton's equations, for any regular L."""
    system, q, p = start(name)
    rule = la.gauss(s)
    a = integrals(rule.points(40)[0])
    path = la.integrate(system, la.galerkin(s, rule), q, p, h=0.1, steps=STEPS)
    for k in range(STEPS):
        q, p = partitioned_runge_kutta(plain(name), a, a, rule.b, q, p, 0.1)
        np.testing.assert_allclose(path.q[k + 1], q, **TIGHT)
        np.testing.assert_allclose(path.p[k + 1], p, **TIGHT)


@pytest.mark.parametrize("s", [2, 3, 4, 5])
def test_psnsq2s_2lob_is_lobatto_3a_3b_for_constant_mass(s):
    """PsNsQ(2s−2)Lob and P(s−1)NsQ(2s−2)Lob are both Lobatto IIIA–IIIB, â_ij = b_j (1 − a_ji/b_i)."""
    system, q, p = start("separable")
    rule = la.lobatto(s)
    a, b = integrals(rule.points(40)[0]), rule.b
    a_hat = b * (1 - a.T / b[:, None])
    paths = [la.integrate(system, la.galerkin(degree, rule), q, p, h=0.1, steps=STEPS) for degree in (s - 1, s)]
    for k in range(STEPS):
        q, p = partitioned_runge_kutta(plain("separable"), a, a_hat, b, q, p, 0.1)
        for path in paths:
            np.testing.assert_allclose(path.q[k + 1], q, **TIGHT)
            np.testing.assert_allclose(path.p[k + 1], p, **TIGHT)


def test_lobatto_members_differ_when_the_mass_depends_on_q():
    """For an inseparable L the degrees s − 1 and s on the same rule are different methods."""
    system, q, p = start("inseparable")
    low, high = (step(system, la.galerkin(degree, la.lobatto(3)), q, p, 0.5) for degree in (2, 3))
    assert abs(low[0] - high[0]).max() > 1e-6


@pytest.mark.parametrize("h", [0.1, 0.5])
def test_simpson_of_the_pendulum_paper(h):
    """Equations (17) and (21) of Dubois and Rojas-Quintero (2023), with m = 1 and V = −g cos q."""
    system = la.Lagrangian(pendulum, n=1, params={"g": 2.0})
    path = la.integrate(system, "simpson", [1.5], [0.3], h=h, steps=20)
    middle = path(path.t[:-1] + h / 2)

    def slope(q):
        return 2.0 * np.sin(q)

    q0, q1, p0, p1 = path.q[:-1], path.q[1:], path.p[:-1], path.p[1:]
    np.testing.assert_allclose(middle - h**2 / 8 * slope(middle), (q0 + q1) / 2, **TIGHT)
    np.testing.assert_allclose(p1 - p0, -h / 6 * (slope(q0) + 4 * slope(middle) + slope(q1)), **TIGHT)
    np.testing.assert_allclose(q1 - q0, h**2 / 12 * (slope(q1) - slope(q0)) + h / 2 * (p0 + p1), **TIGHT)


# ------------------------------------------------------------------------------ every way to solve a step


@pytest.mark.parametrize(
    "method",
    rest_slow(["midpoint", "stormer-verlet", "simpson", "P3N3Q6Gau", "P3N4Q6Lob"], ["stormer-verlet", "P3N3Q6Gau"]),
)
@pytest.mark.parametrize("name", NAMES)
def test_one_trajectory_and_lanes_take_the_steps_of_twenty_digits(name, method):
    takes_the_steps_of_twenty_digits(name, la.method(method))


@pytest.mark.parametrize("s", rest_slow([*range(1, 9)], [1, 2, 3, 8]))
@pytest.mark.parametrize("name", ["inseparable", "separable", "double-pendulum"])
def test_members_of_every_degree_take_the_steps_of_twenty_digits(name, s):
    """Gauss and Lobatto members: each form of the engine takes some of them."""
    for rule in (la.gauss(s), la.lobatto(s + 1)):
        takes_the_steps_of_twenty_digits(name, la.galerkin(s, rule))


def takes_the_steps_of_twenty_digits(name, method):
    system, q0, v0 = case(name)
    how = {"v0": v0, "h": 0.05, "steps": STEPS}
    q, p = exact(system, method, q0, **how)
    one = la.integrate(system, method, q0, **how)
    many = la.ensemble(system, method, np.tile(q0, (5, 1)), **(how | {"v0": np.tile(v0, (5, 1))}))
    for found in ((one.q, one.p), (many.q[0], many.p[0]), (many.q[4], many.p[4])):
        np.testing.assert_allclose(found[0], q, **TIGHT)
        np.testing.assert_allclose(found[1], p, **TIGHT)


def stiff_chain(q, v, k):
    """Springs that are stiff and not quite linear, and a force that depends on the velocity."""
    return springs(q, v, k) + 0.1 * np.sum(q[:-1] * v[1:])


def springs(q, v, k):
    """The same without that force: separable."""
    e = np.diff(np.concatenate([[0.0], q, [0.0]]))
    return 0.5 * v @ v - 0.5 * k * np.sum(e**2) - 0.25 * np.sum(e**4)


@pytest.mark.parametrize("lagrangian", [stiff_chain, springs])
@pytest.mark.parametrize(
    ("method", "k", "n"),
    [("P3N3Q6Gau", 1e4, 20), ("P8N8Q16Gau", 1e4, 5), ("P4N5Q10Gau", 600, 5), ("P4N5Q8Lob", 600, 5)],
)
def test_stiff_steps_are_those_of_twenty_digits(method, k, n, lagrangian):
    """h ω is twenty, or five where the method is not stable beyond. A momentum is a sum of numbers of size √k."""
    system, steps = la.Lagrangian(lagrangian, n=n, params={"k": k}), 4
    start = {"q0": np.sin(np.pi * np.arange(1, n + 1) / (n + 1)), "v0": np.zeros(n), "h": 0.1}
    path = la.integrate(system, method, **start, steps=steps)
    q, p = exact(system, method, **start, steps=steps)
    np.testing.assert_allclose(path.q, q, rtol=0, atol=1e-13)
    np.testing.assert_allclose(path.p, p, rtol=0, atol=1e-13 * np.sqrt(k))


def test_bits_do_not_depend_on_where_a_stiff_run_was_interrupted(tmp_path):
    system = la.Lagrangian(springs, n=3, params={"k": 1e4})
    start = {"q0": [0.1, 0.3, 0.2], "v0": np.zeros(3), "h": 0.1}
    whole = la.integrate(system, "P3N3Q6Gau", **start, steps=40)
    for first in (1, 2, 7, 20):
        store = tmp_path / f"{first}.zarr"
        la.integrate(system, "P3N3Q6Gau", **start, steps=first, store=store)
        path = la.resume(store, steps=40 - first)
        np.testing.assert_array_equal(path.q, whole.q)
        np.testing.assert_array_equal(path.p, whole.p)
