"""The Legendre transform's inverse, p = ∂L/∂v(t, q, v) solved for v, each momentum judged on its own scale."""

from __future__ import annotations

from leastaction.backends.loops.elimination import factor, solve
from leastaction.backends.loops.machine import at, call_kernel, native

MOST_ITERATIONS = 100
SHORTEST = 1e-12  # relative to v: where a step as short as this does not bring the momentum nearer, none will …
ROUNDING = 1e-10  # … and that is rounding if the momentum is missed by this part of what it is summed from, at most
EPS = 2.220446049250313e-16
OUTSIDE = 1e300  # a miss that is infinite or not a number


@native
def invert(S, p):
    """Solve L_v(t, q, v) = p by Newton with backtracking, from the guess in S.v; t, q are in S.at.

    One iteration is enough when L is quadratic in v. Elsewhere a Newton step that leaves the domain of L, or does not
    bring the momentum nearer, is halved. The distance is the largest |p_j − L_v_j|/|p_j|, so that a heavy coordinate
    does not hide a light one; for p_j = 0 the distance is counted in the size of what that momentum is summed from,
    |L_vv_jk v_k| at the largest velocities on the way; rounding is measured by the same size. On return S.at_values
    belongs to the velocity found.
    """
    n = S.n
    for j in range(n):
        S.fastest[j] = 0.0
    miss, rough = _miss(S, p, n)
    if not miss < OUTSIDE:
        for j in range(n):
            S.v[j] = 0.0
        miss, rough = _miss(S, p, n)
    for _ in range(MOST_ITERATIONS):
        if miss <= 4.0 * EPS:
            return True
        for j in range(n):
            S.move[j] = p[j] - S.at_values[n + j]
        mass = at(S.at_values, 2 * n + 3 * n * n)
        for j in range(n * n):
            S.V[j] = mass[j]
        if not factor(S.V, S.mass_pivots, n, n):
            return False
        solve(S.V, S.mass_pivots, n, n, S.move)
        before, length = miss, 0.0
        for j in range(n):
            scale = abs(S.v[j]) + abs(S.move[j])
            if scale > 0.0:
                length = max(length, abs(S.move[j]) / scale)
            S.v[j] += S.move[j]
        miss, rough = _miss(S, p, n)
        while not miss < before and length > SHORTEST:
            for j in range(n):
                S.move[j] *= 0.5
                S.v[j] -= S.move[j]
            length *= 0.5
            miss, rough = _miss(S, p, n)
        if not miss < before:
            return rough <= ROUNDING
    return False


@native
def invert_alone(S, p):
    """`invert` from v = 0, or from what the kernel gives instead, the rate of time behind it, so that the result
    depends on nothing that was solved before.

    Where that fails, as it does if L_vv is singular at rest, v = p is tried.
    """
    n = S.n
    for j in range(n):
        S.v[j] = 0.0
    if S.rest > 0:
        for j in range(n):
            S.at[1 + n + j] = 0.0
        call_kernel(S.point, S.at, S.at_values, S.work)
        for j in range(n):
            S.v[j] = S.at_values[S.rest + j]
        _with_time_held(S, p)
    if invert(S, p):
        return True
    for j in range(n):
        S.v[j] = p[j]
    return invert(S, p)


@native
def _with_time_held(S, p):
    """One iteration for all velocities but the last, the rate u of time in u L(t, q, w/u): at the right u it is exact
    where L is quadratic in v. An iteration for all together would lead to u < 0 if the motion is fast.
    """
    n = S.n
    mass = at(S.at_values, 2 * n + 3 * n * n)
    for j in range(n):
        S.fastest[j] = 0.0
    _miss(S, p, n)
    for j in range(n - 1):
        S.move[j] = p[j] - S.at_values[n + j]
    for j in range(n * n):
        S.V[j] = mass[j]
    if not factor(S.V, S.mass_pivots, n - 1, n):
        return
    solve(S.V, S.mass_pivots, n - 1, n, S.move)
    for j in range(n - 1):
        S.v[j] += S.move[j]
    miss, _ = _miss(S, p, n)
    if not miss < OUTSIDE:
        for j in range(n - 1):
            S.v[j] -= S.move[j]


@native
def _miss(S, p, n):
    """Evaluate at S.v: how far L_v is from p, in units of p and of what L_v is summed from; OUTSIDE the domain of L."""
    for j in range(n):
        S.at[1 + n + j] = S.v[j]
        S.fastest[j] = max(S.fastest[j], abs(S.v[j]))
    call_kernel(S.point, S.at, S.at_values, S.work)
    mass = at(S.at_values, 2 * n + 3 * n * n)
    miss, rough = 0.0, 0.0
    for j in range(n):
        gap = abs(p[j] - S.at_values[n + j])
        if not gap < OUTSIDE:
            return OUTSIDE, OUTSIDE
        if gap > 0.0:
            size = abs(p[j])
            unit = size
            for k in range(n):
                unit += abs(mass[j * n + k]) * S.fastest[k]
            rough = max(rough, gap / unit if unit > 0.0 else 1.0)
            miss = max(miss, gap / size if size > 0.0 else (gap / unit if unit > 0.0 else 1.0))
    return miss, rough
