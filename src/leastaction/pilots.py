"""Which method, which step, which pace: chosen by measuring.

A run until T is to end with an error of the position below tol, relative to the size of the motion. Pilots measure:

1. A pilot interval T_p: all of T, or as much of it as some thousand steps of 2/ω cover, with the pace made from L or
   without; ω is the largest frequency or growth rate of the linearised motion at the start. Where equal steps find the
   end of the whole run in some milliseconds, no pace is tried. Where a pace leads to T in far fewer steps than equal
   ones do, and these are too many for a pilot, equal steps are left out.
2. The answer at T_p, by the member of order 16, or a lower one where constraints make its steps dear: its step is
   halved until two answers agree.
3. The growth of errors, from the tangent map D(t) of the pilot, by a cheaper member if it follows the motion. Errors
   grow like a power of t, or exponentially if D grows much more in the second half of the pilot than in the first. So
   errors at T follow from errors at T_p.
4. For some members, without and with a pace, the error at two steps: error = C h^p. The step for tol follows. The cost
   follows from the seconds of the processor that the pilot with about this step took, since steps of other lengths
   cost otherwise: long steps take more iterations. A run with a pace is as many times as long as its pilot in s, not in
   t: far from an encounter a step of s is a long time.

Of the members that follow each other by degree, costs fall and then grow. So the search begins with the degree that is
often the best for such a tolerance, and goes to lower and to higher degrees until costs grow. The cheapest option
that keeps the tolerance is chosen. The choice may depend on the clock; a run with the chosen option does not.

A member that has not run before may have to be compiled, which takes a tenth of a second to a second. So the answer and
the growth of errors come from members that are measured, too, and others are compiled only if the run is long enough.

For linear systems without damping and load, formulas give the errors (`linear.dispersion`), and only the seconds of a
step are measured.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import StepFailed
from leastaction.linear.dispersion import Excited
from leastaction.run.advice import EPS, Advice, Growth, Option
from leastaction.systems.pace import AUTO

FloatArray = NDArray[np.float64]

MEMBERS = (2, 3, 4, 6, 8, 12)  # degrees s of PsNsQ2sGau
OFTEN = ((1e-4, 3), (1e-7, 4), (1e-10, 6), (0.0, 8))  # down to which tolerance which degree is often the best …
HELD = ((1e-4, 2), (1e-7, 3), (0.0, 4))  # … and where constraints hold
HIGHEST, MOST_UNKNOWNS = 8, 168  # degree that finds the answer; where constraints hold, the most unknowns of a step
FOLLOWING, FOLLOWED = 4, 1e-3  # degree that may carry derivatives: its end of the pilot is right up to this
SCOUT, SCOUTED = 4, 0.25  # degree that finds a first step where no frequency tells one, and in which part of the run
KNOWN = 1e-5  # two answers differ by no more than this, or by a hundredth of tol if that is less
FEWER = 100.0  # times fewer steps with a pace than equal ones, each of which is cheaper: equal ones may be left out
SLOWER = 3.0  # times the cost with a pace, or without one: then the slower of both is not measured any more
GROWN = 1.5  # times the least cost: then further degrees cost more
ROUGH = 0.1  # two answers that differ by more than this say nothing of how many halvings are left
LONGEST = 1000  # steps 2/ω of a pilot
MOST = 40 * LONGEST  # steps of a pilot run: a run that needs more is given up
SECONDS = 0.3  # the most that a pilot run may take; longer pilots are cut
PATIENCE = 0.7  # seconds of all pilots, or the time of the best run found, if longer: then no more members are measured
COMPILING, OFTEN_RUN = 0.05, 50.0  # seconds to compile a member, over its degree; they pay after so many runs
LONG = 0.05  # seconds of the best run found: then a member that has run before is measured in any case
EASY = 5e-3  # seconds of the run that finds the answer with equal steps: a pace could save no more
AFFORDED, TRIAL = 0.1, 8  # seconds of a first run for the answer, and the steps from which its cost is estimated
STRAINED = 4.0  # times as short are the steps of pilots if steps of 1/2ω need continuation
HALVINGS = 10  # the most halvings of a step, until the answer is known
DEAR = 8.0  # times the best so far: a member that takes longer than this is not measured again
AGREEING = 1e-4  # two answers that differ by more than this belong to different motions
COARSER = 16.0  # times the rounding: an error as small as rounding is not chosen for a tolerance above this
TRUSTED = 0.03  # an error above this is not yet in the range where error = C h^p
MARGIN = 2.0  # the factor by which the predicted error stays below tol
STEEPER = 8.0  # errors that grow more than so many times as much in a pilot's second half as in its first: exponential
FLOOR = 50 * EPS  # the smallest error that is told
TIMED = 64  # steps of a linear system by which one step is timed
MOST_STEPS = 10**9  # the most steps of a linear system
ROWS, NUMBERS = 512, 2**20  # states of a pilot at which its derivative is looked at, and the most numbers of it
ROUNDED = 4.0  # units in the last place: the rounding of the start and of the first steps
USEFUL = 1e-3  # if rounding grows above tol, and not above this, the run is to be as accurate as rounding allows
FIXED = 4  # degree of the member that measures the cost of a run without its steps
UNKEPT = "the tolerance cannot be kept in float64"
FAILS = "not accurate at any step tried"
LAST = 2**40  # as `every`: only the last state is stored


Run = Callable[..., Any]  # (method, h, pace, t_end, **options) ↦ Path


@dataclass(frozen=True, eq=False)
class Asked:
    """A run to be advised: the function that runs it, t0 and t_end, and facts about the system at the start.

    run     (method, h, t_end, pace, every, tangent) ↦ Path
    paces   that may be tried, None first
    linear  whether errors are known to grow like t, as where the equations are linear
    held    constraints
    omega   the largest frequency or growth rate at the start; at least one over the length of the run
    """

    run: Run
    name: str
    n: int
    t0: float
    t_end: float
    paces: tuple[Any, ...]
    linear: bool
    held: int = 0
    omega: float = 0.0

    @property
    def length(self) -> float:
        return abs(self.t_end - self.t0)

    @property
    def reference(self) -> int:
        """The degree of the member that finds the answer. Where constraints hold, each step is solved by Newton with a
        dense matrix.
        """
        fit = [s for s in MEMBERS if (self.n + self.held) * s <= MOST_UNKNOWNS]
        return HIGHEST if not self.held else max(fit, default=MEMBERS[1])


@dataclass(frozen=True, eq=False)
class _Pilot:
    """One short run: its end, its length in t, or in s with a pace, and its cost."""

    h: float
    state: FloatArray
    steps: int
    length: float
    seconds: float

    def longer(self, whole: float) -> float:
        """How many times as long as this one a run of this length is, at least once."""
        return max(1.0, whole / self.length)


@dataclass(frozen=True)
class Reach:
    """How far LONGEST steps of 2/ω lead; and how long the whole run is in t, or in s with a pace."""

    time: float
    whole: float
    steps: int


class _Lab:
    """Pilot runs of one motion until `t_end`, each at most once."""

    def __init__(self, asked: Asked, t_end: float, before: _Lab | None = None) -> None:
        self.asked, self.t_end = asked, t_end
        self._known: dict[Any, _Pilot | None] = {} if before is None or before.t_end != t_end else before._known
        # Members and paces that have run before, and what each pace costs at least.
        self._warm: set[Any] = set() if before is None else before._warm
        self._fixed: dict[Any, float] = {} if before is None else before._fixed
        # Whether the first steps of a pilot needed continuation, which is a hundred times as dear.
        self.strained: bool = False if before is None else before.strained
        self.spent: float = 0.0 if before is None else before.spent  # seconds spent by all pilots …
        self.loading: float = 0.0 if before is None else before.loading  # … and until there was machine code for them

    def pilot(self, s: int, h: float, pace: Any) -> _Pilot | None:
        """The end of a run; None if a step cannot be solved."""
        key = s, round(h, 12 - math.floor(math.log10(h))), id(pace)
        if key not in self._known:
            self._known[key] = self._run(s, h, pace)
        return self._known[key]

    def _run(self, s: int, h: float, pace: Any) -> _Pilot | None:
        if pace is None and abs(self.t_end - self.asked.t0) > MOST * h:
            return None
        try:
            self._load(s, pace)
            path, spent = self._timed(s, h, self.t_end, pace)
        except (StepFailed, ArithmeticError, np.linalg.LinAlgError):
            return None
        state, steps = np.concatenate([path.q[-1], path.p[-1]]), int(path.stats["steps"])
        there = abs(path.t[-1] - self.t_end) <= 1e-9 * abs(self.t_end - self.asked.t0)
        length = abs(float((path if path.pace is None else path.pace).t[-1]) - (self.asked.t0 if pace is None else 0.0))
        return _Pilot(h, state, steps, length, spent) if there and np.isfinite(state).all() else None

    def _load(self, s: int, pace: Any) -> None:
        """Once, a run of the shortest step: it compiles or loads code, which is not counted as time of pilots."""
        if not self.loaded(s, pace):
            self._warm.add((s, id(pace)))
            before = self.spent
            try:
                self._shortest(s, pace)
            finally:
                self.loading += self.spent - before
                self.spent = before

    def loaded(self, s: int, pace: Any) -> bool:
        """Whether a member has run before with this pace."""
        return (s, id(pace)) in self._warm

    def patient(self, s: int, pace: Any, best: float) -> bool:
        """Whether there is time left to measure a member, if the best run found so far takes this long. A member that
        has not run before may first have to be compiled, so that the time until now counts as a whole.
        """
        if math.isinf(best) or self.loaded(s, pace):
            return self.spent <= max(PATIENCE, best) or LONG < best < math.inf
        loading = s * COMPILING
        return self.spent + self.loading + loading <= max(PATIENCE, best) and loading <= OFTEN_RUN * best

    def _shortest(self, s: int, pace: Any) -> float:
        """The seconds of a run of the shortest step."""
        h = 1e-3 * min(1.0 / self.asked.omega, abs(self.t_end - self.asked.t0))
        return self._timed(s, h, self.asked.t0 + self._signed(h), pace)[1]

    def _timed(
        self, s: int, h: float, t_end: float, pace: Any, every: int = LAST, tangent: bool = False, most: int = MOST
    ) -> tuple[Any, float]:
        """A run, and all seconds of the processor that the run took."""
        clock = time.thread_time()
        try:
            path = self.asked.run(member(s), self._signed(h), t_end, pace, every, tangent, most)
        finally:
            spent = time.thread_time() - clock
            self.spent += spent
        return path, spent

    def easy(self, tol: float) -> bool:
        """Whether the answer at the end of the whole run is found at once with equal steps."""
        length = self.asked.length
        if self.asked.omega * length > 2 * LONGEST or self.affordable(None) < length:
            return False
        found = _answer(self, self.asked, None, length, tol, None)
        return found is not None and found.unsure <= tol / 4 and found.known.seconds <= EASY

    def affordable(self, pace: Any) -> float:
        """How far the first steps of the search for the answer lead in AFFORDED seconds."""
        h = 0.5 / self.asked.omega
        if TRIAL * h > abs(self.asked.t_end - self.asked.t0):
            return math.inf
        try:
            self._load(self.asked.reference, pace)
            path, spent = self._timed(self.asked.reference, h, self.asked.t0 + self._signed(TRIAL * h), pace)
            self.strained = path.stats.get("continued", 0) >= TRIAL / 2
        except (StepFailed, ArithmeticError, np.linalg.LinAlgError):
            return math.inf
        each = max(spent - self.fixed(pace), 1e-9) / TRIAL
        return max(h * AFFORDED / each, min(10 / self.asked.omega, h * SECONDS / each), 2 / self.asked.omega)

    def fixed(self, pace: Any) -> float:
        """The seconds that even the shortest run takes: to prepare the run, and to hand back its path."""
        if pace not in self._fixed:
            try:
                self._load(FIXED, pace)
                self._fixed[pace] = min(self._shortest(FIXED, pace) for _ in range(2))
            except (StepFailed, ArithmeticError, np.linalg.LinAlgError):
                self._fixed[pace] = 0.0
        return self._fixed[pace]

    def seconds(self, pace: Any, one: _Pilot, longer: float) -> float:
        """The seconds of a run that is `longer` times as long as this pilot."""
        fixed = min(self.fixed(pace), one.seconds)
        return fixed + (one.seconds - fixed) * longer

    def reach(self, pace: Any) -> Reach | None:
        """How far LONGEST steps of 2/ω lead, or shorter steps if these fail; None if there is no such pace."""
        h, length = 2.0 / self.asked.omega, abs(self.t_end - self.asked.t0)
        if pace is None:
            return Reach(LONGEST * h, length, math.ceil(length / h))
        for halved in range(HALVINGS):
            try:
                self._load(FIXED, pace)
                path = self._timed(FIXED, h / 2**halved, self.t_end, pace, most=LONGEST)[0]
                reached = abs(float(path.t[-1]) - self.asked.t0)
                if reached > (1 - 1e-9) * length:
                    reached = length
                longer = length / max(reached, 1e-300)  # beyond what was reached, as before
                return Reach(reached, abs(float(path.pace.t[-1])) * longer, math.ceil(path.stats["steps"] * longer))
            except (StepFailed, ArithmeticError, np.linalg.LinAlgError):
                continue
            except ValueError:
                if pace == AUTO:
                    return None
                raise
        return Reach(0.0, length, MOST)

    def _signed(self, h: float) -> float:
        return math.copysign(h, self.t_end - self.asked.t0)

    def followed(self, known: _Pilot, pace: Any) -> Any:
        """The same run by a cheaper member if that follows the motion, with the longest steps that do where there are
        many, at ROWS of its states or fewer; with its derivative, unless the equations are linear.
        """
        one, s, found = known, self.asked.reference, None
        if s > FOLLOWING:
            found = self.pilot(FOLLOWING, known.h, pace)
        if found is not None and apart(found, known) <= FOLLOWED:
            one, s = found, FOLLOWING
            longer = math.floor(min((FOLLOWED / 4 / max(apart(one, known), EPS)) ** (0.5 / s), known.steps / ROWS))
            found = self.pilot(s, longer * known.h, pace) if longer > 1 else None
            if found is not None and apart(found, known) <= FOLLOWED:
                one = found
        every = max(1, one.steps // max(1, min(ROWS, NUMBERS // (2 * self.asked.n) ** 2)))
        return self._timed(s, one.h, self.t_end, pace, every, not self.asked.linear)[0]

    def scouted(self, pace: Any) -> float:
        """ω where the start does not tell one: a cheap member's step is shortened until two ends of the pilot are
        roughly the same.
        """
        h, last = abs(self.t_end - self.asked.t0) / 2, None
        for _ in range(HALVINGS):
            now = self.pilot(SCOUT, h, pace)
            if now is not None and last is not None and apart(now, last) <= ROUGH:
                return max(0.5 / h, self.asked.omega)
            last, h = now, h / (4 if now is None else 2)
        return self.asked.omega


def _off(one: _Pilot, known: _Pilot, scale: FloatArray) -> float:
    """How much two ends differ, each of the 2n numbers on its scale."""
    return float(np.abs((one.state - known.state) / scale).max())


def apart(one: _Pilot, other: _Pilot) -> float:
    """How much two ends differ, relative to the largest number of the state."""
    return float(np.abs(one.state - other.state).max() / np.maximum(np.abs(one.state).max(), 1e-300))


def member(s: int) -> str:
    return f"P{s}N{s}Q{2 * s}Gau"


def choose(asked: Asked, tol: float) -> Advice:
    """The advice for a run; see the head of this module."""
    length, lab = asked.length, None
    if asked.omega * length <= 2 and not asked.linear:
        lab = _Lab(asked, asked.t0 + math.copysign(SCOUTED * length, asked.t_end - asked.t0))
        asked = replace(asked, omega=lab.scouted(asked.paces[0]))
    growth, scale, size, kept = Growth(1.0), np.ones(2 * asked.n), 1.0, length
    rounding, aim = _Rounding(), tol
    lab, spared = _Lab(asked, asked.t_end, lab), ""
    if len(asked.paces) > 1 and lab.easy(tol):
        asked = lab.asked = replace(asked, paces=(None,))
    found = {pace: lab.reach(pace) for pace in asked.paces}
    reach = {pace: one for pace, one in found.items() if one is not None}
    pilot_length = min(length, max(one.time for one in reach.values()))
    equal = lab.affordable(None) if None in reach else math.inf
    if equal < pilot_length:
        others = [one.steps for pace, one in reach.items() if pace is not None and one.time >= pilot_length]
        more = reach[None].steps / min(others, default=math.inf)
        if more > FEWER:
            del reach[None]
            spared = f"not measured: equal steps, of which {more:.0f} times as many are needed"
        else:
            pilot_length = equal
    omega = asked.omega * (STRAINED if lab.strained and pilot_length < length else 1.0)
    asked = replace(asked, paces=tuple(reach), omega=omega)
    while True:
        t_p = asked.t0 + math.copysign(pilot_length, asked.t_end - asked.t0)
        lab = _Lab(asked, asked.t_end if pilot_length == length else t_p, lab)
        answers = _answers(lab, asked, pilot_length, tol) if pilot_length else {}
        reference = _reference(answers, tol)
        if reference is None:
            break
        if reference.unsure <= tol / 4:
            asked = lab.asked = replace(asked, paces=tuple(answers))
        pace, known = reference.pace, reference.known
        short = pilot_length * asked.omega <= 10.01
        if known.seconds >= 2 * SECONDS and not short:
            pilot_length /= max(2.0, known.seconds / SECONDS)
            continue
        path = lab.followed(known, pace)
        scale, size = _scales(path)
        growth, rounding, kept = _growth(path, asked, scale, tol, length, pilot_length)
        if rounding.largest > tol and pilot_length == length:
            finer = lab.pilot(asked.reference, known.h / 2, pace) or reference.rougher
            if min(_off(one, known, scale) for one in (finer, reference.rougher)) <= tol / 4:
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
    paces = dict.fromkeys(asked.paces, math.inf)  # that are still measured, with the least cost of each so far

    def measure(s: int) -> float | None:
        """The least cost with this degree; None if there is no time left to measure it."""
        costs: list[float] = []
        for pace in list(paces):
            best = min(paces.values())
            if not lab.patient(s, pace, best):
                continue
            whole = 0.0 if pilot_length == length else reach[pace].whole
            option = _measured(lab, asked, s, pace, known, scale, aim / aimed / MARGIN, whole, best, unsure)
            if option is not None:
                error = max(option.error, unsure) * growth.factor
                options.append(replace(option, error=error if horizon is None else min(error, 1.0)))
            costs.append(math.inf if option is None or option.why else option.seconds)
            paces[pace] = min(paces[pace], costs[-1])
        for pace in [pace for pace, cost in paces.items() if cost > SLOWER * min(paces.values())]:
            del paces[pace]
        return min(costs, default=None)

    degrees = [s for s in MEMBERS if lab.patient(s, pace, 0.0)] or [asked.reference]
    left, notes = _search(measure, _often(asked, aim, degrees)), []
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


def _often(asked: Asked, tol: float, degrees: list[int]) -> int:
    """Of these degrees the one nearest to that which is often the best for a tolerance."""
    often = next(s for least, s in (HELD if asked.held else OFTEN) if tol >= least)
    return min(degrees, key=lambda s: abs(MEMBERS.index(s) - MEMBERS.index(often)))


def _search(measure: Callable[[int], float | None], degree: int) -> list[int]:
    """Measure this degree, then lower and higher ones, until costs grow; return the degrees that were left out because
    no time was left. Steps of low degrees may be solved by other, quicker code: so costs may grow a little and fall
    again.
    """
    first = MEMBERS.index(degree)
    costs = {first: measure(degree)}
    for step in (-1, 1):
        k, least = first + step, costs[first]
        if least is not None and GROWN * min(cost for cost in costs.values() if cost is not None) < least:
            break  # costs fall towards lower degrees, and grow towards higher ones
        while 0 <= k < len(MEMBERS):
            now = costs[k] = measure(MEMBERS[k])
            if now is not None and (least is None or now > GROWN * least):
                break
            k, least = k + step, least if now is None else min(least or now, now)
    return [MEMBERS[k] for k, cost in sorted(costs.items()) if cost is None]


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
        why = "" if steps < MOST_STEPS else "would take far longer"
        options.append(Option(member(s), length / steps, None, error, seconds, steps, why))
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


@dataclass(frozen=True, eq=False)
class _Answer:
    """The end of the pilot as well as it is known: the pace of the run that found it, this run, the run with longer
    steps before it, and by how much it may be off.
    """

    pace: Any
    known: _Pilot
    rougher: _Pilot
    unsure: float


def _answers(lab: _Lab, asked: Asked, length: float, tol: float) -> dict[Any, _Answer]:
    """The answers with the paces with which there is one."""
    found: dict[Any, _Answer] = {}
    for pace in asked.paces:
        one = _answer(lab, asked, pace, length, tol, min((f.known.steps for f in found.values()), default=None))
        if one is not None:
            found[pace] = one
    return found


def _reference(answers: dict[Any, _Answer], tol: float) -> _Answer | None:
    """The answer with the pace with which it costs less, or with the most steps if none is good enough."""
    agreed = [one for one in answers.values() if one.unsure <= tol / 4]
    if agreed:
        return min(agreed, key=lambda one: one.known.seconds)
    return max(answers.values(), key=lambda one: one.known.steps, default=None)


def _answer(lab: _Lab, asked: Asked, pace: Any, length: float, tol: float, most: int | None) -> _Answer | None:
    """The end of the pilot by the highest member, its step halved until two ends agree or agree no better.

    Of two ends that differ by g, with steps 2h and h of a member of order 2s, the second is off by g/(2²ˢ − 1). If g
    is below tol/4, it is said to be off by g/2ˢ: half of the order, which longer steps may not show yet, is enough.
    """
    h, gap = min(length / 4, 0.5 / asked.omega), math.inf
    last: _Pilot | None = None
    best: _Answer | None = None
    for _ in range(HALVINGS):
        now, before = lab.pilot(asked.reference, h, pace), gap
        if now is not None and last is not None:
            gap = apart(now, last)
            if best is not None and before < AGREEING and gap > before / 4:
                return best  # rounding: otherwise a halved step of such an order would be far better
            best, enough = _Answer(pace, now, last, gap), tol * length / asked.length
            off = gap * (now.h / last.h) ** asked.reference
            if gap <= enough / 4 and off <= min(enough / 100, KNOWN):
                return replace(best, unsure=off)
        rough = now is None or (last is not None and gap > ROUGH)
        if now is not None and most is not None and now.steps > 8 * most:
            break
        if now is not None and now.seconds > 2 * SECONDS and best is not None:
            break
        last, h = now, h / (4 if rough else 2)
    return best


def _scales(path: Any) -> tuple[FloatArray, float]:
    """The sizes of positions and momenta, for each of the 2n numbers: the largest range of one in the pilot."""
    q, p = (np.asarray(x, float) for x in (path.q, path.p))
    sizes = [max(float(np.ptp(x, axis=0).max()), EPS * float(np.abs(x).max()), 1e-300) for x in (q, p)]
    return np.repeat(sizes, q.shape[1]), sizes[0]


@dataclass(frozen=True)
class _Rounding:
    """What rounding makes of the positions at the end of the run: the rounding of the start, if the largest error that
    it was on the way may come again; and one unit in the last place of the state at the worst time.
    """

    largest: float = 0.0
    last: float = 0.0


def _growth(
    path: Any, asked: Asked, scale: FloatArray, tol: float, length: float, pilot: float
) -> tuple[Growth, _Rounding, float]:
    """How errors grow from the end of the pilot on; what rounding makes of the end, and how long it stays below tol."""
    if asked.linear:
        return Growth(max(1.0, length / pilot)), _Rounding(), length
    D = np.asarray(at_fixed_time(path), float) * scale[None, None, :] / scale[None, :, None]
    size = np.abs(D).max(axis=(1, 2))
    t = np.abs(np.asarray(path.t, float) - asked.t0)
    middle = int(np.searchsorted(t, t[-1] / 2))
    first, second = size[: middle + 1].max(), size.max()
    steeper = second / first
    rate = math.log(steeper) / (t[-1] - t[middle]) if steeper > STEEPER else 0.0
    growth = Growth(max(1.0, length / pilot), rate)
    growth = replace(growth, factor=growth.over(length - pilot)) if rate else growth
    start = np.abs(np.concatenate([path.q[0], path.p[0]]).astype(float))
    rounded = ROUNDED * EPS * (np.abs(D[:, : asked.n]) * (start / scale)).max(axis=(1, 2))  # the rounded start
    largest = float(rounded.max()) * growth.factor
    last = max(_on_the_way(path, D, scale), float((EPS * _by_energy(path) / scale[: asked.n]).max()))
    # Beyond the pilot rounding is taken to grow like t: if it grows exponentially, two runs differ by as much.
    rounding = _Rounding(largest, last * max(1.0, length / pilot))
    return growth, rounding, _until(t, np.maximum.accumulate(rounded), tol, rate) if largest > tol else length


def _until(t: FloatArray, rounded: FloatArray, tol: float, rate: float) -> float:
    """How long a growing error stays below tol; between two states, and beyond the last, its growth is exponential."""
    over = np.flatnonzero(rounded > tol)
    if not len(over):
        return float(t[-1] + (math.log(tol / rounded[-1]) / rate if rate else 0.0))
    k = int(over[0])
    if k == 0:
        return 0.0
    part = math.log(tol / rounded[k - 1]) / math.log(rounded[k] / rounded[k - 1])
    return float(t[k - 1] + part * (t[k] - t[k - 1]))


def at_fixed_time(path: Any) -> Any:
    """∂(q, p)/∂(q₀, p₀) at the stored times.

    With a pace the run's own derivative is taken at fixed s and E. The state at a fixed time also changes with E(q₀,
    p₀), and along the motion with the time.
    """
    if path.pace is None:
        return path.tangent
    system, whole, n = path.system, path.pace.tangent, path.system.n
    v = system.velocity(path.q, path.p, path.t, path.params)
    pull = system._evaluate(system.gradient, path.q, v, path.t, path.params)["Lq"]
    force = pull + system.external_force(path.q, v, path.t, path.params)
    along, gradient = np.concatenate([v, force], axis=1), np.concatenate([-pull[0], v[0]])
    state, E, clock = np.r_[0:n, n + 1 : 2 * n + 1], n, 2 * n + 1
    if path.pace.system.clock.block == "q":  # the last momentum is −E
        E, clock, gradient = clock, E, -gradient
    free = whole[:, state[:, None], state] + whole[:, state, E, None] * gradient
    later = whole[:, clock, state] + whole[:, clock, E, None] * gradient
    return free - along[:, :, None] * later[:, None, :]


def _on_the_way(path: Any, D: FloatArray, scale: FloatArray) -> float:
    """What one unit in the last place of the state at the worst time makes of the positions at the end, D(T) D(t)⁻¹. D
    is symplectic, so that D⁻¹ is made of its transposed blocks; where forces act or constraints hold, the start alone
    is looked at.
    """
    n, states = path.system.n, np.abs(np.concatenate([path.q, path.p], axis=1).astype(float)) / scale
    if path.system.forced or path.system.m:
        return float(EPS * (np.abs(D[-1, :n]) @ states[0]).max())
    turned = D.transpose(0, 2, 1)
    inverse = np.block([[turned[:, n:, n:], -turned[:, n:, :n]], [-turned[:, :n, n:], turned[:, :n, :n]]])
    return float(EPS * np.einsum("tij,tj->ti", np.abs(D[-1, :n] @ inverse), states).max())


def _by_energy(path: Any) -> FloatArray:
    """|E₀ ∂q/∂E₀| at the end of a run with a pace, at fixed time and start: E₀ is rounded once, for all runs alike."""
    n = path.system.n
    if path.pace is None or path.pace.system.clock == "q":
        return np.zeros(n)
    whole, v = np.asarray(path.pace.tangent[-1], float), path.system.velocity(path.q, path.p, path.t, path.params)[-1]
    return np.abs(float(path.pace.q[-1, n]) * (whole[:n, n] - v * whole[2 * n + 1, n]))


def _measured(
    lab: _Lab,
    asked: Asked,
    s: int,
    pace: Any,
    known: _Pilot,
    scale: FloatArray,
    tol: float,
    whole: float,
    best: float,
    unsure: float,
) -> Option | None:
    """A member at two steps: the step for tol, and its cost for a whole run of this length, in t or in s."""
    floor = 50 * EPS * max(1.0, float(np.abs(known.state / scale).max()))
    target = max(tol, floor, 2 * unsure)  # errors that cannot be measured are not aimed at

    def error(one: _Pilot) -> float:
        return _off(one, known, scale)

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
            if lab.strained or lab.seconds(pace, one, one.longer(whole)) > DEAR * best:
                break
            h *= 2  # far more accurate than asked for; rounding hides by how much
        elif (e <= target and len(tried) > 1) or e <= floor:
            break
        else:
            shorter = (0.7 * target / e) ** (1 / order)
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
    one, e = max(kept, key=lambda pair: pair[0].h) if kept else min(tried, key=lambda pair: pair[1])
    if kept and e > floor:  # lengthen the step up to the tolerance, by the order
        stretch = min((target / e) ** (1 / order), 2.0)
    else:
        stretch = 1.0 if kept else (target / e) ** (1 / order)
    stretch = min(stretch, max(1.0, 0.7 * too_long / one.h))
    if stretch > 1.05:  # one more run shows the cost of steps of this length, and whether they keep the target
        longest = lab.pilot(s, one.h * stretch, pace)
        if longest is not None and error(longest) <= target:
            one, e = longest, error(longest)
        stretch = 1.0
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
