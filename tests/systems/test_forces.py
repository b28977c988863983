"""Forces: order, closed forms, work and impulse, every backend, files, and what is refused."""

from __future__ import annotations

import pickle
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
import sympy as sp

import leastaction as la
from leastaction.errors import TraceError
from leastaction.methods import Galerkin
from leastaction.methods.quadrature import gauss, lobatto
from systems import catalogued

VALUES = {"m": 1.0, "g": 1.0, "c": 0.3, "w": 1.3}


def inseparable(q, v, m, g):
    """A mass that depends on q, and couples."""
    return 0.5 * m * (v[0] ** 2 + (1 + q[0] ** 2) * v[1] ** 2 + 0.6 * v[0] * v[1]) - g * np.cos(q[0] - q[1])


def push(t, q, v, c, w):
    """Friction, a motor, and a part whose derivatives f_q are not symmetric."""
    return np.array([-c * v[0] * np.sqrt(1 + v[0] ** 2) + np.sin(w * t) * q[1], -c * v[1] + 0.2 * q[0] * v[0]])


FORCED = la.Lagrangian(inseparable, 2, VALUES, force=push)
Q0, V0 = [0.3, 0.2], [0.5, -0.4]
START = {"q0": Q0, "v0": V0}

MEMBERS = [
    Galerkin(s, rule(r)) for s in range(1, 5) for rule in (gauss, lobatto) for r in (s, s + 1) if r > 1 or rule is gauss
]


def ends(method, counts, span, **options):
    found = []
    for N in counts:
        path = la.integrate(FORCED, method, h=span / N, steps=N, every=N, **START, **options)
        found.append(np.concatenate([path.q[-1], path.p[-1]]))
    return found


def order(errors):
    with mpmath.workdps(30):
        return [float(mpmath.log(a / b, 2)) for a, b in pairwise(errors)]


# Order min(2s, u), against a run of order 16.


@pytest.mark.parametrize("method", MEMBERS, ids=lambda m: m.name)
def test_order_of_the_family(method):
    (exact,) = ends("P8N8Q16Gau", [80], 2.0)
    counts = {2: (40, 80), 4: (20, 40), 6: (10, 20), 8: (8, 16)}[method.order]
    errors = [np.abs(end - exact).max() for end in ends(method, counts, 2.0)]
    assert abs(order(errors)[0] - method.order) < 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [Galerkin(s, rule(r)) for s in range(2, 7) for rule in (gauss, lobatto) for r in (s, s + 1)], ids=repr
)
def test_order_at_60_digits(method):
    found = ends(method, (16, 32, 64), Fraction(1), digits=60)
    with mpmath.workdps(60):
        errors = [max(abs(a - b)) for a, b in pairwise(found)]
    assert abs(order(errors)[0] - method.order) < 0.1


@pytest.mark.parametrize("name", ["rk4-hamilton", "rk4-lagrange"])
def test_rk4_takes_forces(name):
    (exact,) = ends("P8N8Q16Gau", [80], 2.0)
    errors = [np.abs(end - exact).max() for end in ends(name, (40, 80), 2.0)]
    assert abs(order(errors)[0] - 4) < 0.2


# Closed forms.


def test_viscous_damping():
    """q̈ + 2γ q̇ + ω² q = 0 by a Rayleigh function, for weak and strong damping, against its closed form."""
    system = la.Lagrangian(
        lambda q, v, omega: 0.5 * v[0] ** 2 - 0.5 * omega**2 * q[0] ** 2,
        1,
        {"omega": 2.0, "gamma": 0.1},
        dissipation=lambda q, v, gamma: gamma * v[0] ** 2,
    )
    for gamma in (0.1, 5.0):
        path = la.integrate(system, "P8N8Q16Gau", q0=[1.0], v0=[0.5], h=0.1, steps=100, params={"gamma": gamma})
        root = np.sqrt(complex(gamma**2 - 4.0))
        a, b = -gamma + root, -gamma - root
        A = (0.5 - b) / (a - b)
        exact = (A * np.exp(a * path.t) + (1 - A) * np.exp(b * path.t)).real
        np.testing.assert_allclose(path.q[:, 0], exact, rtol=0, atol=2e-14)


@pytest.mark.parametrize("name", ["simpson", "P3N3Q6Gau", "P4N5Q8Lob"])
def test_quadratic_drag(name):
    found = la.analysis.convergence(catalogued("quadratic-drag"), name, [1.0, 0.5, 0.25], t_end=4.0, digits=40)
    assert abs(found.order - la.method(name).order) < 0.2


