"""Steps that their equations give at once: Störmer–Verlet and its like where the mass is constant."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from thrift import rest_slow

VERLET = la.method("stormer-verlet")
METHODS = {
    "stormer-verlet": VERLET,
    "left": la.galerkin(1, la.rule([0], [1])),
    "right": la.galerkin(1, la.rule([1], [1])),
    "uneven": la.galerkin(1, la.rule([0, 1], ["1/3", "2/3"])),
}


def random_system(seed: int) -> tuple[la.Lagrangian, np.ndarray, np.ndarray]:
    """A constant mass, dense or diagonal, given by parameters or written down; a potential that may depend on t; and a
    gauge term, d(g(t) b·q)/dt less its part in q, so that p = M v + g(t) b.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    A = rng.standard_normal((n, n))
    M = A @ A.T + n * np.eye(n) if seed % 2 else np.diag(rng.uniform(0.5, 2.0, n))
    a, b, c = rng.standard_normal((3, n))
    timed, gauged, given = seed % 3 == 0, seed % 5 == 0, seed % 4 < 2

    def lagrangian(t, q, v, M=M):
        w = M @ v
        L = 0.5 * v @ w - 0.5 * q @ q - np.sin(a @ q + (t if timed else 0.0)) - np.exp(-((q - c) @ (q - c)))
        return L + np.cos(t) * (b @ v) if gauged else L

    fn = lagrangian if given else lambda t, q, v: lagrangian(t, q, v)
    system = la.Lagrangian(fn, n=n, params={"M": M} if given else None)
    return system, rng.standard_normal(n), rng.standard_normal(n)


@pytest.mark.parametrize("seed", rest_slow(range(20), [0, 3, 4, 15]))
def test_many_steps_are_those_of_forty_digits(seed):
    """For any constant mass and any rule with its nodes at the ends."""
    system, q, p = random_system(seed)
    for method in METHODS.values():
        path = la.integrate(system, method, q0=q, p0=p, h=0.05, steps=40)
        assert path.stats["newton_iterations"] == 0
        exact = la.integrate(system, method, q0=q, p0=p, h="0.05", steps=40, digits=40)
        assert np.abs(path.q - np.array(exact.q, float)).max() < 1e-13
        assert np.abs(path.p - np.array(exact.p, float)).max() < 1e-13


@pytest.mark.parametrize("seed", rest_slow([3, 4, 15], [3, 4]))
def test_lanes_are_what_single_runs_are(seed):
    system, q, p = random_system(seed)
    rng = np.random.default_rng(seed)
    Q, P = q + 0.1 * rng.standard_normal((11, len(q))), p + 0.1 * rng.standard_normal((11, len(q)))
    many = la.ensemble(system, VERLET, q0=Q, p0=P, h=0.05, steps=50, every=10, reduce={"E": la.EnergyRange()})
    again = la.ensemble(system, VERLET, q0=Q, p0=P, h=0.05, steps=50, every=10)
    assert np.array_equal(many.q, again.q)
    for i in range(11):
        one = la.integrate(system, VERLET, q0=Q[i], p0=P[i], h=0.05, steps=50, every=10)
        assert np.abs(one.q - many.q[i]).max() < 1e-13 and np.abs(one.p - many.p[i]).max() < 1e-13


@pytest.mark.parametrize("seed", rest_slow([3, 4, 15], [4]))
@pytest.mark.parametrize("method", [VERLET, la.compose("stormer-verlet", "yoshida6")], ids=["one", "composed"])
def test_a_run_goes_on_bit_for_bit(tmp_path, seed, method):
    system, q, p = random_system(seed)
    whole = la.integrate(system, method, q0=q, p0=p, h=0.03, steps=300)
    la.integrate(system, method, q0=q, p0=p, h=0.03, steps=101, store=tmp_path / "run.zarr")
    parts = la.resume(tmp_path / "run.zarr", steps=199)
    assert np.array_equal(whole.q, parts.q) and np.array_equal(whole.p, parts.p)
    Q, P = np.stack([q, 1.1 * q, 0.9 * q]), np.stack([p, p, p])
    many = la.ensemble(system, method, q0=Q, p0=P, h=0.03, steps=300, every=50)
    la.ensemble(system, method, q0=Q, p0=P, h=0.03, steps=100, every=50, store=tmp_path / "many.zarr")
    rest = la.resume(tmp_path / "many.zarr", steps=200)
    assert np.array_equal(many.q, rest.q) and np.array_equal(many.p, rest.p)


