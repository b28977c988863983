"""Newton's iteration with guard digits, and continuation in h where it fails.

Increments are balls, as wide as rounding may have made them (`equations`): one that contains zero is zero. The others
are counted in parts of their coordinate's step, so that units do not matter, and a step is

    solved    if the increment is below the last digit that is asked for, or the next one, which shrinks quadratically,
              is below the last guard digit
    failed    if the first increment is more than a quarter of the step, the second one more than 1/128 of it, or any
              other more than a quarter of the one before: else the root is the only one near the prediction (Newton and
              Kantorovich; Deuflhard, *Newton Methods for Nonlinear Problems*, 2.1). Where any root will do, this is
              not asked.

An iteration works with as many bits as it can get right, which the increments of this step, or of the last one, tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import flint

from leastaction.flint.equations import Linearised
from leastaction.flint.mechanics import solve
from leastaction.numbers.conversion import Balls, identity
from leastaction.numbers.rounding import GUARD_BITS
from leastaction.step.continuation import SECOND, TRUST, follow, weights
from leastaction.step.status import BRANCH_ENDS, GOING_WELL, NOT_CONVERGED, NOT_FINITE, SINGULAR


class Problem(NamedTuple):
    """Equations of a step: z ↦ Linearised, where the unknowns of each coordinate are in z, whether the root has to be
    the one nearby, and the smallest scale of each coordinate.
    """

    linearised: Callable[[Balls], Linearised]
    places: Sequence[range]
    checked: bool
    scale: Balls


class Solution(NamedTuple):
    """How a step ended: its unknowns and impulse, if `status` is GOING_WELL.

    left       the increment that would come next, or has come last where it is not solved, in parts of the step
    curvature  log₂ of δ_{k+1}/δ_k²
    negative   whether the determinant of ∂R/∂z is negative
    reached    the largest part of h that could be solved
    """

    status: int
    iterations: int
    z: Balls
    impulse: Balls
    left: float
    curvature: float = 0.0
    negative: bool = False
    reached: float = 1.0


def newton(
    problem: Problem, z: Balls, bits: int, first: float = 0.0, curvature: float = 0.0, reach: float = 0.0
) -> Solution:
    """Newton from the prediction z, where log₂ of the first increment and `curvature` are expected. The first increment
    may be a quarter of 2^reach, in parts of the step.
    """
    before, begun, size, following = flint.ctx.prec, False, reach, first
    scale = [max(a, b) for a, b in zip(problem.scale, lengths(problem.places, z), strict=True)]
    for iteration in range(1, bits):
        needed = max(4 * GUARD_BITS, GUARD_BITS - curvature - 2.0 * following)
        flint.ctx.prec = working = int(needed) if 2.0 * needed < bits else bits  # others save no time
        at = problem.linearised(z)
        inverse, N = solve(at.jacobian, identity(len(z))), len(z)
        change = [] if inverse is None else (inverse * flint.arb_mat(N, 1, at.residual)).entries()  # −dz
        flint.ctx.prec = bits
        if not change or not all(x.is_finite() for x in change):
            status = NOT_FINITE if change else SINGULAR
            break
        increments = [flint.arb(0) if x.abs_lower().is_zero() else x.mid() for x in change]
        z, last = [(a - b).mid() for a, b in zip(z, increments, strict=True)], size
        size, woken = _size(problem.places, increments, [x.rad() for x in change], z, scale)
        if woken:  # of this the prediction said nothing
            begun, size, following = False, math.inf, 0.0
            continue
        below = size < GUARD_BITS - bits
        if (
            problem.checked
            and not below
            and size > min(last + math.log2(TRUST), math.log2(SECOND) if begun else math.inf)
        ):
            status = NOT_CONVERGED
            break
        curvature = max(size - 2.0 * last, float(-bits)) if begun else max(curvature, 0.0)
        following = curvature + 2.0 * size
        if working == bits and (below or following < -bits):
            pushed = (at.slope * flint.arb_mat(N, 1, increments)).entries()
            impulse = [(a - b).mid() for a, b in zip(at.impulse, pushed, strict=True)]
            flint.ctx.prec = 53
            negative = problem.checked and bool(at.jacobian.mid().det().mid() < 0)
            flint.ctx.prec = before
            return Solution(GOING_WELL, iteration, z, impulse, 2.0 ** min(following, 0.0), curvature, negative)
        seen = float(GUARD_BITS - working)  # smaller increments are not told apart
        begun, size = size > seen, max(size, seen)
    else:
        status = NOT_CONVERGED
    flint.ctx.prec = before
    return Solution(status, iteration, z, [], 2.0 ** min(size, 0.0))


def _size(places: Any, increments: Balls, noise: Balls, z: Balls, scale: Balls) -> tuple[float, bool]:
    """log₂ of the largest increment in parts of its coordinate's step, whose scale is updated; and whether a coordinate
    was set in motion, from less than a last digit of its step: then there is nothing to compare its increment with.

    A coordinate of whose step rounding leaves less than the guard digits is at rest, and does not count.
    """
    result, woken = flint.arb(0), False
    for j, own in enumerate(places):
        moved, before = largest([increments[i] for i in own]), scale[j]
        scale[j] = max(before, largest([z[i] for i in own]))
        known = scale[j] * 2.0**-GUARD_BITS
        if not moved.is_zero() and known > largest([noise[i] for i in own]):
            result, woken = max(result, (moved / scale[j]).mid()), woken or before <= known
    return log2(result), woken


def followed(
    problem: Callable[[float, Balls], Problem], uniform: Callable[[float], Balls], n: int, bits: int
) -> Solution:
    """The root that is connected with the solution at h → 0 (`step.continuation`). The first increment of a step that
    is extrapolated may be 1/32 of it.
    """
    spent, way = [0], [flint.arb(0)] * n

    def attempt(x: float, solved: Any) -> Solution:
        if solved:
            way[:] = map(max, way, lengths(problem(x, way).places, solved[-1][1].z))
        own, reach = bits if x == 1.0 else min(bits, 4 * GUARD_BITS), -3.0 if solved else math.inf
        found = newton(problem(x, way), _extrapolated(solved, x) if solved else uniform(x), own, reach=reach)
        spent.append(found.iterations)
        return found

    found, solved = follow(attempt)
    reached = solved[-1][0] if solved else 0.0
    status = GOING_WELL if reached == 1.0 else BRANCH_ENDS if solved else found.status
    return found._replace(status=status, iterations=sum(spent), reached=reached)


def _extrapolated(solved: Any, x: float) -> Balls:
    """The polynomial in x through the steps solved, and zero at x = 0."""
    rows = zip(*(found.z for _, found in solved), strict=True)
    return [sum((w * z for w, z in zip(weights(solved, x), row, strict=True)), flint.arb(0)).mid() for row in rows]


def lengths(places: Sequence[Iterable[int]], z: Balls) -> Balls:
    """The largest |z_i| of each set of places."""
    return [largest([z[i] for i in own]) for own in places]


def largest(values: Iterable[Any]) -> Any:
    """max |x|."""
    return max(map(abs, values), default=flint.arb(0))


def log2(x: Any) -> float:
    """log₂ of a size, which may be 10⁻¹⁰⁰⁰; −∞ for zero."""
    mantissa, power = x.mid().man_exp()
    return math.log2(int(mantissa)) + int(power) if mantissa else -math.inf
