"""One trajectory: check the input, prepare the stepper, run it in pieces, and hand back the Path."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.backends.status import Failure
from leastaction.border import check_times, count_steps, number
from leastaction.lagrangian import Lagrangian
from leastaction.linear import Quadratic
from leastaction.methods import Method
from leastaction.methods import method as method_named
from leastaction.numbers.rounding import reals
from leastaction.path import Path
from leastaction.prepare import Request, prepare
from leastaction.running import interruptible, positive, preparing, progress_bar, raise_failure
from leastaction.waiting import compiling

PIECE_SECONDS = 0.05  # how long the native loop runs between looks at the keyboard and the progress bar
FIRST_PIECE = 1  # a step may be slow: at 1000 digits, or of a large system


def integrate(
    system: Lagrangian | Quadratic,
    method: str | Method,
    q0: ArrayLike,
    p0: ArrayLike | None = None,
    *,
    v0: ArrayLike | None = None,
    h: Any,
    steps: int | None = None,
    t_end: Any = None,
    t0: Any = 0.0,
    params: Mapping[str, Any] | None = None,
    every: int = 1,
    digits: int | None = None,
    progress: bool = False,
    output: ArrayLike | None = None,
    allow_unstable: bool = False,
    tangent: bool | Literal["all"] = False,
    store: str | os.PathLike[str] | None = None,
) -> Path:
    """Integrate a system from (q0, p0) or (q0, v0).

    method    a method or its name: "simpson", "P4N4Q8Gau", "rk4", …
    h         step; negative to go backward in time
    steps     how many steps; or
    t_end     until when: then the steps are equal and at most |h|, h = (t_end − t0)/N, and `path.h` tells
    params    values of parameters for this run, in place of the system's defaults
    every     keep only every so many states, and the last
    digits    decimal digits of the arithmetic; float64 unless told. The path then holds mpmath numbers
    progress  show a progress bar
    tangent   carry the exact derivative by the initial state along, `path.tangent`; "all": by the parameters and h too,
              `path.sensitivity`
    store     write the states to this Zarr archive while running, instead of keeping them in memory; `la.resume`
              continues it, also after it was killed (needs the extra `leastaction[zarr]`). In float64, for all systems
              but a Quadratic one whose load is a function, which an archive cannot keep

    Numbers may be given exactly, as text ("9.81", "1/3", "pi/6"), Fraction, Decimal, mpmath or SymPy numbers; a float
    means exactly that binary number.

    For Quadratic systems:

    output    degrees of freedom to store, when not all are wanted
    allow_unstable    run even where the method is not stable for this h

    Raises StepFailed when a step cannot be solved; its `.path` holds everything before; and UnstableStepError before a
    run on a Quadratic system whose highest frequency the method cannot take with this h. Ctrl-C ends
    the run and returns what there is, with a warning and `stats["interrupted"]` set.
    """
    if not isinstance(system, Lagrangian | Quadratic):
        raise TypeError(f"expected a system, as from la.Lagrangian(fn, n=…) or la.Quadratic(M, K); got {system!r}")
    arithmetic = reals(digits)
    with arithmetic.working():
        t0 = number("t0", t0, arithmetic)
        t_end = None if t_end is None else number("t_end", t_end, arithmetic)
        count, h = count_steps(number("h", h, arithmetic), steps, t_end, t0)
        request = Request(
            arithmetic=arithmetic,
            system=system,
            method=method_named(method),
            initial=(q0, p0, v0),
            t0=t0,
            h=h,
            count=count,
            every=positive("every", every),
            values=system.values(params, arithmetic),
            output=output,
            allow_unstable=allow_unstable,
            tangent=tangent,
        )
        if store is not None:
            check_times(system, t0, h, count)
            return _stored(request, store, t_end, progress)
        with preparing():
            run = _Run(request)  # first, whether there is room at all
        check_times(system, t0, h, count)
    failure = run.go(progress)
    with arithmetic.working():
        path = run.path(t_end)
    if failure is not None:
        raise_failure(path, failure, run.done, float(t0 + run.done * h))
    if run.interrupted:
        warnings.warn(
            f"interrupted after {run.done} of {count} steps; the path ends at t = {float(path.t[-1]):g}",
            RuntimeWarning,
            stacklevel=2,
        )
    return path


def _stored(request: Request, store: str | os.PathLike[str], t_end: float | None, progress: bool) -> Path:
    from leastaction.store import store_run

    if request.arithmetic.digits is not None:
        raise ValueError("store= is for runs in float64; keep paths of more digits with path.save")
    if request.tangent:
        raise ValueError("store= does not keep the tangent map; run without tangent=")
    return store_run(store, request, t_end, progress)


class _Run:
    """A run in pieces: the native loop goes on for a moment at a time, and what it stores is kept whatever comes."""

    def __init__(self, request: Request) -> None:
        clock = time.perf_counter()
        self.request = request
        with compiling():
            self.prepared = prepare(request)
        self.compile_time = time.perf_counter() - clock
        q, p, dofs = self.prepared.q, self.prepared.p, self.prepared.dofs
        self.states = _allocate(request, len(dofs), q.dtype)
        self.states[0] = np.concatenate([q[dofs], p[dofs]])
        self.done, self.stored, self.interrupted, self.run_time = 0, 1, False, 0.0

    def go(self, progress: bool) -> Failure | None:
        """Until the end, a failure, or an interrupt."""
        begun = time.perf_counter()
        try:
            return self._pieces(progress)
        finally:
            self.run_time = time.perf_counter() - begun

    def _pieces(self, progress: bool) -> Failure | None:
        count, every, piece = self.request.count, self.request.every, FIRST_PIECE
        with progress_bar(count, progress) as bar, interruptible(self._stop, lambda: self.done >= count):
            while self.done < count and not self.interrupted:
                clock = time.perf_counter()
                before = self.done
                failure = self._advance(min(piece, count - self.done), count)
                bar.update(self.done - before)
                if failure is not None:
                    return failure
                spent = max(time.perf_counter() - clock, 1e-6)
                piece = max(1, int(piece * min(8.0, PIECE_SECONDS / spent)))
        self.interrupted = self.done < count
        if self.interrupted and self.done % every:  # one step more, to keep where the run has come to
            return self._advance(1, self.done + 1)
        return None

    def _advance(self, steps: int, last: int) -> Failure | None:
        rows = self.states[self.stored :]
        done, stored, failure = self.prepared.stepper.advance(steps, self.request.every, last, rows)
        self.done += done
        self.stored += stored
        return failure

    def _stop(self) -> None:
        self.interrupted = True

    def path(self, t_end: Any) -> Path:
        """What was computed, as a Path."""
        request, prepared = self.request, self.prepared
        width = len(prepared.dofs)
        steps = np.minimum(np.arange(self.stored) * request.every, self.done)
        k = request.arithmetic.array(steps)
        t0, h = request.t0, request.h
        return Path(
            system=request.system,
            method=request.method,
            t=t0 + k * h if t_end is None else t0 + (t_end - t0) * (k / request.count),
            q=self.states[: self.stored, :width],
            p=self.states[: self.stored, width:],
            h=h,
            every=request.every,
            params=request.system.named(request.values),
            stats={
                "steps": self.done,
                **prepared.stepper.counts(),
                "compile_time": self.compile_time,
                "run_time": self.run_time,
                "time_per_step": self.run_time / max(1, self.done),
                "interrupted": self.interrupted,
            },
            tangent=prepared.tangent(steps) if request.tangent else None,
            sensitivity=prepared.sensitivity(self.stored) if request.tangent else None,
            output=None if request.output is None else prepared.dofs,
            digits=request.arithmetic.digits,
        )


def _allocate(request: Request, n: int, dtype: Any) -> NDArray[Any]:
    rows = request.rows
    try:
        return np.empty((rows, 2 * n), dtype)
    except (MemoryError, ValueError):  # ValueError: more than an address can count
        raise MemoryError(
            f"{request.count} steps: {rows} states of {n} degrees of freedom need {rows * 16 * n / 2**30:.1f} GiB; "
            f"keep fewer with every= (now {request.every}), or take fewer steps"
        ) from None
