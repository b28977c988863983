"""Mass chords of a sum whose mass is constant and diagonal, and whose forces do not depend on velocities.

A chord is a sweep over the rows for each point that matters, and one over the coordinates, cell by cell: what the rows
of a cell give is in the cache when its coordinates go on. A point whose place does not depend on z, such as the start,
is evaluated once; a point whose force enters the impulse alone, such as the end, is evaluated when z is known.
"""

from __future__ import annotations

from leastaction.backends.loops.increments import (
    ALIKE,
    gather_tops,
    measure_one,
    move_one,
    raise_to,
    renew,
    see,
    top_of,
)
from leastaction.backends.loops.machine import (
    W,
    add,
    address_of,
    at,
    doubles,
    first_of,
    fma,
    larger,
    largest_of,
    load,
    mul,
    native,
    splat,
    store,
    sub,
    where,
)
from leastaction.backends.loops.rows import HEAVY, add_later, clear
from leastaction.backends.loops.strips import add_cell, read_rows
from leastaction.backends.loops.sweep import read_solver, read_term
from leastaction.backends.loops.team import BEGIN, CHORD, CHORD_REST, PLACE, PUSH, PUSH_REST, read_team, share

# When the force at a point is evaluated: once, since its place is known; in every iteration; or at the end.
FIXED, MOVING, LAST = range(3)


@native
def _add_later(S, I, D, T, J, role):
    """What later phases add to the forces at the points of a role."""
    for i in range(T.points):
        if T.role[i] == role:
            point, f = at(T.point, i * T.inputs * W), at(T.values, i * T.outputs * W)
            q, v = at(point, W), at(point, W + (S.n + 1) * W)
            add_later(I, D, J, T.rows, point[0], q, v, f, f)


@native
def _add_cell(S, I, D, T, R, cell, role):
    """What a cell of the first phase gives at the points of a role."""
    for i in range(T.points):
        if T.role[i] == role:
            point, f = at(T.point, i * T.inputs * W), at(T.values, i * T.outputs * W)
            clear(R, cell, f)
            add_cell(I, D, R, cell, point[0], at(point, W), at(point, W + (S.n + 1) * W), f, f)


@native
def swift_begin(S, I, D, q, z, scale):
    """Before the first iteration: scales, the prediction kept in S.start, forces at fixed points, places of others."""
    T, J = read_term(I, D, S.soft), read_team(I, D, S.team)
    cells = read_rows(I, D, T.rows).phase[1]
    J.q[0], J.z[0], J.scale[0] = address_of(q), address_of(z), address_of(scale)
    renew(S)
    share(I, D, J, BEGIN, cells, begin_piece)
    gather_tops(S, J, cells, 0)
    share(I, D, J, PLACE, cells, place_piece)
    _add_later(S, I, D, T, J, FIXED)


@native
def begin_piece(I, D, J, cell):
    """The scales of a cell's coordinates, and their prediction."""
    S = read_solver(I, D, J.solver[0])
    R = read_rows(I, D, read_term(I, D, S.soft).rows)
    z, scale, top = doubles(J.z[0]), doubles(J.scale[0]), at(J.tops, cell * 2 * max(W, S.kinds))
    for k in range(max(W, S.kinds)):
        top[k] = 0.0
    for e in range(R.own[cell], R.own[cell + 1]):
        first, end = R.owned[4 * e], R.owned[4 * e + 1]
        for c in range(first, end):
            measure_one(S, c, z, scale)
            for v in range(S.s):
                store(at(S.start, c * S.stride + v * W), load(at(z, c * S.stride + v * W)))
        top_of(S, scale, first, end, top)


@native
def place_piece(I, D, J, cell):
    """Where a cell's coordinates are at the points, and what its rows give at fixed ones."""
    S = read_solver(I, D, J.solver[0])
    T = read_term(I, D, S.soft)
    R, q, z = read_rows(I, D, T.rows), doubles(J.q[0]), doubles(J.z[0])
    for e in range(R.own[cell], R.own[cell + 1]):
        raise_to(S, doubles(J.scale[0]), R.owned[4 * e], R.owned[4 * e + 1], ALIKE, S.unit)
    for i in range(T.points):
        if T.role[i] != LAST:
            _place(S, T, R, cell, i, q, z)
    _add_cell(S, I, D, T, R, cell, FIXED)


@native
def _place(S, T, R, cell, i, q, z):
    """Where a cell's coordinates are at point i."""
    point = at(T.point, (i * T.inputs + 1) * W)
    for e in range(R.own[cell], R.own[cell + 1]):
        for c in range(R.owned[4 * e], R.owned[4 * e + 1]):
            store(at(point, c * W), _at_point(S, T, i, load(at(q, c * W)), at(z, c * S.stride)))


@native
def _at_point(S, T, i, q, row):
    total = splat(0.0)
    for v in range(S.s):
        total = fma(load(at(T.A, (v * T.groups + i) * W)), load(at(row, v * W)), total)
    return add(q, total)


@native
def swift_chord(S, I, D, q, p, z, scale, reach, floor):
    """`chord`, for such sums."""
    T, J = read_term(I, D, S.soft), read_team(I, D, S.team)
    R = read_rows(I, D, T.rows)
    cells = R.phase[1]
    J.q[0], J.p[0], J.z[0] = address_of(q), address_of(p), address_of(z)
    J.scale[0], J.reach[0], J.floor[0] = address_of(scale), address_of(reach), address_of(floor)
    share(I, D, J, CHORD, cells, chord_piece)
    _add_later(S, I, D, T, J, MOVING)
    if R.rest > 0:
        share(I, D, J, CHORD_REST, cells if R.rest * W >= HEAVY else 1, chord_rest_piece)
    size, off, far, total = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
    for cell in range(cells):
        seen = at(J.seen, cell * 4 * W)
        size, off = larger(size, load(seen)), larger(off, load(at(seen, W)))
        far, total = larger(far, load(at(seen, 2 * W))), add(total, load(at(seen, 3 * W)))
    see(S, size, off, far, total)


