"""Units do not matter, and no coordinate hides another: each is judged on its own scale."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.systems.mechanics import dominant, equilibrated
from seeds import generator
from thrift import rest_slow

EPS = 2.0**-52
ALONE = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)


def beside(q, v, M):
    """A pendulum, and a free coordinate of mass M that has nothing to do with it."""
    return 0.5 * M * v[0] ** 2 + 0.5 * v[1] ** 2 + np.cos(q[1])


BESIDE = la.Lagrangian(beside, n=2, params={"M": 1.0})


@pytest.mark.parametrize("M", [1e10, 1e16, 1e-16, 1e100])
@pytest.mark.parametrize("method", ["rk4", "rk4-lagrange", "simpson", "P6N6Q12Gau"])
def test_a_heavy_neighbour_does_not_hide_a_pendulum(method, M):
    alone = la.integrate(ALONE, method, [1.0], v0=[0.3], h=0.1, steps=30)
    path = la.integrate(BESIDE, method, [0.0, 1.0], v0=[1.0, 0.3], h=0.1, steps=30, params={"M": M})
    np.testing.assert_allclose(path.q[:, 1:], alone.q, rtol=0, atol=1e-13)
    np.testing.assert_allclose(path.p[:, 1:], alone.p, rtol=0, atol=1e-13)


def test_velocities_of_unlike_momenta():
    v = BESIDE.velocity([0.0, 1.0], [1e16, 2**-0.5], params={"M": 1e16})
    np.testing.assert_allclose(v, [1.0, 2**-0.5], rtol=1e-15)


@pytest.mark.parametrize("V", [1e16, 1e100])
@pytest.mark.parametrize(
    "method", rest_slow(["midpoint", "simpson", "P4N4Q8Gau", "P8N8Q16Gau"], ["simpson", "P8N8Q16Gau"])
)
def test_a_fast_neighbour_does_not_hide_a_pendulum(method, V):
    """One alone and in lanes."""
    alone = la.integrate(ALONE, method, [1.0], v0=[0.3], h=0.1, steps=30)
    options = {"v0": [V, 0.3], "h": 0.1, "steps": 30}
    path = la.integrate(BESIDE, method, [0.0, 1.0], **options)
    np.testing.assert_allclose(path.q[:, 1:], alone.q, rtol=0, atol=1e-13)
    paths = la.ensemble(BESIDE, method, np.tile([0.0, 1.0], (5, 1)), v0=np.tile([V, 0.3], (5, 1)), h=0.1, steps=30)
    np.testing.assert_allclose(paths.q[:, :, 1:], np.tile(alone.q, (5, 1, 1)), rtol=0, atol=1e-13)


@pytest.mark.parametrize("method", ["rk4", "midpoint", "P4N4Q8Gau"])
def test_a_heavy_or_fast_neighbour_at_30_digits(method):
    alone = la.integrate(ALONE, method, [1.0], v0=[0.3], h=0.1, steps=5, digits=30)
    for M, V in ((1e16, 1.0), (1.0, 1e16), (1e100, 1e-100), (1e-100, 1e100)):
        path = la.integrate(BESIDE, method, [0.0, 1.0], v0=[V, 0.3], h=0.1, steps=5, params={"M": M}, digits=30)
        assert abs(path.q[:, 1:] - alone.q).max() < 1e-29 and abs(path.p[:, 1:] - alone.p).max() < 1e-29


def gravity(q, v, m, G):
    """Three bodies in the plane."""
    x, u = q.reshape(3, 2), v.reshape(3, 2)
    V = sum(m[i] * m[j] / np.sqrt(np.sum((x[i] - x[j]) ** 2)) for i in range(3) for j in range(i))
    return 0.5 * np.sum(m * np.sum(u**2, axis=1)) + G * V


def test_sun_earth_and_a_satellite_in_si_units():
    """Masses from 10³ to 10³⁰ kg: the motion is that in units in which all momenta are of order one."""
    m, G = np.array([1.989e30, 5.972e24, 1e3]), 6.674e-11
    q0 = np.array([0, 0, 1.496e11, 0, 1.496e11 + 4.2e7, 0.0])
    v0 = np.array([0, 0, 0, 29.78e3, 0, 29.78e3 + np.sqrt(G * m[1] / 4.2e7)])
    system = la.Lagrangian(gravity, n=6, params={"m": m, "G": G})
    for method in ("rk4", "P4N4Q8Gau"):
        path = la.integrate(system, method, q0, v0=v0, h=60.0, steps=60)
        exact = la.integrate(system, method, q0, v0=v0, h=60.0, steps=60, digits=25)
        around, expected = path.q[:, 4:] - path.q[:, 2:4], (exact.q[:, 4:] - exact.q[:, 2:4]).astype(float)
        assert abs(around - expected).max() < 1e-3  # metres: differences of 10¹¹ m are known to 2·10⁻⁵


def scaled(q, v, a, c):
    """A double pendulum in coordinates a_j q_j, its Lagrangian times c."""
    x, u = q / a, v / a
    T = u[0] ** 2 + 0.5 * u[1] ** 2 + u[0] * u[1] * np.cos(x[0] - x[1])
    return c * (T + 9.81 * (2 * np.cos(x[0]) + np.cos(x[1])))


@pytest.mark.parametrize(
    "method", rest_slow(["midpoint", "simpson", "P4N4Q8Gau", "P8N8Q16Gau"], ["simpson", "P8N8Q16Gau"])
)
def test_changes_of_units_leave_the_errors_as_they_are(method):
    """Coordinates and L in units of 10^±100: the motion is the same to round-off, and so is the work."""
    system = la.Lagrangian(scaled, n=2, params={"a": np.ones(2), "c": 1.0})
    rng = np.random.default_rng(5)
    base = la.integrate(system, method, [0.5, 1.0], v0=[0.3, -0.2], h=0.02, steps=100)
    for powers in (*rng.uniform(-20, 20, (3, 3)), [100, -100, 0], [-100, 100, 50], [0, 0, -100]):
        a, c = 2.0 ** np.round(np.array(powers[:2]) / np.log10(2)), float(2.0 ** np.round(powers[2] / np.log10(2)))
        q0, v0 = a * [0.5, 1.0], a * [0.3, -0.2]
        path = la.integrate(system, method, q0, v0=v0, h=0.02, steps=100, params={"a": a, "c": c})
        np.testing.assert_allclose(path.q / a, base.q, rtol=0, atol=1e-13)
        assert path.stats["newton_iterations"] <= 1.1 * base.stats["newton_iterations"]
        many = la.ensemble(system, method, np.tile(q0, (3, 1)), v0=v0, h=0.02, steps=100, params={"a": a, "c": c})
        np.testing.assert_allclose(many.q / a, np.tile(base.q, (3, 1, 1)), rtol=0, atol=1e-13)


def test_a_coordinate_that_rounding_alone_moves():
    """The middle mass of a symmetric chain rests, but for the last bits of forces that cancel."""

    def chain(q, v):
        stretch = np.diff(q) - 0.1
        return 0.5 * (v @ v) - np.sum(0.5 * stretch**2 + 0.25 * stretch**4)

    system = la.Lagrangian(chain, n=3)
    for method in ("midpoint", "simpson", "P8N8Q16Gau"):
        path = la.integrate(system, method, [-0.7, 0.0, 0.7], [0, 0, 0], h=0.1, steps=200)
        assert abs(path.q[:, 1]).max() < 1e-14
        assert path.stats["continued"] < 20


def coupled(q, v, c):
    """From rest the square of the second's velocity moves the first coordinate: as t⁴, and in a first iteration only by
    c.
    """
    return 0.5 * (v @ v) + 0.5 * np.cos(q[0] + q[1]) * v[1] ** 2 - 0.5 * q[1] ** 2 + c * v[0] * v[1]


COUPLED = la.Lagrangian(coupled, n=2, params={"c": 0.0})
# What the first iteration of a first step finds of the first coordinate's motion is c: from all of it to nothing.
WEAK = [0.0, 1e-320, 1e-300, 1e-281, 1e-279, 1e-200, 1e-100, 1e-34, *(10.0**-k for k in range(24, 1, -1))]


@pytest.mark.parametrize("method", ["midpoint", "simpson", "P5N5Q10Gau"])
def test_a_coordinate_that_others_set_in_motion(method):
    """The same motion, however little of it the first iteration finds."""
    start = {"q0": [0.0, 1.0], "v0": [0.0, 0.0], "h": 0.05}
    base = la.integrate(COUPLED, method, **start, steps=100)
    E = base.energy()
    assert abs(E - E[0]).max() < 1e-3 and base.q[1, 0] != 0 and base.stats["continued"] < 10
    many = la.ensemble(COUPLED, method, **start, steps=100, params={"c": np.array(WEAK)})
    for c, q in zip(WEAK, many.q, strict=True):
        path = la.integrate(COUPLED, method, **start, steps=100, params={"c": c})
        assert path.stats["continued"] < 10
        for found in (path.q, q):
            np.testing.assert_allclose(found, base.q, rtol=0, atol=10 * c + 1e-14)


@pytest.mark.parametrize("c", [0.0, 1e-100, 1e-34, 1e-16, 1e-6])
@pytest.mark.parametrize("method", ["midpoint", "simpson", "P5N5Q10Gau"])
def test_others_set_a_coordinate_in_motion_at_25_digits(method, c):
    start = {"q0": [0.0, 1.0], "v0": [0.0, 0.0], "h": 0.05, "steps": 4, "params": {"c": c}}
    path, precise = la.integrate(COUPLED, method, **start), la.integrate(COUPLED, method, **start, digits=25)
    np.testing.assert_allclose(path.q, np.array(precise.q, float), rtol=1e-13, atol=1e-30)


@pytest.mark.parametrize("c", [0.0, 1e-100, 1e-34, 1e-16, 1e-6])
@pytest.mark.parametrize("method", ["midpoint", "simpson", "P5N5Q10Gau"])
def test_others_set_a_coordinate_of_a_sum_in_motion(method, c):
    """Coordinates of two kinds, which have no unit in common."""
    system = la.Lagrangian.sum([la.Term(coupled, over=[[0, 1]], params={"c": c})], n=2)
    start = {"q0": [0.0, 1.0], "v0": [0.0, 0.0], "h": 0.05, "steps": 100}
    path = la.integrate(COUPLED, method, **start, params={"c": c})
    np.testing.assert_allclose(la.integrate(system, method, **start).q, path.q, rtol=0, atol=1e-13)


def test_a_coordinate_that_turns_on_the_way():
    """c moves the first coordinate one way, the velocity of the second moves it back: some shorter step ends where it
    began, and then the step has no length that could be its scale.
    """
    start = {"q0": [0.0, 1.0], "v0": [0.0, 0.0], "h": 0.05, "steps": 3}
    base = la.integrate(COUPLED, "midpoint", **start)
    for c in np.geomspace(1e-12, 1e-2, 60):
        for sign in (-1, 1):
            path = la.integrate(COUPLED, "midpoint", **start, params={"c": sign * c})
            np.testing.assert_allclose(path.q, base.q, rtol=0, atol=10 * c)
    for c in (2.5e-9, 5e-11, 1e-6):
        system = la.Lagrangian.sum([la.Term(coupled, over=[[0, 1]], params={"c": c})], n=2)
        whole = la.integrate(COUPLED, "midpoint", **start, params={"c": c})
        np.testing.assert_allclose(la.integrate(system, "midpoint", **start).q, whole.q, rtol=0, atol=1e-13)
        precise = la.integrate(COUPLED, "midpoint", **start, params={"c": c}, digits=25)
        np.testing.assert_allclose(np.array(precise.q, float), whole.q, rtol=0, atol=1e-14)


def beads(n, gap):
    """A chain of beads that touch without adhesion (Hertz), with gaps between them; also as a sum."""

    def whole(q, v):
        return 0.5 * (v @ v) - 0.4 * np.sum(np.maximum(q[:-1] - q[1:] - gap, 0.0) ** 2.5)

    pairs = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    terms = [
        la.Term(lambda q, v: 0.5 * v[0] ** 2, over=np.arange(n)[:, None]),
        la.Term(lambda q, v: -0.4 * np.maximum(q[0] - q[1] - gap, 0.0) ** 2.5, over=pairs),
    ]
    return la.Lagrangian(whole, n=n), la.Lagrangian.sum(terms, n=n)


@pytest.mark.parametrize("gap", [0.0, 0.5])
@pytest.mark.parametrize("method", ["midpoint", "simpson", "P4N4Q8Gau"])
def test_a_body_at_rest_that_another_one_meets(method, gap):
    """One bead is kicked. The others rest until they are met, some of them inside a step."""
    plain, as_sum = beads(5, gap)
    start = {"q0": np.zeros(5), "v0": [0.0, 1.0, 0.0, 0.0, 0.0], "h": 0.3, "steps": 20}
    path = la.integrate(plain, method, **start)
    np.testing.assert_allclose(path.q, la.integrate(as_sum, method, **start).q, rtol=0, atol=1e-12)
    precise = la.integrate(plain, method, **{**start, "steps": 9}, digits=20)
    np.testing.assert_allclose(np.array(precise.q, float), path.q[:10], rtol=0, atol=1e-12)


def driven(q, v):
    """The square of the first coordinate's velocity drives the second."""
    return 0.5 * v[0] ** 2 + q[1] * v[0] ** 2


