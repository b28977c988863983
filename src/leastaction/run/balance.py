"""Whether a motion keeps its energy. An autonomous, unforced motion that does not keep it is a wrong answer.

E − E₀ is compared with the largest kinetic energy of the motion so far, where the kinetic energy is taken as

    K = ½ Σ_i |v_i (p_i − ∂L/∂v_i(q, 0))|.

What flows between the terms of E is of the size of K, whatever the units, and whatever constants or total derivatives
dF(q)/dt are added to L. At the start, which may be at rest, K is at least the change of the potential energy within
the first step, up to its first turn. States are looked at after 1, 7, 37, 187, … steps, k ↦ 5k + 2, which no
period divides, and wherever a stretch of the run ends. Loops note these states on their way, and all are looked at
together. An error that comes and goes between two looks is not seen. An error below the rounding of the terms says
nothing.

A run with a pace keeps σ (H − E₀). H itself is looked at, since H is the energy of the motion in time. Where σ has
a zero on the way time stands still, and the motion in s comes back from there: H is wrong for some steps before and
after it turns, and right again later. So such runs are looked at more often, k ↦ k + k/16 + 1.

Walls that move or are not elastic change E at impacts, by a known amount (`run.walls`): E₀ is then the energy that the
motion ought to have.

A linear system is not looked at: whether h is stable on it is known before the run.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.status import GOING_WELL, STOPPED
from leastaction.errors import DegenerateLagrangianError
from leastaction.methods import Galerkin
from leastaction.numbers.rounding import Digits
from leastaction.run.walls import Walls
from leastaction.systems import steppers

if TYPE_CHECKING:
    from leastaction.backends.stepper import Stepper
    from leastaction.run.plan import Plan
    from leastaction.run.standing import Standing
    from leastaction.run.starts import Starts
    from leastaction.systems.protocol import NonlinearSystem

FloatArray = NDArray[np.float64]

LARGE = 0.2  # times K: larger errors of the energy are told; ordinary steps stay below 0.06, wrong motions reach 0.9
ROUNDINGS = 1e4  # units in the last place: smaller errors are rounding
TIMES = 16  # a run with a pace is looked at again after 1/16 more steps
MOST_STEPS = 2**53  # the most steps of any run
GOLDEN = (5**0.5 - 1) / 2
FINER, SOONEST = 0.5**0.5, 24  # the ratio of a place in the first step to the next later one, and the number of places
EPSILON = float(np.finfo(float).eps)
# The columns of each trajectory: E₀, with what walls have given since; the largest K and rounding of E so far; the last
# time at which E was right, the first time at which E was wrong, and the error of E: both NaN as long as E is right.
COLUMNS = ("start", "size", "rounding", "right", "wrong", "error")


class Loss(NamedTuple):
    """The time at which a trajectory's energy was last right, the time at which it was wrong, its error, and K."""

    trajectory: int
    right: float
    wrong: float
    error: float
    size: float


def columns(plan: Plan) -> int:
    """The columns of the array that a Standing keeps: none where the energy may change."""
    system = plan.system.in_time
    if system.linear or system.depends_on_time or system.forced:
        return 0
    if isinstance(plan.method, Galerkin) and plan.method.branch == "any":
        return 0  # any root will do, as asked
    return len(COLUMNS)


def _series(next_one: Callable[[int], int]) -> list[int]:
    found = [1]
    while found[-1] < MOST_STEPS:
        found.append(next_one(found[-1]))
    return found


