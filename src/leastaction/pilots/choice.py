"""The choice: members one after the other, and of all options the cheapest that keeps the tolerance."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from leastaction.pilots.asked import Asked, member
from leastaction.pilots.growth import SURE
from leastaction.pilots.search import often_best, search
from leastaction.pilots.step import BY_ORDER, FAILS, measured
from leastaction.pilots.trial import Trial, trial
from leastaction.pilots.ways import ways
from leastaction.run.advice import Advice, Option, shown_pace

SLOWER = 3.0  # times the cost with a pace, or without one: then the slower of both is not measured any more
UNKEPT = "the tolerance cannot be kept in float64"
UNSURE = "no smaller error can be told apart: two pilots"


def choose(asked: Asked, tol: float) -> Advice:
    """The advice for a run; see the head of this package."""
    found = ways(asked, tol)
    piloted = trial(found, tol)
    compared = Comparison(piloted)
    loaded = piloted.lab.budget.degrees(piloted.answer.pace)
    left = search(compared.measure, often_best(asked, piloted.aim, loaded))
    options = sorted(compared.options, key=lambda one: one.seconds)
    if not options:
        raise ValueError(f"no member could be measured on {asked.name}: choose a method and h yourself")
    good = [one for one in options if not one.why]
    best = good[0] if good else min(options, key=lambda one: one.error)
    told = [_explained(one, best) for one in options]
    rounding = piloted.rounding_of(best)
    walked = rounding.walked(best.steps)
    horizon, unkept = _horizon(piloted, best.steps, walked / SURE)
    return Advice(
        system=asked.name, t0=asked.t0, t_end=asked.t_end, tol=tol, options=tuple(told),
        chosen=told[options.index(best)], growth=piloted.growth, horizon=horizon, size=piloted.size,
        rounding=max(rounding.last, walked), common=rounding.common,
        bytes_per_state=8 * (2 * asked.n + 1), notes=(*unkept, *_notes(compared, left, found.spared)),
    )  # fmt: skip


class Comparison:
    """The options that were measured, with the paces that are not much slower than another one."""

    def __init__(self, piloted: Trial) -> None:
        self.piloted = piloted
        self.options: list[Option] = []
        self.paces = list(piloted.lab.asked.paces)
        self.least: dict[Any, float] = {}  # the least cost with each pace so far

    @property
    def best(self) -> float:
        """The seconds of the best run found so far, at first of that with the steps of the answer."""
        lab, answer = self.piloted.lab, self.piloted.answer
        longer = answer.known.longer(self.piloted.run_length(answer.pace))
        return min([lab.seconds(answer.pace, answer.known, longer), *self.least.values()])

    def measure(self, s: int) -> float | None:
        """The least cost with this degree; None if there is no time left to measure it."""
        costs = [cost for pace in self.paces if (cost := self._cost(s, pace)) is not None]
        slower = [pace for pace, cost in self.least.items() if cost > SLOWER * min(self.least.values())]
        self.paces = [pace for pace in self.paces if pace not in slower]
        return min(costs, default=None)

    def _cost(self, s: int, pace: Any) -> float | None:
        """The seconds of the whole run with this degree and pace, infinite if no step is accurate; None if there is no
        time left.
        """
        piloted, budget, best = self.piloted, self.piloted.lab.budget, self.best
        if not budget.loaded(s, pace) and not budget.allows_loading(s, pace, best):
            return None
        option = measured(piloted.lab, s, pace, piloted.mark, piloted.run_length(pace), best)
        if option is None and not budget.allows(best, 0.0):
            return None
        if option is not None:
            pilots = tuple((self._at_the_end(error), seconds) for error, seconds in option.pilots)
            self.options.append(replace(option, error=self._at_the_end(option.error), pilots=pilots))
        cost = math.inf if option is None or option.why else option.seconds
        self.least[pace] = min(self.least.get(pace, math.inf), cost)
        return cost

    def _at_the_end(self, error: float) -> float:
        """The error of a run whose pilot has this one."""
        grown = max(error, self.piloted.answer.unsure) * self.piloted.growth.factor
        return grown if self.piloted.horizon is None else min(grown, 1.0)


def _horizon(piloted: Trial, steps: int, walk: float) -> tuple[float | None, list[str]]:
    """The time until which tol can be kept, if not until the end, and what is said of it. `walk` is what the rounding
    of so many steps is expected to grow to.
    """
    found = [
        (until, f"{what} grows to {'the size of the motion' if grown > 1 else f'{grown:.1e}'}")
        for until, what, grown in (
            (piloted.horizon, "the rounding of the start alone", piloted.rounding.largest),
            (piloted.walks_until(walk), f"the rounding of {steps} steps", walk),
        )
        if until is not None
    ]
    if not found:
        return None, []
    until, why = min(found, key=lambda one: abs(one[0] - piloted.lab.asked.t0))
    beyond = "beyond, energy and momenta are kept, and positions are those of a nearby motion"
    return until, [f"{UNKEPT}: {why}. It can be kept until t = {until:.4g}; {beyond}"]


def _explained(one: Option, best: Option) -> Option:
    """An option whose steps were not tried, with the reason: by its order it is slower, or no time was left."""
    if one.why != BY_ORDER or one is best:
        return one
    slower = one.seconds > best.seconds
    return replace(one, why=f"not tried at this step: {f'slower {BY_ORDER}' if slower else 'no time was left'}")


def _notes(compared: Comparison, left: list[int], spared: str) -> tuple[str, ...]:
    """What the advice says beside its table."""
    piloted, notes = compared.piloted, []
    asked = piloted.lab.asked
    if all(one.why == FAILS for one in compared.options):
        notes.append("no step that was tried is accurate. Where bodies come near to each other equal steps are too "
                     "long: give pace=, a function of q that is small there")  # fmt: skip
    unsure = piloted.answer.unsure * piloted.growth.factor
    if unsure > piloted.tol and piloted.horizon is None:
        notes.append(f"{UNSURE} of order {2 * asked.reference} differ by {unsure:.1e}, grown to the end")
    if left:
        notes.append(f"not measured, to save time: {', '.join(map(member, left))}")
    for pace in [pace for pace in asked.paces if pace not in compared.paces]:
        way = "equal steps" if pace is None else f"the pace {shown_pace(pace)}"
        notes.append(f"{way}: nothing within {SLOWER:g} times the least seconds, so further members were not measured")
    return (*notes, spared) if spared else tuple(notes)