def pulled(q, v):
    """The square of the first coordinate drives the second."""
    return 0.5 * v[0] ** 2 + q[1] * q[0] ** 2


@pytest.mark.parametrize("pair", [driven, pulled])
@pytest.mark.parametrize("method", rest_slow(["midpoint", "simpson", "P4N4Q8Gau"], ["simpson"]))
def test_each_sets_the_next_in_motion(method, pair):
    """Five coordinates of a sum: an iteration finds the step of a coordinate when it knows that of the one before."""
    n, pairs = 5, [[i, i + 1] for i in range(4)]

    def whole(q, v):
        return sum(pair(q[i : i + 2], v[i : i + 2]) for i in range(n - 1)) + 0.5 * v[-1] ** 2 - 0.5 * (q[0] - 1) ** 2

    terms = [
        la.Term(pair, over=pairs),
        la.Term(lambda q, v: 0.5 * v[0] ** 2, over=[[n - 1]]),
        la.Term(lambda q, v: -0.5 * (q[0] - 1) ** 2, over=[[0]]),
    ]
    for h, steps in ((0.05, 20), (0.3, 8)):
        start = {"q0": np.zeros(n), "v0": np.zeros(n), "h": h, "steps": steps}
        path = la.integrate(la.Lagrangian(whole, n=n), method, **start)
        sum_of_terms = la.integrate(la.Lagrangian.sum(terms, n=n), method, **start)
        np.testing.assert_allclose(sum_of_terms.q, path.q, rtol=0, atol=1e-13)


