"""Scripts: what is too long for one Program, as loops over coordinates around short ones.

A script is a list of operations on two arrays, the state of a trajectory and its work. Coordinates lie side by side in
vectors of W numbers, padded to whole vectors.

    Each    a Program of one coordinate, for all of them, W at a time; largest numbers over all coordinates on the way
    Once    a Program of single numbers
    Jobs    loops over rows of tables (`strips`), one after the other
    Call    a compiled Program of all coordinates
    Python  what is rare, or takes long anyway

Addresses of tables, and of compiled Programs, stand at the beginning of the work, 64-bit integers in its slots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from leastaction.kernel.driver import _Code
from leastaction.kernel.lower import lower
from leastaction.kernel.vector_math import Library
from leastaction.program import Program

JOB = ("function", "table", "count", "lacking", "given", "pitch", "common")  # integers of a job


@dataclass(frozen=True)
class Place:
    """Where the components of an operand lie.

    array    "state" or "work"
    begins   of each component, where that of the first coordinate is
    pitch    from W coordinates to the next W; 0: one number for all coordinates
    lane     from one coordinate to the next
    """

    array: str
    begins: tuple[int, ...]
    pitch: int = 0
    lane: int = 1

    @property
    def together(self) -> bool:
        """Whether components lie one behind the other, the same for all coordinates."""
        return not self.pitch and self.begins == tuple(range(self.begins[0], self.begins[0] + len(self.begins)))

    def only(self, *components: int) -> Place:
        return Place(self.array, tuple(self.begins[k] for k in components), self.pitch, self.lane)


class Operation(Protocol):
    def write(self, c: _Code, name: str, lanes: int, library: Library) -> list[str]:
        """Write the operation into the code of a script; returns the texts of functions that it calls."""
        ...


@dataclass(frozen=True)
class Script:
    """Operations, one after the other; with vectors of so many `lanes`, where those of a state have others."""

    operations: Sequence[Operation]
    lanes: int | None = None

    def lower(self, name: str, lanes: int, library: Library) -> list[str]:
        """The IR of `void @name(ptr state, ptr out, ptr work)`, and of what it calls."""
        c, texts = _Code(), []
        for k, operation in enumerate(self.operations):
            texts += operation.write(c, f"part_{name.upper()}_{k}", self.lanes or lanes, library)
        declared = "\n".join(sorted(c.declared))
        return [*texts, declared + "\n" + c.finished(f"void @{name}(ptr %state, ptr %out, ptr %work)", "void")]


@dataclass(frozen=True)
class Each:
    """A Program of one coordinate, for `count` vectors of them.

    reads, writes   blocks of the Program, and where they lie
    largest         blocks of which the largest numbers over all coordinates are written to one place
    """

    program: Program
    reads: Mapping[str, Place]
    writes: Mapping[str, Place]
    count: int
    largest: Mapping[str, Place] = field(default_factory=dict)

    def write(self, c: _Code, name: str, lanes: int, library: Library) -> list[str]:
        return self.between(c, name, lanes, library, "0", str(self.count))

    def apart(self, name: str, lanes: int, library: Library) -> list[str]:
        """A function @name_range(ptr state, ptr work, i64 begin, i64 end) for some of the vectors."""
        c = _Code()
        texts = self.between(c, name, lanes, library, "%begin", "%end")
        declared = "\n".join(sorted(c.declared))
        head = f"void @{name}_range(ptr %state, ptr %work, i64 %begin, i64 %end) noinline"
        return [*texts, declared + "\n" + c.finished(head, "void")]

    def between(self, c: _Code, name: str, lanes: int, library: Library, begin_at: str, end_at: str) -> list[str]:
        """The code for some of the vectors."""
        W, program = lanes, self.program
        kind = "double" if W == 1 else f"<{W} x double>"
        lowered = lower(program, name, W, library=library)
        text = always_inlined(lowered.text, name)
        c.declared.add(f"declare void @{name}(ptr, ptr, ptr)")
        given, found, work = (
            c.room(max(1, size), kind) for size in (program.input_size, program.output_size, lowered.work // W)
        )

        def slot(array: str, i: int) -> str:
            return c.op(f"getelementptr {kind}, ptr {array}, i64 {i}")

        moving, used = [], {args[0] for op, *args in program.code if op == "input"}
        for block, size in program.inputs:
            place, begin = self.reads[block], program.input_slice(block).start
            assert len(place.begins) >= size, (name, block)
            own = [k for k in range(size) if begin + k in used]
            own = [*range(own[0], own[-1] + 1)] if own and W == 1 else own
            if own and W == 1 and place.only(*own).together:
                c.copy(slot(given, begin + own[0]), c.at(f"%{place.array}", place.begins[own[0]]), len(own))
                continue
            for k in own:
                if place.pitch:
                    moving.append((place, place.begins[k], begin + k))
                else:
                    x = c.get(c.at(f"%{place.array}", place.begins[k]), "double")
                    c.put(slot(given, begin + k), x if W == 1 else c.splat(x, W), kind)
        most = {}
        for block in self.largest:
            for k in range(dict(program.outputs)[block]):
                most[block, k] = c.variable("0.0" if W == 1 else "zeroinitializer", kind)
        with c.between(begin_at, end_at) as v:
            for place, begin, i in moving:
                at = c.at(f"%{place.array}", c.add(c.mul(v, place.pitch), begin))
                c.put(slot(given, i), c.vector(at, W, place.lane), kind)
            c.do(f"call void @{name}(ptr {given}, ptr {found}, ptr {work})")
            for block, place in self.writes.items():
                begin, size = program.output_slice(block).start, dict(program.outputs)[block]
                if size and W == 1 and place.together:
                    c.copy(c.at(f"%{place.array}", place.begins[0]), slot(found, begin), size)
                    continue
                for k in range(size):
                    x = c.get(slot(found, begin + k), kind)
                    at = c.at(f"%{place.array}", c.add(c.mul(v, place.pitch), place.begins[k]))
                    c.put_vector(at, x, W, place.lane)
            for (block, k), total in most.items():
                x = c.get(slot(found, program.output_slice(block).start + k), kind)
                c.put(total, c.larger(c.get(total, kind), x, W), kind)
        for (block, k), total in most.items():
            at = c.at(f"%{self.largest[block].array}", self.largest[block].begins[k])
            c.put(at, c.largest(c.get(total, kind), W), "double")
        return [text]


@dataclass(frozen=True)
class Once:
    """A Program of single numbers."""

    program: Program
    reads: Mapping[str, Place]
    writes: Mapping[str, Place]

    def write(self, c: _Code, name: str, lanes: int, library: Library) -> list[str]:
        return Each(self.program, self.reads, self.writes, 1).write(c, name, 1, {})


@dataclass(frozen=True)
class Jobs:
    """Loops over rows: those that the jobs in a slot list, at one point.

    slot      where the address of the jobs is, and behind it their number
    time      of the point
    q, v      where coordinates and velocities begin; f, m where is added what rows give
    """

    slot: int
    time: Place
    q: Place
    v: Place
    f: Place
    m: Place

    def write(self, c: _Code, name: str, lanes: int, library: Library) -> list[str]:
        self.some(c, "0", c.get(c.at("%work", self.slot + 1)))
        return []

    def some(self, c: _Code, begin: str, end: str) -> None:
        """The jobs from one on, up to another."""
        jobs = c.get(c.at("%work", self.slot), "ptr")
        t = c.get(c.at(f"%{self.time.array}", self.time.begins[0]), "double")
        arrays = [c.at(f"%{place.array}", place.begins[0]) for place in (self.q, self.v, self.f, self.m)]
        _call_jobs(c, jobs, begin, end, t, arrays)


def jobs_alone() -> str:
    """The IR of `i64 @jobs(ptr jobs, i64 count, ptr t, ptr q, ptr v, ptr f, ptr m)`."""
    c = _Code()
    _call_jobs(c, "%jobs", "0", "%count", c.get("%t", "double"), ["%q", "%v", "%f", "%m"])
    return c.finished("i64 @jobs(ptr %jobs, i64 %count, ptr %t, ptr %q, ptr %v, ptr %f, ptr %m)", "i64 0")


def _call_jobs(c: _Code, jobs: str, begin: str, end: str, t: str, arrays: Sequence[str]) -> None:
    with c.between(begin, end) as k:
        job = c.at(jobs, c.mul(k, len(JOB)))
        own = {
            field: c.get(c.at(job, i), "i64" if field in ("count", "lacking", "pitch") else "ptr")
            for i, field in enumerate(JOB)
        }
        points = ", ".join(f"ptr {array}" for array in arrays)
        c.do(
            f"call void {own['function']}(double {t}, {points}, ptr {own['table']}, i64 {own['count']}, "
            f"i64 {own['lacking']}, ptr {own['given']}, i64 {own['pitch']}, ptr {own['common']})"
        )


@dataclass(frozen=True)
class Blocked:
    """An Each, jobs and another Each, range of coordinates by range, so that each range is done while it is in the
    cache (`engine.sum_cells`).

    slot     addresses of where the jobs of each cell begin; of where the ranges of each cell of the first phase begin;
             and of the ranges, (begin, end, low, high) in vectors: no later cell touches those from low to high
    phase    cells of the first phase; cells: of all
    ranges   how many there are
    """

    slot: int
    before: Each
    jobs: Jobs
    after: Each
    phase: int
    cells: int
    ranges: int

    def write(self, c: _Code, name: str, lanes: int, library: Library) -> list[str]:
        first, last = f"{name}_before", f"{name}_after"
        texts = [*self.before.apart(first, lanes, library), *self.after.apart(last, lanes, library)]
        c.declared |= {f"declare void @{one}_range(ptr, ptr, i64, i64)" for one in (first, last)}
        jobs, own, ranges = (c.get(c.at("%work", self.slot + k), "ptr") for k in range(3))

        def each(function: str, e: str, begin: int, end: int) -> None:
            a, b = (c.get(c.at(ranges, c.add(c.mul(e, 4), k))) for k in (begin, end))
            c.do(f"call void @{function}_range(ptr %state, ptr %work, i64 {a}, i64 {b})")

        def of(table: str, cell: str) -> tuple[str, str]:
            return c.get(c.at(table, cell)), c.get(c.at(table, c.add(cell, 1)))

        with c.each(self.phase) as cell:
            with c.between(*of(own, cell)) as e:
                each(first, e, 0, 1)
            self.jobs.some(c, *of(jobs, cell))
            with c.between(*of(own, cell)) as e:
                each(last, e, 2, 3)
        with c.between(str(self.phase), str(self.cells)) as cell:
            self.jobs.some(c, *of(jobs, cell))
        with c.each(self.ranges) as e:
            each(last, e, 0, 2)
            each(last, e, 3, 1)
        return texts


@dataclass(frozen=True)
class Call:
    """A compiled Program whose address is in a slot; what it works with has its address in the next one."""

    slot: int
    given: Place
    found: Place

    def write(self, c: _Code, name: str, lanes: int, library: Library) -> list[str]:
        function, work = (c.get(c.at("%work", self.slot + k), "ptr") for k in (0, 1))
        given, found = (c.at(f"%{place.array}", place.begins[0]) for place in (self.given, self.found))
        c.do(f"call void {function}(ptr {given}, ptr {found}, ptr {work})")
        return []


@dataclass(frozen=True)
class Python:
    """A Python function of the addresses of state and work, whose own address is in a slot."""

    slot: int

    def write(self, c: _Code, name: str, lanes: int, library: Library) -> list[str]:
        c.do(f"call void {c.get(c.at('%work', self.slot), 'ptr')}(ptr %state, ptr %work)")
        return []


@dataclass(frozen=True)
class Zero:
    """So many numbers ← 0."""

    to: Place
    count: int

    def write(self, c: _Code, name: str, lanes: int, library: Library) -> list[str]:
        c.declared.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        to = c.at(f"%{self.to.array}", self.to.begins[0])
        c.do(f"call void @llvm.memset.p0.i64(ptr align 8 {to}, i8 0, i64 {8 * self.count}, i1 false)")
        return []


@dataclass(frozen=True)
class When:
    """Operations that are done where a number is not zero, or, with `until`, is zero and becomes one."""

    flag: Place
    operations: Sequence[Operation]
    until: bool = False

    def write(self, c: _Code, name: str, lanes: int, library: Library) -> list[str]:
        at, texts = c.at(f"%{self.flag.array}", self.flag.begins[0]), []
        with c.when(c.op(f"fcmp {'oeq' if self.until else 'une'} double {c.get(at, 'double')}, 0.0")):
            for k, operation in enumerate(self.operations):
                texts += operation.write(c, f"{name}_{k}", lanes, library)
            if self.until:
                c.put(at, "1.0", "double")
        return texts


@dataclass(frozen=True)
class Repeat:
    """Operations that are done again while a number is not zero."""

    flag: Place
    operations: Sequence[Operation]

    def write(self, c: _Code, name: str, lanes: int, library: Library) -> list[str]:
        at, texts = c.at(f"%{self.flag.array}", self.flag.begins[0]), []
        with c.repeat(lambda: c.op(f"fcmp une double {c.get(at, 'double')}, 0.0")):
            for k, operation in enumerate(self.operations):
                texts += operation.write(c, f"{name}_{k}", lanes, library)
        return texts


def always_inlined(text: str, name: str) -> str:
    """The function `name` inlined wherever it is called; what it calls in turn stays as it is."""
    head = f"define void @{name}("
    begin = text.index(head)
    brace = text.index("{", begin)
    line = text[begin:brace].replace(" alignstack(64)", "").replace(" alignstack(32)", "")
    return text[:begin] + line + "alwaysinline " + text[brace:]
