"""Ober-Blöbaum and Saake (2015): the Galerkin family PsNrQu, its stability and its orders."""

from __future__ import annotations

from leastaction.papers.galerkin2014.errata import ERRATA
from leastaction.papers.galerkin2014.figures import FIGURES
from leastaction.papers.galerkin2014.statements import STATEMENTS
from leastaction.papers.galerkin2014.tables import TABLES
from leastaction.papers.model import Other, Paper

PAPER = Paper(
    key="galerkin",
    authors="S. Ober-Blöbaum, N. Saake",
    title="Construction and analysis of higher order Galerkin variational integrators",
    reference="Adv. Comput. Math. 41 (2015) 955–986",
    text="The authors' version that bears the date 31 October 2018.",
    tables=TABLES,
    figures=FIGURES,
    statements=STATEMENTS,
    errata=ERRATA,
    others=[Other("Figure 3.1", "a diagram of the discrete Lagrangian and Hamiltonian maps")],
)