@pytest.mark.parametrize("M", rest_slow([1.0, 1e6, 1e16, 1e30, 1e100, 1e-12], [1e16, 1e100, 1e-12]))
def test_velocities_of_unlike_momenta_in_sums(M):
    """A light coordinate whose momentum is not linear needs iterations that a heavy one does not."""

    def L(q, v):
        return 0.5 * M * (1 + 0.3 * np.cos(q[0])) * v[0] ** 2 + 0.5 * v[1] ** 2 + 0.25 * v[1] ** 4 + np.cos(q[1])

    system, rng = la.Lagrangian.sum([la.Term(L, over=[[0, 1]])], n=2), generator()
    for q, v in zip(rng.uniform(-1, 1, (50, 2)), rng.uniform(-1, 1, (50, 2)) * [1, 5], strict=True):
        np.testing.assert_allclose(system.velocity(q, system.momentum(q, v)), v, rtol=1e-13, atol=1e-15)
    whole = la.Lagrangian(L, n=2)
    start = {"q0": [0.3, 0.7], "p0": [0.5 * M, 30.0], "h": 0.01, "steps": 30}
    for method in ("midpoint", "P4N4Q8Gau"):
        path = la.integrate(system, method, **start)
        np.testing.assert_allclose(path.q, la.integrate(whole, method, **start).q, rtol=0, atol=1e-13)


