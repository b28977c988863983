"""One step's equations, solved: Newton to the precision's floor, and continuation in h when that fails.

The algorithm is that of `stepping.loops.newton`; what differs is due to the price of a digit: an
inverse Jacobian is kept for as long as that is cheaper than a new one, and an iteration works with only
as many bits as it can get right.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import flint

from leastaction.precision.arithmetic import largest, log2
from leastaction.precision.equations import Equations
from leastaction.backends.status import BRANCH_ENDS, GOING_WELL, NOT_CONVERGED, NOT_FINITE, SINGULAR
from leastaction.step.continuation import FASTEST, SLOWEST
from leastaction.step.verdict import ON_THE_BRANCH

OF_A_CHORD, OF_A_LATER_CHORD, ASTRAY = 1.5, 0.5, 1.0

MOST_ITERATIONS = 50
ROUGH_BITS = 128  # of continuation's steps on the way to h
JACOBIAN = 1  # what a new one costs beyond a residual, in residuals (measured, double pendulum)
SPARE_BITS = 40  # of an iteration at reduced precision, beyond those it is expected to get right


@dataclass
class Solution:
    """A step solved, or not: its increments and impulse, and how it went.

    left          the increment that would come next, relative to the step
    contraction   the largest ratio of an increment to the one before, which tells whether the root is the predicted one
    first         log₂ of the first increment relative to the step: how good the prediction was
    longest       log₂ of the largest size z had
    """

    status: int
    iterations: int
    z: list[Any]
    impulse: list[Any]
    left: float
    contraction: float
    first: float
    longest: float


def solve_step(
    E: Equations,
    t: Any,
    q: list[Any],
    p: list[Any],
    z: list[Any],
    bits: int,
    reach: float = math.inf,
    first: float | None = None,
) -> Solution:
    """Newton from the prediction z, to the floor of this many bits.

    The contraction is ASTRAY if already the first increment is longer than `reach` (log₂), or the root lies
    farther away than twice that. `first` is what the solution of a step like this one said.
    """
    before = flint.ctx.prec
    try:
        solution = _iterate(E, t, q, p, z, bits, reach, first)
    finally:
        flint.ctx.prec = before
    if solution.longest > 1 + reach:
        solution.contraction = ASTRAY
    return solution


def _iterate(
    E: Equations, t: Any, q: list[Any], p: list[Any], z: list[Any], bits: int, reach: float, first: float | None
) -> Solution:
    """J is (∂R/∂z)⁻¹ at a point that is as far from the root as the increment found there was large: `away`.

    An iteration with J gains a factor in proportion to `away`, and two increments tell which: that says what
    further iterations will gain with this J or with a new one. All sizes and rates are held as their log₂.
    """
    N = E.N
    negligible, acceptable = -bits - 10.0, -bits / 2
    scale = log2(largest(z))
    before = away = leap = 0.0
    contraction = 0.0
    fresh, working = True, bits if first is None else int(min(bits, max(0, -2 * first) + SPARE_BITS))
    J: Any = None
    slope: Any = None

    def report(status: int, impulse: list[Any], left: float) -> Solution:
        return Solution(status, iteration, z, impulse, _power(left), contraction, leap, scale)

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
        move = largest(increments)
        if not move.is_finite():
            return report(NOT_FINITE, [], math.inf)
        z = [(a + b).mid() for a, b in zip(z, increments, strict=True)]
        size, scale = log2(move), max(scale, log2(largest(z)))
        following, gain, constant = -math.inf, 0.0, 0.0
        done = size <= negligible + scale
        if iteration == 1:
            leap = size - scale
            if size > reach:
                contraction = ASTRAY
        elif not done:
            rate = size - before
            if size > acceptable + scale:
                contraction = max(contraction, (OF_A_CHORD if iteration == 2 else OF_A_LATER_CHORD) * _power(rate))
            at_floor = rate > -1 and size <= acceptable + scale
            constant = rate - away
            gain = -(constant + size) if fresh else -rate
            following = size - gain
            done = at_floor or (gain > 1 and following <= negligible + scale)
        if done and working == bits:
            change = (slope * dz).mid().entries()
            impulse = [(a + b).mid() for a, b in zip(out[N:], change, strict=True)]
            return report(GOING_WELL, impulse, -math.inf if following == -math.inf else following - scale)
        if fresh:
            away = size
        fresh, working = False, bits
        if iteration > 1 and not done:
            missing = following - scale - negligible
            gain_of_new = max(1.0, -(constant + following))
            fresh = gain <= 1 or math.ceil(missing / gain) > JACOBIAN + math.ceil(missing / gain_of_new)
            right = scale - following + (gain_of_new if fresh else gain)
            working = int(min(bits, max(0.0, right) + SPARE_BITS))
        before = size
    return report(NOT_CONVERGED, [], before - scale)


def _power(exponent: float) -> float:
    """2^exponent; infinite or zero where a float ends."""
    return math.exp2(exponent) if exponent < 1000 else math.inf


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
    nothing = Solution(SINGULAR, 0, [], [], 1.0, 0.0, 0.0, 0.0)
    if v is None:
        return Reached(nothing, SINGULAR, 0, 0.0)
    reached, fraction, growth, total = 0.0, 1.0 / 64.0, FASTEST, 0
    speed, expected = log2(largest(v)), -math.inf
    last: list[Any] = []
    z: list[Any] | None = None
    while True:
        E = equations(fraction)
        if z is None:
            z = [(x * E.h * speed).mid() for x in d[1:] for speed in v]
        # The first is small enough to be judged by its contraction alone.
        reach = max(math.log2(3) + expected, speed + log2(E.h)) if reached > 0.0 else math.inf
        # Only the last of them needs every digit.
        solution = solve_step(E, t, q, p, z, bits if fraction == 1.0 else min(bits, ROUGH_BITS), reach)
        total += solution.iterations
        if solution.status == GOING_WELL and solution.contraction <= ON_THE_BRANCH:
            reached, last = fraction, solution.z
            if fraction == 1.0:
                return Reached(solution, GOING_WELL, total, reached)
            growth = min(1.5 * growth, FASTEST)
        elif reached > 0.0:
            fraction = reached
            growth *= 0.25
            if growth < SLOWEST:
                return Reached(solution, BRANCH_ENDS, total, reached)
        else:
            # Not even the smallest step was solved: start from a smaller one.
            fraction /= 8.0
            z = None
            if fraction < 1e-6:
                status = BRANCH_ENDS if solution.status == GOING_WELL else solution.status
                return Reached(solution, status, total, reached)
            continue
        larger = min(1.0, fraction * (1.0 + growth))
        z = prolonged(d, last, larger / fraction, len(q))
        expected = log2(largest(last)) + math.log2(larger / fraction)
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
