"""Inputs: held, at nodes, by samples; every backend, files, events, and what is refused."""

from __future__ import annotations

import pickle
from itertools import pairwise

import mpmath
import numpy as np
import pytest
import scipy.linalg

import leastaction as la
from leastaction.errors import TraceError
from leastaction.methods import Galerkin
from leastaction.methods.quadrature import gauss, lobatto
from leastaction.numbers.rounding import reals
from leastaction.results.looks import look
from systems import catalogued
from thrift import rest_slow

VALUES = {"m": 1.0, "g": 1.0, "c": 0.3}
W = 1.3


def inseparable(q, v, m, g):
    """A mass that depends on q, and couples."""
    return 0.5 * m * (v[0] ** 2 + (1 + q[0] ** 2) * v[1] ** 2 + 0.6 * v[0] * v[1]) - g * np.cos(q[0] - q[1])


def pushed(q, v, c, u, w):
    """Friction, a motor u, and one w that turns with q."""
    return np.array([-c * v[0] + u[0] * q[1], -c * v[1] + w * np.cos(q[0]) + u[1] * v[0]])


def signal(t):
    """u(t), (…, 2), and w(t)."""
    t = np.asarray(t, float)
    return np.stack([np.sin(W * t), 0.3 * np.cos(2 * t)], axis=-1), 0.5 * np.sin(0.7 * t)


def by_time(t, q, v, c):
    """The same forces, with the functions of time written into them."""
    u, w = [np.sin(W * t), 0.3 * np.cos(2 * t)], 0.5 * np.sin(la.const(0.7) * t)
    return pushed(q, v, c, u, w)


SHAPES = {"u": 2, "w": ()}
DRIVEN = la.Lagrangian(inseparable, 2, VALUES, force=pushed, inputs=SHAPES)
TIMED = la.Lagrangian(inseparable, 2, VALUES, force=by_time)
START = {"q0": [0.3, 0.2], "v0": [0.5, -0.4]}


def nodes_of(method, h, steps, t0=0.0):
    """Values at the nodes of all steps."""
    c = la.method(method).table.c if isinstance(method, str) else method.table.c
    return dict(zip("uw", signal(t0 + (np.arange(steps)[:, None] + c) * h), strict=True))


def held_of(h, steps):
    return dict(zip("uw", signal((np.arange(steps) + 0.5) * h), strict=True))


def states(path):
    return np.concatenate([np.asarray(path.q, float), np.asarray(path.p, float)], axis=-1)


METHODS = ["midpoint", "simpson", "stormer-verlet", "P3N3Q6Gau", "P3N4Q6Lob", "P4N4Q8Gau", "P6N6Q12Gau", "P2N4Q8Gau"]


# Values at the nodes are what a force of time has there: the same method, to rounding.


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("h", rest_slow([0.05, -0.05], [0.05]))
def test_values_at_nodes_are_a_force_of_time(method, h):
    driven = la.integrate(DRIVEN, method, h=h, steps=60, inputs=nodes_of(method, h, 60), **START)
    timed = la.integrate(TIMED, method, h=h, steps=60, **START)
    np.testing.assert_allclose(states(driven), states(timed), rtol=0, atol=2e-13)
    np.testing.assert_allclose(driven.work(), timed.work(), rtol=0, atol=2e-13)
    np.testing.assert_allclose(driven.energy(), timed.energy(), rtol=0, atol=2e-13)
    t = np.linspace(0.0, 59.9 * h, 37)
    np.testing.assert_allclose(driven(t), timed(t), rtol=0, atol=2e-13)


def separable(q, v):
    return 0.5 * (v @ v) - 0.5 * (q @ q) - 0.1 * (q[0] * q[1]) ** 2


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_where_forces_have_no_velocities(method):
    """Chords that iterate places alone, with points side by side or not."""
    driven = la.Lagrangian(separable, 2, force=lambda q, v, u: u, inputs={"u": 2})
    timed = la.Lagrangian(separable, 2, force=lambda t, q, v: np.array([np.sin(W * t), 0.3 * np.cos(2 * t)]))
    given = {"u": nodes_of(method, 0.1, 50)["u"]}
    paths = [la.integrate(driven, method, h=0.1, steps=50, inputs=given, **START)]
    paths.append(la.integrate(timed, method, h=0.1, steps=50, **START))
    np.testing.assert_allclose(states(paths[0]), states(paths[1]), rtol=0, atol=2e-13)
    one = la.ensemble(driven, method, h=0.1, steps=50, inputs={"u": given["u"][None]}, **START)
    np.testing.assert_allclose(states(one)[0], states(paths[1]), rtol=0, atol=2e-13)


def chain(q, v):
    return 0.5 * (1 + 0.1 * np.sin(q[0])) * (v @ v) - np.sum(1 - np.cos(np.diff(q))) - 0.5 * (q[0] ** 2 + q[-1] ** 2)


def test_steps_of_the_loops():
    """Too long for kernels of whole steps."""
    n, method, h = 12, "P4N4Q8Gau", 0.05

    def drive(q, v, u):
        return np.concatenate([[u], 0.0 * q[1:-1], [-0.1 * v[-1] * u]])

    def timed_drive(t, q, v):
        return drive(q, v, np.sin(W * t))

    driven = la.Lagrangian(chain, n, force=drive, inputs={"u": ()})
    timed = la.Lagrangian(chain, n, force=timed_drive)
    start = {"q0": np.linspace(0.1, 0.4, n), "v0": np.cos(np.arange(n))}
    given = {"u": nodes_of(method, h, 40)["u"][..., 0]}
    one = la.integrate(driven, method, h=h, steps=40, inputs=given, **start)
    other = la.integrate(timed, method, h=h, steps=40, **start)
    np.testing.assert_allclose(states(one), states(other), rtol=0, atol=1e-12)
    many = la.ensemble(driven, method, h=h, steps=40, inputs={"u": given["u"][None]}, **start)
    np.testing.assert_allclose(states(many)[0], states(other), rtol=0, atol=1e-12)


