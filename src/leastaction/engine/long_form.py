"""Steps that are too long for one Program: what lies where in a trajectory's state, and in the work of its scripts.

A script is a loop over coordinates around short Programs (`kernel.script`). `each` makes a Program of one coordinate,
`once` one of single numbers. What the system computes comes from a `Scripted`: a Lagrangian (`long_lagrangian`) or a
sum over rows of tables (`long_sums`).

How increments are judged: of a Lagrangian, every coordinate on its own scale. Of a sum, coordinates of one kind
together, since a wave that comes to a coordinate at rest would put every step in doubt. With constraints all
coordinates together, weighed by the square roots of constant masses: increments go back and forth between coordinates
that constraints hold together.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from leastaction.engine.form import RESOLVED, SINGLE, Blocks, Form
from leastaction.engine.increment_tables import inverse_of, shifts_of
from leastaction.engine.rescue import Rescue
from leastaction.kernel import Native, native_lanes
from leastaction.kernel.guarded import guarded
from leastaction.kernel.script import Each, Once, Operation, Place, Python
from leastaction.methods import Galerkin
from leastaction.program import Builder, Value
from leastaction.step.form import samples, stencils
from leastaction.step.prediction import WHOLE, Prediction
from leastaction.step.prediction import tables as prediction_tables
from leastaction.step.rows import OneByOne, Row, Table

FloatArray = NDArray[np.float64]

CALLED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
SLOTS = 256  # integers at the beginning of the work


@dataclass
class Sweep:
    """What a system gives at some points of a step.

    operations   that compute it
    times, q, v  where points are written, a component of each
    f, m         where results are found
    adds         whether results are added to what is there
    """

    operations: Sequence[Operation]
    times: Place
    q: Place
    v: Place
    f: Place
    m: Place
    adds: bool


@dataclass(frozen=True)
class Middle:
    """Matrices in the middle of a step: operations that compute entries from a point, and where the point is written.

    entries       where those of each block begin
    row, column   of the upper triangle
    one, other    which of the entries each of these is, and which mirrors it
    held          where multipliers are written
    """

    operations: Sequence[Operation]
    q: Place
    v: Place
    entries: Mapping[str, int]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    one: NDArray[np.int64]
    other: NDArray[np.int64]
    held: Place


@dataclass(frozen=True)
class Held:
    """What a system gives of its constraints at points: from q, and numbers `by` that go with it, numbers of each
    coordinate, f, and of each constraint, g.

    reaction   by multipliers: Gᵀλ, and g
    end        by v: m, and ġ
    lengths    by numbers u: Σ_j G_ij² u_j of each constraint
    """

    operations: Sequence[Operation]
    q: Place
    by: Place
    f: Place
    g: Place


class Scripted(Protocol):
    """What scripts ask of a system and a method.

    kinds       how many kinds of coordinates are judged together, 0: none are
    weighted    whether there is one kind, and the square roots of masses weigh coordinates against each other
    marks       the kind of each coordinate, or, `weighted`, its weight
    channels, vectors   of inputs, and of nodes
    constant, diagonal   the mass depends on parameters alone; and is diagonal, too
    separable   that, f does not depend on v, and m = M v
    curved, hollow   the mass depends on v; its diagonal has zeros: asked with constraints
    stiffness   the blocks of derivatives that shifted chords need
    sweep       forces, and momenta where they are needed, at these nodes
    around      a sweep over one point between two Programs of coordinates
    driven      what brings times and inputs to where the system reads them
    middle      blocks of derivatives at one point, that of one of the times
    held        what constraints give at points
    fill        write addresses, parameters and a constant diagonal mass into the work; gives what has these addresses
    """

    step: Any
    method: Galerkin
    n: int
    kinds: int
    channels: int
    vectors: int
    weighted: bool
    constant: bool
    diagonal: bool
    separable: bool
    curved: bool
    hollow: bool
    stiffness: tuple[str, ...]

    def sweep(self, form: LongForm, name: str, nodes: Sequence[int]) -> Sweep: ...
    def around(self, form: LongForm, before: Each, sweep: Sweep, after: Each) -> list[Operation]: ...
    def driven(self, form: LongForm) -> list[Operation]: ...
    def middle(self, form: LongForm, what: Sequence[str], time: int) -> Middle: ...
    def held(self, form: LongForm, name: str, times: Sequence[int]) -> Held: ...
    def fill(self, form: LongForm, work: FloatArray, params: FloatArray) -> Any: ...
    def marks(self, params: FloatArray) -> FloatArray: ...
    def rescue(self, params: FloatArray) -> Rescue: ...
    def velocity(self, t: float, q: FloatArray, p: FloatArray, params: FloatArray) -> FloatArray: ...


@dataclass
class Work:
    """The work of a script: what lies where. Blocks behind the slots."""

    lanes: int
    end: int = SLOTS
    slots: int = 0
    kept: dict[int, NDArray[Any]] = field(default_factory=dict)
    natives: list[tuple[int, Native, int]] = field(default_factory=list)

    def block(self, size: int) -> int:
        self.end += -(-size // 8) * 8
        return self.end - -(-size // 8) * 8

    def arrays(self, components: int, count: int) -> Place:
        """Arrays of so many vectors of coordinates, with a vector between one and the next: where lines of a cache
        would otherwise fall on each other.
        """
        W = self.lanes
        pitch = (count + 1) * W
        begin = self.block(components * pitch)
        return Place("work", tuple(begin + k * pitch for k in range(components)), W)

    def keep(self, table: NDArray[np.int64]) -> int:
        """A slot for the address of a table."""
        self.kept[self.slots] = table
        self.slots += 1
        return self.slots - 1

    def native(self, native: Native) -> int:
        """A slot for the address of a compiled Program; what it works with has its address in the next one."""
        if all(other is not native for _, other, _ in self.natives):
            self.natives.append((self.slot(2), native, self.block(native.work)))
        return next(slot for slot, other, _ in self.natives if other is native)

    def fill(self, work: FloatArray) -> None:
        """Write the addresses."""
        slots = work.view(np.int64)
        for slot, table in self.kept.items():
            slots[slot] = table.ctypes.data
        for slot, native, room in self.natives:
            slots[slot : slot + 2] = native.address, work.ctypes.data + 8 * room

    def slot(self, count: int) -> int:
        self.slots += count
        return self.slots - count

    def single(self, count: int = 1) -> Place:
        begin = self.block(count)
        return Place("work", tuple(range(begin, begin + count)))


@dataclass(frozen=True)
class _Tables(OneByOne):
    """How FormStepper sees the tables: numbers one by one, the same in all lanes; and vectors of coordinates."""

    lanes: int = 1

    def length(self, count: int) -> int:
        return -(-count // self.lanes)


class LongForm(Form):
    """The memory of long steps, and Programs on it."""

    watches, alone = False, True
    resolved = RESOLVED  # steps shorter than such a part of the coordinate count as that long

    def __init__(self, how: Scripted, lifts: bool = False, varied: int = 0) -> None:
        self.how, self.method = how, how.method
        self.step, self.n, self.s = how.step, how.n, how.method.s
        W = native_lanes()
        self.lanes, self.width, self.side = W, 1, True
        self.watch, self.energy_of, self.varied, self.varies, self.lifts = None, None, varied, False, False
        self.keeps = lifts or varied > 0  # whether explicit steps write z, too
        self.count = -(-self.n // W)  # vectors of coordinates
        self.samples = samples(self.method)
        self.ahead = Prediction(self.s, OneByOne(prediction_tables(self.method.table.modes, self.method.table.growth)))
        of = stencils(self.samples, 1.0)
        nodes = range(len(of.times))
        still = [i for i in nodes if how.separable and not of.gather["q"][i].any()]
        last = [i for i in nodes if how.separable and not of.scatter["f"][i].any() and self.samples.tau[i] == 1.0]
        self.hands_on = bool(still and last) and not how.channels
        self.still, self.last = (still, last) if self.hands_on else ([], [])
        self.moving = [i for i in nodes if i not in self.still and i not in self.last]
        self.soft = how.separable and not how.step.multipliers  # whether the new z follows from forces alone
        self.kinds = how.kinds  # how many kinds are judged together; 0: every coordinate by itself
        self.rows = _Tables(self.tables(), lanes=W)
        self.blocks = self._blocks()
        self.names = {name for name, _ in self.blocks}
        self.work, self.job_slot = Work(W), -1
        self.works: dict[int, Any] = {}  # by the address of a work: what it was filled with, and factors
        self.further: list[Any] = []
        self.functions: list[Any] = []
        self.params_at: list[tuple[int, int]] = []
        self.points: list[Any] = []
        self.middles: list[Any] = []
        self._lay_out()

    def tables(self) -> dict[str, Table]:
        inverse, of, shifts = inverse_of(self.method), self.samples, shifts_of(self.method)
        return {
            "times": lambda h: stencils(of, h).times[:, None], "weights": lambda h: stencils(of, h).weights[:, None],
            "q": stencils(of, 1.0).gather["q"], "v": lambda h: stencils(of, h).gather["v"],
            "f": stencils(of, 1.0).scatter["f"].T, "m": lambda h: stencils(of, h).scatter["m"].T,
            "solve": lambda h: inverse * -h, "minus h": lambda h: np.array([[-h]]),
            **{f"{name} {k}": partial(_powers, shifts[name][:, k : k + 1], power)
               for name, power in (("alpha", 1), ("gamma", 2)) for k in (0, 1)},
        }  # fmt: skip

    # ---- the state, and the work

    def _blocks(self) -> Blocks:
        w, s, K = self.count, self.s, self.kinds
        found = [
            ("q", w), ("p", w), ("carry", 2 * w), ("directions", self.room), ("force", w if self.hands_on else 0),
            ("params", 0), ("inputs", self.how.channels * self.how.vectors),
            ("scale", K or w), ("length", K or w), *((name, 1) for name in SINGLE), ("choice", 1), ("stale", 1),
            ("record", self.ahead.record), ("memory", w * self.ahead.memory), ("Z", w * s),
        ]  # fmt: skip
        return [*found, ("earlier", self.room), ("tables", self.rows.size)]

    def place(self, name: str, components: int | None = None, first: int = 0) -> Place:
        """An operand in the state: components that lie one behind the other."""
        begin, end = self.places[name].start, self.places[name].stop
        W, w = self.lanes, self.count
        if name in ("q", "p", "force", "Z", "memory", "carry") or (name in ("scale", "length") and not self.kinds):
            components = (end - begin) // w if components is None else components
            return Place("state", tuple((begin + (first + k) * w) * W for k in range(components)), W)
        components = end - begin if components is None else components
        return Place("state", tuple((begin + first + k) * W for k in range(components)))

    def table_place(self, name: str, i: int) -> Place:
        """Where the i-th number of a table of one column is."""
        return Place("state", ((self.places["tables"].start + self.rows.starts[name] + i) * self.lanes,))

    def _lay_out(self) -> None:
        how, work = self.how, self.work
        self.times = work.single(len(self.samples.tau) + 1 + self.later)
        self.sweeps: dict[str, Any] = {
            name: how.sweep(self, name, nodes) if nodes else None
            for name, nodes in (("moving", self.moving), ("still", self.still), ("last", self.last))
        }
        self.mass_place = work.arrays(1, self.count)
        self.pushed = work.arrays(1, self.count)
        self.kind = work.arrays(1 if self.kinds > 1 or how.weighted else 0, self.count)
        self.most = work.single(4 * max(1, self.kinds))
        self.errors = work.single(self.ahead.candidates)

    @property
    def height(self) -> int:
        """Rows of the unknowns of a point, those of padding too."""
        return self.count * self.lanes

    @property
    def later(self) -> int:
        """How many times are needed beside those of the nodes and of the middle."""
        return 0

    @cached_property
    def arranged(self) -> NDArray[np.int64]:
        """Where the unknowns of a point lie behind each other."""
        return np.arange(self.n)

    # ---- Programs

    def each(self, build: Any, reads: Mapping[str, Place], **writes: Place) -> Each:
        """A Program of one coordinate. `build` gives its outputs from its blocks; those called "largest …" are
        maxima.
        """
        reads = {**reads, "tables": self.place("tables")}
        B = Builder([(name, len(place.begins)) for name, place in reads.items()])
        program = B.finished(**build(OneByOne(self.rows.tables, B), B.blocks()))
        largest = {name: place for name, place in writes.items() if name.startswith("largest")}
        kept = {name: place for name, place in writes.items() if name not in largest}
        return Each(program, reads, kept, self.count, largest)

    def once(self, build: Any, reads: Mapping[str, Place], **writes: Place) -> Once:
        reads = {**{name: self.place(name) for name in SINGLE}, "tables": self.place("tables"), **reads}
        B = Builder([(name, len(place.begins)) for name, place in reads.items()])
        found = build(OneByOne(self.rows.tables, B), B.blocks())
        writes = {**{name: self.place(name) for name in SINGLE}, **writes}
        return Once(B.finished(**found), reads, {name: writes[name] for name in found})

    def python(self, function: Any) -> Operation:
        """An operation in Python, on the numbers of the state and of the work."""

        def called(state: int, work: int) -> None:
            sizes = self.places["tables"].stop * self.lanes, self.work.end
            function(*(np.ctypeslib.as_array((ctypes.c_double * size).from_address(at))
                       for size, at in zip(sizes, (state, work), strict=True)))  # fmt: skip

        native = CALLED(called)
        slot = self.work.slot(1)
        self.functions.append((slot, native))
        return Python(slot)

    # ---- scales

    def split(self, values: Row, x: Mapping[str, Any]) -> Row:
        """Sizes of this coordinate, by kinds: zero for kinds that it does not belong to."""
        if self.kinds <= 1:
            return [x["kind"][0] * a for a in values] if self.how.weighted else list(values)
        kind = x["kind"][0]
        return [kind.op("eq", float(k)).op("if", a) for a in values for k in range(self.kinds)]

    def own(self, x: Mapping[str, Any], name: str) -> Value:
        """A scale of this coordinate."""
        if self.kinds <= 1:
            return x[name][0] / x["kind"][0] if self.how.weighted else x[name][0]
        kind, found = x["kind"][0], x[name][0]
        for k in range(1, self.kinds):
            found = kind.op("eq", float(k)).where(x[name][k], found)
        return found

    @property
    def judging(self) -> dict[str, Place]:
        """What every Program of coordinates reads to judge them."""
        return {"scale": self.place("scale"), "length": self.place("length"), "kind": self.kind}

    def sizes(self, first: int, count: int) -> Place:
        """Places of maxima: so many, for each kind."""
        K = max(1, self.kinds)
        return Place("work", self.most.begins[first * K : (first + count) * K])

    # ---- from Python

    @cached_property
    def controls(self) -> list[float]:
        return [float(d) for d in self.method.exact_table(20)["d"][1:]]

    def packed(self, rows: FloatArray) -> FloatArray:
        """Rows of a number of each coordinate, or of each multiplier, as a block of the state."""
        rows = np.atleast_2d(rows)
        found = np.zeros((len(rows), -(-rows.shape[1] // self.lanes) * self.lanes))
        found[:, : rows.shape[1]] = rows
        return found.reshape(-1, self.lanes)

    def put(self, x: Mapping[str, FloatArray], lane: int, z: FloatArray, impulse: FloatArray, h: float) -> None:
        x["Z"][:], x["stale"][:] = self.packed(z), 1.0

    def unknowns_of(self, x: Mapping[str, FloatArray]) -> FloatArray:
        return x["Z"].reshape(self.s, -1)[:, : self.n].ravel()

    def solved(self, x: Mapping[str, FloatArray], q: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """z and the impulse of a step that has begun at (q, p) and has landed."""
        carry = x["carry"].reshape(2, -1)[1, : self.n]
        return x["Z"].reshape(self.s, -1)[:, : self.n].copy(), (x["p"].reshape(-1)[: self.n] - p) + carry

    def scratch(self, size: int, old: FloatArray, params: FloatArray) -> FloatArray:
        known, own, *_ = self.works.get(old.ctypes.data, (None, params))
        grown = len(old) < self.work.end  # since the hard way is laid out when a step first needs it
        if known is not None and known() is old and not grown and np.array_equal(own, params):
            return old
        found = guarded((self.work.end,), "work")
        slots, address = found.view(np.int64), found.ctypes.data
        self.work.fill(found)
        for slot, native in self.functions:
            slots[slot] = ctypes.cast(native, ctypes.c_void_p).value or 0
        kept = self.how.fill(self, found, params)
        for begin in self.kind.begins:
            found[begin : begin + self.n] = self.how.marks(params)
        dropped = weakref.ref(found, lambda _: self.works.pop(address, None))
        self.works[address] = dropped, params.copy(), kept, {}
        return found

    def began(
        self, x: Mapping[str, FloatArray], t: float, q: FloatArray, p: FloatArray, h: float, params: FloatArray
    ) -> None:
        """What a trajectory begins with."""
        if not self.moving and not self.step.multipliers:
            return
        v = self.how.velocity(t, q, p, params)
        z, length = np.array(self.controls)[:, None] * (h * v), np.abs(h * v)
        memory = self.packed(z if self.s <= WHOLE else self.method.table.modes @ z)
        x["memory"][: len(memory)] = memory
        x["choice"][:] = float(self.s) if self.s > WHOLE else 0.0
        if not self.kinds:
            x["length"][:] = self.packed(length)
            return
        marks = self.how.marks(params)
        parts = [marks * length] if self.how.weighted else [length[marks == k] for k in range(self.kinds)]
        x["length"][:] = np.array([part.max(initial=0.0) for part in parts])[:, None]


def _powers(x: FloatArray, power: int, h: Any) -> FloatArray:
    return np.asarray(x * h**power)
