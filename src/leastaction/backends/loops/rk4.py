"""The classical Runge–Kutta method, on (q, p) or on (q, v)."""

from __future__ import annotations

from leastaction.backends.layout import RK4
from leastaction.backends.loops.elimination import factor, solve
from leastaction.backends.loops.legendre import invert
from leastaction.backends.loops.machine import at, call_kernel, native, reader
from leastaction.backends.status import GOING_WELL, NOT_FINITE, SINGULAR

read_rk4 = reader(RK4)


@native
def run(I, D, place, y, stored):
    """Do steps from y = (q, p) or (q, v). Rows of `stored` are y.

    k_i = f(t + c_i h, y + a_i h k_{i−1}),  a_i = c_i;   y ← y + h Σ b_i k_i.
    """
    S = read_rk4(I, D, place)
    n, h = S.n, S.step[0]
    for k in range(S.first[0], S.first[0] + S.steps[0]):
        t = S.start[0] + k * h
        for j in range(2 * n):
            S.rate[j] = 0.0
            S.total[j] = 0.0
        for stage in range(4):
            c, b = S.tableau[2 * stage], S.tableau[2 * stage + 1]
            for j in range(2 * n):
                S.argument[j] = y[j] + c * h * S.rate[j]
            S.status[0] = _field(S, t + c * h)
            if S.status[0] != GOING_WELL:
                return
            for j in range(2 * n):
                S.total[j] += b * S.rate[j]
        check = 0.0
        for j in range(2 * n):
            check += S.total[j]
        if check - check != 0.0:  # infinite or not a number
            S.status[0] = NOT_FINITE
            return
        for j in range(2 * n):
            y[j] += h * S.total[j]
        S.done[0] += 1
        if (k + 1) % S.every == 0:
            for j in range(2 * n):
                stored[S.stored[0] * 2 * n + j] = y[j]
            S.stored[0] += 1


@native
def _field(S, t):
    """S.rate ← (q̇, ṗ) or (q̇, v̇) at S.argument."""
    n = S.n
    S.at[0] = t
    for j in range(n):
        S.at[1 + j] = S.argument[j]
    if S.hamilton == 1:
        if not invert(S, at(S.argument, n)):
            return SINGULAR
        for j in range(n):
            S.rate[j] = S.v[j]
            S.rate[n + j] = S.at_values[j]
        return GOING_WELL
    for j in range(n):
        S.at[1 + n + j] = S.argument[n + j]
        S.rate[j] = S.argument[n + j]
    # v̇ = m_v⁻¹ (f − m_q v − m_t)
    call_kernel(S.point, S.at, S.at_values, S.work)
    m_q, m_v, m_t = (
        at(S.at_values, 2 * n + 2 * n * n),
        at(S.at_values, 2 * n + 3 * n * n),
        at(S.at_values, 2 * n + 4 * n * n),
    )
    a = at(S.rate, n)
    for j in range(n):
        a[j] = S.at_values[j] - m_t[j]
        for k in range(n):
            a[j] -= m_q[j * n + k] * S.argument[n + k]
            S.V[j * n + k] = m_v[j * n + k]
    if not factor(S.V, S.mass_pivots, n, n):
        return SINGULAR
    solve(S.V, S.mass_pivots, n, n, a)
    return GOING_WELL
