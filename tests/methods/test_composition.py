"""Compositions: factors known by name, orders found, and every kind of run."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import leastaction as la
from orders import kepler_order, spring_order
from systems import case, catalogued

YOSHIDA = la.compose("verlet", "yoshida")
SIMPSON = la.compose("simpson", ["2/5", "1/5", "2/5"])


def test_factors_are_those_of_the_books():
    w = 1 / (2 - 2 ** (1 / 3))
    np.testing.assert_allclose(YOSHIDA.parts, [w, 1 - 2 * w, w], rtol=1e-15)
    u = 1 / (4 - 4 ** (1 / 3))
    np.testing.assert_allclose(la.compose("verlet", "suzuki").parts, [u, u, 1 - 4 * u, u, u], rtol=1e-15)
    u = 1 / (4 - 4 ** (1 / 5))
    np.testing.assert_allclose(la.compose("simpson", "suzuki").parts, [u, u, 1 - 4 * u, u, u], rtol=1e-15)
    six = la.compose("midpoint", "yoshida6").parts
    np.testing.assert_allclose(
        six[:4], [0.78451361047755726, 0.23557321335935813, -1.177679984178871, 1.31518632068391]
    )
    eight = la.compose("midpoint", "yoshida8").parts
    assert eight[7] == pytest.approx(1.7084530707869978, rel=1e-13)  # w_0, printed by Yoshida as 1 − 2 Σ w_i
    for known in ("yoshida6", "yoshida8", "suzuki8"):
        gamma = la.compose("midpoint", known).factors(60)
        with mpmath.workdps(60):
            for k, total in ((1, 1), (3, 0), (5, 0)):
                assert abs(mpmath.fsum(g**k for g in gamma) - total) < mpmath.mpf(10) ** -58


@pytest.mark.parametrize(
    ("base", "factors", "order", "symmetric"),
    [
        ("verlet", "yoshida", 4, True),
        ("midpoint", "suzuki", 4, True),
        ("simpson", "suzuki", 6, True),
        ("midpoint", "yoshida6", 6, True),
        ("midpoint", "suzuki8", 8, True),
        ("midpoint", "yoshida8", 8, True),
        ("simpson", ["1/2", "1/2"], 4, True),
        ("verlet", ["1/3", "2/3"], 2, False),
        ("P1N1Q1RadR", ["1/2", "1/2"], 1, False),
        ("verlet", [1.3512071919596578, -1.7024143839193153, 1.3512071919596578], 4, True),
        (la.compose("verlet", "suzuki"), "yoshida", 6, True),
    ],
)
def test_order_and_symmetry_are_found(base, factors, order, symmetric):
    made = la.compose(base, factors)
    assert (made.order, made.found_order(), made.symmetric) == (order, order, symmetric)
    again = la.method(made.text)
    assert again == made and again.order == order


@pytest.mark.parametrize(
    "method",
    [
        YOSHIDA,
        la.compose("midpoint", "suzuki"),
        la.compose("verlet", "yoshida6"),
        pytest.param(la.compose("verlet", "suzuki8"), marks=pytest.mark.slow),
        la.compose("simpson", "yoshida"),
        la.compose("verlet", ["1/3", "2/3"]),
        pytest.param(la.compose("midpoint", "yoshida8"), marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_orders_in_runs(method):
    assert abs(kepler_order(method, 32) - method.order) < 0.1
    if method.order < 8:
        assert abs(spring_order(method, 32) - method.order) < 0.1


def by_hand(system, method, q, p, h, steps, t=0.0, **how):
    """The steps one after the other, each a run of its own."""
    states = [np.concatenate([q, p])]
    for _ in range(steps):
        for part in method.parts:
            path = la.integrate(system, method.root, q, p, h=part * h, steps=1, t0=t, **how)
            q, p, t = path.q[-1], path.p[-1], t + part * h
        states.append(np.concatenate([q, p]))
    return np.array(states)


@pytest.mark.parametrize("name", ["inseparable", "kepler-3d", "pendulum"])
@pytest.mark.parametrize("method", [YOSHIDA, SIMPSON], ids=repr)
def test_a_step_is_steps_one_after_the_other(name, method):
    system, q0, v0 = case(name)
    path = la.integrate(system, method, q0, v0=v0, h=0.05, steps=12)
    expected = by_hand(system, method, path.q[0], path.p[0], 0.05, 12)
    np.testing.assert_allclose(np.concatenate([path.q, path.p], axis=1), expected, rtol=1e-12, atol=1e-13)


def test_time_goes_on_within_a_step():
    system = la.Lagrangian(lambda t, q, v: 0.5 * v[0] ** 2 + np.cos(q[0] - 2 * t), n=1)
    path = la.integrate(system, YOSHIDA, [0.3], [0.1], h=0.1, steps=10, t0=0.7)
    expected = by_hand(system, YOSHIDA, [0.3], [0.1], 0.1, 10, 0.7)
    np.testing.assert_allclose(np.concatenate([path.q, path.p], axis=1), expected, rtol=1e-13, atol=1e-14)


def test_lanes_are_paths_and_threads_do_not_matter():
    system, q0, v0 = case("inseparable")
    starts = np.array(q0, float) + 0.01 * np.arange(11)[:, None]
    paths = la.ensemble(system, YOSHIDA, starts, v0=v0, h=0.05, steps=20, every=5)
    for k in (0, 3, 10):
        one = la.integrate(system, YOSHIDA, starts[k], v0=v0, h=0.05, steps=20, every=5)
        np.testing.assert_allclose(paths.q[k], one.q, rtol=1e-12, atol=1e-13)
    again = la.ensemble(system, YOSHIDA, starts, v0=v0, h=0.05, steps=20, every=5, threads=1)
    np.testing.assert_array_equal(again.q, paths.q)
    watched = la.ensemble(system, YOSHIDA, starts[:2], v0=v0, h=0.05, steps=20, reduce={"E": la.EnergyRange()})
    energy = np.array([la.integrate(system, YOSHIDA, q, v0=v0, h=0.05, steps=20).energy() for q in starts[:2]])
    np.testing.assert_allclose(watched.reduced["E"][:, 0], energy.min(axis=1), rtol=1e-13)


@pytest.mark.parametrize("name", ["yoshida", "suzuki", "yoshida6", "suzuki8"])
def test_factors_are_known_to_all_digits(name):
    """Σ w = 1 and Σ w³ = 0, without which there is no order above two."""
    w = la.compose("midpoint", name).factors(60)
    with mpmath.workdps(80):
        assert abs(mpmath.fsum(w) - 1) < mpmath.mpf(10) ** -60
        assert abs(mpmath.fsum(x**3 for x in w)) < mpmath.mpf(10) ** -60


@pytest.mark.parametrize("digits", [None, 30])
def test_derivatives_by_state_parameters_and_h(digits):
    """Against central differences, with a Lagrangian that depends on t."""
    system = la.Lagrangian(lambda t, q, v, m: 0.5 * m * v[0] ** 2 + np.cos(q[0] - t), n=1, params={"m": 2})
    how = {"steps": 5, "digits": digits}
    path = la.integrate(system, SIMPSON, [1], [0.3], h="1/10", tangent="all", **how)

    def end(q=0, p=0, m=0, h=0):
        with mpmath.workdps(30):
            given = mpmath.mpf(1) + q, mpmath.mpf("0.3") + p, mpmath.mpf(2) + m, mpmath.mpf(1) / 10 + h
        run = la.integrate(system, SIMPSON, [given[0]], [given[1]], h=given[3], params={"m": given[2]}, **how)
        return np.array([run.q[-1, 0], run.p[-1, 0]])

    with mpmath.workdps(30):
        e = mpmath.mpf(10) ** (-9 if digits else -5)
        slopes = [(end(**{x: e}) - end(**{x: -e})) / (2 * e) for x in "qpmh"]
        found = np.concatenate([path.tangent[-1], path.sensitivity[-1]], axis=1).T
        assert abs(found - np.array(slopes)).max() < (1e-15 if digits else 1e-8)


@pytest.mark.parametrize("digits", [None, 25])
@pytest.mark.parametrize("how", [{}, {"tangent": True}, {"every": 3, "output": [1]}])
def test_stored_and_resumed_bit_for_bit(tmp_path, digits, how):
    pytest.importorskip("zarr")
    system, q0, v0 = case("inseparable")
    given = {"v0": v0, "h": "1/20", "digits": digits, **how}
    whole = la.integrate(system, YOSHIDA, q0, steps=12, **given)
    la.integrate(system, YOSHIDA, q0, steps=6, store=tmp_path / "a.zarr", **given)
    again = la.resume(tmp_path / "a.zarr", steps=6)
    assert again.method == YOSHIDA
    for name in ("q", "p", *(["tangent"] if "tangent" in how else [])):
        assert (np.asarray(getattr(again, name)) == getattr(whole, name)).all()


def test_ensembles_are_stored_and_resumed(tmp_path):
    pytest.importorskip("zarr")
    system, q0, v0 = case("inseparable")
    starts = np.array(q0, float) + 0.01 * np.arange(5)[:, None]
    whole = la.ensemble(system, YOSHIDA, starts, v0=v0, h=0.05, steps=12, every=4)
    la.ensemble(system, YOSHIDA, starts, v0=v0, h=0.05, steps=4, every=4, store=tmp_path / "a.zarr")
    np.testing.assert_array_equal(np.asarray(la.resume(tmp_path / "a.zarr", steps=8).q), whole.q)


def test_a_failure_inside_a_step_leaves_the_state_before_it():
    """Forward it is the first step of Yoshida's that leads where √q is no number; from near there, the second."""
    system = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + 0.01 * np.sqrt(q[0]), n=1)
    for digits in (None, 20):
        with pytest.raises(la.StepFailed) as caught:
            la.integrate(system, YOSHIDA, [0.7], [-1.0], h=0.2, steps=10, digits=digits)
        path = caught.value.path
        assert 2 < len(path) < 6
        expected = by_hand(system, YOSHIDA, [0.7], [-1.0], 0.2, len(path) - 1)
        found = np.concatenate([path.q, path.p], axis=1).astype(float)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        with pytest.raises(la.StepFailed) as caught:
            la.integrate(system, YOSHIDA, [0.05], [1.0], h=0.2, steps=10, digits=digits)
        assert len(caught.value.path) == 1 and caught.value.path.q[0, 0] == 0.05
    paths = la.ensemble(system, YOSHIDA, [[0.7], [0.05], [5.0]], [[-1.0], [1.0], [0.0]], h=0.2, steps=10)
    assert (paths.status != 0).tolist() == [True, True, False]
    assert paths.steps.tolist() == [len(expected) - 1, 0, 10]
    np.testing.assert_allclose(paths.q[0, : len(expected)], expected[:, :1], rtol=1e-12)
    assert np.isnan(paths.q[0, len(expected) :]).all()


