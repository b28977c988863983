"""RK4 in lanes: the numbers of single runs, whatever goes on in the lanes beside."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.kernel import native_lanes
from leastaction.run import Status
from systems import case

FORMS = ["rk4", "rk4-lagrange"]


def random_starts(name, size):
    system, q0, v0 = case(name)
    rng = np.random.default_rng(3)
    return system, q0 + 0.1 * rng.normal(size=(size, system.n)), v0 + 0.1 * rng.normal(size=(size, system.n))


@pytest.mark.parametrize("method", FORMS)
@pytest.mark.parametrize("name", ["inseparable", "driven-pendulum", "charge", "double-pendulum"])
def test_lanes_do_what_single_runs_do(name, method):
    """To round-off: the compiler fuses other multiplications, and v(q, p) is one solution instead of Newton's last."""
    system, Q, V = random_starts(name, 7)
    paths = la.ensemble(system, method, Q, v0=V, h=0.02, steps=50, every=3, t0=0.3)
    assert paths.stats["lanes"] == native_lanes()
    for path, q, v in zip(paths, Q, V, strict=True):
        one = la.integrate(system, method, q, v0=v, h=0.02, steps=50, every=3, t0=0.3)
        np.testing.assert_array_equal(path.t, one.t)
        np.testing.assert_allclose(path.q, one.q, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(path.p, one.p, rtol=1e-12, atol=1e-12)


def test_momenta_that_are_not_linear_in_v_go_one_by_one():
    system, Q, V = random_starts("relativistic", 5)
    how = {"v0": V, "h": 0.02, "steps": 20}
    assert la.ensemble(system, "rk4", Q, **how).stats["lanes"] == 1
    lanes = la.ensemble(system, "rk4-lagrange", Q, **how)
    assert lanes.stats["lanes"] == native_lanes()
    np.testing.assert_allclose(lanes.q, la.ensemble(system, "rk4", Q, **how).q, atol=1e-7)


@pytest.mark.parametrize("method", FORMS)
def test_the_order_of_trajectories_and_threads_change_no_bit(method):
    system, Q, V = random_starts("double-pendulum", 23)
    how = {"h": 0.02, "steps": 60, "every": 7}
    paths = la.ensemble(system, method, Q, v0=V, threads=1, **how)
    order = np.random.default_rng(1).permutation(len(Q))
    other = la.ensemble(system, method, Q[order], v0=V[order], threads=2, **how)
    assert (other.q == paths.q[order]).all() and (other.p == paths.p[order]).all()


def falling(q, v):
    """A coordinate that must stay positive, and one that goes round."""
    return 0.5 * (v @ v) - np.sqrt(q[0]) + np.cos(q[1])


@pytest.mark.parametrize("method", FORMS)
def test_a_lane_in_trouble_does_not_disturb_the_others(tmp_path, method):
    """One falls out of the domain of L, one has an angle that vectors do not reduce, one cannot begin at all."""
    system = la.Lagrangian(falling, n=2)
    Q, V = np.tile([1.0, 0.5], (9, 1)), np.zeros((9, 2))
    V[:, 0] = 1.0
    V[2, 0], Q[4, 1], Q[6, 0] = -2.0, 2.0**40, -1.0
    how = {"h": 0.05, "steps": 40, "every": 4}
    paths = la.ensemble(system, method, Q, v0=V, **how)
    assert paths.failed[2] and 0 < paths.steps[2] < 40
    assert paths.status[6] == Status.NOT_FINITE and paths.steps[6] == 0
    with pytest.raises(la.StepFailed) as failed:
        la.integrate(system, method, Q[2], v0=V[2], **how)
    assert failed.value.step == paths.steps[2]
    well = np.array([0, 1, 3, 5, 7, 8])
    assert (paths.status[[*well, 4]] == Status.COMPLETE).all()
    alone = la.ensemble(system, method, Q[well], v0=V[well], **how)
    assert (paths.q[well] == alone.q).all() and (paths.p[well] == alone.p).all()
    far = la.integrate(system, method, Q[4], v0=V[4], **how)
    np.testing.assert_allclose(paths.q[4], far.q, rtol=1e-12)
    stored = la.ensemble(system, method, Q, v0=V, **how | {"steps": 13}, store=tmp_path / "run.zarr")
    stored = la.resume(tmp_path / "run.zarr", steps=27)
    np.testing.assert_array_equal(np.asarray(stored.q), paths.q)
    np.testing.assert_array_equal(np.asarray(stored.p), paths.p)
    np.testing.assert_array_equal(stored.status, paths.status)


def test_order_in_lanes():
    system, Q, V = random_starts("double-pendulum", 5)
    fine = la.ensemble(system, "P4N4Q8Gau", Q, v0=V, h=0.01, t_end=1.0, final_only=True)
    for method in FORMS:
        errors = [
            abs(la.ensemble(system, method, Q, v0=V, h=h, t_end=1.0, final_only=True).q - fine.q).max()
            for h in (0.05, 0.025)
        ]
        assert np.log2(errors[0] / errors[1]) == pytest.approx(4, abs=0.2)
