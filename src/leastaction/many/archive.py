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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.layout import MOST_EVENTS
from leastaction.lagrangian import Lagrangian
from leastaction.many import lanes
from leastaction.many.execute import Chunk, Part
from leastaction.many.job import Block, FloatArray, Job, Standing, Start, Status
from leastaction.many.reductions import Event, Plan
from leastaction.methods import Galerkin, method
from leastaction.program import Program
from leastaction.reading import EXPANSION, entry, floats, integer, listing, text
from leastaction.store.archive import Archive, Layout
from leastaction.store.checkpoint import Checkpoint
from leastaction.store.errors import StoreError
from leastaction.store.run import CHECKPOINT_SECONDS
from leastaction.store.stored import description
from leastaction.store.systems import ByProgram, check_integers

KIND = "ensemble"
KINDS = ("energy", "first", "section")
STANDING_BYTES = 2**22  # of a chunk of trajectories, in its checkpoints
BLOCK_BYTES = 2**21  # of q in a block of rows
SMALLEST_BLOCK_BYTES = 2**16  # where a run is short, since it may be continued
TABLE_BYTES = 2**22  # of a chunk of the arrays for other readers
# An archive of more trajectories has at least a byte for each; one of more bytes of crossings a tenth of them.
FEW_TRAJECTORIES, FEW_BYTES = 10**5, 2**28


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
        disk._check_size()
        return disk

    def _check_size(self) -> None:
        """Refuse more trajectories, or records of crossings, than the archive's files can be of."""
        records = 8 * self.size * self.job.plan.records * (1 + 2 * self.job.system.n)
        if self.size <= FEW_TRAJECTORIES and records <= FEW_BYTES:
            return
        there = sum(file.stat().st_size for file in self.archive.path.rglob("*") if file.is_file())
        if self.size > max(FEW_TRAJECTORIES, there) or records > max(FEW_BYTES, EXPANSION * there):
            raise ValueError(f"it tells of {self.size} trajectories and {records} bytes of crossings in {there} bytes")

    @classmethod
    @contextmanager
    def creating(cls, path: FilePath, job: Job, start: Start, usual: list[Part]) -> Iterator[Disk]:
        """A new archive, its lock held."""
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
        begins = {
            name: values
            for name, values in ((field.name, getattr(start, field.name)) for field in fields(start))
            if values.ndim == 1 or values.shape[1]
        }
        with Archive.creating(path, header, _layouts(job, size, length, int(header["rows"]), begins)) as archive:
            for name, values in begins.items():
                archive.put(f"start_{name}", (0,), values)
            archive.commit(_facts(steps=job.steps))
            yield cls(archive, job)

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
        return integer(entry(self.archive.checkpoint().facts, "steps"), "steps", 1)

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
        if not self.archive.has_checkpoint(name):
            return None
        checkpoint = self.archive.checkpoint(name)
        try:
            self._check(checkpoint, min(self.length, self.size - begin))
        except ValueError as error:
            raise StoreError(
                f"the checkpoint {name} of {self.archive.path} cannot be one of its run: {error}"
            ) from error
        return checkpoint

    def _check(self, checkpoint: Checkpoint, count: int) -> None:
        """Whether a checkpoint can be that of so many trajectories of this run: native loops would trust it."""
        job = self.job
        empty = Standing.empty(job, 0).found()
        for name, like in empty.items():
            floats(checkpoint.state, f"found_{name}", (count, *like.shape[1:]), like.dtype)
        if extra := [name for name in checkpoint.state if not name.startswith(("state_", "found_"))]:
            raise ValueError(f"it holds {extra[0]!r}")
        standing = standing_of(checkpoint)
        for name in ("steps", "iterations", "continued", "counts"):
            if (getattr(standing, name) < 0).any():
                raise ValueError(f"{name} must not be negative")
        if not np.isin(standing.status, list(Status)).all():
            raise ValueError(f"status must be one of {list(map(int, Status))}")
        planned = max(job.steps, self.planned())
        if (standing.steps > planned).any():
            raise ValueError(f"no trajectory can have done more than the {planned} steps planned")
        if any(array.dtype not in (np.dtype(float), np.dtype(np.int64)) for array in standing.state.values()):
            raise ValueError("the state must hold floats and integers")
        if any(len(array) != count for array in standing.state.values() if array.ndim):
            raise ValueError(f"the state must have a row for each of {count} trajectories")
        if "stepper_integers" in standing.state:
            check_integers(job.method, standing.state["stepper_integers"], standing.steps)
        whole = integer(entry(checkpoint.facts, "whole"), "whole", 0, planned + 1)
        floats({"tail": checkpoint.tail}, "tail", (count, None, 2 * job.system.n))
        if whole + checkpoint.tail.shape[1] > planned + 2:
            raise ValueError(f"{whole} and {checkpoint.tail.shape[1]} rows are more than {planned} steps have")

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
            told = integer(entry(archive.checkpoint("told").facts, "steps"), "steps", 0, job.steps)
        except (StoreError, ValueError):  # not there yet, or damaged: all times once more
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