# Order.


def order(errors):
    return [float(mpmath.log(a / b, 2)) for a, b in pairwise(errors)]


MEMBERS = [
    Galerkin(s, rule(r)) for s in range(1, 4) for rule in (gauss, lobatto) for r in (s, s + 1) if r > 1 or rule is gauss
]


@pytest.mark.parametrize("method", MEMBERS, ids=lambda m: m.name)
def test_order_with_values_at_the_nodes(method):
    counts = {2: (40, 80), 4: (20, 40), 6: (10, 20)}[method.order]
    exact = la.integrate(TIMED, "P8N8Q16Gau", h=2.0 / 80, steps=80, every=80, **START)
    errors = []
    for N in counts:
        path = la.integrate(DRIVEN, method, h=2.0 / N, steps=N, inputs=nodes_of(method, 2.0 / N, N), **START)
        errors.append(abs(states(path)[-1] - states(exact)[-1]).max())
    assert abs(order(errors)[0] - method.order) < 0.25


def test_order_with_smooth_samples():
    """Splines through many samples are smooth enough for order 4; straight lines through those at the ends of steps,
    for order 2.
    """
    exact = la.integrate(TIMED, "P8N8Q16Gau", h=2.0 / 80, steps=80, every=80, **START)
    for method, rule, knots in (("P2N2Q4Gau", "cubic", 4000), ("midpoint", "linear", None)):
        errors = []
        for N in (20, 40):
            times = np.linspace(0.0, 2.0, (knots or N) + 1)
            given = {k: la.Samples(times, x, rule) for k, x in zip("uw", signal(times), strict=True)}
            path = la.integrate(DRIVEN, method, h=2.0 / N, steps=N, inputs=given, **START)
            errors.append(abs(states(path)[-1] - states(exact)[-1]).max())
        assert abs(order(errors)[0] - la.method(method).order) < 0.25


def test_order_at_digits():
    method, errors = la.galerkin(3, la.gauss(3)), []
    with mpmath.workdps(50):
        c = np.array(method.exact_table(45)["c"], dtype=object)

        def given(N, r):
            t = (np.arange(N)[:, None] + r) * (mpmath.mpf(1) / N)
            u, sine = np.vectorize(mpmath.cos, otypes=[object]), np.vectorize(mpmath.sin, otypes=[object])
            return {"u": np.stack([sine(W * t), u(t)], axis=-1), "w": sine(t)}

        high = la.galerkin(7, la.gauss(7))
        c7 = np.array(high.exact_table(45)["c"], dtype=object)
        exact = la.integrate(DRIVEN, high, h="1/24", steps=24, digits=40, inputs=given(24, c7), **START)
        for N in (8, 16):
            path = la.integrate(DRIVEN, method, h=f"1/{N}", steps=N, digits=40, inputs=given(N, c), **START)
            errors.append(max(abs(path.q[-1] - exact.q[-1])))
    assert abs(order(errors)[0] - 6) < 0.25


# Closed forms.


def test_a_held_force_on_an_oscillator():
    """Between jumps q̈ + 2d q̇ + q = u is linear: the exact solution, step by step."""

    def oscillator(q, v):
        return 0.5 * v[0] ** 2 - 0.5 * q[0] ** 2

    d, h, N = 0.1, 0.25, 80
    system = la.Lagrangian(oscillator, 1, {"d": d}, force=lambda q, v, u, d: u - 2 * d * v, inputs={"u": 1})
    U = np.random.default_rng(1).normal(size=(N, 1))
    path = la.integrate(system, "P6N6Q12Gau", [0.4], [0.0], h=h, steps=N, inputs={"u": U})
    flow = scipy.linalg.expm(h * np.array([[0.0, 1, 0], [-1, -2 * d, 1], [0, 0, 0]]))
    state = np.array([0.4, 0.0, 0.0])
    for k in range(N):
        state = flow @ [*state[:2], U[k, 0]]
        np.testing.assert_allclose([path.q[k + 1, 0], path.p[k + 1, 0]], state[:2], rtol=0, atol=2e-14 * (k + 4))


def test_a_closed_loop_with_a_held_input():
    """A pole held upright on its cart by u = −K x, taken at the start of each step, as a computer does. The run step by
    step is the run with all inputs at once, and the pole stands.
    """
    problem = la.problems.get("cart-pole", x0="0.2", theta0="0.15")
    system, h, N = problem.system, 0.02, 400
    K = gains(system, h)
    q, v = problem.q0, np.zeros(2)
    given, ends = [], []
    for _ in range(N):
        u = -(K @ np.concatenate([q, v]))
        path = la.integrate(system, "P2N2Q4Gau", q, v0=v, h=h, steps=1, inputs={"u": [[u]]})
        q, v = path.q[-1], path.velocity()[-1]
        given.append([u])
        ends.append(q)
    assert abs(ends[-1]).max() < 0.02 and abs(np.array(ends)[:, 1]).max() < 0.2
    # Without the loop rounding grows as the pole falls: the first two seconds.
    whole = la.integrate(system, "P2N2Q4Gau", problem.q0, problem.p0, h=h, steps=100, inputs={"u": given})
    np.testing.assert_allclose(whole.q[1:], ends[:100], rtol=0, atol=1e-10)
    balance = whole.energy() - whole.work()
    np.testing.assert_allclose(balance, balance[0], atol=1e-6)


