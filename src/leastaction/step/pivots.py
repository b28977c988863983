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

from leastaction.program import Builder

GROWTH = 4.0  # of the numbers that an elimination leaves


def lost_digits(B: Builder, matrix: Sequence[Sequence[int]], count: int) -> int:
    """Zero, or no number where one of the first pivots, so many, of a symmetric matrix is too small."""
    n, S, lost = len(matrix), [list(row) for row in matrix], B.const(0.0)
    for k in range(count):
        divided = [j for j in range(k + 1, n) if B.constant(S[k][j]) != 0]
        for j in divided:
            most = B.scale(GROWTH, B.op("abs", B.mul(S[k][k], S[j][j])))
            lost = B.select(B.op("le", B.mul(S[k][j], S[k][j]), most), lost, B.const(math.nan))
        for i in divided:
            factor = B.div(S[i][k], S[k][k])
            for j in divided:
                S[i][j] = B.sub(S[i][j], B.mul(factor, S[k][j]))
    return lost
