"""Dubois and Rojas-Quintero (2023): Newmark's and Simpson's schemes on the nonlinear pendulum.

L = ½ m v² − m ω² (1 − cos q), with m = 1, ω = 2π, released from rest at q = π/2; one nonlinear period
is divided into equal steps, and errors are the largest over the steps.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from leastaction.analysis import symplectic_defect, tangent
from leastaction.integrate import integrate
from leastaction.papers.model import (
    Cell,
    Claim,
    Options,
    Paper,
    PublishedTable,
    Redrawn,
    Statement,
    as_read,
    error_cells,
    published,
    redrawn,
    statement,
)
from leastaction.papers.style import EXACT, line
from leastaction.problems import get
from leastaction.results.path import Path
from leastaction.systems.lagrangian import Lagrangian

MESHES = (50, 100, 200)
METHODS = {"Newmark": "newmark", "Simpson": "simpson"}

PRECISE = "P8N8Q16Gau"  # checks the period without the closed form
# {(method, quantity): errors with 50, 100, 200 steps, order}, as printed.
TABLE_1 = published("pendulum 1")


@lru_cache(maxsize=1)
def problem() -> Any:
    return get("pendulum")


def run(method: str, steps: int, periods: int = 1) -> Path:
    """`steps` equal steps in each period."""
    data = problem()
    end = periods * data.period
    return integrate(data.system, METHODS[method], data.q0, data.p0, h=end / (steps * periods), t_end=end)


def errors(path: Path) -> dict[str, float]:
    """The largest errors of momentum and state, and of the energy relative to its value."""
    q, p = problem().exact(path.t)
    energy = path.energy()
    return {
        "momentum": float(np.abs(path.p - p).max()),
        "state": float(np.abs(path.q - q).max()),
        "relative energy": float(np.abs(energy / energy[0] - 1).max()),
    }


def table_1(options: Options) -> list[Cell]:
    """Errors with 50, 100 and 200 steps in a period, and the order ½ log₂(e₁/e₃)."""
    found = {method: [errors(run(method, steps)) for steps in MESHES] for method in METHODS}
    return error_cells(
        "1",
        [f"{steps} steps" for steps in MESHES],
        (
            (f"{method}, {quantity}", published, [error[quantity] for error in found[method]], ())
            for (method, quantity), published in TABLE_1.items()
        ),
    )


@redrawn("1", "Five periods of the nonlinear pendulum, exact")
def figure_1(options: Options) -> Redrawn:
    data = problem()
    t = np.linspace(0, 5 * data.period, 2001)
    q, p = data.exact(t)
    figure, axes = plt.subplots(2, 1, sharex=True, figsize=(7, 4.5))
    for ax, values, label in zip(axes, (q, p), ("state $q$ (rad)", "momentum $p$ (s⁻¹, $m$ = 1)"), strict=True):
        ax.plot(t, values, **EXACT)
        ax.set_ylabel(label)
    axes[1].set_xlabel("time $t$ (s)")
    linear = 1.0  # 2π/ω
    precise = integrate(data.system, PRECISE, data.q0, data.p0, h=data.period / 100, t_end=data.period)
    off = float(abs(precise.q[-1, 0] - data.q0[0]))
    claim = Claim(
        "the period is that of relation (25), 4 K(sin²(θ₀/2))/ω, not 2π/ω",
        off < 1e-11 and data.period > 1.1 * linear,
        f"T = {data.period:.6f} s against 2π/ω = {linear:g} s; after T a run by {PRECISE} is off by {off:.0e}",
    )
    return Redrawn(figure, [claim])


@redrawn("2", "Newmark and Simpson with ten steps in a period, over five periods")
def figure_2(options: Options) -> Redrawn:
    data = problem()
    t = np.linspace(0, 5 * data.period, 2001)
    exact = data.exact(t)
    figure, axes = plt.subplots(2, 1, sharex=True, figsize=(7, 5))
    worst = {}
    for i, label in enumerate(("state $q$ (rad)", "momentum $p$ (s⁻¹, $m$ = 1)")):
        axes[i].plot(t, exact[i], label="exact", **EXACT)
        axes[i].set_ylabel(label)
    for name in METHODS:
        path = run(name, 10, periods=5)
        worst[name] = errors(path)["state"]
        for ax, values in zip(axes, (path.q, path.p), strict=True):
            ax.plot(path.t, values, label=name, **(line(METHODS[name]) | {"linestyle": "none"}))
    axes[0].legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    axes[1].set_xlabel("time $t$ (s)")
    amplitude = float(abs(data.q0[0]))
    claim = Claim(
        "with ten points per period Newmark's errors are plainly visible, Simpson is still precise",
        worst["Newmark"] > 0.2 * amplitude and worst["Simpson"] < 0.05 * amplitude,
        f"largest error of q over five periods: Newmark {worst['Newmark']:.2f} rad, Simpson {worst['Simpson']:.3f} rad",
    )
    return Redrawn(figure, [claim])


# Formulas of the text that are wrong as read, each by one mark.


def force(q: Any) -> Any:
    """V' = m ω² sin q, m = 1."""
    return problem().params["omega"] ** 2 * np.sin(q)


