"""Results in memory."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from leastaction.run.drive import Part
from leastaction.run.plan import Plan
from leastaction.run.standing import Block, Standing
from leastaction.run.starts import Starts

FIRST_ROWS = 256  # of a run whose number of steps is not known


class Memory:
    """All states of all trajectories, (B, K, width), and where they stand.

    A run of which nobody knows how many steps it has gets room as it needs it.
    """

    def __init__(self, plan: Plan, starts: Starts) -> None:
        self.plan, self.starts = plan, starts
        self.block = Block.empty(plan, len(starts), 0, FIRST_ROWS if plan.open else plan.kept)
        self.standing = Standing.begin(plan, starts)
        self.logs = self.standing.logs(plan)
        if plan.every:
            self.block.rows[:, 0] = plan.row.kept(self.standing.at)

    def done(self) -> int:
        return 0

    def parts(self, usual: list[Part]) -> list[Part]:
        return usual

    def chunk(self, begin: int, end: int) -> _InMemory | _Growing:
        return _Growing(self) if self.plan.open else _InMemory(self, begin, end)

    def rows(self) -> NDArray[np.generic]:
        """The states, the last ones among them: of one trajectory as far as it has come."""
        plan, standing, rows = self.plan, self.standing, self.block.rows
        if not plan.many:
            rows = rows[:, : standing.rows(plan)]
            rows[0, -1] = plan.row.kept(standing.at[0])
            return rows
        ended = np.flatnonzero(standing.steps == plan.steps) if plan.every else slice(None)
        rows[ended, -1] = plan.row.kept(standing.at[ended])
        return rows


class _InMemory:
    """All steps in one stretch."""

    seconds = math.inf

    def __init__(self, memory: Memory, begin: int, end: int) -> None:
        self.plan, self._memory, self._part = memory.plan, memory, slice(begin, end)
        self.standing, self._block = memory.standing.part(begin, end), memory.block.part(begin, end)

    def next(self) -> Block | None:
        return self._block if self.standing.going(self.plan.steps).any() else None

    def take(self, block: Block) -> None:
        """Everything is in place, but what has happened."""
        self._memory.logs[self._part] = self.standing.logs(self.plan)

    def close(self) -> None:
        """Everything is in place."""


class _Growing:
    """All steps of one trajectory, in stretches each as long as all before."""

    seconds = math.inf

    def __init__(self, memory: Memory) -> None:
        self.memory, self.plan, self.standing = memory, memory.plan, memory.standing

    def next(self) -> Block | None:
        return self.memory.block if self.standing.going(self.plan.steps).any() else None

    def take(self, block: Block) -> None:
        self.memory.logs[:] = self.standing.logs(self.plan)
        if self.standing.going(self.plan.steps).any() and not self.standing.going(block.end(self.plan)).any():
            wider = Block.empty(self.plan, 1, 0, 2 * block.rows.shape[1])
            wider.rows[:, : block.rows.shape[1]] = block.rows
            self.memory.block = wider

    def close(self) -> None:
        """Everything is in place."""
