"""Linear algebra written out: elimination without branches.

Exchanges of rows cost much of the time. So the Jacobian is eliminated without pivoting: for small h it is S ⊗ L_vv,
with S = Σ_i b_i l_ν′(c_i) l_μ′(c_i) positive definite, so any order works if L_vv is definite; if it is not, an order
without zeros on the diagonal avoids the worst. Where the elimination loses digits the iteration contracts less, and a
step in doubt is solved alone, with pivoting.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.program import Value
from leastaction.step.form import Step


def by_rows(values: Sequence[Any], width: int) -> list[list[Any]]:
    """The rows of a matrix whose entries lie one after the other."""
    return [list(values[k : k + width]) for k in range(0, len(values), width)]


def square(values: Sequence[Any]) -> list[list[Any]]:
    """The same of a square matrix."""
    return by_rows(values, math.isqrt(len(values)))


def solve(matrix: Sequence[Sequence[Value]], rights: Sequence[Sequence[Value]]) -> list[list[Value]]:
    """Gaussian elimination with partial pivoting, without branches: rows are exchanged by selection.

    One solution for each right-hand side. An entry that is zero by structure stays so, and costs nothing.
    """
    N = len(matrix)
    rows = [[*row, *(right[i] for right in rights)] for i, row in enumerate(matrix)]
    width = N + len(rights)
    for k in range(N):
        for i in range(k + 1, N):
            if rows[i][k].known == 0:
                continue
            larger = abs(rows[k][k]) < abs(rows[i][k])
            for j in range(k, width):
                upper, lower = rows[k][j], rows[i][j]
                rows[k][j], rows[i][j] = larger.where(lower, upper), larger.where(upper, lower)
        inverse = 1.0 / rows[k][k]
        for j in range(k + 1, width):
            rows[k][j] = inverse * rows[k][j]
        for i in range(k + 1, N):
            for j in range(k + 1, width):
                rows[i][j] = rows[i][j] - rows[i][k] * rows[k][j]
    found = _upward(rows, [row[N:] for row in rows])
    return [list(column) for column in zip(*found, strict=True)]


def order_of(step: Step) -> tuple[list[int], list[int]]:
    """The equations and the unknowns in an order in which they can be eliminated without pivoting, for small h: one
    coordinate after the other, so that little is filled in where few of them depend on each other; multipliers last.
    """
    n, s = step.n, step.s
    zero = ~_entries(step, "m_v")
    rows = list(range(n))
    if zero.diagonal().any():
        from scipy.optimize import linear_sum_assignment

        rows = [int(row) for row in linear_sum_assignment(zero.T)[1]]
    multipliers = list(range(s * n, s * (n + step.multipliers)))
    equations, unknowns = ([v * n + j for j in order for v in range(s)] for order in (rows, range(n)))
    return equations + multipliers, unknowns + multipliers


def elimination_length(step: Step) -> int:
    """How many multiplications it takes to eliminate the Jacobian of a step without multipliers in that order."""
    equations, unknowns = order_of(step)
    return multiplications(np.tile(slopes_of(step), (step.s, step.s))[np.ix_(equations, unknowns)])


def slopes_of(step: Step) -> NDArray[np.bool_]:
    """Which entries of the derivatives of the node are not all zero by structure, (n, n)."""
    return np.logical_or.reduce([_entries(step, name) for name in ("f_q", "f_v", "m_q", "m_v")])


def multiplications(entries: NDArray[np.bool_]) -> int:
    """How many multiplications it takes to eliminate a matrix with these entries, one column after the other."""
    filled, length = entries.copy(), 0
    for k in range(len(filled)):
        below, right = filled[k + 1 :, k], filled[k, k + 1 :]
        length += int(right.sum()) * (1 + int(below.sum()))
        filled[k + 1 :, k + 1 :] |= np.outer(below, right)
    return length


def _entries(step: Step, block: str) -> NDArray[np.bool_]:
    """Which entries of a derivative of the node are not zero by structure, (n, n)."""
    (node,) = (term for term in step.terms if "m_v" in dict(term.slopes.outputs))
    code = node.slopes.code
    return np.array([code[k] != ("const", 0.0) for k in node.slopes.output(block)]).reshape(step.n, step.n)


def factors(matrix: Sequence[Sequence[Value]], hasty: bool = False) -> list[list[Value]]:
    """L and U of matrix = L U, U with a unit diagonal; on the diagonal the inverse of L's.

    The inverse of the last pivot waits for that of the one before. A `hasty` elimination computes both at once: of the
    last two rows the last one is a₀₀ / (a₀₀ a₁₁ − a₁₀ a₀₁). That is as accurate, but the products may leave the range
    of float64, and then the inverse is no number.
    """
    rows = [list(row) for row in matrix]
    N = len(rows)
    last = None
    for k in range(N):
        if hasty and k == N - 2:
            (a, b), (c, d) = rows[k][k:], rows[k + 1][k:]
            last = a / (a * d - c * b)
        rows[k][k] = 1.0 / rows[k][k] if last is None or k == N - 2 else last
        below = [i for i in range(k + 1, N) if rows[i][k].known != 0]
        for j in range(k + 1, N):
            if rows[k][j].known != 0:
                rows[k][j] = rows[k][k] * rows[k][j]
                for i in below:
                    rows[i][j] = rows[i][j] - rows[i][k] * rows[k][j]
    return rows


def pivots_of(matrix: Sequence[Sequence[Value]]) -> list[Value]:
    """The pivots alone: one division less for each, and none for the last one."""
    rows = [list(row) for row in matrix]
    N = len(rows)
    for k in range(N - 1):
        below = [i for i in range(k + 1, N) if rows[i][k].known != 0]
        right = [j for j in range(k + 1, N) if rows[k][j].known != 0]
        if not below or not right:
            continue
        inverse = 1.0 / rows[k][k]
        for i in below:
            factor = rows[i][k] * inverse
            for j in right:
                rows[i][j] = rows[i][j] - factor * rows[k][j]
    return [rows[k][k] for k in range(N)]


def substitute(rows: Sequence[Sequence[Any]], right: Sequence[Any]) -> list[Any]:
    """The solution for one right-hand side."""
    return [x for (x,) in substitute_rows(rows, [[x] for x in right])]


def substitute_rows(rows: Sequence[Sequence[Any]], right: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The solutions for several right-hand sides, a row for each equation."""
    x = [list(row) for row in right]
    for k in range(len(x)):
        for i in range(k):
            x[k] = _less(x[k], rows[k][i], x[i])
        x[k] = [rows[k][k] * a for a in x[k]]
    return _upward(rows, x)


def _upward(rows: Sequence[Sequence[Any]], x: list[list[Any]]) -> list[list[Any]]:
    """U⁻¹ x, U with a unit diagonal."""
    for k in range(len(x) - 1, -1, -1):
        for i in range(k):
            x[i] = _less(x[i], rows[i][k], x[k])
    return x


def _less(row: Sequence[Any], factor: Any, other: Sequence[Any]) -> list[Any]:
    return [a - factor * b for a, b in zip(row, other, strict=True)]
