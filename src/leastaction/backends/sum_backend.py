"""SumBackend: how the steps of a method on a sum over rows of tables are computed."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.backend import Backend
from leastaction.backends.layout import SOLVER
from leastaction.backends.native import loop
from leastaction.backends.solver import Solvers, ahead_of
from leastaction.backends.summands import Assembly, padded
from leastaction.kernel import native_lanes
from leastaction.methods import Galerkin
from leastaction.step.form import Step

if TYPE_CHECKING:
    from leastaction.systems.sums import Sum

FloatArray = NDArray[np.float64]


class SumBackend(Backend):
    """The steps of a method on a sum over rows of tables: one trajectory, its coordinates side by side in vectors."""

    programs = None
    spread = 1

    @property
    def sums(self) -> Assembly:
        assembly: Assembly = self.system.loop_assembly
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
def sum_backend(system: Sum, method: Galerkin) -> SumBackend:
    """How the steps of a method on a sum are computed."""
    return SumBackend(system, method, lanes=1, stiff=1 if system.m else 0)
