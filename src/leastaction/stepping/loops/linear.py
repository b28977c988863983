"""Small linear systems: one matrix, applied again and again."""

from __future__ import annotations

from leastaction.stepping.layout import (
    COLUMNS,
    DOF,
    DONE,
    EVERY,
    FIRST,
    GOING_WELL,
    LAST,
    NODES,
    NOT_FINITE,
    STATUS,
    STEPS,
    STORED,
)
from leastaction.stepping.loops.calls import native


@native
def run(I, W, W_low, G, F, y, carry, d, columns, stored):
    """Do I[STEPS] steps y ← y + W y + G F_k; the state is y = (q, p) and what `carry` has still to add to it.

    W is the unevaluated sum W + W_low. Row k of F holds the load at the I[NODES] nodes of the step.
    Rows of `stored` are the chosen columns of y.
    """
    n, nodes, width = 2 * I[DOF], I[NODES] * I[DOF], I[COLUMNS]
    for k in range(I[STEPS]):
        spoilt = 0.0
        for i in range(n):
            low = carry[i]
            high = 0.0
            for j in range(n):
                low += W_low[i * n + j] * y[j] + W[i * n + j] * carry[j]
                high += W[i * n + j] * y[j]
            for j in range(nodes):
                high += G[i * nodes + j] * F[k * nodes + j]
            d[i] = high + low
            after = y[i] + d[i]
            spoilt += after - after  # not a number where a sum is infinite or not one
        if spoilt != 0.0:
            I[STATUS] = NOT_FINITE
            return
        for i in range(n):  # Knuth's two-sum: y + carry is exact
            before, after = y[i], y[i] + d[i]
            rounded = after - before
            carry[i] = (before - (after - rounded)) + (d[i] - rounded)
            y[i] = after
        I[DONE] += 1
        number = I[FIRST] + k + 1
        if number % I[EVERY] == 0 or number == I[LAST]:
            for i in range(width):
                stored[I[STORED] * width + i] = y[columns[i]]
            I[STORED] += 1
    I[STATUS] = GOING_WELL
