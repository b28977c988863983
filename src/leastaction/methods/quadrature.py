"""Quadrature rules on [0, 1], and Lagrange bases, at any precision.

A rule of r points with order u integrates polynomials of degree u − 1 exactly. With y = 2c − 1:

    gauss            u = 2r          the roots of the Legendre polynomial P_r
    lobatto          u = 2r − 2      both ends, and the roots of P'_{r−1}
    radau            u = 2r − 1      one end: the roots of P_r ∓ P_{r−1} (right, left)
    chebyshev        u = r or r + 1  the roots of Chebyshev's T_r (Fejér's rule); u is even
    clenshaw_curtis  u = r or r + 1  both ends, and the roots of T'_{r−1}; u is even
    rule             found           nodes and weights of one's own

Everything is computed with mpmath, a few digits beyond those asked for, and rounded once; in
float64 the nodes, weights and basis tables are therefore correct to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Literal

import mpmath
import numpy as np
from flint import arb, fmpq_poly, fmpz_poly
from numpy.typing import NDArray

from leastaction.docstrings import documented
from leastaction.numbers.conversion import mpf
from leastaction.numbers.notation import exact, to_text
from leastaction.numbers.precision import flint_bits, mpmath_digits
from leastaction.numbers.rounding import to_mpf

GUARD_DIGITS = 20  # lost to cancellation in the basis tables, with room to spare up to r = 64
FLOAT64_DIGITS = 17
MOST_NODES = 64  # of a rule: tables of larger ones are slow to compute, and not exact
ZERO = 1e-30
MOMENT_DIGITS = 60  # in which moments of irrational nodes are compared
ROUNDED = 16 * 2.0**-52  # by which moments of nodes and weights given as floats may be off


@dataclass(frozen=True)
class Quadrature:
    """A quadrature rule on [0, 1]. `la.gauss`, `la.lobatto`, `la.radau`, `la.chebyshev`, `la.clenshaw_curtis` and
    `la.rule` make it.

    Attributes
    ----------
    r : int
        Number of nodes.
    c, b : ndarray, shape (r,)
        Nodes, ascending, and weights, which sum to one. Both are correct to the last bit.
    order : int
        u: the rule is exact for polynomials of degree u − 1.
    symmetric : bool
        Whether 1 − c are the same nodes with the same weights.

    Methods
    -------
    points

    Examples
    --------
    >>> import leastaction as la
    >>> la.lobatto(3).b * 6
    array([1., 4., 1.])
    """

    family: str
    r: int
    given: tuple[tuple[Any, ...], tuple[Any, ...]] | None = None  # exact numbers, where the rule is one's own
    floats: bool = field(default=False, compare=False)  # some of them were floats: moments hold to rounding

    @cached_property
    def order(self) -> int:
        match self.family, self.given:
            case _, (_, _):
                return _found_order(*self.points(MOMENT_DIGITS), ROUNDED if self.floats else 10.0**-MOMENT_DIGITS)
            case "Gau", _:
                return 2 * self.r
            case "Lob", _:
                return 2 * self.r - 2
            case "RadL" | "RadR", _:
                return 2 * self.r - 1
        return self.r + self.r % 2

    @cached_property
    def symmetric(self) -> bool:
        if self.given is None:
            return not self.family.startswith("Rad")
        c, b = self.points(MOMENT_DIGITS)
        near = ROUNDED if self.floats else 10.0**-MOMENT_DIGITS
        pairs = zip(c, b, reversed(c), reversed(b), strict=True)
        return all(abs(x + y - 1) <= near and abs(v - w) <= near for x, v, y, w in pairs)

    @property
    def exact(self) -> bool:
        """Whether the moments are rational numbers that are known."""
        return self.given is None or (not self.floats and all(isinstance(x, Fraction) for x in sum(self.given, ())))

    @property
    def c(self) -> NDArray[np.float64]:
        return rounded(self.points()[0])

    @property
    def b(self) -> NDArray[np.float64]:
        return rounded(self.points()[1])

    @documented("digits_correct")
    def points(self, digits: int = FLOAT64_DIGITS) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Nodes c and weights b as mpmath numbers."""
        if self.given is not None:
            bits = math.ceil((digits + GUARD_DIGITS + 10) * math.log2(10))
            c, b = (tuple(to_mpf(x, bits) for x in numbers) for numbers in self.given)
            return c, b
        return _points(self.family, self.r, digits + GUARD_DIGITS)

    @property
    def text(self) -> str:
        """What follows PsNrQu in the text of a method: the family, and behind it nodes and weights of one's own."""
        if self.given is None:
            return self.family
        c, b = ([to_text(x) for x in numbers] for numbers in self.given)
        return f"{self.family}[{', '.join(c)}; {', '.join(b)}{'; floats' if self.floats else ''}]"

    def __repr__(self) -> str:
        if self.given is not None:
            c, b = ([str(x) for x in numbers] for numbers in self.given)
            return f"rule([{', '.join(c)}], [{', '.join(b)}], order {self.order})"
        if self.family.startswith("Rad"):
            return f"radau({self.r}, {'left' if self.family == 'RadL' else 'right'!r})"
        return f"{READY[self.family].__name__}({self.r})"


