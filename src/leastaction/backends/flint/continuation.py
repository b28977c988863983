"""A step followed from h = 0 on flint numbers: the rule is `step.continuation`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import flint

from leastaction.backends.flint.iteration import Problem, Solution, solve_step
from leastaction.backends.flint.sizes import lengths
from leastaction.backends.status import BRANCH_ENDS, GOING_WELL
from leastaction.numbers.conversion import Balls
from leastaction.step.continuation import ARRIVED, ENDED, FASTEST, FROM_REST, PROLONG, SMALLEST, again, onward, trusted
from leastaction.step.verdict import REACH, WAKING

ROUGH_BITS = 128  # bits of continuation's steps on the way to h
ANYWHERE = flint.arb((1, 10**6))  # the reach of a coordinate that has not moved yet: others set it in motion


@dataclass(frozen=True, eq=False)
class Found:
    """A step's solution, or why there is none: the status, all iterations spent, the largest fraction of h solved."""

    solution: Solution | None
    status: int
    iterations: int
    fraction: float


@dataclass(frozen=True, eq=False)
class Beginning:
    """Where a step is followed from, and how.

    problem    a fraction of h, bits and the longest steps on the way ↦ the step to solve
    uniform    equations at a fraction of h ↦ z of the uniform motion, with the velocity v
    prolonged  equations, z of a shorter step and by what factor that was shorter ↦ z of its polynomial, prolonged
    """

    problem: Callable[[float, int, Balls], Problem]
    uniform: Callable[[Any], Balls]
    prolonged: Callable[[Any, Balls, float], Balls]
    v: Balls


def follow(beginning: Beginning, bits: int, at_rest: Balls) -> Found:
    """The step with these bits, followed from h = 0; `at_rest` as a Judge asks for it (`still`)."""
    action, fraction, reached, growth, before = FROM_REST, SMALLEST, 0.0, FASTEST, 0.0
    last: Balls = []
    miss: Balls = []
    way = [flint.arb(0)] * len(beginning.v)
    rough, spent, turned = at_rest, 0, False
    while True:
        # Only the last of these steps needs every digit.
        own, still = (bits, at_rest) if fraction == 1.0 else (min(bits, ROUGH_BITS), rough)
        problem = beginning.problem(fraction, own, way)
        sweep = problem.sweep
        # A step that begins from rest is so small that its contraction alone can judge it.
        reach = None
        if action == FROM_REST:
            z = prolonged = beginning.uniform(sweep)
        else:
            ratio, factor = fraction / reached, again(fraction, reached, before)
            prolonged = beginning.prolonged(sweep, last, ratio)
            z = [(a + factor * b).mid() for a, b in zip(prolonged, miss, strict=True)]
            ahead = zip(way, beginning.v, strict=True)
            reach = [max((REACH * ratio * length).mid(), abs((speed * sweep.h).mid())) for length, speed in ahead]
            reach = [x if x > 0 else ANYWHERE for x in reach]
        solution = solve_step(problem, z, reach, still)
        spent += solution.iterations
        good = solution.good
        if good and action == PROLONG and sweep.layout.checked:
            missed = _missed([(a - b).mid() for a, b in zip(solution.z, z, strict=True)], solution, problem)
            good = trusted(missed, solution.turned != turned, fraction / reached - 1.0)
        if good:
            last, rough, before, turned = solution.z, solution.still, reached, solution.turned
            miss = [(a - b).mid() for a, b in zip(last, prolonged, strict=True)]
            coordinates = sum(map(len, sweep.places))
            miss[coordinates:] = [flint.arb(0)] * (sweep.N - coordinates)  # multipliers stay
            way = [*map(max, way, lengths(sweep.places, last))]
        action, fraction, reached, growth = onward(good, fraction, reached, growth)
        if action == ARRIVED:
            return Found(solution, GOING_WELL, spent, 1.0)
        if action == ENDED:
            ends = reached > 0.0 or solution.status == GOING_WELL
            return Found(solution, BRANCH_ENDS if ends else solution.status, spent, reached)


def _missed(gap: Balls, solution: Solution, problem: Problem) -> float:
    """The largest part of a coordinate's scale by which a prediction missed a root: of a motion, not of rest, and not
    of a coordinate that others have just set in motion.
    """
    places, way = problem.sweep.places, problem.way
    still = solution.still or [flint.arb(0)] * len(way)
    sizes = zip(lengths(places, gap), lengths(places, solution.z), way, still, strict=True)
    return max(float(a / max(b, c, d)) if a > d and b <= WAKING * c else 0.0 for a, b, c, d in sizes)


def prolong(d: Balls, z: Balls, n: int, ratio: float) -> Balls:
    """The polynomial with values z at d_1 … d_s, and 0 at d_0 = 0, at ratio · d_μ, by Lagrange's formula."""
    s, result = len(d) - 1, []
    for at in [(x * ratio).mid() for x in d[1:]]:
        basis = []
        for v in range(1, s + 1):
            weight = flint.arb(1)
            for i in range(s + 1):
                if i != v:
                    weight *= (at - d[i]) / (d[v] - d[i])
            basis.append(weight)
        columns = (z[j::n] for j in range(n))
        result += [sum((a * x for a, x in zip(basis, column, strict=True)), flint.arb(0)).mid() for column in columns]
    return result
