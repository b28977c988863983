"""Whether a motion keeps its energy. An autonomous, unforced motion that does not keep it is a wrong answer.

E − E₀ is compared with the largest kinetic energy of the motion so far, where the kinetic energy is taken as

    K = ½ Σ_i |v_i (p_i − ∂L/∂v_i(q, 0))|.

What flows between the terms of E is of the size of K, whatever the units, and whatever constants or total derivatives
dF(q)/dt are added to L. A motion that begins at rest is compared with the K that it has within its first step, too:
it may be at rest in all stored states. An error below the rounding of the terms says nothing.

The energy is taken of stored states, of all of a short run and of fewer and fewer of a long one, and of the end of the
run. With a pace, which keeps σ (H − E₀), H itself is taken: the energy of the motion in time. Walls that move or are
not elastic change E at impacts, by a known amount (`run.walls`): E₀ is then the energy that the motion ought to have.

A linear system is not looked at: whether h is stable on it is known before the run.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.rows import Row
from leastaction.backends.status import STOPPED
from leastaction.errors import DegenerateLagrangianError
from leastaction.numbers.rounding import Digits
from leastaction.run.batches import at_work
from leastaction.run.standing import Standing
from leastaction.run.walls import Walls
from leastaction.systems import steppers

if TYPE_CHECKING:
    from leastaction.run.plan import Plan
    from leastaction.run.starts import Starts
    from leastaction.systems.protocol import NonlinearSystem

FloatArray = NDArray[np.float64]

LARGE = 0.2  # times K: larger errors of the energy are told; ordinary steps stay below 0.06, wrong motions reach 0.9
ROUNDINGS = 1e4  # units in the last place: smaller errors are rounding
GOLDEN = (5**0.5 - 1) / 2  # the part of the first step after which K is taken: no multiple of it comes back to rest
EPSILON = float(np.finfo(float).eps)


class Loss(NamedTuple):
    """The time at which a trajectory's energy was last right, the time at which it was wrong, its error, and K."""

    trajectory: int
    right: float
    wrong: float
    error: float
    size: float


