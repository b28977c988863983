"""What the text states beside its table and figures, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.analysis import symplectic_defect
from leastaction.integrate import integrate
from leastaction.papers.model import Claim, Options, Statement, statement
from leastaction.papers.pendulum2023.errata import force, stiffness
from leastaction.papers.pendulum2023.results import MESHES, METHODS, TABLE_1, errors, problem, run
from leastaction.systems.lagrangian import Lagrangian

ROUNDING = 4 * float(np.finfo(float).eps)  # of quantities of size one
MESHES_OF_ALL_RUNS = (10, *MESHES)  # Figure 2, Table 1


def newton_newmark(q_j: float, p_j: float, h: float, count: int) -> Any:
    """(q, p) after so many iterations of section 3 from (p_j, q_j), with the printed inverse of the Jacobian, m = 1."""
    q, p = q_j, p_j
    for _ in range(count):
        mid = (q_j + q) / 2
        F = np.array([p - p_j + h * force(mid), q - q_j - h / 2 * (p + p_j)])
        c = stiffness(mid)
        inverse = np.array([[1, -h / 2 * c], [h / 2, 1]]) / (1 + h**2 / 4 * c)
        p, q = np.array([p, q]) - inverse @ F
    return np.array([q, p])


def newton_simpson(q_j: float, p_j: float, h: float, count: int) -> Any:
    """(q, p) after so many iterations on (17) and (21) from q_m = q = q_j, p = p_j, m = 1."""
    q_m = q = q_j
    p = p_j
    for _ in range(count):
        theta, phi = h * stiffness(q_m), h * stiffness(q)
        F = np.array(
            [
                q_m - h**2 / 8 * force(q_m) - (q_j + q) / 2,
                p - p_j + h / 6 * (force(q_j) + 4 * force(q_m) + force(q)),
                q - q_j - h**2 / 12 * (force(q) - force(q_j)) - h / 2 * (p + p_j),
            ]
        )
        dF = np.array([[1 - h * theta / 8, 0, -1 / 2], [2 / 3 * theta, 1, phi / 6], [0, -h / 2, 1 - h * phi / 12]])
        q_m, p, q = np.array([q_m, p, q]) - np.linalg.solve(dF, F)
    return np.array([q, p])


def iterations(method: str, mesh: int) -> int:
    """The most iterations that a step of one period needs until more of them change q and p/ω by rounding only."""
    newton = {"Newmark": newton_newmark, "Simpson": newton_simpson}[method]
    path = run(method, mesh)
    scale = np.array([1.0, problem().params["omega"]])
    most = 0
    for q, p in zip(path.q[:-1, 0], path.p[:-1, 0], strict=True):
        last = newton(q, p, float(path.h), 12)
        size = max(1.0, np.abs(last / scale).max())
        needed = next(
            k for k in range(13) if np.abs((newton(q, p, float(path.h), k) - last) / scale).max() <= ROUNDING * size
        )
        most = max(most, needed)
    return most


def five_iterations(method: str, options: Options) -> Claim:
    """Checked on the runs of Figure 2 and Table 1."""
    most = {mesh: iterations(method, mesh) for mesh in MESHES_OF_ALL_RUNS}
    return Claim(
        f"Newton's algorithm for {method}'s scheme, begun at (p_j, q_j), is at machine precision after five iterations",
        max(most.values()) <= 5,
        "most iterations of any step in a period: "
        + ", ".join(f"{count} with {mesh} steps" for mesh, count in most.items()),
    )


def area(method: str, options: Options) -> Claim:
    data, path = problem(), run(method, 10)
    worst = max(
        symplectic_defect(data.system, METHODS[method], q, p, float(path.h))
        for q, p in zip(path.q, path.p, strict=True)
    )
    return Claim(
        f"{method}'s scheme is symplectic: it preserves areas",
        worst < 1e-13,
        f"largest defect of a step's derivative over the ten steps of a period {worst:.0e}",
    )


@statement("section 3, end")
def newmark_energy(options: Options) -> Claim:
    """The nonlinear pendulum, and its linearisation."""
    data, h = problem(), problem().period / 50
    square = float(data.params["omega"]) ** 2
    linear = Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - 0.5 * square * q[0] ** 2, n=1)
    change = []
    for system in (linear, data.system):
        energy = integrate(system, "newmark", data.q0, data.p0, h=h, steps=5000).energy()
        change.append(float(np.abs(energy / energy[0] - 1).max()))
    return Claim(
        "Newmark's scheme keeps the energy constant for the linear problem, not for the nonlinear one",
        change[0] < 1e-12 < change[1],
        f"largest relative change over 100 periods with 50 steps each: linear {change[0]:.0e}, nonlinear "
        f"{change[1]:.1e}",
    )


@statement("caption of Table 1")
def three_orders(options: Options) -> Claim:
    found = {method: [errors(run(method, mesh)) for mesh in MESHES] for method in METHODS}
    quantities = list(dict.fromkeys(quantity for _, quantity in TABLE_1))
    gain = {
        quantity: [np.log10(a[quantity] / b[quantity]) for a, b in zip(found["Newmark"], found["Simpson"], strict=True)]
        for quantity in quantities
    }
    text = "; ".join(f"{quantity} " + ", ".join(f"{x:.1f}" for x in values) for quantity, values in gain.items())
    return Claim(
        "for a given mesh Simpson's scheme is more precise than Newmark's by approximately three orders of magnitude",
        min(min(values) for values in gain.values()) > 2.5,
        f"orders of magnitude with 50, 100, 200 steps: {text}; the gain grows as h falls, being of order h²",
    )


STATEMENTS = [
    Statement("section 3", lambda options: five_iterations("Newmark", options)),
    Statement("section 3, after (10)", lambda options: area("Newmark", options)),
    newmark_energy,
    Statement("section 4", lambda options: five_iterations("Simpson", options)),
    Statement("section 4, end", lambda options: area("Simpson", options)),
    three_orders,
]
