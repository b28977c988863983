"""Bodies that attract each other: the Lagrangian and the constants of motion of N point masses, in 2 or 3 dimensions.

    L = ½ Σ_i m_i v_i·v_i + G Σ_{i<j} m_i m_j/|q_i − q_j|

Coordinates stand body after body: q = (x_1, y_1, z_1, x_2, …). Conserved: energy, momentum Σ p_i, angular
momentum Σ q_i × p_i.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from leastaction.numbers.formulas import Arithmetic

PLANES = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}  # axis → the coordinates that turn about it


def attraction(q: Any, v: Any, G: Any, masses: Sequence[Any], dimensions: int) -> Any:
    """The Lagrangian, for NumPy arrays q and v of len(masses)·dimensions coordinates."""
    places, speeds = ([z[dimensions * i : dimensions * (i + 1)] for i in range(len(masses))] for z in (q, v))
    kinetic = sum(m * np.sum(speed**2) for m, speed in zip(masses, speeds, strict=True))
    return 0.5 * kinetic + G * sum(
        masses[i] * masses[j] / np.sqrt(np.sum((places[i] - places[j]) ** 2))
        for i, j in combinations(range(len(masses)), 2)
    )


def invariants(masses: Callable[[Any], tuple[Any, Sequence[Any]]], dimensions: int) -> dict[str, Any]:
    """Energy, momenta and angular momenta as Problem takes them; `masses` reads G and the masses off the parameters."""

    def bodies(z: Any) -> list[Any]:
        return [z[i : i + dimensions] for i in range(0, len(z), dimensions)]

    def energy(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
        G, m = masses(c)
        Q = bodies(q)
        kinetic = sum(sum(y**2 for y in each) / (2 * mi) for each, mi in zip(bodies(p), m, strict=True))
        return kinetic - G * sum(
            m[i] * m[j] / x.sqrt(sum((a - b) ** 2 for a, b in zip(Q[i], Q[j], strict=True)))
            for i, j in combinations(range(len(m)), 2)
        )

    def momentum(axis: int) -> Any:
        return lambda x, c, q, p: sum(p[axis::dimensions])

    def angular_momentum(a: int, b: int) -> Any:
        return lambda x, c, q, p: sum(Q[a] * P[b] - Q[b] * P[a] for Q, P in zip(bodies(q), bodies(p), strict=True))

    found: dict[str, Any] = {"energy": energy}
    found |= {f"momentum-{axis}": momentum(k) for k, axis in enumerate("xyz"[:dimensions])}
    if dimensions == 2:
        return found | {"angular-momentum": angular_momentum(0, 1)}
    return found | {f"angular-momentum-{axis}": angular_momentum(*plane) for axis, plane in PLANES.items()}
