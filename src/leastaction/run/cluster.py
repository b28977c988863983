"""An ensemble on a Dask cluster (only here: dask).

A stretch of a chunk of trajectories is a task. The task brings where the trajectories stand and the system's Program,
compiles or finds the kernels where the task runs, and sends back where the trajectories stand at its end, with the rows
made. A task whose worker dies is run again elsewhere by the scheduler, so a lost worker costs the stretches it was
working on. Since no trajectory depends on another, the results are those of a local run, bit for bit on like
processors.
"""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.events import Watch
from leastaction.run.drive import Chunk, Part, Sink, lanes, prepare, stretch
from leastaction.run.plan import Plan
from leastaction.run.standing import HAPPENED, Block, Standing
from leastaction.run.starts import Starts
from leastaction.run.waiting import interruptible
from leastaction.systems.protocol import System

CHUNKS_PER_THREAD = 4
AT_WORK = 2  # stretches for each thread: one runs and one waits
LONGEST_CHUNK = 2e8  # steps of all trajectories of a chunk: some tens of seconds
RESULT_BYTES = 2**26  # of a chunk
POLL_SECONDS = 0.02  # between looks for stretches that are done
MOST_SYSTEMS = 16  # systems that a worker keeps, with their derivatives and kernels

_lock = threading.Lock()
_systems: dict[tuple[str, int], System] = {}


def on_cluster(client: Any, sink: Sink, parts: list[Part], report: Callable[[int], Any]) -> None:
    """Run the chunks on the client's workers; each stretch of a chunk is a task, one after the other."""
    from distributed import as_completed

    plan, run = sink.plan, secrets.token_hex(8)
    waiting, at_work = deque(parts), dict[Any, tuple[Part, Chunk, Block]]()
    ready, stop = as_completed([]), threading.Event()
    threads = _threads(client)

    def submit(part: Part, chunk: Chunk) -> None:
        block = chunk.next()
        if block is None:
            return
        reached = block.reached(plan, chunk.standing)
        rows = block.first + reached, block.rows.shape[1] - reached
        key = f"leastaction-{run}-{part[0]}-{secrets.token_hex(4)}"
        future = client.submit(
            _work, plan, sink.starts.part(*part), chunk.standing, rows, chunk.seconds, key=key, pure=False
        )
        at_work[future] = part, chunk, block
        ready.add(future)

    try:
        with interruptible(stop.set, lambda: not waiting and not at_work):
            while (waiting or at_work) and not stop.is_set():
                while waiting and len(at_work) < AT_WORK * max(1, threads):
                    part = waiting.popleft()
                    submit(part, sink.chunk(*part))
                for future in ready.next_batch(block=False):
                    part, chunk, block = at_work.pop(future)
                    standing, rows = future.result()
                    future.release()
                    report(standing.progress(plan) - chunk.standing.progress(plan))
                    chunk.standing.put(standing)
                    made = block.rows[:, block.rows.shape[1] - rows.shape[1] :]
                    np.copyto(made, rows, where=rows == rows)  # rows that were not made are NaN
                    chunk.take(block)
                    submit(part, chunk)
                    threads = _threads(client)
                stop.wait(POLL_SECONDS)
    finally:
        client.cancel(list(at_work))


def cut(client: Any, plan: Plan, size: int) -> list[Part]:
    """Chunks of whole groups of lanes: a few for each of the client's threads, none too long, no result too large."""
    try:
        from distributed import Client
    except ImportError:
        raise ImportError("client= needs dask: pip install 'leastaction[dask]'") from None
    if not isinstance(client, Client):
        raise TypeError(f"client must be a dask.distributed.Client; got {client!r}")
    if client.asynchronous:
        raise TypeError("client must be a synchronous dask.distributed.Client, made with asynchronous=False")
    threads = _threads(client)
    if threads == 0:
        raise RuntimeError("the cluster has no workers yet; wait for them with client.wait_for_workers(1)")
    L = lanes(plan)
    length = -(-size // (threads * CHUNKS_PER_THREAD))
    if not plan.open:
        length = min(length, int(LONGEST_CHUNK // plan.steps), RESULT_BYTES // (8 * plan.kept * plan.row.width))
    length = max(L, length // L * L)
    return [(begin, min(begin + length, size)) for begin in range(0, size, length)]


def _threads(client: Any) -> int:
    return sum(client.nthreads().values())


@lru_cache(maxsize=MOST_SYSTEMS)
def _first(events: Watch | None) -> Watch | None:
    """The first of equal Watches, which has its derivatives and bounds already."""
    return events


def _work(
    plan: Plan, starts: Starts, standing: Standing, rows: tuple[int, int], seconds: float
) -> tuple[Standing, NDArray[Any]]:
    """One stretch, on a worker: rows (first, how many), or as many rows as the given seconds allow."""
    with _lock:
        # Every task brings a copy of the system; the derivatives and kernels of the first copy serve all tasks.
        if plan.system.digest is not None:
            key = plan.system.digest, plan.system.n
            system = _systems[key] = _systems.pop(key, plan.system)
            while len(_systems) > MOST_SYSTEMS:
                del _systems[next(iter(_systems))]  # the system that was not used for the longest time
            plan = replace(plan, system=system)
        plan = replace(plan, events=_first(plan.events))
        prepare(replace(plan, allow_unstable=True), starts)
    # The task does not change what it was given, since the task may be run again.
    standing = standing.copy()
    block = Block.empty(plan, len(starts), *rows)
    deadline = time.monotonic() + seconds
    stretch(plan, starts, standing, block, lambda steps: time.monotonic() < deadline)
    if math.isinf(seconds):
        # A chunk without a time limit runs to its end: nobody goes on from there.
        happened = {name: array for name, array in standing.state.items() if name in HAPPENED}
        standing = replace(standing, state=happened)
    return standing, block.rows
