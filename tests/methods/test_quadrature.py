"""Gauss and Lobatto rules against python-flint's certified roots, and the identities that define them."""

import flint
import mpmath
import numpy as np
import pytest

import leastaction as la
from leastaction.methods.quadrature import lagrange_basis

RULES = [*(la.gauss(r) for r in (*range(1, 18), 24, 40)), *(la.lobatto(r) for r in (*range(2, 18), 24, 40))]
DIGITS = 120


def certified_nodes(rule):
    """The nodes in DIGITS digits from flint, which isolates roots in intervals; nothing is shared with the library."""
    flint.ctx.dps = DIGITS + 20
    try:
        if rule.family == "Gau":
            x = [flint.arb.legendre_p_root(rule.r, k) for k in range(rule.r)]
        else:
            inner = flint.fmpq_poly.legendre_p(rule.r - 1).derivative()
            roots = flint.fmpz_poly([int(a * inner.denom()) for a in inner.coeffs()]).complex_roots()
            x = [flint.arb(-1), *(root.real for root, _ in roots), flint.arb(1)]
        texts = [(v / 2 + flint.arb("0.5")).str(DIGITS, radius=False) for v in x]
    finally:
        flint.ctx.dps = 15
    return sorted(mpmath.mpf(text) for text in texts)


def interpolatory_weights(c):
    """b with Σ_i b_i c_i^k = 1/(k+1), k < r: the weights by their definition."""
    r = len(c)
    V = mpmath.matrix(r, r)
    for k in range(r):
        for i in range(r):
            V[k, i] = c[i] ** k
    return list(mpmath.lu_solve(V, mpmath.matrix([mpmath.mpf(1) / (k + 1) for k in range(r)])))


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_nodes_and_weights_are_correct_to_the_last_bit(rule):
    """c and b in float64 equal the certified values, rounded once."""
    with mpmath.workdps(DIGITS):
        c = certified_nodes(rule)
        b = interpolatory_weights(c)
        assert rule.c.tolist() == [float(x) for x in c]
        assert rule.b.tolist() == [float(x) for x in b]


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_exactness_and_symmetry(rule):
    """Σ b_i c_i^k = 1/(k+1) for k < u, and not for k = u; c and b are symmetric about ½."""
    with mpmath.workdps(60):
        c, b = rule.points(50)
        for k in range(rule.order + 1):
            miss = abs(mpmath.fdot(b, [x**k for x in c]) - mpmath.mpf(1) / (k + 1))
            assert (miss < mpmath.mpf(10) ** -50) == (k < rule.order), k
        assert all(x + y == 1 for x, y in zip(c, reversed(c), strict=True))
    assert (rule.b == rule.b[::-1]).all()
    assert (np.diff(rule.c) > 0).all() and (rule.b > 0).all()


@pytest.mark.parametrize("digits", [17, 64, 200])
def test_points_are_correct_to_the_digits_asked_for(digits):
    """points(digits) agrees with points of twice the digits to more than `digits` digits."""
    for rule in (la.gauss(7), la.lobatto(8)):
        with mpmath.workdps(2 * digits + 40):
            for mine, better in zip(rule.points(digits), rule.points(2 * digits), strict=True):
                assert max(abs(x - y) for x, y in zip(mine, better, strict=True)) < mpmath.mpf(10) ** -(digits + 5)


def test_lagrange_basis():
    """l_ν(x) and l_ν′(x) reproduce the values and slopes of every polynomial of their degree, also at the points."""
    with mpmath.workdps(40):
        points = la.lobatto(6).points(30)[0]
        at = [*points, mpmath.mpf(1) / 3, mpmath.mpf(-2)]
        l, dl = lagrange_basis(points, at, 30)
        for k in range(6):
            values = [x**k for x in points]
            for x, row, slope in zip(at, l, dl, strict=True):
                assert abs(mpmath.fdot(row, values) - x**k) < 1e-30 * (1 + abs(x) ** k)
                assert abs(mpmath.fdot(slope, values) - (k * x ** (k - 1) if k else 0)) < 1e-27


def test_tables_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        la.gauss(3).c[0] = 0.0


@pytest.mark.parametrize("r", [0, -1, 1.5, "3", True, None])
def test_wrong_number_of_points(r):
    with pytest.raises(ValueError, match=r"a Gauss rule needs an integer number of points, at least 1; got"):
        la.gauss(r)
    with pytest.raises(ValueError, match=r"a Lobatto rule needs an integer number of points, at least 2; got"):
        la.lobatto(r)


def test_lobatto_needs_both_ends():
    with pytest.raises(ValueError, match="at least 2; got 1"):
        la.lobatto(1)
