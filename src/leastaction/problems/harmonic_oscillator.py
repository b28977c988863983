"""Harmonic oscillator.

    L = ½ m v·v − ½ m ω² q·q,    H = p·p/(2m) + ½ m ω² q·q
    q(t) = q₀ cos ωt + p₀/(mω) sin ωt,    p(t) = p₀ cos ωt − mω q₀ sin ωt,    period 2π/ω

In the plane the angular momentum q₁p₂ − q₂p₁ is conserved too.

Source: S. Ober-Blöbaum, N. Saake, Construction and analysis of higher order Galerkin variational integrators, 2014,
section 5.1, two dimensions, m = ω = 1. It gives no initial data: those here are chosen for a full ellipse.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

from leastaction.numbers.formulas import Arithmetic
from leastaction.problems.problem import Data, ExactMotion, Parts, Positive, Vector, catalogued

DESCRIPTION = "A mass on a linear spring, the same in every direction."
SOURCE = "Ober-Blöbaum and Saake 2014, section 5.1, eq. (5.1)"


def lagrangian(q: Any, v: Any, m: Any, omega: Any) -> Any:
    return 0.5 * m * np.sum(v**2) - 0.5 * m * omega**2 * np.sum(q**2)


@catalogued("Harmonic oscillator", DESCRIPTION, SOURCE)
def harmonic_oscillator(m: Positive = 1, omega: Positive = 1, q0: Vector = 1, p0: Vector = 0) -> Parts:
    """One degree of freedom."""
    return _oscillator(1)


@catalogued("Harmonic oscillator in the plane", DESCRIPTION, SOURCE)
def harmonic_oscillator_2d(m: Positive = 1, omega: Positive = 1, q0: Vector = (1, 0), p0: Vector = ("1/2", 1)) -> Parts:
    """Two degrees of freedom, isotropic."""
    return _oscillator(2)


def _oscillator(n: int) -> Parts:
    return Parts(
        lagrangian=lagrangian,
        invariants={"energy": energy} | ({"angular-momentum": angular_momentum} if n == 2 else {}),
        solution=solution,
        matrices=lambda c: (c.m * np.eye(n), c.m * c.omega**2 * np.eye(n)),
    )


def energy(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    return sum(pi**2 for pi in p) / (2 * c.m) + c.m * c.omega**2 * sum(qi**2 for qi in q) / 2


def angular_momentum(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    return q[0] * p[1] - q[1] * p[0]


def solution(d: Data) -> ExactMotion:
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
