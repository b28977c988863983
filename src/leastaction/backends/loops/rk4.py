"""The classical Runge–Kutta method, on (q, p) or on (q, v): one trajectory, or groups of them in lanes."""

from __future__ import annotations

from leastaction.backends.layout import RK4, RK4_LANES
from leastaction.backends.loops.elimination import factor, solve
from leastaction.backends.loops.legendre import invert
from leastaction.backends.loops.machine import at, call_kernel, doubles, native, reader
from leastaction.backends.status import GOING_WELL, NOT_FINITE, SINGULAR

read_rk4, read_lanes = reader(RK4), reader(RK4_LANES)


@native
def run(I, D, place, y, stored):
    """Do steps from y = (q, p) or (q, v). Rows of `stored` are y."""
    S = read_rk4(I, D, place)
    n, h = S.n, S.step[0]
    for k in range(S.first[0], S.first[0] + S.steps[0]):
        for stage in range(4 if S.channels > 0 else 0):
            row = at(doubles(S.table), (k - S.first[0]) * S.table_step + stage * S.table_node)
            for j in range(S.channels):
                S.given[stage * S.channels + j] = row[j]
        S.status[0] = _slope(S, S.start[0] + k * h, y)
        if S.status[0] != GOING_WELL:
            return
        for j in range(2 * n):
            y[j] += h * S.total[j]
        S.done[0] += 1
        if (k + 1) % S.every == 0:
            for j in range(2 * n):
                stored[S.stored[0] * 2 * n + j] = y[j]
            S.stored[0] += 1


@native
def _slope(S, t, y):
    """S.total ← Σ b_i k_i of the step from y at t: k_i = f(t + c_i h, y + a_i h k_{i−1}), a_i = c_i."""
    n, h = S.n, S.step[0]
    for j in range(2 * n):
        S.rate[j] = 0.0
        S.total[j] = 0.0
    for stage in range(4):
        c, b = S.tableau[2 * stage], S.tableau[2 * stage + 1]
        for j in range(2 * n):
            S.argument[j] = y[j] + c * h * S.rate[j]
        for j in range(S.channels):
            S.at[1 + 2 * n + S.params + j] = S.given[stage * S.channels + j]
        status = _field(S, t + c * h)
        if status != GOING_WELL:
            return status
        for j in range(2 * n):
            S.total[j] += b * S.rate[j]
    check = 0.0
    for j in range(2 * n):
        check += S.total[j]
    return GOING_WELL if check - check == 0.0 else NOT_FINITE


@native
def lanes(I, D, place, states, Y, counts, stored, scratch):
    """The steps of every group; `counts` has a status and the steps done of each lane.

    A group's numbers are (t, h, params, inputs at the four stages, y), each of all lanes. The kernel gives the slopes
    of a step for all lanes; a lane for which they are not finite, as where a sine is out of its range, has its step
    done alone.
    """
    A = read_lanes(I, D, place)
    S = read_rk4(I, D, A.alone)
    n, L, h = A.n, A.lanes, A.step[0]
    given = 2 + A.param_count
    before = given + 4 * A.channels
    size = before + 2 * n
    for group in range(A.groups):
        X, count = at(states, group * size * L), at(counts, group * L * 2)
        y = at(X, before * L)
        for k in range(A.first[0], A.first[0] + A.steps[0]):
            for i in range(L):
                X[i] = A.start[0] + k * h
            for i in range(L if A.channels > 0 else 0):
                who = min(group * L + i, A.trajectories - 1)
                own = at(doubles(A.table), who * A.table_trajectory + (k - A.first[0]) * A.table_step)
                for stage in range(4):
                    for j in range(A.channels):
                        X[(given + stage * A.channels + j) * L + i] = own[stage * A.table_node + j]
            call_kernel(A.kernel, X, Y, scratch)
            for i in range(L):
                if count[2 * i] != GOING_WELL:
                    continue
                check = 0.0
                for j in range(2 * n):
                    check += Y[j * L + i]
                if check - check != 0.0:
                    count[2 * i] = _alone(A, S, X, Y, i)
                    if count[2 * i] != GOING_WELL:
                        continue
                for j in range(2 * n):
                    y[j * L + i] += h * Y[j * L + i]
                count[2 * i + 1] += 1
                if (k + 1) % A.every == 0:
                    own = at(stored, ((group * L + i) * A.rows + (k + 1) // A.every - A.skipped) * 2 * n)
                    for j in range(2 * n):
                        own[j] = y[j * L + i]


@native
def _alone(A, S, X, Y, i):
    """The slope of lane i's step, computed alone, independently of the other lanes."""
    n, L, P = A.n, A.lanes, A.param_count
    driven = 4 * A.channels
    for j in range(P):
        S.at[1 + 2 * n + j] = X[(2 + j) * L + i]
    for j in range(driven):
        S.given[j] = X[(2 + P + j) * L + i]
    for j in range(2 * n):
        S.own[j] = X[(2 + P + driven + j) * L + i]
    for j in range(n):
        S.v[j] = 0.0
    status = _slope(S, X[i], S.own)
    for j in range(2 * n):
        Y[j * L + i] = S.total[j]
    return status


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
