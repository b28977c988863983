"""Many trajectories of the Galerkin family, in groups of SIMD lanes.

A group's state X is what the kernels of `leastaction.many.programs` read, number i of lane k at X[i · lanes + k].
The kernels do the arithmetic of all lanes; here are the loops over groups, steps and iterations, and what concerns
single lanes: the step that has to be solved by continuation, a failure, a crossing to record.
"""

from __future__ import annotations

from leastaction.stepping.layout import (
    ACTIVE_PLACE,
    ADVANCE,
    ALIVE_PLACE,
    CHANGED,
    CONTRACTION_PLACE,
    DEGREE,
    DOF,
    EVENT,
    EVENTS,
    EVENTS_PLACE,
    EVERY,
    FIRST,
    GOING_WELL,
    GROUPS,
    HELD,
    IMPULSE_PLACE,
    INPUTS,
    ITERATIONS_PLACE,
    KEPT,
    LANE_CONTINUED,
    LANE_COUNTS,
    LANE_CROSSINGS,
    LANE_ITERATIONS,
    LANE_STATUS,
    LANE_STEPS,
    LANES,
    LAST,
    LEFT_PLACE,
    NOT_FINITE,
    PARAMS,
    PARAMS_PLACE,
    Q_PLACE,
    RECORDS,
    SKIPPED,
    SOLVE,
    SOLVED,
    START,
    STATUS_PLACE,
    STEP,
    STEPS,
    STOPPED,
    TROUBLE_PLACE,
    Z_PLACE,
)
from leastaction.stepping.loops.calls import at, call_kernel, native
from leastaction.stepping.loops.newton import continue_from_rest
from leastaction.stepping.loops.workspace import give_parameters, tables, workspace


@native
def run(I, R, A, table, states, Y, counts, stored, records, x, scratch, memory, pivots):
    """I[STEPS] steps of every group, from the states; `counts` has a row for each lane.

    stored    a block of (A[KEPT], 2n) numbers (q, p) for each lane
    records   a block of (A[RECORDS], 1 + 2n + N) numbers (step, q, p, z) for each lane: the steps with crossings
    """
    T = tables(I, table)
    W = workspace(I, memory, pivots)
    for group in range(A[GROUPS]):
        X = at(states, group * A[INPUTS] * A[LANES])
        _run_group(I, R, A, T, W, X, Y, group * A[LANES], counts, stored, records, x, scratch)


@native
def _sum(values, L):
    total = 0.0
    for k in range(L):
        total += values[k]
    return total


@native
def _run_group(I, R, A, T, W, X, Y, lane, counts, stored, records, x, scratch):
    n, N, L = I[DOF], I[DOF] * I[DEGREE], A[LANES]
    changed, solved = at(X, A[CHANGED] * L), at(X, A[SOLVED] * L)
    in_iteration = (A[INPUTS] - A[SOLVED]) * L
    alive, active = at(X, A[ALIVE_PLACE] * L), at(X, A[ACTIVE_PLACE] * L)
    trouble, crossed = at(X, A[TROUBLE_PLACE] * L), at(Y, A[HELD] * L)
    iterations = at(X, A[ITERATIONS_PLACE] * L)
    for k in range(I[FIRST], I[FIRST] + I[STEPS]):
        if _sum(alive, L) == 0.0:
            return
        for i in range(L):
            X[i] = R[START] + k * R[STEP]
        if k == 0:
            # The first step has no last one to be predicted from: each lane finds it by continuation, alone.
            for i in range(L):
                trouble[i] = alive[i]
                active[i] = 0.0
        while _sum(active, L) != 0.0:
            call_kernel(A[SOLVE], X, Y, scratch)
            for i in range(in_iteration):
                solved[i] = Y[i]
        if _sum(trouble, L) != 0.0:
            for i in range(L):
                if trouble[i] != 0.0:
                    _continue_lane(I, R, A, T, W, X, i, k, at(counts, (lane + i) * LANE_COUNTS), x)
        for i in range(L):
            if alive[i] != 0.0:
                count = at(counts, (lane + i) * LANE_COUNTS)
                count[LANE_STEPS] += 1
                count[LANE_ITERATIONS] += int(iterations[i])
        call_kernel(A[ADVANCE], X, Y, scratch)
        if _sum(crossed, L) != 0.0:
            for i in range(L):
                if crossed[i] != 0.0:
                    own = at(records, (lane + i) * A[RECORDS] * (1 + 2 * n + N))
                    _record(I, A, X, Y, i, k, at(counts, (lane + i) * LANE_COUNTS), own)
        for i in range(A[HELD] * L):
            changed[i] = Y[i]
        for i in range(L):
            # A lane that an event has just stopped keeps the state it has reached and goes no further.
            active[i] *= alive[i]
        row = -1
        if (k + 1) % I[EVERY] == 0:
            row = (k + 1) // I[EVERY] - A[SKIPPED]
        elif k + 1 == I[LAST]:
            row = A[KEPT] - 1
        if row >= 0:
            for i in range(L):
                if alive[i] != 0.0 or counts[(lane + i) * LANE_COUNTS + LANE_STEPS] == k + 1:
                    own = at(stored, ((lane + i) * A[KEPT] + row) * 2 * n)
                    for j in range(2 * n):
                        own[j] = X[(A[Q_PLACE] + j) * L + i]


