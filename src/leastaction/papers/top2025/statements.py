"""What the text and the captions of the tables state, checked on the errors of Tables 2, 4 and 5 and on steps."""

from __future__ import annotations

from collections.abc import Sequence

from leastaction.analysis import symplectic_defect
from leastaction.papers.model import Claim, Options, order, statement
from leastaction.papers.top2025.figures import listed
from leastaction.papers.top2025.runs import METHODS, MIDPOINT, RK4, SIMPSON, problem, run
from leastaction.papers.top2025.tables import PENDULUM_MESHES, TOP_MESHES, errors

PENDULUM, TOP = "double-pendulum", "lagrange-top"
PENDULUM_LENGTHS = (1, 10, 100, 1000, 10000)
TOP_LENGTHS = (1, 10, 100, 1000)


def _orders(name: str, method: str, quantity: str) -> list[float]:
    """The orders over runs of growing length."""
    top = name == TOP
    lengths, meshes = (TOP_LENGTHS, TOP_MESHES) if top else (PENDULUM_LENGTHS, PENDULUM_MESHES)
    e = [errors(name, method, mesh, lengths)[quantity] for mesh in meshes]
    return [order([x[T] for x in e]) for T in lengths]


def _spread(orders: Sequence[float]) -> float:
    return max(orders) - min(orders)


@statement("section 2.3")
def symplectic(options: Options) -> Claim:
    worst = 0.0
    for name, h in (("double-pendulum", 0.1), ("lagrange-top-cusps", 0.05)):
        path = run(name, SIMPSON, h, 10)
        for q, p in zip(path.q, path.p, strict=True):
            worst = max(worst, symplectic_defect(problem(name).system, "simpson", q, p, h))
    return Claim(
        "the map (p_j, q_j) ↦ (p_{j+1}, q_{j+1}) is symplectic",
        worst < 1e-11,
        f"its derivative preserves the symplectic form to {worst:.0e} at worst, at eleven states of the double "
        "pendulum and of the top with cusps",
    )


@statement("section 3.2.2")
def pendulum_rates(options: Options) -> Claim:
    found = {method: _orders(PENDULUM, method, "energy") for method in METHODS}
    return Claim(
        "the symplectic integrators hold their rates across all lengths; RK4's fluctuates",
        _spread(found[MIDPOINT]) < 0.05 and _spread(found[SIMPSON]) < 0.05 < 0.5 < _spread(found[RK4]),
        f"orders over T = 1 … 10⁴ s: midpoint {listed(found[MIDPOINT])}; Simpson {listed(found[SIMPSON])}; "
        f"RK4 {listed(found[RK4])}",
    )


@statement("caption of Table 2")
def pendulum_growth(options: Options) -> Claim:
    growth = {}
    for method in METHODS:
        e = errors(PENDULUM, method, PENDULUM_MESHES[2], PENDULUM_LENGTHS)["energy"]
        growth[method] = e[10000] / e[1]
    return Claim(
        "the energy's error norm grows over time for RK4",
        growth[RK4] > 100 > 2 > max(growth[MIDPOINT], growth[SIMPSON]),
        "over 10⁴ s, divided by that over 1 s, h = 0.01: "
        + ", ".join(f"{method} {ratio:.3g}" for method, ratio in growth.items()),
    )


@statement("section 4.2.2, and caption of Table 4")
def nutation_rates(options: Options) -> Claim:
    found = {method: _orders(TOP, method, "nutation") for method in METHODS}
    return Claim(
        "on the nutation the midpoint method's order falls to zero at 1000 periods, RK4's approaches 6 at 100, "
        "Simpson's is maintained",
        abs(found[MIDPOINT][-1]) < 0.05 and 5.5 < found[RK4][2] < 6 and _spread(found[SIMPSON]) < 0.2,
        f"orders over 1, 10, 100, 1000 t̄: midpoint {listed(found[MIDPOINT])}; RK4 {listed(found[RK4])}; Simpson "
        f"{listed(found[SIMPSON])}",
    )


@statement("section 4.2.2, and caption of Table 5")
def energy_rates(options: Options) -> Claim:
    found = {method: _orders(TOP, method, "energy") for method in METHODS}
    return Claim(
        "on the energy the symplectic methods preserve their order; RK4's fluctuates and approaches 5",
        _spread(found[MIDPOINT]) < 0.05 and _spread(found[SIMPSON]) < 0.05 and 4.8 < max(found[RK4]) < 5.1,
        f"orders over 1, 10, 100, 1000 t̄: midpoint {listed(found[MIDPOINT])}; RK4 {listed(found[RK4])}; Simpson "
        f"{listed(found[SIMPSON])}",
    )


@statement("caption of Table 5")
def growing_norms(options: Options) -> Claim:
    """A largest error over a longer run cannot be smaller; whether it is larger is the question."""
    grows: dict[str, list[float]] = {}
    for method in METHODS:
        e = [errors(TOP, method, mesh, TOP_LENGTHS)["energy"] for mesh in TOP_MESHES]
        grows[method] = [x[1000] / x[1] for x in e]
    words = [f"{method} {', '.join(f'{ratio:.4g}' for ratio in ratios)}" for method, ratios in grows.items()]
    return Claim(
        "the energy's error norms increase with the simulation length",
        all(max(ratios) > 1 for ratios in grows.values()) and min(grows[RK4]) > 10,
        f"over 1000 periods divided by that over one, with h = 0.02, 0.01, 0.005 t̄: {'; '.join(words)}: RK4's grow, "
        f"those of the symplectic methods by {max(grows[SIMPSON] + grows[MIDPOINT]) - 1:.1%} at most",
    )


STATEMENTS = [symplectic, pendulum_rates, pendulum_growth, nutation_rates, energy_rates, growing_norms]
