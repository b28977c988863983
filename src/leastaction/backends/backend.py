"""Backend: what computes the steps of a method on a Lagrangian, and what the state of a trajectory holds for that."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.fused.programs import StepPrograms, alone, explicit_programs, held_programs, step_programs
from leastaction.backends.fused.stiff import TABLES
from leastaction.backends.native import loop
from leastaction.backends.solver import Solvers, ahead_of
from leastaction.kernel import Native, compile_program, native_lanes, packable
from leastaction.methods import Galerkin
from leastaction.program import Program
from leastaction.step.form import Step, step_of
from leastaction.step.rows import SideBySide

if TYPE_CHECKING:
    from leastaction.backends.workspace import Laid
    from leastaction.systems.lagrangian import Lagrangian

FloatArray = NDArray[np.float64]

# Blocks of the state of one trajectory, its points side by side, that have one number in all lanes.
SAME = {
    "t", "h", "params", "alive", "started", "trouble", "left", "choice", "inner", "outer", "rate", "soft_before",
    "soft_doubt", "soft_iterations", "failed", "rest", "tight", "marching", "stand", "given_up", "certain",
}  # fmt: skip
ITERATION = {"fresh", "kept"}  # kernels of Newton's iteration, which read what each other stores
HOPS = ("hop", "far_hop")  # kernels that write a state elsewhere: what one stores number by number the next reads so


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
    def unit_tables(self) -> tuple[FloatArray, NDArray[np.int64]] | None:
        """These tables at h = 1 and the powers of h in them, where a first step marches, so that kernels solve single
        steps of any length; None where they do not.
        """
        if self.tables is None or not {"march", "inner"} <= self.kernels.keys():
            return None
        powers = self.tables.powers()
        return None if powers is None else (self.tables.numbers(1.0), powers)

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
        programs, unpacked = self.programs.kernels, {"settle"}
        if not all(packable(programs[name]) for name in ITERATION if name in programs):
            unpacked |= ITERATION  # what one of them stores number by number the others read so
        return {name: self._compiled(name, one, pack and name not in unpacked) for name, one in programs.items()}

    @cached_property
    def later(self) -> dict[str, Native]:
        """The kernels that are made when they are wanted."""
        assert self.programs is not None and self.programs.later is not None
        return {name: self._compiled(name, program, False) for name, program in self.programs.later().items()}

    @property
    def patience(self) -> int:
        """Steps that chords have given up before these are wanted; zero where there are none."""
        return 0 if self.programs is None else self.programs.patience

    def _compiled(self, name: str, program: Program, pack: bool) -> Native:
        bounded, elsewhere = self.stride > 1 and name != "advance", name in HOPS
        same = frozenset({name for name, _ in program.inputs} & SAME) if self.tables is not None else frozenset()
        return compile_program(program, self.stride, bounded, not elsewhere, pack=pack and not elsewhere, same=same)

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
        for name in ("slopes", "factors", "tables", TABLES):
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


@lru_cache(maxsize=64)
def backend(
    system: Lagrangian, method: Galerkin, lanes: int, energy: bool = False, composed: bool = False
) -> Backend:  # fmt: skip
    """How the steps of a method on a Lagrangian are computed."""
    return Backend(system, method, lanes, energy, composed)
