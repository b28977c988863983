"""Units do not matter, and no coordinate hides another: each is judged on its own scale."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

import leastaction as la
from leastaction.backends import trajectories
from leastaction.backends.fused import programs

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


@pytest.mark.parametrize("V", [1e12, 1e16, 1e100])
@pytest.mark.parametrize("method", ["midpoint", "simpson", "P4N4Q8Gau", "P8N8Q16Gau"])
def test_a_fast_neighbour_does_not_hide_a_pendulum(method, V):
    """Fused and by the loops, one alone and in lanes."""
    alone = la.integrate(ALONE, method, [1.0], v0=[0.3], h=0.1, steps=30)
    options = {"v0": [V, 0.3], "h": 0.1, "steps": 30}
    found = [la.integrate(BESIDE, method, [0.0, 1.0], **options)]
    with mock.patch.object(programs, "MOST_INSTRUCTIONS", 0):
        trajectories.backend.cache_clear()
        found.append(la.integrate(BESIDE, method, [0.0, 1.0], **options))
    trajectories.backend.cache_clear()
    for path in found:
        np.testing.assert_allclose(path.q[:, 1:], alone.q, rtol=0, atol=1e-13)
    paths = la.ensemble(BESIDE, method, np.tile([0.0, 1.0], (5, 1)), v0=np.tile([V, 0.3], (5, 1)), h=0.1, steps=30)
    np.testing.assert_allclose(paths.q[:, :, 1:], np.tile(alone.q, (5, 1, 1)), rtol=0, atol=1e-13)


def scaled(q, v, a, c):
    """A double pendulum in coordinates a_j q_j, its Lagrangian times c."""
    x, u = q / a, v / a
    T = u[0] ** 2 + 0.5 * u[1] ** 2 + u[0] * u[1] * np.cos(x[0] - x[1])
    return c * (T + 9.81 * (2 * np.cos(x[0]) + np.cos(x[1])))


@pytest.mark.parametrize("method", ["midpoint", "simpson", "P4N4Q8Gau", "P8N8Q16Gau"])
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


@pytest.mark.parametrize("method", ["midpoint", "simpson", "P5N5Q10Gau"])
def test_a_coordinate_that_others_set_in_motion(method):
    """From rest the first moves by the square of another's velocity alone: in no first iteration, and as t⁴."""

    def coupled(q, v):
        return 0.5 * (v @ v) + 0.5 * np.cos(q[0] + q[1]) * v[1] ** 2 - 0.5 * q[1] ** 2

    path = la.integrate(la.Lagrangian(coupled, n=2), method, [0.0, 1.0], v0=[0, 0], h=0.05, steps=100)
    E = path.energy()
    assert abs(E - E[0]).max() < 1e-3 and path.q[1, 0] != 0 and path.stats["continued"] < 10
