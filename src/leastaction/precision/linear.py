"""Quadratic(M, K) at any precision, with damping C and load f(t).

The equations of a step are linear: D, found once from the same `Equations`, gives the increments

    (q_{k+1} − q_k, p_{k+1} − p_k) = D (q_k, p_k) + F(t_k),

and Z those at the control points; F, what the load adds, is found in every step. As in float64 (`linear.weak`) the
force −K q − C v + f(t) stands for L_q at the method's nodes. RK4 is the exponential series, cut:

    D = A + A²/2 + A³/6 + A⁴/24,    A = h (0 M⁻¹; −K −CM⁻¹).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flint
import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.errors import TraceError
from leastaction.exact import Digits
from leastaction.linear import Quadratic
from leastaction.linear.forcing import Constant, Samples
from leastaction.methods import Galerkin, Method
from leastaction.precision.arithmetic import ball, balls, matrix, mpfs
from leastaction.precision.equations import Coefficients, Equations
from leastaction.precision.evaluate import function
from leastaction.precision.mechanics import identity
from leastaction.backends.status import Failure
from leastaction.backends.stepper import Start
from leastaction.trace import derivatives, trace
from leastaction.working import flint_bits

Mpfs = NDArray[np.object_]


class LinearMechanics:
    """L = ½ v·Mv − ½ q·Kq and the forces −C v + f(t), of a Quadratic system."""

    def __init__(self, system: Quadratic, reals: Digits) -> None:
        self.n, self.bits = system.n, reals.bits
        M, K, C = system.exact_matrices(reals)
        with flint_bits(self.bits):
            self.M, self.K = matrix(M), matrix(K)
            self.C = flint.arb_mat(self.n, self.n) if C is None else matrix(C)
            self.inverse_mass = self.M.solve(identity(self.n), algorithm="approx").mid()
            zero = [flint.arb(0)] * self.n**2
            self._second = [*(-self.K).entries(), *(-self.C).entries(), *zero, *self.M.entries()]
            self.load = load_function(system, reals)

    def force(self, t: Any, *qv: Any) -> list[Any]:
        """−K q − C v for L_q, and L_v = M v; without the load."""
        q, v = (flint.arb_mat(self.n, 1, x) for x in (qv[: self.n], qv[self.n :]))
        return [*(-(self.K * q) - self.C * v).mid().entries(), *(self.M * v).mid().entries()]

    def point(self, t: Any, *qv: Any) -> list[Any]:
        """`force`, and behind it the derivatives: for L_qq −K, for L_qv −C, L_vq = 0, L_vv = M."""
        return self.force(t, *qv) + self._second

    def momentum(self, q: Mpfs, v: Mpfs, t: Any = 0, params: Any = None) -> Mpfs:
        """p = M v, at one point (n,) or many (K, n)."""
        return self._rows(self.M, v)

    def velocity(self, q: Mpfs, p: Mpfs, t: Any = 0, params: Any = None) -> Mpfs:
        """v = M⁻¹ p, at one point (n,) or many (K, n)."""
        return self._rows(self.inverse_mass, p)

    def acceleration(self, q: Mpfs, v: Mpfs, t: Any = 0, params: Any = None) -> Mpfs:
        """M⁻¹ (f(t) − C v − K q), at one point (n,) or many (K, n)."""
        total = -self._rows(self.K, q) - self._rows(self.C, v)
        if self.load is not None:
            with flint_bits(self.bits):
                times = np.broadcast_to(np.asarray(t, dtype=object), np.shape(q)[:-1])
                loads = [mpfs(self.load(ball(mpmath.mpf(x)))) for x in times.flat]
            total = total + np.array(loads, dtype=object).reshape(np.shape(q))
        return self._rows(self.inverse_mass, total)

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
            self._t0, self._h = ball(start.t), h
            self._y = flint.arb_mat(2 * self.n, 1, balls(start.q) + balls(start.p))
            self._Z: Any = None
            self._push: Callable[[Any], tuple[Any, Any]] | None = None  # t_k ↦ F, and the same at the control points
            if isinstance(method, Galerkin):
                self._D, self._Z, push = _galerkin(mechanics, method, h)
            else:
                self._D, push = _rk4(mechanics, h)
            if mechanics.load is not None:
                self._push = push

    def advance(self, steps: int, every: int, last: int, rows: Mpfs) -> tuple[int, int, Failure | None]:
        """Do steps, write the stored states (q, p) to rows; return steps done, rows written, and a failure."""
        stored = 0
        with flint_bits(self.bits):
            for k in range(self._first, self._first + steps):
                increments = self._D * self._y
                if self._push is not None:
                    increments += self._push((self._t0 + k * self._h).mid())[0]
                self._y = (self._y + increments).mid()
                if (k + 1) % every == 0 or k + 1 == last:
                    rows[stored] = mpfs(self._y.entries())
                    stored += 1
        self._first += steps
        return steps, stored, None

    def polynomials(self, starts: Mpfs) -> tuple[Mpfs, int]:
        """The increments z, (K, s, n), of single steps from rows (t, q, p), and how many could be solved."""
        with flint_bits(self.bits):
            z = (self._Z * matrix(starts[:, 1:]).transpose()).transpose()
            if self._push is not None:
                z += flint.arb_mat([self._push(ball(t))[1].entries() for t in starts[:, 0]])
            return mpfs(z.entries()).reshape(len(starts), -1, self.n), len(starts)

    def counts(self) -> dict[str, float]:
        return {}


Push = Callable[[Any], tuple[Any, Any]]


def _galerkin(mechanics: LinearMechanics, method: Galerkin, h: Any) -> tuple[Any, Any, Push]:
    """D and Z, column by column: the equations at each unit vector of (q, p), with z = 0; and what the load adds."""
    n = mechanics.n
    E = Equations(Coefficients(method.exact_table(round(mechanics.bits * 0.302) + 2)), h, mechanics)
    zero, none = [flint.arb(0)] * E.N, [flint.arb(0)] * n
    _, J, slope = E.linearised(flint.arb(0), none, none, zero)
    if J is None:
        raise ArithmeticError(f"the equations of a step of {method.name} are singular for this h")

    def solved(out: list[Any]) -> tuple[Any, Any]:
        """The increments of (q, p), and those z at the control points, from R and the impulse at z = 0."""
        z = -(J * flint.arb_mat(E.N, 1, out[: E.N])).mid()
        impulse = (flint.arb_mat(n, 1, out[E.N :]) + slope * z).mid().entries()
        return flint.arb_mat(2 * n, 1, [*z.entries()[-n:], *impulse]), z

    def push(t: Any) -> tuple[Any, Any]:
        assert mechanics.load is not None
        return solved(E.loaded(t, mechanics.load))

    units = [[flint.arb(int(i == k)) for i in range(2 * n)] for k in range(2 * n)]
    columns = [solved(E.residual(flint.arb(0), y[:n], y[n:], zero)) for y in units]
    D, Z = (flint.arb_mat([pair[i].entries() for pair in columns]).transpose() for i in (0, 1))
    return D, Z, push


def _rk4(mechanics: LinearMechanics, h: Any) -> tuple[Any, Push]:
    n = mechanics.n
    zero = [flint.arb(0)] * n
    damping = (mechanics.C * mechanics.inverse_mass).tolist()
    rows = [zero + row for row in mechanics.inverse_mass.tolist()]
    rows += [[-x for x in row + by_p] for row, by_p in zip(mechanics.K.tolist(), damping, strict=True)]
    A = flint.arb_mat(rows) * h

    def push(t: Any) -> tuple[Any, Any]:
        """The step from (q, p) = 0, of which nothing but the load is left."""
        assert mechanics.load is not None
        first, middle, last = (flint.arb_mat(2 * n, 1, [*zero, *mechanics.load(t + c * h / 2)]) for c in range(3))
        k2 = A * first / 2 + middle
        k3 = A * k2 / 2 + middle
        return ((first + 2 * (k2 + k3) + A * k3 + last) * (h / 6)).mid(), None

    return (A + A * A / 2 + A * A * A / 6 + A * A * A * A / 24).mid(), push


def load_function(system: Quadratic, reals: Digits) -> Callable[[Any], list[Any]] | None:
    """f(t) on flint numbers; None if there is no load. A function of the user's is traced, as a Lagrangian is."""
    if system.f is None:
        return None
    if isinstance(system.f, Samples):
        raise ValueError("samples of a load are joined in float64, by a spline; with digits= give a function of t")
    if isinstance(system.f, Constant):
        value = balls(reals.array(system.unrounded.get("f", system.f.value)))
        return lambda t: value
    n, load = system.n, system.f

    def work(t: Any, q: Any, v: Any) -> Any:
        return np.asarray(load(t), dtype=object) @ q

    try:
        program = derivatives(trace(work, n, {}, True), second=False)
    except TraceError as error:
        raise ValueError(f"with digits= the load f(t) must be a NumPy function that can be traced: {error}") from error
    evaluate, rest = function(program, program.output("Lq"), []), [flint.arb(0)] * (2 * n)
    return lambda t: evaluate(t, *rest)
