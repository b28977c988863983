"""Motions over the pole of a chart, which their momenta let pass."""

import numpy as np
import pytest

import leastaction as la

# Such steps are too long for that, and warn.
pytestmark = pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning", "ignore::leastaction.ChartWarning")
SYSTEM = la.Lagrangian(
    lambda q, v, g: 0.5 * (v[0] ** 2 + (np.sin(q[0]) * v[1]) ** 2) + g * np.cos(q[0]), n=2, params={"g": 1.0}
)
PLANE = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)


@pytest.mark.parametrize("momentum", [0.0, 1e-17, -1e-12])
def test_momenta_that_are_zero_let_a_motion_pass(momentum):
    """It is that of a pendulum in a plane."""
    path = la.integrate(SYSTEM, "P8N8Q16Gau", [1.0, 0.0], [0.4, momentum], h=0.3, steps=200)
    known = la.integrate(PLANE, "P8N8Q16Gau", [1.0], [0.4], h=0.3, steps=200)
    np.testing.assert_allclose(path.q[:, 0], known.q[:, 0], atol=1e-11)
