"""Symmetries found from L: known ones by name, momenta, and what runs preserve of them."""

import re

import numpy as np
import pytest

import leastaction as la
from leastaction.analysis import symmetries
from thrift import rest_slow


def kepler(q, v):
    return 0.5 * (v @ v) + 1 / np.sqrt(q @ q)


def bodies(dimension, count):
    def gravity(q, v, m):
        x, w = q.reshape(count, dimension), v.reshape(count, dimension)
        kinetic = 0.5 * sum(m[i] * (w[i] @ w[i]) for i in range(count))
        pairs = [(i, j) for i in range(count) for j in range(i)]
        return kinetic + sum(m[i] * m[j] / np.sqrt((x[i] - x[j]) @ (x[i] - x[j])) for i, j in pairs)

    masses = [1.0, 0.4, 2.5, 0.7][:count]
    return la.Lagrangian(gravity, n=dimension * count, params={"m": masses})


@pytest.fixture(scope="module")
def three_bodies():
    system = bodies(3, 3)
    return system, symmetries(system)


def top(q, v, A, C, k):
    spin = v[2] + v[1] * np.cos(q[0])
    return 0.5 * A * (v[0] ** 2 + (v[1] * np.sin(q[0])) ** 2) + 0.5 * C * spin**2 - k * np.cos(q[0])


def test_kepler_in_the_plane():
    found = symmetries(la.Lagrangian(kepler, n=2))
    assert found.names == ("rotation in the plane (q0, q1)",) and found.energy
    rng = np.random.default_rng(2)
    q, p = rng.standard_normal((2, 5, 2))
    np.testing.assert_allclose(found[0].momentum(q, p), q[:, 0] * p[:, 1] - q[:, 1] * p[:, 0], rtol=1e-14)
    assert found[0].formula == "q0 p1 − q1 p0"


def test_kepler_in_space():
    found = symmetries(la.Lagrangian(kepler, n=3))
    assert found.names == tuple(f"rotation in the plane (q{i}, q{j})" for i, j in ((0, 1), (0, 2), (1, 2)))


def test_bodies_in_space(three_bodies):
    """Three translations and three rotations; and, since only differences of positions matter, the motion of the centre
    of mass can be turned apart from the motion about it, which makes three more."""
    _, found = three_bodies
    assert found.names[:3] == tuple(f"joint translation of q{i}, q{i + 3}, q{i + 6}" for i in range(3))
    planes = ((0, 1), (0, 2), (1, 2))
    assert found.names[3:6] == tuple(
        f"joint rotation in the planes (q{i}, q{j}), (q{i + 3}, q{j + 3}), (q{i + 6}, q{j + 6})" for i, j in planes
    )
    assert len(found) == 9 and all(name.startswith("rotation of the centre alone") for name in found.names[6:])
    m = np.array([1.0, 0.4, 2.5])
    rng = np.random.default_rng(3)
    q, p = rng.standard_normal((2, 9))
    centre, total = m @ q.reshape(3, 3) / m.sum(), p.reshape(3, 3).sum(axis=0)
    for symmetry, (i, j) in zip(found.generators[6:], planes, strict=True):
        assert symmetry.momentum(q, p) == pytest.approx(centre[i] * total[j] - centre[j] * total[i], rel=1e-9)


def test_bodies_in_the_plane():
    assert len(symmetries(bodies(2, 4))) == 2 + 1 + 1


def test_the_top_has_two_cyclic_angles():
    found = symmetries(la.Lagrangian(top, n=3, params={"A": 1.0, "C": 0.5, "k": 2.0}))
    assert found.names == ("translation of q1", "translation of q2")
    assert found[1].formula == "p2"


def test_the_parameters_decide():
    """An isotropic oscillator turns, an anisotropic one does not."""
    oscillator = la.Lagrangian(
        lambda q, v, k: 0.5 * (v @ v) - 0.5 * (q[0] ** 2 + k * q[1] ** 2), n=2, params={"k": 2.0}
    )
    assert len(symmetries(oscillator)) == 0
    assert "no affine point symmetry" in repr(symmetries(oscillator))
    assert symmetries(oscillator, params={"k": 1.0}).names == ("rotation in the plane (q0, q1)",)


