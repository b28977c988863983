"""Stiff systems whose derivatives have a pattern: steps are those of many digits, whatever the pattern is."""

from functools import partial

import numpy as np
import pytest

import leastaction as la
from precise import exact
from thrift import rest_slow

STIFF = 400.0


def springs(q, v, pairs):
    """Stiff springs between pairs, and pendulums."""
    i, j = np.array(pairs).T
    return 0.5 * v @ v + np.sum(np.cos(q)) - 0.5 * STIFF * np.sum((q[i] - q[j]) ** 2)


def turning(q, v, pairs):
    """The same in a magnetic field, with masses that depend on neighbours: X is not symmetric."""
    i, j = np.array(pairs).T
    return springs(q, v, pairs) + np.sum(np.sin(q[i]) * v[j]) + 0.1 * np.sum(np.cos(q[i]) * v[i] * v[j])


def linear(q, v, pairs):
    """Stiff springs, a magnetic field and a mass that couples neighbours: the derivatives are the same everywhere."""
    i, j = np.array(pairs).T
    mass = 0.5 * v @ v + 0.2 * np.sum(v[i] * v[j]) / len(i)
    return mass + np.sum(q[i] * v[j]) - 0.5 * STIFF * np.sum((q[i] - q[j]) ** 2)


def crossed(q, v):
    """A mass without a first pivot, and a stiff spring."""
    return v[0] * v[1] + 0.5 * v[2] ** 2 - 0.5 * STIFF * (q[1] - q[2]) ** 2 - 0.5 * q @ q + 0.2 * np.cos(q[0])


def row(n):
    return [(k, k + 1) for k in range(n - 1)]


PATTERNS = {
    "row": row(9),
    "ring": [*row(9), (8, 0)],
    "hub": [(0, k) for k in range(1, 9)],  # were it eliminated first, all others would depend on each other
    "ladder": [*row(5), *((5 + a, 5 + b) for a, b in row(5)), *((k, 5 + k) for k in range(5))],
    "apart": [(0, 4), (1, 5), (2, 6), (3, 7), (7, 8)],
    "all": [(a, b) for a in range(7) for b in range(a)],
}


def size(pairs):
    return 1 + max(max(pair) for pair in pairs)


@pytest.mark.parametrize("kind", [springs, turning, linear])
@pytest.mark.parametrize("name", rest_slow(PATTERNS, ["row", "ladder"]))
def test_stiff_steps_are_those_of_twenty_digits(kind, name):
    pairs = PATTERNS[name]
    system, n = la.Lagrangian(partial(kind, pairs=pairs), n=size(pairs)), size(pairs)
    start = {"q0": 0.3 + 0.01 * np.sin(np.arange(n)), "v0": np.full(n, 0.1), "h": 0.1, "steps": 4}
    path, (q, p) = la.integrate(system, "P3N3Q6Gau", **start), exact(system, "P3N3Q6Gau", **start)
    np.testing.assert_allclose(path.q, q, rtol=0, atol=2e-13)
    np.testing.assert_allclose(path.p, p, rtol=0, atol=2e-12)


def test_a_mass_whose_first_pivot_is_zero():
    system, start = la.Lagrangian(crossed, n=3), {"q0": [0.3, 0.2, 0.2], "v0": [0.1, 0.0, 0.1], "h": 0.1, "steps": 10}
    path, (q, _) = la.integrate(system, "P3N3Q6Gau", **start), exact(system, "P3N3Q6Gau", **start)
    np.testing.assert_allclose(path.q, q, rtol=0, atol=1e-13)