def stiffness(q: Any) -> Any:
    """V'' = m ω² cos q, m = 1."""
    return problem().params["omega"] ** 2 * np.cos(q)


def simpson_lagrangian(q_l: Any, q_m: Any, q_r: Any, h: float) -> Any:
    """L_S of (13) to (15)."""
    g_l, g_m, g_r = (-3 * q_l + 4 * q_m - q_r) / h, (q_r - q_l) / h, (q_l - 4 * q_m + 3 * q_r) / h
    V = [problem().params["omega"] ** 2 * (1 - np.cos(q)) for q in (q_l, q_m, q_r)]
    return h / 12 * (g_l**2 + 4 * g_m**2 + g_r**2) - h / 6 * (V[0] + 4 * V[1] + V[2])


def newmark_derivative(h: float, curvature: Any) -> Any:
    """A⁻¹B of (10) for the first step, in the order (p, q), with this function as V''."""
    path = integrate(problem().system, "newmark", problem().q0, problem().p0, h=h, steps=1)
    c = curvature(path.q.mean())
    A, B = np.array([[1, h / 2 * c], [-h / 2, 1]]), np.array([[1, -h / 2 * c], [h / 2, 1]])
    return np.linalg.solve(A, B)


@as_read(
    "section 3, between (9) and (10), definition of V″_{j+1/2}",
    "V″_{j+1/2} = ∂V/∂q at q_{j+1/2}",
    "V″_{j+1/2} = ∂²V/∂q² at q_{j+1/2}",
    "Two exponents 2 are missing, of one symbol; section 4 has both in the definition of V″_j.",
)
def second_derivative() -> str:
    """(10) with V'' as read, and with the second derivative, against the step's exact derivative."""
    h = 0.1
    exact = tangent(problem().system, "newmark", problem().q0, problem().p0, h).state[::-1, ::-1]  # (p, q)
    printed, right = (np.abs(newmark_derivative(h, c) - exact).max() for c in (force, stiffness))
    return (
        f"For the first step with h = {h:g} s, A⁻¹B differs from the exact derivative of Newmark's step by "
        f"{printed:.2f} with ∂V/∂q, by {right:.0e} with ∂²V/∂q². The area is preserved either way, since "
        "det A = det B whatever V″ is."
    )


def middle_derivatives(q_l: float = 1.5, q_m: float = 1.45, q_r: float = 1.3, h: float = 0.1) -> tuple[float, ...]:
    """∂L_S/∂q_m: exact (complex step), by the first expression as read, and by the same with the other sign."""
    exact = np.imag(simpson_lagrangian(q_l, q_m + 1e-30j, q_r, h)) / 1e-30
    g_l, g_r = (-3 * q_l + 4 * q_m - q_r) / h, (q_l - 4 * q_m + 3 * q_r) / h
    return (float(exact), *(float(h / 6 * 4 / h * (g_l + s * g_r) - 2 / 3 * h * force(q_m)) for s in (1, -1)))


@as_read(
    "section 4, between (16) and (17), first expression of ∂L_S/∂q_m",
    "(mh/6) (g_l 4/h + g_r 4/h) − (2/3) h V′_m",
    "(mh/6) (g_l 4/h − g_r 4/h) − (2/3) h V′_m, since ∂g_r/∂q_m = −4/h",
    "One sign; the line above it has ∂g_r/∂q_m = −4/h, and the expressions after it are right.",
)
def middle_sign() -> str:
    exact, printed, right = middle_derivatives()
    return (
        f"At q_l = 1.5, q_m = 1.45, q_r = 1.3, with h = 0.1 s, ∂L_S/∂q_m = {exact:.6f}; the expression as read gives "
        f"{printed:.6f}, with the minus sign {right:.6f}. The expressions that follow it are right."
    )


