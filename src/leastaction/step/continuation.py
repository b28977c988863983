"""The way to a root that the prediction does not lead to: by steps x h that grow from x = 0 to 1.

Each is predicted by the polynomial through the steps before. The growth of x is cut where an attempt fails, or where
the determinant of ∂R/∂z changes its sign, as it does behind a fold; unless the growth is so small that the motion is
seen to pass there, as one that rests where it is unstable. Where the growth becomes next to nothing, the branch ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from leastaction.step.status import GOING_WELL

TRUST = 0.25  # the rate of a first iteration near which there is one root (Newton and Kantorovich) …
SECOND = (
    1 / 128
)  # … and what its second increment may be, in parts of the step, where Newton's iteration is the last word
FIRST = 1 / 16  # the first x: the uniform motion predicts it
SMALLEST = 2.0**-13  # the growth at which a branch ends

Solved = Sequence[tuple[float, Any]]  # the latest steps: x, and what was found


def follow(attempt: Callable[[float, Solved], Any]) -> tuple[Any, Solved]:
    """The last attempt, and the latest steps solved: to the end if the last of these is at x = 1. `attempt` finds a
    step, with its status, and with `negative`, the sign of the determinant.
    """
    x, growth, solved = FIRST, 0.5, list[tuple[float, Any]]()
    while True:
        found = attempt(x, solved)
        turned = solved and found.negative != solved[-1][1].negative and growth >= 4 * SMALLEST
        if found.status == GOING_WELL and not turned:
            solved, growth = [*solved, (x, found)][-4:], min(2.0 * growth, 0.5)
        elif solved:
            growth = (1.0 / solved[-1][0] - 1.0 if x == 1.0 else growth) / 4.0
            x = solved[-1][0]
        else:
            growth, x = 0.5, x / 12.0
        if (solved and solved[-1][0] == 1.0) or min(x, growth) < SMALLEST:
            return found, solved
        x = min(1.0, x * (1.0 + growth))


def weights(solved: Solved, x: float) -> list[float]:
    """Those of the steps solved in the polynomial through them, and through zero at x = 0."""
    places = [0.0, *(a for a, _ in solved)]
    return [math.prod((x - b) / (a - b) for b in places if b != a) for a in places[1:]]
