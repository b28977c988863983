"""Derivatives carried along: by Programs and, of longer steps, in NumPy, against 30 digits."""

import numpy as np
import pytest

import leastaction as la
from leastaction.engine import form


def pendulums(t, q, v, m=1.0, g=9.81):
    kinetic = 0.5 * m * (2 * v[0] ** 2 + v[1] ** 2) + m * v[0] * v[1] * np.cos(q[0] - q[1])
    return kinetic + 2 * g * np.cos(q[0]) + g * np.cos(q[1]) + np.sin(t) * q[0] + v[1] * np.cos(q[0] + t)


@pytest.mark.parametrize("most", [form.LONGEST_ONCE, 0], ids=["Program", "NumPy"])
@pytest.mark.parametrize("method", ["simpson", "P4N4Q8Gau", "yoshida(simpson)"])
def test_derivatives_are_those_of_30_digits(monkeypatch, most, method):
    monkeypatch.setattr(form, "LONGEST_ONCE", most)
    system = la.Lagrangian(pendulums, 2)  # a new one: its engines are kept
    run = {"v0": [0.125, 0.25], "h": 0.0625, "t0": 0.25, "steps": 3, "tangent": "all"}
    path, exact = (la.integrate(system, method, [1.0, 2.0], digits=digits, **run) for digits in (None, 30))
    for name in ("tangent", "sensitivity"):
        one, many = getattr(path, name), getattr(exact, name).astype(float)
        np.testing.assert_allclose(one, many, rtol=0, atol=1e-14 * np.abs(many).max())  # some tens of eps