def test_velocities_near_that_of_light_in_sums():
    system = la.Lagrangian.sum([la.Term(lambda q, v: -np.sqrt(1 - v[0] ** 2), over=[[0], [1]])], n=2)
    p = np.array([7.0, 1e-3])
    np.testing.assert_allclose(system.velocity([0.0, 0.0], p), p / np.sqrt(1 + p**2), rtol=1e-13)


@pytest.mark.parametrize("method", ["midpoint", "P4N4Q8Gau"])
@pytest.mark.parametrize("length", [1e-100, 1.0, 1e100])
def test_sums_in_other_units(method, length):
    """A charge in a magnetic field, whose mass has squares beyond all floats."""

    def L(q, v):
        x, u = q / length, v / length
        return 0.5 * (u @ u) + 0.7 * (x[0] * u[1] - x[1] * u[0]) + np.exp(-x @ x) - 0.1 * x[0] ** 4

    start = {"q0": [0.5 * length, 0.2 * length], "v0": [0.1 * length, 0.6 * length], "h": 0.05, "steps": 80}
    path = la.integrate(la.Lagrangian.sum([la.Term(L, over=[[0, 1]])], n=2), method, **start)
    plain = la.integrate(la.Lagrangian(L, n=2), method, **start)
    np.testing.assert_allclose(path.q, plain.q, rtol=0, atol=1e-13 * length)