def gains(system, h):
    """The linear quadratic regulator about the upright pole, for an input that is held for h."""
    eps = 1e-6

    def rate(x, u):
        return np.concatenate([x[2:], system.acceleration(x[:2], x[2:], inputs={"u": [u]})])

    A = np.stack([(rate(eps * e, 0.0) - rate(-eps * e, 0.0)) / (2 * eps) for e in np.eye(4)], axis=1)
    B = (rate(np.zeros(4), eps) - rate(np.zeros(4), -eps)) / (2 * eps)
    held = scipy.linalg.expm(h * np.block([[A, B[:, None]], [np.zeros((1, 5))]]))
    A, B = held[:4, :4], held[:4, 4:]
    P = scipy.linalg.solve_discrete_are(A, B, np.diag([1.0, 10.0, 1.0, 1.0]), np.eye(1))
    return np.linalg.solve(1 + B.T @ P @ B, B.T @ P @ A)[0]


# Samples.


def test_previous_samples_at_the_steps_are_held_values():
    h, N = 0.1, 50
    given = held_of(h, N)
    times = np.arange(N + 1) * h
    sampled = {k: la.Samples(times, np.concatenate([x, x[-1:]]), "previous") for k, x in given.items()}
    for method in ("midpoint", "simpson", "P3N3Q6Gau", "rk4"):
        one = la.integrate(DRIVEN, method, h=h, steps=N, inputs=given, **START)
        other = la.integrate(DRIVEN, method, h=h, steps=N, inputs=sampled, **START)
        np.testing.assert_array_equal(states(one), states(other))


def test_samples_are_asked_at_the_nodes():
    h, N, method = 0.1, 30, "P3N3Q6Gau"
    times = np.linspace(-0.1, 3.2, 500)
    for rule in ("previous", "linear", "cubic"):
        samples = {k: la.Samples(times, x, rule) for k, x in zip("uw", signal(times), strict=True)}
        t = (np.arange(N)[:, None] + la.method(method).table.c) * h
        values = {k: s.at(t) for k, s in samples.items()}
        one = la.integrate(DRIVEN, method, h=h, steps=N, inputs=samples, **START)
        other = la.integrate(DRIVEN, method, h=h, steps=N, inputs=values, **START)
        np.testing.assert_allclose(states(one), states(other), rtol=0, atol=1e-13)


def test_kinds_may_be_mixed():
    h, N, method = 0.1, 30, "P3N3Q6Gau"
    held, nodes = held_of(h, N), nodes_of(method, h, N)
    mixed = la.integrate(DRIVEN, method, h=h, steps=N, inputs={"u": nodes["u"], "w": held["w"]}, **START)
    wide = {"u": nodes["u"], "w": np.repeat(held["w"][:, None], 3, axis=1)}
    np.testing.assert_array_equal(
        states(mixed), states(la.integrate(DRIVEN, method, h=h, steps=N, inputs=wide, **START))
    )


# Ensembles.


@pytest.mark.parametrize(
    "method",
    rest_slow(["midpoint", "simpson", "P4N4Q8Gau", "rk4", "suzuki(midpoint)"], ["simpson", "rk4", "suzuki(midpoint)"]),
)
def test_each_trajectory_has_its_own(method):
    h, N, B = 0.1, 40, 11
    rng = np.random.default_rng(3)
    own = {"u": rng.normal(size=(B, N, 2)), "w": rng.normal(size=N)}
    paths = la.ensemble(DRIVEN, method, h=h, steps=N, inputs=own, q0=rng.normal(size=(B, 2)), v0=[0.1, 0.2])
    for i in (0, 3, 10):
        alone = la.integrate(
            DRIVEN, method, paths.q[i, 0], paths.p[i, 0], h=h, steps=N, inputs={"u": own["u"][i], "w": own["w"]}
        )
        np.testing.assert_allclose(states(paths)[i], states(alone), rtol=0, atol=1e-12)
        np.testing.assert_array_equal(paths[i].inputs["u"], own["u"][i])
    if method in ("midpoint", "P4N4Q8Gau"):
        np.testing.assert_allclose(paths[3].work(), alone_work(method, paths[3]), atol=1e-12)
    last = la.ensemble(
        DRIVEN, method, paths.q[:, 0], paths.p[:, 0], h=h, steps=N, inputs=own, final_only=True, threads=1
    )
    np.testing.assert_allclose(last.q[:, -1], paths.q[:, -1], atol=1e-13)


def alone_work(method, path):
    given = dict(path.inputs)
    return la.integrate(DRIVEN, method, path.q[0], path.p[0], h=path.h, steps=len(path) - 1, inputs=given).work()


def test_samples_of_each_trajectory():
    times, B = np.linspace(0.0, 4.0, 41), 5
    u = np.random.default_rng(0).normal(size=(B, 41, 2))
    given = {"u": la.Samples(times, u, "linear"), "w": la.Samples(times, np.sin(times))}
    paths = la.ensemble(DRIVEN, "simpson", h=0.1, steps=40, inputs=given, **START)
    for i in range(B):
        own = given | {"u": la.Samples(times, u[i], "linear")}
        alone = la.integrate(DRIVEN, "simpson", h=0.1, steps=40, inputs=own, **START)
        np.testing.assert_allclose(states(paths)[i], states(alone), rtol=0, atol=1e-12)
        np.testing.assert_array_equal(paths[i].inputs["u"].values, u[i])


# Digits.