def _layouts(job: Job, size: int, length: int, rows: int, begins: Mapping[str, NDArray[Any]]) -> dict[str, Layout]:
    """All arrays of an archive: states, times, what there is to say of each trajectory, and where they begin."""
    n, real = job.system.n, np.dtype(float)
    dims: tuple[str, ...] = ("trajectory", "t", "dof")
    arrays = {name: Layout((size, job.kept, n), (length, rows), real, dims, np.nan) for name, _ in columns(job)}
    cut = max(SMALLEST_BLOCK_BYTES // 8, min(job.kept, TABLE_BYTES // 8))
    arrays["t"] = Layout((job.kept,), (cut,), real, ("t",), np.nan)
    for name, like in Standing.empty(job, 0).found().items():
        if 0 not in like.shape[1:]:
            dims, fill = _TABLES[name]
            arrays[name] = Layout((size, *like.shape[1:]), (_table_length(like, size),), like.dtype, dims, fill)
    for name, values in begins.items():
        dims = ("trajectory",) if values.ndim == 1 else ("trajectory", f"start_{name}_entry")
        missing = np.nan if values.dtype == float else int(Status.PENDING)  # what no trajectory begins with
        arrays[f"start_{name}"] = Layout(values.shape, (_table_length(values, size),), values.dtype, dims, missing)
    return arrays


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
    """What a header says, checked; the number of steps may have grown since."""
    system = ByProgram.of(header).system
    until = header["until"]
    return Job(
        system=system,
        method=method(header["method"]),
        t0=float.fromhex(header["t0"]),
        h=float.fromhex(header["h"]),
        steps=0,
        every=int(header["every"]),
        plan=_plan(header, system),
        until=None if until is None else (float.fromhex(until[0]), int(until[1])),
    )


def _plan(header: Mapping[str, Any], system: Lagrangian) -> Plan:
    """What is computed on the way, as a header has it."""
    events = []
    for event in listing(entry(header, "events"), "events"):
        direction, most, stop = listing(event, "an event", 3)
        integer(most, "how many crossings are kept", 1)
        events.append(Event(integer(direction, "an event's direction", -1, 1), most, bool(stop)))
    kinds = [listing(kind, "a reduction", 2) for kind in listing(entry(header, "kinds"), "kinds")]
    if any(kind not in KINDS for _, kind in kinds) or len(events) > MOST_EVENTS:
        raise ValueError(f"reductions are {', '.join(KINDS)}, of at most {MOST_EVENTS} events; got {kinds}")
    if sum(kind != "energy" for _, kind in kinds) != len(events) or (header["event"] is None) != (not events):
        raise ValueError(f"{len(events)} events do not belong to the reductions {kinds}")
    program = None if header["event"] is None else Program.from_json(header["event"])
    if program is not None:
        n, size = system.n, system.program.inputs[-1][1]
        blocks = (("t", 1), ("q", n), ("p", n), ("params", size)), (("g", len(events)),)
        if (program.inputs, program.outputs) != blocks:
            raise ValueError(f"the event functions take {blocks[0]} to {blocks[1]}; got {program.inputs}")
    return Plan(program, tuple(events), tuple((text(name, "a reduction's name"), kind) for name, kind in kinds))
