"""What an archive shows: how far every chunk of trajectories has come, their states left on disk."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import StoreError
from leastaction.events import Log
from leastaction.run.archive import Disk, rows_needed, rows_there, standing_of
from leastaction.run.plan import Plan
from leastaction.run.standing import Standing, Status
from leastaction.store.lazy import LazyArray

TIMES = 2**18  # times computed at once
READ_BLOCKS, READ_BYTES = 16, 2**23  # of a path read at once, at most; one block may have more bytes


@dataclass(frozen=True, eq=False)
class View:
    """An archive at one moment.

    standing   of all trajectories; PENDING marks those of an ensemble that have not come to their end
    logs       of the events of each trajectory, if events are looked for
    t, arrays  (K,), and q, p, … (B, K, n), or (K, n) of one path, read when they are asked for; NaN where there is
               nothing yet
    ended      for one path: whether its run came to an end, and was not killed
    """

    plan: Plan
    standing: Standing
    logs: list[Log]
    t: LazyArray
    arrays: Mapping[str, LazyArray]
    ended: bool


def view(disk: Disk) -> View:
    """The View of an archive, even while a run writes it. A chunk with a damaged checkpoint is shown as not begun."""
    standing = Standing.unknown(disk.plan, disk.size)
    held: list[tuple[int, NDArray[Any]]] = []
    logs = standing.logs(disk.plan)
    ended = True
    for begin, end in disk.chunks():
        try:
            checkpoint = disk.checkpoint(begin)
        except StoreError as error:
            if not disk.plan.many:
                raise
            checkpoint = None
            warnings.warn(
                f"{error}; trajectories {begin} … {end} are shown as not run. Without that file la.resume runs them",
                RuntimeWarning,
                stacklevel=4,
            )
        if checkpoint is None:
            standing.at[begin:end] = Standing.begin(disk.plan, disk.starts.part(begin, end)).at
            held.append((0, disk.plan.row.kept(standing.at[begin:end, None])[:, : int(disk.plan.regular(0))]))
            ended = False
            continue
        here = standing_of(checkpoint)
        standing.part(begin, end).put(here)
        logs[begin:end] = here.logs(disk.plan)
        held.append((int(checkpoint.facts["whole"]), checkpoint.tail))
        ended = ended and checkpoint.facts["ended"]
    # The plan is read after the chunks: no chunk has gone beyond it.
    plan = replace(disk.plan, steps=disk.planned())
    done = int(standing.steps[0])
    kept = plan.kept if plan.many else standing.rows(plan) if ended else int(plan.regular(done))
    if plan.many and plan.open:
        kept = standing.most_rows(plan)
    standing.stand_still(plan)
    arrays = {name: _states(disk, plan, standing, held, name, kept) for name in plan.row.shapes}
    if plan.many:
        status = np.where(standing.going(plan.steps), Status.PENDING, standing.status)
        standing = replace(standing, status=status.astype(np.int8))
    times = plan.times if plan.many else partial(standing.times, plan)
    t = LazyArray("t", (kept,), (TIMES,), lambda span: times(*span), plan.dtype)
    return View(plan, standing, logs, t, arrays, ended)


def _states(
    disk: Disk, plan: Plan, standing: Standing, held: list[tuple[int, NDArray[Any]]], name: str, kept: int
) -> LazyArray:
    """One part of the rows: those that count in the array, those in the chunk's checkpoint, the last state, NaN."""
    shape, missing = plan.row.shapes[name], plan.reals.array(np.nan)[()]

    def box(trajectories: tuple[int, int], rows: tuple[int, int]) -> NDArray[Any]:
        (i, j), (first, end) = trajectories, rows
        chunk = i // disk.length
        whole, tail = held[chunk]
        part = standing.part(i, j)
        values = np.full((j - i, end - first, *shape), missing, plan.dtype)
        counted = min(max(whole, first), end)
        if first < counted:
            needed = rows_needed(plan, part, first, counted)
            values[:, : counted - first] = disk.read(name, trajectories, (first, counted), needed)
        begin = chunk * disk.length
        rest = tail[i - begin : j - begin, max(first - whole, 0) : max(end - whole, 0)]
        values[:, counted - first : counted - first + rest.shape[1]] = plan.row.part(name, rest)
        values[~rows_there(plan, part, first, end)] = missing
        if end == kept and kept > int(plan.regular(plan.steps if plan.many else int(standing.steps[0]))):
            last = _ended(plan, part)
            values[last, -1] = plan.row.part(name, plan.row.kept(part.at))[last]
        return values

    label = f"{name} of {disk.archive.path.name}"
    if plan.many:
        return LazyArray(label, (disk.size, kept, *shape), (disk.length, disk.rows), box, plan.dtype)
    row = 8 * int(np.prod(shape)) * disk.rows
    cut = disk.rows * max(1, min(READ_BLOCKS, READ_BYTES // row))
    return LazyArray(label, (kept, *shape), (cut,), lambda span: box((0, 1), span)[0], plan.dtype)


def _ended(plan: Plan, standing: Standing) -> NDArray[np.bool_]:
    """Which trajectories show where they stand as their last state."""
    if not plan.many:
        return np.ones(1, bool)
    return standing.steps == plan.steps if plan.every else ~standing.going(plan.steps)
