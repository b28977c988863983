"""One trajectory: check the input, prepare the stepper, run it in pieces, and hand back the Path."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.errors import DegenerateLagrangianError
from leastaction.exact import FLOAT64, Digits, Reals, all_finite, reals
from leastaction.lagrangian import Lagrangian
from leastaction.linear import Quadratic
from leastaction.linear.guard import require_stable
from leastaction.linear.stepper import LinearStepper, stored_dofs
from leastaction.methods import Method
from leastaction.methods import method as method_named
from leastaction.path import Path
from leastaction.running import interruptible, positive, progress_bar, raise_failure
from leastaction.stepping.stepper import Failure, Start, Stepper, stepper
from leastaction.stepping.tangent import WithTangent, tangent_stepper

FloatArray = NDArray[np.float64]

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
              continues it, also after it was killed (needs the extra `leastaction[zarr]`)

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
        return _integrate(
            arithmetic,
            system,
            method,
            (q0, p0, v0),
            h,
            steps,
            t_end,
            t0,
            params,
            every,
            progress,
            output,
            allow_unstable,
            tangent,
            store,
        )


def _integrate(
    arithmetic: Reals,
    system: Lagrangian | Quadratic,
    method: str | Method,
    initial: tuple[Any, Any, Any],
    h: Any,
    steps: int | None,
    t_end: Any,
    t0: Any,
    params: Mapping[str, Any] | None,
    every: int,
    progress: bool,
    output: ArrayLike | None,
    allow_unstable: bool,
    tangent: bool | Literal["all"],
    store: str | os.PathLike[str] | None,
) -> Path:
    chosen = method_named(method)
    t0 = _number("t0", t0, arithmetic)
    t_end = None if t_end is None else _number("t_end", t_end, arithmetic)
    count, h = _steps(_number("h", h, arithmetic), steps, t_end, t0)
    every = positive("every", every)
    values = system.values(params, arithmetic)
    if isinstance(system, Lagrangian) and (output is not None or allow_unstable):
        raise ValueError("output= and allow_unstable= are for Quadratic systems")
    _check_tangent(tangent, arithmetic, system, output)
    varied: WithTangent | None = None
    if store is not None:
        from leastaction.store import store_run

        if isinstance(arithmetic, Digits) or isinstance(system, Quadratic):
            raise ValueError("store= is for runs of Lagrangian systems in float64; keep other paths with path.save")
        if tangent:
            raise ValueError("store= does not keep the tangent map; run without tangent=")
        begin = _start(system, *initial, t0, h, values)
        return store_run(store, system, chosen, begin, count, every, progress)
    clock = time.perf_counter()
    if isinstance(arithmetic, Digits):
        solver, q, p = _prepare_digits(arithmetic, system, chosen, initial, t0, h, values, output, allow_unstable)
        dofs = np.arange(system.n)
    elif isinstance(system, Quadratic):
        q, p = _phase_point(system, *initial)
        solver = LinearStepper(system, chosen, t0, q, p, h, output=output, allow_unstable=allow_unstable)
        dofs = stored_dofs(output, system.n)
    else:
        start = _start(system, *initial, t0, h, values)
        q, p, dofs = start.q, start.p, np.arange(system.n)
        if tangent:
            solver = varied = tangent_stepper(system, chosen, start, _rows(count, every), tangent == "all")
        else:
            solver = stepper(system, chosen, start)
    compiled = time.perf_counter() - clock
    states = _allocate(count, every, len(dofs), q.dtype)
    states[0] = np.concatenate([q[dofs], p[dofs]])
    run = _Run(solver, count, every, states)
    clock = time.perf_counter()
    failure = run.go(progress)
    spent = time.perf_counter() - clock
    stats = {
        "steps": run.done,
        **solver.counts(),
        "compile_time": compiled,
        "run_time": spent,
        "time_per_step": spent / max(1, run.done),
        "interrupted": run.interrupted,
    }
    rows = states[: run.stored]
    k = arithmetic.array(np.minimum(np.arange(run.stored) * every, run.done))
    derivative = varied.by_state(run.stored) if varied else None
    if tangent and isinstance(solver, LinearStepper):
        derivative = solver.propagator.powers(np.minimum(np.arange(run.stored) * every, run.done))
    path = Path(
        system=system,
        method=chosen,
        t=t0 + k * h if t_end is None else t0 + (t_end - t0) * (k / count),
        q=rows[:, : len(dofs)],
        p=rows[:, len(dofs) :],
        h=h,
        every=every,
        params=system.named(values),
        stats=stats,
        tangent=derivative,
        sensitivity=varied.by_parameters(run.stored) if varied else None,
        output=None if output is None else dofs,
        digits=arithmetic.digits,
    )
    if failure is not None:
        raise_failure(path, failure, run.done, float(t0 + run.done * h))
    if run.interrupted:
        warnings.warn(
            f"interrupted after {run.done} of {count} steps; the path ends at t = {float(path.t[-1]):g}",
            RuntimeWarning,
            stacklevel=3,
        )
    return path


@dataclass
class _Run:
    """The run in pieces."""

    solver: Stepper
    count: int
    every: int
    states: NDArray[Any]
    done: int = 0
    stored: int = 1
    interrupted: bool = False

    def go(self, progress: bool) -> Failure | None:
        """Until the end, a failure, or an interrupt."""
        piece = FIRST_PIECE
        with progress_bar(self.count, progress) as bar, interruptible(self.stop):
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
        self.interrupted = self.done < self.count
        if self.interrupted and self.done % self.every:  # one step more, to keep where the run has come to
            done, stored, failure = self.solver.advance(1, self.every, self.done + 1, self.states[self.stored :])
            self.done += done
            self.stored += stored
            return failure
        return None

    def stop(self) -> None:
        self.interrupted = True


def _number(name: str, value: Any, arithmetic: Reals = FLOAT64) -> Any:
    try:
        array = arithmetic.array(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a number; got {value!r} ({error})") from None
    if array.shape != ():
        raise TypeError(f"{name} must be one number; got {value!r}")
    if not all_finite(array):
        raise ValueError(f"{name} must be finite; got {value!r}")
    return array.item()


def _steps(h: Any, steps: int | None, t_end: Any, t0: Any) -> tuple[int, Any]:
    """The number of steps and the step, from either way of saying how long."""
    if h == 0:
        raise ValueError("h must not be zero; a negative h goes backward in time")
    if (steps is None) == (t_end is None):
        raise ValueError("say how long: give either steps= or t_end=, not both")
    if steps is not None:
        return positive("steps", steps), h
    length = t_end - t0
    if length == 0:
        raise ValueError(f"t_end must differ from the start, t0 = {float(t0):g}")
    if (length > 0) != (h > 0):
        raise ValueError(
            f"h = {float(h):g} leads away from t_end = {float(t_end):g} (the run starts at t0 = {float(t0):g}); "
            f"give h = {float(-h):g}"
        )
    count = max(1, math.ceil(float(length / h) * (1 - 1e-9)))
    return count, length / count


def _prepare_digits(
    arithmetic: Digits,
    system: Lagrangian | Quadratic,
    method: Method,
    initial: tuple[Any, Any, Any],
    t0: Any,
    h: Any,
    values: NDArray[Any],
    output: Any,
    allow_unstable: bool,
) -> tuple[Stepper, NDArray[Any], NDArray[Any]]:
    """The stepper at this precision, and q and p where it starts."""
    from leastaction import precision

    if output is not None:
        raise ValueError("output= is for float64 runs of Quadratic systems; with digits= the whole state is stored")
    if isinstance(system, Quadratic) and not allow_unstable:
        require_stable(system.propagator(method, float(h)))
    mechanics = precision.mechanics(system, values, arithmetic)
    start = _start(mechanics, *initial, t0, h, values, arithmetic)
    return precision.stepper(mechanics, method, start), start.q, start.p


def _start(
    system: Any,
    q0: Any,
    p0: Any,
    v0: Any,
    t0: Any,
    h: Any,
    values: NDArray[Any],
    arithmetic: Reals = FLOAT64,
) -> Start:
    """Initial data, checked and completed; `system` is a Lagrangian, or its Mechanics at another precision."""
    if (p0 is None) == (v0 is None):
        raise ValueError("give either p0= (momenta) or v0= (velocities), not both")
    q = _vector("q0", q0, system.n, arithmetic)
    if v0 is not None:
        v = _vector("v0", v0, system.n, arithmetic)
        system.check_regular(q, v, t0, values)
        p = system.momentum(q, v, t0, values)
    else:
        p = _vector("p0", p0, system.n, arithmetic)
        try:
            v = system.velocity(q, p, t0, values)
        except DegenerateLagrangianError:
            system.check_regular(q, arithmetic.array(np.zeros(system.n)), t0, values)
            raise
        system.check_regular(q, v, t0, values)
    if not all_finite(p):
        raise ValueError(f"the momentum is not finite at the start, q = {q}, v = {v}: p = {p}")
    a = system.acceleration(q, v, t0, values)
    if not all_finite(a):
        raise ValueError(f"the acceleration is not finite at the start, q = {q}, v = {v}: {a}")
    return Start(t0, q, p, v, h, values)


def _phase_point(
    system: Quadratic, q0: ArrayLike, p0: ArrayLike | None, v0: ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    """Initial (q, p) of a linear system, checked."""
    if (p0 is None) == (v0 is None):
        raise ValueError("give either p0= (momenta) or v0= (velocities), not both")
    q = _vector("q0", q0, system.n)
    return q, _vector("p0", p0, system.n) if v0 is None else system.momentum(q, _vector("v0", v0, system.n))


def _vector(name: str, value: Any, n: int, arithmetic: Reals = FLOAT64) -> NDArray[Any]:
    try:
        array = arithmetic.array(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be {n} numbers; got {value!r} ({error})") from None
    if array.shape == () and n == 1:
        array = array.reshape(1)
    if array.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one entry per degree of freedom; got shape {array.shape}")
    if not all_finite(array):
        raise ValueError(f"{name} must be finite; got {array}")
    return array


def _check_tangent(tangent: Any, arithmetic: Reals, system: Lagrangian | Quadratic, output: ArrayLike | None) -> None:
    if tangent not in (False, True, "all"):
        raise ValueError(f"tangent must be True, False or 'all'; got {tangent!r}")
    if tangent and arithmetic.digits is not None:
        raise ValueError("the tangent map is computed in float64: give tangent= or digits=, not both")
    if isinstance(system, Quadratic) and tangent and (tangent == "all" or output is not None):
        raise ValueError("a Quadratic system has no parameters to vary, and its tangent is whole: give tangent=True")


def _rows(count: int, every: int) -> int:
    """How many states a run of this many steps stores."""
    return count // every + 1 + (count % every != 0)


def _allocate(count: int, every: int, n: int, dtype: Any) -> NDArray[Any]:
    rows = _rows(count, every)
    try:
        return np.empty((rows, 2 * n), dtype)
    except MemoryError:
        raise MemoryError(
            f"{rows} states of {n} degrees of freedom need {rows * 16 * n / 2**30:.1f} GiB; "
            f"keep fewer with every= (now {every})"
        ) from None
