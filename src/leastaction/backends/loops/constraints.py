"""Where a step with constraints ends: both g = 0 and ġ = 0 hold there. The equations are those of `step.form`.

g = 0 is among the equations of the step. Here the momentum of the step is brought to ġ = 0: with p⁻ the momentum that
the step's own equations give, v and μ solve

    e(v, μ) = m(t⁺, q⁺, v) − Gᵀμ = p⁻,        c(v) = G v + g_t = 0,

by Newton, whose matrix is (m_v, −Gᵀ; G, 0), and p⁺ = p⁻ + Gᵀμ. The μ that an iteration finds goes to the momentum at
once, so that the next iteration sees the rounded momentum: ġ = 0 then holds to the rounding of p⁺ itself, even where
much larger forces cancel. Where L is quadratic in v two iterations are enough.

Where constraints depend on each other (`step.independence`) the step has no end to be trusted.
"""

from __future__ import annotations

from leastaction.backends.loops.elimination import factor, solve
from leastaction.backends.loops.machine import at, call_kernel, native
from leastaction.step.independence import INDEPENDENT
from leastaction.step.independence import probe as probe_in_python

MOST_ITERATIONS = 50
ENOUGH = 2.0**-50  # of what v is summed from, in the metric of the mass: a step so short changes nothing any more …
ROUNDING = 1e-7  # … and one of this length that gets no shorter is rounding
probe = native(probe_in_python)


@native
def settle(S, kernel, h):
    """S.impulse ← the impulse after which ġ = 0, for a step from S.t, S.q, S.p with S.z and S.impulse.

    `kernel` gives e, c, e_v, c_v first. On return S.end_at holds v, and zero for μ, S.pushed is μ, S.saddle holds the
    factors; False where constraints depend on each other, or numbers are not finite.
    """
    n, m, s, row = S.n, S.multipliers, S.s, S.stride
    N, x = n + m, S.end_at
    velocity = at(x, 1 + n)
    x[0] = S.t[0] + h
    for j in range(n):
        x[1 + j] = S.q[j] + S.z[j * row + s - 1]
        speed = 0.0
        for v in range(s):
            speed += S.slope[v] * S.z[j * row + v]
        velocity[j] = speed / h
    for i in range(m):
        velocity[n + i] = 0.0
        S.pushed[i] = 0.0
    for j in range(S.params):
        x[1 + 2 * n + m + j] = S.values[j]
    before, whole = 1.0, 0.0
    for iteration in range(MOST_ITERATIONS):
        call_kernel(kernel, x, S.end_values, S.work)
        if iteration == 0 or S.linear_end == 0:
            set_saddle(S)
            if not factor(S.saddle, S.end_pivots, N, N) or not independent(S):
                return False
        for j in range(N):
            S.end_move[j] = S.impulse[j] + (S.p[j] - S.end_values[j]) if j < n else -S.end_values[j]
        solve(S.saddle, S.end_pivots, N, N, S.end_move)
        mass, G = at(S.end_values, N), at(S.end_values, N + n * n)
        length, summed = 0.0, 0.0
        for j in range(n):
            heavy, push = abs(mass[j * n + j]) ** 0.5, 0.0
            for i in range(m):
                push += G[i * n + j] * S.end_move[n + i]
            S.impulse[j] += push
            velocity[j] += S.end_move[j]
            length += heavy * abs(S.end_move[j])
            summed += heavy * abs(velocity[j])
            if heavy > 0.0:
                summed += (abs(S.p[j]) + abs(push)) / heavy
        for i in range(m):
            S.pushed[i] += S.end_move[n + i]
        whole = max(whole, summed)
        size = length / whole if whole > 0.0 else 0.0
        if settled(size, before, iteration, S.linear_end == 1):
            return size <= ROUNDING
        before = size
    return False


@native
def independent(S):
    """Whether constraints do not depend on each other, by the factors in S.saddle; S.end_move is overwritten."""
    n, m, move = S.n, S.multipliers, S.end_move
    mass, G = at(S.end_values, n + m), at(S.end_values, n + m + n * n)
    for j in range(n):
        move[j] = 0.0
    for i in range(m):
        move[n + i] = probe(i) * _length(mass, at(G, i * n), n)
    solve(S.saddle, S.end_pivots, n + m, n + m, move)
    largest = 0.0
    for i in range(m):
        largest = max(largest, abs(move[n + i]) * _length(mass, at(G, i * n), n))
    return largest * INDEPENDENT <= 1.0


