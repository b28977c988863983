"""Dense output: the motion between stored states, by solving the steps wanted once more."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.methods import Composition, Galerkin
from leastaction.methods.quadrature import gauss, lagrange, slopes
from leastaction.numbers.rounding import Digits, all_finite
from leastaction.step.stepper import PolynomialStepper, Start, Stepper
from leastaction.systems.pace import Paced
from leastaction.systems.protocol import stepper

if TYPE_CHECKING:
    from leastaction.results.path import Path

Reals = NDArray[Any]  # float64, or mpmath numbers
Passed = Callable[[Reals, NDArray[np.intp]], tuple[Reals, Reals, Reals]]

MOST_PLACES = 200  # places tried for a time; bisections alone would need one for each bit of the arithmetic
TIMES_ALIKE = 4  # roundings by which equal times may differ


def positions(path: Path, t: Reals) -> Reals:
    """q(t), shape t.shape + (n,)."""
    times, n = _asked(path, t), path.system.n
    begin, end = path.t[0], path.t[-1]
    if path.every > 1 and path.method.branch == "any":
        raise ValueError(
            "with branch='any' the states between the stored ones are not known: steps that are solved again may have "
            "other roots. Run with every=1: then path(t) is the cubic through each two states"
        )
    if len(path) == 1 or not times.size:
        return np.broadcast_to(path.q[0], (*t.shape, n)).copy()
    result = np.empty((len(times), n), path.q.dtype)
    impacts = _impacts(path)
    place = (times - begin) / path.h
    last = _last_step(path)
    index = np.clip(_floor(place), 0, last)
    thrown = [_last_before(impacts, step, time, path.h) for step, time in zip(index.tolist(), times, strict=True)]
    free = np.array([one is None for one in thrown])
    cut = free & (index == last) & (_end_of_step(path, last) != begin + (last + 1) * path.h)
    whole = free & ~cut
    if whole.any():
        result[whole] = _free(path, impacts, index[whole], (place - index)[whole])
    if cut.any():
        start, left = begin + last * path.h, _states(path, impacts, np.array([last]))[0]
        result[cut] = _piece(path, start, left, end - start, (times[cut] - start) / (end - start))
    for k in np.flatnonzero(~free):
        one = thrown[k]
        assert one is not None
        rest = _end_of_step(path, one.step) - one.t
        result[k] = _piece(path, one.t, np.concatenate([one.q, one.p]), rest, (times[k : k + 1] - one.t) / rest)[0]
    return result.reshape(*t.shape, n)


def _last_step(path: Path) -> int:
    """The number of the step in which a path ends."""
    return max(0, math.ceil(float((path.t[-1] - path.t[0]) / path.h) - 1e-9) - 1)


def _end_of_step(path: Path, step: int) -> Any:
    """The time at which a step ends: an event, or the t_end of a run with a pace, may cut the last step short."""
    whole, end = path.t[0] + (step + 1) * path.h, path.t[-1]
    rounding = 1e-9 * abs(path.h) + 4 * np.finfo(float).eps * abs(end)
    return end if step == _last_step(path) and abs(whole - end) > rounding else whole


def _asked(path: Path, t: Reals) -> Reals:
    """The times asked for, one after the other, checked."""
    if not all_finite(t):
        raise ValueError("path(t) needs finite times")
    times, begin, end = t.ravel(), path.t[0], path.t[-1]
    slack = 1e-9 * max(abs(path.h), abs(begin), abs(end))
    outside = (times < min(begin, end) - slack) | (times > max(begin, end) + slack)
    if outside.any():
        asked = float(times[outside][0])
        raise ValueError(f"the path covers t = {float(begin):g} … {float(end):g}; asked for t = {asked:g}")
    return times


def paced_positions(path: Path, run: Path, t: Reals) -> Reals:
    """q(t) of a path with a pace, from its run in s, a polynomial q(s) on every step.

    On a step t(τ) = t_k + h ∫₀^τ σ̃, where σ̃ is the polynomial through σ at the method's nodes: at the end of the step
    this is the quadrature by which the time is summed. If the time is a coordinate, t(τ) is its polynomial. The
    equation t(τ) = t is solved for τ.
    """
    clock = run.system.clock
    times, n = _asked(path, t), path.system.n
    if len(path) == 1 or not times.size:
        return np.broadcast_to(path.q[0], (*t.shape, n)).copy()
    forward, impacts = 1 if path.h > 0 else -1, _impacts(run)
    rows = np.unique(np.clip(np.searchsorted(forward * path.t, forward * times, "right") - 1, 0, len(path) - 2))
    ends = np.array([math.ceil(float((x - run.t[0]) / path.h) - 1e-9) for x in run.t[rows + 1]])
    steps = np.unique(np.concatenate([np.arange(r * path.every, end) for r, end in zip(rows, ends, strict=True)]))
    left = _states(run, impacts, steps)
    thrown = [one for step in steps.tolist() for one in impacts.get(step, [])]
    later = path.reals.array([getattr(one, clock.block)[-1] for one in thrown])
    begins = np.concatenate([left[:, clock.place - 1], later])
    order = np.argsort(forward * begins, kind="stable")
    which = order[np.clip(np.searchsorted(forward * begins[order], forward * times, "right") - 1, 0, None)]
    result = np.empty((len(times), n), path.q.dtype)
    free = which < len(steps)
    last = _last_step(run)
    step_of = np.append(steps, np.full(len(thrown), -1))[which]
    cut = free & (step_of == last) & (_end_of_step(run, last) != run.t[0] + (last + 1) * run.h)
    for some, length in ((free & ~cut, run.h), (cut, run.t[-1] - (run.t[0] + last * run.h))):
        if some.any():
            wanted, inverse = np.unique(which[some], return_inverse=True)
            begin = run.t[0] + steps[wanted] * run.h
            result[some] = _by_time(run, length, begin, left[wanted], inverse, times[some])
    for k in np.flatnonzero(~free):
        one = thrown[which[k] - len(steps)]
        rest = _end_of_step(run, one.step) - one.t
        after, only = np.concatenate([one.q, one.p])[None], np.array([0])
        result[k] = _by_time(run, rest, np.array([one.t]), after, only, times[k : k + 1])[0]
    return result.reshape(*t.shape, n)


def _by_time(run: Path, h: Any, s: Reals, left: Reals, inverse: NDArray[np.intp], times: Reals) -> Reals:
    """q at times of the steps of length h that begin at s with the states `left`."""
    clock, n, z = run.system.clock, run.system.in_time.n, increments(run, h, s, left)
    passed = (_by_coordinate if clock.block == "q" else _by_quadrature)(run, h, left, z, inverse)
    wanted = (times - left[inverse, clock.place - 1]) / h
    alike = TIMES_ALIKE * (mpmath.mpf(10) ** -run.digits if run.digits else np.finfo(float).eps)
    low, high = 0 * wanted, 0 * wanted + 1
    tau = wanted / passed(high, np.arange(len(high)))[0]
    sought = np.arange(len(tau))  # the times whose place is not yet found
    for _ in range(MOST_PLACES):
        here = tau[sought]
        inside = (here >= low[sought]) & (here <= high[sought])
        here = np.where(inside, here, (low[sought] + high[sought]) / 2)
        there, rate, size = passed(here, sought)
        gap = there - wanted[sought]
        low[sought], high[sought] = np.where(gap <= 0, here, low[sought]), np.where(gap >= 0, here, high[sought])
        closer = here - gap / rate
        found = (abs(closer - here) <= alike * abs(here)) | (abs(gap) <= alike * (size + abs(wanted[sought])))
        tau[sought] = np.where(found, here, closer)
        sought = sought[~found.astype(bool)]
        if not sought.size:
            break
    tau = np.minimum(np.maximum(tau, 0 * tau), 0 * tau + 1)
    return left[inverse, :n] + np.einsum("kv,kvj->kj", lagrange(_controls(run), tau)[:, 1:], z[inverse, :, :n])


def _by_quadrature(run: Path, h: Any, left: Reals, z: Reals, inverse: NDArray[np.intp]) -> Passed:
    """(τ, which of the times) ↦ (t(τ) − t_k)/h, its derivative, and the size of its terms, from σ at the nodes."""
    system, rule = cast(Paced, run.system), cast(Galerkin, run.method).rule
    n, digits = system.of.n, run.digits
    c, x, w = (np.array(a, object) for a in (rule.points(digits or 30)[0], *gauss(rule.r).points(digits or 30)))
    if digits is None:
        c, x, w = (a.astype(float) for a in (c, x, w))
    q = left[:, None, :n] + np.einsum("iv,kvj->kij", lagrange(_controls(run), c)[:, 1:], z[:, :, :n])
    sigma = _paces(run, system, q.reshape(-1, n)).reshape(len(left), -1)[inverse]

    def passed(tau: Reals, which: NDArray[np.intp]) -> tuple[Reals, Reals, Reals]:
        inner = lagrange(c, (tau[:, None] * x).ravel()).reshape(len(tau), len(x), len(c))
        parts = w[:, None] * inner * sigma[which][:, None]
        rate = np.einsum("ki,ki->k", lagrange(c, tau), sigma[which])
        return tau * parts.sum(axis=(1, 2)), rate, tau * abs(parts).sum(axis=(1, 2))

    return passed


def _by_coordinate(run: Path, h: Any, left: Reals, z: Reals, inverse: NDArray[np.intp]) -> Passed:
    """The same if the time is the last coordinate."""
    d, moved = _controls(run), z[inverse, :, -1] / h

    def passed(tau: Reals, which: NDArray[np.intp]) -> tuple[Reals, Reals, Reals]:
        parts = lagrange(d, tau)[:, 1:] * moved[which]
        rate = (slopes(d, tau)[:, 1:] * moved[which]).sum(axis=1)
        return parts.sum(axis=1), rate, abs(parts).sum(axis=1)

    return passed


def _paces(run: Path, system: Paced, q: Reals) -> Reals:
    """σ at K positions, in the arithmetic of the run."""
    values = system.values(run.params, run.reals)
    if not isinstance(run.reals, Digits):
        return system.paces(np.zeros(len(q)), q, np.broadcast_to(values, (len(q), len(values))))
    from leastaction.flint import evaluated

    rows = np.concatenate([q[:, :1] * 0, q, q * 0], axis=1)
    return evaluated(system.sigma, rows, values[: system.sigma.inputs[-1][1]], run.reals)[:, 0]


def _controls(path: Path) -> Reals:
    """The control points d_ν of a member of the family, in the arithmetic of the path."""
    method = cast(Galerkin, path.method)
    return method.table.d if path.digits is None else np.array(method.exact_table(path.digits)["d"], dtype=object)


@dataclass(frozen=True, eq=False)
class _Impact:
    """The state after an impact, and the step in which it happened."""

    step: int
    t: Any
    q: Reals
    p: Reals


_Impacts = dict[int, list[_Impact]]  # by step, for steps that have impacts; in the order of the run


def _impacts(path: Path) -> _Impacts:
    found: _Impacts = {}
    for events in path.events.values():
        if events.p_after is not None:
            steps = _floor((events.t - path.t[0]) / path.h).tolist()
            for one in map(_Impact, steps, events.t, events.q, events.p_after):
                found.setdefault(one.step, []).append(one)
    for some in found.values():
        some.sort(key=lambda one: one.t / path.h)
    return found


def _last_before(impacts: _Impacts, step: int, time: Any, h: Any) -> _Impact | None:
    """The last impact of this step that is not after this time."""
    return next((one for one in reversed(impacts.get(step, [])) if (time - one.t) / h >= 0), None)


def _free(path: Path, impacts: _Impacts, index: NDArray[np.int64], tau: Reals) -> Reals:
    """q at places τ of the steps `index`, before the impacts of these steps, if there are any."""
    wanted, inverse = np.unique(index, return_inverse=True)
    left = _states(path, impacts, wanted)
    if isinstance(path.method, Galerkin) and path.method.branch == "followed":
        t = path.t[0] + wanted * path.h
        return _polynomial(path, path.h, t, left, inverse, tau)
    if isinstance(path.method, Composition):
        return _ends(path, path.h, path.t[0] + wanted * path.h, left, inverse, tau)
    right = _states(path, impacts, wanted + 1)
    for k, step in enumerate(wanted.tolist()):
        if step in impacts:
            right[k] = stepped(path, path.t[0] + step * path.h, left[k], 1)[0]
    return _hermite(path, path.h, path.t[0] + wanted * path.h, left, right, inverse, tau)


def _piece(path: Path, start: Any, state: Reals, length: Any, tau: Reals) -> Reals:
    """q at places τ of one step of another length from this state: after an impact, or at the end of a run."""
    left, same, t = state[None], np.zeros(len(tau), np.intp), np.array([start])
    if isinstance(path.method, Galerkin):
        return _polynomial(path, length, t, left, same, tau)
    if isinstance(path.method, Composition):
        return _ends(path, length, t, left, same, tau)
    right = stepped(path, start, state, 1, length)
    return _hermite(path, length, t, left, right, same, tau)


def _floor(x: Reals) -> NDArray[np.int64]:
    if x.dtype == object:
        return np.array([int(mpmath.floor(value)) for value in x], dtype=np.int64)
    return np.floor(x).astype(np.int64)


def _states(path: Path, impacts: _Impacts, wanted: NDArray[np.int64]) -> Reals:
    """States (q, p) after the given numbers of steps, integrated again from the last stored state before each."""
    stored = np.concatenate([path.q, path.p], axis=1)
    # A run that an event has ended has its last state inside a step.
    whole = len(path) - any(len(found) > 0 and found.t[-1] == path.t[-1] for found in path.events.values())
    row = np.minimum(wanted // path.every, whole - 1)
    exact = np.rint(((path.t[row] - path.t[0]) / path.h).astype(float)).astype(np.int64)
    result = stored[row].copy()
    behind = np.flatnonzero(wanted > exact)
    if whole == len(path):
        last = round(float((path.t[-1] - path.t[0]) / path.h))
        result[wanted == last] = stored[-1]
        behind = behind[wanted[behind] != last]
    for r in np.unique(row[behind]):
        mine = behind[row[behind] == r]
        first, end = int(exact[mine[0]]), int(wanted[mine].max())
        result[mine] = _advanced(path, impacts, first, stored[r], end)[wanted[mine] - first - 1]
    return result


def _advanced(path: Path, impacts: _Impacts, first: int, state: Reals, end: int) -> Reals:
    """The states after each of the steps first … end, from the state before them, through the impacts on the way."""
    parts = [np.empty((0, len(state)), state.dtype)]
    thrown = {step: some[-1] for step, some in impacts.items() if first <= step < end}
    for step, one in [*sorted(thrown.items()), (end, None)]:
        if step > first:
            parts.append(stepped(path, path.t[0] + first * path.h, state, step - first))
        if one is not None:
            rest = path.t[0] + (step + 1) * path.h - one.t
            parts.append(stepped(path, one.t, np.concatenate([one.q, one.p]), 1, rest))
            state, first = parts[-1][0], step + 1
    return np.concatenate(parts)


def stepped(path: Path, t: Any, state: Reals, count: int, length: Any = None) -> Reals:
    """The states, (count, 2n), after each of `count` steps of this length, or of the run's own length."""
    n, rows = len(state) // 2, np.empty((1, count, len(state)), state.dtype)
    solver = _stepper_from(path, t, state[:n], state[n:], length)
    while solver.done < count and not solver.status().any():
        solver.advance(count - solver.done, 1, 1, rows)
    if solver.status().any():
        raise ArithmeticError(f"the steps from t = {float(t):g} could not be solved again")
    return rows[0]


