"""A Lagrangian at one set of parameters and one precision: p(q, v), v(q, p), E, a.

The same functions as those of `Lagrangian`, on object arrays of mpmath numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flint
import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.backends.flint.evaluate import function
from leastaction.backends.flint.sizes import largest
from leastaction.errors import DegenerateLagrangianError
from leastaction.numbers.conversion import ball, balls, identity, mpfs
from leastaction.numbers.precision import flint_bits
from leastaction.numbers.rounding import Digits
from leastaction.systems.lagrangian import Lagrangian

Mpfs = NDArray[np.object_]

MOST_ITERATIONS = 100
SCALINGS = 64  # of a matrix, at most: exponents have fewer bits than that


class Mechanics:
    """`params` are the system's parameters as the flat array of `Lagrangian.values`, as mpmath numbers."""

    def __init__(self, system: Lagrangian, params: Mpfs, reals: Digits) -> None:
        self.system, self.n, self.name, self.bits = system, system.n, system.name, reals.bits
        self.digits = reals.digits
        node, term = system.node, system.terms[0]
        with flint_bits(self.bits):
            values = balls(params)
            self._force = function(term.program, term.program.output("f"), values)
            self._acceleration = function(
                node, [k for name in ("f", "m_q", "m_v", "m_t") for k in node.output(name)], values
            )
            second = system.hessian
            self._legendre = function(second, [*second.output("Lv"), *second.output("Lvv")], values)
            rest = system.rest
            self._rest = None if rest is None else function(rest, rest.output("rest"), values)
            force = system.force
            self._external = None if force is None else function(force, force.output("F"), values)
            self._value = function(system.program, system.program.output("L"), values)
            still = system.geometry if system.m else None
            self._held = None if still is None else function(still, [*still.output("G"), *still.output("bend")], values)

    def momentum(self, q: Mpfs, v: Mpfs, t: Any, params: Any = None) -> Mpfs:
        """p = ∂L/∂v, at one point (n,) or many (K, n)."""
        return self._each(self.momentum_balls, q, v, t)

    def velocity(self, q: Mpfs, p: Mpfs, t: Any, params: Any = None) -> Mpfs:
        """v with ∂L/∂v(q, v) = p, at one point (n,) or many (K, n)."""
        return self._each(self._velocity, q, p, t)

    def value(self, q: Mpfs, v: Mpfs, t: Any) -> Any:
        """L, at one point (n,) or many (K, n)."""
        return self._each(lambda s, a, b: self._value(s, *a, *b), q, v, t)[..., 0]

    def energy(self, q: Mpfs, p: Mpfs, t: Any, params: Any = None) -> Any:
        """E = p·v − L, at one point (n,) or many (K, n)."""
        return self._each(self._energy, q, p, t)[..., 0]

    def force(self, q: Mpfs, v: Mpfs, t: Any) -> Mpfs:
        """f = ∂L/∂q + F, at one point (n,) or many (K, n)."""
        return self._each(self.force_balls, q, v, t)

    def external_force(self, q: Mpfs, v: Mpfs, t: Any, params: Any = None, inputs: Any = None) -> Mpfs:
        """F, at one point (n,) or many (K, n), each with a row of inputs where there are some."""
        external = self._external
        if external is None:
            return 0 * q
        return self._each(lambda s, a, b, *u: external(s, *a, *b, *u), q, v, t, inputs)

    def multipliers(self, q: Mpfs, v: Mpfs, t: Any, params: Any = None, inputs: Any = None) -> Mpfs:
        """λ such that g̈ = 0, at one point or many, (m,) or (K, m)."""
        return self._each(lambda s, a, b, *u: self._reacting(s, a, b, u)[0], q, v, t, inputs)

    def reaction(self, q: Mpfs, v: Mpfs, t: Any, params: Any = None, inputs: Any = None) -> Mpfs:
        """Gᵀλ, at one point (n,) or many (K, n)."""
        return self._each(lambda s, a, b, *u: self._reacting(s, a, b, u)[1], q, v, t, inputs)

    def _reacting(self, t: Any, q: list[Any], v: list[Any], u: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """λ and Gᵀλ: with A = m_v⁻¹Gᵀ they are λ = −(G A)⁻¹ (bend + G a), a the acceleration without constraints."""
        n, m = self.n, self.system.m
        if self._held is None:
            return [], [flint.arb(0)] * n
        held = [x.mid() for x in self._held(t, *q, *v)]
        G, bend = flint.arb_mat(m, n, held[: m * n]), flint.arb_mat(m, 1, held[m * n :])
        free = self.accelerate(t, q, v, u)
        assert free is not None
        mass = flint.arb_mat(n, n, self._legendre(t, *q, *v)[n:])
        pulled = solve_matrix(mass, G.transpose())
        multipliers = solve_matrix(G * pulled, -bend - G * flint.arb_mat(n, 1, free))
        return multipliers.entries(), (G.transpose() * multipliers).mid().entries()

    def _each(self, f: Callable[..., list[Any]], q: Mpfs, x: Mpfs, t: Any, inputs: Any = None) -> Mpfs:
        """f(t, q, x, *inputs) row by row."""
        Q, X = np.atleast_2d(q), np.atleast_2d(x)
        T = np.broadcast_to(np.asarray(t, dtype=object), len(Q))
        U = np.zeros((len(Q), 0)) if inputs is None else np.broadcast_to(inputs, (len(Q), inputs.shape[-1]))
        with flint_bits(self.bits):
            given = zip(T, Q, X, U, strict=True)
            rows = [mpfs(f(ball(s), balls(a), balls(b), *balls(u))) for s, a, b, u in given]
        return rows[0] if np.ndim(q) == 1 else np.array(rows)

    def _velocity(self, t: Any, q: list[Any], p: list[Any]) -> list[Any]:
        still = [flint.arb(0)] * self.n
        v = self.invert(t, q, p, still if self._rest is None else self._with_time_held(t, q, p, still))
        if v is None:  # as where L_vv is singular at rest
            v = self.invert(t, q, p, p)
        if v is None:
            raise DegenerateLagrangianError(
                f"no velocity of {self.name} has the momentum p = {_show(mpfs(p))} at q = {_show(mpfs(q))}: ∂²L/∂v² is "
                "singular there, or the momentum is outside the range of ∂L/∂v. A Lagrangian must be regular in "
                "its velocities."
            )
        return v

    def _with_time_held(self, t: Any, q: list[Any], p: list[Any], still: list[Any]) -> list[Any]:
        """A guess of the velocities, as `loops.legendre` has it: an iteration for all but the last, that of time."""
        assert self._rest is not None
        guess, k = [x.mid() for x in self._rest(t, *q, *still)], self.n - 1
        gap, Lvv = self._gap(t, q, p, guess)
        if gap is None:
            return guess
        mass = [x for row in range(k) for x in Lvv[row * self.n : row * self.n + k]]
        step = solve(flint.arb_mat(k, k, mass), flint.arb_mat(k, 1, gap[:k]))
        moved = guess if step is None else [*((a + b).mid() for a, b in zip(guess, step, strict=False)), guess[k]]
        return guess if self._gap(t, q, p, moved)[0] is None else moved

    def _energy(self, t: Any, q: list[Any], p: list[Any]) -> list[Any]:
        v = self._velocity(t, q, p)
        (L,) = self._value(t, *q, *v)
        return [sum((a * b for a, b in zip(p, v, strict=True)), -L)]

    def acceleration(self, q: Mpfs, v: Mpfs, t: Any, params: Any = None, inputs: Any = None) -> Mpfs:
        """The acceleration by Euler, Lagrange and d'Alembert, at one point."""
        with flint_bits(self.bits):
            a = self.accelerate(ball(t), balls(q), balls(v), () if inputs is None else balls(inputs))
            return mpfs([flint.arb("nan")] * self.n if a is None else a)

    def check_regular(self, q: Mpfs, v: Mpfs, t: Any, params: Any = None) -> None:
        """Raise if ∂²L/∂v² is singular at this point."""
        n = self.n
        with flint_bits(self.bits):
            Lvv = [x.mid() for x in self._legendre(ball(t), *balls(q), *balls(v))[n:]]
            if not largest(Lvv).is_finite():
                raise ValueError(f"∂²L/∂v² of {self.name} is not finite at q = {_show(q)}, v = {_show(v)}")
            still = [j for j in range(n) if largest(Lvv[j * n : j * n + n]).is_zero()]
            if not still and _regular(flint.arb_mat(n, n, _equilibrated(Lvv, n)), n, self.bits):
                return
            flat = ", ".join(f"∂L/∂v[{j}]" for j in still)
            reason = f"{flat} does not depend on v" if flat else f"∂²L/∂v² = {_show(mpfs(Lvv))}"
        raise DegenerateLagrangianError(
            f"{self.name} is degenerate at q = {_show(q)}, v = {_show(v)}: {reason}, so momenta do not determine "
            "velocities. Give every coordinate a kinetic term, or eliminate the ones without; at a pole of the chart "
            "(an upright top in Euler's angles) start beside it, or take other coordinates."
        )

    # On flint numbers, at the working precision of the caller.

    def momentum_balls(self, t: Any, q: list[Any], v: list[Any]) -> list[Any]:
        return [x.mid() for x in self._legendre(t, *q, *v)[: self.n]]

    def force_balls(self, t: Any, q: list[Any], v: list[Any], u: Sequence[Any] = ()) -> list[Any]:
        return [x.mid() for x in self._force(t, *q, *v, *u)]

    def accelerate(self, t: Any, q: list[Any], v: list[Any], u: Sequence[Any] = ()) -> list[Any] | None:
        """m_v⁻¹ (f − m_q v − m_t) with the inputs u; None where m_v = L_vv is singular."""
        n = self.n
        out = self._acceleration(t, *q, *v, *u)
        f, m_q, m_v, m_t = out[:n], out[n : n + n * n], out[n + n * n : n + 2 * n * n], out[n + 2 * n * n :]
        right = flint.arb_mat(n, 1, [f[j] - m_t[j] for j in range(n)]) - flint.arb_mat(n, n, m_q) * flint.arb_mat(
            n, 1, v
        )
        return solve(flint.arb_mat(n, n, m_v), right)

    def invert(self, t: Any, q: list[Any], p: list[Any], v: list[Any]) -> list[Any] | None:
        """Solve L_v(t, q, v) = p by Newton with backtracking, from the guess v; None where there is no such velocity.

        One iteration does it when L is quadratic in v. Elsewhere a step that leaves the domain of L, or does not bring
        the momenta nearer, is halved. Each momentum is judged on its own scale, |p_j| + Σ_k |L_vv|_jk (|v_k| + |dv_k|),
        so that neither units nor a heavy neighbour matter. The remaining p_j − L_v,j may be some units in the last
        place of this scale; or more, if half the digits are right and no step brings the momentum nearer: then rounding
        is the reason.
        """
        n, bits = self.n, self.bits
        done, acceptable = flint.arb((1, 2 - bits)), flint.arb((1, -(bits // 2)))
        gap, Lvv = self._gap(t, q, p, v)
        if gap is None:
            v = [flint.arb(0)] * n
            gap, Lvv = self._gap(t, q, p, v)
        for _ in range(MOST_ITERATIONS):
            step = None if gap is None else solve(flint.arb_mat(n, n, Lvv), flint.arb_mat(n, 1, gap))
            if step is None:
                return None
            reach = flint.arb_mat(n, 1, [abs(a) + abs(b) for a, b in zip(v, step, strict=True)])
            spread = (flint.arb_mat(n, n, [abs(x) for x in Lvv]) * reach).entries()
            scale = [(abs(a) + b).mid() for a, b in zip(p, spread, strict=True)]
            assert gap is not None
            before = _relative(gap, scale)
            if before <= done:
                return v
            for halvings in range(bits * 3 // 4):
                part = flint.arb((1, -halvings))
                nearer = [(a + part * b).mid() for a, b in zip(v, step, strict=True)]
                gap, Lvv = self._gap(t, q, p, nearer)
                after = flint.arb("inf") if gap is None else _relative(gap, scale)
                if after <= done:
                    return nearer
                if after < before:
                    break
                if before <= acceptable:
                    return v
            else:
                return None
            v = nearer
        return None

    def _gap(self, t: Any, q: list[Any], p: list[Any], v: list[Any]) -> tuple[list[Any] | None, list[Any]]:
        """p − L_v, None outside the domain of L; and L_vv there."""
        values = [x.mid() for x in self._legendre(t, *q, *v)]
        gap = [(a - b).mid() for a, b in zip(p, values, strict=False)]
        return (gap if all(x.is_finite() for x in gap) else None), values[self.n :]


def _relative(gap: list[Any], scale: list[Any]) -> Any:
    """The largest |gap_j| / scale_j; infinite if a gap has no scale."""
    return max(
        abs(a / b).mid() if not b.is_zero() else flint.arb(0 if a.is_zero() else "inf")
        for a, b in zip(gap, scale, strict=True)
    )


def solve_matrix(A: Any, B: Any) -> Any:
    """A⁻¹ B in floating point, of a regular matrix."""
    return A.mid().solve(B.mid(), algorithm="approx").mid()


def solve(A: Any, b: Any) -> list[Any] | None:
    """A⁻¹ b in floating point, without error bounds; None where A is singular."""
    try:
        return list(solve_matrix(A, b).entries())
    except ZeroDivisionError:
        return None


def _equilibrated(matrix: list[Any], n: int) -> list[Any]:
    """A symmetric matrix with rows and columns scaled until the largest entry of each is about one.

    Units do not matter then. One scaling halves the exponents that remain (`systems.regularity.equilibrated` is the
    same in float64).
    """
    for _ in range(SCALINGS):
        sizes = [largest(matrix[j * n : j * n + n]).mid() for j in range(n)]
        if all(0.5 < size < 2 for size in sizes):
            break
        scale = [size.sqrt().mid() for size in sizes]
        matrix = [(matrix[j * n + k] / (scale[j] * scale[k])).mid() for j in range(n) for k in range(n)]
    return matrix


def _regular(A: Any, n: int, bits: int) -> bool:
    """Whether a matrix with entries near one is regular, as far as the precision can tell."""
    try:
        inverse = A.mid().solve(identity(n), algorithm="approx").entries()
    except ZeroDivisionError:
        return False
    size = largest(inverse)
    return bool(size.is_finite() and size < flint.arb((1, bits - 8)))


def _show(values: Mpfs) -> str:
    return "[" + ", ".join(mpmath.nstr(x, 6) for x in values) + "]"
