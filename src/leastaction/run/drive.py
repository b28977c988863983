"""One run: trajectories driven in pieces, from where they stand to where the plan ends, into a sink.

One trajectory is a batch of one. Many trajectories are cut into chunks, which threads or a cluster run side by side.
Each chunk goes a stretch at a time: a run in memory is one stretch, a stored run has a stretch for every block of rows,
and pauses now and then to write down where it stands.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, Protocol

import numpy as np

from leastaction.backends.galerkin import GalerkinStepper
from leastaction.engine.stepper import FormStepper
from leastaction.methods import Galerkin
from leastaction.numbers.rounding import Digits
from leastaction.run import balance, poles
from leastaction.run.batches import at_work, lanes, team, together
from leastaction.run.checks import positive
from leastaction.run.interrupts import interruptible, progress_bar
from leastaction.run.plan import Plan
from leastaction.run.standing import Block, Standing
from leastaction.run.starts import Starts
from leastaction.run.walls import Walls

PIECE_SECONDS = 0.05  # how long a stepper runs between looks at the keyboard and the progress bar
FIRST_WORK = 2**17  # squares of the unknowns of the steps in a first piece: steps of large systems may be slow
MOST_GROWTH = 512.0  # of the steps in a piece, from one piece to the next
CHUNKS_PER_THREAD = 8  # several chunks for each core: cores that finish early find more to do
LARGEST_CHUNK = 4096

Part = tuple[int, int]  # the trajectories begin … end
Tick = Callable[[int], bool]  # is told how many steps were done; returns False if the run is to end


class Chunk(Protocol):
    """Some of the trajectories on their way, a stretch at a time."""

    standing: Standing
    seconds: float  # after these a stretch ends, wherever the trajectories are
    lasting: bool  # whether the state of trajectories is kept that have come to their end, too

    def next(self) -> Block | None:
        """The rows to be made next, or None at the end."""
        ...

    def take(self, block: Block) -> None:
        """A stretch of these rows was run, to their end or not."""
        ...

    def close(self) -> None:
        """The run ends here, before its plan does."""
        ...


class Sink(Protocol):
    """Where results go: memory, or an archive."""

    plan: Plan

    @property
    def starts(self) -> Starts:
        """Where the trajectories begin."""
        ...

    def done(self) -> int:
        """Steps of all trajectories that need not be done any more."""
        ...

    def parts(self, usual: list[Part]) -> list[Part]:
        """The parts to run: the usual cut, unless the sink has its own."""
        ...

    def chunk(self, begin: int, end: int) -> Chunk:
        """Some trajectories, from where they stand."""
        ...


def drive(sink: Sink, client: Any = None, threads: int | None = None, progress: bool = False) -> dict[str, Any]:
    """Run all that the sink lacks, on this machine's cores or on a cluster; return how long that took."""
    plan, starts = sink.plan, sink.starts
    parts = sink.parts(usual_parts(plan, len(starts), client, threads))
    clock = time.perf_counter()
    with progress_bar(None if plan.open else plan.steps * len(starts), progress) as report:
        report(sink.done() if progress else 0)
        if client is None:
            _here(sink, parts, threads or _cores(plan), report)
        else:
            from leastaction.run.cluster import on_cluster

            on_cluster(client, sink, parts, report)
    return {"run_time": time.perf_counter() - clock}


