"""Steps that their equations give at once: degree one, nodes at the ends of the step, a constant diagonal mass.

With w₀, w₁ the weights h b_i of the ends, f the force there (`step.form` with s = 1, l = τ):

    z = h M⁻¹ (p + w₀ f(t, q)),      q⁺ = q + z,      p⁺ = p + w₀ f(t, q) + w₁ f(t + h, q⁺).

The force at the end of a step is that at the start of the next one. Where the state in between is not needed, the end
of a step and the start of the next are one sweep over the coordinates, to the same bits.

Large systems wait for memory, so a step reads and writes no array that it can do without. Where positions are a step
ahead, w₀ f(t, q) is part of what is carried to the next sum of p: the force needs one array, and no array for the last
one. A mass that all coordinates share is one vector.
"""

from __future__ import annotations

from leastaction.backends.layout import RUN
from leastaction.backends.loops.compensated import sum_with_rest
from leastaction.backends.loops.machine import (
    W,
    add,
    at,
    doubles,
    first_of,
    fused,
    largest_of,
    load,
    mul,
    native,
    reader,
    splat,
    store,
    sub,
    where,
    write_shared,
)
from leastaction.backends.loops.rows import add_together, clear
from leastaction.backends.loops.strips import add_cell, read_rows
from leastaction.backends.loops.sweep import read_solver, read_term
from leastaction.backends.loops.team import COPY, DRIFT, LEAP, LEAP_MORE, read_team, share

read_run = reader(RUN)


@native
def keep(S, I, D):
    """Copy the state, to come back to it where a force turns out to be no number."""
    _copy(S, I, D, 0)


@native
def come_back(S, I, D):
    """The state as it was kept."""
    _copy(S, I, D, 1)
    S.ahead[0] = 0
    S.known[0] = 0


@native
def _copy(S, I, D, back):
    J, R = read_team(I, D, S.team), read_rows(I, D, read_term(I, D, S.soft).rows)
    J.mode[0] = back
    share(I, D, J, COPY, R.phase[1], copy_piece)


@native
def copy_piece(I, D, J, cell):
    """Copy a cell's part of the state to where it is kept, or back."""
    A, S, X = read_run(I, D, J.run[0]), read_solver(I, D, J.solver[0]), doubles(J.state[0])
    R, back = read_rows(I, D, read_term(I, D, S.soft).rows), J.mode[0] == 1
    for e in range(R.own[cell], R.own[cell + 1]):
        for c in range(R.owned[4 * e], R.owned[4 * e + 1]):
            for k in range(4):
                kept = S.q if k == 0 else S.p if k == 1 else S.start if k == 2 else S.last
                place = A.q if k == 0 else A.p if k == 1 else A.carry if k == 2 else A.carry + S.n * W
                here, there = at(kept, c * W), at(X, place + c * W)
                if back:
                    store(there, load(here))
                else:
                    store(here, load(there))


@native
def leap(S, I, D, A, X, onward):
    """One step; with `onward` the positions after the next one, too. False where a force is no number."""
    T, J = read_term(I, D, S.soft), read_team(I, D, S.team)
    R, f = read_rows(I, D, T.rows), T.values
    t, h, q = X[A.t], A.step[0], at(X, A.q)
    if S.ahead[0] == 0:
        if S.early >= 0 and S.known[0] == 0:
            add_together(S, I, D, T.rows, t, q, q, f, f, 0)
        share(I, D, J, DRIFT, R.phase[1], drift_piece)
    steady = S.early >= 0 and S.late >= 0 and S.timed == 0
    S.ahead[0] = 1 if onward and steady else 0
    S.known[0] = 1 if steady else 0
    J.t[0], J.broken[0] = t + h, 0
    share(I, D, J, LEAP, R.phase[1], leap_piece)
    for phase in range(1, R.phases):
        J.first[0] = R.phase[phase]
        share(I, D, J, LEAP_MORE, R.phase[phase + 1] - R.phase[phase], leap_more_piece)
    return J.broken[0] == 0


