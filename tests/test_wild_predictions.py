"""Where the last step's polynomial, prolonged, tells nothing of the next step, the linearised step predicts it."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la


def pendulums(q, v, k):
    """Pendulums in a row that springs couple."""
    g = 1 + 0.1 * np.sin(np.arange(len(q)))
    return 0.5 * v @ v + np.sum(g * np.cos(q)) - 0.5 * k * np.sum(np.diff(q) ** 2)


@pytest.mark.parametrize(("n", "s"), [(2, 8), (2, 16), (6, 8)])
def test_stiff_steps_are_not_continued(n, s):
    """With h ω up to 30 nearly all of 99 steps were: thirty times the time. Roots are those that continuation finds."""
    system, method = la.Lagrangian(pendulums, n=n, params={"k": 900.0}), f"P{s}N{s}Q{2 * s}Gau"
    path = la.integrate(system, method, np.full(n, 0.5), v0=np.zeros(n), h=0.5, steps=100)
    assert path.stats["continued"] <= 5
    single = la.ensemble(system, method, path.q[:-1], path.p[:-1], h=0.5, steps=1)
    np.testing.assert_allclose(single.q[:, 1], path.q[1:], rtol=0, atol=1e-11)
