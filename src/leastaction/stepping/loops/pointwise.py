"""Kernels at many points."""

from __future__ import annotations

from leastaction.stepping.layout import DOF, DONE, GOING_WELL, HESSIAN, PARAMS, ROWS, SINGULAR, STATUS, STEPS
from leastaction.stepping.loops.calls import at, call_kernel, native
from leastaction.stepping.loops.legendre import invert_alone
from leastaction.stepping.loops.workspace import give_parameters, workspace


@native
def evaluate(I, inputs, outputs, memory):
    """The kernel at I[HESSIAN] on I[STEPS] rows: I[DOF] inputs and I[PARAMS] outputs each."""
    for k in range(I[STEPS]):
        call_kernel(I[HESSIAN], at(inputs, k * I[DOF]), at(outputs, k * I[PARAMS]), memory)


@native
def velocities(I, t, points, v, params, memory, pivots):
    """For each row (q, p) of `points`: v(t, q, p), on its own.

    `params` holds one set for all points, or with I[ROWS] = 1 a row for each.
    """
    W = workspace(I, memory, pivots)
    n = I[DOF]
    for k in range(I[STEPS]):
        give_parameters(I, W, at(params, k * I[ROWS] * I[PARAMS]))
        W.point[0] = t[k]
        for j in range(n):
            W.point[1 + j] = points[k * 2 * n + j]
        if not invert_alone(I, W, at(points, k * 2 * n + n)):
            I[STATUS] = SINGULAR
            return
        for j in range(n):
            v[k * n + j] = W.v[j]
        I[DONE] += 1
    I[STATUS] = GOING_WELL
