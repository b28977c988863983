"""Which derivatives of a step are zero by structure: the order of elimination, and how long written-out code gets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leastaction.engine.collocation import collocates
from leastaction.engine.mass import Mass
from leastaction.step.form import Step

# Instructions that are worth compiling: of an iteration with gradients, with derivatives, and of what a step does once.
LONGEST, LONGEST_NEWTON, LONGEST_ONCE = 8_000, 4_000, 16_000
FACTORING = 4.0  # factoring a mass is code that waits for itself: its instructions count so many times


def slopes_of(step: Step) -> NDArray[np.bool_]:
    """Which entries of the derivatives of the node are not all zero, (n, n)."""
    return np.logical_or.reduce([_entries(step, name) for name in ("f_q", "f_v", "m_q", "m_v")])


def _entries(step: Step, block: str) -> NDArray[np.bool_]:
    (node,) = (term for term in step.terms if "m_v" in dict(term.slopes.outputs))
    code = node.slopes.code
    return np.array([code[k] != ("const", 0.0) for k in node.slopes.output(block)]).reshape(step.n, step.n)


def order_of(step: Step) -> tuple[list[int], list[int]]:
    """The equations and the unknowns in an order in which they can be eliminated without pivoting, for small h: one
    coordinate after the other, so that little is filled in where few of them depend on each other; multipliers last.
    """
    n, s = step.n, step.s
    zero = ~_entries(step, "m_v")
    rows = list(range(n))
    if zero.diagonal().any():
        from scipy.optimize import linear_sum_assignment

        rows = [int(row) for row in linear_sum_assignment(zero.T)[1]]
    multipliers = list(range(s * n, s * (n + step.multipliers)))
    equations, unknowns = ([v * n + j for j in order for v in range(s)] for order in (rows, range(n)))
    return equations + multipliers, unknowns + multipliers


def filled(entries: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], int]:
    """Where L and U of a matrix with these entries have some, and how many multiplications the elimination takes."""
    found, length = entries.copy(), 0
    for k in range(len(found)):
        below, right = found[k + 1 :, k], found[k, k + 1 :]
        length += int(right.sum()) * (1 + int(below.sum()))
        found[k + 1 :, k + 1 :] |= np.outer(below, right)
    return found, length


def elimination_length(step: Step) -> int:
    """How many multiplications it takes to eliminate the Jacobian of a step without multipliers in that order."""
    equations, unknowns = order_of(step)
    return filled(np.tile(slopes_of(step), (step.s, step.s))[np.ix_(equations, unknowns)])[1]


def newton_length(step: Step) -> int:
    """About how many instructions a whole Newton step without multipliers has."""
    nodes = sum(len(step.samples(term).tau) * len(term.slopes.code) for term in step.terms)
    return nodes + 3 * elimination_length(step)


def chord_length(step: Step, mass: Mass, lanes: int = 1) -> float:
    """About how many instructions an iteration without derivatives of a whole step has, and factoring the mass, `lanes`
    points at once.
    """
    n, s = step.n, step.s
    total = n * s * s + (0 if mass.diagonal else n * n * s)
    for term in step.terms:
        r = len(step.samples(term).tau)
        total += r * len(term.program.code) + (2 if mass.separable else 4) * n * r * s
    if not mass.separable and len(step.terms) == 1 and collocates(step.method):
        total += 3 * n * n * s * (1 if mass.constant else n)
    return total / lanes + (0 if mass.diagonal or mass.fixed else FACTORING * n**3 / 3)
