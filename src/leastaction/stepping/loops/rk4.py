"""The classical Runge–Kutta method, on (q, p) or on (q, v)."""

from __future__ import annotations

from leastaction.stepping.layout import (
    DOF,
    DONE,
    EVERY,
    FIRST,
    FORM,
    GOING_WELL,
    HESSIAN,
    LAST,
    NOT_FINITE,
    SINGULAR,
    START,
    STATUS,
    STEP,
    STEPS,
    STORED,
)
from leastaction.stepping.loops.calls import at, call_kernel, native
from leastaction.stepping.loops.legendre import invert
from leastaction.stepping.loops.linear_algebra import factor, solve
from leastaction.stepping.loops.workspace import give_parameters, workspace


@native
def run(I, R, y, params, stored, memory, pivots):
    """Do I[STEPS] steps from y = (q, p) or (q, v). Rows of `stored` are y.

    k_1 = f(t, y), k_2 = f(t + h/2, y + h k_1/2), k_3 likewise with k_2, k_4 = f(t + h, y + h k_3);
    y ← y + h (k_1 + 2 k_2 + 2 k_3 + k_4)/6.
    """
    W = workspace(I, memory, pivots)
    n = I[DOF]
    give_parameters(I, W, params)
    h = R[STEP]
    rate, argument, total = W.stages, at(W.stages, 2 * n), at(W.stages, 4 * n)
    for k in range(I[FIRST], I[FIRST] + I[STEPS]):
        t = R[START] + k * h
        for j in range(2 * n):
            argument[j] = y[j]
            total[j] = 0.0
        for stage in range(4):
            behind = 0.0 if stage == 0 else (1.0 if stage == 3 else 0.5)
            I[STATUS] = _field(I, W, t + behind * h, argument, rate)
            if I[STATUS] != GOING_WELL:
                return
            weight = 1.0 / 6.0 if stage in (0, 3) else 1.0 / 3.0
            ahead = 1.0 if stage == 2 else 0.5
            for j in range(2 * n):
                total[j] += weight * rate[j]
                argument[j] = y[j] + ahead * h * rate[j]
        check = 0.0
        for j in range(2 * n):
            check += total[j]
        if check - check != 0.0:  # infinite or not a number
            I[STATUS] = NOT_FINITE
            return
        for j in range(2 * n):
            y[j] += h * total[j]
        I[DONE] += 1
        if (k + 1) % I[EVERY] == 0 or k + 1 == I[LAST]:
            for j in range(2 * n):
                stored[I[STORED] * 2 * n + j] = y[j]
            I[STORED] += 1


@native
def _field(I, W, t, y, rate):
    """rate ← (q̇, ṗ) or (q̇, v̇) at y."""
    n = I[DOF]
    W.point[0] = t
    for j in range(n):
        W.point[1 + j] = y[j]
    if I[FORM] == 0:
        if not invert(I, W, at(y, n)):
            return SINGULAR
        for j in range(n):
            rate[j] = W.v[j]
            rate[n + j] = W.values[j]
        return GOING_WELL
    for j in range(n):
        W.point[1 + n + j] = y[n + j]
        rate[j] = y[n + j]
    if not accelerate(I, W, at(rate, n)):
        return SINGULAR
    return GOING_WELL


@native
def accelerate(I, W, a):
    """a ← L_vv⁻¹ (L_q − L_vq v − L_vt) at the point in W.point."""
    n = I[DOF]
    call_kernel(I[HESSIAN], W.point, W.values, W.kernel)
    for j in range(n):
        a[j] = W.values[j] - W.Lvt[j]
        for k in range(n):
            a[j] -= W.Lqv[k * n + j] * W.point[1 + n + k]
            W.V[j * n + k] = W.Lvv[j * n + k]
    if not factor(I, W.V, W.pivots, W.size, n):
        return False
    solve(I, W.V, W.pivots, W.size, a, n)
    return True
