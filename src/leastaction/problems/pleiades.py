"""Pleiades: seven stars in the plane, of masses 1 to 7, which come close to one another.

    L = ½ Σ_i i v_i·v_i + Σ_{i<j} i j/|q_i − q_j|,    q_i in the plane, i = 1 … 7, 14 coordinates, star after star

The usual interval is 0 ≤ t ≤ 3. Within it, stars pass at distances far below 1, so that a constant step must be small.
Only energy, momentum and angular momentum are conserved, and no exact solution is known.

Source: E. Hairer, S. P. Nørsett, G. Wanner, Solving Ordinary Differential Equations I, second edition, 1993, section
II.10. The state at t = 3 is printed in F. Mazzia, C. Magherini, Test Set for Initial Value Problem Solvers,
2008, problem PLEI; the tests compare with it.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from leastaction.numbers.symbolic import symbolic_vector
from leastaction.problems.gravity import attraction, invariants
from leastaction.problems.problem import Problem

MASSES = tuple(range(1, 8))
PLACES = (3, 3, 3, -3, -1, 2, -3, 0, 2, 0, -2, -4, 2, 4)
SPEEDS = (0, 0, 0, 0, 0, 0, 0, "-5/4", 0, 1, "7/4", 0, "-3/2", 0)


def lagrangian(q: Any, v: Any) -> Any:
    return attraction(q, v, 1, MASSES, 2)


def pleiades(q0: Any = PLACES, v0: Any = SPEEDS) -> Problem:
    """From the places q0 with the velocities v0, each of 14 numbers, star after star."""
    q0, v0 = symbolic_vector(q0, 14, "q0"), symbolic_vector(v0, 14, "v0")
    return Problem(
        name="pleiades",
        title="Pleiades",
        description="Seven stars in the plane that attract each other and nearly collide.",
        source="Hairer, Nørsett and Wanner 1993, section II.10",
        lagrangian=lagrangian,
        q0=q0,
        p0=tuple(MASSES[k // 2] * v for k, v in enumerate(v0)),
        params={},
        settings={"q0": q0, "v0": v0},
        invariants=invariants(lambda c: (1, MASSES), 2),
        period=sp.Rational(3, 20),
        period_of="a twentieth of the usual interval, about the time in which stars pass; the motion has none",
    )