def _stepper_from(path: Path, t: Any, q: Reals, p: Reals, length: Any = None) -> Stepper:
    h = path.h if length is None else length
    v = path.mechanics.velocity(q, p, t, path.params)
    start = Start(t, q, p, v, h, path.system.values(path.params, path.reals), path.inputs)
    return stepper(path.system, path.method, start, at=path.mechanics)


def _polynomial(path: Path, h: Any, t: Reals, left: Reals, inverse: NDArray[np.intp], tau: Reals) -> Reals:
    """q_k + Σ_ν z^ν l_ν(τ) on each step, of length h from time t."""
    z = increments(path, h, t, left)
    basis = lagrange(_controls(path), tau)[:, 1:]
    return left[inverse, : path.system.n] + np.einsum("kv,kvi->ki", basis, z[inverse])


def increments(path: Path, h: Any, t: Reals, left: Reals) -> Reals:
    """The increments z^ν of steps of length h from time t, (K, s, n)."""
    n = path.system.n
    starts = np.ascontiguousarray(np.concatenate([t[:, None], left], axis=1))
    solver = cast(PolynomialStepper, _stepper_from(path, t[0], left[0, :n], left[0, n:], h))
    z, solved = solver.polynomials(starts)
    if solved < len(starts):
        raise ArithmeticError(f"the step at t = {float(t[solved]):g} could not be solved again")
    return z


