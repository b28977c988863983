"""The members that may be chosen, and which of them needs the least work for a tolerance.

Where a motion is analytic, the error of PsNsQ2sGau after the time T is about

    e = ωT (hω)^(2s),

with the same ω for all s: on 20 problems of the catalogue, the step that this predicts for P6, P8 and P12 from one
error of P4 is right within a factor 1.7. One measured error gives ω, and ω the step of every member. A step takes
about 2 + 28 hω iterations, and hω stays below 0.4: the equations of longer steps may have several roots.
"""

from __future__ import annotations

from collections.abc import Callable

from leastaction.methods import method as method_named
from leastaction.tolerance.constants import CODE

DEGREES = (2, 4, 6, 8, 12)
START = 4  # the degree that is tried first: for short runs all cost alike, and code is compiled for one member


def member(s: int) -> str:
    """The name of the member of degree s."""
    return f"P{s}N{s}Q{2 * s}Gau"


def degree(method: str) -> int:
    """The degree of a member."""
    return int(getattr(method_named(method), "s", 1))


def cheaper(
    s: int, h: float, error: float, wanted: float, length: float, runs: float, iteration: Callable[[int], float]
) -> tuple[int, float]:
    """Degree and step for the error that is wanted, with the least work; s stays unless another degree pays its code.

    error       of the member of degree s with steps h, at the end of a run of this length
    runs        how many times as long as such a run all runs are that are still to come
    iteration   instructions of one iteration of a step, by the degree
    """
    omega = (error / (length * h ** (2 * s))) ** (1 / (2 * s + 1))

    def step(d: int) -> float:
        return min(0.4, (wanted / (length * omega)) ** (1 / (2 * d))) / omega

    def work(d: int) -> float:
        return runs * (2 + 28 * step(d) * omega) * iteration(d) * length / step(d)

    best = min(DEGREES, key=lambda d: work(d) + (CODE * d if d != s else 0.0))
    return best, step(best)
