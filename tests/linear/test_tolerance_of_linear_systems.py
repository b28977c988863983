"""Linear systems with tol=."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import leastaction as la
from linear_systems import shaken_beam
from tolerances import error_of


def chain(n: int) -> sp.csr_array:
    return sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1]).tocsr()


def gauss(s: int) -> str:
    return f"P{s}N{s}Q{2 * s}Gau"


def off(path, reference) -> float:
    """The largest difference of two runs from rest, whose steps are whole numbers of the other's, of the motion."""
    every = (len(reference) - 1) // (len(path) - 1)
    return float(np.abs(path.q - reference.q[::every]).max() / np.ptp(reference.q, axis=0).max())


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
    path = la.integrate(stiff, q0=[1.0, 0.0], p0=[0.0, 0.0], t_end=10.0, tol=1e-6)
    assert path.h > 0.01 and error_of(path, np.array([np.cos(10.0), 0.0])) <= 1e-6


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
    n, rest = 20, np.zeros(20)
    system = shaken_beam(n, rule=rule, general=general)
    path = la.integrate(system, q0=rest, p0=rest, t_end=10.0, tol=1e-5, every=2**40)
    fine = la.integrate(system, "P4N4Q8Gau", rest, rest, h=10 / 16_000, steps=16_000)
    assert np.abs(path.q[-1] - fine.q[-1]).max() / np.ptp(fine.q, axis=0).max() <= 1e-5 or path.advice.reached > 1e-5


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
    """Two masses on a spring, pushed at one: a mode without frequency."""
    system = la.Quadratic([1.0, 1.0], [[4.0, -4.0], [-4.0, 4.0]], f=[1.0, 0.0])
    path = la.integrate(system, q0=[0, 0], p0=[0, 0], t_end=30, tol=1e-7)
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
    """3,000 masses, each somewhere, beside a run of four times the steps."""
    n, t_end = 3000, 100.0
    system = la.Quadratic(np.ones(n), chain(n))
    q = np.random.default_rng(0).normal(size=n)
    path = la.integrate(system, q0=q, p0=np.zeros(n), t_end=t_end, tol=tol, every=2**40)
    steps = 4 * round(t_end / path.h)
    fine = la.integrate(system, "P8N8Q16Gau", q, np.zeros(n), h=t_end / steps, steps=steps).q
    assert np.abs(path.q[-1] - fine[-1]).max() / np.ptp(fine, axis=0).max() <= tol
