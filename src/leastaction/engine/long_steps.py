"""Steps that are too long for one Program: the same iterations as scripts, loops over coordinates (`long_form`).

Mass chords on the increments z at the control points. With R the equations of a step (`step.form`), S the method's
Σ b_i l_ν′(c_i) l_m′(c_i) and M the mass,

    dz = −h (S⁻¹ ⊗ M⁻¹) R .

Where the mass is constant, f does not depend on v and m = M v (separable), the new z follows from forces alone,

    z_ν = h Σ_m S⁻¹_νm M⁻¹ (δ_ms p − Σ_i h b_i (l_m(c_i) − δ_ms) f_i),

and nodes differ: at the start of a step the force is known from the last one; the force at its end enters the impulse
alone; the others move. If none moves the step is explicit. The impulse is that of the forces from which z came.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from leastaction.engine.form import clamped, faded, two_sum
from leastaction.engine.increment_tables import middle_of
from leastaction.engine.long_chords import MassChord, ShiftedChord
from leastaction.engine.long_form import LongForm, Scripted
from leastaction.engine.verdict import PATIENCE, TINY, ruled
from leastaction.kernel.script import Once, Operation, Place, Script, When
from leastaction.program import Value, dot
from leastaction.step.rows import Row, apply, size, total


class LongSteps(LongForm):
    """Steps as scripts."""

    def __init__(self, how: Scripted, lifts: bool = False, varied: int = 0) -> None:
        super().__init__(how, lifts, varied)
        self._ways: dict[bool, Any] = {}

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
        zero = {"f": last.f} if last.adds else {}
        here = self.once(lambda rows, x: {"at": [x["t0"][0] + x["t"][0] * x["period"][0]]}, {}, at=last.times)
        placed = self.each(lambda rows, x: {"point": [x["q"][0]]} | {f: [0.0] for f in zero}, {"q": self.place("q")},
                           point=last.q, **zero)  # fmt: skip
        kept = self.each(lambda rows, x: {"force": x["f"]}, {"f": last.f}, force=self.place("force"))
        return Script([here, placed, *last.operations, kept])

    def _given(self) -> list[Operation]:
        """What the points of a step read beside coordinates: the times of all points, that of the middle, those of
        further ones; inputs.
        """

        def build(rows: Any, x: Any) -> Any:
            (shares,) = rows.columns("times")
            (later,) = rows.columns("later") if self.later else ((),)
            shares = [*shares, x["h"][0] * 0.5, *later]
            return {"times": [x["t0"][0] + (x["t"][0] * x["period"][0] + a) for a in shares]}

        return [self.once(build, {}, times=self.times), *self.how.driven(self)]

    def _predicted(self, hard: bool = False) -> list[Operation]:
        """z and the scales of a step; its first points, and where its derivatives are taken."""
        K, way = self.kinds, self.way(hard)

        def build(rows: Any, x: Any) -> Any:
            z = self.ahead.propose(x["memory"], x["choice"][0])
            found = {"z": z, **self._points(rows, x, z)}
            if way is not None:
                place, speed = middle_of(self.method)
                found["middle q"] = [x["q"][0] + dot(place.tolist(), z)]
                found["middle v"] = [dot(speed.tolist(), z) / x["h"][0]]
            if K:
                return found | {"largest": self.split([size(z), abs(x["q"][0])], x)}
            scale = clamped(size(z), x["length"][0], abs(x["q"][0]), self.resolved)
            return found | {"scale": [scale], "largest": [abs(x["q"][0]) / scale]}

        reads = {"memory": self.place("memory"), "choice": self.place("choice"), "q": self.place("q"),
                 "lost": self.place("carry", 1), "h": self.place("h"), **self.judging}  # fmt: skip
        writes = {"z": self.place("Z"), **self._point_places()}
        if way is not None:
            writes |= {"middle q": way.middle.q, "middle v": way.middle.v}
        if not K:
            each = self.each(build, reads, scale=self.place("scale"), largest=self.sizes(3, 1), **writes)
            return [*self._given(), each, *self._foreseen(way)]

        def scales(rows: Any, x: Any) -> Any:
            tops, places = x["most"][:K], x["most"][K:]
            return {
                "scale": [clamped(a, b, q, self.resolved) for a, b, q in zip(tops, x["length"], places, strict=True)]
            }

        most = Place("work", self.sizes(0, 1).begins + self.sizes(3, 1).begins)
        once = self.once(scales, {"most": most, "length": self.place("length")}, scale=self.place("scale"))
        return [*self._given(), self.each(build, reads, largest=most, **writes), once, *self._foreseen(way)]

    def _points(self, rows: Any, x: Any, z: Row) -> dict[str, Row]:
        """Where the system is evaluated next; where results are added, zeros to begin with."""
        if not self.moving:
            return {}
        every, zeros = apply(rows, rows.columns("q"), z), [0.0] * len(self.moving)
        found = {"point": [x["q"][0] + (every[i] + x["lost"][0]) for i in self.moving]}
        if not self.how.separable:
            speeds = apply(rows, rows.columns("v"), z)
            found["speed"] = [speeds[i] for i in self.moving]
        return found | {name: zeros for name in self._point_places() if name in ("f", "m")}

    def _point_places(self) -> dict[str, Place]:
        sweep, both = self.sweeps["moving"], not self.how.separable
        if sweep is None:
            return {}
        found = {"point": sweep.q} | ({"speed": sweep.v} if both else {}) | ({"f": sweep.f} if sweep.adds else {})
        return found | ({"m": sweep.m} if both and sweep.adds else {})

    def _kicks(self, rows: Any, x: Any) -> dict[int, Value]:
        """h b_i f_i of the nodes that move and of those at the start of the step."""
        ((weights,), f) = rows.columns("weights"), dict(zip(self.moving, x["f"], strict=True))
        f |= dict(zip(self.still, x["force"], strict=False))
        return {i: weights[i] * f[i] for i in sorted(f)}

    def _chord(self, rows: Any, x: Any) -> tuple[Row, Value]:
        """The new z of a separable system from its forces, and the impulse but for the last force."""
        scatter, kicks = rows.columns("f"), self._kicks(rows, x)
        R = [total([scatter[i][m] * a for i, a in kicks.items() if scatter[i][m]]) for m in range(self.s)]
        R[-1] = R[-1] - x["p"][0]
        return apply(rows, rows.columns("solve"), [x["mass"][0] * a for a in R]), total([*kicks.values()])

    def _equations(self, rows: Any, x: Any) -> tuple[Row, Value]:
        """R of one coordinate, and the impulse but for the last force."""
        (weights,), scatter, kicks = rows.columns("weights"), rows.columns("f"), self._kicks(rows, x)
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
            extra: dict[str, Any] = {}
            sizes, scale = x["sizes"], [rows.B.number(1.0)]
            if K:
                moves, places = x["sizes"][:K], x["sizes"][K:]
                scale = [x["started"][0].where(a, a.op("max", b).op("max", TINY))
                         for a, b in zip(x["scale"], moves, strict=True)]  # fmt: skip
                extra = {"scale": scale}
                sizes = [_largest([a / b for a, b in zip(y, scale, strict=True)]) for y in (moves, places)]
            found = ruled(x, *sizes, first=first, patience=PATIENCE, **self._rounding(x, scale))
            for flag in x["broken"]:
                found["failed"] = [found["failed"][0] | flag]
                found["going"] = [found["going"][0] & ~flag]
            return found | extra | {"stale": [stale]}

        flags = Place("work", tuple(place.begins[0] for place in broken))
        scales = {"scale": self.place("scale")} if K else {}
        reads = {"sizes": self.sizes(0, 2), "broken": flags, "places": self.sizes(3, 1)} | scales
        return self.once(build, reads, stale=self.place("stale"), **scales)

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
        K, last = self.kinds, self.sweeps["last"]

        def landed(rows: Any, x: Any) -> Any:
            (weights,) = rows.columns("weights")
            impulse = total([x["pushed"][0], *(weights[i] * x["late"][0] for i in late)])
            p, lost = two_sum(x["p"][0], impulse, x["lost p"][0])
            found = {"p": [p], "lost p": [lost]}
            if self.hands_on:
                found["force"] = x["late"]
            unit = 1.0 / self.own(x, "scale")
            found["memory"], found["largest errors"] = self.ahead.assess(x["z"], unit, x["started"][0], x["memory"])
            if K:
                return found | {"largest": self.split([size(x["z"])], x)}
            return found | {"length": [faded(x["length"][0], size(x["z"]))]}

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
            choice, record = self.ahead.choose(x["errors"], x["started"][0], x["record"])
            found = {"choice": [choice], "record": record, "t": [x["t"][0] + 1.0], "started": [1.0]}
            found |= {"going": [0.0], "failed": [0.0]}
            return found | ({"length": [*map(faded, x["length"], x["most"][:K])]} if K else {})

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
        done = self.once(lambda rows, x: {"t": [x["t"][0] + 1.0], "started": [1.0]}, {})
        here = self.once(
            lambda rows, x: {"at": [x["t0"][0] + (x["t"][0] * x["period"][0] + rows.columns("times")[0][-1])]},
            {},
            at=last.times,
        )
        return [here, *self.how.around(self, one, last, two), done]

    def _rounding(self, x: Any, scale: Sequence[Value]) -> dict[str, Any]:
        """Where it is known: the size below which increments that shrink no more are rounding, `stalled`."""
        return {}


def _largest(values: Sequence[Value]) -> Value:
    return reduce(lambda a, b: a.op("maximum", b), values)
