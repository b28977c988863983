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
from leastaction.tolerance import constants as k
from leastaction.tolerance.growth import Growth, growth
from leastaction.tolerance.ladder import START, cheaper, degree, member
from leastaction.tolerance.trials import Trial, Trials

FloatArray = NDArray[np.float64]

Runs = Generator[float, None, Any]

NO_STEPS = (
    "tol= has tried shorter and shorter steps, and these were the last. Where bodies come near to each other give "
    "pace=, a function of q that is small there, or soften L; or give method= and h="
)


@dataclass(eq=False)
class Found:
    """What a search has found so far: method, pace and step, and the last run with them.

    error    of each trajectory at the end, (B,); None: no two runs have been compared
    until    the time after the start until which the tolerance can be kept
    tried    all runs, each with its difference from the one after it
    """

    pace: Any
    method: str
    h: float = math.nan
    trial: Trial | None = None
    error: FloatArray | None = None
    growth: Growth | None = None
    until: float = math.inf
    tried: list[Option] = field(default_factory=list)

    @property
    def worst(self) -> float:
        """The largest error of the trajectories that come to their ends; infinite if none is known."""
        if self.error is None:
            return math.inf
        return float(np.max(self.error if self.trial is None else self.error[self.trial.ended], initial=0.0))


def settle(trials: Trials, tol: float) -> Found:
    """The searches with all paces that may be tried, in rounds: from round to round a run may take more work. The
    first search that comes to its end is taken; if none does, the one with the smallest error. The pace that the
    library makes costs code of its own, and joins in the second round.
    """
    begun, allowed = _begun(trials, tol), k.FIRST
    if begun is not None and math.isfinite(begun.until):
        return begun
    searches = [Search(trials, trials.pace, tol, begun)]
    while True:
        for one in searches:
            if one.go(allowed):
                return one.found
        if allowed == k.FIRST and begun is None and trials.may_be_paced:
            searches.append(Search(trials, AUTO, tol))
        if allowed == k.LIMIT:
            break
        allowed = min(k.LIMIT, k.GROWN * allowed)
    if all(math.isnan(one.found.h) for one in searches):
        failure = trials.failure or ValueError(f"no steps of {trials.system.name} lead to the end of the run")
        failure.add_note(NO_STEPS)
        raise failure
    return min((one.found for one in searches), key=lambda found: found.worst)


def _begun(trials: Trials, tol: float) -> Found | None:
    """Method, pace and step of a long run, known by those of a part of it, if errors grow like t. None: runs of the
    whole have to show them.
    """
    price = 0.0 if trials.pace is not None else trials.price(member(START), trials.first_step(None))
    if price <= k.FIRST * k.GROWN:
        return None
    found = settle(trials.until(trials.length / k.GROWN), tol / k.GROWN)
    if found.worst > k.RESOLVED and math.isfinite(found.until):
        return replace(found, trial=None)
    return replace(found, trial=None, growth=None, error=None, until=math.inf)


def judged_by_all(trials: Trials, found: Found, tol: float) -> Found:
    """The same method and pace with the step that keeps the tolerance of all trajectories, if all can be run."""
    search = Search(trials, found.pace, tol)
    search.found.method, search.first = found.method, k.FINER * found.h
    search.go(k.LIMIT)
    return search.found


