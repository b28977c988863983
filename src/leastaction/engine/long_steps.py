"""Steps that are too long for one Program: the same iterations as scripts, loops over coordinates (`kernel.script`).

Mass chords on the increments z at the control points. With R the equations of a step (`step.form`), S the method's
Σ b_i l_ν′(c_i) l_m′(c_i) and M the mass,

    dz = −h (S⁻¹ ⊗ M⁻¹) R .

Where the mass is constant, f does not depend on v and m = M v (separable), the new z follows from forces alone,

    z_ν = h Σ_m S⁻¹_νm M⁻¹ (δ_ms p − Σ_i h b_i (l_m(c_i) − δ_ms) f_i),

and nodes differ: at the start of a step the force is known from the last one; the force at its end enters the impulse
alone; the others move. If none moves the step is explicit. The impulse is that of the forces from which z came.

In a first step, what increments show of a coordinate's motion belongs to its scale, too.

How increments are judged: of a Lagrangian, every coordinate on its own scale; of a sum, coordinates of one kind
together, since a wave that comes to a coordinate at rest would put every step in doubt.
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

from leastaction.engine.form import FADING, LONGEST, RESOLVED, SHORTEST, SINGLE, Blocks, Form, Lying
from leastaction.engine.increment_tables import held_of, inverse_of, middle_of, shifts_of
from leastaction.engine.rescue import Rescue
from leastaction.engine.verdict import PATIENCE, STALLED, TINY, ruled
from leastaction.kernel import Native, native_lanes
from leastaction.kernel.elimination import Assemble, Factor, Matrix, Permuted, Profile, SolveLanes, SolveOne, profile
from leastaction.kernel.guarded import guarded
from leastaction.kernel.script import Each, Once, Operation, Place, Python, Script, When
from leastaction.methods import Galerkin
from leastaction.program import Builder, Value, dot
from leastaction.step.form import samples, stencils
from leastaction.step.prediction import WHOLE, Prediction
from leastaction.step.prediction import tables as prediction_tables
from leastaction.step.rows import Row, Table, apply, size, total

FloatArray = NDArray[np.float64]

MOST_PRODUCTS = 1e8  # of an elimination along a profile: some 50 ms
CALLED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
SLOTS = 256  # integers at the beginning of the work
MOST_KINDS = 16  # that are judged together; with more each coordinate is judged by itself


class Scripted(Protocol):
    """What scripts ask of a system and a method.

    kinds            how many kinds of coordinates are judged together, 0: none are
    weighted         whether there is one kind, and the square roots of masses weigh coordinates against each other
    marks            the kind of each coordinate, or, `weighted`, its weight
    channels, vectors   of inputs, and of nodes
    constant, diagonal   the mass depends on parameters alone; and is diagonal, too
    separable        that, f does not depend on v, and m = M v
    stiffness        the blocks of derivatives that shifted chords need
    """

    step: Any
    method: Galerkin
    n: int
    kinds: int
    weighted: bool
    channels: int

    @property
    def vectors(self) -> int: ...

    @property
    def constant(self) -> bool: ...

    @property
    def diagonal(self) -> bool: ...

    @property
    def separable(self) -> bool: ...

    @property
    def stiffness(self) -> tuple[str, ...]: ...

    def sweep(self, form: LongSteps, name: str, nodes: Sequence[int]) -> Sweep:
        """Forces, and momenta where they are needed, at these nodes."""
        ...

    def around(self, form: LongSteps, before: Each, sweep: Sweep, after: Each) -> list[Operation]:
        """A sweep over one point between two Programs of coordinates."""
        ...

    def driven(self, form: LongSteps) -> list[Operation]:
        """What brings times and inputs to where the system reads them."""
        ...

    def middle(self, form: LongSteps, what: Sequence[str], time: int) -> Middle:
        """Blocks of derivatives at one point, that of one of the times."""
        ...

    def fill(self, form: LongSteps, work: FloatArray, params: FloatArray) -> Any:
        """Write addresses, parameters and a constant diagonal mass into the work; returns what has these addresses."""
        ...

    def marks(self, params: FloatArray) -> FloatArray: ...

    @property
    def curved(self) -> bool:
        """Whether the mass depends on v; asked with constraints."""
        ...

    @property
    def hollow(self) -> bool:
        """Whether the diagonal of the mass has zeros; asked with constraints."""
        ...

    def held(self, form: Any, name: str, times: Sequence[int]) -> Any:
        """What constraints give at points (`long_held.Held`)."""
        ...

    def rescue(self, params: FloatArray) -> Rescue: ...

    def velocity(self, t: float, q: FloatArray, p: FloatArray, params: FloatArray) -> FloatArray: ...


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


@dataclass
class Work:
    """The work of a script: what lies where. Named blocks behind the slots."""

    lanes: int
    end: int = SLOTS
    blocks: dict[str, tuple[int, int]] = field(default_factory=dict)
    slots: int = 0
    kept: dict[int, NDArray[Any]] = field(default_factory=dict)
    natives: list[tuple[int, Native, int]] = field(default_factory=list)

    def block(self, name: str, size: int) -> int:
        begin = self.end
        self.blocks[name] = begin, size
        self.end += -(-size // 8) * 8
        return begin

    def arrays(self, name: str, components: int, count: int) -> Place:
        """Arrays of so many vectors of coordinates, with a vector between one and the next: where lines of a cache
        would otherwise fall on each other.
        """
        W = self.lanes
        pitch = (count + 1) * W
        begin = self.block(name, components * pitch)
        return Place("work", tuple(begin + k * pitch for k in range(components)), W)

    def keep(self, table: NDArray[np.int64]) -> int:
        """A slot for the address of a table."""
        self.kept[self.slots] = table
        self.slots += 1
        return self.slots - 1

    def native(self, native: Native) -> int:
        """A slot for the address of a compiled Program; what it works with has its address in the next one."""
        if all(other is not native for _, other, _ in self.natives):
            self.natives.append((self.slot(2), native, self.block("", native.work)))
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

    def single(self, name: str, count: int = 1) -> Place:
        begin = self.block(name, count)
        return Place("work", tuple(range(begin, begin + count)))


class LongSteps(Form):
    """Steps as scripts."""

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
        self.growth = prediction_tables(self.method.table.modes, self.method.table.growth)
        self.ahead = Prediction(self.s, Lying(self.growth))
        of = stencils(self.samples, 1.0)
        nodes = range(len(of.times))
        self.still = [i for i in nodes if how.separable and not of.gather["q"][i].any()]
        self.last = [i for i in nodes if how.separable and not of.scatter["f"][i].any() and self.samples.tau[i] == 1.0]
        self.hands_on = bool(self.still and self.last) and not how.channels
        if not self.hands_on:
            self.still, self.last = [], []
        self.moving = [i for i in nodes if i not in self.still and i not in self.last]
        self.soft = how.separable and not how.step.multipliers  # whether the new z follows from forces alone
        self.kinds = how.kinds  # how many kinds are judged together; 0: every coordinate by itself
        self.rows = _Tables(self.tables(), W)
        self.blocks = self._blocks()
        self.names = {name for name, _ in self.blocks}
        self.work, self.job_slot = Work(W), -1
        self._works: dict[int, Any] = {}  # by the identity of a work: what it was filled with
        self.further: list[Any] = []
        self.functions: list[Any] = []
        self.params_at: list[tuple[int, int]] = []
        self.points: list[Any] = []
        self.middles: list[Any] = []
        self._ways: dict[bool, MassChord | ShiftedChord | None] = {}
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

    # ---- the state

    def _blocks(self) -> Blocks:
        w, s, K = self.count, self.s, self.kinds
        found = [
            ("q", w), ("p", w), ("carry", 2 * w), ("directions", self.room), ("force", w if self.hands_on else 0),
            ("params", 0), ("inputs", self.how.channels * self.how.vectors),
            ("scale", K or w), ("length", K or w), *((name, 1) for name in SINGLE), ("choice", 1), ("stale", 1),
            ("record", self.ahead.record), ("memory", w * self.ahead.memory), ("Z", w * s),
        ]  # fmt: skip
        return [*found, ("earlier", self.room), ("tables", self.rows.size)]

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

    def place(self, name: str, components: int | None = None, first: int = 0) -> Place:
        """An operand in the state: components that lie one behind the other."""
        begin, end = self.places[name].start, self.places[name].stop
        W, w = self.lanes, self.count
        if name in ("q", "p", "force", "Z", "memory", "carry") or (name in ("scale", "length") and not self.kinds):
            components = (end - begin) // w if components is None else components
            return Place("state", tuple((begin + (first + k) * w) * W for k in range(components)), W)
        components = end - begin if components is None else components
        return Place("state", tuple((begin + first + k) * W for k in range(components)))

    def _lay_out(self) -> None:
        how, work = self.how, self.work
        self.times = work.single("times", len(self.samples.tau) + 1 + self.later)
        self.sweeps: dict[str, Any] = {
            name: how.sweep(self, name, nodes) if nodes else None
            for name, nodes in (("moving", self.moving), ("still", self.still), ("last", self.last))
        }
        self.mass_place = work.arrays("mass", 1, self.count)
        self.pushed = work.arrays("pushed", 1, self.count)
        self.kind = work.arrays("kind", 1 if self.kinds > 1 or self.how.weighted else 0, self.count)
        self.most = work.single("most", 4 * max(1, self.kinds))
        self.errors = work.single("errors", self.ahead.candidates)

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

    def table_place(self, name: str, i: int) -> Place:
        """Where the i-th number of a table of one column is."""
        begin = self.places["tables"].start + self.rows.lying.starts[name]
        return Place("state", ((begin + i) * self.lanes,))

    # ---- Programs

    def each(self, build: Any, reads: Mapping[str, Place], **writes: Place) -> Each:
        """A Program of one coordinate. `build` gives its outputs from its blocks; those called "largest …" are
        maxima.
        """
        reads = {**reads, "tables": self.place("tables")}
        B = Builder([(name, len(place.begins)) for name, place in reads.items()])
        rows = Lying(self.tables(), B=B)
        program = B.finished(**build(rows, B.blocks()))
        largest = {name: place for name, place in writes.items() if name.startswith("largest")}
        kept = {name: place for name, place in writes.items() if name not in largest}
        return Each(program, reads, kept, self.count, largest)

    def once(self, build: Any, reads: Mapping[str, Place], **writes: Place) -> Once:
        reads = {**{name: self.place(name) for name in SINGLE}, "tables": self.place("tables"), **reads}
        B = Builder([(name, len(place.begins)) for name, place in reads.items()])
        found = build(Lying(self.tables(), B=B), B.blocks())
        writes = {**{name: self.place(name) for name in SINGLE}, **writes}
        program = B.finished(**found)
        return Once(program, reads, {name: writes[name] for name in found})

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

    def pieces(self) -> dict[str, Any]:
        if not self.moving:
            return {"land": Script(self._explicit())}
        return {
            "first": Script([*self._predicted(), *self._iteration(True)]),
            "again": Script(self._iteration(False)),
            "land": Script(self._land()),
        }

    def begin(self) -> Any:
        if not self.hands_on:
            return None
        last = self.sweeps["last"]
        return Script([*self._forces_of(last), self._kept_force()])

    def _forces_of(self, sweep: Sweep) -> list[Operation]:
        """Forces at the start of a step, by the sweep that serves its end."""

        def here(rows: Any, x: Any) -> Any:
            return {"at": [x["t0"][0] + x["t"][0] * x["period"][0]]}

        def points(rows: Any, x: Any) -> Any:
            return {"point": [x["q"][0]], "f": [0.0]}

        writes = {"point": sweep.q} | ({"f": sweep.f} if sweep.adds else {})
        each = self.each(
            lambda rows, x: {k: v for k, v in points(rows, x).items() if k in writes}, {"q": self.place("q")}, **writes
        )
        return [self.once(here, {}, at=sweep.times), each, *sweep.operations]

    def _kept_force(self) -> Operation:
        last = self.sweeps["last"]
        return self.each(lambda rows, x: {"force": x["f"]}, {"f": last.f}, force=self.place("force"))

    def _times(self) -> Once:
        """The times of all points, that of the middle, and those of further ones."""

        def build(rows: Any, x: Any) -> Any:
            (shares,) = rows.columns("times")
            (later,) = rows.columns("later") if self.later else ((),)
            shares = [*shares, x["h"][0] * 0.5, *later]
            return {"times": [x["t0"][0] + (x["t"][0] * x["period"][0] + a) for a in shares]}

        return self.once(build, {}, times=self.times)

    def _given(self) -> list[Operation]:
        """What the points of a step read beside coordinates: times, inputs."""
        return [self._times(), *self.how.driven(self)]

    def _predicted(self, hard: bool = False) -> list[Operation]:
        """z and the scales of a step; its first points, and where its derivatives are taken."""
        s, K, way = self.s, self.kinds, self.way(hard)
        middle = way is not None and way.middle is not None

        def build(rows: Any, x: Any) -> Any:
            ahead = Prediction(s, Lying(self.growth, B=rows.B))
            z = ahead.propose(x["memory"], x["choice"][0])
            found = {"z": z, **self._points(rows, x, z)}
            if middle:
                place, speed = middle_of(self.method)
                found["middle q"] = [x["q"][0] + dot(place.tolist(), z)]
                found["middle v"] = [dot(speed.tolist(), z) / x["h"][0]]
            if K:
                return found | {"largest": self.split([size(z), abs(x["q"][0])], x)}
            scale = self._clamped(size(z), x["length"][0], abs(x["q"][0]))
            return found | {"scale": [scale], "largest": [abs(x["q"][0]) / scale]}

        reads = {"memory": self.place("memory"), "choice": self.place("choice"), "q": self.place("q"),
                 "lost": self.place("carry", 1), "h": self.place("h"), **self.judging}  # fmt: skip
        writes = {"z": self.place("Z"), **self._point_places()}
        if middle:
            writes |= {"middle q": way.middle.q, "middle v": way.middle.v}
        if not K:
            each = self.each(build, reads, scale=self.place("scale"), largest=self.sizes(3, 1), **writes)
            return [*self._given(), each, *self._foreseen(way)]

        def scales(rows: Any, x: Any) -> Any:
            tops, places = x["most"][:K], x["most"][K:]
            return {"scale": [self._clamped(a, b, q) for a, b, q in zip(tops, x["length"], places, strict=True)]}

        most = Place("work", self.sizes(0, 1).begins + self.sizes(3, 1).begins)
        once = self.once(scales, {"most": most, "length": self.place("length")}, scale=self.place("scale"))
        return [*self._given(), self.each(build, reads, largest=most, **writes), once, *self._foreseen(way)]

    def _clamped(self, top: Value, length: Value, place: Value) -> Value:
        return top.op("min", length * LONGEST).op("max", length * SHORTEST).op("max", place * self.resolved + TINY)

    def _points(self, rows: Any, x: Any, z: Row) -> dict[str, Row]:
        """Where the system is evaluated next."""
        if not self.moving:
            return {}
        every = apply(rows, rows.columns("q"), z)
        found = {"point": [x["q"][0] + (every[i] + x["lost"][0]) for i in self.moving]}
        if not self.how.separable:
            speeds = apply(rows, rows.columns("v"), z)
            found["speed"] = [speeds[i] for i in self.moving]
        sweep = self.sweeps["moving"]
        if sweep.adds:
            found["f"] = [0.0] * len(self.moving)
            if not self.how.separable:
                found["m"] = [0.0] * len(self.moving)
        return found

    def _point_places(self) -> dict[str, Place]:
        sweep = self.sweeps["moving"]
        if sweep is None:
            return {}
        found = {"point": sweep.q} | ({} if self.how.separable else {"speed": sweep.v})
        if sweep.adds:
            found |= {"f": sweep.f} | ({} if self.how.separable else {"m": sweep.m})
        return found

    def _chord(self, rows: Any, x: Any) -> tuple[Row, Value]:
        """The new z of a separable system from its forces, and the impulse but for the last force."""
        (weights,), scatter = rows.columns("weights"), rows.columns("f")
        f = dict(zip(self.moving, x["f"], strict=True)) | dict(zip(self.still, x["force"], strict=False))
        kicks = {i: weights[i] * f[i] for i in sorted(f)}
        R = [total([scatter[i][m] * a for i, a in kicks.items() if scatter[i][m]]) for m in range(self.s)]
        R[-1] = R[-1] - x["p"][0]
        return apply(rows, rows.columns("solve"), [x["mass"][0] * a for a in R]), total([*kicks.values()])

    def _equations(self, rows: Any, x: Any) -> tuple[Row, Value]:
        """R of one coordinate, and the impulse but for the last force."""
        (weights,), scatter = rows.columns("weights"), rows.columns("f")
        f = dict(zip(self.moving, x["f"], strict=True)) | dict(zip(self.still, x["force"], strict=False))
        kicks = {i: weights[i] * f[i] for i in sorted(f)}
        if self.how.separable:
            speeds = apply(rows, rows.columns("v"), x["z"])
            m = {i: v / x["mass"][0] for i, v in enumerate(speeds)}
        else:
            m = dict(zip(self.moving, x["m"], strict=True))
        by_m, more, R = rows.columns("m"), self._further(rows, x), []
        for k in range(self.s):
            terms = [scatter[i][k] * a for i, a in kicks.items() if scatter[i][k]] + more[k]
            R.append(total([*terms, *(by_m[i][k] * (weights[i] * a) for i, a in m.items())]))
        R[-1] = R[-1] - x["p"][0]
        return R, total([*kicks.values(), *more[self.s]])

    def _further(self, rows: Any, x: Any) -> list[Row]:
        """Further terms of the equations of a coordinate, and of its impulse."""
        return [[] for _ in range(self.s + 1)]

    @property
    def _read(self) -> dict[str, Place]:
        """What an iteration reads of a coordinate."""
        moving, nothing = self.sweeps["moving"], Place("work", ())
        found = {"z": self.place("Z"), "f": moving.f if moving else nothing, "force": self.place("force"),
                 "p": self.place("p"), "q": self.place("q"), "lost": self.place("carry", 1), "mass": self.mass_place,
                 "started": self.place("started"), **self.judging}  # fmt: skip
        return found if self.how.separable else found | {"m": moving.m}

    def _iteration(self, first: bool, hard: bool = False) -> list[Operation]:
        soft = self.soft and not hard

        def moved(rows: Any, x: Any) -> Any:
            if soft:
                new, pushed = self._chord(rows, x)
                moves = [a - b for a, b in zip(new, x["z"], strict=True)]
                found = {"pushed": [pushed]}
            else:
                if "solved" in x:
                    moves, found = self.way(hard).increments(rows, x["solved"]), {}
                else:
                    R, _ = self._equations(rows, x)
                    moves, found = apply(rows, rows.columns("solve"), [x["mass"][0] * a for a in R]), {}
                new = [a + b for a, b in zip(x["z"], moves, strict=True)]
            found |= {"z": new, **self._points(rows, x, new)}
            if self.kinds:
                return found | {"largest": self.split([size(moves), size(new)], x)}
            scale = x["started"][0].where(x["scale"][0], x["scale"][0].op("max", size(moves)).op("max", TINY))
            found["scale"] = [scale]
            return found | {"largest": [size(moves) / scale, size(new) / scale]}

        reads = self._read
        writes = {"z": self.place("Z"), **self._point_places(), "largest": self.sizes(0, 2)}
        if soft:
            writes["pushed"] = self.pushed
        if not self.kinds:
            writes["scale"] = self.place("scale")
        operations, way = [*self._evaluated()], self.way(hard)
        if way is not None:
            if first:
                operations += way.factored
            operations += [self.each(lambda rows, x: {"right": way.right(rows, self._equations(rows, x)[0])}, reads,
                                     right=way.place), *self._beside(way), *way.solved]  # fmt: skip
            reads = {name: reads[name] for name in ("z", "q", "lost", "started", "scale", "length", "kind")}
            reads["solved"] = way.place
        return [*operations, self.each(moved, reads, **writes), *self._behind(way), self._verdict(first, hard)]

    def _evaluated(self) -> Sequence[Operation]:
        """What the system gives at the points of a step."""
        return self.sweeps["moving"].operations

    def _beside(self, way: Any) -> list[Operation]:
        """Right-hand sides of what is unknown beside coordinates."""
        return []

    def _behind(self, way: Any) -> list[Operation]:
        """Their increments."""
        return []

    def _foreseen(self, way: Any) -> list[Operation]:
        """Their prediction."""
        return []

    def way(self, hard: bool) -> Any:
        """How the equations of an iteration are solved, the cheap way or the hard one; None: by a number each."""
        if hard not in self._ways:
            self._ways[hard] = ShiftedChord(self) if hard else None if self.how.diagonal else MassChord(self)
        return self._ways[hard]

    def hard_pieces(self) -> dict[str, Any]:
        if not self.moving and not self.step.multipliers:
            return {}
        return {
            "hard": Script([*self._predicted(hard=True), *self._iteration(True, hard=True)]),
            "harder": Script(self._iteration(False, hard=True)),
        }

    def _verdict(self, first: bool, hard: bool) -> Once:
        K, stale = self.kinds, float(hard or not self.soft)
        broken = self.way(hard).broken if first and self.way(hard) is not None else ()

        def build(rows: Any, x: Any) -> Any:
            extra: dict[str, Any]
            if not K:
                sizes, extra = x["sizes"], self._rounding(x, [rows.B.number(1.0)])
            else:
                moves, places = x["sizes"][:K], x["sizes"][K:]
                scale = [x["started"][0].where(a, a.op("max", b).op("max", TINY))
                         for a, b in zip(x["scale"], moves, strict=True)]  # fmt: skip
                extra = {"scale": scale}
                sizes = [_over([a / b for a, b in zip(y, scale, strict=True)]) for y in (moves, places)]
                extra |= self._rounding(x, scale)
            found = ruled(x, *sizes, first=first, patience=PATIENCE, stalled=extra.pop("stalled", STALLED))
            for flag in x["broken"]:
                found["failed"] = [found["failed"][0] | flag]
                found["going"] = [found["going"][0] & ~flag]
            return found | extra | {"stale": [rows.B.number(stale)]}

        flags = Place("work", tuple(place.begins[0] for place in broken))
        reads = {"sizes": self.sizes(0, 2), "broken": flags, "places": self.sizes(3, 1)} | (
            {"scale": self.place("scale")} if K else {}
        )
        return self.once(build, reads, stale=self.place("stale"), **({"scale": self.place("scale")} if K else {}))

    def _again(self) -> list[Operation]:
        """The points of the z found, where these have changed; what the system gives there, and the impulse."""
        reads = {"q": self.place("q"), "lost": self.place("carry", 1), "z": self.place("Z")}
        points = self.each(lambda rows, x: self._points(rows, x, x["z"]), reads, **self._point_places())
        push = self.each(lambda rows, x: {"pushed": [self._equations(rows, x)[1]]}, self._read, pushed=self.pushed)
        return [points, *self._evaluated(), push]

    def _land(self) -> list[Operation]:
        last, s = self.sweeps["last"], self.s

        def moved(rows: Any, x: Any) -> Any:
            q, lost = two_sum(x["q"][0], x["z"][s - 1], x["lost"][0])
            found: dict[str, Any] = {"q": [q], "lost": [lost]}
            if last is not None:
                found |= {"point": [q]} | ({"f": [0.0]} if last.adds else {})
            return found

        reads = {"q": self.place("q"), "lost": self.place("carry", 1), "z": self.place("Z")}
        writes = {"q": self.place("q"), "lost": self.place("carry", 1)}
        if last is not None:
            writes |= {"point": last.q} | ({"f": last.f} if last.adds else {})
        operations: list[Operation] = [When(self.place("stale"), self._again()), self.each(moved, reads, **writes)]
        if last is not None:
            operations += last.operations
        return [*operations, *self._landed(self.last)]

    def _landed(self, late: Sequence[int]) -> list[Operation]:
        """p, and what the next step is predicted from; `late`: nodes whose force is still to be added."""
        K, last, s = self.kinds, self.sweeps["last"], self.s

        def landed(rows: Any, x: Any) -> Any:
            (weights,) = rows.columns("weights")
            impulse = total([x["pushed"][0], *(weights[i] * x["late"][0] for i in late)])
            p, lost = two_sum(x["p"][0], impulse, x["lost p"][0])
            found = {"p": [p], "lost p": [lost]}
            if self.hands_on:
                found["force"] = x["late"]
            ahead = Prediction(s, Lying(self.growth, B=rows.B))
            unit = 1.0 / self.own(x, "scale")
            found["memory"], errors = ahead.assess(x["z"], unit, x["started"][0], x["memory"])
            found["largest errors"] = errors
            if K:
                return found | {"largest": self.split([size(x["z"])], x)}
            return found | {"length": [(x["length"][0] * FADING).op("max", TINY).op("max", size(x["z"]))]}

        reads = {"z": self.place("Z"), "pushed": self.pushed, "p": self.place("p"),
                 "lost p": self.place("carry", 1, 1), "memory": self.place("memory"),
                 "late": last.f if last is not None else Place("work", ()), "started": self.place("started"),
                 **self.judging}  # fmt: skip
        writes = {"p": self.place("p"), "lost p": self.place("carry", 1, 1), "memory": self.place("memory"),
                  "largest errors": self.errors}  # fmt: skip
        if self.hands_on:
            writes["force"] = self.place("force")
        writes |= {"largest": self.sizes(0, 1)} if K else {"length": self.place("length")}

        def done(rows: Any, x: Any) -> Any:
            ahead = Prediction(s, Lying(self.growth, B=rows.B))
            choice, record = ahead.choose(x["errors"], x["started"][0], x["record"])
            found = {"choice": [choice], "record": record, "t": [x["t"][0] + 1.0], "started": [1.0]}
            found |= {"going": [0.0], "failed": [0.0]}
            if K:
                found["length"] = [
                    (a * FADING).op("max", TINY).op("max", b) for a, b in zip(x["length"], x["most"][:K], strict=True)
                ]
            return {name: [a if isinstance(a, Value) else rows.B.number(a) for a in y] for name, y in found.items()}

        judged = {"errors": self.errors, "record": self.place("record")}
        kept = {"choice": self.place("choice"), "record": self.place("record")}
        if K:
            judged |= {"most": self.sizes(0, 1), "length": self.place("length")}
            kept["length"] = self.place("length")
        once = self.once(done, judged, **kept)
        return [self.each(landed, reads, **writes), once]

    def _explicit(self) -> list[Operation]:
        """A step without points that move."""
        last = self.sweeps["last"]
        assert self.hands_on and last is not None

        def moved(rows: Any, x: Any) -> Any:
            (z,), _ = self._chord(rows, x | {"f": []})
            q, lost = two_sum(x["q"][0], z, x["lost"][0])
            found = {"q": [q], "lost": [lost]} | ({"f": [0.0]} if last.adds else {})
            return found | ({"z": [z]} if self.keeps else {})

        def pushed(rows: Any, x: Any) -> Any:
            (weights,) = rows.columns("weights")
            f = {**dict(zip(self.still, x["force"], strict=False)), **dict.fromkeys(self.last, x["late"][0])}
            p, lost = two_sum(x["p"][0], total([weights[i] * f[i] for i in sorted(f)]), x["lost"][0])
            return {"p": [p], "lost": [lost], "force": x["late"]}

        q, p, force = self.place("q"), self.place("p"), self.place("force")
        lost, lost_p = self.place("carry", 1), self.place("carry", 1, 1)
        one = self.each(moved, {"q": q, "p": p, "lost": lost, "force": force, "mass": self.mass_place},
                        q=q, lost=lost, **({"f": last.f} if last.adds else {}),
                        **({"z": self.place("Z")} if self.keeps else {}))  # fmt: skip
        two = self.each(pushed, {"p": p, "lost": lost_p, "force": force, "late": last.f}, p=p, lost=lost_p, force=force)
        done = self.once(lambda rows, x: {"t": [x["t"][0] + 1.0], "started": [rows.B.number(1.0)]}, {})
        here = self.once(
            lambda rows, x: {"at": [x["t0"][0] + (x["t"][0] * x["period"][0] + rows.columns("times")[0][-1])]},
            {},
            at=last.times,
        )
        return [here, *self.how.around(self, one, last, two), done]

    def _rounding(self, x: Any, scale: Sequence[Value]) -> dict[str, Value]:
        """Where it is known: the size below which increments that shrink no more are rounding, `stalled`."""
        return {}

    # ---- from Python

    def put(self, x: Mapping[str, FloatArray], lane: int, z: FloatArray, impulse: FloatArray, h: float) -> None:
        block = np.zeros((self.s, self.count * self.lanes))
        block[:, : self.n] = z
        x["Z"][:] = block.reshape(-1, self.lanes)
        x["stale"][:] = 1.0

    def unknowns_of(self, x: Mapping[str, FloatArray]) -> FloatArray:
        return x["Z"].reshape(self.s, -1)[:, : self.n].ravel()

    def solved(self, x: Mapping[str, FloatArray], q: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """z and the impulse of a step that has begun at (q, p) and has landed."""
        z = self.unknowns_of(x).reshape(self.s, self.n)
        carry = x["carry"].reshape(2, -1)[1, : self.n]
        return z, (x["p"].reshape(-1)[: self.n] - p) + carry

    def scratch(self, size: int, old: FloatArray, params: FloatArray) -> FloatArray:
        known, own, _ = self._works.get(id(old), (None, params, None))
        if known is not None and known() is old and len(old) == self.work.end and np.array_equal(own, params):
            return old
        found = guarded((self.work.end,), "work")
        slots, key = found.view(np.int64), id(found)
        self.work.fill(found)
        for slot, native in self.functions:
            slots[slot] = ctypes.cast(native, ctypes.c_void_p).value or 0
        kept = self.how.fill(self, found, params)
        for begin in self.kind.begins:
            found[begin : begin + self.n] = self.how.marks(params)
        address = found.ctypes.data

        def dropped(_: Any) -> None:
            self._works.pop(key, None)
            for way in self._ways.values():
                if way is not None:
                    way.factors.pop(address, None)

        self._works[key] = weakref.ref(found, dropped), params.copy(), kept
        return found

    def began(
        self, x: Mapping[str, FloatArray], t: float, q: FloatArray, p: FloatArray, h: float, params: FloatArray
    ) -> None:
        """What a trajectory begins with."""
        if not self.moving and not self.step.multipliers:
            return
        v = self.how.velocity(t, q, p, params)
        W, w = self.lanes, self.count
        z = np.array(self.controls)[:, None] * (h * v)
        memory = np.zeros((self.ahead.memory, w * W))
        memory[: self.s, : self.n] = z if self.s <= WHOLE else self.method.table.modes @ z
        x["memory"][:] = memory.reshape(-1, W)
        x["choice"][:] = float(self.s) if self.s > WHOLE else 0.0
        length = np.zeros(w * W)
        length[: self.n] = np.abs(h * v)
        if self.kinds:
            marks, own = self.how.marks(params), length[: self.n]
            parts = [marks * own] if self.how.weighted else [own[marks == k] for k in range(self.kinds)]
            x["length"][:] = np.array([part.max(initial=0.0) for part in parts])[:, None]
        else:
            x["length"][:] = length.reshape(-1, W)

    @cached_property
    def controls(self) -> list[float]:
        return [float(d) for d in self.method.exact_table(20)["d"][1:]]


def _powers(x: FloatArray, power: int, h: Any) -> FloatArray:
    return np.asarray(x * h**power)


@dataclass(frozen=True)
class Middle:
    """Matrices in the middle of a step: operations that compute entries from a point, and where the point is written.

    entries       where those of each block begin
    row, column   of the upper triangle
    one, other    which of the entries each of these is, and which mirrors it
    """

    operations: Sequence[Operation]
    q: Place
    v: Place
    entries: Mapping[str, int]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    one: NDArray[np.int64]
    other: NDArray[np.int64]
    held: Place  # where multipliers are written


class Eliminated:
    """A way to solve an iteration's equations by an elimination in the middle of the step."""

    def __init__(self, form: LongSteps, what: Sequence[str], time: int | None = None) -> None:
        self.form, work, W = form, form.work, form.lanes
        self.middle: Middle = form.how.middle(form, what, len(form.samples.tau) if time is None else time)
        row, column, self.n = self.middle.row, self.middle.column, len(form.arranged)
        self.profile = _profile(self.n, np.append(row, column), np.append(column, row), W, form.n)
        places = self.profile.places(row, column)
        mirrored = self.profile.places(column, row)
        table = np.stack([np.where(places >= 0, places, mirrored), self.middle.one, self.middle.other], axis=1)
        self.table = work.keep(np.ascontiguousarray(table))
        index = form.arranged[self.profile.order]
        self.straight = bool((index == np.arange(self.n)).all())
        self.index = work.keep(index)
        self.rows = work.keep(self.profile.tables())
        self.factors: dict[int, list[Any]] = {}  # of SuperLU, by the address of a work

    @cached_property
    def wide(self) -> bool:
        """Whether a profile takes so many products that SuperLU, which orders by least degree, is faster; or where
        multipliers stand beside a mass whose diagonal has zeros, which SuperLU pivots around.
        """
        if self.n > self.form.n and self.form.how.hollow:
            return True
        widths = (self.profile.last - np.arange(self.n)).astype(float)
        return float(widths @ widths) > MOST_PRODUCTS

    def factor_sparse(self, terms: Sequence[Any], broken: Sequence[Place]) -> Operation:
        """Factors of matrices that are sums of entries, as `Assemble` has them, by SuperLU."""
        from scipy.sparse import csc_array
        from scipy.sparse.linalg import splu

        middle, n = self.middle, self.n
        # Without multipliers the matrix is eliminated as it stands; where they are its diagonal has zeros.
        pivots = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}} if n == self.form.n else {}
        where = (np.append(middle.row, middle.column), np.append(middle.column, middle.row))

        def values(state: FloatArray, work: FloatArray, part: Any) -> FloatArray:
            total = np.zeros(len(middle.row))
            for begin, at in part:
                own = 0.5 * (work[begin + middle.one] + work[begin + middle.other])
                total += own if at is None else own * state[at.begins[0]]
            return total

        def factor(state: FloatArray, work: FloatArray) -> None:
            self.factors[work.ctypes.data] = factors = []
            for parts, flag in zip(terms, broken, strict=True):
                x = values(state, work, parts[0]) + (1j * values(state, work, parts[1]) if len(parts) > 1 else 0.0)
                x = np.append(x, np.where(middle.row == middle.column, 0.0, x))
                try:
                    factors.append(splu(csc_array((x, where), shape=(n, n)), permc_spec="MMD_AT_PLUS_A", **pivots))
                    work[flag.begins[0]] = 0.0
                except (RuntimeError, ValueError):
                    work[flag.begins[0]] = 1.0
                    return

        return self.form.python(factor)

    def solve_sparse(self, rights: Any, begins: Sequence[int] = (), length: int = 0) -> Operation:
        """The right-hand sides ← solutions: those that `rights` gives as views, or, of real and imaginary parts at a
        distance of `length`, where they begin.
        """
        own = self.form.arranged

        def solve(state: FloatArray, work: FloatArray) -> None:
            for k, (lu, right) in enumerate(zip(self.factors[work.ctypes.data], rights(work), strict=False)):
                found = lu.solve(np.ascontiguousarray(right[own]))
                if not begins:
                    right[own] = found
                    continue
                work[begins[k] + own] = found.real[:, 0]
                if np.iscomplexobj(found):
                    work[begins[k] + length + own] = found.imag[:, 0]

        return self.form.python(solve)

    def matrix(self, name: str, parts: int) -> Matrix:
        work, n = self.form.work, self.n
        half = self.profile.size + 8
        F = work.block(f"{name} F", parts * half)
        inverse = work.block(f"{name} pivots", parts * n)
        pad = n + 8
        return Matrix(self.rows, n, F, self.profile.size, half, inverse, work.block(f"{name} ratios", parts * pad), pad)


