"""L_d with inner values eliminated: derivatives, Legendre transforms, maps, structure, and the variational order."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import leastaction as la
from leastaction.methods import family
from systems import case, catalogued
from thrift import rest_slow

NAMES = ("pendulum", "inseparable", "double-pendulum")
METHODS = ("midpoint", "stormer-verlet", "simpson", "P2N2Q3RadL", "P3N3Q6Gau")


def two_points(name, h=0.1):
    system, q0, v0 = case(name)
    return system, np.array(q0, float), np.array(q0, float) + h * np.array(v0, float)


def test_simpson_of_the_pendulum_by_hand():
    """L_d of Dubois and Rojas-Quintero (2023): h (L_0 + 4 L_½ + L_1)/6 with q_m from its own equation."""
    h, q0, q1 = 0.5, mpmath.mpf(1), mpmath.mpf(0.75)
    with mpmath.workdps(40):

        def action(qm):
            slopes = (-3 * q0 + 4 * qm - q1) / h, (q1 - q0) / mpmath.mpf(h), (q0 - 4 * qm + 3 * q1) / h
            values = [v**2 / 2 + mpmath.cos(q) for q, v in zip((q0, qm, q1), slopes, strict=True)]
            return h * (values[0] + 4 * values[1] + values[2]) / 6

        middle = mpmath.findroot(lambda x: mpmath.diff(action, x), 0.9)
        expected = action(middle)
    system = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    Ld = la.discrete_lagrangian(system, "simpson", h)
    assert Ld([q0], [q1]) == pytest.approx(float(expected), rel=1e-15)
    np.testing.assert_allclose(Ld.inner([q0], [q1])[:, 0], [1, float(middle), 0.75], rtol=1e-15)
    with mpmath.workdps(40):
        assert abs(la.discrete_lagrangian(system, "simpson", h, digits=40)([q0], [q1]) - expected) < 1e-30


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", rest_slow(NAMES, ["inseparable"]))
def test_derivatives_are_those_of_the_value(name, method):
    """Central differences at 50 digits."""
    system, q0, q1 = two_points(name)
    Ld = la.discrete_lagrangian(system, method, 0.1, digits=50)
    n = system.n
    with mpmath.workdps(50):
        e = mpmath.mpf(10) ** -12
        unit = np.eye(n, dtype=int).astype(object) * e
        exact = lambda q: np.array([mpmath.mpf(x) for x in q], dtype=object)  # noqa: E731
        a, b = exact(q0), exact(q1)

        def slope(f, by):
            moves = [(unit[j], 0 * unit[j]) if by == 0 else (0 * unit[j], unit[j]) for j in range(n)]
            return np.array([(f(a + x, b + y) - f(a - x, b - y)) / (2 * e) for x, y in moves])

        for found, expected in (
            (Ld.D1(a, b), slope(Ld, 0)),
            (Ld.D2(a, b), slope(Ld, 1)),
            (Ld.D11(a, b), slope(Ld.D1, 0).T),
            (Ld.D12(a, b), slope(Ld.D1, 1).T),
            (Ld.D22(a, b), slope(Ld.D2, 1).T),
        ):
            assert abs(found - expected).max() < 1e-18 * abs(found).max()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("digits", rest_slow([None, 40], [None]))
def test_two_point_map_is_the_map_of_states(name, method, digits):
    system, q0, q1 = two_points(name)
    Ld = la.discrete_lagrangian(system, method, "1/10" if digits else 0.1, digits=digits)
    assert Ld.agreement(q0, q1) < (1e-38 if digits else 1e-13)
    assert Ld.symplectic_defect(q0, q1) < 1e-30
    q2 = Ld.next(q0, q1)
    (_, right), (_, left) = Ld.right(q0, q1), Ld.left(q1, q2)
    with mpmath.workdps(40):
        assert abs(right - left).max() < (1e-36 if digits else 1e-13) * max(1, abs(right).max())


@pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning")
def test_where_a_step_and_the_discrete_lagrangian_take_different_motions_the_map_says_so():
    """h is half of a period: between q1 and the q2 of the step there are two motions."""
    Ld = la.discrete_lagrangian(la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1), "simpson", 3)
    with pytest.raises(ArithmeticError, match="L_d takes another motion; shorten h"):
        Ld.next([0.0], [2.0])
    assert Ld.agreement([1.0], [-1.0]) < 1e-15


def test_a_run_by_two_points_is_a_run():
    system, q0, _ = two_points("double-pendulum")
    path = la.integrate(system, "simpson", q0, v0=[0.1, -0.2], h=0.05, steps=20)
    Ld = la.discrete_lagrangian(system, "simpson", 0.05)
    q = [path.q[0], path.q[1]]
    for _ in range(19):
        q.append(Ld.next(q[-2], q[-1]))
    np.testing.assert_allclose(np.array(q), path.q, rtol=0, atol=1e-12)


def test_time_and_parameters():
    system = la.Lagrangian(lambda t, q, v, m: 0.5 * m * v[0] ** 2 + np.cos(q[0] - t), n=1, params={"m": 2.0})
    Ld = la.discrete_lagrangian(system, "P3N3Q6Gau", 0.2, params={"m": 3.0})
    assert Ld.agreement([0.3], [0.5], t=1.7) < 1e-13
    assert Ld([0.3], [0.5], t=1.7) != Ld([0.3], [0.5])


def test_symplectic_form_of_free_motion():
    """L_d = (q1 − q0)²/2h: Ω = −(1/h) dq0 ∧ dq1."""
    free = la.Lagrangian(lambda q, v: 0.5 * (v @ v), n=2)
    form = la.discrete_lagrangian(free, "P3N3Q6Gau", 0.25).symplectic_form([0, 0], [1, 2])
    np.testing.assert_allclose(form, 4 * np.block([[np.zeros((2, 2)), -np.eye(2)], [np.eye(2), np.zeros((2, 2))]]))


@pytest.mark.parametrize("method", ["simpson", "P3N3Q6Gau", "P2N2Q3RadR"])
def test_discrete_momentum_maps(method):
    kepler = catalogued("kepler")
    (rotation,) = la.analysis.symmetries(kepler.system)
    path = la.integrate(kepler.system, method, kepler.q0, kepler.p0, h=0.1, steps=10)
    Ld = la.discrete_lagrangian(kepler.system, method, 0.1)
    pairs = [Ld.momentum_maps(rotation, path.q[k], path.q[k + 1]) for k in range(10)]
    np.testing.assert_allclose(np.ravel(pairs), rotation.momentum(path.q[0], path.p[0]), rtol=1e-12)
    same = Ld.momentum_maps(lambda q: [-q[1], q[0]], path.q[0], path.q[1])
    np.testing.assert_allclose(same, pairs[0], rtol=1e-15)
    stretched = Ld.momentum_maps(lambda q: q, path.q[0], path.q[1])  # no symmetry
    assert abs(stretched[0] - stretched[1]) > 1e-3


def test_quadratic_systems_have_the_matrices_of_the_paper():
    M, K, h = np.array([[2.0, 1], [1, 1.5]]), np.array([[3.0, 1], [1, 2]]), 0.1
    scheme = la.linear.members("simpson", M, K, h)
    Ld = la.discrete_lagrangian(la.Quadratic(M, K), "simpson", h)
    q0, q1 = [1.0, 2.0], [1.1, 2.2]
    same, other = Ld.D11(q0, q1), Ld.D12(q0, q1)
    np.testing.assert_allclose(same - other, scheme.X, rtol=1e-12)
    np.testing.assert_allclose(-(same + other), scheme.Y, rtol=1e-12)
    assert Ld.agreement(q0, q1) < 1e-13


def test_exact_discrete_lagrangian_is_the_action_of_the_motion():
    """The oscillator's: S = ω ((q0² + q1²) cos ωh − 2 q0 q1) / (2 sin ωh)."""
    system = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - 2 * q[0] ** 2, n=1)
    with mpmath.workdps(40):
        q0, q1, h, omega = mpmath.mpf(1) / 3, mpmath.mpf(1) / 2, mpmath.mpf(1) / 4, 2
        sine, cosine = mpmath.sin(omega * h), mpmath.cos(omega * h)
        action = omega * ((q0**2 + q1**2) * cosine - 2 * q0 * q1) / (2 * sine)
    Ld = la.discrete_lagrangian(system, "simpson", "1/4", digits=40)
    with mpmath.workdps(40):
        assert abs(Ld.exact(14)(["1/3"], ["1/2"]) - action) < 1e-38
        errors = [abs(Ld.exact(s)(["1/3"], ["1/2"]) - action) for s in (2, 4, 6)]
    assert errors[0] > 1e4 * errors[1] > 1e8 * errors[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    rest_slow(
        ["midpoint", "simpson", "P2N2Q3RadR", "P3N3Q6Gau", "P2N2Q2Lob", "P1N3Q6Gau"],
        ["simpson", "P2N2Q3RadR", "P2N2Q2Lob"],
    ),
)
def test_variational_order(method):
    system, q0, v0 = case("inseparable")
    found = la.discrete_lagrangian(system, method, 0.05).variational_order(q0, v0=v0)
    assert found.fit.settled and abs(found.order - la.method(method).order) < 0.1, found


