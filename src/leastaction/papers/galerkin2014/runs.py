"""The paper's experiments: which methods, which steps, and the errors of a run.

Oscillator, section 5.1 (m = ω = 1, two dimensions). The paper gives neither initial data nor T; here q₀ = (1, 0),
p₀ = (½, 1), T = 10. The error is the largest over all nodes and components, eq. (5.2).

Kepler, section 5.2: k = 1016.895192894334, q₀ = (5, 0), p₀ = (0, 17), T = 25, five revolutions. The paper's error is
the distance from the initial point after T. As the printed k has the period 5 + 2.2·10⁻¹², that distance cannot fall
below 4·10⁻¹⁰; orders are therefore measured against the exact solution at T.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from leastaction.errors import StepFailed, measuring
from leastaction.integrate import integrate
from leastaction.methods import Branch, Galerkin, galerkin
from leastaction.methods.quadrature import gauss, lobatto
from leastaction.papers.model import Options
from leastaction.problems import get

OSCILLATOR, KEPLER = "harmonic-oscillator-2d", "kepler-galerkin"
T_END = {OSCILLATOR: 10, KEPLER: 25}
STEPS = tuple(Fraction(1, 1) / n for n in (1, 2, 4, 8, 10, 16, 32))  # the paper's step sizes
ASYMPTOTIC = {  # by problem and order: steps small enough for the leading term, large enough for the arithmetic
    OSCILLATOR: dict.fromkeys((2, 4, 6, 8, 10), tuple(Fraction(1, n) for n in (4, 8, 16))),
    KEPLER: {
        2: tuple(Fraction(1, n) for n in (128, 256, 512)),
        4: tuple(Fraction(1, n) for n in (32, 64, 128)),
        6: tuple(Fraction(1, n) for n in (16, 32, 64)),
        8: tuple(Fraction(1, n) for n in (10, 16, 32)),
        10: tuple(Fraction(1, n) for n in (10, 16, 32)),
    },
}
DIGITS, FULL_DIGITS = 32, 50  # the smallest errors, of order ten with h = 1/32, are 10⁻²⁴


def member(family: str, s: int, r: int) -> Galerkin:
    """PsNrQ2rGau or PsNrQ2r−2Lob."""
    return galerkin(s, {"Gau": gauss, "Lob": lobatto}[family](r))


def precision(chosen: Galerkin, options: Options) -> int | None:
    """Digits of the arithmetic: float64 (None) cannot show the orders 8 and 10; a full run uses it for order 2 only."""
    if chosen.order < (4 if options.full else 8):
        return None
    return max(options.digits or (FULL_DIGITS if options.full else 0), DIGITS)


@dataclass(frozen=True)
class Errors:
    """Errors of configurations and momenta: q, p against the exact solution; q_back, p_back from the initial point."""

    q: float
    p: float
    q_back: float = np.nan
    p_back: float = np.nan

    @property
    def state(self) -> float:
        return max(self.q, self.p)


UNSOLVED = Errors(np.nan, np.nan)


@lru_cache(maxsize=4096)
@measuring()
def errors(
    problem: str, chosen: Galerkin, h: Fraction, digits: int | None = None, branch: Branch = "followed"
) -> Errors:
    """The errors of a run with step h until T; UNSOLVED where no solution of a step is connected with the motion, or,
    with the branch "any", where Newton's iteration finds none.
    """
    given = get(problem)
    try:
        path = integrate(
            given.system,
            chosen,
            given.exact_q0,
            given.exact_p0,
            h=h,
            t_end=T_END[problem],
            params=given.exact_params,
            digits=digits,
            branch=branch,
        )
    except StepFailed:
        return UNSOLVED
    rows = slice(None) if problem == OSCILLATOR else slice(-1, None)
    q, p = given.exact(path.t[rows], digits=digits)
    q0, p0 = path.q[0], path.p[0]
    return Errors(
        _largest(path.q[rows] - q), _largest(path.p[rows] - p), _largest(path.q[-1] - q0), _largest(path.p[-1] - p0)
    )


def _largest(difference: Any) -> float:
    return float(np.abs(difference).max())


def fitted_order(steps: Sequence[Fraction], values: Sequence[float]) -> float:
    """The slope of log(error) over log(h), by least squares."""
    return float(np.polyfit(np.log([float(h) for h in steps]), np.log(values), 1)[0])


def asymptotic_order(problem: str, chosen: Galerkin, options: Options) -> float:
    """The order of the larger of the errors of q and p, with steps in the range of the leading term."""
    steps = ASYMPTOTIC[problem][chosen.order]
    digits = precision(chosen, options)
    return fitted_order(steps, [errors(problem, chosen, h, digits).state for h in steps])
