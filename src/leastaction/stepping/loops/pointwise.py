"""Kernels at many points."""

from __future__ import annotations

from leastaction.stepping.layout import DOF, DONE, GOING_WELL, HESSIAN, PARAMS, SINGULAR, STATUS, STEPS
from leastaction.stepping.loops.calls import at, call_kernel, native
from leastaction.stepping.loops.legendre import invert
from leastaction.stepping.loops.workspace import give_parameters, workspace


@native
def evaluate(I, inputs, outputs, memory):
    """The kernel at I[HESSIAN] on I[STEPS] rows: I[DOF] inputs and I[PARAMS] outputs each."""
    for k in range(I[STEPS]):
        call_kernel(I[HESSIAN], at(inputs, k * I[DOF]), at(outputs, k * I[PARAMS]), memory)


@native
def velocities(I, t, points, v, params, memory, pivots):
    """For each row (q, p) of `points`: v(t, q, p); each starts from the one before."""
    W = workspace(I, memory, pivots)
    n = I[DOF]
    give_parameters(I, W, params)
    for k in range(I[STEPS]):
        W.point[0] = t[k]
        for j in range(n):
            W.point[1 + j] = points[k * 2 * n + j]
        if not invert(I, W, at(points, k * 2 * n + n)):
            I[STATUS] = SINGULAR
            return
        for j in range(n):
            v[k * n + j] = W.v[j]
        I[DONE] += 1
    I[STATUS] = GOING_WELL