def test_a_driving_force_written_both_ways():
    """f(t) as a force and as f(t) q in L: the same numbers, since both are the same summand of f."""

    def oscillator(q, v):
        return 0.5 * v[0] ** 2 - 0.5 * q[0] ** 2

    one = la.Lagrangian(oscillator, 1, force=lambda t, q, v: 0.5 * np.cos(1.4 * t))
    other = la.Lagrangian(lambda t, q, v: oscillator(q, v) + 0.5 * np.cos(1.4 * t) * q[0], 1)
    for name in ("simpson", "P4N4Q8Gau", "rk4"):
        paths = [la.integrate(system, name, q0=[1.0], p0=[0.0], h=0.1, steps=300) for system in (one, other)]
        np.testing.assert_allclose(paths[0].q, paths[1].q, rtol=0, atol=1e-13)
        np.testing.assert_allclose(paths[0].p, paths[1].p, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", ["midpoint", "simpson", "P3N3Q6Gau", "P4N5Q8Lob", "rk4"])
def test_quadratic_with_damping_and_load_is_the_same_system(name):
    rng = np.random.default_rng(3)
    A, B, G = rng.normal(size=(3, 3, 3))
    M, K, C, b = A @ A.T + 3 * np.eye(3), B @ B.T, 0.1 * G @ G.T, rng.normal(size=3)
    linear = la.Quadratic(M, K, C=C, f=lambda t: b * np.cos(2.2 * t))
    written = la.Lagrangian(
        lambda q, v: 0.5 * v @ M @ v - 0.5 * q @ K @ q, 3, force=lambda t, q, v: b * np.cos(2.2 * t) - C @ v
    )
    q0, p0 = rng.normal(size=(2, 3))
    one, other = (la.integrate(system, name, q0, p0, h=0.05, steps=200) for system in (linear, written))
    np.testing.assert_allclose(one.q, other.q, rtol=0, atol=1e-13)
    np.testing.assert_allclose(one.p, other.p, rtol=0, atol=1e-12)
    np.testing.assert_allclose(one.work(), other.work(), rtol=0, atol=1e-12)


# Every backend gives the same motion.


def test_lanes_are_single_runs():
    rng = np.random.default_rng(1)
    Q, V, c = rng.normal(size=(9, 2)), rng.normal(size=(9, 2)), rng.uniform(0.0, 0.5, 9)
    for name in ("simpson", "P4N4Q8Gau", "rk4"):
        paths = la.ensemble(FORCED, name, q0=Q, v0=V, params={"c": c}, h=0.05, steps=60, every=20)
        assert not paths.failed.any()
        for i in range(9):
            path = la.integrate(FORCED, name, Q[i], v0=V[i], params={"c": c[i]}, h=0.05, steps=60, every=20)
            np.testing.assert_allclose(paths.q[i], path.q, rtol=1e-13, atol=1e-13)
            np.testing.assert_allclose(paths[i].work(), path.work(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", ["midpoint", "P3N4Q6Lob", "rk4-hamilton", "rk4-lagrange"])
def test_digits_agree_with_float64(name):
    one = la.integrate(FORCED, name, h=0.05, steps=20, **START)
    other = la.integrate(FORCED, name, h=0.05, steps=20, digits=40, **START)
    np.testing.assert_allclose(one.q, other.q.astype(float), rtol=0, atol=1e-14)
    np.testing.assert_allclose(one.p, other.p.astype(float), rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ["simpson", "P3N3Q6Gau", "rk4-hamilton", "rk4-lagrange"])
def test_tangent_and_sensitivity(name):
    """By state, parameters and h, against differences of runs at 60 digits, and at 40 digits the same."""
    options = {"steps": 8, "every": 8}
    values = {"h": Fraction(1, 10), **{x: Fraction(v) for x, v in VALUES.items()}}
    start = [Fraction(x).limit_denominator(100) for x in (*Q0, "0.7", "-0.1")]

    def end(changed, by):
        at = [x + by * (k == changed) for k, x in enumerate([*start, *values.values()])]
        named = dict(zip(values, at[4:], strict=True))
        h = named.pop("h")
        path = la.integrate(FORCED, name, at[:2], at[2:4], h=h, params=named, digits=60, **options)
        return np.concatenate([path.q[-1], path.p[-1]])

    delta = Fraction(1, 10**20)
    with mpmath.workdps(60):
        columns = [(end(k, delta) - end(k, -delta)) / (2 * mpmath.mpf(10) ** -20) for k in range(9)]
    wanted = np.array(columns).T.astype(float)[:, [0, 1, 2, 3, 5, 6, 7, 8, 4]]
    for digits in (None, 40):
        path = la.integrate(FORCED, name, start[:2], start[2:], h="0.1", digits=digits, tangent="all", **options)
        found = np.concatenate([path.tangent[-1], path.sensitivity[-1]], axis=1).astype(float)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


def test_a_step_goes_back():
    """The family stays symmetric with forces: a step forward and one back end where they began."""
    p0 = FORCED.momentum(Q0, V0)
    for name in ("simpson", "P3N3Q6Gau"):
        assert la.analysis.reversibility_defect(FORCED, name, Q0, p0, 0.2, steps=5) < 1e-14


# Work and impulse.


@pytest.mark.parametrize("method", [*MEMBERS, la.method("rk4")], ids=lambda m: m.name)
def test_energy_less_work_has_the_methods_order(method):
    """Order 8 at 30 digits: in float64 round-off comes before it is seen."""
    counts, digits = {2: ((40, 80), None), 4: ((20, 40), None), 6: ((10, 20), None), 8: ((16, 32), 30)}[method.order]
    drifts = []
    for N in counts:
        path = la.integrate(FORCED, method, h=Fraction(2, N), steps=N, digits=digits, **START)
        with mpmath.workdps(30):
            left = path.energy() - path.work()
            drifts.append(max(abs(left - left[0])))
    assert max(abs(path.work())) > 0.01
    assert abs(order(drifts)[0] - method.order) < 0.2


@pytest.mark.parametrize("name", ["simpson", "rk4"])
def test_work_of_stored_states(name, tmp_path):
    """The same at every fifth state, and with 30 digits."""
    whole = la.integrate(FORCED, name, h=0.1, steps=23, **START).work()
    for options in ({}, {"digits": 30}, {"store": tmp_path / "run.zarr"}):
        path = la.integrate(FORCED, name, h="0.1", steps=23, every=5, **START, **options)
        np.testing.assert_allclose(path.work().astype(float), whole[[0, 5, 10, 15, 20, 23]], rtol=0, atol=1e-15)


def test_work_without_forces_is_zero():
    free = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2, 1)
    assert not la.integrate(free, "simpson", q0=[0.0], p0=[1.0], h=0.1, steps=5).work().any()
    assert (free.external_force([[0.0], [1.0]], [[1.0], [2.0]]) == np.zeros((2, 1))).all()


def test_a_momentum_changes_by_the_impulse_of_the_force():
    """Noether with forces: rotation and translation, to round-off, whatever the force does."""

    def two_bodies(q, v):
        x = q[:2] - q[2:]
        return 0.5 * (v[:2] @ v[:2]) + (v[2:] @ v[2:]) - 0.3 * (x @ x) ** 2

    def air(t, q, v):
        return -0.2 * v * np.sqrt(1 + v @ v) + 0.1 * np.cos(t) * np.array([1.0, 0.0, 0.3, q[0]])

    system = la.Lagrangian(two_bodies, 4, force=air)
    found = la.analysis.symmetries(system)
    assert len(found) == 4 and found.energy and "a force acts" in repr(found)
    for name in ("midpoint", "simpson", "P3N3Q6Gau"):
        path = la.integrate(system, name, q0=[1.0, 0.0, -0.4, 0.3], v0=[0.1, 0.5, 0.0, -0.2], h=0.1, steps=300)
        kept = found.check(path)
        assert all(one.exactly for one in kept if one.name != "energy"), kept
        momenta = found[0].momentum(path.q, path.p)
        assert np.abs(momenta - momenta[0]).max() > 0.01  # which the force has changed
    rk4 = la.integrate(system, "rk4", q0=[1.0, 0.0, -0.4, 0.3], v0=[0.1, 0.5, 0.0, -0.2], h=0.1, steps=300)
    assert not all(one.exactly for one in found.check(rk4))


# Analysis of forced systems.


def test_tools_that_need_conservation_refuse_forces():
    p0 = FORCED.momentum(Q0, V0)
    with pytest.raises(ValueError, match="not symplectic"):
        la.analysis.symplectic_defect(FORCED, "simpson", Q0, p0, 0.1)
    with pytest.raises(ValueError, match="not symplectic"):
        la.analysis.structure(FORCED, "simpson", Q0, p0, [0.1])
    with pytest.raises(ValueError, match="not symplectic"):
        la.analysis.symplectic_defect(la.Quadratic([1.0], [1.0], C=[0.1]), "simpson", [1.0], [0.0], 0.1)
    with pytest.raises(ValueError, match="its work changes the energy"):
        la.analysis.resonance(FORCED, "simpson", Q0, p0, [0.1, 0.2], t_end=1.0)
    driven = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), 1, force=lambda t, q, v: np.sin(t))
    assert la.analysis.symplectic_defect(driven, "simpson", [1.0], [0.5], 0.3) < 1e-14


