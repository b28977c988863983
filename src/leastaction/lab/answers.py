"""Answers to what a page asks: a run, points of a section, code, a page to keep. Nothing is remembered between them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from leastaction.errors import ConstraintError, StepFailed, measuring
from leastaction.integrate import integrate
from leastaction.lab.code import code
from leastaction.lab.settings import RunSettings, Settings, check_steps, number, settings, vector, whole
from leastaction.lab.subjects import METHODS, Subjects
from leastaction.numbers.arrays import FloatArray
from leastaction.results import looks
from leastaction.results.path import Path
from leastaction.results.sections import crossings, strobe, wrapped
from leastaction.results.viewer.drawing import drawing
from leastaction.results.viewer.pack import Pack
from leastaction.results.viewer.scene import SceneOptions, scene
from leastaction.results.viewer.show import path_page
from leastaction.step.samples import Samples
from leastaction.systems.projection import project

LIVE_MEGABYTES = 0.8
KEPT = 200_000  # states kept of a run
SECTION_STEPS = 40_000
LONGEST = 20  # seconds of one run
TRIED = 0.03  # seconds of steps from which the time of a longer run is estimated
CERTAINLY_SHORT = 5e6  # steps, times the square of a step's unknowns
PULLS, NEAR = 60, 0.1  # how often a linkage is pulled and closed again, and how far each time, in parts of its size


class Answers:
    """Answers to requests, each a mapping with the word "what"; ValueError and its like carry words for the page."""

    def __init__(self, subjects: Subjects) -> None:
        self.subjects = subjects
        self._answers: dict[str, Callable[[Any, Pack], Any]] = {
            "hello": lambda asked, pack: {"subjects": self.subjects.titles(), "methods": list(METHODS)},
            "subject": lambda asked, pack: self.subjects.get(asked.get("subject")).describe(),
            "run": self._run,
            "section": self._section,
            "code": self._code,
            "html": self._html,
        }

    def answer(self, asked: Any) -> bytes:
        """A request's answer as a message of scene and buffers, or of an error's words."""
        pack = Pack()
        try:
            if not isinstance(asked, Mapping) or asked.get("what") not in self._answers:
                raise ValueError("the lab does not know this request")
            return pack.to_bytes(self._answers[asked["what"]](asked, pack))
        except Exception as error:  # also errors of a user's own drawing: the page shows the error, and the lab goes on
            return Pack().to_bytes({"error": str(error)[:600] or type(error).__name__})

    def _run(self, asked: Any, pack: Pack) -> Any:
        clock = time.perf_counter()
        wanted = consistent(settings(self.subjects, asked))
        if asked.get("drag") is not None:
            wanted = pulled(wanted, asked["drag"])
        paths, notes = run_all(wanted)
        begin = wanted.after if wanted.after > 0 else None
        options = SceneOptions(
            draw=wanted.subject.draw, megabytes=LIVE_MEGABYTES, begin=begin, momenta=False, quick=True
        )
        made = scene(paths, options, pack)
        made["title"] = wanted.subject.title
        return made | {
            "q0": wanted.q0.tolist(),
            "v0": wanted.v0.tolist(),
            "h": [float(path.h) for path in paths],
            "steps": [(len(path) - 1) * path.every for path in paths],
            "notes": notes,
            "seconds_spent": time.perf_counter() - clock,
        }

    def _section(self, asked: Any, pack: Pack) -> Any:
        """Points of a Poincaré section from a state on, and the state reached, from which the next request goes on."""
        wanted = consistent(settings(self.subjects, asked))
        seen, n = wanted.subject.look, wanted.subject.system.n
        run = wanted.runs[0]
        path, note = _integrated(wanted, run, step(wanted, run), SECTION_STEPS, *_from(asked.get("state"), wanted))
        show = whole(asked.get("show", n - 1), "the coordinate shown", n)
        if n > 1:
            coordinate = whole(asked.get("coordinate", 0), "the coordinate of the section", n)
            found = crossings(path, coordinate, number(asked.get("value", 0.0), "the value of the section"))
            last = path.t[-1], path.q[-1], path.p[-1]
        elif seen.period is not None:  # the next request begins with the last point
            every = strobe(path, seen.period(wanted.params))
            found, last = every[:-1], (every.t[-1], every.q[-1], every.p[-1])
        else:
            raise ValueError("a section needs two degrees of freedom, or a driving force with a period")
        x = found.q[:, show]
        t, q, p = last
        return {
            "x": pack.fine(wrapped(x) if show in seen.angles else x),
            "y": pack.fine(found.p[:, show]),
            "state": None if note else {"t": float(t), "q": q.tolist(), "p": p.tolist()},
            "labels": [
                looks.with_unit(seen.name(show), seen.unit("q", show)),
                looks.with_unit(seen.momentum(show), seen.unit("p", show)),
            ],
            "notes": [note] if note else [],
        }

    def _code(self, asked: Any, pack: Pack) -> Any:
        wanted = consistent(settings(self.subjects, asked))
        return {"code": code(wanted, [step(wanted, run) for run in wanted.runs])}

    def _html(self, asked: Any, pack: Pack) -> Any:
        wanted = consistent(settings(self.subjects, asked))
        paths, _ = run_all(wanted)
        text = path_page(paths[0], wanted.subject.draw, paths[1:], begin=wanted.after or None)
        return {"html": text, "name": f"{wanted.subject.key}.html"}


def _from(state: Any, wanted: Settings) -> tuple[dict[str, Any], float]:
    """Where a run starts: at a state that the page sends back, or at the start."""
    if not isinstance(state, Mapping):
        return {"q0": wanted.q0, "v0": wanted.v0}, 0.0
    n = wanted.subject.system.n
    start = {"q0": vector(state.get("q"), "q", n), "p0": vector(state.get("p"), "p", n)}
    return start, number(state.get("t"), "the time")


def run_all(wanted: Settings) -> tuple[list[Path], list[str]]:
    """The paths of all runs, and notes about them."""
    paths, notes = [], []
    for run in wanted.runs:
        start = {"q0": wanted.q0, "v0": wanted.v0}
        h = step(wanted, run)
        path, note = _integrated(wanted, run, h, (wanted.after + wanted.span) / h, start, 0.0)
        paths.append(path)
        notes += [f"{run.name}: {note}"] if note else []
    return paths, notes


def _integrated(
    wanted: Settings, run: RunSettings, h: float, count: float, start: dict[str, Any], t0: float
) -> tuple[Path, str]:
    """A path of this number of steps, as far as it goes, and why it ended early or cannot be trusted."""
    length = count * h
    check_steps(length, h)
    _check_time(wanted, run, h, count, start, t0)
    every = max(1, math.ceil(count / KEPT))
    system = wanted.subject.system
    try:
        with measuring():  # the page shows the warning, below
            path = integrate(
                system, run.method, **start, h=h, t0=t0, t_end=t0 + length, every=every, params=wanted.params,
                pace=run.pace, **_driven(wanted, t0, length),
            )  # fmt: skip
        note = _lost_energy(path)
    except StepFailed as failure:
        path, note = failure.path, _failed(failure)
    sound = np.isfinite(path.q).all(axis=1) & np.isfinite(path.p).all(axis=1)
    if not sound.all():
        first = max(1, int(np.argmin(sound)))
        path = replace(path, t=path.t[:first], q=path.q[:first], p=path.p[:first])
        note = note or f"the motion leaves all bounds at t = {float(path.t[first]):.4g}"
    return path, note


def _driven(wanted: Settings, begin: float, length: float) -> dict[str, Any]:
    """The inputs that drive the system, held at the values of their sliders."""
    times = [begin, begin + length]
    held = {name: Samples(times, [value, value], "previous") for name, value in wanted.inputs.items()}
    return {"inputs": held} if held else {}


def _failed(failure: StepFailed) -> str:
    """The note about a run that has ended before its time."""
    return (
        f"the motion is shown up to t = {failure.time:.4g}: there no step of h = {failure.h:.3g} could be solved. Take "
        "a smaller h, a method with more nodes, or steps by pace"
    )


def _lost_energy(path: Path) -> str:
    """The note about a run that has lost its energy."""
    if "energy_lost" not in path.stats:
        return ""
    _, t, error, size = path.stats["energy_lost"]
    return (
        f"at t = {t:.4g} the energy has changed by {error:.3g}, where the kinetic energy was at most {size:.3g}: take "
        "a smaller h or a method of higher order"
    )


def _check_time(wanted: Settings, run: RunSettings, h: float, count: float, start: dict[str, Any], t0: float) -> None:
    """Refuse a run that would keep the lab busy for too long, by the processor time that a few of its steps take."""
    system = wanted.subject.system
    if not run.paced and count * (system.n * getattr(run.method, "s", 1)) ** 2 < CERTAINLY_SHORT:
        return
    tried, spent = 4, 0.0
    while spent < TRIED and tried < count:
        tried *= 4
        clock = time.process_time()
        try:
            with measuring():
                path = integrate(
                    system, run.method, **start, h=h, t0=t0, steps=tried, every=tried, params=wanted.params,
                    pace=run.pace, **_driven(wanted, t0, tried * h),
                )  # fmt: skip
        except StepFailed:
            return
        spent = time.process_time() - clock if tried > 16 else 0.0  # the first steps include compiling
    seconds = spent / abs(float(path.t[-1]) - t0) * count * h if spent else 0.0
    if seconds > LONGEST:
        raise ValueError(
            f"{run.name} would take some {seconds:.0f} s for this, the lab allows {LONGEST}: take a larger h"
        )


def step(wanted: Settings, run: RunSettings) -> float:
    """The step of a run: given, or found for its tolerance.

    The motion over the first period is computed with h and h/2; the largest difference of q, relative to the size of
    the motion, falls like h^order. The h for the tolerance follows: for each period, not for a whole run.
    """
    if run.h is not None:
        return run.h
    assert run.tol is not None
    subject = wanted.subject
    length = min(subject.period, wanted.after + wanted.span)
    count = 16  # steps in this length
    start: dict[str, Any] = {"q0": wanted.q0, "v0": wanted.v0, "params": wanted.params} | _driven(wanted, 0.0, length)
    for _ in range(12):
        try:
            with measuring():
                coarse, fine = (
                    integrate(subject.system, run.method, **start, h=length / (k * count), steps=k * count, every=k)
                    for k in (1, 2)
                )
        except StepFailed:
            count *= 4
            continue
        size = float(np.abs(fine.q - fine.q[0]).max()) or 1.0
        error = float(np.abs(coarse.q - fine.q).max()) / size
        better = count * (max(error, 1e-16) / (0.6 * run.tol)) ** (1 / run.method.order)
        best = max(2, math.ceil(min(8 * count, max(count / 8, better))))
        if (error <= run.tol and best >= 0.8 * count) or error < 3e-15:
            break
        count = best
        check_steps(wanted.after + wanted.span, length / count)
    return length / count


def consistent(wanted: Settings) -> Settings:
    """The settings with a start on the constraints: the nearest one to what the sliders say."""
    system = wanted.subject.system
    if not system.m:
        return wanted
    q0, v0 = project(system, wanted.q0, wanted.v0, params=wanted.params)
    return replace(wanted, q0=q0, v0=v0)


def pull(place: Callable[[FloatArray], FloatArray], q: FloatArray, target: FloatArray) -> FloatArray:
    """q with place(q) as near to the target as can be, near the old q."""
    from scipy.optimize import least_squares

    return np.asarray(least_squares(lambda x: place(x) - target, q, max_nfev=40).x)


def pulled(wanted: Settings, drag: Any) -> Settings:
    """The settings with another q₀, near the old one: a point of the drawing is nearest to where it is pulled.

    With constraints the point is pulled as if it were free, then q₀ is put back on them, until q₀ no longer moves.
    """
    if not isinstance(drag, Mapping):
        raise ValueError("a drag is a point and where it goes")
    subject = wanted.subject
    p0 = subject.system.momentum(wanted.q0, wanted.v0, 0.0, wanted.params)
    made = drawing(subject.draw, subject.look, subject.system.n, wanted.params, (0.0, wanted.q0, p0))
    points = made.points(np.zeros(1), wanted.q0[None], p0[None])[0]
    point = whole(drag.get("point"), "the point", len(points))
    target = vector(drag.get("to"), "the place", points.shape[1])

    def place(q: FloatArray) -> FloatArray:
        return np.asarray(made.points(np.zeros(1), q[None], p0[None])[0, point])

    if not subject.system.m:
        return replace(wanted, q0=pull(place, wanted.q0, target))
    size = float(np.ptp(points, axis=0).max()) or 1.0
    for _ in range(PULLS):
        away = target - place(wanted.q0)
        part = min(1.0, NEAR * size / (float(np.abs(away).max()) or 1.0))
        try:
            moved = consistent(replace(wanted, q0=pull(place, wanted.q0, place(wanted.q0) + part * away)))
        except ConstraintError:  # no link reaches this far: keep the last q₀
            break
        step, wanted = float(np.abs(moved.q0 - wanted.q0).max()), moved
        if step < 1e-3 * size:
            break
    return wanted
