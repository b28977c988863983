"""One run: trajectories driven in pieces, from where they stand to where the plan ends, into a sink.

One trajectory is a batch of one. Many trajectories are cut into chunks, which threads or a cluster run side by side.
Each chunk goes a block of rows at a time, side by side in lanes where its trajectories fit, else one by one: a run in
memory has one block, a stored run has many, and pauses now and then to write down where it stands.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from leastaction.engine.run import Engine
from leastaction.engine.stepper import FormStepper
from leastaction.events import GROWING, LAST_STATES, Watch, WatchedForms, WatchedStates
from leastaction.kernel import native_lanes
from leastaction.methods import Galerkin
from leastaction.numbers.rounding import Digits
from leastaction.reading import MOST_STEPS, floats
from leastaction.run.motion_checks import impacts, judge_energy, judge_poles
from leastaction.run.plan import Plan, positive
from leastaction.run.standing import Block, Standing
from leastaction.run.starts import Starts
from leastaction.run.waiting import interruptible, progress_bar
from leastaction.step.status import (
    BRANCH_ENDS,
    GOING_WELL,
    HELD,
    NOT_CONVERGED,
    NOT_FINITE,
    RESTING,
    SINGULAR,
    STOPPED,
)
from leastaction.step.stepper import Start, Stepper
from leastaction.step.stored_row import Row
from leastaction.systems.lagrangian import Lagrangian
from leastaction.systems.protocol import mechanics, stepper

if TYPE_CHECKING:
    from leastaction.linear import Quadratic

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


def stretch(plan: Plan, starts: Starts, standing: Standing, block: Block, tick: Tick, lasting: bool = True) -> None:
    """Run these trajectories in pieces from where they stand to the end of the block, or until the tick ends the run.
    The state that further steps depend on is kept if there are any, or if it is to be `lasting`.

    A stepper may end a piece early, for instance where a step is to be looked at: the stepper is then asked again.
    """
    end, size, piece, goes_on = block.end(plan), together(plan, len(starts)), first_piece(plan), True
    for begin in range(0, len(starts), size):
        part = begin, begin + size
        if not goes_on or not standing.going(end)[slice(*part)].any():
            continue
        stepper = at_work(plan, starts.part(*part), standing.part(*part))
        if plan.hasty and isinstance(stepper, FormStepper):
            stepper.hurry()
        rows, own, begun = block.rows[slice(*part)], standing.part(*part), stepper.done
        thrown, now = impacts(plan, own), begun
        while goes_on and not stepper.status().all() and now < end:
            clock = time.perf_counter()
            asked = min(piece, end - now)
            done = stepper.advance(asked, plan.every, block.first, rows)
            goes_on, now = tick(done * size), stepper.done
            if done == asked:
                spent = max(time.perf_counter() - clock, 1e-6)
                piece = max(1, int(asked * min(MOST_GROWTH, PIECE_SECONDS / spent)))
        standing.take(*part, stepper, lasting or (now < plan.steps and not stepper.status().all()))
        own = standing.part(*part)
        before, stored = (int(plan.regular(steps)) for steps in (begun, int(own.steps.max())))
        states = rows[:, : stored - block.first, : 2 * plan.row.n]
        if plan.row.output is not None:  # no whole states
            states = np.empty((len(rows), 0, 2 * plan.row.n), rows.dtype)
        before = max(before, block.first)
        judge_energy(plan, starts.part(*part), own, before, states[:, before - block.first :], thrown)
        if not own.going(end).any():
            judge_poles(plan, starts.part(*part), own, block.first, states)
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

            stretch(plan, starts, chunk.standing, block, tick, chunk.lasting)
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
    if not plan.many or isinstance(plan.reals, Digits) or plan.system.linear:
        return 1
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    return cores


ENDS = (GOING_WELL, NOT_CONVERGED, NOT_FINITE, BRANCH_ENDS, SINGULAR, STOPPED, RESTING, HELD)  # ends of a trajectory
BLOCK = 4096  # steps whose energies are computed together, at most
_ready = threading.local()  # the stepper with which a single run was prepared


def lanes(plan: Plan) -> int:
    """Trajectories that go side by side: of an ensemble the lanes of a vector, or one.

    Derivatives are carried for one trajectory at a time, and the range of the energy needs a fused step.
    """
    if not plan.many or plan.row.varied:
        return 1
    engine = _engine(plan, native_lanes())
    if engine is None or (plan.events is not None and not (engine.watches and engine.phases == 1)):
        return 1
    return engine.width


def together(plan: Plan, size: int) -> int:
    """How many of these trajectories one stepper takes."""
    return size if lanes(plan) > 1 else 1


def state_size(plan: Plan, starts: Starts) -> int:
    """About how many numbers a trajectory needs to go on from where it stands."""
    if (engine := _engine(plan, lanes(plan))) is not None:
        return int(engine.lasting.sum()) * engine.phases * (engine.lanes // engine.width)
    n, s = plan.row.n, plan.method.s if isinstance(plan.method, Galerkin) else 0
    return 2 + (5 + s) * n + starts.params.shape[1] + 2 * n * plan.row.varied


def _engine(plan: Plan, width: int) -> Engine | None:
    """The native function of these trajectories side by side; None if there is none."""
    if isinstance(plan.reals, Digits):
        return None
    return plan.system.engine(plan.method, width, width > 1 and bool(plan.energies), plan.row.varied)


def prepare(plan: Plan, starts: Starts, standing: Standing | None = None) -> dict[str, Any]:
    """Check what must be checked before the first step, and compile the kernels; return the facts found. A single run
    may have its standing before the first step already.
    """
    told = {}
    if plan.system.linear:
        system = cast("Quadratic", plan.system)
        system.check_span(float(plan.t0), float(plan.t0 + plan.steps * plan.h))
        clock = time.perf_counter()
        if not plan.allow_unstable:
            system.check_stable(plan.method, float(plan.h))
        told["stability_time"] = time.perf_counter() - clock
    engine = _engine(plan, lanes(plan))
    if engine is not None and plan.events is None:
        engine.compiled(hard=False)
    else:
        stepper = at_work(plan, starts.part(0, 1), standing or Standing.begin(plan, starts.part(0, 1)))
        _ready.found = None if plan.many else (plan, stepper)
    return told


def at_work(plan: Plan, starts: Starts, standing: Standing) -> Stepper:
    """Trajectories at work, from where they stand: all lanes, or one. A single run has its stepper already."""
    ready, _ready.found = getattr(_ready, "found", None), None
    if ready is not None and ready[0] is plan and not standing.steps.any():
        return cast(Stepper, ready[1])
    width = lanes(plan)
    if width == 1:
        return _one(plan, starts, standing)
    system, method = cast(Lagrangian, plan.system), plan.method  # all others go one by one
    start = Start(plan.t0, starts.q, starts.p, starts.v, plan.h, starts.params, starts.inputs)
    energy, watch = bool(plan.energies), plan.events
    found: Any
    if watch is None:
        found = FormStepper(system, method, start, plan.row, width, energy=energy)
    else:
        found = WatchedForms(system, cast(Galerkin, method), start, plan.row, watch, width, energy)
    found.leave(starts.status)
    return _restored(found, standing)


def _one(plan: Plan, starts: Starts, standing: Standing) -> Stepper:
    (values,) = starts.params
    start = Start(plan.t0, starts.q[0], starts.p[0], starts.v[0], plan.h, values, starts.inputs)
    at = mechanics(plan.system, values, plan.reals)
    if plan.events is not None:
        found: Stepper = _eventful(plan, plan.events, start, at)
    else:
        found = stepper(plan.system, plan.method, start, plan.row, at)
    if plan.energies:
        found = cast(Stepper, WatchedEnergy(plan, start, found, standing))
    return _restored(found, standing)


def _eventful(plan: Plan, events: Watch, start: Start, at: Any) -> Stepper:
    """One trajectory, its events looked for; `at` is its mechanics."""
    system, method, reals = plan.system, plan.method, plan.reals
    if (engine := _engine(plan, 1)) is not None and engine.watches and isinstance(method, Galerkin):
        return WatchedForms(cast(Lagrangian, system), method, start, plan.row, events)

    def make(t: Any, q: NDArray[Any], p: NDArray[Any], h: Any, *, number: int = 0, varied: int = 0) -> Stepper:
        at_start = q is start.q and p is start.p  # whose velocity may have been given
        v = start.v if at_start else at.velocity(q, p, t + number * h, start.params)
        row = Row.whole(system.n, varied)
        made: Any = stepper(system, method, Start(t, q, p, v, h, start.params, start.inputs), row, at)
        if number:
            made.count_from(number)
        return cast("Stepper", made)

    return WatchedStates(make, system, at, reals, start, plan.row, events)


def _restored(stepper: Stepper, standing: Standing) -> Stepper:
    """A stepper set up again as it stood."""
    if standing.steps.any():
        stepper.restore(standing.state)
    return stepper


def check_state(plan: Plan, starts: Starts, standing: Standing) -> None:
    """Refuse, with a ValueError, a state that no stepper leaves: it may be a stranger's, and native loops trust it."""
    begun = standing.steps > 0
    if not begun.any():
        return
    some = together(plan, len(starts))
    stepper = at_work(plan, starts.part(0, some), Standing.begin(plan, starts.part(0, some)))
    fresh, state = stepper.state(), standing.state
    if state.keys() != fresh.keys():
        raise ValueError(
            f"the trajectories stand as {', '.join(state)}, while this version of leastaction goes on from "
            f"{', '.join(fresh)}; go on with the version that wrote it"
        )
    for name, array in fresh.items():
        shape = (len(starts), *array.shape[1:])
        if name in GROWING:
            shape = (len(starts), None, *array.shape[2:])
        floats(state, name, shape, array.dtype)
    steps = standing.steps[begun]
    for k, name in enumerate(stepper.INTEGERS):
        low, high = {"steps": (steps, steps), "last_count": (1, LAST_STATES)}.get(name, (0, MOST_STEPS))
        found = state["integers"][begun, k]
        if name == "layout":
            if (found != fresh["integers"][0, k]).any():
                raise ValueError(
                    "the trajectories stand as another version of leastaction has left them; go on with it"
                )
        elif not ((low <= found) & (found <= high)).all() or (name == "status" and not np.isin(found, ENDS).all()):
            raise ValueError(f"the state's integers are not those after {steps} steps: {name} = {found}")


