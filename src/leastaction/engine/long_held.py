"""Long steps with constraints: multipliers are further unknowns of a point, behind the coordinates.

With S and P the matrices that increments and multipliers have in the equations (`step.form`), R + (S/h ⊗ M) dz +
(h P ⊗ Gᵀ) dλ = 0 and G dz_ν = −g_ν fall apart, as without constraints, into a system for each point,

    M dz_ν + Gᵀ w_ν = −h (S⁻¹R)_ν,      G dz_ν = −g_ν,      dλ = h⁻² P⁻¹S w,

with one matrix, that in the middle of the step; by shifted chords, where derivatives of forces and of Gᵀλ take part, in
the same way. Matrices are eliminated without pivoting, each multiplier after the coordinates of its constraint: then
every pivot exists where M is definite and the rows of G are independent.

Where the step ends v and μ are solved for (the End of `step.form`) with the factors of (M, Gᵀ; G, 0) there. These tell,
too, whether constraints depend on each other (`step.independence`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.engine.ending import ROUNDING
from leastaction.engine.form import Blocks, two_sum
from leastaction.engine.increment_tables import inverse_of
from leastaction.engine.long_chords import Eliminated, MassChord, ShiftedChord
from leastaction.engine.long_form import FloatArray
from leastaction.engine.long_steps import LongSteps
from leastaction.engine.verdict import MOST_ITERATIONS, STALLED
from leastaction.kernel.elimination import Permuted
from leastaction.kernel.script import Each, Once, Operation, Place, Repeat, Script, When, Zero
from leastaction.program import Value, dot
from leastaction.step.form import samples, stencils
from leastaction.step.independence import INDEPENDENT, probe
from leastaction.step.rows import Row, Table, total

ENOUGH = 2.0**-50  # rounding: of the velocity, in parts of what it is summed from; of coordinates, as rough as g …
PATIENT = 20.0  # … and after so many iterations any increment that is STALLED is rounding


class LongHeld(LongSteps):
    """Steps with constraints as scripts."""

    resolved = 2.0**-20  # rounding of g, of squares of coordinates, is no better than EPS of them

    @property
    def m(self) -> int:
        return int(self.step.multipliers)

    @property
    def beyond(self) -> int:
        """Vectors of multipliers."""
        return -(-self.m // self.lanes)

    @property
    def height(self) -> int:
        return (self.count + self.beyond) * self.lanes

    @cached_property
    def arranged(self) -> NDArray[np.int64]:
        return np.append(np.arange(self.n), self.count * self.lanes + np.arange(self.m))

    @property
    def later(self) -> int:
        return self.s + 1

    def control_time(self, control: int) -> int:
        """Which of the times is that of a control point."""
        return len(self.samples.tau) + 1 + control

    def tables(self) -> dict[str, Table]:
        controls = samples(self.method, "controls")
        W = (controls.w[:, None] * stencils(controls, 1.0).scatter["f"]).T[:, : self.s]
        push = np.linalg.inv(inverse_of(self.method) @ W)
        return super().tables() | {
            "later": lambda h: stencils(controls, h).times[:, None],
            "held": lambda h: stencils(controls, h).weights[: self.s, None],
            "push": lambda h: push / (h * h), "1/h²": lambda h: np.array([[1.0 / (h * h)]]),
            "1/h": lambda h: np.array([[1.0 / h]]),
        }  # fmt: skip

    def _blocks(self) -> Blocks:
        found = super()._blocks()
        at = [name for name, _ in found].index("Z") + 1
        return [*found[:at], ("held", 3 * self.s * self.beyond), *found[at:]]

    @property
    def multipliers(self) -> Place:
        """Of the step at work; those of the last one, and of the one before, are `remembered`."""
        return self._held(0, self.s)

    @property
    def remembered(self) -> Place:
        return self._held(self.s, 2 * self.s)

    def _held(self, first: int, count: int) -> Place:
        begin, W = self.places["held"].start, self.lanes
        return Place("state", tuple((begin + k * self.beyond) * W for k in range(first, first + count)), W)

    def _lay_out(self) -> None:
        super()._lay_out()
        work, n, s = self.work, self.count, self.s
        self.probe = work.arrays(1, self.beyond)
        self.reaction = self.how.held(self, "reaction", [self.control_time(k) for k in range(s + 1)])
        last = [self.control_time(s)]
        self.ending, self.pull, self.lengths = (
            self.how.held(self, name, last) for name in ("end", "reaction", "lengths")
        )
        self.speed, self.weight = work.arrays(1, n), work.arrays(1, n)
        self.sine = work.arrays(1, self.beyond)
        self.settled = work.single(8)
        self.end = _End(self)

    def each_held(self, build: Any, reads: Mapping[str, Place], **writes: Place) -> Each:
        """A Program of one multiplier."""
        return replace(self.each(build, reads, **writes), count=self.beyond)

    def pieces(self) -> dict[str, Any]:
        return {
            "first": Script([*self._predicted(), *self._iteration(True)]),
            "again": Script(self._iteration(False)),
            "settle": Script(self._settle()),
            "land": Script(self._land()),
        }

    def way(self, hard: bool) -> Any:
        if hard not in self._ways:
            self._ways[hard] = ShiftedChord(self) if hard else MassChord(self)
        return self._ways[hard]

    # ---- an iteration

    def _points(self, rows: Any, x: Any, z: Row) -> dict[str, Row]:
        controls = [x["q"][0], *(x["q"][0] + (a + x["lost"][0]) for a in z)]
        return super()._points(rows, x, z) | {"control": controls}

    def _point_places(self) -> dict[str, Place]:
        return super()._point_places() | {"control": self.reaction.q}

    def _foreseen(self, way: Any) -> list[Operation]:
        def build(rows: Any, x: Any) -> Any:
            new = [a + (a - b) for a, b in zip(x["held"][: self.s], x["held"][self.s :], strict=True)]
            return {"held": new, "given": [*new, 0.0], "middle": [total(new) * (1.0 / self.s)]}

        writes = {"held": self.multipliers, "given": self.reaction.by, "middle": way.middle.held}
        return [self.each_held(build, {"held": self.remembered}, **writes)]

    def _evaluated(self) -> Sequence[Operation]:
        moving = self.sweeps["moving"]
        return [*(moving.operations if moving else ()), *self.reaction.operations]

    def _further(self, rows: Any, x: Any) -> list[Row]:
        (weights,) = rows.columns("held")
        kicks = [a * b for a, b in zip(weights, x["reaction"], strict=True)]
        return [*([a] for a in kicks[1:]), [-a for a in kicks], kicks]

    @property
    def _read(self) -> dict[str, Place]:
        return super()._read | {"reaction": self.reaction.f.only(*range(self.s))}

    def _beside(self, way: Any) -> list[Operation]:
        reads = {"g": self.reaction.g.only(*range(1, self.s + 1))}
        return [self.each_held(lambda rows, x: {"right": way.held_right(x["g"])}, reads, right=way.held)]

    def _behind(self, way: Any) -> list[Operation]:
        def build(rows: Any, x: Any) -> Any:
            new = [a + b for a, b in zip(x["held"], way.pushes(rows, x["solved"]), strict=True)]
            return {"held": new, "given": [*new, 0.0]}

        reads = {"held": self.multipliers, "solved": way.held}
        return [self.each_held(build, reads, held=self.multipliers, given=self.reaction.by)]

    def _rounding(self, x: Any, scale: Sequence[Value]) -> dict[str, Any]:
        """Increments of a chord that goes back and forth do not shrink evenly: at first only those count as rounding
        that are as small as that of coordinates, then larger ones.
        """
        rough = reduce(
            lambda a, b: a.op("max", b), [q / unit * ENOUGH for q, unit in zip(x["places"], scale, strict=True)]
        )
        k = x["iterations"][0]
        return {"stalled": (k > PATIENT).where(STALLED, (rough * (k * k)).op("min", STALLED))}

    # ---- the end of a step

    def _settle(self) -> list[Operation]:
        """The impulse of a step, with which ġ = 0 where it ends."""
        last, end, ending = self.sweeps["last"], self.end, self.ending
        places = [ending.q, self.pull.q, self.lengths.q, end.middle.q, *([last.q] if last else [])]
        slope = self.method.table.slope[1:].tolist()

        def ended(rows: Any, x: Any) -> Any:
            ((inverse,),) = rows.columns("1/h")
            q, _ = two_sum(x["q"][0], x["z"][-1], x["lost"][0])
            v = dot(slope, x["z"]) * inverse
            found = {"q": [q] * len(places), "v": [v] * 3}
            return found | ({"late": [0.0]} if last and last.adds else {})

        def late(rows: Any, x: Any) -> Any:
            (weights,) = rows.columns("weights")
            return {"pushed": [total([x["pushed"][0], *(weights[i] * x["late"][0] for i in self.last)])]}

        writes = {"q": _joined(places), "v": _joined([self.speed, ending.by, end.middle.v])}
        if last and last.adds:
            writes["late"] = last.f
        placed, *pushed = self._again()
        given = self.each_held(
            lambda rows, x: {"given": [*x["held"], 0.0]}, {"held": self.multipliers}, given=self.reaction.by
        )
        reads = {"z": self.place("Z"), "q": self.place("q"), "lost": self.place("carry", 1)}
        operations = [When(self.place("stale"), [placed, given]), *pushed, self.each(ended, reads, **writes)]
        if last:
            reads = {"pushed": self.pushed, "late": last.f}
            operations += [*last.operations, self.each(late, reads, pushed=self.pushed)]
        operations += [*end.factored, *self._independent(), *self._corrected(True)]
        if self.how.curved:
            again = [*end.factored, *self._corrected(False)]
            operations.append(Repeat(self.settled.only(3), again))
        else:
            operations += self._corrected(False)
        return [*operations, self._judged()]

    def _independent(self) -> list[Operation]:
        """How near constraints are to depending on each other."""
        end, lengths, x = self.end, self.lengths, self.end.x

        def light(rows: Any, x: Any) -> Any:
            heavy = abs(x["mass"][0])
            return {"by": [(heavy > 0.0).where(1.0 / heavy, 0.0)]}

        def length(rows: Any, x: Any) -> Any:
            found = x["g"][0].op("sqrt")
            return {"length": [found], "right": [x["probe"][0] * found]}

        return [
            end.weighed,
            self.each(light, {"mass": self.weight}, by=lengths.by),
            *lengths.operations,
            Zero(x.only(0), self.count * self.lanes),
            self.each_held(length, {"g": lengths.g, "probe": self.probe}, length=self.sine, right=x.only(1)),
            *end.solved,
            self.each_held(
                lambda rows, x: {"largest": [abs(x["solved"][0]) * x["length"][0]]},
                {"solved": x.only(1), "length": self.sine}, largest=self.settled.only(0),
            ),
        ]  # fmt: skip

    def _corrected(self, first: bool) -> list[Operation]:
        """The velocity and the impulse after an iteration; how far the velocity moved, and what it is summed from."""
        ending, x, pull = self.ending, self.end.x, self.pull

        def moved(rows: Any, x: Any) -> Any:
            dv, heavy = x["solved"][0], abs(x["mass"][0]).op("sqrt")
            v = x["v"][0] + dv
            light = (heavy > 0.0).where((abs(x["p"][0]) + abs(x["pushed"][0])) / heavy, 0.0)
            return {"v": [v] * 3, "largest": [heavy * abs(dv), (heavy * abs(v)).op("maximum", light)]}

        reads = {"p": self.place("p"), "pushed": self.pushed, "m": ending.f}
        right = self.each(lambda rows, x: {"right": [x["pushed"][0] + (x["p"][0] - x["m"][0])]}, reads, right=x.only(0))
        reads = {"solved": x.only(0), "v": self.speed, "p": self.place("p"), "mass": self.weight,
                 "pushed": self.pushed}  # fmt: skip
        writes = {"v": _joined([self.speed, ending.by, self.end.middle.v]), "largest": self.settled.only(1, 2)}
        return [
            *ending.operations, right,
            self.each_held(lambda rows, x: {"right": [-x["g"][0]]}, {"g": ending.g}, right=x.only(1)),
            *self.end.solved,
            self.each(moved, reads, **writes),
            self.each_held(lambda rows, x: {"by": [-x["solved"][0]]}, {"solved": x.only(1)}, by=pull.by),
            *pull.operations,
            self.each(lambda rows, x: {"pushed": [x["pushed"][0] + x["f"][0]]}, {"pushed": self.pushed, "f": pull.f},
                      pushed=self.pushed),
            self._counted(first),
        ]  # fmt: skip

    def _counted(self, first: bool) -> Once:
        """Whether another iteration is needed: going, how many there were, the last size, what v is summed from."""

        def build(rows: Any, x: Any) -> Any:
            moved, summed, _, k, before, whole = x["settled"]
            whole = summed if first else whole.op("max", summed)
            size, k = moved / whole.op("max", 1e-280), k * 0.0 + 1.0 if first else k + 1.0
            going = (size > ENOUGH) & (k < float(MOST_ITERATIONS))
            if not first:
                going = going & (size <= before * 0.5)
            return {"settled": [going.where(1.0, 0.0), k, size, whole]}

        return self.once(build, {"settled": self.settled.only(*range(1, 7))}, settled=self.settled.only(*range(3, 7)))

    def _judged(self) -> Once:
        def build(rows: Any, x: Any) -> Any:
            sine, size, broken = x["settled"]
            sound = (sine * INDEPENDENT <= 1.0) & (size <= ROUNDING) & (broken <= 0.0)
            return {"failed": [~sound]}

        places = Place("work", (*self.settled.only(0, 5).begins, *self.end.broken[0].begins))
        return self.once(build, {"settled": places})

    def _land(self) -> list[Operation]:
        def moved(rows: Any, x: Any) -> Any:
            q, lost = two_sum(x["q"][0], x["z"][-1], x["lost"][0])
            return {"q": [q], "lost": [lost]}

        def remembered(rows: Any, x: Any) -> Any:
            started = x["started"][0]
            earlier = [started.where(a, b) for a, b in zip(x["before"], x["held"], strict=False)]
            return {"held": [*x["held"], *earlier]}

        held = {"held": self.multipliers, "before": self.remembered, "started": self.place("started")}
        remember = self.each_held(remembered, held, held=self.remembered)
        reads = {"q": self.place("q"), "lost": self.place("carry", 1), "z": self.place("Z")}
        return [self.each(moved, reads, q=self.place("q"), lost=self.place("carry", 1)), remember,
                *self._landed(())]  # fmt: skip

    # ---- from Python

    def put(self, x: Mapping[str, FloatArray], lane: int, z: FloatArray, impulse: FloatArray, h: float) -> None:
        super().put(x, lane, z[:, : self.n], impulse, h)
        x["held"][: self.s * self.beyond] = self.packed(z[:, self.n :])

    def unknowns_of(self, x: Mapping[str, FloatArray]) -> FloatArray:
        held = x["held"].reshape(3 * self.s, -1)[: self.s, : self.m].ravel()
        return np.append(super().unknowns_of(x), held)

    def scratch(self, size: int, old: FloatArray, params: FloatArray) -> FloatArray:
        found = super().scratch(size, old, params)
        if found is not old:
            (begin,) = self.probe.begins
            found[begin : begin + self.m] = [probe(i) for i in range(self.m)]
            found[self.settled.begins[0] : self.settled.begins[-1] + 1] = 0.0
        return found


class _End(Eliminated):
    """The factors of (M, Gᵀ; G, 0) where a step ends.

    x        a right-hand side, and what it is solved to: of coordinates, and of multipliers
    weighed  the diagonal of M
    """

    def __init__(self, form: LongHeld) -> None:
        super().__init__(form, ("m_v",), form.control_time(form.s))
        W, middle = form.lanes, self.middle
        (x,) = self.systems([(((middle.entries["m_v"], None),),)])
        self.x = Place("work", (x, x + form.count * W), W)
        own = middle.one[(middle.row == middle.column) & (middle.row < form.n)]
        slot = form.work.keep(np.ascontiguousarray(own))
        self.weighed = Permuted(slot, form.n, form.weight.begins[0], middle.entries["m_v"])


def _joined(places: Sequence[Place]) -> Place:
    """One component in several places, where these lie alike."""
    assert len({(place.array, place.pitch, place.lane) for place in places}) == 1
    return replace(places[0], begins=tuple(begin for place in places for begin in place.begins))
