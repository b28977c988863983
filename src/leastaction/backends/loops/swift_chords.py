"""Mass chords of a sum whose mass is constant and diagonal, and whose forces do not depend on velocities.

One is a sweep over the coordinates, and one over the rows for each point that matters. A point whose place does not
depend on z, as that at the start, is evaluated once; one whose force enters the impulse alone, as that at the end, when
z is known.
"""

from __future__ import annotations

from leastaction.backends.loops.increments import move_one, see
from leastaction.backends.loops.machine import W, add, at, fma, larger, load, mul, native, splat, store, sub
from leastaction.backends.loops.sweep import add_up, read_term

# When the force at a point is evaluated: once, since its place is known; in every iteration; or at the end.
FIXED, MOVING, LAST = range(3)


@native
def swift_begin(S, I, D, q, z):
    """The forces at fixed points, and the places of those that move."""
    T = read_term(I, D, S.soft)
    for i in range(T.points):
        if T.role[i] != LAST:
            _place(S, T, i, q, z)
            if T.role[i] == FIXED:
                add_up(S, T, I, D, at(T.point, i * T.inputs * W), at(T.values, i * T.outputs * W))


@native
def _place(S, T, i, q, z):
    """Where the coordinates are at point i; its force makes room."""
    point = at(T.point, (i * T.inputs + 1) * W)
    for c in range(S.n):
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
    T = read_term(I, D, S.soft)
    s, r = S.s, T.points
    for i in range(r):
        if T.role[i] == MOVING:
            add_up(S, T, I, D, at(T.point, i * T.inputs * W), at(T.values, i * T.outputs * W))
    size, off, far, total = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
    for c in range(S.n):
        for v in range(s):
            store(at(S.b, v * W), splat(0.0))
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
                place = at(S.b, v * W)
                store(place, fma(load(at(S.T, (m * s + v) * W)), R, load(place)))
        ratio, beyond, away, added = move_one(S, c, S.b, z, scale, reach, floor, 1, splat(1.0))
        size, off, far, total = larger(size, ratio), larger(off, beyond), larger(far, away), add(total, added)
        for i in range(r):
            if T.role[i] == MOVING:
                here = _at_point(S, T, i, load(at(q, c * W)), at(z, c * S.stride))
                store(at(T.point, (i * T.inputs + 1 + c) * W), here)
    see(S, size, off, far, total)


@native
def swift_impulse(S, I, D, q, z):
    """S.impulse, z being known: the forces at the last points are those of z, others those that z came from."""
    T = read_term(I, D, S.soft)
    r = T.points
    for i in range(r):
        if T.role[i] == LAST:
            _place(S, T, i, q, z)
            add_up(S, T, I, D, at(T.point, i * T.inputs * W), at(T.values, i * T.outputs * W))
    for c in range(S.n):
        total = splat(0.0)
        for i in range(r):
            total = fma(splat(T.raw[r + i]), load(at(T.values, (i * T.outputs + c) * W)), total)
        store(at(S.impulse, c * W), total)
