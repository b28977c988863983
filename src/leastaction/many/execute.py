"""Trajectories to cores: cut an ensemble into chunks, run each a stretch at a time, hand its rows to where they belong.

A run in memory is one stretch; one that is stored has a stretch for every block of rows, and looks up from it now and
then to write down where it stands.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, Protocol

from leastaction.many import lanes, singles
from leastaction.many.job import Block, Job, Standing, Start, Tick
from leastaction.methods import Galerkin
from leastaction.running import interruptible, positive

CHUNKS_PER_THREAD = 8  # so that cores that finish early find more to do
LARGEST_CHUNK = 4096
CHUNK_MEMORY = 2**25  # bytes of records of crossings

Part = tuple[int, int]  # trajectories from … to


class Chunk(Protocol):
    """Some of the trajectories on their way, a stretch at a time."""

    standing: Standing
    seconds: float  # after which a stretch ends, wherever it has come to

    def next(self) -> Block | None:
        """The rows to be made next, or None at the end."""
        ...

    def take(self, block: Block) -> None:
        """A stretch of these rows was run, to their end or not."""
        ...


class Sink(Protocol):
    """Where results go."""

    def parts(self, usual: list[Part]) -> list[Part]:
        """What there is to do: the usual cut, unless the sink knows better."""
        ...

    def chunk(self, begin: int, end: int) -> Chunk:
        """Some trajectories, from where they stand."""
        ...


class Memory:
    """All results in memory."""

    def __init__(self, job: Job, size: int) -> None:
        self.job, self.block = job, Block.empty(job, size, 0, job.kept)
        self.standing = Standing.empty(job, size)

    def parts(self, usual: list[Part]) -> list[Part]:
        return usual

    def chunk(self, begin: int, end: int) -> Chunk:
        return _InMemory(self.job, self.standing.part(begin, end), Block(0, self.block.rows[begin:end]))


class _InMemory:
    """All steps in one stretch."""

    seconds = math.inf

    def __init__(self, job: Job, standing: Standing, block: Block) -> None:
        self.job, self.standing, self._block = job, standing, block

    def next(self) -> Block | None:
        return self._block if self.standing.going(self.job.steps).any() else None

    def take(self, block: Block) -> None:
        pass


def execute(job: Job, start: Start, sink: Sink, client: Any, threads: int | None, report: Callable[[int], Any]) -> None:
    """All that the sink lacks, on this machine's cores or on a cluster."""
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
    if isinstance(job.method, Galerkin):
        lanes.compiled(job)


def run_chunk(job: Job, start: Start, standing: Standing, block: Block, tick: Tick) -> None:
    """A stretch of some of the trajectories, in lanes where they fit."""
    (lanes if lanes.fits(job) else singles).advance(job, start, standing, block, tick)


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

    cut: list[Part] = []

    def work(begin: int, end: int) -> None:
        chunk, part = sink.chunk(begin, end), start.part(begin, end)
        while not stop.is_set() and (block := chunk.next()) is not None:
            deadline = time.monotonic() + chunk.seconds

            def tick(steps: int, deadline: float = deadline) -> bool:
                with lock:
                    report(steps)
                return not stop.is_set() and time.monotonic() < deadline

            run_chunk(job, part, chunk.standing, block, tick)
            chunk.take(block)
        if chunk.next() is not None:
            cut.append((begin, end))

    with interruptible(stop.set, lambda: not cut), ThreadPoolExecutor(workers) as pool:
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
