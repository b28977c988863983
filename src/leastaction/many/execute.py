"""Trajectories to cores: cut an ensemble into chunks, run them, and hand each result to where it belongs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, Protocol

from leastaction.many import lanes, singles
from leastaction.many.job import Job, Result, Start, Status, Tick
from leastaction.running import interruptible, positive
from leastaction.stepping import stepper

CHUNKS_PER_THREAD = 8  # so that cores that finish early find more to do
LARGEST_CHUNK = 4096
CHUNK_MEMORY = 2**25  # bytes of records of crossings

Part = tuple[int, int]  # trajectories from … to


class Sink(Protocol):
    """Where results go."""

    def parts(self, usual: list[Part]) -> list[Part]:
        """What there is to do: the usual cut, unless the sink knows better."""
        ...

    def place(self, begin: int, end: int) -> Result:
        """Memory for the results of a chunk."""
        ...

    def done(self, begin: int, end: int, result: Result) -> None:
        """Take the results of a chunk; one that was interrupted has trajectories with that status."""
        ...


class Memory:
    """All results in memory."""

    def __init__(self, job: Job, size: int) -> None:
        self.result = Result.empty(job, size)

    def parts(self, usual: list[Part]) -> list[Part]:
        return usual

    def place(self, begin: int, end: int) -> Result:
        return self.result.part(begin, end)

    def done(self, begin: int, end: int, result: Result) -> None:
        place = self.place(begin, end)
        if result.states.base is not place.states.base:  # it comes from elsewhere
            place.put(result)


def execute(job: Job, start: Start, sink: Sink, client: Any, threads: int | None, report: Callable[[int], Any]) -> None:
    """All chunks, on this machine's cores or on a cluster."""
    parts = sink.parts(usual_parts(job, len(start), client, threads))
    if client is None:
        _on_threads(job, start, sink, parts, threads or _cores(), report)
    else:
        from leastaction.many.cluster import on_cluster

        on_cluster(client, job, start, sink, parts, report)


def usual_parts(job: Job, size: int, client: Any, threads: int | None) -> list[Part]:
    """How to cut an ensemble for those who are to run it, after a look at who they are."""
    if threads is not None:
        positive("threads", threads)
        if client is not None:
            raise ValueError("threads= is for runs on this machine; with client= the cluster's workers decide")
    if client is None:
        return chunks(job, size, threads or _cores())
    from leastaction.many.cluster import cut

    return cut(client, job, size)


def prepare(job: Job) -> None:
    """Compile what the run needs, once, before threads ask for it together."""
    if lanes.fits(job):
        lanes.compiled(job)
    elif isinstance(job.method, stepper.Galerkin):
        stepper.galerkin_workspace(job.system, job.method)


def run_chunk(job: Job, start: Start, result: Result, tick: Tick) -> None:
    """Some of the trajectories, in lanes where they fit."""
    (lanes if lanes.fits(job) else singles).run(job, start, result, tick)


def chunks(job: Job, size: int, workers: int) -> list[Part]:
    """How to cut an ensemble for so many workers: whole groups of lanes, several chunks for each worker."""
    L = lanes.width(job)
    record = 8 * max(1, job.plan.records) * (1 + 6 * job.system.n)
    length = min(-(-size // (workers * CHUNKS_PER_THREAD)), LARGEST_CHUNK, max(1, CHUNK_MEMORY // record))
    length = max(L, length // L * L)
    return [(begin, min(begin + length, size)) for begin in range(0, size, length)]


def _on_threads(
    job: Job, start: Start, sink: Sink, parts: list[Part], workers: int, report: Callable[[int], Any]
) -> None:
    stop, lock = threading.Event(), threading.Lock()

    def tick(steps: int) -> bool:
        with lock:
            report(steps)
        return not stop.is_set()

    def work(begin: int, end: int) -> None:
        result = sink.place(begin, end)
        if stop.is_set():
            result.status[:] = Status.INTERRUPTED
        else:
            run_chunk(job, start.part(begin, end), result, tick)
        sink.done(begin, end, result)

    with interruptible(stop.set), ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work, begin, end) for begin, end in parts]
        finished, _ = wait(futures, return_when=FIRST_EXCEPTION)
        if any(future.exception() for future in finished):
            stop.set()
            pool.shutdown(cancel_futures=True)
        for future in finished:
            future.result()


def _cores() -> int:
    """The cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
