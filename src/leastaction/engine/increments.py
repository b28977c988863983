"""Steps of any member by the increments z at its control points: Newton's iteration, or mass chords.

Newton    R and ∂R/∂z as one Program, eliminated without pivoting along its pattern; multipliers of constraints are
          further unknowns behind the increments. Where the step ends `settle` finds the impulse after which ġ = 0.
          A root is refused where det ∂R/∂z has another sign than for h → 0: it lies beyond a fold or a pole.
Chord     dz = −(S⁻¹ ⊗ M⁻¹) h R with M = L_vv in the middle of the step and S of the method: gradients alone. It
          contracts by O(h²) for a constant mass and by O(h) otherwise. Where it fails, the rescue solves the step.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.engine.ending import settled, settled_anyhow, simple_end
from leastaction.engine.form import Blocks, Form, Values
from leastaction.engine.increment_tables import padded as repeated
from leastaction.engine.increment_tables import tables as chord_tables
from leastaction.engine.march import marched, tamed
from leastaction.engine.newton_equations import filled as _filled
from leastaction.engine.newton_equations import iteration
from leastaction.engine.residual import equations as chord_equations
from leastaction.engine.residual import in_the_middle
from leastaction.engine.sparsity import order_of
from leastaction.engine.verdict import PATIENCE, judged, refuse, wanted
from leastaction.program import Builder, Program, dot
from leastaction.program.elimination import pivots_of, square, substitute
from leastaction.step.prediction import Prediction
from leastaction.step.prediction import tables as prediction_tables
from leastaction.step.rows import OneByOne, Row, Rows, Table, apply, size, total

FloatArray = NDArray[np.float64]


class Newton(Form):
    """Newton's iteration on z, and on the multipliers of constraints."""

    def tables(self) -> dict[str, Table]:
        table = self.step.method.table
        self.one = iteration(self.step)
        return prediction_tables(table.modes, table.growth)

    def own_blocks(self) -> Blocks:
        step, ahead = self.step, Prediction(self.s, OneByOne())
        count = self.n + step.multipliers
        return [("unknowns", self.s * count), ("pushed", self.n), ("more", self.n),
                ("invariants", self.one.before.output_size), ("memory", self.n * ahead.memory),
                ("record", ahead.record), ("sense", int(self.senses))]  # fmt: skip

    @property
    def senses(self) -> bool:
        """Whether the sign of the determinant is judged."""
        return self.step.checked and not self.step.multipliers

    def begin(self) -> Program:
        B, rows, x = self.opened()
        v, h, d, found = self.velocity(B, rows, x), x["h"][0], self.controls, {}
        found["unknowns"] = [(h * a) * c for c in d for a in v] + [0.0] * (self.s * self.step.multipliers)
        if self.senses:
            found["sense"] = [self._sense(B, rows, x, v)]
        return self.begun(B, x, found | {"scale": [abs(h * a) for a in v]})

    def _sense(self, B: Builder, rows: Rows, x: Values, v: list[Any]) -> Any:
        """The sign of det ∂R/∂z for h → 0, in the order of the elimination: there it is A/h ⊗ L_vv (`step.form`), whose
        A is positive definite.
        """
        n, s, (order, _) = self.n, self.s, order_of(self.step)
        inputs = self._inputs_by_node(rows, x)[: self.step.channels]
        at = {"t": [self.time(x, 0.0)], "q": x["Q"], "v": v, "params": x["params"], "inputs": inputs}
        mass = square(B.at(self.step.terms[0].slopes.select("m_v"), at)["m_v"])
        sign = one = B.number(1.0)
        for pivot in [*pivots_of([mass[j] for j in order[::s]]), *[x["h"][0]] * n] * (s % 2):
            sign = sign * one.op("copysign", pivot)
        return sign

    def pieces(self) -> dict[str, Program]:
        found = {"first": self._iteration(True), "again": self._iteration(False), "land": self._land()}
        return found | ({"settle": self._settle()} if self.step.end is not None else {})

    def hard_pieces(self) -> dict[str, Program]:
        return {} if self.step.multipliers else {"hard": self._iteration(True, marching=True)}

    def _rows_of(self, values: list[Any]) -> list[Row]:
        """The rows of the coordinates, and behind them of the multipliers."""
        n, s, m = self.n, self.s, self.step.multipliers
        own = [[values[v * n + j] for v in range(s)] for j in range(n)]
        return own + [[values[s * n + v * m + j] for v in range(s)] for j in range(m)]

    def _flat(self, rows: list[Row]) -> list[Any]:
        n, s = self.n, self.s
        return [row[v] for part in (rows[:n], rows[n:]) for v in range(s) for row in part]

    def _iteration(self, first: bool, marching: bool = False) -> Program:
        B, rows, x = self.opened()
        one, n, old = self.one, self.n, x["unknowns"]
        if marching:
            found = marched(self, B, x, self._inputs_by_node(rows, x)[: self.step.channels], self.controls)
            z = [[q[j] - x["Q"][j] for q, _ in found] for j in range(n)]
            old = self._flat(tamed(self, rows, x, z, 1.0))
        given = x | {"t": [self.time(x, 0.0)], "z": old}
        before = B.at(one.before, given) if first else {}
        at = B.at(one.first, given | before)
        N = len(at["right"])
        matrix = _filled(B, (N, N), one.pattern, at["factors"], one.constants)
        solved = substitute(matrix, at["right"])
        dz = [solved[one.unknowns.index(i)] for i in range(N)]
        more = [dot(row, dz) for row in _filled(B, (n, N), one.moved, at["slopes"], one.fixed)]
        z = [a + b for a, b in zip(old, dz, strict=True)]
        moves, places = (self._rows_of(y)[:n] for y in (dz, z))
        after = judged(rows, x, moves, places, first=first, patience=PATIENCE, squares=not first)
        finite = total(dz) - total(dz)
        after["failed"] = [after["failed"][0] | finite.op("ne", 0.0)]
        after["going"] = [after["going"][0] & ~after["failed"][0]]
        if self.senses:
            refuse(after, prod([matrix[i][i] for i in range(N)], start=x["sense"][0]) < 0.0)
        after |= {"unknowns": z, "pushed": at["impulse"], "more": more, **before}
        return self.iterated(B, x, after, first, marching)

    def _settle(self) -> Program:
        """The impulse after which ġ = 0 where the step ends."""
        B, _, x = self.opened()
        pushed = [a + b for a, b in zip(x["pushed"], x["more"], strict=True)]
        at = x | {"t": [self.time(x, 0.0)], "q": x["Q"], "p": x["P"]}
        settle = settled if simple_end(self.step) else settled_anyhow
        impulse, sound = settle(self.step, B, at, x["unknowns"], pushed)
        after: Values = {"pushed": impulse, "more": [0.0] * self.n, "failed": [~sound]}
        return B.finished(**(wanted(x, x["alive"][0], after) if self.width > 1 else after))

    def solution(self, B: Builder, rows: Rows, x: Values) -> tuple[list[Row], Row]:
        return self._rows_of(x["unknowns"])[: self.n], [a + b for a, b in zip(x["pushed"], x["more"], strict=True)]

    def unknowns(self, B: Builder, rows: Rows, x: Values) -> list[Any]:
        return x["unknowns"]

    def _land(self) -> Program:
        B, rows, x = self.opened()
        n = self.n
        z = self._rows_of(x["unknowns"])
        pushed = [a + b for a, b in zip(x["pushed"], x["more"], strict=True)]
        # What the sum with the last change loses of it belongs to the state, too (`step.form` says why).
        late = [c + (m - (b - a)) for c, m, a, b in zip(x["lost p"], x["more"], x["pushed"], pushed, strict=True)]
        x["carry"] = [*x["carry"][:n], *late]
        out = self.landed(B, rows, x, [row[-1] for row in z[:n]], pushed, [size(row) for row in z[:n]])
        ahead, memory, choice = self.foreseen(rows, x, out, z[:n])
        # Multipliers enter linearly, beside increments: those of the last step will do.
        new = [ahead.propose(row, choice) for row in memory] + z[n:]
        out["unknowns"] = self._flat(new)
        out = self.scaled(rows, x, out, new[:n])
        return self.closed(B, x, out)

    def put(self, x: Mapping[str, FloatArray], lane: int, z: FloatArray, impulse: FloatArray, h: float) -> None:
        n = self.n
        x["unknowns"][:, lane] = np.concatenate([z[:, :n].ravel(), z[:, n:].ravel()])
        x["pushed"][:, lane], x["more"][:, lane] = impulse, 0.0


