"""Steps that are too long for one Program: the same iterations as scripts, loops over coordinates (`kernel.script`).

Mass chords on the increments z at the control points. With R the equations of a step (`step.form`), S the method's
Σ b_i l_ν′(c_i) l_m′(c_i) and M the mass,

    dz = −h (S⁻¹ ⊗ M⁻¹) R .

Where the mass is constant, f does not depend on v and m = M v (separable), the new z follows from forces alone,

    z_ν = h Σ_m S⁻¹_νm M⁻¹ (δ_ms p − Σ_i h b_i (l_m(c_i) − δ_ms) f_i),

and nodes differ: at the start of a step the force is known from the last one; the force at its end enters the impulse
alone; the others move. If none moves the step is explicit. The impulse is that of the forces from which z came.

How increments are judged: of a Lagrangian, every coordinate on its own scale; of a sum, coordinates of one kind
together, since a wave that comes to a coordinate at rest would put every step in doubt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.fused.mass import inverse_of
from leastaction.backends.guarded import guarded
from leastaction.engine.form import FADING, LONGEST, RESOLVED, SHORTEST, SINGLE, Blocks, Form, Lying
from leastaction.engine.verdict import TINY, ruled
from leastaction.kernel import native_lanes
from leastaction.kernel.script import Each, Once, Operation, Place, Script
from leastaction.program import Builder, Program, Value
from leastaction.step.form import samples, stencils
from leastaction.step.prediction import WHOLE, Prediction
from leastaction.step.prediction import tables as prediction_tables
from leastaction.step.rows import Row, Table, apply, size, total

FloatArray = NDArray[np.float64]

PATIENCE = 32
SLOTS = 256  # integers at the beginning of the work
MOST_KINDS = 16  # that are judged together; with more each coordinate is judged by itself


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

    def single(self, name: str, count: int = 1) -> Place:
        begin = self.block(name, count)
        return Place("work", tuple(range(begin, begin + count)))


class LongSteps(Form):
    """Steps as scripts."""

    def __init__(self, how: Any, watch: Any = None, lifts: bool = False, energy_of: Any = None, varied: int = 0) -> None:
        self.how, self.method = how, how.method
        self.step, self.n, self.s = how.step, how.n, how.method.s
        W = native_lanes()
        self.lanes, self.width, self.side = W, 1, True
        self.watch, self.energy_of, self.varied, self.varies, self.lifts = watch, energy_of, varied, False, lifts
        self.count = -(-self.n // W)  # vectors of coordinates
        self.samples = samples(self.method)
        self.ahead = Prediction(self.s, Lying(prediction_tables(self.method.table.modes, self.method.table.growth)))
        of = stencils(self.samples, 1.0)
        nodes = range(len(of.times))
        self.still = [i for i in nodes if how.separable and not of.gather["q"][i].any()]
        self.last = [i for i in nodes if how.separable and not of.scatter["f"][i].any() and self.samples.tau[i] == 1.0]
        self.moving = [i for i in nodes if i not in self.still and i not in self.last]
        self.hands_on = bool(self.still and self.last) and not how.channels
        self.kinds = how.kinds  # how many kinds are judged together; 0: every coordinate by itself
        self.rows = _Tables(self.tables(), W)
        self.blocks = self._blocks()
        self.names = {name for name, _ in self.blocks}
        self.work = Work(W)
        self._lay_out()

    def tables(self) -> dict[str, Table]:
        inverse, of = inverse_of(self.method), self.samples
        return {
            "times": lambda h: stencils(of, h).times[:, None], "weights": lambda h: stencils(of, h).weights[:, None],
            "q": stencils(of, 1.0).gather["q"], "v": lambda h: stencils(of, h).gather["v"],
            "f": stencils(of, 1.0).scatter["f"].T, "m": lambda h: stencils(of, h).scatter["m"].T,
            "solve": lambda h: inverse * -h,
        }  # fmt: skip

    # ---- the state

    def _blocks(self) -> Blocks:
        w, s, K = self.count, self.s, self.kinds
        found = [
            ("q", w), ("p", w), ("carry", 2 * w), ("directions", self.room), ("force", w if self.hands_on else 0),
            ("params", self.step.params), ("inputs", self.how.channels * self.how.vectors),
            ("scale", K or w), ("length", K or w), *((name, 1) for name in SINGLE), ("choice", 1),
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

    def _lay_out(self) -> None:
        how, work = self.how, self.work
        self.times = work.single("times", len(self.samples.tau))
        self.sweeps = {
            name: how.sweep(self, name, nodes) if nodes else None
            for name, nodes in (("moving", self.moving), ("still", self.still), ("last", self.last))
        }
        self.mass = work.arrays("mass", 1, self.count)
        self.pushed = work.arrays("pushed", 1, self.count)
        self.kind = work.arrays("kind", 1 if self.kinds > 1 else 0, self.count)
        self.most = work.single("most", 4 * max(1, self.kinds))
        self.errors = work.single("errors", self.ahead.candidates)

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
            return [a for a in values]
        kind = x["kind"][0]
        return [kind.op("eq", float(k)).op("if", a) for a in values for k in range(self.kinds)]

    def own(self, x: Mapping[str, Any], name: str) -> Value:
        """A scale of this coordinate."""
        if self.kinds <= 1:
            return x[name][0]
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
        return Script([self._times(), *self._forces_of(last, [0.0]), self._kept_force()])

    def _forces_of(self, sweep: Sweep, share: Any) -> list[Operation]:
        """Forces at the start of a step, by the sweep that serves its end."""
        def here(rows: Any, x: Any) -> Any:
            return {"at": [x["t0"][0] + x["t"][0] * x["period"][0]]}

        def points(rows: Any, x: Any) -> Any:
            return {"point": [x["q"][0]], "f": [0.0]}

        writes = {"point": sweep.q} | ({"f": sweep.f} if sweep.adds else {})
        each = self.each(lambda rows, x: {k: v for k, v in points(rows, x).items() if k in writes},
                         {"q": self.place("q")}, **writes)
        return [self.once(here, {}, at=sweep.times), each, *sweep.operations]

    def _kept_force(self) -> Operation:
        last = self.sweeps["last"]
        return self.each(lambda rows, x: {"force": x["f"]}, {"f": last.f}, force=self.place("force"))

    def _times(self) -> Once:
        """The times of all points."""
        def build(rows: Any, x: Any) -> Any:
            (shares,) = rows.columns("times")
            return {"times": [x["t0"][0] + (x["t"][0] * x["period"][0] + a) for a in shares]}

        return self.once(build, {}, times=self.times)

    def _predicted(self) -> list[Operation]:
        """z and the scales of a step; its first points."""
        s, K, moving = self.s, self.kinds, self.sweeps["moving"]
        assert moving is not None

        def build(rows: Any, x: Any) -> Any:
            ahead = Prediction(s, Lying(self.ahead.rows.tables, B=rows.B))
            z = ahead.propose(x["memory"], x["choice"][0])
            found = {"z": z, **self._points(rows, x, z)}
            if K:
                return found | {"largest": self.split([size(z), abs(x["q"][0])], x)}
            return found | {"scale": [_clamped(size(z), x["length"][0], abs(x["q"][0]))]}

        reads = {"memory": self.place("memory"), "choice": self.place("choice"), "q": self.place("q"),
                 "lost": self.place("carry", 1), **self.judging}  # fmt: skip
        writes = {"z": self.place("Z"), **self._point_places()}
        if not K:
            return [self._times(), self.each(build, reads, scale=self.place("scale"), **writes)]

        def scales(rows: Any, x: Any) -> Any:
            tops, places = x["most"][:K], x["most"][K:]
            return {"scale": [_clamped(a, b, q) for a, b, q in zip(tops, x["length"], places, strict=True)]}

        most = self.sizes(0, 2)
        once = self.once(scales, {"most": most, "length": self.place("length")}, scale=self.place("scale"))
        return [self._times(), self.each(build, reads, largest=most, **writes), once]

    def _points(self, rows: Any, x: Any, z: Row) -> dict[str, Row]:
        """Where the system is evaluated next."""
        gather = rows.columns("q")
        every = apply(rows, gather, z)
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
        found = {"point": sweep.q} | ({} if self.how.separable else {"speed": sweep.v})
        if sweep.adds:
            found |= {"f": sweep.f} | ({} if self.how.separable else {"m": sweep.m})
        return found

    def _chord(self, rows: Any, x: Any) -> tuple[Row, Value]:
        """The new z of a separable system from its forces, and the impulse but for the last force."""
        (weights,), scatter = rows.columns("weights"), rows.columns("f")
        f = dict(zip(self.moving, x["f"], strict=True)) | {i: x["force"][0] for i in self.still}
        kicks = {i: weights[i] * f[i] for i in sorted(f)}
        R = [total([scatter[i][m] * a for i, a in kicks.items() if scatter[i][m]]) for m in range(self.s)]
        R[-1] = R[-1] - x["p"][0]
        return apply(rows, rows.columns("solve"), [x["mass"][0] * a for a in R]), total([*kicks.values()])

    def _iteration(self, first: bool) -> list[Operation]:
        K, moving = self.kinds, self.sweeps["moving"]

        def build(rows: Any, x: Any) -> Any:
            new, pushed = self._chord(rows, x)
            moves = [a - b for a, b in zip(new, x["z"], strict=True)]
            found = {"z": new, "pushed": [pushed], **self._points(rows, x, new)}
            if K:
                return found | {"largest": self.split([size(moves), size(new)], x)}
            scale = x["scale"][0]
            if first:
                scale = x["started"][0].where(scale, scale.op("max", size(moves)).op("max", TINY))
                found["scale"] = [scale]
            return found | {"largest": [size(moves) / scale, size(new) / scale]}

        reads = {"z": self.place("Z"), "f": moving.f, "force": self.place("force"), "p": self.place("p"),
                 "q": self.place("q"), "lost": self.place("carry", 1), "mass": self.mass, "started": self.place("started"),
                 **self.judging}  # fmt: skip
        writes = {"z": self.place("Z"), "pushed": self.pushed, **self._point_places(), "largest": self.sizes(0, 2)}
        if first and not K:
            writes["scale"] = self.place("scale")
        return [*moving.operations, self.each(build, reads, **writes), self._verdict(first)]

    def _verdict(self, first: bool) -> Once:
        K = self.kinds

        def build(rows: Any, x: Any) -> Any:
            if not K:
                sizes, extra = x["sizes"], {}
            else:
                moves, places, scale = x["sizes"][:K], x["sizes"][K:], x["scale"]
                extra = {}
                if first:
                    scale = [x["started"][0].where(a, a.op("max", b).op("max", TINY))
                             for a, b in zip(scale, moves, strict=True)]
                    extra = {"scale": scale}
                sizes = [_over([a / b for a, b in zip(y, scale, strict=True)]) for y in (moves, places)]
            return ruled(x, *sizes, first=first, patience=PATIENCE) | extra

        reads = {"sizes": self.sizes(0, 2)} | ({"scale": self.place("scale")} if K else {})
        return self.once(build, reads, **({"scale": self.place("scale")} if K else {}))

    def _land(self) -> list[Operation]:
        K, last, moving, s = self.kinds, self.sweeps["last"], self.sweeps["moving"], self.s

        def moved(rows: Any, x: Any) -> Any:
            q, lost = _summed(x["q"][0], x["z"][s - 1], x["lost"][0])
            found = {"q": [q], "lost": [lost]}
            if last is not None:
                found |= {"point": [q]} | ({"f": [0.0]} if last.adds else {})
            return found

        def landed(rows: Any, x: Any) -> Any:
            (weights,) = rows.columns("weights")
            impulse = total([x["pushed"][0], *(weights[i] * x["late"][0] for i in self.last)])
            p, lost = _summed(x["p"][0], impulse, x["lost p"][0])
            found = {"p": [p], "lost p": [lost]}
            if self.hands_on:
                found["force"] = x["late"]
            ahead = Prediction(s, Lying(self.ahead.rows.tables, B=rows.B))
            unit = 1.0 / self.own(x, "scale")
            found["memory"], errors = ahead.assess(x["z"], unit, x["started"][0], x["memory"])
            found["largest errors"] = errors
            if K:
                return found | {"largest": self.split([size(x["z"])], x)}
            return found | {"length": [(x["length"][0] * FADING).op("max", TINY).op("max", size(x["z"]))]}

        reads = {"q": self.place("q"), "lost": self.place("carry", 1), "z": self.place("Z")}
        writes = {"q": self.place("q"), "lost": self.place("carry", 1)}
        if last is not None:
            writes |= {"point": last.q} | ({"f": last.f} if last.adds else {})
        operations: list[Operation] = [self.each(moved, reads, **writes)]
        if last is not None:
            operations += last.operations
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
            ahead = Prediction(s, Lying(self.ahead.rows.tables, B=rows.B))
            choice, record = ahead.choose(x["errors"], x["started"][0], x["record"])
            found = {"choice": [choice], "record": record, "t": [x["t"][0] + 1.0], "started": [1.0]}
            found |= {"going": [0.0], "failed": [0.0]}
            if K:
                found["length"] = [(a * FADING).op("max", TINY).op("max", b)
                                   for a, b in zip(x["length"], x["most"][:K], strict=True)]
            return {name: [a if isinstance(a, Value) else rows.B.number(a) for a in y] for name, y in found.items()}

        once = self.once(done, {"errors": self.errors, "record": self.place("record"), "most": self.sizes(0, 1),
                                "length": self.place("length")} if K else
                         {"errors": self.errors, "record": self.place("record")},
                         choice=self.place("choice"), record=self.place("record"), length=self.place("length"))  # fmt: skip
        return [*operations, self.each(landed, reads, **writes), once]

    def _explicit(self) -> list[Operation]:
        """A step without points that move."""
        last = self.sweeps["last"]
        assert self.hands_on and last is not None

        def moved(rows: Any, x: Any) -> Any:
            (z,), _ = self._chord(rows, x | {"f": []})
            q, lost = _summed(x["q"][0], z, x["lost"][0])
            return {"q": [q], "lost": [lost]} | ({"f": [0.0]} if last.adds else {})

        def pushed(rows: Any, x: Any) -> Any:
            (weights,) = rows.columns("weights")
            f = {**{i: x["force"][0] for i in self.still}, **{i: x["late"][0] for i in self.last}}
            p, lost = _summed(x["p"][0], total([weights[i] * f[i] for i in sorted(f)]), x["lost"][0])
            return {"p": [p], "lost": [lost], "force": x["late"]}

        q, p, force = self.place("q"), self.place("p"), self.place("force")
        lost, lost_p = self.place("carry", 1), self.place("carry", 1, 1)
        one = self.each(moved, {"q": q, "p": p, "lost": lost, "force": force, "mass": self.mass},
                        q=q, lost=lost, **({"f": last.f} if last.adds else {}))  # fmt: skip
        two = self.each(pushed, {"p": p, "lost": lost_p, "force": force, "late": last.f}, p=p, lost=lost_p, force=force)
        done = self.once(lambda rows, x: {"t": [x["t"][0] + 1.0], "started": [rows.B.number(1.0)]}, {})
        here = self.once(lambda rows, x: {"at": [x["t0"][0] + (x["t"][0] * x["period"][0] + rows.columns("times")[0][-1])]},
                         {}, at=last.times)
        return [here, one, *last.operations, two, done]

    # ---- from Python

    def scratch(self, size: int, old: FloatArray, params: FloatArray) -> FloatArray:
        if len(old) >= self.work.end:
            return old
        found = guarded((self.work.end,), "work")
        self.how.fill(self, found, params)
        return found

    def began(self, x: Mapping[str, FloatArray], t: float, q: FloatArray, p: FloatArray, h: float, params: FloatArray) -> None:
        """What a trajectory begins with."""
        if not self.moving:
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
            kinds = self.how.kind_of
            x["length"][:] = np.array([length[: self.n][kinds == k].max(initial=0.0) for k in range(self.kinds)])[:, None]
        else:
            x["length"][:] = length.reshape(-1, W)

    @cached_property
    def controls(self) -> list[float]:
        return [float(d) for d in self.method.exact_table(20)["d"][1:]]


class _Tables:
    """How FormStepper sees the tables: numbers one by one, the same in all lanes."""

    def __init__(self, tables: dict[str, Table], lanes: int) -> None:
        self.lying, self.lanes = Lying(tables), lanes
        self.size = self.lying.size

    def length(self, count: int) -> int:
        return -(-count // self.lanes)

    def numbers(self, h: float) -> FloatArray:
        return self.lying.numbers(h)


def _summed(a: Value, b: Value, lost: Value) -> tuple[Value, Value]:
    """a + b with what rounding leaves of it (Knuth's two-sum)."""
    whole = a + b
    part = whole - a
    rest = lost + ((a - (whole - part)) + (b - part))
    new = whole + rest
    return new, rest - (new - whole)


def _clamped(top: Value, length: Value, place: Value) -> Value:
    return top.op("min", length * LONGEST).op("max", length * SHORTEST).op("max", place * RESOLVED + TINY)


def _over(values: Sequence[Value]) -> Value:
    found = values[0]
    for value in values[1:]:
        found = found.op("maximum", value)
    return found
