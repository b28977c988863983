"""A run streamed to its archive, from the start or from a checkpoint."""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path as FilePath
from typing import cast

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.status import Failure
from leastaction.backends.stepper import ResumableStepper
from leastaction.border import check_count, check_times
from leastaction.lagrangian import Lagrangian
from leastaction.linear import Quadratic
from leastaction.methods import method
from leastaction.prepare import Request, prepare
from leastaction.running import interruptible, positive, preparing, progress_bar, raise_failure
from leastaction.store.archive import Archive, rows_layout
from leastaction.store.checkpoint import Checkpoint
from leastaction.store.errors import StoreError
from leastaction.store.header import interpreting
from leastaction.store.stored import StoredPath, check_facts, compare, description, steps_until, stored_path, times
from leastaction.store.systems import keeper, kept, restore
from leastaction.waiting import compiling

FloatArray = NDArray[np.float64]

KIND = "path"
PIECE_SECONDS = 0.05  # how long the native loop runs between looks at the keyboard and the progress bar
SMALLEST_PIECE = 16
CHECKPOINT_SECONDS = 2.0  # at most so much of a run is lost when it is killed


def store_run(path: str | os.PathLike[str], request: Request, t_end: float | None, progress: bool) -> StoredPath:
    """Integrate into a new archive."""
    system = request.system
    arrays = keeper(system).arrays()  # a system that cannot be kept is refused before anything is done
    with preparing(), compiling():
        prepared = prepare(request)
    dofs, start = prepared.dofs, np.concatenate([prepared.q[prepared.dofs], prepared.p[prepared.dofs]])
    header = {
        "kind": KIND,
        **description(system, request.method, request.t0, request.h, request.every),
        "until": None if t_end is None else [float(t_end).hex(), request.count],
        "params": {name: np.asarray(value).tolist() for name, value in system.named(request.values).items()},
        "output": None if request.output is None else dofs.tolist(),
    }
    shapes = {"t": (0,), "q": (0, len(dofs)), "p": (0, len(dofs))}
    with Archive.creating(FilePath(path), header, rows_layout(shapes)) as archive:
        if arrays:
            archive.keep(arrays)
        solver = cast(ResumableStepper, prepared.stepper)  # all are, in float64 and without the tangent map
        return _Stream(archive, system, solver, start[None], 0, 0).go(request.count, progress)


