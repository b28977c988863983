"""Charged particle in a uniform magnetic field, with a force linear in the velocity.

    L = ½ m (v₁² + v₂²) + ½ b (q₁ v₂ − q₂ v₁),    p = m v + ½ b J q,    J q = (−q₂, q₁)
    H = |p − ½ b J q|²/(2m)

The particle runs in circles with the cyclotron frequency Ω = b/m (clockwise for b > 0). With v₀ = (p₀ − ½ b J q₀)/m,

    v(t) = cos(Ωt) v₀ − sin(Ωt) J v₀,    q(t) = q₀ + [sin(Ωt) v₀ − (1 − cos Ωt) J v₀]/Ω

Conserved: energy, the angular momentum q₁p₂ − q₂p₁, and the pseudo-momentum P = p + ½ b J q, which holds the circle's
centre. A test of the terms of L that are linear in v.
"""

from __future__ import annotations

from typing import Any

import mpmath

from leastaction.numbers.formulas import Arithmetic
from leastaction.problems.problem import Data, ExactMotion, Parts, Positive, Vector, catalogued


def lagrangian(q: Any, v: Any, m: Any, b: Any) -> Any:
    return 0.5 * m * (v[0] ** 2 + v[1] ** 2) + 0.5 * b * (q[0] * v[1] - q[1] * v[0])


@catalogued(
    "Charged particle in a magnetic field",
    "A particle that a uniform magnetic field keeps in circles: L is linear in v as well as quadratic.",
    "L. D. Landau, E. M. Lifshitz, The Classical Theory of Fields, §21",
)
def charged_particle(m: Positive = 1, b: Positive = 1, q0: Vector = (1, 0), p0: Vector = (0, "1/4")) -> Parts:
    """A mass m with charge times field b."""
    return Parts(
        lagrangian=lagrangian,
        invariants={
            "energy": energy,
            "angular-momentum": lambda x, c, q, p: q[0] * p[1] - q[1] * p[0],
            "pseudo-momentum-x": lambda x, c, q, p: p[0] - c.b * q[1] / 2,
            "pseudo-momentum-y": lambda x, c, q, p: p[1] + c.b * q[0] / 2,
        },
        solution=solution,
    )


def energy(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    return ((p[0] + c.b * q[1] / 2) ** 2 + (p[1] - c.b * q[0] / 2) ** 2) / (2 * c.m)


def solution(d: Data) -> ExactMotion:
    m, b = d.params["m"], d.params["b"]
    Omega = b / m
    v0 = (d.p0[0] + b * d.q0[1] / 2) / m, (d.p0[1] - b * d.q0[0] / 2) / m
    Jv0 = -v0[1], v0[0]
    period = 2 * mpmath.pi / Omega

    def at(x: Arithmetic, t: Any) -> Any:
        _, r = x.turns(t, period)
        c, s, half = x.cos(x(Omega) * r), x.sin(x(Omega) * r), x.sin(x(Omega / 2) * r)
        v = tuple(c * x(v0[i]) - s * x(Jv0[i]) for i in range(2))
        q = tuple(x(d.q0[i]) + s * x(v0[i] / Omega) - half**2 * x(2 * Jv0[i] / Omega) for i in range(2))
        p = x(m) * v[0] - x(b / 2) * q[1], x(m) * v[1] + x(b / 2) * q[0]
        return q, p

    return ExactMotion(at, period)
