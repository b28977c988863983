"""The Legendre transform's inverse, p = ∂L/∂v(t, q, v) solved for v, each momentum judged on its own scale."""

from __future__ import annotations

from leastaction.backends.loops.elimination import factor, solve
from leastaction.backends.loops.machine import at, call_kernel, native

MOST_ITERATIONS = 100
SHORTEST = 1e-12  # relative to v: where a step as short as this does not bring the momentum nearer, none will …
ACCEPTABLE = 1e-7  # … and that is rounding if the whole Newton step was as short as this, else there is no such velocity
EPS = 2.220446049250313e-16
OUTSIDE = 1e300  # a miss that is infinite or not a number


@native
def invert(S, p):
    """Solve L_v(t, q, v) = p by Newton with backtracking, from the guess in S.v; t, q are in S.at.

    One iteration does it when L is quadratic in v. Elsewhere a Newton step that leaves the domain of L, or does not bring
    the momentum nearer, is halved. How near is the largest |p_j − L_v_j| in units of the size of what momentum j is summed
    from, |p_j| and |L_vv_jk v_k| at the largest velocity on the way, so that a heavy coordinate does not hide a light one. On return S.at_values belongs to
    the velocity found.
    """
    n = S.n
    for j in range(n):
        S.fastest[j] = 0.0
    miss = _miss(S, p, n)
    if not miss < OUTSIDE:
        for j in range(n):
            S.v[j] = 0.0
        miss = _miss(S, p, n)
    for _ in range(MOST_ITERATIONS):
        if miss <= EPS:
            return True
        for j in range(n):
            S.move[j] = p[j] - S.at_values[n + j]
        mass = at(S.at_values, 2 * n + 3 * n * n)
        for j in range(n):
            for k in range(n):
                S.V[j * n + k] = mass[j * n + k]
        if not factor(S.V, S.mass_pivots, n, n):
            return False
        solve(S.V, S.mass_pivots, n, n, S.move)
        before, whole, size = miss, 0.0, 1.0
        for j in range(n):
            scale = abs(S.v[j]) + abs(S.move[j])
            if scale > 0.0:
                whole = max(whole, abs(S.move[j]) / scale)
            S.v[j] += S.move[j]
        miss = _miss(S, p, n)
        while not miss < before and size * whole > SHORTEST:
            for j in range(n):
                S.move[j] *= 0.5
                S.v[j] -= S.move[j]
            size *= 0.5
            miss = _miss(S, p, n)
        if not miss < before:
            return whole <= ACCEPTABLE
    return False


@native
def invert_alone(S, p):
    """`invert` from v = 0, so that the result depends on nothing that was solved before.

    Where that fails, as it does if L_vv is singular at rest, v = p is tried.
    """
    n = S.n
    for j in range(n):
        S.v[j] = 0.0
    if invert(S, p):
        return True
    for j in range(n):
        S.v[j] = p[j]
    return invert(S, p)


@native
def _miss(S, p, n):
    """Evaluate at S.v: the largest |p_j − L_v_j| in its own units, or infinity outside the domain of L."""
    for j in range(n):
        S.at[1 + n + j] = S.v[j]
        S.fastest[j] = max(S.fastest[j], abs(S.v[j]))
    call_kernel(S.point, S.at, S.at_values, S.work)
    mass = at(S.at_values, 2 * n + 3 * n * n)
    miss = 0.0
    for j in range(n):
        gap = abs(p[j] - S.at_values[n + j])
        if not gap < OUTSIDE:
            return OUTSIDE
        if gap > 0.0:
            unit = abs(p[j])
            for k in range(n):
                unit += abs(mass[j * n + k]) * S.fastest[k]
            miss = max(miss, gap / unit if unit > 0.0 else 1.0)
    return miss