class Chord(Form):
    """Mass chords on z."""

    def tables(self) -> dict[str, Table]:
        found = chord_tables(self.step)
        stencil = [f"{a} {e}" for e in range(len(self.step.terms)) for a in ("times", "weights", "q", "v", "f", "m")]
        own = {name: found[name] for name in ("modes", "growth", "ends", "parts", "solve", "end", *stencil)}
        return own | {"controls": np.array(self.controls)[:, None]}

    def padded(self) -> frozenset[str]:
        return repeated(self.step) - {f"weights {e}" for e in range(len(self.step.terms))}

    def own_blocks(self) -> Blocks:
        ahead = Prediction(self.s, self.rows)
        return [("Z", self.n * self.rows.length(self.s)), ("inverse", 0 if self.mass.constant else self.mass.size),
                ("memory", self.n * ahead.memory), ("record", ahead.record)]  # fmt: skip

    def begin(self) -> Program:
        B, rows, x = self.opened()
        found = self.begin_mass(B, x)
        v, h = self.velocity(B, rows, x), x["h"][0]
        found["Z"] = [c * (h * a) for a in v for c in rows.columns("controls")[0]]
        return self.begun(B, x, found | {"scale": rows.packed([abs(h * a) for a in v])})

    def pieces(self) -> dict[str, Program]:
        return {"first": self._iteration(True), "again": self._iteration(False), "land": self._land()}

    def _read(self, x: Values) -> tuple[Values, list[Row]]:
        own = x | {"q": x["Q"], "p": x["P"], "t": [self.time(x, 0.0)]}
        return own, self.by_coordinate(x["Z"])

    def _iteration(self, first: bool) -> Program:
        B, rows, x = self.opened()
        own, z = self._read(x)
        if self.mass.constant:
            inverse = self.inverse_mass(B, x)
        elif first:
            at = in_the_middle(self.step, rows, own["t"][0], x["h"][0], x["Q"], z)
            inverse = self.mass.inverted(B, at | {"params": x["params"]})
        else:
            inverse = x["inverse"]
        R, _ = chord_equations(self.step, rows, B, own, z)
        moves = [apply(rows, rows.columns("solve"), row) for row in self.mass.solve(inverse, R)]
        new = [[a + b for a, b in zip(*of, strict=True)] for of in zip(z, moves, strict=True)]
        after: Values = judged(rows, x, moves, new, first=first, patience=PATIENCE)
        after["Z"] = [y for row in new for y in row]
        if first and not self.mass.constant:
            after["inverse"] = inverse
        return self.iterated(B, x, after, first)

    def solution(self, B: Builder, rows: Rows, x: Values) -> tuple[list[Row], Row]:
        own, z = self._read(x)
        _, impulse = chord_equations(self.step, rows, B, own, z)
        return z, rows.packed(impulse)

    def _land(self) -> Program:
        B, rows, x = self.opened()
        own, z = self._read(x)
        _, impulse = chord_equations(self.step, rows, B, own, z)
        move, pushed = rows.packed([rows.number(row, self.s - 1) for row in z]), rows.packed(impulse)
        out = self.landed(B, rows, x, move, pushed, rows.packed([size(row) for row in z]))
        ahead, memory, choice = self.foreseen(rows, x, out, z)
        new = [ahead.propose(row, choice) for row in memory]
        out["Z"] = [y for row in new for y in row]
        return self.closed(B, x, self.scaled(rows, x, out, new))

    def put(self, x: Mapping[str, FloatArray], lane: int, z: FloatArray, impulse: FloatArray, h: float) -> None:
        self.write(x["Z"], lane, z.T)
