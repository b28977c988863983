"""A run: many steps of one method on one Quadratic system, in pieces, keeping what has been computed.

Small dense systems apply one matrix (`operator`) in a compiled loop; the others solve (`stepper`). The state is the
unevaluated sum y + e of what is stored and what rounding lost, so that increments are never added to something big.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.linear.guard import require_stable
from leastaction.linear.propagator import Propagator
from leastaction.linear.system import Quadratic
from leastaction.methods import Method

FloatArray = NDArray[np.float64]
OnPiece = Callable[[int], Any]

PIECE_SECONDS = 0.2  # steps between two calls of on_piece
PIECE_BYTES = 1 << 25  # load at the nodes, evaluated ahead of the compiled loop


@dataclass
class Run:
    """What came out: t (K,), q and p (K, number of chosen degrees of freedom), every `every`-th step and the last.

    steps          steps done, fewer than asked for if `on_piece` said stop or the state overflowed
    overflow       the state left the range of float64 after the steps done
    q_end, p_end   the whole state at the end, whatever `output` was
    stats          how the method was applied, seconds, entries and bytes of the factors
    """

    t: FloatArray
    q: FloatArray
    p: FloatArray
    steps: int
    overflow: bool
    q_end: FloatArray
    p_end: FloatArray
    stats: dict[str, Any] = field(default_factory=dict)


def run(
    system: Quadratic,
    method: Method | str,
    q0: ArrayLike,
    p0: ArrayLike,
    *,
    h: float,
    steps: int,
    t0: float = 0.0,
    every: int = 1,
    output: ArrayLike | None = None,
    allow_unstable: bool = False,
    on_piece: OnPiece | None = None,
) -> Run:
    """`steps` steps of size h from (q0, p0) at t0.

    output      degrees of freedom to store (indices); all of them unless told
    on_piece    called with the number of steps done, a few times a second; the run ends early if it returns False,
                or raises KeyboardInterrupt
    """
    propagator = Propagator(system, method, h)
    n = system.n
    q, p = (_state(x, n, name) for x, name in ((q0, "q0"), (p0, "p0")))
    for name, count in (("steps", steps), ("every", every)):
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise ValueError(f"{name} must be a positive integer; got {count!r}")
    dofs = _dofs(output, n)
    began = time.perf_counter()
    if not allow_unstable:
        require_stable(propagator)
    checked_at = time.perf_counter()
    recorder = _Recorder(propagator, q, p, t0, int(steps), int(every), dofs, on_piece)
    ready = time.perf_counter()
    if propagator.small:
        recorder.loop()
    else:
        recorder.solve()
    result = recorder.result()
    result.stats |= {
        "stability_seconds": checked_at - began,
        "setup_seconds": ready - checked_at,
        "step_seconds": time.perf_counter() - ready,
    }
    return result


class _Recorder:
    """The state on its way, and the rows stored."""

    def __init__(
        self,
        propagator: Propagator,
        q: FloatArray,
        p: FloatArray,
        t0: float,
        steps: int,
        every: int,
        dofs: NDArray[np.intp],
        on_piece: OnPiece | None,
    ) -> None:
        self.propagator, self.t0, self.steps, self.every, self.on_piece = propagator, t0, steps, every, on_piece
        self.n = len(q)
        self.columns = np.concatenate([dofs, self.n + dofs])
        self.y, self.e = np.concatenate([q, p]), np.zeros(2 * self.n)
        self.rows = np.empty((1 + steps // every + (steps % every > 0), len(self.columns)))
        self.rows[0] = self.y[self.columns]
        self.done, self.row, self.overflow = 0, 1, False
        self.stats: dict[str, Any] = {"how": propagator.how}
        if propagator.small:
            _ = propagator.operator  # made now, so that the steps are timed without it
        else:
            step = propagator.stepper
            self.stats |= {"factor_nnz": [f.nnz for f in step.factors], "factor_bytes": step.factor_bytes}

    def _carry_on(self) -> bool:
        """Report, and learn whether to go on."""
        if self.on_piece is None:
            return True
        try:
            return self.on_piece(self.done) is not False
        except KeyboardInterrupt:
            return False

    def loop(self) -> None:
        """Small systems: the compiled loop, a piece at a time."""
        from leastaction.linear.loop import advance

        op, h, f = self.propagator.operator, self.propagator.h, self.propagator.system.f
        nodes = len(op.c) * self.n
        piece = min(self.steps, 1000 if f is None else max(1, min(1000, PIECE_BYTES // (8 * nodes))))
        while self.done < self.steps:
            count = min(piece, self.steps - self.done)
            F = np.empty((count, 0))
            if f is not None:
                F = np.empty((count, nodes))
                for k in range(count):
                    F[k] = np.asarray(self.propagator.load(self.t0 + (self.done + k) * h)).ravel()
            clock = time.perf_counter()
            span = (self.done, count, self.every, self.steps)
            store = (self.columns, self.rows, self.row)
            did, self.row = advance(op.W, op.W_low, op.G, F, self.y, self.e, *span, *store)
            self.done += did
            if did < count:
                self.overflow = True
                return
            if f is None:
                spent = time.perf_counter() - clock
                piece = int(piece * min(8.0, max(0.5, PIECE_SECONDS / max(spent, 1e-9))))
            if not self._carry_on():
                return

    def solve(self) -> None:
        """Large systems: one solve after the other."""
        step, h, n = self.propagator.stepper, self.propagator.h, self.n
        q, p = self.y[:n], self.y[n:]
        clock = time.perf_counter()
        while self.done < self.steps:
            z, dp = step.increments(q, p, self.propagator.load(self.t0 + self.done * h))
            if not np.isfinite(z.sum() + dp.sum()):
                self.overflow = True
                return
            _add(q, self.e[:n], z)
            _add(p, self.e[n:], dp)
            self.done += 1
            if self.done % self.every == 0 or self.done == self.steps:
                self.rows[self.row] = self.y[self.columns]
                self.row += 1
            if time.perf_counter() - clock > PIECE_SECONDS:
                if not self._carry_on():
                    return
                clock = time.perf_counter()

    def result(self) -> Run:
        numbers = list(range(0, self.done + 1, self.every))
        if numbers[-1] != self.done:  # the last step is stored even when the run ended between two rows
            numbers.append(self.done)
            if self.row < len(numbers):
                self.rows[self.row] = self.y[self.columns]
        rows = self.rows[: len(numbers)]
        half = len(self.columns) // 2
        return Run(
            t=self.t0 + self.propagator.h * np.array(numbers, dtype=float),
            q=rows[:, :half],
            p=rows[:, half:],
            steps=self.done,
            overflow=self.overflow,
            q_end=self.y[: self.n].copy(),
            p_end=self.y[self.n :].copy(),
            stats=self.stats,
        )


def _add(x: FloatArray, e: FloatArray, d: FloatArray) -> None:
    """x + e ← x + e + d, in place; two-sum."""
    d += e
    s = x + d
    b = s - x
    np.subtract(x, s - b, out=e)
    e += d - b
    x[:] = s


def _state(x: ArrayLike, n: int, name: str) -> FloatArray:
    a = np.asarray(x)
    if a.dtype.kind not in "iufb" or a.shape != (n,):
        raise ValueError(f"{name} must be {n} real numbers; got {a.dtype} of shape {a.shape}")
    if not np.isfinite(a).all():
        raise ValueError(f"{name} must be finite; some entries are NaN or infinite")
    return a.astype(float)


def _dofs(output: ArrayLike | None, n: int) -> NDArray[np.intp]:
    if output is None:
        return np.arange(n)
    dofs = np.atleast_1d(np.asarray(output))
    if dofs.dtype.kind not in "iu" or dofs.ndim != 1 or not dofs.size or dofs.min() < -n or dofs.max() >= n:
        raise ValueError(f"output must list degrees of freedom as indices below n = {n}; got {output!r}")
    return (dofs % n).astype(np.intp)
