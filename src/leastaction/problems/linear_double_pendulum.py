"""Double pendulum, linearised about its rest.

    L = ½ v·Mv − ½ q·Kq,    H = ½ p·M⁻¹p + ½ q·Kq

    M = [ (m₁ + m₂) l₁²   m₂ l₁ l₂ ]      K = [ (m₁ + m₂) g l₁      0     ]
        [   m₂ l₁ l₂      m₂ l₂²   ]          [       0         m₂ g l₂   ]

With the modes K x = ω² M x, x₁·M x₂ = 0,

    q(t) = Σ x_i (a_i cos ω_i t + b_i sin ω_i t),    a_i = x_i·M q₀ / x_i·M x_i,    b_i = x_i·p₀ / (ω_i x_i·M x_i)

and p = M q'. For l₁ = l₂ = l, μ = m₂/m₁ and ω₀² = g/l, ω² = ω₀² (1 + μ ± √(μ(1 + μ))). The energy of each mode is
conserved. The constant terms of the paper's (46) are left out, so that H is the quadratic form.

Source: J. A. Rojas-Quintero, F. Dubois, J. G. Cabrera-Díaz, Simpson's variational integrator for systems with quadratic
Lagrangians, 2024, eqs. (46)–(51), Table 1: μ = 1, ω₀ = 2π, q(0) = (0, π/6), p(0) = 0. Times are measured there in
t̄ = 2π/ω₀ (printed as 1/ω₀); m₁ = m₂ = 1 and g = 9.81 are not given but lead to its tables. The ω's have no common
multiple: the motion is quasi-periodic.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import mpmath

from leastaction.numbers.formulas import MPFS, Arithmetic
from leastaction.problems.double_pendulum import two_pendulums
from leastaction.problems.problem import Data, ExactMotion, Parts, Positive, Vector, catalogued


def lagrangian(q: Any, v: Any, m1: Any, m2: Any, l1: Any, l2: Any, g: Any) -> Any:
    kinetic = 0.5 * (m1 + m2) * (l1 * v[0]) ** 2 + 0.5 * m2 * (l2 * v[1]) ** 2 + m2 * l1 * l2 * v[0] * v[1]
    return kinetic - 0.5 * (m1 + m2) * g * l1 * q[0] ** 2 - 0.5 * m2 * g * l2 * q[1] ** 2


@catalogued(
    "Linearised double pendulum",
    "Small swings of two pendulums, one hanging from the other: two modes of unrelated frequency.",
    "Rojas-Quintero, Dubois and Cabrera-Díaz 2024, eqs. (46)–(51), Table 1",
)
def linear_double_pendulum(
    m1: Positive = 1,
    m2: Positive = 1,
    g: Positive = "9.81",
    omega0: Positive = "2*pi",
    l1: Any = None,
    l2: Any = None,
    q0: Vector = (0, "pi/6"),
    p0: Vector = (0, 0),
) -> Parts:
    """Rods of length g/omega0², unless l1 and l2 are given."""
    return Parts(
        lagrangian=lagrangian,
        **two_pendulums(m1, m2, g, omega0, l1, l2, q0, p0),
        invariants={"energy": energy, "energy-slow-mode": _mode_energy(-1), "energy-fast-mode": _mode_energy(1)},
        solution=solution,
        period_of="the upper pendulum alone, t̄ = 2π/ω₀ with ω₀² = g/l₁; the motion has none",
        matrices=matrices,
    )


def matrices(c: Any) -> Any:
    """M and K."""
    total, coupling = c.m1 + c.m2, c.m2 * c.l1 * c.l2
    M = [[total * c.l1**2, coupling], [coupling, c.m2 * c.l2**2]]
    return M, [[total * c.g * c.l1, 0], [0, c.m2 * c.g * c.l2]]


def mode(x: Arithmetic, c: Any, sign: int) -> Any:
    """ω² and (1, y) of the slow (−1) or the fast (+1) mode.

    m₁l₁l₂ω⁴ − (m₁ + m₂)g(l₁ + l₂)ω² + (m₁ + m₂)g² = 0; the smaller root from the product of both, without
    cancellation. The second row of Kx = ω²Mx gives y = ω²l₁/(g − ω²l₂).
    """
    total = c.m1 + c.m2
    half = total * (c.l1 + c.l2) / 2
    fast = c.g * (half + x.sqrt(half**2 - total * c.m1 * c.l1 * c.l2)) / (c.m1 * c.l1 * c.l2)
    square = fast if sign > 0 else total * c.g**2 / (c.m1 * c.l1 * c.l2) / fast
    return square, square * c.l1 / (c.g - square * c.l2)


def energy(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    # The masses' speeds are l₁v₁ = (p₁/l₁ − p₂/l₂)/m₁ and l₁v₁ + l₂v₂ = p₂/(m₂l₂).
    kinetic = (p[0] / c.l1 - p[1] / c.l2) ** 2 / (2 * c.m1) + (p[1] / c.l2) ** 2 / (2 * c.m2)
    return kinetic + c.g * ((c.m1 + c.m2) * c.l1 * q[0] ** 2 + c.m2 * c.l2 * q[1] ** 2) / 2


def _mode_energy(sign: int) -> Any:
    def mode_energy(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
        square, y = mode(x, c, sign)
        M, _ = matrices(c)
        Mx = M[0][0] + M[0][1] * y, M[1][0] + M[1][1] * y
        mass = Mx[0] + y * Mx[1]
        return ((p[0] + y * p[1]) ** 2 + square * (Mx[0] * q[0] + Mx[1] * q[1]) ** 2) / (2 * mass)

    return mode_energy


def solution(d: Data) -> ExactMotion:
    c = SimpleNamespace(**d.params)
    M, _ = matrices(c)
    modes = []
    for sign in (-1, 1):
        square, y = mode(MPFS, c, sign)
        omega = mpmath.sqrt(square)
        X = (mpmath.mpf(1), y)
        MX = tuple(M[i][0] + M[i][1] * y for i in range(2))
        mass = MX[0] + y * MX[1]
        a = (MX[0] * d.q0[0] + MX[1] * d.q0[1]) / mass
        b = (d.p0[0] + y * d.p0[1]) / (omega * mass)
        modes.append((omega, X, MX, a, b))

    def at(x: Arithmetic, t: Any) -> Any:
        q, p = [t * 0, t * 0], [t * 0, t * 0]
        for omega, X, MX, a, b in modes:
            _, r = x.turns(t, 2 * mpmath.pi / omega)
            cos, sin = x.cos(x(omega) * r), x.sin(x(omega) * r)
            for i in range(2):
                q[i] = q[i] + x(X[i] * a) * cos + x(X[i] * b) * sin
                p[i] = p[i] + x(MX[i] * omega * b) * cos - x(MX[i] * omega * a) * sin
        return tuple(q), tuple(p)

    return ExactMotion(at)
