"""The linearised double pendulum of the Simpson paper (2024), section 5: two equal rods, angles from the vertical.

    M = | (m₁+m₂) l²   m₂ l² |     K = | (m₁+m₂) g l    0    |                        (48)
        |    m₂ l²     m₂ l² |         |      0       m₂ g l |

    ω² = ω₀² (1 + μ ± √(μ(1 + μ))),   μ = m₂/m₁,  ω₀² = g/l                           (49)

Released from q(0) = (0, π/6) at rest (Table 1). The paper's unit of time is t̄ = 2π/ω₀, although it prints 1/ω₀; with
t̄ = 1 s the rods have l = g/ω₀² = 0.248 m.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.linear import Quadratic

FloatArray = NDArray[np.float64]

GRAVITY = 9.81
OMEGA_0 = 2 * math.pi  # so that t̄ = 1 s
Q0 = np.array([0.0, math.pi / 6])
P0 = np.zeros(2)


def system(m1: float = 1.0, m2: float = 1.0, l: float = GRAVITY / OMEGA_0**2, g: float = GRAVITY) -> Quadratic:
    """M and K of equation (48), l₁ = l₂ = l."""
    M = l**2 * np.array([[m1 + m2, m2], [m2, m2]])
    return Quadratic(M, g * l * np.array([m1 + m2, m2]))


def frequencies(mu: float = 1.0, omega_0: float = OMEGA_0) -> tuple[float, float]:
    """ω₁ > ω₂ of equation (49)."""
    root = math.sqrt(mu * (1 + mu))
    return omega_0 * math.sqrt(1 + mu + root), omega_0 * math.sqrt(1 + mu - root)


def exact(t: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """q and p at t for equal masses, from Q0 at rest: the two modes (50) in closed form.

    q = (π/12) ((cos ω₂t − cos ω₁t)/√2, cos ω₁t + cos ω₂t), and p = M q̇.
    """
    w1, w2 = frequencies()
    t = np.asarray(t, dtype=float)
    c1, c2, s1, s2 = np.cos(w1 * t), np.cos(w2 * t), w1 * np.sin(w1 * t), w2 * np.sin(w2 * t)
    q = np.pi / 12 * np.stack([(c2 - c1) / np.sqrt(2), c1 + c2], axis=-1)
    v = np.pi / 12 * np.stack([(s1 - s2) / np.sqrt(2), -s1 - s2], axis=-1)
    return q, v @ system().M