def test_lyapunov_exponents_tell_the_contraction():
    """Their sum is the divergence of the flow: −2β for friction 2β v."""
    problem = catalogued("damped-driven-pendulum")
    found = la.analysis.lyapunov(problem.system, "simpson", problem.q0, problem.p0, h=0.01, steps=2000)
    assert found.exponents.sum() == pytest.approx(-2 * problem.params["beta"], rel=1e-6)
    assert "changes volumes" in repr(found)


def test_pictures_call_it_a_change_of_energy():
    system = la.Lagrangian(lambda q, v: 0.5 * (v @ v) - 0.5 * (q @ q), 2, force=lambda q, v: -0.1 * v)
    path = la.integrate(system, "simpson", q0=[1.0, 0.0], p0=[0.0, 1.0], h=0.1, steps=20)
    assert "energy change" in path.plot("energy").get_ylabel()
    from leastaction.results import looks

    assert not looks.invariants(system, {})


# Systems that travel keep their force.


def test_files_and_pickles_keep_the_force(tmp_path):
    options = {"h": 0.05, "every": 10, **START}
    whole = la.integrate(FORCED, "simpson", steps=200, **options)
    whole.save(tmp_path / "run.npz")
    loaded = la.Path.load(tmp_path / "run.npz")
    assert loaded.system.force == FORCED.force
    np.testing.assert_array_equal(loaded.work(), whole.work())
    la.integrate(FORCED, "simpson", steps=100, store=tmp_path / "run.zarr", **options)
    resumed = la.resume(tmp_path / "run.zarr", steps=100)
    np.testing.assert_array_equal(resumed.q[:], whole.q)
    assert la.open(tmp_path / "run.zarr").system.digest == FORCED.digest
    copy = pickle.loads(pickle.dumps(FORCED))
    assert copy.force == FORCED.force and "with a force" in repr(copy)


