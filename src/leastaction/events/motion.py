"""How events see the motion of a run: steps of any length, curves through them, event functions, impacts.

A Motion does arithmetic in the numbers of the run; its curves, on which events are looked for, are in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.engine.singles import SingleSteps
from leastaction.engine.stepper import FormStepper
from leastaction.events.check import survey_program
from leastaction.events.impact import free_of, thrown_back
from leastaction.events.kinds import Watch
from leastaction.kernel import loops
from leastaction.methods import Galerkin
from leastaction.numbers.rounding import Digits, Reals
from leastaction.numbers.zeros import zeros
from leastaction.program import Program
from leastaction.step.stepper import Start, Stepper
from leastaction.step.stored_row import Row
from leastaction.systems.lagrangian import Lagrangian
from leastaction.systems.protocol import System

FloatArray = NDArray[np.float64]

EPS = float(np.finfo(float).eps)
# Impulses are computed in this type and rounded once: energy then walks at random over many impacts, instead of
# drifting by some 10⁻¹⁷ at each. Where this type is float64 itself, the drift remains.
LONG = np.longdouble


class Make(Protocol):
    """What makes steppers of a run."""

    def __call__(
        self, t: Any, q: NDArray[Any], p: NDArray[Any], h: Any, *, number: int = 0, varied: int = 0
    ) -> Stepper:
        """A stepper that begins with q and p at t + number · h, counts its steps from this number, and carries
        derivatives by `varied` variables.
        """
        ...


@dataclass(frozen=True, eq=False)
class Survey:
    """What is known of K steps without dividing them.

    begin, end      the event functions at both ends, (K, events)
    near, turning   whether the functions may be zero in the step, and whether they may turn in it, (K, events)
    ends            the states at the end, (K, 2n)
    """

    begin: NDArray[Any]
    end: NDArray[Any]
    near: NDArray[np.bool_]
    turning: NDArray[np.bool_]
    ends: NDArray[Any]


class Motion:
    """What events need of the trajectories of a run. Rows of `starts` are (t, q, p); `who` has their trajectories."""

    system: Any
    eps: Any
    dtype: Any
    params: FloatArray  # the parameters of each trajectory, in float64
    watch: Watch  # the events as functions of a curve's coordinates …
    columns: Any  # … and the places of these coordinates in (q, p)

    def steps(self, who: NDArray[np.intp], starts: NDArray[Any], lengths: NDArray[Any]) -> NDArray[Any]:
        """The states (q, p) after single steps of these lengths; NaN if a step is not solved."""
        raise NotImplementedError

    def survey(self, who: NDArray[np.intp], starts: NDArray[Any], lengths: NDArray[Any]) -> Survey:
        """What is known of steps of these lengths."""
        raise NotImplementedError

    def values(self, who: NDArray[np.intp], t: NDArray[Any], states: NDArray[Any]) -> NDArray[Any]:
        """The event functions, (K, events)."""
        raise NotImplementedError

    def after_impacts(
        self, who: NDArray[np.intp], event: NDArray[np.int64], at: NDArray[Any]
    ) -> list[NDArray[Any] | None]:
        """The momenta after impacts in rows (t, q, p); None where no impulse throws the motion back."""
        raise NotImplementedError

    def derivative(self, start: NDArray[Any], length: Any, number: int, everything: bool) -> NDArray[Any]:
        """The derivative of a single step of the only trajectory, as `saltation.Single` defines it."""
        raise NotImplementedError

    def evaluate(self, program: Program, at: NDArray[Any]) -> NDArray[Any]:
        """A Program of (t, q, p, params) at one row (t, q, p), with the parameters of the only trajectory."""
        raise NotImplementedError

    def crossings(
        self, who: NDArray[np.intp], event: NDArray[np.int64], starts: NDArray[Any], lengths: NDArray[Any],
        brackets: NDArray[Any],
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:  # fmt: skip
        """Where these event functions change their signs in steps of these lengths. `brackets` are rows (a, b, g(a),
        g(b)) of two places and the values there. Returns τ, the remaining values of g, and the states.
        """

        known, ends = np.full(len(who), -1.0, starts.dtype), starts[:, 1:].copy()  # −1: no place is known

        def values(k: NDArray[np.intp], tau: NDArray[Any]) -> NDArray[Any]:
            passed = tau * lengths[k]
            known[k], ends[k] = tau, self.steps(who[k], starts[k], passed)
            return self.values(who[k], starts[k, 0] + passed, ends[k])[np.arange(len(k)), event[k]]

        tau, left = zeros(values, brackets, self.eps)
        k = np.flatnonzero(tau != known)  # nearly always the last place is the zero
        if len(k):
            ends[k] = self.steps(who[k], starts[k], tau[k] * lengths[k])
        return tau, left, ends


def held(
    mechanics: Any, gradient: NDArray[Any], t: Any, q: NDArray[Any], eps: Any,
    evaluate: Callable[[Program], NDArray[Any]],
) -> Callable[[NDArray[Any]], NDArray[Any]] | None:  # fmt: skip
    """v ↦ the part of a wall's gradient that constraints leave free; None without constraints."""
    system = mechanics.system
    if not system.m:
        return None
    if system.constraints is None:
        return lambda v: system.freely(gradient, t, q, v, np.ravel(mechanics.params))
    G = evaluate(system.geometry.select("G")).reshape(system.m, system.n).astype(gradient.dtype)
    return lambda v: free_of(mechanics, gradient, G, t, q, v, eps)


