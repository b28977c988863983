"""Dubois and Rojas-Quintero (2023): Newmark's and Simpson's schemes on the nonlinear pendulum.

L = ½ m v² − m ω² (1 − cos q), with m = 1, ω = 2π, released from rest at q = π/2; one nonlinear period
is divided into equal steps, and errors are the largest over the steps.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from leastaction.analysis import tangent
from leastaction.integrate import integrate
from leastaction.papers.model import Cell, Claim, Drawing, Erratum, FigureSpec, Options, Paper, Table
from leastaction.papers.style import EXACT, line
from leastaction.path import Path
from leastaction.problems import get

MESHES = (50, 100, 200)
METHODS = {"Newmark": "newmark", "Simpson": "simpson"}

# {(method, quantity): errors with 50, 100, 200 steps, order}, as printed.
TABLE_1: dict[tuple[str, str], tuple[str, str, str, str]] = {
    ("Newmark", "momentum"): ("2.93e-2", "7.32e-3", "1.83e-3", "2.0"),
    ("Simpson", "momentum"): ("6.08e-6", "3.78e-7", "2.36e-8", "4.0"),
    ("Newmark", "state"): ("5.26e-3", "1.31e-3", "3.29e-4", "2.0"),
    ("Simpson", "state"): ("1.05e-6", "6.51e-8", "4.06e-9", "4.0"),
    ("Newmark", "relative energy"): ("9.06e-4", "2.29e-4", "5.73e-5", "2.0"),
    ("Simpson", "relative energy"): ("1.30e-6", "8.42e-8", "5.25e-9", "4.0"),
}


@lru_cache(maxsize=1)
def _problem() -> Any:
    return get("pendulum")


def _run(method: str, steps: int, periods: int = 1) -> Path:
    """`steps` equal steps in each period."""
    problem = _problem()
    end = periods * problem.period
    return integrate(problem.system, METHODS[method], problem.q0, problem.p0, h=end / (steps * periods), t_end=end)


def errors(path: Path) -> dict[str, float]:
    """The largest errors of momentum and state, and of the energy relative to its value."""
    q, p = _problem().exact(path.t)
    energy = path.energy()
    return {
        "momentum": float(np.abs(path.p - p).max()),
        "state": float(np.abs(path.q - q).max()),
        "relative energy": float(np.abs(energy / energy[0] - 1).max()),
    }


def table_1(options: Options) -> list[Cell]:
    """Errors with 50, 100 and 200 steps in a period, and the order ½ log₂(e₁/e₃)."""
    found = {method: [errors(_run(method, steps)) for steps in MESHES] for method in METHODS}
    cells = []
    for (method, quantity), published in TABLE_1.items():
        e = [error[quantity] for error in found[method]]
        columns = [*(f"{steps} steps" for steps in MESHES), "order"]
        for column, printed, computed in zip(columns, published, [*e, 0.5 * math.log2(e[0] / e[2])], strict=True):
            cells.append(Cell("1", f"{method}, {quantity}", column, printed, computed))
    return cells


def figure_1(options: Options) -> Drawing:
    """Five periods of the exact motion."""
    import matplotlib.pyplot as plt

    problem = _problem()
    t = np.linspace(0, 5 * problem.period, 2001)
    q, p = problem.exact(t)
    figure, axes = plt.subplots(2, 1, sharex=True, figsize=(7, 4.5))
    for ax, values, label in zip(axes, (q, p), ("state $q$ (rad)", "momentum $p$ (s⁻¹, $m$ = 1)"), strict=True):
        ax.plot(t, values, **EXACT)
        ax.set_ylabel(label)
    axes[1].set_xlabel("time $t$ (s)")
    linear = 1.0  # 2π/ω
    off = float(abs(problem.exact(np.array([problem.period]))[0][0, 0] - problem.q0[0]))
    claim = Claim(
        "the period is that of relation (25), 4 K(sin²(θ₀/2))/ω, not 2π/ω",
        off < 1e-12 and problem.period > 1.1 * linear,
        f"T = {problem.period:.6f} s against 2π/ω = {linear:g} s; after T the state is off by {off:.0e}",
    )
    return Drawing(figure, [claim])


def figure_2(options: Options) -> Drawing:
    """Both schemes with ten steps in a period, over five periods."""
    import matplotlib.pyplot as plt

    problem = _problem()
    t = np.linspace(0, 5 * problem.period, 2001)
    exact = problem.exact(t)
    figure, axes = plt.subplots(2, 1, sharex=True, figsize=(7, 5))
    worst = {}
    for i, label in enumerate(("state $q$ (rad)", "momentum $p$ (s⁻¹, $m$ = 1)")):
        axes[i].plot(t, exact[i], label="exact", **EXACT)
        axes[i].set_ylabel(label)
    for name in METHODS:
        path = _run(name, 10, periods=5)
        worst[name] = errors(path)["state"]
        for ax, values in zip(axes, (path.q, path.p), strict=True):
            ax.plot(path.t, values, label=name, **(line(METHODS[name]) | {"linestyle": "none"}))
    axes[0].legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    axes[1].set_xlabel("time $t$ (s)")
    amplitude = float(abs(problem.q0[0]))
    claim = Claim(
        "with ten points per period Newmark's errors are plainly visible, Simpson is still precise",
        worst["Newmark"] > 0.2 * amplitude and worst["Simpson"] < 0.05 * amplitude,
        f"largest error of q over five periods: Newmark {worst['Newmark']:.2f} rad, Simpson {worst['Simpson']:.3f} rad",
    )
    return Drawing(figure, [claim])


def force(q: Any) -> Any:
    """V' = m ω² sin q, m = 1."""
    return _problem().params["omega"] ** 2 * np.sin(q)


