"""Measured orders: the paper's Tables 1 and 2, references without exact solutions, and the fit itself."""

import numpy as np
import pytest

import leastaction as la
from leastaction.analysis import convergence, fit_order, order_table
from systems import catalogued

STEPS = ["1/16", "1/32", "1/64"]

# Tables 1 and 2 of Ober-Blöbaum and Saake (2014): rows r = 2 … 5, columns s = 1 … 5.
TABLE_1 = [[2, 4], [2, 4, 6], [2, 4, 6, 8], [2, 4, 6, 8, 10]]
TABLE_2 = [[2, 2], [2, 4, 4], [2, 4, 6, 6], [2, 4, 6, 8, 8]]


@pytest.mark.parametrize("family, printed", [("Gau", TABLE_1), pytest.param("Lob", TABLE_2, marks=pytest.mark.slow)])
def test_tables_1_and_2_on_kepler_in_50_digits(family, printed):
    result = order_table(catalogued("kepler"), family, STEPS, t_end=1, digits=50)
    expected = np.array([row + [np.nan] * (5 - len(row)) for row in printed])
    np.testing.assert_array_equal(result.expected, expected)
    np.testing.assert_allclose(result.orders, expected, rtol=0, atol=0.1)
    assert all(one.fit.settled for one in result.results)
    assert "s = 5" in repr(result)


