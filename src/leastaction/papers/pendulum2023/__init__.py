"""Dubois and Rojas-Quintero (2023): Newmark's and Simpson's schemes on the nonlinear pendulum.

L = ½ m v² − m ω² (1 − cos q), with m = 1, ω = 2π, released from rest at q = π/2; one nonlinear period
is divided into equal steps, and errors are the largest over the steps.
"""

from __future__ import annotations

from leastaction.papers.model import Paper
from leastaction.papers.pendulum2023.errata import ERRATA
from leastaction.papers.pendulum2023.results import FIGURES, TABLES
from leastaction.papers.pendulum2023.statements import STATEMENTS

PAPER = Paper(
    key="pendulum",
    authors="F. Dubois, J. A. Rojas-Quintero",
    title="Simpson's quadrature for a nonlinear variational symplectic scheme",
    reference="Finite Volumes for Complex Applications X, Springer Proc. Math. Stat. 433 (2023) 83–92",
    text="The authors' version of 20 October 2023 in the open archive HAL (hal-04626472).",
    tables=TABLES,
    figures=FIGURES,
    statements=STATEMENTS,
    errata=ERRATA,
)
