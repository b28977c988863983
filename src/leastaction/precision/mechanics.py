"""A Lagrangian at one set of parameters and one precision: p(q, v), v(q, p), E, a.

The same functions as those of `Lagrangian`, on object arrays of mpmath numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flint
import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.errors import DegenerateLagrangianError
from leastaction.exact import Digits
from leastaction.lagrangian import Lagrangian
from leastaction.precision.arithmetic import ball, balls, largest, mpfs
from leastaction.precision.evaluate import function
from leastaction.working import flint_bits

Mpfs = NDArray[np.object_]

MOST_ITERATIONS = 100


class Mechanics:
    """`params` are the system's parameters as the flat array of `Lagrangian.values`, as mpmath numbers."""

    def __init__(self, system: Lagrangian, params: Mpfs, reals: Digits) -> None:
        self.system, self.n, self.name, self.bits = system, system.n, system.name, reals.bits
        self.digits = reals.digits
        n, point = system.n, system.point
        Lqv = point.output("Lqv")
        transposed = [Lqv[k * n + j] for j in range(n) for k in range(n)]
        gradient, hessian = system.gradient, system.hessian
        with flint_bits(self.bits):
            values = balls(params)
            self.force = function(gradient, [*gradient.output("Lq"), *gradient.output("Lv")], values)
            # Lq, Lv, Lqq, Lqv, Lqvᵀ, Lvv
            self.point = function(
                point,
                [*(point.results[: 2 * n + 2 * n * n]), *transposed, *point.output("Lvv")],
                values,
            )
            self._acceleration = function(
                point, [*point.output("Lq"), *transposed, *point.output("Lvv"), *point.output("Lvt")], values
            )
            self._legendre = function(point, [*point.output("Lv"), *point.output("Lvv")], values)
            self._value = function(hessian, hessian.output("L"), values)

    def momentum(self, q: Mpfs, v: Mpfs, t: Any, params: Any = None) -> Mpfs:
        """p = ∂L/∂v, at one point (n,) or many (K, n)."""
        return self._each(self.momentum_balls, q, v, t)

    def velocity(self, q: Mpfs, p: Mpfs, t: Any, params: Any = None) -> Mpfs:
        """v with ∂L/∂v(q, v) = p, at one point (n,) or many (K, n)."""
        return self._each(self._velocity, q, p, t)

    def energy(self, q: Mpfs, p: Mpfs, t: Any, params: Any = None) -> Any:
        """E = p·v − L, at one point (n,) or many (K, n)."""
        return self._each(self._energy, q, p, t)[..., 0]

    def _each(self, f: Callable[[Any, list[Any], list[Any]], list[Any]], q: Mpfs, x: Mpfs, t: Any) -> Mpfs:
        """f(t, q, x) row by row."""
        Q, X = np.atleast_2d(q), np.atleast_2d(x)
        T = np.broadcast_to(np.asarray(t, dtype=object), len(Q))
        with flint_bits(self.bits):
            rows = [mpfs(f(ball(s), balls(a), balls(b))) for s, a, b in zip(T, Q, X, strict=True)]
        return rows[0] if np.ndim(q) == 1 else np.array(rows)

    def _velocity(self, t: Any, q: list[Any], p: list[Any]) -> list[Any]:
        v = self.invert(t, q, p, [flint.arb(0)] * self.n)
        if v is None:
            raise DegenerateLagrangianError(
                f"no velocity of {self.name} has the momentum p = {_show(mpfs(p))} at q = {_show(mpfs(q))}: ∂²L/∂v² is "
                "singular there, or the momentum is outside the range of ∂L/∂v. A Lagrangian must be regular in "
                "its velocities."
            )
        return v

    def _energy(self, t: Any, q: list[Any], p: list[Any]) -> list[Any]:
        v = self._velocity(t, q, p)
        (L,) = self._value(t, *q, *v)
        return [sum((a * b for a, b in zip(p, v, strict=True)), -L)]

    def acceleration(self, q: Mpfs, v: Mpfs, t: Any, params: Any = None) -> Mpfs:
        """The Euler–Lagrange acceleration, at one point."""
        with flint_bits(self.bits):
            a = self.accelerate(ball(t), balls(q), balls(v))
            return mpfs([flint.arb("nan")] * self.n if a is None else a)

    def check_regular(self, q: Mpfs, v: Mpfs, t: Any, params: Any = None) -> None:
        """Raise if ∂²L/∂v² is singular at this point."""
        n = self.n
        with flint_bits(self.bits):
            Lvv = [x.mid() for x in self._legendre(ball(t), *balls(q), *balls(v))[n:]]
            if not largest(Lvv).is_finite():
                raise ValueError(f"∂²L/∂v² of {self.name} is not finite at q = {_show(q)}, v = {_show(v)}")
            # Units must not matter: rows and columns are scaled to the size of their largest entry.
            scale = [largest(Lvv[j * n : j * n + n]).mid().sqrt().mid() for j in range(n)]
            still = [j for j in range(n) if scale[j].is_zero()]
            if not still:
                scaled = [Lvv[j * n + k] / (scale[j] * scale[k]) for j in range(n) for k in range(n)]
                if _regular(flint.arb_mat(n, n, scaled), n, self.bits):
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

    def accelerate(self, t: Any, q: list[Any], v: list[Any]) -> list[Any] | None:
        """L_vv⁻¹ (L_q − L_vq v − L_vt); None where L_vv is singular."""
        n = self.n
        out = self._acceleration(t, *q, *v)
        Lq, Lvq, Lvv, Lvt = out[:n], out[n : n + n * n], out[n + n * n : n + 2 * n * n], out[n + 2 * n * n :]
        right = flint.arb_mat(n, 1, [Lq[j] - Lvt[j] for j in range(n)]) - flint.arb_mat(n, n, Lvq) * flint.arb_mat(
            n, 1, v
        )
        return solve(flint.arb_mat(n, n, Lvv), right)

    def invert(self, t: Any, q: list[Any], p: list[Any], v: list[Any]) -> list[Any] | None:
        """Solve L_v(t, q, v) = p by Newton with backtracking, from the guess v; see `stepping.loops.legendre`."""
        n = self.n
        floor = largest(p) * flint.arb((1, 2 - self.bits))
        # As in `stepping.loops.legendre`: the shortest step worth trying, and one that is short by rounding alone.
        shortest, acceptable = flint.arb((1, -(self.bits * 3 // 4))), flint.arb((1, -(self.bits // 2)))
        miss, values = self._miss(t, q, p, v)
        if miss is None:
            v = [flint.arb(0)] * n
            miss, values = self._miss(t, q, p, v)
        for _ in range(MOST_ITERATIONS):
            if miss is not None and miss <= floor:
                return v
            gap = flint.arb_mat(n, 1, [p[j] - values[j] for j in range(n)])
            step = solve(flint.arb_mat(n, n, values[n:]), gap)
            if step is None:
                return None
            before, origin = miss, v
            scale, size = largest([abs(a) + abs(b) for a, b in zip(v, step, strict=True)]), largest(step)
            whole = size
            while True:
                v = [(a + b).mid() for a, b in zip(origin, step, strict=True)]
                miss, values = self._miss(t, q, p, v)
                nearer = miss is not None and (before is None or miss < before)
                if nearer or not size > shortest * scale:
                    break
                step, size = [x / 2 for x in step], size / 2
            if not nearer:
                return v if whole <= acceptable * scale else None
        return None

    def _miss(self, t: Any, q: list[Any], p: list[Any], v: list[Any]) -> tuple[Any, list[Any]]:
        """The largest |p − L_v|, None outside the domain of L; and L_v, L_vv there."""
        values = [x.mid() for x in self._legendre(t, *q, *v)]
        miss = largest([a - b for a, b in zip(p, values, strict=False)]).mid()
        return (miss if miss.is_finite() else None), values


def solve(A: Any, b: Any) -> list[Any] | None:
    """A⁻¹ b in floating point, without error bounds; None where A is singular."""
    try:
        return list(A.mid().solve(b.mid(), algorithm="approx").mid().entries())
    except ZeroDivisionError:
        return None


def _regular(A: Any, n: int, bits: int) -> bool:
    """Whether a matrix of entries near one has an inverse that the precision can tell from none."""
    try:
        inverse = A.mid().solve(identity(n), algorithm="approx").entries()
    except ZeroDivisionError:
        return False
    size = largest(inverse)
    return bool(size.is_finite() and size < flint.arb((1, bits - 8)))


def identity(n: int) -> Any:
    return flint.arb_mat(n, n, [int(i == j) for i in range(n) for j in range(n)])


def _show(values: Mpfs) -> str:
    return "[" + ", ".join(mpmath.nstr(x, 6) for x in values) + "]"
