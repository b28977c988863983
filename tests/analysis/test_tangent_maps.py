"""The tangent map against differences in 45 digits; symplecticity, reversibility, Lyapunov exponents."""

import mpmath
import numpy as np
import pytest
import sympy

import leastaction as la
from leastaction.analysis import iteration_matrix, lyapunov, reversibility_defect, structure, symplectic_defect
from leastaction.methods import family
from mp_step import Reference
from systems import catalogued
from thrift import rest_slow


def double_pendulum(q, v, m, l, g):
    kinetic = 0.5 * (m[0] + m[1]) * l**2 * v[0] ** 2 + 0.5 * m[1] * v[1] ** 2
    coupling = m[1] * l * v[0] * v[1] * np.cos(q[0] - q[1])
    return kinetic + coupling + (m[0] + m[1]) * g * l * np.cos(q[0]) + m[1] * g * np.cos(q[1])


def driven(t, q, v, k):
    """Time-dependent, and not quadratic in v."""
    return np.exp(0.3 * t) * np.cosh(v[0]) - k * np.cos(q[0] + np.sin(t)) + 0.1 * v[0] * q[0] * t**2


SYSTEMS = {
    "double pendulum": (
        la.Lagrangian(double_pendulum, n=2, params={"m": [1.0, 1.2], "l": 0.9, "g": 9.81}),
        [0.3, 0.5],
        [1.0, 0.2],
    ),
    "driven": (la.Lagrangian(driven, n=1, params={"k": 1.3}), [0.4], [0.7]),
}
METHODS = ["midpoint", "stormer-verlet", "simpson", "P2N2Q2Lob", "P3N3Q6Gau", "P3N5Q8Lob", "rk4", "rk4-lagrange"]