@pytest.mark.parametrize(
    "L, n, name, formula",
    [
        (
            lambda q, v: 0.5 * (v[0] ** 2 + 2.5 * v[1] ** 2) + 1 / np.sqrt(q[0] ** 2 + 2.5 * q[1] ** 2),
            2,
            "elliptic rotation in the plane (q0, q1)",
            "2/5 q0 p1 − q1 p0",
        ),
        (
            lambda q, v: 0.5 * (v @ v) + 1 / np.sqrt((q[0] - 1.5) ** 2 + (q[1] + 2) ** 2),
            2,
            "rotation in the plane (q0, q1) about (q0 = 3/2, q1 = -2)",
            "(−q1 − 2) p0 + (q0 − 3/2) p1",
        ),
        (
            lambda q, v: 0.5 * (v @ v) - np.cos(2 * q[2] - 3 * np.arctan2(q[1], q[0])) * (q[0] ** 2 + q[1] ** 2),
            3,
            "rotation in the plane (q0, q1) with translation of q2 by 3/2",
            "q0 p1 + 3/2 p2 − q1 p0",
        ),
        (lambda q, v: v[0] ** 2 / q[0] ** 2 + q[1] ** 2 - v[1] ** 2, 2, "scaling of q0", "q0 p0"),
        (
            lambda q, v: 0.5 * (v[0] ** 2 - v[1] ** 2) - 0.3 * (q[0] ** 2 - q[1] ** 2) ** 2,
            2,
            "hyperbolic rotation in the plane (q0, q1)",
            "q1 p0 + q0 p1",
        ),
        (lambda q, v: 0.5 * (v @ v) - np.cos(q[0] - 2 * q[1]), 2, "translation along (1, 1/2)", "p0 + 1/2 p1"),
    ],
)
def test_other_kinds(L, n, name, formula):
    found = symmetries(la.Lagrangian(L, n=n))
    assert [(one.name, one.formula) for one in found] == [(name, formula)]


def test_units_do_not_matter():
    """The Earth's attraction in SI units: potential and kinetic terms differ by 14 orders at unit points."""

    def satellite(q, v, mu):
        return 0.5 * (v @ v) + mu / np.sqrt(q @ q)

    assert len(symmetries(la.Lagrangian(satellite, n=3, params={"mu": 3.986e14}))) == 3

    def stretched(q, v, mu):
        return 0.5 * (v[0] ** 2 + 1.01 * v[1] ** 2) + mu / np.sqrt(q @ q)

    assert len(symmetries(la.Lagrangian(stretched, n=2, params={"mu": 3.986e14}))) == 0


def outer_solar_system():
    """Sun, Jupiter, Saturn, Uranus, Neptune, Pluto: masses from 1 to 8·10⁻⁹ (Hairer, Lubich, Wanner, I.2.4)."""
    m = [1.00000597682, 1 / 1047.355, 1 / 3501.6, 1 / 22869.0, 1 / 19314.0, 1 / 1.3e8]
    q = [0, 0, 0, -3.5, -3.8, -1.6, 9.1, -3.0, -1.6, 8.3, -16.3, -7.3, 11.5, -25.7, -10.8, -15.5, -25.2, -3.2]

    def planets(q, v, m):
        x, w = q.reshape(6, 3), v.reshape(6, 3)
        pairs = [(i, j) for i in range(6) for j in range(i)]
        attraction = sum(m[i] * m[j] / np.sqrt((x[i] - x[j]) @ (x[i] - x[j])) for i, j in pairs)
        return 0.5 * sum(m[i] * (w[i] @ w[i]) for i in range(6)) + 2.95912208286e-4 * attraction

    return la.Lagrangian(planets, n=18, params={"m": m}), np.array(m), np.array(q, float)


@pytest.mark.parametrize(
    ("near", "seed"), rest_slow([(near, seed) for near in (False, True) for seed in (0, 1, 2)], [(False, 0), (True, 1)])
)
def test_very_unlike_masses(near, seed):
    """Pluto's mass is 10⁻⁸ of the Sun's: this alone makes no symmetry, and Pluto's share in the centre is kept."""
    system, m, q0 = outer_solar_system()
    found = symmetries(system, around=q0 if near else None, seed=seed)
    assert len(found) == 9 and found.energy
    assert all(name.startswith("joint translation") for name in found.names[:3])
    assert all(name.startswith("joint rotation") for name in found.names[3:6])
    assert all(name.startswith("rotation of the centre alone") for name in found.names[6:])
    rng = np.random.default_rng(3)
    q, p = rng.standard_normal((2, 18))
    centre, total = m @ q.reshape(6, 3) / m.sum(), p.reshape(6, 3).sum(axis=0)
    assert found[6].momentum(q, p) == pytest.approx(centre[0] * total[1] - centre[1] * total[0], rel=1e-7)
    np.testing.assert_allclose(found[6].A[1, ::3], m / m.sum(), rtol=1e-6)
    assert not any(re.search(r"(?<![\d.])0 q", one.formula) for one in found)  # round-off is not written


