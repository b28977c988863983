"""Where trajectories stand: all that the next step depends on, and the facts about the steps before."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.events import GROWING, Log
from leastaction.methods import Galerkin
from leastaction.printing import freedom
from leastaction.step import status

if TYPE_CHECKING:
    from leastaction.run.plan import Plan
    from leastaction.run.starts import Starts
    from leastaction.step.stepper import Stepper

FloatArray = NDArray[np.float64]


# Of the energy: E₀, with what walls have given since; the largest K and rounding of E so far; the last time at which E
# was right, the first time at which E was wrong, and the error of E: both NaN as long as E is right.
BALANCE = ("start", "size", "rounding", "right", "wrong", "error")
HAPPENED = ("event_counts", "event_rows")  # the part of the state from which logs of events are read


class Status(IntEnum):
    """How a trajectory ended."""

    COMPLETE = status.GOING_WELL
    NOT_CONVERGED = status.NOT_CONVERGED
    NOT_FINITE = status.NOT_FINITE
    BRANCH_ENDS = status.BRANCH_ENDS
    SINGULAR = status.SINGULAR
    STOPPED = status.STOPPED  # ended by an event, as asked
    RESTING = status.RESTING  # impacts follow each other without end
    HELD = status.HELD  # no impulse throws it back from a wall
    STANDSTILL = status.STANDSTILL  # its pace vanishes, and its time never comes to t_end
    INTERRUPTED = 6  # ended by Ctrl-C
    PENDING = 7  # in an archive: not run to the planned end yet


@dataclass(frozen=True, eq=False)
class Standing:
    """Where B trajectories stand: arrays with a row for each. From here they go on as if there were no pause.

    status      COMPLETE as long as nothing has ended a trajectory before its time
    steps       done by each; trajectories in lanes that go on have done the same number
    iterations  of the solver for each trajectory, and its steps solved by continuation
    at          the whole states that they have come to, with the derivatives carried, (B, whole_width)
    energy      lowest and highest, (B, 2), if the energy is watched
    balance     of the energy, (B, 6), where it ought to be constant: BALANCE, see `run.motion_checks`
    pole        time and coordinate of a step that did not resolve its way past a pole of the chart, (B, 2), or NaN
    state       all that the steps to come depend on, as the steppers left it; empty before the first step
    told        of one trajectory alone: what its stepper has to say, by name; with the log of its events, if any are
                looked for
    """

    status: NDArray[np.int8]
    steps: NDArray[np.int64]
    iterations: NDArray[np.int64]
    continued: NDArray[np.int64]
    at: NDArray[Any]
    energy: FloatArray
    balance: FloatArray
    pole: FloatArray
    state: dict[str, NDArray[Any]] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def unknown(cls, plan: Plan, size: int) -> Standing:
        """The standing of this number of trajectories of which nothing is known yet."""
        return cls(
            status=np.zeros(size, np.int8),
            steps=np.zeros(size, np.int64),
            iterations=np.zeros(size, np.int64),
            continued=np.zeros(size, np.int64),
            at=np.full((size, plan.row.whole_width), plan.reals.array(np.nan)[()]),
            energy=np.full((size, 2 if plan.energies else 0), np.nan),
            balance=np.full((size, len(BALANCE) if _keeps_energy(plan) else 0), np.nan),
            pole=np.full((size, 2 if _passes_poles(plan) else 0), np.nan),
        )

    @classmethod
    def begin(cls, plan: Plan, starts: Starts) -> Standing:
        """The standing before the first step."""
        standing, row = cls.unknown(plan, len(starts)), plan.row
        standing.status[:] = starts.status
        standing.at[:, : row.n], standing.at[:, row.n : 2 * row.n] = starts.q, starts.p
        if row.varied:
            standing.at[:, 2 * row.n :] = plan.reals.array(row.directions().ravel())
        return standing

    def found(self) -> dict[str, NDArray[Any]]:
        """The facts about the trajectories, by name: everything except the state."""
        return {item.name: getattr(self, item.name) for item in fields(self) if item.name not in ("state", "told")}

    def part(self, begin: int, end: int) -> Standing:
        """The rows of some trajectories, as views; the part of all trajectories is the whole, with its state."""
        if begin == 0 and end >= len(self.steps):
            return self
        found: dict[str, Any] = {name: array[begin:end] for name, array in self.found().items()}
        return Standing(**found, state={name: array[begin:end] for name, array in self.state.items()}, told=self.told)

    def copy(self) -> Standing:
        state = {name: array.copy() for name, array in self.state.items()}
        found: dict[str, Any] = {name: array.copy() for name, array in self.found().items()}
        return Standing(**found, state=state)

    def put(self, other: Standing) -> None:
        """Take over all from another Standing of the same size."""
        for name, array in self.found().items():
            array[...] = getattr(other, name)
        self.state.update(other.state)
        self.told.update(other.told)

    def take(self, begin: int, end: int, stepper: Stepper, lasting: bool = True) -> None:
        """Take from their stepper where the trajectories begin … end are; with the state if `lasting`."""
        part = slice(begin, end)
        self.status[part], self.steps[part], self.at[part] = stepper.status(), stepper.steps(), stepper.at()
        self.iterations[part], self.continued[part] = stepper.spent()
        for name, array in stepper.state().items() if lasting else ():
            known = self.state.get(name)
            if known is None:
                known = self.state[name] = np.zeros((len(self.steps), *array.shape[1:]), array.dtype)
            if name in GROWING:
                known = self.state[name] = self._grown(known, array, len(self.steps) == 1)
                known[part, : array.shape[1]] = array
            else:
                known[part] = array
        stepper.finish(self.part(begin, end))
        if len(self.steps) == 1:
            self.told.update(counts=stepper.counts(), failure=stepper.failure())

    def stand_still(self, plan: Plan) -> None:
        """Mark trajectories that have done all their steps and have not reached t_end."""
        if plan.open and plan.until is not None:
            self.status[(self.status == status.GOING_WELL) & (self.steps == plan.until[1])] = status.STANDSTILL

    def going(self, steps: int) -> NDArray[np.bool_]:
        """Which trajectories have not yet done this number of steps."""
        return (self.status == status.GOING_WELL) & (self.steps < steps)

    @staticmethod
    def _grown(known: NDArray[Any], array: NDArray[Any], alone: bool) -> NDArray[Any]:
        """An array with room for the rows of another; that of a single trajectory has no room for more."""
        rows = array.shape[1] if alone else max(known.shape[1], array.shape[1])
        if rows == known.shape[1]:
            return known
        grown = np.zeros((len(known), rows, *known.shape[2:]), known.dtype)
        shared = min(rows, known.shape[1])
        grown[:, :shared] = known[:, :shared]
        return grown

    def logs(self, plan: Plan) -> list[Log]:
        """The log of events of each trajectory; an empty list if no events are looked for."""
        if plan.events is None:
            return []
        if not plan.many and "logs" in self.told:
            return list(self.told["logs"])
        logs = [Log(plan.events, plan.row.n, plan.dtype) for _ in self.steps]
        for i, log in enumerate(logs if self.state else ()):
            log.restore({name: self.state[name][i] for name in HAPPENED})
        return logs

    def at_end(self, plan: Plan) -> bool:
        """Whether a single trajectory that an event has stopped has reached the time that was asked for."""
        return plan.open and self.logs(plan)[0].at_end

    def most_rows(self, plan: Plan) -> int:
        """The largest number of states stored of a trajectory, in a run of unknown length."""
        if not plan.many:
            return self.rows(plan)
        return max(1, int(plan.regular(self.steps.max())))

    def rows(self, plan: Plan) -> int:
        """The number of states stored of a trajectory that ends here; an event may add a last state inside a step."""
        done = int(self.steps[0])
        return int(plan.regular(done)) + 1 if int(self.status[0]) == status.STOPPED else plan.rows(done)

    def times(self, plan: Plan, first: int, end: int) -> NDArray[Any]:
        """Times of the stored states first … end of one trajectory."""
        t = plan.times(first, end, int(self.steps[0]))
        if int(self.status[0]) == status.STOPPED and end == self.rows(plan):
            (log,) = self.logs(plan)
            if log.stopped is not None:
                t[-1] = log.stopped[0]
        return t

    def progress(self, plan: Plan) -> int:
        """Steps of the plan that need not be done any more."""
        return int(np.where(self.going(plan.steps), self.steps, plan.steps).sum())


def _keeps_energy(plan: Plan) -> bool:
    """Whether the energy of the motion ought to be constant, and is not known to be."""
    system = plan.system.in_time
    any_root = isinstance(plan.method, Galerkin) and plan.method.branch == "any"
    return not (system.linear or system.depends_on_time or system.forced or any_root)


def _passes_poles(plan: Plan) -> bool:
    """Whether it is looked for poles of the chart: masses depend on q alone, and whole states are stored."""
    system, row = plan.system, plan.row
    if not system.mass_varies_with_position or not system.clock.steady or system.inputs or row.output is not None:
        return False
    return bool(plan.every) and not system.mass_varies_with_velocity


@dataclass(frozen=True, eq=False)
class Block:
    """Stored states of some trajectories, (B, R, width), from row number `first` on; NaN where there are none.

    The rows are states after multiples of `every` steps. A run may have one more last state: where it stands.
    """

    first: int
    rows: NDArray[Any]

    @classmethod
    def empty(cls, plan: Plan, size: int, first: int, count: int) -> Block:
        shape = (size, count, plan.row.width)
        try:
            if not plan.many:  # of one trajectory only rows that were written are shown
                return cls(first, np.empty(shape, plan.dtype))
            return cls(first, np.full(shape, plan.reals.array(np.nan)[()]))
        except (MemoryError, ValueError):  # more than the memory has, more than can be addressed
            raise MemoryError(_too_large(plan, size, count)) from None

    def end(self, plan: Plan) -> int:
        """The last step before the next block, or the last step of the run."""
        last = plan.steps if plan.every == 0 else (self.first + self.rows.shape[1] - 1) * plan.every
        return plan.steps if last + plan.every > plan.steps else last

    def part(self, begin: int, end: int) -> Block:
        return Block(self.first, self.rows[begin:end])

    def reached(self, plan: Plan, standing: Standing) -> int:
        """The number of rows of this block that all trajectories that go on have."""
        if plan.every == 0 or not standing.state:
            return 0
        steps = standing.steps[standing.going(plan.steps)]
        return max(0, int(plan.regular(steps.min(initial=plan.steps))) - self.first)


def _too_large(plan: Plan, size: int, count: int) -> str:
    gigabytes = 8.0 * size * count * plan.row.width / 2**30
    if plan.many:
        return (
            f"the states of {size} trajectories need {gigabytes:.1f} GiB; keep fewer with every= (now {plan.every}), "
            "none but the last with final_only=True, or stream them with store="
        )
    derivatives = "" if not plan.row.varied else f" and derivatives of shape {(plan.row.varied, 2 * plan.row.n)}"
    return (
        f"{plan.steps} steps: {count} states of {freedom(len(plan.row.dofs))}{derivatives} need "
        f"{gigabytes:.1f} GiB; keep fewer with every= (now {plan.every}), or take fewer steps"
    )
