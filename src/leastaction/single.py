"""Single runs: with a given method and step; and the question for both, which pilots answer."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from leastaction.errors import StepFailed
from leastaction.events import Event, Impact
from leastaction.methods import Method
from leastaction.numbers.rounding import FLOAT64
from leastaction.pilots import LAST, Asked, choose, choose_by_dispersion
from leastaction.results.assembly import from_archive, from_memory
from leastaction.results.path import Path
from leastaction.run.advice import Advice
from leastaction.run.archive import Disk
from leastaction.run.batches import prepare
from leastaction.run.checks import archive_path, number, positive
from leastaction.run.interrupts import preparing
from leastaction.run.memory import Memory
from leastaction.run.plan import check_length, plan_run
from leastaction.run.starts import Starts, begin
from leastaction.run.waiting import compiling
from leastaction.systems.pace import AUTO, paced, worth_a_pace
from leastaction.systems.protocol import System, check_system

TRIES = 5  # the most runs that try to keep a tolerance, or to find an early end
SCOUT, COARSE, MOST_COARSE = "P4N4Q8Gau", 0.25, 4000  # the run that finds an early end: its steps, over ω; their number
LATER = 1.01  # times as long as until that end pilots go


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
