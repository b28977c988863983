"""Theorems, lemmas and remarks of sections 3 and 4, checked: exactly where that is possible, else by numbers."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import sympy as sp

from leastaction.analysis import (
    equivalences,
    iteration_matrix,
    reversibility_defect,
    same_map,
    stability,
    symplectic_defect,
)
from leastaction.analysis.discrete_lagrangian import discrete_lagrangian
from leastaction.integrate import integrate
from leastaction.methods import Galerkin
from leastaction.papers.galerkin2014.runs import KEPLER, member
from leastaction.papers.model import Claim, Options, statement
from leastaction.problems import get

x = sp.Symbol("x")
MOST = 5  # degrees checked, as in the paper's tables
VARIATIONAL_MOST = 3  # degrees whose discrete Lagrangians are compared with the action
VARIATIONAL_STEPS = ("1/64", "1/128", "1/256")
STABLE_MOST = 8  # degrees of PsNsQ2sGau checked to be stable for every h

# Section 4.3, items 2, 4, 6: λ = (a ± x √d)/c, as (a, d, c).
EIGENVALUES = {
    "P1N2Q2Lob": (2 - x**2, x**2 - 4, sp.Integer(2)),
    "P2N3Q4Lob": (x**4 - 22 * x**2 + 48, x**6 - 44 * x**4 + 576 * x**2 - 2304, 2 * x**2 + 48),
    "P3N4Q6Lob": (
        3600 - 1680 * x**2 + 92 * x**4 - x**6,
        x**10 - 184 * x**8 + 11820 * x**6 - 316800 * x**4 + 3456000 * x**2 - 12960000,
        2 * x**4 + 120 * x**2 + 3600,
    ),
}


@lru_cache(maxsize=1)
def _members() -> tuple[Galerkin, ...]:
    """PsNrQ2rGau and PsNrQ2r−2Lob, s ≤ r ≤ 5 and 6, as in Tables 1 and 2."""
    gauss = [member("Gau", s, r) for r in range(1, MOST + 1) for s in range(1, r + 1)]
    lobatto = [member("Lob", s, r) for r in range(2, MOST + 2) for s in range(1, r + 1)]
    return (*gauss, *lobatto)


@statement("Remark 3.3")
def collocation(options: Options) -> Claim:
    found = [equivalences(member("Gau", s, s)).gauss for s in range(1, MOST + 1)]
    apart = same_map("P2N3Q6Gau", "P2N2Q4Gau")
    return Claim(
        "PsNsQ2sGau is Gauss collocation",
        all(found),
        f"s = 1 … {MOST}: their tables agree in 60 digits, for every Lagrangian; P2N3Q6Gau, with a node more, is "
        f"another map (a step of {apart.h[0]:.2f} leads them {apart.difference[0]:.0e} apart)",
    )


@statement("Remark 3.3")
def lobatto_pair(options: Options) -> Claim:
    found = [equivalences(member("Lob", s, s)).lobatto_pair for s in range(2, MOST + 2)]
    return Claim(
        "PsNsQ2s−2Lob is the partitioned Runge–Kutta method of the Lobatto IIIA–IIIB pair",
        set(found) == {"always"},
        f"s = 2 … {MOST + 1}: their tables agree in 60 digits, for every Lagrangian",
    )


@statement("section 4.1.1")
def symplectic(options: Options) -> Claim:
    data = get("double-pendulum")
    worst = max((symplectic_defect(data.system, m, data.q0, [0.3, -0.2], 0.05), m.name) for m in _members())
    other = symplectic_defect(data.system, "rk4", data.q0, [0.3, -0.2], 0.05)
    return Claim(
        "the integrators PsNrQu are symplectic",
        worst[0] < 1e-12 < other,
        f"{len(_members())} members on the double pendulum, whose mass depends on q, h = 0.05: the derivative of a "
        f"step preserves the symplectic form to {worst[0]:.0e} at worst ({worst[1]}); that of RK4 misses it by "
        f"{other:.0e}",
    )


@statement("Remark 4.5")
def noether(options: Options) -> Claim:
    given = get(KEPLER)
    worst = (0.0, "")
    for m in _members():
        path = integrate(given.system, m, given.q0, given.p0, h=0.05, steps=100)
        I = given.invariants["angular-momentum"](path.q, path.p)
        worst = max(worst, (float(np.abs(I / I[0] - 1).max()), m.name))
    return Claim(
        "for linear group transformations L_d inherits the invariance of L, so that the momentum map is preserved",
        worst[0] < 1e-13,
        f"angular momentum of the Kepler problem, {len(_members())} members, 100 steps of 0.05: relative error at most "
        f"{worst[0]:.0e} ({worst[1]})",
    )


@statement("Theorem 4.10")
def reversible(options: Options) -> Claim:
    data = get("double-pendulum")
    worst = max((reversibility_defect(data.system, m, data.q0, [0.3, -0.2], 0.05), m.name) for m in _members())
    other = reversibility_defect(data.system, "rk4", data.q0, [0.3, -0.2], 0.05)
    return Claim(
        "PsNrQ2rGau and PsNrQ2r−2Lob are self-adjoint, hence time-reversible",
        worst[0] < 1e-13 < other,
        f"{len(_members())} members on the double pendulum, a step of 0.05 forward and one back: {worst[0]:.0e} from "
        f"the start at worst ({worst[1]}); RK4 {other:.0e}",
    )


@statement("Lemma 4.11")
def a_stable(options: Options) -> Claim:
    names = [member("Gau", s, s).name for s in range(1, STABLE_MOST + 1)]
    found = [stability(name).for_all_h for name in names]
    gauss = [equivalences(name).gauss for name in names[:MOST]]
    return Claim(
        "PsNsQ2sGau is A-stable",
        all(found) and all(gauss),
        f"on the oscillator stable for every h, exactly, for s = 1 … {STABLE_MOST}; as in the paper's proof, it is "
        f"Gauss collocation (s = 1 … {MOST}), which is A-stable",
    )


@statement("section 4.3, items 2, 4, 6")
def eigenvalues(options: Options) -> Claim:
    wrong = []
    for name, (a, d, c) in EIGENVALUES.items():
        M = iteration_matrix(name)
        total, product = 2 * a / c, (a**2 - x**2 * d) / c**2
        if sp.simplify(total - M.trace()) != 0 or sp.simplify(product - M.det()) != 0:
            wrong.append(name)
    return Claim(
        f"the eigenvalues given for {', '.join(EIGENVALUES)}",
        not wrong,
        "their sums and products are trace and determinant of the matrices derived from L_d, exactly"
        + (f", but not for {', '.join(wrong)}" if wrong else ""),
    )


@statement("section 6, outlook")
def variational_order(options: Options) -> Claim:
    """What the outlook asks for: the order of L_d − L_d^exact along a motion of Kepler's problem."""
    given, orders = get(KEPLER), {}
    members = [m for m in _members() if m.s <= VARIATIONAL_MOST and m.rule.r <= VARIATIONAL_MOST + 1]
    for m in members:
        Ld = discrete_lagrangian(given.system, m, VARIATIONAL_STEPS[0], params=given.exact_params)
        orders[m] = Ld.variational_order(given.exact_q0, p0=given.exact_p0, h=VARIATIONAL_STEPS).order
    worst = max(members, key=lambda m: abs(orders[m] - m.order))
    return Claim(
        "variational error analysis: the discrete Lagrangian matches the action to the order min(2s, u)",
        abs(orders[worst] - worst.order) < 0.1,
        f"|L_d − L_d^exact| along the motion, 60 digits, h = {', '.join(VARIATIONAL_STEPS)}, {len(members)} members "
        f"with s ≤ {VARIATIONAL_MOST}, r ≤ {VARIATIONAL_MOST + 1}: farthest from min(2s, u) is {worst.name}, "
        f"{orders[worst]:.3f} for {worst.order}",
    )


STATEMENTS = [collocation, lobatto_pair, symplectic, noether, reversible, eigenvalues, a_stable, variational_order]
