"""A run of many trajectories, or a part of it, as plain data that can travel to other threads and processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from leastaction.lagrangian import Lagrangian
from leastaction.many.reductions import Plan
from leastaction.methods import Method
from leastaction.stepping import layout

FloatArray = NDArray[np.float64]
Tick = Callable[[int], bool]  # told how many steps were done; False if the run is to end


class Status(IntEnum):
    """How a trajectory ended."""

    COMPLETE = layout.GOING_WELL
    NOT_CONVERGED = layout.NOT_CONVERGED
    NOT_FINITE = layout.NOT_FINITE
    BRANCH_ENDS = layout.BRANCH_ENDS
    SINGULAR = layout.SINGULAR
    STOPPED = layout.STOPPED  # by an event, as asked
    INTERRUPTED = 6  # by Ctrl-C
    PENDING = 7  # in an archive: not run yet


@dataclass(frozen=True)
class Job:
    """What is the same for all trajectories. `every` = 0 keeps the last state alone."""

    system: Lagrangian
    method: Method
    t0: float
    h: float
    steps: int
    every: int
    plan: Plan
    t_end: float | None = None  # where the run was to end, if that was said

    @property
    def kept(self) -> int:
        """States stored of each trajectory."""
        return 1 if self.every == 0 else self.steps // self.every + 1 + (self.steps % self.every != 0)


@dataclass(frozen=True, eq=False)
class Start:
    """Where trajectories begin: q, p, v (B, n), parameters (B, …), and a status: some cannot begin at all."""

    q: FloatArray
    p: FloatArray
    v: FloatArray
    params: FloatArray
    status: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.q)

    def part(self, begin: int, end: int) -> Start:
        return Start(**{field.name: getattr(self, field.name)[begin:end] for field in fields(self)})


@dataclass(frozen=True, eq=False)
class Result:
    """What comes of it: arrays with a row for each trajectory.

    states      stored (q, p), (B, K, 2n), NaN after a trajectory's end
    counts      crossings of each event function, (B, events)
    crossings   (t, q, p) of those kept, (B, Σ most, 1 + 2n)
    """

    states: FloatArray
    status: NDArray[np.int8]
    steps: NDArray[np.int64]
    iterations: NDArray[np.int64]
    continued: NDArray[np.int64]
    energy: FloatArray
    counts: NDArray[np.int64]
    crossings: FloatArray

    @classmethod
    def empty(cls, job: Job, size: int) -> Result:
        n, events = job.system.n, len(job.plan.events)
        try:
            return cls(
                states=np.full((size, job.kept, 2 * n), np.nan),
                status=np.zeros(size, np.int8),
                steps=np.zeros(size, np.int64),
                iterations=np.zeros(size, np.int64),
                continued=np.zeros(size, np.int64),
                energy=np.full((size, 2 if job.plan.energy else 0), np.nan),
                counts=np.zeros((size, events), np.int64),
                crossings=np.full((size, job.plan.records, 1 + 2 * n), np.nan),
            )
        except MemoryError:
            need = size * (job.kept * 2 * n + job.plan.records * (1 + 2 * n)) * 8 / 2**30
            raise MemoryError(
                f"the results of {size} trajectories need {need:.1f} GiB; keep fewer states with every= (now "
                f"{job.every}) or none but the last with final_only=True"
            ) from None

    def part(self, begin: int, end: int) -> Result:
        return Result(**{field.name: getattr(self, field.name)[begin:end] for field in fields(self)})

    def put(self, other: Result) -> None:
        """Take over the content of a result of the same size."""
        for field in fields(self):
            getattr(self, field.name)[...] = getattr(other, field.name)