@pytest.mark.parametrize("method", ["simpson", "P3N3Q6Gau", "rk4", "suzuki(midpoint)"])
def test_digits_agree_with_float64(method):
    given = held_of(0.1, 20)
    precise = la.integrate(DRIVEN, method, h="1/10", steps=20, digits=30, inputs=given, **START)
    rounded = la.integrate(DRIVEN, method, h=0.1, steps=20, inputs=given, **START)
    np.testing.assert_allclose(states(precise), states(rounded), rtol=0, atol=1e-13)
    if method != "suzuki(midpoint)":
        np.testing.assert_allclose(precise.work().astype(float), rounded.work(), rtol=0, atol=1e-13)
    times = np.linspace(0, 2, 9)
    samples = {k: la.Samples(times, x) for k, x in zip("uw", signal(times), strict=True)}
    precise = la.integrate(DRIVEN, method, h="1/10", steps=19, digits=30, inputs=samples, **START)
    rounded = la.integrate(DRIVEN, method, h=0.1, steps=19, inputs=samples, **START)
    np.testing.assert_allclose(states(precise), states(rounded), rtol=0, atol=1e-13)


def test_exact_numbers_stay_exact():
    """A third is a third at 40 digits: m q̈ = u gives p = Σ h u."""
    system = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2, 1, force=lambda q, v, u: u, inputs={"u": 1})
    path = la.integrate(system, "midpoint", [0], [0], h="1/7", steps=3, digits=40, inputs={"u": [["1/3"]] * 3})
    with mpmath.workdps(45):
        assert abs(path.p[-1, 0] - mpmath.mpf(1) / 7) < mpmath.mpf(10) ** -40


# Derivatives.


@pytest.mark.parametrize("digits", [None, 25])
@pytest.mark.parametrize("method", ["simpson", "P4N4Q8Gau", "rk4", la.rk4(form="lagrange"), "suzuki(midpoint)"])
def test_the_tangent_map(method, digits):
    """Against the same system with forces of time held likewise: its parameters are the inputs' values."""
    given, N, h = held_of(0.1, 6), 6, 0.1
    path = la.integrate(DRIVEN, method, h=h, steps=N, inputs=given, tangent="all", digits=digits, **START)
    y0, eps = np.concatenate([DRIVEN_START.q[0], DRIVEN_START.p[0]]), 1e-6

    def end(y, params=None, h=h):
        run = la.integrate(DRIVEN, method, y[:2], y[2:], h=h, steps=N, inputs=given, params=params)
        return states(run)[-1]

    for j in range(4):
        d = eps * np.eye(4)[j]
        slope = (end(y0 + d) - end(y0 - d)) / (2 * eps)
        np.testing.assert_allclose(path.tangent[-1].astype(float)[:, j], slope, rtol=0, atol=2e-8)
    for j, name in enumerate(VALUES):
        up, down = (end(y0, {name: VALUES[name] + s * eps}) for s in (1, -1))
        np.testing.assert_allclose(path.sensitivity[-1].astype(float)[:, j], (up - down) / (2 * eps), atol=2e-8)
    by_h = (end(y0, h=h + eps) - end(y0, h=h - eps)) / (2 * eps)
    np.testing.assert_allclose(path.sensitivity[-1].astype(float)[:, -1], by_h, rtol=0, atol=2e-7)


DRIVEN_START = la.integrate(TIMED, "midpoint", h=0.1, steps=1, **START)


# Constraints.


def falling(q, v, g):
    return 0.5 * (v @ v) - g * q[1]


@pytest.mark.parametrize(
    "method", rest_slow(["stormer-verlet", "simpson", "P3N3Q6Gau", "P4N5Q8Lob"], ["simpson", "P3N3Q6Gau"])
)
def test_with_constraints(method):
    rod = {"g": 1.0, "l": 1.0}

    def held(q, l):
        return (q @ q - l**2) / 2

    driven = la.Lagrangian(falling, 2, rod, force=lambda q, v, u: u - 0.1 * v, constraints=held, inputs={"u": 2})

    def timed_force(t, q, v):
        return np.array([np.sin(W * t), 0.3 * np.cos(2 * t)]) - 0.1 * v

    timed = la.Lagrangian(falling, 2, rod, force=timed_force, constraints=held)
    start, given = {"q0": [1.0, 0.0], "v0": [0.0, 0.3]}, {"u": nodes_of(method, 0.05, 60)["u"]}
    one = la.integrate(driven, method, h=0.05, steps=60, inputs=given, **start)
    other = la.integrate(timed, method, h=0.05, steps=60, **start)
    np.testing.assert_allclose(states(one), states(other), rtol=0, atol=1e-12)
    many = la.ensemble(driven, method, h=0.05, steps=60, inputs={"u": given["u"][None]}, **start)
    np.testing.assert_allclose(states(many)[0], states(other), rtol=0, atol=1e-12)
    times = np.linspace(0, 3, 400)
    smooth = la.integrate(driven, method, h=0.05, steps=60, inputs={"u": la.Samples(times, signal(times)[0])}, **start)
    np.testing.assert_allclose(smooth.multipliers, other.multipliers, rtol=0, atol=1e-6)
    np.testing.assert_allclose(smooth.reaction(), other.reaction(), rtol=0, atol=1e-6)
    precise = la.integrate(driven, method, h=0.05, steps=10, digits=25, inputs=given, **start)
    np.testing.assert_allclose(states(precise), states(one)[:11], rtol=0, atol=1e-12)


# Events.


def ball(q, v, g):
    return 0.5 * v[0] ** 2 - g * q[0]


