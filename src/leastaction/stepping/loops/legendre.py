"""The Legendre transform's inverse, p = ∂L/∂v(t, q, v) solved for v, and what follows from it."""

from __future__ import annotations

from leastaction.stepping.layout import DOF, HESSIAN
from leastaction.stepping.loops.calls import at, call_kernel, native
from leastaction.stepping.loops.linear_algebra import factor, solve

MOST_ITERATIONS = 100
SHORTEST = 1e-12  # relative to v: where a step as short as this does not bring the momentum nearer, none will …
ACCEPTABLE = (
    1e-7  # … and that is rounding if the whole Newton step was as short as this, else there is no such velocity
)
EPS = 2.220446049250313e-16
OUTSIDE = 1e300  # a miss that is infinite or not a number


@native
def velocity(I, W, x):
    """W.v ← v(t, q, p) for x = (t, h, q, p, …), from the guess in W.v."""
    n = I[DOF]
    W.point[0] = x[0]
    for j in range(n):
        W.point[1 + j] = x[2 + j]
    return invert(I, W, at(x, 2 + n))


@native
def invert(I, W, p):
    """Solve L_v(t, q, v) = p by Newton with backtracking, from the guess in W.v; t, q are in W.point.

    One iteration does it when L is quadratic in v. Elsewhere a Newton step that leaves the domain of
    L, or does not bring the momentum nearer, is halved. On return W.values belongs to the velocity found.
    """
    n = I[DOF]
    floor = 0.0  # of p − L_v, by rounding
    for j in range(n):
        floor = max(floor, 4.0 * EPS * abs(p[j]))
    miss = _miss(I, W, p, n)
    if not miss < OUTSIDE:
        for j in range(n):
            W.v[j] = 0.0
        miss = _miss(I, W, p, n)
    for _ in range(MOST_ITERATIONS):
        if miss <= floor:
            return True
        for j in range(n):
            W.step[j] = p[j] - W.values[n + j]
        for j in range(n * n):
            W.V[j] = W.Lvv[j]
        if not factor(I, W.V, W.pivots, W.size, n):
            return False
        solve(I, W.V, W.pivots, W.size, W.step, n)
        before = miss
        size, scale = 0.0, 0.0
        for j in range(n):
            size = max(size, abs(W.step[j]))
            scale = max(scale, abs(W.v[j]) + abs(W.step[j]))
            W.v[j] += W.step[j]
        miss, whole = _miss(I, W, p, n), size
        while not miss < before and size > SHORTEST * scale:
            for j in range(n):
                W.step[j] *= 0.5
                W.v[j] -= W.step[j]
            size *= 0.5
            miss = _miss(I, W, p, n)
        if not miss < before:
            return whole <= ACCEPTABLE * scale
    return False


@native
def invert_alone(I, W, p):
    """`invert` from v = 0, so that the result depends on nothing that was solved before.

    Where that fails, as it does if L_vv is singular at rest, v = p is tried.
    """
    n = I[DOF]
    for j in range(n):
        W.v[j] = 0.0
    if invert(I, W, p):
        return True
    for j in range(n):
        W.v[j] = p[j]
    return invert(I, W, p)


@native
def _miss(I, W, p, n):
    """Evaluate at W.v: the largest |p − L_v|, or infinity outside the domain of L."""
    for j in range(n):
        W.point[1 + n + j] = W.v[j]
    call_kernel(I[HESSIAN], W.point, W.values, W.kernel)
    miss = 0.0
    for j in range(n):
        gap = abs(p[j] - W.values[n + j])
        if not gap < OUTSIDE:
            return OUTSIDE
        miss = max(miss, gap)
    return miss
