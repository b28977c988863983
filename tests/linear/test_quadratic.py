"""Quadratic(M, K): what it accepts, what it refuses and why, energy, modes, exact motion."""

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.linalg import expm
from scipy.sparse import coo_matrix, csc_array, csr_array, diags_array

import leastaction as la
from leastaction import Samples
from leastaction.linear import Rayleigh, eliminate, free
from linear_systems import chain, definite, matrices, semidefinite, state

I2 = np.eye(2)


@pytest.mark.parametrize("wrap", [np.asarray, csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "M, K, error, message",
    [
        (np.ones((2, 3)), I2, ValueError, r"M must be square .* got shape \(2, 3\)"),
        (I2, np.ones((3, 2)), ValueError, r"K must be square"),
        (I2, np.eye(3), ValueError, r"M and K must have the same size; got \(2, 2\) and \(3, 3\)"),
        ([[1.0, 0.5], [0.4, 1.0]], I2, ValueError, r"M must be symmetric; the largest .* is 0\.1, 0\.1 of its largest"),
        (I2, [[1.0, 1e-6], [0.0, 1.0]], ValueError, r"K must be symmetric; .* 1e-06"),
        ([[1.0, 2.0], [2.0, 1.0]], I2, ValueError, r"M must be positive definite; it is indefinite: .* -1"),
        ([[1.0, 1.0], [1.0, 1.0]], I2, ValueError, r"M must be positive definite; it is singular"),
        (np.diag([1.0, 0.0]), I2, ValueError, r"M must be positive definite; it is singular: entry \(1, 1\) is 0"),
        (np.diag([1.0, -2.0]), I2, ValueError, r"M must be positive definite; it is indefinite: entry \(1, 1\) is -2"),
        (I2, np.diag([1.0, -2.0]), ValueError, r"K must not be indefinite: entry \(1, 1\)"),
        (I2, [[1.0, 2.0], [2.0, 1.0]], ValueError, r"K must not be indefinite: its smallest eigenvalue is -1"),
        (I2, I2 * (1 + 0j), TypeError, r"K must be real; got complex entries"),
        (I2, [[1.0, np.nan], [np.nan, 1.0]], ValueError, r"K has 2 entries that are NaN or infinite"),
        (np.diag([1.0, np.inf]), I2, ValueError, r"M has 1 entries that are NaN or infinite"),
    ],
)
def test_bad_matrices(wrap, M, K, error, message):
    with pytest.raises(error, match=message):
        la.Quadratic(wrap(M), wrap(K))


def test_other_bad_input():
    with pytest.raises(ValueError, match="different lengths"):
        la.Quadratic([[1.0], [0.0, 1.0]], I2)
    with pytest.raises(TypeError, match="cannot read 'a' as a number"):
        la.Quadratic(np.array([["a", "b"], ["c", "d"]]), I2)
    with pytest.raises(TypeError, match="entries of type"):
        la.Quadratic(np.array([["2020", "2021"], ["2021", "2020"]], dtype="datetime64[Y]"), I2)
    with pytest.raises(ValueError, match="empty"):
        la.Quadratic(np.zeros((0, 0)), np.zeros((0, 0)))
    with pytest.raises(ValueError, match=r"M and C must have the same size"):
        la.Quadratic(I2, I2, C=np.eye(3))
    with pytest.raises(ValueError, match="C must be symmetric"):
        la.Quadratic(I2, I2, C=[[1.0, 1.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match=r"load f\(t\) must give 2 real numbers"):
        la.Quadratic(I2, I2, f=lambda t: np.zeros(3))
    with pytest.raises(ValueError, match="not finite at t = 0"):
        la.Quadratic(I2, I2, f=lambda t: np.full(2, np.nan))
    with pytest.raises(ValueError, match="alpha"):
        Rayleigh(-1.0, 0.0)
    with pytest.raises(ValueError, match="two different positive frequencies"):
        Rayleigh.from_ratios((1.0, 0.1), (1.0, 0.2))
    with pytest.raises(ValueError, match="has no parameter"):
        la.integrate(la.Quadratic(I2, I2), "simpson", [1, 1], [0, 0], h=0.1, steps=1, params={"m": 1.0})
    with pytest.raises(ValueError, match="output must list degrees of freedom"):
        la.integrate(la.Quadratic(I2, I2), "simpson", [1, 1], [0, 0], h=0.1, steps=1, output=[2])
    with pytest.raises(ValueError, match=r"q0 must have shape \(2,\)"):
        la.integrate(la.Quadratic(I2, I2), "simpson", [1, 1, 1], [0, 0], h=0.1, steps=1)
    with pytest.raises(ValueError, match="give p0= or v0="):
        la.integrate(la.Quadratic(I2, I2), "simpson", [1, 1], h=0.1, steps=1)
    with pytest.raises(TypeError, match=r"la\.Quadratic\(M, K\)"):
        la.integrate(I2, "simpson", [1, 1], [0, 0], h=0.1, steps=1)


def test_an_indefinite_large_sparse_matrix_is_found():
    n = 3000
    d = np.full(n, 2.0)
    off = np.full(n - 1, -1.0)
    good = diags_array([d, off, off], offsets=[0, 1, -1], format="csr")
    la.Quadratic(good, good)
    bad = diags_array([d, 3 * off, 3 * off], offsets=[0, 1, -1], format="csr")
    with pytest.raises(ValueError, match="K must not be indefinite"):
        la.Quadratic(good, bad)
    with pytest.raises(ValueError, match="M must be positive definite; it is indefinite"):
        la.Quadratic(bad, good)


def test_round_off_of_assembly_is_forgiven_and_removed():
    K = np.array([[2.0, -1.0], [-1.0 - 1e-15, 2.0]])
    system = la.Quadratic(I2, K)
    np.testing.assert_array_equal(system.K, system.K.T)


def test_forms_of_input_are_the_same_system():
    dense = la.Quadratic(np.diag([2.0, 1.0]), np.diag([2.0, 1.0]))
    for M, K in (
        ([2.0, 1.0], [2.0, 1.0]),
        (np.array([2, 1]), np.diag([2, 1])),
        (csc_array(np.diag([2.0, 1.0])), [2.0, 1.0]),
        ([2.0, 1.0], coo_matrix(np.diag([2.0, 1.0]))),
    ):
        system = la.Quadratic(M, K)
        for a, b in ((system.M, dense.M), (system.K, dense.K)):
            np.testing.assert_array_equal(a.toarray() if system.sparse else a, b)
        np.testing.assert_array_equal(system.mass_diagonal, [2.0, 1.0])
    assert "sparse, n=2" in repr(la.Quadratic(csr_array(I2), I2))
    assert repr(la.Quadratic(I2, I2, C=Rayleigh(1.0))) == "Quadratic(dense, n=2, with damping)"
    assert la.Quadratic(3.0, 2.0).n == 1


def test_energy_momentum_velocity_on_one_state_and_on_rows():
    rng = np.random.default_rng(1)
    M, K = definite(rng, 3), semidefinite(rng, 3, 2)
    q, v = rng.standard_normal((2, 5, 3))
    for system in (la.Quadratic(M, K), la.Quadratic(csr_array(M), csr_array(K))):
        p = system.momentum(q, v)
        np.testing.assert_allclose(p, v @ M, atol=1e-14)
        np.testing.assert_allclose(system.velocity(q, p), v, atol=1e-13)
        H = np.array([0.5 * b @ M @ b + 0.5 * a @ K @ a for a, b in zip(q, v, strict=True)])
        np.testing.assert_allclose(system.energy(q, p), H, rtol=1e-13)
        assert system.energy(q[0], p[0]) == pytest.approx(H[0])
        assert isinstance(system.energy(q[0], p[0]), float)


@settings(max_examples=60)
@given(matrices())
def test_exact_motion(MK):
    """Against the exponential of the first-order form: also for zero and for repeated frequencies."""
    M, K = MK
    n = len(M)
    q0, p0 = state(n)
    A = np.block([[np.zeros((n, n)), np.linalg.inv(M)], [-K, np.zeros((n, n))]])
    system = la.Quadratic(M, K)
    q, p = system.exact(q0, p0, np.array([0.0, 0.7, 3.0]))
    for row, t in enumerate((0.0, 0.7, 3.0)):
        np.testing.assert_allclose(np.r_[q[row], p[row]], expm(t * A) @ np.r_[q0, p0], atol=1e-11)
    np.testing.assert_allclose(system.exact(q0, p0, 0.7)[0], q[1], atol=1e-14)


def test_exact_motion_of_repeated_and_zero_frequencies_over_long_times():
    """A free body with a triple frequency: the centre moves uniformly, for ever."""
    n = 4
    K = np.eye(n) - 1 / n  # one zero eigenvalue, three equal ones
    system = la.Quadratic(np.ones(n), K)
    q0, p0 = state(n)
    t = 1e6
    q, p = system.exact(q0, p0, t)
    assert system.modes().omega[0] == 0
    assert q.mean() == pytest.approx(q0.mean() + t * p0.mean(), rel=1e-13)
    assert p.sum() == pytest.approx(p0.sum(), rel=1e-13)
    np.testing.assert_allclose(q - q.mean(), (q0 - q0.mean()) * np.cos(t) + (p0 - p0.mean()) * np.sin(t), atol=1e-8)


def test_a_slow_mode_beside_a_fast_one_is_not_taken_for_a_free_body():
    system = la.Quadratic([1.0, 1.0], [1.0, 1e16])
    np.testing.assert_allclose(system.modes().omega, [1.0, 1e8], rtol=1e-14)
    np.testing.assert_allclose(system.exact([1, 0], [0, 0], np.pi)[0], [-1, 0], atol=1e-14)
    stiff = la.Quadratic([1.0, 1.0], [[1e12 + 1, -1e12], [-1e12, 1e12]])  # nearly one body of mass 2 on a spring of 1
    np.testing.assert_allclose(stiff.modes().omega[0] ** 2, 0.5, rtol=1e-3)


def test_exact_motion_is_refused_where_it_is_not_known():
    with pytest.raises(ValueError, match="damping or a load"):
        la.Quadratic(I2, I2, C=I2).exact([1, 1], [0, 0], 1.0)
    with pytest.raises(ValueError, match="not computed"):
        chain(2000).exact(np.zeros(2000), np.zeros(2000), 1.0)
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        la.Quadratic(I2, I2).exact([1], [0, 0], 1.0)


def test_fixed_degrees_of_freedom_are_eliminated():
    rng = np.random.default_rng(5)
    M, K, C = definite(rng, 5), semidefinite(rng, 5, 5), semidefinite(rng, 5, 5)
    keep = [1, 2, 4]
    mask = np.array([True, False, False, True, False])
    f = rng.standard_normal(5)
    times, values = np.linspace(0, 1, 6), rng.standard_normal((6, 5))
    for fixed in ([0, 3], mask, [-5, -2]):
        for wrap in (np.asarray, csr_array):
            system = la.Quadratic.without(fixed, wrap(M), wrap(K), C=wrap(C), f=f)
            for a, b in ((system.M, M), (system.K, K), (system.C, C)):
                np.testing.assert_array_equal(a.toarray() if system.sparse else a, b[np.ix_(keep, keep)])
            np.testing.assert_array_equal(system.f(0.0), f[keep])
    np.testing.assert_array_equal(la.Quadratic.without([0], np.arange(1.0, 4.0), np.eye(3)).mass_diagonal, [2, 3])
    assert la.Quadratic.without([0, 3], M, K, f=lambda t: t * f).f(2.0) == pytest.approx(2 * f[keep])
    assert la.Quadratic.without([0, 3], M, K, f=(times, values)).f(0.2) == pytest.approx(values[1, keep])
    np.testing.assert_array_equal(la.Quadratic(I2, I2, f=(1.0, 2.0)).f(0.0), [1, 2])
    np.testing.assert_array_equal(la.Quadratic.without([0], I2, I2, f=(1.0, 2.0)).f(0.0), [2])
    late = Samples(times + 5, values, rule="linear")  # it says nothing of t = 0
    assert la.Quadratic.without([0, 3], M, K, f=late).f(5.1) == pytest.approx(late(5.1)[keep])
    np.testing.assert_array_equal(eliminate(K, [0]), K[1:, 1:])
    np.testing.assert_array_equal(la.Quadratic.without([1], [1.0, 2.0], [3.0, 4.0]).K, [[3.0]])
    with pytest.raises(ValueError, match="indices below n = 5"):
        free(5, [7])
    with pytest.raises(TypeError, match="float64"):
        free(5, [0.5])
    with pytest.raises(ValueError, match="nothing is left"):
        free(2, [0, 1])
    with pytest.raises(ValueError, match=r"shape \(5,\)"):
        free(5, [True, False])


def test_load_from_samples():
    t = np.linspace(0, 1, 30)
    f = Samples(t, np.stack([np.sin(t), np.cos(t)], axis=1))
    np.testing.assert_allclose(f(0.5), [np.sin(0.5), np.cos(0.5)], atol=1e-7)
    np.testing.assert_allclose(Samples([0.0, 1.0], [[0.0], [2.0]], rule="linear")(0.25), [0.5])
    with pytest.raises(ValueError, match=r"known from t = 0 to 1; the run asks for t = 1\.5"):
        f(1.5)
    with pytest.raises(ValueError, match=r"shape \(2, n\)"):
        la.Quadratic([1.0], [1.0], f=Samples([0.0, 1.0], [1.0, 1.0]))


def test_an_almost_symmetric_matrix_becomes_symmetric_to_the_last_bit():
    """Entries that are small beside the largest may differ by more than a rounding error."""
    K = np.diag([1.0, 2.0, 3.0])
    K[0, 1], K[1, 0], K[0, 2] = 1e-12, 3.3e-13 / 7, 1e-13
    for K_given in (K, csr_array(K)):
        kept = la.Quadratic(np.ones(3), K_given).K
        again = la.Quadratic(np.ones(3), kept).K
        kept, again = (a if isinstance(a, np.ndarray) else a.toarray() for a in (kept, again))
        np.testing.assert_array_equal(kept, kept.T)
        np.testing.assert_array_equal(kept, again)
