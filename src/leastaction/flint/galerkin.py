"""Runs of the family and of compositions of its members, at any precision, with their derivative where asked for.

With R(z; q, p, w) = 0 the equations of a step and I its impulse, a direction (dq, dp, dw, dh) is carried to

    dz = −(∂R/∂z)⁻¹ dR,    dq⁺ = dq + dz^s,    dp⁺ = dp + dI + ∂I/∂z dz,

where dR and dI are the changes at fixed z. With w and h a Program reads other times and velocities at a point, and
gives other numbers: dt_i = (k + τ_i) dh, dv_i = −v_i dh/h; and f comes with the weight h w_i, which adds f_i dh/h.

There are no compensated sums: guard digits hold what they would save.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import flint
import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.backends.rows import Row
from leastaction.backends.status import GOING_WELL, SINGULAR, Failure
from leastaction.backends.stepper import Start
from leastaction.flint.constraints import Ending, Settled
from leastaction.flint.equations import Equations, Layout
from leastaction.flint.evaluate import function
from leastaction.flint.mechanics import Mechanics
from leastaction.flint.newton import Problem, Solution, follow, largest, lengths, log2, newton
from leastaction.flint.run import Driven, Run, behind
from leastaction.methods import Composition
from leastaction.numbers.conversion import Balls, ball, balls, mpf, mpfs
from leastaction.numbers.precision import flint_bits, mpmath_bits
from leastaction.step.form import Step, step_of
from leastaction.step.sensitivity import sensitivity

Mpfs = NDArray[np.object_]

DIFFERENCES = 8  # of what predictions missed: each gains a factor of about the step in parts of the motion's scale


class GalerkinStepper(Run):
    """Runs of a Step from a start.

    z            the increments of the last step; `seen`, how many steps are remembered
    differences  backward differences of what prolonging the polynomial of z missed, one after the other
    expected     log₂ of what the next prediction will miss, and `terms`, how many differences it will add
    """

    NUMBERS = ("q", "p", "D", "z", "length", "differences")
    REALS = ("floor", "expected", "curvature")
    INTEGERS = ("done", "iterations", "most", "continued", "seen", "terms", "negative")

    def __init__(
        self, mechanics: Mechanics, step: Step, start: Start, row: Row | None = None, phase: tuple[Any, Any] = (0, 1)
    ) -> None:
        """`phase`, in a composition: where in a whole step these steps begin, and how long they are, in parts of h."""
        self.row = row or Row.whole(step.n)
        self.mechanics, self.n, self.s, self.bits, self._checked = mechanics, step.n, step.s, mechanics.bits, step.checked
        digits = round(self.bits * 0.302) + 2
        with flint_bits(self.bits), mpmath_bits(self.bits):
            table = step.method.exact_table(digits)
            self._offset, self._part = (ball(mpmath.mpf(x)) for x in phase)
            self._period = ball(start.h)
            self._t, self._h = ball(start.t), (self._part * self._period).mid()
            self.q, self.p, self._v, given = balls(start.q), balls(start.p), balls(start.v), balls(start.params)
            self._layout = Layout(step, given, digits)
            points = [mpmath.mpf(phase[0]) + mpmath.mpf(phase[1]) * c for c in table["c"]]
            self._driven = Driven(mechanics.system, start, np.array(points, dtype=object))
            self._d, self._slope = balls(table["d"]), balls(table["slope"])[1:]
            growth, modes = (flint.arb_mat([balls(row) for row in table[name]]) for name in ("growth", "modes"))
            self._prolong = (growth * modes).mid()
            self._ending = None
            if step.end is not None:
                self._ending = Ending(step.end, step.n, step.multipliers, given, self.bits)
            self.begin_derivative()
            zero, N = flint.arb(0), self._layout.N
            self.z, self.length, self.differences = [zero] * N, [zero] * self.n, [zero] * (DIFFERENCES * N)
            self._P = self.row.varied - 2 * self.n - 1
            programs = [sensitivity(term) for term in step.terms] if self._P >= 0 else []
            self._outer = [(program, function(program, program.results, given)) for program in programs]
        self._use(self._h)
        self.iterations = self.most = self.continued = self.seen = self.terms = self.negative = 0
        self.floor = self.expected = self.curvature = 0.0

    def _use(self, h: Any) -> None:
        """Steps have this length."""
        self._h = h
        self._at = lru_cache(maxsize=64)(lambda x: Equations(self._layout, h if x == 1.0 else (h * x).mid()))

    def step(self) -> Failure | None:
        t = (self._t + (self.done + self._offset) * self._period).mid()
        self._layout.given = self._driven.step(self.done)
        prolonged, found = self._prolonged(), None
        if self.seen:
            guess, N = prolonged, len(self.z)
            for k in range(self.terms):
                guess = [a + b for a, b in zip(guess, self.differences[k * N : (k + 1) * N], strict=True)]
            problem = self._problem(t)(1.0, self.length)
            found = newton(problem, [x.mid() for x in guess], self.bits, self.expected, self.curvature)
        spent = 0 if found is None else found.iterations
        if found is None or found.status != GOING_WELL or found.negative != self.negative:
            self.continued += self.seen > 0
            found = self._anew(t)
            found = found._replace(iterations=found.iterations + spent)
        settled = self._settled(t, found.z, found.impulse) if found.status == GOING_WELL else None
        if found.status == GOING_WELL and self._ending is not None and settled is None:
            found = found._replace(status=SINGULAR)
        self.iterations += found.iterations
        self.most = max(self.most, found.iterations)
        if found.status != GOING_WELL:
            return Failure(found.status, _float(found.left), found.iterations, found.reached)
        if self.row.varied:
            self._carry(t, found.z, settled)
        self._remember(found, prolonged)
        impulse = found.impulse if settled is None else [a + b for a, b in zip(found.impulse, settled.push, strict=True)]
        self.q, self.p = _sum(self.q, self._moved(found.z)), _sum(self.p, impulse)
        return None

    def now(self) -> Balls:
        return self.q + self.p + behind(self.D, self.row.varied)

    def _problem(self, t: Any) -> Any:
        """A part of h and the smallest scales ↦ the step from (t, q, p)."""
        q, p, layout = self.q, self.p, self._layout

        def problem(x: float, scale: Balls) -> Problem:
            equations = self._at(x)
            return Problem(lambda z: equations.linearised(t, q, p, z), layout.places[: self.n], self._checked, scale)

        return problem

    def _anew(self, t: Any) -> Solution:
        """The step from (t, q, p) without a prediction: from the velocity, or followed from h = 0."""
        v = self.mechanics.search(t, self.q, self.p, self._v)
        if v is None:
            return Solution(SINGULAR, 0, [], [], 0.0, reached=0.0)

        def uniform(x: float) -> Balls:
            z = [(d * self._h * x * speed).mid() for d in self._d[1:] for speed in v]
            return z + [flint.arb(0)] * (self._layout.N - len(z))

        problem, none = self._problem(t), [flint.arb(0)] * self.n
        found = newton(problem(1.0, none), uniform(1.0), self.bits, near=-4.0)
        if found.status == GOING_WELL:
            return found
        again = follow(lambda x, way: problem(x, way or none), uniform, self.bits)
        return again._replace(iterations=again.iterations + found.iterations)

    def _prolonged(self) -> Balls:
        """The polynomial of the last step over the next one; multipliers stay."""
        own = self.s * self.n
        return list((self._prolong * flint.arb_mat(self.s, self.n, self.z[:own])).mid().entries()) + self.z[own:]

    def _remember(self, found: Solution, prolonged: Balls) -> None:
        """What the next prediction will be: with as many differences as would have predicted this step best."""
        z, N = found.z, len(found.z)
        places = self._layout.places[: self.n]
        length = lengths(places, z)
        self.length = [max(a, b / 2).mid() for a, b in zip(length, self.length, strict=True)]
        self.curvature, self.negative, self.expected, self.terms = found.curvature, int(found.negative), 0.0, 0
        self.floor = max(self.floor, _float(found.left))
        missed, differences = [(a - b).mid() for a, b in zip(z, prolonged, strict=True)], []
        units = [0 if a.is_zero() else 1 / a for a in self.length]
        for k in range(min(self.seen, DIFFERENCES)):
            size = log2(largest([x * unit for x, unit in zip(lengths(places, missed), units, strict=True)]).mid())
            if k == 0 or size < self.expected:
                self.expected, self.terms = max(size, float(-self.bits)), k
            differences += missed
            before = self.differences[k * N : (k + 1) * N]
            missed = [(a - b).mid() for a, b in zip(missed, before, strict=True)]
        self.z, self.seen = z, min(self.seen + 1, DIFFERENCES)
        self.differences = differences + self.differences[len(differences) :]

    def _moved(self, z: Balls) -> Balls:
        return z[(self.s - 1) * self.n : self.s * self.n]

    def _settled(self, t: Any, z: Balls, impulse: Balls) -> Settled | None:
        """The End of the step from (t, q, p) with this z and impulse."""
        if self._ending is None:
            return None
        n, own = self.n, self.s * self.n
        speeds = [sum((a * b for a, b in zip(self._slope, z[j:own:n], strict=True)), flint.arb(0)) for j in range(n)]
        v = [(x / self._h).mid() for x in speeds]
        return self._ending.settle((t + self._h).mid(), _sum(self.q, self._moved(z)), _sum(self.p, impulse), v)

    def _carry(self, t: Any, z: Balls, settled: Settled | None) -> None:
        """D after the step from (t, q, p) with these increments."""
        n, C, P, last = self.n, self.row.varied, self._P, (self.s - 1) * self.n
        equations = self._whole
        at, N = equations.linearised(t, self.q, self.p, z), self._layout.N
        D = flint.arb_mat(2 * n, C, self.D)
        dq, dp = (flint.arb_mat(rows) for rows in (D.tolist()[:n], D.tolist()[n:]))
        assert at.by_q is not None
        R, impulse = (by_q * dq for by_q in at.by_q)
        if P >= 0:
            changes = [
                [self._outward(j, i, *where) for i, where in enumerate(zip(points, values, strict=True))]
                for j, (points, values) in enumerate(zip(at.points, at.values, strict=True))
            ]
            last_columns = flint.arb_mat([[int(j == C - P - 1 + i) for j in range(C)] for i in range(P + 1)])
            by_outer = equations.sums(changes, P + 1)
            R += flint.arb_mat(N, P + 1, by_outer[0]) * last_columns
            impulse += flint.arb_mat(n, P + 1, by_outer[1]) * last_columns
        pushed = flint.arb_mat([[int(i == last + j) for j in range(n)] for i in range(N)]) * dp
        dz = at.jacobian.mid().solve((pushed - R).mid(), algorithm="approx").mid()
        moved = flint.arb_mat(dz.tolist()[last : last + n])
        D = flint.arb_mat((dq + moved).tolist() + (dp + impulse + at.slope * dz).tolist()).mid()
        if self._ending is not None and settled is not None:
            end, when = (t + self._h).mid(), self.done + self._offset + self._part
            D = self._ending.carried(end, _sum(self.q, self._moved(z)), settled, D, when, P)
        self.D = list(D.entries())

    @property
    def _whole(self) -> Equations:
        """The equations with their derivatives by q, too."""
        if not hasattr(self, "_with_q"):
            self._with_q = Equations(self._layout, self._h, by_q=True)
        return self._with_q

    def _outward(self, j: int, i: int, point: Balls, values: Balls) -> Balls:
        """How parameters and h change what term j gives at its point i: a row of P + 1 numbers for each."""
        term, (program, outer), P = self._layout.terms[j], self._outer[j], self._P
        known, changes, when, start = outer(*point), [], self.done + self._offset + self._part * term.samples.tau[i], 0
        v: Balls = []
        for name, size in term.inputs:
            v, start = (point[start : start + size] if name == "v" else v), start + size
        for out in term.gives:
            by_t, by_w = (known[program.output_slice(f"{out}_{name}")] for name in ("t", "params"))
            by_v = values[slice(*term.place[f"{out}_v"])] if (out, "v") in term.slopes else []
            given = values[slice(*term.place[out])]
            for k, x in enumerate(by_t):
                slower = sum((a * b for a, b in zip(by_v[k * len(v) : (k + 1) * len(v)], v)), flint.arb(0))
                change = x * when + ((given[k] if out == "f" else 0) - slower) / self._period
                changes += [*by_w[k * P : (k + 1) * P], change]
        return changes

    # Single steps, which depend on nothing that was solved before.

    def polynomials(self, starts: Mpfs) -> tuple[Mpfs, int]:
        """The increments z, (K, s, n), of single steps from rows (t, q, p), and how many could be solved."""
        n, s = self.n, self.s
        result = np.empty((len(starts), s, n), dtype=object)
        with flint_bits(self.bits):
            for k, start in enumerate(starts):
                self._layout.given = self._driven.within(start[0], mpf(self._period))
                found, _ = self._single(start)
                if found.status != GOING_WELL:
                    return result, k
                result[k] = mpfs(found.z[: s * n]).reshape(s, n)
        return result, len(starts)

    def single_steps(self, starts: Mpfs, lengths: Mpfs, given: Sequence[Balls] | None = None) -> Mpfs:
        """The states (q, p) after single steps of these lengths from rows (t, q, p); NaN where one is not solved.

        Their inputs are those of the run at their times, or the inputs `given`. Afterwards the stepper can be used for
        nothing else.
        """
        result = np.full((len(starts), 2 * self.n), mpmath.nan, dtype=object)
        with flint_bits(self.bits):
            for k, (start, length) in enumerate(zip(starts, lengths, strict=True)):
                self._use(ball(length))
                self._layout.given = self._driven.within(start[0], length) if given is None else given[k]
                found, push = self._single(start)
                if found.status == GOING_WELL:
                    p = _sum(self.p, found.impulse)
                    result[k] = mpfs(_sum(self.q, self._moved(found.z)) + (_sum(p, push) if push else p))
        return result

    def _single(self, start: Mpfs) -> tuple[Solution, Balls]:
        """The step from (t, q, p), and what the constraints at its end add to the momentum."""
        t, self.q, self.p = ball(start[0]), balls(start[1 : 1 + self.n]), balls(start[1 + self.n :])
        found = self._anew(t)
        if found.status != GOING_WELL or self._ending is None:
            return found, []
        settled = self._settled(t, found.z, found.impulse)
        return (found._replace(status=SINGULAR), []) if settled is None else (found, settled.push)

    def counts(self) -> dict[str, Any]:
        return {
            "newton_iterations": self.iterations,
            "most_iterations": self.most,
            "floor": self.floor,
            "continued": self.continued,
        }


class ComposedStepper(Run):
    """Runs of a composition from a start: a stepper of its method for each factor, one step of each in turn."""

    def __init__(self, mechanics: Mechanics, method: Composition, start: Start, row: Row) -> None:
        self.row, self.bits, self.D = row, mechanics.bits, []
        step, self._factors = step_of(mechanics.system, method.root), method.factors(round(self.bits * 0.302) + 2)
        self.phases: list[GalerkinStepper] = []
        with mpmath_bits(self.bits):
            for k, factor in enumerate(self._factors):
                phase = mpmath.fsum(self._factors[:k]), factor
                self.phases.append(GalerkinStepper(mechanics, step, start, row, phase))

    def step(self) -> Failure | None:
        """One step of each factor; where a step fails, the state is again the one before the first."""
        first = self.phases[0]
        before = now = first.q, first.p, first.D
        for phase in self.phases:
            phase.done = self.done
            phase.q, phase.p, phase.D = now
            failure = phase.step()
            now = phase.q, phase.p, phase.D
            if failure is not None:
                now = before
                break
        first.q, first.p, first.D = now
        return failure

    def now(self) -> Balls:
        return self.phases[0].now()

    def state(self) -> dict[str, NDArray[Any]]:
        found = super().state()
        for k, phase in enumerate(self.phases):
            found |= {f"{name}_{k}": array for name, array in phase.state().items()}
        return found

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        super().restore(state)
        for k, phase in enumerate(self.phases):
            end = f"_{k}"
            phase.restore({name.removesuffix(end): array for name, array in state.items() if name.endswith(end)})

    def single_steps(self, starts: Mpfs, lengths: Mpfs) -> Mpfs:
        """The states (q, p) after single steps of these lengths from rows (t, q, p); NaN where one is not solved.

        Afterwards the stepper can be used for nothing else.
        """
        states = starts.copy()
        with mpmath_bits(self.bits):
            for phase, factor in zip(self.phases, self._factors, strict=True):
                own = lengths * factor
                given = [phase._driven.within(t, h) for t, h in zip(starts[:, 0], lengths, strict=True)]
                states[:, 1:] = self.phases[0].single_steps(states, own, given)
                states[:, 0] = states[:, 0] + own
        return states[:, 1:]

    def counts(self) -> dict[str, Any]:
        found = [phase.counts() for phase in self.phases]
        sums = {name: sum(one[name] for one in found) for name in ("newton_iterations", "continued")}
        return sums | {name: max(one[name] for one in found) for name in ("most_iterations", "floor")}


def _sum(x: Balls, y: Balls) -> Balls:
    return [(a + b).mid() for a, b in zip(x, y, strict=True)]


def _float(power: float) -> float:
    """2^power; infinite or zero where a float ends."""
    return 2.0**power if power < 1000 else float("inf")