def resume_run(archive: Archive, steps: int | None, t_end: float | None, progress: bool) -> StoredPath:
    """Go on from the last checkpoint; what was written after that is dropped. A later planned end is remembered."""
    path = archive.path
    with archive.writing():
        checkpoint = archive.checkpoint()
        facts, header = checkpoint.facts, archive.header
        with interpreting(path):
            by = kept(archive)
            check_facts(archive, checkpoint)
        done, whole = facts["done"], facts["whole"]
        if facts["standing"] == "failed":
            raise StoreError(
                f"the run in {path} ended with step {done}, which could not be solved; going on would fail in "
                "the same way. Start anew with a smaller step"
            )
        planned = int(facts["planned"])
        count = planned
        if t_end is not None:
            count = steps_until(header, t_end)
        elif steps is not None:
            count = done + positive("steps", steps)
        if count <= done:
            told = "" if t_end is None else f" and is past t_end = {t_end:g}"
            raise ValueError(
                f"the run in {path} has done {'all of its ' if done >= planned else ''}{done} steps{told}; say how "
                "many more with steps=, or until when with t_end="
            )
        check_count(count)
        compare(header, path)
        archive.tidy()
        check_times(by.system, float.fromhex(header["t0"]), float.fromhex(header["h"]), count)
        solver = by.stepper(header, count)
        with interpreting(path):
            restore(solver, method(header["method"]), checkpoint.state, done)
        # A last state that `every` would not have kept belongs to the end of the run, which this no longer is.
        tail = checkpoint.tail[: done // int(header["every"]) + 1 - whole]
        return _Stream(archive, by.system, solver, tail, whole, done).go(count, progress, planned)


class _Stream:
    """The rows on their way to the disk: `whole` are there, those in `buffer` are in the checkpoints only."""

    def __init__(
        self,
        archive: Archive,
        system: Lagrangian | Quadratic,
        solver: ResumableStepper,
        tail: FloatArray,
        whole: int,
        done: int,
    ) -> None:
        self.archive, self.system, self.solver = archive, system, solver
        self.every = int(archive.header["every"])
        self.t0, self.h = float.fromhex(archive.header["t0"]), float.fromhex(archive.header["h"])
        self.buffer = np.zeros((archive.chunk + 2, tail.shape[1]))
        self.buffer[: len(tail)] = tail
        self.held, self.whole, self.done = len(tail), whole, done
        self.interrupted = False

    def go(self, count: int, progress: bool, planned: int = 0) -> StoredPath:
        """So many steps, or to a failure or an interrupt; the run stays planned for more if it was."""
        failure = None
        planned = max(planned, count)
        self.commit("running", planned)
        committed, piece = time.perf_counter(), SMALLEST_PIECE
        with progress_bar(count, progress) as bar, interruptible(self.stop, lambda: self.done >= count):
            bar.update(self.done)
            while self.done < count and not self.interrupted and failure is None:
                clock = time.perf_counter()
                before = self.done
                failure = self.advance(piece, count)
                bar.update(self.done - before)
                now = time.perf_counter()
                piece = max(
                    SMALLEST_PIECE, int((self.done - before) * min(8.0, PIECE_SECONDS / max(now - clock, 1e-6)))
                )
                # Rows of this run's own rhythm: the last state may be one more.
                if self.done // self.every + 1 - self.whole >= self.archive.chunk:
                    self.flush()
                    self.commit("running", planned)
                    committed = time.perf_counter()
                elif now - committed > CHECKPOINT_SECONDS:
                    self.commit("running", planned)
                    committed = time.perf_counter()
        standing = "failed" if failure else "interrupted" if self.done < planned else "complete"
        self.archive.append(self.buffer[: self.held], self.whole, self.times(self.held))
        path = stored_path(self.archive, self.commit(standing, planned), self.system)
        if failure is not None:
            raise_failure(path, failure, self.done, self.t0 + self.done * self.h)
        if self.interrupted and self.done < count:
            warnings.warn(
                f"interrupted after {self.done} of {count} steps; la.resume({str(self.archive.path)!r}) goes on",
                RuntimeWarning,
                stacklevel=4,
            )
        return path

    def stop(self) -> None:
        self.interrupted = True

    def advance(self, piece: int, count: int) -> Failure | None:
        """Some steps, no more than fill a chunk."""
        room = self.archive.chunk - (self.done // self.every + 1 - self.whole)
        todo = min(piece, count - self.done, max(1, room * self.every - self.done % self.every))
        done, stored, failure = self.solver.advance(todo, self.every, count, self.buffer[self.held :])
        self.done += done
        self.held += stored
        return failure

    def times(self, rows: int) -> FloatArray:
        return times(self.archive.header, self.whole, rows, self.done)

    def flush(self) -> None:
        """A whole chunk to the disk."""
        chunk = self.archive.chunk
        self.archive.append(self.buffer[:chunk], self.whole, self.times(chunk))
        self.buffer[: self.held - chunk] = self.buffer[chunk : self.held].copy()
        self.whole, self.held = self.whole + chunk, self.held - chunk

    def commit(self, standing: str, count: int) -> Checkpoint:
        facts = {
            "done": self.done,
            "planned": count,
            "whole": self.whole,
            "standing": standing,
            "counts": self.solver.counts(),
        }
        checkpoint = Checkpoint(facts, self.buffer[: self.held].copy(), self.solver.state())
        self.archive.commit(checkpoint)
        return checkpoint
