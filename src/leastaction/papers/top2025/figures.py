"""Figures 2–5 of the double pendulum, 7–11 of the top with loops, 12–14 of the top with cusps.

The double pendulum is compared with RK4 with h = 10⁻⁵, as in the paper; the top with loops with its exact solution, its
steps being parts of the nutation period t̄. Of the top with cusps, RK4 steps the reduced first order system (26), y =
(φ, θ, ξ). Its φ is a quadrature that does not act back on θ and ξ, and these two are Routh's nutation as a Lagrangian
system with one degree of freedom; so RK4 on the state (θ, θ') of that system gives the same θ, step by step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from leastaction.papers.model import Claim, FigureSpec, Options, Redrawn, redrawn
from leastaction.papers.style import HOLLOW, REFERENCE, VISIBLE, line
from leastaction.papers.top2025.runs import (
    METHODS,
    MIDPOINT,
    RK4,
    SIMPSON,
    energy_error,
    library_name,
    nutation_error,
    nutation_step,
    problem,
    run,
)
from leastaction.results.path import Path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FloatArray = NDArray[Any]


def mark(method: str, name: str, **changes: Any) -> dict[str, Any]:
    """How a method is drawn on this problem, labelled as in the paper."""
    return line(library_name(method, name)) | {"label": method} | changes


def slopes(h: FloatArray, error: FloatArray) -> list[float]:
    """The order between neighbouring steps."""
    return [float(order) for order in np.diff(np.log(error)) / np.diff(np.log(h))]


def listed(orders: Sequence[float]) -> str:
    """Orders as words, in the sequence of the steps.

    >>> listed([1.98, 2.0])
    '1.98, 2.00'
    """
    return ", ".join(f"{round(order, 2) + 0.0:.2f}" for order in orders)


def order_line(ax: Axes, h: FloatArray, error: FloatArray, order: int) -> None:
    """A dotted line of this slope below the points, its order at the upper end; h falls."""
    at = 0.4 * error[-1] * (h / h[-1]) ** order
    ax.plot(h, at, color="#888888", linestyle=":", linewidth=1, zorder=0)
    ax.annotate(f"$h^{order}$", (h[0], at[0]), textcoords="offset points", xytext=(5, -4), color="#666666", fontsize=9)


def step_axis(ax: Axes, h: FloatArray, labels: Sequence[str] | None = None) -> None:
    """Ticks at the steps themselves."""
    ax.set_xticks(h, labels or [f"{x:.3g}" for x in h])
    ax.set_xticks([], minor=True)


def in_space(phi: FloatArray, theta: FloatArray, length: float) -> FloatArray:
    """The point of the axis at this distance from the fixed point, Euler angles Z X Z: (K, 3)."""
    return length * np.stack([np.sin(theta) * np.sin(phi), -np.sin(theta) * np.cos(phi), np.cos(theta)], axis=-1)


def axis_path(t: FloatArray, phi: FloatArray, theta: FloatArray, length: float) -> Figure:
    """The centre of mass on its sphere, in three dimensions and from above; t, in periods, by colour."""
    import matplotlib.pyplot as plt
    from matplotlib.collections import LineCollection
    from mpl_toolkits.mplot3d.art3d import Line3DCollection  # type: ignore[import-untyped]

    track = in_space(phi, theta, length)
    figure = plt.figure(figsize=(7, 3.9), layout="none")  # placed by hand: no layout engine knows a 3-D label's width
    space: Any = figure.add_axes((-0.02, 0.0, 0.5, 1.0), projection="3d")
    above = figure.add_axes((0.64, 0.31, 0.35, 0.35 * 7 / 3.9))
    scale = figure.add_axes((0.64, 0.13, 0.35, 0.025))
    turns, heights = np.meshgrid(np.linspace(0, 2 * np.pi, 37), np.linspace(0, theta.max(), 8))
    space.plot_wireframe(*np.moveaxis(in_space(turns, heights, length), -1, 0), color="#cccccc", linewidth=0.4)
    pairs = np.stack([track[:-1], track[1:]], axis=1)
    space.add_collection3d(Line3DCollection(list(pairs), array=t[:-1], cmap="viridis", linewidth=1.6))
    lines = above.add_collection(LineCollection(list(pairs[:, :, :2]), array=t[:-1], cmap="viridis", linewidth=1.4))
    space.plot(*np.stack([np.zeros(3), track[0]]).T, color="#444444", linewidth=2.5)
    space.plot(*track[:1].T, marker="o", color="#444444")
    above.plot(*track[0, :2], marker="o", color="#444444")
    above.annotate(
        "start", (track[0, 0], track[0, 1]), textcoords="offset points", xytext=(-6, 6), ha="right", fontsize=9
    )
    reach = 1.05 * length * np.sin(theta.max())
    space.set(xlim=(-reach, reach), ylim=(-reach, reach), zlim=(0, 1.02 * length))
    space.set_box_aspect((2 * reach, 2 * reach, 1.02 * length), zoom=0.92)
    space.set(xlabel="$X$ (m)", ylabel="$Y$ (m)", zlabel="$Z$ (m)")
    space.view_init(elev=24, azim=-60)
    space.locator_params(nbins=4)
    space.tick_params(labelsize=8)
    above.locator_params(nbins=4)
    lines.set_clim(t[0], t[-1])
    above.set(
        xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="$X$ (m), seen from above", ylabel="$Y$ (m)"
    )
    figure.colorbar(lines, cax=scale, label="time (nutation periods)", orientation="horizontal")
    return figure


GROWTH = 2.0  # an error that a hundredfold time does not double is not a drift


def energy_claims(largest: Mapping[str, float], later: Mapping[str, float], drawn: str, long: str) -> list[Claim]:
    """From the largest |e_H| over the time drawn, and over a hundred times that."""

    def both(method: str) -> str:
        return f"{method}: largest {largest[method]:.1e} over {drawn}, {later[method]:.1e} over {long}"

    return [
        Claim("RK4's energy error grows with time", later[RK4] > GROWTH * largest[RK4], both(RK4)),
        Claim(
            "the variational integrators do not dissipate energy",
            all(later[m] < GROWTH * largest[m] for m in (MIDPOINT, SIMPSON)),
            "; ".join(both(m) for m in (MIDPOINT, SIMPSON)),
        ),
        Claim(
            "Simpson's energy error is closest to zero",
            largest[SIMPSON] < min(largest[MIDPOINT], largest[RK4]),
            f"largest over {drawn}: Simpson {largest[SIMPSON]:.1e}, implicit midpoint {largest[MIDPOINT]:.1e}, "
            f"RK4 {largest[RK4]:.1e}",
        ),
    ]


# The double pendulum.

PENDULUM = "double-pendulum"
SECONDS = 10


@lru_cache(maxsize=1)
def _fine_pendulum() -> Path:
    return run(PENDULUM, RK4, 1e-5, SECONDS * 10**5, every=10**3)


@lru_cache(maxsize=3)
def _coarse(method: str) -> Path:
    return run(PENDULUM, method, 0.1, SECONDS * 10)


def _evolution(quantity: str, symbols: tuple[str, str], unit: str, words: str) -> Redrawn:
    """Both components against the reference, one panel each."""
    reference = _fine_pendulum()
    curves = getattr(reference, quantity)
    span = np.ptp(curves, axis=0)
    figure, axes = plt.subplots(2, 1, sharex=True, figsize=(7, 5.5))
    for i, ax in enumerate(axes):
        ax.plot(reference.t, curves[:, i], label="RK4, h = 10⁻⁵", **REFERENCE)
        ax.set_ylabel(f"{symbols[i]} ({unit})")
    seen, worst = {}, {}
    for method in METHODS:
        path = _coarse(method)
        for i, ax in enumerate(axes):
            ax.plot(path.t, getattr(path, quantity)[:, i], **mark(method, PENDULUM, **HOLLOW))
        off = (np.abs(getattr(path, quantity) - curves[::10]) / span).max(axis=1)
        seen[method] = float(path.t[np.argmax(off > VISIBLE)]) if off.max() > VISIBLE else np.inf
        worst[method] = float(off.max())
    axes[0].legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=9)
    axes[1].set_xlabel("time $t$ (s)")
    follows = Claim(
        f"Simpson's {words}, h = 10⁻¹, follow the reference curve over all 10 s",
        bool(np.isinf(seen[SIMPSON])),
        f"largest deviation {worst[SIMPSON]:.2%} of the curve's range",
    )
    deviate = Claim(
        "the implicit midpoint method and RK4, h = 10⁻¹, deviate early on",
        seen[MIDPOINT] < SECONDS / 4 and seen[RK4] < SECONDS / 4,
        f"more than {VISIBLE:.0%} of the range away from t = {seen[MIDPOINT]:.1f} s on (midpoint) and "
        f"{seen[RK4]:.1f} s on (RK4); largest {worst[MIDPOINT]:.0%} and {worst[RK4]:.1%}",
    )
    return Redrawn(figure, [follows, deviate])


@redrawn("2", "Angles of the double pendulum, h = 10⁻¹, against a fine reference")
def figure_2(options: Options) -> Redrawn:
    return _evolution("q", ("upper angle $q^1$", "lower angle $q^2$"), "rad", "angles")


@redrawn("3", "Momenta of the double pendulum, h = 10⁻¹, against a fine reference")
def figure_3(options: Options) -> Redrawn:
    return _evolution("p", ("momentum $p_1$", "momentum $p_2$"), "kg m² s⁻¹", "momenta")


@redrawn("4", "Convergence of the double pendulum's energy over 10 s")
def figure_4(options: Options) -> Redrawn:
    h = 0.04 / 2.0 ** np.arange(-1, 6)
    figure, ax = plt.subplots(figsize=(7, 4.5))
    local = {}
    for method in METHODS:
        error = np.array([np.abs(energy_error(run(PENDULUM, method, x, round(SECONDS / x)))).max() for x in h])
        ax.loglog(h, error, **mark(method, PENDULUM))
        local[method] = slopes(h, error)
        if method != RK4:
            order_line(ax, h, error, 2 if method == MIDPOINT else 4)
    step_axis(ax, h[::-1])
    ax.set(xlabel="step $h$ (s)", ylabel=r"largest energy error $\|e_H\|_\infty$ over 10 s")
    ax.legend()
    claims = [
        Claim(
            f"the {method} method's rate is {order}",
            abs(local[method][-1] - order) < 0.1,
            f"orders {listed(local[method])} as h is halved",
        )
        for method, order in ((MIDPOINT, 2), (SIMPSON, 4))
    ]
    claims.append(
        Claim(
            "RK4's rate is higher than four",
            all(order > 4.5 for order in local[RK4]),
            f"orders {listed(local[RK4])} as h is halved: near five at the smallest steps too, so "
            "not because errors are high at large steps",
        )
    )
    return Redrawn(figure, claims)


@redrawn("5", "Energy error of the double pendulum over 10 s, h = 10⁻¹")
def figure_5(options: Options) -> Redrawn:
    """The energy error over ten seconds with h = 10⁻¹, the step of Figures 2 and 3; the paper does not give it."""
    figure, axes = plt.subplots(2, 1, sharex=True, figsize=(7, 5))
    largest, later = {}, {}
    for method in METHODS:
        path = _coarse(method)
        error = energy_error(path)
        largest[method] = float(np.abs(error).max())
        later[method] = float(np.abs(energy_error(run(PENDULUM, method, 0.1, 1000 * SECONDS))).max())
        axes[0].plot(path.t, error, **mark(method, PENDULUM, markersize=3))
        if method != RK4:
            axes[1].plot(path.t, error, **mark(method, PENDULUM, markersize=3))
    axes[0].set_ylabel("energy error $e_H$")
    axes[1].set_ylabel("energy error $e_H$, closer")
    axes[1].set_xlabel("time $t$ (s)")
    axes[0].legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    claims = energy_claims(largest, later, "10 s", "1000 s")
    return Redrawn(figure, claims)


# The top with loops.

LOOPS = "lagrange-top"
MESH = 20  # h = 0.05, as the caption of Figure 8 says


@lru_cache(maxsize=8)
def _top(method: str, periods: int) -> Path:
    return run(LOOPS, method, nutation_step(LOOPS, MESH), periods * MESH)


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


@redrawn("7", "The top with loops over five nutations, in space")
def figure_7(options: Options) -> Redrawn:
    top = problem(LOOPS)
    periods = np.linspace(0, 5, 2001)
    q, p = top.exact(periods * float(nutation_step(LOOPS, 1)))
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
    return Redrawn(figure, claims)


@redrawn("8", "Nutation over one period, h = 0.05, against the exact solution")
def figure_8(options: Options) -> Redrawn:
    top = problem(LOOPS)
    period = float(nutation_step(LOOPS, 1))
    fine = np.linspace(0, 1, 1001)
    exact = top.exact(fine * period)[0][:, 1]
    figure, ax = plt.subplots(figsize=(7, 4.2))
    ax.plot(fine, exact, label="exact", **REFERENCE)
    off = {}
    for method in METHODS:
        path = _top(method, 1)
        ax.plot(path.t / period, path.q[:, 1], **mark(method, LOOPS, **HOLLOW))
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
    return Redrawn(figure, [claim])


@redrawn("9", "Energy error of the top with loops over ten periods, with its bounds over 1000, h = 0.05")
def figure_9(options: Options) -> Redrawn:
    """The energy error over ten periods; the step is that of Figure 8, since the paper gives none."""
    period = float(nutation_step(LOOPS, 1))
    figure, axes = plt.subplots(2, 1, sharex=True, figsize=(7, 5.4))
    largest, later = {}, {}
    for method in METHODS:
        path = _top(method, 10)
        error, long = energy_error(path), energy_error(_top(method, 1000))
        largest[method], later[method] = float(np.abs(error).max()), float(np.abs(long).max())
        look = mark(method, LOOPS, markersize=2.5, linewidth=0.9)
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
    return Redrawn(figure, energy_claims(largest, later, "ten periods", "1000 periods"))


@redrawn("10", "Errors of the conserved momenta over ten periods, h = 0.05")
def figure_10(options: Options) -> Redrawn:
    period = float(nutation_step(LOOPS, 1))
    figure, axes = plt.subplots(2, 1, sharex=True, figsize=(7, 5))
    largest: dict[str, list[float]] = {}
    for method in METHODS:
        path = _top(method, 10)
        largest[method] = []
        for ax, i in zip(axes, (0, 2), strict=True):
            error = path.p[:, i] / path.p[0, i] - 1
            largest[method].append(float(np.abs(error).max()))
            ax.plot(path.t / period, error, **mark(method, LOOPS, markersize=2.5, linewidth=0.9))
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
    return Redrawn(figure, [claim])


@redrawn("11", "Convergence of nutation and energy over one period")
def figure_11(options: Options) -> Redrawn:
    meshes = 25 * 2 ** np.arange(6)
    h = 1.0 / meshes
    figure, axes = plt.subplots(1, 2, figsize=(7, 4), sharex=True)
    local: dict[tuple[str, str], Any] = {}
    finest: dict[tuple[str, str], float] = {}
    for method in METHODS:
        paths = [run(LOOPS, method, nutation_step(LOOPS, int(mesh)), int(mesh)) for mesh in meshes]
        errors = {
            "nutation": np.array([np.abs(nutation_error(path, LOOPS)).max() for path in paths]),
            "energy": np.array([np.abs(energy_error(path)).max() for path in paths]),
        }
        for ax, (quantity, error) in zip(axes, errors.items(), strict=True):
            ax.loglog(h, error, **mark(method, LOOPS))
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
    return Redrawn(figure, claims)


# The top with cusps.

WHOLE, REDUCED = "lagrange-top-cusps", "lagrange-top-cusps-reduced"


def nutation(method: str, steps: int, every: int = 1) -> tuple[FloatArray, FloatArray]:
    """t and θ over one second: RK4 on the reduced system, the others on the whole one."""
    if method == RK4:
        path = run(REDUCED, method, 1 / steps, steps, every)
        return path.t, path.q[:, 0]
    path = run(WHOLE, method, 1 / steps, steps, every)
    return path.t, path.q[:, 1]


@lru_cache(maxsize=1)
def _fine_nutation() -> tuple[FloatArray, FloatArray]:
    return nutation(RK4, 10**5, every=100)


@redrawn("12", "The top with cusps over five nutations, in space")
def figure_12(options: Options) -> Redrawn:
    top = problem(WHOLE)
    periods = np.linspace(0, 5, 2001)
    phi, theta, xi = top.reduced.exact(periods * top.period).T
    figure = axis_path(periods, phi, theta, top.params["l"])
    rate = top.reduced.rhs(np.stack([phi, theta, xi], axis=-1))[:, 0]
    speed = np.hypot(xi, rate * np.sin(theta))
    at_cusps = float(speed[::400].max())
    claim = Claim(
        "the axis draws cusps: it comes to rest, at θ₀, in every nutation",
        at_cusps < 1e-9 * float(speed.max()) and float(np.ptp(theta[::400])) < 1e-12,
        f"angular speed of the axis at the six cusps at most {at_cusps:.0e} rad/s, elsewhere up to {speed.max():.2f} "
        f"rad/s; a nutation takes {top.period:.5f} s",
    )
    return Redrawn(figure, [claim])


@redrawn("13", "Nutation of the top with cusps over one second, h = 0.1")
def figure_13(options: Options) -> Redrawn:
    t, reference = _fine_nutation()
    figure, ax = plt.subplots(figsize=(7, 4.2))
    ax.plot(t, reference, label="RK4, reduced, h = 10⁻⁵", **REFERENCE)
    off = {}
    for method in METHODS:
        times, theta = nutation(method, 10)
        which = "reduced" if method == RK4 else "whole"
        ax.plot(times, theta, **(mark(method, WHOLE, **HOLLOW) | {"label": f"{method}, {which}"}))
        off[method] = float(np.abs(theta - reference[::100]).max())
    ax.set(xlabel="time $t$ (s)", ylabel=r"nutation $\theta$ (rad)")
    ax.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=9)
    exact = float(np.abs(reference - problem(REDUCED).exact(t)[0][:, 0]).max())
    span = float(np.ptp(reference))
    claims = [
        Claim(
            "with h = 0.1 Simpson tracks the reference more precisely than RK4 on the reduced system",
            off[SIMPSON] < off[RK4] < off[MIDPOINT],
            f"largest deviation: Simpson {off[SIMPSON]:.4f}, RK4 {off[RK4]:.4f}, midpoint {off[MIDPOINT]:.3f} rad, of "
            f"a range of {span:.2f} rad",
        ),
        Claim(
            "RK4 on the reduced system at h = 10⁻⁵ will do as a reference",
            exact < 1e-12,
            f"it is {exact:.0e} rad away from the exact solution",
        ),
    ]
    return Redrawn(figure, claims)


@redrawn("14", "Simpson on the whole top minus RK4 on the reduced one")
def figure_14(options: Options) -> Redrawn:
    steps = 10 * 2 ** np.arange(9)
    h = 1.0 / steps
    pairs = [(nutation(SIMPSON, int(n))[1], nutation(RK4, int(n))[1]) for n in steps]
    difference = np.array([np.abs(a - b).max() for a, b in pairs])
    figure, ax = plt.subplots(figsize=(7, 4.5))
    ax.loglog(h, difference, color="#000000", marker="D", label="Simpson, whole, minus RK4, reduced")
    exact = [problem(REDUCED).exact(np.arange(n + 1) / n)[0][:, 0] for n in steps]
    for i, method in enumerate((SIMPSON, RK4)):
        error = np.array([np.abs(pair[i] - e).max() for pair, e in zip(pairs, exact, strict=True)])
        ax.loglog(h, error, **mark(method, WHOLE, label=f"{method} minus exact", linewidth=0.8, markersize=3))
    order_line(ax, h, difference, 4)
    step_axis(ax, h[::-1], [f"1/{n}" for n in steps[::-1]])
    ax.set(xlabel="step $h$ (s)", ylabel=r"largest difference of $\theta$ over 1 s (rad)")
    ax.legend()
    local = slopes(h, difference)
    claim = Claim(
        "the difference of Simpson on the whole system and RK4 on the reduced one is of order four",
        all(round(order) == 4 for order in local) and abs(local[-1] - 4) < 0.1,
        f"orders {listed(local)} as h is halved",
    )
    return Redrawn(figure, [claim])


FIGURES = [entry for entry in tuple(globals().values()) if isinstance(entry, FigureSpec)]