@native
def _continue_lane(I, R, A, T, W, X, i, k, count, x):
    """Solve lane i's step k alone, by continuation in h; a lane where that fails is alive no more."""
    n, N, L = I[DOF], I[DOF] * I[DEGREE], A[LANES]
    x[0], x[1] = X[i], R[STEP]
    for j in range(2 * n):
        x[2 + j] = X[(A[Q_PLACE] + j) * L + i]
    for j in range(I[PARAMS]):
        x[2 + 2 * n + N + j] = X[(A[PARAMS_PLACE] + j) * L + i]
    for j in range(n):
        W.v[j] = 0.0
    give_parameters(I, W, at(x, 2 + 2 * n + N))
    status, more, left = continue_from_rest(I, T, W, R, x)
    impulse = 0.0
    for j in range(n):
        impulse += W.out[N + j]
    if status == GOING_WELL and impulse - impulse != 0.0:
        status = NOT_FINITE
    if k > 0:
        count[LANE_CONTINUED] += 1
    count[LANE_ITERATIONS] += more
    X[A[STATUS_PLACE] * L + i] = status
    X[A[LEFT_PLACE] * L + i] = left
    X[A[CONTRACTION_PLACE] * L + i] = 0.0
    X[A[TROUBLE_PLACE] * L + i] = 0.0
    if status != GOING_WELL:
        X[A[ALIVE_PLACE] * L + i] = 0.0
        count[LANE_STATUS] = status
        return
    for j in range(N):
        X[(A[Z_PLACE] + j) * L + i] = x[2 + 2 * n + j]
    for j in range(n):
        X[(A[IMPULSE_PLACE] + j) * L + i] = W.out[N + j]


@native
def _record(I, A, X, Y, i, k, count, records):
    """Keep step k of lane i, from X, for each event function that crosses zero between X and Y."""
    n, N, L = I[DOF], I[DOF] * I[DEGREE], A[LANES]
    for e in range(A[EVENTS]):
        place = A[EVENTS_PLACE] + e
        old, new = X[place * L + i], Y[(place - A[CHANGED]) * L + i]
        direction, most = A[EVENT + 4 * e], A[EVENT + 4 * e + 1]
        up, down = old < 0.0 and new >= 0.0, old > 0.0 and new <= 0.0
        if not ((up and direction >= 0) or (down and direction <= 0)):
            continue
        number = count[LANE_CROSSINGS + e]
        count[LANE_CROSSINGS + e] += 1
        if number < most:
            own = at(records, (A[EVENT + 4 * e + 2] + number) * (1 + 2 * n + N))
            own[0] = k
            for j in range(2 * n):
                own[1 + j] = X[(A[Q_PLACE] + j) * L + i]
            for j in range(N):
                own[1 + 2 * n + j] = X[(A[Z_PLACE] + j) * L + i]
        if A[EVENT + 4 * e + 3] == 1 and X[A[ALIVE_PLACE] * L + i] != 0.0:
            X[A[ALIVE_PLACE] * L + i] = 0.0
            count[LANE_STATUS] = STOPPED