@pytest.mark.parametrize("seed", rest_slow([3, 4, 15], [3]))
def test_a_composition_is_its_steps_one_after_the_other(seed):
    system, q, p = random_system(seed)
    method = la.compose("stormer-verlet", "yoshida")
    path = la.integrate(system, method, q0=q, p0=p, h=0.1, steps=7)
    assert path.stats["newton_iterations"] == 0
    t = 0.0
    for _ in range(7):
        for part in method.parts:
            one = la.integrate(system, VERLET, q, p, h=part * 0.1, steps=1, t0=t)
            q, p, t = one.q[-1], one.p[-1], t + part * 0.1
    assert np.abs(path.q[-1] - q).max() < 1e-13 and np.abs(path.p[-1] - p).max() < 1e-13


@pytest.mark.parametrize("seed", rest_slow([3, 4], [3]))
def test_the_tangent_map_is_symplectic_and_that_of_the_step(seed):
    system, q, p = random_system(seed)
    n, d = len(q), 1e-6
    D = la.tangent(system, VERLET, q, p, h=0.1, steps=5).state
    J = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
    assert np.abs(D.T @ J @ D - J).max() < 1e-12
    x = np.concatenate([q, p])
    for k in range(2 * n):
        ends = []
        for sign in (1, -1):
            y = x + sign * d * np.eye(2 * n)[k]
            path = la.integrate(system, VERLET, q0=y[:n], p0=y[n:], h=0.1, steps=5)
            ends.append(np.concatenate([path.q[-1], path.p[-1]]))
        assert np.abs((ends[0] - ends[1]) / (2 * d) - D[:, k]).max() < 1e-7


def test_it_goes_back_to_where_it_came_from():
    """Exact up to the carry: kick, drift and kick are the same numbers in both directions, but for rounding in sums."""
    system, q, p = random_system(1)
    there = la.integrate(system, VERLET, q0=q, p0=p, h=0.05, steps=1000, every=1000)
    back = la.integrate(system, VERLET, q0=there.q[-1], p0=there.p[-1], h=-0.05, steps=1000, every=1000)
    assert np.abs(back.q[-1] - q).max() < 1e-12 and np.abs(back.p[-1] - p).max() < 1e-12


def test_events_stop_and_turn_it():
    """A ball under constant gravity: each step is exact, so events are where the parabola has them."""
    ball = la.Lagrangian(lambda q, v: 0.5 * v @ v - q[0], n=1)
    floor = la.Impact(lambda q: q[0], restitution=0.5)
    path = la.integrate(ball, VERLET, q0=[1.0], p0=[0.0], h=0.1, t_end=3.0, events={"floor": floor})
    first = np.sqrt(2.0)
    assert path.events["floor"].t[:2] == pytest.approx([first, 2 * first], abs=1e-13)
    top = la.integrate(
        ball, VERLET, q0=[0.0], p0=[1.05], h=0.1, t_end=3.0,
        events={"top": la.Event(lambda q, p: p[0], stop=True)},
    )  # fmt: skip
    assert top.t[-1] == pytest.approx(1.05, abs=1e-13)
    many = la.ensemble(
        ball, VERLET, q0=np.array([[1.0], [0.5], [2.0]]), p0=np.zeros((3, 1)), h=0.1, t_end=3.0, events={"floor": floor}
    )
    for i, height in enumerate((1.0, 0.5, 2.0)):
        assert many.events["floor"].t[i][0] == pytest.approx(np.sqrt(2 * height), abs=1e-13)


