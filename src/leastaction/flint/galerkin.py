"""Runs of the family and of compositions of its members, at any precision, with their derivative where asked for.

With R(z; q, p, w) = 0 the equations of a step and I its impulse, a direction (dq, dp, dw, dh) is carried to

    dz = −(∂R/∂z)⁻¹ dR,    dq⁺ = dq + dz^s,    dp⁺ = dp + dI + ∂I/∂z dz,

where dR and dI are the changes at fixed z. With w and h a Program reads other times and velocities at a point, and
gives other numbers: dt_i = (k + τ_i) dh, dv_i = −v_i dh/h; and f comes with the weight h w_i, which adds f_i dh/h.
There are no compensated sums: guard digits hold what they would save.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import flint
import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.flint.equations import Ending, Equations, Layout, Settled, part
from leastaction.flint.evaluate import function
from leastaction.flint.mechanics import Mechanics, solve
from leastaction.flint.newton import Problem, Solution, followed, largest, lengths, log2, newton
from leastaction.flint.run import Driven, Run, behind
from leastaction.numbers.conversion import Balls, ball, balls, mpf, mpfs
from leastaction.numbers.precision import flint_bits, mpmath_bits
from leastaction.step.form import Step
from leastaction.step.sensitivity import sensitivity
from leastaction.step.status import GOING_WELL, SINGULAR, Failure
from leastaction.step.stepper import Start
from leastaction.step.stored_row import Row

Mpfs = NDArray[np.object_]

DIFFERENCES = 8  # of what predictions missed: each gains a factor of about the step in parts of the motion's scale


class Phase:
    """The steps of a run, or in a composition those of one factor; and what the last of them tells of the next.

    offset, part  where in a step of the run they begin, and how long they are, in parts of h
    z             the increments of the last step; `length`, of its coordinates and of earlier steps, fading
    differences   backward differences of what prolonging the polynomial of z missed, one after the other
    seen, terms   how many steps are remembered, and how many differences the next prediction adds
    first         log₂ of the first increment that is expected, and `curvature` as a Solution has it
    """

    NUMBERS = ("z", "length", "differences")
    REALS = ("first", "curvature")
    INTEGERS = ("seen", "terms", "negative")

    def __init__(self, layout: Layout, offset: Any, part: Any, driven: Driven) -> None:
        zero, self.layout, self.driven = flint.arb(0), layout, driven
        self.offset, self.part, self.places = ball(offset), ball(part), layout.places[: layout.n]
        self.z, self.length = [zero] * layout.N, [zero] * layout.n
        self.differences = [zero] * (DIFFERENCES * layout.N)
        self.seen = self.terms = self.negative = 0
        self.first = self.curvature = 0.0

    def use(self, h: Any) -> None:
        """Steps of the run are so long."""
        self.h = (self.part * h).mid()
        self.at = lru_cache(maxsize=64)(lambda x, by_q=False: Equations(self.layout, (self.h * x).mid(), by_q))

    def predicted(self, prolonged: Balls) -> Balls:
        N = len(self.z)
        for k in range(self.terms):
            prolonged = _sum(prolonged, self.differences[k * N : (k + 1) * N])
        return prolonged

    def remember(self, found: Solution, prolonged: Balls) -> None:
        """What the next prediction will be: with as many differences as would have predicted this step best."""
        N, missed, differences = len(found.z), [(a - b).mid() for a, b in zip(found.z, prolonged, strict=True)], []
        fading = [(x / 2).mid() for x in self.length]
        self.length = [max(a, b) for a, b in zip(lengths(self.places, found.z), fading, strict=True)]
        self.curvature, self.negative, self.first, self.terms = found.curvature, found.negative, 0.0, 0
        for k in range(min(self.seen, DIFFERENCES)):
            sizes = zip(lengths(self.places, missed), self.length, strict=True)
            size = log2(largest([a / b for a, b in sizes if not b.is_zero()]))
            if k == 0 or size < self.first:
                self.first, self.terms = size, k
            differences += missed
            before = self.differences[k * N : (k + 1) * N]
            missed = [(a - b).mid() for a, b in zip(missed, before, strict=True)]
        self.z, self.seen = found.z, self.seen + 1
        self.differences = differences + self.differences[len(differences) :]


class GalerkinStepper(Run):
    """Runs of a Step from a start: a step of each of these factors of h in turn."""

    NUMBERS = ("q", "p", "D")
    REALS = ("floor",)
    INTEGERS = ("steps", "iterations", "most", "continued")

    def __init__(
        self, mechanics: Mechanics, step: Step, start: Start, row: Row | None = None, factors: Sequence[Any] = (1,)
    ) -> None:
        self.row = row or Row.whole(step.n)
        self.mechanics, self.n, self.s, self.bits, self._checked = (
            mechanics,
            step.n,
            step.s,
            mechanics.bits,
            step.checked,
        )
        digits = round(self.bits * 0.302) + 2
        self._P, self._last = self.row.varied - 2 * self.n - 1, slice((self.s - 1) * self.n, self.s * self.n)
        with flint_bits(self.bits), mpmath_bits(self.bits):
            table = step.method.exact_table(digits)
            self._t, self._h, given = ball(start.t), ball(start.h), balls(start.params)
            self.q, self.p, self._v = balls(start.q), balls(start.p), balls(start.v)
            self._d, self._slope = balls(table["d"]), balls(table["slope"])[1:]
            growth, modes = (flint.arb_mat([balls(line) for line in table[name]]) for name in ("growth", "modes"))
            self._prolong = (growth * modes).mid()
            self._layout = Layout(step, given, digits)
            self._ending: Ending | None = None
            if step.end is not None:
                self._ending = Ending(step.end, step.n, step.multipliers, given, self.bits)
            programs = [sensitivity(term) for term in step.terms] if self._P >= 0 else []
            self._outer = [(program, function(program, program.results, given)) for program in programs]
            self.phases = []
            for k, part in enumerate(map(mpmath.mpf, factors)):
                offset = mpmath.fsum(factors[:k])
                points = np.array([offset + part * c for c in table["c"]], dtype=object)
                self.phases.append(Phase(self._layout, offset, part, Driven(mechanics.system, start, points)))
                self.phases[-1].use(self._h)
            self.begin_derivative()
        self.iterations = self.most = self.continued = 0
        self.floor = 0.0

    def kept(self) -> list[Any]:
        return [self, *self.phases]

    def step(self) -> Failure | None:
        before = self.q, self.p, self.D
        for phase in self.phases:
            t = (self._t + (self.done + phase.offset) * self._h).mid()
            self._layout.given = phase.driven.step(self.done)
            prolonged, own, found = self._prolonged(phase.z), self._problem(phase, t), None
            if phase.seen:
                found = newton(
                    own(1.0, phase.length), phase.predicted(prolonged), self.bits, phase.first, phase.curvature
                )
            if found is None or found.status != GOING_WELL or found.negative != phase.negative:
                spent = 0 if found is None else found.iterations
                self.continued += found is not None
                found = self._followed(phase, t)
                found = found._replace(iterations=found.iterations + spent)
            found, settled = self._ended(phase, t, found)
            self.iterations += found.iterations
            self.most = max(self.most, found.iterations)
            if found.status != GOING_WELL:
                self.q, self.p, self.D = before
                return Failure(found.status, found.left, found.iterations, found.reached)
            self.floor = max(self.floor, found.left)
            if self.row.varied:
                self._carry(phase, t, found.z, settled)
            phase.remember(found, prolonged)
            self._move(found)
        return None

    def now(self) -> Balls:
        return self.q + self.p + behind(self.D, self.row.varied)

    def _problem(self, phase: Phase, t: Any) -> Any:
        """A part of the step from (t, q, p) and the smallest scales ↦ the equations to solve."""
        q, p = self.q, self.p

        def problem(x: float, scale: Balls) -> Problem:
            equations = phase.at(x)
            return Problem(lambda z: equations.linearised(t, q, p, z), phase.places, self._checked, scale)

        return problem

    def _followed(self, phase: Phase, t: Any) -> Solution:
        """The step from (t, q, p) without a prediction, followed from h = 0."""
        v = self.mechanics.search(t, self.q, self.p, self._v)
        if v is None:
            return Solution(SINGULAR, 0, [], [], 0.0, reached=0.0)

        def uniform(x: float) -> Balls:
            z = [(d * phase.h * x * speed).mid() for d in self._d[1:] for speed in v]
            return z + [flint.arb(0)] * (self._layout.N - len(z))

        return followed(self._problem(phase, t), uniform, self.n, self.bits)

    def _prolonged(self, z: Balls) -> Balls:
        """The polynomial of a step over the next one; multipliers stay."""
        own = self.s * self.n
        return list((self._prolong * flint.arb_mat(self.s, self.n, z[:own])).mid().entries()) + z[own:]

    def _ended(self, phase: Phase, t: Any, found: Solution) -> tuple[Solution, Settled | None]:
        """The step from (t, q, p) with its impulse brought to the constraints, if there are any."""
        if self._ending is None or found.status != GOING_WELL:
            return found, None
        n, own = self.n, self.s * self.n
        q, p = _sum(self.q, found.z[self._last]), _sum(self.p, found.impulse)
        speeds = [
            sum((a * b for a, b in zip(self._slope, found.z[j:own:n], strict=True)), flint.arb(0)) for j in range(n)
        ]
        settled = self._ending.settle((t + phase.h).mid(), q, p, [(x / phase.h).mid() for x in speeds])
        if settled is None:
            return found._replace(status=SINGULAR), None
        return found._replace(impulse=_sum(found.impulse, settled.push)), settled

    def _move(self, found: Solution) -> None:
        self.q, self.p = _sum(self.q, found.z[self._last]), _sum(self.p, found.impulse)

    def _carry(self, phase: Phase, t: Any, z: Balls, settled: Settled | None) -> None:
        """D after the step from (t, q, p) with these increments."""
        n, C, P, N = self.n, self.row.varied, self._P, self._layout.N
        equations = phase.at(1.0, True)
        at, D = equations.linearised(t, self.q, self.p, z), flint.arb_mat(2 * n, C, self.D)
        dq, dp = part(D, slice(n)), part(D, slice(n, None))
        assert at.by_q is not None
        R, impulse = (by_q * dq for by_q in at.by_q)
        if P >= 0:
            changes = [
                [self._outward(phase, j, i, point, values) for i, (point, values) in enumerate(zip(*own, strict=True))]
                for j, own in enumerate(zip(at.points, at.values, strict=True))
            ]
            last_columns = flint.arb_mat([[int(j == C - P - 1 + i) for j in range(C)] for i in range(P + 1)])
            by_R, by_impulse = equations.sums(changes, P + 1)
            R += flint.arb_mat(N, P + 1, by_R) * last_columns
            impulse += flint.arb_mat(n, P + 1, by_impulse) * last_columns
        pushed = flint.arb_mat([[int(i == self._last.start + j) for j in range(n)] for i in range(N)]) * dp
        dz = solve(at.jacobian, pushed - R)
        D = flint.arb_mat((dq + part(dz, self._last)).tolist() + (dp + impulse + at.slope * dz).tolist())
        if self._ending is not None and settled is not None:
            when = self.done + phase.offset + phase.part
            D = self._ending.carried((t + phase.h).mid(), _sum(self.q, z[self._last]), settled, D.mid(), when, P)
        self.D = list(D.mid().entries())

    def _outward(self, phase: Phase, j: int, i: int, point: Balls, values: Balls) -> Balls:
        """How parameters and h change what term j gives at its point i: a row of P + 1 numbers for each."""
        term, (program, outer), P, changes, start = self._layout.terms[j], self._outer[j], self._P, [], 0
        known, when = outer(*point), self.done + phase.offset + phase.part * term.samples.tau[i]
        read: dict[str, Balls] = {}
        for name, size in term.inputs:
            read[name], start = point[start : start + size], start + size
        for out in term.gives:
            by_t, by_w = (known[program.output_slice(f"{out}_{name}")] for name in ("t", "params"))
            v = read["v"] if (out, "v") in term.slopes else []
            by_v = values[slice(*term.place[f"{out}_v"])] if v else []
            for k, (x, given) in enumerate(zip(by_t, values[slice(*term.place[out])], strict=True)):
                less = sum((a * b for a, b in zip(by_v[k * len(v) :], v, strict=False)), flint.arb(0))
                changes += [*by_w[k * P : (k + 1) * P], x * when + ((given if out == "f" else 0) - less) / self._h]
        return changes

    # Single steps, which depend on nothing that was solved before.

    def polynomials(self, starts: Mpfs) -> tuple[Mpfs, int]:
        """The increments z, (K, s, n), of single steps from rows (t, q, p), and how many could be solved."""
        result = np.empty((len(starts), self.s, self.n), dtype=object)
        with flint_bits(self.bits):
            for k, start in enumerate(starts):
                self._begin(start)
                found = self._alone(self.phases[0], start[0], mpf(self._h))
                if found.status != GOING_WELL:
                    return result, k
                result[k] = mpfs(found.z[: self._last.stop]).reshape(self.s, self.n)
        return result, len(starts)

    def single_steps(self, starts: Mpfs, lengths: Mpfs) -> Mpfs:
        """The states (q, p) after single steps of these lengths from rows (t, q, p); NaN where one is not solved.

        Their inputs are those of the run at their times. Afterwards the stepper can be used for nothing else.
        """
        result = np.full((len(starts), 2 * self.n), mpmath.nan, dtype=object)
        with flint_bits(self.bits):
            for k, (start, length) in enumerate(zip(starts, lengths, strict=True)):
                self._begin(start)
                for phase in self.phases:
                    phase.use(ball(length))
                    found = self._alone(phase, start[0], length)
                    if found.status != GOING_WELL:
                        break
                    self._move(found)
                else:
                    result[k] = mpfs(self.q + self.p)
        return result

    def _begin(self, start: Mpfs) -> None:
        self.q, self.p = balls(start[1 : 1 + self.n]), balls(start[1 + self.n :])

    def _alone(self, phase: Phase, t: Any, h: Any) -> Solution:
        """The step of this phase, in a step of length h from t."""
        self._layout.given, own = phase.driven.within(t, h), (ball(t) + phase.offset * ball(h)).mid()
        return self._ended(phase, own, self._followed(phase, own))[0]

    def counts(self) -> dict[str, Any]:
        names = ("floor", "continued")
        found = {"newton_iterations": self.iterations, "most_iterations": self.most}
        return found | {name: getattr(self, name) for name in names}


def _sum(x: Balls, y: Balls) -> Balls:
    return [(a + b).mid() for a, b in zip(x, y, strict=True)]
