"""la.open and la.resume: stored paths and stored ensembles alike."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from leastaction.errors import StoreError
from leastaction.results.assembly import from_archive, shown
from leastaction.results.paths import Paths
from leastaction.results.stored_path import StoredPath
from leastaction.run.archive import Disk, machine
from leastaction.run.drive import prepare, usual_parts
from leastaction.run.given_inputs import check_span, points_of, read_inputs
from leastaction.run.plan import archive_path, check_count, check_length, number, positive, steps_until
from leastaction.run.standing import Status
from leastaction.run.view import view
from leastaction.run.waiting import compiling, preparing
from leastaction.step.inputs import Inputs
from leastaction.store.archive import Archive
from leastaction.store.header import interpreting
from leastaction.version import __version__

COMPARED = 4096  # steps whose inputs are compared at once


def open(path: str | os.PathLike[str]) -> StoredPath | Paths:
    """Open the run that an archive holds, as far as it has come. A run that is still going can be opened, too.

    The archive may come from anybody: everything in it is checked, and nothing in it is executed but its Programs.

    Parameters
    ----------
    path : path
        The Zarr archive that a run with ``store=`` wrote.

    Returns
    -------
    StoredPath or Paths
        The same as the run gave back. Arrays stay on disk until they are asked for.

    Raises
    ------
    StoreError
        The archive is damaged, or is no archive.
    FileNotFoundError
        There is nothing at this path.

    Examples
    --------
    >>> import leastaction as la, tempfile, pathlib
    >>> kepler = la.problems.get("kepler")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "run.zarr"
    ...     path = la.integrate(kepler.system, "simpson", kepler.q0, kepler.p0, h=0.05, steps=100, store=file)
    ...     la.open(file).q[90:].shape
    (11, 2)
    """
    archive = Archive.open(archive_path("path", path))
    with interpreting(archive.path):
        # The checkpoint is read after the metadata: all rows that it counts exist then. The lock is asked before the
        # checkpoint is read: a run may end in between.
        held = archive.written()
        disk = Disk.open(archive)
        found: StoredPath | Paths = shown(disk, view(disk))
        if isinstance(found, StoredPath) and found.standing == "running" and not held:
            return replace(found, standing="killed")
        return found


def resume(
    path: str | os.PathLike[str], steps: int | None = None, *, t_end: Any = None,
    inputs: Mapping[str, Any] | None = None, client: Any = None, threads: int | None = None, progress: bool = False,
) -> StoredPath | Paths:  # fmt: skip
    """Continue a stored run, bit for bit as if it had never stopped.

    After an interrupt or a kill the run continues from its last checkpoint; what was written after that is dropped.
    One path continues from where it is. The trajectories of an ensemble may have come to different places: they all
    continue to `steps` steps beyond their planned end. Trajectories that failed or were stopped by an event stay as
    they are.

    Parameters
    ----------
    path : path
        The Zarr archive that a run with ``store=`` wrote.
    steps : int, optional
        How many steps to do. A planned end that is later is remembered.
    t_end : number, optional
        Until when to go, in place of `steps`. Without both the run goes to its planned end.
    inputs : mapping of str to array_like or Samples, optional
        Of a system with inputs, where the stored ones end before the run does: the inputs of the whole run from its
        start, in the shapes of `la.integrate` or `la.ensemble`. They must begin as the stored ones do, which are
        ``la.open(path).inputs``.
    client : dask.distributed.Client, optional
        Run an ensemble on this cluster.
    threads : int, optional
        How many cores to use.
    progress : bool, default False
        Show a progress bar.

    Raises
    ------
    StoreError
        The archive is damaged, another process writes to it, or its run has come to an end beyond which it cannot go.
    ValueError
        The run has done all that was planned, and neither `steps` nor `t_end` asks for more. Or the inputs end
        before the run does, or differ from the stored ones in steps already done.

    Warns
    -----
    RuntimeWarning
        The version of the library or the processor has changed since the run began, so that last digits may differ.

    Examples
    --------
    >>> import leastaction as la, tempfile, pathlib
    >>> kepler = la.problems.get("kepler")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "run.zarr"
    ...     path = la.integrate(kepler.system, "simpson", kepler.q0, kepler.p0, h=0.05, steps=100, store=file)
    ...     len(la.resume(file, steps=50))
    151
    """
    if steps is not None and t_end is not None:
        raise ValueError("say how far to go on: with steps= or with t_end=, not both")
    archive = Archive.open(archive_path("path", path), write=True)
    many = archive.header["kind"] == "ensemble"
    if not many and client is not None:
        raise ValueError("client= is for ensembles; this archive holds one path")
    with archive.writing():
        with interpreting(archive.path):
            disk = Disk.open(archive)
            standing = view(disk).standing
        usual = usual_parts(disk.plan, disk.size, client, threads, stored=True)
        with interpreting(archive.path):
            disk.parts(usual)  # raises before anything is changed
        count = _goal(disk, standing, steps, t_end)
        check_count(count)
        _compare(disk)
        archive.tidy()
        plan = replace(disk.plan, steps=count)
        check_length(plan)
        longer = _longer_inputs(disk, inputs, count, int(standing.steps.max()))
        with interpreting(archive.path), compiling():
            disk.check_states()
        with preparing("nothing was computed, and the archive is as it was"), compiling():
            told = prepare(plan, disk.starts)
        if longer is not None:
            disk.replace_inputs(longer)
        disk.extend(count)
        return from_archive(disk, told, progress, client, threads)


def _goal(disk: Disk, standing: Any, steps: int | None, t_end: Any) -> int:
    """How many steps the trajectories are to have, counted from the start; refuse what cannot go on."""
    plan, path, done = disk.plan, disk.archive.path, int(standing.steps[0])
    if t_end is not None and not plan.system.clock.steady:
        raise ValueError(
            "a run with a pace can be continued with steps=, or to the t_end that it was begun with: its last step "
            "ends there. For a later time begin a new run"
        )
    with plan.reals.working():
        until = None if t_end is None else steps_until(number("t_end", t_end, plan.reals), plan.t0, plan.h)
    if plan.many:
        if steps is not None and plan.open:
            raise StoreError(f"the trajectories in {path} end at their t_end; new runs go on from there")
        if until is None:
            return plan.steps + (0 if steps is None else positive("steps", steps))
        if until < plan.steps:
            raise ValueError(
                f"t_end = {float(t_end):g} is before the planned end, {plan.steps} steps; la.resume without it goes "
                "there"
            )
        return until
    status = standing.status[0]
    if status == Status.STOPPED and standing.at_end(plan):
        told = (
            f"the run in {path} has come to its t_end, in the middle of step {done} of s; a new run goes on from there"
        )
        raise ValueError(told) if steps is None else StoreError(told)  # done as planned, or asked for what it cannot do
    if status == Status.STOPPED:
        raise StoreError(f"an event has stopped the run in {path} in step {done}, as asked; it has no more steps to do")
    if status not in (Status.COMPLETE, Status.STANDSTILL):
        raise StoreError(
            f"the run in {path} ended with step {done}, which could not be solved; going on would fail in "
            "the same way. Start anew with a smaller step"
        )
    count = until or (plan.steps if steps is None else done + positive("steps", steps))
    if count <= done:
        told = "" if t_end is None else f" and is past t_end = {float(t_end):g}"
        raise ValueError(
            f"the run in {path} has done {'all of its ' if done >= plan.steps else ''}{done} steps{told}; say how "
            "many more with steps=, or until when with t_end="
        )
    return count


def _longer_inputs(disk: Disk, given: Mapping[str, Any] | None, steps: int, done: int) -> Inputs | None:
    """The inputs with which a run goes on, if they differ from the stored inputs."""
    stored, plan = disk.inputs, disk.plan
    if given is None:
        if stored is not None:
            try:
                check_span(stored, steps, points_of(plan.method, plan.reals)[0])
            except ValueError as error:
                raise ValueError(
                    f"{error}. Give la.resume(…, inputs=…) those of all {steps} steps from the start of the run; the "
                    "stored ones, la.open(path).inputs, are how they begin"
                ) from None
        return None
    with plan.reals.working():
        found = read_inputs(given, plan.system, plan.method, plan.reals, plan.t0, plan.h, steps, plan.many)
        if found is None or stored is None:
            return None
        if found.batch not in (1, disk.size):
            raise ValueError(f"the inputs are those of {found.batch} trajectories; the archive holds {disk.size}")
        points = points_of(plan.method, plan.reals)[0]
        for first in range(0, done, COMPARED):
            count = min(COMPARED, done - first)
            before, now = (x.along(plan.t0, plan.h, first, count, points) for x in (stored, found))
            if (before != now).any():
                raise ValueError(
                    f"the run has done {done} steps with the stored inputs, and those given differ from them between "
                    f"step {first} and {first + count}: give the stored ones, la.open(path).inputs, and behind them "
                    "new ones (a cubic spline through more samples is another spline everywhere)"
                )
    return found


def _compare(disk: Disk) -> None:
    """Warn if a run goes on under other circumstances than it began with."""
    header, here = disk.archive.header, machine(disk.plan)
    if (header["version"], header["machine"]) != (__version__, here):
        warnings.warn(
            f"{disk.archive.path} was begun by leastaction {header['version']} on '{header['machine'][:60]} …' and "
            f"goes on with {__version__} on '{here[:60]} …': its last digits may differ from those of an uninterrupted "
            "run",
            RuntimeWarning,
            stacklevel=3,
        )