@pytest.mark.slow
@pytest.mark.parametrize("method", rest_slow([*family(4, 5)], [*family(2, 3)]), ids=repr)
def test_variational_order_of_the_family_is_min_2s_u(method):
    """The open question of Ober-Blöbaum and Saake (2014), measured as variational error analysis has it."""
    system, q0, v0 = case("inseparable")
    found = la.discrete_lagrangian(system, method, 0.02).variational_order(q0, v0=v0, digits=80)
    assert found.fit.settled and abs(found.order - method.order) < 0.1, found


def test_far_apart_positions_are_followed_from_small_steps_or_refused():
    system = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    Ld = la.discrete_lagrangian(system, "P3N3Q6Gau", 2.5)
    inner = Ld.inner([-1.0], [1.0])[:, 0]
    np.testing.assert_allclose(inner, -inner[::-1], atol=1e-15)  # the motion through the lowest point
    assert (np.diff(inner) > 0).all()
    hill = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.log(q[0]), n=1)
    with pytest.raises(ArithmeticError, match="no step of P2N3Q4Lob with h = 1 was found between"):
        la.discrete_lagrangian(hill, "simpson", 1.0)([1.0], [-1.0])


def pendulum_followed(table, q0, q1, h, parts=400):
    """p_k of the pendulum's step between two positions, by plain NumPy: in many small parts of h, with the mean
    velocity kept, the inner values are followed from h = 0; None where that leads to a fold.
    """
    l, dl, w, d = table.l, table.dl, table.b, table.d

    def slopes(z, x):
        q, v = q0 + l @ z, dl @ z / (x * h)
        first = (w * x * h * -np.sin(q)) @ l + w @ (v[:, None] * dl)
        return first, (l.T * (w * x * h * -np.cos(q))) @ l + (dl.T * (w / (x * h))) @ dl

    z = d * (q1 - q0) / parts
    for k in range(1, parts + 1):
        x, before = k / parts, z
        z = z * k / max(k - 1, 1)
        for _ in range(8):
            first, second = slopes(z, x)
            z[1:-1] -= np.linalg.solve(second[1:-1, 1:-1], first[1:-1])
        if np.linalg.eigvalsh(second[1:-1, 1:-1])[0] < 0 or abs(z - before).max() > 0.1:
            return None
    return -slopes(z, 1.0)[0][0]


