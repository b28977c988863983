"""Runs that carry their derivative along: the state after k steps by the state before, and by the parameters w and h.

With R(z; q, p, w) = 0 the equations of a step and I its impulse, a direction (dq, dp, dw, dh) is carried to

    dz = −(∂R/∂z)⁻¹ dR,    dq⁺ = dq + dz^s,    dp⁺ = dp + dI + ∂I/∂z dz,

where dR and dI are the changes along the direction at fixed z: the sweep of the equations, a column for each direction.
At a point of a step the direction changes what a Program reads, and so what it gives:

    dt_i = (k + τ_i) dh,   dq_i = dq,   dv_i = −v_i dh/h;        df_i = f_t dt_i + f_q dq + f_v dv_i + f_w dw,

and df_i has f_i dh/h more, since the weights h w_i grow with h; those of m do not grow, since m comes with l′/h.

RK4 is differentiated stage by stage, which is RK4 itself on the equations of the derivative.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flint
from numpy.typing import NDArray

from leastaction.backends.flint.evaluate import function
from leastaction.backends.flint.galerkin import GalerkinStepper
from leastaction.backends.flint.iteration import Solution
from leastaction.backends.flint.linear import LinearMechanics, LinearStepper
from leastaction.backends.flint.mechanics import Mechanics, solve_matrix
from leastaction.backends.flint.rk4 import RK4Stepper
from leastaction.backends.flint.sweep import Linearised, Node, Sweep
from leastaction.backends.rows import Row
from leastaction.backends.stepper import Start
from leastaction.methods import Method, RungeKutta4
from leastaction.numbers.conversion import Balls, balls, mpfs
from leastaction.numbers.precision import flint_bits
from leastaction.program import Program
from leastaction.step.form import Step
from leastaction.step.sensitivity import sensitivity


def _start(rows: int, columns: int) -> Any:
    return flint.arb_mat([[int(i == j) for j in range(columns)] for i in range(rows)])


class GalerkinTangent(GalerkinStepper):
    """A member of the PsNrQu family at work, and its derivative: by the state or, as `row` wants, by w and h too."""

    def __init__(
        self, mechanics: Mechanics, step: Step, start: Start, row: Row, phase: tuple[Any, Any] = (0, 1)
    ) -> None:
        super().__init__(mechanics, step, start, row, phase)
        self._P = row.varied - 2 * self.n - 1
        with flint_bits(self.bits):
            self._D = _start(2 * self.n, row.varied)
            given = balls(start.params)
            programs = [sensitivity(term) for term in step.terms] if self._P >= 0 else []
            self._outer = [_Outer(program, given) for program in programs]

    def now(self) -> Balls:
        return super().now() + _columns(self._D)

    def saved(self) -> dict[str, NDArray[Any]]:
        return super().saved() | {"directions": mpfs(self._D.entries())}

    def load(self, saved: Mapping[str, NDArray[Any]]) -> None:
        super().load(saved)
        self._D = flint.arb_mat(2 * self.n, self.row.varied, balls(saved["directions"]))

    def _take(self, t: Any, solution: Solution) -> None:
        sweep = self._sweeps(1.0)
        at = sweep.linearised(t, self._q, self._p, solution.z)
        self._D = self._carry(sweep, at)
        settled = None if self._ending is None else self._settled(t, solution.z, at.impulse)
        super()._take(t, solution)
        if self._ending is not None and settled is not None:
            end, when = (t + self._h).mid(), self.done + self._offset + self._part
            self._D = self._ending.carried(end, self._q, settled, self._D, when, self._P)

    def _carry(self, sweep: Sweep, at: Linearised) -> Any:
        """D after the step whose equations are linearised at its solution."""
        n, C, last = self.n, self._D.ncols(), (self.s - 1) * self.n
        rows = self._D.tolist()
        values: list[list[Balls]] = [[] for _ in sweep.terms]
        for node in sweep.nodes(at):
            changes = self._along(sweep, at, node, flint.arb_mat(rows[:n]))
            values[node.term].append([x for change in changes for x in change.entries()])
        R, impulse = sweep.scatter(values, C)
        for i, x in enumerate(x for row in rows[n:] for x in row):
            R[last * C + i] -= x
        dz = -(at.inverse * flint.arb_mat(sweep.N, C, R)).mid()
        pushed = flint.arb_mat(n, C, impulse) + at.slope * dz
        return (self._D + flint.arb_mat(dz.tolist()[last : last + n] + pushed.tolist())).mid()

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


class RK4Tangent(RK4Stepper):
    """The classical Runge–Kutta method at work, and its derivative: y has the columns of D behind it."""

    def __init__(self, mechanics: Mechanics, method: RungeKutta4, start: Start, row: Row) -> None:
        super().__init__(mechanics, method, start, row)
        system = mechanics.system
        self._C = row.varied
        self._P = row.varied - 2 * self.n - 1
        with flint_bits(self.bits):
            given = balls(start.params)
            self._second = _Blocks(system.sensitive_node, given, self.n)
            if self.form == "lagrange":  # m_v da = g_q dq + g_v dv + g_w dw + g_t dt
                self._acceleration = _Blocks(system.acceleration_slopes, given, self.n)
        self.count_from(0)

    def count_from(self, step: int) -> None:
        super().count_from(step)
        with flint_bits(self.bits):
            D = _start(2 * self.n, self._C)
            if self.form == "lagrange":
                D = self._to_velocities(D)
            self._y = self._y[: 2 * self.n] + _columns(D)

    def now(self) -> Balls:
        D = self._matrix(self._y)
        return super().now() + _columns(D if self.form == "hamilton" else self._to_momenta(D))

    def _matrix(self, y: Balls) -> Any:
        """The derivative, which stands behind (q, p) or (q, v) in y."""
        n = self.n
        return flint.arb_mat([y[2 * n + i :: 2 * n] for i in range(2 * n)])

    def _outer(self, by_w: Any, by_t: Any, sigma: Any) -> Any:
        """by_w dw + by_t dt, with dt = σ dh."""
        n, C = self.n, self._C
        if self._P < 0:
            return flint.arb_mat(n, C)
        none = [flint.arb(0)] * (C - self._P - 1)
        return flint.arb_mat([[*none, *by_w[j], by_t[j][0] * sigma] for j in range(n)])

    def _dv(self, at: dict[str, Any], D: Any, sigma: Any) -> Any:
        """dv = m_v⁻¹ (dp − m_q dq − m_w dw − m_t dt)."""
        dq, dp = _halves(D)
        outer = self._outer(at["m_w"].tolist(), at["m_t"].tolist(), sigma)
        return solve_matrix(at["m_v"], dp - at["m_q"] * dq - outer)

    def _to_velocities(self, D: Any) -> Any:
        at = self._second(self._time(self.done), self._y[: self.n], self._v, self._u)
        return _stacked(_halves(D)[0], self._dv(at, D, flint.arb(self.done)))

    def _to_momenta(self, D: Any) -> Any:
        n, (dq, dv) = self.n, _halves(D)
        at = self._second(self._time(self.done), self._y[:n], self._y[n : 2 * n], self._u)
        outer = self._outer(at["m_w"].tolist(), at["m_t"].tolist(), self.done)
        return _stacked(dq, (at["m_q"] * dq + at["m_v"] * dv + outer).mid())

    def _field(self, sigma: Any, y: Balls) -> Balls | None:
        rate = super()._field(sigma, y)
        if rate is None:
            return None
        n, t, D = self.n, self._time(sigma), self._matrix(y)
        dq, dv = _halves(D)
        if self.form == "hamilton":
            at = self._second(t, y[:n], self._v, self._u)
            dv = self._dv(at, D, sigma)
            force = self._outer(at["f_w"].tolist(), at["f_t"].tolist(), sigma)
            second = at["f_q"] * dq + at["f_v"] * dv + force
        else:
            a = [x / self._h for x in rate[n:]]
            by = self._acceleration(t, y[:n], y[n : 2 * n], self._u, a)
            right = by["g_q"] * dq + by["g_v"] * dv + self._outer(by["g_params"].tolist(), by["g_t"].tolist(), sigma)
            second = solve_matrix(self._second(t, y[:n], y[n : 2 * n], self._u)["m_v"], right)
        change = (_stacked(dv, second) * self._h).tolist()
        if self._P >= 0:  # the rate grows with h
            for i in range(2 * n):
                change[i][-1] += rate[i] / self._h
        return rate + [row[c] for c in range(self._C) for row in change]


class _Blocks:
    """A Program of derivatives with its parameters put in, its blocks as matrices of so many rows."""

    def __init__(self, program: Program, params: Balls, rows: int) -> None:
        self._program, self._rows = program, rows
        self._values = function(program, program.results, params)

    def __call__(self, t: Any, *blocks: Balls) -> dict[str, Any]:
        values = [x.mid() for x in self._values(t, *(x for block in blocks for x in block))]
        sizes = self._program.outputs
        parts = {name: values[self._program.output_slice(name)] for name, _ in sizes}
        return {name: flint.arb_mat(self._rows, size // self._rows, parts[name]) for name, size in sizes}


class LinearTangent(LinearStepper):
    """A method at work on a Quadratic system, and its derivative: powers of the matrix of a step."""

    def __init__(self, mechanics: LinearMechanics, method: Method, start: Start, row: Row) -> None:
        super().__init__(mechanics, method, start, row)
        with flint_bits(self.bits):
            self._D = _start(2 * self.n, 2 * self.n)

    def step(self) -> None:
        self._D = (self._D + self.W * self._D).mid()
        super().step()

    def now(self) -> Balls:
        return super().now() + _columns(self._D)

    def saved(self) -> dict[str, NDArray[Any]]:
        return super().saved() | {"directions": mpfs(self._D.entries())}

    def load(self, saved: Mapping[str, NDArray[Any]]) -> None:
        super().load(saved)
        self._D = flint.arb_mat(2 * self.n, 2 * self.n, balls(saved["directions"]))


def _halves(D: Any) -> tuple[Any, Any]:
    rows = D.tolist()
    return flint.arb_mat(rows[: len(rows) // 2]), flint.arb_mat(rows[len(rows) // 2 :])


def _stacked(upper: Any, lower: Any) -> Any:
    return flint.arb_mat(upper.tolist() + lower.tolist())


def _columns(D: Any) -> Balls:
    return list(D.transpose().entries())