class Search:
    """The search with one pace; `begun` is what is known before."""

    def __init__(self, trials: Trials, pace: Any, tol: float, begun: Found | None = None) -> None:
        self.trials, self.tol, self.known = trials, tol, begun is not None
        self.found = Found(pace, member(START)) if begun is None else begun
        self.first = trials.first_step(pace) if begun is None else k.FINER * begun.h
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
        if self.known:
            yield from self._shorten(trials, self.first, np.full(len(trials.starts), self.tol))
            return
        yield from self._grow(trials, self.first)
        if np.isinf(self._target()).all():  # rounding leaves nothing of the end of any motion
            yield from self._reach()
        if math.isfinite(found.until):
            return
        agreed = yield from self._shorten(trials, found.h, self._target(), found.trial)
        error = found.error
        assert error is not None
        yield from self._grow(trials, found.h)  # the longer steps may have shown too much, or too little
        found.error = error
        assert found.trial is not None and found.growth is not None
        if agreed and np.any((error > self._target()) & found.trial.ended):
            yield from self._shorten(trials, found.h, self._target(), found.trial)
        found.error = np.maximum(found.error, k.SURE * self._rounding)
        if found.worst > self.tol:
            found.until = float(found.growth.kept(self.tol).min())

    def _reach(self) -> Runs:
        """The step with which the tolerance is kept for as long as rounding lets it. Runs with longer steps may come
        apart earlier: it is seen again with the steps found, and runs go farther while that is worth it. If they come
        to the end, the time stays infinite.
        """
        found, trials, seen, until = self.found, self.trials, self.trials, 0.0
        whole, at_the_end = found.trial, k.SURE * self._rounding
        while True:
            assert found.growth is not None
            if seen is trials and not np.isinf(self._target()).all():
                return
            later = min(float(found.growth.kept(self.tol).min()), seen.length)
            if later == seen.length and until:
                seen = trials
            elif later <= k.LATER * until:  # finer runs have not shown much more, and steps were made for that time
                found.until, found.error, found.trial = min(later, until), at_the_end, whole
                return
            elif later < seen.length * k.FEW / k.ROWS:
                seen = trials.until(seen.length * k.FEW / k.ROWS)  # look closer
            else:
                until, part = later, trials.until(later / k.LATER)
                yield from self._shorten(part, min(found.h, part.length / k.FEW), np.full(len(at_the_end), self.tol))
            yield from self._grow(seen, found.h)

    @property
    def _rounding(self) -> FloatArray:
        assert self.found.growth is not None
        return self.found.growth.end

    def _target(self) -> FloatArray:
        """The error that each trajectory is to have at the end, no less than rounding; infinite where rounding leaves
        nothing of it.
        """
        rounding = k.SURE * self._rounding
        return np.where(rounding > max(k.SURE * k.RESOLVED, self.tol), np.inf, np.maximum(self.tol, rounding))

    def _grow(self, trials: Trials, h: float) -> Runs:
        """Two runs with the same steps, from the start and from beside it."""
        while True:
            one = self.found.trial
            if one is None or (one.h, one.length, one.run.method.name) != (h, trials.length, self.found.method):
                one = yield from self._run(trials, self.found.method, h)
            other = None if one is None else (yield from self._run(trials, self.found.method, h, moved=True))
            if other is not None:
                self.found.trial, self.found.h, self.found.growth = one, one.h, growth(one, other)
                return
            h /= 4

    def _shorten(self, trials: Trials, h: float, target: FloatArray, first: Trial | None = None) -> Runs:
        """Runs with shorter and shorter steps, until they agree, or until nothing is gained. Where the step was known
        before, two runs are enough, and the first one begins beside the start, to show rounding. Whether they agree.
        """
        found, chain, stuck, settled = self.found, Chain(target, [] if first is None else [first]), 0, self.known
        method = found.method
        while True:
            order = method_named(method).order
            h = chain.next(order, self.known) if chain.runs else h
            now = yield from self._run(trials, method, h, self.known and not chain.runs)
            if now is None:
                h, chain = h / 2, Chain(target, [])
                continue
            error = chain.add(now, order)
            if error is None:
                continue
            found.method, found.h = method, now.h
            found.tried[-2] = replace(found.tried[-2], error=chain.errors[-1])
            if trials is self.trials:
                found.trial, found.error = now, error
            stuck += chain.stays
            if chain.agrees(error) and (self.known or len(chain.gaps) > 1):
                return True
            if stuck == k.TRIES:
                return False
            if not settled and chain.gaps[-1] > 1 and chain.errors[-1] <= k.RESOLVED:
                settled, one, last, s = True, chain.runs[-2], chain.errors[-1], degree(method)
                other, step = cheaper(
                    s, one.h, last, k.AIM * last / chain.gaps[-1], one.steps * one.h,
                    self.trials.length / trials.length, partial(trials.iteration, run=one.run),
                )  # fmt: skip
                if other != s:
                    method, h, chain = member(other), k.FINER * step, Chain(target, [])

    def _run(self, trials: Trials, method: str, h: float, moved: bool = False) -> Runs:
        """One run; None if its steps cannot be solved, or take many iterations. A run with a pace, whose steps nobody
        can count before, is cut where it has taken what is allowed, and made again when more is.
        """
        found = self.found
        price = trials.price(method, h)
        if found.trial is not None and found.trial.run.method.name == method:
            price = found.trial.work * found.trial.h / h * trials.length / found.trial.length
        elif found.trial is None and found.pace is not None:
            price = k.FIRST * trials.first_step(found.pace) / h
        while True:
            yield price
            now = trials.run(method, h, found.pace, moved, self.allowed)
            if now is None or now.ended.any():
                break
            done = abs(float(now.t[0, -1]) - trials.t0) / trials.length
            price = max(k.GROWN * self.allowed, now.work / max(done, EPS))
        if now is not None:
            found.tried.append(Option(method, now.h, found.pace, math.nan, now.steps, now.work))
        return None if now is None or now.strained else now


