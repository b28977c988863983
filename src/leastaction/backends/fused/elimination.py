"""Linear algebra written out: elimination without branches.

Exchanges of rows cost much of the time. So the Jacobian is eliminated without pivoting: for small h it is S ⊗ L_vv,
with S = Σ_i b_i l_ν′(c_i) l_μ′(c_i) positive definite, so any order works if L_vv is definite; if it is not, an order
without zeros on the diagonal avoids the worst. Where the elimination loses digits the iteration contracts less, and a
step in doubt is solved alone, with pivoting.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leastaction.program import Builder
from leastaction.step.form import Step


def solve(B: Builder, matrix: Sequence[Sequence[int]], rights: Sequence[Sequence[int]]) -> list[list[int]]:
    """Gaussian elimination with partial pivoting, without branches: rows are exchanged by selection.

    One solution for each right-hand side. An entry that is zero by structure stays so, and costs nothing.
    """
    N = len(matrix)
    rows = [[*row, *(right[i] for right in rights)] for i, row in enumerate(matrix)]
    width = N + len(rights)
    for k in range(N):
        for i in range(k + 1, N):
            if B.constant(rows[i][k]) == 0:
                continue
            larger = B.op("lt", B.op("abs", rows[k][k]), B.op("abs", rows[i][k]))
            for j in range(k, width):
                upper, lower = rows[k][j], rows[i][j]
                rows[k][j] = B.select(larger, lower, upper)
                rows[i][j] = B.select(larger, upper, lower)
        inverse = B.div(B.const(1.0), rows[k][k])
        for j in range(k + 1, width):
            rows[k][j] = B.mul(inverse, rows[k][j])
        for i in range(k + 1, N):
            for j in range(k + 1, width):
                rows[i][j] = B.sub(rows[i][j], B.mul(rows[i][k], rows[k][j]))
    solutions = []
    for column in range(N, width):
        x: list[int] = [rows[k][column] for k in range(N)]
        for k in range(N - 1, -1, -1):
            for i in range(k):
                x[i] = B.sub(x[i], B.mul(rows[i][k], x[k]))
        solutions.append(x)
    return solutions


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


def factors(B: Builder, matrix: Sequence[Sequence[int]], hasty: bool = False) -> list[list[int]]:
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
            last = B.div(a, B.sub(B.mul(a, d), B.mul(c, b)))
        rows[k][k] = B.div(B.const(1.0), rows[k][k]) if last is None or k == N - 2 else last
        below = [i for i in range(k + 1, N) if B.constant(rows[i][k]) != 0]
        for j in range(k + 1, N):
            if B.constant(rows[k][j]) != 0:
                rows[k][j] = B.mul(rows[k][k], rows[k][j])
                for i in below:
                    rows[i][j] = B.sub(rows[i][j], B.mul(rows[i][k], rows[k][j]))
    return rows


def pivots_of(B: Builder, matrix: Sequence[Sequence[int]]) -> list[int]:
    """The pivots alone: one division less for each, and none for the last one."""
    rows = [list(row) for row in matrix]
    N = len(rows)
    for k in range(N - 1):
        below = [i for i in range(k + 1, N) if B.constant(rows[i][k]) != 0]
        right = [j for j in range(k + 1, N) if B.constant(rows[k][j]) != 0]
        inverse = B.div(B.const(1.0), rows[k][k]) if below and right else -1
        for i in below:
            factor = B.mul(rows[i][k], inverse) if right else -1
            for j in right:
                rows[i][j] = B.sub(rows[i][j], B.mul(factor, rows[k][j]))
    return [rows[k][k] for k in range(N)]


def substitute(B: Builder, rows: Sequence[Sequence[int]], right: Sequence[int]) -> list[int]:
    """The solution for one right-hand side."""
    x = list(right)
    for k in range(len(x)):
        for i in range(k):
            x[k] = B.sub(x[k], B.mul(rows[k][i], x[i]))
        x[k] = B.mul(rows[k][k], x[k])
    for k in range(len(x) - 1, -1, -1):
        for i in range(k):
            x[i] = B.sub(x[i], B.mul(rows[i][k], x[k]))
    return x
