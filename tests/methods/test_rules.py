"""Quadrature rules beyond Gauss and Lobatto: ready-made ones, and nodes and weights of one's own."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy

import leastaction as la
from orders import kepler_order, spring_order
from precise import SPRING, START
from systems import case

BOOLE = la.rule([0, "1/4", "1/2", "3/4", 1], ["7/90", "32/90", "12/90", "32/90", "7/90"], "Boole")
LOPSIDED = la.rule(["1/5", "2/3", 1], ["25/56", "3/7", "1/8"], "Lop")  # of order three, not symmetric
READY = [
    *(la.radau(r, end) for r in (1, 2, 3, 5, 12) for end in ("left", "right")),
    *(la.chebyshev(r) for r in (1, 2, 3, 4, 9, 24)),
    *(la.clenshaw_curtis(r) for r in (2, 3, 4, 9, 24)),
]


@pytest.mark.parametrize("rule", READY, ids=repr)
def test_moments_of_a_ready_rule_agree_up_to_its_order_and_no_further(rule):
    c, b = rule.points(50)
    with mpmath.workdps(60):
        off = [
            abs(mpmath.fsum(w * x**k for x, w in zip(c, b, strict=True)) * (k + 1) - 1) for k in range(rule.order + 1)
        ]
    assert max(off[:-1]) < mpmath.mpf(10) ** -50 < off[-1]
    assert rule.b.min() > 0 and (np.diff(rule.c) > 0).all()


def test_nodes_are_where_they_are_said_to_be():
    assert la.radau(4, "left").c[0] == 0 and la.radau(4).c[-1] == 1
    np.testing.assert_allclose(la.radau(4).c, (1 - la.radau(4, "left").c)[::-1], rtol=0, atol=1e-16)
    x = np.cos(np.pi * (2 * np.arange(5) + 1) / 10)[::-1]
    np.testing.assert_allclose(la.chebyshev(5).c, (1 + x) / 2, atol=1e-16)
    np.testing.assert_allclose(la.clenshaw_curtis(5).c, (1 - np.cos(np.pi * np.arange(5) / 4)) / 2, atol=1e-16)
    np.testing.assert_array_equal(la.clenshaw_curtis(3).b, la.lobatto(3).b)
    # Radau IIA with three stages, as textbooks have it
    root = np.sqrt(6)
    np.testing.assert_allclose(la.radau(3).c, [(4 - root) / 10, (4 + root) / 10, 1], rtol=1e-15)


@pytest.mark.parametrize(
    ("c", "b", "order", "symmetric"),
    [
        ([0, "1/2", 1], ["1/6", "2/3", "1/6"], 4, True),
        (["1/2 - sqrt(3)/6", "1/2 + sqrt(3)/6"], ["1/2", Fraction(1, 2)], 4, True),
        ([sympy.Rational(1, 3), 1], [0.75, 0.25], 3, False),
        ([0.5 - 3**0.5 / 6, 0.5 + 3**0.5 / 6], [0.5, 0.5], 4, True),
        ([1, 0], ["1/4", "3/4"], 1, False),
        (["1/2"], [1], 2, True),
        (list(la.gauss(6).c), list(la.gauss(6).b), 12, True),
    ],
)
def test_order_and_symmetry_are_found(c, b, order, symmetric):
    rule = la.rule(c, b)
    assert (rule.order, rule.symmetric) == (order, symmetric)
    assert (np.diff(rule.c) > 0).all()


def test_a_rule_that_is_known_gives_the_method_that_is_known():
    own = la.galerkin(2, la.rule([0, "1/2", 1], ["1/6", "2/3", "1/6"]))
    system, q0, v0 = case("inseparable")
    paths = [la.integrate(system, method, q0, v0=v0, h=0.1, steps=50) for method in (own, "simpson")]
    np.testing.assert_array_equal(paths[0].q, paths[1].q)
    assert la.analysis.iteration_matrix(own) == la.analysis.iteration_matrix("simpson")
    assert [x.floats for x in la.analysis.stability(own)] == [x.floats for x in la.analysis.stability("simpson")]
    assert la.analysis.same_map(own, "simpson").always
    gauss = la.galerkin(2, la.rule(["1/2 - sqrt(3)/6", "1/2 + sqrt(3)/6"], ["1/2", "1/2"]))
    assert la.analysis.stability(gauss).for_all_h
    assert la.linear.stable_intervals(gauss) == ((0.0, np.inf),)


def test_symplectic_euler_is_a_member():
    """P1N1Q1RadR: q⁺ = q + h p, p⁺ = p + h f(q⁺), for a unit mass."""
    system = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    path = la.integrate(system, "P1N1Q1RadR", [1.0], [0.3], h=0.01, steps=30)
    np.testing.assert_allclose(path.p[1:], path.p[:-1] - 0.01 * np.sin(path.q[1:]), rtol=0, atol=1e-15)
    np.testing.assert_allclose(path.q[1:], path.q[:-1] + 0.01 * path.p[:-1], rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    "method",
    [
        "P2N2Q3RadR",
        "P3N3Q5RadL",
        "P3N3Q4Che",
        "P2N4Q4Cle",
        la.galerkin(3, BOOLE),
        la.galerkin(2, LOPSIDED),
    ],
    ids=str,
)
def test_order_of_methods_with_these_rules(method):
    method = la.method(method)
    assert abs(kepler_order(method, 24) - method.order) < 0.15
    assert abs(spring_order(method, 24) - method.order) < 0.15


@pytest.mark.parametrize(
    "method", ["P2N2Q3RadR", "P3N4Q4Cle", la.galerkin(3, BOOLE).text], ids=lambda m: m.split("[")[0]
)
def test_structure(method):
    """Symplectic all; symmetric if the rule is."""
    system, q0, v0 = case("inseparable")
    p0 = system.momentum(q0, v0)
    assert la.analysis.symplectic_defect(system, method, q0, p0, 0.1) < 1e-14
    defect = la.analysis.reversibility_defect(system, method, q0, p0, 0.1)
    assert (defect < 1e-14) == la.method(method).symmetric


@pytest.mark.parametrize("name", ["P2N2Q3RadR", "P3N3Q5RadL", "P2N3Q4Che", "P3N4Q4Cle"])
@pytest.mark.parametrize("x", [0.3, 1.7, 5.1])
def test_iteration_matrix_is_a_step_on_the_oscillator(name, x):
    system = la.Quadratic([[1]], [[1]])
    path = [la.integrate(system, name, q, p, h=x, steps=1, allow_unstable=True) for q, p in (([0], [1]), ([1], [0]))]
    M = np.array([[one.p[-1, 0], one.q[-1, 0]] for one in path]).T
    exact = la.analysis.iteration_matrix(name)
    assert sympy.simplify(exact.det()) == 1
    np.testing.assert_allclose(M, np.array(exact.subs("x", sympy.Rational(x)), float), rtol=1e-13, atol=1e-13)
    growth = abs(np.linalg.eigvals(M)).max()
    assert la.analysis.stability(name).stable(x) == (growth < 1 + 1e-9)
    assert la.analysis.stability(name).growth(x) == pytest.approx(growth, rel=1e-7)


def test_text_makes_the_method_again_and_files_hold_it(tmp_path):
    pytest.importorskip("zarr")
    irrational = la.rule(["1/2 - sqrt(3)/6", "1/2 + sqrt(3)/6"], ["1/2", "1/2"], "Mine")
    floats = la.rule(list(la.gauss(3).c), list(la.gauss(3).b))
    for rule in (BOOLE, LOPSIDED, irrational, floats):
        method = la.galerkin(2, rule)
        again = la.method(method.text)
        assert again == method and again.order == method.order and again.rule.floats == rule.floats
    method = la.galerkin(3, BOOLE)
    path = la.integrate(SPRING, method, h="1/10", steps=6, digits=40, **START)
    path.save(tmp_path / "a.npz")
    assert la.Path.load(tmp_path / "a.npz").method == method
    stored = la.integrate(SPRING, method, h="1/10", steps=3, digits=40, store=tmp_path / "a.zarr", **START)
    assert stored.method == method
    assert (np.asarray(la.resume(tmp_path / "a.zarr", steps=3).q) == path.q).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: la.rule([0, 1], [1, 1]), "sum to one; these sum to 2"),
        (lambda: la.rule([0, 2], [0.5, 0.5]), "lie in the step, 0 ≤ c ≤ 1"),
        (lambda: la.rule([0, 0], [0.5, 0.5]), "must differ"),
        (lambda: la.rule([0], [1, 2]), "as many weights as nodes"),
        (lambda: la.rule([], []), "at least one"),
        (lambda: la.rule([0, np.nan], [0.5, 0.5]), "finite"),
        (lambda: la.rule(["x"], [1]), "cannot read 'x'"),
        (lambda: la.rule([0, 1], [0.5, 0.5], "Gau"), "other than Gau"),
        (lambda: la.radau(2, "up"), "'left' or 'right'"),
        (lambda: la.clenshaw_curtis(1), "at least 2"),
        (lambda: la.galerkin(3, la.rule([0, 0.5, 1], [0.25, 0.5, 0.25])), "needs u ≥ 3"),
        (lambda: la.galerkin(2, la.rule([0, "1/2", 1], ["-1/2", 2, "-1/2"])), "is not positive"),
        (lambda: la.method("P2N2Q4RadR"), r"P2N2Q3RadR"),
        (lambda: la.analysis.dispersion("P2N2Q3RadR"), "not symmetric"),
        (lambda: la.linear.members("P2N2Q3RadR", np.eye(1), np.eye(1), 0.1), "not symmetric"),
    ],
)
def test_what_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
