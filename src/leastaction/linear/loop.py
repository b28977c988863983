"""The loop of small dense systems: arrays in, arrays out (the only module of this package that needs Numba)."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True)
def advance(W, W_low, G, F, y, e, first, count, every, last, columns, out, row):  # type: ignore[no-untyped-def]
    """`count` steps of y ← y + W y + G F, from step number `first`; the state is the unevaluated sum y + e.

    Each step number divisible by `every`, and `last`, is written to the next row of `out` (the chosen `columns` only).
    F (count, r n) holds the load at the nodes of each step, or no columns at all. Returns the steps done (fewer when
    the state overflows) and the next row.
    """
    m = len(y)
    d = np.empty(m)
    for k in range(count):
        total = 0.0
        for i in range(m):
            low = 0.0
            high = 0.0
            for j in range(m):
                low += W_low[i, j] * y[j] + W[i, j] * e[j]
                high += W[i, j] * y[j]
            for j in range(F.shape[1]):
                high += G[i, j] * F[k, j]
            d[i] = high + (low + e[i])
            total += d[i]
        if not np.isfinite(total):
            return k, row
        for i in range(m):  # two-sum: y + e is exact
            s = y[i] + d[i]
            b = s - y[i]
            e[i] = (y[i] - (s - b)) + (d[i] - b)
            y[i] = s
        number = first + k + 1
        if number % every == 0 or number == last:
            for i in range(len(columns)):
                out[row, i] = y[columns[i]]
            row += 1
    return count, row
