"""Rojas-Quintero, Dubois and Cabrera-Díaz (2024): Newmark, Simpson and RK4 on the linearised double pendulum.

    M = | (m₁+m₂) l²   m₂ l² |     K = | (m₁+m₂) g l    0    |                        (48)
        |    m₂ l²     m₂ l² |         |      0       m₂ g l |

    ω² = ω₀² (1 + μ ± √(μ(1 + μ))),   μ = m₂/m₁,  ω₀² = g/l                           (49)

Figures are numbered as in the authors' version; the journal's has its Figure 3 as 3 and 4, and those after one later.
"""

from __future__ import annotations

from leastaction.papers.model import Paper
from leastaction.papers.quadratic2024.errata import ERRATA
from leastaction.papers.quadratic2024.figures import FIGURES
from leastaction.papers.quadratic2024.tables import TABLES

PAPER = Paper(
    key="quadratic",
    authors="J. A. Rojas-Quintero, F. Dubois, J. G. Cabrera-Díaz",
    title="Simpson's Variational Integrator for Systems with Quadratic Lagrangians",
    reference="Axioms 13 (2024) 255",
    tables=TABLES,
    figures=FIGURES,
    errata=ERRATA,
)
