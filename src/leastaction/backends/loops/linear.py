"""Small linear systems: one matrix, applied again and again."""

from __future__ import annotations

from leastaction.backends.layout import LINEAR
from leastaction.backends.loops.machine import native, reader
from leastaction.step.status import GOING_WELL, NOT_FINITE

read_linear = reader(LINEAR)


@native
def run(I, D, place, W, W_low, G, F, y, carry, d, columns, stored):
    """Do steps y ← y + W y + G F_k; the state is y = (q, p) and what `carry` has still to add to it.

    W is the unevaluated sum W + W_low. Row k of F holds the load at the nodes of the step.
    Rows of `stored` are the chosen columns of y.
    """
    A = read_linear(I, D, place)
    n, nodes, width = A.n, A.loads, A.width
    for k in range(A.steps):
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
            A.status[0] = NOT_FINITE
            return
        for i in range(n):  # Knuth's two-sum: y + carry is exact
            before, after = y[i], y[i] + d[i]
            rounded = after - before
            carry[i] = (before - (after - rounded)) + (d[i] - rounded)
            y[i] = after
        A.done[0] += 1
        if (A.first + k + 1) % A.every == 0:
            for i in range(width):
                stored[A.stored[0] * A.stride + i] = y[columns[i]]
            A.stored[0] += 1
    A.status[0] = GOING_WELL