def stretch(
    plan: Plan, starts: Starts, standing: Standing, block: Block, tick: Tick, lasting: bool = True, threads: int = 1
) -> None:
    """Run these trajectories in pieces from where they stand to the end of the block, or until the tick ends the run.
    The state that further steps depend on is kept if there are any, or if it is to be `lasting`.

    This number of threads may share the work of each trajectory, one trajectory after the other. A stepper may end a
    piece early, for instance where a step is to be looked at: the stepper is then asked again.
    """
    end, size, piece, goes_on = block.end(plan), together(plan, len(starts)), first_piece(plan), True
    for begin in range(0, len(starts), size):
        part = begin, begin + size
        if not goes_on or not standing.going(end)[slice(*part)].any():
            continue
        stepper = at_work(plan, starts.part(*part), standing.part(*part))
        if isinstance(stepper, GalerkinStepper | FormStepper):
            stepper.threads = threads
            if plan.hasty:
                stepper.hurry()
        rows, own, begun = block.rows[slice(*part)], standing.part(*part), stepper.done
        walls = Walls(plan, own)
        while goes_on and not stepper.status().all() and stepper.done < end:
            clock = time.perf_counter()
            asked = min(piece, end - stepper.done)
            done = stepper.advance(asked, plan.every, block.first, rows)
            goes_on = tick(done * size)
            if done == asked:
                spent = max(time.perf_counter() - clock, 1e-6)
                piece = max(1, int(asked * min(MOST_GROWTH, PIECE_SECONDS / spent)))
        standing.take(*part, stepper, lasting or (stepper.done < plan.steps and not stepper.status().all()))
        own = standing.part(*part)
        before, stored = (int(plan.regular(steps)) for steps in (begun, int(own.steps.max())))
        states = rows[:, : stored - block.first, : 2 * plan.row.n]
        if plan.row.output is not None:  # no whole states
            states = np.empty((len(rows), 0, 2 * plan.row.n), rows.dtype)
        before = max(before, block.first)
        balance.judge(plan, starts.part(*part), own, before, states[:, before - block.first :], walls)
        if not own.going(end).any():
            poles.judge(plan, starts.part(*part), own, block.first, states)
        if goes_on and plan.many:
            tick(int((end - standing.steps[slice(*part)].max()) * size))  # the steps that nobody has to do any more


def first_piece(plan: Plan) -> int:
    """Steps before the first look at the clock: one, unless the system is small and its arithmetic float64."""
    if plan.many or isinstance(plan.reals, Digits):
        return 1
    unknowns = plan.row.n * (plan.method.s if isinstance(plan.method, Galerkin) else 1)
    return max(1, FIRST_WORK // (unknowns**2 * (1 + plan.row.varied)))


def usual_parts(plan: Plan, size: int, client: Any, threads: int | None, stored: bool = False) -> list[Part]:
    """How to cut an ensemble for the cores of this machine, or for the cluster that is to run it."""
    if threads is not None:
        positive("threads", threads)
        if client is not None:
            raise ValueError("threads= is for runs on this machine; with client= the cluster's workers decide")
    if client is None:
        return [(0, 1)] if size == 1 else chunks(plan, size, threads or _cores(plan), stored)
    from leastaction.run.cluster import cut

    return cut(client, plan, size)


def chunks(plan: Plan, size: int, workers: int, stored: bool) -> list[Part]:
    """How to cut an ensemble for this number of workers: whole groups of lanes, several chunks for each worker.

    In memory one worker has only one chunk, since every chunk costs a millisecond; with a stored run more workers may
    go on. If there are impacts, each worker has only one chunk, since the impacts of a chunk are computed together.
    """
    L, each = lanes(plan), CHUNKS_PER_THREAD
    if (workers == 1 and not stored) or (plan.events is not None and plan.events.impacts):
        each = 1
    length = min(-(-size // (workers * each)), LARGEST_CHUNK)
    length = max(L, length // L * L)
    return [(begin, min(begin + length, size)) for begin in range(0, size, length)]


def _here(sink: Sink, parts: list[Part], workers: int, report: Callable[[int], Any]) -> None:
    """Run the parts on this machine: one after the other, or on threads."""
    plan, stop, lock = sink.plan, threading.Event(), threading.Lock()
    cut: list[Part] = []

    def work(begin: int, end: int) -> None:
        chunk, starts = sink.chunk(begin, end), sink.starts.part(begin, end)
        block = chunk.next()
        while block is not None and not stop.is_set():
            deadline = time.monotonic() + chunk.seconds

            def tick(steps: int, deadline: float = deadline) -> bool:
                with lock:
                    report(steps)
                return not stop.is_set() and time.monotonic() < deadline

            stretch(plan, starts, chunk.standing, block, tick, chunk.lasting, 1 if plan.many else workers)
            chunk.take(block)
            block = chunk.next()
        if block is not None:
            chunk.close()
            cut.append((begin, end))

    with interruptible(stop.set, lambda: not cut):
        if workers == 1 or len(parts) == 1:
            for part in parts:
                work(*part)
            return
        with ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(work, *part) for part in parts]
            finished, _ = wait(futures, return_when=FIRST_EXCEPTION)
            if any(future.exception() for future in finished):
                stop.set()
                pool.shutdown(cancel_futures=True)
            for future in finished:
                future.result()


def _cores(plan: Plan) -> int:
    """The cores that this process may use, and has work for. Other precisions have one core; linear algebra shares the
    cores itself.
    """
    if isinstance(plan.reals, Digits) or plan.system.linear:
        return 1
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    return cores if plan.many else team(plan, cores)
