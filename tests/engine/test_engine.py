"""The engine to come, beside the loops: the same motions, alone and in lanes, in pieces and from a state."""

import numpy as np
import pytest

import leastaction as la
from leastaction.engine.stepper import FormStepper
from leastaction.kernel import native_lanes
from leastaction.step.stepper import Start


def pendulums(q, v, m, g):
    T = 0.5 * m * (2 * v[0] ** 2 + v[1] ** 2 + 2 * v[0] * v[1] * np.cos(q[0] - q[1]))
    return T + m * g * (2 * np.cos(q[0]) + np.cos(q[1]))


def springs(q, v, k):
    ends = [q[0], *(q[i] - q[i - 1] for i in range(1, len(q))), -q[-1]]
    return 0.5 * v @ v - sum(0.5 * k * d * d + 0.25 * d**4 for d in ends)


def orbit(q, v):
    return 0.5 * v @ v + 1 / np.sqrt(q @ q)


PENDULUMS = la.Lagrangian(pendulums, n=2, params={"m": 1.0, "g": 9.81})
SPRINGS = la.Lagrangian(springs, n=6, params={"k": 1e4})
ORBIT = la.Lagrangian(orbit, n=2)
CASES = {
    "explicit": (ORBIT, "stormer-verlet", 0.01, [1.0, 0.0], [0.0, 1.1]),
    "forces alone": (ORBIT, "P8N8Q16Gau", 0.2, [1.0, 0.0], [0.0, 1.1]),
    "stiff": (SPRINGS, "P3N3Q6Gau", 0.05, np.sin(np.arange(1, 7)), np.zeros(6)),
    "a mass at every node": (PENDULUMS, "P4N4Q8Gau", 0.05, [1.0, 0.8], [0.0, 0.1]),
    "Newton": (PENDULUMS, "simpson", 0.02, [1.0, 0.8], [0.0, 0.1]),
    "mass chords": (PENDULUMS, "P3N4Q6Lob", 0.02, [1.0, 0.8], [0.0, 0.1]),
    "a composition": (PENDULUMS, "yoshida", 0.02, [1.0, 0.8], [0.0, 0.1]),
}
STEPS = 40


def stepper(name, q=None, p=None, lanes=1):
    system, method, h, q0, p0 = CASES[name]
    method = la.compose("simpson", "yoshida") if method == "yoshida" else la.method(method)
    q, p = (np.asarray(a if b is None else b, float) for a, b in ((q0, q), (p0, p)))
    params = np.array([*system.params.values()], float)
    params = params if lanes == 1 else np.tile(params, (len(q), 1))
    return FormStepper(system, method, Start(0.0, q, p, np.zeros_like(q), h, params), lanes=lanes)


def run(stepper, cuts=(STEPS,)):
    rows, begun = np.zeros((stepper.size, STEPS, 2 * stepper.engine.step.n)), 0
    for end in cuts:
        assert stepper.advance(end - begun, 1, 1, rows) == end - begun
        begun = end
    return rows


@pytest.mark.parametrize("name", CASES)
def test_the_motion_is_that_of_the_loops(name):
    """Both solve the same equations to rounding; forty steps multiply it by a few powers of ten at most."""
    system, method, h, q0, p0 = CASES[name]
    method = la.compose("simpson", "yoshida") if method == "yoshida" else method
    path = la.integrate(system, method, q0, p0, h=h, steps=STEPS)
    (rows,) = run(stepper(name))
    np.testing.assert_allclose(rows, np.hstack([path.q, path.p])[1:], rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", CASES)
def test_pieces_and_states_change_no_bit(name):
    whole = run(stepper(name))
    assert np.array_equal(run(stepper(name), (1, 7, 23, STEPS)), whole)
    first, again = stepper(name), stepper(name)
    rows = np.zeros_like(whole)
    first.advance(11, 1, 1, rows)
    again.restore(first.state())
    again.advance(STEPS - 11, 1, 1, rows)
    assert np.array_equal(rows, whole)


@pytest.mark.parametrize("name", CASES)
def test_a_lane_does_not_depend_on_its_neighbours(name):
    _, _, _, q0, p0 = CASES[name]
    W, rng = native_lanes(), np.random.default_rng(3)
    q = np.asarray(q0) + 0.05 * rng.normal(size=(W + 1, len(q0)))
    p = np.tile(p0, (W + 1, 1))
    together = run(stepper(name, q, p, W))
    order = np.roll(np.arange(W + 1), 2)
    assert np.array_equal(run(stepper(name, q[order], p[order], W)), together[order])
    alone = run(stepper(name, q[2], p[2]))
    np.testing.assert_allclose(alone[0], together[2], rtol=0, atol=1e-9)


def test_a_trajectory_ends_where_numbers_end():
    """Free fall onto the attracting centre: the states before stay, and the others go on."""
    q, p = np.array([[1.0, 0.0], [0.01, 0.0], [1.0, 0.2]]), np.array([[0.0, 1.0], [0.0, 0.0], [0.1, 1.0]])
    system = la.Lagrangian(lambda q, v: 0.5 * v @ v - np.sqrt(q[0]), n=2)
    start = Start(0.0, q, p, p, 0.1, np.zeros((3, 0)))
    found = FormStepper(system, la.method("stormer-verlet"), start, lanes=native_lanes())
    rows = np.zeros((3, 5, 4))
    found.advance(5, 1, 1, rows)
    assert found.status()[1] != 0 and found.steps()[1] < 5
    assert (found.status()[[0, 2]] == 0).all() and np.isfinite(rows[[0, 2]]).all()
