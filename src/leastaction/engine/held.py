"""Steps that are explicit except for their multipliers: Störmer and Verlet's with constraints, RATTLE.

Where the step without constraints is explicit (`explicit`), that with constraints g = 0 is, with G = ∂g/∂q and β₀, β₁
the weights of the reactions at its ends,

    z = b + A λ,      b = h M⁻¹ (p + w₀ f(t, q) − Σ_i b_i a(t_i)),      A = h M⁻¹ h β₀ G(t, q)ᵀ,
    g(t + h, q + z) = 0:      G(t + h, q + z) A dλ = −g,      z ← z + A dλ,

so that multipliers alone are predicted and iterated: b is known, and no coordinate that turns back has to be predicted.
The impulse w₀ f + w₁ f⁺ + h β₀ Gᵀλ + G⁺ᵀμ brings ġ to zero (`settle`). The search for μ begins with h β₁ λ, which
differs from μ by the change of the reaction in h. Force and G at the end are those at the start of the next step, and
are handed on. The order of instructions is that in which each can begin: one long chain waits for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.engine.ending import settled
from leastaction.engine.explicit import Explicit
from leastaction.engine.form import RESOLVED, Blocks, Values
from leastaction.engine.verdict import PATIENCE, TINY, judged, wanted
from leastaction.program import Builder, Program, dot
from leastaction.program.elimination import by_rows, factors, short_dot, substitute
from leastaction.program.ordering import prompt
from leastaction.step.form import stencils
from leastaction.step.prediction import Prediction
from leastaction.step.prediction import tables as prediction_tables
from leastaction.step.rows import OneByOne, Table

FloatArray = NDArray[np.float64]


class Held(Explicit):
    """Newton's iteration on the multipliers."""

    def tables(self) -> dict[str, Table]:
        table = self.step.method.table
        return prediction_tables(table.modes, table.growth)

    def handed_blocks(self) -> Blocks:
        return [*super().handed_blocks(), ("rods", len(self.entries))]

    @cached_property
    def entries(self) -> list[int]:
        """Which entries of G are not zero by structure."""
        assert self.step.end is not None
        moving = self.step.end.program
        return [i for i, k in enumerate(moving.output("c_v")) if moving.code[k] != ("const", 0.0)]

    def own_blocks(self) -> Blocks:
        n, m, ahead = self.n, self.step.multipliers, Prediction(1, OneByOne())
        return [("moved", n), ("multipliers", m), ("kick", n), ("pushed", n), ("late rods", len(self.entries)),
                ("strength", m), ("memory", m * ahead.memory), ("record", ahead.record)]  # fmt: skip

    def begin(self) -> Program:
        B, _, x = self.opened()
        found = self.begin_mass(B, x) | {"rods": self._rods(B, x, x["Q"], 0.0)}
        if self.hands_on:
            found["force"] = self._force(B, x, x["Q"], 0.0, 0)
        return self.begun(B, x, found)

    def pieces(self) -> dict[str, Program]:
        found = {"first": self._first(), "again": self._again(), "settle": self._settle(), "land": self._land()}
        return {name: prompt(piece) for name, piece in found.items()}

    def _rods(self, B: Builder, x: Values, q: Any, share: Any) -> list[Any]:
        """The entries of G."""
        assert self.step.end is not None
        moving, zero = self.step.end.program.select("c", "c_v"), B.number(0.0)
        at = {"t": [self.time(x, share)], "q": q, "v": [zero] * self.n, "params": x["params"]}
        G = B.at(moving, {name: [zero] * size for name, size in moving.inputs} | at)["c_v"]
        return [G[i] for i in self.entries]

    def _early(self, B: Builder, x: Values) -> list[list[Any]]:
        """h β₀ G at the start of the step, row by row."""
        weight, G = self._weights(x)[0], [B.number(0.0)] * (self.n * self.step.multipliers)
        for i, a in zip(self.entries, x["rods"], strict=True):
            G[i] = weight * a
        return by_rows(G, self.n)

    def _weights(self, x: Values) -> list[Any]:
        """h β₀ and h β₁."""
        return list(stencils(self.step.samples(self.step.terms[1]), x["h"][0]).weights)

    def _reactions(self, B: Builder, x: Values) -> list[list[Any]]:
        """A, column by column."""
        pulls = [list(row) for row in zip(*self._early(B, x), strict=True)]
        rows = self.mass.solve(self.inverse_mass(B, x), pulls)
        return [[x["h"][0] * a for a in column] for column in zip(*rows, strict=True)]

    def _corrected(self, B: Builder, x: Values, A: list[list[Any]]) -> list[Any]:
        """The increments of the multipliers, and behind them those of z."""
        held = self.step.terms[1].slopes.select("g", "g_q")
        q = [a + b for a, b in zip(x["Q"], x["moved"], strict=True)]
        at = {"t": [self.time(x, x["h"][0])], "q": q, "multipliers": x["multipliers"], "params": x["params"]}
        found = B.at(held, at | {"v": [0.0] * self.n})
        S = [[short_dot(row, column) for column in A] for row in by_rows(found["g_q"], self.n)]
        more = substitute(factors(S, hasty=True), [-a for a in found["g"]])
        return [*more, *(dot(row, more) for row in zip(*A, strict=True))]

    def _judged(self, B: Builder, x: Values, A: list[list[Any]], first: bool) -> Values:
        m, moves = self.step.multipliers, self._corrected(B, x, A)
        unknowns = [a + b for a, b in zip([*x["multipliers"], *x["moved"]], moves, strict=True)]
        after = judged(self.rows, x, *([[a] for a in part[m:]] for part in (moves, unknowns)), first=first,
                       patience=PATIENCE, squares=not first)  # fmt: skip
        return after | {"multipliers": unknowns[:m], "moved": unknowns[m:]}

    def _first(self) -> Program:
        """Two iterations: one is hardly ever enough."""
        B, _, x = self.opened()
        move, kick, _ = self._step(B, x, early=True)
        A = self._reactions(B, x)
        x["moved"] = [a + dot(row, x["multipliers"]) for a, row in zip(move, zip(*A, strict=True), strict=True)]
        once = self._judged(B, x, A, True)
        once["size"] = [once["size"][0].op("max", TINY)]
        after = once | self._judged(B, x | once, A, False)
        return self.iterated(B, x, after | {"kick": kick}, True)

    def _again(self) -> Program:
        B, _, x = self.opened()
        return self.iterated(B, x, self._judged(B, x, self._reactions(B, x), False), False)

    def _settle(self) -> Program:
        """The impulse after which ġ = 0 where the step ends; force and G there."""
        B, _, x = self.opened()
        step, ends, h = self.step, self.ends, x["h"][0]
        pushed = x["kick"]
        after: Values = {}
        if 1.0 in ends:
            weight = stencils(step.samples(step.terms[0]), h).weights[ends[1.0]]
            q = [a + (b + c) for a, b, c in zip(x["Q"], x["moved"], x["lost"], strict=True)]
            late = self._force(B, x, q, h, ends[1.0])
            pushed = [a + weight * b for a, b in zip(pushed, late, strict=True)]
            after = {"force": late} if self.hands_on else {}
        pulls = zip(*self._early(B, x), strict=True)
        pushed = [a + dot(G, x["multipliers"]) for a, G in zip(pushed, pulls, strict=True)]
        at = x | {"t": [self.time(x, 0.0)], "q": x["Q"], "p": x["P"]}
        impulse, sound = settled(step, B, at, x["moved"], pushed, [self._weights(x)[1] * a for a in x["multipliers"]])
        rods = self._rods(B, x, [a + b for a, b in zip(x["Q"], x["moved"], strict=True)], h)
        after |= {"pushed": impulse, "late rods": rods, "failed": [~sound]}
        return B.finished(**(wanted(x, x["alive"][0], after) if self.width > 1 else after))

    def solution(self, B: Builder, rows: Any, x: Values) -> Any:
        return [[a] for a in x["moved"]], x["pushed"]

    def unknowns(self, B: Builder, rows: Any, x: Values) -> list[Any]:
        return [*x["moved"], *x["multipliers"]]

    def _land(self) -> Program:
        B, rows, x = self.opened()
        out = self.landed(B, rows, x, x["moved"], x["pushed"], [abs(a) for a in x["moved"]])
        out["rods"] = x["late rods"]
        parts = zip(out["length"], out["q"], x["floor"], strict=True)
        out["scale"] = [a.op("max", abs(q) * RESOLVED).op("max", floor) for a, q, floor in parts]
        pairs = zip(x["strength"], x["multipliers"], strict=True)
        out["strength"] = [(a * 0.5).op("max", abs(b)) for a, b in pairs]
        units = [1.0 / a.op("max", TINY) for a in out["strength"]]
        ahead, memory, choice = self.foreseen(rows, x, out, [[a] for a in x["multipliers"]], units)
        out["multipliers"] = [y for row in memory for y in ahead.propose(row, choice)]
        return self.closed(B, x, out)

    def put(self, x: Mapping[str, FloatArray], lane: int, z: FloatArray, impulse: FloatArray, h: float) -> None:
        x["moved"][:, lane], x["multipliers"][:, lane] = z[0, : self.n], z[0, self.n :]
