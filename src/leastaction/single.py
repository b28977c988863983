"""One trajectory as a run: plan it, and hand back its Path."""

from __future__ import annotations

import os
import time
from typing import Any

from leastaction.methods import Method
from leastaction.results.assembly import from_archive, from_memory
from leastaction.results.path import Path
from leastaction.run.advice import Advice
from leastaction.run.archive import Disk
from leastaction.run.batches import prepare
from leastaction.run.checks import archive_path, positive
from leastaction.run.interrupts import preparing
from leastaction.run.memory import Memory
from leastaction.run.plan import check_length, plan_run
from leastaction.run.waiting import compiling
from leastaction.systems.protocol import System


def run_one(
    system: System,
    method: str | Method,
    start: tuple[Any, Any, Any],
    *,
    every: int = 1,
    progress: bool = False,
    threads: int | None = None,
    store: str | os.PathLike[str] | None = None,
    advice: Advice | None = None,
    **asked: Any,
) -> Path:
    """One run of a method with a step; all other options go into the plan."""
    clock, file = time.perf_counter(), None if store is None else archive_path("store", store)
    with preparing("nothing was computed, and no archive was begun"), compiling():
        plan, starts = plan_run(system, method, start, every=positive("every", every), advice=advice, **asked)
        memory = Memory(plan, starts) if file is None else None  # first check that there is room
        check_length(plan)
        told = prepare(plan, starts, None if memory is None else memory.standing)
    told["compile_time"] = time.perf_counter() - clock
    if memory is not None:
        return from_memory(memory, told, progress, threads=threads)
    assert file is not None
    with Disk.creating(file, plan, starts, [(0, 1)]) as disk:
        return from_archive(disk, told, progress, threads=threads)
