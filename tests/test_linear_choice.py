"""tol= for linear systems without damping and load: formulas give the errors before any run."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp

import leastaction as la
from leastaction.linear.dispersion import excited, turn
from leastaction.methods.oscillator import exact_step
from seeds import fresh_generator
from tolerances import error_of


def chain(n: int) -> sp.csr_array:
    return sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1]).tocsr()


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


@pytest.mark.parametrize("s", [1, 2, 3, 4, 6, 8, 12])
def test_dispersion_of_the_gauss_members(s):
    """δ by spherical Bessel functions is that of the exact rational functions of the step, far below rounding, too."""
    step = exact_step(la.method(f"P{s}N{s}Q{2 * s}Gau"))
    with mpmath.workdps(80):
        for x in (0.1, 0.7, 1.9, 4.0, 9.0):

            def value(f, x=x):
                parts = ([mpmath.mpf(int(c.p)) / int(c.q) for c in g.coeffs()] for g in (f.numerator, f.denominator))
                top, bottom = (mpmath.polyval(part[::-1], mpmath.mpf(x) ** 2) for part in parts)
                return top / bottom

            wanted = mpmath.atan2(value(step.a_by_x) * x, value(step.c)) - mpmath.mpf(x)
            wanted -= 2 * mpmath.pi * mpmath.nint(wanted / (2 * mpmath.pi))
            assert turn(s, np.array([x]))[0] == pytest.approx(float(wanted), rel=1e-10, abs=1e-50)


def test_errors_are_known_before_the_run():
    """The error predicted is that of the run, mode by mode; a mode that hardly moves may be taken coarsely."""
    rng = fresh_generator()
    A = rng.normal(size=(12, 12))
    system = la.Quadratic(
        np.diag(rng.uniform(0.5, 2, 12)), A @ A.T + np.eye(12) / 4
    )  # p/ω magnifies the rounding of slow modes
    q, p = rng.normal(size=(2, 12))
    there = excited(system, q, p, 7.0)
    modes = system.modes()
    for s, steps in ((2, 400), (4, 60), (6, 40)):
        path = la.integrate(system, f"P{s}N{s}Q{2 * s}Gau", q, p, h=7.0 / steps, t_end=7.0)
        off_q, off_p = (at[-1] - exact for at, exact in zip((path.q, path.p), system.exact(q, p, 7.0), strict=True))
        # A mode whose error passes through zero at the end has it in its momentum: both parts are what is bounded.
        off = modes.shape @ (modes.dual.T @ off_q - 1j * (modes.shape.T @ off_p) / modes.omega)
        assert np.abs(off_q).max() <= 1.01 * there.error(s, steps) * there.size
        assert np.abs(off).max() == pytest.approx(there.error(s, steps) * there.size, rel=0.02, abs=1e-13)
    back = la.integrate(system, q0=q, p0=p, t0=7.0, t_end=0.0, tol=1e-9)
    assert error_of(back, system.exact(q, p, -7.0)[0]) <= 1e-9


def test_the_choice_of_a_system():
    """By formulas where there are no damping and no load; a stiff mode that does not move costs nothing."""
    stiff = la.Quadratic(np.ones(2), np.array([1.0, 1e12]))
    slow = stiff.chosen(np.array([1.0, 0.0]), np.zeros(2), 0.0, 10.0, 1e-6)
    assert 10.0 / slow.h < 1000 and slow.error <= 1e-6 and "exact dispersion of 2 modes" in slow.reason
    fast = stiff.chosen(np.array([1.0, 1e-3]), np.zeros(2), 0.0, 10.0, 1e-6)
    assert 10.0 / fast.h > 1e6
    damped = la.Quadratic([1.0], [1.0], C=[0.1])
    assert damped.chosen(np.ones(1), np.zeros(1), 0.0, 10.0, 1e-6) is None
    pendulum = la.problems.get("pendulum").system
    assert pendulum.chosen(np.ones(1), np.zeros(1), 0.0, 10.0, 1e-6) is None


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_large_systems(tol):
    """A wave on 20,000 masses, by Lanczos' process on the start, beside the modes of its neighbourhood."""
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


def test_damping_is_measured():
    n = 2000
    bump = np.exp(-((np.arange(n) - 80.0) ** 2) / 20)
    damped = la.Quadratic(sp.identity(n).tocsr(), chain(n), C=la.linear.Rayleigh(0.1, 0.01))
    measured = la.integrate(damped, q0=bump, v0=0 * bump, t_end=5.0, tol=1e-6)
    assert measured.advice.reached <= 1e-6 and measured.advice.rate is not None
