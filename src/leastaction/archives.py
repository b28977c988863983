"""la.open and la.resume: stored paths and stored ensembles alike."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

from leastaction.many import archive as ensembles
from leastaction.many.ensemble import open_ensemble, resume_ensemble
from leastaction.many.paths import Paths
from leastaction.store.archive import Archive
from leastaction.store.header import interpreting
from leastaction.store.run import resume_run
from leastaction.store.stored import StoredPath, stored_path


def open(path: str | os.PathLike[str]) -> StoredPath | Paths:
    """The run stored in an archive, as far as it has come; one that is still running can be opened too.

    The archive may come from anybody: everything in it is checked, and nothing in it is executed but its Programs.
    Raises StoreError if it is damaged or no archive.
    """
    archive = Archive.open(FilePath(path))
    with interpreting(archive.path):
        if archive.header["kind"] == ensembles.KIND:
            return open_ensemble(archive)
        # The checkpoint after the metadata: what it counts is there. The lock before it: a run may end in between.
        held = archive.written()
        found = stored_path(archive, archive.checkpoint())
        return replace(found, standing="killed") if found.standing == "running" and not held else found


def resume(
    path: str | os.PathLike[str],
    steps: int | None = None,
    *,
    t_end: float | None = None,
    client: Any = None,
    threads: int | None = None,
    progress: bool = False,
) -> StoredPath | Paths:
    """Continue a stored run, bit for bit as if it had never stopped.

    A run goes on by so many steps, until t_end, or to its planned end, which it remembers if it stops before; after an
    interrupt or a kill it goes on from its last checkpoint, and what was written after that is dropped. A path goes on
    from where it is, the trajectories of an ensemble, each of which may be elsewhere, go to so many steps beyond their
    planned end, on a `client` or on `threads` as in `la.ensemble`; those that have failed or were stopped stay as they
    are.
    """
    if steps is not None and t_end is not None:
        raise ValueError("say how far to go on: with steps= or with t_end=, not both")
    archive = Archive.open(FilePath(path), write=True)
    if archive.header["kind"] == ensembles.KIND:
        return resume_ensemble(archive, steps, t_end, client, threads, progress)
    if client is not None or threads is not None:
        raise ValueError("client= and threads= are for ensembles; this archive holds one path")
    return resume_run(archive, steps, t_end, progress)
