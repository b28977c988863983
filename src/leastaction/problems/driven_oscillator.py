"""Driven harmonic oscillator: a Lagrangian that depends on time.

    L(t, q, v) = ½ m v² − ½ m ω² q² + f q cos νt
    q(t) = A cos ωt + B sin ωt + C cos νt,    C = f/(m(ω² − ν²)),    A = q₀ − C,    B = p₀/(mω),    p = m q'

ν ≠ ω. Nothing is conserved.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import sympy as sp

from leastaction.numbers.formulas import Arithmetic
from leastaction.problems.problem import Data, ExactMotion, Number, Parts, Positive, catalogued


def lagrangian(t: Any, q: Any, v: Any, m: Any, omega: Any, f: Any, nu: Any) -> Any:
    return 0.5 * m * v[0] ** 2 - 0.5 * m * omega**2 * q[0] ** 2 + f * q[0] * np.cos(nu * t)


@catalogued(
    "Driven harmonic oscillator",
    "A mass on a spring under a periodic force: L depends on time.",
    "L. D. Landau, E. M. Lifshitz, Mechanics, §22",
)
def driven_oscillator(
    m: Positive = 1, omega: Positive = 1, f: Number = "1/2", nu: Positive = "sqrt(2)", q0: Number = 1, p0: Number = 0
) -> Parts:
    """Driven with the frequency nu by a force of amplitude f."""
    if not sp.Abs(nu - omega) > 0:
        raise ValueError(f"nu must differ from omega = {omega}: at resonance the amplitude grows without bound")
    return Parts(
        lagrangian=lagrangian,
        solution=solution,
        period=2 * sp.pi / omega,
        period_of="the free oscillator",
    )


def solution(d: Data) -> ExactMotion:
    m, omega, f, nu = (d.params[name] for name in ("m", "omega", "f", "nu"))
    C = f / (m * (omega - nu) * (omega + nu))
    A, B = d.q0[0] - C, d.p0[0] / (m * omega)

    def at(x: Arithmetic, t: Any) -> Any:
        (c, s), (cn, sn) = (
            (x.cos(x(w) * r), x.sin(x(w) * r)) for w in (omega, nu) for _, r in (x.turns(t, 2 * mpmath.pi / w),)
        )
        q = x(A) * c + x(B) * s + x(C) * cn
        p = x(m * omega * B) * c - x(m * omega * A) * s - x(m * nu * C) * sn
        return (q,), (p,)

    return ExactMotion(at)
