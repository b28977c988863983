"""Double pendulum: point masses m₁, m₂ on rigid rods l₁, l₂, angles q from the vertical.

    L = ½(m₁ + m₂) l₁² v₁² + ½ m₂ l₂² v₂² + m₂ l₁ l₂ v₁ v₂ cos(q₁ − q₂) + (m₁ + m₂) g l₁ cos q₁ + m₂ g l₂ cos q₂
    H = ½ p·M(q)⁻¹p − (m₁ + m₂) g l₁ cos q₁ − m₂ g l₂ cos q₂

Only the energy is conserved, and no exact solution is known. The motion of "double-pendulum" is regular: neighbours
part slowly. "double-pendulum-chaotic" starts with both rods level; its neighbours part by e^1.8 per unit of time (the
tests measure it).

Source: J. A. Rojas-Quintero, F. Dubois, F. Jourdan, Simpson variational integrator for nonlinear systems: a tutorial on
the Lagrange top, 2025, section 3, eq. (15), Table 1: m₁ = m₂ = 1, ω₀ = 2π, q(0) = (π/4, π/3), p(0) = 0, g = 9.81 and
l₁ = l₂ = g/ω₀² (as read g/ω₀).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from leastaction.numbers.formulas import Arithmetic
from leastaction.numbers.symbolic import positive
from leastaction.problems.problem import Parts, Positive, Vector, catalogued

SOURCE = "Rojas-Quintero, Dubois and Jourdan 2025, section 3, eq. (15), Table 1"


def lagrangian(q: Any, v: Any, m1: Any, m2: Any, l1: Any, l2: Any, g: Any) -> Any:
    kinetic = (
        0.5 * (m1 + m2) * (l1 * v[0]) ** 2
        + 0.5 * m2 * (l2 * v[1]) ** 2
        + m2 * l1 * l2 * v[0] * v[1] * np.cos(q[0] - q[1])
    )
    return kinetic + (m1 + m2) * g * l1 * np.cos(q[0]) + m2 * g * l2 * np.cos(q[1])


@catalogued(
    "Double pendulum",
    "Two pendulums, one hanging from the other; a regular motion, chaotic where they swing higher.",
    SOURCE,
)
def double_pendulum(
    m1: Positive = 1,
    m2: Positive = 1,
    g: Positive = "9.81",
    omega0: Positive = "2*pi",
    l1: Any = None,
    l2: Any = None,
    q0: Vector = ("pi/4", "pi/3"),
    p0: Vector = (0, 0),
) -> Parts:
    """Rods of length g/omega0², unless l1 and l2 are given."""
    return PARTS | two_pendulums(m1, m2, g, omega0, l1, l2, q0, p0)


@catalogued(
    "Double pendulum, chaotic",
    "Two pendulums, one hanging from the other, let go with both rods level; chaotic.",
    SOURCE,
)
def double_pendulum_chaotic(
    m1: Positive = 1,
    m2: Positive = 1,
    g: Positive = "9.81",
    omega0: Positive = "2*pi",
    l1: Any = None,
    l2: Any = None,
    q0: Vector = ("pi/2", "pi/2"),
    p0: Vector = (0, 0),
) -> Parts:
    """The same pendulums, let go with both rods level."""
    return PARTS | two_pendulums(m1, m2, g, omega0, l1, l2, q0, p0)


def two_pendulums(m1: Any, m2: Any, g: Any, omega0: Any, l1: Any, l2: Any, q0: Any, p0: Any) -> Parts:
    """Start, settings and time unit 2π/ω₀ of a double pendulum, linearised or not.

    Lengths not given are g/ω₀²; the ω₀ kept is √(g/l₁).
    """
    l1, l2 = (g / omega0**2 if l is None else positive(l, name) for l, name in ((l1, "l1"), (l2, "l2")))
    omega0 = sp.sqrt(g / l1)
    settings = {"m1": m1, "m2": m2, "l1": l1, "l2": l2, "g": g, "omega0": omega0, "q0": q0, "p0": p0}
    return Parts(settings=settings, period=2 * sp.pi / omega0)


def energy(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    delta = q[0] - q[1]
    # ½ p·M⁻¹p with det M = m₂ l₁² l₂² (m₁ + m₂ sin²δ)
    a, b = p[0] / c.l1, p[1] / c.l2
    kinetic = (c.m2 * a**2 + (c.m1 + c.m2) * b**2 - 2 * c.m2 * a * b * x.cos(delta)) / (
        2 * c.m2 * (c.m1 + c.m2 * x.sin(delta) ** 2)
    )
    return kinetic - (c.m1 + c.m2) * c.g * c.l1 * x.cos(q[0]) - c.m2 * c.g * c.l2 * x.cos(q[1])


PARTS = Parts(
    lagrangian=lagrangian,
    invariants={"energy": energy},
    period_of="small swings of the upper pendulum alone, 2π/ω₀ with ω₀² = g/l₁; the motion has none",
)