def _looked_at() -> list[int]:
    """The numbers of the stored states whose energy is taken."""
    found = [1]
    while found[-1] < 2**53:  # more states than any run has
        found.append(found[-1] + found[-1] // 4 + 1)
    return found


LOOKED_AT = _looked_at()


def judge(plan: Plan, starts: Starts, standing: Standing, first: int, states: NDArray[Any], walls: Walls) -> None:
    """Record for each trajectory whether its energy is right in new states (B, R, 2n), stored from number `first` on,
    and at its end.
    """
    balance = standing.balance
    if not balance.shape[1]:
        return
    with np.errstate(all="ignore"), plan.reals.working():
        begin, clock = np.concatenate([starts.q, starts.p], axis=1), plan.system.clock
        t, found, ended = _moments(plan, standing, first, states)
        if np.isnan(balance[:, 0]).all():  # the first stretch
            measured = _measured(plan, starts, np.concatenate([begin[None], found]))
            balance[:, :3], balance[:, 3], measured = measured[0], clock.times(plan.t0, begin), measured[1:]
        else:
            measured = _measured(plan, starts, found)
        if not len(t):
            return
        t = clock.times(t, found).astype(float)
        taken = walls.taken(standing, begin, lambda states: _measured(plan, starts, states)[:, :, 0])
        if taken is not None:
            when = np.where(ended & (standing.status == STOPPED), walls.stops(standing), t)
            measured[:, :, 0] = walls.without(measured[:, :, 0], balance[:, 0], when, taken)
        _compare(balance, t, measured, lambda: _soon(plan, starts))
        if taken is not None:
            balance[:, 0] += taken[1][-1]


def _moments(
    plan: Plan, standing: Standing, first: int, states: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
    """Times (moments, B) and states (moments, B, 2n) whose energy is taken, and which of them are ends of runs."""
    numbers = np.array(LOOKED_AT[bisect_left(LOOKED_AT, first) : bisect_left(LOOKED_AT, first + states.shape[1])], int)
    found, t = states[:, numbers - first].swapaxes(0, 1), plan.t0 + plan.reals.array(numbers * plan.every) * plan.h
    t = np.broadcast_to(t[:, None], found.shape[:2])
    over = ~standing.going(plan.steps)
    if over.any():
        nothing = plan.reals.array(np.nan)[()]
        last = np.where(over[:, None], standing.at[:, : 2 * plan.row.n], nothing)
        when = np.where(over, plan.t0 + plan.reals.array(standing.steps) * plan.h, nothing)
        found, t = np.concatenate([found, last[None]]), np.concatenate([t, when[None]])
    return t, found, np.arange(len(t))[:, None] == len(numbers)


def _compare(balance: FloatArray, t: FloatArray, measured: FloatArray, soon: Callable[[], FloatArray]) -> None:
    """Put into the balance what E, K and rounding (moments, B, 3) at the times t (moments, B) tell."""
    going, last = np.isnan(balance[:, 4]), len(t) - 1
    E = measured[:, :, 0]
    largest = np.fmax.accumulate(np.concatenate([balance[None, :, 1:3], measured[:, :, 1:]]))[1:]
    size, noise = largest[:, :, 0], largest[:, :, 1]
    error = np.where(np.isinf(E), np.inf, np.abs(E - balance[:, 0]))
    error[:, ~np.isfinite(balance[:, 0])] = np.nan  # of trajectories that cannot begin
    infinite = going & np.isinf(error)
    wrong = infinite | (going & (error > LARGE * size) & (error > noise))
    if wrong.any():  # a motion may be at rest in all stored states
        size = np.where(np.logical_or.accumulate(wrong), np.fmax(size, soon()), size)
        wrong &= infinite | (error > LARGE * size)
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


def _measured(plan: Plan, starts: Starts, states: NDArray[Any]) -> FloatArray:
    """E, K and the rounding of E for states (moments, B, 2n) of all trajectories, as floats: (moments, B, 3)."""
    system = cast("NonlinearSystem", plan.system.in_time)
    n, each = system.n, starts.params[:, : len(system.values())]  # without the parameters of a pace
    rows = plan.system.clock.motion(states).reshape(-1, 2 * n)
    q, p, params = rows[:, :n].copy(), rows[:, n:].copy(), np.tile(each, (len(states), 1))
    if isinstance(plan.reals, Digits):
        at = [steppers.mechanics(system, values, plan.reals) for values in each] * len(states)
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
    sizes[np.isnan(sizes[:, 0]) & ~np.isnan(v).any(axis=1), 0] = np.inf  # terms beyond all floats
    return sizes.reshape(len(states), len(starts), 3)


def _terms(at: Any, t: Any, q: NDArray[Any], p: NDArray[Any]) -> tuple[Any, ...]:
    """v and L, and f and m at rest, of one state at more digits; NaN where there is no v."""
    nothing = np.full(len(q), np.nan)
    try:
        v = nothing if (q != q).any() else at.velocity(q, p, t)
    except DegenerateLagrangianError:
        v = nothing
    if v is nothing:
        return nothing, np.nan, nothing, nothing
    return v, (p * v).sum() - at.energy(q, p, t), at.force(q, 0 * q, t), at.momentum(q, 0 * q, t)


def _soon(plan: Plan, starts: Starts) -> FloatArray:
    """K of all trajectories within their first step; NaN where that cannot be done."""
    some = replace(plan, h=plan.h * plan.reals.array(GOLDEN)[()], row=Row.whole(plan.row.n), events=None, energies=())
    stepper = at_work(some, starts, Standing.begin(some, starts))
    stepper.advance(1, 0, 0, np.empty((len(starts), 1, some.row.width), plan.dtype))
    return _measured(plan, starts, stepper.at()[None, :, : 2 * plan.row.n])[0, :, 1]
