"""Stable intervals, the guard before a run, and the highest frequency."""

import itertools
import math

import numpy as np
import pytest
from flint import fmpq, fmpq_poly
from scipy.sparse import csr_array

import leastaction as la
from leastaction.linear import Rayleigh, members, stable_intervals
from leastaction.linear.stability import stable_alternative
from leastaction.methods import family
from leastaction.methods.oscillator import Rational, exact_step, moments
from linear_systems import chain, definite, semidefinite, sparse, state

FAMILY = [m.name for m in family(4, 5)]


def growth(name: str, x: float) -> float:
    """Largest |eigenvalue| of one step on ω = 1 with h = x, from the float tables."""
    op = la.linear.Propagator(la.Quadratic([1.0], [1.0]), name, x).operator
    return float(np.abs(np.linalg.eigvals(np.eye(2) + op.W)).max())


@pytest.mark.parametrize("name", FAMILY)
def test_intervals_are_where_the_step_is_bounded(name):
    """Inside every interval the eigenvalues lie on the unit circle; between the intervals one grows."""
    intervals = stable_intervals(name)
    assert intervals[0][0] == 0
    edges = [0.0, *(edge for interval in intervals for edge in interval), 40.0]
    for left, right in itertools.pairwise(edges):
        if not left < right < math.inf:
            continue
        for x in left + (right - left) * np.array([0.03, 0.3, 0.5, 0.7, 0.97]):
            inside = any(lo < x < hi for lo, hi in intervals)
            if inside:
                assert growth(name, x) == pytest.approx(1, abs=1e-7)
            elif right - left > 1e-3:
                assert growth(name, x) > 1 + 1e-9


def test_known_intervals():
    assert stable_intervals("newmark") == ((0.0, math.inf),)
    assert stable_intervals("stormer-verlet") == ((0.0, 2.0),)
    (a, b), (c, d) = stable_intervals("simpson")
    np.testing.assert_allclose([a, b**2, c**2, d**2], [0, 8, 12, 24], rtol=1e-14)
    for s in range(1, 9):
        assert stable_intervals(f"P{s}N{s}Q{2 * s}Gau") == ((0.0, math.inf),)
    assert stable_intervals("rk4")[0][1] == pytest.approx(math.sqrt(8))


def test_a_sufficient_bound_is_not_the_limit():
    """Simpson with h ω between 2√3 and 2√6 is stable again, and the run is allowed to use it."""
    system = la.Quadratic([1.0], [1.0])
    path = la.integrate(system, "simpson", [1.0], [0.0], h=4.0, steps=1000)
    assert np.abs(path.q).max() < 10


@pytest.mark.parametrize("name", ["P1N1Q2Gau", "P2N3Q4Lob", "P3N3Q6Gau", "P4N5Q8Lob", "P5N6Q12Gau"])
def test_exact_functions_agree_with_the_matrices(name):
    """h X and h Y as rational functions of x² against the blocks of the scheme with M = K = 1."""
    step = exact_step(la.method(name))
    for h in (0.3, 1.1, 2.5):
        scheme = members(name, np.eye(1), np.eye(1), h)
        x2 = fmpq(*float(h).as_integer_ratio()) ** 2
        one = Rational(fmpq_poly([1]), fmpq_poly([1]))
        for function, block in (((one + step.c) / step.a_by_x, scheme.X), ((one - step.c) / step.a_by_x, scheme.Y)):
            value = function(x2)
            assert int(value.p) / int(value.q) == pytest.approx(h * block[0, 0], rel=1e-10)


def test_moments_are_those_of_the_rule():
    for rule in (la.gauss(3), la.lobatto(4)):
        for k, mu in enumerate(moments(rule, 12)):
            assert int(mu.p) / int(mu.q) == pytest.approx(float(rule.b @ (2 * rule.c - 1) ** k), abs=1e-15)


def test_unstable_run_is_refused_with_advice():
    system = chain(50)
    h = 1.01 * system.stable_step("simpson")
    with pytest.raises(la.UnstableStepError) as error:
        la.integrate(system, "simpson", *state(50), h=h, steps=10)
    message = str(error.value)
    assert f"{system.omega_max:.6g}" in message
    assert f"{system.stable_step('simpson'):.6g}" in message
    assert "P2N2Q4Gau" in message and "allow_unstable=True" in message
    path = la.integrate(system, "simpson", *state(50), h=h, steps=2000, allow_unstable=True)
    assert np.abs(path.q[-1]).max() > 1e3
    la.integrate(system, "simpson", *state(50), h=0.999 * system.stable_step("simpson"), steps=10)
    la.integrate(system, "P2N2Q4Gau", *state(50), h=100.0, steps=10)


def test_overflow_of_an_unstable_run_keeps_what_came_before():
    for system in (la.Quadratic([1.0], [1.0]), la.Quadratic(np.ones(1), csr_array([[1.0]]))):
        with pytest.raises(la.StepFailed) as error:
            la.integrate(system, "stormer-verlet", [1.0], [0.0], h=3.0, steps=2000, allow_unstable=True)
        path = error.value.path
        assert 100 < len(path) < 2000
        assert np.isfinite(path.q).all()