def test_time_dependence_is_seen():
    assert not symmetries(la.Lagrangian(lambda t, q, v: 0.5 * v[0] ** 2 + np.sin(t) * q[0], n=1)).energy
    # t that cancels is no dependence
    assert symmetries(la.Lagrangian(lambda t, q, v: 0.5 * v[0] ** 2 + (q[0] + t) - t, n=1)).energy


def test_domains():
    well = la.Lagrangian(lambda q, v: 0.5 * (v @ v) + np.log(q[0] - 200), n=2)
    with pytest.raises(ValueError, match="around="):
        symmetries(well)
    assert symmetries(well, around=[210.0, 0.0]).names == ("translation of q1",)
    with pytest.raises(ValueError, match="shape"):
        symmetries(well, around=[1.0])
    with pytest.raises(TypeError, match="Lagrangian"):
        symmetries("kepler")


def test_a_broken_symmetry_is_not_taken_for_one():
    """By one part in a million, in 10¹⁰, in 10¹⁵: told apart on the Program, though at points it cannot be seen."""

    def flattened(q, v, e):
        return 0.5 * (v @ v) + 1 / np.sqrt(q[0] ** 2 + (1 + e) * q[1] ** 2)

    system = la.Lagrangian(flattened, n=2, params={"e": 1e-6})
    assert len(symmetries(system)) == 0
    assert len(symmetries(system, params={"e": 3e-10})) == 0
    found = symmetries(system, params={"e": 4e-15})
    assert len(found) == 0 and len(found.candidates) == 2  # the rotation, and the exchange of q0 and q1
    assert len(symmetries(system, params={"e": 0.0})) == 1


def triangle(dimension):
    """Three bodies far from collisions: on a turning triangle, a little disturbed, and moving as a whole."""
    angle = np.array([0.1, 2.2, 4.1])
    m = np.array([1.0, 0.4, 2.5])
    x, w = np.zeros((2, 3, dimension))
    x[:, :2] = 2.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    w[:, :2] = 0.75 * np.stack([-np.sin(angle), np.cos(angle)], axis=1) + [0.1, 0.2]
    w[:, -1] += [0.05, -0.1, 0.02]
    return x.ravel(), (m[:, None] * w).ravel()


@pytest.mark.parametrize("name", ["midpoint", "stormer-verlet", "simpson", "P3N3Q6Gau", "P3N3Q4Lob"])
def test_variational_integrators_preserve_every_momentum(name, three_bodies):
    system, found = three_bodies
    path = la.integrate(system, name, *triangle(3), h=0.2, steps=100)
    result = found.check(path)
    assert len(result) == 10 and all(one.exactly for one in result.kept[:9])
    assert not result["energy"].exactly
    assert "to round-off" in repr(result)
    with pytest.raises(KeyError, match="there are"):
        result["spin"]


def test_rk4_preserves_the_linear_momentum_only():
    system = bodies(2, 3)
    path = la.integrate(system, "rk4", *triangle(2), h=0.02, steps=1000)
    result = symmetries(system).check(path)
    assert [one.exactly for one in result] == [True, True, False, True, False]
    with pytest.raises(ValueError, match="another system"):
        symmetries(la.Lagrangian(kepler, n=2)).check(path)


@pytest.mark.parametrize(
    "L, n, names",
    [
        (kepler, 2, ["reflection of q0", "reflection of q1", "exchange of q0 and q1"]),
        (lambda q, v: 0.5 * (v @ v) - 0.5 * (q @ q) - q[0] ** 2 * q[1] + q[1] ** 3 / 3, 2, ["reflection of q0"]),
        (lambda q, v: 0.5 * (v @ v) - q[0] * q[1] ** 3 - q[0] ** 3, 2, []),
        (lambda q, v: 0.5 * (v @ v) + v[0] * q[1] - v[1] * q[0] - (q @ q) ** 2, 2, ["turn"]),
        (
            lambda q, v: 0.5 * (v @ v) - sum((q[i + 1] - q[i]) ** 4 for i in range(4)) - q[0] ** 2 - q[4] ** 2,
            5,
            ["reflection of q0, q1, q2, q3, q4", "reversal of the order of the coordinates"],
        ),
        (lambda q, v: 0.5 * (v @ v) - (q[0] - q[1]) ** 3 - (q[1] - q[2]) ** 3 - (q[2] - q[0]) ** 3, 3, ["cycle"]),
        (lambda q, v: 0.5 * (v[0] ** 2 + 1.001 * v[1] ** 2) - q @ q, 2, ["reflection of q0", "reflection of q1"]),
    ],
)
def test_discrete_symmetries(L, n, names):
    words = {
        # a magnetic field: reflections turn it round, a quarter of a turn does not
        "turn": ["reflection of q0, q1", "exchange of q0 and q1, with reflection of q1"],
        # exchanges turn the cubes round; with all coordinates reflected they do not
        "cycle": [f"exchange of q0 and q{i}, with reflection of q0, q1, q2" for i in (1, 2)],
    }
    expected = [word for name in names for word in words.get(name, [name])]
    found = symmetries(la.Lagrangian(L, n=n)).discrete
    assert [one.name for one in found] == expected
    for one in found:
        np.testing.assert_array_equal(one.P @ one.P.T, np.eye(n))