def discrete_actions(steps: int) -> Any:
    """L_S of each step of Simpson's scheme over half a period."""
    h = problem().period / 2 / steps
    path = integrate(problem().system, "simpson", problem().q0, problem().p0, h=h, steps=steps)
    return simpson_lagrangian(path.q[:-1, 0], path(path.t[:-1] + h / 2)[:, 0], path.q[1:, 0], h)


def exact_action() -> float:
    """∫ L dt = ∫ (p²/m − H) dt over half a period, the period of p²: the trapezoidal rule leaves only round-off."""
    t = np.linspace(0, problem().period / 2, 101)
    _, p = problem().exact(t)
    energy = problem().params["omega"] ** 2 * (1 - np.cos(problem().q0[0]))
    return float(np.trapezoid(p[:, 0] ** 2 - energy, t))


@as_read(
    "sections 3 and 4, the sums S_d and Σ_d over steps",
    "from j = 1 to N − 1",
    "from j = 0: N steps from q₀ to q_N",
    "One digit, in two sums. The quadratic paper, by the same two authors and a third, has the same sums in both "
    "versions of its text: that speaks for the print.",
)
def action_sum() -> str:
    text = "; ".join(
        f"N = {n}: {found.sum():.6f} from j = 0, {found[1:].sum():.6f} from j = 1"
        for n, found in ((n, discrete_actions(n)) for n in (10, 100))
    )
    return f"The action of the exact motion over half a period is {exact_action():.6f}. Simpson's sums, {text}."


@as_read(
    "section 4, below (18), second line of p_r",
    "(m/6) [… + (1/h)(q_r − q_l) + …]",
    "(m/6) [… + (4/h)(q_r − q_l) + …]",
    "One digit; the lines before and after it need the 4.",
)
def right_momentum() -> str:
    """The coefficients of q_l, q_m, q_r in 6h p_r/m + …, from the line before, as read and with 4/h."""
    g_l, g_m, g_r = np.array([-3, 4, -1]), np.array([-1, 0, 1]), np.array([1, -4, 3])
    read, right = (-g_l + k * g_m + 3 * g_r for k in (1, 4))
    h, q = 0.1, np.array([1.5, 1.45, 1.3])
    exact = np.imag(simpson_lagrangian(q[0], q[1], q[2] + 1e-30j, h)) / 1e-30 + h / 6 * force(q[2])
    values = [float(c @ q) / (6 * h) for c in (read, right)]
    return (
        f"The bracket is {_listed(read)} times (q_l, q_m, q_r)/h as read, {_listed(right)} with 4/h; the third line "
        f"has 2, −16, 14. At q_l = 1.5, q_m = 1.45, q_r = 1.3 with h = 0.1 s, ∂L_S/∂q_r + (h/6)V′_r = {exact:.6f}; the "
        f"second line is {values[0]:.6f} as read, {values[1]:.6f} with 4/h."
    )


def _listed(coefficients: Any) -> str:
    return ", ".join(str(int(c)).replace("-", "−") for c in coefficients)


# What the text states beside its table and figures.

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


PAPER = Paper(
    key="pendulum",
    authors="F. Dubois, J. A. Rojas-Quintero",
    title="Simpson's quadrature for a nonlinear variational symplectic scheme",
    reference="Finite Volumes for Complex Applications X, Springer Proc. Math. Stat. 433 (2023) 83–92",
    text="The authors' version of 20 October 2023 in the open archive HAL (hal-04626472).",
    tables=[
        PublishedTable(
            "1",
            "Errors of Newmark's and Simpson's schemes over one period of the pendulum",
            table_1,
            "m = 1, ω = 2π, q(0) = π/2, p(0) = 0; largest error over all steps; order = ½ log₂(e₁/e₃).",
        )
    ],
    figures=[figure_1, figure_2],
    statements=[
        Statement("section 3", lambda options: five_iterations("Newmark", options)),
        Statement("section 3, after (10)", lambda options: area("Newmark", options)),
        newmark_energy,
        Statement("section 4", lambda options: five_iterations("Simpson", options)),
        Statement("section 4, end", lambda options: area("Simpson", options)),
        three_orders,
    ],
    errata=[second_derivative, middle_sign, right_momentum, action_sum],
)
