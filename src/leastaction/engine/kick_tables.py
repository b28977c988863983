"""From kicks to places, where the mass is constant and f does not depend on v: tables, and how these are rounded.

With kicks w_j, p = M u and T symmetric, the points of a step and its end lie at

    Z_i = M⁻¹ Σ_j A_ij w_j + γ_i u,      A_ij = γ_i − h T_ij,      γ_i = h c_i,
    z^s = M⁻¹ Σ_j β_j w_j + h u,         β_j = h − γ_j .

A step is symplectic for any γ and any symmetric h T (Suris' conditions: A_ij + γ_j is symmetric), if the numbers in A,
in γ and in β are the same ones. If A_ij is h times a number of a table, it has another γ than u has, by the rounding of
h c_i: the conditions are missed by ε h⁴. That is not small where steps are long for a pericentre, and the energy of
Kepler's orbits drifted by 1.2·10⁻³ ε a step at h = 0.08. So c and T are multiples of 2⁻⁵³, and γ and h T are rounded
to multiples of the last place of h: their differences are numbers of float64 without another rounding. γ and β are
rounded such that their sum is h without an error: the larger one is rounded, the other one is the difference.

u is not multiplied with h. u is a multiple of the last place of p, and where 1/h is a round number, the last digits of
h u are few. With h = 0.1 one product in ten lies half way between two numbers, but for the rounding of h, which decides
to which side all of these fall: z^s has another h than Z has, and the energy drifts. γ_i and β_i have many digits, and
h u is the sum of their products with u, for one node i.
"""

from __future__ import annotations

from functools import lru_cache

import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.methods import Galerkin
from leastaction.numbers.precision import mpmath_digits
from leastaction.step.rows import Table

GRID = 2.0**53
MODES = 12  # modes of the forces that are prolonged: higher ones are magnified beyond what is left of them

FloatArray = NDArray[np.float64]


@lru_cache(maxsize=64)
def kick_tables(method: Galerkin) -> dict[str, Table]:
    """γ, β and A, and "ahead A": from kicks to the predicted places of the next step."""
    c, T = _rounded(method)
    ahead, late = _prolonged(method), c >= 0.5

    def times(x: FloatArray, h: float) -> FloatArray:
        place = np.spacing(abs(h))
        return np.rint(x * h / place) * place

    def gamma(h: float, mirrored: bool = False) -> FloatArray:
        larger = times(np.where(late, c, 1 - c), h)
        return np.where(late ^ mirrored, larger, h - larger)[:, None]

    return {
        "gamma": gamma,
        "beta": lambda h: gamma(h, True),
        "A": lambda h: gamma(h) - times(T, h),
        "ahead A": lambda h: h * ((c[:, None] - T) @ ahead),
    }


def _rounded(method: Galerkin) -> tuple[FloatArray, FloatArray]:
    """c and T: multiples of 2⁻⁵³, so that their differences have no rounding."""
    exact = method.exact_table(40)
    with mpmath_digits(60):
        l, dl = (mpmath.matrix([list(row[1:]) for row in exact[name]]) for name in ("l", "dl"))
        T = _on_the_grid(l * ((dl.T * mpmath.diag(list(exact["b"])) * dl) ** -1 * l.T))
        c = _on_the_grid(mpmath.matrix(list(exact["c"])))[:, 0]
    if method.symmetric:
        half = len(c) // 2
        c[len(c) - half :] = 1 - c[:half][::-1]
    return c, (T + T.T) / 2


def _on_the_grid(matrix: mpmath.matrix) -> FloatArray:
    """The nearest multiples of 2⁻⁵³; two entries that mirror each other, as in a symmetric matrix, stay equal."""
    numbers = [[float(mpmath.nint(matrix[i, j] * GRID)) for j in range(matrix.cols)] for i in range(matrix.rows)]
    return np.array(numbers) / GRID


def _prolonged(method: Galerkin) -> FloatArray:
    """The kicks of the next step from those of the last: the polynomial of degree < MODES that is nearest to f."""
    exact = method.exact_table(40)
    c, b = (list(exact[name]) for name in "cb")
    modes = min(len(c), MODES)
    here, there = (
        mpmath.matrix([[mpmath.legendre(k, 2 * x + shift) for k in range(modes)] for x in c]) for shift in (-1, 1)
    )
    found = there * ((here.T * here) ** -1 * here.T)
    return np.array([[float(b[i] * found[i, j] / b[j]) for j in range(len(c))] for i in range(len(c))])
