"""A run of many trajectories, or a part of it, as plain data that can travel to other threads and processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends import status
from leastaction.lagrangian import Lagrangian
from leastaction.many.reductions import Plan
from leastaction.methods import Method

FloatArray = NDArray[np.float64]
Tick = Callable[[int], bool]  # told how many steps were done; False if the run is to end


class Status(IntEnum):
    """How a trajectory ended."""

    COMPLETE = status.GOING_WELL
    NOT_CONVERGED = status.NOT_CONVERGED
    NOT_FINITE = status.NOT_FINITE
    BRANCH_ENDS = status.BRANCH_ENDS
    SINGULAR = status.SINGULAR
    STOPPED = status.STOPPED  # by an event, as asked
    INTERRUPTED = 6  # by Ctrl-C
    PENDING = 7  # in an archive: not run to the planned end yet


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
    until: tuple[float, int] | None = None  # a time that was asked for, and the steps to it

    @property
    def kept(self) -> int:
        """States stored of each trajectory."""
        return 1 if self.every == 0 else self.steps // self.every + 1 + (self.steps % self.every != 0)

    def regular(self, steps: Any) -> Any:
        """Rows of a trajectory after so many steps that are its rows also when it goes on: a last state may be more."""
        return steps // self.every + 1 if self.every else steps * 0

    def times(self, first: int, end: int) -> FloatArray:
        """Times of the stored states first … end."""
        k = (
            np.minimum(np.arange(first, end) * self.every, self.steps)
            if self.every
            else np.full(end - first, self.steps)
        )
        if self.until is None:
            return np.asarray(self.t0 + k * self.h, float)
        t_end, count = self.until
        return np.asarray(self.t0 + (t_end - self.t0) * (k / count), float)


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
class Standing:
    """Where trajectories stand: arrays with a row for each. From it they go on as if there had been no pause.

    status      COMPLETE as long as nothing has ended a trajectory before its time
    steps       done by each; those in lanes that go on have done equally many
    counts      crossings of each event function, (B, events)
    crossings   (t, q, p) of those kept, (B, Σ most, 1 + 2n)
    state       all that the steps to come depend on, as `lanes` or `singles` left it; empty before the first step
    """

    status: NDArray[np.int8]
    steps: NDArray[np.int64]
    iterations: NDArray[np.int64]
    continued: NDArray[np.int64]
    energy: FloatArray
    counts: NDArray[np.int64]
    crossings: FloatArray
    state: dict[str, NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def empty(cls, job: Job, size: int) -> Standing:
        n, events = job.system.n, len(job.plan.events)
        return cls(
            status=np.zeros(size, np.int8),
            steps=np.zeros(size, np.int64),
            iterations=np.zeros(size, np.int64),
            continued=np.zeros(size, np.int64),
            energy=np.full((size, 2 if job.plan.energy else 0), np.nan),
            counts=np.zeros((size, events), np.int64),
            crossings=np.full((size, job.plan.records, 1 + 2 * n), np.nan),
        )

    def found(self) -> dict[str, NDArray[Any]]:
        """What there is to say of the trajectories, by name: everything but the state."""
        return {item.name: getattr(self, item.name) for item in fields(self) if item.name != "state"}

    def part(self, begin: int, end: int) -> Standing:
        """Views of some trajectories' rows; their state is their own."""
        found: dict[str, Any] = {name: array[begin:end] for name, array in self.found().items()}
        return Standing(**found)

    def copy(self) -> Standing:
        state = {name: array.copy() for name, array in self.state.items()}
        return Standing(**{name: array.copy() for name, array in self.found().items()}, state=state)

    def put(self, other: Standing) -> None:
        """Take over what another one of the same size has come to."""
        for name, array in self.found().items():
            array[...] = getattr(other, name)
        self.state.update(other.state)

    def going(self, steps: int) -> NDArray[np.bool_]:
        """Which trajectories still have to go to reach so many steps."""
        return (self.status == Status.COMPLETE) & (self.steps < steps)

    def progress(self, job: Job) -> int:
        """Steps of the job that need not be done any more."""
        return int(np.where(self.going(job.steps), self.steps, job.steps).sum())


@dataclass(frozen=True, eq=False)
class Block:
    """Stored states (q, p) of some trajectories, (B, R, 2n), from row number `first` on; NaN where there are none."""

    first: int
    rows: FloatArray

    @classmethod
    def empty(cls, job: Job, size: int, first: int, count: int) -> Block:
        shape = (size, count, 2 * job.system.n)
        try:
            return cls(first, np.full(shape, np.nan))
        except (MemoryError, ValueError):  # more than there is, more than can be addressed
            raise MemoryError(
                f"the states of {size} trajectories need {8 * np.prod(shape, dtype=float) / 2**30:.1f} GiB; keep fewer "
                f"with every= (now {job.every}), none but the last with final_only=True, or stream them with store="
            ) from None

    def end(self, job: Job) -> int:
        """The step of its last row."""
        return min((self.first + self.rows.shape[1] - 1) * job.every, job.steps) if job.every else job.steps

    def reached(self, job: Job, standing: Standing) -> int:
        """How many of its rows there are of all trajectories that go on."""
        if job.every == 0 or not standing.state:
            return 0
        steps = standing.steps[standing.going(job.steps)]
        return max(0, int(job.regular(steps.min(initial=job.steps))) - self.first)
