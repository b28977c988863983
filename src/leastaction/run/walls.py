"""What walls take from the energy of a motion, and give to it.

A wall that moves, or whose restitution is less than one, changes the energy at every impact, by E(q, p⁺) − E(q, p⁻). A
log of events keeps both momenta. So it is known at all times which energy a motion between walls ought to have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from leastaction.events import Log
    from leastaction.run.plan import Plan
    from leastaction.run.standing import Standing

FloatArray = NDArray[np.float64]

AT_ONCE = 1e-6  # steps: at times that are nearer to each other a state may be that before an impact or that after it
ROUNDINGS = 64  # of times, likewise


def taking(plan: Plan) -> list[int]:
    """The events that are walls which may take energy or give it: walls that move, or are not elastic."""
    if plan.events is None:
        return []
    timed = plan.system.clock.block == "q"  # time is a coordinate, which a wall may read
    return [
        k
        for k, (item, moves) in enumerate(zip(plan.events.items, plan.events.by_time, strict=True))
        if item.restitution is not None and (item.restitution != 1 or moves or timed)
    ]


class Walls:
    """The impacts of some trajectories from where they stand now, to the end of a stretch of their run."""

    def __init__(self, plan: Plan, standing: Standing) -> None:
        self._plan, self._taking = plan, taking(plan)
        self._place = plan.system.clock.place  # of the time in a log's row
        self._before = [self._counts(log) for log in standing.logs(plan)] if self._taking else []

    def _counts(self, log: Log) -> list[int]:
        return [len(log.rows[k]) for k in self._taking]

    def taken(
        self, standing: Standing, nothing: NDArray[Any], energies: Callable[[NDArray[Any]], FloatArray]
    ) -> tuple[FloatArray, FloatArray] | None:
        """Times of the impacts in the stretch that ends with this standing, and the sums of all changes of the energy
        after each of them, (impacts, B); None if there are none. `energies` gives E of states (moments, B, 2n);
        `nothing`, (B, 2n), are some states of the trajectories.
        """
        plan, place = self._plan, self._place
        each: list[list[NDArray[Any]]] = []
        for log, counts in zip(standing.logs(plan), self._before, strict=False):
            rows = [row for k, count in zip(self._taking, counts, strict=True) for row in log.rows[k][count:]]
            each.append(sorted(rows, key=lambda row: float(row[0]) * (1 if plan.h > 0 else -1)))
        most, n = max(map(len, each), default=0), plan.row.n
        if not most:
            return None
        t = np.full((most, len(each)), np.inf if plan.h > 0 else -np.inf)
        states = np.broadcast_to(nothing, (2, most, *nothing.shape)).copy()
        for i, rows in enumerate(each):
            for k, row in enumerate(rows):
                t[k, i] = float(row[place])
                states[0, k, i], states[1, k, i] = (
                    row[1 : 1 + 2 * n],
                    np.concatenate([row[1 : 1 + n], row[1 + 2 * n :]]),
                )
        before, after = energies(states[0]), energies(states[1])
        return t, np.cumsum(after - before, axis=0)

    def without(
        self, E: FloatArray, start: FloatArray, t: FloatArray, taken: tuple[FloatArray, FloatArray]
    ) -> FloatArray:
        """E, (moments, B), at the times t without what walls have taken or given. Of a state at the very time of an
        impact it is not known whether it is the state before the impact or the state after it: it is the one whose
        energy is `start`.
        """
        when, changes = taken
        sums = np.concatenate([np.zeros((1, changes.shape[1])), changes])
        each, way = np.arange(changes.shape[1]), 1.0 if self._plan.h > 0 else -1.0
        near = AT_ONCE * abs(float(self._plan.h)) + ROUNDINGS * np.finfo(float).eps * np.abs(t)
        found = []
        for side in (-near, near):
            counts = np.array([(way * when <= limit).sum(axis=0) for limit in way * t + side])
            found.append(E - sums[counts, each])
        return np.where(np.abs(found[0] - start) <= np.abs(found[1] - start), found[0], found[1])

    def stops(self, standing: Standing) -> FloatArray:
        """The times at which events have ended runs; NaN for the runs that no event has ended."""
        ends = [log.stopped for log in standing.logs(self._plan)]
        return np.array([np.nan if row is None else float(row[self._place]) for row in ends])