@pytest.mark.parametrize("method", ["simpson", "P4N4Q8Gau"])
def test_of_several_motions_the_one_connected_with_no_step_is_taken(method):
    """A pendulum may swing from place to place in 3.5 > π to either side, and both motions are minima of the action."""
    system = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    Ld = la.discrete_lagrangian(system, method, 3.5)
    for q0, q1 in np.random.default_rng(7).uniform(-1, 1, (12, 2)):
        expected = pendulum_followed(la.method(method).table, q0, q1, 3.5)
        if expected is None:
            with pytest.raises(ArithmeticError, match="was followed for"):
                Ld([q0], [q1])
            continue
        (momentum,) = -Ld.D1([q0], [q1])
        assert abs(momentum - expected) < 1e-12


@pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning")  # such steps are too long for that
def test_a_step_that_passes_a_conjugate_point_is_not_given_back():
    """∂q1/∂p0 is negative behind a conjugate point, while D₁D₂L_d = −∂p0/∂q1 of what L_d gives is negative."""
    system, h = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1), 3.5
    path = la.integrate(system, "P4N4Q8Gau", [0.02], [-0.64], h=h, steps=1, tangent=True)
    assert path.tangent[-1][0, 1] < 0
    Ld = la.discrete_lagrangian(system, "P4N4Q8Gau", h)
    assert Ld.D12(*path.q) < 0 and -Ld.D1(*path.q) > 1


def test_a_motion_at_rest_is_followed_through_conjugate_points():
    """From 0 to 0 in 4 > π a pendulum may rest, or swing out and back, to either side: the uniform motion rests."""
    system = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    Ld = la.discrete_lagrangian(system, "P4N4Q8Gau", 4.0)
    assert Ld([0.0], [0.0]) == 4.0 and Ld.D1([0.0], [0.0]) == 0.0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda s: la.discrete_lagrangian(s, "rk4", 0.1), "are not variational"),
        (lambda s: la.discrete_lagrangian(s, "simpson", 0), "must not be zero"),
        (lambda s: la.discrete_lagrangian(s, "simpson", 0.1)([1, 2], [1, 3]), "q0 must be 1 finite numbers"),
        (lambda s: la.discrete_lagrangian(la.Quadratic([1], [1], C=[[1]]), "simpson", 0.1), "damping or a load"),
        (
            lambda s: la.discrete_lagrangian(
                la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2, n=1, force=lambda q, v: -v), "simpson", 0.1
            ),
            "external force",
        ),
        (
            lambda s: la.discrete_lagrangian(
                la.Lagrangian(lambda q, v: 0.5 * (v @ v), n=2, constraints=lambda q: [q @ q - 1]), "simpson", 0.1
            ),
            "has constraints",
        ),
        (lambda s: la.discrete_lagrangian(s, "simpson", 0.1).variational_order([1], v0=[1], h=[0.1]), "two steps"),
    ],
)
def test_what_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make(la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1))


def test_a_step_through_a_singularity_has_no_action():
    """The straight motion through the centre of Kepler's problem, whose middle is the node of the midpoint method."""
    Ld = la.discrete_lagrangian(catalogued("kepler").system, "midpoint", 0.1)
    with pytest.raises(ArithmeticError, match="it passes a singularity"):
        Ld([1.0, 0.0], [-1.0, 0.0])
