"""RK4 in lanes: the numbers of single runs, whatever goes on in the lanes beside. The tableau is data everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import leastaction as la
from leastaction.kernel import native_lanes
from leastaction.methods import RungeKutta4
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


def test_momenta_that_are_not_linear_in_v():
    system, Q, V = random_starts("relativistic", 5)
    how = {"v0": V, "h": 0.02, "steps": 20}
    paths = la.ensemble(system, "rk4", Q, **how)
    for path, q, v in zip(paths, Q, V, strict=True):
        one = la.integrate(system, "rk4", q, **how | {"v0": v})
        np.testing.assert_allclose(path.q, one.q, rtol=1e-12, atol=1e-12)
    lanes = la.ensemble(system, "rk4-lagrange", Q, **how)
    assert lanes.stats["lanes"] == native_lanes()
    np.testing.assert_allclose(lanes.q, paths.q, atol=1e-7)


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


@dataclass(frozen=True)
class ThreeEighths(RungeKutta4):
    """Kutta's other method of order four, whose a has no zeros below its diagonal."""

    c = tuple(Fraction(k, 3) for k in range(4))
    a = ((), (Fraction(1, 3),), (Fraction(-1, 3), Fraction(1)), (Fraction(1), Fraction(-1), Fraction(1)))
    b = tuple(Fraction(k, 8) for k in (1, 3, 3, 1))


def written_out(system, method, q, v, h, steps):
    """(q, p) after some steps by the tableau, from the mechanics of the system."""
    n, hamilton = system.n, method.form == "hamilton"

    def field(t, y):
        v = system.velocity(y[:n], y[n:], t) if hamilton else y[n:]
        rest = system.node([t], y[:n], v, system.values(None))["f"] if hamilton else system.acceleration(y[:n], v, t)
        return np.concatenate([v, rest])

    y = np.concatenate([q, system.momentum(q, v) if hamilton else v])
    for step in range(steps):
        k: list[np.ndarray] = []
        for c, a in zip(method.c, method.a, strict=True):
            k.append(field((step + float(c)) * h, y + h * sum(float(x) * rate for x, rate in zip(a, k, strict=True))))
        y = y + h * sum(float(b) * rate for b, rate in zip(method.b, k, strict=True))
    return y[:n], y[n:] if hamilton else system.momentum(y[:n], y[n:], steps * h)


@pytest.mark.parametrize("form", ["hamilton", "lagrange"])
@pytest.mark.parametrize("name", ["double-pendulum", "relativistic", "driven-pendulum"])
def test_another_tableau_is_taken_as_it_stands(name, form):
    """By the kernel of whole steps, in lanes, stage by stage with derivatives, and at 30 digits."""
    (system, q, v), method, steps = case(name), ThreeEighths(form), 5
    how = {"v0": v, "h": 0.05, "steps": steps}
    expected = written_out(system, method, q, v, 0.05, steps)
    plain = la.integrate(system, method, q, **how)
    varied = la.integrate(system, method, q, **how, tangent="all")
    digits = la.integrate(system, method, q, **how | {"h": "0.05"}, digits=30, tangent="all")
    lane = la.ensemble(system, method, np.array([q, q]), **how | {"v0": np.array([v, v])})[1]
    for path in (plain, varied, digits, lane):
        np.testing.assert_allclose(path.q[-1].astype(float), expected[0], rtol=0, atol=1e-13)
        np.testing.assert_allclose(path.p[-1].astype(float), expected[1], rtol=0, atol=1e-13)
    for found, exact in ((varied.tangent, digits.tangent), (varied.sensitivity, digits.sensitivity)):
        np.testing.assert_allclose(found, exact.astype(float), rtol=0, atol=1e-12 * np.abs(found).max())
    steep = [
        la.integrate(system, method, q + e * np.eye(len(q))[0], system.momentum(q, v), h=0.05, steps=steps)
        for e in (1e-5, -1e-5)
    ]
    slope = np.concatenate([(steep[0].q - steep[1].q)[-1], (steep[0].p - steep[1].p)[-1]]) / 2e-5
    np.testing.assert_allclose(varied.tangent[-1, :, 0], slope, rtol=0, atol=1e-8)
