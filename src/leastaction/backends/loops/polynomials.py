"""Single steps, each from a state of its own: the polynomials of dense output."""

from __future__ import annotations

from leastaction.backends.loops.legendre import invert_alone
from leastaction.backends.loops.machine import native
from leastaction.backends.loops.solver import alone
from leastaction.backends.loops.sweep import read_solver
from leastaction.backends.status import GOING_WELL
from leastaction.step.verdict import REACH, TINY


@native
def polynomials(I, D, place, counts, h, starts, z):
    """The increments z, (s, n) each, of counts[0] steps from rows (t, q, p) of `starts`; counts[1] ← those solved."""
    S = read_solver(I, D, place)
    n, s, row = S.n, S.s, S.stride
    for k in range(counts[0]):
        begin = k * (1 + 2 * n)
        S.t[0] = S.at[0] = starts[begin]
        for j in range(n):
            S.q[j] = S.at[1 + j] = starts[begin + 1 + j]
            S.p[j] = starts[begin + 1 + n + j]
        for j in range(S.params):
            S.at[1 + 2 * n + j] = S.values[j]
        if not invert_alone(S, S.p):
            return
        for j in range(n):
            for v in range(row):
                S.z[j * row + v] = S.d[v + 1] * h[0] * S.v[j] if v < s else 0.0
            S.floor[j] = 0.0
            S.reach[j] = max(REACH * abs(h[0] * S.v[j]), TINY)
        status, _, _ = alone(S, I, D, h[0], True, False)
        if status != GOING_WELL:
            return
        for v in range(s):
            for j in range(n):
                z[(k * s + v) * n + j] = S.z[j * row + v]
        counts[1] += 1
