"""A step between two given positions: the equations of a Step, solved for the inner values instead of the end.

With q⁰ = q_k and q^s = q_{k+1} given, R_ν = 0 (0 < ν < s) determines z^1 … z^{s−1}, and the other equations
(`step.form`) give the momenta,

    p_k = R_s at p = 0,      p_{k+1} = p_k + impulse,      L_d = Σ_i h w_i L(τ_i),

p_k = −D₁L_d and p_{k+1} = D₂L_d. Their derivatives follow from those of R and the impulse with dz^s = dq_{k+1} − dq_k
and the inner dz eliminated.

Several motions may join the same ends. The one that is found is connected with h → 0, where the motion is uniform, by
steps that are shorter and shorter and have the same mean velocity: they end at q_k + x (q_{k+1} − q_k) after x h, x ≤
1. Verdict and continuation are those of every step (`step.verdict`, `step.continuation`). The determinant that keeps
its sign is here that of ∂R_ν/∂z^μ with 0 < ν, μ < s. It vanishes where the ends are conjugate: neighbouring motions
from q_k then meet in q_{k+1}, p_k is no function of the ends, and the branch folds, or crosses another one.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import flint

from leastaction.backends.flint.coarse import is_coarse
from leastaction.backends.flint.continuation import Beginning, follow, prolong
from leastaction.backends.flint.evaluate import function
from leastaction.backends.flint.iteration import Problem, solve_step
from leastaction.backends.flint.sweep import Layout, Linearised, Sweep, spread
from leastaction.backends.status import GOING_WELL
from leastaction.numbers.conversion import Balls, balls, identity
from leastaction.step.form import Step
from leastaction.systems.lagrangian import Lagrangian


@dataclass(frozen=True, eq=False)
class Between:
    """L_d and its derivatives at one pair of positions; D11, D12, D22 are matrices, rows by the first index."""

    action: Any
    z: Balls
    p_left: Balls
    p_right: Balls
    D11: Any
    D12: Any
    D22: Any


class Held:
    """The equations R_1 … R_{s−1} at h, for z^1 … z^{s−1}, with the end z^s held."""

    def __init__(self, sweep: Sweep, end: Balls) -> None:
        self.sweep, self.end, self.layout, self.h = sweep, end, sweep.layout, sweep.h
        self.n, self.s, self.N = sweep.n, sweep.s - 1, (sweep.s - 1) * sweep.n
        self.places = [range(j, self.N, self.n) for j in range(self.n)]
        self.short = sweep.short[: self.s]  # these equations, and these unknowns, are the first

    def residual(self, t: Any, q: Balls, p: Balls, z: Balls) -> tuple[Balls, Balls]:
        R, impulse = self.sweep.residual(t, q, p, z + self.end)
        return R[: self.N], impulse

    def linearised(self, t: Any, q: Balls, p: Balls, z: Balls) -> Linearised:
        at = self.sweep.linearised(t, q, p, z + self.end, inverted=False)
        jacobian, inverse = _rows(_columns(at.jacobian, 0, self.N), 0, self.N), None
        with suppress(ZeroDivisionError):
            inverse = jacobian.solve(identity(self.N), algorithm="approx").mid()
        return at._replace(
            residual=at.residual[: self.N], jacobian=jacobian, entries=jacobian.entries(), inverse=inverse,
            slope=_columns(at.slope, 0, self.N),
        )  # fmt: skip

    def noise(self, p: Balls, at: Linearised) -> Balls:
        return spread(self, at, self.sweep.summed(p, at)[: self.N])

    def mass(self, at: Linearised) -> Balls:
        return self.sweep.mass(at)


class Boundary:
    """Steps of length h between positions, with so many bits."""

    def __init__(self, system: Lagrangian, step: Step, params: Balls, h: Any, digits: int, bits: int) -> None:
        self.n, self.s, self._bits = step.n, step.s, bits
        self._value = function(system.program, system.program.output("L"), params)
        self._d, self._none = balls(step.controls(digits)), [flint.arb(0)] * step.n
        layout = Layout(step, params, digits)
        self._sweeps = lru_cache(maxsize=128)(lambda x: Sweep(layout, h if x == 1.0 else (h * x).mid()))
        self._sweep, self._h = self._sweeps(1.0), h

    def solve(self, t: Any, left: Balls, right: Balls) -> Between | float:
        """The step from left at time t to right; or, where there is none, the largest part of it that there is."""
        moved = [(b - a).mid() for a, b in zip(left, right, strict=True)]
        if self.s == 1:
            return self._described(t, left, moved)

        def problem(x: float, bits: int, way: Balls) -> Problem:
            end = moved if x == 1.0 else [(x * a).mid() for a in moved]
            return Problem(Held(self._sweeps(x), end), t, left, self._none, bits, way)

        whole = problem(1.0, self._bits, [])
        solution = solve_step(whole, self._uniform(Held(self._sweep, moved)), None, [])
        root = solution.root
        if not solution.good or root is None or (self._branching and is_coarse(whole.sweep, root)):
            v = [(a / self._h).mid() for a in moved]
            found = follow(Beginning(problem, self._uniform, self._prolonged, v), self._bits, [])
            if found.status != GOING_WELL or found.solution is None:
                return found.fraction
            solution = found.solution
        return self._described(t, left, solution.z + moved)

    @property
    def _branching(self) -> bool:
        return self._sweep.layout.branching

    def _uniform(self, held: Held) -> Balls:
        """The inner values of the uniform motion."""
        return [(d * x).mid() for d in self._d[1:-1] for x in held.end]

    def _prolonged(self, held: Held, z: Balls, ratio: float) -> Balls:
        """The polynomial of a shorter step, prolonged; a uniform motion is added, so that it ends where it has to."""
        shorter = [(x / ratio).mid() for x in held.end]
        z = prolong(self._d, z + shorter, self.n, ratio)
        gap = [a - b for a, b in zip(held.end, z[held.N :], strict=True)]
        added = [d * x for d in self._d[1:-1] for x in gap]
        return [(a + b).mid() for a, b in zip(z, added, strict=False)]

    def _described(self, t: Any, q: Balls, z: Balls) -> Between:
        sweep, n, inner = self._sweep, self.n, (self.s - 1) * self.n
        at = sweep.linearised(t, q, self._none, z, inverted=False)
        p_left = [x.mid() for x in at.residual[inner:]]
        p_right = [(a + b).mid() for a, b in zip(p_left, at.impulse, strict=True)]
        action = sum((w * self._lagrangian(point) for w, point in self._weighted(at)), flint.arb(0)).mid()
        by_q, impulse_by_q = sweep.by_position(at)
        by_end = _columns(at.jacobian, inner, inner + n)
        impulse_by_end = _columns(at.slope, inner, inner + n)
        # Derivatives of R and of the momenta by (left, right), with dz^s = d right − d left, before the inner dz are
        # eliminated.
        R = [by_q - by_end, by_end]
        impulse = [impulse_by_q - impulse_by_end, impulse_by_end]
        if inner:
            A = flint.arb_mat([row[:inner] for row in at.jacobian.tolist()[:inner]]).mid()
            for k in range(2):
                dz = -A.solve(_rows(R[k], 0, inner).mid(), algorithm="approx").mid()
                R[k] = R[k] + _columns(at.jacobian, 0, inner) * dz
                impulse[k] = impulse[k] + _columns(at.slope, 0, inner) * dz
        by_left, by_right = (_rows(part, inner, inner + n).mid() for part in R)
        right = (by_right + impulse[1]).mid()
        return Between(action, z, p_left, p_right, -by_left, -by_right, right)

    def _weighted(self, at: Linearised) -> list[tuple[Any, Balls]]:
        """The weights h w_i, and what is read at each point: (t, q, v)."""
        return list(zip(self._sweep.stencils[0].weights, at.points[0], strict=True))

    def _lagrangian(self, point: Balls) -> Any:
        return self._value(*point)[0]


def _columns(A: Any, begin: int, end: int) -> Any:
    return flint.arb_mat([row[begin:end] for row in A.tolist()])


def _rows(A: Any, begin: int, end: int) -> Any:
    return flint.arb_mat(A.tolist()[begin:end])
