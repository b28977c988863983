"""Whether a motion keeps its energy. One that is autonomous and unforced, and does not, is a wrong answer.

E − E₀ is compared with the kinetic energy of the motion, the largest that was seen so far, as

    K = ½ Σ_i |v_i (p_i − ∂L/∂v_i(q, 0))|.

What flows between the terms of E is of the size of K, whatever the units, and whatever constants or total derivatives
dF(q)/dt are added to L. At the start, which may be at rest, it is at least what the potential energy changes by within
the first step, up to its first turn. States are looked at after 1, 7, 37, 187, … steps, k ↦ 5k + 2, which no
period divides, and wherever a stretch of the run ends: a few looks, at all trajectories together. An error below the
rounding of the terms says nothing.

Of a run with a pace, which keeps σ (H − E₀), H itself is looked at: it is the energy of the motion in time. Where σ has
a zero on the way time stands still, and the motion in s comes back from there: H is wrong for some steps before and
after it turns, and right again later. So such runs are looked at more often, k ↦ k + k/16 + 1.

A linear system is not looked at: whether h is stable on it is known before the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leastaction import steppers
from leastaction.backends import points
from leastaction.backends.status import GOING_WELL
from leastaction.errors import DegenerateLagrangianError
from leastaction.lagrangian import Lagrangian
from leastaction.methods import Galerkin
from leastaction.numbers.rounding import Digits
from leastaction.pace import Paced
from leastaction.sums import Sum

if TYPE_CHECKING:
    from leastaction.backends.stepper import Stepper
    from leastaction.run.plan import Plan
    from leastaction.run.standing import Standing
    from leastaction.run.starts import Starts

FloatArray = NDArray[np.float64]

LARGE = 0.2  # of K: an error of the energy that is told; ordinary steps stay below 0.04, wrong motions reach 0.9
ROUNDINGS = 1e4  # units in the last place that an error must be beyond
OFTEN = 16  # looks of a run with a pace while the steps grow twofold, about
GOLDEN = (5**0.5 - 1) / 2
FINER, SOONEST = 0.5**0.5, 24  # from one place of the first step to an earlier one, and how many there are
EPSILON = float(np.finfo(float).eps)
# What is kept of each trajectory: E₀; the largest K and rounding of E so far; the last time at which E was right, the
# first at which it was not, and by how much: NaN as long as it is right.
COLUMNS = ("start", "size", "rounding", "right", "wrong", "error")


class Loss(NamedTuple):
    """The energy of a trajectory was right at one time and wrong at another; by how much, and K until then."""

    trajectory: int
    right: float
    wrong: float
    error: float
    size: float


def columns(plan: Plan) -> int:
    """Of the array that a Standing keeps: none where the energy may change."""
    system, events = _system(plan), plan.events
    if system.linear or system.depends_on_time or system.forced:
        return 0
    if isinstance(plan.method, Galerkin) and plan.method.branch == "any":
        return 0  # any root will do, as asked
    thrown = () if events is None else [item.restitution for item in events.items if item.restitution is not None]
    if thrown and (any(e != 1 for e in thrown) or (events is not None and events.program.depends("g", "t"))):
        return 0  # walls that take energy, or move
    return len(COLUMNS)


def next_look(plan: Plan, done: int) -> int:
    """After how many steps the states are looked at next."""
    if isinstance(plan.system, Paced):
        return done + done // OFTEN + 1
    look = 1
    while look <= done:
        look = 5 * look + 2
    return look


class Looks:
    """States of some trajectories on their way, to be looked at together."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._wanted = plan, columns(plan) > 0
        self._found: list[tuple[FloatArray, NDArray[Any]]] = []  # times, and states (q, p)
        self._last = -1  # after how many steps the last ones are

    def add(self, stepper: Stepper) -> None:
        """Where they are now, if that is not known."""
        if not self._wanted or stepper.done == self._last:
            return
        self._last = stepper.done
        plan, states = self._plan, stepper.at()[:, : 2 * self._plan.row.n]
        with plan.reals.working():
            system, steps = plan.system, plan.reals.array(stepper.steps())
            t = states[:, system.time_place] if isinstance(system, Paced) else plan.t0 + steps * plan.h
            self._found.append((t.astype(float), _of_the_motion(plan, states)))

    def judge(self, starts: Starts, standing: Standing) -> None:
        """Note of each trajectory what there is to say of its energy."""
        if not self._found:
            return
        plan, balance = self._plan, standing.balance
        with np.errstate(all="ignore"), plan.reals.working():
            found = self._found
            if np.isnan(balance[:, 0]).all():  # the first stretch
                begin = np.concatenate([starts.q, starts.p], axis=1)
                system = plan.system
                t0 = begin[:, system.time_place].astype(float) if isinstance(system, Paced) else float(plan.t0)
                first, *measured = _measured(
                    plan, starts, _of_the_motion(plan, begin), *(states for _, states in found)
                )  # fmt: skip
                balance[:, :3], balance[:, 3] = first, t0
            else:
                measured = [*_measured(plan, starts, *(states for _, states in found))]
            for (t, _), (E, K, rounding) in zip(found, [sizes.T for sizes in measured], strict=True):
                start, size, noise, right = balance.T[:4]
                going = np.isnan(balance[:, 4])
                np.fmax(size, K, out=size, where=going)
                np.fmax(noise, rounding, out=noise, where=going)
                error = np.where(np.isinf(E), np.inf, np.abs(E - start))
                wrong = going & (error > LARGE * size) & (error > noise)
                if wrong.any():  # a motion that begins at rest has no K to compare with
                    np.fmax(size, _at_once(plan, starts), out=size, where=wrong)
                    wrong &= error > LARGE * size
                    balance[wrong, 4], balance[wrong, 5] = t[wrong], error[wrong]
                np.copyto(right, t, where=going & ~wrong)


