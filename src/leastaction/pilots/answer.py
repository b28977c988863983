"""The end of a pilot as well as it is known: by one member (`Asked.reference`), h halved until two ends agree."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from leastaction.pilots.asked import Asked
from leastaction.pilots.lab import LONGEST, Lab, Pilot, apart
from leastaction.pilots.reach import FIRST, HALVINGS, ROUGH, SECONDS, affordable, reach
from leastaction.run.advice import EPS

KNOWN = 1e-5  # two answers differ by no more than this, or by a hundredth of tol if that is less
AGREEING = 1e-4  # two answers that differ by more than this belong to different motions
ROUNDED = 4.0  # times tol: two answers that rounding keeps no farther apart may have positions that keep tol
SHORTER = 0.8  # steps that are not even so many times as long as others tell nothing new


def worth_trying(lab: Lab, tol: float) -> tuple[Any, ...]:
    """The paces that are worth trying. Where the answer at the end of the whole run is found with equal steps in so
    short a time that another pace, whose machine code is larger, would take longer to load than it could save, equal
    steps alone are. Where equal steps do not lead to the end, they are left out.

    The answer is found, too, where no shorter steps can tell more: its two runs differ by a unit in the last place a
    step or less, and not by far more than tol. A pace, whose steps are fewer, would have its own rounding.
    """
    asked = lab.asked
    if len(asked.paces) == 1 or asked.omega * asked.length > 2 * LONGEST or affordable(lab, None) < asked.length:
        return asked.paces
    found = answer(lab, asked, None, asked.length, tol, None)
    if found is None:
        return tuple(pace for pace in asked.paces if pace is not None and reach(lab, pace) is not None) or (None,)
    rounded = min(EPS * found.known.steps, ROUNDED * tol)
    quick = found.unsure <= max(tol / 4, rounded) and found.known.seconds <= lab.budget.easy(asked.reference)
    return (None,) if quick else asked.paces


@dataclass(frozen=True, eq=False)
class Answer:
    """The end of the pilot as well as it is known: the pace of the run that found it, this run, the run with longer
    steps before it, and by how much it may be off.
    """

    pace: Any
    known: Pilot
    rougher: Pilot
    unsure: float


def answers(lab: Lab, asked: Asked, length: float, tol: float) -> dict[Any, Answer]:
    """The answers with the paces with which there is one. A pace may take far more steps than another one if that has
    not led to an answer on which two runs agree.
    """
    found: dict[Any, Answer] = {}
    for pace in asked.paces:
        fewest = min((one.known.steps for one in found.values() if one.unsure <= tol / 4), default=None)
        one = answer(lab, asked, pace, length, tol, fewest)
        if one is not None:
            found[pace] = one
    return found


def best_known(answers: dict[Any, Answer], tol: float) -> Answer | None:
    """The answer with the pace with which it costs less, or the one that is off by least if none is good enough."""
    agreed = [one for one in answers.values() if one.unsure <= tol / 4]
    if agreed:
        return min(agreed, key=lambda one: one.known.seconds)
    return min(answers.values(), key=lambda one: one.unsure, default=None)


def answer(lab: Lab, asked: Asked, pace: Any, length: float, tol: float, most: int | None) -> Answer | None:
    """The end of the pilot by one member, its step halved until two ends agree or agree no better, or as short as it
    may be.
    """
    h, gap, enough = min(length / 4, FIRST / asked.omega), math.inf, tol * length / asked.length
    last: Pilot | None = None
    best: Answer | None = None
    for _ in range(HALVINGS):
        now, before = lab.pilot(asked.reference, h, pace), gap
        if now is not None and last is not None:
            gap = apart(now, last)
            if best is not None and before < AGREEING and gap > before / 4:
                return best  # rounding: otherwise a halved step of such an order would be far better
            best = Answer(pace, now, last, gap)
            if (agreed := _agreed(best, enough)) is not None:
                return agreed
        rough = now is None or now.strained or (last is not None and gap > ROUGH)
        if now is not None and most is not None and now.steps > 8 * most:
            break
        if now is not None and now.seconds > 2 * SECONDS and best is not None:
            break
        shorter = max(h / (4 if rough else 2), lab.shortest(pace))
        if shorter > SHORTER * h:
            break
        last, h = now, shorter
    return best


def _agreed(one: Answer, enough: float) -> Answer | None:
    """An answer whose two runs agree, and by how much it is off; None if they do not agree.

    Of two ends that differ by g, with steps 2h and h of a member of order 2s, the second is off by g/(2²ˢ − 1). If g
    is small enough, it is said to be off by g/2ˢ: half of the order, which longer steps may not show yet, is enough.
    """
    off = one.unsure * (one.known.h / one.rougher.h) ** one.known.s
    return replace(one, unsure=off) if one.unsure <= enough / 4 and off <= min(enough / 100, KNOWN) else None
