"""Linear systems without damping and load: formulas give the errors (`linear.dispersion`), and only the seconds of a
step are measured.
"""

from __future__ import annotations

import math
import time

from leastaction.linear.dispersion import Excited
from leastaction.pilots.asked import MEMBERS, Asked, member
from leastaction.pilots.budget import PATIENCE
from leastaction.pilots.lab import LAST, MOST
from leastaction.pilots.reach import SECONDS
from leastaction.run.advice import EPS, Advice, Option

FLOOR = 50 * EPS  # the smallest error that is told
MARGIN = 2.0  # the factor by which the predicted error stays below tol
TIMED = 64  # steps of a linear system by which one step is timed
MOST_STEPS = 10**9  # the most steps of a linear system
DRAWN = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)  # times the steps for tol: where the formulas are drawn


def choose_by_dispersion(asked: Asked, there: Excited, tol: float) -> Advice:
    """The advice for a linear system without damping and load: errors by formulas, one timing of each member."""
    length, spent, best = abs(asked.t_end - asked.t0), 0.0, math.inf
    options: list[Option] = []
    left: list[str] = []
    for s in MEMBERS:
        if spent > max(PATIENCE, best) and options:
            left.append(member(s))
            continue
        steps = there.steps(s, tol / MARGIN, MOST_STEPS)
        clock = time.perf_counter()
        setup, each = _timed(asked, s, length / steps, steps)
        spent += time.perf_counter() - clock
        seconds, error = setup + each * steps, max(there.error(s, steps), FLOOR)
        why = "" if steps < MOST_STEPS else f"would take more than {MOST_STEPS:.0e} steps"
        others = [count for part in DRAWN if (count := round(steps * part)) > 0]
        pilots = tuple((max(there.error(s, count), FLOOR), setup + each * count) for count in others)
        options.append(Option(member(s), length / steps, None, error, seconds, steps, why, pilots))
        if not why:
            best = min(best, seconds)
    options.sort(key=lambda one: one.seconds)
    good = [one for one in options if not one.why]
    notes = [f"errors by the exact dispersion of {len(there.omega)} modes"]
    if not there.exact:
        notes = [
            f"errors by the exact dispersion, at {len(there.omega)} frequencies of Lanczos' process on the start, in "
            "the norm of M"
        ]
    if left:
        notes.append(f"not timed, to save time: {', '.join(left)}")
    return Advice(
        system=asked.name, t0=asked.t0, t_end=asked.t_end, tol=tol, options=tuple(options),
        chosen=good[0] if good else min(options, key=lambda one: one.error),
        size=there.size if there.exact else math.nan, bytes_per_state=8 * (2 * asked.n + 1), notes=tuple(notes),
    )  # fmt: skip


def _timed(asked: Asked, s: int, h: float, steps: int) -> tuple[float, float]:
    """Seconds to prepare a run, and seconds of one step."""
    h, count = math.copysign(h, asked.t_end - asked.t0), min(steps, TIMED)
    for _ in range(2):  # a first run may have to load code or factorise matrices; a second run has both
        clock = time.process_time()
        path = asked.run(member(s), h, asked.t0 + count * h, None, LAST, False, MOST)
        spent, told = time.process_time() - clock, (path.stats["compile_time"], path.stats["run_time"] / count)
        part = min(1.0, spent / max(path.stats["compile_time"] + path.stats["run_time"], 1e-9))
        told = told[0] * part, told[1] * part  # the processor may have had other work in that time
        if sum(told) > SECONDS:
            break
    return told
