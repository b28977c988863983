"""Where elimination without pivoting loses digits of a mass.

A definite M is eliminated in any order without loss. A regular M that is not definite may have a pivot that is small,
or zero: that of a v₀²/2 + v₀v₁ has the first pivot a, and M⁻¹p loses as many digits as 1/a has. So each pivot S_kk is
compared with what it divides. With S what is left of M,

    S_kj² ≤ GROWTH |S_kk S_jj|      for all j that are left,

which holds with GROWTH = 1 where M is definite, and in all units of the coordinates alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from leastaction.program import Value

GROWTH = 4.0  # of the numbers that an elimination leaves


def lost_digits(matrix: Sequence[Sequence[Value]], count: int | None = None) -> Value:
    """Zero, or no number where one of the pivots, or of the first so many, of a symmetric matrix is too small."""
    n, S, lost = len(matrix), [list(row) for row in matrix], matrix[0][0].B.number(0.0)
    for k in range(n if count is None else count):
        divided = [j for j in range(k + 1, n) if S[k][j].known != 0]
        for j in divided:
            most = GROWTH * abs(S[k][k] * S[j][j])
            lost = (S[k][j] * S[k][j] <= most).where(lost, math.nan)
        for i in divided:
            factor = S[i][k] / S[k][k]
            for j in divided:
                S[i][j] = S[i][j] - factor * S[k][j]
    return lost
