"""Single runs: with a given method and step, or with those that advice chooses for a tolerance."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from leastaction.ends import SAMPLES, Ends, assured, ends
from leastaction.errors import StepFailed
from leastaction.events import Event, Impact
from leastaction.methods import Method
from leastaction.methods import method as method_named
from leastaction.numbers.rounding import FLOAT64
from leastaction.pilots import LAST, USEFUL, Asked, choose, choose_by_dispersion
from leastaction.results.assembly import from_archive, from_memory
from leastaction.results.path import Path
from leastaction.run.advice import Advice, Option
from leastaction.run.archive import Disk
from leastaction.run.batches import prepare
from leastaction.run.checks import number, positive
from leastaction.run.interrupts import preparing
from leastaction.run.memory import Memory
from leastaction.run.plan import check_length, plan_run
from leastaction.run.starts import Starts, begin
from leastaction.run.waiting import compiling
from leastaction.systems.pace import AUTO, paced, worth_a_pace
from leastaction.systems.protocol import System, check_system

FINER = 1.25  # the steps of the chosen run are shorter by this factor than those of the run that judges it
TRIES = 5  # the most runs that try to keep a tolerance
SHORTER = 0.2  # the smallest factor of the step from one try to the next
AIMED, DEARER = 0.3, 2.0  # of tol, a try aims at; times as dear as another option a try may be
MORE, TIMELY = 32, 256  # a run may have one step in so many more, and so many numbers of steps are looked at, at most
SIZED = 16  # states from which the size of a motion is measured
SCOUT, COARSE, MOST_COARSE = "P4N4Q8Gau", 0.25, 4000  # the run that finds an early end: its steps, over ω; their number
LATER = 1.01  # times as long as until that end pilots go
CHECKED_SECONDS = 5.0  # a run that takes longer is not done twice
SLOWER_HERE = "slower with steps as short as the run needs"


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
    clock = time.perf_counter()
    with preparing("nothing was computed, and no archive was begun"), compiling():
        plan, starts = plan_run(system, method, start, every=positive("every", every), advice=advice, **asked)
        memory = Memory(plan, starts) if store is None else None  # first check that there is room
        check_length(plan)
        told = prepare(plan, starts, None if memory is None else memory.standing)
    told["compile_time"] = time.perf_counter() - clock
    if memory is not None:
        return from_memory(memory, told, progress, threads=threads)
    assert store is not None
    with Disk.creating(FilePath(store), plan, starts, [(0, 1)]) as disk:
        return from_archive(disk, told, progress, threads=threads)


@dataclass(frozen=True, eq=False)
class Question:
    """A run without method and step; of its events those that change the motion: walls, and events that end it."""

    system: System
    start: tuple[Any, Any, Any]
    t_end: Any
    t0: Any
    params: Mapping[str, Any] | None
    pace: Any
    events: Mapping[str, Event | Impact] | None = None

    @property
    def walls(self) -> dict[str, Impact]:
        """Walls, which pilots meet, too."""
        return {name: event for name, event in (self.events or {}).items() if isinstance(event, Impact)}

    @property
    def decisive(self) -> dict[str, Event | Impact]:
        """The events on which the end of the run depends."""
        return {name: event for name, event in (self.events or {}).items() if isinstance(event, Impact) or event.stop}

    def _ending(self, starts: Starts, t0: float, t_end: float) -> float:
        """Until when pilots have to go: where events may end the run, until a little later than a coarse run finds."""
        if len(self.decisive) == len(self.walls):
            return t_end
        at = (starts.q[0], starts.p[0], starts.v[0], starts.params[0])
        length = abs(t_end - t0)
        h = COARSE / max(self.system.frequency(t0, *at, length), 1 / length)
        for _ in range(TRIES):
            until = min(length, MOST_COARSE * h)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    last = t0 + math.copysign(until, t_end - t0)
                    path = self.attempt(
                        SCOUT, math.copysign(h, t_end - t0), last, self.pace, every=LAST, events=self.decisive
                    )
            except StepFailed:
                h /= 4
                continue
            ended = float(path.t[-1]) - t0
            return t0 + LATER * ended if 0 < LATER * abs(ended) < until else t_end
        return t_end

    def run(self, method: str, h: float, t_end: Any, pace: Any, **options: Any) -> Path:
        return run_one(
            self.system, method, self.start, h=h, t_end=t_end, t0=self.t0, params=self.params, pace=pace, **options
        )

    def attempt(self, method: str, h: float, t_end: Any, pace: Any, **options: Any) -> Path:
        """A run that shorter steps may follow: of a large system no step is continued, which would take minutes."""
        return self.run(method, h, t_end, pace, hasty=not self.system.has_tangent, **options)

    def advice(self, tol: float) -> Advice:
        """Method and step for a tolerance, and the pace, if paces may be tried."""
        if self.t_end is None:
            raise ValueError("tol= bounds the error at the end of the run: give t_end=")
        t0, t_end = number("t0", self.t0), number("t_end", self.t_end)
        if t0 == t_end:
            raise ValueError(f"t_end must differ from the start, t0 = {t0:g}")
        starts = begin(self.system, FLOAT64, *self.start, t0, self.params, False)
        t_end = self._ending(starts, t0, t_end)
        system, paces = self.system, tuple[Any, ...]((self.pace,))
        if self.pace is None and system.has_tangent and worth_a_pace(system):
            paces = (None, AUTO)

        unit = 1.0  # pilots count s in units of the pace of the start: then h is a step of t there
        if self.pace is not None and self.pace != AUTO:
            at_pace, row = paced(system, self.pace, FLOAT64), starts.params[:1]
            unit = float(at_pace.paces(np.array([t0]), starts.q[:1], row)[0])
            unit = unit if math.isfinite(unit) and unit > 0 else 1.0  # the run tells what is wrong

        def pilot(method: str, h: float, t_end: float, pace: Any, every: int, tangent: bool, most: int) -> Path:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self.attempt(
                    method, h / unit, t_end, pace, every=every, tangent=tangent, most=most, events=self.walls or None
                )  # fmt: skip

        # Derivatives pass walls where L is quadratic in v; else errors are taken to grow like t.
        even = system.linear or bool(self.walls and system.mass_varies_with_velocity)
        q, p, v, params = starts.q[0], starts.p[0], starts.v[0], starts.params[0]
        near = None
        if not system.has_tangent:
            near = partial(_beside, replace(self, events=self.walls or None), t0, q, v, params)
        asked = Asked(pilot, system.name, system.n, t0, t_end, paces, even, system.m, near=near)
        lines = None if self.walls or self.pace is not None else system.excited(q, p, t_end - t0)
        if lines is not None:
            return choose_by_dispersion(asked, lines, tol)
        length = abs(t_end - t0)
        advice = choose(replace(asked, omega=max(system.frequency(t0, q, p, v, params, length), 1.0 / length)), tol)
        options = tuple(replace(one, h=one.h / unit) for one in advice.options)
        return replace(advice, options=options, chosen=options[advice.options.index(advice.chosen)])


def _beside(
    question: Question,
    t0: float,
    q: Any,
    v: Any,
    params: Any,
    step: Any,
    method: str,
    h: float,
    t_end: float,
    every: int,
) -> Path:
    """A run that begins beside another one, which begins at q and v, by a step of 2n numbers in q and p."""
    system: Any = question.system
    p = system.momentum(q, v, t0, params)
    q, p = q + step[: system.n], p + step[system.n :]
    if system.m:
        q, v = system.project(q, system.velocity(q, p, t0, params), t0, params)
        p = system.momentum(q, v, t0, params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        beside = replace(question, start=(q, p, None))
        return beside.attempt(method, h, t_end, None, every=every, events=question.events)


def measurable(system: System, pace: Any, inputs: Any = None) -> System:
    """The system as pilots can run it: a sum is written out, unless it is large and has no pace. Inputs, which belong
    to steps, are refused.
    """
    check_system(system)
    if inputs or system.inputs:
        raise ValueError(
            "tol= tries many methods and steps, and inputs have values for the steps of one method: give method= and "
            "h=, and compare with a run of h/2"
        )
    return system.expanded() if system.has_tangent or pace is not None else system


def advised(question: Question, advice: Advice, options: dict[str, Any]) -> Path:
    """A run with the chosen option; its error is estimated by its difference from a run with longer steps."""
    chosen, tol, order = advice.chosen, advice.tol, method_named(advice.chosen.method).order
    assert tol is not None
    h = math.copysign(chosen.h, advice.t_end - advice.t0)
    output = options["output"]

    def end(path: Path, t: Any = None) -> Any:
        """The position at the end of a run; at this time, if an event has ended another run a little earlier or later:
        all runs end on the surface of the event, and they differ by when they come there.
        """

        def some(rows: Any, whole: bool) -> Any:
            row = np.asarray(rows[-1], float)
            return row if output is None or not whole else row[np.asarray(output)]

        q = some(path.q, path.output is None)
        if t is None or not question.decisive:
            return q
        return q + float(t - path.t[-1]) * some(first.velocity(), True)

    size, checked = advice.size, chosen.seconds < CHECKED_SECONDS
    reached, plain = None, options | {"store": None}  # an archive is written once, when the step is final

    def run(h: float) -> tuple[float, Path, float]:
        """A run with steps that are a little shorter than h, with its steps and its seconds."""
        h = finer(h, replace(advice, chosen=chosen))
        clock = time.thread_time()  # not the time of day: other programs may run beside this one
        path = question.run(chosen.method, h, question.t_end, chosen.pace, **plain)
        return h, path, time.thread_time() - clock

    def judged(path: Path, other: Path) -> tuple[Ends, float]:
        """Where a run ends, and its error by another run."""
        nonlocal size
        size = max(size, _range(path))  # the pilot may have been shorter
        there = ends(advice, [end(path)], size, _moving(path))
        return there, float(there.errors([end(other, path.t[-1])], tol)[0])

    stuck, missed = 0, 0.0
    for attempt in range(TRIES):
        tried = attempt > 0
        if checked:
            every = LAST if math.isfinite(size) else max(1, chosen.steps // SIZED)
            asked, (h, first) = h, _solvable(question, chosen, h, every)
            tried |= h != asked
            size = size if math.isfinite(size) else float(np.ptp(first.q, axis=0).max()) or 1.0
        try:
            h, path, spent = run(h)
            if not checked:
                size = size if math.isfinite(size) else _range(path)
                break
            there, error = judged(path, first)
            if tried and error <= tol:  # by steps that pilots do not know: two runs may agree by chance
                second = path
                h, path, spent = run(h)
                there, by_third = judged(path, second)
                error = max(error, by_third)
        except StepFailed:
            if not checked or attempt == TRIES - 1:
                raise
            h = h / 2
            continue
        common, last, reached = float(there.common[0]), reached, error
        stuck += last is not None and last <= USEFUL and reached > last / 2
        # tol is kept, or what all runs have in common is reached; or the error is rounding, which a horizon lets
        # expect; or nobody can know the end of the motion.
        aim, lost = max(tol, common), advice.horizon is not None and reached > USEFUL
        if reached <= aim or stuck > (1 if advice.horizon is None else 0) or lost or attempt == TRIES - 1:
            break  # h stays that of the run
        larger = reached / (AIMED * aim)
        missed, shorter = max(missed, larger), max(SHORTER, larger ** (-1 / order))
        other = _for_less(advice, missed, spent * larger ** (1 / order), chosen)
        if other is not None:
            chosen, order, reached = other, method_named(other.method).order, None
            h = math.copysign(chosen.h * missed ** (-1 / order), h)
            continue
        if 2 * spent / shorter > CHECKED_SECONDS:
            break
        h = h * FINER * shorter
    if checked and reached is not None and reached <= tol:

        def again(part: float) -> Any:
            return [end(_solvable(question, chosen, h * part, LAST)[1], path.t[-1])]

        affordable = SAMPLES * spent <= CHECKED_SECONDS
        reached = float(there.with_rounding(np.array([reached]), tol, again if affordable else None)[0])
    if reached is not None and reached <= tol:
        advice = assured(advice)
    made = None if path.advice is None else path.advice.made
    notes = advice.notes
    if not checked:
        notes = (*notes, "the error reached was not estimated: a second run would take too long")
    if advice.horizon is not None:
        notes = (*notes, *_energy_told(path))
    if chosen is not advice.chosen:
        rows = (
            replace(one, why=one.why or SLOWER_HERE) if one.seconds < chosen.seconds else one for one in advice.options
        )
        advice = replace(advice, options=tuple(rows))
    advice = replace(
        advice, size=size, reached=reached, made=made, chosen=replace(chosen, h=abs(float(path.h))), notes=notes
    )
    path = replace(path, advice=advice)
    if options["store"] is not None:
        path = question.run(chosen.method, h, question.t_end, chosen.pace, advice=advice, **options)
    tell_if_missed(advice, 4)
    return path


def _for_less(advice: Advice, missed: float, seconds: float, now: Option) -> Option | None:
    """Another option than that of now, if the next try would take DEARER times as many seconds as it. The error that is
    aimed at was missed so many times with the steps of the advice: pilots that end before the motion becomes quick take
    all members for alike, and then high orders need the least shorter steps.
    """

    def cost(one: Option) -> float:
        return one.seconds * missed ** (1 / method_named(one.method).order)

    others = (one for one in advice.options if not one.why and one is not now)
    best = min(others, key=cost, default=now)
    return best if best is not now and cost(best) < min(seconds / DEARER, CHECKED_SECONDS) else None


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
    tol, reached = advice.tol, advice.reached
    if tol is not None and reached is not None and reached > tol:
        stay = "" if not advice.notes else f" ({'; '.join(advice.notes)})"
        warnings.warn(
            f"the tolerance {tol:g} was missed: the error at t = {advice.t_end:g} is about {reached:.1e}{stay}",
            RuntimeWarning,
            stacklevel=stacklevel,
        )