@pytest.mark.parametrize(
    "method", rest_slow(["midpoint", "P3N3Q6Gau", "rk4", "suzuki(midpoint)"], ["P3N3Q6Gau", "suzuki(midpoint)"])
)
@pytest.mark.parametrize("digits", [None, 25])
def test_a_held_input_stays_in_a_step_that_is_cut_short(method, digits):
    """q̈ = u − g with u held: parabolas, whose impacts have closed forms, wherever in a step they lie."""
    system = la.Lagrangian(ball, 1, {"g": 1.0}, force=lambda q, v, u: u, inputs={"u": 1})
    h, N = 0.25, 16
    U = 0.3 * np.cos(np.arange(N))[:, None]
    path = la.integrate(
        system, method, [0.5], [0.0], h=h, steps=N, digits=digits, inputs={"u": U},
        events={"floor": la.Impact(lambda q: q[0], restitution=1.0), "low": la.Event(lambda q, p: q[0] - 0.2)},
    )  # fmt: skip
    q, p, t, impacts = 0.5, 0.0, 0.0, []
    for k in range(N):
        left, a = h, U[k, 0] - 1.0
        while True:
            roots = [x for x in np.roots([a / 2, p, q]) if np.isreal(x) and 1e-9 < x.real < left]
            if not roots:
                break
            tau = min(x.real for x in roots)
            impacts.append(t + h - left + tau)
            q, p, left = 0.0, -(p + a * tau), left - tau
        q, p, t = q + p * left + a * left**2 / 2, p + a * left, t + h
    assert len(impacts) >= 2
    np.testing.assert_allclose(path.events["floor"].t.astype(float), impacts, atol=1e-12)
    np.testing.assert_allclose(path.q[-1].astype(float), [q], atol=1e-12)
    assert path.events["low"].count >= 2


def test_events_see_samples_and_nodes_at_their_own_places():
    """An event function of the momentum, in lanes and alone: with samples its time has the order of the method."""
    times = np.linspace(0.0, 3.0, 3001)
    given = {k: la.Samples(times, x) for k, x in zip("uw", signal(times), strict=True)}
    event = {"turn": la.Event(lambda q, p: p[0] - 1.1)}
    exact = la.integrate(TIMED, "P8N8Q16Gau", h=0.05, steps=60, events=event, **START).events["turn"].t
    assert len(exact)
    for N, tolerance in ((30, 2e-6), (60, 3e-8)):
        path = la.integrate(DRIVEN, "P3N3Q6Gau", h=3 / N, steps=N, inputs=given, events=event, **START)
        np.testing.assert_allclose(path.events["turn"].t, exact, rtol=0, atol=tolerance)
        many = la.ensemble(
            DRIVEN, "P3N3Q6Gau", [START["q0"]] * 3, v0=START["v0"], h=3 / N, steps=N, inputs=given, events=event
        )
        np.testing.assert_allclose(many.events["turn"].t[2], path.events["turn"].t, rtol=0, atol=1e-11)
    nodes = nodes_of("P3N3Q6Gau", 0.05, 60)
    path = la.integrate(DRIVEN, "P3N3Q6Gau", h=0.05, steps=60, inputs=nodes, events=event, **START)
    np.testing.assert_allclose(path.events["turn"].t, exact, rtol=0, atol=1e-6)


def test_impacts_in_lanes_have_inputs_of_their_own():
    system = la.Lagrangian(ball, 1, {"g": 1.0}, force=lambda q, v, u: u, inputs={"u": 1})
    rng = np.random.default_rng(4)
    U, q0 = 0.5 * rng.normal(size=(9, 40, 1)), rng.uniform(0.3, 1.0, size=(9, 1))
    events = {"floor": la.Impact(lambda q: q[0], restitution=0.9)}
    paths = la.ensemble(system, "simpson", q0, [0.0], h=0.1, steps=40, inputs={"u": U}, events=events)
    for i in range(9):
        alone = la.integrate(system, "simpson", q0[i], [0.0], h=0.1, steps=40, inputs={"u": U[i]}, events=events)
        np.testing.assert_allclose(paths.q[i], alone.q, atol=1e-12)
        np.testing.assert_allclose(paths[i].events["floor"].t, alone.events["floor"].t, atol=1e-12)


def test_derivatives_through_an_impact():
    system = la.Lagrangian(ball, 1, {"g": 1.0}, force=lambda q, v, u: u, inputs={"u": 1})
    U, events = 0.3 * np.cos(np.arange(12))[:, None], {"floor": la.Impact(lambda q: q[0], restitution=0.8)}

    def run(q, p, **options):
        return la.integrate(system, "simpson", [q], [p], h=0.15, steps=12, inputs={"u": U}, events=events, **options)

    path, eps = run(0.5, 0.1, tangent=True), 1e-6
    assert path.events["floor"].count
    for j, (dq, dp) in enumerate(((eps, 0), (0, eps))):
        slope = (states(run(0.5 + dq, 0.1 + dp))[-1] - states(run(0.5 - dq, 0.1 - dp))[-1]) / (2 * eps)
        np.testing.assert_allclose(path.tangent[-1][:, j], slope, atol=1e-7)


# Files.


@pytest.mark.parametrize("digits", [None, 25])
@pytest.mark.parametrize("kind", rest_slow(["held", "nodes", "samples"], ["held", "samples"]))
def test_a_saved_path_is_read_back(tmp_path, kind, digits):
    h, N, method = 0.1, 12, "P3N3Q6Gau"
    times = np.linspace(0, 1.2, 30)
    samples = {k: la.Samples(times, x, "linear") for k, x in zip("uw", signal(times), strict=True)}
    given = {"held": held_of(h, N), "nodes": nodes_of(method, h, N), "samples": samples}[kind]
    path = la.integrate(DRIVEN, method, h=h, steps=N, inputs=given, digits=digits, every=3, **START)
    for other in (pickle.loads(pickle.dumps(path)), _saved(path, tmp_path)):
        np.testing.assert_array_equal(other.work(), path.work())
        np.testing.assert_array_equal(other([0.05, 0.77]), path([0.05, 0.77]))
        assert other.system.inputs == DRIVEN.inputs
        if kind != "samples":
            np.testing.assert_array_equal(other.inputs["u"].astype(float), given["u"])


