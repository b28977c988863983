"""Sparse matrices of a sum over rows: the pattern, the order of elimination, and the shifts of a step.

All that depends on the pattern alone is done here, once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.layout import SPARSE
from leastaction.backends.native import loop
from leastaction.backends.records import Memory
from leastaction.backends.shift_tables import held_of, shifts_of
from leastaction.backends.summands import Blocks, padded
from leastaction.kernel import native_lanes
from leastaction.methods import Galerkin

NARROW = 24  # entries beside the diagonal, up to which the order of Cuthill and McKee is as good as any


def add_sparse(memory: Memory, blocks: Blocks, rows: dict[str, int], method: Galerkin, still: bool) -> int:
    """Lay out the matrices of these blocks, m_v and perhaps f_q, sums over `rows`, and their factors; returns where the
    record is. Constraints are further rows and columns.
    """
    n, s, W = len(blocks.unknowns), method.s, native_lanes()
    number = np.zeros(blocks.size, np.int64)
    number[blocks.unknowns] = np.arange(n)
    row, column = number[blocks.row], number[blocks.column]
    order = _order(n, row, column)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    if n > blocks.n:
        order = _held_later(order, place, row, column, blocks.n)
        place[order] = np.arange(n)
    i, j = place[row], place[column]
    mirror = np.searchsorted(blocks.keys, blocks.column * blocks.size + blocks.row)
    above = np.flatnonzero(i <= j)
    above = above[np.lexsort((i[above], j[above]))]
    up = np.concatenate([[0], np.cumsum(np.bincount(j[above], minlength=n))]).astype(np.int64)
    ui = np.ascontiguousarray(i[above])
    parent, counts, mark = (np.zeros(n, np.int64) for _ in range(3))
    loop("sparse.analyse")(n, up, ui, parent, counts, mark)
    lp = np.concatenate([[0], np.cumsum(counts)])
    fill, entries, upper = int(lp[-1]), len(row), len(above)
    names = ("gamma", "into", "out", "into_held", "out_held")
    found = shifts_of(method) | held_of(method)
    shifts = {name: found[name] if "f_q" in blocks.strips else np.zeros((0, 2)) for name in names}
    count = len(shifts["gamma"])
    room = padded(blocks.size)
    held = room + W if n > blocks.n else 1
    return memory.add(
        (SPARSE, {
            "n": n, "entries": entries, "upper": upper, "fill": fill, "shifts": count,
            "stiffness": rows.get("f_q", -1), "masses": rows["m_v"], "rates": rows.get("rates", -1), "still": still,
            "row": blocks.row, "column": blocks.column, "first": above, "second": mirror[above], "up": up, "ui": ui,
            "order": blocks.unknowns[order], "parent": parent, "lp": lp, **shifts,
            "W": W, "s": s, "room": room, "held": held,
        })
    )  # fmt: skip


def _held_later(
    order: NDArray[np.int64], place: NDArray[np.int64], row: NDArray[np.int64], column: NDArray[np.int64], n: int
) -> NDArray[np.int64]:
    """The order, with every multiplier behind the coordinates of its constraint: then no pivot is zero, as long as
    masses are positive and constraints do not depend on each other.
    """
    late = place.astype(float)
    late[n:] = 0.0
    mixed = (row >= n) & (column < n)
    np.maximum.at(late, row[mixed], place[column[mixed]] + 0.5)
    return np.lexsort((place, late)).astype(np.int64)


def _order(n: int, row: NDArray[np.int64], column: NDArray[np.int64]) -> NDArray[np.int64]:
    """An order of elimination: that of Cuthill and McKee for narrow bands, else the least degree first."""
    from scipy.sparse import csc_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    ones = csc_array((np.ones(len(row)), (row, column)), shape=(n, n))
    narrow = reverse_cuthill_mckee(ones.tocsr(), symmetric_mode=True).astype(np.int64)
    place = np.empty(n, np.int64)
    place[narrow] = np.arange(n)
    if len(row) == 0 or np.abs(place[row] - place[column]).max() <= NARROW:
        return narrow
    from scipy.sparse.linalg import splu

    degree = np.bincount(row, minlength=n)
    dominant = csc_array((np.where(row == column, 2.0 * degree[row], -1.0), (row, column)), shape=(n, n))
    lu = splu(dominant, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    order = np.empty(n, np.int64)
    order[np.asarray(lu.perm_c)] = np.arange(n)
    return order
