"""One trajectory: check the input, run it, and hand back the Path."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Literal

from numpy.typing import ArrayLike

from leastaction.advice import Advice, check_tolerance
from leastaction.events import Event, Impact
from leastaction.methods import Branch, Method
from leastaction.path import Path
from leastaction.single import Question, advised, check_undriven, run_one
from leastaction.systems import System


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
    branch: Branch = "followed",
    tangent: bool | Literal["all"] = False,
    store: str | os.PathLike[str] | None = None,
    events: Mapping[str, Event | Impact] | None = None,
    inputs: Mapping[str, Any] | None = None,
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
    inputs    of a system with inputs, by name: an array held in each step, (steps, …); an array with a value for each
              node of the method, (steps, r, …); or `la.Samples`, of which the nodes take what they need
    pace      σ(q, …) > 0, a function like L, or "auto": the steps are equal in s with dt = σ ds, so h is a step of s,
              and σ h one of time; `steps` counts them, a last, shorter one meets `t_end`, and `path.t` are the times

    Numbers may be given exactly, as text ("9.81", "1/3", "pi/6"), Fraction, Decimal, mpmath or SymPy numbers; a float
    means exactly that binary number.

    allow_unstable    run a Quadratic system even where the method is not stable for this h
    branch            which root of a step's equations to take: "followed", the one that is connected with the motion at
                      h → 0, or "any", the one that Newton's iteration finds. The latter may belong to no motion: it is
                      there to show what a program without this check computes

    Raises StepFailed when a step cannot be solved; its `.path` holds everything before; and UnstableStepError before a
    run on a Quadratic system whose highest frequency the method cannot take with this h. Ctrl-C ends
    the run and returns what there is, with a warning and `stats["interrupted"]` set. A run that loses energy which
    nothing takes warns, and `stats["energy_lost"]` says when, by how much and how large the kinetic energy was.
    """
    if q0 is None:
        raise ValueError("the start lacks its positions: give q0=")
    options: dict[str, Any] = {
        "every": every, "digits": digits, "progress": progress, "output": output, "allow_unstable": allow_unstable,
        "branch": branch, "tangent": tangent, "store": store, "events": events,
        "inputs": inputs,
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
    check_undriven(system, inputs)
    if digits is not None:
        raise ValueError("tol= is for float64: with digits= give a method and h")
    question = Question(system, start, t_end, t0, params, pace)
    return advised(question, question.advice(check_tolerance(tol)), options)


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

    The error is relative to the size of the motion. Short pilot runs are measured, as `leastaction.pilots` tells;
    `la.integrate(..., tol=tol)` takes the advice. A pace of one's own is taken; else the one made from L is tried, too.
    """
    check_undriven(system, None)
    question = Question(system, (q0, p0, v0), t_end, t0, params, pace)
    return question.advice(check_tolerance(tol))