@pytest.mark.parametrize("method", [YOSHIDA, SIMPSON, la.compose("midpoint", "suzuki")], ids=repr)
def test_quadratic_systems(method):
    M, K = np.array([[2, 1], [1, 1.5]]), np.array([[3.0, 1], [1, 2]])
    load = {"f": [0.3, -0.1], "C": [[0.1, 0], [0, 0.2]]}
    system = la.Quadratic(M, K, **load)
    path = la.integrate(system, method, [1, 0], [0, 1], h=0.1, steps=40)
    expected = by_hand(system, method, [1.0, 0], [0.0, 1], 0.1, 40, allow_unstable=True)
    np.testing.assert_allclose(np.concatenate([path.q, path.p], axis=1), expected, rtol=1e-12, atol=1e-13)
    fine = la.integrate(system, method, [1, 0], [0, 1], h="1/10", steps=40, digits=30)
    np.testing.assert_allclose(fine.q.astype(float), path.q, rtol=1e-12, atol=1e-13)
    large = la.Quadratic(np.diag([2.0] * 40), np.diag(np.arange(1.0, 41)))  # by solves
    whole = la.integrate(large, method, np.ones(40), np.zeros(40), h=0.1, steps=10, output=[0, 39])
    few = la.integrate(la.Quadratic([2.0, 2], [1.0, 40]), method, [1, 1], [0, 0], h=0.1, steps=10)
    np.testing.assert_allclose(whole.q, few.q, rtol=1e-11, atol=1e-12)


