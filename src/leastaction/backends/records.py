"""Records with named fields, shared by Python and the native loops.

A record is a table of fields. From it come the names by which a loop reads it (`loops.machine.reader`), the memory that
Python lays out, and the description of each field:

    number      an integer that a loop reads: a size, or the address of a kernel
    tally       an integer that a loop counts with
    reals       an array of doubles
    integers    an array of integers

An array may have a shape, such as "groups, inputs, W": how many numbers it has, in sums and products of the record's
own numbers and of sizes that are given with them. Then it is room to work in, and begins with zeros.

In memory a record is a row of 64-bit integers: the number itself, or the offset of its array in the integers or the
doubles.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

LINE = 8  # numbers in a cache line: arrays begin with one, so that no vector lies across two
_BYTES = ctypes.c_char * 0


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
        return frozenset(field.name for field in self.fields if not field.shape)

    @cached_property
    def known(self) -> frozenset[str]:
        """The names of all fields, and of the sizes in their shapes."""
        words = " ".join(field.shape for field in self.fields).replace(",", " ").replace("+", " ").split()
        return frozenset(self._places) | {word for word in words if not word.isdigit()}

    def place(self, name: str) -> int:
        """Where a field is in the record's row of integers."""
        return self._places[name]


class Memory:
    """Integers and doubles in which records are laid out."""

    def __init__(self) -> None:
        self._integers: list[NDArray[np.int64]] = []
        self._count = 0  # of integers
        self._doubles: list[NDArray[np.float64]] = []
        self._length = 0
        self._arrays: dict[tuple[int, str], tuple[str, int, int]] = {}
        self.I = np.zeros(0, np.int64)
        self.D = np.zeros(0)

    def copy(self) -> Memory:
        """A copy, to which further records can be added; the records in it are not laid out again."""
        other = Memory()
        other._integers, other._doubles = self._integers.copy(), self._doubles.copy()
        other._count, other._length, other._arrays = self._count, self._length, self._arrays.copy()
        return other

    def duplicate(self) -> Memory:
        """A memory that is laid out, with numbers of its own."""
        other = Memory()
        other._arrays, other.I, other.D = self._arrays, self.I.copy(), aligned(self.D)
        return other

    def add(self, *records: tuple[Record, Mapping[str, Any]]) -> int:
        """Lay out records one after the other; returns where the first begins.

        An array takes its numbers, or how many zeros to begin with; one that has a shape may be left out.
        """
        begin = place = self._count
        rows = np.zeros(sum(len(record.fields) for record, _ in records), np.int64)
        self._integers.append(rows)
        self._count += len(rows)
        for record, values in records:
            if not record.given <= values.keys() <= record.known:
                raise TypeError(f"{record.name}: {record.given - values.keys()}, {values.keys() - record.known}")
            for k, field in enumerate(record.fields):
                value = values[field.name] if field.name in values else field.size(values)
                rows[place - begin + k] = self._put(place, field, value)
            place += len(record.fields)
        return begin

    def _put(self, place: int, field: Field, value: Any) -> int:
        if field.kind in ("number", "tally"):
            return int(value)
        zeros = isinstance(value, int)
        if field.kind == "integers":
            flat: NDArray[Any] = np.zeros(value, np.int64) if zeros else np.asarray(value, np.int64).ravel()
            offset = self._count
            self._integers.append(flat)
            self._count += len(flat)
        else:
            flat = np.zeros(value) if zeros else np.asarray(value, float).ravel()
            offset = self._length
            padded = -(-max(len(flat), 1) // LINE) * LINE
            self._doubles.append(np.concatenate([flat, np.zeros(padded - len(flat))]))
            self._length += padded
        self._arrays[place, field.name] = (field.kind, offset, len(flat))
        return offset

    def finish(self) -> Memory:
        """The memory itself; no record can be added afterwards."""
        self.I = np.concatenate([np.zeros(0, np.int64), *self._integers])
        self.D = aligned(np.concatenate([np.zeros(0), *self._doubles]))
        return self

    def array(self, place: int, name: str) -> NDArray[Any]:
        """A field's array, of the record that begins at this place."""
        kind, offset, length = self._arrays[place, name]
        return (self.D if kind == "reals" else self.I)[offset : offset + length]

    def number(self, place: int, record: Record, name: str) -> int:
        """Where a number or a tally of a record is among the integers."""
        return place + record.place(name)


def aligned(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """A copy that begins with a cache line."""
    copy = aligned_zeros(values.shape)
    copy[...] = values
    return copy


def aligned_zeros(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Zeros that begin with a cache line."""
    size = math.prod(shape)
    memory = np.zeros(size + LINE)
    begin = -ctypes.addressof(_BYTES.from_buffer(memory)) % (8 * LINE) // 8
    return memory[begin : begin + size].reshape(shape)