def central(f, x, digits):
    """df/dx for each entry of x, one column each, by central differences with a step of 10^(−digits/3)."""
    step = mpmath.mpf(10) ** (-digits // 3)
    columns = []
    for i in range(len(x)):
        ahead, behind = ([x[j] + (sign * step if i == j else 0) for j in range(len(x))] for sign in (1, -1))
        columns.append([(a - b) / (2 * step) for a, b in zip(f(ahead), f(behind), strict=True)])
    return np.array([[float(x) for x in column] for column in columns]).T


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("name", rest_slow(METHODS, ["stormer-verlet", "simpson", "P3N3Q6Gau", "rk4", "rk4-lagrange"]))
def test_tangent_map_against_differences_in_45_digits(system, name):
    system, q, p = SYSTEMS[system]
    n, steps, h, t, digits = system.n, 2, 0.11, 0.35, 45
    result = la.tangent(system, name, q, p, h, steps=steps, t0=t)
    with mpmath.workdps(digits):
        reference = Reference(system, la.method(name), digits)
        values = [mpmath.mpf(float(x)) for x in system.values()]
        varied = [mpmath.mpf(x) for x in (*q, *p)] + values + [mpmath.mpf(h)]

        def run(x):
            return reference.steps(steps, x[:n], x[n : 2 * n], x[-1], x[2 * n : -1], mpmath.mpf(t))

        expected, end = central(run, varied, digits), [float(x) for x in run(varied)]
    by_params = np.concatenate([np.reshape(x, (2 * n, -1)) for x in result.params.values()], axis=1)
    scale = np.abs(expected).max()
    np.testing.assert_allclose([*result.q, *result.p], end, rtol=0, atol=1e-14 * max(1, np.abs(end).max()))
    np.testing.assert_allclose(result.state, expected[:, : 2 * n], rtol=0, atol=2e-14 * scale)
    np.testing.assert_allclose(by_params, expected[:, 2 * n : -1], rtol=0, atol=2e-14 * scale)
    np.testing.assert_allclose(result.h, expected[:, -1], rtol=0, atol=2e-14 * scale)


@pytest.mark.parametrize(
    "name", ["simpson", "P6N6Q12Gau", pytest.param("P18N18Q36Gau", marks=pytest.mark.slow), "rk4", "rk4-lagrange"]
)
def test_tangent_along_a_path_is_the_product_of_the_steps(name):
    """By the fused kernel, by loops over the nodes, by LAPACK, and for RK4; stored states are those of a plain run."""
    system, q, p = SYSTEMS["double pendulum"]
    path = la.integrate(system, name, q, p, h=0.05, steps=300, every=7, tangent="all")
    plain = la.integrate(system, name, q, p, h=0.05, steps=300, every=7)
    assert (path.q == plain.q).all() and (path.p == plain.p).all()
    assert path.tangent.shape == (len(path), 4, 4) and path.sensitivity.shape == (len(path), 4, 5)
    assert plain.tangent is None and plain.sensitivity is None
    state_only = la.integrate(system, name, q, p, h=0.05, steps=300, every=7, tangent=True)
    np.testing.assert_allclose(state_only.tangent, path.tangent, rtol=0, atol=1e-11 * np.abs(path.tangent).max())
    every = la.integrate(system, name, q, p, h=0.05, steps=14)
    product = np.eye(4)
    for k in range(14):
        product = la.tangent(system, name, every.q[k], every.p[k], 0.05).state @ product
    np.testing.assert_allclose(path.tangent[2], product, rtol=0, atol=1e-12 * np.abs(product).max())


def test_tangent_survives_a_file(tmp_path):
    system, q, p = SYSTEMS["double pendulum"]
    path = la.integrate(system, "simpson", q, p, h=0.05, steps=10, tangent="all")
    path.save(tmp_path / "run.npz")
    again = la.Path.load(tmp_path / "run.npz")
    assert (again.tangent == path.tangent).all() and (again.sensitivity == path.sensitivity).all()


@pytest.mark.parametrize("n", [3, 40])
def test_tangent_of_a_quadratic_system_is_the_power_of_its_step(n):
    rng = np.random.default_rng(4)
    K = rng.standard_normal((n, n))
    system = la.Quadratic(np.eye(n), K @ K.T / n)
    q, p = rng.standard_normal((2, n))
    path = la.integrate(system, "simpson", q, p, h=0.2, steps=25, every=10, tangent=True)
    assert path.tangent.shape == (4, 2 * n, 2 * n)
    moved = np.einsum("kij,j->ki", path.tangent, np.concatenate([q, p]))
    np.testing.assert_allclose(moved, np.concatenate([path.q, path.p], axis=1), rtol=0, atol=1e-12)
    assert symplectic_defect(system, "simpson", q, p, h=0.2) < 1e-13
    with pytest.raises(ValueError, match="no parameters"):
        la.integrate(system, "simpson", q, p, h=0.2, steps=2, tangent="all")
    with pytest.raises(TypeError, match="tangent=True"):
        la.tangent(system, "simpson", q, p, 0.1)


def test_tangent_argument_is_checked():
    system, q, p = SYSTEMS["double pendulum"]
    with pytest.raises(ValueError, match="tangent must be True, False or 'all'"):
        la.integrate(system, "simpson", q, p, h=0.1, steps=1, tangent="some")


def test_sensitivity_to_a_parameter_is_that_of_the_exact_motion():
    """The oscillator: q = cos(ω t), so that ∂q/∂ω = −t sin(ω t) and ∂p/∂ω = −sin(ω t) − ω t cos(ω t)."""
    system = la.Lagrangian(lambda q, v, w: 0.5 * v[0] ** 2 - 0.5 * w**2 * q[0] ** 2, n=1, params={"w": 1.3})
    path = la.integrate(system, "P6N6Q12Gau", [1.0], [0.0], h=0.1, steps=80, tangent="all")
    t, w = path.t, 1.3
    np.testing.assert_allclose(path.sensitivity[:, 0, 0], -t * np.sin(w * t), rtol=0, atol=1e-12)
    expected = -np.sin(w * t) - w * t * np.cos(w * t)
    np.testing.assert_allclose(path.sensitivity[:, 1, 0], expected, rtol=0, atol=1e-12)
    # h grows with every step, so that after k steps ∂q/∂h = k q̇.
    k = np.arange(len(path))
    np.testing.assert_allclose(path.sensitivity[:, 0, 1], -k * w * np.sin(w * t), rtol=0, atol=1e-11)


@pytest.mark.parametrize("member", rest_slow([*family(4, 6)], [*family(3, 3)]), ids=str)
def test_the_family_is_symplectic_and_symmetric_to_round_off(member):
    for system, q, p in SYSTEMS.values():
        assert symplectic_defect(system, member, q, p, h=0.1) < 5e-15
        assert reversibility_defect(system, member, q, p, h=0.1) < 5e-15


@pytest.mark.parametrize("name, least, most", [("rk4", 4.8, 6.2), ("rk4-lagrange", 4.8, 6.2)])
def test_rk4_is_symplectic_to_order_five_only(name, least, most):
    """One step's defect has order h⁵, and h⁶ where the leading term vanishes, as on the harmonic oscillator."""
    system, q, p = SYSTEMS["double pendulum"]
    found = structure(system, name, q, p, [0.02, 0.01, 0.005])
    slopes = np.log2(found.symplectic[0, :-1] / found.symplectic[0, 1:])
    assert ((slopes > least) & (slopes < most)).all()
    assert (found.reversibility[0, :-1] / found.reversibility[0, 1:] > 2**4.8).all()
    assert name in repr(found)


def test_rk4_on_the_oscillator_has_defect_of_order_six():
    """|det Φ'| = 1 − x⁶/72 + x⁸/576, and the defect is √2 times what is missing to one."""
    system = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - 0.5 * q[0] ** 2, n=1)
    for x in (0.5, 0.25):
        expected = np.sqrt(2) * (x**6 / 72 - x**8 / 576)
        assert symplectic_defect(system, "rk4", [1.0], [0.0], h=x) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("name", ["midpoint", "simpson", "P3N3Q6Gau", "rk4"])
