"""What has happened on the way of a run: the events of one name, and the log that a run keeps of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import gt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.events.kinds import Watch
from leastaction.systems.defaults import Clock

GROWING = ("event_rows",)  # arrays of the state whose number of rows is not known beforehand


@dataclass(frozen=True, eq=False)
class Happened:
    """The events of one name: what `path.events[name]` holds.

    Of an ensemble every array has one more axis in front, for the trajectories, with NaN where a trajectory has fewer
    events than another.

    Attributes
    ----------
    count : int
        How many there were, also beyond those kept.
    t : ndarray, shape (m,)
        Times of those kept.
    q, p : ndarray, shape (m, n)
        States of those kept. Of an impact: the state before it.
    p_after : ndarray, shape (m, n), or None
        The momentum after an impact.

    Examples
    --------
    >>> import leastaction as la
    >>> spring = la.Quadratic([1.0], [1.0])
    >>> turn = {"turn": la.Event(lambda q, p: p[0])}
    >>> path = la.integrate(spring, "P4N4Q8Gau", [0.0], [1.0], h=0.1, t_end=10, events=turn)
    >>> path.events["turn"].t.round(6)
    array([1.570796, 4.712389, 7.853982])
    """

    count: Any
    t: NDArray[Any]
    q: NDArray[Any]
    p: NDArray[Any]
    p_after: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.t)

    @classmethod
    def of(cls, count: Any, table: NDArray[Any], n: int) -> Happened:
        """Made from rows (t, q, p), or (t, q, p, p after)."""
        after = table[..., 1 + 2 * n :] if table.shape[-1] > 1 + 2 * n else None
        return cls(count, table[..., 0], table[..., 1 : 1 + n], table[..., 1 + n : 1 + 2 * n], after)

    def in_time(self, clock: Clock) -> Happened:
        """The same events of a paced run, whose last coordinate or momentum is the time."""
        after = None if self.p_after is None else self.p_after[..., :-1]
        t = (self.q if clock.block == "q" else self.p)[..., -1]
        return Happened(self.count, t, self.q[..., :-1], self.p[..., :-1], after)

    def table(self) -> NDArray[Any]:
        """Rows (t, q, p), or (t, q, p, p after)."""
        after = [] if self.p_after is None else [self.p_after]
        return np.concatenate([self.t[..., None], self.q, self.p, *after], axis=-1)

    def one(self, i: int) -> Happened:
        """The events of trajectory i of an ensemble."""
        count = int(self.count[i])
        return Happened.of(count, self.table()[i, : min(count, self.t.shape[1])], self.q.shape[-1])


def together(logs: Sequence[Log], nothing: Any) -> dict[str, Happened]:
    """The events of the trajectories of an ensemble, by name; `nothing` fills the empty places."""
    found = {}
    for item, *of_each in zip(logs[0].watch.items, *(log.happened().values() for log in logs), strict=True):
        tables = [one.table() for one in of_each]
        whole = np.full((len(logs), max(map(len, tables)), tables[0].shape[1]), nothing, tables[0].dtype)
        for i, table in enumerate(tables):
            whole[i, : len(table)] = table
        found[item.name] = Happened.of(np.array([one.count for one in of_each]), whole, logs[0].n)
    return found


class Log:
    """What has happened so far: for each event its count and the rows that are kept, (t, q, p); the row of an impact
    also has p after it.
    """

    def __init__(self, watch: Watch, n: int, dtype: Any) -> None:
        self.watch, self.n, self.dtype = watch, n, dtype
        self.counts = [0] * len(watch)
        self.rows: list[list[NDArray[Any]]] = [[] for _ in watch.items]

    @property
    def at_end(self) -> bool:
        """Whether a run that is to end at a given time has reached this time, which is its last event."""
        return self.counts[-1] > 0

    def add(self, event: int, row: NDArray[Any]) -> bool:
        """Note an event by its row; return whether the event ends the run."""
        item = self.watch.items[event]
        count = self.counts[event] = self.counts[event] + 1
        if item.most is None or count <= item.most:
            self.rows[event].append(row)
        return item.ends(count)

    def state(self) -> dict[str, NDArray[Any]]:
        """Counts, the numbers of rows kept of each event, and these rows one after the other, filled up with zeros."""
        kept = [len(rows) for rows in self.rows]
        ends = np.cumsum([0, *kept])
        table = np.zeros((ends[-1], 1 + 3 * self.n), self.dtype)
        for k, rows in enumerate(self.rows):
            if rows:
                table[ends[k] : ends[k + 1], : len(rows[0])] = rows
                table[ends[k] : ends[k + 1], len(rows[0]) :] = 0 * rows[0][0]
        return {"event_counts": np.array([self.counts, kept], np.int64), "event_rows": table}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        counts, kept = state["event_counts"].tolist()
        if min(kept) < 0 or sum(kept) > len(state["event_rows"]) or any(map(gt, kept, counts)):
            raise ValueError(f"of {counts} events {kept} cannot be kept in {len(state['event_rows'])} rows")
        self.counts, ends = counts, np.cumsum([0, *kept])
        for k, item in enumerate(self.watch.items):
            width = 1 + (2 if item.restitution is None else 3) * self.n
            self.rows[k] = list(state["event_rows"][ends[k] : ends[k + 1], :width])

    @property
    def stopped(self) -> NDArray[Any] | None:
        """The event that has ended the run, (t, q, p); None if no event has."""
        for item, count, rows in zip(self.watch.items, self.counts, self.rows, strict=True):
            if item.ends(count):
                return rows[-1]
        return None

    def happened(self) -> dict[str, Happened]:
        """What has happened, by the names of the events."""
        found = {}
        for item, count, rows in zip(self.watch.items, self.counts, self.rows, strict=True):
            width = 1 + (2 if item.restitution is None else 3) * self.n
            found[item.name] = Happened.of(count, np.array(rows, self.dtype).reshape(len(rows), width), self.n)
        return found
