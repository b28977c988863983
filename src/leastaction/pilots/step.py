"""The step of one member for a tolerance, and its cost: errors at two steps and more, error = C h^p."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.pilots.asked import member
from leastaction.pilots.lab import Lab, Pilot, off
from leastaction.pilots.reach import HALVINGS
from leastaction.run.advice import EPS, Option

FloatArray = NDArray[np.float64]

DEAR = 8.0  # times the best so far: a member that takes longer than this is not measured again
COARSER = 16.0  # times the rounding: an error as small as rounding is not chosen for a tolerance above this
ALIKE = 1.2  # times the seconds: two pilots cost the same
TRUSTED = 0.03  # an error above this is not yet in the range where error = C h^p
FAILS = "not accurate at any step tried"
BY_ORDER = "by its order"  # what steps that were not tried would cost

Tried = list[tuple[Pilot, float]]  # pilots with their errors


@dataclass(frozen=True, eq=False)
class Mark:
    """What pilots are measured by: the known end, by how much it may be off, the sizes of its numbers, and the error
    that is asked for.
    """

    known: Pilot
    unsure: float
    scale: FloatArray
    tol: float

    def error(self, one: Pilot) -> float:
        return off(one, self.known, self.scale)

    @property
    def floor(self) -> float:
        """The smallest error that can be told from rounding."""
        return 50 * EPS * max(1.0, float(np.abs(self.known.state / self.scale).max()))

    @property
    def target(self) -> float:
        """The error that is aimed at: one that can be measured."""
        return max(self.tol, self.floor, 2 * self.unsure)


def measured(lab: Lab, s: int, pace: Any, mark: Mark, whole: float, best: float) -> Option | None:
    """A member: the step for tol, and its cost for a whole run of this length, in t or in s; None if no pilot of it
    could be run. `best` are the seconds of the best run found so far.

    All its pilots are told, too, with the seconds of as many steps of the option: times of short pilots scatter.
    """
    found = _for_tolerance(lab, s, pace, mark, whole, best)
    if found is None:
        return None
    fixed = min(lab.fixed(s, pace), found.seconds)
    each = (found.seconds - fixed) / found.steps
    pilots = ((mark.error(one), fixed + each * one.steps * one.longer(whole)) for one in lab.known(s, pace))
    return replace(found, pilots=tuple(pilots))


def _for_tolerance(lab: Lab, s: int, pace: Any, mark: Mark, whole: float, best: float) -> Option | None:
    tried, too_long = _tried(lab, s, pace, mark, whole, best)
    if not tried:
        return None
    floor, target, order = mark.floor, mark.target, 2.0 * s
    kept = [pair for pair in tried if pair[1] <= target]
    # Steps that need continuation cost more than shorter ones.
    least = ALIKE * min((pair[0].seconds for pair in kept), default=0.0)
    cheap = [pair for pair in kept if pair[0].seconds <= least]
    one, e = max(cheap, key=lambda pair: pair[0].h) if kept else min(tried, key=lambda pair: pair[1])
    if kept and e > floor:  # lengthen the step up to the tolerance, by the order
        stretch = min((target / e) ** (1 / order), 2.0)
    else:
        stretch = 1.0 if kept else (target / e) ** (1 / order)
    stretch = min(stretch, max(1.0, 0.7 * too_long / one.h))
    if stretch > 1.05 and not one.taut and _affordable(lab, s, one.h * stretch, pace, one, best):
        # One more run shows the cost of steps of this length, and whether they keep the target.
        longest = lab.pilot(s, one.h * stretch, pace)
        if longest is not None and mark.error(longest) <= target and longest.seconds <= ALIKE * one.seconds:
            one, e = longest, mark.error(longest)
    stretch = min(stretch, 1.0)
    longer = one.longer(whole)
    if e > TRUSTED:
        seconds, steps = lab.seconds(pace, one, longer), math.ceil(one.steps * longer)
        return Option(member(s), one.h, pace, e, seconds, steps, FAILS)
    seconds, steps = lab.seconds(pace, one, longer / stretch), math.ceil(one.steps / stretch * longer)
    error = max(e * stretch**order, floor)
    return Option(member(s), one.h * stretch, pace, error, seconds, steps, "" if kept else BY_ORDER)


def _tried(lab: Lab, s: int, pace: Any, mark: Mark, whole: float, best: float) -> tuple[Tried, float]:
    """Pilots of a member around the step for tol, and steps that are too long to be solved. Those that have been run
    for another reason come first.
    """
    floor, target, order = mark.floor, mark.target, 2.0 * s
    tried = [(one, e) for one in lab.known(s, pace) if (e := mark.error(one)) <= TRUSTED]
    h, too_long = _first_step(lab, s, tried, mark), math.inf
    last: Pilot | None = None
    for _ in range(HALVINGS):
        if h < lab.shortest(pace) or h * lab.asked.omega < 1e-7:
            break
        if not _affordable(lab, s, h, pace, last, best):
            break
        one = lab.pilot(s, h, pace) if h < too_long else None
        if one is None:
            too_long = min(too_long, h)
            h /= 2
            continue
        last, e = one, mark.error(one)
        if all(one is not other for other, _ in tried):
            tried.append((one, e))
        shorter = (0.7 * target / max(e, floor)) ** (1 / order)
        if e <= target:
            best = min(best, lab.seconds(pace, one, one.longer(whole)))
        if e > TRUSTED:
            h /= 2
        elif e <= floor and target > COARSER * floor and all(h >= other.h for other, _ in tried):
            if one.taut or lab.seconds(pace, one, one.longer(whole)) > DEAR * best:
                break
            h *= 2  # far more accurate than asked for; rounding hides by how much
        elif (e <= target and len(tried) > 1 and shorter < 2) or e <= floor:
            break
        else:
            if one.taut and shorter > 1:
                break
            if lab.seconds(pace, one, one.longer(whole) / shorter) > DEAR * best:
                break
            h *= min(max(shorter, 1 / 16), 2.0)
            if len(tried) > 1 and 0.8 < shorter < 1.3 and e > target:
                h *= 0.8
    return tried, too_long


def _first_step(lab: Lab, s: int, tried: Tried, mark: Mark) -> float:
    """The longest steps that are known to lead roughly to the end; or else steps as long as those of the answer, for as
    many points.
    """
    otherwise = min(mark.known.h * (lab.asked.reference / s), 1.0 / lab.asked.omega)
    return max((one.h for one, _ in tried), default=otherwise)


def _affordable(lab: Lab, s: int, h: float, pace: Any, last: Pilot | None, best: float) -> bool:
    """Whether there is time left for a pilot, which costs about as much for each step as the last one."""
    if lab.done(s, h, pace):
        return True
    return lab.budget.allows(best, 0.0 if last is None else last.seconds * last.h / h)
