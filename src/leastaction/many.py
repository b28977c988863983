"""One advice for all trajectories of an ensemble: chosen from some of them, and judged by all."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.ends import SAMPLES, Ends, assured, ends
from leastaction.events import Event, Impact
from leastaction.methods import method as method_named
from leastaction.numbers.rounding import FLOAT64
from leastaction.pilots import USEFUL
from leastaction.run.advice import Advice, Option
from leastaction.run.checks import number
from leastaction.run.standing import Status
from leastaction.run.starts import Starts, begin
from leastaction.single import TRIES, Question
from leastaction.systems.protocol import System
from leastaction.tries import AIMED, FINER, SHORTER, SIZED, finer, tell_if_missed

FloatArray = NDArray[np.float64]

SOME = 4  # trajectories of an ensemble that are measured
JUDGED_SECONDS = 5.0  # of runs that judge an ensemble, of which some trajectories may stand for all


@dataclass(frozen=True, eq=False)
class Many:
    """An ensemble without method and step."""

    system: System
    given: tuple[Any, Any, Any]
    t_end: Any
    t0: Any
    params: Mapping[str, Any] | None
    pace: Any
    events: Mapping[str, Event | Impact] | None

    @cached_property
    def starts(self) -> Starts:
        return begin(self.system, FLOAT64, *self.given, number("t0", self.t0), self.params, True)

    def question(self, i: int) -> Question:
        """Trajectory i alone."""
        start, params = (self.starts.q[i], self.starts.p[i], None), self.system.named(self.starts.params[i])
        return Question(self.system, start, self.t_end, self.t0, params, self.pace, self.events)

    def of(self, some: NDArray[np.int64]) -> dict[str, Any]:
        """The start and the parameters of some trajectories, as la.ensemble takes them. Those of linear systems, whose
        parameters are factors of their matrices, stay together.
        """
        if len(some) == len(self.starts) or self.system.linear:
            return dict(zip(("q0", "p0", "v0"), self.given, strict=True)) | {"params": self.params}
        named = [self.system.named(self.starts.params[i]) for i in some]
        params = {name: np.array([one[name] for one in named]) for name in named[0]}
        return {"q0": self.starts.q[some], "p0": self.starts.p[some], "params": params}

    def advice(self, tol: float) -> Advice:
        """The advice for the one with the shortest steps of some trajectories.

        Some trajectories are measured. Of the methods and paces that suit all of these, the one is chosen with which
        the slowest needs the least time; if none suits all, the choice of the slowest is taken.
        """
        able = np.flatnonzero(self.starts.status == 0)
        some = able[np.unique(np.linspace(0, len(able) - 1, SOME).astype(int))]
        found = [self.question(i).advice(tol) for i in some]
        tables = [{(one.method, one.pace): one for one in advice.options if not one.why} for advice in found]
        shared = set.intersection(*map(set, tables))
        if shared:
            way = min(shared, key=lambda one: max(table[one].seconds for table in tables))
            hardest = min(range(len(tables)), key=lambda k: tables[k][way].h)
            chosen = tables[hardest][way]
            each = dict(zip(some.tolist(), found, strict=True))
            rows = tuple(_left(one, chosen, each) for one in found[hardest].options)
        else:
            hardest = max(range(len(found)), key=lambda k: (bool(found[k].chosen.why), found[k].chosen.seconds))
            chosen, rows = found[hardest].chosen, found[hardest].options
        note = f"one advice for {len(self.starts)} trajectories, from {len(found)} of them; this is trajectory"
        notes = (*found[hardest].notes, f"{note} {some[hardest]}")
        bounds = {name: max(np.nan_to_num(getattr(one, name)) for one in found) for name in ("rounding", "common")}
        return replace(found[hardest], chosen=chosen, options=rows, notes=notes, **bounds)


def _left(one: Option, chosen: Option, found: dict[int, Advice]) -> Option:
    """An option of one trajectory, with the reason if others make it worse than the chosen one: `found` has the advice
    for each.
    """
    if one.why or one is chosen or one.seconds > chosen.seconds:
        return one
    slowest, where = 0.0, 0
    for i, advice in found.items():
        way = (one.method, one.pace)
        there = next((other for other in advice.options if (other.method, other.pace) == way), None)
        if there is None or there.why:
            return replace(one, why=f"{'not measured' if there is None else there.why}, for trajectory {i}")
        slowest, where = max((slowest, where), (there.seconds, i))
    return replace(one, why=f"trajectory {where} takes {slowest:.2g} s with it")


def judged(advice: Advice, count: int, run: Callable[[float, int, NDArray[np.int64]], Any]) -> Advice:
    """The advice for an ensemble of `count` trajectories with the step that keeps the tolerance, and with the error.

    All trajectories are run twice, with steps h and h/FINER, and each is judged by the size of its own motion; of very
    many as many as can be run in JUDGED_SECONDS. A step that was found by trying, and not by pilots, is judged by a
    third run, too: where errors change their sign with h, two runs may agree by chance. Where rounding may be above the
    tolerance, further runs show it (`ends`). `run` takes the step, `every` and the trajectories, and gives Paths.
    """
    chosen, tol, order = advice.chosen, advice.tol, method_named(advice.chosen.method).order
    assert tol is not None
    h = math.copysign(chosen.h, advice.t_end - advice.t0)
    able = int(min(count, max(SOME, JUDGED_SECONDS / max(chosen.seconds, 1e-9))))
    some = np.unique(np.linspace(0, count - 1, able).astype(int))
    reached, stuck = math.nan, 0

    for attempt in range(TRIES):
        every = max(1, math.ceil(chosen.steps * chosen.h / abs(h)) // SIZED)
        rough, h = run(h, every, some), finer(h, advice)
        clock = time.process_time()
        fine = run(h, every, some)
        seconds = 2 * (time.process_time() - clock)
        there = _ends(advice, fine)
        last, errors = reached, _errors(there, rough, fine)
        if attempt > 0 and np.max(errors, initial=0.0) <= tol:
            h = finer(h, advice)
            rough, fine = fine, run(h, every, some)
            there = _ends(advice, fine)
            errors = np.maximum(errors, _errors(there, rough, fine))
        reached = float(np.max(errors, initial=0.0))
        # Of runs that have nothing in common yet differences tell little, unless nobody can know the end of the motion;
        # runs that fail again may never end.
        telling = last <= USEFUL or advice.horizon is not None
        stuck += reached == last or (telling and reached > last / 2)
        if reached <= tol or stuck > 1 or attempt == TRIES - 1:
            break  # h stays that of the run
        shorter = max(SHORTER, (AIMED * tol / reached) ** (1 / order))
        if seconds / shorter > JUDGED_SECONDS:
            break
        h = h * FINER * shorter
    ended = np.isfinite(errors)
    errors = np.where(ended, errors, 0.0)
    if np.max(errors, initial=0.0) <= tol:
        affordable = SAMPLES * seconds / 2 <= JUDGED_SECONDS
        again = (lambda part: _at_same_times(run(h * part, every, some), fine)) if affordable else None
        errors = np.where(ended, there.with_rounding(errors, tol, again), 0.0)
    reached = float(np.max(errors, initial=0.0))
    advice = assured(advice) if reached <= tol else advice
    notes = advice.notes
    if len(some) < count:
        notes = (*notes, f"the error reached is that of {len(some)} trajectories of {count}")
    if not ended.all():
        notes = (
            *notes,
            f"of {len(some)} trajectories {(~ended).sum()} fail, as trajectory {some[np.argmin(ended)]} does",
        )
    if reached > tol:
        worst, missed = some[int(np.argmax(errors))], int((errors > tol).sum())
        notes = (*notes, f"missed by {missed} of {len(some)} trajectories, by most by trajectory {worst}")
    advice = replace(advice, chosen=replace(chosen, h=abs(h)), reached=reached, notes=notes)
    tell_if_missed(advice, 4)
    return advice


def _ends(advice: Advice, fine: Any) -> Ends:
    """The ends of trajectories, each with the size of its own motion."""
    last = np.asarray(fine.last["q"], float)
    q = np.concatenate([np.asarray(fine.q, float), last[:, None]], axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # trajectories that failed have no numbers
        size = np.nanmax(np.nanmax(q, axis=1) - np.nanmin(q, axis=1), axis=1)
    return ends(advice, last, np.where(size > 0, size, 1.0))


def _errors(there: Ends, rough: Any, fine: Any) -> FloatArray:
    """The estimated error of each trajectory; infinite where a run failed."""
    return np.where(rough.failed | fine.failed, np.inf, there.errors(_at_same_times(rough, fine)))


def _at_same_times(rough: Any, fine: Any) -> FloatArray:
    """Where rough runs end, at the times at which fine ones do: events end both on their surface, at other times."""
    q = np.array(rough.last["q"], float)
    for i in np.flatnonzero((rough.status == Status.STOPPED) & (fine.status == Status.STOPPED)):
        one = rough[i]
        q[i] += float(fine[i].t[-1] - one.t[-1]) * np.asarray(one.velocity(), float)[-1]
    return q
