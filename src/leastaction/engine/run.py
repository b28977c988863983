"""A form compiled for a run: layout of the state, the native function, single steps."""

from __future__ import annotations

import ctypes
import hashlib
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.engine.collocation import collocates
from leastaction.engine.ending import simple_end
from leastaction.engine.explicit import Explicit
from leastaction.engine.form import SINGLE, Form, Watching
from leastaction.engine.gauss import Gauss
from leastaction.engine.held import Held
from leastaction.engine.increments import Chord, Newton
from leastaction.engine.long_form import Scripted
from leastaction.engine.long_held import LongHeld
from leastaction.engine.long_steps import LongSteps
from leastaction.engine.mass import mass_of
from leastaction.engine.rk4 import formed
from leastaction.engine.shifted import DENSE
from leastaction.engine.sparsity import LONGEST, LONGEST_NEWTON, chord_length, newton_length, order_of
from leastaction.kernel import Native, native_lanes
from leastaction.kernel.compile import compile_run
from leastaction.kernel.driver import CALL, Shape
from leastaction.methods import Method, RungeKutta4, require_member
from leastaction.program import Program
from leastaction.step.form import Step

FloatArray = NDArray[np.float64]

RUN = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3)
SHARED = frozenset((*SINGLE, "params", "mass"))  # blocks with the same number in all lanes, points lying side by side
FLEETING = {"tables", "E", "inverse", "inputs", "look", "doubt", "urgent", "z", "impulse", "from", "earlier"}
MOST_HELD = 40  # unknowns of a step with constraints
SHORT_VECTOR = 4  # lanes of a vector of which half would hold too little


def form_of(
    step: Step, width: int, watch: Watching | None, lifts: bool, energy_of: Any, varied: int = 0
) -> Form | None:  # fmt: skip
    """The form that solves a step of so many trajectories side by side; None where its Programs would be too long."""
    W, further = native_lanes(), (watch, lifts, energy_of, varied)
    equations, unknowns = order_of(step)
    if equations != unknowns and not step.multipliers and newton_length(step) <= LONGEST_NEWTON:
        return Newton(step, width, width, *further)  # of a mass with zeros on its diagonal it exchanges rows
    if step.explicit:
        short = step.n * step.n <= LONGEST or mass_of(step).diagonal
        return Explicit(step, width, width, *further) if short else None
    if step.multipliers:
        if step.s * (step.n + step.multipliers) > MOST_HELD:
            return None
        explicit = step.held_explicitly and simple_end(step)
        return (Held if explicit else Newton)(step, width, width, *further)
    half = 2 * len(step.method.table.c) <= W and W > SHORT_VECTOR
    lanes = width if width > 1 else W // 2 if half else W
    short = chord_length(step, mass_of(step), lanes if width == 1 else 1) <= LONGEST
    collocated, small = collocates(step.method), step.s <= 2 and step.n <= DENSE
    swift = not mass_of(step).separable and small if collocated else small or width > 1
    if swift and newton_length(step) <= LONGEST_NEWTON:
        return Newton(step, width, width, *further)
    if not short:
        return None
    return Gauss(step, lanes, width, *further) if collocated else Chord(step, lanes, width, *further)


