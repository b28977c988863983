"""What rounding may do to the coordinates of a step, and the floors with which increments are therefore compared."""

from __future__ import annotations

from leastaction.backends.loops.constraints import set_bumps
from leastaction.backends.loops.elimination import factor, sizes, solve
from leastaction.backends.loops.increments import HIDDEN, ITERATIONS, level, put
from leastaction.backends.loops.machine import (
    W,
    add,
    at,
    div,
    fma,
    larger,
    largest_of,
    load,
    mul,
    native,
    size_of,
    splat,
    store,
)
from leastaction.backends.loops.sweep import lanewise
from leastaction.step.verdict import EPS, NOISE, TINY, UNCERTAIN

MEASURED = 8.0  # how many times larger the noise of a sum's forces may be elsewhere than where it was measured
QUIET = 8.0 * EPS  # of a coordinate: what rounding may do to the increments of a step much shorter than itself
HELD = 32.0 * EPS  # of the largest coordinate of a kind: what rounding of constraints may do to others of a sum
SHARED = 2.0**-10  # constraints pass this part of a coordinate's noise, in the metric of the mass, on to any other


@native
def set_noise(S):
    """S.noise ← what `set_floor` needs of the start of the step: what momenta and forces are summed from, what rounding
    of constraints does to coordinates, and m_v, m_q − f_v, f_q.
    """
    n, values = S.n, S.at_values
    f_q, f_v = at(values, 2 * n), at(values, 2 * n + n * n)
    m_q, m_v = at(values, 2 * n + 2 * n * n), at(values, 2 * n + 3 * n * n)
    mass, slow, fast = at(S.noise, 3 * n), at(S.noise, 3 * n + n * n), at(S.noise, 3 * n + 2 * n * n)
    for k in range(n):
        momentum, force = abs(S.p[k]), abs(values[k])
        for i in range(n):
            e = k * n + i
            momentum += abs(m_q[e] * S.q[i]) + abs(m_v[e] * S.v[i])
            force += abs(f_q[e] * S.q[i]) + abs(f_v[e] * S.v[i])
            mass[e], slow[e], fast[e] = m_v[e], m_q[e] - f_v[e], f_q[e]
        S.noise[k], S.noise[n + k], S.noise[2 * n + k] = momentum, force, 0.0
    if S.multipliers > 0:
        set_bumps(S, at(S.noise, 2 * n))


@native
def see_rounding(S, scale):
    """S.seen[HIDDEN] ← how many times what a mass chord moves momenta by, S.R before it is solved with the mass, is
    contained in their rounding; see `step.verdict`. A first chord is not asked.
    """
    lanes, width, largest = S.lanes, S.width, splat(0.0)
    if S.seen[ITERATIONS * lanes] == 0.0:
        return
    if S.seen[ITERATIONS * lanes] == 1.0:
        weigh(S, scale)
    for k in range(S.n):
        moved = splat(0.0)
        for v in range(width):
            moved = larger(moved, size_of(load(at(S.R, (k * width + v) * W))))
        largest = larger(largest, mul(moved, lanewise(S.weight, k, lanes)))
    put(S.seen, HIDDEN, lanes, div(splat(1.0), larger(largest_of(largest) if lanes == 1 else largest, splat(TINY))))


@native
def weigh(S, scale):
    """S.weight ← the inverses of what momenta are rounded by, UNCERTAIN |L| |U| scale with the factors of the mass."""
    n, lanes = S.n, S.lanes
    for k in range(n):
        if lanes == 1:
            S.move[k] = sizes(at(S.F, k * S.mass_lead), scale, k, n)
        else:
            within = splat(0.0)
            for i in range(k, n):
                within = fma(size_of(load(at(S.M, (k * n + i) * W))), load(at(scale, i * W)), within)
            store(at(S.move, k * W), within)
    for k in range(n):
        within = lanewise(S.move, k, lanes)
        if lanes == 1:
            within = add(within, splat(sizes(at(S.F, k * S.mass_lead), S.move, 0, k)))
        else:
            for i in range(k):
                within = fma(size_of(load(at(S.M, (k * n + i) * W))), load(at(S.move, i * W)), within)
        put(S.weight, k, lanes, div(splat(1.0), larger(mul(splat(UNCERTAIN), within), splat(TINY))))
    if lanes == 1 and S.exchanged[0] == 1:  # the factors are those of M with its rows in another order
        for k in range(n - 1, -1, -1):
            other = S.mass_pivots[k]
            S.weight[k], S.weight[other] = S.weight[other], S.weight[k]


@native
def quiet_floor(S, h):
    """S.floor ← zero; in sums what rounding of one coordinate alone may do, which is very little."""
    if S.summed == 1 and S.multipliers > 0:
        held_floor(S)
        return
    for j in range(S.n * S.across):
        S.floor[j] = QUIET * (abs(S.q[j]) + abs(h * S.v[j])) if S.summed == 1 else 0.0


@native
def held_floor(S):
    """S.floor ← what rounding of constraints does to the coordinates of a sum: g is summed from all of one kind."""
    for j in range(S.n * W):
        S.floor[j] = HELD * abs(S.q[j])
    level(S, S.floor, 1.0)


@native
def set_floor(S, h):
    """S.floor ← NOISE x of `step.verdict` for a step of this length."""
    n = S.n
    if S.summed == 1:
        for j in range(n * W):
            rounded = 4.0 * QUIET * (abs(S.q[j]) + abs(h * S.v[j]))
            S.floor[j] = max(rounded, 4.0 * HELD * abs(S.q[j]) if S.multipliers > 0 else 0.0)
            S.floor[j] += MEASURED * h * h * S.M[j] * abs(S.noise[j])
        level(S, S.floor, 1.0)
        return
    bumps, length = at(S.noise, 2 * n), abs(h)
    mass, slow, fast = at(S.noise, 3 * n), at(S.noise, 3 * n + n * n), at(S.noise, 3 * n + 2 * n * n)
    for j in range(n):
        S.floor[j] = NOISE * bumps[j]
    for e in range(n * n):
        S.V[e] = mass[e] + 0.5 * h * slow[e] - 0.25 * h * h * fast[e]
    if not factor(S.V, S.pivots, n, n):
        return
    for k in range(n):
        noise = S.noise[k] + length * S.noise[n + k]
        for i in range(n):
            noise += (abs(slow[k * n + i]) + length * abs(fast[k * n + i])) * bumps[i]
            S.move[i] = 1.0 if i == k else 0.0
        solve(S.V, S.pivots, n, n, S.move)
        for j in range(n):
            S.floor[j] += NOISE * length * abs(S.move[j]) * noise
    if S.multipliers > 0:
        top = 0.0
        for j in range(n):
            top = max(top, S.floor[j] * abs(mass[j * n + j]) ** 0.5)
        for j in range(n):
            if mass[j * n + j] != 0.0:
                S.floor[j] = max(S.floor[j], SHARED * top / abs(mass[j * n + j]) ** 0.5)