class MassChord(Eliminated):
    """dz = −h (S⁻¹ ⊗ M⁻¹) R with the mass in the middle of the step, or a constant mass, which is factored once."""

    def __init__(self, form: LongSteps) -> None:
        super().__init__(form, ("m_v",))
        work, W, s, n, height = form.work, form.lanes, form.s, self.n, form.height
        vectors = -(-s // W)
        pitch, broken = vectors * W, work.single("mass broken")
        room = height * pitch
        x = work.block("mass right", room)
        self.place = Place("work", tuple(x + k for k in range(s)), W * pitch, pitch)
        self.held = Place("work", tuple(x + form.count * W * pitch + k for k in range(s)), W * pitch, pitch)
        part = (((self.middle.entries["m_v"], None),),)
        if self.wide:
            factor: list[Operation] = [self.factor_sparse([part], [broken])]
            self.solved: list[Operation] = [self.solve_sparse(lambda work: [work[x : x + room].reshape(height, pitch)])]
        else:
            matrix = self.matrix("mass", 1)
            factor = [Assemble(matrix, self.table, len(self.middle.row), part), Factor(matrix, 1, broken)]
            self.solved = [SolveLanes(matrix, x, vectors)]
            if not self.straight:
                y = work.block("mass right ordered", room)
                self.solved = [Permuted(self.index, n, y, x, pitch), SolveLanes(matrix, y, vectors),
                               Permuted(self.index, n, x, y, pitch, back=True)]  # fmt: skip
        factored = [*self.middle.operations, *factor]
        self.factored: list[Operation] = factored
        self.broken = [broken]
        if form.how.constant and n == form.n:
            self.factored = [When(work.single("mass known"), factored, until=True)]

    def right(self, rows: Any, R: Row) -> Row:
        return apply(rows, rows.columns("solve"), R)

    def increments(self, rows: Any, solved: Row) -> Row:
        return solved

    def held_right(self, g: Row) -> Row:
        return [-a for a in g]

    def pushes(self, rows: Any, solved: Row) -> Row:
        return apply(rows, rows.columns("push"), solved)


class ShiftedChord(Eliminated):
    """Derivatives of the middle of the step for all its points: with A⁻¹B = V γ V⁻¹ the equations fall apart into

        X_j = m_v + h α_j (m_q − f_v) + h² γ_j f_q,        X_j w_j = −h (V⁻¹A⁻¹R)_j,        dz = V w,

    one system for each real γ_j and each pair of conjugate ones (`backends.shift_tables`). X is made symmetric.
    """

    def __init__(self, form: LongSteps) -> None:
        super().__init__(form, form.how.stiffness)
        work, n, W, entries, height = form.work, self.n, form.lanes, self.middle.entries, form.height
        self.shifts = shifts_of(form.method) | held_of(form.method)
        self.complex = [bool(g[1] != 0.0) for g in self.shifts["gamma"]]
        self.broken = [work.single(f"shift {e} broken") for e in range(len(self.complex))]
        length, terms, begins, x = height + 3 * W, [], [], []
        for e, both in enumerate(self.complex):
            own: list[Any] = []
            for k in range(1 + both):
                part: list[Any] = [] if k else [(entries["m_v"], None)]
                part.append((entries["f_q"], form.table_place(f"gamma {k}", e)))
                part += [(entries[name], form.table_place(f"alpha {k}", e)) for name in ("gyro",) if name in entries]
                own.append(tuple(part))
            terms.append(tuple(own))
            x.append(work.block(f"shift {e} right", (1 + both) * length + W) + W)
            begins += [x[e] + k * length for k in range(1 + both)]
        self.place = Place("work", tuple(begins), W)
        self.held = Place("work", tuple(begin + form.count * W for begin in begins), W)
        if self.wide:

            def rights(work: FloatArray) -> list[Any]:
                return [work[a : a + height, None] + 1j * work[a + length : a + length + height, None] if both
                        else work[a : a + height, None] for a, both in zip(x, self.complex, strict=True)]  # fmt: skip

            self.factored: list[Operation] = [*self.middle.operations, self.factor_sparse(terms, self.broken)]
            self.solved: list[Operation] = [self.solve_sparse(rights, x, length)]
            return
        self.factored, self.solved = [*self.middle.operations], []
        y = work.block("shift ordered", 2 * length + W) + W
        for e, both in enumerate(self.complex):
            parts, matrix = range(1 + both), self.matrix(f"shift {e}", 1 + both)
            self.factored += [Assemble(matrix, self.table, len(self.middle.row), terms[e]),
                              Factor(matrix, 1 + both, self.broken[e])]  # fmt: skip
            self.solved += [Permuted(self.index, n, y + k * length, x[e] + k * length) for k in parts]
            self.solved.append(SolveOne(matrix, 1 + both, y, length))
            self.solved += [Permuted(self.index, n, x[e] + k * length, y + k * length, back=True) for k in parts]

    def right(self, rows: Any, R: Row) -> Row:
        ((minus,),) = rows.columns("minus h")
        return [minus * a for a in self._into("into", R)]

    def _into(self, name: str, R: Row) -> Row:
        found: Row = []
        for e, both in enumerate(self.complex):
            into = self.shifts[name][e].T.tolist()
            found += [dot(row, R) for row in into[: 1 + both]]
        return found

    def held_right(self, g: Row) -> Row:
        return [-a for a in self._into("into_held", g)]

    def pushes(self, rows: Any, solved: Row) -> Row:
        ((inverse,),) = rows.columns("1/h²")
        return [inverse * a for a in self.increments(rows, solved, "out_held")]

    def increments(self, rows: Any, solved: Row, name: str = "out") -> Row:
        moves: Row = [0.0] * self.form.s
        k = 0
        for e, both in enumerate(self.complex):
            re, im = self.shifts[name][:, e].T.tolist()
            moves = [a + c * solved[k] for a, c in zip(moves, re, strict=True)]
            if both:
                moves = [a - c * solved[k + 1] for a, c in zip(moves, im, strict=True)]
            k += 1 + both
        return moves


def _profile(n: int, row: NDArray[np.int64], column: NDArray[np.int64], lanes: int, moving: int) -> Profile:
    """As coordinates stand, or in the order of Cuthill and McKee, where that has a smaller profile.

    A multiplier, of which the diagonal has nothing, follows the coordinates of its constraint.
    """

    def ordered(place: NDArray[np.int64]) -> Profile:
        held = (row >= moving) & (column < moving)
        np.maximum.at(place, row[held], place[column[held]])
        return profile(np.lexsort((np.arange(n) >= moving, place)), row, column, lanes)

    plain = ordered(np.where(np.arange(n) < moving, np.arange(n), 0))
    if len(row) == 2 * n or len(row) > n * n // 2:
        return plain
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    pattern = csr_array((np.ones(len(row)), (row, column)), shape=(n, n))
    place = np.empty(n, np.int64)
    place[reverse_cuthill_mckee(pattern, symmetric_mode=True)] = np.arange(n)
    found = ordered(np.where(np.arange(n) < moving, place, 0))
    return plain if plain.size <= found.size else found


class _Tables:
    """How FormStepper sees the tables: numbers one by one, the same in all lanes."""

    def __init__(self, tables: dict[str, Table], lanes: int) -> None:
        self.lying, self.lanes = Lying(tables), lanes
        self.size = self.lying.size

    def length(self, count: int) -> int:
        return -(-count // self.lanes)

    def numbers(self, h: float) -> FloatArray:
        return self.lying.numbers(h)


def two_sum(a: Value, b: Value, lost: Value) -> tuple[Value, Value]:
    """a + b with what rounding leaves of it (Knuth's two-sum)."""
    whole = a + b
    part = whole - a
    rest = lost + ((a - (whole - part)) + (b - part))
    new = whole + rest
    return new, rest - (new - whole)


def _over(values: Sequence[Value]) -> Value:
    found = values[0]
    for value in values[1:]:
        found = found.op("maximum", value)
    return found
