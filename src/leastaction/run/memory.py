"""Results in memory."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from leastaction.run.drive import Part
from leastaction.run.plan import Plan
from leastaction.run.standing import Block, Standing
from leastaction.run.starts import Starts

FIRST_ROWS = 256  # first rows of a run whose number of steps is not known


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
