"""Sums over rows of tables, at one point: each piece of a cell by its loop."""

from __future__ import annotations

from leastaction.backends.layout import PART, ROWS
from leastaction.backends.loops.machine import at, call_strip, native, reader

read_part = reader(PART)
read_rows = reader(ROWS)


@native
def add_cell(I, D, R, cell, t, q, v, f, m):
    """f and m += what the rows of a cell give at (t, q, v)."""
    for e in range(R.begin[cell], R.begin[cell + 1]):
        piece = at(R.piece, 5 * e)
        P = read_part(I, D, piece[0])
        call_strip(P.kernel, t, q, v, f, m, piece[1], piece[2], piece[3], at(P.given, piece[4]), P.pitch, P.common)


@native
def add_rows(I, D, place, t, q, v, f, m):
    """f and m += what all rows give at (t, q, v)."""
    R = read_rows(I, D, place)
    for cell in range(R.cells):
        add_cell(I, D, R, cell, t, q, v, f, m)


@native
def evaluate(I, D, place, t, q, v, f, m):
    """The same, t in an array."""
    add_rows(I, D, place, t[0], q, v, f, m)