def test_a_file_with_another_force_is_refused():
    record = FORCED.record()
    free = la.Lagrangian.from_record({**record, "force": None})
    assert free.force is None and free.digest != FORCED.digest
    with pytest.raises(ValueError, match="Program of a force"):
        la.Lagrangian.from_record({**record, "force": record["program"]})
    with pytest.raises(ValueError, match="force"):
        la.Lagrangian.from_record({name: value for name, value in record.items() if name != "force"})


# Written in SymPy.


def test_sympy_and_numpy_are_one():
    x, y, u, w, c, k, t = sp.symbols("x y u w c k t")
    written = la.Lagrangian.from_sympy(
        (u**2 + w**2) / 2 - k * x**2 * y**2,
        [x, y],
        [u, w],
        t,
        {"k": 2, "c": "1/3"},
        force=[sp.sin(t) * y, -x * w],
        dissipation=c * (u**2 + u * w + w**2) / 2,
    )
    plain = la.Lagrangian(
        lambda q, v, k: 0.5 * (v @ v) - k * q[0] ** 2 * q[1] ** 2,
        2,
        {"k": 2, "c": "1/3"},
        force=lambda t, q, v: [np.sin(t) * q[1], -q[0] * v[1]],
        dissipation=lambda q, v, c: 0.5 * c * (v[0] ** 2 + v[0] * v[1] + v[1] ** 2),
    )
    q, v = np.random.default_rng(0).normal(size=(2, 7, 2))
    times = np.linspace(0, 2, 7)
    np.testing.assert_allclose(written.external_force(q, v, times), plain.external_force(q, v, times), rtol=1e-14)
    np.testing.assert_allclose(written.acceleration(q, v, times), plain.acceleration(q, v, times), rtol=1e-13)


# The problems.


