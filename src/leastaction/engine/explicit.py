"""Steps that their equations give at once, as those of Störmer and Verlet: nothing is iterated, nothing is judged.

Where s = 1, the nodes are ends of the step, f does not depend on v and m = M v + a(t) with a constant M
(`Step.explicit`), the equations of `step.form` are, with w₀, w₁ the weights h b_i of the ends,

    z = h M⁻¹ (p + w₀ f(t, q) − Σ_i b_i a(t_i)),      q⁺ = q + z,      p⁺ = p + w₀ f(t, q) + w₁ f(t + h, q⁺).

The force at the end, at the compensated sum q⁺, is the force at the start of the next step and is handed on, so that a
step needs one force; with inputs, which may differ there, it needs two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.engine.form import Blocks, Form, Values
from leastaction.program import Builder, Program
from leastaction.step.form import stencils

FloatArray = NDArray[np.float64]


class Explicit(Form):
    """Störmer and Verlet."""

    @property
    def ends(self) -> dict[float, int]:
        return {float(c): i for i, c in enumerate(self.step.method.table.c)}

    @property
    def hands_on(self) -> bool:
        return len(self.ends) == 2 and not self.step.channels

    def handed_blocks(self) -> Blocks:
        return [("force", self.n if self.hands_on else 0)]

    def _force(self, B: Builder, x: Values, q: Any, share: Any, node: int) -> list[Any]:
        at = {"t": [self.time(x, share)], "q": q, "v": [0.0] * self.n, "params": x["params"],
              "inputs": self.driving(x, node)}  # fmt: skip
        return B.at(self.step.terms[0].program.select("f"), at)["f"]

    def begin(self) -> Program | None:
        B, _, x = self.opened()
        found = self.begin_mass(B, x)
        if self.hands_on:
            found["force"] = self._force(B, x, x["Q"], 0.0, 0)
        return self.begun(B, x, found) if found else None

    def pieces(self) -> dict[str, Program]:
        B, rows, x = self.opened()
        move, impulse, late = self._step(B, x)
        out = self.landed(B, rows, x, move, impulse, [abs(a) for a in move])
        return {"land": self.closed(B, x, out | {"force": late})}

    def solution(self, B: Builder, rows: Any, x: Values) -> Any:
        move, impulse, _ = self._step(B, x)
        return [[a] for a in move], impulse

    def _step(self, B: Builder, x: Values, early: bool = False) -> tuple[list[Any], list[Any], list[Any]]:
        """z, the impulse and the force at the end; of the latter the `early` part alone, that of the start."""
        h, n, ends = x["h"][0], self.n, self.ends
        weights = stencils(self.step.samples(self.step.terms[0]), h).weights.tolist()
        nothing = [B.number(0.0)] * n
        kick, late = nothing, nothing
        if 0.0 in ends:
            i = ends[0.0]
            force = x["force"] if self.hands_on else self._force(B, x, x["Q"], 0.0, i)
            kick = [weights[i] * a for a in force]
        pushed = [p + k for p, k in zip(x["P"], self._less_at_rest(B, x, kick), strict=True)]
        move = [h * row[0] for row in self.mass.solve(self.inverse_mass(B, x), [[a] for a in pushed])]
        if early or 1.0 not in ends:
            return move, kick, late
        i = ends[1.0]
        q = [a + (b + c) for a, b, c in zip(x["Q"], move, x["lost"], strict=True)]
        late = self._force(B, x, q, h, i)
        return move, [k + weights[i] * a for k, a in zip(kick, late, strict=True)], late

    def _less_at_rest(self, B: Builder, x: Values, kick: list[Any]) -> list[Any]:
        """The kick less Σ_i b_i a(t_i), a being the momentum at rest."""
        momentum, table = self.step.terms[0].program.select("m"), self.step.method.table
        if self.mass.separable:
            return kick
        for i, (c, b) in enumerate(zip(table.c.tolist(), table.b.tolist(), strict=True)):
            at = {"t": [self.time(x, x["h"][0] * c)], "q": x["Q"], "v": [0.0] * self.n, "params": x["params"],
                  "inputs": self.driving(x, i)}  # fmt: skip
            kick = [a - b * m for a, m in zip(kick, B.at(momentum, at)["m"], strict=True)]
        return kick

    def put(self, x: Mapping[str, FloatArray], lane: int, z: FloatArray, impulse: FloatArray, h: float) -> None:
        """Nothing: the step follows from the state."""
