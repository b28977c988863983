"""A problem's published state beside ours: where they differ, and what g, ġ and the energy say of each.

A reference value can be wrong in its last digits. Our state is the end of a run whose steps are halved until two runs
agree. Where these two differ from each other by less than from the reference, the reference is wrong. The constraints,
which hold exactly, and the energy, which a motion without forces keeps, test both states once more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leastaction.errors import StepFailed, measuring
from leastaction.integrate import integrate
from leastaction.numbers.arrays import FloatArray
from leastaction.problems.problem import Problem
from leastaction.results.looks import look
from leastaction.systems.projection import look_at_constraints

METHOD = "P8N8Q16Gau"
FEWEST, MOST = 250, 64_000  # steps
AGREE = 1e-13  # of the largest coordinate, or velocity


@dataclass(frozen=True, eq=False)
class Comparison:
    """A published state and ours at the same time.

    checks      what holds of the exact motion, and by how much each state misses it: name, published, ours
    """

    problem: Problem
    t: float
    steps: int
    names: tuple[str, ...]  # of the coordinates, and of their velocities
    published: FloatArray  # q and v, (2n,)
    ours: FloatArray  # by `steps` steps of METHOD
    half: FloatArray  # by half as many
    checks: tuple[tuple[str, float, float], ...]


def compare(problem: Problem) -> Comparison:
    """The problem's reference beside a run of ours."""
    if problem.reference is None:
        raise ValueError(f"{problem.name} has no published state to compare with")
    t, q, p = problem.reference
    system, n = problem.system, problem.system.n
    published = np.concatenate([q, system.velocity(q, p, t)])
    steps, before = FEWEST, _end(problem, t, FEWEST)
    while True:
        steps *= 2
        now = _end(problem, t, steps)
        size = np.repeat([np.abs(now[:n]).max(), np.abs(now[n:]).max()], n)
        if (np.abs(now - before) <= AGREE * size).all() or 2 * steps > MOST:
            break
        before = now
    if np.isnan(now).any():
        raise ValueError(f"{MOST} steps of {METHOD} are too few for {problem.name}: its bodies come too close")
    seen = look(system)
    names = tuple(seen.name(j) for j in range(n))
    names += tuple(f"d{name}/dt" for name in names)
    return Comparison(problem, t, steps, names, published, now, before, _checks(problem, t, published, now))


def _end(problem: Problem, t: float, steps: int) -> FloatArray:
    """q and v at the time of the reference; NaN where steps are too long to come there."""
    try:
        with measuring():  # shorter steps are to come
            path = integrate(problem.system, METHOD, problem.q0, problem.p0, h=t / steps, t_end=t, every=steps)
    except StepFailed:
        return np.full(2 * problem.system.n, np.nan)
    return np.concatenate([path.q[-1], path.velocity()[-1]])


def _checks(problem: Problem, t: float, *states: FloatArray) -> tuple[tuple[str, float, float], ...]:
    system, n = problem.system, problem.system.n
    params = system.values()
    found: list[tuple[str, list[float]]] = []
    if system.m:
        there = [look_at_constraints(system, t, x[None, :n], x[None, n:], params[None]) for x in states]
        found.append(("largest |g|", [float(np.abs(one.g).max()) for one in there]))
        found.append(("largest |dg/dt|", [float(np.abs(one.c).max()) for one in there]))
    if not system.depends_on_time and not system.forced:
        E0 = float(system.energy(problem.q0, problem.p0))
        energies = [float(system.energy(x[:n], system.momentum(x[:n], x[n:]))) for x in states]
        found.append(("energy - that of the start", [E - E0 for E in energies]))
    return tuple((name, *values) for name, values in found)  # type: ignore[misc]
