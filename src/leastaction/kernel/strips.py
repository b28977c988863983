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

from leastaction.kernel import vector_math
from leastaction.kernel.lower import lower
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


def lower_strip(strip: Strip, lanes: int, library: dict[str, vector_math.Function]) -> str:
    """The IR that defines `strip`."""
    lowered = lower(strip.program, "kernel", lanes, library=library)
    text = lowered.text.replace(
        "define void @kernel(ptr noalias %in, ptr noalias %out, ptr noalias %work)",
        "define internal void @kernel(ptr noalias %in, ptr noalias %out, ptr noalias %work) alwaysinline",
    )
    write = _Writer(strip, lanes)
    body = write.indexed() if strip.pattern is None else write.regular(strip.pattern)
    room = {"in": strip.program.input_size, "out": strip.program.output_size, "work": lowered.work // lanes}
    entry = ["entry:"]
    entry += [f"  %{name} = alloca [{max(1, size)} x {write.type}], align 64" for name, size in room.items()]
    entry += write.shared()
    return "\n".join([text, f"define void @strip({_ARGUMENTS}) {{", *entry, *body, "}", ""])


class _Writer:
    """Writes the lines of a strip."""

    def __init__(self, strip: Strip, lanes: int) -> None:
        self.strip, self.W = strip, lanes
        self.type = f"<{lanes} x double>"
        self._count = 0
        program = strip.program
        used = {args[0] for op, *args in program.code if op == "input"}
        self.reads = [
            (program.input_slice(block).start + c, block, c)
            for block in ("q", "v")
            for c in range(dict(program.inputs)[block])
            if program.input_slice(block).start + c in used
        ]
        first = program.input_slice("params").start
        self.params = [(first + i, i, own) for i, own in enumerate(strip.own) if first + i in used]
        self.timed = 0 in used

    def name(self) -> str:
        self._count += 1
        return f"%x{self._count}"

    def shared(self) -> list[str]:
        """What is the same for all rows: the time, and common parameters."""
        lines = self.put(0, *self.splat("%t")) if self.timed else []
        places = {i: k for k, i in enumerate(i for i, own in enumerate(self.strip.own) if not own)}
        for place, i, own in self.params:
            if not own:
                read, x = self.scalar("%common", str(places[i]))
                lines += read + self.put(place, *self.splat(x))
        return lines

    # Small pieces: lines, and the name of what they define.

    def splat(self, x: str) -> tuple[list[str], str]:
        one, found = self.name(), self.name()
        zeros = ", ".join(["i32 0"] * self.W)
        return [
            f"  {one} = insertelement {self.type} poison, double {x}, i32 0",
            f"  {found} = shufflevector {self.type} {one}, {self.type} poison, <{self.W} x i32> <{zeros}>",
        ], found

    def put(self, place: int, lines: list[str], x: str) -> list[str]:
        """Write a number that the Program reads."""
        at = self.name()
        return [
            *lines,
            f"  {at} = getelementptr {self.type}, ptr %in, i64 {place}",
            f"  store {self.type} {x}, ptr {at}, align 8",
        ]

    def given_number(self, i: int) -> tuple[list[str], str]:
        """What the Program gives."""
        at, x = self.name(), f"%out{i}"
        return [
            f"  {at} = getelementptr {self.type}, ptr %out, i64 {i}",
            f"  {x} = load {self.type}, ptr {at}, align 8",
        ], x

    def scalar(self, array: str, index: str) -> tuple[list[str], str]:
        at, x = self.name(), self.name()
        return [f"  {at} = getelementptr double, ptr {array}, i64 {index}", f"  {x} = load double, ptr {at}"], x

    def vector(self, array: str, index: str) -> tuple[list[str], str]:
        at, x = self.name(), self.name()
        return [
            f"  {at} = getelementptr double, ptr {array}, i64 {index}",
            f"  {x} = load {self.type}, ptr {at}, align 8",
        ], x

    def gathered(self, array: str, indices: Sequence[str]) -> tuple[list[str], str]:
        lines: list[str] = []
        held = "poison"
        for k, index in enumerate(indices):
            read, x = self.scalar(array, index)
            into = self.name()
            lines += [*read, f"  {into} = insertelement {self.type} {held}, double {x}, i32 {k}"]
            held = into
        return lines, held

    def added(self, array: str, index: str, x: str, kind: str) -> list[str]:
        """array[index …] += x, one number or a vector."""
        at, old, new = self.name(), self.name(), self.name()
        return [
            f"  {at} = getelementptr double, ptr {array}, i64 {index}",
            f"  {old} = load {kind}, ptr {at}, align 8",
            f"  {new} = fadd {kind} {old}, {x}",
            f"  store {kind} {new}, ptr {at}, align 8",
        ]

    def scattered(self, array: str, indices: Sequence[str], x: str) -> list[str]:
        lines = []
        for k, index in enumerate(indices):
            one = self.name()
            lines.append(f"  {one} = extractelement {self.type} {x}, i32 {k}")
            lines += self.added(array, index, one, "double")
        return lines

    def own_params(self, row: str) -> list[str]:
        """The parameters of the rows from this one on."""
        lines = []
        order = {i: k for k, i in enumerate(i for i, own in enumerate(self.strip.own) if own)}
        for place, i, own in self.params:
            if own:
                skip, at = self.name(), self.name()
                lines += [f"  {skip} = mul i64 %pitch, {order[i]}", f"  {at} = add i64 {skip}, {row}"]
                lines += self.put(place, *self.vector("%given", at))
        return lines

    def indexed(self) -> list[str]:
        """Every index in the table."""
        W, C = self.W, self.strip.columns
        needed = sorted({c for _, _, c in self.reads} | {write.column for write in self.strip.writes})
        lines = [
            "  br label %head",
            "head:",
            "  %b = phi i64 [ 0, %entry ], [ %b.next, %next ]",
            "  %more = icmp slt i64 %b, %count",
            "  br i1 %more, label %body, label %done",
            "body:",
            f"  %row = mul i64 %b, {W}",
            f"  %begin = mul i64 %b, {W * C}",
        ]
        index: dict[int, list[str]] = {}
        for c in needed:
            index[c] = []
            for k in range(W):
                place, at, short, long = (self.name() for _ in range(4))
                lines += [
                    f"  {place} = add i64 %begin, {c * W + k}",
                    f"  {at} = getelementptr i32, ptr %table, i64 {place}",
                    f"  {short} = load i32, ptr {at}",
                    f"  {long} = zext i32 {short} to i64",
                ]
                index[c].append(long)
        for place, block, c in self.reads:
            lines += self.put(place, *self.gathered(f"%{block}", index[c]))
        lines += self.own_params("%row")
        lines += [
            "  call void @kernel(ptr %in, ptr %out, ptr %work)",
            "  %b.next = add i64 %b, 1",
            "  %further = icmp slt i64 %b.next, %count",
            f"  %last = sub i64 {W}, %lacking",
            f"  %full = select i1 %further, i64 {W}, i64 %last",
            f"  %all = icmp eq i64 %full, {W}",
            "  br i1 %all, label %together, label %each",
            "together:",
        ]
        for i, write in enumerate(self.strip.writes):
            found, x = self.given_number(i)
            lines += found + self.scattered(f"%{write.array}", index[write.column], x)
        lines += [
            "  br label %next",
            "each:",
            "  %k = phi i64 [ 0, %body ], [ %k.next, %each ]",
            "  %k.at = add i64 %begin, %k",
        ]
        for i, write in enumerate(self.strip.writes):
            place, at, short, long, within = (self.name() for _ in range(5))
            lines += [
                f"  {place} = add i64 %k.at, {write.column * W}",
                f"  {at} = getelementptr i32, ptr %table, i64 {place}",
                f"  {short} = load i32, ptr {at}",
                f"  {long} = zext i32 {short} to i64",
                f"  {within} = add i64 %k, {i * W}",
            ]
            read, x = self.scalar("%out", within)
            lines += read + self.added(f"%{write.array}", long, x, "double")
        return [
            *lines,
            "  %k.next = add i64 %k, 1",
            "  %k.on = icmp slt i64 %k.next, %full",
            "  br i1 %k.on, label %each, label %next",
            "next:",
            "  br label %head",
            "done:",
            "  ret void",
        ]

    def regular(self, pattern: Pattern) -> list[str]:
        """Stretches of rows whose columns go on in equal steps."""
        W, C = self.W, self.strip.columns
        lines = [
            "  br label %head",
            "head:",
            "  %s = phi i64 [ 0, %entry ], [ %s.next, %end ]",
            "  %more = icmp slt i64 %s, %count",
            "  br i1 %more, label %stretch, label %done",
            "stretch:",
            f"  %entry.at = mul i64 %s, {2 + C}",
        ]

        def number(k: int, name: str) -> None:
            place, at = self.name(), self.name()
            lines.extend(
                [
                    f"  {place} = add i64 %entry.at, {k}",
                    f"  {at} = getelementptr i64, ptr %table, i64 {place}",
                    f"  {name} = load i64, ptr {at}",
                ]
            )

        number(0, "%first")
        number(1, "%vectors")
        for c in range(C):
            number(2 + c, f"%base{c}")
        for place, block, c in self.reads:
            if pattern[c].step == 0:
                read, x = self.scalar(f"%{block}", f"%base{c}")
                lines += read + self.put(place, *self.splat(x))
        writes = list(enumerate(self.strip.writes))
        summed = [i for i, write in writes if pattern[write.column].step == 0]
        shifted = [i for i, write in writes if pattern[write.column].offset > 0]
        zero = f"<{', '.join(['double 0.0'] * W)}>"
        lines += ["  br label %loop", "loop:", "  %b = phi i64 [ 0, %stretch ], [ %b.next, %loop ]"]
        lines += [f"  %sum{i} = phi {self.type} [ {zero}, %stretch ], [ %sum{i}.next, %loop ]" for i in summed]
        lines += [f"  %last{i} = phi {self.type} [ {zero}, %stretch ], [ %out{i}, %loop ]" for i in shifted]
        lines.append(f"  %row.b = mul i64 %b, {W}")
        lines.append("  %row = add i64 %first, %row.b")
        for c, column in enumerate(pattern):
            if column.step:
                lines.append(f"  %skip{c} = mul i64 %b, {W * column.step}")
                lines.append(f"  %at{c} = add i64 %base{c}, %skip{c}")

        def places(c: int) -> list[str]:
            found = []
            for k in range(W):
                index = self.name()
                lines.append(f"  {index} = add i64 %at{c}, {k * pattern[c].step}")
                found.append(index)
            return found

        for place, block, c in self.reads:
            if pattern[c].step == 1:
                lines += self.put(place, *self.vector(f"%{block}", f"%at{c}"))
            elif pattern[c].step:
                lines += self.put(place, *self.gathered(f"%{block}", places(c)))
        lines += self.own_params("%row")
        lines.append("  call void @kernel(ptr %in, ptr %out, ptr %work)")
        windows: dict[tuple[str, int], list[tuple[int, int, str]]] = {}
        for i, write in writes:
            found, x = self.given_number(i)
            lines += found
            step, lead, offset = pattern[write.column]
            if step == 0:
                lines.append(f"  %sum{i}.next = fadd {self.type} %sum{i}, {x}")
            elif step == 1:
                windows.setdefault((write.array, lead), []).append((offset, i, x))
            else:
                lines += self.scattered(f"%{write.array}", places(write.column), x)
        for (array, lead), members in windows.items():
            total = ""
            for offset, i, x in sorted(members):
                part = x
                if offset:
                    part = self.name()
                    order = ", ".join(f"i32 {W - offset + k}" for k in range(W))
                    lines.append(
                        f"  {part} = shufflevector {self.type} %last{i}, {self.type} {x}, <{W} x i32> <{order}>"
                    )
                if total:
                    both = self.name()
                    lines.append(f"  {both} = fadd {self.type} {total}, {part}")
                    part = both
                total = part
            lines += self.added(f"%{array}", f"%at{lead}", total, self.type)
        lines += [
            "  %b.next = add i64 %b, 1",
            "  %on = icmp slt i64 %b.next, %vectors",
            "  br i1 %on, label %loop, label %end",
            "end:",
        ]
        for i in summed:
            lines += self._flush_sum(i)
        for (array, lead), members in windows.items():
            lines += self._flush_window(array, lead, [(offset, i) for offset, i, _ in sorted(members) if offset])
        return [*lines, "  %s.next = add i64 %s, 1", "  br label %head", "done:", "  ret void"]

    def _flush_sum(self, i: int) -> list[str]:
        """The sum of a coordinate that all rows of a stretch share."""
        lines: list[str] = []
        total = ""
        for k in range(self.W):
            one = self.name()
            lines.append(f"  {one} = extractelement {self.type} %sum{i}.next, i32 {k}")
            if total:
                both = self.name()
                lines.append(f"  {both} = fadd double {total}, {one}")
                one = both
            total = one
        write = self.strip.writes[i]
        return lines + self.added(f"%{write.array}", f"%base{write.column}", total, "double")

    def _flush_window(self, array: str, lead: int, members: Sequence[tuple[int, int]]) -> list[str]:
        """Store what the last vectors of a window's columns have for places behind the window."""
        lines: list[str] = []
        if not members:
            return lines
        behind, begin = self.name(), self.name()
        lines += [f"  {behind} = mul i64 %vectors, {self.W}", f"  {begin} = add i64 %base{lead}, {behind}"]
        for k in range(max(offset for offset, _ in members)):
            index = self.name()
            lines.append(f"  {index} = add i64 {begin}, {k}")
            for offset, i in members:
                if k < offset:
                    one = self.name()
                    lines.append(f"  {one} = extractelement {self.type} %out{i}, i32 {self.W - offset + k}")
                    lines += self.added(f"%{array}", index, one, "double")
        return lines