def stiffness(q: Any) -> Any:
    """V'' = m ω² cos q, m = 1."""
    return _problem().params["omega"] ** 2 * np.cos(q)


def simpson_lagrangian(q_l: Any, q_m: Any, q_r: Any, h: float) -> Any:
    """L_S of (13) to (15)."""
    g_l, g_m, g_r = (-3 * q_l + 4 * q_m - q_r) / h, (q_r - q_l) / h, (q_l - 4 * q_m + 3 * q_r) / h
    V = [_problem().params["omega"] ** 2 * (1 - np.cos(q)) for q in (q_l, q_m, q_r)]
    return h / 12 * (g_l**2 + 4 * g_m**2 + g_r**2) - h / 6 * (V[0] + 4 * V[1] + V[2])


def newmark_derivative(h: float, curvature: Any) -> Any:
    """A⁻¹B of (10) for the first step, in the order (p, q), with this function as V''."""
    path = integrate(_problem().system, "newmark", _problem().q0, _problem().p0, h=h, steps=1)
    c = curvature(path.q.mean())
    A, B = np.array([[1, h / 2 * c], [-h / 2, 1]]), np.array([[1, -h / 2 * c], [h / 2, 1]])
    return np.linalg.solve(A, B)


def second_derivative() -> str:
    """(10) with V'' as defined in print, and with the second derivative, against the step's exact derivative."""
    h = 0.1
    exact = tangent(_problem().system, "newmark", _problem().q0, _problem().p0, h).state[::-1, ::-1]  # (p, q)
    printed, right = (np.abs(newmark_derivative(h, c) - exact).max() for c in (force, stiffness))
    return (
        f"For the first step with h = {h:g} s, A⁻¹B differs from the exact derivative of Newmark's step by "
        f"{printed:.2f} with ∂V/∂q, by {right:.0e} with ∂²V/∂q². The area is preserved either way, since "
        "det A = det B whatever V″ is."
    )


