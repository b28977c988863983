"""What the solver asks of a sum over rows of tables: its sparse masses, a velocity, and the noise of its forces."""

from __future__ import annotations

from leastaction.backends.loops.increments import REACHING, level
from leastaction.backends.loops.machine import W, add, at, div, fma, load, native, splat, store
from leastaction.backends.loops.sparse import assemble, read_sparse
from leastaction.backends.loops.sparse import factor as factor_sparse
from leastaction.backends.loops.sparse import solve as solve_sparse
from leastaction.backends.loops.strips import add_rows
from leastaction.backends.loops.sweep import add_up, read_term
from leastaction.step.verdict import EPS, ROUGH, SETTLED, TINY

HUGE = 1e300
PROBE = 2.0**-20  # part of a step: how far to move to measure what rounding does to forces …
SHORTER = 2.0**-3  # … and the factor by which the next move is shorter, where more than rounding was found
MOST_PROBES = 12
MOST_INVERSIONS = 50


@native
def in_the_middle(S, P, q, z, h):
    """Where the motion that z predicts is at half a step."""
    s, row = S.s, S.stride
    for c in range(S.n):
        moved, speed = splat(0.0), splat(0.0)
        for v in range(s):
            x = load(at(z, c * row + v * W))
            moved = fma(splat(S.middle[v]), x, moved)
            speed = fma(splat(S.middle[s + v]), x, speed)
        store(at(P.middle_q, c * W), add(load(at(q, c * W)), moved))
        store(at(P.middle_v, c * W), div(speed, splat(h)))
    for c in range(S.n, S.components):  # multipliers as they are on average
        total = splat(0.0)
        for v in range(s):
            total = add(total, load(at(z, c * row + v * W)))
        store(at(P.middle_q, c * W), div(total, splat(float(s))))


@native
def set_rate(S, I, D, P, t, q, v):
    """P.rate ← ġ at a point, in the places of the multipliers."""
    for j in range((S.components + 1) * W):
        P.rate[j] = 0.0
    add_rows(I, D, P.rates, t, q, v, P.rate, P.rate)


@native
def set_summed_mass(S, I, D, t, q, z, h):
    """The factors of a mass that depends on the motion, in the middle of the step; those of a constant mass exist from
    the start.
    """
    if S.constant == 1:
        return True
    P = read_sparse(I, D, S.sparse)
    in_the_middle(S, P, q, z, h)
    assemble(I, D, P, P.masses, t[0] + 0.5 * h, P.middle_q, P.middle_v, P.M)
    return factor_sparse(P, P.shifts, 0.0, 0.0)