@pytest.mark.parametrize("M", [1.0, 1e30])
@pytest.mark.parametrize("method", ["midpoint", "P4N4Q8Gau"])
def test_runs_near_the_velocity_of_light_in_sums(method, M):
    """From v = 0 Newton's iteration for the first velocity leads beyond 1, where there is no L; a heavy coordinate
    beside it does not hide this.
    """

    def L(q, v):
        return 0.5 * M * (1 + 0.1 * np.cos(q[0])) * v[0] ** 2 - np.sqrt(1 - v[1] ** 2) - 0.5 * q[1] ** 2

    start = {"q0": [0.3, 0.2], "p0": [0.5 * M, 7.0], "h": 0.05, "steps": 40}
    path = la.integrate(la.Lagrangian.sum([la.Term(L, over=[[0, 1]])], n=2), method, **start)
    np.testing.assert_allclose(path.q, la.integrate(la.Lagrangian(L, n=2), method, **start).q, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("length", "digits"), [(2.0**130, 25), (2.0**330, 60), (2.0**-330, 25)])
def test_masses_in_other_units_are_regular_at_any_precision(length, digits):
    """One scaling of rows and columns left numbers of unlike size, and a regular mass was called degenerate."""
    system = la.Lagrangian(scaled, n=2, params={"a": np.ones(2), "c": 1.0})
    a, start = np.array([length, 1.0]), {"h": 0.02, "steps": 3}
    base = la.integrate(system, "simpson", [0.5, 1.0], v0=[0.3, -0.2], **start)
    path = la.integrate(
        system, "simpson", a * [0.5, 1.0], v0=a * [0.3, -0.2], **start, params={"a": a, "c": 1.0}, digits=digits
    )
    np.testing.assert_allclose(np.array(path.q, float) / a, base.q, rtol=0, atol=1e-14)


# ------------------------------------------------------------------------------------------------- high floors


def test_chords_end_where_an_ill_conditioned_mass_leaves_much_rounding():
    """Twenty links, in four systems of units: chords came down to 10⁻¹² of a step, did not see that this is rounding,
    and every step was solved a second time by Newton's iteration (10 iterations a step, and sixty times the time).
    """

    def chain(q, v, a):
        q, v = q / a, v / a
        x, y = np.cumsum(np.cos(q) * v), np.cumsum(np.sin(q) * v)
        return 0.5 * np.sum(x**2 + y**2) + 9.81 * np.sum(np.cumsum(np.cos(q)))

    n = 20
    system, q0 = la.Lagrangian(chain, n=n, params={"a": np.ones(n)}), np.linspace(0.5, 1.0, n)
    base = la.integrate(system, "P8N8Q16Gau", q0, v0=np.zeros(n), h=1e-3, steps=100)
    assert base.stats["newton_iterations"] < 400
    np.testing.assert_allclose(base.energy(), base.energy()[0], rtol=4 * EPS)
    for most in (20, 60, 200):
        a = 2.0 ** np.random.default_rng(3).integers(-most, most, n)
        path = la.integrate(system, "P8N8Q16Gau", a * q0, v0=np.zeros(n), h=1e-3, steps=100, params={"a": a})
        assert path.stats["newton_iterations"] < 400
        np.testing.assert_allclose(path.q / a, base.q, rtol=0, atol=1e-14)
    many = la.ensemble(system, "P8N8Q16Gau", np.tile(q0, (3, 1)), v0=np.zeros(n), h=1e-3, steps=100)
    assert many.stats["newton_iterations"] < 3 * 400
    np.testing.assert_allclose(many.q, np.tile(base.q, (3, 1, 1)), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("light", "stiff"), [(1e-3, 3.0), (1e-3, 10.0), (1e-6, 0.3), (1e-6, 10.0)])
