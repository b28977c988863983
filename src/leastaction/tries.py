"""Runs that try to keep a tolerance: two with the chosen option, whose difference is the error, and shorter steps while
it is above tol.
"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from leastaction.ends import SAMPLES, Ends, assured, ends
from leastaction.errors import StepFailed
from leastaction.methods import method as method_named
from leastaction.pilots import LAST, SURE, USEFUL
from leastaction.results.path import Path
from leastaction.run.advice import Advice, Option
from leastaction.single import TRIES, Question

SLOWER_HERE = "slower with steps as short as the run needs"
FINER = 1.25  # the steps of the chosen run are shorter by this factor than those of the run that judges it
SHORTER = 0.2  # the smallest factor of the step from one try to the next
AIMED, DEARER = 0.3, 2.0  # of tol, a try aims at; times as dear as another option a try may be
MORE, TIMELY = 32, 256  # a run may have one step in so many more, and so many numbers of steps are looked at, at most
SIZED = 16  # states from which the size of a motion is measured
CHECKED_SECONDS = 60.0  # a run that takes longer is not done twice …
FURTHER_SECONDS = 15.0  # … and no further runs are done that take longer together


def advised(question: Question, advice: Advice, options: dict[str, Any]) -> Path:
    """A run with the chosen option; its error is estimated by its difference from a run with longer steps."""
    tries = Tries(question, advice, options)
    if advice.chosen.seconds < CHECKED_SECONDS:
        tries.repeat()
        tries.see_rounding()
    else:
        tries.once()
    told, path = tries.told(), tries.path
    if options["store"] is None:
        path = replace(path, advice=told)
    else:  # an archive is written once, when the step is final
        path = question.run(tries.chosen.method, tries.h, question.t_end, tries.chosen.pace, advice=told, **options)
    tell_if_missed(told, 4)
    return path


class Tries:
    """Runs with an option of an advice, one after the other.

    chosen   the option, and h its steps: of the last run, until those of the next one are chosen
    rough    the run with longer steps that judges the last one
    path     the last run, its seconds `spent`, and where it ends, `there`
    reached  the error of the last run with this option; None if it was not estimated
    size     of the motion
    """

    rough: Path
    path: Path
    spent: float
    there: Ends
    reached: float | None = None

    def __init__(self, question: Question, advice: Advice, options: dict[str, Any]) -> None:
        assert advice.tol is not None
        self.question, self.advice, self.tol, self.options = question, advice, advice.tol, options | {"store": None}
        self.chosen, self.h = advice.chosen, math.copysign(advice.chosen.h, advice.t_end - advice.t0)
        self.size = advice.size
        self._stuck, self._missed = 0, 0.0  # tries that gained little; the most times by which an aim was missed

    def once(self) -> None:
        """A run that takes too long to be done twice."""
        self._run()
        self.size = self.size if math.isfinite(self.size) else _range(self.path)

    def repeat(self) -> None:
        """Runs in pairs, with shorter and shorter steps, until the tolerance is kept or nothing more is gained."""
        for attempt in range(TRIES):
            last, asked = attempt == TRIES - 1, self.h
            self._run_roughly()
            try:
                error = self._error(known=attempt == 0 and self.h == asked)
            except StepFailed:
                if last:
                    raise
                self.h /= 2
                continue
            before, self.reached = self.reached, error
            if last or self._settled(error, before):
                return
            if not self._shorten(error):
                self.reached = self._by_order(error)
                return

    def _run_roughly(self) -> None:
        """The run that is to judge the next one."""
        every = LAST if math.isfinite(self.size) else max(1, self.chosen.steps // SIZED)
        self.h, self.rough = _solvable(self.question, self.chosen, self.h, every)
        self.size = self.size if math.isfinite(self.size) else float(np.ptp(self.rough.q, axis=0).max()) or 1.0

    def _error(self, known: bool) -> float:
        """The error of a run, by the rough one. If pilots do not know such steps, two runs may agree by chance: then a
        third run judges, too.
        """
        self._run()
        error = self._judged_by(self.rough)
        if known or error > self.tol:
            return error
        second = self.path
        self._run()
        return max(error, self._judged_by(second))

    def _run(self) -> None:
        """A run with steps that are a little shorter."""
        chosen, h = self.chosen, finer(self.h, replace(self.advice, chosen=self.chosen))
        clock = time.thread_time()  # not the time of day: other programs may run beside this one
        self.path = self.question.run(chosen.method, h, self.question.t_end, chosen.pace, **self.options)
        self.spent, self.h = time.thread_time() - clock, h

    def _judged_by(self, other: Path) -> float:
        """The error of the last run by another one."""
        path = self.path
        self.size = max(self.size, _range(path))  # the pilot may have been shorter
        self.there = ends(self.advice, [self._end(path)], self.size, _moving(path))
        return float(self.there.errors([self._end(other, path.t[-1])])[0])

    def _end(self, path: Path, t: Any = None) -> Any:
        """The position at the end of a run; at this time, if an event has ended another run a little earlier or later:
        all runs end on the surface of the event, and they differ by when they come there.
        """
        q = self._asked_for(path.q, path.output is None)
        if t is None or not self.question.decisive:
            return q
        return q + float(t - path.t[-1]) * self._asked_for(self.rough.velocity(), True)

    def _asked_for(self, rows: Any, whole: bool) -> Any:
        """Of the last row, which may be whole, the numbers that are asked for."""
        row, output = np.asarray(rows[-1], float), self.options["output"]
        return row if output is None or not whole else row[np.asarray(output)]

    @property
    def _aim(self) -> float:
        """The error that can be asked for: no less than what all runs have in common."""
        return max(self.tol, float(self.there.common[0]))

    def _settled(self, error: float, before: float | None) -> bool:
        """Whether the aim is reached; or the error is rounding, which a horizon lets expect; or nobody can know the end
        of the motion.
        """
        endless = self.advice.horizon is not None
        self._stuck += before is not None and before <= USEFUL and error > before / 2
        return error <= self._aim or self._stuck > (0 if endless else 1) or (endless and error > USEFUL)

    def _shorten(self, error: float) -> bool:
        """The steps of the next try, of this option or of one that has become cheaper; whether there is time for it."""
        larger, order = error / (AIMED * self._aim), method_named(self.chosen.method).order
        self._missed = max(self._missed, larger)
        other = _for_less(self.advice, self._missed, self.spent * larger ** (1 / order), self.chosen)
        if other is not None:
            self.chosen, self.reached = other, None
            self.h = math.copysign(other.h * self._missed ** (-1 / method_named(other.method).order), self.h)
            return True
        shorter = max(SHORTER, larger ** (-1 / order))
        if 2 * self.spent / shorter > FURTHER_SECONDS:
            return False
        self.h = self.h * FINER * shorter
        return True

    def _by_order(self, error: float) -> float:
        """The error of the last run where there is no time for shorter steps. The difference of two runs is about the
        error of the one with longer steps; with half of its order the other one is so many times better.
        """
        better = FINER ** (method_named(self.chosen.method).order / 2) - 1
        return max(error / max(better, 1.0) if error <= USEFUL else error, float(self.there.common[0]))

    def see_rounding(self) -> None:
        """What rounding on the way adds, which further runs show where the tolerance seems to be kept. Where it is
        missed, no less is told than is expected of rounding; but of errors that grow exponentially the bound says
        little.
        """
        if self.reached is None:
            return
        if self.reached > self.tol:
            if self.advice.growth is not None and not self.advice.growth.rate:
                self.reached = max(self.reached, float(self.there.unseen[0]) / SURE)
            return

        def again(part: float) -> Any:
            other = _solvable(self.question, self.chosen, self.h * part, LAST)[1]
            return [self._end(other, self.path.t[-1])]

        affordable = SAMPLES * self.spent <= FURTHER_SECONDS
        found = self.there.with_rounding(np.array([self.reached]), self.tol, again if affordable else None)
        self.reached = float(found[0])

    def told(self) -> Advice:
        """The advice with what the runs have shown."""
        path, reached = self.path, self.reached
        advice = assured(self.advice) if reached is not None and reached <= self.tol else self.advice
        notes = advice.notes
        if reached is None:
            unknown = f"the error reached was not estimated: a second run would take some {self.spent:.0f} s"
            same = "" if self.chosen.pace is None else " and the same pace"
            notes = (*notes, f"{unknown}. Compare with method={self.chosen.method!r}, h={1.5 * abs(self.h):.4g}{same}")
        if advice.horizon is not None:
            notes = (*notes, *_energy_told(path))
        if self.chosen is not self.advice.chosen:
            left = (one.seconds < self.chosen.seconds and not one.why for one in advice.options)
            rows = zip(advice.options, left, strict=True)
            advice = replace(advice, options=tuple(replace(one, why=SLOWER_HERE) if out else one for one, out in rows))
        made = None if path.advice is None else path.advice.made
        chosen = replace(self.chosen, h=abs(float(path.h)))
        return replace(advice, size=self.size, reached=reached, made=made, chosen=chosen, notes=notes)


def _for_less(advice: Advice, missed: float, seconds: float, now: Option) -> Option | None:
    """Another option than that of now, if the next try would take DEARER times as many seconds as it. The error that is
    aimed at was missed so many times with the steps of the advice: pilots that end before the motion becomes quick take
    all members for alike, and then high orders need the least shorter steps.
    """

    def cost(one: Option) -> float:
        return one.seconds * missed ** (1 / method_named(one.method).order)

    others = (one for one in advice.options if not one.why and one is not now)
    best = min(others, key=cost, default=now)
    return best if best is not now and cost(best) < min(seconds / DEARER, FURTHER_SECONDS) else None


def finer(h: float, advice: Advice) -> float:
    """The steps of the run that is judged by one with steps h."""
    return h / FINER if advice.chosen.pace is not None else timely(h / FINER, advice.t_end - advice.t0)


def timely(h: float, length: float) -> float:
    """A step, at most as long as h, of which a whole number is this length as exactly as possible: after N steps the
    rounding of h has become N times as large, an error of the time at the end.
    """
    first = max(1, math.ceil(length / h))
    steps = range(first, first + min(first // MORE, TIMELY) + 1)
    count = min(steps, key=lambda N: abs(Fraction(length / N) * N - Fraction(length)))
    return length / count


def _range(path: Path) -> float:
    """The largest range of a coordinate in the states that are stored."""
    return float(np.ptp(np.asarray(path.q, float), axis=0).max())


def _moving(path: Path) -> bool:
    """Whether anything moves; of runs that store part of their states this is not known."""
    return path.output is not None or bool(_range(path) or np.any(path.velocity()))


def _solvable(question: Question, chosen: Option, h: float, every: int) -> tuple[float, Path]:
    """A run with this step, or with a shorter one, since a run may meet steps that are harder than its pilot's. And two
    runs that an event ends in their first step are the same, whatever their steps.
    """
    events = question.decisive or None
    for attempt in range(TRIES):
        try:
            path = question.attempt(chosen.method, h, question.t_end, chosen.pace, every=every, events=events)
            if not events or path.stats["steps"] > 0 or attempt == TRIES - 1:
                return h, path
            h = h / 2 if chosen.pace is not None else float(path.t[-1] - path.t[0]) / 2
        except StepFailed as failure:
            if attempt == TRIES - 1:
                failure.add_note(
                    "tol= has tried shorter and shorter steps, and these were the last. Where bodies come near to each "
                    "other give pace=, a function of q that is small there, or soften L; or give method= and h="
                )
                raise
            h = h / 2
    raise AssertionError("the last attempt returns or raises")


def _energy_told(path: Path) -> list[str]:
    """A note on how well a run keeps its energy, if the energy is constant and whole states are stored."""
    system: Any = path.system
    if path.output is not None or system.depends_on_time or system.forced:
        return []
    p, v = np.asarray(path.p, float), np.asarray(path.velocity(), float)
    change, kinetic = float(np.ptp(path.energy())), float(np.abs(p * v).sum(axis=1).max()) / 2
    return [f"the energy of the run stays within {change:.1e}, {change / (kinetic or 1.0):.1e} of the kinetic energy"]


def tell_if_missed(advice: Advice, stacklevel: int) -> None:
    """A warning if a tolerance was missed, or if nobody has looked. Where formulas give the error nobody has to."""
    tol, reached, foreseen = advice.tol, advice.reached, advice.chosen.error
    assert tol is not None
    if reached is not None:
        if reached <= tol:
            return
        what = f"the tolerance {tol:g} was missed: the error at t = {advice.t_end:g} is about {reached:.1e}"
    else:
        if advice.growth is None and foreseen <= tol:
            return
        error = max(foreseen, float(np.nan_to_num(advice.rounding)))
        what = f"the tolerance {tol:g} may have been missed: short runs foretell an error of {error:.1e}"
    stay = "" if not advice.notes else f" ({'; '.join(advice.notes)})"
    warnings.warn(f"{what}{stay}", RuntimeWarning, stacklevel=stacklevel)