@native
def by_summed_mass(S, I, D):
    """S.R ← M⁻¹ S.R with a sparse M."""
    P = read_sparse(I, D, S.sparse)
    for v in range(S.s):
        for k in range(P.n):
            j = P.order[k]
            P.x[k] = S.R[j // W * S.stride + v * W + j % W]
        solve_sparse(P, P.shifts, False)
        for k in range(P.n):
            j = P.order[k]
            S.R[j // W * S.stride + v * W + j % W] = P.x[k]


@native
def summed_velocity(S, I, D):
    """S.v with m(t, q, v) = p at S.t, S.q, S.p, by Newton's iteration; whether there is one.

    Each coordinate is judged on its own scale, the largest |v_j| so far: the iteration ends where no increment is more
    than rounding, or where small ones shrink no more. An increment that leads to no number is halved. Where increments
    do not shrink, the part of them that comes from rounding of p and M v does not count.
    """
    if S.separable == 1 and S.diagonal == 1:
        for j in range(S.n * W):
            S.v[j] = S.M[j] * S.p[j]
        return True
    P, T, N = read_sparse(I, D, S.sparse), read_term(I, D, S.terms), S.n * W
    move, longest, noise = S.last, S.scale, S.impulse
    for j in range(N):
        S.v[j], move[j], longest[j], noise[j] = 0.0, 0.0, 0.0, 0.0
    before = HUGE
    for _ in range(MOST_INVERSIONS):
        if not _set_gap(S, I, D, P, T):
            for j in range(N):
                move[j] *= 0.5
                S.v[j] -= move[j]
            continue
        if not _solve_mass(S, I, D, P, T):
            return False
        size, total = 0.0, 0.0
        for k in range(P.n):
            j = P.order[k]
            if j < N:
                move[j] = P.x[k]
                S.v[j] += move[j]
                longest[j] = max(longest[j], abs(S.v[j]))
                total += move[j]
                beyond = abs(move[j]) - noise[j]
                if beyond > 0.0:
                    size = max(size, beyond / longest[j])
        if total - total != 0.0:
            return False
        if size <= 4.0 * EPS or (size <= SETTLED and size > 0.5 * before):
            return True
        if size > 0.5 * before:
            _set_velocity_noise(S, P, noise)
        before = size
    return False


@native
def _set_gap(S, I, D, P, T):
    """P.x ← p − m(t, q, v), and −ġ in the places of the multipliers, at S.v; whether all of them are numbers."""
    room = (S.components + 1) * W
    for c in range(S.n):
        store(at(T.point, W + c * W), load(at(S.q, c * W)))
        store(at(T.point, W + room + c * W), load(at(S.v, c * W)))
    T.point[0] = S.t[0]
    add_up(S, T, I, D, T.point, T.values)
    if S.multipliers > 0:
        set_rate(S, I, D, P, S.t[0], at(T.point, W), at(T.point, W + room))
    total = 0.0
    for k in range(P.n):
        j = P.order[k]
        P.x[k] = S.p[j] - T.values[room + j] if j < S.n * W else -P.rate[j]
        total += P.x[k]
    return total - total == 0.0


@native
def _solve_mass(S, I, D, P, T):
    """P.x ← M⁻¹ P.x with the mass at T.point, between constraints where there are any; whether M can be inverted."""
    if S.constant == 0 or S.multipliers > 0:
        room = (S.components + 1) * W
        assemble(I, D, P, P.masses, S.t[0], at(T.point, W), at(T.point, W + room), P.M)
        if not factor_sparse(P, P.shifts, 0.0, 0.0):
            return False
    solve_sparse(P, P.shifts, False)
    return True


@native
def _set_velocity_noise(S, P, noise):
    """The noise of each velocity ← what rounding of p, of M v, and of ġ = G v does to it: M⁻¹ (|p| + |M| |v|), once
    with these signs and once with others, since terms may cancel. The mass and its factors are those of the last
    increment.
    """
    N = S.n * W
    for j in range(N):
        noise[j] = 0.0
    for others in range(2):
        for k in range(P.n):
            P.x[k] = abs(S.p[P.order[k]]) if P.order[k] < N else 0.0
        for k in range(P.n):
            for e in range(P.up[k], P.up[k + 1]):
                i = P.ui[e]
                entry = 0.5 * abs(P.M[P.first[e]] + P.M[P.second[e]])
                if P.order[k] < N:
                    P.x[i] += entry * abs(S.v[P.order[k]])
                if i != k and P.order[i] < N:
                    P.x[k] += entry * abs(S.v[P.order[i]])
        if others == 1:
            for k in range(P.n):
                P.x[k] *= 1.0 - 2.0 * ((k * 7919 // 13) % 2)
        solve_sparse(P, P.shifts, False)
        for k in range(P.n):
            if P.order[k] < N:
                noise[P.order[k]] = max(noise[P.order[k]], ROUGH * abs(P.x[k]))


@native
def summed_noise(S, I, D, h):
    """S.noise ← what rounding does to each force at the start of a step: f(q + δ) − 2 f(q) + f(q − δ), where δ is so
    small a part of the step that only rounding is left, and goes up or down from one coordinate to the next.

    How small δ must be depends on how f bends: with δ shorter by a factor c the bending is c² of what it was, and
    rounding is as before.
    """
    T, room = read_term(I, D, S.terms), (S.n + 1) * W
    T.point[0] = S.t[0]
    for j in range(S.n * W):
        S.last[j] = 0.0
    _force_at(S, T, I, D, room, 0.0)
    for j in range(S.n * W):
        S.impulse[j] = T.values[j]
        S.scale[j] = max(abs(h * S.v[j]) + abs(h * h * S.M[j] * T.values[j]), TINY)
    level(S, S.scale, REACHING)
    part, before = PROBE, HUGE
    for _ in range(MOST_PROBES):
        for j in range(S.n * W):
            S.last[j] = part * S.scale[j] * (1.0 if (j * 7919 // 13) % 2 == 0 else -1.0)
            S.start[j] = -2.0 * S.impulse[j]
        for side in range(2):
            _force_at(S, T, I, D, room, 1.0 - 2.0 * side)
            for j in range(S.n * W):
                S.start[j] += T.values[j]
        most = 0.0
        for j in range(S.n * W):
            most = max(most, abs(h * h * S.M[j] * S.start[j]) / S.scale[j])
        if most == 0.0 and before < HUGE:
            break  # δ is less than the last digit of q: what was found before is rounding
        for j in range(S.n * W):
            S.noise[j] = S.start[j]
        if not most < 4.0 * SHORTER * SHORTER * before:
            break
        part, before = SHORTER * part, most


@native
def _force_at(S, T, I, D, room, side):
    """The forces at S.q + side · S.last, with the velocity S.v."""
    for c in range(S.n):
        here = fma(splat(side), load(at(S.last, c * W)), load(at(S.q, c * W)))
        store(at(T.point, W + c * W), here)
        store(at(T.point, W + room + c * W), load(at(S.v, c * W)))
    add_up(S, T, I, D, T.point, T.values)
