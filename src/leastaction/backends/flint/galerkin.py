"""A member of the PsNrQu family at work, at any precision: predict, solve, or continue from h = 0; add, store.

Compensated sums are not needed here: the guard bits hold what such sums would save.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import flint
import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.backends.flint.coarse import is_coarse
from leastaction.backends.flint.constraints import Ending, Settled
from leastaction.backends.flint.continuation import ROUGH_BITS, Beginning, Found, follow, prolong
from leastaction.backends.flint.driven import Driven
from leastaction.backends.flint.iteration import Pace, Problem, Solution, solve_step
from leastaction.backends.flint.mechanics import Mechanics
from leastaction.backends.flint.prediction import Predictor
from leastaction.backends.flint.run import Run
from leastaction.backends.flint.sizes import lengths
from leastaction.backends.flint.sweep import Layout, Linearised, Sweep
from leastaction.backends.rows import Row
from leastaction.backends.status import GOING_WELL, SINGULAR, Failure
from leastaction.backends.stepper import Start
from leastaction.numbers.conversion import Balls, ball, balls, mpf, mpfs
from leastaction.numbers.precision import flint_bits, mpmath_bits
from leastaction.step.continuation import PARTS
from leastaction.step.form import Step
from leastaction.step.verdict import FORGETTING, GOING, NEARBY, REACH

Mpfs = NDArray[np.object_]

NOTHING = 2.0**-40  # the fraction of h that stands for h → 0


class GalerkinStepper(Run):
    """Runs of a Step from a start."""

    INTEGERS = ("steps", "iterations", "most", "continued", "careful", "predicted", "still")

    def __init__(
        self,
        mechanics: Mechanics,
        step: Step,
        start: Start,
        row: Row | None = None,
        phase: tuple[Any, Any] = (0, 1),
    ) -> None:
        """`phase`, in a composition: where in a whole step these steps begin, and how long they are, in parts of h."""
        self.row = row or Row.whole(step.n)
        self.mechanics, self.n, self.s, self.bits = mechanics, step.n, step.s, mechanics.bits
        digits = round(self.bits * 0.302) + 2
        with flint_bits(self.bits):
            self._offset, self._part = (ball(mpmath.mpf(x)) for x in phase)
            self._period = ball(start.h)
            self._t = (ball(start.t) + self._offset * self._period).mid()
            self._h = (self._part * self._period).mid()
            self._q, self._p, self._v = balls(start.q), balls(start.p), balls(start.v)
            self._layout = Layout(step, balls(start.params), digits)
            table = step.method.exact_table(digits)
            self._driven = Driven(mechanics.system, start, self._offset_points(phase, table["c"]))
            self._d, self._slope = balls(table["d"]), balls(table["slope"])[1:]
            self._sweeps = lru_cache(maxsize=64)(self._at_fraction)
            self._predictor = Predictor(step.method, self.n, digits)
            nothing = [flint.arb(0)] * self.n
            self._ending = None
            if step.end is not None:
                self._ending = Ending(step.end, step.n, step.multipliers, balls(start.params), self.bits)
        self._z: Balls | None = None  # predicted; the first step is found by continuation
        self._longest = self._ahead = nothing  # lengths of the latest steps, and of h v
        self._still: Balls = []  # sizes below which coordinates are at rest, where such sizes had to be found
        self._pace: Pace | None = None
        self._careful = False  # whether iterations work with all bits
        self._negative: bool | None = None  # whether the determinant is negative at h → 0, once that is known
        self._iterations = self._most = self._continued = 0
        self._floor = 0.0

    def _offset_points(self, phase: tuple[Any, Any], c: Any) -> Mpfs:
        """The nodes, in units of whole steps."""
        with mpmath_bits(self.bits):
            offset, part = map(mpmath.mpf, phase)
            return np.array([offset + part * x for x in c], dtype=object)

    def _at_fraction(self, fraction: float) -> Sweep:
        return Sweep(self._layout, self._h if fraction == 1.0 else (self._h * fraction).mid())

    def step(self) -> Failure | None:
        """Predict, or follow from h = 0; solve; go to the end of the step."""
        t = (self._t + self.done * self._period).mid()
        self._layout.given = self._driven.step(self.done)
        if self._z is None:
            found = self._begin(t)
        else:
            reach = [max((REACH * a).mid(), (GOING * b).mid()) for a, b in zip(self._longest, self._ahead, strict=True)]
            found = self._solve(t, self._z, reach, None if self._careful else self._pace)
        found = self._ended(t, found)
        self._iterations += found.iterations
        self._most = max(self._most, found.iterations)
        if found.status != GOING_WELL or found.solution is None:
            left = 1.0 if found.solution is None else found.solution.left
            return Failure(found.status, left, found.iterations, found.fraction)
        self._take(t, found.solution)
        return None

    def _begin(self, t: Any) -> Found:
        """Solve a step without a prediction: by continuation; where any root will do, first from the velocity."""
        v = None if self._layout.checked else self.mechanics.invert(t, self._q, self._p, self._v)
        return self._continue(t) if v is None else self._solve(t, self._uniform(v, self._sweeps(1.0)), None)

    def now(self) -> Balls:
        return self._q + self._p

    def _take(self, t: Any, solution: Solution) -> None:
        """Go to the end of the step that began at t, and predict the next."""
        n, own, z = self.n, self.s * self.n, solution.z
        self._floor = max(self._floor, solution.left)
        self._pace, self._still = solution.pace, solution.still
        self._careful = self._careful or solution.careful
        self._q = [(a + b).mid() for a, b in zip(self._q, z[own - n : own], strict=True)]
        self._p = [(a + b).mid() for a, b in zip(self._p, solution.impulse, strict=True)]
        length = self._lengths(z)
        if self._still:
            length = [*map(max, length, self._still)]
        self._longest = [max(a, (FORGETTING * b).mid()) for a, b in zip(length, self._longest, strict=True)]
        self._ahead = [abs(x) for x in self._end_speeds(z)]
        right = 0.0 if self._pace is None else -self._pace.first
        self._z = self._predictor.after(z, self._longest, right)

    def _ended(self, t: Any, found: Found) -> Found:
        """The step that was found, with its impulse brought to the constraints if there are any."""
        if self._ending is None or found.status != GOING_WELL or found.solution is None:
            return found
        settled = self._settled(t, found.solution.z, found.solution.impulse)
        if settled is None:
            return replace(found, status=SINGULAR)
        impulse = [(a + b).mid() for a, b in zip(found.solution.impulse, settled.push, strict=True)]
        return replace(found, solution=replace(found.solution, impulse=impulse))

    def _settled(self, t: Any, z: Balls, impulse: Balls) -> Settled | None:
        """The End of the step from the state at t with this z and impulse."""
        assert self._ending is not None
        n, own = self.n, self.s * self.n
        q = [(a + b).mid() for a, b in zip(self._q, z[own - n : own], strict=True)]
        p = [(a + b).mid() for a, b in zip(self._p, impulse, strict=True)]
        return self._ending.settle((t + self._h).mid(), q, p, [(x / self._h).mid() for x in self._end_speeds(z)])

    def _end_speeds(self, z: Balls) -> Balls:
        """h times the velocity with which the polynomial ends."""
        n, own = self.n, self.s * self.n
        return [
            sum((a * b for a, b in zip(self._slope, z[j:own:n], strict=True)), flint.arb(0)).mid() for j in range(n)
        ]

    def _lengths(self, z: Balls) -> Balls:
        return lengths(self._layout.places[: self.n], z)

    def _solve(self, t: Any, z: Balls, reach: Balls | None, pace: Pace | None = None) -> Found:
        """The step from the state at t, predicted by z."""
        problem = Problem(self._sweeps(1.0), t, self._q, self._p, self.bits)
        solution = solve_step(problem, z, reach, self._still, pace)
        spent, root = solution.iterations, solution.root
        if solution.good and root is not None:
            coarse = self._layout.branching and is_coarse(problem.sweep, root)
            if not coarse and (self._layout.branching or not self._turned(t, root, z)):
                return Found(solution, GOING_WELL, spent, 1.0)
            if coarse and reach:
                linear, more = self._linearly(t, reach)
                spent += more
                if linear is not None:
                    return Found(linear, GOING_WELL, spent, 1.0)
        found = self._begin(t) if reach else self._continue(t)
        return Found(found.solution, found.status, found.iterations + spent, found.fraction)

    def _turned(self, t: Any, at: Linearised, z: Balls) -> bool:
        """Whether a determinant has another sign than at h → 0, where it has the sign of det(L_vv)^s; not asked with
        multipliers.
        """
        if not self._layout.checked or self._layout.sizes[1]:
            return False
        if self._negative is None:
            z = [(x * NOTHING).mid() for x in z]  # with the same velocities
            self._negative = self._at_fraction(NOTHING).linearised(t, self._q, self._p, z, inverted=False).negative
        return at.negative != self._negative

    def _linearly(self, t: Any, reach: Balls) -> tuple[Solution | None, int]:
        """The step from that of the equations linearised about the uniform motion, if this predicts the step and PARTS
        of it well enough (`step.prediction`); and the iterations spent.
        """
        v, solution, spent = self.mechanics.invert(t, self._q, self._p, self._v), None, 0
        if v is None:
            return None, 0
        for part in PARTS:
            sweep = self._sweeps(part)
            z, spent = self._uniform(v, sweep), spent + 1
            at = sweep.linearised(t, self._q, self._p, z)
            if at.inverse is None or self._turned(t, at, z):
                return None, spent
            change = (at.inverse * flint.arb_mat(sweep.N, 1, at.residual)).mid().entries()  # −dz
            if any(a > part * b for a, b in zip(self._lengths(change), reach, strict=True)):
                return None, spent
            z = [(a - b).mid() for a, b in zip(z, change, strict=True)]
            way = [(part * x / REACH).mid() for x in reach]  # a coordinate that turns back may have next to no step
            bits = self.bits if part == 1.0 else min(self.bits, ROUGH_BITS)
            solution = solve_step(Problem(sweep, t, self._q, self._p, bits, way), z, reach, self._still)
            spent += solution.iterations
            root = solution.root
            if not solution.good or root is None or self._turned(t, root, z):
                return None, spent
            missed = self._lengths([(a - b).mid() for a, b in zip(solution.z, z, strict=True)])
            sizes = zip(missed, self._lengths(solution.z), way, strict=True)
            if any(a > NEARBY * max(b, c) for a, b, c in sizes):
                return None, spent
        return solution, spent

    def _continue(self, t: Any) -> Found:
        """The step from the state at t, followed from h = 0."""
        self._continued += self._z is not None
        v = self.mechanics.invert(t, self._q, self._p, self._v)
        if v is None:
            return Found(None, SINGULAR, 0, 0.0)
        beginning = Beginning(
            lambda fraction, bits, way: Problem(self._sweeps(fraction), t, self._q, self._p, bits, way),
            lambda sweep: self._uniform(v, sweep),
            self._prolonged,
            v,
        )
        return follow(beginning, self.bits, self._still)

    def _uniform(self, v: Balls, sweep: Sweep) -> Balls:
        """z of a uniform motion; the multipliers are zero."""
        z = [(d * sweep.h * speed).mid() for d in self._d[1:] for speed in v]
        return z + [flint.arb(0)] * (sweep.N - len(z))

    def _prolonged(self, sweep: Sweep, z: Balls, ratio: float) -> Balls:
        """The polynomial of z, prolonged; multipliers stay."""
        own = self.s * self.n
        return prolong(self._d, z[:own], self.n, ratio) + z[own:]

    def polynomials(self, starts: Mpfs) -> tuple[Mpfs, int]:
        """The increments z, (K, s, n), of single steps from rows (t, q, p), and how many could be solved."""
        n, s = self.n, self.s
        result = np.empty((len(starts), s, n), dtype=object)
        with flint_bits(self.bits):
            for k, start in enumerate(starts):
                self._layout.given = self._driven.within(start[0], mpf(self._period))
                solution = self._single(start)
                if solution is None:
                    return result, k
                result[k] = mpfs(solution.z[: s * n]).reshape(s, n)
        return result, len(starts)

    def single_steps(self, starts: Mpfs, lengths: Mpfs, given: Sequence[Balls] | None = None) -> Mpfs:
        """The states (q, p) after single steps of these lengths from rows (t, q, p); NaN where one is not solved.

        Their inputs are those of the run at their times, or the inputs `given`. Afterwards the stepper can be used for
        nothing else.
        """
        n, own = self.n, self.s * self.n
        result = np.full((len(starts), 2 * n), mpmath.nan, dtype=object)
        with flint_bits(self.bits):
            for k, (start, length) in enumerate(zip(starts, lengths, strict=True)):
                self._h = ball(length)
                self._sweeps.cache_clear()
                self._layout.given = self._driven.within(start[0], length) if given is None else given[k]
                solution = self._single(start)
                if solution is not None:
                    moved = [*solution.z[own - n : own], *solution.impulse]
                    result[k] = mpfs([(a + b).mid() for a, b in zip(self._q + self._p, moved, strict=True)])
        return result

    def _single(self, start: Mpfs) -> Solution | None:
        """The step from (t, q, p), predicted by its velocity; the result does not depend on what was solved before."""
        n = self.n
        self._q, self._p, time = balls(start[1 : 1 + n]), balls(start[1 + n :]), ball(start[0])
        v = self.mechanics.invert(time, self._q, self._p, [flint.arb(0)] * n)
        v = v or self.mechanics.invert(time, self._q, self._p, self._p)
        if v is None:
            return None
        self._v = v
        z = self._uniform(v, self._sweeps(1.0))
        found = self._ended(time, self._solve(time, z, [REACH * x for x in self._lengths(z)]))
        return found.solution if found.status == GOING_WELL else None

    def saved(self) -> dict[str, NDArray[Any]]:
        memory, none = self._predictor, [flint.arb(0)] * sum(map(len, self._layout.places))
        pace = (np.nan, np.nan) if self._pace is None else (self._pace.first, self._pace.curvature)
        numbers = {"q": self._q, "p": self._p, "v": self._v, "z": self._z or none}
        numbers |= {"longest": self._longest, "ahead": self._ahead, "record": memory.record}
        numbers |= {"still": self._still or none[: self.n]}
        numbers |= {"started": [memory.started], "memory": [x for own in memory.memory for x in own]}
        counts = (self.done, self._iterations, self._most, self._continued, self._careful)
        given = (self._z is not None, bool(self._still))
        return {name: mpfs(values) for name, values in numbers.items()} | {
            "integers": np.array((*counts, *given), dtype=np.int64),
            "reals": np.array((self._floor, *pace)),
        }

    def load(self, saved: Mapping[str, NDArray[Any]]) -> None:
        self._q, self._p, self._v, z = (balls(saved[name]) for name in ("q", "p", "v", "z"))
        self._longest, self._ahead, still = (balls(saved[name]) for name in ("longest", "ahead", "still"))
        self.done, self._iterations, self._most, self._continued, *given = saved["integers"].tolist()
        self._careful, predicted, known = map(bool, given)
        self._z, self._still = z if predicted else None, still if known else []
        memory, kept = self._predictor, balls(saved["memory"])
        memory.record, (memory.started,) = balls(saved["record"]), balls(saved["started"])
        size = len(kept) // self.n
        memory.memory = [kept[j * size : (j + 1) * size] for j in range(self.n)]
        self._floor, *pace = saved["reals"].tolist()
        self._pace = None if np.isnan(pace[0]) else Pace(*pace)

    def counts(self) -> dict[str, Any]:
        return {
            "newton_iterations": self._iterations,
            "most_iterations": self._most,
            "floor": self._floor,
            "continued": self._continued,
        }
