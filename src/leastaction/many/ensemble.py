"""la.ensemble: many trajectories of one system, in SIMD lanes, on all cores, or on a cluster."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leastaction.border import check_count, check_times, count_steps, number
from leastaction.lagrangian import Lagrangian
from leastaction.many import lanes
from leastaction.many.archive import Disk
from leastaction.many.execute import Memory, Sink, execute, prepare, usual_parts
from leastaction.many.job import FloatArray, Job, Standing, Start, Status
from leastaction.many.paths import Paths
from leastaction.many.reductions import Plan, Reduction, Section, plan
from leastaction.many.starts import check_events, starts
from leastaction.many.stored import View, view
from leastaction.methods import Method
from leastaction.methods import method as method_named
from leastaction.running import positive, preparing, progress_bar
from leastaction.store.archive import Archive
from leastaction.store.header import interpreting
from leastaction.store.stored import compare, steps_until
from leastaction.waiting import compiling


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
    store: str | os.PathLike[str] | None = None,
) -> Paths:
    """Integrate B trajectories of a system from (q0, p0) or (q0, v0).

    q0, p0, v0   (B, n) each, or (n,) where all trajectories share it
    params       parameters of the run; an array with one more axis, B, in front gives each trajectory its own
    h, steps, t_end, t0, every, progress: as for `la.integrate`
    final_only   keep only the last state
    reduce       what to compute on the way, by name: {"E": la.EnergyRange(), "flip": la.FirstCrossing(g)}
    client       a `dask.distributed.Client`, to run on its cluster
    threads      how many cores to use here; all, unless told
    store        stream the results to this Zarr archive; q and p of the result stay on disk until they are asked for;
                 `la.resume` goes on after an end, an interrupt or a kill

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
    t0 = number("t0", t0)
    t_end = None if t_end is None else number("t_end", t_end)
    count, h = count_steps(number("h", h), steps, t_end, t0)
    check_times(system, t0, h, count)
    every = 0 if final_only else positive("every", every)
    until = None if t_end is None else (t_end, count)
    job = Job(system, chosen, t0, h, count, every, plan(reduce, system), until)
    start = starts(system, q0, p0, v0, t0, params)
    check_events(job, start)

    parts = usual_parts(job, len(start), client, threads)
    if store is None:
        memory = Memory(job, len(start))
        stats = _run(job, start, memory, client, threads, progress)
        found, rows = memory.standing, memory.block.rows
        found.status[found.going(job.steps)] = Status.INTERRUPTED
        return _paths(
            job, start.params, found, job.times(0, job.kept), rows[..., : system.n], rows[..., system.n :], stats
        )
    with Disk.creating(FilePath(store), job, start, parts) as disk:
        return _stored(disk, client, threads, progress)


def open_ensemble(archive: Archive) -> Paths:
    """An archive's trajectories as far as they have come, their states on disk until they are asked for."""
    disk = Disk.open(archive)
    return _viewed(disk, view(disk), {})


def resume_ensemble(
    archive: Archive, steps: int | None, t_end: float | None, client: Any, threads: int | None, progress: bool
) -> Paths:
    """Run what an archive's trajectories lack to the planned end, or to a later one: so many steps, or t_end."""
    more = 0 if steps is None else positive("steps", steps)
    with archive.writing():
        with interpreting(archive.path):
            disk = Disk.open(archive)
        compare(archive.header, archive.path)
        archive.tidy()
        usual = usual_parts(disk.job, disk.size, client, threads)
        with interpreting(archive.path):
            disk.start(), disk.parts(usual)  # before anything is changed
        if t_end is not None:
            more = steps_until(archive.header, t_end) - disk.job.steps
            if more < 0:
                raise ValueError(
                    f"t_end = {t_end:g} is before the planned end, {disk.job.steps} steps; la.resume without it goes "
                    "there"
                )
        if more:
            check_count(disk.job.steps + more)
            check_times(disk.job.system, disk.job.t0, disk.job.h, disk.job.steps + more)
            disk.extend(more)
        return _stored(disk, client, threads, progress)


def _stored(disk: Disk, client: Any, threads: int | None, progress: bool) -> Paths:
    disk.prepare()
    done = view(disk).standing.progress(disk.job) if progress else 0
    stats = _run(disk.job, disk.start(), disk, client, threads, progress, done)
    found = view(disk)
    disk.tell(found.standing)
    return _viewed(disk, found, stats)


def _viewed(disk: Disk, found: View, stats: dict[str, Any]) -> Paths:
    file = disk.archive.path
    return _paths(found.job, disk.params(), found.standing, found.t, found.q, found.p, stats, file)


def _run(
    job: Job, start: Start, sink: Sink, client: Any, threads: int | None, progress: bool, done: int = 0
) -> dict[str, Any]:
    """Do what the sink lacks, which has so many steps already; what there is to say about it."""
    clock = time.perf_counter()
    stored = isinstance(sink, Disk)
    with preparing("la.resume begins it again" if stored else "nothing was computed"), compiling():
        prepare(job)
    compiled = time.perf_counter() - clock
    clock = time.perf_counter()
    with progress_bar(job.steps * len(start), progress) as bar:
        bar.update(done)
        execute(job, start, sink, client, threads, bar.update)
    return {"lanes": lanes.width(job), "compile_time": compiled, "run_time": time.perf_counter() - clock}


def _paths(
    job: Job,
    values: FloatArray,
    found: Standing,
    t: Any,
    q: Any,
    p: Any,
    stats: dict[str, Any],
    file: FilePath | None = None,
) -> Paths:
    unfinished = int(np.isin(found.status, (Status.INTERRUPTED, Status.PENDING)).sum())
    if unfinished and stats:
        message = f"interrupted; {unfinished} of {len(values)} trajectories are unfinished"
        more = "" if file is None else f"; la.resume({str(file)!r}) goes on"
        warnings.warn(message + more, RuntimeWarning, stacklevel=3 if file is None else 5)
    stats = stats | {
        "newton_iterations": int(found.iterations.sum()),
        "continued": int(found.continued.sum()),
        "interrupted": unfinished > 0,
    }
    return Paths(
        system=job.system,
        method=job.method,
        t=t,
        q=q,
        p=p,
        h=job.h,
        t0=job.t0,
        every=job.every,
        values=values,
        status=found.status,
        steps=found.steps,
        reduced=_reduced(job.plan, found, job.system.n),
        stats=stats,
    )


def _reduced(asked: Plan, found: Standing, n: int) -> dict[str, Any]:
    """The results of the reductions, by name."""
    reduced: dict[str, Any] = {}
    e = place = 0
    for name, kind in asked.kinds:
        if kind == "energy":
            reduced[name] = found.energy
            continue
        most = asked.events[e].most
        records = found.crossings[:, place : place + most]
        if kind == "first":
            reduced[name] = records[:, 0, 0]
        else:
            reduced[name] = Section(found.counts[:, e], records[..., 0], records[..., 1 : 1 + n], records[..., 1 + n :])
        e, place = e + 1, place + most
    return reduced
