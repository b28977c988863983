"""One trajectory: check the input, prepare the stepper, run it in pieces, and hand back the Path."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.errors import DegenerateLagrangianError, StepFailed
from leastaction.interrupt import interruptible
from leastaction.lagrangian import Lagrangian
from leastaction.methods import Method
from leastaction.methods import method as method_named
from leastaction.path import Path
from leastaction.stepping import layout
from leastaction.stepping.stepper import Failure, Start, Stepper, stepper

FloatArray = NDArray[np.float64]

PIECE_SECONDS = 0.05  # how long the native loop runs between looks at the keyboard and the progress bar
FIRST_PIECE = 64


def integrate(
    system: Lagrangian,
    method: str | Method,
    q0: ArrayLike,
    p0: ArrayLike | None = None,
    *,
    v0: ArrayLike | None = None,
    h: float,
    steps: int | None = None,
    t_end: float | None = None,
    t0: float = 0.0,
    params: Mapping[str, Any] | None = None,
    every: int = 1,
    progress: bool = False,
    store: str | os.PathLike[str] | None = None,
) -> Path:
    """Integrate a system from (q0, p0) or (q0, v0).

    method    a method or its name: "simpson", "P4N4Q8Gau", "rk4", …
    h         step; negative to go backward in time
    steps     how many steps; or
    t_end     until when: then the steps are equal and at most |h|, h = (t_end − t0)/N, and `path.h` tells
    params    values of parameters for this run, in place of the system's defaults
    every     keep only every so many states (and the last)
    progress  show a progress bar
    store     write the states to this Zarr archive while running, instead of keeping them in memory; `la.resume`
              continues it, also after it was killed (needs the extra `leastaction[zarr]`)

    Raises StepFailed when a step cannot be solved; its `.path` holds everything before. Ctrl-C ends
    the run and returns what there is, with a warning and `stats["interrupted"]` set.
    """
    if not isinstance(system, Lagrangian):
        raise TypeError(f"expected a system, as from la.Lagrangian(fn, n=…); got {system!r}")
    chosen = method_named(method)
    t0 = _number("t0", t0)
    count, h = _steps(_number("h", h), steps, t_end, t0)
    every = _count("every", every)
    values = system.values(params)
    start = _start(system, q0, p0, v0, t0, h, values)
    if store is not None:
        from leastaction.store import store_run

        return store_run(store, system, chosen, start, count, every, progress)

    clock = time.perf_counter()
    solver = stepper(system, chosen, start)
    compiled = time.perf_counter() - clock
    states = _allocate(count, every, system.n)
    states[0] = np.concatenate([start.q, start.p])
    run = _Run(solver, count, every, states)
    clock = time.perf_counter()
    failure = run.go(progress)
    stats = {
        "steps": run.done,
        **solver.counts(),
        "compile_time": compiled,
        "run_time": time.perf_counter() - clock,
        "interrupted": run.interrupted,
    }
    rows = states[: run.stored]
    k = np.minimum(np.arange(run.stored) * every, count)
    path = Path(
        system=system,
        method=chosen,
        t=t0 + k * h if t_end is None else t0 + (t_end - t0) * (k / count),
        q=rows[:, : system.n],
        p=rows[:, system.n :],
        h=h,
        every=every,
        params=system.named(values),
        stats=stats,
    )
    if failure is not None:
        _fail(path, failure, run.done, t0 + run.done * h)
    if run.interrupted:
        warnings.warn(
            f"interrupted after {run.done} of {count} steps; the path ends at t = {path.t[-1]:g}",
            RuntimeWarning,
            stacklevel=2,
        )
    return path


@dataclass
class _Run:
    """The run in pieces."""

    solver: Stepper
    count: int
    every: int
    states: FloatArray
    done: int = 0
    stored: int = 1
    interrupted: bool = False

    def go(self, progress: bool) -> Failure | None:
        """Until the end, a failure, or an interrupt."""
        piece = FIRST_PIECE
        with _bar(self.count, progress) as bar, interruptible(self.stop):
            while self.done < self.count and not self.interrupted:
                clock = time.perf_counter()
                todo = min(piece, self.count - self.done)
                done, stored, failure = self.solver.advance(todo, self.every, self.count, self.states[self.stored :])
                self.done += done
                self.stored += stored
                bar.update(done)
                if failure is not None:
                    return failure
                spent = max(time.perf_counter() - clock, 1e-6)
                piece = max(1, int(piece * min(8.0, PIECE_SECONDS / spent)))
        return None

    def stop(self) -> None:
        self.interrupted = True


@contextmanager
def _bar(total: int, wanted: bool) -> Iterator[Any]:
    from tqdm import tqdm

    with tqdm(total=total, unit=" steps", unit_scale=True, disable=not wanted) as bar:
        yield bar


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number; got {value!r}") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite; got {value!r}")
    return number


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a positive integer; got {value!r}")
    return int(value)


def _steps(h: float, steps: int | None, t_end: float | None, t0: float) -> tuple[int, float]:
    """The number of steps and the step, from either way of saying how long."""
    if h == 0:
        raise ValueError("h must not be zero; a negative h goes backward in time")
    if (steps is None) == (t_end is None):
        raise ValueError("say how long: give either steps= or t_end=, not both")
    if steps is not None:
        return _count("steps", steps), h
    length = _number("t_end", t_end) - t0
    if length == 0:
        raise ValueError(f"t_end must differ from the start, t0 = {t0:g}")
    if (length > 0) != (h > 0):
        raise ValueError(
            f"h = {h:g} leads away from t_end = {t_end:g} (the run starts at t0 = {t0:g}); give h = {-h:g}"
        )
    count = max(1, math.ceil(length / h * (1 - 1e-9)))
    return count, length / count


def _start(
    system: Lagrangian,
    q0: ArrayLike,
    p0: ArrayLike | None,
    v0: ArrayLike | None,
    t0: float,
    h: float,
    values: FloatArray,
) -> Start:
    """Initial data, checked and completed."""
    if (p0 is None) == (v0 is None):
        raise ValueError("give either p0= (momenta) or v0= (velocities), not both")
    q = _vector("q0", q0, system.n)
    if v0 is not None:
        v = _vector("v0", v0, system.n)
        system.check_regular(q, v, t0, values)
        p = system.momentum(q, v, t0, values)
    else:
        p = _vector("p0", p0, system.n)
        try:
            v = system.velocity(q, p, t0, values)
        except DegenerateLagrangianError:
            system.check_regular(q, np.zeros(system.n), t0, values)
            raise
        system.check_regular(q, v, t0, values)
    if not np.isfinite(p).all():
        raise ValueError(f"the momentum is not finite at the start, q = {q}, v = {v}: p = {p}")
    a = system.acceleration(q, v, t0, values)
    if not np.isfinite(a).all():
        raise ValueError(f"the acceleration is not finite at the start, q = {q}, v = {v}: {a}")
    return Start(t0, q, p, v, a, h, values)


def _vector(name: str, value: Any, n: int) -> FloatArray:
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be {n} numbers; got {value!r}") from None
    if array.shape == () and n == 1:
        array = array.reshape(1)
    if array.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one entry per degree of freedom; got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite; got {array}")
    return array


def _allocate(count: int, every: int, n: int) -> FloatArray:
    rows = count // every + 1 + (count % every != 0)
    try:
        return np.empty((rows, 2 * n))
    except MemoryError:
        raise MemoryError(
            f"{rows} states of {n} degrees of freedom need {rows * 16 * n / 2**30:.1f} GiB; "
            f"keep fewer with every= (now {every})"
        ) from None


_REASONS = {
    layout.NOT_CONVERGED: "Newton's iteration did not converge",
    layout.NOT_FINITE: "the Lagrangian or a derivative became infinite or not a number",
    layout.BRANCH_ENDS: "no solution of this size of step is connected with the motion",
    layout.SINGULAR: "the equations became singular",
}


def _fail(path: Path, failure: Failure, step: int, now: float) -> None:
    message = f"step {step} at t = {now:.6g} could not be solved with h = {path.h:g}: {_REASONS[failure.status]}"
    if failure.iterations:
        message += f" ({failure.iterations} iterations, last increment {failure.residual:.1e} of the step)"
    if 0 < failure.reach < 1:
        reach = failure.reach * path.h
        message += f". The branch of solutions that begins at h = 0 could be followed up to about h = {reach:.3g}"
    message += (
        f". Try a smaller step, h = {path.h / 2:g}, or a method with more nodes; near a singularity of L (a "
        f"collision, a chart's pole) other coordinates help. The {len(path)} states before are in the exception's .path"
    )
    raise StepFailed(
        message,
        path=path,
        step=step,
        time=now,
        h=path.h,
        residual=failure.residual,
        iterations=failure.iterations,
    )
