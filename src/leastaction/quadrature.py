"""Gauss and Lobatto rules on [0, 1], and Lagrange bases, at any precision.

A rule of r points with order u integrates polynomials of degree u − 1 exactly:

    Gauss     u = 2r      nodes: the roots of the Legendre polynomial P_r
    Lobatto   u = 2r − 2  nodes: 0, 1 and the roots of P'_{r−1}

Everything is computed with mpmath, a few digits beyond those asked for, and rounded once; in
float64 the nodes, weights and basis tables are therefore correct to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.numbers.precision import mpmath_digits

GUARD_DIGITS = 20  # lost to cancellation in the basis tables, with room to spare up to r = 64
FLOAT64_DIGITS = 17
ZERO = 1e-30


@dataclass(frozen=True)
class Quadrature:
    """A Gauss (`"Gau"`) or Lobatto (`"Lob"`) rule with r points on [0, 1].

    >>> lobatto(3).b * 6
    array([1., 4., 1.])
    """

    family: Literal["Gau", "Lob"]
    r: int

    @property
    def order(self) -> int:
        """u: the rule is exact for polynomials of degree u − 1."""
        return 2 * self.r if self.family == "Gau" else 2 * self.r - 2

    @property
    def c(self) -> NDArray[np.float64]:
        """Nodes, ascending."""
        return rounded(self.points()[0])

    @property
    def b(self) -> NDArray[np.float64]:
        """Weights; they sum to one."""
        return rounded(self.points()[1])

    def points(self, digits: int = FLOAT64_DIGITS) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Nodes c and weights b as mpmath numbers, correct well beyond `digits`."""
        return _points(self.family, self.r, digits + GUARD_DIGITS)

    def __repr__(self) -> str:
        return f"{'gauss' if self.family == 'Gau' else 'lobatto'}({self.r})"


def gauss(r: int) -> Quadrature:
    """The Gauss–Legendre rule with r ≥ 1 points, order 2r."""
    return Quadrature("Gau", _count(r, 1, "a Gauss rule"))


def lobatto(r: int) -> Quadrature:
    """The Gauss–Lobatto rule with r ≥ 2 points including both ends, order 2r − 2."""
    return Quadrature("Lob", _count(r, 2, "a Lobatto rule"))


def _count(r: int, least: int, what: str) -> int:
    if isinstance(r, bool) or not isinstance(r, int | np.integer) or r < least:
        raise ValueError(f"{what} needs an integer number of points, at least {least}; got {r!r}")
    return int(r)


def _legendre(r: int, x: Any) -> tuple[Any, Any]:
    """P_r(x) and P_{r−1}(x) by the three-term recurrence."""
    before, now = mpmath.mpf(0), mpmath.mpf(1)
    for k in range(r):
        before, now = now, ((2 * k + 1) * x * now - k * before) / (k + 1)
    return now, before


@lru_cache(maxsize=256)
def _points(family: str, r: int, digits: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    with mpmath_digits(digits + 10):
        one = mpmath.mpf(1)
        x, w = [], []
        if family == "Gau":
            for k in range(r):
                root = _root(_gauss_newton, r, mpmath.cos(mpmath.pi * (4 * k + 3) / (4 * r + 2)))
                P, Q = _legendre(r, root)
                slope = r * (root * P - Q) / (root * root - 1)
                x.append(root)
                w.append(2 / ((1 - root * root) * slope**2))
        else:
            m = r - 1
            for k in range(r):
                root = one * (1 if k == 0 else -1)
                if 0 < k < m:
                    root = _root(_lobatto_newton, m, mpmath.cos(mpmath.pi * k / m))
                x.append(root)
                w.append(2 / (m * (m + 1) * _legendre(m, root)[0] ** 2))
        # Symmetry is exact, as Theorem 4.9 of the Galerkin paper (time reversal) needs it.
        c = [(1 - (x[k] - x[r - 1 - k]) / 2) / 2 for k in range(r)]
        b = [(w[k] + w[r - 1 - k]) / 4 for k in range(r)]
    return tuple(c), tuple(b)


def _root(newton: Any, r: int, x: Any) -> Any:
    """Newton's iteration from a guess already near the root, until it stops moving."""
    for _ in range(100):
        dx = newton(r, x)
        x -= dx
        if abs(dx) < mpmath.eps * 4:
            return x
    raise ArithmeticError(f"the roots of the Legendre polynomial of degree {r} did not converge")


def _gauss_newton(r: int, x: Any) -> Any:
    """P_r / P_r′."""
    P, Q = _legendre(r, x)
    return P * (x * x - 1) / (r * (x * P - Q))


def _lobatto_newton(m: int, x: Any) -> Any:
    """P_m′ / P_m″, by Legendre's equation (1 − x²) P″ = 2x P′ − m(m+1) P."""
    P, Q = _legendre(m, x)
    slope = m * (x * P - Q) / (x * x - 1)
    return slope * (1 - x * x) / (2 * x * slope - m * (m + 1) * P)


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
    about 10⁻³⁷ behind: no other entry is anywhere near as small, so that is a zero.
    """
    array = np.array(table, dtype=object)
    result = np.array([float(x) if abs(x) > ZERO else 0.0 for x in array.flat]).reshape(array.shape)
    result.flags.writeable = False
    return result
