"""A step between two given positions: the equations of a Step, solved for the inner values instead of the end.

With q⁰ = q_k and q^s = q_{k+1} given, R_ν = 0 (0 < ν < s) determines z^1 … z^{s−1}, and the other equations
(`step.form`) give the momenta,

    p_k = R_s at p = 0,      p_{k+1} = p_k + impulse,      L_d = Σ_i h w_i L(τ_i),

p_k = −D₁L_d and p_{k+1} = D₂L_d. Their derivatives follow from those of R and the impulse with dz^s = dq_{k+1} − dq_k
and the inner dz eliminated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import flint

from leastaction.backends.flint.evaluate import function
from leastaction.backends.flint.sizes import largest
from leastaction.backends.flint.sweep import Layout, Linearised, Sweep
from leastaction.numbers.conversion import Balls, balls
from leastaction.step.form import Step
from leastaction.systems.lagrangian import Lagrangian

MOST_ITERATIONS = 30
SPARE_BITS = 60  # of the working precision beyond `bits`
CONTRACTS = 0.25  # by how much the second increment must be shorter than the first
FIRST, GROWTH, LEAST = 1 / 16, 2.0, 1.05  # continuation: the part of h to begin with, and how it grows


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


class Boundary:
    """Steps of length h between positions, correct to `bits` at a working precision of SPARE_BITS more."""

    def __init__(self, system: Lagrangian, step: Step, params: Balls, h: Any, digits: int, bits: int) -> None:
        self.n, self.s, self.bits = step.n, step.s, bits
        self._h, self._layout = h, Layout(step, params, digits)
        self._value = function(system.program, system.program.output("L"), params)
        self._d = balls(step.controls(digits))[1:]
        self._sweep = Sweep(self._layout, h)

    def solve(self, t: Any, left: Balls, right: Balls) -> Between | None:
        """The step from left at time t to right; None where the inner values are not found."""
        moved = [(b - a).mid() for a, b in zip(left, right, strict=True)]
        z = [(d * x).mid() for d in self._d for x in moved]
        found = self._newton(self._sweep, t, left, z) if self.s > 1 else z
        if found is None:
            found = self._continued(t, left, z)
        return None if found is None else self._described(t, left, found)

    def _newton(self, sweep: Sweep, t: Any, q: Balls, z: Balls) -> Balls | None:
        """Newton's iteration for the inner values, with the end held fixed; None where it does not contract at once."""
        n, inner = self.n, (self.s - 1) * self.n
        none = [flint.arb(0)] * n
        near, tiny, last = flint.arb((1, -(self.bits // 2) - 8)), flint.arb((1, -SPARE_BITS)), None
        for _ in range(MOST_ITERATIONS):
            at = sweep.linearised(t, q, none, z, inverted=False)
            A = flint.arb_mat([row[:inner] for row in at.jacobian.tolist()[:inner]])
            try:
                change = A.mid().solve(flint.arb_mat(inner, 1, at.residual[:inner]).mid(), algorithm="approx")
            except ZeroDivisionError:
                return None
            dz = change.mid().entries()
            z = [(a - b).mid() for a, b in zip(z, dz, strict=False)] + z[inner:]
            # Each coordinate is measured on its own scale; a coordinate at rest moves by rounding alone.
            scale = [largest(z[j::n]) + tiny * (abs(a) + largest(z)) for j, a in enumerate(q)]
            size = max((largest(dz[j::n]) / at_rest).mid() for j, at_rest in enumerate(scale) if not at_rest.is_zero())
            if last is not None and last <= near:  # this increment was the square of the last: rounding
                return z
            if not size.is_finite() or (last is not None and not size <= CONTRACTS * last):
                return None
            last = size
        return None

    def _continued(self, t: Any, q: Balls, z: Balls) -> Balls | None:
        """The inner values, followed from a small h, where the motion is straight, up to h."""
        part, growth = FIRST, GROWTH
        reached = 0.0
        while growth >= LEAST or reached == 0.0:
            found = self._newton(self._sweep if part == 1.0 else Sweep(self._layout, self._h * part), t, q, z)
            if found is not None:
                if part == 1.0:
                    return found
                z, reached = found, part
            elif reached == 0.0:
                part /= 8
                if part < 1e-6:
                    return None
                continue
            else:
                growth = growth**0.5
            part = min(1.0, reached * growth)
        return None

    def _described(self, t: Any, q: Balls, z: Balls) -> Between:
        sweep, n, inner = self._sweep, self.n, (self.s - 1) * self.n
        at = sweep.linearised(t, q, [flint.arb(0)] * n, z, inverted=False)
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
