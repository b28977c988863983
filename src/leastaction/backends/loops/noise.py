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
PASSED_ON = 4  # how many times noise is followed from coordinate to coordinate
SHARED = 2.0**-10  # constraints pass this part of a coordinate's noise, in the metric of the mass, on to any other


@native
def set_noise(S):
    """S.noise ← the parts of g of `step.verdict`, one for each derivative and power of h, at the start of the step."""
    n = S.n
    values = S.at_values
    f_q, f_v = at(values, 2 * n), at(values, 2 * n + n * n)
    m_q, m_v = at(values, 2 * n + 2 * n * n), at(values, 2 * n + 3 * n * n)
    for j in range(n):
        for k in range(n):
            S.V[j * n + k] = m_v[j * n + k]
    for j in range(3 * n + 2 * n * n):
        S.noise[j] = 0.0
    if S.multipliers > 0:
        set_bumps(S, at(S.noise, 2 * n))
    if not factor(S.V, S.mass_pivots, n, n):
        return
    slow, fast = at(S.noise, 3 * n), at(S.noise, 3 * n + n * n)
    for k in range(n):
        momentum, force = abs(S.p[k]), abs(values[k])
        for i in range(n):
            momentum += abs(m_q[k * n + i] * S.q[i]) + abs(m_v[k * n + i] * S.v[i])
            force += abs(f_q[k * n + i] * S.q[i]) + abs(f_v[k * n + i] * S.v[i])
            S.move[i] = 1.0 if i == k else 0.0
        solve(S.V, S.mass_pivots, n, n, S.move)
        for j in range(n):
            inverse = abs(S.move[j])
            S.noise[j] += inverse * momentum
            S.noise[n + j] += inverse * force
            for i in range(n):
                slow[j * n + i] += inverse * (abs(m_q[k * n + i]) + abs(f_v[k * n + i]))
                fast[j * n + i] += inverse * abs(f_q[k * n + i])


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
    """S.floor ← NOISE g for a step of this length."""
    n = S.n
    if S.summed == 1:
        for j in range(n * W):
            rounded = 4.0 * QUIET * (abs(S.q[j]) + abs(h * S.v[j]))
            S.floor[j] = max(rounded, 4.0 * HELD * abs(S.q[j]) if S.multipliers > 0 else 0.0)
            S.floor[j] += MEASURED * h * h * S.M[j] * abs(S.noise[j])
        level(S, S.floor, 1.0)
        return
    slow, fast = at(S.noise, 3 * n), at(S.noise, 3 * n + n * n)
    for j in range(n):
        S.floor[j] = 0.0
    for _ in range(1 + min(n, PASSED_ON)):
        for j in range(n):
            S.move[j] = S.floor[j]
        for j in range(n):
            total, stiff = NOISE * (S.noise[2 * n + j] + h * (S.noise[j] + h * S.noise[n + j])), 1.0
            for k in range(n):
                passed = h * (slow[j * n + k] + h * fast[j * n + k])
                if k == j:
                    stiff += passed
                else:
                    total += passed * S.move[k]
            S.floor[j] = total / stiff
    if S.multipliers > 0:
        mass, top = at(S.at_values, 2 * n + 3 * n * n), 0.0
        for j in range(n):
            top = max(top, S.floor[j] * abs(mass[j * n + j]) ** 0.5)
        for j in range(n):
            if mass[j * n + j] != 0.0:
                S.floor[j] = max(S.floor[j], SHARED * top / abs(mass[j * n + j]) ** 0.5)
