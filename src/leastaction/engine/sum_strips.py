"""Tables of coordinates, cut into strips: long stretches of rows that go on in equal steps, and the rest.

Rows are sorted, cell by cell, so that the order in which they were given changes nothing, neighbours in memory are
computed one after the other, and stretches are as long as they can be.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leastaction.kernel import Column, Pattern, native_lanes

LONGEST_STEP = 16  # of a column, from row to row, in a stretch
MOST_PATTERNS = 4  # that code is made for; stretches of others are taken row by row
SHORTEST = 2  # vectors of rows in a stretch


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of a table that one loop goes through.

    pattern   of the columns, or None
    table     as `kernel.strips` reads it
    cells     of each stretch, or vector of rows, the cell that it belongs to; those of a cell follow each other
    rows      which rows of the table given, in their order here; −1 where a vector is not full
    """

    pattern: Pattern | None
    table: NDArray[np.int64] | NDArray[np.int32]
    cells: NDArray[np.int64]
    rows: NDArray[np.int64]

    def pieces(self) -> list[tuple[int, int, int, int, int]]:
        """Of each cell: its number, the address of its table, its stretches or vectors, the rows that the last vector
        lacks, and the rows before them.
        """
        W = native_lanes()
        begins = np.flatnonzero(np.concatenate([[True], self.cells[1:] != self.cells[:-1]])).tolist()
        ends, pitch = [*begins[1:], len(self.cells)], self.table.strides[0]
        if self.pattern is not None:
            lacking, skip = np.zeros(len(self.cells), np.int64), 0
        else:
            lacking, skip = (self.rows.reshape(-1, W) < 0).sum(axis=1), W
        return [
            (int(self.cells[begin]), self.table.ctypes.data + begin * pitch, end - begin, int(lacking[end - 1]),
             begin * skip)
            for begin, end in zip(begins, ends, strict=True)
        ]  # fmt: skip


def cut(table: NDArray[np.int64], cells: NDArray[np.int64] | None = None) -> list[Part]:
    """The parts of a table (rows, columns) whose rows are in these cells."""
    W = native_lanes()
    cells = np.zeros(len(table), np.int64) if cells is None else cells
    order = np.lexsort((*table.T[::-1], cells))
    sorted_rows, cells = table[order], cells[order]
    stretches = _stretches(sorted_rows, cells, W)
    by_pattern: dict[Pattern, list[tuple[int, int]]] = {}
    for begin, end in stretches:
        by_pattern.setdefault(_pattern(sorted_rows[begin : begin + 2], W), []).append((begin, end))
    rows_of = Counter({pattern: sum(e - b for b, e in own) for pattern, own in by_pattern.items()})
    parts, left = [], np.ones(len(table), bool)
    for pattern, _ in rows_of.most_common(MOST_PATTERNS):
        entries, own, rows, first = [], [], [], 0
        for begin, end in by_pattern[pattern]:
            vectors = (end - begin) // W
            stop = begin + vectors * W
            entries.append([first, vectors, *sorted_rows[begin].tolist()])
            own.append(cells[begin])
            rows.append(order[begin:stop])
            left[begin:stop] = False
            first += vectors * W
        parts.append(Part(pattern, np.array(entries, np.int64), np.array(own, np.int64), np.concatenate(rows)))
    if left.any():
        parts.append(_row_by_row(sorted_rows[left], order[left], cells[left], W))
    return parts


def _row_by_row(table: NDArray[np.int64], order: NDArray[np.int64], cells: NDArray[np.int64], W: int) -> Part:
    """A part without a pattern; every cell begins with a vector of its own, and its last row stands for those that the
    last vector lacks.
    """
    own, begins, counts = np.unique(cells, return_index=True, return_counts=True)
    vectors = -(-counts // W)
    firsts = np.cumsum(vectors) - vectors
    places = np.arange(len(table)) + np.repeat(firsts * W - begins, counts)
    total = int(vectors.sum())
    full = np.repeat(table[begins + counts - 1], vectors * W, axis=0).astype(np.int32)
    full[places] = table
    rows = np.full(total * W, -1)
    rows[places] = order
    tiles = full.reshape(total, W, -1).transpose(0, 2, 1)
    return Part(None, np.ascontiguousarray(tiles), np.repeat(own, vectors), rows)


def _stretches(table: NDArray[np.int64], cells: NDArray[np.int64], W: int) -> list[tuple[int, int]]:
    """Stretches begin … end of rows, sorted, in one cell, in which every column goes on in equal steps."""
    if len(table) < SHORTEST * W:
        return []
    steps = np.diff(table, axis=0)
    usable = np.asarray(((steps >= 0) & (steps <= LONGEST_STEP)).all(axis=1)) & (np.diff(cells) == 0)
    changes = np.flatnonzero((steps[1:] != steps[:-1]).any(axis=1) | (usable[1:] != usable[:-1])) + 1
    begins, ends = np.concatenate([[0], changes]), np.concatenate([changes, [len(steps)]])
    long = usable[begins] & (ends - begins + 1 >= SHORTEST * W)
    found, free = [], 0
    for begin, end in zip(begins[long].tolist(), ends[long].tolist(), strict=True):
        begin = max(begin, free)
        if end + 1 - begin >= SHORTEST * W:
            found.append((begin, end + 1))
            free = end + 1
    return found


def _pattern(two: NDArray[np.int64], W: int) -> Pattern:
    """The pattern of a stretch that begins with these two rows."""
    base, steps = two[0].tolist(), (two[1] - two[0]).tolist()
    columns = [Column(step, c, 0) for c, step in enumerate(steps)]
    lead = None
    for c in sorted((c for c, step in enumerate(steps) if step == 1), key=base.__getitem__):
        if lead is None or base[c] - base[lead] >= W:
            lead = c
        columns[c] = Column(1, lead, base[c] - base[lead])
    return tuple(columns)
