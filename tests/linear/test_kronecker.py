"""The small matrices of linear steps: in float64, on flint numbers, and as the equations of a Step have them."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.engine.rescue import Rescue
from leastaction.linear.shifts import shifts
from leastaction.methods import family
from leastaction.methods.quadrature import rounded
from leastaction.step.form import samples, step_of

MEMBERS = [*family(6), la.method("P8N8Q16Gau"), la.method("P8N9Q16Lob")]
NAMES = ("A", "B", "D", "beta", "mean", "load")


@pytest.mark.parametrize("method", MEMBERS, ids=str)
def test_the_same_in_every_arithmetic(method):
    many, one = method.linear_form(40), method.linear_form()
    for name in NAMES:
        high = getattr(many, name).astype(float)
        size = np.abs(high).max(initial=1.0)
        np.testing.assert_allclose(getattr(one, name), high, rtol=0, atol=1e-14 * size)


@pytest.mark.parametrize("method", MEMBERS, ids=str)
def test_the_jacobian_of_a_step_is_made_of_them(method):
    """∂R/∂z of ½ m v² − ½ k q², by the Step: A m/h − h B k; and ∂R/∂q = −h β k."""
    m, k, h = 1.7, 2.3, 0.11
    system = la.Lagrangian(lambda q, v: m * v[0] ** 2 / 2 - k * q[0] ** 2 / 2, n=1)
    form, solve = method.linear_form(), Rescue(system, step_of(system, method), np.zeros(0)).equations
    R, J, _, _ = solve(0.0, np.array([0.3]), np.array([0.2]), h, np.zeros((method.s, 1)), np.zeros(0))
    R_q = (solve(0.0, np.array([1.3]), np.array([0.2]), h, np.zeros((method.s, 1)), np.zeros(0))[0] - R).ravel()
    size = np.abs(form.A).max() * m / h
    np.testing.assert_allclose(J, form.A * m / h - h * form.B * k, rtol=0, atol=1e-14 * size)
    np.testing.assert_allclose(R_q, -h * form.beta * k, rtol=0, atol=1e-14)


@pytest.mark.parametrize("method", MEMBERS, ids=str)
def test_A_is_symmetric_and_definite_and_derivatives_are_integrated_exactly(method):
    form, table = method.linear_form(), samples(method)
    np.testing.assert_allclose(form.A, form.A.T, rtol=0, atol=4e-16 * np.abs(form.A).max())
    assert np.linalg.eigvalsh(form.A)[0] > 0
    end = np.arange(1, method.s + 1) == method.s
    np.testing.assert_allclose(table.w @ table.dl, end, rtol=0, atol=1e-14 * np.abs(table.dl).max())


@pytest.mark.parametrize("s", range(1, 8))
def test_lobatto_members_have_a_shift_that_is_zero(s):
    """One with r = s + 1 nodes, two with r = s: they need M alone."""
    for r, zeros in ((s + 1, 1), (s, 2)):
        if r >= 2:
            assert np.count_nonzero(shifts(la.galerkin(s, la.lobatto(r)).linear_form(), 0.1).gamma == 0) == zeros


def test_the_tableau_of_rk4_has_order_four():
    """The eight conditions of Butcher, exactly."""
    method = la.rk4()
    c, b = np.array(method.c), np.array(method.b)
    a = np.array([[*row, *[0] * (4 - len(row))] for row in method.a])
    assert (a.sum(axis=1) == c).all()
    found = [b.sum(), b @ c, b @ c**2, b @ a @ c, b @ c**3, (b * c) @ a @ c, b @ a @ c**2, b @ a @ a @ c]
    assert [1 / x for x in found] == [1, 2, 3, 6, 4, 8, 12, 24]
    assert (rounded(list(method.b)) == [1 / 6, 1 / 3, 1 / 3, 1 / 6]).all()
