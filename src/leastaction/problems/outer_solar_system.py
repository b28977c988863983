"""The outer solar system: Sun, Jupiter, Saturn, Uranus, Neptune, Pluto.

    L = ½ Σ_i m_i v_i·v_i + G Σ_{i<j} m_i m_j/|q_i − q_j|,    q_i in space, 18 coordinates, body after body

Lengths are astronomical units, times days, masses those of the Sun. The Sun's mass is a little more than 1: it
includes the inner planets. The planets start on 5 September 1994, 0h00, where they stand and move relative to the Sun.
Only energy, momentum and angular momentum are conserved, and no exact solution is known.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from leastaction.problems.gravity import attraction, invariants
from leastaction.problems.problem import Parts, Positive, Vector, catalogued

MASSES = {
    "sun": "1.00000597682",
    "jupiter": "0.000954786104043",
    "saturn": "0.000285583733151",
    "uranus": "0.0000437273164546",
    "neptune": "0.0000517759138449",
    "pluto": "1/130000000",
}
# fmt: off
PLACES = (
    0, 0, 0,
    "-3.5023653", "-3.8169847", "-1.5507963",
    "9.0755314", "-3.0458353", "-1.6483708",
    "8.3101420", "-16.2901086", "-7.2521278",
    "11.4707666", "-25.7294829", "-10.8169456",
    "-15.5387357", "-25.2225594", "-3.1902382",
)
SPEEDS = (
    0, 0, 0,
    "0.00565429", "-0.00412490", "-0.00190589",
    "0.00168318", "0.00483525", "0.00192462",
    "0.00354178", "0.00137102", "0.00055029",
    "0.00288930", "0.00114527", "0.00039677",
    "0.00276725", "-0.00170702", "-0.00136504",
)
# fmt: on


def lagrangian(
    q: Any, v: Any, G: Any, sun: Any, jupiter: Any, saturn: Any, uranus: Any, neptune: Any, pluto: Any
) -> Any:
    return attraction(q, v, G, (sun, jupiter, saturn, uranus, neptune, pluto), 3)


@catalogued(
    "Outer solar system",
    "The Sun and the five planets from Jupiter to Pluto, in astronomical units and days.",
    "E. Hairer, C. Lubich, G. Wanner, Geometric Numerical Integration, second edition, 2006, I.2.4, Table 2.2",
)
def outer_solar_system(
    G: Positive = "2.95912208286e-4",
    sun: Positive = MASSES["sun"],
    jupiter: Positive = MASSES["jupiter"],
    saturn: Positive = MASSES["saturn"],
    uranus: Positive = MASSES["uranus"],
    neptune: Positive = MASSES["neptune"],
    pluto: Positive = MASSES["pluto"],
    q0: Vector = PLACES,
    v0: Vector = SPEEDS,
) -> Parts:
    """From the places q0 with the velocities v0, each of 18 numbers, body after body."""
    masses = (sun, jupiter, saturn, uranus, neptune, pluto)
    return Parts(
        lagrangian=lagrangian,
        p0=tuple(m * v0[3 * i + k] for i, m in enumerate(masses) for k in range(3)),
        invariants=invariants(lambda c: (c.G, [getattr(c, name) for name in MASSES]), 3),
        period=_period(G * (sun + jupiter), q0, v0),
        period_of="the ellipse that Jupiter would follow if there were no other planets; the motion has none",
    )


def _period(mu: Any, q0: tuple[Any, ...], v0: tuple[Any, ...]) -> Any:
    """2π √(a³/μ) with 1/a = 2/r − v²/μ, of Jupiter about the Sun, μ = G (m_sun + m_jupiter); None if unbound."""
    r, v2 = sp.sqrt(sum((q0[3 + k] - q0[k]) ** 2 for k in range(3))), sum((v0[3 + k] - v0[k]) ** 2 for k in range(3))
    inverse = 2 / r - v2 / mu
    return 2 * sp.pi / sp.sqrt(mu * inverse**3) if inverse > 0 else None
