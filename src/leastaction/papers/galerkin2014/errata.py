"""Misprints, formulas wrong as read, and remarks; the evidence is computed from the formulas as read."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from leastaction.analysis import iteration_matrix, stability
from leastaction.integrate import integrate
from leastaction.numbers.precision import mpmath_digits
from leastaction.papers.galerkin2014.runs import KEPLER, T_END, fitted_order, member
from leastaction.papers.model import as_read, misprint, remark
from leastaction.papers.typeset import root
from leastaction.problems import get

x = sp.Symbol("x")


# Section 4.3, items 1 to 6, as read, with x = hω: (p, ωq) ↦ (p, ωq).
def _matrix(a: Any, b: Any, c: Any, d: Any, denominator: Any = 1) -> Any:
    return sp.Matrix([[a, b], [c, d]]) / denominator


PRINTED = {
    "P1N1Q2Gau": _matrix(-(x**2 - 4), -4 * x, 4 * x, -(x**2 - 4), x**2 + 4),
    "P1N2Q2Lob": _matrix(1 - x**2 / 2, x**3 / 4 - x, x, 1 - x**2 / 2),
    "P2N2Q4Gau": _matrix(
        x**4 - 60 * x**2 + 144, -12 * x * (x**2 - 12),
        12 * x * (x**2 - 12), x**4 - 60 * x**2 + 144,
        x**4 + 12 * x**2 + 144,
    ),
    "P2N3Q4Lob": _matrix(
        (x**4 - 22 * x**2 + 48) / (2 * x**2 + 48), (24 * x - 3 * x**3) / (x**2 + 24),
        -x * (x**4 - 36 * x**2 + 288) / (12 * x**2 + 288), (x**4 - 22 * x**2 + 48) / (2 * x**2 + 48),
    ),
    "P3N3Q6Gau": _matrix(
        -(x**6 - 264 * x**4 + 6480 * x**2 - 14400), 24 * x * (x**4 - 70 * x**2 + 600),
        24 * x * (x**4 - 70 * x**2 + 600), -(x**6 - 264 * x**4 + 6480 * x**2 - 14400),
        x**6 + 24 * x**4 + 720 * x**2 + 14400,
    ),
    "P3N4Q6Lob": _matrix(
        -(x**6 / 2 - 46 * x**4 + 840 * x**2 - 1800), 6 * x * (x**4 - 40 * x**2 + 300),
        x * (x**6 - 144 * x**4 + 5760 * x**2 - 43200) / 24, -(x**6 - 92 * x**4 + 1680 * x**2 - 3600) / 2,
        x**4 + 60 * x**2 + 1800,
    ),
}  # fmt: skip
SWAP = sp.Matrix([[0, 1], [1, 0]])


def is_printed_right(name: str) -> bool:
    """Whether the printed matrix is the method's."""
    return _equal(PRINTED[name], iteration_matrix(name))


def _equal(A: Any, B: Any) -> bool:
    return bool((A - B).applyfunc(sp.simplify).is_zero_matrix)


def global_error(M: Any, h: Fraction) -> float:
    """The largest entry of Mᴺ minus the exact rotation by t = 1, N = 1/h, ω = 1, to 30 digits."""
    with mpmath_digits(30):
        step = mpmath.matrix(M.subs(x, sp.Rational(h)).evalf(40).tolist())
        c, s = mpmath.cos(1), mpmath.sin(1)
        off = step ** int(1 / h) - mpmath.matrix([[c, -s], [s, c]])
        return float(max(abs(e) for e in off))


def _measured_order(M: Any) -> tuple[float, float]:
    """The error at t = 1 with the smallest step, and the order."""
    steps = [Fraction(1, n) for n in (8, 16, 32)]
    found = [global_error(M, h) for h in steps]
    return found[-1], fitted_order(steps, found)


def swapped(name: str) -> str:
    """The matrix is printed for (ωq, p), although (p, ωq) is announced."""
    M = PRINTED[name]
    error, slope = _measured_order(M)
    good_error, good_slope = _measured_order(SWAP * M * SWAP)
    same = "equals" if _equal(SWAP * M * SWAP, iteration_matrix(name)) else "differs from"
    return (
        f"As read, the error at t = 1 is {error:.2f} with h = 1/32, order {abs(slope):.1f}: the motion runs "
        f"backward in time. With rows and columns exchanged it is {good_error:.0e}, order {good_slope:.1f}, and the "
        f"matrix {same} the one derived from the discrete Lagrangian, exactly."
    )


@as_read(
    "section 4.3, item 5, iteration matrix of P3N3Q6Gau",
    "both off-diagonal entries 24x(x⁴ − 70x² + 600)/D",
    "one of the two with a minus sign",
    "One sign. The paper calls the matrix orthogonal, so that one was meant. For the order (p, ωq) that is "
    "announced it is the upper one; for the order (ωq, p), in which the items 3, 4 and 6 stand, the lower one.",
)
def sign(name: str = "P3N3Q6Gau") -> str:
    """Both off-diagonal entries are printed with the same sign."""
    M = PRINTED[name]
    largest = max(abs(float(value)) for value in M.subs(x, 1).eigenvals())
    upper, lower = (M.multiply_elementwise(sp.Matrix(signs)) for signs in ([[1, -1], [1, 1]], [[1, 1], [-1, 1]]))
    _, slope = _measured_order(upper)
    same = "equals" if _equal(upper, iteration_matrix(name)) else "differs from"
    other = "equals" if _equal(SWAP * lower * SWAP, iteration_matrix(name)) else "differs from"
    return (
        f"At hω = 1 the matrix as read has determinant {float(M.subs(x, 1).det()):.4f}, an eigenvalue has modulus "
        f"{largest:.4f}: it is neither symplectic nor orthogonal. With a minus above, the matrix {same} the one "
        f"derived from the discrete Lagrangian, exactly, and its order is {slope:.1f}; with a minus below instead, it "
        f"{other} that one for the order (ωq, p) of the items 3, 4 and 6."
    )


