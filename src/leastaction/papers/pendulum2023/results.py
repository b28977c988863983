"""Table 1 and Figures 1 and 2, and the motion they are about."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from leastaction.integrate import integrate
from leastaction.papers.model import Cell, Claim, Options, PublishedTable, Redrawn, error_cells, redrawn
from leastaction.papers.style import EXACT, line
from leastaction.problems import get
from leastaction.results.path import Path

MESHES = (50, 100, 200)
METHODS = {"Newmark": "newmark", "Simpson": "simpson"}

PRECISE = "P8N8Q16Gau"  # checks the period without the closed form
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


TABLES = [
    PublishedTable(
        "1",
        "Errors of Newmark's and Simpson's schemes over one period of the pendulum",
        table_1,
        "m = 1, ω = 2π, q(0) = π/2, p(0) = 0; largest error over all steps; order = ½ log₂(e₁/e₃).",
    )
]
FIGURES = [figure_1, figure_2]