def losses(plan: Plan, standing: Standing) -> list[Loss]:
    """The trajectories whose energy has been lost, in their order."""
    if not columns(plan):
        return []
    return [
        Loss(int(i), right, wrong, error, size)
        for i in np.flatnonzero(np.isfinite(standing.balance[:, 4]))
        for _, size, _, right, wrong, error in [standing.balance[i].tolist()]
    ]


def _system(plan: Plan) -> Any:
    """The system whose energy ought to be constant: that of the motion in time."""
    return plan.system.of if isinstance(plan.system, Paced) else plan.system


def _of_the_motion(plan: Plan, states: NDArray[Any]) -> NDArray[Any]:
    """q and p without the energy and the time that a pace has added."""
    if not isinstance(plan.system, Paced):
        return states
    n = plan.row.n
    return np.concatenate([states[:, : n - 1], states[:, n : 2 * n - 1]], axis=1)


def _parameters(plan: Plan, starts: Starts) -> NDArray[Any]:
    """Those of each trajectory, without the pace's own."""
    return starts.params[:, : len(_system(plan).values())]


def _measured(plan: Plan, starts: Starts, *states: NDArray[Any]) -> FloatArray:
    """E, K and the rounding of E for states (B, 2n) of all trajectories, at several moments: (moments, B, 3)."""
    if isinstance(plan.reals, Digits):
        each = [_at_digits(plan, params) for params in _parameters(plan, starts)]
        return np.array([[at(row) for at, row in zip(each, rows, strict=True)] for rows in states])
    system = _system(plan)
    n = system.n
    rows, params = np.concatenate(states), np.concatenate([_parameters(plan, starts)] * len(states))
    q, p, t = rows[:, :n].copy(), rows[:, n:].copy(), np.full((len(rows), 1), float(plan.t0))
    if isinstance(system, Sum):
        v, L, f, m = system.terms_of_energy(float(plan.t0), q, p, params)
        found = np.isfinite(v).all(axis=1)
    else:
        assert isinstance(system, Lagrangian)
        v, found = system.velocities(t[:, 0], q, p, params)
        L = points.evaluate(system.program, np.concatenate([t, q, v, params], axis=1))[:, 0]
        at_rest = points.evaluate(system.node, np.concatenate([t, q, 0 * q, params], axis=1))
        f, m = (at_rest[:, system.node.output_slice(name)] for name in ("f", "m"))
    sizes = _sizes(q, p, v, L, f, m)
    sizes[found & np.isnan(sizes[:, 0]), 0] = np.inf  # terms beyond all floats
    return sizes.reshape(len(states), len(starts), 3)


