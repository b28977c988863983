"""Sums over rows of tables, at one point: each part by its loop."""

from __future__ import annotations

from leastaction.backends.layout import PART
from leastaction.backends.loops.machine import call_strip, native, reader

PART_SIZE = len(PART.fields)

read_part = reader(PART)


@native
def add_rows(I, D, first, count, t, q, v, f, m):
    """f and m += what all rows give at (t, q, v)."""
    for e in range(count):
        P = read_part(I, D, first + e * PART_SIZE)
        call_strip(P.kernel, t, q, v, f, m, P.table, P.count, P.given, P.pitch, P.common)


@native
def evaluate(I, D, first, count, t, q, v, f, m):
    """The same, t in an array."""
    add_rows(I, D, first, count, t[0], q, v, f, m)