@documented("r")
def gauss(r: int) -> Quadrature:
    """The Gauss–Legendre rule with r points inside the step, of order 2r.

    Examples
    --------
    >>> import leastaction as la
    >>> la.gauss(1).c, la.gauss(3).order
    (array([0.5]), 6)
    """
    return Quadrature("Gau", _count(r, 1, "a Gauss rule"))


@documented("r")
def lobatto(r: int) -> Quadrature:
    """The Gauss–Lobatto rule with r points, both ends among them, of order 2r − 2.

    Examples
    --------
    >>> import leastaction as la
    >>> la.lobatto(3).c, la.lobatto(3).order
    (array([0. , 0.5, 1. ]), 4)
    """
    return Quadrature("Lob", _count(r, 2, "a Lobatto rule"))


@documented()
def radau(r: int, end: Literal["left", "right"] = "right") -> Quadrature:
    """The Gauss–Radau rule with r points, one end among them, of order 2r − 1. It is not symmetric.

    Parameters
    ----------
    {r}
    end : {"right", "left"}, default "right"
        Which end is a point.

    Examples
    --------
    >>> import leastaction as la
    >>> la.radau(2).c, la.radau(2).order
    (array([0.33333333, 1.        ]), 3)
    """
    if end not in ("left", "right"):
        raise ValueError(f"the end of a Radau rule is 'left' or 'right'; got {end!r}")
    return Quadrature("RadL" if end == "left" else "RadR", _count(r, 1, "a Radau rule"))


@documented("r")
def chebyshev(r: int) -> Quadrature:
    """Fejér's rule: r Chebyshev points inside the step, 2c − 1 = cos((2k − 1)π/2r). All weights are positive.
    Its order is r or r + 1, whichever is even.

    Examples
    --------
    >>> import leastaction as la
    >>> la.chebyshev(3).order
    4
    """
    return Quadrature("Che", _count(r, 1, "a Chebyshev rule"))


@documented("r")
def clenshaw_curtis(r: int) -> Quadrature:
    """The Clenshaw–Curtis rule: r Chebyshev points with both ends, 2c − 1 = cos(kπ/(r − 1)). All weights are positive.
    Its order is r or r + 1, whichever is even.

    Examples
    --------
    >>> import leastaction as la
    >>> la.clenshaw_curtis(3).b * 6
    array([1., 4., 1.])
    """
    return Quadrature("Cle", _count(r, 2, "a Clenshaw–Curtis rule"))


# The suffix in a method's name, and the function that makes the rule.
READY: dict[str, Callable[[int], Quadrature]] = {
    "Gau": gauss,
    "Lob": lobatto,
    "RadL": lambda r: radau(r, "left"),
    "RadR": radau,
    "Che": chebyshev,
    "Cle": clenshaw_curtis,
}


