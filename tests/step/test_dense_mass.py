"""Steps with a dense mass: definite and not, ill-conditioned, stiff."""

import numpy as np
import pytest

import leastaction as la
from precise import exact
from thrift import rest_slow


def chain(q, v):
    """n equal links, each hanging from the one before: a dense mass, positive definite and ill-conditioned."""
    x, y = np.cumsum(np.cos(q) * v), np.cumsum(np.sin(q) * v)
    return 0.5 * np.sum(x**2 + y**2) + 9.81 * np.sum(np.cumsum(np.cos(q)))


def crossed(q, v):
    """A mass that is neither positive definite nor has a first pivot."""
    return v[0] * v[1] * (2 + np.cos(q[2])) + 0.3 * v[2] * (v[0] + v[2]) - 0.5 * q @ q + 0.2 * np.sin(q[0]) * q[1]


@pytest.mark.parametrize("n", rest_slow([3, 9, 18], [9]))
def test_steps_of_chains_are_those_of_twenty_digits(n):
    """Sizes with and without whole vectors and whole fours of rows. A mass is known to ε times its condition."""
    system, start = la.Lagrangian(chain, n=n), {"q0": np.linspace(0.5, 1.0, n), "v0": np.zeros(n), "h": 1e-3}
    path, (q, p) = la.integrate(system, "P3N3Q6Gau", **start, steps=4), exact(system, "P3N3Q6Gau", **start, steps=4)
    np.testing.assert_allclose(path.q, q, rtol=0, atol=1e-13)
    np.testing.assert_allclose(path.p, p, rtol=0, atol=1e-12 * np.abs(p).max())


@pytest.mark.parametrize("s", [1, 2, 4])
def test_a_mass_that_is_not_definite_is_eliminated_with_exchanges(s):
    system, start = la.Lagrangian(crossed, n=3), {"q0": [0.4, -0.2, 0.7], "v0": np.zeros(3), "h": 0.02, "steps": 10}
    path, (q, p) = (run(system, f"P{s}N{s}Q{2 * s}Gau", **start) for run in (la.integrate, exact))
    np.testing.assert_allclose(path.q, q, rtol=0, atol=1e-13)
    np.testing.assert_allclose(path.p, p, rtol=0, atol=1e-13)


def test_chords_end_where_rounding_of_momenta_hides_what_comes_next():
    """Twenty links: increments stand still at 10⁻¹³ of a step."""
    system, q0 = la.Lagrangian(chain, n=20), np.linspace(0.5, 1.0, 20)
    path = la.integrate(system, "P4N4Q8Gau", q0, v0=np.zeros(20), h=1e-3, steps=500)
    assert path.stats["continued"] == 0
    assert np.ptp(E := path.energy()) < 1e-14 * np.abs(E).max()


def stiff(n, reach, h, rng):
    """A dense mass, a dense stiffness with h ω = reach, and a start that excites all modes."""
    A, B = rng.normal(size=(2, n, n))
    K, M = A.T @ A, B @ B.T / n + 0.5 * np.eye(n)
    K *= (reach / h) ** 2 / np.abs(np.linalg.eigvals(np.linalg.solve(M, K))).max()
    modes, V = np.linalg.eigh(K)
    return M, K, V @ (rng.normal(size=n) * 0.5 / (1 + np.sqrt(modes))), rng.normal(size=n) * 0.5


def test_stiff_steps_with_a_dense_mass_are_those_of_twenty_digits():
    """Eight coordinates, all coupled, the mass and its change dense, h ω up to three: momenta are of order ten."""
    n, h = 8, 0.01
    M, K, q0, p0 = stiff(n, 3.0, h, np.random.default_rng(0))

    def L(q, v):
        return 0.5 * (v @ (M @ v)) * (1 + 0.1 * np.sin(q[0])) - 0.5 * (q @ (K @ q)) + np.sum(np.cos(q))

    path, (_, p) = (run(la.Lagrangian(L, n=n), "P3N3Q6Gau", q0, p0, h=h, steps=4) for run in (la.integrate, exact))
    np.testing.assert_allclose(path.p, p, rtol=0, atol=1e-12)