class Chain:
    """Runs with shorter and shorter steps, and the target for their errors.

    apart    differences of neighbours, (B,) each
    errors, gaps    the largest of them, and the largest in units of the target
    """

    def __init__(self, target: FloatArray, runs: list[Trial]) -> None:
        self.target, self.runs, self.apart = target, runs, list[FloatArray]()
        self.errors, self.gaps = list[float](), list[float]()

    def add(self, now: Trial, order: int) -> FloatArray | None:
        """The error of a run, (B,), if it is not the first one: the difference from the run before; or what three
        quarters of the order make of the difference of the two before, if that is more: runs may agree by chance.
        """
        self.runs.append(now)
        if len(self.runs) == 1:
            return None
        self.apart.append(now.apart(self.runs[-2]))
        judged = self._judged
        self.errors.append(float(np.max(self.apart[-1][judged], initial=0.0)))
        self.gaps.append(float(np.max((self.apart[-1] / self.target)[judged], initial=0.0)))
        if len(self.runs) == 2:
            return self.apart[-1]
        shrunk = (now.h / self.runs[-3].h) ** (0.75 * order)
        return np.maximum(self.apart[-1], np.where(np.isfinite(self.apart[-2]), shrunk * self.apart[-2], 0.0))

    @property
    def _judged(self) -> NDArray[np.bool_]:
        """Not those of which nothing can be known, and not those that have failed in some runs."""
        last = self.runs[-2 * k.TRIES :]
        failing = ~np.any([one.ended for one in last], axis=0) & (len(last) == 2 * k.TRIES)
        return np.isfinite(self.target) & ~failing

    def agrees(self, error: FloatArray) -> bool:
        return bool(np.all((error <= self.target) | ~self._judged))

    def next(self, order: int, known: bool) -> float:
        """The step of the next run: the difference of two runs is about the error of the first one."""
        last = self.runs[-1].h
        if not self.errors:
            return last / (k.FINER if known else k.FINER**2)
        if self.errors[-1] > k.RESOLVED:
            return last / 2
        wanted = self.runs[-2].h * (k.AIM / self.gaps[-1]) ** (1 / order) if self.gaps[-1] else last
        return max(min(wanted, last / k.FINER), last / 4)

    @property
    def stays(self) -> bool:
        """Whether the last run has gained little, though the runs before were near to each other."""
        return len(self.gaps) > 1 and self.errors[-2] <= k.RESOLVED and self.gaps[-1] > max(1.0, self.gaps[-2] / 2)
