"""One step's equations, solved: Newton to the precision's floor, and continuation in h when that fails.

The algorithm is that of `stepping.loops.newton`; what differs is due to the price of a digit: an
inverse Jacobian is kept for as long as that is cheaper than a new one, and an iteration works with only
as many bits as it can get right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import flint

from leastaction.precision.arithmetic import exponent, largest
from leastaction.precision.equations import Equations
from leastaction.stepping.layout import (
    ASTRAY,
    BRANCH_ENDS,
    GOING_WELL,
    NOT_CONVERGED,
    NOT_FINITE,
    ON_THE_BRANCH,
    SINGULAR,
)

MOST_ITERATIONS = 50
ROUGH_BITS = 128  # of continuation's steps on the way to h
SPARE_BITS = 40  # of an iteration at reduced precision, beyond those it is expected to get right


@dataclass
class Solution:
    """A step solved, or not: its increments and impulse, and how it went.

    left          the increment that would come next, relative to the step
    contraction   the second increment over the first, which tells whether the root belongs to the prediction
    first         log₂ of the first increment relative to the step: how good the prediction was
    leap          the size of that increment
    longest       the largest size z had
    """

    status: int
    iterations: int
    z: list[Any]
    impulse: list[Any]
    left: float
    contraction: float
    first: int
    leap: Any
    longest: Any


def solve_step(
    E: Equations,
    t: Any,
    q: list[Any],
    p: list[Any],
    z: list[Any],
    bits: int,
    reach: Any = None,
    first: int | None = None,
) -> Solution:
    """Newton from the prediction z, to the floor of this many bits.

    The contraction is ASTRAY if already the first increment is longer than `reach`, or the root lies
    farther away than twice that. `first` is what the solution of a step like this one said.
    """
    before = flint.ctx.prec
    try:
        solution = _iterate(E, t, q, p, z, bits, first)
    finally:
        flint.ctx.prec = before
    if reach is not None and (solution.longest > 2 * reach or solution.leap > reach):
        solution.contraction = ASTRAY
    return solution


def _iterate(E: Equations, t: Any, q: list[Any], p: list[Any], z: list[Any], bits: int, first: int | None) -> Solution:
    """J is (∂R/∂z)⁻¹ at a point that is as far from the root as the increment found there was large: `away`.

    An iteration with J gains the factor C · away, and two increments tell C. That says what each
    further iteration will gain with this J or with a new one.
    """
    N = E.N
    negligible = flint.arb((1, -bits - 10))
    acceptable = flint.arb((1, -(bits // 2)))
    scale = largest(z)
    before = away = flint.arb(0)
    contraction, predicted, leap = 0.0, first or 0, flint.arb(0)

    def report(status: int, impulse: list[Any], left: Any) -> Solution:
        return Solution(status, iteration, z, impulse, float(left), contraction, predicted, leap, scale)

    fresh, working = True, bits if first is None else min(bits, SPARE_BITS - 2 * first)
    J: Any = None
    slope: Any = None
    for iteration in range(1, MOST_ITERATIONS + 1):
        flint.ctx.prec = working
        if fresh:
            out, J, slope = E.linearised(t, q, p, z)
            if J is None:
                return report(SINGULAR, [], before)
        else:
            out = E.residual(t, q, p, z)
        flint.ctx.prec = bits
        dz = -(J * flint.arb_mat(N, 1, out[:N])).mid()
        increments = dz.entries()
        size = largest(increments)
        if not size.is_finite():
            return report(NOT_FINITE, [], size)
        z = [(a + b).mid() for a, b in zip(z, increments, strict=True)]
        scale = max(scale, largest(z))
        following, rate = flint.arb(0), flint.arb(1)
        done = bool(size <= negligible * scale)
        if iteration == 1:
            predicted, leap = exponent(size) - exponent(scale), size
        elif not done:
            rate = size / before
            if iteration == 2 and size > acceptable * scale:
                contraction = float(rate)
            at_floor = rate > 0.5 and size <= acceptable * scale
            constant = rate / away
            if fresh:
                rate = constant * size
            following = (size * rate).mid()
            done = bool(at_floor or (rate < 0.5 and following <= negligible * scale))
        if done and working == bits:
            change = (slope * dz).mid().entries()
            impulse = [(a + b).mid() for a, b in zip(out[N:], change, strict=True)]
            return report(GOING_WELL, impulse, following / scale if scale > 0 else 0.0)
        if fresh:
            away = size
        fresh, working = False, bits
        if iteration > 1 and not done:
            missing = exponent(following) - exponent(scale) + bits + 10
            gain, gain_of_new = -exponent(rate), -exponent(constant * following)
            fresh = gain <= 0 or ceil(missing / gain) > E.price + ceil(missing / max(1, gain_of_new))
            right = exponent(scale) - exponent(following) + (gain_of_new if fresh else gain)
            working = max(SPARE_BITS, min(bits, right + SPARE_BITS))
        before = size
    return report(NOT_CONVERGED, [], before / scale)


@dataclass
class Reached:
    """How far continuation came: the solution at the largest fraction of h, and that fraction."""

    solution: Solution
    status: int
    iterations: int
    fraction: float


def continue_from_rest(
    equations: Callable[[float], Equations],
    d: list[Any],
    t: Any,
    q: list[Any],
    p: list[Any],
    v: list[Any] | None,
    bits: int,
) -> Reached:
    """The root at step h that is connected with the solution at h → 0, by continuation in h.

    `equations` gives those of a fraction of h; v is the velocity at the start, or None if there is none.
    """
    nothing = Solution(SINGULAR, 0, [], [], 1.0, 0.0, 0, flint.arb(0), flint.arb(0))
    if v is None:
        return Reached(nothing, SINGULAR, 0, 0.0)
    reached, fraction, growth, total = 0.0, 1.0 / 64.0, 2.0, 0
    speed, expected = largest(v), flint.arb(0)
    last: list[Any] = []
    z: list[Any] | None = None
    while True:
        E = equations(fraction)
        if z is None:
            z = [(x * E.h * speed).mid() for x in d[1:] for speed in v]
        # The first is small enough to be judged by its contraction alone.
        reach = max(3 * expected, speed * abs(E.h)).mid() if reached > 0.0 else None
        # Only the last of them needs every digit.
        solution = solve_step(E, t, q, p, z, bits if fraction == 1.0 else min(bits, ROUGH_BITS), reach)
        total += solution.iterations
        if solution.status == GOING_WELL and solution.contraction <= ON_THE_BRANCH:
            reached, last = fraction, solution.z
            if fraction == 1.0:
                return Reached(solution, GOING_WELL, total, reached)
        elif reached > 0.0:
            fraction = reached
            growth = 1.0 + 0.5 * (growth - 1.0)
            if growth < 1.02:
                return Reached(solution, BRANCH_ENDS, total, reached)
        else:
            # Not even the smallest step was solved: start from a smaller one.
            fraction /= 8.0
            z = None
            if fraction < 1e-6:
                status = BRANCH_ENDS if solution.status == GOING_WELL else solution.status
                return Reached(solution, status, total, reached)
            continue
        larger = min(1.0, fraction * growth)
        z = prolonged(d, last, larger / fraction, len(q))
        expected = largest(last) * (larger / fraction)
        fraction = larger


def prolonged(d: list[Any], z: list[Any], factor: float, n: int) -> list[Any]:
    """The polynomial of z at factor · d_m, by Lagrange's formula (d_0 = 0 carries the value 0)."""
    result = []
    for m in range(1, len(d)):
        at = d[m] * factor
        weights = []
        for v in range(1, len(d)):
            weight = flint.arb(1)
            for i in range(len(d)):
                if i != v:
                    weight *= (at - d[i]) / (d[v] - d[i])
            weights.append(weight)
        result += [sum((w * z[v * n + j] for v, w in enumerate(weights)), flint.arb(0)).mid() for j in range(n)]
    return result
