"""Ober-Blöbaum and Saake (2015): the Galerkin family PsNrQu, its stability and its orders."""

from __future__ import annotations

from leastaction.papers.galerkin2014.tables import TABLES
from leastaction.papers.model import Paper

PAPER = Paper(
    key="galerkin",
    authors="S. Ober-Blöbaum, N. Saake",
    title="Construction and analysis of higher order Galerkin variational integrators",
    reference="Adv. Comput. Math. 41 (2015) 955–986",
    tables=TABLES,
)