def test_stability_is_known_before_a_run():
    """Yoshida's of Störmer–Verlet is stable up to hω = 1.5734, Suzuki's up to 2.72; of Gauss members for all h."""
    assert la.analysis.stability(YOSHIDA)[0].upper == pytest.approx(1.573401947, abs=1e-8)
    assert la.analysis.stability(la.compose("verlet", "suzuki"))[0].upper == pytest.approx(2.720974539, abs=1e-8)
    assert la.analysis.stability(la.compose("midpoint", "yoshida")).for_all_h
    for x in (0.5, 1.5, 1.6, 2.5):
        M = np.array(la.analysis.iteration_matrix(YOSHIDA).subs("x", x), float)
        growth = abs(np.linalg.eigvals(M)).max()
        assert la.analysis.stability(YOSHIDA).stable(x) == (growth < 1 + 1e-9)
        runs = [la.integrate(la.Quadratic([1], [1]), YOSHIDA, q, p, h=x, steps=1, allow_unstable=True)
                for p, q in (([1], [0]), ([0], [1]))]  # fmt: skip
        np.testing.assert_allclose(M, np.array([[r.p[-1, 0], r.q[-1, 0]] for r in runs]).T, rtol=1e-12, atol=1e-13)
    with pytest.raises(la.UnstableStepError, match="yoshida"):
        la.integrate(la.Quadratic([1.0], [1.0]), YOSHIDA, [1], [0], h=1.6, steps=10)


