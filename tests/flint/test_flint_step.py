"""Steps on flint numbers: against float64, coordinate by coordinate, with further terms, with a tangent, resumed."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import leastaction as la
from leastaction import flint
from leastaction.flint.galerkin import GalerkinStepper
from leastaction.methods import family
from leastaction.numbers.precision import mpmath_digits
from leastaction.numbers.rounding import Digits
from leastaction.program import Builder
from leastaction.step.form import Step, Term, step_of
from leastaction.step.stepper import Start
from leastaction.systems.mechanics import check_start
from precise import SPRING, START, largest
from thrift import rest_slow

MEMBERS = [*(m.name for m in family(4)), "P5N5Q10Gau", "P5N6Q10Lob", "P6N6Q12Gau", "P6N6Q10Lob", "P6N8Q14Lob"]


def random_system(seed):
    """A Lagrangian of one to three coordinates that is neither separable nor autonomous."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 4))
    A, bend = rng.normal(size=(n, n)), 0.2 * rng.normal(size=(n, n))
    mass, twist, pull = A @ A.T + n * np.eye(n), rng.normal(size=n), rng.normal(size=n)

    def L(t, q, v, k):
        kinetic = v @ mass @ v / 2 + np.sum(bend * np.outer(np.sin(q), v * v)) / 2
        potential = k * np.sum(np.cosh(q * twist) / (1 + twist**2)) - q @ pull * t
        return kinetic + v @ (bend @ np.cos(q)) * np.cos(t) - potential

    system = la.Lagrangian(L, n=n, params={"k": float(rng.uniform(0.5, 2))})
    return system, rng.normal(size=n) / 2, rng.normal(size=n) / 2


@pytest.mark.parametrize("method", rest_slow(MEMBERS, ["P2N2Q2Lob", "P2N3Q4Lob", "P3N3Q6Gau", "P6N8Q14Lob"]))
def test_a_step_at_thirty_digits_is_that_of_float64(method):
    for seed in range(3):
        system, q0, p0 = random_system([seed, MEMBERS.index(method)])
        run = {"q0": q0, "p0": p0, "h": 0.04, "steps": 1, "t0": 0.3}
        one, many = la.integrate(system, method, **run), la.integrate(system, method, digits=30, **run)
        np.testing.assert_allclose(many.q.astype(float), one.q, rtol=0, atol=1e-14)
        np.testing.assert_allclose(many.p.astype(float), one.p, rtol=0, atol=1e-14)


# Each coordinate on its own scale.


def beside(V):
    """A pendulum, and a coordinate that moves alone, at V."""
    system = la.Lagrangian(lambda q, v: v[0] ** 2 / 2 + np.cos(q[0]) + v[1] ** 2 / 2, n=2)
    return la.integrate(system, "simpson", [1, 0], [0, V], h="1/10", steps=60, digits=40)


@pytest.mark.parametrize("V", ["1e12", "1e60", "1e-60"])
def test_a_fast_neighbour_hides_nothing(V):
    alone = beside(0)
    with mpmath_digits(40):
        assert largest(beside(V).q[:, 0] - alone.q[:, 0]) < 1e-39


@pytest.mark.parametrize("method", ["rk4", "rk4-lagrange", "simpson"])
@pytest.mark.parametrize("M", ["1e16", "1e60"])
def test_a_heavy_neighbour_hides_nothing(method, M):
    def heavy(q, v, M):
        return M * v[0] ** 2 / 2 + v[1] ** 2 / 2 + np.cos(q[1])

    system = la.Lagrangian(heavy, n=2, params={"M": 1})
    paths = [
        la.integrate(system, method, [0, "1/2"], [mass, "1/2"], h="1/10", steps=30, params={"M": mass}, digits=40)
        for mass in (1, M)
    ]
    with mpmath_digits(40):
        assert largest(paths[0].q[:, 1] - paths[1].q[:, 1]) < 1e-39
        assert largest(paths[0].velocity()[:, 1] - paths[1].velocity()[:, 1]) < 1e-39