@pytest.mark.parametrize("gamma, period", [("1.06", 1), ("1.078", 2), ("1.081", 4), ("1.0826", 8)])
def test_damped_driven_pendulum_doubles_its_period(gamma, period):
    """Taylor, Classical Mechanics, figure 12.8."""
    problem = la.problems.get("damped-driven-pendulum", gamma=gamma)
    path = la.integrate(problem.system, "P4N4Q8Gau", problem.q0, problem.p0, h=1 / 40, steps=4800, every=40)
    late = path.q[-17:, 0]
    repeats = [k for k in (1, 2, 4, 8) if np.abs(late[k:] - late[:-k]).max() < 1e-4]
    assert min(repeats) == period


def test_van_der_pol_returns_after_its_period():
    problem = catalogued("van-der-pol")
    data = problem.data(44)
    with mpmath.workdps(44):
        h = data.period / 80
    path = la.integrate(problem.system, "P14N14Q28Gau", data.q0, data.p0, h=h, steps=80, every=80, digits=44)
    assert max(abs(path.q[-1] - path.q[0])) < 1e-40 and max(abs(path.p[-1])) < 1e-40
    outside = la.integrate(problem.system, "simpson", q0=[0.1], p0=[0.0], h=0.02, steps=5000)
    assert np.abs(outside.q[-500:]).max() == pytest.approx(problem.q0[0], rel=1e-4)
    with pytest.raises(ValueError, match="mu"):
        la.problems.get("van-der-pol", mu=-1)


def test_quadratic_drag_refuses_what_its_solution_does_not_tell():
    with pytest.raises(ValueError, match="slower than"):
        la.problems.get("quadratic-drag", p0=40)
    with pytest.raises(ValueError, match="slower than"):
        la.problems.get("quadratic-drag", p0=-1)


# Bad input.


def kinetic(q, v, m):
    return 0.5 * m * (v @ v)


@pytest.mark.parametrize(
    ("force", "message"),
    [
        (lambda q, v: v[0], r"n = 2 components.*np\.array"),
        (lambda q, v: [v[0]], r"shape \(1,\).*n = 2 components"),
        (lambda q, v: np.outer(v, v), r"shape \(2, 2\)"),
        (lambda q, v: None, "returned None"),
        (lambda q, v: ["a", v[0]], "real numbers"),
        (lambda q, v: [1j, v[0]], "real numbers"),
        (lambda q, v: [np.inf, v[0]], "returned inf"),
        (lambda q: q, "the force will be called as fn"),
        (lambda q, v, friction: -friction * v, "the force will be called as fn"),
        (lambda q, v, t=0.0: v, "time is the first argument"),
        (lambda q, v: v[2], "n = 2 entries"),
    ],
)
def test_bad_forces(force, message):
    with pytest.raises(TraceError, match=message):
        la.Lagrangian(kinetic, 2, {"m": 1.0}, force=force)


def test_bad_forces_and_parameters():
    with pytest.raises(TypeError, match="force must be a function"):
        la.Lagrangian(kinetic, 2, {"m": 1.0}, force=[0.0, 1.0])
    with pytest.raises(TypeError, match="dissipation must be a function"):
        la.Lagrangian(kinetic, 2, {"m": 1.0}, dissipation=0.5)
    with pytest.raises(TraceError, match="none of the functions L, F takes 'drag'"):
        la.Lagrangian(kinetic, 2, {"m": 1.0, "drag": 0.1}, force=lambda q, v: -v)
    with pytest.raises(TraceError, match="D is one number"):
        la.Lagrangian(kinetic, 2, {"m": 1.0}, dissipation=lambda q, v: v**2)
    with pytest.raises(TraceError, match=r"n = 2 components.*got 1"):
        x, y, u, w = sp.symbols("x y u w")
        la.Lagrangian.from_sympy(u**2 + w**2, [x, y], [u, w], force=[-u])
    with pytest.raises(ValueError, match=r"give a value for \['c'\]"):
        la.Lagrangian.from_sympy(u**2 + w**2, [x, y], [u, w], force=[-u, -sp.Symbol("c") * w])
    hot = la.Lagrangian(kinetic, 2, {"m": 1.0}, force=lambda q, v: np.sqrt(q) - v)
    with pytest.raises(ValueError, match="acceleration is not finite at the start"):
        la.integrate(hot, "simpson", q0=[-1.0, 1.0], p0=[0.0, 0.0], h=0.1, steps=3)


def test_functions_take_the_parameters_they_name():
    """Keyword collectors get all; a function without a signature too."""
    system = la.Lagrangian(kinetic, 2, {"m": 2.0, "c": 0.5}, force=lambda q, v, **all_: -all_["c"] * v)
    np.testing.assert_allclose(system.acceleration([0.0, 0.0], [1.0, 2.0]), [-0.25, -0.5])
