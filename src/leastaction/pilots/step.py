"""The step of one member for a tolerance, and its cost: errors at two steps and more, error = C h^p."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.pilots.asked import Asked, member
from leastaction.pilots.lab import Lab, Pilot, off
from leastaction.pilots.reach import HALVINGS
from leastaction.run.advice import EPS, Option

FloatArray = NDArray[np.float64]

DEAR = 8.0  # times the best so far: a member that takes longer than this is not measured again
COARSER = 16.0  # times the rounding: an error as small as rounding is not chosen for a tolerance above this
ALIKE = 1.2  # times the seconds: two pilots cost the same
TRUSTED = 0.03  # an error above this is not yet in the range where error = C h^p
FAILS = "not accurate at any step tried"


def measured(
    lab: Lab,
    asked: Asked,
    s: int,
    pace: Any,
    known: Pilot,
    scale: FloatArray,
    tol: float,
    whole: float,
    best: float,
    unsure: float,
) -> Option | None:
    """A member at two steps: the step for tol, and its cost for a whole run of this length, in t or in s."""
    floor = 50 * EPS * max(1.0, float(np.abs(known.state / scale).max()))
    target = max(tol, floor, 2 * unsure)  # errors that cannot be measured are not aimed at

    def error(one: Pilot) -> float:
        return off(one, known, scale)

    h, tried, too_long = min(known.h * (asked.reference / s), 1.0 / asked.omega), [], math.inf
    order = 2.0 * s
    for _ in range(HALVINGS):
        one = lab.pilot(s, h, pace) if h < too_long else None
        if one is None:
            too_long = min(too_long, h)
            h /= 2
            continue
        e = error(one)
        tried.append((one, e))
        if e > TRUSTED:
            h /= 2
        elif e <= floor and target > COARSER * floor and all(h >= other.h for other, _ in tried):
            if one.strained or lab.seconds(pace, one, one.longer(whole)) > DEAR * best:
                break
            h *= 2  # far more accurate than asked for; rounding hides by how much
        elif (e <= target and len(tried) > 1) or e <= floor:
            break
        else:
            shorter = (0.7 * target / e) ** (1 / order)
            if one.strained and shorter > 1:
                break
            if lab.seconds(pace, one, one.longer(whole) / shorter) > DEAR * best:
                break
            h *= min(max(shorter, 1 / 16), 2.0)
            if len(tried) > 1 and 0.8 < shorter < 1.3 and e > target:
                h *= 0.8
        if len(tried) >= 8 or h * asked.omega < 1e-7:
            break
    if not tried:
        return None
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
    if stretch > 1.05 and not one.strained:
        # One more run shows the cost of steps of this length, and whether they keep the target.
        longest = lab.pilot(s, one.h * stretch, pace)
        if longest is not None and error(longest) <= target and longest.seconds <= ALIKE * one.seconds:
            one, e = longest, error(longest)
    stretch = min(stretch, 1.0)
    longer = one.longer(whole)
    steps = math.ceil(one.steps / stretch * longer)
    seconds = lab.seconds(pace, one, longer / min(stretch, 1.0))
    reach = e * stretch**order
    why = "" if kept else "slower, and so not tried at this step"
    if e > TRUSTED:
        return Option(
            member(s),
            one.h,
            pace,
            e,
            lab.seconds(pace, one, longer),
            math.ceil(one.steps * longer),
            FAILS,
        )
    return Option(member(s), one.h * stretch, pace, max(reach, floor), seconds, steps, why)