def test_lyapunov_exponents_of_the_inverted_pendulum(name):
    """L = ½ v² + ½ k² q²: one step multiplies by the eigenvalues of the iteration matrix at x = i h k."""
    k, h = 1.3, 0.2
    system = la.Lagrangian(lambda q, v, k: 0.5 * v[0] ** 2 + 0.5 * k**2 * q[0] ** 2, n=1, params={"k": k})
    M = iteration_matrix(name).subs(sympy.Symbol("x"), sympy.I * sympy.Rational(26, 100))
    expected = sorted((float(sympy.log(abs(x)).evalf(20)) / h for x in M.eigenvals()), reverse=True)
    result = lyapunov(system, name, [0.0], [0.0], h=h, steps=400, discard=100)
    np.testing.assert_allclose(result.exponents, expected, rtol=0, atol=1e-12)
    assert expected[0] == pytest.approx(k, rel=2e-2)


def henon_heiles(q, v):
    return 0.5 * (v @ v) - 0.5 * (q @ q) - q[0] ** 2 * q[1] + q[1] ** 3 / 3


def henon_heiles_start(E):
    q, p_y = np.array([0.0, -0.1]), 0.1
    V = 0.5 * q @ q - q[1] ** 3 / 3
    return q, np.array([np.sqrt(2 * (E - V) - p_y**2), p_y])


def test_henon_heiles_is_regular_at_low_energy_and_chaotic_near_escape():
    system = la.Lagrangian(henon_heiles, n=2)
    regular = lyapunov(system, "P3N3Q6Gau", *henon_heiles_start(1 / 12), h=0.1, steps=40000)
    chaotic = lyapunov(system, "P3N3Q6Gau", *henon_heiles_start(0.9999 / 6), h=0.1, steps=40000)
    assert regular.largest < 0.003
    assert 0.08 < chaotic.largest < 0.18  # about 0.13 in the literature
    assert chaotic.pairing < 1e-3 and chaotic.spread < 0.05
    assert "Lyapunov exponents of henon_heiles" in repr(chaotic)


def test_the_double_pendulum_is_chaotic_when_released_high():
    system, _, _ = SYSTEMS["double pendulum"]
    high = lyapunov(system, "P4N4Q8Gau", [2.0, 2.5], [0.0, 0.0], h=0.02, steps=20000)
    low = lyapunov(system, "P4N4Q8Gau", [0.1, 0.1], [0.0, 0.0], h=0.02, steps=20000)
    assert high.largest > 0.5 > 0.05 > low.largest
    with pytest.raises(ValueError, match="discard"):
        lyapunov(system, "simpson", [0.1, 0.1], [0.0, 0.0], h=0.02, steps=5, discard=5)
    with pytest.raises(ValueError, match="steps must be a positive integer; got 0"):
        lyapunov(system, "simpson", [0.1, 0.1], [0.0, 0.0], h=0.02, steps=0)


def test_figures():
    import matplotlib.pyplot as plt

    system, q, p = SYSTEMS["double pendulum"]
    assert structure(system, ["simpson", "rk4"], q, p, [0.1, 0.05]).plot().get_xlabel() == "step $h$"
    assert len(lyapunov(system, "simpson", q, p, h=0.02, steps=200).plot().lines) == 4
    plt.close("all")


def test_tangent_symmetries_and_equivalences_are_drawn():
    """Matrices with a label for every row and column."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    kepler = catalogued("kepler")
    for result, shape in (
        (la.tangent(kepler.system, "simpson", kepler.q0, kepler.p0, h=0.1), (4, 4)),
        (la.analysis.symmetries(kepler.system), (1, 6)),
        (la.analysis.equivalences("P3N3Q4Lob"), (3, 2)),
    ):
        ax = result.plot()
        assert ax.images[0].get_array().shape == shape
        assert (len(ax.get_yticklabels()), len(ax.get_xticklabels())) == shape
        plt.close(ax.figure)
