"""Where a step with constraints ends, at any precision: the End of `step.form`, solved, and its derivative."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import flint

from leastaction.flint.evaluate import function
from leastaction.flint.mechanics import solve
from leastaction.numbers.conversion import Balls, identity
from leastaction.numbers.rounding import GUARD_BITS
from leastaction.program import Program
from leastaction.step.form import End


class Settled(NamedTuple):
    """The end of a step on the constraints: Gᵀμ, by which the momentum changes, v, and μ."""

    push: Balls
    v: Balls
    mu: Balls


class Ending:
    """The equations of an End with their parameters put in: n coordinates, m multipliers."""

    def __init__(self, end: End, n: int, m: int, params: Balls, bits: int) -> None:
        self._end, self.n, self.m, self._params, self._bits = end, n, m, params, bits
        self._values = function(end.program, end.program.results, params)

    @cached_property
    def _slopes(self) -> Any:
        return function(self._end.slopes, self._end.slopes.results, self._params)

    def settle(self, t: Any, q: Balls, p: Balls, v: Balls) -> Settled | None:
        """e(v, μ) = p, c(v) = 0 by Newton, from the guess v, until the increment of v is below the last digit.

        None where it is not solved, or where a last digit decides whether the constraints depend on each other.
        """
        n, m, digit, mu = self.n, self.m, flint.arb((1, GUARD_BITS - self._bits)), [flint.arb(0)] * self.m
        for _ in range(self._bits):
            at = _blocks(self._end.program, self._values(t, *q, *v, *mu))
            inverse = solve(self._saddle(at), identity(n + m))
            if inverse is None or not all(self._independent(at, inverse, i, digit) for i in range(m)):
                return None
            right = [a - b for a, b in zip(p, at["e"], strict=True)] + [-x for x in at["c"]]
            step = (inverse * flint.arb_mat(n + m, 1, right)).entries()
            v = [(a + b).mid() for a, b in zip(v, step, strict=False)]
            mu = [(a + b).mid() for a, b in zip(mu, step[n:], strict=True)]
            if all(a.abs_lower() <= abs(b) * digit for a, b in zip(step, v, strict=False)):
                push = flint.arb_mat(m, n, at["c_v"]).transpose() * flint.arb_mat(m, 1, mu)
                return Settled(list(push.mid().entries()), v, mu)
        return None

    def _independent(self, at: dict[str, Balls], inverse: Any, i: int, digit: Any) -> bool:
        """Whether row i of G has a part across the other rows: with D = Σ_j G_ij²/m_jj the number i of D (G M⁻¹Gᵀ)⁻¹ is
        one over the square of the sine between them.
        """
        n, mass = self.n, at["e_v"]
        row = at["c_v"][i * n : (i + 1) * n]
        D = sum(
            (x * x / abs(mass[j * n + j]) for j, x in enumerate(row) if not mass[j * n + j].is_zero()), flint.arb(0)
        )
        return bool(abs(D * inverse[n + i, n + i]) * digit < 1)

    def _saddle(self, at: dict[str, Balls]) -> Any:
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
        moved = self._saddle(at).mid().solve(flint.arb_mat(right).mid(), algorithm="approx").tolist()
        dp = along("m", n) + flint.arb_mat(n, n, at["e_v"]) * flint.arb_mat(moved[:n])
        return flint.arb_mat(rows[:n] + dp.tolist()).mid()


def _blocks(program: Program, values: Balls) -> dict[str, Balls]:
    return {name: values[program.output_slice(name)] for name, _ in program.outputs}
