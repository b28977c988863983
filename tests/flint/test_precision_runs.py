"""Paths at N digits, precision left as it was found, and what goes wrong."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import flint
import mpmath
import numpy as np
import pytest
import sympy

import leastaction as la
from interrupts import pressed_after
from leastaction.numbers.rounding import Digits
from precise import SPRING, START, largest, spring
from systems import catalogued

# Paths.


def test_save_and_load_keep_every_digit(tmp_path):
    system = la.Lagrangian(spring, n=2, params={"k": sympy.sqrt(2), "c": Fraction(1, 3)})
    path = la.integrate(system, "simpson", h="1/10", t_end="pi/2", every=3, digits=80, **START)
    path.save(tmp_path / "path.npz")
    again = la.Path.load(tmp_path / "path.npz")
    assert again.digits == 80 and again.h == path.h and again.params == path.params
    for name in ("t", "q", "p"):
        assert (getattr(again, name) == getattr(path, name)).all()
    assert (again.energy() == path.energy()).all()
    assert (again("1/7") == path("1/7")).all()
    longer = la.integrate(again.system, "simpson", h="1/10", steps=2, digits=150, **START)
    direct = la.integrate(system, "simpson", h="1/10", steps=2, digits=150, **START)
    assert (longer.q == direct.q).all()  # the defaults come back exact, not as 80 digits of them


def test_dense_output_is_the_polynomial_of_the_step():
    """It meets the nodes, does not depend on `every`, and is a polynomial of degree s."""
    path = la.integrate(SPRING, "P3N3Q6Gau", h="1/5", steps=6, digits=64, **START)
    sparse = la.integrate(SPRING, "P3N3Q6Gau", h="1/5", steps=6, every=4, digits=64, **START)
    ts = ["1/20", "1/10", "3/20", "1/5", "0.77", "6/5"]
    with mpmath.workdps(64):
        assert largest(path(path.t) - path.q) < 1e-63
        assert largest(path(ts) - sparse(ts)) < 1e-63
        z = path(["0", "1/20", "1/10", "3/20", "1/5"])
        assert largest(z[0] - 4 * z[1] + 6 * z[2] - 4 * z[3] + z[4]) < 1e-63
    assert path("1/3").shape == (2,) and path([["1/3"]]).shape == (1, 1, 2)
    with pytest.raises(ValueError, match=r"covers t = 0 … 1\.2; asked for t = 1\.5"):
        path("3/2")


def test_t_end_every_and_stats():
    path = la.integrate(SPRING, "simpson", h="1/10", t_end="1/3", every=3, digits=50, **START)
    with mpmath.workdps(50):
        assert path.t[-1] == Digits(50).array("1/3") and abs(path.h - mpmath.mpf(1) / 12) < 1e-50
    assert len(path) == 3 and path.stats["steps"] == 4
    assert path.stats["floor"] < 1e-58 and path.stats["time_per_step"] > 0
    assert "50 digits" in repr(path)
    assert json.dumps(dict(path.stats))


def test_plot():
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    path = la.integrate(SPRING, "simpson", h="1/10", steps=5, digits=40, **START)
    for what in ("configuration", "phase", "energy"):
        path.plot(what)
    plt.close("all")


def test_precision_of_the_caller_is_left_alone():
    before = mpmath.mp.prec, flint.ctx.prec
    la.integrate(SPRING, "simpson", h="1/10", steps=2, digits=300, **START).energy()
    assert (mpmath.mp.prec, flint.ctx.prec) == before


def test_a_system_at_rest_stays_there_and_numpy_integers_are_digits(tmp_path):
    path = la.integrate(SPRING, "simpson", [0, 0], [0, 0], h="1/10", steps=3, digits=np.int64(40))
    assert not path.q.any()
    assert path.stats["floor"] == 0.0
    path.save(tmp_path / "run.npz")
    assert la.Path.load(tmp_path / "run.npz").digits == 40


def test_threads_do_not_disturb_each_others_precision():
    """flint and mpmath have one precision for the whole process."""

    def run(digits):
        return la.integrate(SPRING, "simpson", h="1/30", t_end="7/3", digits=digits, **START)

    def linear(k):
        return la.integrate(la.Quadratic([1.0, 2.0 + k], [1.0, 1.0]), "P3N3Q6Gau", [1, 1], [0, 0], h=0.1, steps=2)

    alone = {digits: run(digits) for digits in (30, 200)}
    before = mpmath.mp.prec, flint.ctx.prec
    with ThreadPoolExecutor(5) as pool:
        others = [pool.submit(linear, k) for k in range(20)]
        paths = list(pool.map(run, [30, 200] * 6))
        assert all(np.isfinite(other.result().q).all() for other in others)
    for path in paths:
        for name in "tqp":
            assert (getattr(path, name) == getattr(alone[path.digits], name)).all()
    assert (mpmath.mp.prec, flint.ctx.prec) == before


# What goes wrong.


@pytest.mark.parametrize("digits", [0, -3, 1, 2.5, "64", True])
def test_digits_must_be_a_number_of_digits(digits):
    with pytest.raises(ValueError, match="digits must be an integer"):
        la.integrate(SPRING, "simpson", h="1/10", steps=1, digits=digits, **START)


def test_wrong_input_is_named():
    with pytest.raises(TypeError, match="h must be a number"):
        la.integrate(SPRING, "simpson", h="fast", steps=1, digits=30, **START)
    with pytest.raises(TypeError, match=r"q0 must be numbers, of shape \(2,\)"):
        la.integrate(SPRING, "simpson", ["x", 1], [0, 0], h=1, steps=1, digits=30)
    with pytest.raises(ValueError, match=r"q0 must have shape \(2,\)"):
        la.integrate(SPRING, "simpson", ["1"], [0, 0], h=1, steps=1, digits=30)
    with pytest.raises(TypeError, match="parameter 'k' must be a number"):
        la.integrate(SPRING, "simpson", h=1, steps=1, params={"k": "stiff"}, digits=30, **START)


def test_degenerate_lagrangian():
    system = la.Lagrangian(lambda q, v: v[0] ** 2 / 2 - q[0] * q[1], n=2)
    with pytest.raises(la.DegenerateLagrangianError, match=r"∂L/∂v\[1\] does not depend on v"):
        la.integrate(system, "simpson", [1, 1], v0=[0, 0], h="1/10", steps=1, digits=40)


def test_a_step_that_has_no_solution_fails_as_in_float64():
    system = la.Lagrangian(lambda q, v: v[0] ** 2 / 2 + q[0] ** 4 / 4, n=1)
    failures = []
    for digits in (None, 40):
        with pytest.raises(la.StepFailed) as caught:
            la.integrate(system, "midpoint", ["1/2"], v0=[1], h="1/10", steps=50, digits=digits)
        failures.append(caught.value)
    a, b = failures
    assert a.step == b.step and len(a.path) == len(b.path) == b.step + 1
    assert str(b).split(" (")[0] == str(a).split(" (")[0]
    assert isinstance(b.path.q[0, 0], mpmath.mpf)


@pytest.mark.parametrize("method", ["P2N3Q6Gau", "P2N5Q8Lob", "P2N6Q10Lob"])
def test_a_step_beyond_a_fold_fails_within_a_run(method):
    """Five steps in a revolution: the branch of the fifth ends just before h = 1, where a wrong root is near."""
    kepler = catalogued("kepler-galerkin")
    for digits in (None, 40):
        with pytest.raises(la.StepFailed, match="connected with the motion") as caught:
            la.integrate(kepler.system, method, kepler.q0, kepler.p0, h=1, steps=25, digits=digits)
        assert caught.value.step == 4


@pytest.mark.parametrize("method", ["rk4", "rk4-lagrange", "simpson"])
def test_leaving_the_domain_of_the_lagrangian_fails(method):
    system = la.Lagrangian(lambda q, v: v[0] ** 2 / 2 - q[0] ** la.const("3/2"), n=1)
    failures = []
    for digits in (None, 40):
        with pytest.raises(la.StepFailed) as caught:
            la.integrate(system, method, ["1/4"], v0=[-5], h="1/20", steps=5, digits=digits)
        failures.append(caught.value)
    assert failures[0].step == failures[1].step == 0


def test_interrupt_returns_what_there_is():
    system = la.Lagrangian(lambda q, v: v[0] ** 2 / 2 - q[0] ** 2 / 2, n=1)
    with pressed_after(20), pytest.warns(RuntimeWarning, match="interrupted"):
        path = la.integrate(system, "simpson", [1], [0], h="1/10", steps=10**6, every=10, digits=64)
    assert path.stats["interrupted"] and 1 < len(path) < 10**5


def test_a_momentum_that_no_velocity_has_is_refused():
    """L = √(1 + v²): |p| < 1."""
    system = la.Lagrangian(lambda q, v: np.sqrt(1 + v[0] ** 2), n=1)
    for digits in (None, 40):
        with pytest.raises(la.DegenerateLagrangianError, match="no velocity"):
            la.integrate(system, "simpson", [0], [2], h="1/10", steps=1, digits=digits)
        path = la.integrate(system, "simpson", [0], ["3/5"], h="1/10", steps=1, digits=digits)
        assert abs(path.velocity()[0, 0] - 0.75) < 1e-15


@pytest.mark.parametrize("digits", [None, 40])
@pytest.mark.parametrize("wrong", [{"q0": [0, float("nan")]}, {"h": float("inf")}, {"params": {"k": -np.inf}}])
def test_what_is_not_finite_is_named(digits, wrong):
    with pytest.raises(
        ValueError, match=f"{'parameter .k.' if 'params' in wrong else next(iter(wrong))} must be finite"
    ):
        la.integrate(SPRING, "simpson", **{**START, "h": "1/10", "steps": 1, "digits": digits, **wrong})
