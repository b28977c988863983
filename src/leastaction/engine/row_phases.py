"""Rows that may be added at the same time.

Coordinates are cut into ranges, and rows that touch the same ranges form a cell. Cells without a range in common may
be added side by side: they form a phase, and phases follow each other. In a lattice almost all rows lie inside one
range, in the first phase; where rows are all pairs of coordinates, ranges meet each other as the players of a
tournament do. Of each range the two halves are told apart: rows between a range and the next one touch the end of
the first and the beginning of the second, so that all such cells of a lattice are one phase.

The cut depends on the tables alone, never on the threads that add: one thread or many sum each number in the same
order, to the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RANGE = 4096  # coordinates that stay in a core's cache while their rows are added and their steps are done
FEW = 16  # how many ranges there are where rows touch most pairs of ranges
CORES = 4  # number of cores for which cuts are compared
BARRIER = 4096  # rows that could be added while cores wait for each other
MOST_CELLS = 4096

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Cells:
    """A cut.

    of       for each table, the cell of every row
    phases   where each phase begins among the cells, and where the last phase ends
    owned    ranges of coordinates, cell by cell: (cell of the first phase, begin, end; and begin, end of the
             coordinates, about in the middle, that no cell of a later phase touches)
    """

    of: tuple[IntArray, ...]
    phases: tuple[int, ...]
    owned: IntArray

    @property
    def cost(self) -> float:
        """How many rows are added one after the other, on CORES cores."""
        counts = np.zeros(self.phases[-1])
        for cell in self.of:
            counts += np.bincount(cell, minlength=self.phases[-1])
        spans = [counts[a:b] for a, b in zip(self.phases, self.phases[1:], strict=False)]
        return sum(max(float(own.max(initial=0)), float(own.sum()) / CORES) + BARRIER for own in spans)


def cells_of(n: int, tables: Sequence[IntArray], step: int, *, whole: bool = False) -> Cells:
    """The cut of these tables' rows, or with `whole` one cell; ranges begin with multiples of `step`."""
    one = _cut(n, tables, -(-n // step) * step, step)
    sizes = {_even(n, RANGE, step)} if n > RANGE and not whole else set()
    if not whole and sum(map(len, tables)) > FEW * n:
        sizes.add(max(step, -(-n // (FEW * step)) * step))
    found = [one, *(cut for size in sorted(sizes) if size < n and (cut := _cut(n, tables, size, step)) is not None)]
    best = min((cut for cut in found if cut is not None), key=lambda cut: cut.cost)
    return best


def _even(n: int, most: int, step: int) -> int:
    """The length of ranges, at most `most`, of which there are as many for each of CORES cores."""
    count = -(-n // (most * CORES)) * CORES
    return -(-n // (count * step)) * step


def _cut(n: int, tables: Sequence[IntArray], size: int, step: int) -> Cells | None:
    """The cells of ranges of this size; None where these would be too many."""
    count = -(-n // size)
    begins = np.arange(count) * size
    middles = begins + (np.minimum(begins + size, n) - begins) // 2 // step * step
    signatures: list[IntArray] = []  # the sets of ranges that rows touch …
    touches: list[frozenset[int]] = []  # … the halves of ranges, 2k and 2k + 1, of all rows with such a set …
    numbers: list[IntArray] = []  # … and, for each table, which of these sets every row touches
    known = 0
    for table in tables:
        ranges = table // size
        distinct, which = _signatures(ranges, count)
        if known + len(distinct) > MOST_CELLS:
            return None
        signatures += list(distinct)
        touches += _halves(len(distinct), which, 2 * ranges + (table >= middles[ranges]), count)
        numbers.append(which + known)
        known += len(distinct)
    weights = np.zeros(known)
    for which in numbers:
        weights += np.bincount(which, minlength=known)
    sets: dict[frozenset[int], float] = {}
    halves: dict[frozenset[int], frozenset[int]] = {}
    for signature, touch, weight in zip(signatures, touches, weights.tolist(), strict=True):
        touched = frozenset(signature.tolist())
        sets[touched] = sets.get(touched, 0.0) + weight
        halves[touched] = halves.get(touched, frozenset()) | touch
    phases, taken = [[]], [set()]  # type: list[list[frozenset[int]]], list[set[int]]
    for touched in sorted(sets, key=lambda touched: (-sets[touched], sorted(touched))):
        whole = frozenset(2 * k + side for k in touched for side in (0, 1))  # a cell of the first phase owns its ranges
        own = next((k for k, used in enumerate(taken) if not used & (halves[touched] if k else whole)), len(phases))
        if own == len(phases):
            phases.append([])
            taken.append(set())
        phases[own].append(touched)
        taken[own] |= halves[touched] if own else whole
    phases[0] += [frozenset([k]) for k in range(count) if 2 * k not in taken[0]]
    for phase in phases:
        phase.sort(key=sorted)
    order = {touched: k for k, touched in enumerate(touched for phase in phases for touched in phase)}
    place = np.array([order[frozenset(signature.tolist())] for signature in signatures], np.int64)
    of = tuple(place[which] for which in numbers)
    ends = np.cumsum([0, *map(len, phases)]).tolist()
    owners = [(order[touched], k) for touched in phases[0] for k in sorted(touched)]
    return Cells(of, tuple(ends), _owned(n, size, owners, middles, tables, of, ends[1]))


def _signatures(ranges: IntArray, count: int) -> tuple[list[IntArray], IntArray]:
    """The sets of ranges that rows touch, and which of these sets each row touches."""
    key = np.sort(ranges, axis=1)
    sole = np.asarray((key == key[:, :1]).all(axis=1))
    found: list[IntArray] = [np.array([k]) for k in range(count)]
    which = key[:, 0].copy()
    others = key[~sole]
    if len(others):
        distinct, inverse = np.unique(others, axis=0, return_inverse=True)
        which[~sole] = count + inverse.ravel()
        found += list(distinct)
    return found, which


def _halves(sets: int, which: IntArray, halves: IntArray, count: int) -> list[frozenset[int]]:
    """The halves of ranges that the rows of each set touch."""
    touched = np.zeros((sets, 2 * count), bool)
    touched[which[:, None], halves] = True
    owners, found = np.nonzero(touched)
    return [frozenset(own.tolist()) for own in np.split(found, np.searchsorted(owners, np.arange(1, sets)))]


def _owned(
    n: int,
    size: int,
    owners: list[tuple[int, int]],
    middles: IntArray,
    tables: Sequence[IntArray],
    of: Sequence[IntArray],
    first: int,
) -> IntArray:
    """`owned` of the Cells."""
    touched = np.zeros(n, bool)  # whether a cell of a later phase touches a coordinate
    for table, cell in zip(tables, of, strict=True):
        touched[table[cell >= first].ravel()] = True
    places = np.flatnonzero(touched)
    found = []
    for owner, k in owners:
        begin, end = k * size, min((k + 1) * size, n)
        inside = places[np.searchsorted(places, begin) : np.searchsorted(places, end)]
        split = np.searchsorted(inside, middles[k])
        low = int(inside[split - 1]) + 1 if split > 0 else begin
        high = int(inside[split]) if split < len(inside) else end
        found.append((owner, begin, end, low, high))
    return np.array(found, np.int64)
