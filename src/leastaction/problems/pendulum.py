"""Nonlinear pendulum.

    L = ½ m v² − m ω² (1 − cos q),    H = p²/(2m) + m ω² (1 − cos q)

With k² = H/(2mω²) the motion is, by Jacobi's functions,

    k < 1, libration    sin(q/2) = k sn(u, k²),  q' = 2ωk cn(u, k²),      u = u₀ + ωt,     period 4K(k²)/ω
    k > 1, rotation     q/2 = ±am(u, 1/k²),      q' = ±2ωk dn(u, 1/k²),   u = u₀ + kωt,    one turn in 2K(1/k²)/(kω)
    k = 1, separatrix   sin(q/2) = ± tanh u,     q' = ±2ω / cosh u,       u = u₀ + ωt,     no period

Source: F. Dubois, J. A. Rojas-Quintero, Simpson's quadrature for a nonlinear variational symplectic scheme, 2023,
eq. (4) and Annex (libration from rest); m = 1, ω = 2π, q(0) = π/2, p(0) = 0.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

from leastaction.numbers.formulas import Arithmetic
from leastaction.problems.elliptic import sncndn
from leastaction.problems.problem import Data, ExactMotion, Number, Parts, Positive, catalogued


def lagrangian(q: Any, v: Any, m: Any, omega: Any) -> Any:
    return 0.5 * m * v[0] ** 2 - m * omega**2 * (1 - np.cos(q[0]))


@catalogued(
    "Nonlinear pendulum",
    "A point mass on a rigid rod: swings of any amplitude, and turns.",
    "Dubois and Rojas-Quintero 2023, eq. (4) and Annex",
)
def pendulum(m: Positive = 1, omega: Positive = "2*pi", theta0: Number = "pi/2", p0: Number = 0) -> Parts:
    """From the angle theta0 with momentum p0: any amplitude, and rotation."""
    return Parts(
        lagrangian=lagrangian,
        q0=(theta0,),
        invariants={"energy": energy},
        solution=solution,
    )


def energy(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    return p[0] ** 2 / (2 * c.m) + c.m * c.omega**2 * 2 * x.sin(q[0] / 2) ** 2


def solution(d: Data) -> ExactMotion:
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
