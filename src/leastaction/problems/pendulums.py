"""Pendulums, by their angles: one, driven, on another one, and on a cart.

"pendulum": L = ½ m v² − m ω² (1 − cos q). With k² = H/(2mω²) the motion is, by Jacobi's functions,

    k < 1, libration    sin(q/2) = k sn(u, k²),  q' = 2ωk cn(u, k²),      u = u₀ + ωt,     period 4K(k²)/ω
    k > 1, rotation     q/2 = ±am(u, 1/k²),      q' = ±2ωk dn(u, 1/k²),   u = u₀ + kωt,    one turn in 2K(1/k²)/(kω)
    k = 1, separatrix   sin(q/2) = ± tanh u,     q' = ±2ω / cosh u,       u = u₀ + ωt,     no period

Source: F. Dubois, J. A. Rojas-Quintero, Simpson's quadrature for a nonlinear variational symplectic scheme, 2023,
eq. (4) and Annex (libration from rest); m = 1, ω = 2π, q(0) = π/2, p(0) = 0.

"damped-driven-pendulum": L = ½ v² + ω₀² cos q, D = β v², F = γ ω₀² cos ωt. With ω = 2π, ω₀ = 3π, β = ω₀/4 and a start
at q = −π/2 the motion settles to the period 1 for γ = 1.06, to 2 for γ = 1.078 and to 4 for γ = 1.081, and is chaotic
beyond γ ≈ 1.0829.

"double-pendulum": point masses m₁, m₂ on rigid rods l₁, l₂, angles q from the vertical,

    L = ½(m₁ + m₂) l₁² v₁² + ½ m₂ l₂² v₂² + m₂ l₁ l₂ v₁ v₂ cos(q₁ − q₂) + (m₁ + m₂) g l₁ cos q₁ + m₂ g l₂ cos q₂.

Only the energy is conserved. The motion of "double-pendulum" is regular: neighbours part slowly.
"double-pendulum-chaotic" starts with both rods level; its neighbours part by e^1.8 per unit of time (the tests measure
it). Source: J. A. Rojas-Quintero, F. Dubois, F. Jourdan, Simpson variational integrator for nonlinear systems: a
tutorial on the Lagrange top, 2025, section 3, eq. (15), Table 1: m₁ = m₂ = 1, ω₀ = 2π, q(0) = (π/4, π/3), p(0) = 0,
g = 9.81 and l₁ = l₂ = g/ω₀² (as read g/ω₀).

"cart-pole": a force u on a cart on a rail, and a uniform pole of length 2l that turns about a pin on the cart,

    L = ½ (M + m) ẋ² + m l cos θ ẋ θ̇ + ⅔ m l² θ̇² − m g l cos θ,      F = (u, 0),

θ the pole's angle from upright, which is unstable. The input is u. Data and model, without its friction: A. G. Barto,
R. S. Sutton, C. W. Anderson, Neuronlike adaptive elements that can solve difficult learning control problems, IEEE
Trans. Syst. Man Cybern. SMC-13, 1983, 834–846, appendix.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import sympy as sp

from leastaction.numbers.formulas import Arithmetic
from leastaction.numbers.symbolic import positive
from leastaction.problems.elliptic import sncndn
from leastaction.problems.problem import Data, ExactMotion, Number, Parts, Positive, Vector, catalogued


@catalogued(
    "Nonlinear pendulum",
    "A point mass on a rigid rod: swings of any amplitude, and turns.",
    "Dubois and Rojas-Quintero 2023, eq. (4) and Annex",
)
def pendulum(m: Positive = 1, omega: Positive = "2*pi", theta0: Number = "pi/2", p0: Number = 0) -> Parts:
    """From the angle theta0 with momentum p0: any amplitude, and rotation."""
    return Parts(
        lagrangian=lambda q, v, m, omega: 0.5 * m * v[0] ** 2 - m * omega**2 * (1 - np.cos(q[0])),
        q0=(theta0,),
        solution=swing_motion,
    )


def swing_motion(d: Data) -> ExactMotion:
    m, omega = d.params["m"], d.params["omega"]
    (q0,), (v0,) = d.q0, (d.p0[0] / m,)
    whole = 2 * mpmath.pi * mpmath.nint(q0 / (2 * mpmath.pi))  # the whole turns between the start and [−π, π]
    half = (q0 - whole) / 2
    sine, speed = mpmath.sin(half), v0 / (2 * omega)
    k = mpmath.hypot(sine, speed)
    m1 = mpmath.cos(half) ** 2 - speed**2  # 1 − k²
    nothing = mpmath.mpf(10) ** (10 - mpmath.mp.dps)
    if abs(speed) < nothing and abs(sine * mpmath.cos(half)) < nothing:
        return _rest(q0, omega, below=abs(sine) < nothing)
    if abs(m1) < nothing:
        return _separatrix(m, omega, whole, half, speed)
    if m1 > 0:
        return _libration(m, omega, whole, k, m1, mpmath.atan2(sine, speed))
    return _rotation(m, omega, whole, k, -m1 / k**2, half, 1 if v0 > 0 else -1)


def _rest(q0: Any, omega: Any, below: bool) -> ExactMotion:
    """The motion in equilibrium; in the lower one small swings give the period."""

    def at(x: Arithmetic, t: Any) -> Any:
        return (t * 0 + x(q0),), (t * 0,)

    return ExactMotion(at, 2 * mpmath.pi / omega if below else mpmath.inf)


def _libration(m: Any, omega: Any, whole: Any, k: Any, m1: Any, am0: Any) -> ExactMotion:
    period = 4 * mpmath.ellipk(k**2) / omega
    u0 = mpmath.ellipf(am0, k**2)

    def at(x: Arithmetic, t: Any) -> Any:
        _, r = x.turns(t, period)
        sn, cn, dn = sncndn(x, x(u0) + x(omega) * r, m1)
        # dn = cos(q/2): the arctangent keeps all digits where the arcsine of k sn would lose half.
        return (x(whole) + 2 * x.arctan2(x(k) * sn, dn),), (x(2 * m * omega * k) * cn,)

    return ExactMotion(at, period)


def _rotation(m: Any, omega: Any, whole: Any, k: Any, m1: Any, half: Any, sign: int) -> ExactMotion:
    K = mpmath.ellipk(1 / k**2)
    period = 2 * K / (k * omega)
    u0 = mpmath.ellipf(sign * half, 1 / k**2)

    def at(x: Arithmetic, t: Any) -> Any:
        turns, r = x.turns(t, period)
        more, u = x.turns(x(u0) + x(k * omega) * r, 2 * K)
        sn, cn, dn = sncndn(x, u, m1)
        am = x.arctan2(sn, cn)
        return (x(whole) + sign * 2 * (x.pi * (turns + more) + am),), (x(sign * 2 * m * omega * k) * dn,)

    return ExactMotion(at, period)


def _separatrix(m: Any, omega: Any, whole: Any, half: Any, speed: Any) -> ExactMotion:
    sign = 1 if speed > 0 else -1
    u0 = sign * mpmath.asinh(mpmath.tan(half))

    def at(x: Arithmetic, t: Any) -> Any:
        u = x(u0) + x(omega) * t
        w = x.exp(-np.abs(u))  # tanh |u| = (1 − w²)/(1 + w²), 1/cosh u = 2w/(1 + w²): no overflow
        am = x.arctan2(1 - w**2, 2 * w)
        return (x(whole) + sign * 2 * np.where(u < 0, -am, am),), (x(sign * 4 * m * omega) * w / (1 + w**2),)

    return ExactMotion(at, mpmath.inf)


@catalogued(
    "Damped driven pendulum",
    "A pendulum with viscous friction and a periodic torque: period doubling, then chaos.",
    "J. R. Taylor, Classical Mechanics, University Science Books 2005, sections 12.2 to 12.5",
)
def damped_driven_pendulum(
    omega0: Positive = "3*pi", beta: Positive = "3*pi/4", gamma: Number = "1.078", omega: Positive = "2*pi",
    theta0: Number = "-pi/2", p0: Number = 0,
) -> Parts:  # fmt: skip
    """A pendulum of frequency omega0 with friction beta, driven at omega with gamma times its weight."""
    return Parts(
        lagrangian=lambda q, v, omega0: 0.5 * v[0] ** 2 + omega0**2 * np.cos(q[0]),
        dissipation=lambda q, v, beta: beta * v[0] ** 2,
        force=lambda t, q, v, omega0, gamma, omega: gamma * omega0**2 * np.cos(omega * t),
        q0=(theta0,),
        period=2 * sp.pi / omega,
        period_of="the drive",
    )


DOUBLE = "Rojas-Quintero, Dubois and Jourdan 2025, section 3, eq. (15), Table 1"


def double(q: Any, v: Any, m1: Any, m2: Any, l1: Any, l2: Any, g: Any) -> Any:
    kinetic = (
        0.5 * (m1 + m2) * (l1 * v[0]) ** 2
        + 0.5 * m2 * (l2 * v[1]) ** 2
        + m2 * l1 * l2 * v[0] * v[1] * np.cos(q[0] - q[1])
    )
    return kinetic + (m1 + m2) * g * l1 * np.cos(q[0]) + m2 * g * l2 * np.cos(q[1])


@catalogued(
    "Double pendulum",
    "Two pendulums, one hanging from the other; a regular motion, chaotic where they swing higher.",
    DOUBLE,
)
def double_pendulum(
    m1: Positive = 1, m2: Positive = 1, g: Positive = "9.81", omega0: Positive = "2*pi", l1: Any = None, l2: Any = None,
    q0: Vector = ("pi/4", "pi/3"), p0: Vector = (0, 0),
) -> Parts:  # fmt: skip
    """Rods of length g/omega0², unless l1 and l2 are given."""
    return TWO_RODS | two_pendulums(m1, m2, g, omega0, l1, l2, q0, p0)


@catalogued(
    "Double pendulum, chaotic",
    "Two pendulums, one hanging from the other, let go with both rods level; chaotic.",
    DOUBLE,
)
def double_pendulum_chaotic(
    m1: Positive = 1, m2: Positive = 1, g: Positive = "9.81", omega0: Positive = "2*pi", l1: Any = None, l2: Any = None,
    q0: Vector = ("pi/2", "pi/2"), p0: Vector = (0, 0),
) -> Parts:  # fmt: skip
    """The same pendulums, let go with both rods level."""
    return TWO_RODS | two_pendulums(m1, m2, g, omega0, l1, l2, q0, p0)


def two_pendulums(m1: Any, m2: Any, g: Any, omega0: Any, l1: Any, l2: Any, q0: Any, p0: Any) -> Parts:
    """Start, settings and time unit 2π/ω₀ of a double pendulum, linearised or not.

    Lengths not given are g/ω₀²; the ω₀ kept is √(g/l₁).
    """
    l1, l2 = (g / omega0**2 if l is None else positive(l, name) for l, name in ((l1, "l1"), (l2, "l2")))
    omega0 = sp.sqrt(g / l1)
    settings = {"m1": m1, "m2": m2, "l1": l1, "l2": l2, "g": g, "omega0": omega0, "q0": q0, "p0": p0}
    return Parts(settings=settings, period=2 * sp.pi / omega0)


TWO_RODS = Parts(
    lagrangian=double, period_of="small swings of the upper pendulum alone, 2π/ω₀ with ω₀² = g/l₁; the motion has none"
)


def cart_and_pole(q: Any, v: Any, M: Any, m: Any, l: Any, g: Any) -> Any:
    moving = 0.5 * (M + m) * v[0] ** 2 + m * l * np.cos(q[1]) * v[0] * v[1] + 2 * m * l**2 * v[1] ** 2 / 3
    return moving - m * g * l * np.cos(q[1])


@catalogued(
    "Cart and pole",
    "A pole on a cart, which a force on the cart, the input u, holds upright or swings up.",
    "Barto, Sutton and Anderson, IEEE Trans. Syst. Man Cybern. SMC-13, 1983, 834-846",
)
def cart_pole(
    M: Positive = 1, m: Positive = "0.1", l: Positive = "0.5", g: Positive = "9.8", x0: Number = 0,
    theta0: Number = "0.1", p0: Vector = (0, 0),
) -> Parts:  # fmt: skip
    """A cart of mass M with a pole of mass m and length 2l, let go at the angle theta0 from upright."""
    return Parts(lagrangian=cart_and_pole, force=lambda q, v, u: np.array([u[0], 0]), inputs={"u": 1}, q0=(x0, theta0))