def middle_derivatives(q_l: float = 1.5, q_m: float = 1.45, q_r: float = 1.3, h: float = 0.1) -> tuple[float, ...]:
    """∂L_S/∂q_m: exact (complex step), by the first expression as printed, and by the same with the other sign."""
    exact = np.imag(simpson_lagrangian(q_l, q_m + 1e-30j, q_r, h)) / 1e-30
    g_l, g_r = (-3 * q_l + 4 * q_m - q_r) / h, (q_l - 4 * q_m + 3 * q_r) / h
    return (float(exact), *(float(h / 6 * 4 / h * (g_l + s * g_r) - 2 / 3 * h * force(q_m)) for s in (1, -1)))


def middle_sign() -> str:
    exact, printed, right = middle_derivatives()
    return (
        f"At q_l = 1.5, q_m = 1.45, q_r = 1.3, with h = 0.1 s, ∂L_S/∂q_m = {exact:.6f}; the printed expression gives "
        f"{printed:.6f}, with the minus sign {right:.6f}. The expressions that follow it are right."
    )


def discrete_actions(steps: int) -> Any:
    """L_S of each step of Simpson's scheme over half a period."""
    h = _problem().period / 2 / steps
    path = integrate(_problem().system, "simpson", _problem().q0, _problem().p0, h=h, steps=steps)
    return simpson_lagrangian(path.q[:-1, 0], path(path.t[:-1] + h / 2)[:, 0], path.q[1:, 0], h)


def exact_action() -> float:
    """∫ L dt = ∫ (p²/m − H) dt over half a period, the period of p²: the trapezoidal rule leaves only round-off."""
    t = np.linspace(0, _problem().period / 2, 101)
    _, p = _problem().exact(t)
    energy = _problem().params["omega"] ** 2 * (1 - np.cos(_problem().q0[0]))
    return float(np.trapezoid(p[:, 0] ** 2 - energy, t))


def action_sum() -> str:
    text = "; ".join(
        f"N = {n}: {found.sum():.6f} from j = 0, {found[1:].sum():.6f} from j = 1"
        for n, found in ((n, discrete_actions(n)) for n in (10, 100))
    )
    return f"The action of the exact motion over half a period is {exact_action():.6f}. Simpson's sums, {text}."


PAPER = Paper(
    key="pendulum",
    authors="F. Dubois, J. A. Rojas-Quintero",
    title="Simpson's quadrature for a nonlinear variational symplectic scheme",
    reference="Finite Volumes for Complex Applications X, Springer Proc. Math. Stat. 433 (2023) 83–92",
    tables=[
        Table(
            "1",
            "Errors of Newmark's and Simpson's schemes over one period of the pendulum",
            table_1,
            "m = 1, ω = 2π, q(0) = π/2, p(0) = 0; largest error over all steps; order = ½ log₂(e₁/e₃).",
        )
    ],
    figures=[
        FigureSpec("1", "Five periods of the nonlinear pendulum, exact", figure_1),
        FigureSpec("2", "Newmark and Simpson with ten steps in a period, over five periods", figure_2),
    ],
    errata=[
        Erratum(
            "section 3, between (9) and (10), definition of V″_{j+1/2}",
            "V″_{j+1/2} = ∂V/∂q at q_{j+1/2}",
            "V″_{j+1/2} = ∂²V/∂q² at q_{j+1/2}",
            second_derivative,
        ),
        Erratum(
            "section 4, between (16) and (17), first expression of ∂L_S/∂q_m",
            "(mh/6) (g_l 4/h + g_r 4/h) − (2/3) h V′_m",
            "(mh/6) (g_l 4/h − g_r 4/h) − (2/3) h V′_m, since ∂g_r/∂q_m = −4/h",
            middle_sign,
        ),
        Erratum(
            "sections 3 and 4, the sums S_d and Σ_d over steps",
            "from j = 1 to N − 1",
            "from j = 0: N steps from q₀ to q_N",
            action_sum,
        ),
    ],
)
