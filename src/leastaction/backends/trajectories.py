"""Trajectories on their way: their state, and the native loop that advances it, one alone or in SIMD lanes."""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.backend import Backend
from leastaction.backends.fused.stiff import TABLES
from leastaction.backends.layout import COUNTS, ITERATIONS, MOST_THREADS, RUN, STATUS, STEPS, TEAM
from leastaction.backends.native import loop
from leastaction.backends.singles import SingleSteps
from leastaction.backends.workspace import NEVER, PACKED, Check, driven_by, laid_out
from leastaction.kernel.guarded import GUARDING, guarded
from leastaction.step.status import GOING_WELL
from leastaction.step.stored_row import Row

FloatArray = NDArray[np.float64]

_NOTHING = np.zeros(1)
_ROWS = 6  # the place of the stored rows among what the loop is given
HELPER = "leastaction helper"  # name of a thread
NAP = 50  # microseconds of sleep for a thread that has waited long for another
SORTING, WORTHWHILE = 8, 1.03  # steps before lanes are sorted anew, and the gain in iterations that is worth it


@lru_cache(maxsize=16)
def _table_numbers(backend: Backend, h: float) -> FloatArray:
    """What kernels with points side by side read at step h."""
    assert backend.tables is not None
    return backend.tables.numbers(h)


def single_steps(backend: Backend) -> SingleSteps:
    """Single steps in a memory of their own: a run goes on undisturbed."""
    laid = laid_out(backend, 1, Row.whole(backend.step.n), None)
    solvers = laid.solvers.duplicate()
    return SingleSteps(backend, solvers, int(solvers.memory.I[solvers.memory.number(laid.place, RUN, "alone")]))


