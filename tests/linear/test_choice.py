"""Method and step of linear systems for a tolerance: errors are known before the run."""

import warnings

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp

import leastaction as la
from leastaction.linear.choice import chosen, excited
from leastaction.methods.oscillator import exact_step
from linear_systems import shaken_beam
from seeds import fresh_generator
from thrift import rest_slow
from tolerances import error_of


def chain(n: int) -> sp.csr_array:
    return sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1]).tocsr()


def gauss(s: int) -> str:
    return f"P{s}N{s}Q{2 * s}Gau"


def off(path, reference) -> float:
    """The largest difference of two runs from rest, whose steps are whole numbers of the other's, of the motion."""
    every = (len(reference) - 1) // (len(path) - 1)
    return float(np.abs(path.q - reference.q[::every]).max() / np.ptp(reference.q, axis=0).max())


@pytest.mark.parametrize("s", [1, 2, 3, 4, 6, 8, 12])
def test_the_error_of_one_step_is_that_of_its_rational_function(s):
    """|R(ix) − e^{ix}| = 2 sin(δ/2) at any precision, far below rounding, too."""
    step = exact_step(la.method(gauss(s)))
    with mpmath.workdps(80):
        for x in (0.1, 0.7, 1.9, 4.0, 9.0):

            def value(f, x=x):
                parts = ([mpmath.mpf(int(c.p)) / int(c.q) for c in g.coeffs()] for g in (f.numerator, f.denominator))
                top, bottom = (mpmath.polyval(part[::-1], mpmath.mpf(x) ** 2) for part in parts)
                return top / bottom

            delta = mpmath.atan2(value(step.a_by_x) * x, value(step.c)) - mpmath.mpf(x)
            wanted = float(2 * abs(mpmath.sin(delta / 2)))
            there = excited(la.Quadratic([1.0], [x * x]), np.ones(1), np.zeros(1), 0.0, 1.0)
            if abs(delta) < 1:  # larger errors are bounded
                assert there.error(s, 1) == pytest.approx(wanted, rel=1e-9, abs=1e-50)


def test_the_error_of_a_start_is_that_of_the_run():
    """Mode by mode, without damping; backward, too."""
    rng = fresh_generator()
    A = rng.normal(size=(12, 12))
    system = la.Quadratic(np.diag(rng.uniform(0.5, 2, 12)), A @ A.T + np.eye(12) / 4)
    q, p = rng.normal(size=(2, 12))
    there, modes = excited(system, q, p, 0.0, 7.0), system.modes()
    for s, steps in ((2, 400), (4, 60), (6, 40)):
        path = la.integrate(system, gauss(s), q, p, h=7.0 / steps, t_end=7.0)
        off_q, off_p = (at[-1] - exact for at, exact in zip((path.q, path.p), system.exact(q, p, 7.0), strict=True))
        # A mode whose error passes through zero at the end has it in its momentum: both parts are what is bounded.
        both = modes.shape @ (modes.dual.T @ off_q - 1j * (modes.shape.T @ off_p) / modes.omega)
        assert np.abs(both).max() == pytest.approx(there.error(s, steps), rel=0.02, abs=1e-13)
    back = la.integrate(system, q0=q, p0=p, t0=7.0, t_end=0.0, tol=1e-9)
    assert error_of(back, system.exact(q, p, -7.0)[0]) <= 1e-9


@pytest.mark.parametrize("ratio", [0.01, 0.3, 1.0, 5.0])
def test_the_error_of_a_damped_start_is_that_of_the_run(ratio):
    """One oscillator, below and above critical damping, at the four times that are looked at."""
    w, c = 3.0, 2 * ratio * 3.0
    system = la.Quadratic([1.0], [w * w], C=[c])
    there = excited(system, np.ones(1), np.zeros(1), 0.0, 6.4)
    path = la.integrate(system, gauss(2), [1.0], [0.0], h=0.1, steps=64)
    fine = la.integrate(system, gauss(8), [1.0], [0.0], h=0.1, steps=64)
    errors = np.abs(path.q - fine.q)[[1, 4, 16, 64], 0]
    assert errors.max() <= 1.02 * there.error(2, 64)
    assert errors.max() >= 0.1 * there.error(2, 64)  # a phase may hide most of the error of an oscillation


