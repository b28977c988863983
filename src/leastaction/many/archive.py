"""An ensemble on disk: blocks of rows of chunks of trajectories (Zarr through `leastaction.store`).

    run.zarr/q, p          (B, K, n), cut into chunks of trajectories and these into blocks of rows
    run.zarr/start_…       where the trajectories begin
    run.zarr/status, …     what there is to say of each trajectory, and t: written when a run ends, for other readers
    run.zarr/checkpoint/   `state`: how many steps are planned; `chunk-…`: where a chunk of trajectories stands, how
                           many of its rows the arrays have, and those that they do not have yet; `told`: for how many
                           steps the arrays for other readers were written last; `lock`

Each chunk of trajectories is a run of its own, with a checkpoint of its own: blocks of rows are written first, then the
checkpoint that counts them. What no checkpoint counts does not exist, and rows that are counted never change. A last
state that `every` would not have kept goes when the run goes on; so it is never counted, and stays in the checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.many import lanes
from leastaction.many.execute import Chunk, Part
from leastaction.many.job import Block, FloatArray, Job, Standing, Start, Status
from leastaction.many.reductions import Event, Plan
from leastaction.methods import Galerkin, method
from leastaction.program import Program
from leastaction.store.archive import Archive, to_json
from leastaction.store.checkpoint import Checkpoint
from leastaction.store.errors import StoreError
from leastaction.store.run import CHECKPOINT_SECONDS
from leastaction.store.stored import description
from leastaction.store.systems import ByProgram

KIND = "ensemble"
STANDING_BYTES = 2**22  # of a chunk of trajectories, in its checkpoints
BLOCK_BYTES = 2**21  # of q in a block of rows
SMALLEST_BLOCK_BYTES = 2**16  # where a run is short, since it may be continued
TABLE_BYTES = 2**22  # of a chunk of the arrays for other readers


class Disk:
    """An archive, as a run writes it.

    length   trajectories in a chunk
    rows     in a block
    """

    def __init__(self, archive: Archive, job: Job) -> None:
        self.archive, self.job = archive, job
        self.size, self.length, self.rows = (int(archive.header[name]) for name in ("size", "length", "rows"))

    @classmethod
    def open(cls, archive: Archive) -> Disk:
        disk = cls(archive, _job(archive.header))
        disk.job = replace(disk.job, steps=disk.planned())
        return disk

    @classmethod
    def create(cls, path: FilePath, job: Job, start: Start, usual: list[Part]) -> Disk:
        size, n = len(start), job.system.n
        length = _length(job, start, usual[0][1] - usual[0][0])
        rows = max(SMALLEST_BLOCK_BYTES // (8 * n * length), min(BLOCK_BYTES // (8 * n * length), job.kept), 1)
        header = {
            "kind": KIND,
            **description(job.system, job.method, job.t0, job.h, job.every),
            "until": None if job.until is None else [job.until[0].hex(), job.until[1]],
            "size": size,
            "length": length,
            "rows": rows if job.every else 1,
            "event": None if job.plan.program is None else job.plan.program.to_json(),
            "events": [[event.direction, event.most, event.stop] for event in job.plan.events],
            "kinds": job.plan.kinds,
        }
        archive = Archive.create(path, to_json(header), {})
        for name, _ in columns(job):
            cuts = length, int(header["rows"])
            archive.add(name, (size, job.kept, n), cuts, np.dtype(float), ("trajectory", "t", "dof"), np.nan)
        cut = max(SMALLEST_BLOCK_BYTES // 8, min(job.kept, TABLE_BYTES // 8))
        archive.add("t", (job.kept,), (cut,), np.dtype(float), ("t",), np.nan)
        for name, like in Standing.empty(job, 0).found().items():
            if 0 not in like.shape[1:]:
                dims, fill = _TABLES[name]
                archive.add(name, (size, *like.shape[1:]), (_table_length(like, size),), like.dtype, dims, fill)
        for field in fields(start):
            values = getattr(start, field.name)
            if values.ndim == 1 or values.shape[1]:
                dims = ("trajectory",) if values.ndim == 1 else ("trajectory", f"start_{field.name}_entry")
                missing = np.nan if values.dtype == float else int(Status.PENDING)  # what no trajectory begins with
                pieces = (_table_length(values, size),)
                archive.add(f"start_{field.name}", values.shape, pieces, values.dtype, dims, missing)
                archive.put(f"start_{field.name}", (0,), values)
        archive.commit(_facts(steps=job.steps))
        return cls(archive, job)

    def start(self) -> Start:
        whole = (0, self.size)
        status = self.archive.read("start_status", whole)
        if (status == Status.PENDING).any():
            raise StoreError(f"{self.archive.path}/start_status is missing: a chunk's file is not there")
        begins = status == Status.COMPLETE  # a trajectory that cannot begin may have neither p nor v
        found = {
            name: self.archive.read(f"start_{name}", whole, needed=needed)
            for name, needed in (("q", True), ("p", begins), ("v", begins))
        }
        return Start(**found, params=self.params(), status=status)

    def params(self) -> FloatArray:
        count = self.job.system.point.inputs[-1][1]
        return self.archive.read("start_params", (0, self.size)) if count else np.zeros((self.size, 0))

    def planned(self) -> int:
        return int(self.archive.checkpoint().facts["steps"])

    def extend(self, steps: int) -> None:
        """Plan more steps; what is planned is what was recorded last."""
        self.job = replace(self.job, steps=self.job.steps + steps)
        self.archive.commit(_facts(steps=self.job.steps))

    def prepare(self) -> None:
        """The arrays as long as planned."""
        for name, _ in columns(self.job):
            self.archive.resize(name, (self.size, self.job.kept, self.job.system.n))
        self.archive.resize("t", (self.job.kept,))

    def chunks(self) -> list[Part]:
        return [(begin, min(begin + self.length, self.size)) for begin in range(0, self.size, self.length)]

    def parts(self, usual: list[Part]) -> list[Part]:
        """The chunks that are not at their end."""
        return [part for part in self.chunks() if self._unfinished(*part)]

    def _unfinished(self, begin: int, end: int) -> bool:
        checkpoint = self.checkpoint(begin)
        return checkpoint is None or bool(standing_of(checkpoint).going(self.job.steps).any())

    def checkpoint(self, begin: int) -> Checkpoint | None:
        """Where the chunk from this trajectory on stood last, or None if it has not begun."""
        name = self._name(begin)
        return self.archive.checkpoint(name) if self.archive.has_checkpoint(name) else None

    def commit(self, begin: int, checkpoint: Checkpoint) -> None:
        self.archive.commit(checkpoint, self._name(begin))

    def _name(self, begin: int) -> str:
        return f"chunk-{begin // self.length}"

    def chunk(self, begin: int, end: int) -> Chunk:
        return _OnDisk(self, begin, end)

    def tell(self, standing: Standing) -> None:
        """For readers of Zarr alone: the times, and what there is to say of each trajectory."""
        job, archive = self.job, self.archive
        try:
            told = int(archive.checkpoint("told").facts["steps"])
        except StoreError:  # not there yet, or damaged: all times once more
            told = 0
        cut = archive.cut("t")
        for first in range(int(job.regular(told)) // cut * cut, job.kept, cut):
            archive.put("t", (first,), job.times(first, min(first + cut, job.kept)))
        for name, values in standing.found().items():
            if archive.has(name):
                archive.put(name, (0,), values)
        archive.commit(_facts(steps=job.steps), "told")


class _OnDisk:
    """Some trajectories on their way to the disk: `whole` rows are there, those of the block in checkpoints only."""

    seconds = CHECKPOINT_SECONDS

    def __init__(self, disk: Disk, begin: int, end: int) -> None:
        self.disk, self.job, self.begin, self.end = disk, disk.job, begin, end
        self.committed = time.monotonic()
        self.standing, self.whole = Standing.empty(self.job, end - begin), 0
        checkpoint = disk.checkpoint(begin)
        if checkpoint is None:
            self.block = self._empty()
            return
        self.standing, counted = standing_of(checkpoint), int(checkpoint.facts["whole"])
        # A block that was written before it was full is taken back into the checkpoint, before it is written again.
        self.whole = counted // disk.rows * disk.rows
        self.block = self._empty()
        known = counted - self.whole
        tail = known_rows(self.job, self.standing, counted, checkpoint.tail)
        self.block.rows[:, known : known + tail.shape[1]] = tail
        if known:
            needed = rows_needed(self.job, self.standing, self.whole, counted)
            for name, place in columns(self.job):
                spans = (begin, end), (self.whole, counted)
                self.block.rows[:, :known, place] = disk.archive.read(name, *spans, needed=needed)
            self._commit()

    def _empty(self) -> Block:
        count = min(self.disk.rows, self.job.kept - self.whole)
        return Block.empty(self.job, self.end - self.begin, self.whole, count)

    def next(self) -> Block | None:
        begun = bool(self.standing.state)
        return None if begun and not self.standing.going(self.job.steps).any() else self.block

    def take(self, block: Block) -> None:
        if not self.standing.going(self.job.steps).any():
            self._put()
            self._commit(max(self.whole, min(int(self.job.regular(self.standing.steps.max())), self.job.kept)))
        elif not self.standing.going(block.end(self.job)).any():
            self._put()
            self.whole += block.rows.shape[1]
            self.block = self._empty()
            if time.monotonic() - self.committed > self.seconds:
                self._commit()
        else:
            self._commit()

    def _put(self) -> None:
        for name, place in columns(self.job):
            self.disk.archive.put(name, (self.begin, self.whole), self.block.rows[..., place])

    def _commit(self, counted: int | None = None) -> None:
        """Write down where the trajectories stand, and the rows after those that count in the arrays."""
        counted = self.whole if counted is None else counted
        reached = int(self.standing.steps.max())
        there = self.job.kept if reached == self.job.steps or self.job.every == 0 else int(self.job.regular(reached))
        tail = self.block.rows[:, counted - self.whole : max(there - self.whole, 0)]
        arrays = {f"found_{name}": array for name, array in self.standing.found().items()}
        arrays |= {f"state_{name}": array for name, array in self.standing.state.items()}
        self.disk.commit(self.begin, Checkpoint({"whole": counted}, tail, arrays))
        self.committed = time.monotonic()


def columns(job: Job) -> tuple[tuple[str, slice], ...]:
    """Where rows have q and p."""
    return ("q", slice(job.system.n)), ("p", slice(job.system.n, None))


def standing_of(checkpoint: Checkpoint) -> Standing:
    found = {name[6:]: array for name, array in checkpoint.state.items() if name.startswith("found_")}
    state = {name[6:]: array for name, array in checkpoint.state.items() if name.startswith("state_")}
    return Standing(**found, state=state)


def known_rows(job: Job, standing: Standing, counted: int, tail: FloatArray) -> FloatArray:
    """The rows of a checkpoint that are rows of this job: the last state of a shorter one may not be."""
    reached = int(standing.steps.max())
    if job.every == 0 or reached == job.steps:
        return tail
    return tail[:, : int(job.regular(reached)) - counted]


def rows_there(job: Job, standing: Standing, first: int, end: int) -> NDArray[np.bool_]:
    """Which of the rows first … end each trajectory has, (B, end − first)."""
    row = np.arange(first, end)
    there = row < job.regular(standing.steps)[:, None]
    ended = standing.steps == job.steps if job.every else ~standing.going(job.steps)
    return there | ((row == job.kept - 1) & ended[:, None])


def rows_needed(job: Job, standing: Standing, first: int, end: int) -> NDArray[np.bool_]:
    """Which of them are finite: all, but for trajectories that could not even begin."""
    begun = (standing.steps > 0) | (standing.status == Status.COMPLETE)
    return rows_there(job, standing, first, end) & begun[:, None]


def _length(job: Job, start: Start, usual: int) -> int:
    """Trajectories in a chunk: as usual, or fewer if the checkpoints would become large; whole groups of lanes."""
    n = job.system.n
    # A stepper alone keeps (t, h, q, p, z, params), what its sums carry and the last velocity.
    alone = 2 + 5 * n + (job.method.s * n if isinstance(job.method, Galerkin) else 0) + start.params.shape[1]
    state = lanes.state_size(job) if lanes.fits(job) else alone
    row = 8 * (state + 6 + len(job.plan.events) + job.plan.records * (1 + 2 * n))
    L = lanes.width(job)
    return min(len(start), max(L, min(usual, STANDING_BYTES // row) // L * L))


def _table_length(values: NDArray[Any], size: int) -> int:
    return max(1, min(size, TABLE_BYTES // (values.itemsize * int(np.prod(values.shape[1:])))))


def _facts(**facts: Any) -> Checkpoint:
    return Checkpoint(facts, np.zeros((0, 0)), {})


_TABLES: dict[str, tuple[tuple[str, ...], Any]] = {
    "status": (("trajectory",), int(Status.PENDING)),
    "steps": (("trajectory",), 0),
    "iterations": (("trajectory",), 0),
    "continued": (("trajectory",), 0),
    "energy": (("trajectory", "lowest_highest"), np.nan),
    "counts": (("trajectory", "event"), 0),
    "crossings": (("trajectory", "crossing", "t_q_p"), np.nan),
}


def _job(header: Mapping[str, Any]) -> Job:
    """What a header says; the number of steps may have grown since."""
    plan = Plan(
        None if header["event"] is None else Program.from_json(header["event"]),
        tuple(Event(*event) for event in header["events"]),
        tuple((name, kind) for name, kind in header["kinds"]),
    )
    until = header["until"]
    return Job(
        system=ByProgram.of(header).system,
        method=method(header["method"]),
        t0=float.fromhex(header["t0"]),
        h=float.fromhex(header["h"]),
        steps=0,
        every=int(header["every"]),
        plan=plan,
        until=None if until is None else (float.fromhex(until[0]), int(until[1])),
    )