class Trajectories:
    """Groups of lanes with their state, between pieces of a run.

    row       what is stored of a state
    D         with one trajectory, the directions carried along, (C, 2n)
    check     what tells whether an event may lie in a step (`events.check`)
    phase     of a composition: where in a whole step these begin, and how long they are, in parts of h
    """

    def __init__(
        self,
        backend: Backend,
        size: int,
        t0: float,
        h: float,
        row: Row,
        *,
        D: FloatArray | None = None,
        check: Check | None = None,
        phase: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.backend, self.size = backend, size
        offset, part = phase
        self.D = _NOTHING if D is None else D
        laid = laid_out(backend, size, row, check)
        self.groups, self.place, self._kernels = laid.groups, laid.place, laid.kernels
        self.solvers = laid.solvers.duplicate()
        for name, value in (("start", t0 + offset * h), ("step", part * h), ("period", h), ("offset", offset)):
            self.real(name)[0] = value
        T = backend.stride
        self._run = loop("run.run")
        self._memory = guarded((self.groups, laid.rows, T), "the state of trajectories")
        self._memory.fill(np.nan)
        self._memory[:, -1] = part * h
        self.states = self._memory[:, : backend.size]
        if check is not None:
            self.last[...] = 0.0  # there is no step before the first
        self._Y, self._scratch = self._room()
        self._looks = guarded((self.groups * backend.lanes, laid.looks, 1 + laid.look_size), "steps in doubt")
        self._table: FloatArray = _NOTHING
        self.counts = guarded((self.groups * backend.lanes, COUNTS), "counts", np.int64)
        self._looked = self.solvers.memory.array(self.place, "looked")
        self.who = self.solvers.memory.array(self.place, "who")
        self._where = np.arange(len(self.who))  # the lane of each trajectory
        # Where events are looked for, trajectories stay where they are.
        self._sorts = backend.lanes > 1 and self.groups > 1 and backend.fused and check is None
        self._sorted = self.counts.copy()  # what was counted when lanes were sorted last
        self._given = self._run.arguments(*self.given(_NOTHING))  # but for the rows, ready to be given again and again

    def number(self, name: str) -> int:
        return self.solvers.memory.number(self.place, RUN, name)

    def real(self, name: str) -> FloatArray:
        return self.solvers.memory.array(self.place, name)

    def set(self, **numbers: int) -> None:
        for name, value in numbers.items():
            self.solvers.memory.I[self.number(name)] = value

    def put(self, values: FloatArray) -> None:
        """The trajectories' state, (size, numbers); lanes beyond the last trajectory repeat it and are not alive."""
        how, L = self.backend, self.backend.lanes
        if L == 1:  # one after the other, as they are
            self.states[...] = values.reshape(self.states.shape)
            self._set_tables()
            return
        padded = np.zeros((self.groups * L, how.size, how.spread))
        padded[: self.size] = values.reshape(self.size, how.size, how.spread)
        padded[self.size :] = padded[self.size - 1]
        for name in ("alive", "fresh", "inner", "outer"):
            if name in how.places:
                padded[self.size :, how.places[name]] = 0.0
        lanes = padded[self.who].reshape(self.groups, L, how.size, -1)
        self.states[...] = lanes.transpose(0, 2, 1, 3).reshape(self.states.shape)

    def get(self) -> FloatArray:
        """The trajectories' state, (size, numbers)."""
        how = self.backend
        lanes = self.states.reshape(self.groups, how.size, how.lanes, how.spread).transpose(0, 2, 1, 3)
        return lanes.reshape(-1, how.size * how.spread)[self._where[: self.size]]

    def values(self, name: str) -> FloatArray:
        """A block of the trajectories' state, (size, values)."""
        how = self.backend
        place, n = how.places[name], how.step.n
        if name in PACKED and how.spread > 1:
            return self.states[:, place].reshape(self.groups, -1)[:, :n]
        lanes = self.states[:, place].reshape(self.groups, -1, how.lanes, how.spread)[..., 0].transpose(0, 2, 1)
        found = lanes.reshape(self.groups * how.lanes, -1)[self._where[: self.size]]
        return found[:, :n] if name in PACKED else found

    def block(self, state: FloatArray, name: str) -> FloatArray:
        """A block of a state, (size, values), to look at or to set where every value is one number."""
        how = self.backend
        values = state.reshape(len(state), how.size, how.spread)[:, how.places[name]]
        return values.reshape(len(state), -1)[:, : how.step.n] if name in PACKED else values[..., 0]

    def begin(self, t0: float, h: float, q: FloatArray, p: FloatArray, params: FloatArray, alive: Any) -> FloatArray:
        """The state of trajectories before their first step, with rows of q and p, (rows, numbers)."""
        how = self.backend
        row = np.zeros((len(q), how.size, how.spread))
        values: dict[str, Any] = {"t": t0, "h": h, "params": params, "q": q, "p": p, "alive": alive}
        if not how.params:
            del values["params"]
            how.give(self.solvers, int(self.solvers.memory.I[self.number("alone")]), params)
        for name, value in values.items():
            if name in PACKED:
                row[:, how.places[name]].reshape(len(q), -1)[:, : value.shape[-1]] = value
            elif name in how.places:
                numbers = np.asarray(value, float)
                begin = how.places[name].start
                size = numbers.shape[-1] if numbers.ndim else how.places[name].stop - begin
                row[:, begin : begin + size] = numbers[..., None]
        return row.reshape(len(q), -1)

    def advance(self, end: int, every: int, skipped: int, rows: FloatArray, threads: int = 1) -> None:
        """Do the steps of all up to `end`, or as far as they go; state k goes to rows[:, k // every − skipped]."""
        if self._sorts:
            self._sort()
        self.set(end=end)
        self._harden()
        self._do(every, skipped, rows, threads)
        if self._harden():  # the loop has waited for that
            self._do(every, skipped, rows, threads)

    def _do(self, every: int, skipped: int, rows: FloatArray, threads: int) -> None:
        self.tell(every, skipped, rows)
        if threads == 1:
            self._start(rows)
            return
        with self.helped(threads):
            self._start(rows)

    def _start(self, rows: FloatArray) -> None:
        if GUARDING:
            self._run(*self.given(rows))
            return
        self._given[_ROWS] = self._run.argument(_ROWS, rows)
        self._run.start(*self._given)

    def _harden(self) -> bool:
        """Make the kernels of stiff steps, if so many steps have wanted them; whether this is done now."""
        how, patience = self.backend, self.tally("patience")
        if not patience or self.tally("stiff") or self.states[0, how.places["given_up"].start, 0] < patience:
            return False
        self._kernels = {**self._kernels, **how.later}
        self.set(**{name: kernel.address for name, kernel in how.later.items()})
        self._set_tables()
        self._Y, self._scratch = self._room()
        self._given = self._run.arguments(*self.given(_NOTHING))
        return True

    def _room(self) -> tuple[FloatArray, FloatArray]:
        """What the kernels of a group give, and need to work in."""
        kernels = self._kernels.values()
        outputs = max((kernel.outputs for kernel in kernels), default=0)
        if "hop" in self._kernels:
            outputs = max(outputs, self._memory.shape[1])  # a second state
        work = max((kernel.work for kernel in kernels), default=1)
        return guarded((1 + outputs, self.backend.stride), "what kernels give"), guarded((work,), "room of kernels")

    def _set_tables(self) -> None:
        """What kernels with points side by side read of the method, where they are made."""
        how, h = self.backend, float(self.real("step")[0])
        if how.tables is not None:
            self.states[:, how.places["tables"]] = _table_numbers(how, h)
        if self.tally("stiff"):
            assert how.programs is not None and how.programs.later_tables is not None
            self.states[:, how.places[TABLES]] = how.programs.later_tables().numbers(h)

    def _sort(self) -> None:
        """Trajectories that took as many iterations lately go side by side, since a group waits for its slowest lane.

        What a lane computes does not depend on its neighbours, so no bit of the results does.
        """
        lately = self.counts - self._sorted
        if lately[:, STEPS].max() < SORTING:
            return
        self._sorted = self.counts.copy()
        spent, L = lately[self.who, ITERATIONS], self.backend.lanes
        order = np.argsort(spent, kind="stable")
        waits, least = (each.reshape(-1, L).max(axis=1).sum() for each in (spent, spent[order]))
        if least * WORTHWHILE > waits:
            return
        lanes = self._memory.transpose(0, 2, 1).reshape(len(order), -1)[order]
        self._memory[...] = lanes.reshape(self.groups, L, -1).transpose(0, 2, 1)
        self.who[:] = self.who[order]
        self._where[self.who] = np.arange(len(order))

    @contextlib.contextmanager
    def helped(self, threads: int) -> Iterator[None]:
        """With so many threads, where there is work for them: the threads beside this one end with the block."""
        memory, place = self.solvers.memory, self.solvers.team
        count = min(threads, self.backend.cells, MOST_THREADS) - 1
        if place is None or count < 1:
            yield
            return
        address, time = nap()
        for name, value in (("helpers", count), ("nap", address), ("nap_time", time), ("asked", 0)):
            memory.I[memory.number(place, TEAM, name)] = value
        for name in ("ticket", "done", "stop"):
            memory.array(place, name)[:] = 0
        stop = memory.array(place, "stop")
        work = loop("helpers.work")
        given = (memory.I, memory.D, place)
        helpers = [threading.Thread(target=work, args=(*given, k + 1), name=HELPER, daemon=True) for k in range(count)]
        try:
            for helper in helpers:
                helper.start()
            yield
        finally:
            stop[0] = 1
            for helper in helpers:
                if helper.ident is not None:
                    helper.join()
            memory.I[memory.number(place, TEAM, "helpers")] = 0

    def drive(self, table: FloatArray, first: int) -> None:
        """The inputs of the steps from the first on, (B or 1, steps, nodes or 1, channels)."""
        self._table = table
        self.set(table_first=first, **driven_by(table))

    def tell(self, every: int, skipped: int, rows: FloatArray) -> None:
        """Which states go where."""
        self.set(every=every or NEVER, skipped=skipped, rows=rows.shape[1])

    def given(self, rows: FloatArray) -> tuple[Any, ...]:
        """What the loop is given."""
        memory = self.solvers.memory
        return (
            memory.I, memory.D, self.place, self._memory, self._Y, self.counts, rows, self._scratch, self.D, self._looks
        )  # fmt: skip

    @property
    def last(self) -> FloatArray:
        """What the check, if there is one, reads of the step before the next, (groups, lanes, n)."""
        how, n = self.backend, self.backend.step.n
        begin = how.size * how.stride
        lanes: FloatArray = self._memory.reshape(self.groups, -1)[:, begin : begin + n * how.lanes]
        return lanes.reshape(self.groups, n, how.lanes).transpose(0, 2, 1)

    def looks(self) -> tuple[NDArray[np.intp], FloatArray]:
        """The steps in which an event may lie, since this was asked last: which trajectory's, and rows (step, what the
        check reads), one trajectory after the other.
        """
        looked = self._looked
        if len(looked) == 1:
            count, looked[0] = int(looked[0]), 0
            return np.zeros(count, np.intp), self._looks[0, :count].copy()
        who, place = np.nonzero(np.arange(self._looks.shape[1]) < looked[:, None])
        looked[:] = 0
        return who, self._looks[who, place]

    def lane(self, i: int) -> FloatArray:
        """The state of trajectory i, (numbers, spread), to be changed in place."""
        how = self.backend
        lanes: FloatArray = self.states.reshape(self.groups, how.size, how.lanes, how.spread)
        return lanes[self._where[i] // how.lanes, :, self._where[i] % how.lanes]

    def halt(self, i: int, how: int) -> None:
        """The step of trajectory i, and of the trajectories beside it, is solved but not done (1); the step is also to
        be the last (2).
        """
        self.solvers.memory.array(self.place, "halted")[i // self.backend.lanes] = how

    def end(self, i: int, status: int = GOING_WELL) -> None:
        """Trajectory i goes no further, for good or for now."""
        lane, places = self.lane(i), self.backend.places
        for name in ("alive", "fresh", "inner", "outer"):
            if name in places:
                lane[places[name]] = 0.0
        self.counts[i, STATUS] = status

    def restart(self, i: int, step: int, t: float, h: float, state: FloatArray, params: FloatArray) -> None:
        """Trajectory i begins anew after so many steps, from another state (q, p); it keeps its range of energies."""
        how, lane, n = self.backend, self.lane(i), len(state) // 2
        kept = [how.places[name] for name in ("lowest", "highest", "tables", TABLES, "given_up") if name in how.places]
        fresh = self.begin(t, h, state[None, :n], state[None, n:], params, 1.0).reshape(lane.shape)
        for place in kept:
            fresh[place] = lane[place]
        lane[...] = fresh
        self.counts[i, [STATUS, STEPS]] = GOING_WELL, step
        self.halt(i, 0)

    @property
    def singles(self) -> SingleSteps:
        """Single steps of any length, by the solver of one trajectory."""
        return SingleSteps(self.backend, self.solvers, self.tally("alone"))

    def tally(self, name: str) -> int:
        return int(self.solvers.memory.I[self.number(name)])

    @property
    def alive(self) -> bool:
        return bool(self.states[:, self.backend.places["alive"]].any())


@cache
def nap() -> tuple[int, int]:
    """What lets a thread sleep: the address of a function of the system, and its argument for some 50 microseconds."""
    if sys.platform == "win32":
        return ctypes.cast(ctypes.windll.kernel32.Sleep, ctypes.c_void_p).value or 0, 0
    return ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p).value or 0, NAP
