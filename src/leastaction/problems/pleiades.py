"""Pleiades: seven stars in the plane, of masses 1 to 7, which come close to one another.

    L = ½ Σ_i i v_i·v_i + Σ_{i<j} i j/|q_i − q_j|,    q_i in the plane, i = 1 … 7, 14 coordinates, star after star

The usual interval is 0 ≤ t ≤ 3. Within it, stars pass at distances far below 1, so that a constant step must be small.
Only energy, momentum and angular momentum are conserved, and no exact solution is known.

Source: E. Hairer, S. P. Nørsett, G. Wanner, Solving Ordinary Differential Equations I, second edition, 1993, section
II.10. The state at t = 3 is printed in F. Mazzia, C. Magherini, Test Set for Initial Value Problem Solvers,
2008, problem PLEI: it is the reference.
"""

from __future__ import annotations

from typing import Any

from leastaction.numbers.symbolic import symbolic
from leastaction.problems.gravity import attraction, invariants
from leastaction.problems.problem import Parts, Vector, catalogued

MASSES = tuple(range(1, 8))
PLACES = (3, 3, 3, -3, -1, 2, -3, 0, 2, 0, -2, -4, 2, 4)
SPEEDS = (0, 0, 0, 0, 0, 0, 0, "-5/4", 0, 1, "7/4", 0, "-3/2", 0)

# x_1 … x_7, y_1 … y_7 and their velocities at t = 3.
AT_3 = """
 0.3706139143970502  3.237284092057233  -3.222559032418324   0.6597091455775310
 0.3425581707156584  1.562172101400631  -0.7003092922212495
-3.943437585517392  -3.271380973972550   5.225081843456543  -2.590612434977470
 1.198213693392275  -0.2429682344935824  1.091449240428980
 3.417003806314313   1.354584501625501  -2.590065597810775   2.025053734714242
-1.155815100160448  -0.8072988170223021  0.5952396354208710
-3.741244961234010   0.3773459685750630  0.9386858869551073  0.3667922227200571
-0.3474046353808490  2.344915448180937  -1.947020434263292
"""


def lagrangian(q: Any, v: Any) -> Any:
    return attraction(q, v, 1, MASSES, 2)


@catalogued(
    "Pleiades",
    "Seven stars in the plane that attract each other and nearly collide.",
    "Hairer, Nørsett and Wanner 1993, section II.10",
)
def pleiades(q0: Vector = PLACES, v0: Vector = SPEEDS) -> Parts:
    """From the places q0 with the velocities v0, each of 14 numbers, star after star."""
    usual = all(x == symbolic(y) for x, y in zip(q0 + v0, PLACES + SPEEDS, strict=True))
    x, y, vx, vy = ([symbolic(number) for number in AT_3.split()[7 * k : 7 * k + 7]] for k in range(4))
    place = tuple(z for pair in zip(x, y, strict=True) for z in pair)
    push = tuple(m * z for m, *pair in zip(MASSES, vx, vy, strict=True) for z in pair)
    return Parts(
        lagrangian=lagrangian,
        p0=tuple(MASSES[k // 2] * v for k, v in enumerate(v0)),
        invariants=invariants(lambda c: (1, MASSES), 2),
        period="3/20",
        reference=(3, place, push) if usual else None,
        period_of="a twentieth of the usual interval, about the time in which stars pass; the motion has none",
    )
