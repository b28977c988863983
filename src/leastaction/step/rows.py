"""Rows of numbers in a kernel: what belongs to the control points, or to the points of a term, of one coordinate.

    one by one      every number is a value of its own: lanes are trajectories, or there is one lane
    side by side    a row lies in vectors, its numbers in their lanes: one trajectory, the points of its step in vectors

A row may also have a number for each coordinate: `packed` and `sums` make such rows.

Side by side, a table of coefficients has other numbers in every lane, so it is part of what a kernel reads: columns,
each a row, padded with zeros, or, where a kernel needs numbers there, with the last number. One by one a table is
written into the kernel, if it does not depend on h. `Rows` is either of both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.program import LANE, Builder, Value

Row = list[Any]  # Values; where they are known, numbers
Table = NDArray[Any] | Callable[[Any], NDArray[Any]]  # a matrix, (length of a row, columns), or h ↦ such a matrix


def at_step(table: Table, h: Any) -> NDArray[Any]:
    """The matrix of a table at step h."""
    return table(h) if callable(table) else table


def apply(rows: Rows, columns: Sequence[Row], x: Row) -> Row:
    """A matrix, by its columns, times a row."""
    return combine(columns, [rows.number(x, k) for k in range(len(columns))])


def combine(columns: Sequence[Row], numbers: Sequence[Any]) -> Row:
    """The sum of columns times numbers, by halves: two short chains of sums wait less than a long one."""
    if len(columns) > 4:
        half = len(columns) // 2
        parts = combine(columns[:half], numbers[:half]), combine(columns[half:], numbers[half:])
        return [a + b for a, b in zip(*parts, strict=True)]
    total: Row = [0.0] * len(columns[0])
    for column, number in zip(columns, numbers, strict=True):
        total = [a + c * number if _there(c) else a for a, c in zip(total, column, strict=True)]
    return total


def total(numbers: Sequence[Any]) -> Any:
    """A sum by halves."""
    if len(numbers) == 1:
        return numbers[0]
    half = len(numbers) // 2
    return total(numbers[:half]) + total(numbers[half:])


def _there(c: Any) -> bool:
    return isinstance(c, Value) or c != 0


def numbers(rows: Rows, row: Row, count: int) -> list[Any]:
    """The first numbers of a row."""
    return [rows.number(row, i) for i in range(count)]


def size(row: Sequence[Any]) -> Any:
    """The largest absolute values in a row, of those that lie over each other; numbers that are known are zero."""
    return _over([abs(value) for value in row if isinstance(value, Value)])


def _over(values: Sequence[Any]) -> Any:
    found = values[0]
    for value in values[1:]:
        found = found.op("max", value)
    return found


@dataclass(frozen=True)
class OneByOne:
    """Every number a value. Tables that depend on h are a block of what the kernel reads."""

    tables: dict[str, Table] = field(default_factory=dict)
    B: Builder | None = None
    side_by_side = False

    def length(self, count: int) -> int:
        """How many values hold a row of so many numbers."""
        return count

    def number(self, row: Row, i: int) -> Any:
        """The i-th number of a row."""
        return row[i]

    def largest(self, values: Sequence[Value]) -> Value:
        """The largest of all numbers in some values."""
        return _over(values)

    def packed(self, values: Sequence[Value]) -> Row:
        """A row of the largest numbers in each of the values."""
        return list(values)

    def sums(self, rows: Sequence[Row]) -> Row:
        """A row of the sums of the numbers in each of the rows; where lanes have no number there is a zero."""
        return [total(row) for row in rows]

    def columns(self, name: str) -> list[Row]:
        """The columns of a table."""
        table, pattern = self.tables[name], at_step(self.tables[name], 1.0)
        if not callable(table) or self.B is None:
            return [list(column) for column in pattern.T.tolist()]
        begin = self.starts[name]
        found = self.B.values("tables")[begin : begin + pattern.size]
        entries = np.array([*found, None], object)[:-1].reshape(pattern.shape)
        there = pattern.T != 0
        return [[a if k else 0.0 for a, k in zip(*of, strict=True)] for of in zip(entries.T, there, strict=True)]

    def product(self, name: str, x: Row) -> Row:
        """A table times a row."""
        return apply(self, self.columns(name), x)

    @cached_property
    def starts(self) -> dict[str, int]:
        """Where each table that depends on h begins."""
        sizes = {name: at_step(table, 1.0).size for name, table in self.tables.items() if callable(table)}
        return dict(zip(sizes, accumulate([0, *sizes.values()]), strict=False))

    @property
    def size(self) -> int:
        """How many values all tables take."""
        return len(self.numbers(1.0))

    def numbers(self, h: float) -> NDArray[np.float64]:
        """What the tables are at step h, (size, 1)."""
        found = [np.asarray(table(h), float).ravel() for table in self.tables.values() if callable(table)]
        return np.concatenate([np.zeros(0), *found])[:, None]


@dataclass(frozen=True)
class SideBySide:
    """Rows in vectors of W lanes; the tables are a `block` of what the kernel reads."""

    tables: dict[str, Table]
    lanes: int
    B: Builder | None = None
    repeated: frozenset[str] = frozenset()  # tables padded with their last row
    side_by_side = True

    def length(self, count: int) -> int:
        return -(-count // self.lanes)

    def number(self, row: Row, i: int) -> Any:
        vector = row[i // self.lanes]
        return vector.op(LANE[i % self.lanes]) if isinstance(vector, Value) else vector

    def largest(self, values: Sequence[Value]) -> Value:
        return _over(values).op("largest")

    def packed(self, values: Sequence[Value]) -> Row:
        return self._folded("fold", values)

    def sums(self, rows: Sequence[Row]) -> Row:
        return self._folded("sum", [total(row) for row in rows])

    def _folded(self, how: str, values: Sequence[Value]) -> Row:
        row, nothing = [], Value(values[0].B, values[0].B.const(0.0))
        for begin in range(0, len(values), self.lanes):
            group = list(values[begin : begin + self.lanes])
            group += [nothing] * (self.lanes - len(group))
            k = 1
            while len(group) > 1:
                group = [a.op(f"{how}{k}", b) for a, b in zip(group[::2], group[1::2], strict=True)]
                k *= 2
            row += group
        return row

    def columns(self, name: str) -> list[Row]:
        assert self.B is not None
        values, (begin, height, width) = self.B.values("tables"), self.places[name]
        return [values[begin + k * height : begin + (k + 1) * height] for k in range(width)]

    def product(self, name: str, x: Row) -> Row:
        columns = self.columns(name)
        there = [k for k, column in enumerate(at_step(self.tables[name], 1.0).T) if np.any(column)]
        return combine([columns[k] for k in there], [self.number(x, k) for k in there])

    @cached_property
    def places(self) -> dict[str, tuple[int, int, int]]:
        """Where each table begins, how many vectors a column is, and how many columns there are."""
        found, begin = {}, 0
        for name, table in self.tables.items():
            count, width = at_step(table, 1.0).shape
            height = self.length(count)
            found[name] = (begin, height, width)
            begin += height * width
        return found

    @property
    def size(self) -> int:
        return sum(height * width for _, height, width in self.places.values())

    def numbers(self, h: float) -> NDArray[np.float64]:
        found = np.zeros((self.size, self.lanes))
        for name, (begin, height, width) in self.places.items():
            matrix = np.asarray(at_step(self.tables[name], h), float)
            columns = np.zeros((width, height * self.lanes))
            columns[: matrix.shape[1], : len(matrix)] = matrix.T
            if name in self.repeated:
                columns[: matrix.shape[1], len(matrix) :] = matrix[-1][:, None]
            found[begin : begin + height * width] = columns.reshape(-1, self.lanes)
        return found


Rows = OneByOne | SideBySide
