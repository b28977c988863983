"""Rojas-Quintero, Dubois and Jourdan (2025): Simpson's integrator on the double pendulum and on the Lagrange top.

    L = ½ q̇ᵀM(q)q̇ − V(q)                                                                  (1)

Double pendulum (Table 1), Lagrange top with loops (Table 3) and with cusps (Table 6), the latter also reduced to a
first order system (26); Simpson's integrator against the implicit midpoint method and RK4.
"""

from __future__ import annotations

from leastaction.papers.model import Paper
from leastaction.papers.top2025 import figures_cusps, figures_loops, figures_pendulum
from leastaction.papers.top2025.errata import ERRATA
from leastaction.papers.top2025.tables import TABLES

PAPER = Paper(
    key="top",
    authors="J. A. Rojas-Quintero, F. Dubois, F. Jourdan",
    title="Simpson variational integrator for nonlinear systems: a tutorial on the Lagrange top",
    reference="Preprint, 4 December 2025",
    tables=TABLES,
    figures=[*figures_pendulum.FIGURES, *figures_loops.FIGURES, *figures_cusps.FIGURES],
    errata=ERRATA,
)