def rule(c: Sequence[Any], b: Sequence[Any], name: str = "Own") -> Quadrature:
    """A quadrature rule of one's own: ∫₀¹ f ≈ Σ_i b_i f(c_i). Its order u is the number of moments that agree,
    Σ_i b_i c_i^k = 1/(k + 1) for k < u.

    Parameters
    ----------
    c, b : sequence of numbers
        Nodes and weights. Exact numbers (text such as "1/2 - sqrt(3)/6", Fraction, SymPy) are right at any number of
        digits. Floats may be given, too: moments are then compared to rounding, and runs with more digits use the
        binary numbers.
    name : str, default "Own"
        Letters that stand in the names of methods with this rule.

    Examples
    --------
    >>> import leastaction as la
    >>> boole = la.rule([0, "1/4", "1/2", "3/4", 1], ["7/90", "32/90", "12/90", "32/90", "7/90"], "Boole")
    >>> boole.order, boole.symmetric
    (6, True)
    """
    nodes, weights = (_numbers(x, what) for x, what in ((c, "nodes c"), (b, "weights b")))
    if len(nodes) != len(weights) or not nodes:
        raise ValueError(f"a rule has as many weights as nodes, at least one; got {len(nodes)} and {len(weights)}")
    if not isinstance(name, str) or not name.isalpha() or name.lower() in {known.lower() for known in READY}:
        raise ValueError(f"the name of a rule is made of letters, other than {', '.join(READY)}; got {name!r}")
    _check_nodes(len(nodes))
    own = any(isinstance(x, float | np.floating) for x in (*c, *b))
    pairs = sorted(zip(nodes, weights, strict=True), key=lambda pair: to_mpf(pair[0], 400))
    made = Quadrature(name, len(nodes), (tuple(x for x, _ in pairs), tuple(w for _, w in pairs)), own)
    at, _ = made.points(MOMENT_DIGITS)
    if at[0] < 0 or at[-1] > 1:
        raise ValueError(f"the nodes of a rule lie in the step, 0 ≤ c ≤ 1; got {', '.join(map(str, nodes))}")
    if any(x == y for x, y in pairwise(at)):
        raise ValueError(f"the nodes of a rule must differ; got {', '.join(map(str, nodes))}")
    if made.order == 0:
        raise ValueError(f"the weights of a rule sum to one; these sum to {mpmath.nstr(sum(made.points()[1]), 17)}")
    return made


def _numbers(values: Sequence[Any], what: str) -> tuple[Any, ...]:
    if isinstance(values, str) or not hasattr(values, "__len__"):
        raise TypeError(f"the {what} of a rule are a list of numbers; got {values!r}")
    try:
        return tuple(exact(x) for x in values)
    except (TypeError, ValueError) as error:
        raise type(error)(f"the {what} of a rule: {error}") from None


def _found_order(c: tuple[Any, ...], b: tuple[Any, ...], near: float) -> int:
    """How many moments agree; 2r at most."""
    with mpmath_digits(MOMENT_DIGITS + GUARD_DIGITS):
        for k in range(2 * len(c) + 1):
            if abs(mpmath.fsum(w * x**k for x, w in zip(c, b, strict=True)) - mpmath.mpf(1) / (k + 1)) > near:
                return k
    return 2 * len(c)


def _count(r: int, least: int, what: str) -> int:
    if isinstance(r, bool) or not isinstance(r, int | np.integer) or r < least:
        raise ValueError(f"{what} needs an integer number of points, at least {least}; got {r!r}")
    _check_nodes(r)
    return int(r)


def _check_nodes(r: int) -> None:
    if r > MOST_NODES:
        raise ValueError(
            f"a rule has at most {MOST_NODES} nodes, since tables of larger ones are slow and lose digits; got {r}. "
            "A method of order 16 to 32 with a shorter step does more"
        )


def node_polynomial(family: str, r: int) -> Any:
    """The polynomial in y = 2c − 1, with rational coefficients, whose roots are the nodes of a ready rule."""
    P, y = fmpq_poly.legendre_p, fmpq_poly([0, 1])
    match family:
        case "Gau":
            return P(r)
        case "Lob":
            return (1 - y * y) * P(r - 1).derivative()
        case "RadL":
            return P(r) + P(r - 1)
        case "RadR":
            return P(r) - P(r - 1)
        case "Che":
            return fmpq_poly(fmpz_poly.chebyshev_t(r))
    return (1 - y * y) * fmpq_poly(fmpz_poly.chebyshev_t(r - 1)).derivative()