@pytest.mark.parametrize("digits", [40, 300])
def test_a_neighbour_that_leaves_the_domain_of_L_is_seen(digits):
    system = la.Lagrangian(lambda q, v: v @ v / 2 + np.cos(q[0]) - q[1] ** la.const("3/2") + np.cos(q[2]), n=3)
    with pytest.raises(la.StepFailed) as caught:
        la.integrate(system, "simpson", [1, "1/4", 1], v0=[0, -5, 0], h="1/20", steps=5, digits=digits)
    assert caught.value.step == 0


def test_motions_beyond_the_range_of_floats():
    oscillator = la.Lagrangian(lambda q, v: v[0] ** 2 / 2 - q[0] ** 2 / 2, n=1)
    small, unit = (
        la.integrate(oscillator, "P3N3Q6Gau", [q], [0], h="1/10", steps=20, digits=40) for q in ("1e-500", "1")
    )
    with mpmath_digits(40):
        assert largest(small.q * mpmath.mpf("1e500") - unit.q) < 1e-39
    assert small.stats["continued"] == 0


@pytest.mark.parametrize("method", ["simpson", "P5N5Q10Gau"])
@pytest.mark.parametrize("middle", ["0", "1/3"])
def test_a_coordinate_that_moves_by_rounding_alone_is_at_rest(method, middle):
    """The middle one of three equal masses: only the rounding error of two equal and opposite forces moves it."""

    def chain(q, v, a):
        stretch = np.array([q[1] - q[0] - a, q[2] - q[1] - a])
        return v @ v / 2 - stretch @ stretch / 2 - np.sum(stretch**4) / 4

    system = la.Lagrangian(chain, n=3, params={"a": "1/10"})
    with Digits(40).working():
        centre, apart = Digits(40).array(middle)[()], mpmath.mpf(1) / 7
        q0 = [centre - apart, centre, centre + apart]
        path = la.integrate(system, method, q0, [0, 0, 0], h="1/10", steps=40, digits=40)
        assert largest(path.q[:, 1] - centre) < 1e-45
        assert largest(path.q[:, 0] + path.q[:, 2] - 2 * centre) < 1e-45
    assert path.stats["continued"] == 0


# Further terms, and nothing else: a force, and a constraint with its multipliers.


def begin(mechanics, q0, p0, h, values, reals):
    """A start at t = 0."""
    q, p, t = reals.array(q0), reals.array(p0), reals.array(0)[()]
    return Start(t, q, *check_start(mechanics, t, q, p, None, values), reals.array(h)[()], values)


def run_of(step, system, q0, p0, h, steps, digits=40):
    """States (q, p) after each step of a Step that is more than its system."""
    reals = Digits(digits)
    with reals.working():
        values = system.values(None, reals)
        mechanics = flint.mechanics(system, values, reals)
        start = begin(mechanics, q0, p0, h, values, reals)
        rows = np.empty((1, steps, 2 * step.n), dtype=object)
        assert GalerkinStepper(mechanics, step, start).advance(steps, 1, 1, rows) == steps
    return rows[0]


@pytest.mark.parametrize("method", ["midpoint", "simpson", "P3N4Q6Lob"])
def test_a_term_with_a_force(method):
    """M q̈ = −q − v/5, the force as a term beside L = v²/2: what `Quadratic` makes of it, to the last digits."""
    B = Builder([("q", 1), ("v", 1), ("params", 0)])
    (q,), (v,) = B.values("q"), B.values("v")
    fifth = B.div(B.const(-1.0), B.const(5.0))
    program = B.build(f=[(-q - v / 5.0).k])
    slopes = B.build(f=[(-q - v / 5.0).k], f_q=[B.const(-1.0)], f_v=[fifth])
    free = la.Lagrangian(lambda q, v: v[0] ** 2 / 2, n=1)
    step = step_of(free, la.method(method))
    rows = run_of(Step(1, step.method, (*step.terms, Term(program, slopes))), free, [1], [0], "1/10", 20)
    path = la.integrate(la.Quadratic([1], [1], C=[["1/5"]]), method, [1], p0=[0], h="1/10", steps=20, digits=40)
    with mpmath_digits(40):
        assert largest(rows[:, 0] - path.q[1:, 0]) < 1e-38 and largest(rows[:, 1] - path.p[1:, 0]) < 1e-38


