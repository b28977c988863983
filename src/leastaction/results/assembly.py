"""A run from what was asked to what it hands back: one Path or many, from memory or from an archive."""

from __future__ import annotations

import math
import os
import time
import warnings
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import ChartWarning, EnergyWarning, RestingContact, StepFailed
from leastaction.events import T_END, Log, together
from leastaction.methods import Method
from leastaction.methods.registry import ANY_BRANCH
from leastaction.results.path import Path, in_time, states_in_time
from leastaction.results.paths import Paths
from leastaction.results.stored_path import StoredPath
from leastaction.run.archive import Disk
from leastaction.run.drive import Memory, drive, lanes, prepare, usual_parts
from leastaction.run.motion_checks import losses
from leastaction.run.plan import Plan, archive_path, check_length, plan_run
from leastaction.run.standing import Standing, Status
from leastaction.run.view import View, view
from leastaction.run.waiting import compiling, preparing
from leastaction.step.inputs import Inputs
from leastaction.step.status import BRANCH_ENDS, EVENT, GOING_WELL, HELD, RESTING, STANDSTILL, STOPPED, Failure
from leastaction.systems.projection import near_singular
from leastaction.systems.protocol import System


def execute(
    system: System,
    method: str | Method,
    start: tuple[Any, Any, Any],
    *,
    store: str | os.PathLike[str] | None = None,
    client: Any = None,
    threads: int | None = None,
    progress: bool = False,
    **asked: Any,
) -> Any:
    """One run of a method with a step: a Path, or Paths; all other options go into the plan."""
    clock, file = time.perf_counter(), None if store is None else archive_path("store", store)
    with preparing("nothing was computed, and no archive was begun"), compiling():
        plan, starts = plan_run(system, method, start, **asked)
        parts = usual_parts(plan, len(starts), client, threads, file is not None)
        memory = Memory(plan, starts) if file is None else None  # first check that there is room
        check_length(plan)
        told = prepare(plan, starts, None if memory is None or plan.many else memory.standing)
    told["compile_time"] = time.perf_counter() - clock
    if file is None:
        assert memory is not None
        return from_memory(memory, told, progress, client, threads)
    with Disk.creating(file, plan, starts, parts) as disk:
        return from_archive(disk, told, progress, client, threads)


def from_memory(sink: Memory, told: dict[str, Any], progress: bool, client: Any = None, threads: Any = None) -> Any:
    """Drive a run whose states stay in memory, and hand it back: a Path, or Paths."""
    told = told | drive(sink, client, threads, progress)
    plan, standing = sink.plan, sink.standing
    rows = sink.rows()
    parts = {name: plan.row.part(name, rows) for name in plan.row.shapes}
    standing.stand_still(plan)
    if plan.many:
        standing.status[standing.going(plan.steps)] = Status.INTERRUPTED
        found = plan.times(0, rows.shape[1]), parts, told
        paths = paths_of(plan, sink.starts.params, standing, sink.logs, *found, inputs=sink.starts.inputs)
        _warn_of_losses(plan, standing, stacklevel=4)
        return paths
    t = standing.times(plan, 0, rows.shape[1])
    facts = _facts(plan, sink.starts.params[0], standing, sink.logs, told) | {"inputs": sink.starts.inputs}
    path = in_time(Path(t=t, **{name: part[0] for name, part in parts.items()}, **facts))
    _check_end(path, plan, standing, f"the path ends at t = {float(path.t[-1]):g}", stacklevel=5)
    _warn_of_losses(plan, standing, stacklevel=5)
    return path


def from_archive(disk: Disk, told: dict[str, Any], progress: bool, client: Any = None, threads: Any = None) -> Any:
    """Drive a run that is stored, and hand it back: a StoredPath, or Paths whose states stay on disk."""
    told = told | drive(disk, client, threads, progress)
    target = disk.plan
    found = view(disk)
    stored = shown(disk, found, told)
    t = stored.t if not target.many or stored.pace is None else stored.pace.t
    disk.tell(found.standing, t)
    if not target.many:
        rest = f"la.resume({str(disk.archive.path)!r}) goes on"
        _check_end(stored, target, found.standing, rest, stacklevel=4)
    _warn_of_losses(target, found.standing, stacklevel=4)
    return stored