def _ends(path: Path, h: Any, t: Reals, left: Reals, inverse: NDArray[np.intp], tau: Reals) -> Reals:
    """q at places τ of steps of a composition: the ends of steps of length τh; continuous, of the method's order."""
    n, lengths = path.system.n, tau * h
    starts = np.concatenate([t[:, None], left], axis=1)[inverse]
    found = starts[:, 1 : 1 + n].copy()
    moving = np.flatnonzero(lengths != 0)
    if not len(moving):
        return found
    solver: Any = _stepper_from(path, t[0], left[0, :n], left[0, n:], h)
    if hasattr(solver, "single_steps"):
        ends = solver.single_steps(np.ascontiguousarray(starts[moving]), lengths[moving])
    else:
        ends = np.stack([stepped(path, starts[k, 0], starts[k, 1:], 1, lengths[k])[0] for k in moving])
    if not all_finite(ends):
        raise ArithmeticError("a step of a composition could not be solved again")
    found[moving] = ends[:, :n]
    return found


def _hermite(path: Path, h: Any, t: Reals, left: Reals, right: Reals, inverse: NDArray[np.intp], tau: Reals) -> Reals:
    """The cubic through positions and velocities at both ends of each step, of length h from time t."""
    n = path.system.n
    v_left = path.mechanics.velocity(left[:, :n], left[:, n:], t, path.params)[inverse]
    v_right = path.mechanics.velocity(right[:, :n], right[:, n:], t + h, path.params)[inverse]
    q_left, q_right = left[inverse, :n], right[inverse, :n]
    x = tau[:, None]
    return (
        q_left
        + (3 * x**2 - 2 * x**3) * (q_right - q_left)
        + h * (x - 2 * x**2 + x**3) * v_left
        + h * (x**3 - x**2) * v_right
    )