def _saved(path, folder):
    path.save(folder / "path.npz")
    return la.Path.load(folder / "path.npz")


@pytest.mark.parametrize("digits", [None, 25])
@pytest.mark.parametrize("kind", rest_slow(["held", "nodes", "previous"], ["nodes", "previous"]))
def test_a_stored_run_goes_on(tmp_path, kind, digits):
    h, N, method = 0.1, 20, "P2N3Q4Lob"
    times = np.arange(N + 1) * h
    samples = {k: la.Samples(times, x, "previous") for k, x in zip("uw", signal(times), strict=True)}
    given = {"held": held_of(h, N), "nodes": nodes_of(method, h, N), "previous": samples}[kind]
    whole = la.integrate(DRIVEN, method, h=h, steps=N, inputs=given, digits=digits, **START)
    options = {"h": h, "digits": digits, **START}
    part = la.integrate(DRIVEN, method, steps=8, inputs=given, store=tmp_path / "a", **options)
    assert part.inputs is not None and set(part.inputs) == {"u", "w"}
    later = la.resume(tmp_path / "a", steps=12)
    np.testing.assert_array_equal(later.q[:], whole.q)
    np.testing.assert_array_equal(la.open(tmp_path / "a").work(), whole.work())
    if kind == "previous":
        short = {k: la.Samples(times[:9], x.values[:9], "previous") for k, x in samples.items()}
    else:
        short = {k: x[:8] for k, x in given.items()}
    la.integrate(DRIVEN, method, steps=8, inputs=short, store=tmp_path / "b", **options)
    with pytest.raises(ValueError, match=r"Give la\.resume\(…, inputs=…\)"):
        la.resume(tmp_path / "b", steps=12)
    other = {k: -x for k, x in given.items()} if kind != "previous" else {
        k: la.Samples(times, -x.values, "previous") for k, x in samples.items()
    }  # fmt: skip
    with pytest.raises(ValueError, match="differ from them between step 0"):
        la.resume(tmp_path / "b", steps=12, inputs=other)
    np.testing.assert_array_equal(la.resume(tmp_path / "b", steps=12, inputs=given).q[:], whole.q)


def test_a_stored_ensemble_goes_on(tmp_path):
    rng = np.random.default_rng(5)
    u, w = rng.normal(size=(6, 30, 2)), rng.normal(size=30)
    options = {"h": 0.1, "q0": rng.normal(size=(6, 2)), "v0": [0.1, 0.0]}
    whole = la.ensemble(DRIVEN, "simpson", steps=30, inputs={"u": u, "w": w}, **options)
    la.ensemble(DRIVEN, "simpson", steps=10, inputs={"u": u[:, :10], "w": w}, store=tmp_path / "a", **options)
    with pytest.raises(ValueError, match="lasts 10 steps, the run 30"):
        la.resume(tmp_path / "a", steps=20)
    later = la.resume(tmp_path / "a", steps=20, inputs={"u": u, "w": w})
    np.testing.assert_array_equal(later.q[:], whole.q)
    np.testing.assert_array_equal(later[4].inputs["u"], u[4])


def test_from_sympy():
    import sympy as sp

    x, xdot, u, k = sp.symbols("x xdot u k")
    system = la.Lagrangian.from_sympy(xdot**2 / 2 - k * x**2 / 2, [x], [xdot], params={"k": 2.0}, force=[u], inputs=[u])
    same = la.Lagrangian(
        lambda q, v, k: 0.5 * v[0] ** 2 - k * q[0] ** 2 / 2, 1, {"k": 2.0}, force=lambda q, v, u: u, inputs={"u": ()}
    )
    U = np.cos(np.arange(20.0))
    paths = [la.integrate(s, "simpson", [0.3], [0.0], h=0.1, steps=20, inputs={"u": U}) for s in (system, same)]
    np.testing.assert_allclose(paths[0].q, paths[1].q, atol=1e-15)
    with pytest.raises(TraceError, match="the Lagrangian cannot take the input 'u'"):
        la.Lagrangian.from_sympy(xdot**2 / 2 - u * x, [x], [xdot], force=[u], inputs=[u])


# A Rayleigh function may read inputs, too.


def test_a_damper_that_is_set_from_outside():
    def oscillator(q, v):
        return 0.5 * v[0] ** 2 - 0.5 * q[0] ** 2

    system = la.Lagrangian(oscillator, 1, dissipation=lambda q, v, c: 0.5 * c * v[0] ** 2, inputs={"c": ()})
    path = la.integrate(system, "simpson", [1.0], [0.0], h=0.05, steps=200, inputs={"c": np.repeat([0.0, 1.0], 100)})
    E = path.energy()
    assert abs(E[100] - E[0]) < 1e-8 and E[-1] < 0.05 * E[0]


# What is refused.


def test_the_force_of_one_instant():
    a = DRIVEN.acceleration([0.1, 0.2], [0.3, 0.4], inputs={"u": [1.0, 2.0], "w": 0.5})
    b = DRIVEN.acceleration([[0.1, 0.2]] * 2, [[0.3, 0.4]] * 2, inputs={"u": [[1.0, 2.0], [0, 0]], "w": [0.5, 0]})
    np.testing.assert_allclose(b[0], a)
    with pytest.raises(ValueError, match="has the inputs 'u', 'w': give values of just these"):
        DRIVEN.acceleration([0.1, 0.2], [0.3, 0.4])
    with pytest.raises(ValueError, match=r"input 'u' has shape \(2,\)"):
        DRIVEN.external_force([0.1, 0.2], [0.3, 0.4], inputs={"u": [1.0], "w": 0.5})
    with pytest.raises(ValueError, match="has no inputs"):
        TIMED.external_force([0.1, 0.2], [0.3, 0.4], inputs={"u": [1.0]})