@lru_cache(maxsize=256)
def _points(family: str, r: int, digits: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Nodes, and the weights that make a rule exact for degree r − 1: integrals of the Lagrange basis."""
    with flint_bits(math.ceil((digits + 2 * GUARD_DIGITS) * math.log2(10))):
        if family == "Gau":
            pairs = [arb.legendre_p_root(r, k, True) for k in range(r)]
            y, w = [mpf(x) for x, _ in pairs], [mpf(x) for _, x in pairs]
        else:
            factors: list[Any] = [fmpq_poly(factor.coeffs()) for factor, _ in node_polynomial(family, r).factor()[1]]
            y = [mpf(root.real) for factor in factors for root, _ in factor.complex_roots()]
    with mpmath_digits(digits + 10):
        c = sorted((1 + x) / 2 for x in y)
        if not family.startswith("Rad"):  # symmetry is exact, as time reversal needs it (Galerkin paper, Theorem 4.9)
            c = [(1 + low - high) / 2 for low, high in zip(c, c[::-1], strict=True)]
        if family == "Gau":
            b = [x / 2 for x in w]
        else:
            at, weights = _points("Gau", (r + 1) // 2, digits + GUARD_DIGITS)
            values, _ = lagrange_basis(c, at, digits + GUARD_DIGITS)
            b = [mpmath.fsum(weight * row[i] for weight, row in zip(weights, values, strict=True)) for i in range(r)]
        if not family.startswith("Rad"):
            b = [(first + last) / 2 for first, last in zip(b, b[::-1], strict=True)]
    return tuple(c), tuple(b)


def lagrange(d: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
    """The polynomials that are one at one of the points d and zero at the others, at every x: (*x.shape, len(d))."""
    columns = []
    for v in range(len(d)):
        others = np.delete(d, v)
        columns.append(np.prod((x[..., None] - others) / (d[v] - others), axis=-1))
    return np.stack(columns, axis=-1)


def slopes(d: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
    """The derivatives of the polynomials of `lagrange` at every x, (len(x), len(d))."""
    columns = []
    for v in range(len(d)):
        others = np.delete(d, v)
        gaps = x[:, None] - others
        without = [np.prod(np.delete(gaps, i, axis=1), axis=1) for i in range(len(others))]
        columns.append(np.sum(without, axis=0) / np.prod(d[v] - others))
    return np.stack(columns, axis=1)


def lagrange_basis(
    points: Sequence[Any], at: Sequence[Any], digits: int = FLOAT64_DIGITS
) -> tuple[list[list[Any]], list[list[Any]]]:
    """Values l_ν(x) and derivatives l_ν′(x) of the Lagrange basis on `points`, a row per x of `at`.

    The derivative follows the product rule factor by factor, which needs no division by x − d_i
    and so holds at the points themselves.
    """
    values, slopes = [], []
    with mpmath_digits(digits + GUARD_DIGITS):
        below = [mpmath.fprod(d - e for i, e in enumerate(points) if i != v) for v, d in enumerate(points)]
        for x in at:
            row, slope = [], []
            for v, scale in enumerate(below):
                others = [x - e for i, e in enumerate(points) if i != v]
                product, omitted = mpmath.mpf(1), mpmath.mpf(0)
                for factor in others:  # (f g)′ = f′ g + f g′ with g = x − e
                    omitted = omitted * factor + product
                    product = product * factor
                row.append(product / scale)
                slope.append(omitted / scale)
            values.append(row)
            slopes.append(slope)
    return values, slopes


def rounded(table: Any) -> NDArray[np.float64]:
    """mpmath numbers to float64, each rounded once; read-only, since tables are shared.

    What cancels in exact arithmetic, such as l_ν′(d_ν) at an inner Lobatto point, leaves a remainder of
    about 10⁻³⁷ behind: no other entry is nearly as small, so this remainder is set to zero.
    """
    array = np.array(table, dtype=object)
    result = np.array([float(x) if abs(x) > ZERO else 0.0 for x in array.flat]).reshape(array.shape)
    result.flags.writeable = False
    return result
