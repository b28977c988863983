"""Newton's iteration with guard digits, the prediction it begins with, and continuation in h where it fails.

Increments are balls, as wide as rounding may have moved them (`equations`): an increment whose ball contains zero is no
increment. The others are counted in parts of their coordinate's step, so that units do not matter, and

    solved    if the increment is below the last digit that is asked for, or the next one, which shrinks quadratically,
              is below the last guard digit
    failed    if an increment is more than a quarter of the one before, where the root has to be the one that is nearby:
              else it is the only root near the prediction (Newton and Kantorovich; Deuflhard, *Newton Methods for
              Nonlinear Problems*, 2.1)

An iteration works with as many bits as it can get right, which the increments of this step, or of the last one, tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import flint

from leastaction.backends.status import BRANCH_ENDS, GOING_WELL, NOT_CONVERGED, NOT_FINITE, SINGULAR
from leastaction.flint.equations import Linearised
from leastaction.numbers.conversion import Balls, identity
from leastaction.numbers.rounding import GUARD_BITS

SMALLEST = 2.0**-20  # the part of h below which no step is tried


class Solution(NamedTuple):
    """How a step ended: its unknowns and impulse, if `status` is GOING_WELL.

    left       log₂ of the increment that would come next, in parts of the step
    first      log₂ of the first increment, and `curvature`, that of δ_{k+1}/δ_k²: how the next step will begin
    negative   whether the determinant of ∂R/∂z is negative
    reached    the largest part of h that could be solved
    """

    status: int
    iterations: int
    z: Balls
    impulse: Balls
    left: float
    first: float = 0.0
    curvature: float = 0.0
    negative: bool = False
    reached: float = 1.0


class Problem(NamedTuple):
    """Equations of a step: z ↦ Linearised, where the unknowns of each coordinate are in z, whether the root has to be
    the one nearby, and the smallest scale of each coordinate.
    """

    linearised: Callable[[Balls], Linearised]
    places: Sequence[range]
    checked: bool
    scale: Balls


def newton(problem: Problem, z: Balls, bits: int, first: float = 0.0, curvature: float = 0.0, near: float = 0.0) -> Solution:
    """Newton from the prediction z. `first` and `curvature` are expected; 2^near bounds the first increment."""
    scale, before, sizes = [max(a, b) for a, b in zip(problem.scale, lengths(problem.places, z))], flint.ctx.prec, []
    following = first
    try:
        for iteration in range(1, bits):
            working = flint.ctx.prec = int(min(bits, max(4 * GUARD_BITS, GUARD_BITS - curvature - 2 * following)))
            at = problem.linearised(z)
            N = len(at.residual)
            try:
                inverse = at.jacobian.mid().solve(identity(N), algorithm="approx").mid()
            except ZeroDivisionError:
                return Solution(SINGULAR, iteration, z, [], 0.0)
            change = inverse * flint.arb_mat(N, 1, at.residual)  # −dz
            flint.ctx.prec = bits
            increments = [flint.arb(0) if x.abs_lower().is_zero() else x.mid() for x in change.entries()]
            z = [(a - b).mid() for a, b in zip(z, increments, strict=True)]
            if not all(x.is_finite() for x in change.entries()):
                return Solution(NOT_FINITE, iteration, z, [], 0.0)
            size, woken = _size(problem, increments, [x.rad() for x in change.entries()], z, scale)
            if woken:  # what was predicted says nothing about this
                sizes, following = [], 0.0
                continue
            below = size < GUARD_BITS - bits
            if problem.checked and not below and size > (sizes[-1] - 2.0 if sizes else near):
                return Solution(NOT_CONVERGED, iteration, z, [], min(size, 0.0))
            if sizes:
                curvature = max(size - 2.0 * sizes[-1], float(-bits))
            following = (curvature if sizes else max(curvature, 0.0)) + 2.0 * size
            sizes.append(max(size, float(GUARD_BITS - working)))  # fewer bits do not tell smaller increments apart
            if (below or following < -bits) and working == bits:
                pushed = (at.slope * flint.arb_mat(N, 1, increments)).entries()
                impulse = [(a - b).mid() for a, b in zip(at.impulse, pushed, strict=True)]
                status = GOING_WELL if all(x.is_finite() for x in impulse) else NOT_FINITE
                flint.ctx.prec = 53
                negative = problem.checked and bool(at.jacobian.mid().det().mid() < 0)
                return Solution(status, iteration, z, impulse, following, sizes[0], curvature, negative)
        return Solution(NOT_CONVERGED, bits, z, [], 0.0)
    finally:
        flint.ctx.prec = before


def _size(problem: Problem, increments: Balls, noise: Balls, z: Balls, scale: Balls) -> tuple[float, bool]:
    """log₂ of the largest increment in parts of its coordinate's step, whose scale is updated; and whether a coordinate was
    set in motion, from less than a last digit of its step: then there is nothing yet to compare increments with.

    A coordinate of whose step rounding leaves less than the guard digits is at rest, and does not count.
    """
    result, woken = flint.arb(0), False
    for j, own in enumerate(problem.places):
        moved, before = largest([increments[i] for i in own]), scale[j]
        scale[j] = max(before, largest([z[i] for i in own]))
        known = scale[j] * 2.0**-GUARD_BITS
        if not moved.is_zero() and known > largest([noise[i] for i in own]):
            result, woken = max(result, (moved / scale[j]).mid()), woken or before <= known
    return log2(result), woken


def follow(problem: Callable[[float, Balls], Problem], uniform: Callable[[float], Balls], bits: int) -> Solution:
    """The root that is connected with the solution at h → 0, by steps x h that grow from x = 1/64 to 1.

    z is extrapolated in x from the steps before, and the growth of x is cut where the iteration does not contract at
    once, or where the determinant of ∂R/∂z changes its sign, as behind a fold, until the growth is so small that the
    motion itself is seen to pass there. Where the growth becomes next to nothing the branch ends.
    """
    x, growth, reached, spent = 1.0 / 64.0, 1.0, 0.0, 0
    solved: list[tuple[float, Balls]] = []
    negative, way = False, [flint.arb(0)] * 0
    while True:
        own = bits if x == 1.0 else min(bits, 4 * GUARD_BITS)
        at = problem(x, way)
        z = _extrapolated(solved, x) if solved else uniform(x)
        found = newton(at, z, own, near=-5.0 if solved else 0.0)
        spent += found.iterations
        if found.status == GOING_WELL and (not solved or found.negative == negative or growth < 5e-4):
            if x == 1.0:
                return found._replace(iterations=spent)
            negative, reached, growth = found.negative, x, min(2 * growth, 1.0)
            solved = [*solved, (x, found.z)][-4:]
            lengths_ = lengths(at.places, found.z)
            way = lengths_ if not way else [*map(max, way, lengths_)]
            x = min(1.0, x * (1.0 + growth))
        elif solved:
            growth = (min(growth, 1.0 / reached - 1.0) if x == 1.0 else growth) / 4
            x = min(1.0, reached * (1.0 + growth))
            if growth < 1e-4:
                return found._replace(status=BRANCH_ENDS, iterations=spent, reached=reached)
        else:
            x /= 8.0
            if x < SMALLEST:
                status = BRANCH_ENDS if found.status == GOING_WELL else found.status
                return found._replace(status=status, iterations=spent, reached=0.0)


def _extrapolated(solved: Sequence[tuple[float, Balls]], x: float) -> Balls:
    """The polynomial in x through the steps solved, and zero at x = 0."""
    places = [0.0, *(a for a, _ in solved)]
    weights = [
        math.prod((x - b) / (a - b) for b in places if b != a) for a in places[1:]
    ]
    return [sum((w * z for w, z in zip(weights, row)), flint.arb(0)).mid() for row in zip(*(z for _, z in solved))]


def lengths(places: Sequence[Iterable[int]], z: Balls) -> Balls:
    """The largest |z_i| of each set of places."""
    return [largest([z[i] for i in own]) for own in places]


def largest(values: Iterable[Any]) -> Any:
    """max |x|; NaN if one of the values is NaN."""
    result = flint.arb(0)
    for x in values:
        size = abs(x)
        if not size <= result:
            result = size
            if not size.is_finite():
                break
    return result


def log2(x: Any) -> float:
    """log₂ of a size, which may be 10⁻¹⁰⁰⁰; −∞ for zero."""
    if not x.is_finite():
        return math.inf
    mantissa, power = x.mid().man_exp()
    return math.log2(int(mantissa)) + int(power) if mantissa else -math.inf