def on_a_circle():
    """g = (x² + y² − 1)/2 and the force λ (x, y), at the control points."""
    B = Builder([("q", 2), ("multipliers", 1), ("params", 0)])
    (x, y), (m,) = B.values("q"), B.values("multipliers")
    zero = B.const(0.0)
    given = {"f": [(x * m).k, (y * m).k], "g": [((x * x + y * y - 1.0) / 2.0).k]}
    slopes = {"f_q": [m.k, zero, zero, m.k], "f_multipliers": [x.k, y.k], "g_q": [x.k, y.k]}
    return Term(B.build(**given), B.build(**given, **slopes), "controls")


def test_a_term_with_a_constraint():
    """A pendulum in the plane: it stays on its circle to the last digits, and Simpson's order is four."""
    flat = la.Lagrangian(lambda q, v: v @ v / 2 - 10 * q[1], n=2)
    step = step_of(flat, la.method("simpson"))
    step = Step(2, step.method, (*step.terms, on_a_circle()), 1)
    angle = la.Lagrangian(lambda q, v: v[0] ** 2 / 2 + 10 * np.cos(q[0]), n=1)
    exact = la.integrate(angle, "P10N10Q20Gau", [0], [2], h="1/20", t_end=1, digits=40).q[-1, 0]
    errors = []
    for steps in (20, 40):
        rows = run_of(step, flat, [0, -1], [2, 0], f"1/{steps}", steps)
        with mpmath_digits(40):
            assert largest(rows[:, 0] ** 2 + rows[:, 1] ** 2 - 1) < 1e-38
            errors.append(abs(rows[-1, 0] - mpmath.sin(exact)))
    assert abs(float(mpmath.log(errors[0] / errors[1], 2)) - 4) < 0.2


# The tangent map.


def driven(t, q, v, k, w):
    """Neither separable nor autonomous."""
    kinetic = (1 + q[0] ** 2) * v[0] ** 2 / 2 + v[1] ** 2 / 2 + v[0] * v[1] * np.sin(q[1]) / 3
    return kinetic - k * np.cosh(q[0] - q[1]) + q[0] * np.sin(w * t) + v[1] * np.cos(t) * q[0] / 5


DRIVEN = la.Lagrangian(driven, n=2, params={"k": "1.3", "w": "0.7"})
TANGENTS = ["midpoint", "simpson", "P5N6Q10Lob", "rk4", "rk4-lagrange"]


@pytest.mark.parametrize("method", TANGENTS)
def test_tangent_by_state_parameters_and_h_is_that_of_float64(method):
    run = {"h": "1/10", "steps": 7, "every": 3, "t0": "1/3", "tangent": "all", **START}
    one, many = la.integrate(DRIVEN, method, **run), la.integrate(DRIVEN, method, digits=30, **run)
    assert isinstance(many.tangent[0, 0, 0], mpmath.mpf)
    np.testing.assert_allclose(many.tangent.astype(float), one.tangent, rtol=0, atol=1e-13)
    np.testing.assert_allclose(many.sensitivity.astype(float), one.sensitivity, rtol=0, atol=1e-13)


