"""One step's equations, solved: Newton to the precision's floor.

The difference from float64 comes from the price of a digit: an iteration works with only as many bits as it can get
right. Two increments, of this step or of the last one, tell how many bits these are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import flint

from leastaction.backends.flint.sizes import lengths, log2
from leastaction.backends.flint.sweep import Equations, Linearised
from leastaction.backends.flint.verdict import Judge, Verdict
from leastaction.backends.status import GOING_WELL, NOT_CONVERGED, NOT_FINITE, SINGULAR
from leastaction.numbers.conversion import Balls
from leastaction.step.verdict import MOST_ITERATIONS

SPARE_BITS = 40  # bits of an iteration at reduced precision, beyond the bits that it is expected to get right
SLOW = 8  # an iteration that gains fewer bits may be at the floor, and gets all bits
AT_REST = 8  # a motion is larger than its rounding by half of the bits and so many more; a smaller one is rest


@dataclass(frozen=True)
class Pace:
    """How an iteration began, in log₂: its first increment δ₁ relative to the step, and δ₂/δ₁²."""

    first: float
    curvature: float


@dataclass(frozen=True, eq=False)
class Solution:
    """A step solved, or not: its unknowns and impulse, and how it went.

    good     the step is solved, and its root can be trusted
    left     the increment that would come next, relative to the step
    pace     how the iteration began; None if the iteration was over at once
    root     the equations where the Jacobian was taken last, if the step is solved
    still    the sizes below which a coordinate is at rest; empty where none is known to be at rest
    careful  all iterations took all bits, since the step failed with fewer
    """

    status: int
    iterations: int
    z: Balls
    impulse: Balls
    good: bool
    left: float
    pace: Pace | None
    still: Balls
    careful: bool = False
    root: Linearised | None = None

    @property
    def turned(self) -> bool:
        """Whether the determinant of the Jacobian is negative."""
        return self.root is not None and self.root.negative


@dataclass(frozen=True, eq=False)
class Problem:
    """A step to solve: its equations, the state it begins with, and how many bits are wanted; in continuation the
    longest step of each coordinate on the way.
    """

    sweep: Equations
    t: Any
    q: Balls
    p: Balls
    bits: int
    way: Balls = field(default_factory=list)


def solve_step(problem: Problem, z: Balls, reach: Balls | None, still: Balls, pace: Pace | None = None) -> Solution:
    """Newton from the prediction z; `reach` and `still` as a Judge asks for them.

    With the pace of a step like this one, iterations have as few bits as they need. Where that fails, `Sweep.noise`
    finds what rounding does to each coordinate, coordinates that move by little more than that are at rest from now on,
    and Newton begins again, with all bits.
    """
    solution, at = _newton(problem, z, reach, still, pace)
    if solution.good or at is None:
        return solution
    places = problem.sweep.places
    rest = flint.arb((1, AT_REST - problem.bits // 2))
    noise = [(x * rest).mid() for x in problem.sweep.noise(problem.p, at)]
    before = still or [flint.arb(0)] * len(noise)
    found = [max(a, b) if c < b else a for a, b, c in zip(before, noise, lengths(places, solution.z), strict=False)]
    if not any(a < b for a, b in zip(before, found, strict=True)):
        if pace is None:
            return solution
        found = still
    again, _ = _newton(problem, z, reach, found, None)
    return replace(again, iterations=again.iterations + solution.iterations, careful=pace is not None)


def _newton(
    problem: Problem, z: Balls, reach: Balls | None, still: Balls, pace: Pace | None
) -> tuple[Solution, Linearised | None]:
    """The solution, and the last linearisation if it was regular."""
    sweep, t, q, p, bits = problem.sweep, problem.t, problem.q, problem.p, problem.bits
    judge = Judge(sweep.places, z, bits, reach, still, sweep.layout.checked, problem.way)
    working = bits if pace is None else _enough(bits, pace.curvature + 2 * pace.first)
    sizes: list[float] = []
    at: Any = None
    keep = False
    before = flint.ctx.prec
    try:
        for iteration in range(1, MOST_ITERATIONS + 1):
            flint.ctx.prec = working
            if not keep:
                at = sweep.linearised(t, q, p, z)
                if at.inverse is None:
                    return Solution(SINGULAR, iteration, z, [], False, 1.0, None, still), None
            residual, impulse = sweep.residual(t, q, p, z) if keep else (at.residual, at.impulse)
            flint.ctx.prec = bits
            change = (at.inverse * flint.arb_mat(sweep.N, 1, residual)).mid()  # −dz
            increments = change.entries()
            z = [(a - b).mid() for a, b in zip(z, increments, strict=True)]
            found = judge(increments, z, not keep)
            if found.ended and not found.solved:
                break
            sizes.append(log2(found.size))
            if found.solved and working == bits:
                impulse = [(a - b).mid() for a, b in zip(impulse, (at.slope * change).entries(), strict=True)]
                finite = all(x.is_finite() for x in impulse)
                status = GOING_WELL if finite else NOT_FINITE
                good, left = finite and found.good, _float(found.left)
                return Solution(status, iteration, z, impulse, good, left, _pace(sizes), still, root=at), at
            keep = found.keep or found.solved
            working = bits if found.solved else max(working, _working(bits, found, sizes, pace))
        status, at = (NOT_CONVERGED, at) if found.size < math.inf else (NOT_FINITE, None)
        return Solution(status, iteration, z, [], False, _float(found.left), None, still), at
    finally:
        flint.ctx.prec = before


def _working(bits: int, found: Verdict, sizes: list[float], pace: Pace | None) -> int:
    """Bits for the next iteration, of increment δ: it leaves an error of δ · gain with a kept Jacobian, C δ² with a new
    one, C = δ_{k+1}/δ_k².
    """
    size = sizes[-1]
    if len(sizes) == 1:
        return bits if pace is None else _enough(bits, 3 * pace.curvature + 4 * size)
    following = log2(found.left)
    if following > size - SLOW:
        return bits
    return _enough(bits, following + (1 if found.keep else 2) * (following - size))


def _enough(bits: int, error: float) -> int:
    """Bits for a relative error whose log₂ is given."""
    return int(min(bits, max(0.0, -error) + SPARE_BITS)) if math.isfinite(error) else bits


def _pace(sizes: list[float]) -> Pace | None:
    return Pace(sizes[0], sizes[1] - 2 * sizes[0]) if len(sizes) > 1 and math.isfinite(sizes[1]) else None


def _float(x: Any) -> float:
    """A relative size as a float; infinite or zero where a float ends."""
    return math.exp2(power) if (power := log2(x)) < 1000 else math.inf
