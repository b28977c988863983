"""The choice: pilots one after the other, and the cheapest option that keeps the tolerance."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from leastaction.pilots.answer import answers, best_known, worth_trying
from leastaction.pilots.asked import MEMBERS, Asked, member
from leastaction.pilots.dispersion import MARGIN
from leastaction.pilots.growth import Rounding, followed, growth_of, scales, spread_of
from leastaction.pilots.lab import Lab, off
from leastaction.pilots.reach import HALVINGS, SCOUTED, SECONDS, affordable, reach, scouted
from leastaction.pilots.search import following, often_best, search
from leastaction.pilots.step import FAILS, measured
from leastaction.run.advice import Advice, Growth, Option

FEWER = 100.0  # times fewer steps with a pace than equal ones, each of which is cheaper: equal ones may be left out
SLOWER = 3.0  # times the cost with a pace, or without one: then the slower of both is not measured any more
STRAINED = 4.0  # times as short are the steps of pilots if their first steps need continuation
USEFUL = 1e-3  # if rounding grows above tol, and not above this, the run is to be as accurate as rounding allows
UNKEPT = "the tolerance cannot be kept in float64"


def choose(asked: Asked, tol: float) -> Advice:
    """The advice for a run; see the head of this package."""
    length, lab = asked.length, None
    if asked.omega * length <= 2 and not asked.linear:
        lab = Lab(asked, asked.t0 + math.copysign(SCOUTED * length, asked.t_end - asked.t0))
        asked = replace(asked, omega=scouted(lab, asked.paces[0]))
    growth, scale, size, kept = Growth(1.0), np.ones(2 * asked.n), 1.0, length
    rounding, aim = Rounding(), tol
    lab = Lab(asked, asked.t_end, lab)
    equal_asked, spared = None in asked.paces, ""
    asked = lab.asked = replace(asked, paces=worth_trying(lab, tol))
    if equal_asked and None not in asked.paces:
        spared = "not measured: equal steps, which do not lead to the end of the run"
    found = {pace: reach(lab, pace) for pace in asked.paces}
    reaches = {pace: one for pace, one in found.items() if one is not None}
    pilot_length = min(length, max(one.time for one in reaches.values()))
    if None in reaches:
        others = [one.steps for pace, one in reaches.items() if pace is not None and one.time >= pilot_length]
        more = reaches[None].steps / min(others, default=math.inf)
        if more > FEWER:  # without a trial of equal steps, whose code would have to be loaded
            del reaches[None]
            spared = f"not measured: equal steps, of which {more:.0f} times as many are needed"
        else:
            pilot_length = min(pilot_length, affordable(lab, None))
    omega = asked.omega * (STRAINED if lab.strained and pilot_length < length else 1.0)
    asked = replace(asked, paces=tuple(reaches), omega=omega)
    while True:
        t_p = asked.t0 + math.copysign(pilot_length, asked.t_end - asked.t0)
        lab = Lab(asked, asked.t_end if pilot_length == length else t_p, lab)
        ends = answers(lab, asked, pilot_length, tol) if pilot_length else {}
        reference = best_known(ends, tol)
        if reference is None:
            break
        if reference.unsure <= tol / 4:
            asked = lab.asked = replace(asked, paces=tuple(ends))
        pace, known = reference.pace, reference.known
        short = pilot_length * asked.omega <= 10.01
        if known.seconds >= 2 * SECONDS and not short:
            pilot_length /= max(2.0, known.seconds / SECONDS)
            continue
        path = followed(lab, known, pace, following(asked, tol))
        scale, size = scales(path)
        growth, rounding, kept = growth_of(path, spread_of(lab, path, scale), asked, tol, length, pilot_length)
        if rounding.largest > tol and pilot_length == length:
            finer = lab.pilot(asked.reference, known.h / 2, pace) or reference.rougher
            if min(off(one, known, scale) for one in (finer, reference.rougher)) <= tol / 4:
                rounding, kept = replace(rounding, largest=0.0), length  # two runs agree at the end
        aim = rounding.largest if tol < rounding.largest <= USEFUL else tol
        if kept >= pilot_length or short or aim > tol:
            break
        pilot_length = max(0.8 * kept, pilot_length / 8)  # beyond this length no answer is known
    if reference is None:
        raise ValueError(
            f"no step of {asked.name} from the start can be solved, down to h = {1 / asked.omega / 2**HALVINGS:.1e}. "
            "The motion may meet a singularity, such as a collision, or come near to one: then give pace=, a function "
            "of q that is small there. With method= and h= la.StepFailed says where and why"
        )
    known, unsure = reference.known, reference.unsure
    horizon = None if rounding.largest <= tol else asked.t0 + math.copysign(kept, asked.t_end - asked.t0)
    # If errors grow beyond all bounds, the step is chosen to keep tol for as long as possible.
    aimed = growth.factor if horizon is None or aim > tol else growth.over(kept - pilot_length)
    options: list[Option] = []
    paces, least = list(asked.paces), dict[Any, float]()  # that are still measured; the least cost of each so far

    def measure(s: int) -> float | None:
        """The least cost with this degree; None if there is no time left to measure it."""
        costs: list[float] = []
        for pace in paces:
            best = min(least.values(), default=math.inf)
            if not lab.patient(s, pace, best):
                continue
            whole = 0.0 if pilot_length == length else reaches[pace].whole
            option = measured(lab, asked, s, pace, known, scale, aim / aimed / MARGIN, whole, best, unsure)
            if option is not None:
                error = max(option.error, unsure) * growth.factor
                options.append(replace(option, error=error if horizon is None else min(error, 1.0)))
            costs.append(math.inf if option is None or option.why else option.seconds)
            least[pace] = min(least.get(pace, math.inf), costs[-1])
        slower = [pace for pace, cost in least.items() if cost > SLOWER * min(least.values())]
        paces[:] = [pace for pace in paces if pace not in slower]
        return min(costs, default=None)

    degrees = [s for s in MEMBERS if lab.patient(s, pace, 0.0)] or [asked.reference]
    left, notes = search(measure, often_best(asked, aim, degrees)), []
    if unsure * growth.factor > tol and horizon is None:
        notes.append(
            f"two runs of order {2 * asked.reference} differ by {unsure * growth.factor:.1e} at the end: no smaller "
            "error can be told apart"
        )
    if horizon is not None:
        notes.append(
            f"{UNKEPT}: the rounding of the start alone grows to "
            f"{'the size of the motion' if rounding.largest > 1 else f'{rounding.largest:.1e}'}. It can be kept until "
            f"t = {horizon:.4g}; beyond, energy and momenta are kept, and positions are those of a nearby motion"
        )
    if left:
        notes.append(f"not measured, to save time: {', '.join(map(member, left))}")
    if spared:
        notes.append(spared)
    if not options:
        raise ValueError(f"no member could be measured on {asked.name}: choose a method and h yourself")
    options.sort(key=lambda one: one.seconds)
    good = [one for one in options if not one.why]
    chosen = good[0] if good else min(options, key=lambda one: one.error)
    if all(one.why == FAILS for one in options):
        notes.insert(0, "no step that was tried is accurate. Where bodies come near to each other equal steps are too "
                        "long: give pace=, a function of q that is small there")  # fmt: skip
    return Advice(
        system=asked.name, t0=asked.t0, t_end=asked.t_end, tol=tol, options=tuple(options), chosen=chosen,
        growth=growth, horizon=horizon, size=size, rounding=rounding.last, bytes_per_state=8 * (2 * asked.n + 1),
        notes=tuple(notes),
    )  # fmt: skip
