"""Ranges of coordinates whose rows are added while the coordinates are in the cache.

The rows that touch one range alone are its cell. All other rows are the last cell, which is added when all ranges are
done. In a lattice almost all rows lie inside one range. The cells follow from the tables alone, so that each number is
summed in the same order in every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RANGE = 4096  # coordinates that stay in a core's cache while their rows are added and their steps are done

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Cells:
    """A cut of rows into cells.

    of       for each table, the cell of every row
    phases   where the cells of the ranges begin, and the last cell; and the end
    owned    of each range (cell, begin, end, low, high): the last cell touches no coordinate from low to high
    """

    of: tuple[IntArray, ...]
    phases: tuple[int, ...]
    owned: IntArray


def cells_of(n: int, tables: Sequence[IntArray], step: int, *, whole: bool = False) -> Cells:
    """The cells of these tables' rows, or with `whole` one cell; ranges begin with multiples of `step`."""
    count = 1 if whole else -(-n // RANGE)
    if count == 1:
        return Cells(tuple(np.zeros(len(rows), np.int64) for rows in tables), (0, 1), np.array([[0, 0, n, 0, n]]))
    size = -(-n // (count * step)) * step
    of = []
    for rows in tables:
        ranges = rows // size
        of.append(np.where((ranges == ranges[:, :1]).all(axis=1), ranges[:, 0], count))
    touched = np.zeros(n, bool)  # by the last cell
    for rows, cell in zip(tables, of, strict=True):
        touched[rows[cell == count].ravel()] = True
    owned = []
    for k in range(count):
        begin, end = k * size, min((k + 1) * size, n)
        middle = (begin + end) // 2
        before, behind = np.flatnonzero(touched[begin:middle]), np.flatnonzero(touched[middle:end])
        low = begin + int(before[-1]) + 1 if len(before) else begin
        owned.append((k, begin, end, low, middle + int(behind[0]) if len(behind) else end))
    return Cells(tuple(of), (0, count, count + 1), np.array(owned))
