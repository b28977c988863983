"""The pilot as a whole: its answer, how errors grow from its end on, and so what error to aim at there."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.pilots.answer import Answer, answers, best_known
from leastaction.pilots.asked import MEMBERS, member
from leastaction.pilots.growth import Rounding, followed, growth_of, scales, spread_of
from leastaction.pilots.lab import Lab, off
from leastaction.pilots.reach import HALVINGS, SECONDS, Reach
from leastaction.pilots.search import following
from leastaction.pilots.step import Mark
from leastaction.pilots.ways import Ways
from leastaction.run.advice import Growth, Option

FloatArray = NDArray[np.float64]

MARGIN = 2.0  # the factor by which the predicted error stays below tol
USEFUL = 1e-3  # if rounding grows above tol, and not above this, the run is to be as accurate as rounding allows
SHORT = 10.01  # over ω: pilots are not cut to less


@dataclass(frozen=True, eq=False)
class Trial:
    """A pilot of this length, its answer, the sizes of positions and momenta, and of positions alone, how errors grow
    from its end to that of the run, what rounding makes of the end, and for how long rounding lets tol be kept.
    """

    lab: Lab
    reaches: dict[Any, Reach]
    length: float
    answer: Answer
    scale: FloatArray
    size: float
    growth: Growth
    rounding: Rounding
    kept: float
    tol: float

    @property
    def whole(self) -> bool:
        """Whether the pilot is as long as the run."""
        return self.length == self.lab.asked.length

    @property
    def aim(self) -> float:
        """The error at the end of the run that is aimed at."""
        return self.rounding.largest if self.tol < self.rounding.largest <= USEFUL else self.tol

    @property
    def horizon(self) -> float | None:
        """The time until which tol can be kept, if it cannot be kept until the end."""
        asked = self.lab.asked
        if self.rounding.largest <= self.tol:
            return None
        return asked.t0 + math.copysign(self.kept, asked.t_end - asked.t0)

    def rounding_of(self, option: Option) -> Rounding:
        """What rounding makes of the end of a run with this option. Steps of a pace keep E₀, and equal ones do not: so
        errors on the way grow otherwise, and are looked at with this pace.
        """
        lab, asked = self.lab, self.lab.asked
        if option.pace == self.answer.pace or asked.linear or asked.near is not None:
            return self.rounding
        s = next(s for s in MEMBERS if member(s) == option.method)
        finest = min(lab.known(s, option.pace), key=lambda one: one.h)
        path = followed(lab, finest, option.pace, following(asked, self.tol))
        found = growth_of(path, spread_of(lab, path, self.scale), asked, self.tol, asked.length, self.length)[1]
        return replace(found, largest=self.rounding.largest)

    def walks_until(self, expected: float) -> float | None:
        """The time until which the walk of rounding stays below tol, if it is expected above tol at the end: it grows
        like t^(3/2) where errors grow like t. Pilots of the whole run have seen it.
        """
        asked = self.lab.asked
        if self.whole or self.growth.rate or expected <= self.tol:
            return None
        return asked.t0 + (asked.t_end - asked.t0) * float(self.tol / expected) ** (2 / 3)

    @property
    def mark(self) -> Mark:
        """What other pilots are measured by. If errors grow beyond all bounds, the step is chosen to keep tol for as
        long as possible.
        """
        grown = self.growth.factor
        if self.horizon is not None and self.aim == self.tol:
            later = self.kept - self.length
            grown = self.growth.over(later) if self.growth.rate else max(1.0, self.kept / self.length)
        return Mark(self.answer.known, self.answer.unsure, self.scale, self.aim / grown / MARGIN)

    def run_length(self, pace: Any) -> float:
        """The length of the whole run, in t, or in s with a pace; 0 if the pilot is as long."""
        return 0.0 if self.whole else self.reaches[pace].whole


def trial(found: Ways, tol: float) -> Trial:
    """The pilot. It is cut where it takes too long, and where rounding has grown above tol before its end."""
    lab, length, run = found.lab, found.length, found.lab.asked
    while True:
        lab = _lab_until(lab, length)
        ends = answers(lab, lab.asked, length, tol) if length else {}
        answer = best_known(ends, tol)
        if answer is None:
            raise ValueError(_unsolved(lab))
        if answer.unsure <= tol / 4:
            lab.asked = replace(lab.asked, paces=tuple(ends))
        short = length * run.omega <= SHORT
        if answer.known.seconds >= 2 * SECONDS and not short:
            length /= max(2.0, answer.known.seconds / SECONDS)
            continue
        one = _grown(lab, found.reaches, length, answer, tol)
        if one.kept >= length or short or one.aim > tol:
            return one
        length = max(0.8 * one.kept, length / 8)  # beyond this length no answer is known


def _unsolved(lab: Lab) -> str:
    """Why there is no answer, and what to try."""
    asked = lab.asked
    until = "from the start" if lab.failed == 0 else f"until t = {asked.t0 + lab.signed(lab.length):.4g}"
    met = "" if lab.failed == 0 else f" They lead to t = {asked.t0 + lab.signed(lab.failed):.4g}."
    least = max(1 / asked.omega / 2**HALVINGS, lab.shortest(None) if None in asked.paces else 0.0)
    return (
        f"no steps of {asked.name} {until} can be solved, down to h = {least:.1e}.{met} The motion may meet a "
        "singularity, such as a collision, or come near to one: then give pace=, a function of q that is small there. "
        "With method= and h= la.StepFailed says where and why"
    )


def _lab_until(lab: Lab, length: float) -> Lab:
    """The lab of a pilot of this length."""
    asked = lab.asked
    t_end = asked.t_end if length == asked.length else asked.t0 + math.copysign(length, asked.t_end - asked.t0)
    return Lab(asked, t_end, lab)


def _grown(lab: Lab, reaches: dict[Any, Reach], length: float, answer: Answer, tol: float) -> Trial:
    """How errors grow in a pilot whose answer is known, and from its end on."""
    asked, known = lab.asked, answer.known
    path = followed(lab, known, answer.pace, following(asked, tol))
    scale, size = scales(path)
    growth, rounding, kept = growth_of(path, spread_of(lab, path, scale), asked, tol, asked.length, length)
    if rounding.largest > tol and length == asked.length:
        finer = lab.pilot(asked.reference, known.h / 2, answer.pace) or answer.rougher
        if min(off(one, known, scale) for one in (finer, answer.rougher)) <= tol / 4:
            rounding, kept = replace(rounding, largest=0.0), length  # two runs agree at the end
    return Trial(lab, reaches, length, answer, scale, size, growth, rounding, kept, tol)
