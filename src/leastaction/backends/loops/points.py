"""Kernels at many points."""

from __future__ import annotations

from leastaction.backends.layout import POINTS
from leastaction.backends.loops.legendre import invert_alone
from leastaction.backends.loops.machine import at, call_kernel, native, reader

read_points = reader(POINTS)


@native
def evaluate(kernel, count, width, outputs, inputs, results, work):
    """The kernel on rows of `width` inputs, giving rows of outputs."""
    for k in range(count):
        call_kernel(kernel, at(inputs, k * width), at(results, k * outputs), work)


@native
def velocities(I, D, place, rows, counts, t, points, v, params):
    """For each of counts[0] rows (q, p) of `points`: v(t, q, p), on its own; counts[1] ← how many there are.

    `params` holds one set for all points, or with rows = 1 a row for each.
    """
    S = read_points(I, D, place)
    n = S.n
    for k in range(counts[0]):
        for j in range(S.params):
            S.at[1 + 2 * n + j] = params[k * rows * S.params + j]
        S.at[0] = t[k]
        for j in range(n):
            S.at[1 + j] = points[k * 2 * n + j]
        if not invert_alone(S, at(points, k * 2 * n + n)):
            return
        for j in range(n):
            v[k * n + j] = S.v[j]
        counts[1] += 1