@pytest.mark.parametrize("method", TANGENTS)
def test_tangent_against_differences(method):
    """Central differences of 10⁻²⁵ in runs of 75 digits: their error is some 10⁻⁵⁰."""
    digits, delta = 75, mpmath.mpf(10) ** -25
    reals = Digits(digits)
    path = la.integrate(DRIVEN, method, h="1/10", steps=3, t0="1/3", digits=digits, tangent="all", **START)

    def image(x):
        values = dict(zip(("k", "w"), x[4:6], strict=True))
        end = la.integrate(DRIVEN, method, x[:2], x[2:4], h=x[6], steps=3, t0="1/3", digits=digits, params=values)
        return np.concatenate([end.q[-1], end.p[-1]])

    with reals.working():
        x = np.concatenate([reals.array(y) for y in (START["q0"], START["p0"], ["1.3", "0.7"], ["1/10"])])
        columns = [(image(x + delta * e) - image(x - delta * e)) / (2 * delta) for e in np.eye(7, dtype=int)]
        whole = np.concatenate([path.tangent[-1], path.sensitivity[-1]], axis=1)
        assert largest(whole - np.stack(columns, axis=1)) < 1e-46


def test_tangent_is_symplectic_to_the_last_digits():
    J = np.block([[np.zeros((2, 2), int), np.eye(2, dtype=int)], [-np.eye(2, dtype=int), np.zeros((2, 2), int)]])
    for method in ("simpson", "P4N4Q8Gau", "P3N3Q4Lob"):
        path = la.integrate(SPRING, method, h="1/5", steps=10, digits=64, tangent=True, **START)
        with mpmath_digits(64):
            assert largest(path.tangent[-1].T @ J @ path.tangent[-1] - J) < 1e-61
        assert path.sensitivity is None


def test_tangent_of_a_linear_system_is_a_power_of_its_step(tmp_path):
    system = la.Quadratic([1, 2], [[3, 1], [1, 2]], C=[["1/9", 0], [0, "1/7"]], f=lambda t: [np.sin(t), 0.0])
    run = {"q0": [1, 0], "p0": [0, 1], "h": "1/10", "steps": 7, "every": 3, "tangent": True}
    one, many = la.integrate(system, "P3N3Q6Gau", **run), la.integrate(system, "P3N3Q6Gau", digits=30, **run)
    np.testing.assert_allclose(many.tangent.astype(float), one.tangent, rtol=0, atol=1e-14)


def test_a_path_keeps_every_digit_of_its_tangent(tmp_path):
    path = la.integrate(DRIVEN, "simpson", h="1/10", steps=2, digits=50, tangent="all", **START)
    path.save(tmp_path / "path.npz")
    again = la.Path.load(tmp_path / "path.npz")
    assert (again.tangent == path.tangent).all() and (again.sensitivity == path.sensitivity).all()


# Taken down and set up again.


@pytest.mark.parametrize("method", ["simpson", "P6N6Q12Gau", "rk4", "rk4-lagrange"])
@pytest.mark.parametrize("system", [SPRING, la.Quadratic([1, 2], [[3, 1], [1, 2]])], ids=["lagrangian", "quadratic"])
def test_a_run_goes_on_to_the_last_bit(system, method):
    reals = Digits(40)
    values = system.values(None, reals)
    mechanics = flint.mechanics(system, values, reals)
    start = begin(mechanics, START["q0"], START["p0"], "1/10", values, reals)
    whole, parts = np.empty((1, 12, 4), dtype=object), np.empty((1, 12, 4), dtype=object)
    flint.stepper(mechanics, la.method(method), start).advance(12, 1, 1, whole)
    first = flint.stepper(mechanics, la.method(method), start)
    first.advance(5, 1, 1, parts)
    second = flint.stepper(mechanics, la.method(method), start)
    second.restore(first.state())
    second.advance(7, 1, 1, parts)
    assert (whole == parts).all()
    assert second.counts().get("newton_iterations", 1) > 0


def test_what_the_last_predictions_missed_saves_iterations():
    """With Simpson the prediction is corrected: 396 iterations in 99 steps; 510 were needed without. The first step,
    which continuation finds, has no prediction.
    """
    one, all_steps = (
        la.integrate(SPRING, "simpson", h="1/100", steps=steps, digits=64, **START).stats["newton_iterations"]
        for steps in (1, 100)
    )
    assert all_steps - one < 440
