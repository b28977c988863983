"""One trajectory with the points of its steps in vectors: its coordinates lie side by side, and z is found in full only
where somebody reads it.
"""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from systems import catalogued
from thrift import rest_slow

PROBLEMS = {"kepler": 0.1, "pleiades": 0.001, "outer-solar-system": 50.0, "double-pendulum": 0.02}  # and a step


def path_of(name, method="P5N5Q10Gau", steps=20, **options):
    problem = catalogued(name)
    return la.integrate(problem.system, method, problem.q0, problem.p0, h=PROBLEMS[name], steps=steps, **options)


@pytest.mark.parametrize("name", rest_slow([*PROBLEMS], ["outer-solar-system", "double-pendulum"]))
def test_some_coordinates_are_stored_as_among_all(name):
    """Their places in the state depend on how many coordinates fill a vector: n is 2, 14 and 18."""
    whole = path_of(name)
    n = whole.q.shape[1]
    for output in ([0], [n - 1], [n // 2, 0]):
        part = path_of(name, output=output)
        np.testing.assert_array_equal(part.q, whole.q[:, output])
        np.testing.assert_array_equal(part.p, whole.p[:, output])


@pytest.mark.parametrize(
    ("name", "s"),
    rest_slow(
        [("kepler", 3), ("kepler", 12), ("pleiades", 8), ("double-pendulum", 5)],
        [("kepler", 12), ("double-pendulum", 5)],
    ),
)
def test_who_reads_z_changes_no_step(name, s):
    """An event that never happens, or a tangent map, reads z."""
    plain = path_of(name, f"P{s}N{s}Q{2 * s}Gau")
    for reader in ({"events": {"far": la.Event(lambda q, p: q[0] - 1e9)}}, {"tangent": True}):
        path = path_of(name, f"P{s}N{s}Q{2 * s}Gau", **reader)
        np.testing.assert_array_equal(path.q, plain.q)
        np.testing.assert_array_equal(path.p, plain.p)


def test_compositions_hand_over_what_lies_side_by_side():
    """Two half steps are two steps."""
    plain = path_of("pleiades")
    problem = catalogued("pleiades")
    method = la.compose("P5N5Q10Gau", [0.5, 0.5])
    halves = la.integrate(problem.system, method, problem.q0, problem.p0, h=2 * PROBLEMS["pleiades"], steps=10)
    np.testing.assert_allclose(halves.q, plain.q[::2], rtol=0, atol=1e-13)
    np.testing.assert_allclose(halves.p, plain.p[::2], rtol=0, atol=1e-12)
