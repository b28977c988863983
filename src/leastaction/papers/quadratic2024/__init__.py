"""Rojas-Quintero, Dubois and Cabrera-Díaz (2024): Newmark, Simpson and RK4 on the linearised double pendulum.

    M = | (m₁+m₂) l²   m₂ l² |     K = | (m₁+m₂) g l    0    |                        (48)
        |    m₂ l²     m₂ l² |         |      0       m₂ g l |

    ω² = ω₀² (1 + μ ± √(μ(1 + μ))),   μ = m₂/m₁,  ω₀² = g/l                           (49)

Figures are numbered as in the authors' version; in the journal's version Figure 3 is Figures 3 and 4, and later numbers
are one higher.
"""

from __future__ import annotations

import math

from leastaction.papers.model import Other, Paper
from leastaction.papers.quadratic2024.errata import ERRATA
from leastaction.papers.quadratic2024.figures import FIGURES
from leastaction.papers.quadratic2024.statements import STATEMENTS
from leastaction.papers.quadratic2024.tables import GRAVITY, OMEGA_0, P0, Q0, TABLES


def _constants() -> str:
    return (
        f"m₁ = m₂ = 1, ω₀ = {OMEGA_0 / math.pi:g}π s⁻¹, g = {GRAVITY} m/s², l = g/ω₀² = {GRAVITY / OMEGA_0**2:.6f} m; "
        f"q(0) = ({Q0[0]:g}, π/{math.pi / Q0[1]:g}), p(0) = ({P0[0]:g}, {P0[1]:g})"
    )


PAPER = Paper(
    key="quadratic",
    authors="J. A. Rojas-Quintero, F. Dubois, J. G. Cabrera-Díaz",
    title="Simpson's Variational Integrator for Systems with Quadratic Lagrangians",
    reference="Axioms 13 (2024) 255",
    text="Two texts, the authors' version and the journal's; what both say was printed.",
    tables=TABLES,
    figures=FIGURES,
    statements=STATEMENTS,
    errata=ERRATA,
    others=[
        Other("Table 1", "constants and initial conditions", _constants),
        Other("Figure 1", "a drawing of the double pendulum"),
    ],
)