def shown(disk: Disk, found: View, told: dict[str, Any] | None = None) -> Any:
    """The Path or Paths of an archive; the states stay on disk until they are asked for."""
    plan, standing, file = found.plan, found.standing, disk.archive.path
    if plan.many:
        return paths_of(plan, disk.params, standing, found.logs, found.t, found.arrays, told, file, disk.inputs)
    facts = _facts(plan, disk.params[0], standing, found.logs, {}) | {"inputs": disk.inputs}
    facts["stats"] = {"steps": int(standing.steps[0]), **standing.told.get("counts", {}), **_losses(plan, standing)}
    arrays: dict[str, Any] = {**found.arrays}
    stored = StoredPath(t=found.t, **arrays, **facts, standing=_word(plan, standing, found.ended), file=file)  # type: ignore[arg-type]
    return in_time(stored)


def _word(plan: Plan, standing: Standing, ended: bool) -> str:
    """The word for how a stored run stands."""
    if standing.status[0] == Status.STOPPED:
        return "complete" if standing.at_end(plan) else "stopped"
    if standing.status[0] != Status.COMPLETE:
        return "failed"
    if standing.steps[0] == plan.steps:
        return "complete"
    return "interrupted" if ended else "running"


def _facts(
    plan: Plan, values: NDArray[Any], standing: Standing, logs: list[Log], told: dict[str, Any]
) -> dict[str, Any]:
    """The fields of a Path beside its arrays."""
    done, run_time = int(standing.steps[0]), told.get("run_time", 0.0)
    stats = {
        "steps": done,
        **standing.told.get("counts", {}),
        **told,
        "time_per_step": run_time / max(1, done),
        "interrupted": bool(standing.going(plan.steps)[0]),
        **_losses(plan, standing),
    }
    params, events = plan.system.named(values), logs[0].happened() if logs else {}
    return _common(plan) | {"every": max(1, plan.every), "params": params, "stats": stats, "events": events}


def _common(plan: Plan) -> dict[str, Any]:
    """The fields that a Path and Paths share."""
    about = {"system": plan.system, "method": plan.method, "h": plan.h, "advice": plan.advice}
    return about | {"output": plan.row.output, "digits": plan.reals.digits}


def _check_end(path: Path, plan: Plan, standing: Standing, rest: str, stacklevel: int) -> None:
    """Raise if a step of one trajectory failed; warn if it was interrupted."""
    done, status = int(standing.steps[0]), int(standing.status[0])
    if status == STOPPED:
        return
    if status == STANDSTILL:
        raise _standstill(path, plan, done)
    if status != GOING_WELL:
        with plan.reals.working():
            now = plan.system.clock.times(plan.t0 + done * plan.h, standing.at[0, : 2 * plan.row.n])
            raise_failure(path, standing.told["failure"], done, float(now))
    if done < plan.steps:
        message = f"interrupted after {done} {'' if plan.open else f'of {plan.steps} '}steps; {rest}"
        warnings.warn(message, RuntimeWarning, stacklevel)


def _losses(plan: Plan, standing: Standing) -> dict[str, Any]:
    """For stats, if energy was lost: of one trajectory when, how much, and K until then; of many, which lost it. If a
    pole of the chart was passed unresolved: of one trajectory when, and the coordinate; of many, which passed one.
    """
    found, told = losses(standing), {}
    if found:
        told["energy_lost"] = [loss.trajectory for loss in found] if plan.many else list(found[0][1:])
    passed = _past_poles(standing)
    if len(passed):
        t, j = standing.pole[passed[0]].tolist()
        told["pole"] = passed.tolist() if plan.many else [t, int(j)]
    return told


def _past_poles(standing: Standing) -> NDArray[np.intp]:
    """The trajectories with a step that did not resolve its way past a pole."""
    return np.flatnonzero(np.isfinite(standing.pole).all(axis=1)) if standing.pole.shape[1] else np.zeros(0, np.intp)