@native
def _length(mass, row, n):
    """The length of a row of G in the metric of the inverse diagonal of the mass."""
    square = 0.0
    for j in range(n):
        heavy = abs(mass[j * n + j])
        if heavy > 0.0:
            square += row[j] / heavy * row[j]
    return square**0.5


@native
def settled(size, before, iteration, linear):
    """Whether the velocity at the end of a step moves no more, having moved by `size` now and by `before` last time:
    only rounding is left, or the velocity is no number. Linear equations need two iterations, the second for rounding.
    """
    return not size < 1e300 or size <= ENOUGH or (iteration > 0 and (linear or size > 0.5 * before))


@native
def set_saddle(S):
    """S.saddle ← (e_v, −c_vᵀ; c_v, 0), from what the End's kernel gave."""
    n, m = S.n, S.multipliers
    N = n + m
    mass, G = at(S.end_values, N), at(S.end_values, N + n * n)
    for j in range(n):
        for k in range(n):
            S.saddle[j * N + k] = mass[j * n + k]
        for i in range(m):
            S.saddle[j * N + n + i] = -G[i * n + j]
            S.saddle[(n + i) * N + j] = G[i * n + j]
    for i in range(m):
        for k in range(m):
            S.saddle[(n + i) * N + n + k] = 0.0


@native
def linearise(S, kernel, h):
    """After `settle` by the kernel of all derivatives: S.end_values ← those at v and μ, S.saddle ← the factors."""
    n, m = S.n, S.multipliers
    if not settle(S, kernel, h):
        return False
    for i in range(m):
        S.end_at[1 + 2 * n + i] = S.pushed[i]
    call_kernel(kernel, S.end_at, S.end_values, S.work)
    set_saddle(S)
    return factor(S.saddle, S.end_pivots, n + m, n + m)


@native
def settle_along(S, d, e, when):
    """d = (dq⁺, dp⁻) ← (dq⁺, dp⁺), the derivative of the End; e ≥ 0 names the parameter, or behind them h, that varies.

    h changes the time, dt⁺ = `when` dh. With (e_v, −Gᵀ; G, 0) (dv, dμ) = (dp⁻, 0) − (e, c)_q dq⁺ − (e, c)_t dt⁺ −
    (e, c)_w dw the result is dp⁺ = m_q dq⁺ + m_v dv + m_t dt⁺ + m_w dw.
    """
    n, m, P = S.n, S.multipliers, S.params
    N = n + m
    mass = at(S.end_values, N)
    by_q = at(mass, n * N)  # of e, of c, and of m
    by_t = at(by_q, n * (N + n))
    by_w = at(by_t, N + n)
    x = S.end_move
    for j in range(N):
        x[j] = d[n + j] if j < n else 0.0
        for k in range(n):
            x[j] -= by_q[j * n + k] * d[k]
        if e >= 0:
            x[j] -= by_w[j * P + e] if e < P else when * by_t[j]
    solve(S.saddle, S.end_pivots, N, N, x)
    for j in range(n):
        total = 0.0
        for k in range(n):
            total += by_q[(N + j) * n + k] * d[k] + mass[j * n + k] * x[k]
        if e >= 0:
            total += by_w[(N + j) * P + e] if e < P else when * by_t[N + j]
        d[n + j] = total


@native
def set_bumps(S, bumps):
    """bumps_j ← by how much rounding of g, in units of what it is summed from, moves each coordinate.

    The bumps are taken at the start of a step, S.t, S.q, S.v.
    """
    n, m = S.n, S.multipliers
    N = n + m
    S.end_at[0] = S.t[0]
    for j in range(n):
        S.end_at[1 + j], S.end_at[1 + n + j] = S.q[j], S.v[j]
        bumps[j] = 0.0
    for i in range(m):
        S.end_at[1 + 2 * n + i] = 0.0
    for j in range(S.params):
        S.end_at[1 + 2 * n + m + j] = S.values[j]
    call_kernel(S.end, S.end_at, S.end_values, S.work)
    set_saddle(S)
    if not factor(S.saddle, S.end_pivots, N, N):
        return
    G = at(S.end_values, N + n * n)
    for i in range(m):
        rough = 0.0
        for j in range(n):
            rough += abs(G[i * n + j] * S.q[j])
        for j in range(N):
            S.end_move[j] = rough if j == n + i else 0.0
        solve(S.saddle, S.end_pivots, N, N, S.end_move)
        for j in range(n):
            bumps[j] += abs(S.end_move[j])
