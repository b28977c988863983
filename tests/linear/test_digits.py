"""Quadratic systems with damping and load at N digits: closed solutions, order, and float64's own runs."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy

import leastaction as la
from leastaction.numbers.precision import mpmath_digits
from leastaction.numbers.rounding import Digits
from precise import largest
from thrift import rest_slow

DIGITS = 50


def driven(digits=DIGITS):
    """q̈ + q̇/5 + 4 q = cos(3t/2), and its motion: q = Re(X e^{3it/2}) + e^{−t/10} (a cos λt + b sin λt)."""
    system = la.Quadratic([1], [4], C=[["1/5"]], f=lambda t: [np.cos(1.5 * t)])
    with mpmath_digits(digits + 10):
        zeta, drive = mpmath.mpf(1) / 10, mpmath.mpf(3) / 2
        X = 1 / mpmath.mpc(4 - drive**2, 2 * zeta * drive)
        lam = mpmath.sqrt(4 - zeta**2)
        q0, v0 = mpmath.mpf(1) / 2, mpmath.mpf(1) / 4
        a = q0 - X.real
        b = (v0 + zeta * a + drive * X.imag) / lam

    def motion(t):
        with mpmath_digits(digits + 10):
            free = mpmath.exp(-zeta * t) * (a * mpmath.cos(lam * t) + b * mpmath.sin(lam * t))
            return (X * mpmath.expj(drive * t)).real + free

    return system, [q0], [v0], motion


def error(method, h):
    """The largest at any time that is a multiple of 1/20, up to 2: one time alone may lie near a zero of the error."""
    system, q0, v0, motion = driven()
    path = la.integrate(system, method, q0, v0=v0, h=h, t_end=2, digits=DIGITS)
    with mpmath_digits(DIGITS):
        every = len(path) // 40
        return max(abs(q - motion(t)) for q, t in zip(path.q[::every, 0], path.t[::every], strict=True))


@pytest.mark.parametrize("method", ["simpson", "P3N3Q6Gau", "P4N5Q8Lob", "P5N5Q10Gau", "rk4"])
def test_order_with_damping_and_load(method):
    coarse, fine = error(method, "1/20"), error(method, "1/40")
    assert abs(float(mpmath.log(coarse / fine, 2)) - la.method(method).order) < 0.2


def test_closed_solution_to_fifty_digits():
    system, q0, v0, motion = driven()
    path = la.integrate(system, la.galerkin(16, la.gauss(16)), q0, v0=v0, h="1/8", t_end=3, digits=DIGITS)
    with mpmath_digits(DIGITS):
        assert max(abs(path.q[k, 0] - motion(path.t[k])) for k in range(len(path.t))) < mpmath.mpf(10) ** (2 - DIGITS)
        t = mpmath.mpf("1.2345")
        assert abs(path(t)[0] - motion(t)) < mpmath.mpf(10) ** -20  # dense output has the order 17


M = [["2", "1/3", "0"], ["1/3", "1", "1/7"], ["0", "1/7", "3"]]
K = [[5, -2, 0], [-2, 4, -1], [0, -1, 2]]
C = [["3/10", "1/10", 0], ["1/10", "1/5", 0], [0, 0, "1/3"]]
FORCES = {
    "function": lambda t: np.array([np.sin(t), 0.5, t * np.exp(-t)]),
    "constant": ["1/3", 0.2, 1],
    "none": None,
}


@pytest.mark.parametrize(
    "method",
    rest_slow(["midpoint", "simpson", "P3N3Q6Gau", "P3N4Q6Lob", "P2N3Q6Gau", "rk4"], ["midpoint", "P2N3Q6Gau", "rk4"]),
)
@pytest.mark.parametrize("damping", [C, la.linear.Rayleigh(0.1, 0.02), None], ids=["matrix", "rayleigh", "undamped"])
@pytest.mark.parametrize("load", FORCES)
def test_same_steps_as_in_float64(method, damping, load):
    system = la.Quadratic(M, K, C=damping, f=FORCES[load])
    start = {"q0": [0.3, -0.2, 0.5], "p0": [0.1, 0.4, -0.3], "t0": 0.5, "h": 0.05, "steps": 60}
    one, many = la.integrate(system, method, **start), la.integrate(system, method, **start, digits=30)
    np.testing.assert_allclose(many.q.astype(float), one.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(many.p.astype(float), one.p, rtol=0, atol=1e-12)
    np.testing.assert_allclose(many([0.53, 2.21]).astype(float), one([0.53, 2.21]), rtol=0, atol=1e-12)


def test_matrices_and_constant_load_are_as_given():
    """In equilibrium, K q = f to the last digit: no rounding of 1/3 or 1/7 to float64 is left."""
    system = la.Quadratic([1], [["1/7"]], C=[["1/3"]], f=["1/3"])
    path = la.integrate(system, "simpson", ["7/3"], p0=[0], h="1/10", steps=20, digits=DIGITS)
    with mpmath_digits(DIGITS):
        assert abs(path.q - mpmath.mpf(7) / 3).max() < mpmath.mpf(10) ** (1 - DIGITS)


def test_exact_damping_and_load_are_kept_in_files(tmp_path):
    system = la.Quadratic([1], [["1/7"]], C=[["1/3"]], f=["1/3"])
    path = la.integrate(system, "simpson", ["7/3"], p0=[0], h="1/10", steps=4, digits=DIGITS)
    path.save(tmp_path / "run.npz")
    again = la.Path.load(tmp_path / "run.npz")
    assert (again.q == path.q).all()
    assert again.system.unrounded["C"].tolist() == [["1/3"]] and again.system.unrounded["f"].tolist() == ["1/3"]


def test_loads_that_have_no_digits_are_refused():
    times = np.linspace(0, 1, 5)
    sampled = la.Quadratic([1], [1], f=(times, np.sin(times)[:, None]))
    with pytest.raises(ValueError, match="joined in float64"):
        la.integrate(sampled, "simpson", [1], p0=[0], h=0.1, steps=3, digits=30)
    looked_up = la.Quadratic([1], [1], f=lambda t: [{0.0: 1.0}.get(float(t), 0.0)])
    with pytest.raises(ValueError, match=r"with digits= the load f\(t\) must be a NumPy function that can be traced"):
        la.integrate(looked_up, "simpson", [1], p0=[0], h=0.1, steps=3, digits=30)


# M q̈ + K q = 0.

STIFFNESS = {"k": ["1/3", "sqrt(2)"]}
QUADRATIC = la.Quadratic([[2, 1], ["1", 1]], [["1/3", 0], [0, sympy.sqrt(2)]])
AS_LAGRANGIAN = la.Lagrangian(
    lambda q, v, k: v[0] ** 2 + v[0] * v[1] + v[1] ** 2 / 2 - k @ q**2 / 2, n=2, params=STIFFNESS
)


@pytest.mark.parametrize("method", ["midpoint", "simpson", "P3N4Q6Lob", "P5N5Q10Gau", "rk4", "rk4-lagrange"])
def test_quadratic_is_the_lagrangian_of_its_matrices(method, tmp_path):
    run = {"q0": ["1/2", "pi/7"], "v0": [0, "1/9"], "h": "1/10", "steps": 20, "every": 7}
    a = la.integrate(QUADRATIC, method, digits=64, **run)
    b = la.integrate(AS_LAGRANGIAN, method, digits=64, **run)
    ts = ["1/3", "1.77", "2"]
    with mpmath.workdps(70):
        for x, y in ((a.t, b.t), (a.q, b.q), (a.p, b.p), (a.energy(), b.energy()), (a(ts), b(ts))):
            assert largest(x - y) < 1e-63
    double = la.integrate(QUADRATIC, method, **run)
    np.testing.assert_allclose(a.q.astype(float), double.q, rtol=0, atol=1e-14)
    a.save(tmp_path / "path.npz")
    again = la.Path.load(tmp_path / "path.npz")
    assert (again.q == a.q).all() and (again.energy() == a.energy()).all() and (again(ts) == a(ts)).all()


def test_quadratic_by_its_exact_motion():
    system = la.Quadratic(["1/3"], ["2/7"])
    path = la.integrate(system, "P20N20Q40Gau", [1], [0], h="1e-4", steps=2, digits=150)
    with mpmath.workdps(150):
        w = mpmath.sqrt(mpmath.mpf(6) / 7)
        assert largest(path.q[:, 0] - [mpmath.cos(w * t) for t in path.t]) < mpmath.mpf(10) ** -145


def test_quadratic_at_the_callers_low_precision():
    """Nothing is rounded to 15 digits, the precision that mpmath has where nobody sets another."""
    path = la.integrate(la.Quadratic(["1/3"], ["2/7"]), "simpson", [1], v0=["1/9"], h="1/10", steps=1, digits=50)
    v = path.velocity()[0, 0]
    with mpmath.workdps(50):
        assert abs(v - mpmath.mpf(1) / 9) < 1e-50
        assert abs(path.energy()[0] - (mpmath.mpf(1) / 7 + mpmath.mpf(1) / 486)) < 1e-50


@pytest.mark.parametrize("wrap", [list, np.array])
def test_quadratic_keeps_integers_beyond_float64(wrap):
    assert la.Quadratic([1], wrap([2**60 + 1])).exact_matrices(Digits(30))[1][0, 0] == 2**60 + 1


def test_quadratic_limits():
    with pytest.raises(la.UnstableStepError):
        la.integrate(QUADRATIC, "simpson", [1, 1], [0, 0], h=100, steps=1, digits=40)
    whole = la.integrate(QUADRATIC, "simpson", [1, 1], [0, 0], h="1/10", steps=3, digits=40)
    some = la.integrate(QUADRATIC, "simpson", [1, 1], [0, 0], h="1/10", steps=3, digits=40, output=[1])
    assert (some.q == whole.q[:, 1:]).all() and (some.p == whole.p[:, 1:]).all()
