"""Runs that carry their derivative along: the state after k steps by the state before, and by the parameters w and h.

With R(z; q, p, w) = 0 the equations of a step and I its impulse, a direction (dq, dp, dw, dh) is carried to

    dz = −(∂R/∂z)⁻¹ dR,    dq⁺ = dq + dz^s,    dp⁺ = dp + dI + ∂I/∂z dz,

where dR and dI are the changes along the direction at fixed z: the sweep of the equations, a column for each direction.
At a point of a step the direction changes what a Program reads, and so what it gives:

    dt_i = (k + τ_i) dh,   dq_i = dq,   dv_i = −v_i dh/h;        df_i = f_t dt_i + f_q dq + f_v dv_i + f_w dw,

and df_i has f_i dh/h more, since the weights h w_i grow with h; those of m do not grow, since m comes with l′/h.
"""

from __future__ import annotations

from typing import Any

import flint

from leastaction.backends.flint.evaluate import function
from leastaction.backends.flint.galerkin import GalerkinStepper
from leastaction.backends.flint.iteration import Solution
from leastaction.backends.flint.linear import LinearMechanics, LinearStepper
from leastaction.backends.flint.mechanics import Mechanics
from leastaction.backends.flint.sweep import Linearised, Node, Sweep
from leastaction.backends.rows import Row
from leastaction.backends.stepper import Start
from leastaction.methods import Method
from leastaction.numbers.conversion import Balls, balls
from leastaction.numbers.precision import flint_bits
from leastaction.program import Program
from leastaction.step.form import Step
from leastaction.step.sensitivity import sensitivity


def _start(n: int, columns: int) -> Any:
    return flint.arb_mat([[int(i == j) for j in range(columns)] for i in range(2 * n)])


class GalerkinTangent(GalerkinStepper):
    """A member of the PsNrQu family at work, and its derivative: by the state or, as `row` wants, by w and h too."""

    def __init__(
        self, mechanics: Mechanics, step: Step, start: Start, row: Row, phase: tuple[Any, Any] = (0, 1)
    ) -> None:
        super().__init__(mechanics, step, start, row, phase)
        self._P = row.varied - 2 * self.n - 1
        with flint_bits(self.bits):
            self.D = _start(self.n, row.varied)
            given = balls(start.params)
            programs = [sensitivity(term) for term in step.terms] if self._P >= 0 else []
            self._outer = [_Outer(program, given) for program in programs]

    def _take(self, t: Any, solution: Solution) -> None:
        sweep = self._sweeps(1.0)
        at = sweep.linearised(t, self._q, self._p, solution.z)
        self.D = self._carry(sweep, at)
        settled = None if self._ending is None else self._settled(t, solution.z, at.impulse)
        super()._take(t, solution)
        if self._ending is not None and settled is not None:
            end, when = (t + self._h).mid(), self.done + self._offset + self._part
            self.D = self._ending.carried(end, self._q, settled, self.D, when, self._P)

    def _carry(self, sweep: Sweep, at: Linearised) -> Any:
        """D after the step whose equations are linearised at its solution."""
        n, C, last = self.n, self.D.ncols(), (self.s - 1) * self.n
        rows = self.D.tolist()
        values: list[list[Balls]] = [[] for _ in sweep.terms]
        for node in sweep.nodes(at):
            changes = self._along(sweep, at, node, flint.arb_mat(rows[:n]))
            values[node.term].append([x for change in changes for x in change.entries()])
        R, impulse = sweep.scatter(values, C)
        for i, x in enumerate(x for row in rows[n:] for x in row):
            R[last * C + i] -= x
        dz = -(at.inverse * flint.arb_mat(sweep.N, C, R)).mid()
        pushed = flint.arb_mat(n, C, impulse) + at.slope * dz
        return (self.D + flint.arb_mat(dz.tolist()[last : last + n] + pushed.tolist())).mid()

    def _along(self, sweep: Sweep, at: Linearised, node: Node, dq: Any) -> list[Any]:
        """How all directions change each block that is given at a point."""
        C, changes = dq.ncols(), []
        directions = {"q": dq}
        if self._P >= 0:
            directions["v"] = _last_column([-x / self._period for x in node.read.get("v", [])], C)
        for out, given in node.gave.items():
            change = flint.arb_mat(len(given), C)
            for block, direction in directions.items():
                if slope := node.slopes.get((out, block)):
                    change += flint.arb_mat(len(given), direction.nrows(), slope) * direction
            if self._P >= 0:
                when = self.done + self._offset + self._part * sweep.terms[node.term].samples.tau[node.i]
                change += self._outer[node.term].along(out, at.points[node.term][node.i], when, C)
                if out == "f":
                    change += _last_column([x / self._period for x in given], C)
            changes.append(change)
        return changes


def _last_column(x: Balls, columns: int) -> Any:
    """The matrix whose last column, which varies h, is x."""
    return flint.arb_mat([[flint.arb(0)] * (columns - 1) + [a] for a in x]) if x else flint.arb_mat(0, columns)


class _Outer:
    """How time and the parameters change what a term gives."""

    def __init__(self, program: Program, params: Balls) -> None:
        self._program, self._values = program, function(program, program.results, params)

    def along(self, out: str, point: Balls, when: Any, C: int) -> Any:
        """f_t dt + f_w dw: the last column varies h, with dt = when · dh, the columns before it the parameters."""
        values, program = self._values(*point), self._program
        by_t, by_w = (values[program.output_slice(f"{out}_{name}")] for name in ("t", "params"))
        P = len(by_w) // len(by_t)
        none = [flint.arb(0)] * (C - P - 1)
        return flint.arb_mat([[*none, *by_w[j * P : (j + 1) * P], x * when] for j, x in enumerate(by_t)])


class LinearTangent(LinearStepper):
    """A method at work on a Quadratic system, and its derivative: powers of the matrix of a step."""

    def __init__(self, mechanics: LinearMechanics, method: Method, start: Start, row: Row) -> None:
        super().__init__(mechanics, method, start, row)
        with flint_bits(self.bits):
            self.D = _start(self.n, row.varied)

    def step(self) -> None:
        self.D = (self.D + self.W * self.D).mid()
        super().step()
