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
    one, grown = found.trial, found.growth
    reached = None if found.error is None else found.worst
    rounding = None if grown is None else float(np.max(grown.end[np.isfinite(grown.end)], initial=0.0))
    times = 1.0 if one is None else one.h / found.h
    steps = math.ceil(trials.length / found.h) if one is None else round(one.steps * times)
    return Advice(
        system=trials.system.name,
        chosen=Option(
            found.method, found.h, found.pace, math.nan if reached is None else reached, steps,
            math.nan if one is None else one.work * times,
        ),
        t0=trials.t0,
        t_end=trials.t_end if one is None or trials.many else float(one.t[0, -1]),
        tol=tol,
        reached=reached,
        reason=_reason(found, rounding),
        code=_code(trials, found),
        horizon=None if math.isinf(found.until) else _after(trials, found.until),
        rate=None if grown is None else grown.rate,
        rounding=rounding,
        size=None if one is None else float(np.max(one.size)),
        tried=tuple(found.tried),
        notes=_notes(trials, found, tol),
    )  # fmt: skip


def _after(trials: Trials, time: float) -> float:
    return trials.t0 + math.copysign(time, trials.t_end - trials.t0)


def _reason(found: Found, rounding: float | None) -> str:
    """How the error is known, or why it is not."""
    if found.error is None:
        return f"a run takes more than {LIMIT:.0e} instructions, ten seconds or more, and was not made twice"
    if rounding is not None and rounding > RESOLVED:
        return "two runs whose starts differ by one unit in the last place come apart"
    if rounding is not None and found.worst <= SURE * rounding:
        return f"{SURE:g} times what rounding makes of two runs that begin one unit in the last place apart"
    return "estimated by two runs with longer steps"


def _notes(trials: Trials, found: Found, tol: float) -> tuple[str, ...]:
    """Which trajectories of an ensemble miss the tolerance, or fail."""
    one, notes, of = found.trial, [], f"of {trials.batch} trajectories"
    if one is None or found.error is None or not trials.many:
        return ()
    missed = np.flatnonzero(one.ended & (found.error > tol))
    if len(missed):
        worst = missed[int(np.argmax(found.error[missed]))]
        notes.append(f"missed by {len(missed)} {of}, by most by trajectory {worst}")
    failed = np.flatnonzero(~one.ended)
    if len(failed):
        notes.append(f"{len(failed)} {of} fail, as trajectory {failed[0]} does")
    return tuple(notes)


def _code(trials: Trials, found: Found) -> str:
    """The line that repeats the run."""
    verb = "ensemble" if trials.many else "integrate"
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
    chosen, notes, system = replace(advice.chosen, h=abs(float(path.h)), steps=steps), advice.notes, path.system
    if advice.horizon is not None and path.output is None and not (system.depends_on_time or system.forced):
        change = float(np.ptp(np.asarray(path.energy(), float)))
        notes += (f"beyond this time positions are those of a nearby motion; the energy stays within {change:.1e}",)
    return replace(advice, size=size, chosen=chosen, t_end=float(path.t[-1]), notes=notes)


def warn_if_missed(advice: Advice, stacklevel: int) -> None:
    """A warning if a tolerance was missed, or if neither a second run nor a formula tells the error."""
    assert advice.tol is not None
    if advice.chosen.error <= advice.tol:
        return
    what = "may have been missed" if advice.reached is None else "was missed"
    told = "; ".join([advice.expected, *advice.notes])
    warnings.warn(f"the tolerance {advice.tol:g} {what}: {told}", RuntimeWarning, stacklevel=stacklevel)
