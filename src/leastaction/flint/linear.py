"""Quadratic(M, K) at any precision, with damping C and load f(t).

The equations of a step are linear: the matrices of `linear.operator` at the precision of the run give its increments,

    (q_{k+1} − q_k, p_{k+1} − p_k) = W (q_k, p_k) + G (f(t_1), …, f(t_r)),

and Z gives the increments at the control points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flint
import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.errors import TraceError
from leastaction.flint.evaluate import function
from leastaction.flint.run import Run, behind
from leastaction.linear import Quadratic
from leastaction.linear.forcing import Constant
from leastaction.linear.operator import step_matrices
from leastaction.methods import Method
from leastaction.numbers.conversion import Balls, ball, ball_matrix, balls, identity, mpfs
from leastaction.numbers.precision import flint_bits
from leastaction.numbers.rounding import Digits
from leastaction.step.samples import Samples
from leastaction.step.stepper import Start
from leastaction.step.stored_row import Row
from leastaction.trace import derivatives, trace

Mpfs = NDArray[np.object_]


class LinearMechanics:
    """L = ½ v·Mv − ½ q·Kq and the forces −C v + f(t), of a Quadratic system, at one point (n,) or many (K, n)."""

    def __init__(self, system: Quadratic, reals: Digits) -> None:
        self.n, self.bits = system.n, reals.bits
        M, K, C = system.exact_matrices(reals)
        with flint_bits(self.bits):
            self.M, self.K = ball_matrix(M), ball_matrix(K)
            self.C = flint.arb_mat(self.n, self.n) if C is None else ball_matrix(C)
            self.inverse_mass = self.M.solve(identity(self.n), algorithm="approx").mid()
            self.load = load_function(system, reals)

    def momentum(self, q: Mpfs, v: Mpfs, t: Any = 0, params: Any = None) -> Mpfs:
        return self._rows(self.M, v)

    def velocity(self, q: Mpfs, p: Mpfs, t: Any = 0, params: Any = None) -> Mpfs:
        return self._rows(self.inverse_mass, p)

    def acceleration(self, q: Mpfs, v: Mpfs, t: Any = 0, params: Any = None) -> Mpfs:
        return self._rows(self.inverse_mass, self.external_force(q, v, t) - self._rows(self.K, q))

    def external_force(self, q: Mpfs, v: Mpfs, t: Any = 0, params: Any = None) -> Mpfs:
        total = -self._rows(self.C, v)
        if self.load is None:
            return total
        with flint_bits(self.bits):
            times = np.broadcast_to(np.asarray(t, dtype=object), np.shape(q)[:-1])
            loads = [mpfs(self.load(ball(mpmath.mpf(x)))) for x in times.flat]
        return total + np.array(loads, dtype=object).reshape(np.shape(q))

    def energy(self, q: Mpfs, p: Mpfs, t: Any = 0, params: Any = None) -> Any:
        return ((p * self.velocity(q, p)).sum(axis=-1) + (q * self._rows(self.K, q)).sum(axis=-1)) / 2

    def check_regular(self, q: Mpfs, v: Mpfs, t: Any, params: Any = None) -> None:
        """M is positive definite, which `Quadratic` has checked."""

    def _rows(self, A: Any, x: Mpfs) -> Mpfs:
        """A x for each row of x."""
        with flint_bits(self.bits):
            columns = A * ball_matrix(np.atleast_2d(x)).transpose()
            return mpfs(columns.transpose().entries()).reshape(np.shape(x))


class LinearStepper(Run):
    """A method at work on a Quadratic system, with its derivative where asked for: powers of the matrix of a step."""

    NUMBERS = ("y", "D")

    def __init__(self, mechanics: LinearMechanics, method: Method, start: Start, row: Row | None = None) -> None:
        self.row = row or Row.whole(mechanics.n)
        self.n, self.bits, self._load = mechanics.n, mechanics.bits, mechanics.load
        with flint_bits(self.bits):
            h = ball(start.h)
            self._t0, self._h, self.y = ball(start.t), h, balls(start.q) + balls(start.p)
            step = step_matrices(method, h, mechanics.M, mechanics.K, mechanics.C)
            self._times = [(c * h).mid() for c in step.c]
            self.W, self._G = self._by_state_and_load(step.dq.tolist() + step.dp.tolist())
            self._Z, self._Z_load = self._by_state_and_load(step.z.tolist())
            self.begin_derivative()

    def _by_state_and_load(self, rows: list[list[Any]]) -> tuple[Any, Any]:
        cut = 2 * self.n
        return flint.arb_mat([row[:cut] for row in rows]), flint.arb_mat([row[cut:] for row in rows])

    def _loads(self, t: Any) -> Any:
        """(f(t_1), …, f(t_r)) of the step that begins at t."""
        assert self._load is not None
        return flint.arb_mat(len(self._times) * self.n, 1, [x for at in self._times for x in self._load(t + at)])

    def step(self) -> None:
        y = flint.arb_mat(2 * self.n, 1, self.y)
        moved = y + self.W * y
        if self._load is not None:
            moved += self._G * self._loads((self._t0 + self.done * self._h).mid())
        self.y = list(moved.mid().entries())
        if self.row.varied:
            D = flint.arb_mat(2 * self.n, self.row.varied, self.D)
            self.D = list((D + self.W * D).mid().entries())

    def now(self) -> Balls:
        return self.y + behind(self.D, self.row.varied)

    def polynomials(self, starts: Mpfs) -> tuple[Mpfs, int]:
        """The increments z, (K, s, n), of single steps from rows (t, q, p), and how many could be solved."""
        with flint_bits(self.bits):
            z = (self._Z * ball_matrix(starts[:, 1:]).transpose()).transpose()
            if self._load is not None:
                z += flint.arb_mat([(self._Z_load * self._loads(ball(t))).entries() for t in starts[:, 0]])
            return mpfs(z.entries()).reshape(len(starts), -1, self.n), len(starts)


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
