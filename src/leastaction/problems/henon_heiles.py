"""Hénon–Heiles system.

    L = ½(v₁² + v₂²) − ½(q₁² + q₂²) − q₁² q₂ + q₂³/3,    H = ½(p₁² + p₂²) + ½(q₁² + q₂²) + q₁² q₂ − q₂³/3

Bound for H < 1/6; mostly regular at H = 1/12, mixed at 1/8, mostly chaotic near 1/6. Only H is conserved, and no exact
solution is known.

Source: M. Hénon, C. Heiles, The applicability of the third integral of motion: some numerical experiments, Astronomical
Journal 69 (1964) 73–79, eq. (11) and figures 4–6. The start is on their surface of section q₁ = 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from leastaction.numbers.formulas import Arithmetic
from leastaction.problems.problem import Number, Parts, Positive, catalogued
from leastaction.trace import const


def lagrangian(q: Any, v: Any) -> Any:
    return 0.5 * np.sum(v**2) - 0.5 * np.sum(q**2) - q[0] ** 2 * q[1] + const("1/3") * q[1] ** 3


@catalogued(
    "Hénon–Heiles system",
    "A star near the axis of a galaxy: oscillators coupled by cubic terms; chaotic as energy grows.",
    "Hénon and Heiles 1964, eq. (11)",
)
def henon_heiles(energy: Positive = "1/8", y0: Number = "0.1", py0: Number = 0) -> Parts:
    """From q = (0, y0) with p₂ = py0 and the p₁ > 0 of this energy."""
    square = 2 * energy - py0**2 - y0**2 + 2 * y0**3 / 3
    if not square > 0:
        raise ValueError(f"the energy {energy} is too small for q = (0, {y0}), p₂ = {py0}: p₁² would be {square}")
    return Parts(
        lagrangian=lagrangian,
        q0=(0, y0),
        p0=(sp.sqrt(square), py0),
        invariants={"energy": total_energy},
        period=2 * sp.pi,
        period_of="small oscillations; the motion has none",
    )


def total_energy(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    return (p[0] ** 2 + p[1] ** 2 + q[0] ** 2 + q[1] ** 2) / 2 + q[0] ** 2 * q[1] - q[1] ** 3 / 3