def test_the_last_finite_state_is_kept_whatever_every_and_no_infinite_one():
    for system in (la.Quadratic([1.0], [0.0]), la.Quadratic(np.ones(1), csr_array([[0.0]]))):
        for every in (1, 7):
            with pytest.raises(la.StepFailed) as error:  # increments are finite, their sum is not
                la.integrate(system, "midpoint", [0.0], [1e307], h=1.0, steps=100, every=every)
            path = error.value.path
            assert error.value.step == path.t[-1] == 17
            assert np.isfinite(path.q).all() and path.q[-1, 0] == pytest.approx(1.7e308)


def test_stable_step():
    system = la.Quadratic(np.eye(2), np.diag([1.0, 9.0]))
    assert system.stable_step("stormer-verlet") == pytest.approx(2 / 3)
    assert system.stable_step("newmark") == math.inf
    assert la.Quadratic([1.0], [0.0]).stable_step("simpson") == math.inf


def test_stable_alternative_has_the_same_order():
    for method in family(4, 5):
        alternative = stable_alternative(method)
        assert alternative.order >= method.order
        assert stable_intervals(alternative) == ((0.0, math.inf),)


@pytest.mark.parametrize("lumped", [True, False])
def test_highest_frequency_by_lanczos(lumped):
    """A chain of 2000 masses: ω_max from the Lanczos iteration against the exact value."""
    n = 2000
    K = csr_array(np.diag(np.full(n, 2.0)) - np.eye(n, k=1) - np.eye(n, k=-1))
    M = np.full(n, 2.0) if lumped else csr_array(2 * np.eye(n) + 0 * np.eye(n, k=1)) + 0.05 * K
    exact = 2 * (1 + math.cos(math.pi / (n + 1)))
    exact = exact / 2 if lumped else exact / (2 + 0.05 * exact)
    assert la.Quadratic(M, K).omega_max == pytest.approx(math.sqrt(exact), rel=1e-6)


@pytest.mark.parametrize(
    "form", [la.Quadratic, lambda M, K, C: sparse(la.Quadratic(M, K, C=C))], ids=["dense", "sparse"]
)
def test_damped_systems_are_judged_with_their_damping(form):
    """Damping closes the gap between Simpson's stable intervals, 2√2 < h ω < 2√3, but does not move 2√6."""
    M, K, start = np.eye(2), np.diag([1.0, 9.0]), ([1.0, 1.0], [0.0, 0.0])
    damped = form(M, K, C=Rayleigh(1.0, 0.0))
    with pytest.raises(la.UnstableStepError):
        la.integrate(form(M, K, C=Rayleigh()), "simpson", *start, h=1.0, steps=10)
    path = la.integrate(damped, "simpson", *start, h=1.0, steps=200)
    assert np.abs(path.q[-1]).max() < 1e-10
    with pytest.raises(la.UnstableStepError):
        la.integrate(damped, "simpson", *start, h=1.7, steps=10)


@pytest.mark.parametrize("n", [4, 40])
def test_rk4_is_judged_with_its_damping(n):
    """Stiffness-proportional damping leads along the negative real axis, which RK4 leaves at −2.785."""
    system = la.Quadratic(np.ones(n), np.linspace(0, 100, n), C=Rayleigh(0.0, 5.0))  # 5 · 100 is the fastest decay
    start = np.ones(n), np.zeros(n)
    with pytest.raises(la.UnstableStepError):
        la.integrate(system, "rk4", *start, h=2.8 / 500, steps=1)
    assert la.integrate(system, "rk4", *start, h=2.78 / 500, steps=1).stats["steps"] == 1


def test_many_free_masses_have_no_frequency():
    system = la.Quadratic(np.ones(1600), csr_array((1600, 1600)))
    assert system.omega_max == 0.0
    assert system.stable_step("simpson") == np.inf


def test_a_general_damping_matrix_counts_in_small_systems():
    """RK4 is stable for h ω = 1 but not for a damping of h c = 20."""
    system = la.Quadratic(np.eye(2), np.eye(2), C=[[20.0, 1.0], [1.0, 20.0]])
    with pytest.raises(la.UnstableStepError, match="multiplies some motion by"):
        la.integrate(system, "rk4", [1.0, 1.0], [0.0, 0.0], h=1.0, steps=10)
    la.integrate(system, "simpson", [1.0, 1.0], [0.0, 0.0], h=1.0, steps=10)


def test_backward_runs_of_damped_systems_are_allowed():
    rng = np.random.default_rng(0)
    system = la.Quadratic(definite(rng, 3), semidefinite(rng, 3, 3), C=Rayleigh(0.1, 0.05))
    q, p = state(3)
    there = la.integrate(system, "simpson", q, p, h=0.1, steps=50)
    back = la.integrate(system, "simpson", there.q[-1], there.p[-1], h=-0.1, steps=50)
    assert np.isfinite(back.q).all()
