"""Coarse steps beside the poles of a chart: none leaps over one, unless its momenta let it pass.

A spherical pendulum in angles with little p_φ is a pendulum with V = p_φ²/(2 sin²θ) − g cos θ: a barrier far narrower
than a step. The reference follows the root from h = 0 in plain NumPy.
"""

import numpy as np
import pytest

import leastaction as la
from continuation import follow_beside_poles
from seeds import generator
from thrift import rest_slow

# Such steps are too long for that, and warn.
pytestmark = pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning", "ignore::leastaction.ChartWarning")
SYSTEM = la.Lagrangian(
    lambda q, v, g: 0.5 * (v[0] ** 2 + (np.sin(q[0]) * v[1]) ** 2) + g * np.cos(q[0]), n=2, params={"g": 1.0}
)
PLANE = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
STEPS = 12


def starts(rng, count):
    """With p_φ of about 0.1, every other one with as little as ±10⁻⁶."""
    q0 = np.stack([rng.uniform(0.8, 2.2, count), np.zeros(count)], axis=1)
    p0 = rng.normal(size=(count, 2)) * [2.0, 0.1]
    p0[1::2, 1] = np.copysign(10.0 ** rng.uniform(-6, -1, len(p0[1::2])), p0[1::2, 1])
    return q0, p0


def alone(method, q0, p0, **how):
    """The states of each run, as far as it goes, and how many went to their end."""
    found, whole = [], 0
    for q, p in zip(q0, p0, strict=True):
        try:
            path = la.integrate(SYSTEM, method, q, p, steps=STEPS, **how)
            whole += 1
        except la.StepFailed as failed:
            path = failed.path
        found.append((path.q, path.p))
    return found, whole


def in_lanes(method, q0, p0, **how):
    many = la.ensemble(SYSTEM, method, q0=q0, p0=p0, steps=STEPS, **how)
    rows = [np.isfinite(q).all(axis=1) for q in many.q]
    return [(q[own], p[own]) for q, p, own in zip(many.q, many.p, rows, strict=True)], sum(own.all() for own in rows)


def reduced(g, w):
    """V′ and V″ of the pendulum with p_φ = w."""
    return (
        lambda x: g * np.sin(x) - w**2 * np.cos(x) / np.sin(x) ** 3,
        lambda x: g * np.cos(x) + w**2 * (1 + 2 * np.cos(x) ** 2) / np.sin(x) ** 4,
    )


def strays(method, g, h, states):
    """How many steps there are, and those with another root than the reference finds."""
    table, count, found = la.method(method).table, 0, []
    for q, p in states:
        potential = reduced(g, p[0, 1])
        for k in range(len(q) - 1):
            z = follow_beside_poles(table, *potential, q[k, 0], p[k, 0], h)
            count += 1
            if z is None or abs(q[k, 0] + z[-1] - q[k + 1, 0]) > 1e-7:
                found.append((q[k], p[k], q[k + 1], z))
    return count, found


@pytest.mark.parametrize("how", [alone, in_lanes])
@pytest.mark.parametrize(
    "s, groups", rest_slow([(4, 1), (6, 1), *((s, 5) for s in (4, 5, 6, 8, 12))], kept=[(4, 1), (6, 1)])
)
def test_no_step_leaps_over_a_pole(s, groups, how):
    rng, method, steps = generator(), f"P{s}N{s}Q{2 * s}Gau", 0
    drawn = 0
    while drawn < groups or steps < 8 * groups:  # with a long h all runs of a group may fail, as they should
        g, h = rng.uniform(0.0, 2.0), rng.uniform(0.3, 1.2)
        states, _ = how(method, *starts(rng, 8), h=h, params={"g": g})
        count, found = strays(method, g, h, states)
        assert not found, (g, h, found)
        steps, drawn = steps + count, drawn + 1
        assert drawn < 10 * groups


@pytest.mark.parametrize("momentum", [0.0, 1e-17, -1e-12])
def test_momenta_that_are_zero_let_a_motion_pass(momentum):
    """It is that of a pendulum in a plane, and none of its steps is continued."""
    path = la.integrate(SYSTEM, "P8N8Q16Gau", [1.0, 0.0], [0.4, momentum], h=0.3, steps=200)
    known = la.integrate(PLANE, "P8N8Q16Gau", [1.0], [0.4], h=0.3, steps=200)
    assert path.stats["continued"] == 0
    np.testing.assert_allclose(path.q[:, 0], known.q[:, 0], atol=1e-11)


@pytest.mark.parametrize("method", rest_slow(["P4N4Q8Gau", "P8N8Q16Gau"], ["P8N8Q16Gau"]))
def test_chance_does_not_stop_a_motion_at_a_pole(method):
    """However near to a pole a place between two nodes is. The seed is fixed: a node itself, at the distance x, sees
    the force p_φ²/x³, and one of some thousand runs has a node so near that its step cannot be solved.
    """
    rng, count = np.random.default_rng(20261118), 1000
    q0 = np.stack([rng.uniform(1.0, 1.6, count), np.zeros(count)], axis=1)
    p0 = np.stack([rng.uniform(-1, 1, count), 10.0 ** rng.uniform(-17, -12, count)], axis=1)
    many = la.ensemble(SYSTEM, method, q0=q0, p0=p0, h=0.3, steps=200)
    known = la.ensemble(PLANE, method, q0=q0[:, :1], p0=p0[:, :1], h=0.3, steps=200)
    assert (many.status == 0).all()
    np.testing.assert_allclose(many.q[:, :, 0], known.q[:, :, 0], atol=1e-6)
    small = la.integrate(SYSTEM, method, [1e-3, 0.0], [0.0, 1e-17], h=0.05, steps=400, params={"g": 9.81})
    assert small.stats["continued"] == 0
