"""An ensemble on a Dask cluster (only here: dask).

Each chunk of trajectories is a task of its own: it brings its initial data and the system's Program, compiles or finds
the kernels where it runs, and sends its results back. A task whose worker dies is run again elsewhere by the
scheduler, so a lost worker costs the chunks it was working on. Since no trajectory depends on another, the results
are those of a local run, bit for bit on like processors.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from leastaction.lagrangian import Lagrangian
from leastaction.many import lanes
from leastaction.many.execute import Part, Sink, prepare, run_chunk
from leastaction.many.job import Job, Result, Start, Status
from leastaction.running import interruptible

CHUNKS_PER_THREAD = 4
LONGEST_CHUNK = 2e8  # steps of trajectories: some tens of seconds
RESULT_BYTES = 2**26  # of a chunk
POLL_SECONDS = 0.02  # between looks for chunks that are done

_lock = threading.Lock()
_systems: dict[tuple[str, int], Lagrangian] = {}


def on_cluster(
    client: Any, job: Job, start: Start, sink: Sink, parts: list[Part], report: Callable[[int], Any]
) -> None:
    """The chunks, each as a task, on the client's workers. After Ctrl-C those not finished are marked interrupted."""
    from distributed import as_completed

    run = secrets.token_hex(8)
    futures = {
        client.submit(_work, job, start.part(begin, end), key=f"leastaction-{run}-{begin}", pure=False): (begin, end)
        for begin, end in parts
    }
    ready, stop = as_completed(list(futures)), threading.Event()
    try:
        with interruptible(stop.set):
            while futures and not stop.is_set():
                for future in ready.next_batch(block=False):
                    begin, end = futures.pop(future)
                    sink.done(begin, end, future.result())
                    report((end - begin) * job.steps)
                    future.release()
                stop.wait(POLL_SECONDS)
    finally:
        client.cancel(list(futures))
    for begin, end in futures.values():
        result = Result.empty(job, end - begin)
        result.status[:] = Status.INTERRUPTED
        sink.done(begin, end, result)


def cut(client: Any, job: Job, size: int) -> list[Part]:
    """Whole groups of lanes: a few chunks for each of the client's threads, none too long nor its result too large."""
    try:
        from distributed import Client
    except ImportError:
        raise ImportError("client= needs dask: pip install 'leastaction[dask]'") from None
    if not isinstance(client, Client):
        raise TypeError(f"client must be a dask.distributed.Client; got {client!r}")
    if client.asynchronous:
        raise TypeError("client must be a synchronous dask.distributed.Client, made with asynchronous=False")
    threads = sum(client.nthreads().values())
    if threads == 0:
        raise RuntimeError("the cluster has no workers yet; wait for them with client.wait_for_workers(1)")
    L = lanes.width(job)
    row = 8 * (job.kept * 2 * job.system.n + job.plan.records * (2 + 6 * job.system.n))
    length = min(-(-size // (threads * CHUNKS_PER_THREAD)), int(LONGEST_CHUNK // job.steps), RESULT_BYTES // row)
    length = max(L, length // L * L)
    return [(begin, min(begin + length, size)) for begin in range(0, size, length)]


def _work(job: Job, start: Start) -> Result:
    """One chunk, on a worker."""
    with _lock:
        # Every task brings a copy of the system; the first one's derivatives and kernels serve all.
        system = _systems.setdefault((job.system.program.digest, job.system.n), job.system)
        job = replace(job, system=system)
        prepare(job)
    result = Result.empty(job, len(start))
    run_chunk(job, start, result, lambda steps: True)
    return result
