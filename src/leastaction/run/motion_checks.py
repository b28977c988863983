"""Whether a run is the motion of its Lagrangian: whether it keeps its energy, and passes the poles of its chart.

**Energy.** An autonomous, unforced motion that does not keep E is a wrong answer. E − E₀ is compared with the largest
kinetic energy so far, where the kinetic energy is taken as

    K = ½ Σ_i |v_i (p_i − ∂L/∂v_i(q, 0))|.

What flows between the terms of E is of the size of K, whatever the units, and whatever constants or total derivatives
dF(q)/dt are added to L. A motion that is at rest in all stored states is compared with the K that it has within its
first step. E is taken of stored states, of fewer and fewer of a long run, and of the end of the run. With a pace, which
keeps σ (H − E₀), H itself is taken. A wall that moves or is not elastic changes E₀ at an impact by E(q, p⁺) − E(q, p⁻).
A linear system is not looked at: whether h is stable on it is known before the run.

**Poles.** Where the mass M of a chart becomes singular, as at θ = 0 of spherical coordinates, (M⁻¹)_jj of a coordinate
such as φ becomes infinite, and a motion that passes near by turns φ within a moment. A step that is longer than this
moment has some root, and goes on with another φ; neither p_φ nor the energy tells. So where (M⁻¹)_jj changes by more
than a factor CHANGE from one stored state to the next, the steps are done again, each as two halves. With δq and δp the
difference of the ends, a step is not resolved where

    δq·M δq > MISSED² h² v·Mv    or    δp·M⁻¹δp > MISSED² v·Mv.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import DegenerateLagrangianError
from leastaction.kernel import loops
from leastaction.numbers.rounding import Digits
from leastaction.run.standing import Standing
from leastaction.step.status import STOPPED
from leastaction.step.stepper import Start
from leastaction.step.stored_row import Row
from leastaction.systems.protocol import mechanics
from leastaction.systems.protocol import stepper as stepper_of

if TYPE_CHECKING:
    from leastaction.run.plan import Plan
    from leastaction.run.starts import Starts
    from leastaction.systems.lagrangian import Lagrangian
    from leastaction.systems.protocol import NonlinearSystem

FloatArray = NDArray[np.float64]

EPSILON = float(np.finfo(float).eps)
LARGE = 0.2  # times K: larger errors of the energy are told; ordinary steps stay below 0.06, wrong motions reach 0.9
ROUNDINGS = 1e4  # units in the last place: smaller errors are rounding
GOLDEN = (5**0.5 - 1) / 2  # the part of the first step after which K is taken: no multiple of it comes back to rest
AT_ONCE = 1e-6, 64  # parts of a step, and roundings: a state so near to an impact may be that before it or after it

CHANGE = 2.0  # of (M⁻¹)_jj in one step; 1.8 for double pendulums with 25 steps in a period
MISSED = 3e-3  # of the way of a step, and of its momentum; a top with ten steps in a period misses 2·10⁻³ by Verlet
VARIED = 4.0  # times the least (M⁻¹)_jj of a sample: where none is larger, no pole is near
SAMPLE = 16  # states
MOST = 2**17  # the most states of a trajectory that are compared, over n²
WORST = 8  # steps that are done again, at most; of states stored after every few steps the intervals …
AGAIN = 1024  # … with so many steps in all, at most: none, where states are stored more seldom


class Loss(NamedTuple):
    """The time at which a trajectory's energy was last right, the time at which it was wrong, its error, and K."""

    trajectory: int
    right: float
    wrong: float
    error: float
    size: float


def losses(standing: Standing) -> list[Loss]:
    """The trajectories whose energy has been lost, in their order."""
    if not standing.balance.shape[1]:
        return []
    return [
        Loss(int(i), right, wrong, error, size)
        for i in np.flatnonzero(np.isfinite(standing.balance[:, 4]))
        for _, size, _, right, wrong, error in [standing.balance[i].tolist()]
    ]


def lossy_walls(plan: Plan) -> list[int]:
    """The events that are walls which may take energy or give it: walls that move, or are not elastic."""
    if plan.events is None:
        return []
    timed = plan.system.clock.block == "q"  # time is a coordinate, which a wall may read
    items = enumerate(zip(plan.events.items, plan.events.by_time, strict=True))
    return [k for k, (one, moves) in items if one.restitution is not None and (one.restitution != 1 or moves or timed)]


def impacts(plan: Plan, standing: Standing) -> list[list[int]]:
    """How many impacts on such walls each trajectory has had."""
    walls = lossy_walls(plan)
    return [[len(log.rows[k]) for k in walls] for log in standing.logs(plan)] if walls else []


