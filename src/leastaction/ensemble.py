"""la.ensemble: many trajectories of one system, in SIMD lanes, on all cores, or on a cluster."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path as FilePath
from typing import Any, Literal, cast

from numpy.typing import ArrayLike

from leastaction.advice import check_tolerance
from leastaction.events import Event, Impact
from leastaction.linear import Quadratic
from leastaction.methods import Branch, Method
from leastaction.paths import Paths
from leastaction.results import from_archive, from_memory
from leastaction.run.archive import Disk
from leastaction.run.batches import prepare
from leastaction.run.checks import positive
from leastaction.run.drive import usual_parts
from leastaction.run.interrupts import preparing
from leastaction.run.memory import Memory
from leastaction.run.plan import check_length, plan_run
from leastaction.run.reductions import Reduction
from leastaction.single import advise_many, check_undriven
from leastaction.systems import System
from leastaction.varied import varied
from leastaction.waiting import compiling


def ensemble(
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
    final_only: bool = False,
    digits: int | None = None,
    output: ArrayLike | None = None,
    allow_unstable: bool = False,
    branch: Branch = "followed",
    tangent: bool | Literal["all"] = False,
    reduce: Mapping[str, Reduction] | None = None,
    events: Mapping[str, Event | Impact] | None = None,
    inputs: Mapping[str, Any] | None = None,
    pace: Callable[..., Any] | str | None = None,
    client: Any = None,
    threads: int | None = None,
    progress: bool = False,
    store: str | os.PathLike[str] | None = None,
) -> Paths:
    """Integrate B trajectories of a system from (q0, p0) or (q0, v0).

    q0, p0, v0   (B, n) each, or (n,) where all trajectories share it
    params       parameters of the run; an array with one more axis, B, in front gives each trajectory its own; of a
                 Quadratic system M, K and, where it has them, C and a constant f
    h, steps, t_end, t0, every, digits, output, allow_unstable, branch, tangent, pace, progress: as `la.integrate`
    tol          instead of method and h: how large the error of the position may be at t_end, as for `la.integrate`.
                 One advice serves all, `paths.advice`, from some of them, whose errors are estimated. With a pace,
                 which it may choose, each trajectory has times of its own; `paths.last` are the states at t_end
    final_only   keep only the last state
    reduce       what to compute on the way, by name: {"E": la.EnergyRange()}
    events       what to look out for, as for `la.integrate`: `paths.events["name"].t` is (B, m), NaN where a trajectory
                 has fewer; one that an event stops ends there, and `paths.end_time` says when
    inputs       of a system with inputs, by name: an array held in each step, (steps, …) for all trajectories alike or
                 (B, steps, …); with values at the nodes (B, steps, r, …), B = 1 for all alike; or `la.Samples`, with
                 values (m, …) or (B, m, …)
    client       a `dask.distributed.Client`, to run on its cluster
    threads      how many cores to use here; all, unless told
    store        stream the results to this Zarr archive; q and p of the result stay on disk until they are asked for;
                 `la.resume` goes on after an end, an interrupt or a kill

    A trajectory with a step that cannot be solved is marked in `.status` and ends there (NaN after); the others go on.
    The result does not depend on the order of the trajectories, nor on `threads` or `client`.

    >>> import numpy as np
    >>> import leastaction as la
    >>> def pendulum(q, v, g):
    ...     return 0.5 * v[0] ** 2 + g * np.cos(q[0])
    >>> system = la.Lagrangian(pendulum, n=1, params={"g": 9.81})
    >>> paths = la.ensemble(system, "simpson", [1.0], [0.0], params={"g": [1.0, 4.0, 9.0]}, h=0.01, steps=100, every=50)
    >>> paths.q.shape
    (3, 3, 1)
    """
    if q0 is None:
        raise ValueError("the start lacks its positions: give q0=")
    advice = None
    if tol is not None:
        if method is not None or h is not None or steps is not None or digits is not None:
            raise ValueError("with tol= the method and h are chosen: give t_end= and none of method, h, steps, digits")
        check_undriven(system, inputs)
        advice = advise_many(system, (q0, p0, v0), t_end, t0, params, pace, check_tolerance(tol))
        method, h = advice.chosen.method, math.copysign(advice.chosen.h, advice.t_end - advice.t0)
        pace = advice.chosen.pace
    if method is None or h is None:
        raise ValueError("say how to run: give method= and h=; or tol=, and both are chosen")
    clock = time.perf_counter()
    if isinstance(system, Quadratic) and params:
        system, allow_unstable = varied(system, method, h, params, allow_unstable), False
    every = 0 if final_only else positive("every", every)
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
            every=every,
            digits=digits,
            output=output,
            tangent=tangent,
            allow_unstable=allow_unstable,
            branch=branch,
            reduce=reduce,
            events=events,
            inputs=inputs,
            pace=pace,
            advice=advice,
            many=True,
        )
        parts = usual_parts(plan, len(starts), client, threads)
        memory = Memory(plan, starts) if store is None else None
        check_length(plan)
        told = prepare(plan, starts)
    told["compile_time"] = time.perf_counter() - clock
    if memory is not None:
        return cast(Paths, from_memory(memory, told, progress, client, threads))
    assert store is not None
    with Disk.creating(FilePath(store), plan, starts, parts) as disk:
        return cast(Paths, from_archive(disk, told, progress, client, threads))
