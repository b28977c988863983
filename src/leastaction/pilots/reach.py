"""How far pilots lead: the first step where no frequency tells one, steps to the end, and what can be afforded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from leastaction.pilots.lab import FAILING, LONGEST, MOST, STRAINED_PART, Lab, apart
from leastaction.systems.pace import AUTO

SCOUTED = 0.25  # the part of the run in which a first step is found where no frequency tells one
ROUGH = 0.1  # two answers that differ by more than this say nothing of how many halvings are left
HALVINGS = 10  # the most halvings of a step, until the answer is known
SECONDS = 0.3  # the most that a pilot run may take; longer pilots are cut
NEARLY = 2.0  # if the whole run is no more than so many times as long as a pilot can be, the pilot is the whole run
AFFORDED, TRIAL = 0.1, 8  # seconds of a first run for the answer, and the steps from which its cost is estimated
FIRST = 0.5  # the first steps of the search for the answer are this over ω; LONGEST are 2/ω


@dataclass(frozen=True)
class Reach:
    """How far LONGEST steps of 2/ω lead, in shorter steps; and how long the whole run is in t, or in s with a pace."""

    time: float
    whole: float
    steps: int


def reach(lab: Lab, pace: Any) -> Reach | None:
    """How far a pace leads, found once."""
    if pace not in lab.reaches:
        lab.reaches[pace] = _reach(lab, pace)
    found: Reach | None = lab.reaches[pace]
    return found


def _reach(lab: Lab, pace: Any) -> Reach | None:
    """How far the first steps of the search for the answer lead in the length of a pilot, or shorter steps if these
    fail; None if there is no such pace.
    """
    h, most, length = FIRST / lab.asked.omega, round(2 / FIRST) * LONGEST, lab.length
    if pace is None:
        return Reach(most * h, length, math.ceil(length / h))
    for _ in range(HALVINGS):
        try:
            path, spent = lab.timed(lab.asked.reference, h, lab.t_end, pace, most=most)
            lab.noted(lab.asked.reference, h, pace, path, spent)
            reached = max(abs(float(path.t[-1]) - lab.asked.t0), 1e-300)
            longer = length / reached  # beyond what was reached, as before
            s = abs(float(path.pace.t[-1])) * longer
            return Reach(reached if longer > NEARLY else length, s, math.ceil(path.stats["steps"] * longer))
        except FAILING:
            h /= 2
        except ValueError:
            if pace == AUTO:
                return None
            raise
    return Reach(0.0, length, MOST)


def affordable(lab: Lab, pace: Any) -> float:
    """How far the first steps of the search for the answer lead in AFFORDED seconds: by some steps, or by a pilot of
    about such steps, of whatever member. Where members other than that of the answer scout, a step costs about s².
    """
    asked = lab.asked
    h = FIRST / asked.omega
    if TRIAL * h > asked.length:
        return math.inf
    known = [one for (_, place), one in lab.latest.items() if place == id(pace)]
    seen = next((one for one in known if one.steps >= TRIAL and h / 2 <= one.h <= 2 * h), None)
    if seen is not None:
        alone = max(seen.seconds - lab.fixed(seen.s, pace), 1e-9) / seen.steps
        each, lab.strained = alone * h / seen.h * (asked.reference / seen.s) ** 2, seen.strained
    else:
        try:
            path, spent = lab.timed(asked.reference, h, asked.t0 + lab.signed(TRIAL * h), pace)
        except FAILING:
            return math.inf
        each = lab.each[asked.reference, id(pace)] = max(spent - lab.fixed(asked.reference, pace), 1e-9) / TRIAL
        lab.strained = path.stats.get("continued", 0) >= STRAINED_PART * TRIAL
    return max(h * AFFORDED / each, min(10 / asked.omega, h * SECONDS / each), 2 / asked.omega)


def scouted(lab: Lab, s: int, pace: Any) -> float:
    """ω where the start does not tell one: a step of the member of this degree is shortened until two ends of the pilot
    are roughly the same.
    """
    h, last = lab.length / 8, None
    for _ in range(HALVINGS):
        now = lab.pilot(s, h, pace)
        if now is not None and last is not None and apart(now, last) <= ROUGH:
            return max(FIRST / h, lab.asked.omega)
        last, h = now, h / (4 if now is None or now.strained else 2)
    return lab.asked.omega