class WatchedEnergy:
    """A stepper around that of one trajectory: the Standing takes the range of the energy over all its states. In lanes
    the fused step finds this range.
    """

    def __init__(self, plan: Plan, start: Start, stepper: Stepper, standing: Standing) -> None:
        self._plan, self._start, self._stepper, self._standing = plan, start, stepper, standing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stepper, name)

    def advance(self, steps: int, every: int, first: int, rows: NDArray[Any]) -> int:
        steps, begun, now = min(steps, BLOCK), self._stepper.done, self._stepper.at()
        found = np.empty((1, steps, now.shape[1]))
        self._stepper.advance(steps, 1, begun + 1, found)
        done = int(self._stepper.steps()[0]) - begun
        states = np.concatenate([now, found[0, :done]])
        t = np.asarray(self._plan.t0 + np.arange(begun, begun + done + 1) * self._plan.h, float)
        q, p = (np.ascontiguousarray(part) for part in np.split(states, 2, axis=1))
        E = self._plan.system.energies(t, q, p, np.tile(self._start.params, (len(t), 1)))
        low, high = self._standing.energy[0]
        self._standing.energy[0] = np.fmin(low, E.min()), np.fmax(high, E.max())
        k = np.arange(begun + 1, begun + done + 1)
        kept = k[k % every == 0] if every else k[:0]
        rows[0, kept // every - first if every else kept] = states[kept - begun]
        return done


FIRST_ROWS = 1024  # first rows of a run whose number of steps is not known


class Memory:
    """All states of all trajectories, (B, K, width), and where they stand.

    A run whose number of steps is not known gets room as it needs room, each chunk of trajectories for itself.
    """

    def __init__(self, plan: Plan, starts: Starts) -> None:
        self.plan, self.starts = plan, starts
        self.block = Block.empty(plan, len(starts), 0, 1 if plan.open else plan.kept)
        self.standing = Standing.begin(plan, starts)
        self.logs = self.standing.logs(plan)
        self.grown: dict[Part, Block] = {}
        if plan.every:
            self.block.rows[:, 0] = plan.row.kept(self.standing.at)

    def done(self) -> int:
        return 0

    def parts(self, usual: list[Part]) -> list[Part]:
        return usual

    def chunk(self, begin: int, end: int) -> _InMemory:
        return (_Growing if self.plan.open else _InMemory)(self, begin, end)

    def rows(self) -> NDArray[np.generic]:
        """The states, with the last ones; the states of a single trajectory end where it has come to."""
        plan, standing = self.plan, self.standing
        rows = self._whole().rows if plan.open else self.block.rows
        if not plan.many:
            rows = rows[:, : standing.rows(plan)]
            rows[0, -1] = plan.row.kept(standing.at[0])
            return rows
        ended = np.flatnonzero(standing.steps == plan.steps) if plan.every else slice(None)
        rows[ended, -1] = plan.row.kept(standing.at[ended])
        return rows

    def _whole(self) -> Block:
        """The rows of all chunks of a run of unknown length, side by side."""
        if not self.plan.many:
            return self.grown.get((0, 1), self.block)
        whole = Block.empty(self.plan, len(self.starts), 0, self.standing.most_rows(self.plan))
        whole.rows[:, :1] = self.block.rows
        for (begin, end), block in self.grown.items():
            there = block.rows[:, : whole.rows.shape[1]]
            whole.rows[begin:end, : there.shape[1]] = there
        return whole


class _InMemory:
    """All steps in one stretch."""

    seconds = math.inf

    def __init__(self, memory: Memory, begin: int, end: int) -> None:
        self.plan, self._memory, self._part = memory.plan, memory, slice(begin, end)
        # The logs of an ensemble's events are read from the state.
        self.lasting = memory.plan.many and memory.plan.events is not None
        self.standing, self._block = memory.standing.part(begin, end), memory.block.part(begin, end)

    def next(self) -> Block | None:
        return self._block if self.standing.going(self.plan.steps).any() else None

    def take(self, block: Block) -> None:
        """Everything is in place, except the log of events."""
        self._memory.logs[self._part] = self.standing.logs(self.plan)

    def close(self) -> None:
        """Everything is in place."""


class _Growing(_InMemory):
    """All steps in stretches, each as long as all stretches before it."""

    seconds = 1e9  # a finite time: a stretch that runs elsewhere then brings back all that the next one depends on

    def __init__(self, memory: Memory, begin: int, end: int) -> None:
        super().__init__(memory, begin, end)
        self._own = begin, end
        if self.plan.every:
            self._grow(FIRST_ROWS)

    def _grow(self, rows: int) -> None:
        wider = Block.empty(self.plan, len(self._block.rows), 0, rows)
        wider.rows[:, : self._block.rows.shape[1]] = self._block.rows
        self._block = self._memory.grown[self._own] = wider

    def take(self, block: Block) -> None:
        super().take(block)
        if self.standing.going(self.plan.steps).any() and not self.standing.going(block.end(self.plan)).any():
            self._grow(2 * block.rows.shape[1])
