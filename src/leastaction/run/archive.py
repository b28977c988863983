"""A run on disk: blocks of rows of chunks of trajectories (Zarr through `leastaction.store`).

    run.zarr/q, p, …       (B, K, n), cut into chunks of trajectories and these into blocks of rows; (K, n) of one path.
                           At more digits each number is text (`store.texts`)
    run.zarr/start_…       where the trajectories begin
    run.zarr/status, …     what there is to say of each trajectory, and t: written when a run ends, for other readers
    run.zarr/checkpoint/   `inputs`: the inputs of the trajectories, if the system has inputs;
                           `state`: how many steps are planned; `chunk-…`: where a chunk of trajectories stands, how
                           many of its rows the arrays have, and the rows that the arrays do not have yet; `told`: for
                           how many steps the arrays for other readers were written last; `system`: the arrays of a
                           system that has no Program; `lock`

Each chunk of trajectories is a run of its own, with a checkpoint of its own: blocks of rows are written first, then the
checkpoint that counts them. What no checkpoint counts does not exist, and rows that are counted never change. A last
state that `every` would not have kept is where the trajectory stands. This state is never counted as a row.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, fields, replace
from functools import cached_property
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction import events as happening
from leastaction.errors import StoreError
from leastaction.numbers.notation import BINARY_NUMBER, to_text
from leastaction.numbers.precision import libraries
from leastaction.numbers.rounding import MOST_DIGITS, Digits, Reals, reals
from leastaction.program import Program
from leastaction.reading import MOST_STEPS, entry, floats, integer, listing, mapping, numbers, real, text
from leastaction.run.advice import Advice
from leastaction.run.drive import Part, check_state, lanes, state_size
from leastaction.run.given_inputs import check_span, points_of
from leastaction.run.given_inputs import from_record as inputs_from_record
from leastaction.run.plan import Plan
from leastaction.run.standing import Block, Standing, Status
from leastaction.run.starts import Starts
from leastaction.step.inputs import Inputs
from leastaction.step.status import STAGES, Failure
from leastaction.step.stored_row import Row
from leastaction.store import texts
from leastaction.store.archive import Archive, ArrayLayout
from leastaction.store.checkpoint import Checkpoint
from leastaction.store.header import checked_output, method_of_file
from leastaction.systems.protocol import System, from_record
from leastaction.version import __version__

PATH, ENSEMBLE = "path", "ensemble"
INPUTS = "inputs"  # the file of the inputs that drive the trajectories
CHECKPOINT_SECONDS = 2.0  # the most of a run that is lost when the run is killed
STANDING_BYTES = 2**22  # size of a checkpoint of a chunk of trajectories
BLOCK_BYTES = 2**19  # size of a block of rows; to compress and write a block costs less than one percent of its steps
USUAL_ROWS, LARGE_BLOCK_BYTES = 64, 2**22  # a block of larger rows has this many, if the block stays below this size
TABLE_BYTES = 2**22  # size of a chunk of the arrays for other readers
SMALLEST_TABLE_BYTES = 2**16  # the same for a short run, since the run may be continued
FEW_TRAJECTORIES = 10**5  # an archive of more trajectories has at least one byte for each of them


class Disk:
    """An archive, as a run writes it.

    length   trajectories in a chunk
    rows     in a block
    """

    def __init__(self, archive: Archive, plan: Plan) -> None:
        self.archive, self.plan = archive, plan
        self.size, self.length, self.rows = (int(archive.header[name]) for name in ("size", "length", "rows"))
        self._growing = threading.Lock()
        self._starts: Starts | None = None

    @classmethod
    def open(cls, archive: Archive) -> Disk:
        disk = cls(archive, _plan(archive))
        disk.plan = replace(disk.plan, steps=disk.planned())
        disk._check_size()
        return disk

    def _check_size(self) -> None:
        """Refuse a number of trajectories for which the archive's files are too small."""
        if self.size <= FEW_TRAJECTORIES:
            return
        there = sum(file.stat().st_size for file in self.archive.path.rglob("*") if file.is_file())
        if self.size > there:
            raise ValueError(f"it tells of {self.size} trajectories in {there} bytes")

    @classmethod
    @contextmanager
    def creating(cls, path: FilePath, plan: Plan, starts: Starts, usual: list[Part]) -> Iterator[Disk]:
        """A new archive, its lock held."""
        arrays = plan.system.arrays()  # a system that cannot be kept is refused before anything is done
        length = _length(plan, starts, usual[0][1] - usual[0][0])
        header = _header(plan, len(starts), length)
        begins = {
            name: texts.written(values, plan.reals)
            for name, values in starts.arrays().items()
            if values.ndim == 1 or values.shape[1]
        }

        def begin(archive: Archive) -> None:
            if arrays:
                archive.keep(arrays)
            if starts.inputs is not None:
                archive.commit(_inputs_file(starts.inputs), INPUTS)
            for name, values in begins.items():
                archive.put(f"start_{name}", (0,), values)
            archive.commit(_facts(steps=plan.steps))

        layouts = _layouts(plan, starts, length, int(header["rows"]), begins)
        with Archive.creating(path, header, layouts, begin) as archive:
            disk = cls(archive, plan)
            disk._starts = starts
            yield disk

    @property
    def starts(self) -> Starts:
        if self._starts is None:
            self._starts = self._read_starts()
        return self._starts

    def _read_starts(self) -> Starts:
        whole, n = (0, self.size), self.plan.row.n
        status = self.archive.read("start_status", whole)
        if (status == Status.PENDING).any():
            raise StoreError(f"{self.archive.path}/start_status is missing: a chunk's file is not there")
        begins = status == Status.COMPLETE  # a trajectory that cannot begin may have neither p nor v
        found = {
            name: texts.read(self.archive.read(f"start_{name}", whole, needed=needed))
            for name, needed in (("q", True), ("p", begins), ("v", begins))
            if name != "v" or self.archive.has("start_v")
        }
        v = found.get("v", self.plan.reals.array(np.zeros((self.size, 0))))
        if any(found[name].shape != (self.size, n) for name in ("q", "p")) or v.shape[1] not in (0, n):
            raise ValueError(f"start_q, start_p and start_v must have {n} numbers for each of {self.size} trajectories")
        return Starts(found["q"], found["p"], v, self.params, status, self.inputs)

    @cached_property
    def inputs(self) -> Inputs | None:
        """What drives the trajectories."""
        plan, system = self.plan, self.plan.system
        if not system.inputs:
            return None
        file = self.archive.checkpoint(INPUTS)
        record, points = entry(file.facts, "inputs"), points_of(plan.method, plan.reals)
        c = points[0] if isinstance(points[1], str) else points[1]
        found = inputs_from_record(record, file.state, system.inputs, plan.t0, plan.h, c, plan.reals, plan.many)
        assert found is not None
        if found.batch not in (1, self.size):
            raise ValueError(f"it has inputs of {found.batch} trajectories, and {self.size} trajectories")
        check_span(found, self.planned(), points[0])
        return found

    def replace_inputs(self, inputs: Inputs) -> None:
        """Replace the stored inputs by inputs that last longer."""
        self.archive.commit(_inputs_file(inputs), INPUTS)
        self.__dict__["inputs"] = inputs
        if self._starts is not None:
            self._starts = replace(self._starts, inputs=inputs)

    @cached_property
    def params(self) -> NDArray[Any]:
        """Parameters of each trajectory."""
        shape = self.size, len(self.plan.system.values())
        if not shape[1]:
            return self.plan.reals.array(np.zeros(shape))
        found = texts.read(self.archive.read("start_params", (0, self.size)))
        if found.shape != shape:
            raise ValueError(f"start_params must have shape {shape}; got {found.shape}")
        return found

    def planned(self) -> int:
        return integer(entry(self.archive.checkpoint().facts, "steps"), "steps", 1)

    def extend(self, steps: int) -> None:
        """Plan this number of steps; the number that was recorded last is the one that counts."""
        self.plan = replace(self.plan, steps=steps)
        if steps > self.planned():
            self.archive.commit(_facts(steps=steps))

    def done(self) -> int:
        found = [self.checkpoint(begin) for begin, _ in self.chunks()]
        return sum(standing_of(checkpoint).progress(self.plan) for checkpoint in found if checkpoint is not None)

    def chunks(self) -> list[Part]:
        return [(begin, min(begin + self.length, self.size)) for begin in range(0, self.size, self.length)]

    def parts(self, usual: list[Part]) -> list[Part]:
        """The chunks that are not at their end."""
        return [part for part in self.chunks() if self._unfinished(*part)]

    def _unfinished(self, begin: int, end: int) -> bool:
        checkpoint = self.checkpoint(begin)
        return checkpoint is None or bool(standing_of(checkpoint).going(self.plan.steps).any())

    def checkpoint(self, begin: int) -> Checkpoint | None:
        """The last checkpoint of the chunk that begins with this trajectory, or None if the chunk has not begun."""
        name = self._name(begin)
        if not self.archive.has_checkpoint(name):
            return None
        checkpoint = self.archive.checkpoint(name)
        try:
            checkpoint = Checkpoint(
                checkpoint.facts,
                texts.read(checkpoint.tail),
                {name: texts.read(array) for name, array in checkpoint.state.items()},
            )
            self._check(checkpoint, min(self.length, self.size - begin))
        except ValueError as error:
            raise StoreError(
                f"the checkpoint {name} of {self.archive.path} cannot be one of its run: {error}"
            ) from error
        return checkpoint

    def _check(self, checkpoint: Checkpoint, count: int) -> None:
        """Check that a checkpoint can belong to this number of trajectories of this run."""
        plan = self.plan
        for name, like in Standing.unknown(plan, 0).found().items():
            floats(checkpoint.state, f"found_{name}", (count, *like.shape[1:]), like.dtype)
        if extra := [name for name in checkpoint.state if not name.startswith(("state_", "found_"))]:
            raise ValueError(f"it holds {extra[0]!r}")
        standing = standing_of(checkpoint)
        for name in ("steps", "iterations", "continued"):
            if (getattr(standing, name) < 0).any():
                raise ValueError(f"{name} must not be negative")
        if not np.isin(standing.status, list(Status)).all():
            raise ValueError(f"status must be one of {list(map(int, Status))}")
        planned = max(plan.steps, self.planned())
        if (standing.steps > planned).any():
            raise ValueError(f"no trajectory can have done more than the {planned} steps planned")
        if any(
            array.dtype not in (plan.dtype, np.dtype(float), np.dtype(np.int64)) for array in standing.state.values()
        ):
            raise ValueError("the state must hold numbers of the run, floats and integers")
        if any(array.ndim == 0 or len(array) != count for array in standing.state.values()):
            raise ValueError(f"the state must have a row for each of {count} trajectories")
        if plan.events is not None and standing.state:
            floats(standing.state, "event_counts", (count, 2, len(plan.events)), np.dtype(np.int64))
            floats(standing.state, "event_rows", (count, None, 1 + 3 * plan.row.n), plan.dtype)
            standing.logs(plan)
        rows = int(plan.regular(standing.steps.max(initial=0)))
        whole = integer(entry(checkpoint.facts, "whole"), "whole", 0, rows)
        tail = floats({"tail": checkpoint.tail}, "tail", (count, None, plan.row.width), plan.dtype)
        if whole + tail.shape[1] != rows:
            raise ValueError(f"{whole} and {tail.shape[1]} rows are not those of {standing.steps.max()} steps")
        if not isinstance(entry(checkpoint.facts, "ended"), bool):
            raise ValueError("ended must be true or false")
        mapping(entry(checkpoint.facts, "counts"), "counts")
        if (failure := entry(checkpoint.facts, "failure")) is not None:
            _failure(failure)

    def check_states(self) -> None:
        """Check that all chunks can go on from where they stand."""
        for begin, end in self.chunks():
            checkpoint = self.checkpoint(begin)
            if checkpoint is not None:
                check_state(self.plan, self.starts.part(begin, end), standing_of(checkpoint))

    def commit(self, begin: int, checkpoint: Checkpoint) -> None:
        self.archive.commit(checkpoint, self._name(begin))

    def _name(self, begin: int) -> str:
        return f"chunk-{begin // self.length}"

    def chunk(self, begin: int, end: int) -> _OnDisk:
        return _OnDisk(self, begin, end)

    def put(self, begin: int, first: int, rows: NDArray[Any]) -> None:
        """Rows of the trajectories from `begin` on, from row number `first` on, into the arrays."""
        plan, end = self.plan, first + rows.shape[1]
        if not rows.shape[1]:
            return
        for name in plan.row.shapes:
            values = texts.written(np.ascontiguousarray(plan.row.part(name, rows)), plan.reals)
            with self._growing:
                self.archive.grow(name, end, self._axis)
            self.archive.put(name, (begin, first) if plan.many else (first,), values if plan.many else values[0])

    @property
    def _axis(self) -> int:
        """The axis of the rows."""
        return 1 if self.plan.many else 0

    def read(self, name: str, part: Part, rows: Part, needed: NDArray[np.bool_]) -> NDArray[Any]:
        """Rows of some trajectories from the arrays, (B, R, …); those that are needed must be there."""
        if self.plan.many:
            return texts.read(self.archive.read(name, part, rows, needed=needed))
        return texts.read(self.archive.read(name, rows, needed=needed[0]))[None]

    def tell(self, standing: Standing, t: NDArray[Any]) -> None:
        """For readers of Zarr alone: the times t, and what there is to say of each trajectory."""
        plan, archive = self.plan, self.archive
        alike = plan.many and not plan.open  # all have the same times
        last = plan.steps if alike else int(standing.steps.max())
        kept = plan.kept if alike else standing.most_rows(plan)
        try:
            told = integer(entry(archive.checkpoint("told").facts, "steps"), "steps", 0, last)
        except (StoreError, ValueError):  # the times are missing or damaged: write all of them again
            told = 0
        for name in plan.row.shapes:
            archive.cut_to(name, kept, self._axis)
        archive.cut_to("t", kept, 0)
        cut = archive.cut("t")
        for first in range(int(plan.regular(told)) // cut * cut, kept, cut):
            span = first, min(first + cut, kept)
            archive.put("t", (first,), texts.written(t[slice(*span)], plan.reals))
        for name, values in standing.found().items():
            if archive.has(name):
                archive.put(name, (0,), texts.written(values, plan.reals))
        archive.commit(_facts(steps=last), "told")


class _OnDisk:
    """Some trajectories on their way to the disk: `whole` rows are in the arrays, the block's in checkpoints only."""

    def __init__(self, disk: Disk, begin: int, end: int) -> None:
        self.disk, self.plan, self.begin, self.end = disk, disk.plan, begin, end
        self.seconds, self.lasting = CHECKPOINT_SECONDS, True
        self.committed = time.monotonic()
        checkpoint = disk.checkpoint(begin)
        if checkpoint is None:
            self.standing, self.whole = Standing.begin(self.plan, disk.starts.part(begin, end)), 0
            self.block = self._empty()
            if self.plan.every:
                self.block.rows[:, 0] = self.plan.row.kept(self.standing.at)
            return
        self.standing, counted = standing_of(checkpoint), int(checkpoint.facts["whole"])
        # A block that was written before it was full is taken back into the checkpoint, before it is written again.
        self.whole = counted // disk.rows * disk.rows
        self.block = self._empty()
        known = counted - self.whole
        self.block.rows[:, known : known + checkpoint.tail.shape[1]] = checkpoint.tail
        if known:
            needed = rows_needed(self.plan, self.standing, self.whole, counted)
            for name in self.plan.row.shapes:
                found = disk.read(name, (begin, end), (self.whole, counted), needed)
                self.plan.row.part(name, self.block.rows)[:, :known] = found
        if known or checkpoint.facts["ended"]:
            self._commit()

    def _empty(self) -> Block:
        count = min(self.disk.rows, int(self.plan.regular(self.plan.steps)) - self.whole)
        return Block.empty(self.plan, self.end - self.begin, self.whole, count)

    def next(self) -> Block | None:
        return self.block if self.standing.going(self.plan.steps).any() else None

    def take(self, block: Block) -> None:
        if not self.standing.going(self.plan.steps).any():
            self._finish()
        elif not self.standing.going(block.end(self.plan)).any():
            self.disk.put(self.begin, self.whole, block.rows)
            self.whole += block.rows.shape[1]
            self.block = self._empty()
            if time.monotonic() - self.committed > self.seconds:
                self._commit()
        else:
            self._commit()

    def _finish(self) -> None:
        """All rows to the arrays, with a last state that `every` would not have kept; then the checkpoint."""
        plan, standing = self.plan, self.standing
        reached = int(plan.regular(standing.steps.max()))
        rows = self.block.rows[:, : reached - self.whole]
        ended = standing.steps == plan.steps if plan.many and plan.every else np.ones(len(standing.steps), bool)
        kept = plan.rows(int(standing.steps.max())) if plan.many else standing.rows(plan)
        if kept > reached and ended.any():
            last = np.where(ended[:, None], plan.row.kept(standing.at), plan.reals.array(np.nan)[()])
            rows = np.concatenate([rows, last[:, None]], axis=1)
        self.disk.put(self.begin, self.whole, rows)
        self._commit(reached, ended=True)

    def close(self) -> None:
        """Close a run that ends before its plan does."""
        if self.next() is not None:
            self._finish()

    def _commit(self, counted: int | None = None, ended: bool = False) -> None:
        """Write a checkpoint: where the trajectories stand, and the rows that the arrays do not have yet."""
        plan, standing = self.plan, self.standing
        counted = self.whole if counted is None else counted
        there = int(plan.regular(standing.steps.max()))
        arrays = {f"found_{name}": array for name, array in standing.found().items()}
        arrays |= {f"state_{name}": array for name, array in standing.state.items()}
        facts = {"whole": counted, "ended": ended, **_told_facts(standing)}
        tail = self.block.rows[:, counted - self.whole : max(there - self.whole, 0)]
        written = {name: texts.written(array, plan.reals) for name, array in arrays.items()}
        self.disk.commit(self.begin, Checkpoint(facts, texts.written(tail, plan.reals), written))
        self.committed = time.monotonic()


def standing_of(checkpoint: Checkpoint) -> Standing:
    found = {name[6:]: array for name, array in checkpoint.state.items() if name.startswith("found_")}
    state = {name[6:]: array for name, array in checkpoint.state.items() if name.startswith("state_")}
    failure = checkpoint.facts["failure"]
    told = {"counts": checkpoint.facts["counts"], "failure": None if failure is None else _failure(failure)}
    return Standing(**found, state=state, told=told)


def _failure(record: Any) -> Failure:
    """A failure as a checkpoint keeps it, checked."""
    status, residual, iterations, reach, stage, step, time = listing(record, "failure", len(fields(Failure)))
    if stage not in STAGES:
        raise ValueError(f"the stage of a failure must be one of {STAGES}; got {stage!r}")
    numbers([status, residual, iterations, reach, step, time], "failure")
    return Failure(status, residual, iterations, reach, stage, step, time)


def _told_facts(standing: Standing) -> dict[str, Any]:
    """The facts that the stepper of one trajectory has told, as JSON keeps them."""
    failure: Failure | None = standing.told.get("failure")
    return {"counts": standing.told.get("counts", {}), "failure": None if failure is None else [*astuple(failure)]}


def rows_there(plan: Plan, standing: Standing, first: int, end: int) -> NDArray[np.bool_]:
    """Which of the rows first … end each trajectory has, (B, end − first)."""
    return np.asarray(np.arange(first, end) < plan.regular(standing.steps)[:, None])


def rows_needed(plan: Plan, standing: Standing, first: int, end: int) -> NDArray[np.bool_]:
    """Which of the rows first … end must be finite: those of all trajectories that could begin."""
    begun = (standing.steps > 0) | (standing.status == Status.COMPLETE)
    return rows_there(plan, standing, first, end) & begun[:, None]


def _length(plan: Plan, starts: Starts, usual: int) -> int:
    """Trajectories in a chunk: the usual number, or fewer if checkpoints would become large; whole groups of lanes."""
    row = _bytes(plan.reals) * (state_size(plan, starts) + plan.row.whole_width + 10)
    L = lanes(plan)
    return min(len(starts), max(L, min(usual, STANDING_BYTES // row) // L * L))


def _bytes(arithmetic: Reals) -> int:
    """Bytes of one number on disk."""
    return texts.width(arithmetic) if isinstance(arithmetic, Digits) else 8


def _block_rows(plan: Plan, length: int) -> int:
    """Rows in a block of this number of trajectories."""
    if plan.every == 0:
        return 1
    largest = max(int(np.prod(shape)) for shape in plan.row.shapes.values())
    row = _bytes(plan.reals) * length * largest
    return max(BLOCK_BYTES // row, min(USUAL_ROWS, LARGE_BLOCK_BYTES // row), 1)


def _header(plan: Plan, size: int, length: int) -> dict[str, Any]:
    """What an archive says of its run: everything but the state."""
    return {
        "kind": ENSEMBLE if plan.many else PATH,
        "version": __version__,
        "machine": machine(plan),
        "method": plan.method.text,
        "digits": plan.reals.digits,
        "t0": to_text(plan.t0),
        "h": to_text(plan.h),
        "every": plan.every,
        "open": plan.open,
        "until": None if plan.until is None else [to_text(plan.until[0]), plan.until[1]],
        "size": size,
        "length": length,
        "rows": _block_rows(plan, length),
        "output": None if plan.row.output is None else plan.row.output.tolist(),
        "varied": plan.row.varied,
        "energies": plan.energies,
        "events": None if plan.events is None else [_item(item) for item in plan.events.items],
        "event_functions": None if plan.events is None else plan.events.program.to_json(),
        "advice": None if plan.advice is None else plan.advice.record(),
        **plan.system.record(),
    }


def _item(item: happening.Watched) -> list[Any]:
    """One event as `_events` reads it."""
    restitution = None if item.restitution is None else to_text(item.restitution)
    return [item.name, item.direction, item.stop, item.most, restitution]


def machine(plan: Plan) -> str:
    """The facts about the machine that decide the last bits of a run."""
    return plan.system.machine() if plan.reals.digits is None else libraries()


def _layouts(
    plan: Plan, starts: Starts, length: int, rows: int, begins: Mapping[str, NDArray[Any]]
) -> dict[str, ArrayLayout]:
    """All arrays of an archive: states, times, what there is to say of each trajectory, and where they begin."""
    size, many = len(starts), plan.many
    kept, text = _kept_layout(plan)
    arrays = {}
    for name, shape in plan.row.shapes.items():
        dims: tuple[str, ...] = ("dof",) if len(shape) == 1 else (f"{name}_of", f"{name}_by")
        head, cuts, along = ((size, 0), (length, rows), ("trajectory", "t")) if many else ((0,), (rows,), ("t",))
        whole = (*head, *shape, *text)
        arrays[name] = ArrayLayout(whole, cuts, kept.dtype, (*along, *dims, *("text",) * len(text)), kept.fill)
    cut = max(SMALLEST_TABLE_BYTES // 8, min(plan.kept, TABLE_BYTES // 8)) if many else rows
    arrays["t"] = ArrayLayout((0, *text), (cut,), kept.dtype, ("t", *("text",) * len(text)), kept.fill)
    if many:
        for name, like in Standing.unknown(plan, 0).found().items():
            if name in _TABLES and 0 not in like.shape[1:]:
                dims, fill = _TABLES[name]
                arrays[name] = ArrayLayout(
                    (size, *like.shape[1:]), (_table_length(like, size),), like.dtype, dims, fill
                )
    for name, values in begins.items():
        dims = ("trajectory", f"start_{name}_entry", "text")[: values.ndim]
        missing = {"f": np.nan, "u": 0}.get(values.dtype.kind, int(Status.PENDING))  # no start has this value
        arrays[f"start_{name}"] = ArrayLayout(values.shape, (_table_length(values, size),), values.dtype, dims, missing)
    return arrays


def _kept_layout(plan: Plan) -> tuple[Any, tuple[int, ...]]:
    """Type and fill value of the numbers of a run on disk, and the shape of one number."""
    if isinstance(plan.reals, Digits):
        return ArrayLayout((), (), np.dtype(np.uint8), (), 0), (texts.width(plan.reals),)
    return ArrayLayout((), (), np.dtype(float), (), np.nan), ()


def _table_length(values: NDArray[Any], size: int) -> int:
    return max(1, min(size, TABLE_BYTES // (values.itemsize * int(np.prod(values.shape[1:])))))


def _inputs_file(inputs: Inputs) -> Checkpoint:
    return Checkpoint({"inputs": inputs.record()}, np.zeros((0, 0)), inputs.arrays())


def _facts(**facts: Any) -> Checkpoint:
    return Checkpoint(facts, np.zeros((0, 0)), {})


_TABLES: dict[str, tuple[tuple[str, ...], Any]] = {
    "status": (("trajectory",), int(Status.PENDING)),
    "steps": (("trajectory",), 0),
    "iterations": (("trajectory",), 0),
    "continued": (("trajectory",), 0),
    "energy": (("trajectory", "lowest_highest"), np.nan),
}


def _plan(archive: Archive) -> Plan:
    """What a header says, checked; the number of steps may have grown since."""
    header = archive.header

    def whole(name: str, low: int = 0, high: int = MOST_STEPS) -> int:
        return integer(entry(header, name), name, low, high)

    for name in ("version", "machine", "name"):
        text(entry(header, name), name)
    many, n = header["kind"] == ENSEMBLE, whole("n", 1)
    whole("length", 1, whole("size", 1, MOST_STEPS if many else 1))
    whole("rows", 1)
    arithmetic = reals(None if entry(header, "digits") is None else whole("digits", 2, MOST_DIGITS))

    def number(value: Any, what: str) -> Any:
        if isinstance(arithmetic, Digits) and not BINARY_NUMBER.fullmatch(text(value, what)):
            raise ValueError(f"{what} must be a binary number as text, such as 0x1a2bp-52; got {value!r}")
        return arithmetic.array(value).item() if isinstance(arithmetic, Digits) else real(value, what)

    t0, h = (number(entry(header, name), name) for name in ("t0", "h"))
    if h == 0:
        raise ValueError("h must not be zero")
    until = entry(header, "until")
    if until is not None:
        t_end, count = listing(until, "until", 2)
        until = number(t_end, "until"), integer(count, "until", 1)
    if not isinstance(entry(header, "open"), bool):
        raise ValueError("open must be true or false")
    output, dofs = entry(header, "output"), np.arange(n)
    if output is not None:
        dofs = checked_output(np.array([integer(dof, "output") for dof in listing(output, "output")], np.int64), n)
    system = from_record(header, archive.arrays() if "program" not in header else {})
    if system.n != n:
        raise ValueError(f"zarr.json tells of n = {n}, the system's matrices of n = {system.n}")
    varied = whole("varied")
    if varied not in (0, 2 * n, 2 * n + len(system.values()) + 1):
        raise ValueError(f"varied must be 0, or the {2 * n} numbers of a state, and the parameters; got {varied}")
    return Plan(
        system=system,
        method=method_of_file(entry(header, "method")),
        reals=arithmetic,
        t0=t0,
        h=h,
        steps=0,
        every=whole("every"),
        row=Row(n, dofs, varied),
        energies=_energies(header, system),
        events=_events(header, system),
        many=many,
        until=until,
        open=header["open"],
        allow_unstable=True,  # the stability of h was checked when the run began, or the check was switched off
        advice=None if header.get("advice") is None else Advice.from_record(header["advice"]),
    )


def _energies(header: Mapping[str, Any], system: System) -> tuple[str, ...]:
    """The names under which the range of the energy is wanted, as a header has them."""
    names = tuple(text(name, "a reduction's name") for name in listing(entry(header, "energies"), "energies"))
    if names and (system.linear or header["digits"] is not None or header["kind"] != ENSEMBLE):
        raise ValueError("reductions are for float64 ensembles of Lagrangian systems")
    return names


def _events(header: Mapping[str, Any], system: System) -> happening.Watch | None:
    """The events that the run looks for, from a header."""
    given = entry(header, "events")
    if given is None:
        return None
    items = []
    for item in listing(given, "events"):
        name, direction, stop, most, restitution = listing(item, "an event", 5)
        thrown = None if restitution is None else real(restitution, "restitution")
        if thrown is not None and not 0.0 <= thrown <= 1.0:
            raise ValueError(f"restitution must be from 0 to 1; got {thrown}")
        items.append(
            happening.Watched(
                text(name, "an event's name"),
                integer(direction, "an event's direction", -1, 1),
                bool(stop),
                None if most is None else integer(most, "how many events are kept", 1),
                thrown,
                monotone=bool(header["open"]) and name == happening.T_END,
            )
        )
    if not items:
        raise ValueError("events are none, or at least one")
    return happening.Watch(tuple(items), _functions(entry(header, "event_functions"), system, len(items)))


def _functions(record: Any, system: System, count: int) -> Program:
    """This number of event functions, from a header."""
    program = Program.from_json(record)
    n, size = system.n, len(system.values())
    blocks = (("t", 1), ("q", n), ("p", n), ("params", size)), (("g", count),)
    if (program.inputs, program.outputs) != blocks:
        raise ValueError(f"the event functions take {blocks[0]} to {blocks[1]}; got {program.inputs}")
    return program
