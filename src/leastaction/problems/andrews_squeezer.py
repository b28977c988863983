"""Andrews' squeezing mechanism: seven bodies in the plane in three closed loops, driven by a constant torque.

Angles q = (β, Θ, γ, Φ, δ, Ω, ε), six constraints, so one degree of freedom, which moves at some 10³ radians in a
second. Each body has a mass, a moment of inertia and a centre that follows from the angles; a spring pulls at the third
body, and the torque `mom`, with the potential −mom β, turns β:

    L = Σ_k ½ m_k |v_k|² + ½ I_k ω_k² − ½ c₀ (|D − C| − l₀)² + mom β .

Data and reference values at t = 0.03: F. Mazzia, C. Magherini, Test Set for Initial Value Problem Solvers, release 2.4,
2008, problem "Andrews' squeezing mechanism"; E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, Springer
1996, VII.7. The printed multipliers have the other sign: M q̈ = f − Gᵀλ there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.numbers.symbolic import symbolic
from leastaction.problems.problem import Number, Parts, catalogued

MASSES = (".04325", ".00365", ".02373", ".00706", ".07050", ".00706", ".05498")
INERTIAS = ("2.194e-6", "4.410e-7", "5.255e-6", "5.667e-7", "1.169e-5", "5.667e-7", "1.912e-5")
GEOMETRY = {
    "xa": "-.06934", "ya": "-.00227", "xb": "-.03635", "yb": ".03273", "xc": ".014", "yc": ".072",
    "d": "28e-3", "da": "115e-4", "e": "2e-2", "ea": "1421e-5", "rr": "7e-3", "ra": "92e-5",
    "ss": "35e-3", "sa": "1874e-5", "sb": "1043e-5", "sc": "18e-3", "sd": "2e-2", "ta": "2308e-5", "tb": "916e-5",
    "u": "4e-2", "ua": "1228e-5", "ub": "449e-5", "zf": "2e-2", "zt": "4e-2", "fa": "1421e-5",
}  # fmt: skip
START = (
    "-0.0617138900142764496358948458001", 0, "0.455279819163070380255912382449", "0.222668390165885884674473185609",
    "0.487364979543842550225598953530", "-0.222668390165885884674473185609", "1.23054744454982119249735015568",
)  # fmt: skip
# q and q̇ at t = 0.03, as printed: computed there by PSIDE with tolerances of 10⁻¹⁴.
PLACES_AT_THE_END = (
    15.81077119629904, -15.75637105984298, 0.04082224013073101, -0.5347301163226948, 0.5244099658805304,
    0.5347301163226948, 1.048080741042263,
)  # fmt: skip
SPEEDS_AT_THE_END = (
    1139.920302151208, -1424.379294994111, 11.03291221937134, 19.29337464421385, 0.5735699284790808, -19.29337464421385,
    0.3231791658026955,
)  # fmt: skip


def lagrangian(q: Any, v: Any, **c: Any) -> Any:
    beta, theta, gamma, phi, delta, omega, epsilon = q
    turning = [v[0], v[0] + v[1], v[2], v[3] + v[4], v[4], v[5] + v[6], v[6]]
    drive, rod, plate, left, link, right, arm = turning
    # The parts (along, across, angle, rate) of each centre: along (cos, sin) of the angle and across (−sin, cos).
    centres = [
        [(c["ra"], 0, beta, drive)],
        [(c["rr"], 0, beta, drive), (-c["da"], 0, beta + theta, rod)],
        [(c["sb"], -c["sa"], gamma, plate)],
        [(c["zt"], 0, delta, link), (0, c["ea"] - c["e"], phi + delta, left)],
        [(c["ta"], c["tb"], delta, link)],
        [(0, -c["u"], epsilon, arm), (c["zf"] - c["fa"], 0, omega + epsilon, right)],
        [(-c["ub"], -c["ua"], epsilon, arm)],
    ]
    kinetic = 0
    for k, (parts, rate) in enumerate(zip(centres, turning, strict=True), 1):
        x = sum(-w * (along * np.sin(a) + across * np.cos(a)) for along, across, a, w in parts)
        y = sum(w * (along * np.cos(a) - across * np.sin(a)) for along, across, a, w in parts)
        kinetic = kinetic + 0.5 * c[f"m{k}"] * (x**2 + y**2) + 0.5 * c[f"I{k}"] * rate**2
    x = c["sd"] * np.cos(gamma) + c["sc"] * np.sin(gamma) + c["xb"] - c["xc"]
    y = c["sd"] * np.sin(gamma) - c["sc"] * np.cos(gamma) + c["yb"] - c["yc"]
    return kinetic - 0.5 * c["c0"] * (np.sqrt(x**2 + y**2) - c["l0"]) ** 2 + c["mom"] * beta


def loops(
    q: Any, xa: Any, ya: Any, xb: Any, yb: Any, d: Any, e: Any, rr: Any, ss: Any, u: Any, zf: Any, zt: Any
) -> Any:
    """The three ways from the drive to the point where the bodies meet."""
    beta, theta, gamma, phi, delta, omega, epsilon = q
    x, y = rr * np.cos(beta) - d * np.cos(beta + theta), rr * np.sin(beta) - d * np.sin(beta + theta)
    return np.array(
        [
            x - ss * np.sin(gamma) - xb,
            y + ss * np.cos(gamma) - yb,
            x - e * np.sin(phi + delta) - zt * np.cos(delta) - xa,
            y + e * np.cos(phi + delta) - zt * np.sin(delta) - ya,
            x - zf * np.cos(omega + epsilon) - u * np.sin(epsilon) - xa,
            y - zf * np.sin(omega + epsilon) + u * np.cos(epsilon) - ya,
        ]
    )


@catalogued(
    "Andrews' squeezing mechanism",
    "Seven bodies in three closed loops, driven by a torque: a reference problem for constraints.",
    "Mazzia and Magherini, Test Set for IVP Solvers; Hairer and Wanner II, VII.7",
)
def andrews_squeezer(mom: Number = "33e-3") -> Parts:
    """At rest, driven by the torque mom."""
    return Parts(
        lagrangian=lagrangian,
        constraints=loops,
        q0=START,
        p0=(0,) * 7,
        params={
            **{f"m{k}": x for k, x in enumerate(MASSES, 1)},
            **{f"I{k}": x for k, x in enumerate(INERTIAS, 1)},
            "c0": 4530,
            "l0": "7785e-5",
            "mom": mom,
            **GEOMETRY,
        },
        period="3/100",
        period_of="the time of the reference",
        moving_reference=("3/100", PLACES_AT_THE_END, SPEEDS_AT_THE_END) if mom == symbolic("33e-3") else None,
    )
