"""Where a step of a sum with constraints ends: g = 0 and ġ = 0 hold there, as in `constraints`, by sparse systems."""

from __future__ import annotations

from leastaction.backends.loops.constraints import MOST_ITERATIONS, ROUNDING, probe, settled
from leastaction.backends.loops.machine import W, at, native
from leastaction.backends.loops.sparse import assemble, read_sparse
from leastaction.backends.loops.sparse import factor as factor_sparse
from leastaction.backends.loops.sparse import solve as solve_sparse
from leastaction.backends.loops.summed import set_rate
from leastaction.backends.loops.sweep import add_up, read_term
from leastaction.step.independence import INDEPENDENT


@native
def _independent(P, size):
    """Whether constraints do not depend on each other, as in `constraints`; overwrites P.x, P.change and P.push."""
    heavy, length = P.push, P.change
    for j in range(size):
        heavy[j] = 0.0
    for k in range(P.n):
        length[P.order[k]] = 0.0
    for e in range(P.entries):
        if P.row[e] == P.column[e] and P.row[e] < size:
            heavy[P.row[e]] += abs(P.M[e])
    for e in range(P.entries):
        i, j = P.row[e], P.column[e]
        if i >= size and j < size and heavy[j] > 0.0:
            length[i] += P.M[e] / heavy[j] * P.M[e]
    for k in range(P.n):
        j = P.order[k]
        P.x[k] = probe(j - size) * length[j] ** 0.5 if j >= size else 0.0
    solve_sparse(P, P.shifts, False)
    largest = 0.0
    for k in range(P.n):
        j = P.order[k]
        if j >= size:
            largest = max(largest, abs(P.x[k]) * length[j] ** 0.5)
    return largest * INDEPENDENT <= 1.0


@native
def settle_sum(S, I, D, h):
    """S.impulse ← the impulse after which ġ = 0, for a step from S.t, S.q, S.p with S.z and S.impulse; False where
    constraints depend on each other, or numbers are not finite.

    The matrix is (M, Gᵀ; G, 0), for the change of v and minus that of μ.
    """
    P, T, s, row = read_sparse(I, D, S.sparse), read_term(I, D, S.terms), S.s, S.stride
    size, room, point = S.n * W, (S.components + 1) * W, T.point
    q, velocity = at(point, W), at(point, W + room)
    t = S.t[0] + h
    point[0] = t
    for j in range(size):
        place, speed = j // W * row + j % W, 0.0
        for v in range(s):
            speed += S.slope[v] * S.z[place + v * W]
        q[j], velocity[j] = S.q[j] + S.z[place + (s - 1) * W], speed / h
    before, whole = 1.0, 0.0
    for iteration in range(MOST_ITERATIONS):
        add_up(S, T, I, D, point, T.values)
        set_rate(S, I, D, P, t, q, velocity)
        if iteration == 0 or P.still == 0:
            assemble(I, D, P, P.masses, t, q, velocity, P.M)
            if not factor_sparse(P, P.shifts, 0.0, 0.0) or not _independent(P, size):
                return False
        for k in range(P.n):
            j = P.order[k]
            P.x[k] = -P.rate[j] if j >= size else S.impulse[j] + (S.p[j] - T.values[room + j])
        solve_sparse(P, P.shifts, False)
        for k in range(P.n):
            P.change[P.order[k]] = P.x[k]
        for j in range(size):
            P.push[j] = 0.0
        for e in range(P.entries):
            i, j = P.row[e], P.column[e]
            if i < size and j >= size:
                P.push[i] -= P.M[e] * P.change[j]
        length, summed = 0.0, 0.0
        for e in range(P.entries):
            j = P.row[e]
            if j == P.column[e] and j < size:
                heavy = abs(P.M[e]) ** 0.5
                velocity[j] += P.change[j]
                S.impulse[j] += P.push[j]
                length += heavy * abs(P.change[j])
                summed += heavy * abs(velocity[j])
                if heavy > 0.0:
                    summed += (abs(S.p[j]) + abs(P.push[j])) / heavy
        whole = max(whole, summed)
        moved = length / whole if whole > 0.0 else 0.0
        if settled(moved, before, iteration, P.still == 1):
            return moved <= ROUNDING
        before = moved
    return False
