"""Rojas-Quintero, Dubois and Jourdan (2025): Simpson's integrator on the double pendulum and on the Lagrange top.

    L = ½ q̇ᵀM(q)q̇ − V(q)                                                                  (1)

Double pendulum (Table 1), Lagrange top with loops (Table 3) and with cusps (Table 6), the latter also reduced to a
first order system (26); Simpson's integrator against the implicit midpoint method and RK4.
"""

from __future__ import annotations

from leastaction.papers.model import Other, Paper
from leastaction.papers.top2025.errata import ERRATA
from leastaction.papers.top2025.figures import FIGURES
from leastaction.papers.top2025.runs import problem
from leastaction.papers.top2025.statements import STATEMENTS
from leastaction.papers.top2025.tables import TABLES


def _data(name: str) -> str:
    """A problem's parameters and initial state, as the runs take them."""
    data = problem(name)
    v0 = data.system.velocity(data.q0, data.p0)
    numbers = ", ".join(f"{key} = {float(value):.6g}" for key, value in data.params.items())
    states = (("q(0)", data.q0), ("p(0)", data.p0), ("v(0)", v0))
    return numbers + "; " + ", ".join(f"{key} = ({', '.join(f'{x:.6g}' for x in state)})" for key, state in states)


PAPER = Paper(
    key="top",
    authors="J. A. Rojas-Quintero, F. Dubois, F. Jourdan",
    title="Simpson variational integrator for nonlinear systems: a tutorial on the Lagrange top",
    reference="Preprint, 4 December 2025",
    text="The preprint that bears the date 4 December 2025.",
    tables=TABLES,
    figures=FIGURES,
    statements=STATEMENTS,
    errata=ERRATA,
    others=[
        Other("Table 1", "constants and initial conditions of the double pendulum", lambda: _data("double-pendulum")),
        Other("Table 3", "parameters of the top with loops, q = (φ, θ, ψ)", lambda: _data("lagrange-top")),
        Other("Table 6", "parameters of the top with cusps, q = (φ, θ, ψ)", lambda: _data("lagrange-top-cusps")),
        Other("Figures 1 and 6", "drawings of the double pendulum and of Euler's angles"),
    ],
)
