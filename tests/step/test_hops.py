"""Steps of one trajectory with constraints: what is watched or stored changes no bit, and lanes find the same."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la

Q0 = np.array([np.sin(0.3), -np.cos(0.3), np.sin(0.3) + 0.7 * np.sin(0.2), -np.cos(0.3) - 0.7 * np.cos(0.2)])


def two_points(q, v, g):
    return 0.5 * (v[:2] @ v[:2]) + v[2:] @ v[2:] - g * (q[1] + 2 * q[3])


def rods(q, l1, l2):
    return np.array([q[:2] @ q[:2] - l1**2, (q[2:] - q[:2]) @ (q[2:] - q[:2]) - l2**2])


def lifted(t, q, v, u):
    return np.array([0.0, u + 0.1 * np.sin(t), 0.0, 0.0])


PARAMS = {"g": 9.81, "l1": 1.0, "l2": 0.7}
FREE = la.Lagrangian(two_points, 4, PARAMS, constraints=rods)
DRIVEN = la.Lagrangian(two_points, 4, PARAMS, constraints=rods, force=lifted, inputs={"u": ()})


def run(system, h, steps, **given):
    if system is DRIVEN:
        given["inputs"] = {"u": np.cos(0.1 * np.arange(steps))}
    return la.integrate(system, "stormer-verlet", q0=Q0, v0=np.zeros(4), h=h, steps=steps, **given)


@pytest.mark.parametrize("system", [FREE, DRIVEN])
@pytest.mark.parametrize("h", [0.01, 0.08])
def test_what_is_watched_or_stored_changes_no_bit(system, h, tmp_path):
    """Steps go through a hop, a far hop or the kernels of `rattle`; which, does not depend on what is asked."""
    plain = run(system, h, 200)
    watched = run(system, h, 200, events={"up": la.Event(lambda q, p: q[3] - 5.0), "low": la.Event(lambda q, p: q[0])})
    assert len(watched.events["low"].t) > 0
    sparse = run(system, h, 200, every=8)
    if system is FREE:
        run(system, h, 101, store=tmp_path / "path.zarr")
        resumed = la.resume(tmp_path / "path.zarr", steps=99)
        np.testing.assert_array_equal(np.asarray(resumed.q[:]), plain.q)
        np.testing.assert_array_equal(np.asarray(resumed.p[:]), plain.p)
        varied = la.tangent(system, "stormer-verlet", Q0, np.zeros(4), h, steps=200)
        np.testing.assert_array_equal(varied.q, plain.q[-1])
    for name in ("q", "p"):
        np.testing.assert_array_equal(getattr(watched, name), getattr(plain, name))
        np.testing.assert_array_equal(getattr(sparse, name), getattr(plain, name)[::8])


@pytest.mark.parametrize("h", [0.001, 0.01, 0.03, 0.06, 0.1])
def test_hops_find_the_steps_that_lanes_find(h):
    """Lanes know no hops; at these steps two iterations are enough always, mostly, sometimes, and never."""
    steps = 300
    path = run(FREE, h, steps)
    beside = la.ensemble(FREE, "stormer-verlet", q0=np.array([Q0, Q0]), v0=np.zeros((2, 4)), h=h, steps=steps)
    np.testing.assert_allclose(path.q, beside.q[0], rtol=0, atol=1e-11)
    np.testing.assert_allclose(path.p, beside.p[0], rtol=0, atol=1e-10)
    held = np.array([rods(q, 1.0, 0.7) for q in path.q])
    assert np.abs(held).max() < 4e-16 * 8
    d, w = path.q[:, 2:] - path.q[:, :2], path.p[:, 2:] / 2 - path.p[:, :2]
    moving = [(path.q[:, :2] * path.p[:, :2]).sum(1), (d * w).sum(1)]
    assert np.abs(moving).max() < 1e-13
