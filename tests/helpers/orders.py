"""Measured orders at 70 digits: of Kepler's motion against its solution, and of a spring without one."""

from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np

import leastaction as la
from leastaction import problems
from precise import SPRING, START, largest


def order(errors):
    with mpmath.workdps(20):
        return float(mpmath.log(errors[0] / errors[1], 2))


def kepler_order(method, steps):
    kepler = problems.get("kepler", eccentricity="0.3")
    start = kepler.exact(["1/3"], digits=70)
    errors = []
    q, p = kepler.exact(["4/3"], digits=70)
    for N in (steps, 2 * steps):
        path = la.integrate(
            kepler.system, method, start[0][0], start[1][0], h=Fraction(1, N), steps=N, digits=70, every=N
        )
        with mpmath.workdps(70):
            errors.append(max(largest(path.q[-1] - q[0]), largest(path.p[-1] - p[0])))
    return order(errors)


def spring_order(method, steps):
    ends = []
    for N in (steps, 2 * steps, 4 * steps):
        path = la.integrate(SPRING, method, h=Fraction(1, N), steps=N, digits=70, every=N, **START)
        ends.append(np.concatenate([path.q[-1], path.p[-1]]))
    with mpmath.workdps(70):
        return order([largest(a - b) for a, b in pairwise(ends)])
