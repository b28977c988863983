"""Figures 2–7: the linearised double pendulum by Newmark's scheme, Simpson's and RK4."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from leastaction.linear import simpson_second
from leastaction.numbers.arrays import FloatArray
from leastaction.papers.model import Claim, Options, Redrawn, redrawn
from leastaction.papers.quadratic2024.tables import METHODS, P0, Q0, errors, exact, run, system
from leastaction.papers.style import HOLLOW, REFERENCE, VISIBLE, line
from leastaction.results.colours import COLOURS
from leastaction.results.path import Path

LABELS = {"q": "angle $q_{}$ (rad)", "p": "momentum $p_{}$ (kg m² s⁻¹)"}
TIME = r"time $t/\bar t$"


def deviations(path: Path, quantity: str) -> FloatArray:
    """|error| of each component at each node, relative to the range of its exact curve over ten t̄."""
    i = "qp".index(quantity)
    span = np.ptp(exact(np.linspace(0, 10, 5001))[i], axis=0)
    return np.asarray(np.abs(getattr(path, quantity) - exact(path.t)[i]) / span)


def _evolution(axes: Any, quantity: str, periods: int, methods: tuple[str, ...]) -> None:
    """Both components over time, one panel each; h = 0.1 t̄."""
    t = np.linspace(0, periods, 200 * periods + 1)
    for i, ax in enumerate(axes):
        ax.plot(t, exact(t)["qp".index(quantity)][:, i], **REFERENCE, label="exact")
        for method in methods:
            path = run(method, 0.1, 10 * periods)
            ax.plot(path.t, getattr(path, quantity)[:, i], **line(method.lower()) | HOLLOW, label=method)
        ax.set_ylabel(LABELS[quantity].format(i + 1))


@redrawn("2", "Angles of the linearised double pendulum over one t̄, h = 0.1 t̄")
def figure_2(options: Options) -> Redrawn:
    figure, axes = plt.subplots(2, 1, sharex=True, figsize=(7, 5))
    _evolution(axes, "q", 1, METHODS)
    axes[0].legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    axes[1].set_xlabel(TIME)
    e = {method: errors(method, 1, 10)["q"] for method in METHODS}
    claim = Claim(
        "with h = 0.1 t̄ Simpson's integrator is more precise than RK4, and RK4 more than Newmark's method",
        e["Simpson"] < e["RK4"] < e["Newmark"],
        f"largest |q − q_ex|: Simpson {e['Simpson']:.4f}, RK4 {e['RK4']:.4f}, Newmark {e['Newmark']:.4f} rad",
    )
    return Redrawn(figure, [claim])


@redrawn("3", "Angles and momenta over ten t̄, h = 0.1 t̄ (in the journal Figures 3 and 4)")
def figure_3(options: Options) -> Redrawn:
    figure, axes = plt.subplots(4, 1, sharex=True, figsize=(7, 9))
    for pair, quantity in ((axes[:2], "q"), (axes[2:], "p")):
        _evolution(pair, quantity, 10, ("Newmark", "Simpson"))
    axes[0].legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    axes[3].set_xlabel(TIME)
    worst = {
        method: {quantity: float(deviations(run(method, 0.1, 100), quantity).max()) for quantity in "qp"}
        for method in METHODS
    }
    fine = run("Newmark", 0.01, 1000)
    off = np.maximum(*(deviations(fine, quantity).max(axis=1) for quantity in "qp"))
    seen = float(fine.t[np.argmax(off > VISIBLE)])
    claims = [
        Claim(
            "Simpson's solutions, h = 0.1 t̄, follow the exact ones over ten t̄",
            max(worst["Simpson"].values()) < 2 * VISIBLE and min(worst["Newmark"].values()) > 0.25,
            "largest deviation, of the curve's range: "
            + "; ".join(f"{method} {w['q']:.1%} of q, {w['p']:.1%} of p" for method, w in worst.items()),
        ),
        Claim(
            "Newmark's solutions improve with h = 0.01 t̄ but still deviate after a couple of t̄",
            bool(off.max() < 0.1 * max(worst["Newmark"].values()) and 1 < seen < 5),
            f"more than {VISIBLE:.0%} of the range away from t = {seen:.1f} t̄ on, {off.max():.1%} within ten t̄",
        ),
    ]
    return Redrawn(figure, claims)


@redrawn("4", "Phase portraits over three t̄, h = 0.1 t̄ (in the journal Figure 5)")
def figure_4(options: Options) -> Redrawn:
    figure, axes = plt.subplots(1, 2, figsize=(7, 4.2))
    q, p = exact(np.linspace(0, 3, 1501))
    for i, ax in enumerate(axes):
        ax.plot(q[:, i], p[:, i], **REFERENCE, label="exact")
        for method in ("Newmark", "Simpson"):
            path = run(method, 0.1, 30)
            ax.plot(path.q[:, i], path.p[:, i], **line(method.lower()) | HOLLOW, label=method)
        ax.set(xlabel=LABELS["q"].format(i + 1), ylabel=LABELS["p"].format(i + 1))
    figure.legend(*axes[0].get_legend_handles_labels(), ncols=3, loc="outside upper center")
    worst = {
        method: max(float(deviations(run(method, 0.1, 30), quantity).max()) for quantity in "qp")
        for method in ("Newmark", "Simpson")
    }
    claim = Claim(
        "with h = 0.1 t̄ Simpson's phase portrait follows the exact one over three t̄, Newmark's deviates visibly",
        worst["Simpson"] < VISIBLE and worst["Newmark"] > 10 * VISIBLE,
        f"largest deviation, of the curve's range: Simpson {worst['Simpson']:.2%}, Newmark {worst['Newmark']:.0%}",
    )
    return Redrawn(figure, [claim])


@lru_cache(maxsize=32)
def energy_error(method: str, mesh: int, periods: int) -> FloatArray:
    """H/H₀ − 1 at the nodes."""
    energy = run(method, 1 / mesh, mesh * periods).energy()
    return np.asarray(energy / energy[0] - 1)


@redrawn("5", "Relative error of the energy, h = 0.1 t̄ and 0.01 t̄ (in the journal Figure 6)")
def figure_5(options: Options) -> Redrawn:
    """The energy's relative error over ten t̄, with two steps; the paper does not give the length."""
    figure, axes = plt.subplots(2, 1, sharex=True, sharey=True, figsize=(7, 6))
    for ax, mesh in zip(axes, (10, 100), strict=True):
        for method in METHODS:
            error = np.abs(energy_error(method, mesh, 10))
            error[error == 0] = np.nan  # zero has no place on this axis
            ax.semilogy(np.arange(error.size) / mesh, error, **line(method.lower()), label=method, markevery=mesh // 5)
        ax.set_ylabel(rf"$|H/H_0 - 1|$, $h = {1 / mesh:g}\,\bar t$")
    axes[0].legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    axes[1].set_xlabel(TIME)
    lengths = (1, 10, 100, 1000)
    largest = {
        (method, mesh): [float(np.abs(energy_error(method, mesh, T)).max()) for T in lengths]
        for method in METHODS
        for mesh in (10, 100)
    }
    rk4, newmark, simpson = (largest[method, 10] for method in ("RK4", "Newmark", "Simpson"))
    drop = simpson[1] / largest["Simpson", 100][1]
    claims = [
        Claim(
            "RK4's error grows with the length of the run",
            all(np.diff(rk4) > 0) and all(np.diff(largest["RK4", 100]) > 0),
            "largest over 1, 10, 100, 1000 t̄ with h = 0.1 t̄: "
            + ", ".join(f"{e:.2f}" for e in rk4)
            + "; with h = 0.01 t̄: "
            + ", ".join(f"{e:.1e}" for e in largest["RK4", 100]),
        ),
        Claim(
            "Newmark's integrator preserves the energy exactly",
            max(*newmark, *largest["Newmark", 100]) < 1e-13,
            f"largest over 1000 t̄: {max(*newmark, *largest['Newmark', 100]):.0e}, round-off",
        ),
        Claim(
            "Simpson's error with h = 0.1 t̄ is of the order of 10⁻³",
            1e-3 <= simpson[1] < 1e-2,
            f"largest over ten t̄: {simpson[1]:.2e}",
        ),
        Claim(
            "Simpson's error does not grow with time but stays bounded",
            simpson[3] < 1.02 * simpson[0],
            "largest over 1, 10, 100, 1000 t̄: " + ", ".join(f"{e:.5f}" for e in simpson),
        ),
        Claim(
            "Simpson's error drops by four orders of magnitude when the step is divided by ten",
            bool(abs(np.log10(drop) - 4) < 0.15),
            f"by the factor {drop:.0f}",
        ),
    ]
    return Redrawn(figure, claims)


def phi_errors(mesh: int, periods: int, by_matrix: bool) -> FloatArray:
    """φ(p_j, q_j) − φ(p_0, q_0) of (42) along Simpson's scheme: the library's steps, or η_{j+1} = Φ_s η_j of (32)."""
    scheme = simpson_second(system().M, system().K, 1 / mesh)
    if by_matrix:
        Phi, eta = scheme.Phi, np.empty((mesh * periods + 1, 4))
        eta[0] = *P0, *Q0
        for j in range(mesh * periods):
            eta[j + 1] = Phi @ eta[j]
        p, q = eta[:, :2], eta[:, 2:]
    else:
        path = run("Simpson", 1 / mesh, mesh * periods)
        p, q = path.p, path.q
    phi = ((p @ scheme.xi) * p + (q @ scheme.zeta) * q).sum(axis=1) / 2
    return np.asarray(phi - phi[0])


@redrawn("6", "Error of the quadratic form φ along Simpson's scheme (in the journal Figure 7)")
def figure_6(options: Options) -> Redrawn:
    """The error of φ over a hundred t̄, with two steps; the paper does not give the length."""
    figure, axes = plt.subplots(2, 1, sharex=True, figsize=(7, 5.5))
    largest: dict[bool, list[float]] = {}
    for ax, by_matrix in zip(axes, (True, False), strict=True):
        largest[by_matrix] = []
        for mesh, colour in ((100, COLOURS[5]), (10, line("simpson")["color"])):
            error = phi_errors(mesh, 100, by_matrix)
            every = mesh // 10
            t = np.arange(error.size) / mesh
            ax.plot(t[::every], error[::every], color=colour, label=rf"$h = {1 / mesh:g}\,\bar t$", linewidth=0.9)
            largest[by_matrix].append(float(np.abs(error).max()))
        ax.set_ylabel("error of $\\phi$, " + (r"$\Phi_s$ formed as in (32)" if by_matrix else "no inverse formed"))
    axes[0].legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    axes[1].set_xlabel(TIME)
    fine, coarse = largest[True]
    claims = [
        Claim(
            "Simpson's scheme conserves φ: absolute errors are at most of the order of 10⁻¹⁵",
            max(fine, coarse) < 1e-14,
            f"over 100 t̄ with Φ_s formed {coarse:.0e} (h = 0.1 t̄) and {fine:.0e} (h = 0.01 t̄); with the library's "
            f"steps, which form no inverse, {largest[False][1]:.0e} and {largest[False][0]:.0e}",
        ),
        Claim(
            "the errors' magnitude changes very little with the step",
            1 / 10 < fine / coarse < 10,
            f"by the factor {fine / coarse:.1f} with Φ_s formed",
        ),
    ]
    return Redrawn(figure, claims)


@redrawn("7", "Convergence over one t̄ (in the journal Figure 8)")
def figure_7(options: Options) -> Redrawn:
    """The largest errors of q and p over one t̄ against the step; the paper does not give the length."""
    meshes = np.array([10, 20, 50, 100, 200, 500, 1000])
    figure, axes = plt.subplots(1, 2, figsize=(7, 4.5), sharex=True)
    orders: dict[tuple[str, str], float] = {}
    for method in METHODS:
        found = [errors(method, 1, int(mesh)) for mesh in meshes]
        for ax, quantity in zip(axes, "qp", strict=True):
            e = np.array([error[quantity] for error in found])
            orders[method, quantity] = float(np.polyfit(np.log(1 / meshes), np.log(e), 1)[0])
            label = f"{method}: {orders[method, quantity]:.2f}"
            ax.loglog(1 / meshes, e, **line(method.lower()), label=label)
    for ax, label in zip(axes, (r"$\|q - q_{ex}\|_\infty$ (rad)", r"$\|p - p_{ex}\|_\infty$ (kg m² s⁻¹)"), strict=True):
        ax.set(xlabel=r"step $h/\bar t$", ylabel=label)
        ax.legend(title="slope of the regression line", fontsize=9, title_fontsize=9)
    claims = [
        Claim(
            f"{method}'s convergence is in h{power}",
            all(abs(orders[method, quantity] - order) < 0.1 for quantity in "qp"),
            f"slopes of the regression lines: {orders[method, 'q']:.2f} (q) and {orders[method, 'p']:.2f} (p)",
        )
        for method, order, power in (("RK4", 4, "⁴"), ("Newmark", 2, "²"), ("Simpson", 4, "⁴"))
    ]
    return Redrawn(figure, claims)


FIGURES = [figure_2, figure_3, figure_4, figure_5, figure_6, figure_7]
