"""One step as data: what is to be solved, and nothing about how it is computed.

On the step from t to t + h the motion is the polynomial through increments z^ν = q^ν − q at the control points d_ν,

    q(τ) = q + Σ_ν l_ν(τ) z^ν,      v(τ) = Σ_ν l_ν′(τ)/h z^ν,      ν = 1 … s,   τ ∈ [0, 1].

A Term samples a Program at points τ_i with weights w_i. The Program reads the motion there, (t, q, v), and what is
given: parameters, the same everywhere, and inputs, which have their own values at each point of each step. It gives a
force f and a momentum m; for a Lagrangian f = ∂L/∂q and m = ∂L/∂v, and an external force is a further summand of f.
With A = Σ_i h w_i L(τ_i), the discrete action, the equations of a step are ∂A/∂z^ν = 0 (ν < s), ∂A/∂z^s = p⁺, p⁺ = p +
∂A/∂q:

    R_ν = Σ_i h w_i ( l_ν(τ_i) f_i + l_ν′(τ_i)/h m_i ) = 0,   0 < ν < s,
    R_s = Σ_i h w_i ( (l_s(τ_i) − 1) f_i + l_s′(τ_i)/h m_i ) − p = 0,
    q⁺ = q + z^s,      p⁺ = p + Σ_i h w_i f_i                         (the impulse).

So what a Program reads is linear in state and unknowns (gather), and equations and impulse are linear in what it gives
(scatter), with the same numbers. A Term at the control points may read `multipliers`, s sets of further unknowns at
d_0 … d_{s−1}, and give `g`, as many further equations, to hold at d_1 … d_s.

Constraints g(t, q) = 0, m of them, are such a Term: f = Gᵀλ with G = ∂g/∂q, weighed by β, the Lobatto rule of the
control points. What the reaction at the end of the step gives to p⁺ has equations of its own: with p⁻ = p + Σ_i h w_i
f_i the momentum is p⁺ = p⁻ + G(q⁺)ᵀμ, and velocity and μ solve

    e = m(t⁺, q⁺, v⁺) − G(q⁺)ᵀμ = p⁻,        c = G(q⁺) v⁺ + g_t = 0             (the End),

so that both g = 0 and ġ = 0 hold where a step ends. λ^0 of the next step takes up any part of p along Gᵀ: q does not
depend on μ, which is gauge there. With s = 1 and the trapezoidal rule this is RATTLE; the order is that of the method
without constraints, min(2s, u), in q and in p, with Gauss and with Lobatto rules.

A retraction x ⊕ z in place of q + z, as that of rotations, is another Program: of L(x ⊕ q, ∂(x ⊕ q) v) with x among the
parameters. Between steps x may move to the place of the body, with q = 0 and p carried over by the derivative of the
chart, a canonical change (`tests/step/test_charts.py`). A step itself keeps its x, so that it is symplectic.

Rules of rounding, which keep the energy (docs/explanation/round_off.md has what each was measured to buy):

1. h w_i and l_ν′(τ_i)/h are rounded once, l′ times a rounded 1/h, and gather and scatter share them. So the equations
   are those of a discrete action, and R_s has l_s − 1 instead of an l_0 that would be rounded by itself.
2. p comes last in a sum of forces.
3. Where p + I balances a momentum m, p − m comes first: it has next to no rounding, and I + (p − m) has its own last
   place.
4. What a sum with I or with the state loses is added to what rounding leaves over in the next step, not to the next
   increment (`engine.form.two_sum`).
5. Iterations come from the side of the prediction. So they go on until next to nothing is left (`engine.verdict`,
   NEGLIGIBLE), and a step ends with the forces at the last place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leastaction.methods import Galerkin
from leastaction.methods.quadrature import FLOAT64_DIGITS, lagrange_basis, lobatto, rounded
from leastaction.program import Program
from leastaction.program.ordering import ordered

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Samples:
    """Points τ and weights w (r,) of a step, and the basis there: l_ν(τ_i), l_ν′(τ_i), ν = 1 … s, (r, s)."""

    tau: Array
    w: Array
    l: Array
    dl: Array


@dataclass(frozen=True, eq=False)
class Stencils:
    """Samples at one h: how what a Program reads follows from the unknowns, and the equations from what it gives.

    times     τ_i h
    weights   h w_i, of what a Program gives, but for g
    gather    for each block that is read the coefficients of the unknowns, (r, s)
    scatter   for each block that is given the coefficients in the equations, (r, s); in the impulse f has the
              coefficient one
    """

    times: Array
    weights: Array
    gather: dict[str, Array]
    scatter: dict[str, Array]


def stencils(samples: Samples, h: Any) -> Stencils:
    """The coefficients at step h, by the rounding rule, in the arithmetic of the samples. The arrays must not be
    changed: in float64 every call for the same h returns the same ones.
    """
    return _kept(samples, h) if isinstance(h, float) else _stencils(samples, h)


def _stencils(samples: Samples, h: Any) -> Stencils:
    velocity = samples.dl * (1 / h)
    ends = samples.l.copy()
    ends[:, -1] = ends[:, -1] - 1
    r, s = samples.l.shape
    return Stencils(
        times=samples.tau * h,
        weights=samples.w * h,
        gather={"q": samples.l, "v": velocity, "multipliers": np.eye(r, s)},
        scatter={"f": ends, "m": velocity, "g": np.eye(r, s, -1)},
    )


_kept = lru_cache(maxsize=64)(_stencils)


@dataclass(frozen=True)
class Term:
    """A Program sampled at points of the step.

    program   of the blocks t, q, v, multipliers, params, inputs those it needs ↦ of f, m, g those it has
    slopes    the same and behind it its derivatives, block f_q row by row ∂f_j/∂q_k; those that are zero are left out
    at        the method's quadrature "nodes", or the "controls" d_0 … d_s with the weights of their Lobatto rule
    rest      (t, q, v, params) ↦ velocities from which the search for the velocity of a momentum begins; without `rest`
              it begins from zero
    still     coordinates whose constant masses are so great that no force moves them
    """

    program: Program
    slopes: Program
    at: Literal["nodes", "controls"] = "nodes"
    rest: Program | None = None
    still: tuple[int, ...] = ()

    @cached_property
    def ordered(self) -> Program:
        """The program, in an order that suits kernels."""
        return ordered(self.program)


@dataclass(frozen=True, eq=False)
class Summand:
    """A small system that stands for many: its Programs are applied to every row of a table of coordinates, and added.

    L, values, node   (t, q, v, params) of the few coordinates of a row ↦ L; f, m; and f, m with their derivatives
    force             ↦ the part F of f that does not come from L, or None
    rows              (R, k), the coordinates of each row
    first, pitch      (P,), where among the system's parameters those of row 0 are, and how much further on those of the
                      next row: 0 where all rows share one
    """

    L: Program
    values: Program
    node: Program
    force: Program | None
    rows: NDArray[np.int64]
    first: NDArray[np.int64]
    pitch: NDArray[np.int64]


@dataclass(frozen=True)
class End:
    """The end of a step with constraints: the equations e = p⁻ and c = 0 for v and μ.

    program   (t, q, v, multipliers, params) ↦ e, c, and e_v, c_v: e is linear in μ, with −c_vᵀ
    slopes    the same and behind it e_q, c_q, m_q, e_t, c_t, m_t, e_w, c_w, m_w, w being the parameters
    linear    whether e is linear in v, too
    """

    program: Program
    slopes: Program
    linear: bool


@dataclass(frozen=True)
class Step:
    """One step of a member PsNrQu on a system: n coordinates, `multipliers` m of them at each control point."""

    n: int
    method: Galerkin
    terms: tuple[Term, ...]
    multipliers: int = 0
    end: End | None = None

    @property
    def s(self) -> int:
        return self.method.s

    @property
    def checked(self) -> bool:
        """Whether its root must be the one that is connected with the motion at h → 0; there may be others."""
        return self.method.branch == "followed" and not self.explicit

    @cached_property
    def explicit(self) -> bool:
        """Whether the equations are linear in the unknowns, and have one root, however long the step: as those of
        Störmer and Verlet, where forces do not depend on velocities and the mass is constant.
        """
        return self._at_once and not self.multipliers

    @cached_property
    def held_explicitly(self) -> bool:
        """The same, except for constraints g = 0: the equations of motion are linear in increments and multipliers."""
        return self._at_once and self.multipliers > 0

    @property
    def _at_once(self) -> bool:
        """Whether the equations of motion are linear in the unknowns, for any length of the step."""
        node = self.terms[0]
        if self.s > 1 or len(self.terms) > 1 + (self.multipliers > 0) or not set(self.samples(node).tau) <= {0.0, 1.0}:
            return False
        slopes = node.slopes
        if not {"f_v", "m_q", "m_v"} <= dict(slopes.outputs).keys():
            return False
        still = all(slopes.code[k] == ("const", 0.0) for block in ("f_v", "m_q") for k in slopes.output(block))
        return still and not slopes.depends("m_v", "t", "q", "v")

    @cached_property
    def params(self) -> int:
        """How many numbers the block params has."""
        return dict(self.terms[0].program.inputs)["params"]

    @cached_property
    def channels(self) -> int:
        """How many numbers the block inputs has: those of one node."""
        return dict(self.terms[0].program.inputs).get("inputs", 0) if self.terms else 0

    @property
    def driven(self) -> int:
        """How many numbers the inputs at all nodes of a step are together."""
        return self.channels * len(self.method.table.c)

    def controls(self, digits: int) -> list[Any]:
        """d_0 … d_s as mpmath numbers."""
        return list(self.method.exact_table(digits)["d"])

    def samples(self, term: Term, digits: int | None = None) -> Samples:
        """The points of a term, in float64 or as mpmath numbers."""
        return samples(self.method, term.at, digits)


def step_of(system: Any, method: Galerkin) -> Step:
    """The step of a method on a system."""
    return Step(system.n, method, system.terms, system.m, system.end)


@lru_cache(maxsize=128)
def samples(method: Galerkin, at: Literal["nodes", "controls"] = "nodes", digits: int | None = None) -> Samples:
    """The points of a method, in float64 or as mpmath numbers."""
    if digits is None:
        table = method.table
        if at == "nodes":
            return Samples(table.c, table.b, table.l[:, 1:], table.dl[:, 1:])
        exact = samples(method, at, FLOAT64_DIGITS)
        return Samples(*(rounded(x) for x in (exact.tau, exact.w, exact.l, exact.dl)))
    if at == "nodes":
        entries = method.exact_table(digits)
        c, b, l, dl = (np.array(entries[name], dtype=object) for name in ("c", "b", "l", "dl"))
    else:
        c, b = (np.array(x, dtype=object) for x in lobatto(method.s + 1).points(digits))
        l, dl = (np.array(x, dtype=object) for x in lagrange_basis(list(c), list(c), digits))
    return Samples(c, b, l[:, 1:], dl[:, 1:])
