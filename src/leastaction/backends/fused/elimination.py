"""Linear algebra written out: elimination without branches.

Exchanges of rows cost much of the time. So the Jacobian is eliminated without pivoting: there the matrix is S ⊗ L_vv
for small h, with S = Σ_i b_i l_ν′(c_i) l_μ′(c_i) positive definite, so any order does if L_vv is definite, and one
without zeros on the diagonal avoids the worst if it is not. Where that loses digits the iteration contracts less, and a
step in doubt is solved alone, with pivoting.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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


def order_of(step: Step) -> list[int]:
    """The equations in an order in which they can be eliminated without pivoting, for small h."""
    n, N = step.n, step.s * (step.n + step.multipliers)
    (node,) = (term for term in step.terms if "m_v" in dict(term.slopes.outputs))
    code = node.slopes.code
    zero = np.array([code[k] == ("const", 0.0) for k in node.slopes.output("m_v")]).reshape(n, n)
    rows = list(range(n))
    if zero.diagonal().any():
        from scipy.optimize import linear_sum_assignment

        rows = [int(row) for row in linear_sum_assignment(zero.T)[1]]
    return [block * n + row for block in range(step.s) for row in rows] + list(range(step.s * n, N))


def factors(B: Builder, matrix: Sequence[Sequence[int]]) -> list[list[int]]:
    """L and U of matrix = L U, U with a unit diagonal; on the diagonal the inverse of L's."""
    rows = [list(row) for row in matrix]
    N = len(rows)
    for k in range(N):
        rows[k][k] = B.div(B.const(1.0), rows[k][k])
        for j in range(k + 1, N):
            rows[k][j] = B.mul(rows[k][k], rows[k][j])
            for i in range(k + 1, N):
                rows[i][j] = B.sub(rows[i][j], B.mul(rows[i][k], rows[k][j]))
    return rows


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
