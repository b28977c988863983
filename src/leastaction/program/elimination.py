"""Linear algebra written out on Values: elimination without branches.

Exchanges of rows cost much of the time, so `factors` eliminates without pivoting. The Jacobian of a step is, for small
h, S ⊗ L_vv with S = Σ_i b_i l_ν′(c_i) l_μ′(c_i) positive definite. So any order works if L_vv is definite. Where the
elimination loses digits the iteration contracts less, and the step is solved with pivoting instead. `solve` pivots.

A definite M is eliminated in any order without loss. A regular M that is not definite may have a pivot that is small or
zero. That of a v₀²/2 + v₀v₁ has the first pivot a, and M⁻¹p loses as many digits as 1/a has. So `lost_digits` compares
each pivot S_kk with what it divides. With S what is left of M,

    S_kj² ≤ GROWTH |S_kk S_jj|      for all j that are left,

which holds with GROWTH = 1 where M is definite, in all units of the coordinates alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from leastaction.program.core import Value

GROWTH = 4.0  # of the numbers that an elimination leaves: two bits are lost

Matrix = Sequence[Sequence[Any]]


def by_rows(values: Sequence[Any], width: int) -> list[list[Any]]:
    """The rows of a matrix whose entries lie one after the other."""
    return [list(values[k : k + width]) for k in range(0, len(values), width)]


def square(values: Sequence[Any]) -> list[list[Any]]:
    """The same of a square matrix."""
    return by_rows(values, math.isqrt(len(values)))


def solve(matrix: Matrix, rights: Matrix) -> list[list[Value]]:
    """The solutions, one for each right-hand side, by Gaussian elimination with partial pivoting: rows are exchanged by
    selection. An entry that is zero by structure stays so, and costs nothing.
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


def factors(matrix: Matrix, hasty: bool = False) -> list[list[Any]]:
    """L and U of matrix = L U, U with a unit diagonal; on the diagonal the inverse of L's.

    The inverse of the last pivot waits for that of the one before. A `hasty` elimination computes both at once: of the
    last two rows the last one is a₀₀ / (a₀₀ a₁₁ − a₁₀ a₀₁). That is as accurate, but the products may leave the range
    of float64, and then the inverse is no number.
    """
    rows = [list(row) for row in matrix]
    N, last = len(rows), None
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


def pivots_of(matrix: Matrix) -> list[Value]:
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


def substitute(rows: Matrix, right: Sequence[Any]) -> list[Any]:
    """The solution for one right-hand side, by the factors."""
    return [x for (x,) in substitute_rows(rows, [[x] for x in right])]


def substitute_rows(rows: Matrix, right: Matrix) -> list[list[Any]]:
    """The solutions for several right-hand sides, a row for each equation."""
    x = [list(row) for row in right]
    for k in range(len(x)):
        for i in range(k):
            x[k] = _less(x[k], rows[k][i], x[i])
        x[k] = [rows[k][k] * a for a in x[k]]
    return _upward(rows, x)


def _upward(rows: Matrix, x: list[list[Any]]) -> list[list[Any]]:
    """U⁻¹ x, U with a unit diagonal."""
    for k in range(len(x) - 1, -1, -1):
        for i in range(k):
            x[i] = _less(x[i], rows[i][k], x[k])
    return x


def _less(row: Sequence[Any], factor: Any, other: Sequence[Any]) -> list[Any]:
    return list(row) if factor.known == 0 else [a - factor * b for a, b in zip(row, other, strict=True)]


def lost_digits(matrix: Matrix) -> Value:
    """Zero, or no number where one of the pivots of a symmetric matrix is too small."""
    n, S, lost = len(matrix), [list(row) for row in matrix], matrix[0][0].B.number(0.0)
    for k in range(n):
        divided = [j for j in range(k + 1, n) if S[k][j].known != 0]
        for j in divided:
            most = GROWTH * abs(S[k][k] * S[j][j])
            lost = (S[k][j] * S[k][j] <= most).where(lost, math.nan)
        for i in divided:
            factor = S[i][k] / S[k][k]
            for j in divided:
                S[i][j] = S[i][j] - factor * S[k][j]
    return lost


def short_dot(row: Sequence[Value], x: Sequence[Value]) -> Value:
    """Σ_k row_k x_k by halves: two short chains of sums wait less than a long one."""
    nothing = row[0].B.number(0.0)
    terms = [a * y for a, y in zip(row, x, strict=True) if a.known != 0 and y.known != 0]
    while len(terms) > 2:
        terms = [sum(terms[k : k + 2], nothing) for k in range(0, len(terms), 2)]
    return sum(terms, nothing)
