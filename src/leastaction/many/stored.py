"""What an archive of an ensemble shows: how far every chunk of trajectories has come, their states left on disk."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from leastaction.many.archive import Disk, columns, known_rows, rows_needed, rows_there, standing_of
from leastaction.many.job import FloatArray, Job, Standing, Status
from leastaction.store.errors import StoreError
from leastaction.store.lazy import LazyArray

TIMES = 2**18  # computed at once


@dataclass(frozen=True, eq=False)
class View:
    """An archive at one moment.

    standing   of all trajectories, PENDING those that have not come to their end
    t, q, p    (K,), (B, K, n), (B, K, n), read when they are asked for; NaN where there is nothing yet
    """

    job: Job
    standing: Standing
    t: LazyArray
    q: LazyArray
    p: LazyArray


def view(disk: Disk) -> View:
    """What is there, also while it is being written. A chunk whose checkpoint is damaged is shown as not begun."""
    standing = Standing.empty(disk.job, disk.size)
    held: list[tuple[int, FloatArray]] = []
    n = disk.job.system.n
    for begin, end in disk.chunks():
        try:
            checkpoint = disk.checkpoint(begin)
        except StoreError as error:
            checkpoint = None
            warnings.warn(
                f"{error}; trajectories {begin} … {end} are shown as not run. Without that file la.resume runs them",
                RuntimeWarning,
                stacklevel=4,
            )
        if checkpoint is None:
            held.append((0, np.zeros((end - begin, 0, 2 * n))))
            continue
        standing.part(begin, end).put(standing_of(checkpoint))
        held.append((int(checkpoint.facts["whole"]), checkpoint.tail))
    # The plan after the chunks: no chunk has gone beyond it.
    job = replace(disk.job, steps=disk.planned())
    held = [
        (whole, known_rows(job, standing.part(*part), whole, tail))
        for part, (whole, tail) in zip(disk.chunks(), held, strict=True)
    ]
    shown = replace(
        standing, status=np.where(standing.going(job.steps), Status.PENDING, standing.status).astype(np.int8)
    )
    times = LazyArray("t", (job.kept,), (TIMES,), lambda span: job.times(*span))
    q, p = (_states(disk, job, standing, held, name, place) for name, place in columns(job))
    return View(job, shown, times, q, p)


def _states(
    disk: Disk, job: Job, standing: Standing, held: list[tuple[int, FloatArray]], name: str, place: slice
) -> LazyArray:
    """q or p: rows that count in the array, rows in the chunk's checkpoint, NaN."""
    shape = (disk.size, job.kept, job.system.n)

    def box(trajectories: tuple[int, int], rows: tuple[int, int]) -> FloatArray:
        (i, j), (first, end) = trajectories, rows
        chunk = i // disk.length
        whole, tail = held[chunk]
        part, values = standing.part(i, j), np.full((j - i, end - first, job.system.n), np.nan)
        counted = min(max(whole, first), end)
        if first < counted:
            needed = rows_needed(job, part, first, counted)
            values[:, : counted - first] = disk.archive.read(name, trajectories, (first, counted), needed=needed)
        begin = chunk * disk.length
        rest = tail[i - begin : j - begin, max(first - whole, 0) : max(end - whole, 0), place]
        values[:, counted - first : counted - first + rest.shape[1]] = rest
        values[~rows_there(job, part, first, end)] = np.nan
        return values

    return LazyArray(f"{name} of {disk.archive.path.name}", shape, (disk.length, disk.rows), box)
