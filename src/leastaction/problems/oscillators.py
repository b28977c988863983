"""Oscillators and particles in a field, most of them with an exact solution.

"harmonic-oscillator", one dimension or two: L = ½ m v·v − ½ m ω² q·q,

    q(t) = q₀ cos ωt + p₀/(mω) sin ωt,    p(t) = p₀ cos ωt − mω q₀ sin ωt,    period 2π/ω.

Source: S. Ober-Blöbaum, N. Saake, Construction and analysis of higher order Galerkin variational integrators, 2014,
section 5.1, two dimensions, m = ω = 1. It gives no initial data: those here are chosen for a full ellipse.

"driven-oscillator", ν ≠ ω: L(t, q, v) = ½ m v² − ½ m ω² q² + f q cos νt,

    q(t) = A cos ωt + B sin ωt + C cos νt,    C = f/(m(ω² − ν²)),    A = q₀ − C,    B = p₀/(mω),    p = m q'.

"van-der-pol": q̈ − μ (1 − q²) q̇ + q = 0, friction that feeds small swings and damps large ones. Every motion tends to
one limit cycle; for μ = 1 its amplitude and period are given to 46 digits, found by Newton's method on runs of
P16N16Q32Gau with 50 digits, the same with 70 and with 100 steps. The motion begins on the cycle.

"charged-particle" in a magnetic field, with a force linear in the velocity: L = ½ m v·v + ½ b (q₁ v₂ − q₂ v₁),
p = m v + ½ b J q, J q = (−q₂, q₁), H = |p − ½ b J q|²/(2m). It runs in circles with the frequency Ω = b/m:

    v(t) = cos(Ωt) v₀ − sin(Ωt) J v₀,    q(t) = q₀ + [sin(Ωt) v₀ − (1 − cos Ωt) J v₀]/Ω.

Conserved: energy, q₁p₂ − q₂p₁, and the pseudo-momentum P = p + ½ b J q, which holds the circle's centre.

"henon-heiles": L = ½ v·v − ½ q·q − q₁² q₂ + q₂³/3, bound for H < 1/6; mostly regular at H = 1/12, mixed at 1/8, mostly
chaotic near 1/6. Source: M. Hénon, C. Heiles, The applicability of the third integral of motion, Astronomical Journal
69 (1964) 73–79, eq. (11) and figures 4–6. The start is on their surface of section q₁ = 0.

"quadratic-drag": a body that falls through the air, L = ½ m v² + m g q (q downwards), F = −k v |v|, v∞ = √(m g / k),

    v(t) = v∞ tanh y,    q(t) = q₀ + (v∞²/g) ln (cosh y / cosh y₀),    y = y₀ + g t / v∞,    tanh y₀ = v₀/v∞

while the body falls, y ≥ 0; a body that rises first has no solution here. It begins slower than v∞.

"linear-double-pendulum", the double pendulum linearised about its rest: L = ½ v·Mv − ½ q·Kq,

    M = [ (m₁ + m₂) l₁²   m₂ l₁ l₂ ]      K = [ (m₁ + m₂) g l₁      0     ]
        [   m₂ l₁ l₂      m₂ l₂²   ]          [       0         m₂ g l₂   ]

With the modes K x = ω² M x, x₁·M x₂ = 0, q(t) = Σ x_i (a_i cos ω_i t + b_i sin ω_i t), a_i = x_i·M q₀ / x_i·M x_i,
b_i = x_i·p₀ / (ω_i x_i·M x_i), p = M q'. For l₁ = l₂ = l, μ = m₂/m₁ and ω₀² = g/l, ω² = ω₀² (1 + μ ± √(μ(1 + μ))). The
energy of each mode is conserved. Source: J. A. Rojas-Quintero, F. Dubois, J. G. Cabrera-Díaz, Simpson's variational
integrator for systems with quadratic Lagrangians, 2024, eqs. (46)–(51), Table 1: μ = 1, ω₀ = 2π, q(0) = (0, π/6),
p(0) = 0. Times are measured there in t̄ = 2π/ω₀ (printed as 1/ω₀); m₁ = m₂ = 1 and g = 9.81 are not given but lead to
its tables. The constant terms of (46) are left out, so that H is the quadratic form.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from leastaction.numbers.formulas import MPFS, Arithmetic
from leastaction.numbers.symbolic import symbolic
from leastaction.problems.pendulums import two_pendulums
from leastaction.problems.problem import Data, ExactMotion, Number, Parts, Positive, Vector, catalogued, turning
from leastaction.trace import const

SPRING = "A mass on a linear spring, the same in every direction."
OSCILLATOR = "Ober-Blöbaum and Saake 2014, section 5.1, eq. (5.1)"


@catalogued("Harmonic oscillator", SPRING, OSCILLATOR)
def harmonic_oscillator(m: Positive = 1, omega: Positive = 1, q0: Vector = 1, p0: Vector = 0) -> Parts:
    """One degree of freedom."""
    return _oscillator(1)


@catalogued("Harmonic oscillator in the plane", SPRING, OSCILLATOR)
def harmonic_oscillator_2d(m: Positive = 1, omega: Positive = 1, q0: Vector = (1, 0), p0: Vector = ("1/2", 1)) -> Parts:
    """Two degrees of freedom, isotropic."""
    return _oscillator(2)


def _oscillator(n: int) -> Parts:
    return Parts(
        lagrangian=lambda q, v, m, omega: 0.5 * m * np.sum(v**2) - 0.5 * m * omega**2 * np.sum(q**2),
        invariants={"angular-momentum": turning} if n == 2 else {},
        solution=ellipse,
        matrices=lambda c: (c.m * np.eye(n), c.m * c.omega**2 * np.eye(n)),
    )


def ellipse(d: Data) -> ExactMotion:
    m, omega = d.params["m"], d.params["omega"]
    period = 2 * mpmath.pi / omega

    def at(x: Arithmetic, t: Any) -> Any:
        _, r = x.turns(t, period)
        c, s = x.cos(x(omega) * r), x.sin(x(omega) * r)
        pairs = tuple(zip(d.q0, d.p0, strict=True))
        q = tuple(x(q0) * c + x(p0 / (m * omega)) * s for q0, p0 in pairs)
        p = tuple(x(p0) * c - x(m * omega * q0) * s for q0, p0 in pairs)
        return q, p

    return ExactMotion(at, period)


def driven(t: Any, q: Any, v: Any, m: Any, omega: Any, f: Any, nu: Any) -> Any:
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
    return Parts(lagrangian=driven, solution=beats, period=2 * sp.pi / omega, period_of="the free oscillator")


def beats(d: Data) -> ExactMotion:
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


CYCLE = "2.008619860874843136509640188362640366192026138"  # of the limit cycle for μ = 1
CYCLE_PERIOD = "6.663286859323130189699682030482328706812646317"


@catalogued(
    "Van der Pol's oscillator",
    "An oscillator that a force feeds near the centre and damps farther out: one limit cycle.",
    "B. van der Pol, On relaxation-oscillations, Phil. Mag. 2 (1926) 978–992",
)
def van_der_pol(mu: Positive = 1, q0: Number = CYCLE, p0: Number = 0) -> Parts:
    """With the strength mu of the feedback."""
    return Parts(
        lagrangian=lambda q, v: 0.5 * v[0] ** 2 - 0.5 * q[0] ** 2,
        force=lambda q, v, mu: mu * (1 - q[0] ** 2) * v[0],
        period=symbolic(CYCLE_PERIOD, "period") if mu == 1 else None,
        period_of="the limit cycle",
    )


@catalogued(
    "Charged particle in a magnetic field",
    "A particle that a uniform magnetic field keeps in circles: L is linear in v as well as quadratic.",
    "L. D. Landau, E. M. Lifshitz, The Classical Theory of Fields, §21",
)
def charged_particle(m: Positive = 1, b: Positive = 1, q0: Vector = (1, 0), p0: Vector = (0, "1/4")) -> Parts:
    """A mass m with charge times field b."""
    return Parts(
        lagrangian=lambda q, v, m, b: 0.5 * m * (v[0] ** 2 + v[1] ** 2) + 0.5 * b * (q[0] * v[1] - q[1] * v[0]),
        invariants={
            "angular-momentum": turning,
            "pseudo-momentum-x": lambda x, c, q, p: p[0] - c.b * q[1] / 2,
            "pseudo-momentum-y": lambda x, c, q, p: p[1] + c.b * q[0] / 2,
        },
        solution=circle,
    )


def circle(d: Data) -> ExactMotion:
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
        lagrangian=lambda q, v: 0.5 * np.sum(v**2) - 0.5 * np.sum(q**2) - q[0] ** 2 * q[1] + const("1/3") * q[1] ** 3,
        q0=(0, y0),
        p0=(sp.sqrt(square), py0),
        period=2 * sp.pi,
        period_of="small oscillations; the motion has none",
    )


@catalogued(
    "Fall with quadratic drag",
    "A body falls through the air towards its terminal speed.",
    "J. R. Taylor, Classical Mechanics, University Science Books 2005, section 2.4",
)
def quadratic_drag(
    m: Positive = 1, g: Positive = "9.81", k: Positive = "1/100", q0: Number = 0, p0: Number = 15
) -> Parts:
    """A mass m that falls with the drag k v²."""
    if not 0 <= p0 / m < sp.sqrt(m * g / k):
        raise ValueError(
            f"it must fall slower than √(m g / k) = {float(sp.sqrt(m * g / k)):g}; got v₀ = {float(p0 / m):g}"
        )
    return Parts(
        lagrangian=lambda q, v, m, g: 0.5 * m * v[0] ** 2 + m * g * q[0],
        force=lambda q, v, k: -k * v[0] * np.abs(v[0]),
        solution=slowed_fall,
    )


def slowed_fall(d: Data) -> ExactMotion:
    m, g, k = (d.params[name] for name in ("m", "g", "k"))
    terminal = mpmath.sqrt(m * g / k)
    y0 = mpmath.atanh(d.p0[0] / m / terminal)

    def log_cosh(x: Arithmetic, y: Any) -> Any:
        return y + x.log((1 + x.exp(-2 * y)) / 2)

    def at(x: Arithmetic, t: Any) -> Any:
        y = x(g / terminal) * t + x(y0)
        y = np.where(y < 0, x(mpmath.nan), y)
        small = x.exp(-2 * y)
        q = x(d.q0[0]) + x(terminal**2 / g) * (log_cosh(x, y) - log_cosh(x, x(y0)))
        return (q,), (x(m * terminal) * (1 - small) / (1 + small),)

    return ExactMotion(at)


def two_modes(q: Any, v: Any, m1: Any, m2: Any, l1: Any, l2: Any, g: Any) -> Any:
    kinetic = 0.5 * (m1 + m2) * (l1 * v[0]) ** 2 + 0.5 * m2 * (l2 * v[1]) ** 2 + m2 * l1 * l2 * v[0] * v[1]
    return kinetic - 0.5 * (m1 + m2) * g * l1 * q[0] ** 2 - 0.5 * m2 * g * l2 * q[1] ** 2


@catalogued(
    "Linearised double pendulum",
    "Small swings of two pendulums, one hanging from the other: two modes of unrelated frequency.",
    "Rojas-Quintero, Dubois and Cabrera-Díaz 2024, eqs. (46)–(51), Table 1",
)
def linear_double_pendulum(
    m1: Positive = 1, m2: Positive = 1, g: Positive = "9.81", omega0: Positive = "2*pi", l1: Any = None, l2: Any = None,
    q0: Vector = (0, "pi/6"), p0: Vector = (0, 0),
) -> Parts:  # fmt: skip
    """Rods of length g/omega0², unless l1 and l2 are given."""
    return Parts(
        lagrangian=two_modes,
        **two_pendulums(m1, m2, g, omega0, l1, l2, q0, p0),
        invariants={"energy-slow-mode": _mode_energy(-1), "energy-fast-mode": _mode_energy(1)},
        solution=swinging_modes,
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


def _mode_energy(sign: int) -> Any:
    def mode_energy(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
        square, y = mode(x, c, sign)
        M, _ = matrices(c)
        Mx = M[0][0] + M[0][1] * y, M[1][0] + M[1][1] * y
        mass = Mx[0] + y * Mx[1]
        return ((p[0] + y * p[1]) ** 2 + square * (Mx[0] * q[0] + Mx[1] * q[1]) ** 2) / (2 * mass)

    return mode_energy


def swinging_modes(d: Data) -> ExactMotion:
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