def _warn_of_losses(plan: Plan, standing: Standing, stacklevel: int) -> None:
    """Warn, once, of an autonomous motion that does not keep its energy, or of steps too long beside a pole."""
    found, passed, pole = losses(standing), _past_poles(standing), ""
    if len(passed):
        t, j = standing.pole[passed[0]].tolist()
        one = f" of trajectory {passed[0]}, the first of {len(passed)} such," if plan.many else ""
        pole = (
            f"the step at t = {t:.6g}{one} is too long for its way past a pole of the chart, where q[{int(j)}] turns "
            "within a moment"
        )
    if not found and pole:
        warnings.warn(
            f"{pole}: two steps of half its length end elsewhere, and from there on the motion may be another one, "
            "whatever its energy. Take a smaller h or coordinates without a pole there, and compare; stats['pole'] "
            "keeps this",
            ChartWarning,
            stacklevel,
        )
    if not found:
        return
    loss, who = found[0], "the energy"
    if plan.many:
        who = (
            f"{len(found)} of {len(standing.steps)} trajectories do not keep their energy; of {found[0].trajectory} it"
        )
    warnings.warn(
        f"{who} changed by {loss.error:.3g} between t = {loss.right:.6g} and t = {loss.wrong:.6g}, where the kinetic "
        f"energy was at most {loss.size:.3g}, though nothing in {plan.system.name} takes or gives any: from there on "
        f"this is another motion. {plan.method.name} with h = {float(plan.h):g} is unstable here, or has stepped over "
        f"something, as a collision{pole and f' ({pole})'}. Take a smaller h or a method of higher order, and compare; "
        "stats['energy_lost'] keeps this",
        EnergyWarning,
        stacklevel,
    )


def _raise_resting(path: Path, step: int) -> NoReturn:
    """Raise RestingContact, with the name of the wall."""
    impacts = {
        name: float(found.t[-1]) for name, found in path.events.items() if found.p_after is not None and found.count
    }
    name, now = max(impacts.items(), key=lambda item: item[1] * math.copysign(1.0, path.h))
    raise RestingContact(
        f"at t = {now:.6g} the impacts on {name!r} follow each other without end: the motion comes to rest on the "
        "wall, and from there on it is another one, with the wall as a constraint. End the run before, with "
        f"la.Event(…, stop=True), or take more restitution. {_before(path)}, the impacts in its .path.events",
        path=path, step=step, time=now, h=path.h, stage=EVENT,
    )  # fmt: skip


def _before(path: Path) -> str:
    return f"The {f'{len(path)} states before are' if len(path) > 1 else 'state before is'} in the exception's .path"


def _failed(message: str, path: Path, step: int, now: float, failure: Failure | None = None) -> StepFailed:
    """The exception; without a failure of a step it is an event that cannot be gone through."""
    about: dict[str, Any] = {"stage": EVENT}
    if failure is not None:
        about = {"stage": failure.stage, "residual": failure.residual, "iterations": failure.iterations}
    return StepFailed(f"{message}. {_before(path)}", path=path, step=step, time=now, h=path.h, **about)


def _standstill(path: Path, plan: Plan, done: int) -> StepFailed:
    """What to raise where the pace has left the run, with the time at which it has."""
    assert plan.until is not None
    now, t_end = float(path.t[-1]), float(plan.until[0])
    return _failed(
        f"after {done} steps the run is at t = {now:.6g}, not at t_end = {t_end:g}: all but for ever, since its pace "
        "vanishes there, or nearly so, and time stands still. A pace must be positive wherever the motion goes: add a "
        "small number to it. If it is meant to be so slow, give steps= in place of t_end=", path, done, now,
    )  # fmt: skip