@as_read(
    "section 3.1, definition of q̇_d",
    "q̇_d(t) = (1/h) Σ q^ν l_ν(t/h)",
    "q̇_d(t) = (1/h) Σ q^ν l_ν′(t/h)",
    "One dot, and the most doubtful of all: the same text has the dot over l in section 3.2 and in (4.5), so that "
    "it was most likely lost in reading.",
)
def velocity() -> str:
    """q̇_d by the basis itself instead of its derivative: for a particle at rest."""
    h = 0.1
    chosen = member("Lob", 2, 3)
    table = chosen.table
    at_rest = np.ones(chosen.s + 1)
    printed, right = (float(np.abs(basis @ at_rest).max()) / h for basis in (table.l, table.dl))
    return (
        f"For a particle at rest at q = 1, with h = {h}, the formula gives q̇_d = {printed:g}; with l′ it is {right:g}."
    )


@remark(
    "section 4.3, item 4, and Figure 4.1, stability of P2N3Q4Lob",
    "stable for |hω| < 2√2: true, but not all",
    "stable for |hω| < 2√2 and for 2√3 < |hω| < 2√6, as the figure itself shows",
)
def island() -> str:
    """P2N3Q4Lob is stable again beyond its first interval."""
    found = stability("P2N3Q4Lob")
    inside, gap = 4.0, 3.2
    return (
        f"Stable intervals, exactly: {', '.join(f'({root(i.lower)}, {root(i.upper)})' for i in found)}. The larger "
        f"|λ| is {float(found.growth(gap)):.3f} at hω = {gap} and {float(found.growth(inside)):g} at hω = {inside:g}."
    )


@as_read(
    "section 4.3, items 3 and 5, stability",
    "stable for all q, ω (in both items)",
    "stable for all h, ω",
    "One letter, q for h, but in both items; item 1 is read with the h.",
)
def only_the_step() -> str:
    """Whether q stands in the matrices of items 3 and 5 at all."""
    names = ("P2N2Q4Gau", "P3N3Q6Gau")
    symbols = {str(symbol) for name in names for symbol in iteration_matrix(name).free_symbols}
    orthogonal = all(_equal(M * M.T, sp.eye(2)) for M in map(iteration_matrix, names))
    return (
        f"The entries of both matrices depend on {', '.join(sorted(symbols))} = hω alone; M Mᵀ = 1 "
        f"{'holds' if orthogonal else 'does not hold'} for all hω, exactly, for {' and '.join(names)}: 2 of 2 matrices."
    )


@remark(
    "section 5.2, k of the Kepler problem, and section 5.2.1 on the smallest errors",
    "k = 1016.895192894334 for the period 5.0; errors fall not far below 10⁻¹⁰ because of machine precision and "
    "the solver",
    "whatever the solver, they cannot fall below 2·10⁻¹⁰ (q) and 4·10⁻¹⁰ (p) with this k, whose period is 5 to "
    "twelve digits: after 25 the exact orbit is not yet back. With k = 1016.895192894441 they can",
)
def period() -> str:
    """The period of the printed k is not 5, and this limits the errors."""
    given = get(KEPLER)
    T = given.data(40).period
    with mpmath_digits(40):
        r, v = mpmath.mpf(5), mpmath.mpf(17)
        k = mpmath.findroot(lambda k: 2 * mpmath.pi * mpmath.sqrt((2 / r - v**2 / k) ** -3 / k) - 5, given.params["k"])
        text = mpmath.nstr(k, 18)
    q, _ = given.exact(T_END[KEPLER], digits=40)
    off = float(max(abs(q - np.array(given.data(40).q0))))
    better = get(KEPLER, k=text)
    back = []
    for problem in (given, better):
        path = integrate(problem.system, "P5N6Q10Lob", problem.q0, problem.p0, h=1 / 32, t_end=T_END[KEPLER])
        back.append(float(np.abs(path.q[-1] - path.q[0]).max()))
    return (
        f"The printed k has the period 5 + {float(T - 5):.2e}; its exact orbit misses the initial point by {off:.2e} "
        f"at t = 25. P5N6Q10Lob with h = 1/32 in float64 comes back to {back[0]:.1e} with the printed k, to "
        f"{back[1]:.0e} with k = {text}."
    )


SWAPPED = {  # as it is said of each: what stands above and below the diagonal
    "P2N2Q4Gau": (3, "−12x(x² − 12)/D above, 12x(x² − 12)/D below", "12x(x² − 12)/D above, −12x(x² − 12)/D below"),
    "P2N3Q4Lob": (4, "(24x − 3x³)/(x² + 24) above, −x(x⁴ − 36x² + 288)/(12x² + 288) below", "the two exchanged"),
    "P3N4Q6Lob": (6, "6x(x⁴ − 40x² + 300)/D above, x(x⁶ − 144x⁴ + 5760x² − 43200)/(24D) below", "the two exchanged"),
}
ERRATA = [
    *(
        misprint(
            f"section 4.3, item {item}, iteration matrix of {name}",
            f"off-diagonal entries {says}, for the order (p, ωq)",
            f"{should}; the one in the text is for the order (ωq, p)",
        )(partial(swapped, name))
        for name, (item, says, should) in SWAPPED.items()
    ),
    sign,
    only_the_step,
    velocity,
    island,
    period,
]
