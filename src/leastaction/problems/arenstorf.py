"""Arenstorf's orbit: a satellite that loops between earth and moon and comes back to where it began.

In the frame that turns with earth and moon, in units of their distance, their mass and the time of a radian, with the
moon's mass μ, the earth at (−μ, 0) and the moon at (1 − μ, 0),

    L = ½ v·v + x v_y − y v_x + ½ q·q + (1 − μ)/r₁ + μ/r₂.

The momentum is p = v + (−y, x); conserved is the energy H = ½ v·v − ½ q·q − (1 − μ)/r₁ − μ/r₂. The satellite begins
0.0063 from the moon's centre and has passed near the earth three times when it closes after T = 17.07: four loops. The
orbit is unstable: an error at the start has grown by some 10⁵ after one period.

Source: E. Hairer, S. P. Nørsett, G. Wanner, Solving Ordinary Differential Equations I, second edition, 1993, section
II.0, eq. (0.1), with all digits of the start and of the period.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.numbers.formulas import Arithmetic
from leastaction.problems.problem import Number, Parts, Positive, Vector, catalogued

PLACE = ("0.994", 0)
SPEED = (0, "-2.00158510637908252240537862224")
PERIOD = "17.0652165601579625588917206249"


def lagrangian(q: Any, v: Any, mu: Any) -> Any:
    earth, moon = (q[0] + mu) ** 2 + q[1] ** 2, (q[0] - (1 - mu)) ** 2 + q[1] ** 2
    turning = q[0] * v[1] - q[1] * v[0] + 0.5 * np.sum(q**2)
    return 0.5 * np.sum(v**2) + turning + (1 - mu) / np.sqrt(earth) + mu / np.sqrt(moon)


def energy(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    speed = (p[0] + q[1]) ** 2 + (p[1] - q[0]) ** 2
    earth, moon = (q[0] + c.mu) ** 2 + q[1] ** 2, (q[0] - (1 - c.mu)) ** 2 + q[1] ** 2
    return (speed - q[0] ** 2 - q[1] ** 2) / 2 - (1 - c.mu) / x.sqrt(earth) - c.mu / x.sqrt(moon)


@catalogued(
    "Arenstorf's orbit",
    "A satellite that loops between earth and moon, close to the moon, and closes.",
    "Hairer, Nørsett and Wanner 1993, section II.0",
)
def arenstorf(mu: Positive = "0.012277471", q0: Vector = PLACE, v0: Vector = SPEED, period: Number = PERIOD) -> Parts:
    """From q0 with the velocity v0 in the turning frame. Another start has another period, or none: give it too."""
    p0 = (v0[0] - q0[1], v0[1] + q0[0])
    return Parts(
        lagrangian=lagrangian,
        p0=p0,
        invariants={"energy": energy},
        period=period,
        reference=(period, q0, p0),
    )
