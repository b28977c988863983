"""Van der Pol's oscillator: friction that feeds small swings and damps large ones.

    L(q, v) = ½ v² − ½ q²,    F = μ (1 − q²) v,      q̈ − μ (1 − q²) q̇ + q = 0

Every motion tends to one limit cycle. No closed form is known; for μ = 1 amplitude and period of the cycle are given to
46 digits, found by Newton's method on runs of P16N16Q32Gau with 50 digits, the same with 70 and with 100 steps. The
motion begins on the cycle.
"""

from __future__ import annotations

from typing import Any

from leastaction.numbers.symbolic import symbolic
from leastaction.problems.problem import Number, Parts, Positive, catalogued

AMPLITUDE = "2.008619860874843136509640188362640366192026138"  # of the limit cycle for μ = 1
PERIOD = "6.663286859323130189699682030482328706812646317"


def lagrangian(q: Any, v: Any) -> Any:
    return 0.5 * v[0] ** 2 - 0.5 * q[0] ** 2


def feedback(q: Any, v: Any, mu: Any) -> Any:
    return mu * (1 - q[0] ** 2) * v[0]


@catalogued(
    "Van der Pol's oscillator",
    "An oscillator that a force feeds near the centre and damps farther out: one limit cycle.",
    "B. van der Pol, On relaxation-oscillations, Phil. Mag. 2 (1926) 978–992",
)
def van_der_pol(mu: Positive = 1, q0: Number = AMPLITUDE, p0: Number = 0) -> Parts:
    """With the strength mu of the feedback."""
    return Parts(
        lagrangian=lagrangian,
        force=feedback,
        period=symbolic(PERIOD, "period") if mu == 1 else None,
        period_of="the limit cycle",
    )