def test_small_and_sparse_systems():
    oscillators = la.Quadratic(np.eye(3), np.diag([1.0, 4.0, 9.0]))
    path = la.integrate(oscillators, q0=[1, 1, 1], v0=[0, 0, 0], t_end=20.0, tol=1e-8)
    assert f"h = {path.h:.6g}" in repr(path.advice) and path.advice.reached <= 1e-8
    assert error_of(path, np.cos(20.0 * np.array([1, 2, 3]))) < 1e-8
    n = 200  # a chain of masses, of which some are plucked: against its modes
    start = np.exp(-((np.arange(n) - 60.0) ** 2) / 20)
    omega2, modes = np.linalg.eigh(chain(n).toarray())
    exact = modes @ (np.cos(np.sqrt(omega2) * 30.0) * (modes.T @ start))
    wave = la.integrate(la.Quadratic(sp.identity(n).tocsr(), chain(n)), q0=start, v0=np.zeros(n), t_end=30.0, tol=1e-7)
    assert error_of(wave, exact) < 1e-7


def test_stiff_modes_are_stepped_coarsely_where_nothing_excites_them():
    stiff = la.Quadratic(np.ones(2), np.array([1.0, 1e12]))
    slow = stiff.chosen(np.array([1.0, 0.0]), np.zeros(2), 0.0, 10.0, 1e-6)
    assert 10.0 / slow.h < 1000 and slow.error <= 1e-6 and "for 1 modes" in slow.reason
    fast = stiff.chosen(np.array([1.0, 1e-3]), np.zeros(2), 0.0, 10.0, 1e-6)
    assert 10.0 / fast.h > 1e6


@pytest.mark.parametrize(("n", "tol"), rest_slow([(40, 1e-4), (40, 1e-7), (200, 1e-6), (2000, 1e-4)], [(40, 1e-7)]))
def test_the_expected_error_of_a_shaken_beam_is_a_bound(n, tol):
    """Beside a run with sixteen times as many steps."""
    system, rest = shaken_beam(n), np.zeros(n)
    choice = chosen(system, rest, rest, 0.0, 10.0, tol)
    steps = round(10 / choice.h)
    path = la.integrate(system, choice.method, rest, rest, h=10 / steps, steps=steps)
    fine = la.integrate(system, "P4N4Q8Gau", rest, rest, h=10 / steps / 16, steps=16 * steps, every=16)
    assert off(path, fine) <= choice.error <= tol


def test_a_tolerance_below_rounding_is_not_claimed():
    """The entries of K of a beam of 1000 elements are known to a last place, and so are its frequencies to 10⁻⁶."""
    system, rest = shaken_beam(2000), np.zeros(2000)
    choice = chosen(system, rest, rest, 0.0, 10.0, 1e-9)
    assert choice.error > 1e-9 and choice.h > 1e-4 and "rounding" in choice.reason