@native
def _fields(I, D, J):
    """What pieces of a leap need: the run, the solver, the state, the force, and the weights of the ends."""
    A, S, X = read_run(I, D, J.run[0]), read_solver(I, D, J.solver[0]), doubles(J.state[0])
    T = read_term(I, D, S.soft)
    w0 = T.raw[T.points + S.early] if S.early >= 0 else 0.0
    w1 = T.raw[T.points + S.late] if S.late >= 0 else 0.0
    return A, S, X, T, w0, w1


@native
def drift_piece(I, D, J, cell):
    """Move on the positions in the ranges of a cell."""
    A, S, X, T, w0, _ = _fields(I, D, J)
    R = read_rows(I, D, T.rows)
    for e in range(R.own[cell], R.own[cell + 1]):
        _drift(A, S, X, R.owned[4 * e], R.owned[4 * e + 1], w0, T.values)


@native
def leap_piece(I, D, J, cell):
    """The forces of a cell's rows; then coordinates that no later row touches go on, while they are in the cache."""
    A, S, X, T, w0, w1 = _fields(I, D, J)
    R, q = read_rows(I, D, T.rows), at(X, A.q)
    if S.late >= 0:
        clear(R, cell, T.values)
        add_cell(I, D, R, cell, J.t[0], q, q, T.values, T.values)
    for e in range(R.own[cell], R.own[cell + 1]):
        _go_on(A, S, J, X, R.owned[4 * e + 2], R.owned[4 * e + 3], w0, w1, T.values)


@native
def leap_more_piece(I, D, J, i):
    """The same of a cell of a later phase: coordinates go on that this cell is the last to touch."""
    A, S, X, T, w0, w1 = _fields(I, D, J)
    R, q, cell = read_rows(I, D, T.rows), at(X, A.q), J.first[0] + i
    if S.late >= 0:
        add_cell(I, D, R, cell, J.t[0], q, q, T.values, T.values)
    for k in range(R.ends[cell], R.ends[cell + 1]):
        of, behind = at(R.owned, R.part[k] // 2 * 4), R.part[k] % 2
        _go_on(A, S, J, X, of[3] if behind else of[0], of[1] if behind else of[2], w0, w1, T.values)


@native
def _drift(A, S, X, first, end, w0, f):
    """q⁺ from the force at the start, whose part of p⁺ is carried along."""
    h, n, pitch = A.step[0], S.n, 0 if S.even[0] == 1 else W
    for c in range(first, end):
        f0, carried = load(at(f, c * W)), at(X, A.carry + (n + c) * W)
        push = fused(splat(w0), f0, load(at(X, A.p + c * W)))
        store(carried, fused(splat(w0), f0, load(carried)))
        _move(A, S, X, c, mul(splat(h), load(at(S.M, c * pitch))), push)


@native
def _go_on(A, S, J, X, first, end, w0, w1, f):
    """p⁺; where positions go ahead, also q after the next step, as `_drift` has it."""
    h, n, ahead, pitch, total = A.step[0], S.n, S.ahead[0], 0 if S.even[0] == 1 else W, splat(0.0)
    for c in range(first, end):
        f1, place, carried = load(at(f, c * W)), at(X, A.p + c * W), at(X, A.carry + (n + c) * W)
        move = fused(splat(w1), f1, load(carried))
        total = add(total, move)
        p, left = sum_with_rest(load(place), move)
        store(place, p)
        if ahead == 1:
            left = fused(splat(w0), f1, left)
            _move(A, S, X, c, mul(splat(h), load(at(S.M, c * pitch))), fused(splat(w0), f1, p))
        store(carried, left)
    if first_of(largest_of(where(sub(total, total), splat(1.0), splat(0.0)))) != 0.0:
        write_shared(J.broken, 1)


@native
def _move(A, S, X, c, inverse, push):
    """q⁺ of one vector of coordinates."""
    place, carried = at(X, A.q + c * W), at(X, A.carry + c * W)
    q, left = sum_with_rest(load(place), fused(inverse, push, load(carried)))
    store(place, q)
    store(carried, left)