def judge_energy(
    plan: Plan, starts: Starts, standing: Standing, first: int, states: NDArray[Any], before: list[list[int]]
) -> None:
    """Record for each trajectory whether its energy is right in new states (B, R, 2n), stored from number `first` on,
    and at its end; `before` are the `impacts` before these states.
    """
    balance = standing.balance
    if not balance.shape[1]:
        return
    with np.errstate(all="ignore"), plan.reals.working():
        begin, clock = np.concatenate([starts.q, starts.p], axis=1), plan.system.clock
        t, found, ended = _moments(plan, standing, first, states)
        if np.isnan(balance[:, 0]).all():  # the first states of the run
            measured = _measured(plan, starts.params, np.concatenate([begin[None], found]))
            balance[:, :3], balance[:, 3], measured = measured[0], clock.times(plan.t0, begin), measured[1:]
        else:
            measured = _measured(plan, starts.params, found)
        if not len(t):
            return
        t = clock.times(t, found).astype(float)
        taken = _without_walls(plan, starts, standing, before, ended, t, measured[:, :, 0]) if before else 0.0
        _compare(balance, t, measured, lambda wrong: _soon(plan, starts, wrong))
        balance[:, 0] += taken


def _moments(
    plan: Plan, standing: Standing, first: int, states: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
    """Times (moments, B) and states (moments, B, 2n) whose energy is taken, and which of them are ends of runs."""
    some, k = [], 1
    while k < first + states.shape[1]:
        some += [k] if k >= first else []
        k += k // 4 + 1
    numbers, array, over = np.array(some, int), plan.reals.array, ~standing.going(plan.steps)
    found, t = states[:, numbers - first].swapaxes(0, 1), plan.t0 + array(numbers * plan.every) * plan.h
    t = np.broadcast_to(t[:, None], found.shape[:2])
    if some and some[-1] * plan.every > standing.steps.min():
        beyond = numbers[:, None] * plan.every > standing.steps
        found = np.where(beyond[:, :, None], array(np.nan)[()], found)
    if over.any():
        last, when = standing.at[:, : 2 * plan.row.n], plan.t0 + array(standing.steps) * plan.h
        if not over.all():
            last, when = (np.where(one, x, array(np.nan)[()]) for one, x in ((over[:, None], last), (over, when)))
        found, t = np.concatenate([found, last[None]]), np.concatenate([t, when[None]])
    return t, found, np.arange(len(t))[:, None] == len(numbers)


def _without_walls(
    plan: Plan, starts: Starts, standing: Standing, before: list[list[int]], ended: NDArray[np.bool_], t: FloatArray,
    E: FloatArray,
) -> FloatArray:  # fmt: skip
    """Take from the energies E at the times t, (moments, B), what walls have given since the impacts `before`, and
    return all of that, (B,). Of a state at the time of an impact it is not known whether it is that before the impact
    or after it: it is the one whose energy is right.
    """
    n, way, place, logs = plan.row.n, 1.0 if plan.h > 0 else -1.0, plan.system.clock.place, standing.logs(plan)
    stops = np.array([np.nan if log.stopped is None else float(log.stopped[place]) for log in logs])
    t = np.where(ended & (standing.status == STOPPED), stops, t)
    near, taken = AT_ONCE[0] * abs(float(plan.h)) + AT_ONCE[1] * EPSILON * np.abs(t), np.zeros(len(logs))
    each = [
        sorted((row for k, count in zip(lossy_walls(plan), counts, strict=True) for row in log.rows[k][count:]),
               key=lambda row: way * float(row[0]))
        for log, counts in zip(logs, before, strict=True)
    ]  # fmt: skip
    who = np.repeat(np.arange(len(logs)), [len(rows) for rows in each])
    if len(who):
        table = np.array([row for rows in each for row in rows])
        after = np.concatenate([table[:, 1 : 1 + n], table[:, 1 + 2 * n :]], axis=1)
        params = np.tile(starts.params[who], (2, 1))
        early, late = _measured(plan, params, np.concatenate([table[:, 1 : 1 + 2 * n], after])[None])[0, :, 0].reshape(
            2, -1
        )
        when = way * table[:, place].astype(float)
        for i in np.unique(who):
            sums = np.concatenate([[0.0], np.cumsum((late - early)[who == i])])
            found = [
                E[:, i] - sums[np.searchsorted(when[who == i], way * t[:, i] + side, "right")]
                for side in (-near[:, i], near[:, i])
            ]
            off = [np.abs(one - standing.balance[i, 0]) for one in found]
            E[:, i], taken[i] = np.where(off[0] <= off[1], *found), sums[-1]
    return taken


def _compare(
    balance: FloatArray, t: FloatArray, measured: FloatArray, soon: Callable[[NDArray[np.bool_]], FloatArray]
) -> None:
    """Put into the balance what E, K and rounding (moments, B, 3) at the times t (moments, B) tell; `soon` gives K of
    some trajectories within their first step.
    """
    going, last = np.isnan(balance[:, 4]), len(t) - 1
    E = measured[:, :, 0]
    largest = np.fmax.accumulate(np.concatenate([balance[None, :, 1:3], measured[:, :, 1:]]))[1:]
    size, noise = largest[:, :, 0], largest[:, :, 1]
    error = np.where(np.isinf(E) & np.isfinite(balance[:, 0]), np.inf, np.abs(E - balance[:, 0]))
    infinite = going & np.isinf(error)
    wrong = infinite | (going & (error > LARGE * size) & (error > noise))
    if wrong.any():  # a motion may be at rest in all stored states
        size = np.where(np.logical_or.accumulate(wrong), np.fmax(size, soon(np.asarray(wrong.any(axis=0)))), size)
        wrong &= infinite | (error > LARGE * size)
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


def _measured(plan: Plan, params: NDArray[Any], states: NDArray[Any]) -> FloatArray:
    """E, K and the rounding of E for states (moments, B, 2n) with parameters (B, …), as floats: (moments, B, 3)."""
    system = cast("NonlinearSystem", plan.system.in_time)
    n, each = system.n, params[:, : len(system.values())]  # without the parameters of a pace
    rows = plan.system.clock.motion(states).reshape(-1, 2 * n)
    q, p, params = rows[:, :n].copy(), rows[:, n:].copy(), np.tile(each, (len(states), 1))
    if isinstance(plan.reals, Digits):
        at = [mechanics(system, values, plan.reals) for values in each] * len(states)
        found = zip(*(_terms(one, plan.t0, *state) for one, *state in zip(at, q, p, strict=True)), strict=True)
        v, L, f, m = (np.array(part).astype(float) for part in found)
        q, p = q.astype(float), p.astype(float)
    else:
        v, L, f, m = system.terms_of_energy(float(plan.t0), q, p, params)
    flow, L, sizes = p * v, L.ravel(), np.empty((len(q), 3))
    if not math.isfinite(m.sum() + f.sum()):  # L may be undefined at v = 0
        m, f = np.where(np.isfinite(m), m, 0.0), np.where(np.isfinite(f), f, 0.0)
    sizes[:, 0] = flow.sum(axis=1) - L
    sizes[:, 1] = 0.5 * np.abs(v * (p - m)).sum(axis=1)
    sizes[:, 2] = ROUNDINGS * EPSILON * (np.abs(flow).sum(axis=1) + np.abs(L) + np.abs(f * q).sum(axis=1))
    if isinstance(plan.reals, Digits):
        sizes[np.isinf(sizes[:, 0]), 0] = np.nan  # floats do not reach as far as this run
    else:
        sizes[np.isnan(sizes[:, 0]) & ~np.isnan(v).any(axis=1), 0] = np.inf  # terms beyond all floats
    return sizes.reshape(*states.shape[:2], 3)


def _terms(at: Any, t: Any, q: NDArray[Any], p: NDArray[Any]) -> tuple[Any, ...]:
    """v and L, and f and m at rest, of one state at more digits; NaN where there is no v."""
    nothing = np.full(len(q), np.nan)
    try:
        if (q != q).any():
            return nothing, np.nan, nothing, nothing
        v = at.velocity(q, p, t)
    except DegenerateLagrangianError:
        return nothing, np.nan, nothing, nothing
    return v, (p * v).sum() - at.energy(q, p, t), at.force(q, 0 * q, t), at.momentum(q, 0 * q, t)


def _soon(plan: Plan, starts: Starts, wrong: NDArray[np.bool_]) -> FloatArray:
    """K of some trajectories within their first step, (B,); NaN where that cannot be done, and for the others."""
    begin = np.concatenate([starts.q, starts.p], axis=1)
    states, h = np.full(begin.shape, plan.reals.array(np.nan)[()]), plan.h * plan.reals.array(GOLDEN)[()]
    for i in np.flatnonzero(wrong):
        found = _steps(plan, plan.t0, begin[i], starts.params[i], h, 1)
        if found is not None:
            states[i] = found[-1]
    return _measured(plan, starts.params, states[None])[0, :, 1]


def judge_poles(plan: Plan, starts: Starts, standing: Standing, first: int, states: NDArray[Any]) -> None:
    """Record for each trajectory the time and the coordinate of a step that was not resolved, with stored states (B, R,
    2n) from number `first` on.
    """
    if not standing.pole.shape[1] or states.shape[1] < 2:
        return
    most = max(2, MOST // plan.row.n**2 - first)
    with np.errstate(all="ignore"), plan.reals.working():
        sample = states[:, : most : max(1, states.shape[1] // SAMPLE)]
        each = np.repeat(starts.params, sample.shape[1], axis=0)
        size = _inverse(plan, sample.reshape(len(each), -1), each).reshape(*sample.shape[:2], -1)
        near = (np.fmax.reduce(size, axis=1) > VARIED * np.fmin.reduce(size, axis=1)).any(axis=1)
        for i in np.flatnonzero(near & np.isnan(standing.pole[:, 0])):
            found = _unresolved(plan, states[i, :most], starts.params[i], plan.every, first * plan.every)
            if found is not None:
                standing.pole[i] = found


def _unresolved(
    plan: Plan, states: NDArray[Any], values: NDArray[Any], every: int, begun: int
) -> tuple[float, int] | None:
    """The time and the coordinate of the first step between these states that is not resolved, of those seen."""
    change = np.nan_to_num(np.abs(np.diff(np.log(_inverse(plan, states, values)), axis=0)), posinf=np.inf)
    largest = change.max(axis=1)
    largest[1:-1] = np.maximum(largest[1:-1], np.maximum(largest[:-2], largest[2:]) * (largest[1:-1] > 0))
    order = np.argsort(-largest, kind="stable")[: min(WORST, AGAIN // every)]
    for k in np.sort(order[largest[order] > np.log(CHANGE)]).tolist():
        t = plan.t0 + (begun + k * every) * plan.h
        if every > 1:
            between = _steps(plan, t, states[k], values, plan.h, every)
            inner = None if between is None else _unresolved(plan, between, values, 1, begun + k * every)
            if inner is not None:
                return inner
        elif _missed(plan, t, states[k], states[k + 1], values) > MISSED:
            return float(t), int(change[max(0, k - 1) : k + 2].max(axis=0).argmax())
    return None


def _steps(plan: Plan, t: Any, state: NDArray[Any], values: NDArray[Any], h: Any, count: int) -> NDArray[Any] | None:
    """The states of so many steps of length h, the first among them; None where one cannot be solved."""
    n = plan.row.n
    at = mechanics(plan.system, values, plan.reals)
    q, p = state[:n], state[n:]
    try:
        start = Start(t, q, p, at.velocity(q, p, t, values), h, values)
    except DegenerateLagrangianError:
        return None
    stepper = stepper_of(plan.system, plan.method, start, Row.whole(n), at)
    rows = np.empty((1, count + 1, 2 * n), plan.dtype)
    rows[0, 0] = state
    stepper.advance(count, 1, 0, rows)
    return None if stepper.failure() is not None else rows[0]


def _missed(plan: Plan, t: Any, state: NDArray[Any], after: NDArray[Any], values: NDArray[Any]) -> float:
    """By how much a step misses two of half its length, in parts of its way and of its momentum."""
    fine, n = _steps(plan, t, state, values, plan.h / 2, 2), plan.row.n
    if fine is None:
        return np.inf
    end, off = fine[-1].astype(float), (after - fine[-1]).astype(float)
    M, params = _masses(plan, end[None], values)[0], values[None].astype(float)
    system = cast("Lagrangian", plan.system)
    v, found = system.velocities(np.full(1, float(t)), end[None, :n], end[None, n:], params)
    if not found.all():  # at a pole
        return np.inf
    speed, way = max(abs(v[0] @ M @ v[0]), np.finfo(float).tiny), abs(float(plan.h))
    return float(np.sqrt(max(abs(off[:n] @ M @ off[:n]) / way**2, abs(off[n:] @ np.linalg.solve(M, off[n:]))) / speed))


def _inverse(plan: Plan, states: NDArray[Any], values: NDArray[Any]) -> FloatArray:
    """|(M⁻¹)_jj| of states (K, 2n)."""
    M = _masses(plan, states, values)
    try:
        inverse = np.linalg.inv(M)
    except np.linalg.LinAlgError:  # at a pole
        inverse = np.linalg.pinv(np.where(np.isfinite(M), M, 0.0))
    return np.abs(np.einsum("kjj->kj", inverse))


def _masses(plan: Plan, states: NDArray[Any], values: NDArray[Any]) -> FloatArray:
    """∂²L/∂v² of states (K, 2n)."""
    system, n = cast("Lagrangian", plan.system), plan.row.n
    q, params = states[:, :n].astype(float), values.astype(float)
    params = np.broadcast_to(params, (len(q), params.shape[-1]))
    rows = np.concatenate([np.full((len(q), 1), float(plan.t0)), q, 0 * q, params], axis=1)
    return loops.evaluate(system.mass, rows).reshape(-1, n, n)
