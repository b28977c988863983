"""Quadratic(M, K) at any precision.

The equations of a step are linear: D, found once from the same `Equations`, gives the increments

    (q_{k+1} − q_k, p_{k+1} − p_k) = D (q_k, p_k),

and Z those at the control points. RK4 is the exponential series, cut:

    D = A + A²/2 + A³/6 + A⁴/24,    A = h (0 M⁻¹; −K 0).
"""

from __future__ import annotations

from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from leastaction.exact import Digits
from leastaction.methods import Galerkin, Method
from leastaction.precision.arithmetic import ball, balls, matrix, mpfs
from leastaction.precision.equations import Coefficients, Equations
from leastaction.precision.mechanics import identity
from leastaction.stepping.stepper import Failure, Start
from leastaction.working import flint_bits

Mpfs = NDArray[np.object_]


class LinearMechanics:
    """L = ½ v·Mv − ½ q·Kq, M and K dense object arrays of mpmath numbers."""

    def __init__(self, M: Mpfs, K: Mpfs, reals: Digits) -> None:
        self.n, self.bits = len(M), reals.bits
        with flint_bits(self.bits):
            self.M, self.K = matrix(M), matrix(K)
            self.inverse_mass = self.M.solve(identity(self.n), algorithm="approx").mid()
            zero = [flint.arb(0)] * self.n**2
            self._second = [*(-self.K).entries(), *zero, *zero, *self.M.entries()]

    def force(self, t: Any, *qv: Any) -> list[Any]:
        """L_q = −K q and L_v = M v."""
        q, v = (flint.arb_mat(self.n, 1, x) for x in (qv[: self.n], qv[self.n :]))
        return [*(-(self.K * q)).mid().entries(), *(self.M * v).mid().entries()]

    def point(self, t: Any, *qv: Any) -> list[Any]:
        """L_q, L_v, L_qq, L_qv, L_vq, L_vv."""
        return self.force(t, *qv) + self._second

    def momentum(self, q: Mpfs, v: Mpfs, t: Any = 0, params: Any = None) -> Mpfs:
        """p = M v, at one point (n,) or many (K, n)."""
        return self._rows(self.M, v)

    def velocity(self, q: Mpfs, p: Mpfs, t: Any = 0, params: Any = None) -> Mpfs:
        """v = M⁻¹ p, at one point (n,) or many (K, n)."""
        return self._rows(self.inverse_mass, p)

    def acceleration(self, q: Mpfs, v: Mpfs, t: Any = 0, params: Any = None) -> Mpfs:
        """−M⁻¹ K q, at one point (n,) or many (K, n)."""
        return -self._rows(self.inverse_mass, self._rows(self.K, q))

    def energy(self, q: Mpfs, p: Mpfs, t: Any = 0, params: Any = None) -> Any:
        """H = ½ p·M⁻¹p + ½ q·Kq, at one point (n,) or many (K, n)."""
        twice = (p * self.velocity(q, p)).sum(axis=-1) + (q * self._rows(self.K, q)).sum(axis=-1)
        return twice / 2

    def check_regular(self, q: Mpfs, v: Mpfs, t: Any, params: Any = None) -> None:
        """M is positive definite, which `Quadratic` has checked."""

    def _rows(self, A: Any, x: Mpfs) -> Mpfs:
        """A x for each row of x."""
        with flint_bits(self.bits):
            columns = A * matrix(np.atleast_2d(x)).transpose()
            return mpfs(columns.transpose().entries()).reshape(np.shape(x))


class LinearStepper:
    """A method at work on a Quadratic system."""

    def __init__(self, mechanics: LinearMechanics, method: Method, start: Start) -> None:
        self.n, self.bits, self._first = mechanics.n, mechanics.bits, 0
        with flint_bits(self.bits):
            h = ball(start.h)
            self._y = flint.arb_mat(2 * self.n, 1, balls(start.q) + balls(start.p))
            self._Z: Any = None
            if isinstance(method, Galerkin):
                self._D, self._Z = _galerkin(mechanics, method, h)
            else:
                self._D = _rk4(mechanics, h)

    def advance(self, steps: int, every: int, last: int, rows: Mpfs) -> tuple[int, int, Failure | None]:
        """Do steps, write the stored states (q, p) to rows; return steps done, rows written, and a failure."""
        stored = 0
        with flint_bits(self.bits):
            for k in range(self._first, self._first + steps):
                self._y = (self._y + self._D * self._y).mid()
                if (k + 1) % every == 0 or k + 1 == last:
                    rows[stored] = mpfs(self._y.entries())
                    stored += 1
        self._first += steps
        return steps, stored, None

    def polynomials(self, starts: Mpfs) -> tuple[Mpfs, int]:
        """The increments z, (K, s, n), of single steps from rows (t, q, p), and how many could be solved."""
        with flint_bits(self.bits):
            z = self._Z * matrix(starts[:, 1:]).transpose()
            return mpfs(z.transpose().entries()).reshape(len(starts), -1, self.n), len(starts)

    def counts(self) -> dict[str, float]:
        return {}


def _galerkin(mechanics: LinearMechanics, method: Galerkin, h: Any) -> tuple[Any, Any]:
    """D and Z, column by column: the equations at each unit vector of (q, p), with z = 0."""
    n = mechanics.n
    E = Equations(Coefficients(method.exact_table(round(mechanics.bits * 0.302) + 2)), h, mechanics)
    zero = [flint.arb(0)] * E.N
    columns_D, columns_Z = [], []
    for k in range(2 * n):
        y = [flint.arb(int(i == k)) for i in range(2 * n)]
        out, J, slope = E.linearised(flint.arb(0), y[:n], y[n:], zero)
        if J is None:
            raise ArithmeticError(f"the equations of a step of {method.name} are singular for this h")
        z = -(J * flint.arb_mat(E.N, 1, out[: E.N])).mid()
        impulse = (flint.arb_mat(n, 1, out[E.N :]) + slope * z).mid().entries()
        increments = z.entries()
        columns_Z.append(increments)
        columns_D.append([*increments[-n:], *impulse])
    return flint.arb_mat(columns_D).transpose(), flint.arb_mat(columns_Z).transpose()


def _rk4(mechanics: LinearMechanics, h: Any) -> Any:
    n = mechanics.n
    inverse_mass, K, zero = mechanics.inverse_mass.tolist(), mechanics.K.tolist(), [flint.arb(0)] * n
    rows = [zero + row for row in inverse_mass] + [[-x for x in row] + zero for row in K]
    A = flint.arb_mat(rows) * h
    return (A + A * A / 2 + A * A * A / 6 + A * A * A * A / 24).mid()
