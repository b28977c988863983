"""An ensemble on disk: chunks of trajectories, each complete or absent (Zarr through `leastaction.store`).

run.zarr/q, p          (B, K, n), a chunk for each chunk of trajectories; also status, steps, and what was reduced
run.zarr/start_…       where the trajectories begin, so that those that are missing can be run later
run.zarr/checkpoint/   an empty file `done-…` for each chunk that has been written whole; `lock`
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from leastaction.many.execute import Part
from leastaction.many.job import Job, Result, Start, Status
from leastaction.many.reductions import Event, Plan
from leastaction.methods import method
from leastaction.program import Program
from leastaction.store.archive import Archive, to_json
from leastaction.store.errors import StoreError
from leastaction.store.stored import LazyArray, description, system_of

KIND = "ensemble"
CHUNK_BYTES = 2**24


class Disk:
    """Results go to an archive, a chunk at a time."""

    def __init__(self, archive: Archive, job: Job, size: int) -> None:
        self.archive, self.job, self.size = archive, job, size
        self.length = int(archive.header["length"])
        self._lock = threading.Lock()

    @classmethod
    def create(cls, path: FilePath, job: Job, start: Start, usual: list[Part]) -> Disk:
        size = len(start)
        row = 8 * (job.kept * 2 * job.system.n + job.plan.records * (2 + 2 * job.system.n) + 4)
        length = usual[0][1] - usual[0][0]
        length = max(1, min(length, CHUNK_BYTES // row))
        header = {
            "kind": KIND,
            **description(job.system, job.method, job.t0, job.h, job.every),
            "steps": job.steps,
            "t_end": job.t_end,
            "size": size,
            "length": length,
            "event": None if job.plan.program is None else job.plan.program.to_json(),
            "events": [[event.direction, event.most, event.stop] for event in job.plan.events],
            "kinds": job.plan.kinds,
        }
        archive = Archive.create(path, to_json(header), {})
        empty, n = Result.empty(job, 0), job.system.n
        arrays: dict[str, tuple[np.ndarray, tuple[str, ...], Any]] = {
            "q": (empty.states[..., :n], ("trajectory", "t", "dof"), np.nan),
            "p": (empty.states[..., n:], ("trajectory", "t", "dof"), np.nan),
            "status": (empty.status, ("trajectory",), int(Status.PENDING)),
            "steps": (empty.steps, ("trajectory",), 0),
            "iterations": (empty.iterations, ("trajectory",), 0),
            "continued": (empty.continued, ("trajectory",), 0),
            "energy": (empty.energy, ("trajectory", "lowest_highest"), np.nan),
            "counts": (empty.counts, ("trajectory", "event"), 0),
            "crossings": (empty.crossings, ("trajectory", "crossing", "t_q_p"), np.nan),
        }
        for name, (like, dims, fill) in arrays.items():
            if like.size or 0 not in like.shape[1:]:
                archive.add(name, (size, *like.shape[1:]), length, like.dtype, dims, fill)
        for field in fields(start):
            values = getattr(start, field.name)
            if values.ndim == 1 or values.shape[1]:
                dims = ("trajectory",) if values.ndim == 1 else ("trajectory", f"start_{field.name}_entry")
                archive.add(f"start_{field.name}", values.shape, size, values.dtype, dims, 0)
                archive.put(f"start_{field.name}", 0, values)
        k = times(job)
        archive.add("t", k.shape, len(k), k.dtype, ("t",), np.nan)
        archive.put("t", 0, k)
        archive.mark("begun")
        return cls(archive, job, size)

    @classmethod
    def open(cls, archive: Archive) -> Disk:
        archive.require("begun")
        return cls(archive, _job(archive.header), int(archive.header["size"]))

    def start(self) -> Start:
        found: dict[str, Any] = {}
        for field in fields(Start):
            name = f"start_{field.name}"
            found[field.name] = (
                self.archive.read(name, 0, self.size) if self.archive.has(name) else np.zeros((self.size, 0))
            )
        return Start(**found)

    def parts(self, usual: list[Part]) -> list[Part]:
        """The chunks that are missing."""
        there = self.archive.marks("done-")
        every = [(begin, min(begin + self.length, self.size)) for begin in range(0, self.size, self.length)]
        return [part for part in every if f"done-{part[0] // self.length}" not in there]

    def place(self, begin: int, end: int) -> Result:
        return Result.empty(self.job, end - begin)

    def done(self, begin: int, end: int, result: Result) -> None:
        if (result.status == Status.INTERRUPTED).any():
            return
        n = self.job.system.n
        values: dict[str, Any] = {field.name: getattr(result, field.name) for field in fields(result)}
        values["q"], values["p"] = result.states[..., :n], result.states[..., n:]
        del values["states"]
        with self._lock:
            for name, array in values.items():
                if self.archive.has(name):
                    self.archive.put(name, begin, array)
            self.archive.mark(f"done-{begin // self.length}")

    def result(self) -> Result:
        """What there is; the states stay on disk. A chunk that is not counted is not there, whatever was written."""
        missing = self.parts([])
        empty = Result.empty(self.job, 0)
        found: dict[str, Any] = {}
        for field in fields(Result):
            if field.name == "states":
                found["states"] = empty.states
            elif self.archive.has(field.name):
                found[field.name] = self.archive.read(field.name, 0, self.size, sparse=True)
            else:
                like = getattr(empty, field.name)
                found[field.name] = np.zeros((self.size, *like.shape[1:]), like.dtype)
        for begin, end in missing:
            found["status"][begin:end] = Status.PENDING
        if (found["status"] == Status.PENDING).sum() != sum(end - begin for begin, end in missing):
            raise StoreError(f"a chunk of {self.archive.path}/status is missing: its file is not there")
        return Result(**found)

    def states(self, status: np.ndarray) -> tuple[LazyArray, LazyArray]:
        """q and p, of which those of complete trajectories are finite."""
        sparse = status != Status.COMPLETE
        none = np.zeros((0, self.job.kept, self.job.system.n))
        return tuple(LazyArray(self.archive, name, self.size, none, sparse) for name in ("q", "p"))  # type: ignore[return-value]


def times(job: Job) -> np.ndarray:
    """Times of the stored states."""
    k = np.array([job.steps]) if job.every == 0 else np.minimum(np.arange(job.kept) * job.every, job.steps)
    t = job.t0 + k * job.h if job.t_end is None else job.t0 + (job.t_end - job.t0) * (k / job.steps)
    return np.asarray(t, float)


def _job(header: Mapping[str, Any]) -> Job:
    plan = Plan(
        None if header["event"] is None else Program.from_json(header["event"]),
        tuple(Event(*event) for event in header["events"]),
        tuple((name, kind) for name, kind in header["kinds"]),
    )
    t0, h = float.fromhex(header["t0"]), float.fromhex(header["h"])
    return Job(
        system=system_of(header),
        method=method(header["method"]),
        t0=t0,
        h=h,
        steps=int(header["steps"]),
        every=int(header["every"]),
        plan=plan,
        t_end=header["t_end"],
    )
