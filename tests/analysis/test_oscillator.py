"""Phase and energy on the harmonic oscillator in closed form, and long-time scans of h."""

import mpmath
import numpy as np
import pytest
import sympy

import leastaction as la
from leastaction.analysis import dispersion, iteration_matrix, resonance, stability
from leastaction.methods import family
from thrift import rest_slow

OSCILLATOR = la.Lagrangian(lambda q, v, w: 0.5 * v[0] ** 2 - 0.5 * w**2 * q[0] ** 2, n=1, params={"w": 1.0})


def test_known_leading_terms():
    """Midpoint: θ = 2 arctan(x/2); Störmer–Verlet: θ = 2 arcsin(x/2); RK4: the argument of a truncated exponential."""
    x = sympy.Symbol("x")
    known = {
        "midpoint": 2 * sympy.atan(x / 2),
        "stormer-verlet": 2 * sympy.asin(x / 2),
        "rk4": sympy.atan((x - x**3 / 6) / (1 - x**2 / 2 + x**4 / 24)),
    }
    for name, angle in known.items():
        expected = sympy.series(angle / x, x, 0, 10).removeO()
        ours = dispersion(name).series(5)
        assert [ours.coeff(x, k) for k in range(10)] == [sympy.expand(expected).coeff(x, k) for k in range(10)]
    assert (dispersion("midpoint").phase_error.coefficient, dispersion("midpoint").phase_error.power) == (
        sympy.Rational(-1, 12),
        2,
    )


@pytest.mark.parametrize("member", [*rest_slow([*family(5, 6)], [*family(4, 4)]), la.method("rk4")], ids=str)
def test_leading_terms_against_the_matrix_in_100_digits(member):
    result = dispersion(member)
    x = sympy.Symbol("x")
    with mpmath.workdps(100):
        small = mpmath.mpf(10) ** -4
        M = iteration_matrix(member).evalf(100, subs={x: sympy.Float(small, 100)})
        c, a, b = (mpmath.mpf(str(entry)) for entry in (M[0, 0], M[1, 0], -M[0, 1]))
        phase = mpmath.atan2(mpmath.sqrt(a * b), c) / small - 1
        assert float(phase / small**result.phase_error.power) == pytest.approx(
            float(result.phase_error.coefficient), rel=1e-5
        )
        assert result.phase_error.power == member.order
        if result.energy_error.coefficient == 0:
            assert member.s == member.rule.r and member.rule.family == "Gau"
        else:
            energy = (c * c + a * b - 1) if member.name == "rk4" else b / a - 1
            assert float(energy / small**result.energy_error.power) == pytest.approx(
                float(result.energy_error.coefficient), rel=1e-5
            )


@pytest.mark.parametrize("name", ["simpson", "P3N4Q6Lob", "P4N4Q6Lob", "P3N3Q6Gau", "rk4"])
@pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning")  # at steps this large its energy swings
def test_energy_in_closed_form_is_that_of_a_run(name):
    x, p0, q0 = 0.9, 0.3, 1.0
    path = la.integrate(OSCILLATOR, name, [q0], [p0], h=x, steps=2000)
    result = dispersion(name)
    energy = result.energy(x, np.arange(len(path)), p0, q0)
    np.testing.assert_allclose(path.energy(), energy, rtol=0, atol=2e-11)
    if name != "rk4":
        low, high = result.energy_bounds(x, p0, q0)
        assert low - 1e-12 <= path.energy().min() and path.energy().max() <= high + 1e-12
        assert (path.energy().max() - path.energy().min()) == pytest.approx(high - low, rel=1e-2, abs=1e-12)


@pytest.mark.parametrize("name", ["midpoint", "simpson", "P3N3Q6Gau", "P3N4Q6Lob"])
@pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning")  # at steps this large its energy swings
def test_frequency_is_that_of_a_run(name):
    """The phase turned over many steps, in every stable band."""
    result = dispersion(name)
    for interval in stability(name):
        lower, upper = interval.floats
        x = lower + 0.37 * (min(upper, lower + 4) - lower)
        steps = 1000
        path = la.integrate(OSCILLATOR, name, [0.0], [1.0], h=x, steps=steps)
        rho = float(result.rho.subs(sympy.Symbol("x"), x))
        turned = np.unwrap(np.arctan2(np.sqrt(rho) * path.q[:, 0], path.p[:, 0]))
        theta = float(result.phase(x))
        assert np.cos(theta) == pytest.approx(np.cos(turned[1]), abs=1e-12)
        angle = (steps * theta - turned[-1]) / (2 * np.pi)
        assert angle == pytest.approx(round(angle), abs=1e-8) or np.sin(steps * theta) == pytest.approx(
            np.sin(turned[-1]), abs=1e-8
        )


def test_phase_grows_through_the_bands():
    result = dispersion("P3N4Q6Lob")
    x = np.linspace(0.05, 8.5, 400)
    theta = result.phase(x)
    assert (np.diff(theta) > -1e-12).all() and theta[-1] > 2 * np.pi
    inside = (x > 5.4773) & (x < 7.745)
    np.testing.assert_allclose(theta[inside], 2 * np.pi, rtol=1e-15)
    gauss = dispersion("P3N3Q6Gau").phase(np.array([1e-3, 10.0, 1e4]))
    assert gauss[0] == pytest.approx(1e-3, rel=1e-15) and gauss[2] == pytest.approx(3 * np.pi, rel=1e-3)


def test_unstable_energy_is_refused():
    with pytest.raises(ValueError, match="not stable"):
        dispersion("simpson").energy_bounds(3.0)
    with pytest.raises(ValueError, match="no bounds"):
        dispersion("rk4").energy_bounds(0.1)


def test_a_scan_of_h_finds_the_gap_that_theory_predicts():
    gap = stability("P3N4Q6Lob").gaps[0]
    h = np.linspace(3.05, 3.2, 7)
    result = resonance(OSCILLATOR, "P3N4Q6Lob", [1.0], [0.3], h, t_end=600)
    used = 600 / np.ceil(600 / h * (1 - 1e-9))
    inside = (used > float(gap.lower)) & (used < float(gap.upper))
    grows = np.array(["grows" in remark for remark in result.remark])
    assert (grows == inside).all() and "grows" in repr(result)
    assert (result.degraded == h[inside]).all()


def test_a_drift_grows_and_a_failure_is_reported():
    result = resonance(OSCILLATOR, "rk4", [1.0], [0.3], [0.1, 0.2], t_end=500)
    assert result.remark == ("grows", "grows")

    def henon_heiles(q, v):
        return 0.5 * (v @ v) - 0.5 * (q @ q) - q[0] ** 2 * q[1] + q[1] ** 3 / 3

    result = resonance(
        la.Lagrangian(henon_heiles, n=2), "stormer-verlet", [0.1, 0.2], [0.2, 0.1], np.linspace(0.2, 2.2, 21), t_end=500
    )
    assert result.remark[0] == "" and result.remark[-1] == "failed" and np.isinf(result.error[-1])
    with pytest.raises(ValueError, match="positive"):
        resonance(OSCILLATOR, "simpson", [1.0], [0.0], [0.1, -0.1], t_end=1)


def test_figures():
    import matplotlib.pyplot as plt

    assert len(dispersion("P3N4Q6Lob").plot().lines) == 4
    assert len(dispersion("midpoint").plot().lines) == 2
    resonance(OSCILLATOR, "rk4", [1.0], [0.3], [0.1, 0.2, 4.0], t_end=2000).plot()
    plt.close("all")