def test_inputs_are_those_of_their_own_nodes():
    """An input that jumps between steps: the force at the end of a step is not that at the start of the next."""
    system = la.Lagrangian(lambda q, v: 0.5 * v @ v, n=1, force=lambda q, v, u: u, inputs={"u": 1})
    path = la.integrate(system, VERLET, q0=[0.0], p0=[0.0], h=0.5, steps=3, inputs={"u": [[1.0], [-2.0], [3.0]]})
    assert path.p[:, 0] == pytest.approx([0.0, 0.5, -0.5, 1.0])
    assert path.q[:, 0] == pytest.approx([0.0, 0.125, 0.125, 0.25])


def test_a_force_that_is_no_number_fails_and_says_where():
    """A particle that runs into the end of its potential."""
    system = la.Lagrangian(lambda q, v: 0.5 * v @ v - np.sqrt(1 - q[0]), n=1)
    with pytest.raises(la.StepFailed) as failed:
        la.integrate(system, VERLET, q0=[0.0], p0=[1.0], h=0.1, steps=100)
    path = failed.value.path
    assert 3 < len(path.t) < 12 and np.isfinite(path.q).all()
    paths = la.ensemble(system, VERLET, q0=[[0.0], [-30.0]], p0=[[1.0], [0.0]], h=0.1, steps=20)
    assert np.isfinite(paths.q[1]).all() and np.isnan(paths.q[0, -1]).all()


def test_angles_out_of_the_range_of_vectors():
    """Lanes compute no sine of angles beyond 2³⁰: such steps are solved alone until the angle comes back."""
    rotor = la.Lagrangian(lambda q, v: 0.5 * v @ v + np.cos(q[0]), n=1)
    far = 2.0**30
    Q, P = np.array([[far + 1.0], [0.3], [far + 0.2], [far - 0.2]]), np.array([[1.0], [0.0], [-1.0], [1.0]])
    many = la.ensemble(rotor, VERLET, q0=Q, p0=P, h=0.01, steps=50)
    for i in range(4):
        one = la.integrate(rotor, VERLET, q0=Q[i], p0=P[i], h=0.01, steps=50)
        place = np.spacing(abs(Q[i, 0]))  # rounding of q, which a force feels
        assert np.abs(one.q - many.q[i]).max() <= 4 * place
        assert np.abs(one.p - many.p[i]).max() <= 50 * 0.01 * 4 * place


def test_what_depends_on_velocities_is_iterated():
    drag = la.Lagrangian(lambda q, v: 0.5 * v @ v + np.cos(q[0]), n=1, force=lambda q, v: -0.1 * v)
    assert la.integrate(drag, VERLET, q0=[1.0], p0=[0.0], h=0.1, steps=3).stats["newton_iterations"] > 0
    bead = la.Lagrangian(lambda q, v: 0.5 * (1 + q[0] ** 2) * v @ v, n=1)
    assert la.integrate(bead, VERLET, q0=[1.0], p0=[1.0], h=0.1, steps=3).stats["newton_iterations"] > 0


def test_energy_does_not_drift():
    """A step of ½ p² + ½ q² keeps p² + (1 − h²/4) q² exactly: what is left in a million steps is rounding."""
    oscillator = la.Lagrangian(lambda q, v: 0.5 * v @ v - 0.5 * q @ q, n=1)
    last = []
    for size, step in zip(np.linspace(0.5, 1.0, 12), np.linspace(0.009, 0.011, 12), strict=True):
        path = la.integrate(oscillator, VERLET, q0=[size], p0=[0.0], h=step, steps=10**6, every=10**6)
        kept = path.p[:, 0] ** 2 + (1 - step**2 / 4) * path.q[:, 0] ** 2
        last.append((kept[-1] / kept[0] - 1) / np.finfo(float).eps)
    assert np.abs(last).max() < 100
    assert abs(np.mean(last)) < 4 * np.std(last, ddof=1) / np.sqrt(len(last))
