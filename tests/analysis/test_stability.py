"""Iteration matrices and stability: against the discrete equations, the paper's printed matrices, and proofs."""

import itertools

import mpmath
import numpy as np
import pytest
import sympy
from sympy import Matrix, Rational, oo, sqrt

import leastaction as la
from leastaction.analysis import iteration_matrix, stability, stable_for_all_h
from leastaction.methods import family
from thrift import rest_slow

x = sympy.Symbol("x")

# Section 4.3 of Ober-Blöbaum and Saake (2014), as printed, with h ω = x.
HIGH_OR_NONE = [la.method("P9N10Q18Lob"), la.method("rk4")]
PRINTED = {
    "P1N1Q2Gau": [[-(x**2 - 4) / (x**2 + 4), -4 * x / (x**2 + 4)], [4 * x / (x**2 + 4), -(x**2 - 4) / (x**2 + 4)]],
    "P1N2Q2Lob": [[1 - x**2 / 2, x**3 / 4 - x], [x, 1 - x**2 / 2]],
    "P2N2Q4Gau": [
        [(x**4 - 60 * x**2 + 144) / (x**4 + 12 * x**2 + 144), -12 * x * (x**2 - 12) / (x**4 + 12 * x**2 + 144)],
        [12 * x * (x**2 - 12) / (x**4 + 12 * x**2 + 144), (x**4 - 60 * x**2 + 144) / (x**4 + 12 * x**2 + 144)],
    ],
    "P2N3Q4Lob": [
        [(x**4 - 22 * x**2 + 48) / (2 * x**2 + 48), (24 * x - 3 * x**3) / (x**2 + 24)],
        [-x * (x**4 - 36 * x**2 + 288) / (12 * x**2 + 288), (x**4 - 22 * x**2 + 48) / (2 * x**2 + 48)],
    ],
    "P3N3Q6Gau": [
        [
            -(x**6 - 264 * x**4 + 6480 * x**2 - 14400) / (x**6 + 24 * x**4 + 720 * x**2 + 14400),
            24 * x * (x**4 - 70 * x**2 + 600) / (x**6 + 24 * x**4 + 720 * x**2 + 14400),
        ],
        [
            24 * x * (x**4 - 70 * x**2 + 600) / (x**6 + 24 * x**4 + 720 * x**2 + 14400),
            -(x**6 - 264 * x**4 + 6480 * x**2 - 14400) / (x**6 + 24 * x**4 + 720 * x**2 + 14400),
        ],
    ],
    "P3N4Q6Lob": [
        [
            -(x**6 / 2 - 46 * x**4 + 840 * x**2 - 1800) / (x**4 + 60 * x**2 + 1800),
            6 * x * (x**4 - 40 * x**2 + 300) / (x**4 + 60 * x**2 + 1800),
        ],
        [
            x * (x**6 - 144 * x**4 + 5760 * x**2 - 43200) / (24 * (x**4 + 60 * x**2 + 1800)),
            -(x**6 - 92 * x**4 + 1680 * x**2 - 3600) / (2 * x**4 + 120 * x**2 + 3600),
        ],
    ],
}
# Entries (row, column) that are printed wrong. In the ordering (p, ωq), which the first two matrices follow, Gauss with
# s = 2 has both signs turned and s = 3 the upper one; the Lobatto members have the two entries exchanged, that is,
# they are printed for the ordering (ωq, p).
WRONG = {
    "P1N1Q2Gau": set(),
    "P1N2Q2Lob": set(),
    "P2N2Q4Gau": {(0, 1), (1, 0)},
    "P2N3Q4Lob": {(0, 1), (1, 0)},
    "P3N3Q6Gau": {(0, 1)},
    "P3N4Q6Lob": {(0, 1), (1, 0)},
}


@pytest.mark.parametrize("name", PRINTED)
def test_printed_iteration_matrices(name):
    ours, printed = iteration_matrix(name), Matrix(PRINTED[name])
    differ = {(i, j) for i in range(2) for j in range(2) if sympy.cancel(ours[i, j] - printed[i, j]) != 0}
    assert differ == WRONG[name]


