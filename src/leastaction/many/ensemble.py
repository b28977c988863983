"""la.ensemble: many trajectories of one system, in SIMD lanes, on all cores, or on a cluster."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leastaction.integrate import _number, _steps
from leastaction.lagrangian import Lagrangian
from leastaction.many import lanes, singles
from leastaction.many.job import Job, Result, Start, Status, Tick
from leastaction.many.paths import Paths
from leastaction.many.reductions import Plan, Reduction, Section, plan
from leastaction.many.starts import starts
from leastaction.methods import Method
from leastaction.methods import method as method_named
from leastaction.running import interruptible, positive, progress_bar
from leastaction.stepping import stepper

CHUNKS_PER_THREAD = 8  # so that cores that finish early find more to do
LARGEST_CHUNK = 4096
CHUNK_MEMORY = 2**25  # bytes of records of crossings


def ensemble(
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
    final_only: bool = False,
    reduce: Mapping[str, Reduction] | None = None,
    client: Any = None,
    threads: int | None = None,
    progress: bool = False,
) -> Paths:
    """Integrate B trajectories of a system from (q0, p0) or (q0, v0).

    q0, p0, v0   (B, n) each, or (n,) where all trajectories share it
    params       parameters of the run; an array with one more axis, B, in front gives each trajectory its own
    h, steps, t_end, t0, every, progress: as for `la.integrate`
    final_only   keep only the last state
    reduce       what to compute on the way, by name: {"E": la.EnergyRange(), "flip": la.FirstCrossing(g)}
    client       a `dask.distributed.Client`, to run on its cluster
    threads      how many cores to use here; all, unless told

    A trajectory with a step that cannot be solved is marked in `.status` and ends there (NaN after); the others go on.
    The result does not depend on the order of the trajectories, nor on `threads` or `client`.

    >>> def pendulum(q, v, g):
    ...     return 0.5 * v[0] ** 2 + g * np.cos(q[0])
    >>> system = Lagrangian(pendulum, n=1, params={"g": 9.81})
    >>> paths = ensemble(system, "simpson", [1.0], [0.0], params={"g": [1.0, 4.0, 9.0]}, h=0.01, steps=100, every=50)
    >>> paths.q.shape
    (3, 3, 1)
    """
    if not isinstance(system, Lagrangian):
        raise TypeError(f"expected a system, as from la.Lagrangian(fn, n=…); got {system!r}")
    chosen = method_named(method)
    t0 = _number("t0", t0)
    count, h = _steps(_number("h", h), steps, t_end, t0)
    every = 0 if final_only else positive("every", every)
    job = Job(system, chosen, t0, h, count, every, plan(reduce, system))
    start = starts(system, q0, p0, v0, t0, params)

    clock = time.perf_counter()
    prepare(job)
    compiled = time.perf_counter() - clock
    clock = time.perf_counter()
    with progress_bar(count * len(start), progress) as bar:
        if client is None:
            workers = positive("threads", threads) if threads is not None else _cores()
            result = _on_threads(job, start, workers, bar.update)
        else:
            from leastaction.many.cluster import on_cluster

            if threads is not None:
                raise ValueError("threads= is for runs on this machine; with client= the cluster's workers decide")
            result = on_cluster(client, job, start, bar.update)
    stats = {
        "lanes": lanes.width(job),
        "compile_time": compiled,
        "run_time": time.perf_counter() - clock,
        "newton_iterations": int(result.iterations.sum()),
        "continued": int(result.continued.sum()),
        "interrupted": bool((result.status == Status.INTERRUPTED).any()),
    }
    if stats["interrupted"]:
        unfinished = int((result.status == Status.INTERRUPTED).sum())
        warnings.warn(
            f"interrupted; {unfinished} of {len(start)} trajectories are unfinished", RuntimeWarning, stacklevel=2
        )
    return _paths(job, start, result, t_end, stats)


def prepare(job: Job) -> None:
    """Compile what the run needs, once, before threads ask for it together."""
    if lanes.fits(job):
        lanes.compiled(job)
    elif isinstance(job.method, stepper.Galerkin):
        stepper.galerkin_workspace(job.system, job.method)


def run_chunk(job: Job, start: Start, result: Result, tick: Tick) -> None:
    """Some of the trajectories, in lanes where they fit."""
    (lanes if lanes.fits(job) else singles).run(job, start, result, tick)


def chunks(job: Job, size: int, workers: int) -> list[tuple[int, int]]:
    """How to cut an ensemble for so many workers: whole groups of lanes, several chunks for each worker."""
    L = lanes.width(job)
    record = 8 * max(1, job.plan.records) * (1 + 6 * job.system.n)
    length = min(-(-size // (workers * CHUNKS_PER_THREAD)), LARGEST_CHUNK, max(1, CHUNK_MEMORY // record))
    length = max(L, length // L * L)
    return [(begin, min(begin + length, size)) for begin in range(0, size, length)]


def _on_threads(job: Job, start: Start, workers: int, report: Callable[[int], Any]) -> Result:
    result = Result.empty(job, len(start))
    stop, lock = threading.Event(), threading.Lock()

    def tick(steps: int) -> bool:
        with lock:
            report(steps)
        return not stop.is_set()

    def work(begin: int, end: int) -> None:
        part = result.part(begin, end)
        if stop.is_set():
            part.status[:] = Status.INTERRUPTED
            return
        run_chunk(job, start.part(begin, end), part, tick)

    parts = chunks(job, len(start), workers)
    with interruptible(stop.set), ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work, begin, end) for begin, end in parts]
        done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        if any(future.exception() for future in done):
            stop.set()
            pool.shutdown(cancel_futures=True)
        for future in done:
            future.result()
    return result


def _cores() -> int:
    """The cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _paths(job: Job, start: Start, result: Result, t_end: float | None, stats: dict[str, Any]) -> Paths:
    n = job.system.n
    k = np.array([job.steps]) if job.every == 0 else np.minimum(np.arange(job.kept) * job.every, job.steps)
    t = job.t0 + k * job.h if t_end is None else job.t0 + (t_end - job.t0) * (k / job.steps)
    return Paths(
        system=job.system,
        method=job.method,
        t=t,
        q=result.states[..., :n],
        p=result.states[..., n:],
        h=job.h,
        t0=job.t0,
        every=job.every,
        values=start.params,
        status=result.status,
        steps=result.steps,
        reduced=_reduced(job.plan, result, n),
        stats=stats,
    )


def _reduced(asked: Plan, result: Result, n: int) -> dict[str, Any]:
    """The results of the reductions, by name."""
    reduced: dict[str, Any] = {}
    e = place = 0
    for name, kind in asked.kinds:
        if kind == "energy":
            reduced[name] = result.energy
            continue
        most = asked.events[e].most
        found = result.crossings[:, place : place + most]
        if kind == "first":
            reduced[name] = found[:, 0, 0]
        else:
            reduced[name] = Section(result.counts[:, e], found[..., 0], found[..., 1 : 1 + n], found[..., 1 + n :])
        e, place = e + 1, place + most
    return reduced