@native
def chord_piece(I, D, J, cell):
    """The forces of a cell's rows; then coordinates that no later row touches go on."""
    S = read_solver(I, D, J.solver[0])
    T = read_term(I, D, S.soft)
    R = read_rows(I, D, T.rows)
    _add_cell(S, I, D, T, R, cell, MOVING)
    for k in range(4):
        store(at(J.seen, (cell * 4 + k) * W), splat(0.0))
    for e in range(R.own[cell], R.own[cell + 1]):
        _chord(S, T, J, cell, R.owned[4 * e + 2], R.owned[4 * e + 3])


@native
def chord_rest_piece(I, D, J, first):
    """The other coordinates go on."""
    _rest(I, D, J, first, _chord)


@native
def _rest(I, D, J, first, go_on):
    """The other coordinates of a cell; where they are few, those of all cells."""
    S = read_solver(I, D, J.solver[0])
    T = read_term(I, D, S.soft)
    R = read_rows(I, D, T.rows)
    end = first + 1 if R.rest * W >= HEAVY else R.phase[1]
    for cell in range(first, end):
        for e in range(R.own[cell], R.own[cell + 1]):
            of = at(R.owned, 4 * e)
            go_on(S, T, J, cell, of[0], of[2])
            go_on(S, T, J, cell, of[3], of[1])


@native
def _chord(S, T, J, cell, first, end):
    """An iteration of the vectors first … end of coordinates, and what the verdict needs of it."""
    s, r, b, seen = S.s, T.points, at(J.b, cell * S.s * W), at(J.seen, cell * 4 * W)
    q, p, z = doubles(J.q[0]), doubles(J.p[0]), doubles(J.z[0])
    scale, reach, floor = doubles(J.scale[0]), doubles(J.reach[0]), doubles(J.floor[0])
    size, off, far, total = load(seen), load(at(seen, W)), load(at(seen, 2 * W)), load(at(seen, 3 * W))
    for c in range(first, end):
        for v in range(s):
            store(at(b, v * W), splat(0.0))
        inverse = load(at(S.M, c * W))
        for m in range(s):
            R = splat(0.0)
            for i in range(r):
                if T.role[i] != LAST:
                    f = mul(splat(T.raw[r + i]), load(at(T.values, (i * T.outputs + c) * W)))
                    R = fma(load(at(T.E, (i * s + m) * W)), f, R)
            if m == s - 1:
                R = sub(R, load(at(p, c * W)))
            R = mul(inverse, R)
            for v in range(s):
                place = at(b, v * W)
                store(place, fma(load(at(S.T, (m * s + v) * W)), R, load(place)))
        ratio, beyond, away, added, _ = move_one(S, c, b, z, scale, reach, floor, 1, splat(1.0))
        size, off, far, total = larger(size, ratio), larger(off, beyond), larger(far, away), add(total, added)
        for i in range(r):
            if T.role[i] == MOVING:
                here = _at_point(S, T, i, load(at(q, c * W)), at(z, c * S.stride))
                store(at(T.point, (i * T.inputs + 1 + c) * W), here)
    store(seen, size)
    store(at(seen, W), off)
    store(at(seen, 2 * W), far)
    store(at(seen, 3 * W), total)


@native
def swift_impulse(S, I, D, q, z, impulse):
    """The impulse, when z is known: forces at the last points are those of z, other forces those from which z came.
    Returns whether the impulse consists of numbers.
    """
    T, J = read_term(I, D, S.soft), read_team(I, D, S.team)
    R = read_rows(I, D, T.rows)
    cells = R.phase[1]
    J.q[0], J.z[0], J.impulse[0] = address_of(q), address_of(z), address_of(impulse)
    share(I, D, J, PUSH, cells, push_piece)
    _add_later(S, I, D, T, J, LAST)
    if R.rest > 0:
        share(I, D, J, PUSH_REST, cells if R.rest * W >= HEAVY else 1, push_rest_piece)
    total = splat(0.0)
    for cell in range(cells):
        total = add(total, load(at(J.seen, cell * 4 * W)))
    return first_of(largest_of(where(sub(total, total), splat(1.0), splat(0.0)))) == 0.0


@native
def push_piece(I, D, J, cell):
    """The forces of a cell's rows at the last points, and the impulse where no later row touches it."""
    S = read_solver(I, D, J.solver[0])
    T = read_term(I, D, S.soft)
    R = read_rows(I, D, T.rows)
    for i in range(T.points):
        if T.role[i] == LAST:
            _place(S, T, R, cell, i, doubles(J.q[0]), doubles(J.z[0]))
    _add_cell(S, I, D, T, R, cell, LAST)
    store(at(J.seen, cell * 4 * W), splat(0.0))
    for e in range(R.own[cell], R.own[cell + 1]):
        _push(S, T, J, cell, R.owned[4 * e + 2], R.owned[4 * e + 3])


@native
def push_rest_piece(I, D, J, first):
    """The impulse of the other coordinates."""
    _rest(I, D, J, first, _push)


@native
def _push(S, T, J, cell, first, end):
    r, impulse, seen = T.points, doubles(J.impulse[0]), at(J.seen, cell * 4 * W)
    every = load(seen)
    for c in range(first, end):
        total = splat(0.0)
        for i in range(r):
            total = fma(splat(T.raw[r + i]), load(at(T.values, (i * T.outputs + c) * W)), total)
        store(at(impulse, c * W), total)
        every = add(every, total)
    store(seen, every)
