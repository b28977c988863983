"""Methods as data: names, orders, tables to the last bit, and what is refused."""

import re
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import leastaction as la
from leastaction.methods import ALIASES, Galerkin, family
from leastaction.methods.composition import KNOWN

TABLES = [*family(5), la.galerkin(10, la.gauss(10)), la.galerkin(16, la.gauss(16)), la.galerkin(16, la.lobatto(17))]


@pytest.mark.parametrize("member", [*family(16)], ids=repr)
def test_name_order_and_rebuilding(member):
    """The name says s, r, u and the rule, finds the same method again, and the order is min(2s, u)."""
    s, r, u, rule = re.fullmatch(r"P(\d+)N(\d+)Q(\d+)(Gau|Lob)", member.name).groups()
    assert (int(s), int(r), int(u), rule) == (member.s, member.rule.r, member.rule.order, member.rule.family)
    assert int(u) == (2 * int(r) if rule == "Gau" else 2 * int(r) - 2)
    assert la.method(member.name) == member == la.galerkin(member.s, member.rule)
    assert la.method(member.name.lower()) == member
    assert la.method(f"P{s}N{r}Q{u}") == member  # u alone tells Gauss from Lobatto
    assert member.order == min(2 * int(s), int(u))
    assert la.method(member) is member


def test_family_is_complete():
    """Every s ≤ r ≤ s + 1 with both rules; Lobatto needs two points."""
    assert len({m.name for m in family(5)}) == len(list(family(5))) == 19
    assert {m.name for m in family(2, 3)} >= {"P1N3Q6Gau", "P1N3Q4Lob", "P2N2Q2Lob"}


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("midpoint", "P1N1Q2Gau"),
        ("newmark", "P1N1Q2Gau"),
        ("stormer-verlet", "P1N2Q2Lob"),
        ("Störmer-Verlet", "P1N2Q2Lob"),
        ("stormer_verlet", "P1N2Q2Lob"),
        ("Simpson", "P2N3Q4Lob"),
        (" simpson ", "P2N3Q4Lob"),
        ("rk4", "rk4"),
        ("RK4", "rk4"),
        ("rk4-lagrange", "rk4-lagrange"),
    ],
)
def test_aliases(alias, name):
    assert la.method(alias).name == name
    assert la.method(name) == la.method(alias)


def test_rk4():
    assert la.rk4() == la.rk4(form="hamilton") == la.method("rk4")
    assert la.rk4(form="lagrange") == la.method("rk4-lagrange") != la.rk4()
    assert la.rk4().order == 4


@pytest.mark.parametrize("member", TABLES, ids=repr)
def test_tables(member: Galerkin):
    """l and dl solve Σ_ν d_ν^k l_ν(x) = x^k and Σ_ν d_ν^k l_ν′(x) = k x^{k−1}, k ≤ s, here in 150 digits."""
    s, table = member.s, member.table
    with mpmath.workdps(150):
        d = la.lobatto(s + 1).points(140)[0]
        c = member.rule.points(140)[0]
        V = mpmath.matrix(s + 1, s + 1)
        for k in range(s + 1):
            for v in range(s + 1):
                V[k, v] = d[v] ** k
        inverse = V**-1

        def basis(x):
            return np.array([float(y) for y in inverse * mpmath.matrix([x**k for k in range(s + 1)])])

        def slopes(x):
            powers = [k * x ** (k - 1) if k else 0 for k in range(s + 1)]
            return np.array([float(y) for y in inverse * mpmath.matrix(powers)])

        l, dl = np.array([basis(x) for x in c]), np.array([slopes(x) for x in c])
        l[abs(l) < 1e-100] = dl[abs(dl) < 1e-100] = 0  # what is left of a zero in 150 digits
        inner = slice(1, s)
        assert (table.l[:, inner] == l[:, inner]).all() and (table.dl == dl).all()
        assert np.abs(table.l - l).max() <= 2.0**-53
        assert (table.slope == slopes(mpmath.mpf(1))).all()
    assert table.d.tolist() == la.lobatto(s + 1).c.tolist()
    assert table.c.tolist() == member.rule.c.tolist() and table.b.tolist() == member.rule.b.tolist()


@pytest.mark.parametrize("member", [*family(16)], ids=repr)
def test_equations_are_consistent_without_rounding(member: Galerkin):
    """The first equation's weights are exactly those that the others and the increments imply, else energy drifts:

    1 − Σ_{ν≥1} l_ν and −Σ_{ν≥1} D_ν, or their sums with the equations ν = 1 … s−1, which are 1 − l_s and −D_s; here
    D_ν is l_ν′ times 1/h, rounded.
    """
    table = member.table
    l, dl = table.equations
    assert (l[:, 1:] == table.l[:, 1:]).all() and (dl[:, 1:] == table.dl[:, 1:]).all()
    D = dl * (1 / 0.07)
    rows = [(list(map(Fraction, a)), list(map(Fraction, b))) for a, b in zip(l.tolist(), D.tolist(), strict=True)]
    first = all(a[0] == 1 - sum(a[1:]) and b[0] == -sum(b[1:]) for a, b in rows)
    summed = all(a[0] == 1 - a[-1] and b[0] == -b[-1] for a, b in rows)
    assert first or summed
    if member.name in ("P1N1Q2Gau", "P1N2Q2Lob"):
        assert first


