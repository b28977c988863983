"""A Lagrangian at one set of parameters and one precision: p(q, v), v(q, p), E, a."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flint
import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.errors import DegenerateLagrangianError
from leastaction.flint.evaluate import function
from leastaction.numbers.conversion import Balls, ball, balls, identity, mpfs
from leastaction.numbers.precision import flint_bits
from leastaction.numbers.rounding import GUARD_BITS, Digits
from leastaction.program import Program
from leastaction.systems.lagrangian import Lagrangian

Mpfs = NDArray[np.object_]


class Mechanics:
    """The functions of `Lagrangian` on object arrays of mpmath numbers, at one point (n,) or many (K, n).

    f = ∂L/∂q + F is the force, λ such that g̈ = 0 the multipliers, Gᵀλ the reaction; the acceleration is that of Euler,
    Lagrange and d'Alembert, NaN where ∂²L/∂v² is singular. `params` are the parameters as the flat array of
    `Lagrangian.values`, as mpmath numbers.
    """

    def __init__(self, system: Lagrangian, params: Mpfs, reals: Digits) -> None:
        self.system, self.n, self.name, self.bits = system, system.n, system.name, reals.bits
        with flint_bits(self.bits):
            values = balls(params)

            def compiled(program: Program | None, *names: str) -> Callable[..., Balls]:
                """These outputs as a function; where there is no program, none of them."""
                if program is None:
                    return lambda *_: []
                return function(program, [k for name in names for k in program.output(name)], values)

            self._force = compiled(system.terms[0].program, "f")
            self._motion = compiled(system.node, "f", "m_q", "m_v", "m_t")
            self._legendre = compiled(system.hessian, "Lv", "Lvv")
            self._rest = compiled(system.rest, "rest")
            self._external = compiled(system.force, "F")
            self._value = compiled(system.program, "L")
            self._held = compiled(system.geometry if system.m else None, "G", "bend")

    def momentum(self, q: Mpfs, v: Mpfs, t: Any, params: Any = None) -> Mpfs:
        return self._each(lambda s, a, b: self._legendre(s, *a, *b)[: self.n], q, v, t)

    def velocity(self, q: Mpfs, p: Mpfs, t: Any, params: Any = None) -> Mpfs:
        return self._each(self._velocity, q, p, t)

    def value(self, q: Mpfs, v: Mpfs, t: Any) -> Any:
        return self._each(lambda s, a, b: self._value(s, *a, *b), q, v, t)[..., 0]

    def energy(self, q: Mpfs, p: Mpfs, t: Any, params: Any = None) -> Any:
        def energy(s: Any, a: Balls, b: Balls) -> Balls:
            v = self._velocity(s, a, b)
            return [sum((x * y for x, y in zip(b, v, strict=True)), -self._value(s, *a, *v)[0])]

        return self._each(energy, q, p, t)[..., 0]

    def force(self, q: Mpfs, v: Mpfs, t: Any) -> Mpfs:
        return self._each(lambda s, a, b: self._force(s, *a, *b), q, v, t)

    def external_force(self, q: Mpfs, v: Mpfs, t: Any, params: Any = None, inputs: Any = None) -> Mpfs:
        if self.system.force is None:
            return 0 * q
        return self._each(lambda s, a, b, *u: self._external(s, *a, *b, *u), q, v, t, inputs)

    def multipliers(self, q: Mpfs, v: Mpfs, t: Any, params: Any = None, inputs: Any = None) -> Mpfs:
        return self._each(lambda s, a, b, *u: self._reacting(s, a, b, u)[0], q, v, t, inputs)

    def reaction(self, q: Mpfs, v: Mpfs, t: Any, params: Any = None, inputs: Any = None) -> Mpfs:
        return self._each(lambda s, a, b, *u: self._reacting(s, a, b, u)[1], q, v, t, inputs)

    def acceleration(self, q: Mpfs, v: Mpfs, t: Any, params: Any = None, inputs: Any = None) -> Mpfs:
        return self._each(lambda s, a, b, *u: self._accelerate(s, a, b, u)[0], q, v, t, inputs)

    def check_regular(self, q: Mpfs, v: Mpfs, t: Any, params: Any = None) -> None:
        """Raise if ∂²L/∂v² is singular at this point, as far as rounding lets one see: its entries are balls."""
        n = self.n
        with flint_bits(self.bits):
            Lvv = self._legendre(ball(t), *balls(q), *balls(v))[n:]
            if not all(x.is_finite() for x in Lvv):
                raise ValueError(f"∂²L/∂v² of {self.name} is not finite at q = {_show(q)}, v = {_show(v)}")
            try:
                flint.arb_mat(n, n, Lvv).inv()
                return
            except ZeroDivisionError:
                still = [j for j in range(n) if all(x.mid().is_zero() for x in Lvv[j * n : j * n + n])]
            flat = ", ".join(f"∂L/∂v[{j}]" for j in still)
            reason = f"{flat} does not depend on v" if flat else f"∂²L/∂v² = {_show(mpfs(Lvv))}"
        raise DegenerateLagrangianError(
            f"{self.name} is degenerate at q = {_show(q)}, v = {_show(v)}: {reason}, so momenta do not determine "
            "velocities. Give every coordinate a kinetic term, or eliminate the ones without; at a pole of the chart "
            "(an upright top in Euler's angles) start beside it, or take other coordinates."
        )

    def search(self, t: Any, q: Balls, p: Balls, v: Balls) -> Balls | None:
        """The velocity of a momentum, from the guess v, from rest, or where L_vv is singular at rest, from p.

        On flint numbers, at the working precision of the caller; None where there is no such velocity.
        """
        still = [flint.arb(0)] * self.n
        guesses = v, [x.mid() for x in self._rest(t, *q, *still)] or still, p
        return next((found for guess in guesses if (found := self._inverted(t, q, p, guess)) is not None), None)

    def _inverted(self, t: Any, q: Balls, p: Balls, v: Balls) -> Balls | None:
        """L_v(t, q, v) = p by Newton, until the increment is below the last digit.

        An increment is halved where it leaves the domain of L, or where the next one would be longer.
        """
        n, bits = self.n, flint.ctx.prec
        done, at = flint.arb((1, GUARD_BITS - bits)), self._legendre(t, *q, *v)
        for _ in range(bits):
            inverse = solve(flint.arb_mat(n, n, at[n:]), identity(n))
            if inverse is None or not all(x.is_finite() for x in at):
                return None
            step = _towards(inverse, p, at)
            scale = [abs(a) + abs(b) for a, b in zip(v, step, strict=True)]
            size = _relative(step, scale)
            for halvings in range(bits):
                nearer = [(a + b * flint.arb((1, -halvings))).mid() for a, b in zip(v, step, strict=True)]
                at = self._legendre(t, *q, *nearer)
                if size <= done or _relative(_towards(inverse, p, at), scale) < size:
                    break
            else:
                return None
            v = nearer
            if size <= done:
                return v
        return None

    def _velocity(self, t: Any, q: Balls, p: Balls) -> Balls:
        v = self.search(t, q, p, [x.mid() for x in self._rest(t, *q, *p)] or [flint.arb(0)] * self.n)
        if v is None:
            raise DegenerateLagrangianError(
                f"no velocity of {self.name} has the momentum p = {_show(mpfs(p))} at q = {_show(mpfs(q))}: ∂²L/∂v² is "
                "singular there, or the momentum is outside the range of ∂L/∂v. A Lagrangian must be regular in "
                "its velocities."
            )
        return v

    def _accelerate(self, t: Any, q: Balls, v: Balls, u: Sequence[Any]) -> tuple[Balls, Any]:
        """m_v⁻¹ (f − m_q v − m_t) with the inputs u, and m_v = L_vv."""
        n = self.n
        out = self._motion(t, *q, *v, *u)
        mass = flint.arb_mat(n, n, out[n + n * n : n + 2 * n * n])
        pushed = flint.arb_mat(n, 1, [a - b for a, b in zip(out[:n], out[n + 2 * n * n :], strict=True)])
        a = solve(mass, pushed - flint.arb_mat(n, n, out[n : n + n * n]) * flint.arb_mat(n, 1, v))
        return [flint.arb("nan")] * n if a is None else list(a.entries()), mass

    def _reacting(self, t: Any, q: Balls, v: Balls, u: Sequence[Any]) -> tuple[Balls, Balls]:
        """λ and Gᵀλ: with A = m_v⁻¹Gᵀ they are λ = −(G A)⁻¹ (bend + G a), a the acceleration without constraints."""
        n, m = self.n, self.system.m
        if not m:
            return [], [flint.arb(0)] * n
        held, (free, mass) = self._held(t, *q, *v), self._accelerate(t, q, v, u)
        G, bend = flint.arb_mat(m, n, held[: m * n]), flint.arb_mat(m, 1, held[m * n :])
        multipliers = solve(G * solve(mass, G.transpose()), -bend - G * flint.arb_mat(n, 1, free))
        assert multipliers is not None
        return multipliers.entries(), (G.transpose() * multipliers).entries()

    def _each(self, f: Callable[..., Balls], q: Mpfs, x: Mpfs, t: Any, inputs: Any = None) -> Mpfs:
        """f(t, q, x, *inputs) row by row."""
        Q, X = np.atleast_2d(q), np.atleast_2d(x)
        T = np.broadcast_to(np.asarray(t, dtype=object), len(Q))
        U = np.zeros((len(Q), 0)) if inputs is None else np.broadcast_to(inputs, (len(Q), inputs.shape[-1]))
        with flint_bits(self.bits):
            given = zip(T, Q, X, U, strict=True)
            rows = [mpfs(f(ball(s), balls(a), balls(b), *balls(u))) for s, a, b, u in given]
        return rows[0] if np.ndim(q) == 1 else np.array(rows)


def solve(A: Any, B: Any) -> Any:
    """A⁻¹ B in floating point, without error bounds; None where A is singular."""
    try:
        return A.mid().solve(B.mid(), algorithm="approx").mid()
    except ZeroDivisionError:
        return None


def _towards(inverse: Any, p: Balls, at: Balls) -> Balls:
    """The increment of v, a ball."""
    return list((inverse * flint.arb_mat(len(p), 1, [a - b for a, b in zip(p, at, strict=False)])).entries())


def _relative(x: Balls, scale: Balls) -> Any:
    """The largest |x_j| / scale_j that rounding does not explain; NaN if one is."""
    sizes = [a if a.is_zero() else a / b for a, b in zip((y.abs_lower() for y in x), scale, strict=True)]
    return flint.arb("nan") if any(y.is_nan() for y in sizes) else max(sizes).mid()


def _show(values: Mpfs) -> str:
    return "[" + ", ".join(mpmath.nstr(x, 6) for x in values) + "]"