@pytest.mark.parametrize("name", ["P2N2Q4Gau", "P3N3Q6Gau"])
def test_the_printed_gauss_matrices_cannot_be_right(name):
    """As h → 0 a step turns (p, ωq) by +x; the printed ones turn back, or do not turn at all."""
    printed = Matrix(PRINTED[name])
    slope = printed.diff(x).subs(x, 0)
    assert slope != Matrix([[0, -1], [1, 0]])
    assert iteration_matrix(name).diff(x).subs(x, 0) == Matrix([[0, -1], [1, 0]])


def test_printed_lobatto_matrices_are_ours_with_the_coordinates_exchanged():
    swap = Matrix([[0, 1], [1, 0]])
    for name in ("P2N3Q4Lob", "P3N4Q6Lob"):
        difference = swap * iteration_matrix(name) * swap - Matrix(PRINTED[name])
        assert difference.applyfunc(sympy.cancel) == sympy.zeros(2)


def test_printed_eigenvalues():
    half_trace = iteration_matrix("P3N4Q6Lob")[0, 0]
    inside = x**10 - 184 * x**8 + 11820 * x**6 - 316800 * x**4 + 3456000 * x**2 - 12960000
    printed = x**2 * inside / (2 * x**4 + 120 * x**2 + 3600) ** 2
    assert sympy.cancel(half_trace**2 - 1 - printed) == 0


@pytest.mark.parametrize("member", rest_slow([*family(5, 6), *HIGH_OR_NONE], [*family(4, 4), *HIGH_OR_NONE]), ids=str)
@pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning")  # at steps this large its energy swings
def test_iteration_matrix_is_what_a_run_does(member):
    """(p, ωq) after one compiled step from two states, for ω = 1.7 and h = 0.9."""
    w, h = 1.7, 0.9
    system = la.Lagrangian(lambda q, v, w: 0.5 * v[0] ** 2 - 0.5 * w**2 * q[0] ** 2, n=1, params={"w": w})
    exact = np.array(iteration_matrix(member).subs(x, Rational(w) * Rational(h)).evalf(20), dtype=float)
    for state in np.eye(2):
        path = la.integrate(system, member, q0=[state[1] / w], p0=[state[0]], h=h, steps=1)
        np.testing.assert_allclose([path.p[1, 0], w * path.q[1, 0]], exact @ state, rtol=0, atol=4e-15)


@pytest.mark.parametrize("member", rest_slow([*family(6, 8)], [*family(4, 4)]), ids=str)
def test_determinant_is_one(member):
    assert sympy.cancel(iteration_matrix(member).det()) == 1


def test_exact_stable_intervals():
    def ends(name):
        return [tuple(interval) for interval in stability(name)]

    assert ends("midpoint") == [(0, oo)]
    assert ends("stormer-verlet") == [(0, 2)]
    assert ends("simpson") == [(0, 2 * sqrt(2)), (2 * sqrt(3), 2 * sqrt(6))]
    assert ends("P3N4Q6Lob") == [
        (0, sqrt(42 - 6 * sqrt(29))),
        (sqrt(10), sqrt(30)),
        (2 * sqrt(15), sqrt(42 + 6 * sqrt(29))),
    ]
    assert ends("rk4") == [(0, 2 * sqrt(2))]
    assert stability("simpson")[1][0] == 2 * sqrt(3)
    assert sympy.cancel(stability("simpson").trace - iteration_matrix("simpson").trace()) == 0
    assert stability("rk4")[0].closed and not stability("simpson")[0].closed


@pytest.mark.parametrize("member", rest_slow([*family(8, 9)], [*family(4, 5)]), ids=str)
def test_intervals_agree_with_eigenvalues(member):
    """Sampled in 40 digits on both sides of every end: |trace| ≤ 2 just inside, > 2 just outside."""
    result = stability(member)
    trace = sympy.lambdify(x, iteration_matrix(member).trace(), "mpmath")
    with mpmath.workdps(60):
        for interval in result:
            for end in interval:
                if not 0 < float(end) < np.inf:
                    continue
                place = mpmath.mpf(sympy.N(end, 60)) if not isinstance(end, float) else mpmath.mpf(end)
                step = mpmath.mpf(10) ** (-25 if not isinstance(end, float) else -14) * place
                sides = [abs(trace(place - step)) <= 2, abs(trace(place + step)) <= 2]
                assert sorted(sides) == [False, True]
        for gap in result.gaps:
            if gap.at < np.inf:
                half = abs(trace(mpmath.mpf(gap.at))) / 2
                assert gap.growth == pytest.approx(float(half + mpmath.sqrt(half**2 - 1)), rel=1e-12)


@pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning")  # at steps this large its energy swings
def test_a_thin_gap_is_seen_and_its_growth_is_what_a_run_shows():
    result = stability("P4N5Q8Lob")
    gap = result.gaps[0]
    assert float(gap.upper) - float(gap.lower) < 0.0021
    system = la.Quadratic([[1.0]], [[1.0]])
    path = la.integrate(system, "P4N5Q8Lob", q0=[1.0], p0=[0.3], h=gap.at, steps=30000, allow_unstable=True)
    size = np.hypot(path.q[:, 0], path.p[:, 0])
    assert np.log(size[-1] / size[20000]) / 10000 == pytest.approx(np.log(gap.growth), rel=1e-6)


@pytest.mark.parametrize("name", ["P11N12Q22Lob", "P12N13Q24Lob", "P12N13Q26Gau"])
def test_gaps_thinner_than_the_spacing_of_floats(name):
    """The first gap, at x = π, is told by its width; a scan in 60 digits sees that width and that growth."""
    gap = stability(name).gaps[0]
    assert float(gap.lower) == float(gap.upper) == gap.at == np.pi and 0 < gap.width < 1e-16
    assert gap.excess == pytest.approx(gap.width / 2, rel=1e-6)  # |c| is a parabola over a thin gap
    trace = sympy.lambdify(x, iteration_matrix(name).trace(), "mpmath")
    with mpmath.workdps(60):
        middle = mpmath.findroot(lambda place: mpmath.diff(trace, place, h=mpmath.mpf(10) ** -20), mpmath.pi)
        places = [middle + gap.width * mpmath.mpf(k) / 40 for k in range(-40, 41)]
        halves = [abs(trace(place)) / 2 for place in places]
        outside = [half > 1 for half in halves]
        assert sum(outside) in (39, 40, 41) and outside == outside[::-1]
        growth = halves[40] + mpmath.sqrt(halves[40] ** 2 - 1) - 1
    assert gap.excess == pytest.approx(float(growth), rel=1e-9)
    assert "wide" in repr(gap)


def test_members_of_very_high_degree_have_all_their_gaps():
    """P25N26Q50Lob: gaps from 10⁻⁵⁵ to without end, each with an island behind it."""
    result = stability("P25N26Q50Lob")
    assert len(result) == len(result.gaps) == 25
    assert result.gaps[0].width < 1e-54 and result.gaps[-1].width == np.inf
    assert all(low.excess < high.excess for low, high in itertools.pairwise(result.gaps))


def test_stable_for_every_h_are_just_gauss_with_as_many_nodes_as_the_degree():
    assert stable_for_all_h(10) == tuple(la.galerkin(s, la.gauss(s)) for s in range(1, 11))
    assert stability("P6N6Q12Gau").for_all_h and repr(stability("P6N6Q12Gau")).endswith("every x = hω > 0")


def test_no_island_is_missed_on_a_fine_scan():
    result = stability("P6N7Q12Lob")
    ends = np.array([interval.floats for interval in result])
    places = np.linspace(0.01, 1.1 * ends.max(), 4000)
    inside = ((places[:, None] > ends[:, 0]) & (places[:, None] < ends[:, 1])).any(axis=1)
    assert ((result.growth(places) == 1.0) == inside).all()
    assert result.stable(1.0) and not result.stable(1000.0)


def test_stability_figure():
    import matplotlib.pyplot as plt

    ax = stability("P3N4Q6Lob").plot(x=(3.0, 3.3))
    drawn = ax.lines[0].get_xydata()
    assert drawn[:, 1].max() == pytest.approx(stability("P3N4Q6Lob").gaps[0].growth, rel=1e-4)
    plt.close("all")


@pytest.mark.parametrize("name", ["simpson", "P2N2Q4Gau", "P3N4Q6Lob", "rk4"])
def test_trace_is_a_reduced_fraction(name):
    trace = la.analysis.stability(name).trace
    assert trace == sympy.cancel(trace) == sympy.cancel(2 * la.analysis.iteration_matrix(name)[0, 0])
