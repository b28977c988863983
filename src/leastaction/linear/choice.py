"""Method and step of a linear system for a tolerance, by formulas: no trial runs are needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leastaction.linear.dispersion import excited

if TYPE_CHECKING:
    from leastaction.linear.system import Quadratic

FloatArray = NDArray[np.float64]

DEGREES = (2, 4, 6, 8, 12)  # s of the members PsNsQ2sGau that may be chosen
MOST_STEPS = 10**9  # a run with more steps is not chosen
SAFETY = 0.5  # of tol: the error that is aimed at, since the formulas leave out rounding


@dataclass(frozen=True)
class Choice:
    """A method and a step that are known to keep a tolerance.

    method   its name
    h        the length of the step, positive
    error    of the position at the end, relative to the size of the motion
    reason   how the error is known, for people
    """

    method: str
    h: float
    error: float
    reason: str


def chosen(system: Quadratic, q: FloatArray, p: FloatArray, t0: float, t_end: float, tol: float) -> Choice | None:
    """The cheapest member for a tolerance; None if no formula gives its error, or if none keeps the tolerance.

    The work of a step grows with its degree s.
    """
    if system.forced:
        return None
    there, length = excited(system, q, p, t_end - t0), abs(t_end - t0)
    found = [(s * steps, s, steps) for s in DEGREES if (steps := there.steps(s, SAFETY * tol, MOST_STEPS)) < MOST_STEPS]
    if not found:
        return None
    _, s, steps = min(found)
    reason = f"by the exact dispersion of {len(there.omega)} modes"
    if not there.exact:
        reason = f"by the exact dispersion at {len(there.omega)} frequencies, in the norm of M"
    return Choice(f"P{s}N{s}Q{2 * s}Gau", length / steps, there.error(s, steps), reason)
