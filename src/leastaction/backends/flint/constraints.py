"""Where a step with constraints ends, at any precision: the End of `step.form`, solved, and its derivative."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import flint

from leastaction.backends.flint.evaluate import function
from leastaction.backends.flint.mechanics import solve_matrix
from leastaction.numbers.conversion import Balls
from leastaction.program import Program
from leastaction.step.form import End
from leastaction.step.independence import INDEPENDENT_BITS
from leastaction.step.independence import probe as probe_of

MOST_ITERATIONS = 60
LINEAR_ITERATIONS = 2  # where L is quadratic in v: the first one solves, and the second one removes what rounding left


@dataclass(frozen=True, eq=False)
class Settled:
    """The end of a step on the constraints: Gᵀμ, by which the momentum changes, v, and μ."""

    push: Balls
    v: Balls
    mu: Balls


class Ending:
    """The equations of an End with their parameters put in: n coordinates, m multipliers."""

    def __init__(self, end: End, n: int, m: int, params: Balls, bits: int) -> None:
        self._end, self.n, self.m, self._params, self._bits = end, n, m, params, bits
        self._values = function(end.program, end.program.results, params)
        self._most = flint.arb((1, bits - INDEPENDENT_BITS)).mid()  # of what `step.independence` looks at

    @cached_property
    def _slopes(self) -> Any:
        return function(self._end.slopes, self._end.slopes.results, self._params)

    def settle(self, t: Any, q: Balls, p: Balls, v: Balls) -> Settled | None:
        """e(v, μ) = p, c(v) = 0 by Newton, from the guess v; None where it is not solved."""
        n, m, program = self.n, self.m, self._end.program
        zero = [flint.arb(0)] * m
        push, mu = [flint.arb(0)] * n, zero
        before = flint.arb("inf")
        for iteration in range(MOST_ITERATIONS):
            at = _blocks(program, self._values(t, *q, *v, *zero))
            right = [a + b - c for a, b, c in zip(p, push, at["e"], strict=True)] + [-x for x in at["c"]]
            lengths = _lengths(at["c_v"], at["e_v"], n, m)
            probe = [flint.arb(0)] * n + [x * flint.arb(probe_of(i)) for i, x in enumerate(lengths)]
            try:
                solved = solve_matrix(
                    self.saddle(at), flint.arb_mat([list(row) for row in zip(right, probe, strict=True)])
                )
            except ZeroDivisionError:
                return None
            step, probed = ([row[k] for row in solved.tolist()] for k in (0, 1))
            if not all(abs(a * b) < self._most for a, b in zip(probed[n:], lengths, strict=True)):
                return None  # constraints depend on each other
            G = flint.arb_mat(m, n, at["c_v"])
            pushed = (G.transpose() * flint.arb_mat(m, 1, step[n:])).entries()
            push = [(a + b).mid() for a, b in zip(push, pushed, strict=True)]
            v = [(a + b).mid() for a, b in zip(v, step, strict=False)]
            mu = [(a + b).mid() for a, b in zip(mu, step[n:], strict=True)]
            if self._end.linear:
                if iteration + 1 == LINEAR_ITERATIONS:
                    return Settled(push, v, mu) if all(x.is_finite() for x in v) else None
                continue
            size = _size(step[:n], at["e_v"])
            whole = _size(v, at["e_v"]) + _size(pushed, at["e_v"], divided=True)
            if size <= whole * flint.arb((1, 4 - self._bits)):
                return Settled(push, v, mu)
            if not size < before / 2 and iteration > 0:
                return Settled(push, v, mu) if size <= whole * flint.arb((1, -(self._bits // 2))) else None
            before = size
        return None

    def saddle(self, at: dict[str, Balls]) -> Any:
        """(e_v, −c_vᵀ; c_v, 0)."""
        n, m, mass, G = self.n, self.m, at["e_v"], at["c_v"]
        rows = [mass[j * n : (j + 1) * n] + [-G[i * n + j] for i in range(m)] for j in range(n)]
        return flint.arb_mat(rows + [G[i * n : (i + 1) * n] + [flint.arb(0)] * m for i in range(m)])

    def carried(self, t: Any, q: Balls, settled: Settled, D: Any, when: Any, P: int) -> Any:
        """(dq⁺, dp⁻) in the columns of D ↦ (dq⁺, dp⁺). With P ≥ 0 the last P + 1 columns vary the parameters and h.

        h changes the time, dt⁺ = `when` dh. With (e_v, −Gᵀ; G, 0) (dv, dμ) = (dp⁻, 0) − (e, c)_q dq⁺ − (e, c)_t dt⁺
        − (e, c)_w dw the result is dp⁺ = m_q dq⁺ + m_v dv + m_t dt⁺ + m_w dw.
        """
        n, m, C = self.n, self.m, D.ncols()
        at = _blocks(self._end.slopes, self._slopes(t, *q, *settled.v, *settled.mu))
        rows = D.tolist()
        dq = flint.arb_mat(rows[:n])

        def along(name: str, size: int) -> Any:
            change = flint.arb_mat(size, n, at[f"{name}_q"]) * dq
            if P < 0:
                return change
            by_t, by_w = at[f"{name}_t"], at[f"{name}_w"]
            none = [flint.arb(0)] * (C - P - 1)
            return change + flint.arb_mat([[*none, *by_w[j * P : (j + 1) * P], by_t[j] * when] for j in range(size)])

        right = (flint.arb_mat(rows[n:]) - along("e", n)).tolist() + (-along("c", m)).tolist()
        moved = solve_matrix(self.saddle(at), flint.arb_mat(right)).tolist()
        dp = along("m", n) + flint.arb_mat(n, n, at["e_v"]) * flint.arb_mat(moved[:n])
        return flint.arb_mat(rows[:n] + dp.mid().tolist())


def _blocks(program: Program, values: Balls) -> dict[str, Balls]:
    values = [x.mid() for x in values]
    return {name: values[program.output_slice(name)] for name, _ in program.outputs}


def _lengths(G: Balls, mass: Balls, n: int, m: int) -> Balls:
    """The lengths of the rows of G in the metric of the inverse diagonal of the mass."""
    heavy = [abs(mass[j * n + j]) for j in range(n)]
    squares = [sum((G[i * n + j] ** 2 / heavy[j] for j in range(n) if heavy[j] > 0), flint.arb(0)) for i in range(m)]
    return [x.sqrt().mid() for x in squares]


def _size(x: Balls, mass: Balls, divided: bool = False) -> Any:
    """Σ_j |x_j| √m_jj, or with `divided` Σ_j |x_j| / √m_jj."""
    n, total = len(x), flint.arb(0)
    for j, value in enumerate(x):
        heavy = abs(mass[j * n + j]).sqrt()
        total += abs(value) / heavy if divided and not heavy.is_zero() else abs(value) * heavy
    return total.mid()
