"""Form: a way of solving a step, as Programs over one state; what all forms share.

A form says how the iteration of a step begins (`first`), goes on (`again`), and ends (`land`: on to the next step).
Where it has one, it says another way for steps that the cheap one fails on (`hard`, `harder`). Each is a Program that
works in place on the named blocks of a state; `kernel.driver` has the loops and branches around them.

Trajectories lie side by side in the lanes of vectors; or there is one trajectory, with the points of its step side by
side (`side`). What depends on the length h of the step is a table: numbers of the state, rounded once in Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.engine.directions import vary, vary_length, vary_padded, vary_tables
from leastaction.engine.ending import simple_end
from leastaction.engine.linearised import Carrying
from leastaction.engine.mass import mass_of
from leastaction.engine.sparsity import LONGEST_ONCE
from leastaction.engine.verdict import STATE, TINY, wanted
from leastaction.kernel.guarded import guarded
from leastaction.program import Builder, Program, Value, dot
from leastaction.program.elimination import factors, square, substitute
from leastaction.step.form import Step
from leastaction.step.prediction import Prediction
from leastaction.step.rows import OneByOne, Row, Rows, SideBySide, Table, numbers, size

FloatArray = NDArray[np.float64]
Values = dict[str, list[Any]]
Blocks = list[tuple[str, int]]

# Blocks with one number for a trajectory, the same in all lanes where its points lie side by side.
SINGLE = (
    *STATE, "spent", "most", "t", "t0", "h", "period", "alive", "started", "resting",
    "doubt", "urgent", "offset",
)  # fmt: skip
VELOCITY_ITERATIONS = 3  # from the polynomial's velocity; the energy's error is the square of the velocity's
FADING = 0.5  # the length of an old step counts half as much with every step
SHORTEST, LONGEST = 1 / 8, 2.0  # a predicted step as a scale: at least and at most so much of the latest steps
RESOLVED = 2.0**-24  # … and at least this part of q: shorter steps are not resolved


def two_sum(a: Value, b: Value, lost: Value) -> tuple[Value, Value]:
    """a + b with what rounding leaves of it (Knuth). What was `lost` before is added to what is left now, not to b,
    whose last place may be larger.
    """
    whole = a + b
    part = whole - a
    rest = lost + ((a - (whole - part)) + (b - part))
    new = whole + rest
    return new, rest - (new - whole)


def clamped(top: Value, length: Value, place: Value, resolved: float = RESOLVED) -> Value:
    """The scale of a coordinate: its predicted step, about as long as the latest ones, and resolved."""
    return top.op("min", length * LONGEST).op("max", length * SHORTEST).op("max", place * resolved + TINY)


def faded(length: Value, step: Value) -> Value:
    """The length of the latest steps."""
    return (length * FADING).op("max", TINY).op("max", step)


@dataclass(frozen=True)
class Watching:
    """Where an event may lie: (t, h, q, p, z, impulse, last, params, inputs) ↦ doubt, urgent, before, lead."""

    program: Program


class Form:
    """A way of solving a step.

    lanes   numbers of a value: trajectories side by side, or, of one trajectory, points of its step
    width   trajectories side by side
    watch   what looks for events, or None
    lifts   whether z, the increments at the control points, and the impulse are left in the state (`lift`)
    energy_of   the system of which the range of the energy is found, or None
    varied  along how many directions derivatives are carried; `varies`: by a Program (`directions`)
    """

    watches = True  # whether the native function can look for events
    continues = True  # whether a step that native code fails on is solved by continuation, which may take long
    alone = False  # whether its work holds what belongs to one trajectory, as parameters

    def __init__(
        self, step: Step, lanes: int, width: int, watch: Watching | None = None, lifts: bool = False,
        energy_of: Any = None, varied: int = 0,
    ) -> None:  # fmt: skip
        self.step, self.lanes, self.width, self.watch, self.energy_of = step, lanes, width, watch, energy_of
        plain = step.end is None or simple_end(step)
        self.varied, self.varies = varied, varied > 0 and plain and vary_length(step, varied, lanes) <= LONGEST_ONCE
        self.n, self.s, self.mass = step.n, step.s, mass_of(step)
        self.side = lanes > width
        # Where L is not quadratic in v, the energy's velocity is found from that of the step's polynomial.
        curved = energy_of is not None and energy_of.hessian.depends("Lvv", "v")
        self.lifts = lifts or watch is not None or curved or (varied > 0 and not self.varies)
        tables, padded = self.tables(), self.padded()
        if self.varies:
            tables, padded = tables | vary_tables(step, lanes), padded | vary_padded(step)
        self.rows: Any = SideBySide(tables, lanes, None, padded) if self.side else OneByOne(tables)
        self.blocks = self._blocks()
        self.names = {name for name, _ in self.blocks}

    # ---- what a form says

    def tables(self) -> dict[str, Table]:
        """Coefficients by name; functions of h for those that depend on it."""
        return {}

    def padded(self) -> frozenset[str]:
        """Tables whose last row is repeated in lanes without a point."""
        return frozenset()

    def handed_blocks(self) -> Blocks:
        """What a factor of a composition hands on to the next one, beside q and p and what rounding left of them."""
        return []

    def own_blocks(self) -> Blocks:
        """What the state holds beside what all forms hold."""
        return []

    def pieces(self) -> dict[str, Program]:
        """first, again, land, as far as there are any: what most steps need."""
        raise NotImplementedError

    def hard_pieces(self) -> dict[str, Program]:
        """hard, harder: compiled when a step first needs them."""
        return {}

    def begin(self) -> Program | None:
        """What trajectories begin with that have not started: uniform motion as the prediction of the first step."""
        return None

    def began(
        self, x: Mapping[str, FloatArray], t: float, q: FloatArray, p: FloatArray, h: float, params: FloatArray
    ) -> None:
        """What Python writes into the state of one trajectory, block by block, before its first step."""

    def unknowns_of(self, x: Mapping[str, FloatArray]) -> FloatArray:
        """The unknowns of the step that has just landed, where `lifts`."""
        return x["z"][:, 0]

    def solved(self, x: Mapping[str, FloatArray], q: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """z, (s, n), and the impulse of a step that began at (q, p) and has landed, of a form that is `alone`."""
        raise NotImplementedError

    def vary(self) -> Program:
        """Directions through a step that is solved."""
        return vary(self)

    def carrying(self, params: FloatArray) -> Any:
        """What carries derivatives where no Program does."""
        return Carrying(self.step, params, self.varied)

    def scratch(self, size: int, old: FloatArray, params: FloatArray) -> FloatArray:
        """The array that native code works in: the old one, if it serves."""
        return old if len(old) >= size else guarded((size,), "work")

    def put(self, x: Mapping[str, FloatArray], lane: int, z: FloatArray, impulse: FloatArray, h: float) -> None:
        """Write a step into the blocks of the state as the unknowns of one trajectory: increments z at the control
        points, (s, n), multipliers behind them, and the impulse without the reaction at the end of the step.
        """
        raise NotImplementedError

    # ---- the state

    def _blocks(self) -> Blocks:
        n, w, step = self.n, self.rows.length, self.step
        nodes = len(step.method.table.c)
        count = w(nodes) if self.side else nodes
        found = [
            ("q", w(n)), ("p", w(n)), ("carry", 2 * w(n)), ("directions", self.room), *self.handed_blocks(),
            ("params", step.params), ("inputs", step.channels * count),
            ("scale", w(n)), ("length", w(n)), ("floor", w(n)), *((name, 1) for name in SINGLE),
            ("mass", 0 if self.mass.fixed or not self.mass.constant else self.mass.size),
            *self.own_blocks(), ("tables", self.rows.size),
        ]  # fmt: skip
        # What few runs have comes last: the other pieces are then the same code in all runs.
        if self.lifts:
            found += [("z", self.s * (n + step.multipliers)), ("impulse", n), ("from", 2 * n)]
        if self.watch is not None:
            found += [("last", n), ("look", 2 + 2 * n + self.s * n + 2 * n)]
        if self.energy_of is not None:
            found += [("lowest", 1), ("highest", 1)]
        return [*found, ("earlier", self.room)]

    @property
    def room(self) -> int:
        """How many values hold the directions: groups that lie in lanes, one after the other."""
        return -(-self.varied // self.lanes) * 2 * self.n

    @cached_property
    def controls(self) -> list[float]:
        """d_1 … d_s."""
        return [float(d) for d in self.step.controls(20)[1:]]

    @cached_property
    def places(self) -> dict[str, slice]:
        ends = np.cumsum([size for _, size in self.blocks]).tolist()
        return {name: slice(end - size, end) for (name, size), end in zip(self.blocks, ends, strict=True)}

    def opened(self) -> tuple[Builder, Rows, Values]:
        """A Builder on the state, rows, and the blocks; Q, P: position and momentum number by number, and what the
        rounding of the last sums left of them.
        """
        B = Builder(self.blocks)
        rows = replace(self.rows, B=B)
        x: Values = B.blocks()
        w, n = rows.length(self.n), self.n
        x |= {"Q": numbers(rows, x["q"], n), "P": numbers(rows, x["p"], n)}
        x |= {"lost": numbers(rows, x["carry"][:w], n), "lost p": x["carry"][w:]}
        x |= {} if self.step.checked else {"nearest": [B.number(0.0)]}  # any root is trusted
        return B, rows, x

    def by_coordinate(self, values: Sequence[Any]) -> list[Row]:
        w = len(values) // self.n
        return [list(values[j * w : (j + 1) * w]) for j in range(self.n)]

    def time(self, x: Values, share: Any) -> Value:
        """The time of a point: whole steps are counted, so that no rounding adds up."""
        return x["t0"][0] + (x["t"][0] * x["period"][0] + share)

    def driving(self, x: Values, g: int) -> list[Value]:
        """The inputs at the g-th point, or at the points in the g-th vector."""
        count, values = self.step.channels, x["inputs"]
        if not count:
            return []
        return values[g :: len(values) // count] if self.side else values[g * count : (g + 1) * count]

    def inverse_mass(self, B: Builder, x: Values) -> list[Value]:
        """M⁻¹ of a constant mass: numbers, or factors."""
        return self.mass.inverted(B, {}) if self.mass.fixed else x["mass"]

    def begun(self, B: Builder, x: Values, found: Values) -> Program:
        """The Program of `begin`."""
        return B.finished(**wanted(x, ~x["started"][0], found))

    def iterated(self, B: Builder, x: Values, after: Values, first: bool, hard: bool = False) -> Program:
        """The Program of an iteration: trajectories that do not take part in it stay as they are."""
        if self.width == 1:
            return B.finished(**after)
        wants = x["alive"][0] & x["failed"][0] if first and hard else x["alive"][0] if first else x["going"][0]
        if first and not hard:  # what failed in the last step has been solved otherwise
            after = {**after, "going": [wants & after["going"][0]], "failed": [wants & after["failed"][0]]}
        return B.finished(**wanted(x, wants, after))

    def velocity(self, B: Builder, rows: Rows, x: Values) -> list[Any]:
        """The velocity at the start of a step, where L is quadratic in v; else one iteration of Newton from rest."""
        momentum = self.step.terms[0].program.select("m")
        inputs = self._inputs_by_node(rows, x)[: self.step.channels]
        at = {"t": [self.time(x, 0.0)], "q": x["Q"], "v": [0.0] * self.n, "params": x["params"], "inputs": inputs}
        gaps = [[p - m] for p, m in zip(x["P"], B.at(momentum, at)["m"], strict=True)]
        return [row[0] for row in self.mass.solve(self.mass.inverted(B, at), gaps)]

    def begin_mass(self, B: Builder, x: Values) -> Values:
        """The block mass, where the mass is constant but not known yet."""
        if not self.mass.constant or self.mass.fixed:
            return {}
        return {"mass": self.mass.inverted(B, {"params": x["params"]}, direct=True)}

    # ---- on to the next step

    def landed(
        self, B: Builder, rows: Rows, x: Values, move: Row, impulse: Row, lengths: Row, z: Sequence[Row] | None = None
    ) -> Values:
        """q and p with what rounding left over, the lengths of steps, t."""
        sums = zip([*x["q"], *x["p"]], [*move, *impulse], x["carry"], strict=True)
        state, carry = zip(*(two_sum(a, b, lost) for a, b, lost in sums), strict=True)
        w = len(x["q"])
        return {"q": [*state[:w]], "p": [*state[w:]], "carry": [*carry], "length": [*map(faded, x["length"], lengths)],
                "t": [x["t"][0] + 1.0], "started": [1.0], "going": [0.0], "failed": [0.0]}  # fmt: skip

    def solution(self, B: Builder, rows: Rows, x: Values) -> tuple[list[Row], Row]:
        """z at the control points, a row for each coordinate, and the impulse, of a step that is solved."""
        raise NotImplementedError

    def unknowns(self, B: Builder, rows: Rows, x: Values) -> list[Any]:
        """z of a step that is solved, number by number, and the multipliers behind it."""
        z, _ = self.solution(B, rows, x)
        every = [numbers(rows, row, self.s) for row in z]
        return [every[j][v] for v in range(self.s) for j in range(self.n)]

    def lift(self) -> Program:
        """z, the impulse and the state at the start of the step, number by number, for those who look at the step.

        It is a Program of its own, so that nobody who looks changes a bit of `land`.
        """
        B, rows, x = self.opened()
        _, impulse = self.solution(B, rows, x)
        return B.finished(
            z=self.unknowns(B, rows, x),
            impulse=numbers(rows, impulse, self.n),
            **{"from": [*x["Q"], *x["P"]]},
        )

    def scaled(self, rows: Rows, x: Values, out: Values, Z: Sequence[Row]) -> Values:
        """The scale of each coordinate in the next step, from its predicted places."""
        tops = rows.packed([size(row) for row in Z])
        parts = zip(tops, out["length"], out["q"], x["floor"], strict=True)
        out["scale"] = [clamped(a, b, abs(q)).op("max", c) for a, b, q, c in parts]
        return out

    def foreseen(
        self, rows: Rows, x: Values, out: Values, z: Sequence[Row], units: Sequence[Value] | None = None
    ) -> tuple[Prediction, list[Row], Value]:
        """The prediction of the next step from z of the last one; what it remembers goes to `out`."""
        ahead, memory, errors = Prediction(self.s, rows), [], None
        units = units or numbers(rows, [1.0 / a.op("max", TINY) for a in out["length"]], self.n)
        w = ahead.memory
        for j, row in enumerate(z):
            kept, off = ahead.assess(row, units[j], x["started"][0], x["memory"][j * w : (j + 1) * w])
            memory.append(kept)
            errors = off if errors is None else [a.op("max", b) for a, b in zip(errors, off, strict=True)]
        assert errors is not None
        choice, record = ahead.choose(errors, x["started"][0], x["record"])
        out |= {"memory": [y for row in memory for y in row], "record": record}
        return ahead, memory, choice

    def closed(self, B: Builder, x: Values, out: Values) -> Program:
        """The Program of `land`: trajectories that are not alive stay as they are."""
        out = {name: values for name, values in out.items() if name in self.names}
        return B.finished(**(wanted(x, x["alive"][0], out) if self.width > 1 else out))

    # ---- the range of the energy

    def reduce(self) -> Program:
        """The range of E = p·v − L over the steps, L_v(t, q, v) = p."""
        B, rows, x = self.opened()
        system, n, s = self.energy_of, self.n, self.s
        first = system.hessian.select("Lv", "Lvv")
        curved = first.depends("Lvv", "v")
        at = {"t": [self.time(x, 0.0)], "q": x["Q"], "params": x["params"]}
        if curved:
            slope = self.step.method.table.slope.tolist()
            v = [dot(slope[1:], x["z"][j : s * n : n]) / x["h"][0] for j in range(n)]
        else:
            v = self.velocity(B, rows, x)
        for _ in range(VELOCITY_ITERATIONS if curved else 0):
            found = B.at(first, at | {"v": v})
            gaps = [a - b for a, b in zip(x["P"], found["Lv"], strict=True)]
            v = [a + b for a, b in zip(v, substitute(factors(square(found["Lvv"])), gaps), strict=True)]
        E = dot(x["P"], v) - B.at(system.program, at | {"v": v})["L"][0]
        out = {"lowest": [x["lowest"][0].op("min", E)], "highest": [x["highest"][0].op("max", E)]}
        return B.finished(**(wanted(x, x["alive"][0], out) if self.width > 1 else out))

    # ---- events

    def check(self) -> Program:
        """Of the step that has just landed: doubt, urgent, and the block look, (t, h, q, p, z, impulse, last)."""
        assert self.watch is not None
        B, rows, x = self.opened()
        n, t = self.n, self.time(x, 0.0) - x["period"][0]
        given = {"t": [t], "h": x["h"], "q": x["from"][:n], "p": x["from"][n:],
                 "z": x["z"][: self.s * n], "impulse": x["impulse"],
                 "last": x["last"], "params": x["params"], "inputs": self._inputs_by_node(rows, x)}  # fmt: skip
        found = B.at(self.watch.program, given)
        look = [y for name in ("t", "h", "q", "p", "z", "impulse", "last") for y in given[name]]
        return B.finished(doubt=found["doubt"], urgent=found["urgent"], last=found["lead"], look=look)

    def _inputs_by_node(self, rows: Rows, x: Values) -> list[Any]:
        U, r, values = self.step.channels, len(self.step.method.table.c), x["inputs"]
        if not U or not self.side:
            return values
        w = len(values) // U
        channels = [numbers(rows, values[j * w : (j + 1) * w], r) for j in range(U)]
        return [channels[j][g] for g in range(r) for j in range(U)]

    # ---- from Python

    def write(self, block: FloatArray, lane: int, rows: FloatArray) -> None:
        """Write rows, one of each coordinate, to a block of the state, (values, lanes)."""
        if not self.side:
            block[:, lane] = rows.ravel()
            return
        width = self.rows.length(rows.shape[1]) * self.lanes
        full = np.repeat(rows[:, -1:], width, axis=1)
        full[:, : rows.shape[1]] = rows
        block[:] = full.reshape(-1, self.lanes)
