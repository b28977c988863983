"""Many trajectories of the Galerkin family, in groups of SIMD lanes.

A group's state X is what the kernels of `leastaction.many.programs` read and write, number i of lane k at
X[i · lanes + k].
The kernels do the arithmetic of all lanes; here are the loops over groups, steps and iterations, and what concerns
single lanes: the step that has to be solved by continuation, a failure, a crossing to record.
"""

from __future__ import annotations

from leastaction.stepping.layout import (
    ADVANCE,
    ALIVE_PLACE,
    CHORD,
    CHORD_PLACE,
    DEGREE,
    DOF,
    EVENT,
    EVENTS,
    EVENTS_PLACE,
    EVERY,
    FIRST,
    FRESH,
    FRESH_PLACE,
    GOING_WELL,
    GROUPS,
    IMPULSE_PLACE,
    INPUTS,
    ITERATIONS_PLACE,
    JACOBIAN_PLACE,
    JACOBIAN_SIZE,
    KEPT,
    LANE_CONTINUED,
    LANE_COUNTS,
    LANE_CROSSINGS,
    LANE_ITERATIONS,
    LANE_STATUS,
    LANE_STEPS,
    LANES,
    LAST,
    NOT_FINITE,
    PARAMS,
    PARAMS_PLACE,
    Q_PLACE,
    RECORDS,
    SKIPPED,
    START,
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
def _any(values, L):
    found = 0
    while found < L and values[found] == 0.0:
        found += 1
    return found < L


@native
def _run_group(I, R, A, T, W, X, Y, lane, counts, stored, records, x, scratch):
    n, N, L = I[DOF], I[DOF] * I[DEGREE], A[LANES]
    alive, fresh, chord = at(X, A[ALIVE_PLACE] * L), at(X, A[FRESH_PLACE] * L), at(X, A[CHORD_PLACE] * L)
    trouble, iterations = at(X, A[TROUBLE_PLACE] * L), at(X, A[ITERATIONS_PLACE] * L)
    for k in range(I[FIRST], I[FIRST] + I[STEPS]):
        if not _any(alive, L):
            return
        if k == 0:
            # The first step has no last one to be predicted from: each lane finds it by continuation, alone.
            for i in range(L):
                trouble[i] = alive[i]
                fresh[i] = 0.0
        while True:
            newton, keeping = _any(fresh, L), _any(chord, L)
            if not (newton or keeping):
                break
            if newton and keeping:
                _fresh_for_some(A, X, Y, chord, scratch)
            elif newton:
                call_kernel(A[FRESH], X, Y, scratch)
            if keeping:
                call_kernel(A[CHORD], X, Y, scratch)
        if _any(trouble, L):
            for i in range(L):
                if trouble[i] != 0.0:
                    _continue_lane(I, R, A, T, W, X, i, k, at(counts, (lane + i) * LANE_COUNTS), x)
        for i in range(L):
            if alive[i] != 0.0:
                count = at(counts, (lane + i) * LANE_COUNTS)
                count[LANE_STEPS] += 1
                count[LANE_ITERATIONS] += int(iterations[i])
        for i in range(L):
            X[i] = R[START] + (k + 1) * R[STEP]
        call_kernel(A[ADVANCE], X, Y, scratch)
        if A[EVENTS] > 0 and _any(Y, L):
            for i in range(L):
                if Y[i] != 0.0:
                    own = at(records, (lane + i) * A[RECORDS] * (1 + 2 * n + N))
                    _record(I, A, X, Y, i, k, at(counts, (lane + i) * LANE_COUNTS), own)
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
def _fresh_for_some(A, X, Y, chord, scratch):
    """An iteration with fresh Jacobians where some lanes keep theirs: those get them back."""
    L, kept = A[LANES], at(X, A[JACOBIAN_PLACE] * A[LANES])
    for j in range(A[JACOBIAN_SIZE]):
        for i in range(L):
            Y[(j + 1) * L + i] = kept[j * L + i]
    for i in range(L):
        Y[i] = chord[i]
    call_kernel(A[FRESH], X, Y, scratch)
    for i in range(L):
        if Y[i] != 0.0:
            for j in range(A[JACOBIAN_SIZE]):
                kept[j * L + i] = Y[(j + 1) * L + i]


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
    status, more, _ = continue_from_rest(I, T, W, R, x)
    impulse = 0.0
    for j in range(n):
        impulse += W.out[N + j]
    if status == GOING_WELL and impulse - impulse != 0.0:
        status = NOT_FINITE
    if k > 0:
        count[LANE_CONTINUED] += 1
    count[LANE_ITERATIONS] += more
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
    """Keep step k of lane i for each event that crosses zero in it; Y has (crossed, g, q, p, z) of its start."""
    n, N, L = I[DOF], I[DOF] * I[DEGREE], A[LANES]
    began = at(Y, L)
    for e in range(A[EVENTS]):
        old, new = began[e * L + i], X[(A[EVENTS_PLACE] + e) * L + i]
        direction, most = A[EVENT + 4 * e], A[EVENT + 4 * e + 1]
        up, down = old < 0.0 and new >= 0.0, old > 0.0 and new <= 0.0
        if not ((up and direction >= 0) or (down and direction <= 0)):
            continue
        number = count[LANE_CROSSINGS + e]
        count[LANE_CROSSINGS + e] += 1
        if number < most:
            own = at(records, (A[EVENT + 4 * e + 2] + number) * (1 + 2 * n + N))
            own[0] = k
            for j in range(2 * n + N):
                own[1 + j] = began[(A[EVENTS] + j) * L + i]
        if A[EVENT + 4 * e + 3] == 1 and X[A[ALIVE_PLACE] * L + i] != 0.0:
            # It keeps the state it has reached and goes no further.
            X[A[ALIVE_PLACE] * L + i] = 0.0
            X[A[FRESH_PLACE] * L + i] = 0.0
            count[LANE_STATUS] = STOPPED
