"""What is told of a choice: the Advice, and a warning where a tolerance is missed or was not checked."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np

from leastaction.results.path import Path
from leastaction.run.advice import Advice, Option
from leastaction.tolerance.constants import LIMIT, RESOLVED, SURE
from leastaction.tolerance.search import Found
from leastaction.tolerance.trials import Trials


def advice_of(trials: Trials, found: Found, tol: float) -> Advice:
    """The advice that follows from a search."""
    one, grown, notes = found.trial, found.growth, []
    error = found.worst if found.error is not None else None
    rounding = None if grown is None else float(np.max(grown.end[np.isfinite(grown.end)], initial=0.0))
    if found.error is None:
        reason = f"a run takes more than {LIMIT:.0e} instructions, about a minute, and was not made twice"
        if found.reason:
            notes.append(f"the step keeps the tolerance {found.reason}")
    elif rounding is not None and rounding > RESOLVED:
        reason = "two runs whose starts differ by one unit in the last place come apart"
    elif rounding is not None and found.worst <= SURE * rounding:
        reason = f"{SURE:g} times what rounding makes of two runs that begin one unit in the last place apart"
    else:
        reason = "runs with longer steps differ from it by this, or its order tells so"
    if one is not None and trials.batch > 1:
        missed = np.flatnonzero(one.ended & (found.error > tol)) if found.error is not None else []
        if len(missed):
            worst = missed[int(np.argmax(found.error[missed]))]  # type: ignore[index]
            notes.append(f"missed by {len(missed)} of {trials.batch} trajectories, by most by trajectory {worst}")
        if not one.ended.all():
            failed = np.flatnonzero(~one.ended)
            notes.append(f"{len(failed)} of {trials.batch} trajectories fail, as trajectory {failed[0]} does")
    steps = math.ceil(trials.length / found.h) if one is None else round(one.steps * one.h / found.h)
    work = math.nan if one is None else one.work * one.h / found.h
    ended = trials.t_end if one is None else float(one.t[0, -1])
    return Advice(
        system=trials.system.name, t0=trials.t0, t_end=ended, tol=tol, reached=error, reason=reason,
        chosen=Option(found.method, found.h, found.pace, math.nan if error is None else error, steps, work),
        code=_code(trials, found), horizon=None if math.isinf(found.until) else trials.t0 + math.copysign(
            found.until, trials.t_end - trials.t0), rate=None if grown is None else grown.rate, rounding=rounding,
        size=None if one is None else float(np.max(one.size)), tried=tuple(found.tried), notes=tuple(notes),
    )  # fmt: skip


def _code(trials: Trials, found: Found) -> str:
    """The line that repeats the run."""
    verb = "integrate" if trials.one else "ensemble"
    start = "q0=q0, p0=p0" if trials.given[2] is None else "q0=q0, v0=v0"
    more = "" if trials.t0 == 0 else f", t0={trials.t0!r}"
    more += "" if trials.params is None else ", params=params"
    more += "" if not trials.events else ", events=events"
    if found.pace is not None:
        more += f", pace={found.pace!r}" if isinstance(found.pace, str) else ", pace=pace"
    h = math.copysign(found.h, trials.t_end - trials.t0)
    return f'la.{verb}(system, "{found.method}", {start}, h={h!r}, t_end={trials.t_end!r}{more})'


def with_run(advice: Advice, path: Path) -> Advice:
    """The advice after the run that was made with it."""
    size = float(np.ptp(np.asarray(path.q, float), axis=0).max()) if advice.size is None else advice.size
    steps = int(path.stats.get("steps", len(path) - 1))
    chosen = replace(advice.chosen, steps=steps)
    notes = advice.notes
    if advice.horizon is not None and path.output is None and not (path.system.depends_on_time or path.system.forced):
        change = float(np.ptp(np.asarray(path.energy(), float)))
        notes = (
            *notes,
            f"beyond this time positions are those of a nearby motion; the energy stays within {change:.1e}",
        )
    return replace(advice, size=size, chosen=chosen, t_end=float(path.t[-1]), notes=notes)


def warn_if_missed(advice: Advice, stacklevel: int) -> None:
    """A warning if a tolerance was missed, or if nobody has looked."""
    assert advice.tol is not None
    if advice.reached is not None and advice.reached <= advice.tol:
        return
    what = "may have been missed" if advice.reached is None else "was missed"
    told = "; ".join([advice.expected, *advice.notes])
    warnings.warn(f"the tolerance {advice.tol:g} {what}: {told}", RuntimeWarning, stacklevel=stacklevel)
