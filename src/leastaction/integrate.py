"""One trajectory: check the input, run it, and hand back the Path."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from leastaction.advice import FINER, LAST, Advice, Asked, check_tolerance, choose
from leastaction.backends.points import evaluate
from leastaction.events import Event, Impact
from leastaction.lagrangian import Lagrangian
from leastaction.methods import Method
from leastaction.methods import method as method_named
from leastaction.numbers.rounding import FLOAT64
from leastaction.pace import AUTO, SOON, Paced, automatic
from leastaction.path import Path
from leastaction.results import from_archive, from_memory
from leastaction.run.archive import Disk
from leastaction.run.batches import prepare
from leastaction.run.checks import number, positive
from leastaction.run.interrupts import preparing
from leastaction.run.memory import Memory
from leastaction.run.plan import check_length, plan_run
from leastaction.run.starts import Starts, begin
from leastaction.systems import System
from leastaction.waiting import compiling

TRIES = 3  # to keep a tolerance
CHECKED_SECONDS = 5.0  # a run that takes longer is not done twice


def integrate(
    system: System,
    method: str | Method | None = None,
    q0: ArrayLike | None = None,
    p0: ArrayLike | None = None,
    *,
    v0: ArrayLike | None = None,
    h: Any = None,
    tol: float | None = None,
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
    events: Mapping[str, Event | Impact] | None = None,
    pace: Callable[..., Any] | str | None = None,
) -> Path:
    """Integrate a system from (q0, p0) or (q0, v0).

    method    a method or its name: "simpson", "P4N4Q8Gau", "rk4", …
    h         step; negative to go backward in time
    tol       instead of both: how large the error of the position may be at t_end, relative to the size of the motion.
              Method, step and pace are chosen by measuring (`la.advise`), the error reached is estimated by a second
              run, and `path.advice` tells; a tolerance that is missed is a warning
    steps     how many steps; or
    t_end     until when: then the steps are equal and at most |h|, h = (t_end − t0)/N, and `path.h` tells
    params    values of parameters for this run, in place of the system's defaults
    every     keep only every so many states, and the last
    digits    decimal digits of the arithmetic; float64 unless told. The path then holds mpmath numbers
    progress  show a progress bar
    output    degrees of freedom to store, when not all are wanted
    tangent   carry the exact derivative by the initial state along, `path.tangent`; "all": by the parameters and h too,
              `path.sensitivity`
    store     write the states to this Zarr archive while running, instead of keeping them in memory; `la.resume`
              continues it, also after it was killed (needs the extra `leastaction[zarr]`)

    events    what to look out for, by name: la.Event(g) or la.Impact(g); `path.events[name]` has their times and states
    pace      σ(q, …) > 0, a function like L, or "auto": the steps are equal in s with dt = σ ds, so h is a step of s,
              and σ h one of time; `steps` counts them, a last, shorter one meets `t_end`, and `path.t` are the times

    Numbers may be given exactly, as text ("9.81", "1/3", "pi/6"), Fraction, Decimal, mpmath or SymPy numbers; a float
    means exactly that binary number.

    allow_unstable    run a Quadratic system even where the method is not stable for this h

    Raises StepFailed when a step cannot be solved; its `.path` holds everything before; and UnstableStepError before a
    run on a Quadratic system whose highest frequency the method cannot take with this h. Ctrl-C ends
    the run and returns what there is, with a warning and `stats["interrupted"]` set.
    """
    if q0 is None:
        raise ValueError("the start lacks its positions: give q0=")
    options: dict[str, Any] = {
        "every": every, "digits": digits, "progress": progress, "output": output, "allow_unstable": allow_unstable,
        "tangent": tangent, "store": store, "events": events,
    }  # fmt: skip
    start = (q0, p0, v0)
    if tol is None:
        if method is None or h is None:
            missing = "method= and h=" if method is None and h is None else "method=" if method is None else "h="
            raise ValueError(f"say how to run: give {missing}; or tol=, and both are chosen")
        return run_one(
            system, method, start, h=h, steps=steps, t_end=t_end, t0=t0, params=params, pace=pace, **options
        )  # fmt: skip
    if method is not None or h is not None or steps is not None:
        raise ValueError("with tol= the method and h are chosen: give t_end= and none of method, h and steps")
    if digits is not None:
        raise ValueError("tol= is for float64: with digits= give a method and h")
    question = Question(system, start, t_end, t0, params, pace)
    return advised(question, choose(question.asked(), check_tolerance(tol)), options)


def advise(
    system: System,
    q0: ArrayLike,
    p0: ArrayLike | None = None,
    *,
    v0: ArrayLike | None = None,
    t_end: Any,
    tol: float,
    t0: Any = 0.0,
    params: Mapping[str, Any] | None = None,
    pace: Callable[..., Any] | str | None = None,
) -> Advice:
    """Which method, which step, which pace keep the error of the position at t_end below tol: a table to choose from.

    The error is relative to the size of the motion. Short pilot runs are measured, as `leastaction.advice` tells;
    `la.integrate(..., tol=tol)` takes the advice. A pace of one's own is taken; else the one made from L is tried, too.
    """
    question = Question(system, (q0, p0, v0), t_end, t0, params, pace)
    return choose(question.asked(), check_tolerance(tol))


@dataclass(frozen=True, eq=False)
class Question:
    """A run without method and step."""

    system: System
    start: tuple[Any, Any, Any]
    t_end: Any
    t0: Any
    params: Mapping[str, Any] | None
    pace: Any

    def run(self, method: str, h: float, t_end: Any, pace: Any, **options: Any) -> Path:
        return run_one(
            self.system, method, self.start, h=h, t_end=t_end, t0=self.t0, params=self.params, pace=pace, **options
        )

    def asked(self) -> Asked:
        """What there is to know before pilots: the span, the frequency at the start, the paces to try."""
        if self.t_end is None:
            raise ValueError("tol= is about the error at a time: give t_end=")
        t0, t_end = number("t0", self.t0), number("t_end", self.t_end)
        if t0 == t_end:
            raise ValueError(f"t_end must differ from the start, t0 = {t0:g}")
        starts = begin(self.system, FLOAT64, *self.start, t0, self.params, False)
        paces: tuple[Any, ...] = (None,) if self.pace is None else (self.pace,)
        if self.pace is None and _can_be_paced(self.system):
            paces = (None, AUTO)

        def pilot(method: str, h: float, t_end: float, pace: Any, every: int, tangent: bool, most: int) -> Path:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self.run(method, h, t_end, pace, every=every, tangent=tangent, most=most)

        omega = _frequency(self.system, t0, starts, abs(t_end - t0))
        return Asked(pilot, self.system.name, self.system.n, t0, t_end, omega, paces)


def _can_be_paced(system: System) -> bool:
    if not isinstance(system, Lagrangian) or isinstance(system, Paced) or system.depends_on_time or system.forced:
        return False
    try:
        automatic(system)
    except ValueError:
        return False
    return True


def _frequency(system: System, t: float, starts: Starts, length: float) -> float:
    """The largest frequency or growth rate of the linearised motion at the start, or soon after; at least 1/length."""
    least = 1.0 / length
    if not isinstance(system, Lagrangian):
        return least
    q, v, params = starts.q[0], starts.v[0], starts.params[0]
    a = system.acceleration(q, v, t, params)
    found = _rate(system, t, q, v, a, params)
    for tau in length * 2.0 ** np.arange(-60.0, 1.0):
        if tau * found >= SOON:
            break
        then = q + tau * (v + tau * a / 2)
        later = _rate(system, t, then, v + tau * a, system.acceleration(then, v + tau * a, t, params), params)
        if later * tau >= SOON:
            return max(found, later, least)
    return max(found, least)


def _rate(system: Lagrangian, t: float, q: Any, v: Any, a: Any, params: Any) -> float:
    """The largest eigenvalue of ∂(q̇, v̇)/∂(q, v); zero where L is not regular."""
    n, program = system.n, system.acceleration_slopes
    at = {"t": [t], "q": q, "v": v, "params": params, "a": a}
    found = evaluate(program, np.concatenate([at[name] for name, _ in program.inputs])[None])[0]
    node = evaluate(system.node, np.concatenate([[t], q, v, params])[None])[0]
    mass = node[system.node.output_slice("m_v")].reshape(n, n)
    right = np.concatenate([found[program.output_slice(name)].reshape(n, n) for name in ("g_q", "g_v")], axis=1)
    try:
        slopes = np.concatenate([np.eye(n, 2 * n, n), np.linalg.solve(mass, right)])
        return float(np.abs(np.linalg.eigvals(slopes)).max())
    except np.linalg.LinAlgError:
        return 0.0


def advised(question: Question, advice: Advice, options: dict[str, Any]) -> Path:
    """A run with what was chosen; its error is that of a run with longer steps, from which it differs."""
    chosen, tol, order = advice.chosen, advice.tol, method_named(advice.chosen.method).order
    h = math.copysign(chosen.h, advice.t_end - advice.t0)
    output = options["output"]

    def end(path: Path) -> Any:
        q = np.asarray(path.q[-1], float)
        return q if output is None or path.output is not None else q[np.asarray(output)]

    check = chosen.seconds < CHECKED_SECONDS
    before = end(question.run(chosen.method, h, question.t_end, chosen.pace, every=LAST)) if check else None
    reached, plain = None, options | {"store": None}  # an archive is written once, when all is known
    for _ in range(TRIES):
        h = h / FINER
        path = question.run(chosen.method, h, question.t_end, chosen.pace, **plain)
        if before is None:
            break
        now, last = end(path), reached
        reached = float(np.abs(now - before).max() / advice.size)
        before = now
        if reached <= tol or (
            last is not None and reached > last / 2
        ):  # kept, or rounding, which no step helps against
            break
        h = h * max(0.5, (0.3 * tol / reached) ** (1 / order))
    if options["store"] is not None:
        path = question.run(chosen.method, h, question.t_end, chosen.pace, **options)
    advice = replace(advice, reached=reached, chosen=replace(chosen, h=abs(float(path.h))))
    if reached is not None and reached > tol:
        stay = "" if not advice.notes else f" ({'; '.join(advice.notes)})"
        warnings.warn(
            f"the tolerance {tol:g} was missed: the error at t = {advice.t_end:g} is about {reached:.1e}{stay}",
            RuntimeWarning,
            stacklevel=3,
        )
    return replace(path, advice=advice)


def run_one(
    system: System,
    method: str | Method,
    start: tuple[Any, Any, Any],
    *,
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
    events: Mapping[str, Event | Impact] | None = None,
    pace: Any = None,
    most: int | None = None,
) -> Path:
    """One run of a method with a step; with a pace, of at most so many steps."""
    clock = time.perf_counter()
    with preparing("nothing was computed, and no archive was begun"), compiling():
        plan, starts = plan_run(
            system,
            method,
            start,
            h=h,
            steps=steps,
            t_end=t_end,
            t0=t0,
            params=params,
            every=positive("every", every),
            digits=digits,
            output=output,
            tangent=tangent,
            allow_unstable=allow_unstable,
            events=events,
            pace=pace,
            most=most,
        )
        memory = Memory(plan, starts) if store is None else None  # first, whether there is room at all
        check_length(plan)
        told = prepare(plan, starts)
    told["compile_time"] = time.perf_counter() - clock
    if memory is not None:
        return from_memory(memory, told, progress)
    assert store is not None
    with Disk.creating(FilePath(store), plan, starts, [(0, 1)]) as disk:
        return from_archive(disk, told, progress)