SELDOM = _series(lambda k: 5 * k + 2)
OFTEN = _series(lambda k: k + k // TIMES + 1)


class Looks:
    """States of some trajectories on their way, to be looked at together."""

    def __init__(self, plan: Plan, standing: Standing) -> None:
        self._plan, self._wanted = plan, columns(plan) > 0
        self._walls = Walls(plan, standing)
        self._after = SELDOM if plan.system.clock.steady else OFTEN
        self._asked: list[int] | None = None  # after which steps the stepper notes its states; None if it does not
        # One trajectory comes to the end of its stretch, unless a step fails: the state there is noted like others.
        self._to_the_end = not plan.many and plan.events is None
        self._last = 0  # the number of steps before the states that were looked at last
        # Times (moments, B), states (moments, B, 2n), and whether an event inside a step has ended the run there.
        self._found: list[tuple[FloatArray, NDArray[Any], NDArray[np.bool_]]] = []

    def ahead(self, stepper: Stepper, steps: int, end: int) -> int:
        """How many of these steps, the last of which may be the end of the stretch, a stepper may do at once: a stepper
        that notes no states pauses at each look.
        """
        if not self._wanted:
            return steps
        done = stepper.done
        after = self._after[bisect_right(self._after, done) : bisect_right(self._after, done + steps)]
        if self._to_the_end and done + steps == end and after[-1:] != [end]:
            after = [*after, end]
        if not after:
            self._asked = []
            return steps
        self._asked = after if stepper.note(after) else None
        return steps if self._asked else after[0] - done

    def take(self, stepper: Stepper) -> None:
        """Take the states that the stepper has noted, or its present state if this state is to be looked at."""
        if not self._wanted:
            return
        if self._asked is None:
            if stepper.done == self._after[bisect_right(self._after, stepper.done) - 1]:
                self.end(stepper)
        elif self._asked:
            plan, there = self._plan, bisect_right(self._asked, int(stepper.steps().max()))
            if not there:
                return
            states, after = stepper.noted()[:, :there].transpose(1, 0, 2), np.array(self._asked[:there])[:, None]
            t = np.where(np.isnan(states[:, :, 0]), np.nan, plan.t0 + after * plan.h)
            self._add(t, states, np.zeros(t.shape, bool))
            self._last = self._asked[there - 1]

    def end(self, stepper: Stepper) -> None:
        """Take the present states, unless they were taken already."""
        if not self._wanted or stepper.done == self._last:
            return
        self._last = stepper.done
        plan = self._plan
        with plan.reals.working():
            t = plan.t0 + plan.reals.array(stepper.steps()) * plan.h
            self._add(t[None], stepper.at()[None, :, : 2 * plan.row.n], (stepper.status() == STOPPED)[None])

    def _add(self, t: NDArray[Any], states: NDArray[Any], stopped: NDArray[np.bool_]) -> None:
        clock = self._plan.system.clock
        self._found.append((clock.times(t, states).astype(float), clock.motion(states), stopped))

    def judge(self, starts: Starts, standing: Standing) -> None:
        """Record for each trajectory whether its energy is right."""
        if not self._found:
            return
        plan, balance = self._plan, standing.balance
        with np.errstate(all="ignore"), plan.reals.working():
            t, states, stopped = (np.concatenate(parts) for parts in zip(*self._found, strict=True))
            begin = np.concatenate([starts.q, starts.p], axis=1)
            if np.isnan(balance[:, 0]).all():  # the first stretch
                clock = plan.system.clock
                measured = _measured(plan, starts, np.concatenate([clock.motion(begin[None]), states]))
                balance[:, :3], balance[:, 3] = measured[0], clock.times(plan.t0, begin)
                measured = measured[1:]
            else:
                measured = _measured(plan, starts, states)
            taken = self._walls.taken(standing, begin, self._energies(starts))
            if taken is not None:
                when = np.where(stopped, self._walls.stops(standing), t)
                measured[:, :, 0] = self._walls.without(measured[:, :, 0], balance[:, 0], when, taken)
            _compare(balance, t, measured, lambda: _at_once(plan, starts))
            if taken is not None:
                balance[:, 0] += taken[1][-1]

    def _energies(self, starts: Starts) -> Callable[[NDArray[Any]], FloatArray]:
        return lambda states: _measured(self._plan, starts, self._plan.system.clock.motion(states))[:, :, 0]


def _compare(balance: FloatArray, t: FloatArray, measured: FloatArray, at_once: Callable[[], FloatArray]) -> None:
    """Put into the balance what E, K and rounding (moments, B, 3) at the times t (moments, B) tell."""
    going, last = np.isnan(balance[:, 4]), len(t) - 1
    E = measured[:, :, 0]
    largest = np.fmax.accumulate(np.concatenate([balance[None, :, 1:3], measured[:, :, 1:]]))[1:]
    size, noise = largest[:, :, 0], largest[:, :, 1]
    error = np.where(np.isinf(E), np.inf, np.abs(E - balance[:, 0]))
    wrong = going & (error > LARGE * size) & (error > noise)
    if wrong.any():  # a motion that begins at rest has no K to compare with
        size = np.where(np.logical_or.accumulate(wrong), np.fmax(size, at_once()), size)
        wrong &= error > LARGE * size
    elif going.all() and not np.isnan(t[last]).any():  # nearly always
        balance[:, 1:3], balance[:, 3] = largest[last], t[last]
        return
    ever, first, each = wrong.any(axis=0), wrong.argmax(axis=0), np.arange(len(going))
    upto = np.where(ever, first, last)
    balance[going, 1], balance[going, 2] = size[upto, each][going], noise[upto, each][going]
    balance[ever, 4], balance[ever, 5] = t[first, each][ever], error[first, each][ever]
    right = np.where(np.arange(len(t))[:, None] < upto + ~ever, t, np.nan)  # times, up to the first wrong one
    known = ~np.isnan(right)
    latest = right[last - known[::-1].argmax(axis=0), each]
    balance[:, 3] = np.where(going & known.any(axis=0), latest, balance[:, 3])


def losses(standing: Standing) -> list[Loss]:
    """The trajectories whose energy has been lost, in their order."""
    if not standing.balance.shape[1]:
        return []
    return [
        Loss(int(i), right, wrong, error, size)
        for i in np.flatnonzero(np.isfinite(standing.balance[:, 4]))
        for _, size, _, right, wrong, error in [standing.balance[i].tolist()]
    ]


def _parameters(plan: Plan, starts: Starts) -> NDArray[Any]:
    """The parameters of each trajectory, without the parameters of the pace."""
    return starts.params[:, : len(plan.system.in_time.values())]


def _measured(plan: Plan, starts: Starts, states: NDArray[Any]) -> FloatArray:
    """E, K and the rounding of E for states (moments, B, 2n) of all trajectories: (moments, B, 3)."""
    if isinstance(plan.reals, Digits):
        each = [_at_digits(plan, params) for params in _parameters(plan, starts)]
        return np.array([[at(row) for at, row in zip(each, rows, strict=True)] for rows in states])
    system = cast("NonlinearSystem", plan.system.in_time)
    n = system.n
    rows, params = states.reshape(-1, 2 * n), np.concatenate([_parameters(plan, starts)] * len(states))
    q, p = rows[:, :n].copy(), rows[:, n:].copy()
    v, *terms = system.terms_of_energy(float(plan.t0), q, p, params)
    sizes = _sizes(q, p, v, *terms)
    unknown = np.isnan(sizes[:, 0])
    if unknown.any():
        sizes[unknown & ~np.isnan(v).any(axis=1), 0] = np.inf  # terms beyond all floats
    return sizes.reshape(len(states), len(starts), 3)


def _at_once(plan: Plan, starts: Starts) -> FloatArray:
    """The energy that may become kinetic within the first step, for a motion that begins at rest; NaN if unknown: the
    change of the potential energy U = −L(q, 0) along q + v τ + ½ a τ², up to the first turn of U or the golden section
    of the step.
    """
    times = [0.0, *(GOLDEN * float(plan.h) * FINER**k for k in range(SOONEST, -1, -1))]
    U = _potentials(plan, starts, times)
    change = U[1:] - U[0]
    grows = (np.diff(np.abs(change), axis=0) >= 0) & (change[1:] * change[0] >= 0)
    first = np.ones((1, len(starts)), bool)
    before_a_turn = np.logical_and.accumulate(np.concatenate([first, grows]), axis=0)
    return np.where(np.isfinite(change[0]), np.where(before_a_turn, np.abs(change), 0.0).max(axis=0), np.nan)


def _potentials(plan: Plan, starts: Starts, times: list[float]) -> FloatArray:
    """U at the places where the motions are, approximately, after these times, (times, B)."""
    of, found = plan.system.in_time, np.full((len(times), len(starts)), np.nan)
    if isinstance(plan.reals, Digits):
        for i, (q, v, params) in enumerate(zip(starts.q, starts.v, starts.params, strict=True)):
            a = steppers.mechanics(plan.system, params, plan.reals).acceleration(q, v, plan.t0)
            at = steppers.mechanics(of, params[: len(of.values())], plan.reals)
            for k, tau in enumerate(times):
                there = (q + v * tau + a * (tau**2 / 2))[: of.n]
                found[k, i] = -float(at.value(there, 0 * there, plan.t0))
        return found
    well = starts.status == GOING_WELL
    begin = starts.q[well], starts.v[well], starts.params[well]
    found[:, well] = cast("NonlinearSystem", plan.system).potentials(float(plan.t0), *begin, times)
    return found


def _at_digits(plan: Plan, params: NDArray[Any]) -> Callable[[NDArray[Any]], FloatArray]:
    """E, K and the rounding of E of one state (q, p) at more digits, as floats; NaN if no float holds them."""
    of, t = plan.system.in_time, plan.t0
    at, n = steppers.mechanics(of, params, plan.reals), of.n

    def sizes(row: NDArray[Any]) -> FloatArray:
        q, p = row[:n], row[n:]
        try:
            v = at.velocity(q, p, t)
        except DegenerateLagrangianError:
            return np.full(3, np.nan)
        L = (p * v).sum() - at.energy(q, p, t)
        terms = (q, p, v, np.array([L]), at.force(q, 0 * q, t), at.momentum(q, 0 * q, t))
        found = _sizes(*(np.atleast_2d(term.astype(float)) for term in terms))[0]
        return np.where(np.isfinite(found), found, np.nan)

    return sizes


def _sizes(q: FloatArray, p: FloatArray, v: FloatArray, L: FloatArray, f: FloatArray, m: FloatArray) -> FloatArray:
    """E, K and the rounding of E, a row for each state; f = ∂L/∂q and m = ∂L/∂v are those of v = 0."""
    flow, L, sizes = p * v, L.ravel(), np.empty((len(q), 3))
    if not math.isfinite(m.sum() + f.sum()):  # L may be undefined at v = 0
        m, f = np.where(np.isfinite(m), m, 0.0), np.where(np.isfinite(f), f, 0.0)
    sizes[:, 0] = flow.sum(axis=1) - L
    sizes[:, 1] = 0.5 * np.abs(v * (p - m)).sum(axis=1)
    sizes[:, 2] = ROUNDINGS * EPSILON * (np.abs(flow).sum(axis=1) + np.abs(L) + np.abs(f * q).sum(axis=1))
    return sizes