def test_tol_of_a_large_beam():
    """No method, no step, no failure: the issue's case, with fewer stored numbers than a megabyte a state."""
    system, rest = shaken_beam(2000), np.zeros(2000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = la.integrate(system, q0=rest, p0=rest, t_end=10, tol=1e-4)
    fine = la.integrate(shaken_beam(200), "P4N4Q8Gau", rest[:200], rest[:200], h=0.002, t_end=10)
    assert np.abs(path.q[-1, 1998] - fine.q[-1, 198]) < 1e-4 * np.ptp(fine.q[:, 198])


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("rule", ["previous", "linear", "cubic"])
def test_records_of_all_rules(rule, general):
    """Jumps and kinks of a record fall on the ends of steps."""
    n, rest = 20, np.zeros(20)
    system = shaken_beam(n, rule=rule, general=general)
    choice = chosen(system, rest, rest, 0.0, 10.0, 1e-5)
    steps = round(10 / choice.h)
    path = la.integrate(system, choice.method, rest, rest, h=10 / steps, steps=steps)
    fine = la.integrate(system, "P4N4Q8Gau", rest, rest, h=10 / steps / 16, steps=16 * steps)
    assert off(path, fine) <= choice.error <= 1e-5


def test_loads_of_all_kinds():
    """A function, a table, a vector times a record and a constant vector: each keeps its tolerance."""
    n = 60
    K = sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1]).tocsr() * 100
    at = np.linspace(0, 20, 401)
    end = np.eye(n)[-1]
    loads = {
        "function": lambda t: np.sin(2 * t) * end,
        "table": la.Samples(at, np.outer(np.sin(2 * at), end)),
        "record": la.linear.Load(end, at, np.sin(2 * at)),
        "constant": end,
    }
    for name, f in loads.items():
        for C in (None, la.linear.Rayleigh(0.1, 0.001), 0.2 * sp.eye_array(n)):
            system = la.Quadratic(np.ones(n), K, C=C, f=f)
            path = la.integrate(system, q0=np.zeros(n), p0=np.zeros(n), t_end=20, tol=1e-6)
            fine = la.integrate(system, "P6N6Q12Gau", np.zeros(n), np.zeros(n), h=0.01, t_end=20)
            error = np.abs(path.q[-1] - fine.q[-1]).max() / np.ptp(fine.q, axis=0).max()
            assert error <= 1e-6, (name, C)


def test_a_free_structure_under_a_load():
    """Two masses on a spring, pushed at one: a mode without frequency, for which all members are exact."""
    system = la.Quadratic([1.0, 1.0], [[4.0, -4.0], [-4.0, 4.0]], f=[1.0, 0.0])
    choice = chosen(system, np.zeros(2), np.zeros(2), 0.0, 30.0, 1e-7)
    path = la.integrate(system, choice.method, [0, 0], [0, 0], h=choice.h, t_end=30)
    t, w = 30.0, np.sqrt(8.0)
    apart = (1 - np.cos(w * t)) / w**2
    exact = np.array([t * t / 4 + apart / 2, t * t / 4 - apart / 2])
    assert np.abs(path.q[-1] - exact).max() < 1e-7 * 225


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_large_linear_systems(tol):
    """A wave on 20,000 masses, beside the modes of its neighbourhood."""
    n, part = 20_000, 300
    system = la.Quadratic(sp.identity(n).tocsr(), chain(n))
    bump = np.exp(-((np.arange(n) - 80.0) ** 2) / 20)
    omega2, modes = np.linalg.eigh(chain(part).toarray())
    omega = np.sqrt(omega2)
    for q, v in ((bump, 0 * bump), (0 * bump, bump)):
        at = modes.T @ q[:part] * np.cos(omega * 40) + modes.T @ v[:part] * np.sin(omega * 40) / omega
        path = la.integrate(system, q0=q, v0=v, t_end=40.0, tol=tol, every=2**40)
        assert np.abs(path.q[-1, :200] - (modes @ at)[:200]).max() / path.advice.size <= tol
        assert path.advice.reached <= tol


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_a_start_with_all_frequencies(tol):
    """3,000 masses, each somewhere: the expected error is about that of the run, beside one of four times the steps."""
    n, t_end = 3000, 100.0
    system = la.Quadratic(np.ones(n), chain(n))
    q = np.random.default_rng(0).normal(size=n)
    choice = chosen(system, q, np.zeros(n), 0.0, t_end, tol)
    steps = round(t_end / choice.h)
    coarse, fine = (
        la.integrate(system, method, q, np.zeros(n), h=t_end / N, steps=N).q
        for method, N in ((choice.method, steps), ("P8N8Q16Gau", 4 * steps))
    )
    error = np.abs(coarse[-1] - fine[-1]).max() / np.ptp(fine, axis=0).max()
    # 72 modes know the norm of the error; its largest value among 3,000 masses they know to a factor of two.
    assert choice.error / 2 < error < 2 * choice.error and error <= tol
