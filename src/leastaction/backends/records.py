"""Records with named fields, shared by Python and the native loops.

A record is a table of fields. From it come the names by which a loop reads it (`loops.machine.reader`), the memory that
Python lays out, and the description of each field:

    number      an integer that a loop reads: a size, or the address of a kernel
    tally       an integer that a loop counts with
    reals       an array of doubles
    integers    an array of integers

An array may have a shape, such as "groups, inputs, W": how many numbers it has, in sums and products of the record's
own numbers and of sizes that are given with them. Then it is room to work in, and begins with zeros. What kernels need
to work in is asked of all of them before memory is laid out: these sizes are given at the end (`Memory.finish`).

In memory a record is a row of 64-bit integers: the number itself, or the offset of its array in the integers or the
doubles.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leastaction.kernel.guarded import copied, pitch, side_by_side

LATE = {"scratch", "pushed_scratch"}  # sizes that are known when all kernels of a run are


@dataclass(frozen=True)
class Field:
    name: str
    kind: Literal["number", "tally", "reals", "integers"]
    meaning: str
    shape: str = ""

    def size(self, sizes: Mapping[str, Any]) -> int:
        """How many numbers the array has."""

        def product(words: str) -> int:
            return math.prod(int(word) if word.isdigit() else int(sizes[word]) for word in words.split())

        return math.prod(sum(map(product, extent.split("+"))) for extent in self.shape.split(","))

    @cached_property
    def words(self) -> frozenset[str]:
        """The sizes in the shape."""
        return frozenset(word for word in re.findall(r"\w+", self.shape) if not word.isdigit())

    @cached_property
    def late(self) -> bool:
        """Whether this depends on sizes that are given at the end."""
        return not LATE.isdisjoint({self.name, *self.words})


@dataclass(frozen=True)
class Record:
    """A table of fields."""

    name: str
    fields: tuple[Field, ...]

    @classmethod
    def of(cls, name: str, **kinds: Mapping[str, str | tuple[str, str]]) -> Record:
        """From the fields of each kind, with their meanings, or with shapes and meanings."""
        found = []
        for kind, fields in kinds.items():
            for field, told in fields.items():
                shape, meaning = ("", told) if isinstance(told, str) else told
                found.append(Field(field, kind, meaning, shape))  # type: ignore[arg-type]
        return cls(name, tuple(found))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {field.name: place for place, field in enumerate(self.fields)}

    @cached_property
    def given(self) -> frozenset[str]:
        """The names of the fields without a shape."""
        return frozenset(field.name for field in self.fields if not field.shape and not field.late)

    @cached_property
    def known(self) -> frozenset[str]:
        """The names of all fields, and of the sizes in their shapes."""
        return frozenset(self._places).union(*(field.words for field in self.fields))

    def place(self, name: str) -> int:
        """Where a field is in the record's row of integers."""
        return self._places[name]


class Memory:
    """Integers and doubles in which records are laid out."""

    def __init__(self) -> None:
        self._parts: dict[str, list[tuple[str, NDArray[Any]]]] = {"integers": [], "reals": []}
        self._ends = {"integers": 0, "reals": 0}
        self._late: list[tuple[int, int, Record, Field, Mapping[str, Any]]] = []
        self._arrays: dict[tuple[int, str], tuple[str, int, int]] = {}
        self.I = np.zeros(0, np.int64)
        self.D = np.zeros(0)

    def copy(self) -> Memory:
        """A copy, to which further records can be added; the records in it are not laid out again."""
        other = Memory()
        other._parts = {kind: parts.copy() for kind, parts in self._parts.items()}
        other._ends, other._late, other._arrays = self._ends.copy(), self._late.copy(), self._arrays.copy()
        return other

    def duplicate(self) -> Memory:
        """A memory that is laid out, with numbers of its own."""
        other = Memory()
        other._arrays, other.I, other.D = self._arrays, copied(self.I), copied(self.D)
        return other

    def add(self, *records: tuple[Record, Mapping[str, Any]]) -> int:
        """Lay out records one after the other; returns where the first begins.

        An array takes its numbers, or how many zeros to begin with; one that has a shape may be left out.
        """
        if self.I.size:
            raise RuntimeError(f"the record {records[0][0].name} comes after memory was laid out")
        rows = np.zeros(sum(len(record.fields) for record, _ in records), np.int64)
        begin = place = self._append("integers", "records", rows)
        for record, values in records:
            if not record.given <= values.keys() <= record.known:
                raise TypeError(f"{record.name}: {record.given - values.keys()}, {values.keys() - record.known}")
            for k, field in enumerate(record.fields, place):
                if field.late:
                    self._late.append((k, place, record, field, values))
                else:
                    rows[k - begin] = self._put(place, record, field, values)
            place += len(record.fields)
        return begin

    def finish(self, **sizes: int) -> Memory:
        """The memory itself, laid out with the sizes that are known now; no record can be added afterwards."""
        late = [
            (k, self._put(place, record, field, {**values, **sizes})) for k, place, record, field, values in self._late
        ]
        self.I = side_by_side(self._parts["integers"], np.int64)
        self.D = side_by_side(self._parts["reals"])
        for k, value in late:
            self.I[k] = value
        return self

    def _put(self, place: int, record: Record, field: Field, values: Mapping[str, Any]) -> int:
        """What a record's row of integers holds of a field."""
        value = values[field.name] if field.name in values else field.size(values)
        if field.kind in ("number", "tally"):
            return int(value)
        dtype = np.int64 if field.kind == "integers" else np.float64
        flat: NDArray[Any] = np.zeros(value, dtype) if isinstance(value, int) else np.asarray(value, dtype).ravel()
        offset = self._append(field.kind, f"{record.name}.{field.name}", flat)
        self._arrays[place, field.name] = (field.kind, offset, len(flat))
        return offset

    def _append(self, kind: str, name: str, array: NDArray[Any]) -> int:
        """Where an array comes behind those so far."""
        begin = self._ends[kind]
        self._parts[kind].append((name, array))
        self._ends[kind] += pitch(len(array))
        return begin

    def array(self, place: int, name: str) -> NDArray[Any]:
        """A field's array, of the record that begins at this place."""
        kind, offset, length = self._arrays[place, name]
        return (self.D if kind == "reals" else self.I)[offset : offset + length]

    def number(self, place: int, record: Record, name: str) -> int:
        """Where a number or a tally of a record is among the integers."""
        return place + record.place(name)