def drive(q, v, u):
    return u


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"inputs": {"u": 0}}, ValueError, "the shape of input 'u' must be a positive integer"),
        ({"inputs": {"u": 1.5}}, ValueError, "the shape of input 'u' must be a positive integer"),
        ({"inputs": {"u": True}}, ValueError, "the shape of input 'u' must be a positive integer"),
        ({"inputs": {"1u": 1}}, ValueError, "an input's name must be that of an argument"),
        ({"inputs": ["u"]}, TypeError, "inputs must map names to shapes"),
        ({"inputs": {"u": 1, "w": 1}}, TraceError, "no force takes the input 'w'"),
        ({"inputs": {"u": 1}, "params": {"u": 1.0}}, TraceError, "'u' is in params and in inputs"),
        ({"inputs": {"u": 1}, "force": None}, TraceError, "no force takes the input 'u'"),
        ({"inputs": {"u": 3}}, TraceError, "the force has n = 2 components"),
        ({"inputs": {"u": 2}, "fn": lambda q, v, u: 0.5 * (v @ v)}, TraceError, "the Lagrangian cannot take the input"),
        ({"inputs": {"u": 2}, "constraints": lambda q, u: q[0] - u[0]}, TraceError, "the constraints cannot take"),
    ],
)
def test_bad_declarations(options, error, message):
    given = {"fn": lambda q, v: 0.5 * (v @ v), "n": 2, "force": drive} | options
    with pytest.raises(error, match=message):
        la.Lagrangian(given.pop("fn"), given.pop("n"), **given)


GOOD = {"u": np.zeros((5, 2)), "w": np.zeros(5)}
T = np.linspace(0, 0.5, 6)


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        (None, ValueError, "driven by 'u', 'w': give inputs="),
        ({"u": GOOD["u"]}, ValueError, "driven by 'w'"),
        (GOOD | {"x": 1}, ValueError, "has no input 'x'; it has 'u', 'w'"),
        ([1, 2], TypeError, "inputs must map names to values"),
        (
            GOOD | {"u": np.zeros(5)},
            ValueError,
            r"of shape \(2,\), takes an array of shape \(5, 2\), held in each step",
        ),
        (GOOD | {"u": np.zeros((5, 3))}, ValueError, r"got an array of shape \(5, 3\)"),
        (GOOD | {"u": np.zeros((5, 3, 2))}, ValueError, "3 values in a step, while the method has 2 nodes"),
        (GOOD | {"u": np.zeros((1, 5, 2, 2))}, ValueError, r"got an array of shape \(1, 5, 2, 2\)"),
        (GOOD | {"u": np.zeros((4, 2))}, ValueError, "lasts 4 steps, the run 5: give a value for each"),
        (GOOD | {"w": [0, 1, np.nan, 0, 0]}, ValueError, "input 'w' must be finite"),
        (GOOD | {"w": "abc"}, TypeError, "input 'w' must be an array of numbers"),
        (GOOD | {"w": np.sin}, TypeError, "got the function"),
        (GOOD | {"w": la.Samples(T[:4], T[:4])}, ValueError, "reach from t = 0 to 0.3, the run from 0 to 0.5"),
        (GOOD | {"w": la.Samples(T + 0.1, T)}, ValueError, "reach from t = 0.1 to 0.6, the run from 0 to 0.5"),
        (
            GOOD | {"w": la.Samples(T, np.zeros((6, 2)))},
            ValueError,
            r"samples with values of shape \(6,\); got \(6, 2\)",
        ),
    ],
)
def test_bad_inputs(inputs, error, message):
    with pytest.raises(error, match=message):
        la.integrate(DRIVEN, "P2N2Q4Gau", h=0.1, steps=5, inputs=inputs, **START)


@pytest.mark.parametrize(
    ("times", "values", "rule", "message"),
    [
        ([0.0, 1.0, 1.0], [1, 2, 3], "cubic", "ascending"),
        ([0.0, 2.0, 1.0], [1, 2, 3], "cubic", "ascending"),
        ([0.0], [1], "cubic", "at least two"),
        ([0.0, 1.0], [1, 2, 3], "cubic", "samples at 2 times must have values of shape"),
        ([0.0, 1.0], [1, np.nan], "linear", "the values of samples must be finite"),
        ([0.0, np.inf], [1, 2], "linear", "the times of samples must be finite"),
        ([0.0, 1.0], [1, 2], "next", "the rule of samples must be one of 'previous', 'linear', 'cubic'"),
    ],
)
def test_bad_samples(times, values, rule, message):
    with pytest.raises(ValueError, match=message):
        la.Samples(times, values, rule)


@pytest.mark.parametrize("digits", [None, 30])
@pytest.mark.parametrize("rule", ["previous", "linear", "cubic"])
@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
def test_samples_at_one_time_are_those_at_many(digits, rule, shape):
    times = [0.0, 1.0, 2.5, 3.0, 5.0]
    values = np.random.default_rng(1).normal(size=(5, *shape))
    u = la.Samples(times, values, rule).rounded(reals(digits))
    for t in (0.0, 0.7, 2.5, 4.9, 5.0):
        assert u(t).shape == shape
        np.testing.assert_array_equal(u(t), u.at(np.array([t], dtype=u.times.dtype))[0])
    np.testing.assert_allclose(np.array([u(t) for t in times], float), values, rtol=0, atol=1e-15)