@pytest.mark.parametrize("member", TABLES, ids=repr)
def test_predictor_prolongs_polynomials(member: Galerkin):
    """growth · modes takes a polynomial's increments q(d) − q(0) to those over the next step, q(1+d) − q(1)."""
    s = member.s
    exact = member.exact_table(40)
    with mpmath.workdps(60):
        modes, growth = mpmath.matrix(exact["modes"]), mpmath.matrix(exact["growth"])
        d = exact["d"][1:]
        for k in range(1, s + 1):
            z = mpmath.matrix([x**k for x in d])
            ahead = mpmath.matrix([(1 + x) ** k - 1 for x in d])
            assert mpmath.norm(growth * (modes * z) - ahead, mpmath.inf) < mpmath.mpf(10) ** -25 * 4**s
        # the modes are Legendre coefficients: q̇ = 1 is the first alone
        assert mpmath.norm(modes * mpmath.matrix(d) - mpmath.matrix([1] + [0] * (s - 1)), mpmath.inf) < 1e-30


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("simpsom", "'simpson'"),
        ("mid-point", "'midpoint'"),
        ("P3N4Q6Lobb", "'P3N4Q6Lob'"),
        ("verlett", "verlet"),
        ("GAUS", "'gauss'"),
        ("p2n2", "'P2N2Q4Gau'"),
    ],
)
def test_unknown_name_suggests_the_nearest(name, near):
    with pytest.raises(ValueError, match=rf"unknown method '{name}'\. Did you mean .*{near}.*Known are midpoint") as e:
        la.method(name)
    assert all(alias in str(e.value) for alias in ALIASES)


@pytest.mark.parametrize(
    "name", ["leapfrog", "Verlet", "velocity Verlet", "Störmer", "stormer", "trapezoid", "Störmer Verlet"]
)
def test_other_names_of_the_trapezoidal_member(name):
    assert la.method(name).name == "P1N2Q2Lob"


@pytest.mark.parametrize(
    ("name", "one"),
    [
        ("gauss", "P2N2Q4Gau"),
        ("Lobatto", "P3N4Q6Lob"),
        ("radau", "P2N2Q3RadR"),
        ("chebyshev", "P2N4Q4Che"),
        *((name, f"{name}(verlet)") for name in KNOWN),
    ],
)
def test_families_are_known_and_ask_which(name, one):
    with pytest.raises(ValueError, match=f"names (a family|factors).*{re.escape(one)}"):
        la.method(name)
    la.method(one)


@pytest.mark.parametrize("name", ["qqqqqqqq", "forest-ruth"])
def test_unknown_name_with_nothing_near(name):
    with pytest.raises(ValueError, match=rf"unknown method '{name}'\. Known are"):
        la.method(name)


@pytest.mark.parametrize("bad", [3, None, 1.5, object()])
def test_method_must_be_named(bad):
    with pytest.raises(TypeError, match=r"expected a method or its name, such as 'simpson'.*got"):
        la.method(bad)


@pytest.mark.parametrize("build", [lambda: la.galerkin(3, la.gauss(2)), lambda: la.method("P3N2Q4Gau")])
def test_fewer_nodes_than_degree_is_refused_with_the_reason(build):
    """r < s leaves velocity unknowns outside the action."""
    with pytest.raises(ValueError, match=r"r = 2 < s = 3.*no unique solution\. Use r ≥ 3, for example P3N3Q6Gau"):
        build()


@pytest.mark.parametrize(
    ("name", "offer"),
    [
        ("P2N3Q5Lob", "did you mean P2N3Q4Lob"),
        ("P2N3Q5", "did you mean P2N3Q6Gau or P2N3Q4Lob"),
        ("P2N3Q4Gau", "did you mean P2N3Q6Gau"),
        ("P1N1Q0Lob", "r ≥ 2"),
        ("P1N0Q0Gau", "a rule of 0 points"),
    ],
)
def test_orders_that_no_rule_has(name, offer):
    with pytest.raises(ValueError, match=f"'{name}' does not exist.*{offer}"):
        la.method(name)


@pytest.mark.parametrize("s", [0, -2, 1.0, "2", True, None])
def test_wrong_degree(s):
    with pytest.raises(ValueError, match="the degree s must be an integer, at least 1; got"):
        la.galerkin(s, la.gauss(4))


def test_wrong_rule():
    with pytest.raises(
        TypeError, match=r"expected a quadrature rule, as from la\.gauss\(r\), la\.lobatto\(r\) or la\.rule\(c, b\)"
    ):
        la.galerkin(2, 3)
    with pytest.raises(ValueError, match="form must be 'hamilton' or 'lagrange'; got 'euler'"):
        la.rk4(form="euler")


def test_a_wrong_table_does_not_pass():
    """Tables check themselves when built."""
    from dataclasses import replace

    table = la.method("simpson").table
    for name in ("b", "c", "l", "dl", "d"):
        array = np.array(getattr(table, name))
        array.flat[0] += 1e-10
        with pytest.raises(ArithmeticError, match="it is not true that the"):
            replace(table, **{name: array})