def raise_failure(path: Path, failure: Failure, step: int, now: float) -> NoReturn:
    """Raise StepFailed, with what is known of the step and what to try."""
    h = float(path.h)
    if failure.step >= 0:
        step, now = failure.step, failure.time
    if failure.status == RESTING:
        _raise_resting(path, step)
    if failure.status == HELD:
        raise _failed(
            f"step {step} at t = {now:.6g}: no impulse along the gradient of a wall that the motion has met throws it "
            "back. The wall depends on the constraints there, or L admits no such momentum", path, step, now,
        )  # fmt: skip
    halvings = math.ceil(-math.log2(failure.reach)) if 0 < failure.reach < 1 else 1
    system = path.system if path.pace is None else path.pace.system
    reason, advice = system.explain(failure, h / 2**halvings)
    if failure.status == BRANCH_ENDS and ANY_BRANCH in path.method.text:
        reason = "Newton's iteration finds no root, and none of this size of step is connected with the motion"
    message = f"step {step} at t = {now:.6g} could not be solved with h = {h:g}: {reason}"
    if path.pace is not None and path.output is None and (wrong := _bad_pace(path, path.pace)) is not None:
        raise _failed(f"{wrong}. So {message}", path, step, now, failure)
    if failure.iterations:
        message += f" ({failure.iterations} iterations, last increment {failure.residual:.1e} of the step)"
    if path.output is None:
        singular = near_singular(path.system, path.t, path.q, path.p, path.system.values(path.params))
        if singular is not None:
            message, advice = f"{message}. There {singular}", "Stop before, with an event, or begin elsewhere"
    if 0 < failure.reach < 1:
        reach = failure.reach * h
        message += f". The branch of solutions that begins at h = 0 could be followed up to about h = {reach:.3g}"
    if "energy_lost" in path.stats:
        right, _, error, size = path.stats["energy_lost"]
        message += (
            f". Its energy was wrong before: from t = {right:.6g} on it changed by {error:.3g}, where the kinetic "
            f"energy was at most {size:.3g}"
        )
    raise _failed(f"{message}. {advice}", path, step, now, failure)


def _bad_pace(path: Path, in_s: Path) -> str | None:
    """What is wrong with the pace in the step after the last state, if anything is."""
    system: Any = in_s.system
    params = system.values(in_s.params)
    t, q, p, values = (np.asarray(x, float) for x in (path.t[-1], path.q[-1], path.p[-1], params))
    found: str | None = system.not_positive(float(t), q, p, values, float(path.h))
    return found


def paths_of(
    plan: Plan,
    values: NDArray[Any],
    standing: Standing,
    logs: list[Log],
    t: Any,
    arrays: Any,
    told: dict[str, Any] | None,
    file: FilePath | None = None,
    inputs: Inputs | None = None,
) -> Paths:
    """Many trajectories; `told` is None if an archive is only opened, not run."""
    unfinished = int(np.isin(standing.status, (Status.INTERRUPTED, Status.PENDING)).sum())
    if unfinished and told is not None:
        message = f"interrupted; {unfinished} of {len(values)} trajectories are unfinished"
        more = "" if file is None else f"; la.resume({str(file)!r}) goes on"
        warnings.warn(message + more, RuntimeWarning, stacklevel=4 if file is None else 5)
    stats = {} if told is None else {"lanes": lanes(plan), **told}
    stats |= {
        "newton_iterations": int(standing.iterations.sum()),
        "continued": int(standing.continued.sum()),
        "interrupted": unfinished > 0,
        **_losses(plan, standing),
    }
    paths = Paths(
        t=t,
        **arrays,
        **_common(plan),
        t0=plan.t0,
        every=plan.every,
        values=values,
        status=standing.status,
        steps=standing.steps,
        reduced=dict.fromkeys(plan.energies, standing.energy),
        events=together(logs, plan.reals.array(np.nan)[()]) if logs else {},
        last={name: plan.row.part(name, plan.row.kept(standing.at)[:, None])[:, 0] for name in plan.row.shapes},
        stats=stats,
        inputs=inputs,
    )
    if plan.system.clock.steady:
        return paths
    own = len(plan.system.in_time.values())
    last = {name: paths.last[name][:, :-1] for name in ("q", "p")}
    events = {name: found.in_time(plan.system.clock) for name, found in paths.events.items() if name != T_END}
    status = paths.status.copy()
    status[[i for i, log in enumerate(logs) if plan.open and log.at_end]] = Status.COMPLETE
    about = states_in_time(paths, 2)
    return replace(paths, **about, values=values[:, :own], last=last, events=events, status=status, pace=paths)
