"""Figures 7–11: the top with loops, against its exact solution; steps are parts of the nutation period t̄."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from leastaction.papers.model import Claim, Drawing, FigureSpec, Options
from leastaction.papers.top2025.drawing import (
    REFERENCE,
    VISIBLE,
    axis_path,
    listed,
    mark,
    order_line,
    points,
    slopes,
    step_axis,
)
from leastaction.papers.top2025.energy import energy_claims
from leastaction.papers.top2025.runs import (
    METHODS,
    MIDPOINT,
    RK4,
    SIMPSON,
    energy_error,
    nutation_error,
    nutation_step,
    problem,
    run,
)
from leastaction.results.path import Path

NAME = "lagrange-top"
MESH = 20  # h = 0.05, as the caption of Figure 8 says


@lru_cache(maxsize=8)
def _path(method: str, periods: int) -> Path:
    return run(NAME, method, nutation_step(NAME, MESH), periods * MESH)


def crossings(x: Any, y: Any) -> int:
    """How often a plane polygon crosses itself."""
    start = np.stack([x, y], axis=-1)
    step = np.diff(start, axis=0)
    start = start[:-1]
    count = 0
    for i in range(len(step) - 2):
        u, w = step[i], step[i + 2 :]
        gap = start[i + 2 :] - start[i]
        area = u[0] * w[:, 1] - u[1] * w[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            a = (gap[:, 0] * w[:, 1] - gap[:, 1] * w[:, 0]) / area
            b = (gap[:, 0] * u[1] - gap[:, 1] * u[0]) / area
        count += int(((a >= 0) & (a < 1) & (b >= 0) & (b < 1)).sum())
    return count


def figure_7(options: Options) -> Drawing:
    """Five periods of the exact motion."""
    top = problem(NAME)
    periods = np.linspace(0, 5, 2001)
    q, p = top.exact(periods * float(nutation_step(NAME, 1)))
    phi, theta = q[:, 0], q[:, 1]
    rate = top.system.velocity(q, p)[:, 0]
    figure = axis_path(periods, phi, theta, top.params["l"])
    number = crossings(np.sin(theta) * np.sin(phi), -np.sin(theta) * np.cos(phi))
    claims = [
        Claim(
            "the initial nutation π/3 bounds the motion, 0 < θ ≤ θ₀",
            bool(theta.min() > 0 and theta.max() <= theta[0] * (1 + 1e-12)),
            f"θ between {theta.min():.5f} and {theta.max():.5f} rad",
        ),
        Claim(
            "the motion is of the looping class, in the textbooks' sense: the precession turns back in every nutation",
            bool(rate.min() < 0),
            f"dφ/dt stays between {rate.min():.2f} and {rate.max():.2f} rad/s, since p_φ/p_ψ = "
            f"{p[0, 0] / p[0, 2]:.4f} > 1 ≥ cos θ; the path loops only in that it winds around the pole and crosses "
            f"itself, {number} times here",
            ""
            if rate.min() < 0
            else "The paper does not say which sense it means; in that of crossing itself the path does loop.",
        ),
    ]
    return Drawing(figure, claims)


def figure_8(options: Options) -> Drawing:
    """Nutation over one period."""
    import matplotlib.pyplot as plt

    top = problem(NAME)
    period = float(nutation_step(NAME, 1))
    fine = np.linspace(0, 1, 1001)
    exact = top.exact(fine * period)[0][:, 1]
    figure, ax = plt.subplots(figsize=(7, 4.2))
    ax.plot(fine, exact, label="exact", **REFERENCE)
    off = {}
    for method in METHODS:
        path = _path(method, 1)
        ax.plot(path.t / period, path.q[:, 1], **points(method, NAME))
        error = path.q[:, 1] - top.exact(path.t)[0][:, 1]
        off[method] = float(np.abs(error).max() / np.ptp(exact))
    ax.set(xlabel="time (nutation periods)", ylabel=r"nutation $\theta$ (rad)")
    ax.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=9)
    claim = Claim(
        "with h = 0.05 Simpson's solution follows the exact one with no visible deviation",
        off[SIMPSON] < VISIBLE < min(off[MIDPOINT], off[RK4]),
        f"largest deviation, of the range of θ: Simpson {off[SIMPSON]:.2%}, midpoint {off[MIDPOINT]:.1%}, "
        f"RK4 {off[RK4]:.1%}",
    )
    return Drawing(figure, [claim])


def figure_9(options: Options) -> Drawing:
    """The energy error over ten periods; the step is that of Figure 8, since the paper gives none."""
    import matplotlib.pyplot as plt

    period = float(nutation_step(NAME, 1))
    figure, axes = plt.subplots(2, 1, sharex=True, figsize=(7, 5.4))
    largest, later = {}, {}
    for method in METHODS:
        path = _path(method, 10)
        error, long = energy_error(path), energy_error(_path(method, 1000))
        largest[method], later[method] = float(np.abs(error).max()), float(np.abs(long).max())
        look = mark(method, NAME, markersize=2.5, linewidth=0.9)
        axes[0].plot(path.t / period, error, **look)
        if method == SIMPSON:
            axes[1].plot(path.t / period, error, **look)
        for ax in axes if method == SIMPSON else axes[:1] if method == MIDPOINT else ():
            for bound in (long.min(), long.max()):
                ax.axhline(bound, color=look["color"], linewidth=0.9, linestyle=(0, (1, 2)))
    axes[0].plot([], [], color="#777777", linewidth=0.9, linestyle=(0, (1, 2)), label="bounds over 1000 periods")
    axes[0].set_ylabel("energy error $e_H$")
    axes[1].set(ylabel="Simpson's $e_H$, closer", xlabel="time (nutation periods)")
    axes[0].legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.06), fontsize=9)
    for ax in axes:
        ax.ticklabel_format(axis="y", scilimits=(0, 0))
    return Drawing(figure, energy_claims(largest, later, "ten periods", "1000 periods"))


def figure_10(options: Options) -> Drawing:
    """Relative errors of both conserved momenta over ten periods."""
    import matplotlib.pyplot as plt

    period = float(nutation_step(NAME, 1))
    figure, axes = plt.subplots(2, 1, sharex=True, figsize=(7, 5))
    largest: dict[str, list[float]] = {}
    for method in METHODS:
        path = _path(method, 10)
        largest[method] = []
        for ax, i in zip(axes, (0, 2), strict=True):
            error = path.p[:, i] / path.p[0, i] - 1
            largest[method].append(float(np.abs(error).max()))
            ax.plot(path.t / period, error, **mark(method, NAME, markersize=2.5, linewidth=0.9))
    for ax, symbol in zip(axes, (r"p_\varphi", r"p_\psi"), strict=True):
        ax.ticklabel_format(axis="y", scilimits=(0, 0))
        ax.set_ylabel(f"relative error of ${symbol}$")
    axes[1].set_xlabel("time (nutation periods)")
    axes[0].legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    exact = max(max(largest[m]) for m in (MIDPOINT, SIMPSON))
    claim = Claim(
        "the symplectic integrators preserve both momenta exactly",
        exact < 1e-15,
        f"largest relative error {exact:.0e}, in float64; RK4's {largest[RK4][0]:.1e} (p_φ) and "
        f"{largest[RK4][1]:.1e} (p_ψ)",
    )
    return Drawing(figure, [claim])


def figure_11(options: Options) -> Drawing:
    """Errors of nutation and energy over one period against the step."""
    import matplotlib.pyplot as plt

    meshes = 25 * 2 ** np.arange(6)
    h = 1.0 / meshes
    figure, axes = plt.subplots(1, 2, figsize=(7, 4), sharex=True)
    local: dict[tuple[str, str], Any] = {}
    finest: dict[tuple[str, str], float] = {}
    for method in METHODS:
        paths = [run(NAME, method, nutation_step(NAME, int(mesh)), int(mesh)) for mesh in meshes]
        errors = {
            "nutation": np.array([np.abs(nutation_error(path, NAME)).max() for path in paths]),
            "energy": np.array([np.abs(energy_error(path)).max() for path in paths]),
        }
        for ax, (quantity, error) in zip(axes, errors.items(), strict=True):
            ax.loglog(h, error, **mark(method, NAME))
            local[method, quantity] = slopes(h, error)
            finest[method, quantity] = float(error[-1])
            if method != RK4:
                order_line(ax, h, error, 2 if method == MIDPOINT else 4)
    for ax, quantity, symbol in zip(axes, ("nutation", "energy"), (r"\theta", "H"), strict=True):
        step_axis(ax, h[::-1], [f"1/{mesh}" for mesh in meshes[::-1]])
        ax.set(xlabel="step $h$ (nutation periods)", ylabel=rf"{quantity} error $\|e_{symbol}\|_\infty$")
    axes[0].legend(fontsize=9)
    claims = [
        Claim(
            f"{method} is of order {order} in nutation and energy",
            all(abs(local[method, quantity][-1] - order) < 0.1 for quantity in ("nutation", "energy")),
            f"as h is halved, nutation {listed(local[method, 'nutation'])}; energy {listed(local[method, 'energy'])}",
        )
        for method, order in ((MIDPOINT, 2), (RK4, 4), (SIMPSON, 4))
    ]
    gain = {quantity: finest[RK4, quantity] / finest[SIMPSON, quantity] for quantity in ("nutation", "energy")}
    claims.append(
        Claim(
            "Simpson is more precise than RK4",
            min(gain.values()) > 1,
            f"at the smallest step its errors are {gain['nutation']:.0f} (nutation) and {gain['energy']:.0f} (energy) "
            "times smaller",
        )
    )
    return Drawing(figure, claims)


FIGURES = [
    FigureSpec("7", "The top with loops over five nutations, in space", figure_7),
    FigureSpec("8", "Nutation over one period, h = 0.05, against the exact solution", figure_8),
    FigureSpec(
        "9", "Energy error of the top with loops over ten periods, with its bounds over 1000, h = 0.05", figure_9
    ),
    FigureSpec("10", "Errors of the conserved momenta over ten periods, h = 0.05", figure_10),
    FigureSpec("11", "Convergence of nutation and energy over one period", figure_11),
]