class Engine:
    """A form of the steps of a method on a system, compiled; h, parameters and trajectories change nothing of it."""

    def __init__(self, system: Any, method: Method, how: Any, form: Form, width: int, phases: int) -> None:
        self.system, self.method, self.phases = system, method, phases
        self.how, self.step, self.form = how, how.step, form
        self.width, self.lanes, self.places = width, self.form.lanes, self.form.places
        self.values = max(place.stop for place in self.places.values())  # of a state
        self._native: dict[bool, tuple[Native, Any]] = {}
        self._numbers = lru_cache(maxsize=16)(form.rows.numbers)

    @property
    def watches(self) -> bool:
        """Whether the native function looks for events; else states are looked at, after steps."""
        return self.form.watches

    @cached_property
    def easy(self) -> dict[str, Program]:
        begin = self.form.begin()
        found = ({} if begin is None else {"begin": begin}) | self.form.pieces()
        if self.form.varies:
            found["vary"] = self.form.vary()
        if self.form.lifts:
            found["lift"] = self.form.lift()
        if self.form.watch is not None:
            found["check"] = self.form.check()
        if self.form.energy_of is not None:
            found["reduce"] = self.form.reduce()
        return found

    @cached_property
    def shape(self) -> Shape:
        form, step = self.form, self.step
        nodes = len(self.method.nodes)
        places = {name: place.start for name, place in self.places.items()}
        return Shape(
            places, self.lanes, self.width,
            inputs=(step.channels, nodes, -(-nodes // self.lanes) if form.side else 0),
            look=self.places["look"].stop - self.places["look"].start if "look" in places else 0,
            phases=self.phases, handed=places["params"] * self.lanes, size=self.values * self.lanes,
        )  # fmt: skip

    def compiled(self, hard: bool) -> tuple[Native, Any]:
        """The native function, with the hard way or without; and what calls it."""
        hard = hard and bool(self.hard)
        found = self._native.get(hard)
        if found is None:
            pieces = self.easy | (self.hard if hard else {})
            same = SHARED & self.form.names if self.form.side else frozenset[str]()
            native = compile_run(pieces, self.shape, same)
            found = self._native[hard] = native, RUN(native.address)
        return found

    @cached_property
    def hard(self) -> dict[str, Program]:
        return self.form.hard_pieces()

    @cached_property
    def lasting(self) -> NDArray[np.bool_]:
        """Which values the steps to come depend on."""
        found = np.ones(self.values, bool)
        for name in FLEETING & self.places.keys():
            found[self.places[name]] = False
        return found

    @cached_property
    def layout(self) -> int:
        """A number for what a state means: a run cannot go on from states under another number."""
        text = repr((type(self.form).__name__, self.lanes, self.width, self.form.blocks))
        return int(hashlib.sha256(text.encode()).hexdigest()[:15], 16)

    def tables(self, h: float) -> FloatArray:
        return np.broadcast_to(self._numbers(h), (self.form.rows.size, self.lanes))

    @cached_property
    def _unit_tables(self) -> tuple[FloatArray, NDArray[np.int64]]:
        """The tables at h = 1, and the power of h, 0, 1, 2 or −1, that is a factor of each row."""
        one, two = (self.form.rows.numbers(h) for h in (1.0, 2.0))
        return one, np.select([(two == one * 2.0**k).all(axis=1) for k in (0, 1, 2)], [0, 1, 2], 3)

    def tables_in_passing(self, lengths: FloatArray) -> FloatArray:
        """Tables for single steps, quickly: their last bits are not those by which a long run keeps its energy."""
        one, power = self._unit_tables
        powers = np.stack([lengths**0, lengths, lengths**2, 1 / lengths], axis=1)
        return one * powers[:, power, None]

    def packed(self, x: FloatArray) -> FloatArray:
        """q or p of K states of trajectories side by side, (K, width, n), as blocks, (K, values, lanes)."""
        if not self.form.side:
            return np.ascontiguousarray(x.swapaxes(1, 2))
        found = np.zeros((len(x), self.form.rows.length(self.step.n) * self.lanes))
        found[:, : self.step.n] = x[:, 0]
        return found.reshape(len(x), -1, self.lanes)

    def unpacked(self, block: FloatArray) -> FloatArray:
        """The same from a block of one state, (width, n)."""
        return block.reshape(1, -1)[:, : self.step.n].copy() if self.form.side else block.T.copy()

    def kept(self, columns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where numbers of (q, p) are, from the beginning of the block q, of the first trajectory.

        Behind them come those of the directions, one direction after the other.
        """
        n, room = self.step.n, (self.places["p"].start - self.places["q"].start) * self.lanes
        pitch = 1 if self.form.side else self.lanes
        found = np.where(columns < n, columns * pitch, (columns - n) * pitch + room)
        if not self.form.varied:
            return found
        group, lane = np.divmod(np.arange(self.form.varied), self.lanes)
        first = (self.places["directions"].start - self.places["q"].start + group * 2 * n) * self.lanes + lane
        return np.concatenate([found, np.add.outer(first, np.arange(2 * n) * self.lanes).ravel()]).astype(np.int64)


def call_record() -> NDArray[np.int64]:
    return np.zeros(len(CALL), np.int64)


# Kinds of methods beside the Galerkin family: (system, method, width, energy, varied,
# lifts) ↦ what its steps are, and a form.
KINDS: dict[type[Method], Any] = {RungeKutta4: formed}


@lru_cache(maxsize=128)
def engine(
    system: Any, method: Method, width: int = 1, watch: Watching | None = None, lifts: bool = False,
    energy: bool = False, phases: int = 1, varied: int = 0,
) -> Engine | None:  # fmt: skip
    """The engine of these steps; None if there is none, as of many trajectories side by side where steps are long."""
    for kind, made in KINDS.items():
        if isinstance(method, kind):
            both = made(system, method, width, energy, varied, lifts)
            return None if both is None else Engine(system, method, both[0], both[1], width, phases)
    how: Scripted = system.scripted(require_member(method, "a step in float64"))
    form = form_of(how.step, width, watch, lifts, system if energy else None, varied) if how.step.terms else None
    if form is None:
        if width > 1:
            return None
        form = (LongHeld if how.step.multipliers else LongSteps)(how, lifts, varied)
    return Engine(system, method, how, form, width, phases)