@dataclass(frozen=True, eq=False)
class Masses:
    """Velocities and masses of a Lagrangian system with one set of parameters, with more digits than float64 has."""

    system: Lagrangian
    params: FloatArray
    nonlinear: bool  # whether L is not quadratic in v

    def velocity(self, t: float, q: FloatArray, p: NDArray[Any]) -> NDArray[Any]:
        """v(q, p), with more digits than float64 has where L is quadratic in v: p = M v + p(v = 0)."""
        if self.nonlinear:
            return self.system.velocity(q, p.astype(float), t, self.params).astype(LONG)
        rest = np.zeros(self.system.n)
        return self.inverse_mass(t, q, rest, p - self.system.momentum(q, rest, t, self.params))

    def inverse_mass(self, t: float, q: FloatArray, v: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
        """M⁻¹x, refined once with a residual of more digits."""
        n = self.system.n
        row = np.concatenate([[t], q, v.astype(float), self.params])
        M = loops.evaluate(self.system.inertia.select("m_v"), row[None]).reshape(n, n)
        y = np.linalg.solve(M, x.astype(float)).astype(LONG)
        return y + np.linalg.solve(M, (x - M.astype(LONG) @ y).astype(float))


class GalerkinMotion(Motion):
    """The motion of a member of the family in float64, by single steps that do not disturb the stepper of the run."""

    eps, dtype = EPS, float
    columns = slice(None)

    def __init__(self, system: Lagrangian, method: Galerkin, start: Start, watch: Watch) -> None:
        self.system, self.method, self.watch = system, method, watch
        self.params = np.atleast_2d(start.params)
        self._inputs = start.inputs

    @cached_property
    def _singles(self) -> SingleSteps:
        return SingleSteps(self.system, self.method)

    @cached_property
    def _survey(self) -> Program:
        return survey_program(self.watch, self.system, self.method)

    @cached_property
    def _inertia(self) -> Program:
        return self.system.inertia.select("m", "m_v")

    @property
    def _nonlinear(self) -> bool:
        return self.system.mass_varies_with_velocity

    @cached_property
    def _restitutions(self) -> FloatArray:
        return np.array([item.restitution or 0.0 for item in self.watch.items])

    def _rows(self, who: NDArray[np.intp], t: FloatArray, states: FloatArray) -> FloatArray:
        return np.concatenate([t[:, None], states, self.params[who]], axis=1)

    def values(self, who: NDArray[np.intp], t: FloatArray, states: FloatArray) -> FloatArray:
        return loops.evaluate(self.watch.program, self._rows(who, t, states))

    def after_impacts(self, who: NDArray[np.intp], event: NDArray[np.int64], at: FloatArray) -> list[FloatArray | None]:
        n, slope, each = self.system.n, self.watch.gradient, np.arange(len(who))
        rows = np.concatenate([at, self.params[who]], axis=1)
        found = loops.evaluate(slope, rows).astype(LONG)
        gradient = found[:, slope.output_slice("g_q")].reshape(len(who), -1, n)[each, event]
        g_t = found[:, slope.output_slice("g_t")][each, event]
        if not self._nonlinear and not self.system.m:
            return [*self._thrown_back(event, gradient, g_t, rows)]
        momenta: list[FloatArray | None] = []
        for k, (t, *state) in enumerate(at):
            masses, e = Masses(self.system, self.params[who[k]], self._nonlinear), self._restitutions[event[k]]
            q, p = np.array(state[:n]), np.array(state[n:], LONG)
            free = held(masses, gradient[k], t, q, EPS, lambda x, row=rows[k]: loops.evaluate(x, row[None])[0])  # type: ignore[misc]
            try:
                after = thrown_back(masses, gradient[k], g_t[k], e, t, q, p, EPS, free)
            except ArithmeticError:
                momenta.append(None)
            else:
                momenta.append(after.astype(float))
        return momenta

    def _thrown_back(
        self, event: NDArray[np.int64], gradient: NDArray[Any], g_t: NDArray[Any], rows: FloatArray
    ) -> FloatArray:
        """The momenta after all impacts at once, if L is quadratic in v and there are no constraints; see `impact`."""
        n = self.system.n
        p = rows[:, 1 + n : 1 + 2 * n].astype(LONG)
        at_rest = rows.copy()
        at_rest[:, 1 + n : 1 + 2 * n] = 0.0
        found = loops.evaluate(self._inertia, at_rest)
        M = found[:, self._inertia.output_slice("m_v")].reshape(-1, n, n)

        def inverse_mass(x: NDArray[Any]) -> NDArray[Any]:
            y = np.linalg.solve(M, x.astype(float)[:, :, None])[:, :, 0].astype(LONG)
            left = x - (M.astype(LONG) * y[:, None, :]).sum(axis=2)
            return np.asarray(y + np.linalg.solve(M, left.astype(float)[:, :, None])[:, :, 0])

        v = inverse_mass(p - found[:, self._inertia.output_slice("m")])
        rate = (gradient * v).sum(axis=1) + g_t
        size = -(1 + self._restitutions[event]) * rate / (gradient * inverse_mass(gradient)).sum(axis=1)
        return np.asarray((p + size[:, None] * gradient).astype(float))

    def evaluate(self, program: Program, at: FloatArray) -> FloatArray:
        return loops.evaluate(program, np.concatenate([at, self.params[0]])[None])[0]

    def derivative(self, start: FloatArray, length: float, number: int, everything: bool) -> FloatArray:
        n, params, state = self.system.n, self.params[0], start[1:]
        t, q, p = start[0], state[:n], state[n:]
        row = Row.whole(n, 2 * n + (len(params) + 1 if everything else 0))
        v = self.system.velocity(q, p, t, params)
        first = Start(t - number * length, q, p, v, length, params, self._inputs)
        solver = self.system.stepper(self.method, first, row)
        assert isinstance(solver, FormStepper)
        solver.restart(0, number, state)
        solver.advance(1, 0, 0, np.zeros((1, 1, row.width)))
        return solver.D

    def _driving(self, who: NDArray[np.intp], t: FloatArray, lengths: FloatArray) -> FloatArray | None:
        """The inputs at the nodes of single steps, (K, r, channels), where there are any."""
        return None if self._inputs is None else self._inputs.nodes(t, lengths, self.method.table.c, who)

    def _solved(self, who: NDArray[np.intp], starts: FloatArray, lengths: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The increments z, (K, s, n), and impulses, (K, n), of single steps; NaN where one is not solved."""
        driven = self._driving(who, starts[:, 0], lengths)
        return self._singles.solved(starts, lengths, self.params[who], driven)

    def steps(self, who: NDArray[np.intp], starts: FloatArray, lengths: FloatArray) -> FloatArray:
        z, impulses = self._solved(who, starts, lengths)
        ends = starts[:, 1:] + np.concatenate([z[:, -1], impulses], axis=1)
        return np.where((lengths == 0)[:, None], starts[:, 1:], ends)

    def survey(self, who: NDArray[np.intp], starts: FloatArray, lengths: FloatArray) -> Survey:
        z, impulse = self._solved(who, starts, lengths)
        return self.survey_solved(who, starts, lengths, z, impulse, 0 * impulse)  # no step is known before

    def survey_solved(
        self, who: NDArray[np.intp], starts: FloatArray, lengths: FloatArray, z: FloatArray, impulse: FloatArray,
        last: FloatArray,
    ) -> Survey:  # fmt: skip
        """The survey of steps that are solved, with the leading coefficients of the steps before."""
        count, params = len(starts), self.params[who]
        h = lengths[:, None]
        driven = self._driving(who, starts[:, 0], lengths)
        given = np.zeros((count, len(self.method.table.c), 0)) if driven is None else driven
        columns = [starts[:, :1], h, starts[:, 1:], z.reshape(count, -1), impulse, last, params]
        columns.append(given.reshape(count, given.shape[1] * given.shape[2]))
        found = loops.evaluate(self._survey, np.hstack(columns))
        begin, end, near, turning = (found[:, self._survey.output_slice(name)] for name, _ in self._survey.outputs)
        ends = starts[:, 1:] + np.hstack([z[:, -1], impulse])
        return Survey(begin, end, near != 0, turning != 0, ends)


class DetachedMotion(Motion):
    """The motion of one trajectory by any method on any system at any precision, by a stepper that does single steps of
    any length, or by a new stepper for each step.

    A large system may have many coordinates of which event functions read few: curves are made for these few only.
    """

    def __init__(
        self, make: Make, system: System, mechanics: Any, reals: Reals, start: Start, watch: Watch
    ) -> None:  # fmt: skip
        self._make, self.reals = make, reals
        self.watch, self.columns = watch.narrow
        self.system, self._mechanics, self._start = system, mechanics, start
        self.eps = mpmath.mpf(2) ** -reals.bits if isinstance(reals, Digits) else EPS
        self.dtype = float if reals.digits is None else object
        self.params = np.asarray(start.params).astype(float)[None]
        solver: Any = make(start.t, start.q, start.p, start.h)
        self._solver = solver if hasattr(solver, "single_steps") else None

    @property
    def any_length(self) -> bool:
        """Whether one stepper does single steps of any length, forwards and backwards."""
        return self._solver is not None

    def steps(self, who: NDArray[np.intp], starts: NDArray[Any], lengths: NDArray[Any]) -> NDArray[Any]:
        ends, n = starts[:, 1:].copy(), (starts.shape[1] - 1) // 2
        moving = np.flatnonzero(lengths != 0)
        if self._solver is not None:
            ends[moving] = self._solver.single_steps(starts[moving], lengths[moving])
            return ends
        for k in moving[np.argsort(lengths[moving], kind="stable")]:  # a system may keep data of one length
            t, *state = starts[k]
            solver = self._make(t, np.array(state[:n]), np.array(state[n:]), lengths[k])
            solver.advance(1, 0, 0, ends[None, :1])
            ends[k] = solver.at()[0] if solver.failure() is None else np.nan
        return ends

    def survey(self, who: NDArray[np.intp], starts: NDArray[Any], lengths: NDArray[Any]) -> Survey:
        """Survey single steps: without states before the step, every event is in doubt."""
        ends = self.steps(who, starts, lengths)
        begin, end = self.values(who, starts[:, 0], starts[:, 1:]), self.values(who, starts[:, 0] + lengths, ends)
        everything = np.ones(begin.shape, bool)
        return Survey(begin, end, everything, everything.copy(), ends)

    def values(self, who: NDArray[np.intp], t: NDArray[Any], states: NDArray[Any]) -> NDArray[Any]:
        return self._evaluated(self.watch.program, t, states[:, self.columns])

    def evaluate(self, program: Program, at: NDArray[Any]) -> NDArray[Any]:
        return self._evaluated(program, at[:1], at[None, 1:])[0]

    def derivative(self, start: NDArray[Any], length: Any, number: int, everything: bool) -> NDArray[Any]:
        n = (len(start) - 1) // 2
        varied = 2 * n + (len(self._start.params) + 1 if everything else 0)
        t, q, p = start[0], start[1 : 1 + n], start[1 + n :]
        solver = self._make(t - number * length, q, p, length, number=number, varied=varied)
        solver.advance(1, 0, 0, np.zeros((1, 1, Row.whole(n, varied).width), self.dtype))
        return np.asarray(solver.at()[0, 2 * n :].reshape(varied, 2 * n))

    def _evaluated(self, program: Program, t: NDArray[Any], states: NDArray[Any]) -> NDArray[Any]:
        """The outputs of a program of (t, q, p, params)."""
        rows, params = np.concatenate([t[:, None], states], axis=1), self._start.params
        if not isinstance(self.reals, Digits):
            rows = np.concatenate([rows, np.broadcast_to(params, (len(t), len(params)))], axis=1)
            return loops.evaluate(program, rows)
        from leastaction.flint import evaluated

        return evaluated(program, rows, params, self.reals)

    def after_impacts(
        self, who: NDArray[np.intp], event: NDArray[np.int64], at: NDArray[Any]
    ) -> list[NDArray[Any] | None]:
        momenta: list[NDArray[Any] | None] = []
        for one, (t, *state) in zip(event.tolist(), at, strict=True):
            try:
                momenta.append(self._after_impact(one, t, np.array(state, self.dtype)))
            except ArithmeticError:
                momenta.append(None)
        return momenta

    def _after_impact(self, event: int, t: Any, state: NDArray[Any]) -> NDArray[Any]:
        n, slope, read = len(state) // 2, self.watch.gradient, self.columns[: len(self.columns) // 2]
        found = self._evaluated(slope, np.array([t], self.dtype), state[None, self.columns])[0]
        gradient = 0 * state[:n]
        gradient[read] = found[slope.output_slice("g_q")].reshape(-1, len(read))[event]
        g_t, e = found[slope.output_slice("g_t")][event], self.watch.items[event].restitution
        assert e is not None
        q, p = state[:n], state[n:]
        free = held(
            self, gradient, t, q, self.eps, lambda x: self._evaluated(x, np.array([t], self.dtype), state[None])[0]
        )
        return thrown_back(self, gradient, g_t, e, t, q, p, self.eps, free)

    def velocity(self, t: Any, q: NDArray[Any], p: NDArray[Any]) -> NDArray[Any]:
        return self._mechanics.velocity(q, p, t, self._start.params)

    def inverse_mass(self, t: Any, q: NDArray[Any], v: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
        """M⁻¹x as the change of the velocity with the momentum, exact where L is quadratic in v."""
        p = self._mechanics.momentum(q, v, t, self._start.params)
        size = self.eps ** (self.eps**0 / 2) if self.nonlinear else 1
        return (self.velocity(t, q, p + size * x) - v) / size

    @cached_property
    def nonlinear(self) -> bool:
        """Whether L is not quadratic in v."""
        return bool(self.system.mass_varies_with_velocity)
