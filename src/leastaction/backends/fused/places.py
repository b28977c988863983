"""From kicks to places, where f does not depend on v and the mass is constant (`separable`): tables, and how these are
rounded.

With kicks w_j, p = M u and T symmetric, the points of a step and its end lie at

    Z_i = M⁻¹ Σ_j A_ij w_j + γ_i u,      A_ij = γ_i − h T_ij,      γ_i = h c_i,
    z^s = M⁻¹ Σ_j β_j w_j + h u,         β_j = h − γ_j .

The rounding rule. A step is symplectic for any γ and any symmetric h T (Suris' conditions: A_ij + γ_j is symmetric), if
the numbers in A, in γ and in β are the same ones. If A_ij is h times a number of a table, it has another γ than u has,
by the rounding of h c_i: the conditions are missed by ε h⁴. That is not small where steps are long for a pericentre,
and the energy of Kepler's orbits drifted by 1.2·10⁻³ ε a step at h = 0.08. γ and β are rounded such that their sum is h
without an error: the larger one is rounded, the other one is the difference. c and T are multiples of 2⁻⁵³.

Points side by side. Tables are known numbers, and so γ and h T are rounded to multiples of the last place of h: their
differences are numbers of float64 without another rounding.

One by one. h is not known, and an entry is a product by itself. So what must match stands apart: with α_i = (γ_i −
β_i)/4 and Y_ij = (c_i + c_j)/2 − T_ij, which is symmetric,

    Z_i = h M⁻¹ Σ_j Y_ij w_j + α_i M⁻¹ Σ_j w_j − M⁻¹ Σ_j α_j w_j + γ_i u,

and any rounding of h Y gives a symplectic step. Where the rule is symmetric, α_i′ = −α_i and Y_i′j′ = Y_ij for the node
i′ opposite to i. So sums and differences of opposite kicks take half as many products with Y: with E_ij = (Y_ij +
Y_ij′)/2 and O_ij = (Y_ij − Y_ij′)/2, i and j in the first half of the step,

    Σ_j Y_ij w_j, Σ_j Y_i′j w_j = Σ_j E_ij (w_j + w_j′) ± Σ_j O_ij (w_j − w_j′),

where a node in the middle counts in the first sum once.

A node at the start stays there, and its kick w_0 acts from the start on, as if it were a part of p. A node at the end
lies at z^s, and its kick moves no place. Sums go over the nodes between them.

u is not multiplied with h. u is a multiple of the last place of p, and where 1/h is a round number, the last digits of
h u are few. With h = 0.1 one product in ten lies half way between two numbers, but for the rounding of h, which decides
to which side all of these fall: z^s has another h than Z has, and the energy of Kepler's orbits drifts. γ_i and β_i
have many digits, and h u is the sum of their products with u, for one node i (`halves`). So has every Z_i a product of
its own: with h u/2 in common for all of them, orbits drift, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import add, sub
from typing import Any, NamedTuple

import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.backends.fused.mass import FloatArray
from leastaction.methods import Galerkin
from leastaction.numbers.precision import mpmath_digits
from leastaction.program import Value
from leastaction.step.prediction import WHOLE
from leastaction.step.rows import Row, combine, total

GRID = 2.0**53
LOWEST = -1e300
MODES = 12  # modes of the forces that are prolonged


class Coefficients(NamedTuple):
    """c and T; d and the table from kicks to z/h; and the table from kicks to the predicted next ones."""

    c: FloatArray  # (r,)
    T: FloatArray  # (r, r)
    d: FloatArray  # (s,)
    controls: FloatArray  # (s, r)
    ahead: FloatArray  # (r, r)

    @property
    def places(self) -> FloatArray:
        """H = c − T: from kicks to Z/h."""
        return self.c[:, None] - self.T


@lru_cache(maxsize=64)
def coefficients(method: Galerkin) -> Coefficients:
    """c and T are multiples of 2⁻⁵³, so that their differences have no rounding."""
    exact, s = method.exact_table(40), method.s
    with mpmath_digits(60):
        l, dl = (mpmath.matrix([list(row[1:]) for row in exact[name]]) for name in ("l", "dl"))
        lifted = (dl.T * mpmath.diag(list(exact["b"])) * dl) ** -1 * l.T
        T = _on_the_grid(l * lifted)
        c, d = _on_the_grid(mpmath.matrix(list(exact["c"])))[:, 0], np.array([float(x) for x in exact["d"][1:]])
        controls = np.array([[float(exact["d"][v + 1] - lifted[v, j]) for j in range(l.rows)] for v in range(s)])
        ahead = _prolonged(list(exact["c"]), list(exact["b"])) if s > WHOLE else np.zeros((0, 0))
    if method.symmetric:
        half = len(c) // 2
        c[len(c) - half :] = 1 - c[:half][::-1]
    controls[-1] = 1 - c
    return Coefficients(c, (T + T.T) / 2, d, controls, ahead)


def _on_the_grid(matrix: Any) -> FloatArray:
    """The nearest multiples of 2⁻⁵³; two entries that mirror each other, as in a symmetric matrix, stay equal."""
    numbers = [[float(mpmath.nint(matrix[i, j] * GRID)) for j in range(matrix.cols)] for i in range(matrix.rows)]
    return np.array(numbers) / GRID


def _prolonged(c: Sequence[Any], b: Sequence[Any]) -> FloatArray:
    """The kicks of the next step from those of the last: the polynomial of degree < MODES that is nearest to f."""
    modes = min(len(c), MODES)
    here, there = (
        mpmath.matrix([[mpmath.legendre(k, 2 * x + shift) for k in range(modes)] for x in c]) for shift in (-1, 1)
    )
    nearest = (here.T * here) ** -1 * here.T
    found = there * nearest
    return np.array([[float(b[i] * found[i, j] / b[j]) for j in range(len(c))] for i in range(len(c))])


# ------------------------------------------------------------------------------------------- tables that know h


def shares(c: FloatArray, h: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """γ and β in columns. What is zero for any h is the number zero."""
    late = c >= 0.5
    larger = _times(np.where(late, c, 1 - c), h)
    smaller = np.where((c == 0) | (c == 1), 0.0, larger * -1.0 + h)
    return np.where(late, larger, smaller)[:, None], np.where(late, smaller, larger)[:, None]


def pushes(c: FloatArray, T: FloatArray, h: Any) -> NDArray[Any]:
    """A, where h is a number."""
    return shares(c, h)[0] - _times(T, h)


def _times(x: FloatArray, h: Any) -> NDArray[Any]:
    """x h; where h is a number, in multiples of its last place. Else the maximum with a number below all others keeps
    compilers from adding the product to something else without rounding it, which they may do with plain products.
    """
    product: NDArray[Any] = x * h
    if product.dtype == object:
        return np.array([value.op("max", LOWEST) for value in product])
    place = np.spacing(abs(h))
    return np.rint(product / place) * place


def halves(method: Galerkin) -> int | None:
    """A node whose γ and β have many digits: the first one that lies neither at an end nor in the middle of a step."""
    return next((i for i, c in enumerate(coefficients(method).c) if c not in (0.0, 0.5, 1.0)), None)


# -------------------------------------------------------------------------------------------------- one by one


class Folded(NamedTuple):
    """Y of the nodes between start and end, by halves.

    even, odd   E, with a column and a row for each node that has no opposite one behind it, and O, both symmetric
    begin, end  of the nodes, those between start and end
    """

    even: FloatArray
    odd: FloatArray
    begin: int
    end: int

    @property
    def half(self) -> int:
        return len(self.odd)


@lru_cache(maxsize=64)
def folded(method: Galerkin) -> Folded:
    """These tables of a method; where its rule is not symmetric, no node has an opposite one."""
    c, T = coefficients(method)[:2]
    begin, end = int(c[0] == 0), len(c) - int(c[-1] == 1)
    Y = ((c[:, None] + c) / 2 - T)[begin:end, begin:end]
    half = len(Y) // 2 if method.symmetric else 0
    even, odd = (Y + Y[:, ::-1]) / 2, (Y - Y[:, ::-1]) / 2
    even[:, half : len(Y) - half] = Y[:, half : len(Y) - half]
    even, odd = even[: len(Y) - half, : len(Y) - half], odd[:half, :half]
    return Folded((even + even.T) / 2, (odd + odd.T) / 2, begin, end)


class Sums(NamedTuple):
    """Sums over the kicks of one coordinate.

    even, odd   Σ_j E_ij (w_j + w_j′) and Σ_j O_ij (w_j − w_j′)
    turn        2 w_0 + Σ_j w_j, to be multiplied with α_i
    lean        h w_0/2 − Σ_j α_j w_j, the same for all points
    last        of a node at the end: h w_0 + Σ_j β_j w_j
    """

    even: Row
    odd: Row
    turn: Any
    lean: Any
    last: Row


def sums(table: Folded, alpha: Row, h: Value, w: Row) -> Sums:
    """These sums; α are those of all nodes."""
    half, inner = table.half, w[table.begin : table.end]
    opposite = list(zip(inner[:half], inner[: -half - 1 : -1], strict=True))
    alike, unlike = [a + b for a, b in opposite], [a - b for a, b in opposite]
    single = inner[half : len(inner) - half]
    odd = combine(table.odd.tolist(), unlike) if half else []
    even = combine(table.even.tolist(), alike + single) if inner else []
    leaning = [a * b for a, b in zip(alpha[table.begin :], unlike + single, strict=False) if isinstance(a, Value)]
    turn = total(alike + single) if inner else 0.0
    lean = -total(leaning) if leaning else 0.0
    last = lean * 2.0 + turn * (h * 0.5)
    if table.begin:
        turn, lean, last = turn + w[0] * 2.0, lean + w[0] * (h * 0.5), last + w[0] * h
    return Sums(even, odd, turn, lean, [last] if table.end < len(w) else [])


def spread(table: Folded, alpha: Row, even: Row, odd: Row, turn: Any, lean: Any, last: Row) -> Row:
    """What kicks move all nodes by, from these sums."""
    half, own = table.half, alpha[table.begin :]
    along = [a + lean for a in even]
    across = [a + b * turn for a, b in zip(odd, own, strict=False)]
    single = zip(along[half:], own[half:], strict=False)
    first, opposite = ([way(a, b) for a, b in zip(along, across, strict=False)] for way in (add, sub))
    middle = [a + b * turn if isinstance(b, Value) else a for a, b in single]
    return [*([0.0] * table.begin), *first, *middle, *opposite[::-1], *last]
