"""One trajectory: check the input, run it, and hand back the Path."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, Literal

from numpy.typing import ArrayLike

from leastaction.events import Event, Impact
from leastaction.methods import Branch, Method
from leastaction.path import Path
from leastaction.results import from_archive, from_memory
from leastaction.run.archive import Disk
from leastaction.run.batches import prepare
from leastaction.run.checks import positive
from leastaction.run.interrupts import preparing
from leastaction.run.memory import Memory
from leastaction.run.plan import check_length, plan_run
from leastaction.systems import System
from leastaction.waiting import compiling


def integrate(
    system: System,
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
    branch: Branch = "followed",
    tangent: bool | Literal["all"] = False,
    store: str | os.PathLike[str] | None = None,
    events: Mapping[str, Event | Impact] | None = None,
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
    output    degrees of freedom to store, when not all are wanted
    tangent   carry the exact derivative by the initial state along, `path.tangent`; "all": by the parameters and h too,
              `path.sensitivity`
    store     write the states to this Zarr archive while running, instead of keeping them in memory; `la.resume`
              continues it, also after it was killed (needs the extra `leastaction[zarr]`)

    events    what to look out for, by name: la.Event(g) or la.Impact(g); `path.events[name]` has their times and states

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
    clock = time.perf_counter()
    with preparing("nothing was computed, and no archive was begun"), compiling():
        plan, starts = plan_run(
            system,
            method,
            (q0, p0, v0),
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
            branch=branch,
            events=events,
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