def test_dense_output_and_events_have_the_order_of_the_method():
    kepler = catalogued("kepler")
    method, errors, times = la.compose("verlet", "yoshida6"), [], []
    for h in (0.1, 0.05):
        path = la.integrate(kepler.system, method, kepler.q0, kepler.p0, h=h, t_end=3,
                            events={"side": la.Event(lambda q, p: q[0])})  # fmt: skip
        t = np.linspace(0.013, 2.9, 40)
        errors.append(abs(path(t) - kepler.exact(t)[0]).max())
        times.append(path.events["side"].t[0])
        np.testing.assert_allclose(path(path.t[3]), path.q[3], rtol=1e-13)
    fine = la.integrate(kepler.system, "P8N8Q16Gau", kepler.q0, kepler.p0, h=0.05, t_end=3,
                        events={"side": la.Event(lambda q, p: q[0])})  # fmt: skip
    assert np.log2(errors[0] / errors[1]) > 5.3
    off = abs(np.array(times) - fine.events["side"].t[0])
    assert np.log2(off[0] / off[1]) > 5.3


@pytest.mark.parametrize(("base", "order"), [("verlet", 4), ("simpson", 6)])
def test_constraints_hold_and_the_order_stays(base, order):
    """A pendulum in the plane, held at q·q = 1: Yoshida's composition of RATTLE, and of Simpson's method."""
    held = la.Lagrangian(lambda q, v: 0.5 * (v @ v) - 9.81 * q[1], n=2, constraints=lambda q: [q @ q - 1])
    method, errors, start = la.compose(base, "yoshida"), [], ["sin(1)", "-cos(1)"]
    fine = la.integrate(held, "P8N8Q16Gau", start, v0=[0, 0], h="1/100", steps=50, digits=30)
    for steps in (20, 40):
        path = la.integrate(held, method, start, v0=[0, 0], h=f"1/{2 * steps}", steps=steps, digits=30)
        errors.append(float(max(abs(path.q[-1] - fine.q[-1]))))
    assert abs(np.log2(errors[0] / errors[1]) - order) < 0.2
    quick = la.integrate(held, method, start, v0=[0, 0], h="1/80", steps=40)
    np.testing.assert_allclose(quick.q, path.q.astype(float), rtol=0, atol=1e-13)
    assert abs((quick.q**2).sum(axis=1) - 1).max() < 1e-14 and abs((quick.q * quick.p).sum(axis=1)).max() < 1e-14
    paths = la.ensemble(held, method, np.tile(quick.q[0], (5, 1)), v0=[0, 0], h="1/80", steps=40)
    np.testing.assert_allclose(paths.q[4], quick.q, rtol=0, atol=1e-13)


def test_the_same_map():
    assert la.analysis.same_map(la.compose("simpson", [1]), "simpson").always
    assert not la.analysis.same_map(YOSHIDA, "simpson").constant_mass


def test_structure():
    system, q0, v0 = case("inseparable")
    p0 = system.momentum(q0, v0)
    assert la.analysis.symplectic_defect(system, YOSHIDA, q0, p0, 0.1) < 1e-13
    assert la.analysis.reversibility_defect(system, YOSHIDA, q0, p0, 0.1) < 1e-13
    assert la.integrate(system, YOSHIDA, q0, p0, h=0.05, steps=3, branch="any").method.branch == "any"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: la.compose("rk4", "yoshida"), "compose a member PsNrQu"),
        (lambda: la.compose("verlet", "forest"), "known are yoshida, suzuki"),
        (lambda: la.compose("P1N1Q1RadR", "yoshida"), "is not symmetric"),
        (lambda: la.compose("simpson", "yoshida6"), "methods of order two"),
        (lambda: la.compose("verlet", [1, 1]), "these sum to 2"),
        (lambda: la.compose("verlet", [1, 0]), "not zero"),
        (lambda: la.compose("verlet", []), "at least one"),
        (lambda: la.compose("verlet", ["x"]), "cannot read 'x'"),
        (lambda: la.method("yoshida(" * 30 + "P1N2Q2Lob" + ")" * 30), "longer than 250"),
        (lambda: la.analysis.dispersion(YOSHIDA), "no exact series"),
        (lambda: la.discrete_lagrangian(case("pendulum").system, YOSHIDA, 0.1), "L_d of a composition is the sum"),
        (
            lambda: la.integrate(
                case("pendulum").system,
                YOSHIDA,
                [1],
                [0],
                h=0.1,
                steps=2,
                branch="any",
                events={"x": la.Event(lambda q, p: q[0])},
            ),
            "With branch='any' leave events= out",
        ),
        (
            lambda: la.integrate(
                case("pendulum").system, YOSHIDA, [1], [0], h=0.1, steps=2, pace=lambda q: 1 + q[0] ** 2
            ),
            "is a composition and has no polynomial",
        ),
    ],
)
def test_what_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_work_is_refused():
    system = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2, n=1, force=lambda q, v: -v)
    with pytest.raises(ValueError, match="not known for compositions"):
        la.integrate(system, YOSHIDA, [1.0], [1.0], h=0.1, steps=3).work()
