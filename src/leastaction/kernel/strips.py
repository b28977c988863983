"""Program of a few coordinates → LLVM IR of a loop over rows of a table, W rows side by side in a vector.

Row k of a table names the coordinates that a Program (t, q, v, params) ↦ f, m, … reads and writes. The loop gathers
them, computes, and adds what the Program gives to the places that the row names:

    void strip(double t, const double *q, const double *v, double *f, double *m,
               const int *table, int64 count, int64 lacking, const double *given, int64 pitch, const double *common)

Parameters of which every row has its own lie in `given`, one after the other, each `pitch` numbers long; those that all
rows share in `common`.

Tables of lattices and of pairs are regular: from row to row every column grows by the same number, its step, for long
stretches. With a `Pattern` the steps are constants of the code, and `table` has for each stretch (first row, how many
vectors, and where each column begins), in 64-bit integers:

    step 1      W numbers side by side: one load, one store
    step 0      the same coordinate for all rows: loaded once, summed up in a register, stored at the end
    others      number by number

Columns of step 1 that follow each other at a distance of less than W, as in a chain, write to the same places a moment
later, and a load that overlaps the last store has to wait for it. Such columns form a window: their vectors are shifted
and added in registers, and stored once.

Without a pattern `table` has for each vector of rows, column by column, W 32-bit indices. The last vector may lack some
rows: the places that it has for them are read, and nothing is written there, since other threads may write there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from leastaction.kernel.driver import _Code
from leastaction.kernel.lower import lower
from leastaction.kernel.script import always_inlined
from leastaction.kernel.vector_math import Library
from leastaction.program import Program


class Column(NamedTuple):
    """How a column goes on from row to row: its step; its window's first column, and the distance to that."""

    step: int
    lead: int
    offset: int


Pattern = tuple[Column, ...]


class Write(NamedTuple):
    """Where a number that the Program gives is added: "f" or "m", and the column that names the place."""

    array: str
    column: int


@dataclass(frozen=True)
class Strip:
    """A loop over rows, to be lowered.

    program   (t, q, v, params) ↦ numbers
    writes    where each of them is added
    own       of each parameter, whether every row has its own
    columns   of the table: the coordinates, then further places that are written to
    pattern   of the columns; None: every index is in the table
    """

    program: Program
    writes: tuple[Write, ...]
    own: tuple[bool, ...]
    columns: int
    pattern: Pattern | None


_ARGUMENTS = (
    "double %t, ptr noalias %q, ptr noalias %v, ptr noalias %f, ptr noalias %m, ptr noalias %table, i64 %count, "
    "i64 %lacking, ptr noalias %given, i64 %pitch, ptr noalias %common"
)


