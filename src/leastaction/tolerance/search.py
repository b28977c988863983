"""The search for a step: first how errors grow, then runs whose steps become shorter until they agree.

A search is a generator. Before each run it yields the instructions that the run is expected to take; who drives it goes
on, or spends the work on the search with another pace first (`settle`).
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.methods import method as method_named
from leastaction.run.advice import EPS, Option
from leastaction.systems.pace import AUTO
from leastaction.tolerance.constants import (
    AIM,
    BEFORE,
    FEW,
    FINER,
    FIRST,
    GROWN,
    LATER,
    LIMIT,
    NOISY,
    PART,
    RESOLVED,
    ROWS,
    SURE,
    TRIES,
    USEFUL,
)
from leastaction.tolerance.growth import Growth, growth
from leastaction.tolerance.ladder import START, cheaper, degree, member
from leastaction.tolerance.trials import Trial, Trials

FloatArray = NDArray[np.float64]

Runs = Generator[float, None, Any]


@dataclass(eq=False)
class Found:
    """What a search has found so far: method, pace and step, and the last run with them.

    error    of each trajectory at the end, (B,); None: no second run has been compared
    until    the time after the start until which the tolerance can be kept
    reason   how the error is known, where a formula tells it
    tried    all runs, each with its difference from the one after it
    """

    pace: Any
    method: str
    h: float = math.nan
    trial: Trial | None = None
    error: FloatArray | None = None
    growth: Growth | None = None
    until: float = math.inf
    reason: str = ""
    tried: list[Option] = field(default_factory=list)

    @property
    def worst(self) -> float:
        """The largest error of the trajectories that come to their ends; infinite if none is known."""
        if self.error is None or self.trial is None:
            return math.inf
        return float(np.max(self.error[self.trial.ended], initial=0.0))


def settle(trials: Trials, tol: float) -> Found:
    """The searches with all paces that may be tried, in rounds: from round to round a run may take more work. The
    first search that comes to its end is taken; if none does, the one with the smallest error. The pace that the
    library makes costs code of its own, and joins in the second round.
    """
    begun, allowed = _begun(trials, tol), FIRST
    if begun is not None and math.isfinite(begun.until):
        return begun
    searches = [Search(trials, trials.pace, tol, begun)]
    while True:
        for one in searches:
            if one.go(allowed):
                return one.found
        if allowed == FIRST and begun is None and trials.may_be_paced:
            searches.append(Search(trials, AUTO, tol))
        if allowed == LIMIT:
            break
        allowed = min(LIMIT, GROWN * allowed)
    if all(math.isnan(one.found.h) for one in searches) and trials.failure is not None:
        raise trials.failure
    return min((one.found for one in searches), key=lambda found: found.worst)


def _begun(trials: Trials, tol: float) -> Found | None:
    """Method, pace and step that are known before the runs: by formulas; or of a long run by those of a part of it, if
    errors grow like t. None: runs have to show them.
    """
    if (choice := trials.by_formula(tol)) is not None:
        return Found(None, choice.method, choice.h, reason=choice.reason)
    if trials.price(member(START), trials.first_step(trials.pace)) <= PART:
        return None
    found = settle(trials.until(trials.length / GROWN), tol / GROWN)
    if found.worst <= USEFUL:
        found.until = math.inf
    return replace(found, trial=None, growth=None, error=found.error if math.isfinite(found.until) else None)


def judged_by_all(trials: Trials, found: Found, tol: float) -> Found:
    """The same method and pace with the step that keeps the tolerance of all trajectories, if all can be run."""
    search = Search(trials, found.pace, tol)
    search.found.method, search.first = found.method, FINER * found.h
    search.go(LIMIT)
    return search.found


class Search:
    """The search with one pace."""

    def __init__(self, trials: Trials, pace: Any, tol: float, begun: Found | None = None) -> None:
        self.trials, self.tol, self.begun = trials, tol, begun
        self.found = Found(pace, member(START)) if begun is None else begun
        self.first = trials.first_step(self.found.pace) if begun is None else FINER * begun.h
        self.allowed, self._price, self._runs = 0.0, 0.0, self._search()

    def go(self, allowed: float) -> bool:
        """Go on while runs take no more instructions than allowed; whether the search has come to its end."""
        self.allowed = allowed
        try:
            while self._price <= allowed:
                self._price = next(self._runs)
        except StopIteration:
            return True
        return False

    def _search(self) -> Runs:
        found, trials = self.found, self.trials
        if self.begun is not None:
            yield from self._shorten(trials, self.first, np.full(len(trials.starts), self.tol), [])
            return
        yield from self._grow(trials, self.first)
        assert found.growth is not None and found.trial is not None
        seen, until, whole, at_the_end, looked = trials, 0.0, found.trial, found.growth.end, False
        while True:
            target, h = self._target(found.growth), found.h
            if seen is not trials or np.isinf(target).all():  # nothing is known of the end of any motion
                later = min(float(found.growth.kept(self.tol).min()), seen.length)
                if later == seen.length < trials.length:
                    seen = trials
                elif later < seen.length * FEW / ROWS:
                    seen = trials.until(FEW * later)  # look closer
                elif later <= LATER * until:  # finer runs have not shown more
                    found.until, found.error, found.trial = later, at_the_end, whole
                    return
                else:
                    until, part = later, trials.until(BEFORE * later)
                    yield from self._shorten(part, min(h, later / FEW), np.full_like(target, self.tol), [])
                yield from self._grow(seen, found.h)
                continue
            agreed = yield from self._shorten(trials, h, target, [found.trial])
            if agreed and not looked and found.h != h and np.any(found.growth.end > self.tol / NOISY):
                error, looked = found.error, True
                yield from self._grow(trials, found.h)  # longer steps may have shown too much
                found.error, target = error, self._target(found.growth)
                if np.any(np.isfinite(target) & (error > target)):
                    continue
            found.error = np.maximum(found.error, found.growth.end)
            if found.worst > self.tol:
                found.until = float(found.growth.kept(self.tol).min())
            return

    def _target(self, grown: Growth) -> FloatArray:
        """The error that each trajectory is to have at the end, no less than rounding; infinite where rounding leaves
        nothing of it.
        """
        return np.where(grown.end > USEFUL, np.inf, np.maximum(self.tol, SURE * grown.end))

    def _grow(self, trials: Trials, h: float) -> Runs:
        """Two runs with the same steps, from the start and from beside it."""
        while True:
            one = self.found.trial
            if one is None or one.h != h or one.length != trials.length:
                one = yield from self._run(trials, h)
            other = None if one is None else (yield from self._run(trials, h, moved=True))
            if other is not None:
                self.found.trial, self.found.h, self.found.growth = one, one.h, growth(one, other)
                return
            h /= 4

    def _shorten(self, trials: Trials, h: float, target: FloatArray, chain: list[Trial]) -> Runs:
        """Runs with shorter and shorter steps, until the last two differ by less than the target, and by less than the
        two before as half of the order says: two runs may agree by chance. Whether they do. Where the step was known
        before, two runs are enough, and the first one begins beside the start, to show rounding.
        """
        found, errors, gaps, stuck = self.found, list[float](), list[float](), 0
        switched = known = self.begun is not None
        while True:
            now = yield from self._run(trials, self._next(chain, errors, gaps, known) if chain else h, known and not chain)
            if now is None:
                h, chain, errors, gaps = (chain[-1].h if chain else h) / 2, [], [], []
                continue
            chain.append(now)
            if len(chain) == 1:
                continue
            apart = now.apart(chain[-2])
            failing = ~np.any([one.ended for one in chain[-TRIES:]], axis=0) & (len(chain) >= TRIES)
            judged = np.isfinite(target) & ~failing
            errors.append(float(np.max(apart[judged], initial=0.0)))
            gaps.append(float(np.max(apart[judged] / target[judged], initial=0.0)))
            found.tried[-2] = replace(found.tried[-2], error=errors[-1])
            found.h = now.h
            if trials is self.trials:
                found.trial, found.error = now, apart
            if gaps[-1] <= 1 and (known or self._falls(chain, gaps)):
                return True
            if len(gaps) > 1 and errors[-2] <= RESOLVED and gaps[-1] > gaps[-2] / 2:
                stuck += 1
                if stuck == TRIES:
                    return False
            if errors[-1] <= RESOLVED and gaps[-1] > 1 and not switched:
                switched = True
                if (other := self._cheaper(trials, chain, errors[-1], errors[-1] / gaps[-1])) is not None:
                    found.method, h = other
                    chain, errors, gaps = [], [], []

    @property
    def _order(self) -> int:
        return method_named(self.found.method).order

    def _falls(self, chain: list[Trial], gaps: list[float]) -> bool:
        """Whether the error has fallen as half of the order says, or was as small before."""
        if len(gaps) == 1:
            return False
        return gaps[-2] <= 1 or gaps[-1] <= gaps[-2] * (chain[-2].h / chain[-3].h) ** (self._order / 2)

    def _next(self, chain: list[Trial], errors: list[float], gaps: list[float], known: bool) -> float:
        """The step after these: the difference of two runs is about the error of the first one."""
        last = chain[-1].h
        if not errors:
            return last / (FINER if known else FINER**2)
        if errors[-1] > RESOLVED:
            return last / 2
        wanted = chain[-2].h * (AIM / gaps[-1]) ** (1 / self._order) if gaps[-1] else last
        return max(min(wanted, last / FINER), last / 8)

    def _cheaper(self, trials: Trials, chain: list[Trial], error: float, tol: float) -> tuple[str, float] | None:
        """Another member, and the step at which it begins, if it needs so much less work that its code pays."""
        found, one = self.found, chain[-2]
        s, runs = degree(found.method), self.trials.length / trials.length
        iteration = partial(trials.iteration, run=one.run)
        best, h = cheaper(s, one.h, error, AIM * tol, one.steps * one.h, runs, iteration)
        return None if best == s else (member(best), FINER * h)

    def _run(self, trials: Trials, h: float, moved: bool = False) -> Runs:
        """One run. A run with a pace, whose steps nobody can count before, is cut where it has taken what is allowed,
        and made again when more is.
        """
        found = self.found
        price = trials.price(found.method, h)
        if found.trial is not None:
            price = found.trial.work * found.trial.h / h * trials.length / found.trial.length
        elif found.pace is not None:
            price = FIRST * trials.first_step(found.pace) / h
        while True:
            yield price
            now = trials.run(found.method, h, found.pace, moved, self.allowed)
            if now is None or now.ended.any():
                break
            done = abs(float(now.t[0, -1]) - trials.t0) / trials.length
            price = max(GROWN * self.allowed, now.work / max(done, EPS))
        if now is not None:
            found.tried.append(Option(found.method, now.h, found.pace, math.nan, now.steps, now.work))
        return None if now is None or now.strained else now