def test_what_does_not_go_together():
    run = {"h": 0.1, "steps": 5, **START}
    with pytest.raises(ValueError, match=r"has no input 'u'; la\.Lagrangian"):
        la.integrate(TIMED, "simpson", inputs={"u": np.zeros(5)}, **run)
    with pytest.raises(ValueError, match="a Quadratic system has its load f"):
        la.integrate(la.Quadratic([1.0], [1.0]), "simpson", [1.0], [0.0], h=0.1, steps=5, inputs={"u": np.zeros(5)})
    with pytest.raises(ValueError, match="a force on the rows of a sum takes parameters alone"):
        rows = la.Lagrangian.sum([la.Term(lambda q, v: 0.5 * v[0] ** 2, over=[0, 1])], n=2)
        la.integrate(rows, "simpson", inputs={"u": np.zeros(5)}, **run)
    with pytest.raises(ValueError, match="is driven by u, w"):
        la.integrate(DRIVEN, "simpson", inputs=GOOD, pace=lambda q: 1.0 + q[0] ** 2, **run)
    with pytest.raises(ValueError, match="tol= tries many methods and steps"):
        la.integrate(DRIVEN, tol=1e-6, t_end=1.0, inputs=GOOD, **START)
    with pytest.raises(ValueError, match="tol= tries many methods and steps"):
        la.advise(DRIVEN, [0.3, 0.2], v0=[0.5, -0.4], t_end=1.0, tol=1e-6)
    nodes = {"u": np.zeros((5, 3, 2)), "w": np.zeros((5, 3))}
    with pytest.raises(ValueError, match="the stages of rk4"):
        la.integrate(DRIVEN, "rk4", inputs=nodes, **run)
    with pytest.raises(ValueError, match="is a composition, whose steps go forth and back"):
        la.integrate(DRIVEN, "suzuki(midpoint)", inputs=nodes, **run)
    sampled = {"u": la.Samples(T, np.zeros((6, 2))), "w": la.Samples(T, np.zeros(6))}
    with pytest.raises(ValueError, match="another h moves the times"):
        la.integrate(DRIVEN, "simpson", inputs=sampled, tangent="all", **run)
    with pytest.raises(ValueError, match="needs inputs that are held in each step"):
        event = {"x": la.Event(lambda q, p: q[0])}
        la.integrate(DRIVEN, "simpson", inputs=sampled, tangent=True, events=event, **run)
    with pytest.raises(ValueError, match="the inputs are those of different numbers of trajectories"):
        la.ensemble(DRIVEN, "simpson", inputs={"u": np.zeros((3, 5, 2)), "w": np.zeros((4, 5))}, **run)
    with pytest.raises(ValueError, match="the batch sizes differ"):
        own = {"u": np.zeros((3, 5, 2)), "w": np.zeros(5)}
        la.ensemble(DRIVEN, "simpson", [[0.1, 0.2]] * 4, v0=[0.0, 0.0], h=0.1, steps=5, inputs=own)
    with pytest.raises(ValueError, match="write U"):
        single = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2, 1, force=drive, inputs={"u": 1})
        la.integrate(single, "simpson", [0.0], [0.0], h=0.1, steps=5, inputs={"u": np.zeros(5)})


def test_a_momentum_changes_by_the_impulse_of_the_input():
    planet = la.Lagrangian(
        lambda q, v: 0.5 * (v @ v) + 1 / np.sqrt(q @ q), 2, force=lambda q, v, u: u * q[::-1], inputs={"u": ()}
    )
    U = 0.1 * np.cos(np.arange(100.0))
    orbit = la.integrate(planet, "P4N4Q8Gau", [1.0, 0.0], v0=[0.0, 1.0], h=0.1, steps=100, inputs={"u": U})
    rotation = la.analysis.symmetries(planet).check(orbit)[0]
    assert rotation.name.startswith("rotation") and rotation.exactly


def test_tools_that_bring_no_inputs_say_so():
    with pytest.raises(ValueError, match="is driven by 'u', 'w'"):
        la.analysis.lyapunov(DRIVEN, "simpson", START["q0"], v0=START["v0"], h=0.1, steps=5)
    with pytest.raises(ValueError, match="is driven by 'u', 'w'"):
        la.tangent(DRIVEN, "simpson", START["q0"], [0.0, 0.0], h=0.1)


def test_the_cart_is_drawn(tmp_path):
    problem = catalogued("cart-pole")
    assert la.problems.driven() == ("cart-pole",) and "cart-pole" not in la.problems.names()
    path = la.integrate(
        problem.system, "simpson", problem.q0, problem.p0, h=0.02, steps=50, inputs={"u": np.ones((50, 1))}
    )
    path.to_html(tmp_path / "cart.html")
    seen = look(path.system)
    assert seen.title == "Cart and pole" and seen.names == ("x", "θ")
    points, links = seen.draw(path.q[0], l=0.5)
    assert len(points) == 8 and len(links) == 6
    np.testing.assert_allclose(points[5], [np.sin(0.1), np.cos(0.1)])


def test_the_tangent_of_some_steps_takes_inputs():
    """The derivative of two driven steps is that which a run carries along; by a parameter, too."""
    cart = catalogued("cart-pole")
    driven = {"inputs": {"u": [[1.0], [-2.0]]}, "steps": 2}
    found = la.tangent(cart.system, "P3N3Q6Gau", cart.q0, cart.p0, 0.05, **driven)
    path = la.integrate(cart.system, "P3N3Q6Gau", cart.q0, cart.p0, h=0.05, tangent="all", **driven)
    assert (found.state == path.tangent[-1]).all() and (found.q == path.q[-1]).all()
    with pytest.raises(ValueError, match="driven by 'u'"):
        la.tangent(cart.system, "P3N3Q6Gau", cart.q0, cart.p0, 0.05)
