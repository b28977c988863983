"""Whether steps resolve their way past the poles of a chart.

Where the mass M of a chart becomes singular, as at θ = 0 of spherical coordinates or Euler angles, (M⁻¹)_jj of a
coordinate such as φ becomes infinite, and a motion that passes near by turns φ within a moment. A step that is longer
than this moment has some root, and goes on with another φ. Neither p_φ nor the energy tells.

So from one stored state to the next (M⁻¹)_jj is compared. Where it changes by more than a factor CHANGE, the steps are
done again, each as two halves. With δq and δp the difference of the ends, a step is not resolved where

    δq·M δq > MISSED² h² v·Mv    or    δp·M⁻¹δp > MISSED² v·Mv.

Where states are stored after every few steps, the steps between those with the largest changes are done again first.
Runs whose (M⁻¹)_jj hardly vary, as a sample of their states tells, are left at that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from leastaction.backends import points
from leastaction.backends.rows import Row
from leastaction.backends.stepper import Start
from leastaction.errors import DegenerateLagrangianError
from leastaction.systems import steppers
from leastaction.systems.lagrangian import Lagrangian

if TYPE_CHECKING:
    from leastaction.run.plan import Plan
    from leastaction.run.standing import Standing
    from leastaction.run.starts import Starts

FloatArray = NDArray[np.float64]

CHANGE = 2.0  # of (M⁻¹)_jj in one step; 1.8 for double pendulums with 25 steps in a period
MISSED = 3e-3  # of the way of a step, and of its momentum; a top with ten steps in a period misses 2·10⁻³ by Verlet
VARIED = 4.0  # times the least (M⁻¹)_jj of a sample: where none is larger, no pole is near
SAMPLE = 16  # states
MOST = 2**17  # the most states of a trajectory that are compared, over n²
WORST = 8  # steps that are done again, at most; of states stored after every few steps the stretches …
AGAIN = 1024  # … with so many steps in all, at most
TINY = float(np.finfo(float).tiny)


def poles_matter(plan: Plan) -> bool:
    """Whether steps of this run can be compared so: its masses depend on q alone, and whole states are stored."""
    system, row = plan.system, plan.row
    if not system.mass_varies_with_position or not system.clock.steady or system.inputs or row.output is not None:
        return False
    return bool(plan.every) and not system.mass_varies_with_velocity


def judge(plan: Plan, starts: Starts, standing: Standing, first: int, states: NDArray[Any]) -> None:
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
    size = np.log(_inverse(plan, states, values))
    change = np.abs(np.diff(size, axis=0))
    change[np.isnan(change)] = 0.0
    largest = change.max(axis=1)
    largest[1:-1] = np.maximum(largest[1:-1], np.maximum(largest[:-2], largest[2:]) * (largest[1:-1] > 0))
    order = np.argsort(-largest, kind="stable")[: max(1, min(WORST, AGAIN // every))]
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
    at = steppers.mechanics(plan.system, values, plan.reals)
    q, p = state[:n], state[n:]
    try:
        start = Start(t, q, p, at.velocity(q, p, t, values), h, values)
    except DegenerateLagrangianError:
        return None
    stepper = steppers.stepper(plan.system, plan.method, start, Row.whole(n), at)
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
    M = _masses(plan, end[None], values)[0]
    v, found = cast("Lagrangian", plan.system).velocities(
        np.full(1, float(t)), end[None, :n], end[None, n:], values[None].astype(float)
    )
    if not found.all():  # at a pole
        return np.inf
    speed, way = max(abs(v[0] @ M @ v[0]), TINY), abs(float(plan.h))
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
    return points.evaluate(system.mass, rows).reshape(-1, n, n)