def _at_once(plan: Plan, starts: Starts) -> FloatArray:
    """What may become kinetic energy within the first step, as where a motion begins at rest; NaN where that cannot be
    told: the change of the potential energy U = −L(q, 0) along q + v τ + ½ a τ², up to the first turn of U or the
    golden section of the step.
    """
    times = [0.0, *(GOLDEN * float(plan.h) * FINER**k for k in range(SOONEST, -1, -1))]
    U = _potentials(plan, starts, times)
    change = U[1:] - U[0]
    grows = (np.diff(np.abs(change), axis=0) >= 0) & (change[1:] * change[0] >= 0)
    first = np.ones((1, len(starts)), bool)
    before_a_turn = np.logical_and.accumulate(np.concatenate([first, grows]), axis=0)
    return np.where(np.isfinite(change[0]), np.where(before_a_turn, np.abs(change), 0.0).max(axis=0), np.nan)


def _potentials(plan: Plan, starts: Starts, times: list[float]) -> FloatArray:
    """U where the motions are after these times, about, (times, B)."""
    of, size, n = _system(plan), len(starts), plan.row.n
    if isinstance(plan.reals, Digits):
        found = np.full((len(times), size), np.nan)
        for i, (q, v, params) in enumerate(zip(starts.q, starts.v, starts.params, strict=True)):
            a = steppers.mechanics(plan.system, params, plan.reals).acceleration(q, v, plan.t0)
            at = steppers.mechanics(of, params[: len(of.values())], plan.reals)
            for k, tau in enumerate(times):
                there = (q + v * tau + a * (tau**2 / 2))[: of.n]
                found[k, i] = -float(at.value(there, 0 * there, plan.t0))
        return found
    system = plan.system
    if isinstance(system, Sum):
        return system.potentials(float(plan.t0), starts.q, starts.v, starts.params, times)
    assert isinstance(system, Lagrangian)
    head = np.full((size, 1), float(plan.t0))
    values = points.evaluate(system.node, np.concatenate([head, starts.q, starts.v, starts.params], axis=1))
    f, m_q, m_v = (values[:, system.node.output_slice(name)] for name in ("f", "m_q", "m_v"))
    right = f - np.einsum("bjk,bk->bj", m_q.reshape(size, n, n), starts.v)
    well = starts.status == GOING_WELL
    a = np.full((size, n), np.nan)
    try:
        a[well] = np.linalg.solve(m_v.reshape(size, n, n)[well], right[well][:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:  # constraints may make up for a singular mass
        return np.full((len(times), size), np.nan)
    own = _parameters(plan, starts)
    there = [(starts.q + starts.v * tau + a * tau**2 / 2)[:, : of.n] for tau in times]
    rows = np.concatenate([np.concatenate([head, q, 0 * q, own], axis=1) for q in there])
    return -points.evaluate(of.program, rows)[:, 0].reshape(len(times), size)


def _at_digits(plan: Plan, params: NDArray[Any]) -> Callable[[NDArray[Any]], FloatArray]:
    """E, K and the rounding of E of one state (q, p) at more digits, as floats; NaN beyond these."""
    at, n, t = steppers.mechanics(_system(plan), params, plan.reals), _system(plan).n, plan.t0

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
    flow, L = p * v, L.ravel()
    if not (np.isfinite(m).all() and np.isfinite(f).all()):  # L may not know v = 0
        m, f = np.where(np.isfinite(m), m, 0.0), np.where(np.isfinite(f), f, 0.0)
    K = 0.5 * np.abs(v * (p - m)).sum(axis=1)
    rounding = ROUNDINGS * EPSILON * (np.abs(flow).sum(axis=1) + np.abs(L) + np.abs(f * q).sum(axis=1))
    return np.stack([flow.sum(axis=1) - L, K, rounding], axis=1)
