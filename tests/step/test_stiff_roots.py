"""Stiff steps that have one root within reach are solved without continuation."""

import numpy as np
import pytest

import leastaction as la

pytestmark = pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning")  # stiff steps are too long for that


def pendulums(q, v, k):
    g = 1 + 0.1 * np.sin(np.arange(len(q)))
    return 0.5 * v @ v + np.sum(g * np.cos(q)) - 0.5 * k * np.sum(np.diff(q) ** 2)


def run(n, method, k, steps, h=0.5):
    system = la.Lagrangian(pendulums, n=n, params={"k": k})
    return la.integrate(system, method, np.full(n, 0.5), v0=np.zeros(n), h=h, steps=steps)


@pytest.mark.parametrize("method", ["midpoint", "P2N2Q4Gau", "P6N6Q12Gau"])
def test_stiff_springs_leave_no_step_in_doubt(method):
    """h ω up to 30."""
    assert run(10, method, 900.0, 100).stats["continued"] == 0


def test_a_coordinate_that_turns_back_may_move_on():
    """Of fifty pendulums with soft springs one often moves by more than its latest steps told."""
    assert run(50, "midpoint", 1.0, 1000).stats["continued"] == 0


@pytest.mark.parametrize("method", ["midpoint", "simpson", "P3N3Q6Gau"])
def test_lanes_take_the_same_steps(method):
    system, rng = la.Lagrangian(pendulums, n=3, params={"k": 900.0}), np.random.default_rng(1)
    q = rng.uniform(-1, 1, (9, 3))
    paths = la.ensemble(system, method, q, v0=np.zeros((9, 3)), h=0.5, steps=20)
    for i in (0, 8):
        one = la.integrate(system, method, q[i], v0=np.zeros(3), h=0.5, steps=20)
        np.testing.assert_allclose(paths.q[i], one.q, atol=1e-10)


def firm(rng, n, dense, kind, most):
    """A random mass, random springs with h ω up to `most` (h = 1), and something that is not linear."""
    A, W = rng.standard_normal((2, n, n))
    M = np.eye(n) + 0.5 * A @ A.T / n if dense else np.diag(rng.uniform(0.5, 2, n))
    K = W @ W.T
    K *= most**2 / np.linalg.eigvals(np.linalg.solve(M, K)).real.max()
    a, f = rng.uniform(0.2, 1.0, n), rng.uniform(0, 6, n)

    def L(q, v):
        bent = np.sum(a * np.cos(q + f)) if kind == "cosines" else -0.03 * np.sum(a * q**4)
        return 0.5 * v @ M @ v - 0.5 * q @ K @ q + bent

    return la.Lagrangian(L, n=n)


@pytest.mark.parametrize(
    "n, s, kind, firmest", [(5, 2, "quartic", 20.0), (6, 4, "cosines", 30.0), (6, 4, "quartic", 20.0)]
)
def test_stiff_steps_from_random_starts_are_not_continued(n, s, kind, firmest):
    """Nor do their roots depend on the steps before."""
    rng, method = np.random.default_rng([n, s]), f"P{s}N{s}Q{2 * s}Gau"
    system = firm(rng, n, True, kind, firmest)
    path = la.integrate(system, method, rng.uniform(-1, 1, n), v0=rng.uniform(-1, 1, n), h=1.0, steps=40)
    assert path.stats["continued"] == 0
    single = la.ensemble(system, method, path.q[:-1:4], path.p[:-1:4], h=1.0, steps=1).q[:, 1]
    np.testing.assert_allclose(single, path.q[1::4], rtol=0, atol=1e-9)