@pytest.mark.parametrize("family, printed", [pytest.param("Gau", TABLE_1, marks=pytest.mark.slow), ("Lob", TABLE_2)])
def test_tables_1_and_2_on_the_oscillator_in_float64(family, printed):
    """The paper's own problem, with its steps and a run of 10 (the paper gives none)."""
    steps = [1, 0.5, 0.25, 0.125, 0.0625, 0.03125]
    result = order_table(catalogued("harmonic-oscillator-2d"), family, steps, t_end=10)
    expected = np.array([row + [np.nan] * (5 - len(row)) for row in printed])
    np.testing.assert_allclose(result.orders, expected, rtol=0, atol=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("s", range(6, 9))
def test_orders_beyond_the_tables(s):
    for rule in (la.gauss(s), la.lobatto(s + 1)):
        result = convergence(
            catalogued("pendulum"), la.galerkin(s, rule), ["1/32", "1/64", "1/128"], t_end=1, digits=80
        )
        assert result.order == pytest.approx(2 * s, abs=0.1) and result.fit.settled


def test_without_an_exact_solution_a_reference_is_found():
    problem = catalogued("pendulum")
    hs = [0.1, 0.05, 0.025, 0.0125]
    exact = convergence(problem, "P3N4Q6Lob", h=hs, t_end=1)
    reference = convergence(problem.system, "P3N4Q6Lob", problem.q0, problem.p0, h=hs, t_end=1)
    np.testing.assert_allclose(reference.error[:3], exact.error[:3], rtol=2e-3)
    assert reference.order == pytest.approx(exact.order, abs=0.1)


def test_the_double_pendulum_has_no_exact_solution_and_its_order_is_still_found():
    problem = catalogued("double-pendulum")
    result = convergence(problem, "simpson", h=[0.02, 0.01, 0.005, 0.0025], t_end=1)
    third = convergence(problem, "simpson", [0.02, 0.01, 0.005, 0.0025], t_end=1)  # a problem brings its start
    assert (third.error == result.error).all()
    assert result.order == pytest.approx(4, abs=0.2) and result.fit.settled


def test_rk4_and_ends_of_runs():
    problem = catalogued("pendulum")
    for at in ("nodes", "end"):
        result = convergence(problem, "rk4", [0.04, 0.02, 0.01, 0.005], t_end=1, at=at)
        assert result.order == pytest.approx(4, abs=0.3)
    assert (result.q <= convergence(problem, "rk4", [0.04, 0.02, 0.01, 0.005], t_end=1).q).all()


def test_round_off_and_coarse_steps_are_left_out():
    problem = catalogued("pendulum")
    result = convergence(problem, "P4N4Q8Gau")
    assert result.order == pytest.approx(8, abs=0.2)
    assert not result.fit.used[-3:].any() and not result.fit.used[0]
    text = repr(result)
    assert "fitted" in text and f"order {result.order:.2f} (expected 8)" in text


def test_a_step_that_fails_is_said_to():
    result = convergence(catalogued("kepler-galerkin"), "P1N3Q4Lob", [1.0, 0.01, 0.005, 0.0025], t_end=25)
    assert np.isnan(result.error[0]) and "failed" in repr(result)


def test_arguments_are_checked():
    problem = catalogued("double-pendulum")
    system = problem.system
    with pytest.raises(TypeError, match="problem"):
        convergence(system, "simpson", h=[0.1, 0.05], t_end=1)
    with pytest.raises(TypeError, match="expected a system"):
        convergence((system, [0.0, 0.0], [0.0, 0.0]), "simpson", h=[0.1, 0.05], t_end=1)
    with pytest.raises(ValueError, match="p0"):
        convergence(system, "simpson", [0.0, 0.0], h=[0.1, 0.05], t_end=1)
    with pytest.raises(ValueError, match="t_end="):
        convergence(system, "simpson", [0.1, 0.0], [0.0, 0.0], h=[0.1, 0.05])
    with pytest.raises(ValueError, match="two steps"):
        convergence(problem, "simpson", [0.1], t_end=1)
    with pytest.raises(ValueError, match="'nodes' or 'end'"):
        convergence(problem, "simpson", [0.1, 0.05], t_end=1, at="middle")
    with pytest.raises(ValueError, match="'Gau' or 'Lob'"):
        order_table(problem, "Simpson", [0.1, 0.05], t_end=1)


H = 0.5 ** np.arange(1, 9)


def test_the_fit_finds_a_clean_order():
    fit = fit_order(H, 3 * H**4, 1e-16)
    assert fit.order == pytest.approx(4, abs=1e-12) and fit.constant == pytest.approx(3) and fit.settled


def test_the_fit_leaves_out_round_off_and_higher_terms():
    noise = 1e-16 * np.array([1, 0.4, 1.3, 0.8, 1.1, 0.7, 1.2, 0.5])
    errors = 0.1 * H**6 * (1 + 30 * H**2) + noise
    fit = fit_order(H, errors, 1e-16)
    assert fit.order == pytest.approx(6, abs=0.2) and not fit.used[-1] and not fit.used[0]


def test_the_fit_does_not_take_a_plateau_for_an_order():
    errors = np.where(H > 0.05, 1.0, 0.0) + H**4
    assert fit_order(H, errors, 1e-16).order == pytest.approx(4, abs=0.1)
    assert not fit_order(H, np.ones_like(H), 1e-16).settled
    assert np.isnan(fit_order(H, 1e-17 * np.ones_like(H), 1e-16).order)


def test_figures():
    import matplotlib.pyplot as plt

    problem = catalogued("pendulum")
    ax = convergence(problem, "simpson", [0.1, 0.05, 0.025, 0.0125], t_end=1).plot()
    assert "order 4.0" in ax.get_legend().get_texts()[0].get_text()
    plt.close("all")


def test_parameters_of_the_runs_are_those_of_the_reference():
    oscillator = la.Lagrangian(lambda q, v, k: 0.5 * v[0] ** 2 - 0.5 * k * q[0] ** 2, n=1, params={"k": 1.0})
    hs = [0.2, 0.1, 0.05]
    told = {"q0": [1.0], "p0": [0.0], "h": hs, "t_end": 1, "params": {"k": 2.0}}
    found = convergence(oscillator, "simpson", **told)
    w = np.sqrt(2.0)
    exact = lambda t: (np.cos(w * t)[:, None], -w * np.sin(w * t)[:, None])  # noqa: E731
    known = convergence(oscillator, "simpson", **told, exact=exact)
    assert found.order == pytest.approx(known.order, abs=1e-3) == pytest.approx(4, abs=0.05)
    kepler = catalogued("kepler")
    name, value = next(iter(kepler.system.params.items()))
    changed = convergence(kepler, "simpson", [0.02, 0.01, 0.005], t_end=1, params={name: 1.1 * value})
    assert changed.order == pytest.approx(4, abs=0.1)


def test_backward_in_time():
    pendulum = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    found = convergence(pendulum, "simpson", [1.0], v0=[0.3], h=[-0.2, -0.1, -0.05], t_end=-1)
    assert found.order == pytest.approx(4, abs=0.05)
    assert (found.h > 0).all()