def lower_strip(strip: Strip, lanes: int, library: Library) -> str:
    """The IR that defines `strip`."""
    lowered = lower(strip.program, "kernel", lanes, library=library)
    write = _Writer(strip, lanes, lowered.work // lanes)
    if strip.pattern is None:
        write.indexed()
    else:
        write.regular(strip.pattern)
    return always_inlined(lowered.text, "kernel") + write.c.finished(f"void @strip({_ARGUMENTS})", "void")


class _Writer:
    """Writes the code of a strip."""

    def __init__(self, strip: Strip, lanes: int, work: int) -> None:
        self.strip, self.W, self.c = strip, lanes, _Code()
        self.type = f"<{lanes} x double>"
        program = strip.program
        sizes = program.input_size, program.output_size, work
        self.given, self.found, self.work = (self.c.room(max(1, size), self.type) for size in sizes)
        used = {args[0] for op, *args in program.code if op == "input"}
        self.reads = [
            (program.input_slice(block).start + c, f"%{block}", c)
            for block in ("q", "v")
            for c in range(dict(program.inputs)[block])
            if program.input_slice(block).start + c in used
        ]
        first = program.input_slice("params").start
        kinds = [[i for i, own in enumerate(strip.own) if own is kind] for kind in (False, True)]
        common, self.own = ([(first + i, k) for k, i in enumerate(kind) if first + i in used] for kind in kinds)
        if 0 in used:
            self.put(0, self.c.splat("%t", lanes))
        for place, k in common:
            self.put(place, self.spread("%common", k))

    def place(self, array: str, k: int) -> str:
        return self.c.op(f"getelementptr {self.type}, ptr {array}, i64 {k}")

    def put(self, place: int, x: str) -> None:
        """Write a number that the Program reads."""
        self.c.put(self.place(self.given, place), x, self.type)

    def spread(self, array: str, index: str | int) -> str:
        return self.c.splat(self.c.get(self.c.at(array, index), "double"), self.W)

    def gathered(self, array: str, indices: Sequence[str]) -> str:
        held = "poison"
        for k, index in enumerate(indices):
            x = self.c.get(self.c.at(array, index), "double")
            held = self.c.op(f"insertelement {self.type} {held}, double {x}, i32 {k}")
        return held

    def add(self, array: str, index: str, x: str, kind: str = "double") -> None:
        """array[index …] += x, one number or a vector."""
        at = self.c.at(f"%{array}", index)
        self.c.put(at, self.c.op(f"fadd {kind} {self.c.get(at, kind)}, {x}"), kind)

    def lane(self, x: str, k: int) -> str:
        return self.c.op(f"extractelement {self.type} {x}, i32 {k}")

    def scatter(self, array: str, indices: Sequence[str], x: str) -> None:
        for k, index in enumerate(indices):
            self.add(array, index, self.lane(x, k))

    def compute(self, row: str) -> list[str]:
        """What the Program gives for the rows from this one on."""
        for place, k in self.own:
            at = self.c.add(self.c.op(f"mul i64 %pitch, {k}"), row)
            self.put(place, self.c.vector(self.c.at("%given", at), self.W))
        self.c.do(f"call void @kernel(ptr {self.given}, ptr {self.found}, ptr {self.work})")
        return [self.c.get(self.place(self.found, i), self.type) for i in range(len(self.strip.writes))]

    def indexed(self) -> None:
        """Every index in the table."""
        c, W, writes = self.c, self.W, self.strip.writes

        def index(place: str) -> str:
            at = c.op(f"getelementptr i32, ptr %table, i64 {place}")
            return c.op(f"zext i32 {c.op(f'load i32, ptr {at}')} to i64")

        with c.each("%count") as b:
            begin = c.mul(b, W * self.strip.columns)
            needed = sorted({k for _, _, k in self.reads} | {write.column for write in writes})
            at = {column: [index(c.add(begin, column * W + k)) for k in range(W)] for column in needed}
            for place, array, column in self.reads:
                self.put(place, self.gathered(array, at[column]))
            found = self.compute(c.mul(b, W))
            last = c.op(f"icmp eq i64 {c.add(b, 1)}, %count")
            lacks = c.op(f"and i1 {last}, {c.op('icmp ne i64 %lacking, 0')}")
            with c.when(c.op(f"xor i1 {lacks}, true")):
                for write, x in zip(writes, found, strict=True):
                    self.scatter(write.array, at[write.column], x)
            with c.when(lacks), c.each(c.op(f"sub i64 {W}, %lacking")) as k:
                for i, write in enumerate(writes):
                    x = c.get(c.at(self.found, c.add(k, i * W)), "double")
                    self.add(write.array, index(c.add(c.add(begin, k), write.column * W)), x)

    def regular(self, pattern: Pattern) -> None:
        """Stretches of rows whose columns go on in equal steps."""
        c, W, kind = self.c, self.W, self.type
        writes = list(enumerate(self.strip.writes))
        with c.each("%count") as stretch:
            entry = c.mul(stretch, 2 + len(pattern))
            first, vectors, *base = (c.get(c.at("%table", c.add(entry, k))) for k in range(2 + len(pattern)))
            for place, array, column in self.reads:
                if pattern[column].step == 0:
                    self.put(place, self.spread(array, base[column]))
            zero = "zeroinitializer"
            sums = {i: c.variable(zero, kind) for i, write in writes if pattern[write.column].step == 0}
            before = {i: c.variable(zero, kind) for i, write in writes if pattern[write.column].offset > 0}
            with c.each(vectors) as b:
                at = [c.add(x, c.mul(b, W * column.step)) for x, column in zip(base, pattern, strict=True)]

                def places(column: int, at: list[str] = at) -> list[str]:
                    return [c.add(at[column], k * pattern[column].step) for k in range(W)]

                for place, array, column in self.reads:
                    if pattern[column].step == 1:
                        self.put(place, c.vector(c.at(array, at[column]), W))
                    elif pattern[column].step:
                        self.put(place, self.gathered(array, places(column)))
                windows: dict[tuple[str, int], list[tuple[int, int]]] = {}
                found = self.compute(c.add(first, c.mul(b, W)))
                for i, write in writes:
                    step, lead, offset = pattern[write.column]
                    if step == 0:
                        c.put(sums[i], c.op(f"fadd {kind} {c.get(sums[i], kind)}, {found[i]}"), kind)
                    elif step == 1:
                        windows.setdefault((write.array, lead), []).append((offset, i))
                    else:
                        self.scatter(write.array, places(write.column), found[i])
                for (array, lead), members in windows.items():
                    total = ""
                    for offset, i in sorted(members):
                        x = found[i]
                        if offset:
                            order = ", ".join(f"i32 {W - offset + k}" for k in range(W))
                            old = c.get(before[i], kind)
                            x = c.op(f"shufflevector {kind} {old}, {kind} {found[i]}, <{W} x i32> <{order}>")
                            c.put(before[i], found[i], kind)
                        total = c.op(f"fadd {kind} {total}, {x}") if total else x
                    self.add(array, at[lead], total, kind)
            for i, variable in sums.items():
                vector = c.get(variable, kind)
                total, *rest = (self.lane(vector, k) for k in range(W))
                for x in rest:
                    total = c.op(f"fadd double {total}, {x}")
                self.add(self.strip.writes[i].array, base[self.strip.writes[i].column], total)
            for (array, lead), members in windows.items():  # what the last vectors have for places behind the window
                behind = c.add(base[lead], c.mul(vectors, W))
                for k in range(max(offset for offset, _ in members)):
                    for offset, i in sorted(members):
                        if k < offset:
                            self.add(array, c.add(behind, k), self.lane(c.get(before[i], kind), W - offset + k))