@pytest.mark.parametrize(
    "L",
    [
        lambda q, v: 0.5 * (v @ v) - np.maximum(q[0] - 300, 0.0) ** 2,  # a wall, far away
        lambda q, v: 0.5 * (v @ v) - 1e-30 * q[0] ** 3 - q[1] ** 3,  # a force that is too small to be seen nearby
    ],
)
def test_a_reflection_that_is_broken_far_away_is_none(L):
    assert "reflection of q0" not in [one.name for one in symmetries(la.Lagrangian(L, n=2)).discrete]


def test_a_reflection_is_found_by_either_way():
    """On the Program with the identities it knows; else at points near and far, and then it is listed apart."""
    proven = symmetries(la.Lagrangian(lambda q, v: 0.5 * (v @ v) - np.cosh(q[0]), n=1))
    seen = symmetries(la.Lagrangian(lambda q, v: 0.5 * (v @ v) - np.hypot(q[0], 1.0), n=1))
    assert [one.name for one in proven.discrete] == [one.name for one in seen.candidates] == ["reflection of q0"]


def test_bodies_of_the_same_mass_can_be_exchanged():
    """Of 4 bodies in the plane with masses 1, 2, 1, 1: three can; n = 8 is beyond trying everything."""

    def gravity(q, v, m):
        x, w = q.reshape(4, 2), v.reshape(4, 2)
        pairs = [(i, j) for i in range(4) for j in range(i)]
        attraction = sum(m[i] * m[j] / np.sqrt((x[i] - x[j]) @ (x[i] - x[j])) for i, j in pairs)
        return 0.5 * sum(m[i] * (w[i] @ w[i]) for i in range(4)) + attraction

    system = la.Lagrangian(gravity, n=8, params={"m": [1.0, 2.0, 1.0, 1.0]})
    found = symmetries(system)
    assert [one.name for one in found.discrete] == [
        "reflection of q0, q2, q4, q6",
        "reflection of q1, q3, q5, q7",
        "exchange of (q0, q1) and (q4, q5)",
        "exchange of (q0, q1) and (q6, q7)",
        "exchange of q0 and q1, q2 and q3, q4 and q5, q6 and q7",
    ]
    assert "discrete: reflection of q0, q2, q4, q6; " in repr(found)
    light = symmetries(system, params={"m": [1.0, 1e-5, 1.001e-5, 1e-5]}).discrete
    assert [one.name for one in light if "(" in one.name] == ["exchange of (q2, q3) and (q6, q7)"]
    with pytest.raises(ArithmeticError, match="very unlike"):  # so light that they hardly attract each other
        symmetries(system, params={"m": [1.0, 1e-9, 2e-9, 1e-9]})


@pytest.mark.parametrize("method", ["simpson", "P3N3Q6Gau"])
def test_a_step_commutes_with_every_discrete_symmetry(method):
    system = bodies(2, 2)
    for one in symmetries(system, params={"m": [1.0, 1.0]}).discrete:
        q, p = np.array([1.0, 0.2, -0.8, 0.3]), np.array([0.1, 0.7, -0.2, -0.5])
        options = {"h": 0.05, "steps": 20, "params": {"m": [1.0, 1.0]}}
        path, image = (la.integrate(system, method, *state, **options) for state in ((q, p), (one(q), one(p))))
        np.testing.assert_allclose(image.q, one(path.q), atol=1e-13)
        np.testing.assert_allclose(image.p, one(path.p), atol=1e-13)


def test_figure():
    import matplotlib.pyplot as plt

    system = la.Lagrangian(kepler, n=2)
    path = la.integrate(system, "simpson", [1.0, 0.0], [0.0, 1.1], h=0.05, steps=100)
    assert len(symmetries(system).check(path).plot().lines) == 2
    plt.close("all")