def test_a_mass_that_is_ill_conditioned_hides_no_error_of_chords(light, stiff):
    """Two coordinates whose difference has next to no mass, and h ω of that difference: chords contract, or diverge.
    Errors are the rounding that Newton's iteration leaves, too.
    """

    def tied(q, v):
        total, apart = v[0] + v[1], v[0] - v[1]
        soft = (q[0] + q[1]) ** 2 / 4 + (q[0] + q[1]) ** 4 / 10
        k = light * (stiff / 0.02) ** 2 / 4
        return 0.25 * (total**2 + light * apart**2) * (1 + q[0] ** 2 / 20) - soft - k * (q[0] - q[1]) ** 2

    system, start = la.Lagrangian(tied, n=2), {"q0": [-0.25, -0.25], "v0": [-0.16, -0.16], "h": 0.02, "steps": 60}
    exact = la.integrate(system, "P4N4Q8Gau", **start, digits=30).q[-1].astype(float)
    path = la.integrate(system, "P4N4Q8Gau", **start)
    np.testing.assert_allclose(path.q[-1], exact, rtol=0, atol=30 * EPS / light)


# ------------------------------------------------------------------------------------------------- stiff ties


@pytest.mark.parametrize("method", ["P3N4Q6Lob", "P4N4Q8Gau"])
def test_chords_that_diverge_from_a_good_prediction_are_not_taken_for_rounding(method):
    """Two masses that a stiff spring ties move together: predictions are right to 10⁻¹², chords diverge. With a floor
    of 10⁻¹¹ for increments that do not shrink, errors of 4·10⁻¹⁴ were left after sixty steps. Those of rounding, in the
    mean of neighbouring starts, are 7·10⁻¹⁶.
    """

    def tied(q, v):
        soft = (q[0] + q[1]) ** 2 / 4 + (q[0] + q[1]) ** 4 / 10
        return 0.5 * v @ v * (1 + q[0] ** 2 / 20) - soft - 5e3 * (q[0] - q[1]) ** 2

    system, errors = la.Lagrangian(tied, n=2), []
    for k in range(8):
        start = {"q0": [-0.25 - k / 400] * 2, "v0": [-0.16 + k / 600] * 2, "h": 0.02, "steps": 60}
        exact = la.integrate(system, method, **start, digits=30).q[-1].astype(float)
        errors.append(la.integrate(system, method, **start).q[-1] - exact)
    assert np.sqrt(np.mean(np.square(errors))) <= 1e-15


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("units", [(60, -60), (-200, 200)])
def test_kernels_do_not_choose_pivots_by_units(units, many):
    """Units of 2^k change the last bit of nothing in an elimination without exchanges: a charge and two links."""
    unit = 2.0 ** np.array(units)

    def charge(q, v, u):
        q, v = q * u, v * u
        return 0.5 * (v @ v) + 0.5 * (q[0] * v[1] - q[1] * v[0]) * (1 + 0.1 * q[0] ** 2) - 0.5 * (q @ q)

    def links(q, v, u):
        q, v = q * u, v * u
        return v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * np.cos(q[0] - q[1]) + 2 * np.cos(q[0]) + np.cos(q[1])

    for function in (charge, links):
        system = la.Lagrangian(function, n=2, params={"u": np.ones(2)})
        for method in ("midpoint", "P2N2Q4Gau"):
            ends = []
            for u in (np.ones(2), unit):
                q, v = np.array([0.5, 0.3]) / u, np.array([0.2, 0.1]) / u
                how = {"h": 0.1, "steps": 50, "params": {"u": u}}
                if many:
                    ends.append(
                        la.ensemble(system, method, np.tile(q, (5, 1)), v0=np.tile(v, (5, 1)), **how).q[2, -1] * u
                    )
                else:
                    ends.append(la.integrate(system, method, q, v0=v, **how).q[-1] * u)
            np.testing.assert_allclose(ends[1], ends[0], rtol=0, atol=1e-13)


def test_a_mass_that_is_regular_beyond_doubt_is_known_by_its_diagonal_in_any_units():
    """That of a double pendulum, which was looked into by its rank: a third of the set-up of an ensemble."""
    rng = np.random.default_rng(0)
    units = 10 ** rng.uniform(-20, 20, (100, 2))
    scaled = units[:, :, None] * units[:, None, :]
    assert dominant(scaled * np.array([[2.0, 0.9], [0.9, 1.0]]))
    for singular in ([[2.0, 1.0], [1.0, 0.5]], [[0.0, 1.0], [1.0, 1.0]], [[1.0, np.nan], [np.nan, 1.0]]):
        assert not dominant(scaled * np.array(singular))
    random = rng.normal(size=(2000, 3, 3))
    found = [matrix for matrix in random + random.transpose(0, 2, 1) if dominant(matrix[None])]
    assert 10 < len(found) < 1000
    assert all(np.linalg.matrix_rank(equilibrated(matrix)) == 3 for matrix in found)
