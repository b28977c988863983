"""Trajectories on their way: their state, and the native loop that advances it, one alone or in SIMD lanes."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.fused.programs import StepPrograms, alone, explicit_programs, held_programs, step_programs
from leastaction.backends.layout import COUNTS, ITERATIONS, MOST_THREADS, RUN, SOLVER, STATUS, STEPS, TEAM
from leastaction.backends.native import loop
from leastaction.backends.records import aligned_zeros
from leastaction.backends.rows import Row
from leastaction.backends.singles import SingleSteps
from leastaction.backends.solver import Solvers, ahead_of
from leastaction.backends.status import GOING_WELL
from leastaction.backends.summands import Assembly, padded
from leastaction.kernel import Native, compile_program, native_lanes
from leastaction.methods import Galerkin
from leastaction.program import Program
from leastaction.step.form import Step, step_of
from leastaction.step.prediction import WHOLE
from leastaction.step.rows import SideBySide

if TYPE_CHECKING:
    from leastaction.systems.lagrangian import Lagrangian
    from leastaction.systems.sums import Sum

FloatArray = NDArray[np.float64]

_NOTHING = np.zeros(1)
NEVER = 2**62  # the step after which a state is stored that is never to be stored
# After a step for which chords failed, the following steps begin with Newton: so many steps, divided by the number of
# chords that cost about as much as Newton.
RESTING = 64
HELPER = "leastaction helper"  # name of a thread
NAP = 50  # microseconds of sleep for a thread that has waited long for another
KERNELS = (
    "advance",
    "begin",
    "leap",
    "hop",
    "far_hop",
    "once",
    "inner",
    "outer",
    "land",
    "lift",
    "recall",
    "restart",
    "fresh",
    "kept",
    "settle",
)

PACKED = ("q", "p")  # with points side by side in vectors, these have coordinates side by side
HOPS = ("hop", "far_hop")  # kernels that write a state elsewhere: what one stores number by number the next reads so

MOST_LOOKS = 256  # steps in which an event may lie that are looked at together, of one trajectory …
FEWEST_LOOKS = 8  # … and of each of many
SORTING, WORTHWHILE = 8, 1.03  # steps before lanes are sorted anew, and the gain in iterations that is worth it
MOST_KEPT, MOST_LAID = 2**16, 8  # doubles of a memory laid out once for all runs alike, and how many such are kept


@dataclass(frozen=True, eq=False)
class Backend:
    """How the steps of a method on a system are computed, for `lanes` trajectories at once."""

    system: Any  # a Lagrangian, or a Sum
    method: Galerkin
    lanes: int
    energy: bool = False
    composed: bool = False  # the steps are those of a composition: others come between them
    stiff: int = 0  # of a Sum: 1 with ∂f/∂q, for shifted chords; 2 with Newton's iteration, too

    @cached_property
    def step(self) -> Step:
        return step_of(self.system, self.method)

    @cached_property
    def programs(self) -> StepPrograms | None:
        """The kernels of a whole step, or None where the solver's loops do it.

        Kernels begin the next step where this one ends; in a composition it begins elsewhere, so only explicit steps
        have kernels there.
        """
        explicit = explicit_programs(self.system, self.method, self.energy)
        if explicit is not None or self.composed:
            return explicit
        held = held_programs(self.system, self.method, self.energy, self.lanes == 1)
        if held is not None:
            return held
        if self.lanes > 1:
            return step_programs(self.system, self.method, self.energy)
        return alone(self.system, self.method, native_lanes())

    @property
    def params(self) -> int:
        """How many parameters the state holds."""
        return self.step.params

    @property
    def room(self) -> int:
        """Numbers of the block q."""
        return self.step.n

    def numbers(self, columns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where numbers of (q, p) are, from the beginning of the block q."""
        if self.spread == 1:
            return columns
        n, room = self.step.n, self.spread * (self.places["p"].start - self.places["q"].start)
        return np.where(columns < n, columns, columns - n + room)

    def give(self, solvers: Solvers, place: int, params: FloatArray) -> None:
        """The parameters, where the solver reads them if not from the state."""

    @property
    def softly(self) -> bool:
        """Whether a step that fails may be tried again with further derivatives, which are not computed yet."""
        return False

    @property
    def cells(self) -> int:
        """Pieces of the work of one trajectory that threads may share."""
        return 1

    @property
    def rows(self) -> int:
        """Rows of sums and coordinates, whose work threads may share."""
        return 0

    @property
    def watches(self) -> bool:
        """Whether the loop asks after every step whether an event may lie in it."""
        return not self.composed

    @property
    def fused(self) -> bool:
        """Whether a whole step is done by kernels."""
        return self.programs is not None

    @property
    def tables(self) -> SideBySide | None:
        """What kernels with points side by side read."""
        return None if self.programs is None else self.programs.tables

    @cached_property
    def stride(self) -> int:
        """How many numbers hold one value of a group: one for each trajectory, or for each point side by side."""
        return self.tables.lanes if self.tables is not None else self.lanes

    @cached_property
    def spread(self) -> int:
        """How many numbers hold one value of a trajectory."""
        return self.stride // self.lanes

    @cached_property
    def kernels(self) -> dict[str, Native]:
        """The kernels of a fused step."""
        if self.programs is None:
            return {}
        # A lane whose angles are out of the bounded sine's range gets a NaN, and has its step solved alone.
        # Coordinates of one trajectory may be packed into vectors: with constraints, and where explicit steps have many
        # coordinates, that is worth the longer compilation.
        many = "leap" in self.programs.kernels and self.step.n >= native_lanes()
        pack = self.stride == 1 and (self.step.multipliers > 0 or many)
        found = {}
        for name, program in self.programs.kernels.items():
            bounded, elsewhere = self.stride > 1 and name != "advance", name in HOPS
            found[name] = compile_program(program, self.stride, bounded, not elsewhere, pack=pack and not elsewhere)
        return found

    def prepare(self) -> None:
        """Compile now what steps need, not at the first step."""
        _ = self.kernels, self._solvers, loop("run.run")

    @cached_property
    def blocks(self) -> tuple[tuple[str, int], ...]:
        """The state of one trajectory, block by block."""
        if self.programs is not None:
            return self.programs.kernels["advance"].inputs
        step, W, L = self.step, native_lanes(), self.lanes
        n, s, ahead = step.n, step.s, ahead_of(self.method)
        row = -(-s // W) * W if L == 1 else s
        tiles = -(-n // W) * W if L == 1 else n
        return (
            ("t", 1), ("params", step.params), ("inputs", step.driven), ("alive", 1), ("q", n), ("p", n),
            ("carry", 2 * n),
            ("started", 1), ("tiles", tiles * (s + 2 + ahead.memory)), ("chosen", ahead.candidates + 1 + ahead.record),
            ("length", n), ("reach", n), ("floor", n), ("z", (n + step.multipliers) * row), ("impulse", n),
            ("scale", n + step.multipliers), ("iterations", 1), ("trouble", 1), ("rest", 1),
        )  # fmt: skip

    @cached_property
    def places(self) -> dict[str, slice]:
        ends = np.cumsum([size for _, size in self.blocks]).tolist()
        return {name: slice(end - size, end) for (name, size), end in zip(self.blocks, ends, strict=True)}

    @cached_property
    def lasting(self) -> NDArray[np.bool_]:
        """Which numbers of a trajectory's state the next step depends on: all but the last Jacobian, and tables."""
        lasting = np.ones((self.size, self.spread), bool)
        for name in ("slopes", "factors", "tables"):
            lasting[self.places.get(name, slice(0))] = False
        return lasting.ravel()

    @cached_property
    def size(self) -> int:
        return self.places[self.blocks[-1][0]].stop

    @cached_property
    def layout(self) -> int:
        """A number for what the state means: a run cannot go on from states under another number."""
        return int(hashlib.sha256(repr((self.fused, self.spread, self.blocks)).encode()).hexdigest()[:15], 16)

    def require(self, layout: int) -> None:
        """Refuse a state that means something else."""
        if layout != self.layout:
            raise ValueError(
                f"the trajectories stand as {layout:x}, while this version of leastaction goes on from "
                f"{self.layout:x}; go on with the version that wrote it"
            )

    @cached_property
    def laid(self) -> dict[Any, Laid]:
        """Memories that are laid out."""
        return {}

    def solvers(self) -> tuple[Solvers, int, int]:
        """Memory for the solvers: for the lanes, and for one trajectory alone."""
        solvers, lanes, alone = self._solvers
        return solvers.copy(), lanes, alone

    @cached_property
    def _solvers(self) -> tuple[Solvers, int, int]:
        solvers = Solvers()
        alone = solvers.add(self.step, 1)
        lanes = alone if self.fused or self.lanes == 1 else solvers.add(self.step, self.lanes)
        return solvers, lanes, alone


class SumBackend(Backend):
    """The steps of a method on a sum over rows of tables: one trajectory, its coordinates side by side in vectors."""

    programs = None
    spread = 1

    @property
    def sums(self) -> Assembly:
        assembly: Assembly = self.system.assembly
        return assembly

    @cached_property
    def step(self) -> Step:
        return Step(self.system.n, self.method, ())

    @property
    def params(self) -> int:
        return 0

    @property
    def room(self) -> int:
        return padded(self.sums.n)

    def numbers(self, columns: NDArray[np.int64]) -> NDArray[np.int64]:
        n = self.sums.n
        return np.where(columns < n, columns, columns - n + self.room)

    @cached_property
    def blocks(self) -> tuple[tuple[str, int], ...]:
        n, s, ahead = self.room, self.method.s, ahead_of(self.method)
        components = padded(self.sums.size)
        return (
            ("q", n), ("p", n), ("carry", 2 * n), ("tiles", n * (s + 2 + ahead.memory)), ("length", n), ("reach", n),
            ("floor", n), ("z", components * s), ("impulse", n), ("scale", components),
            ("chosen", ahead.candidates + 1 + ahead.record), ("params", 0), ("t", 1), ("alive", 1), ("started", 1),
            ("iterations", 1), ("trouble", 1), ("rest", 1),
        )  # fmt: skip

    @cached_property
    def lasting(self) -> NDArray[np.bool_]:
        """Explicit steps depend on the state alone, others on the prediction, too."""
        explicit = self.explicit
        last = {"q", "p", "carry", "t", "alive", "started"} if explicit else {name for name, _ in self.blocks}
        lasting = np.zeros(self.size, bool)
        for name in last:
            lasting[self.places[name]] = True
        return lasting

    @cached_property
    def _solvers(self) -> tuple[Solvers, int, int]:
        solvers = Solvers()
        place = solvers.add_sum(self.sums, self.method, self.stiff > 0, self.stiff > 1)
        return solvers, place, place

    @property
    def softly(self) -> bool:
        return self.stiff < 2 and not self.explicit

    @property
    def cells(self) -> int:
        return self.sums.cells.phases[1]

    @property
    def rows(self) -> int:
        return self.sums.n + sum(self.sums.cells.rows)

    @property
    def watches(self) -> bool:
        return False

    @property
    def explicit(self) -> bool:
        """Whether the equations of a step give its unknowns at once."""
        ends = set(self.method.table.c.tolist()) <= {0.0, 1.0}
        return self.method.s == 1 and ends and self.sums.separable and self.sums.mass.diagonal and not self.sums.m

    def give(self, solvers: Solvers, place: int, params: FloatArray) -> None:
        for strips, places in solvers.rows:
            strips.give(solvers.memory, places, params)
        mass, memory, n = self.sums.mass, solvers.memory, self.sums.n
        inverse, nothing = np.ones(self.room), np.zeros(self.room + native_lanes())
        memory.array(place, "M")[:] = inverse
        if not mass.constant:
            return
        M = mass.entries("m_v", 0.0, nothing[:n], nothing[:n], params)
        inverse[:n] = 1.0 / M[mass.row == mass.column]
        memory.array(place, "M")[:] = inverse
        even = mass.diagonal and bool((inverse[:n] == inverse[0]).all())
        memory.I[memory.number(place, SOLVER, "even")] = even
        sparse = int(memory.I[memory.number(place, SOLVER, "sparse")])
        if sparse >= 0 and not self.sums.m:
            loop("sparse.begin")(memory.I, memory.D, sparse, nothing, nothing)


@lru_cache(maxsize=64)
def backend(
    system: Lagrangian, method: Galerkin, lanes: int, energy: bool = False, composed: bool = False
) -> Backend:  # fmt: skip
    """How the steps of a method on a Lagrangian are computed."""
    return Backend(system, method, lanes, energy, composed)


@lru_cache(maxsize=64)
def sum_backend(system: Sum, method: Galerkin) -> SumBackend:
    """How the steps of a method on a sum are computed."""
    return SumBackend(system, method, lanes=1, stiff=1 if system.m else 0)


@lru_cache(maxsize=16)
def _table_numbers(backend: Backend, h: float) -> FloatArray:
    """What kernels with points side by side read at step h."""
    assert backend.tables is not None
    return backend.tables.numbers(h)


@dataclass(frozen=True, eq=False)
class Laid:
    """The memory of a run, laid out: solvers and the record of the run at a place.

    rows              values of a group's state and what lies behind it
    outputs, work     numbers that the kernels give, and need to work in
    look_size, looks  numbers that a check reads, and room for how many
    """

    solvers: Solvers
    place: int
    groups: int
    rows: int
    outputs: int
    work: int
    look_size: int
    looks: int
    kernels: dict[str, Native]  # they live as long as this object


def laid_out(backend: Backend, size: int, row: Row, check: Program | None) -> Laid:
    """The memory for so many trajectories, to be duplicated: small ones are laid out once for all runs alike."""
    key = size, row.columns.tobytes(), row.varied, None if check is None else check.digest
    found = backend.laid.get(key)
    if found is None:
        found = _laid_out(backend, size, row, check)
        if len(found.solvers.memory.D) <= MOST_KEPT:
            if len(backend.laid) >= MOST_LAID:
                backend.laid.clear()
            backend.laid[key] = found
    return found


def _laid_out(backend: Backend, size: int, row: Row, check: Program | None) -> Laid:
    step, L, places = backend.step, backend.lanes, backend.places
    n, s = step.n, step.s
    groups = -(-size // L)
    solvers, solver, alone = backend.solvers()
    kernels = backend.kernels
    at = {name: place.start for name, place in places.items()}
    T = backend.stride
    if backend.fused and backend.spread == 1:
        z_coordinate, z_control = T, n * T
        held = (s * n * T, T, step.multipliers * T)
    else:
        z_coordinate = (places["z"].stop - places["z"].start) // (n + step.multipliers) * T
        z_control = T // backend.spread
        held = (n * z_coordinate, z_coordinate, z_control)
    looks: dict[str, Any] = {
        "check": 0, "look_size": 0, "look_last": 0, "looks": 0, "look_sources": [], "doubt": 1
    }  # fmt: skip
    rows = backend.size
    if check is not None:
        sources = _sources(backend, check, z_coordinate, z_control)
        rows += n + 1  # the leading coefficients of the last step, and h
        # The leading coefficients of this step replace those of the last one where they stand.
        blocks = ("state", backend.size * T // L), ("lead", n), ("rest", (n + 1) * T // L - n)
        kernel = compile_program(check.reading(sources, blocks), L, in_place=True)
        kernels = {**kernels, "check": kernel}
        inputs, room = len(sources), max(FEWEST_LOOKS, MOST_LOOKS // size)
        looks |= {"check": kernel.address, "look_size": inputs, "look_last": check.input_slice("last").start,
                  "looks": room, "look_sources": sources, "doubt": kernel.outputs * L}  # fmt: skip
    place = solvers.memory.add(
        (RUN, {
            "fused": backend.fused,
            **{name: kernels[name].address if name in kernels else 0 for name in KERNELS},
            "solver": solver, "alone": alone, "lanes": L, "stride": T, "groups": groups, "size": rows,
            **{name: at[name] for name in ("t", "params", "alive", "q", "p", "carry", "z", "impulse", "trouble")},
            "z_coordinate": z_coordinate, "z_control": z_control,
            **dict(zip(("held", "held_multiplier", "held_control"), held, strict=True)),
            "coordinate": 1 if backend.spread > 1 else T,
            "lifted": s <= WHOLE or check is not None or backend.energy or row.varied > 0,
            **{f"{name}_wanted": at.get(name, 0) for name in ("inner", "outer", "fresh", "kept")},
            **{name: at[name] for name in ("reach", "length", "floor", "started")},
            **{name: at.get(name, 0) for name in ("iterations", "soft_iterations", "failed", "scale")},
            "handed": at["started"] + 1 if "leap" in kernels else places["carry"].stop,
            **{name: at.get(name, 0) for name in ("tiles", "chosen", "rest", "next", "found", "enough", "unsure")},
            "jacobian": at.get("slopes", 0),
            "jacobian_size": places["factors"].stop - at["slopes"] if "factors" in places else 0,
            "every": NEVER, "skipped": 0, "rows": 0, "width": row.width,
            "kept_count": len(row.columns), "kept_numbers": backend.numbers(row.columns),
            "n": backend.room, "s": s, "param_count": backend.params, "inputs": at.get("inputs", 0),
            "channels": step.channels, "nodes": len(step.method.table.c), "trajectories": size,
            "vectors": -(-len(step.method.table.c) // T) if backend.spread > 1 else 0,
            "table": 0, "table_trajectory": 0, "table_step": 0, "table_node": 0, "table_first": 0,
            "resting": max(1, RESTING // _chords(backend, solvers, solver)),
            "left": at.get("left", 0), "columns": row.varied,
            **_sensitive(backend, solvers, alone, row.varied), **looks, "noted": 0, "noted_after": 0, "notes": 0,
            "end": 0, "most": 0, "looked": [0] * (groups * L), "halted": [0] * groups, "who": list(range(groups * L)),
            "start": 1, "step": 1, "period": 1, "offset": 1, "undone": 1, "failure": 3,
            "errors": ahead_of(backend.method).candidates * native_lanes(), "choice": L, "active": L, "sensitive_h":
            [np.nan], "push": solvers.pushed,
        })
    )  # fmt: skip
    solvers.finish()
    outputs = max((kernel.outputs for kernel in kernels.values()), default=0)
    if "hop" in kernels:
        outputs = max(outputs, rows)  # a second state
    work = max((kernel.work for kernel in kernels.values()), default=1)
    return Laid(solvers, place, groups, rows, outputs, work, looks["look_size"], looks["looks"], kernels)


def _sources(how: Backend, check: Program, z_coordinate: int, z_control: int) -> list[int]:
    """Where in a lane of a group's state the numbers are that a check reads, in its order."""
    n, T, channels, r = how.step.n, how.stride, how.step.channels, len(how.step.method.table.c)
    found = {name: np.arange(place.start, place.stop) * T for name, place in how.places.items()}
    found |= {"last": how.size * T + np.arange(n) * how.lanes, "h": np.array([how.size + n]) * T}
    if how.spread > 1:
        found |= {name: found[name][0] + np.arange(n) for name in (*PACKED, "impulse")}
    controls = np.arange(how.step.s)[:, None]
    found["z"] = found["z"][:1] + controls * z_control + np.arange(n) * z_coordinate
    if channels and how.spread > 1:  # the nodes side by side
        nodes, vectors = np.arange(r)[:, None], -(-r // T)
        found["inputs"] = found["inputs"][:1] + (np.arange(channels) * vectors + nodes // T) * T + nodes % T
    return [int(place) // how.lanes for name, size in check.inputs for place in found[name].ravel()[:size]]


def _chords(backend: Backend, solvers: Solvers, solver: int) -> int:
    """How many chords cost about as much as to solve a step by Newton."""
    programs = backend.programs
    return programs.chords if programs is not None else solvers.chords[solver]


def _sensitive(backend: Backend, solvers: Solvers, alone: int, columns: int) -> dict[str, int]:
    """The terms along whose derivatives so many directions are carried."""
    step = backend.step
    found = {"sensitive": solvers.terms[alone], "end_slopes": 0}
    if columns > 2 * step.n:
        found["sensitive"] = solvers.add_sensitive(step, backend.system.sensitive_terms)
    if columns and step.end is not None:
        found["end_slopes"] = solvers.compiled(step.end.slopes, 1)
    return found


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
        check: Program | None = None,
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
        self._memory = aligned_zeros((self.groups, laid.rows, T))
        self._memory.fill(np.nan)
        self._memory[:, -1] = part * h
        self.states = self._memory[:, : backend.size]
        if check is not None:
            self.last[...] = 0.0  # there is no step before the first
        self._Y = aligned_zeros((1 + laid.outputs, T))
        self._scratch = aligned_zeros((laid.work,))
        self._looks: FloatArray = np.zeros((self.groups * backend.lanes, laid.looks, 1 + laid.look_size))
        self._table: FloatArray = _NOTHING
        self._notes: tuple[FloatArray, ...] = ()
        self.counts = np.zeros((self.groups * backend.lanes, COUNTS), np.int64)
        self.who = self.solvers.memory.array(self.place, "who")
        self._where = np.arange(len(self.who))  # the lane of each trajectory
        # Where events are looked for, trajectories stay where they are.
        self._sorts = backend.lanes > 1 and self.groups > 1 and backend.fused and check is None
        self._sorted = self.counts.copy()  # what was counted when lanes were sorted last

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
        padded = np.zeros((self.groups * L, how.size, how.spread))
        padded[: self.size] = values.reshape(self.size, how.size, how.spread)
        padded[self.size :] = padded[self.size - 1]
        for name in ("alive", "fresh", "inner", "outer"):
            if name in how.places:
                padded[self.size :, how.places[name]] = 0.0
        if how.tables is not None:
            padded[:, how.places["tables"]] = _table_numbers(how, float(self.real("step")[0]))
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
        memory = self.solvers.memory
        if self._sorts:
            self._sort()
        self.set(end=end)
        given = self.given(every, skipped, rows)
        if threads == 1:
            self._run(memory.I, memory.D, self.place, *given)
            return
        with self.helped(threads):
            self._run(memory.I, memory.D, self.place, *given)

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
        pitches = [0 if length == 1 else pitch // 8 for length, pitch in zip(table.shape, table.strides, strict=True)]
        names = ("table_trajectory", "table_step", "table_node")
        self.set(table=table.ctypes.data, table_first=first, **dict(zip(names, pitches[:3], strict=True)))

    def note(self, after: FloatArray, states: FloatArray) -> None:
        """The states after these steps are to be written into rows (size, steps, 2 room)."""
        self._notes = after, states  # the loop knows their addresses
        self.set(noted=len(after), noted_after=after.ctypes.data, notes=states.ctypes.data)

    def given(self, every: int, skipped: int, rows: FloatArray) -> tuple[NDArray[Any], ...]:
        """The arrays that the loop is given, after the record is told which states go where."""
        self.set(every=every or NEVER, skipped=skipped, rows=rows.shape[1])
        return self._memory, self._Y, self.counts, rows, self._scratch, self.D, self._looks

    def addresses(self, every: int, skipped: int, rows: FloatArray) -> list[int]:
        """What the loop is given, by addresses."""
        memory = self.solvers.memory
        arrays = [array.ctypes.data for array in self.given(every, skipped, rows)]
        return [memory.I.ctypes.data, memory.D.ctypes.data, self.place, *arrays]

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
        looked = self.solvers.memory.array(self.place, "looked")
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
        kept = [how.places[name] for name in ("lowest", "highest", "tables") if name in how.places]
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
