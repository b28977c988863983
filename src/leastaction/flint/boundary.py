"""A step between two given positions: the equations of a Step with the end held, and the momentum unknown instead.

With q⁰ = q_k and q^s = q_{k+1} given, R = 0 (`step.form`) determines z^1 … z^{s−1} and p_k, which enters R linearly:

    p_k = −D₁L_d,      p_{k+1} = p_k + impulse = D₂L_d,      L_d = Σ_i h w_i L(τ_i).

Their derivatives follow from those of R and the impulse, with dz^s = dq_{k+1} − dq_k.

Several motions may join the same ends. The one that is found is connected with h → 0, where the motion is uniform, by
steps that are shorter and shorter and have the same mean velocity: they end at q_k + x (q_{k+1} − q_k) after x h, x ≤
1. The determinant that keeps its sign is here that of R by z^1 … z^{s−1} and p. It vanishes where the ends are
conjugate: neighbouring motions from q_k then meet in q_{k+1}, p_k is no function of the ends, and the branch folds, or
crosses another one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import flint

from leastaction.flint.equations import Equations, Layout, Linearised, part
from leastaction.flint.evaluate import function
from leastaction.flint.mechanics import solve
from leastaction.flint.newton import Problem, followed
from leastaction.numbers.conversion import Balls, balls
from leastaction.step.form import Step
from leastaction.step.status import GOING_WELL
from leastaction.systems.lagrangian import Lagrangian


class Between(NamedTuple):
    """L_d and its derivatives at one pair of positions; D11, D12, D22 are matrices, rows by the first index."""

    action: Any
    z: Balls
    p_left: Balls
    p_right: Balls
    D11: Any
    D12: Any
    D22: Any


class Boundary:
    """Steps of length h between positions, with so many bits."""

    def __init__(self, system: Lagrangian, step: Step, params: Balls, h: Any, digits: int, bits: int) -> None:
        self.n, self.s, self._bits, self._checked, self._h = step.n, step.s, bits, step.checked, h
        self._value = function(system.program, system.program.output("L"), params)
        self._d, self._layout = balls(step.controls(digits)), Layout(step, params, digits)
        self._at = lru_cache(maxsize=128)(lambda x: Equations(self._layout, h if x == 1.0 else (h * x).mid()))

    def solve(self, t: Any, left: Balls, right: Balls) -> Between | float:
        """The step from left at time t to right; or, where there is none, the largest part of it that there is."""
        n, N, none = self.n, self._layout.N, [flint.arb(0)] * self.n
        moved = [(b - a).mid() for a, b in zip(left, right, strict=True)]

        def problem(x: float, scale: Balls) -> Problem:
            equations = self._at(x)

            def linearised(unknown: Balls) -> Linearised:
                at = equations.linearised(t, left, unknown[N:], unknown[:N])
                missed = [a - x * b for a, b in zip(unknown[N - n : N], moved, strict=True)]
                slope = flint.arb_mat([row + none for row in at.slope.tolist()])
                return at._replace(residual=at.residual + missed, jacobian=self._held(at.jacobian), slope=slope)

            return Problem(linearised, self._layout.places[:n], self._checked, scale)

        def uniform(x: float) -> Balls:
            return [(d * x * a).mid() for d in self._d[1:] for a in moved] + none

        z = moved
        if self.s > 1:
            found = followed(problem, uniform, n, self._bits)
            if found.status != GOING_WELL:
                return found.reached
            z = found.z[: N - n] + moved
        at = Equations(self._layout, self._h, by_q=True).linearised(t, left, none, z)
        p_left = [x.mid() for x in at.residual[N - n :]]
        p_right = [(a + b).mid() for a, b in zip(p_left, at.impulse, strict=True)]
        assert at.by_q is not None
        weights = [self._h * w for w in self._layout.terms[0].samples.w]
        action = sum((w * self._value(*x)[0] for w, x in zip(weights, at.points[0], strict=True)), flint.arb(0)).mid()
        # With the columns by left and by right: dz and dp from ∂R/∂z dz − dp = −∂R/∂q dleft, dz^s = dright − dleft.
        by_q, pushed = ([row + none for row in A.tolist()] for A in at.by_q)
        ends: list[list[Any]] = [[int(k == n + j) - int(k == j) for k in range(2 * n)] for j in range(n)]
        changes = solve(self._held(at.jacobian), flint.arb_mat((-flint.arb_mat(by_q)).tolist() + ends))
        if changes is None:
            changes = flint.arb_mat(N + n, 2 * n, [flint.arb("nan")] * (2 * n * (N + n)))
        dz, dp = part(changes, slice(N)), part(changes, slice(N, None))
        right = dp + at.slope * dz + flint.arb_mat(pushed)
        by_left, by_right = part(dp, columns=slice(n)).mid(), part(dp, columns=slice(n, None)).mid()
        return Between(action, z, p_left, p_right, -by_left, -by_right, part(right, columns=slice(n, None)).mid())

    def _held(self, jacobian: Any) -> Any:
        """The derivatives of (R, z^s) by (z, p)."""
        n, N = self.n, self._layout.N
        rows = [row + [flint.arb(-int(i == N - n + j)) for j in range(n)] for i, row in enumerate(jacobian.tolist())]
        return flint.arb_mat(rows + [[int(k == N - n + j) for k in range(N + n)] for j in range(n)])
