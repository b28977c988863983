"""Sums over all rows at one point, by all threads: phase by phase, cell by cell (`backends.cells`)."""

from __future__ import annotations

from leastaction.backends.loops.machine import W, address_of, at, doubles, native, splat, store
from leastaction.backends.loops.strips import add_cell, read_rows
from leastaction.backends.loops.team import ADD, ADD_MORE, read_team, share

HEAVY = 2048  # numbers that threads share rather than leave to one


@native
def clear(R, cell, f):
    """Set f to zero in the ranges of a cell."""
    for e in range(R.own[cell], R.own[cell + 1]):
        for c in range(R.owned[4 * e], R.owned[4 * e + 1]):
            store(at(f, c * W), splat(0.0))


@native
def add_together(S, I, D, rows, t, q, v, f, m, both):
    """f, and m with `both`, ← what all rows give at (t, q, v)."""
    J, R = read_team(I, D, S.team), read_rows(I, D, rows)
    _tell(J, rows, t, q, v, f, m)
    J.mode[0] = both
    share(I, D, J, ADD, R.phase[1], add_piece)
    add_later(I, D, J, rows, t, q, v, f, m)


@native
def _tell(J, rows, t, q, v, f, m):
    J.rows[0], J.t[0] = rows, t
    J.at_q[0], J.at_v[0], J.into_f[0], J.into_m[0] = address_of(q), address_of(v), address_of(f), address_of(m)


@native
def add_piece(I, D, J, cell):
    """A cell of the first phase."""
    R, f, m = read_rows(I, D, J.rows[0]), doubles(J.into_f[0]), doubles(J.into_m[0])
    clear(R, cell, f)
    if J.mode[0] == 1:
        clear(R, cell, m)
    add_cell(I, D, R, cell, J.t[0], doubles(J.at_q[0]), doubles(J.at_v[0]), f, m)


@native
def add_later(I, D, J, rows, t, q, v, f, m):
    """f and m += what the rows of all phases but the first give."""
    R = read_rows(I, D, rows)
    for phase in range(1, R.phases):
        first, end = R.phase[phase], R.phase[phase + 1]
        if J.helpers > 0 and R.heavy[phase] == 1:
            _tell(J, rows, t, q, v, f, m)
            J.first[0] = first
            share(I, D, J, ADD_MORE, end - first, add_more_piece)
        else:
            for cell in range(first, end):
                add_cell(I, D, R, cell, t, q, v, f, m)


@native
def add_more_piece(I, D, J, i):
    """A cell of another phase."""
    R, q, v = read_rows(I, D, J.rows[0]), doubles(J.at_q[0]), doubles(J.at_v[0])
    add_cell(I, D, R, J.first[0] + i, J.t[0], q, v, doubles(J.into_f[0]), doubles(J.into_m[0]))
