"""The pictures of the analysis; each belongs to a result and is drawn by its `plot()`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from leastaction.docstrings import documented
from leastaction.results.colours import COLOURS, line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from leastaction.analysis.conservation import Conservation
    from leastaction.analysis.convergence import Convergence, OrderTable
    from leastaction.analysis.dispersion import Dispersion
    from leastaction.analysis.efficiency import Efficiency
    from leastaction.analysis.equivalence import Equivalences, SameMap
    from leastaction.analysis.lyapunov import Lyapunov
    from leastaction.analysis.resonance import Resonance
    from leastaction.analysis.stability import Stability
    from leastaction.analysis.symmetries import Symmetries
    from leastaction.analysis.symplectic import Structure
    from leastaction.analysis.tangent import Tangent


class Drawn:
    """A result that draws itself: ``class Stability(Drawn, picture=figures.draw_stability)``."""

    _picture: ClassVar[Callable[..., Axes]]

    def __init_subclass__(cls, picture: Callable[..., Axes]) -> None:
        cls._picture = staticmethod(picture)

    @documented("ax")
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the result; the description of the class says what is drawn."""
        return self._picture(self, ax)


def axes(ax: Axes | None, width: float = 7.0, height: float = 4.0) -> Axes:
    """The axes given, or new ones."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def matrix_plot(values: Any, rows: list[str], columns: list[str], title: str, ax: Axes | None) -> Axes:
    """A matrix as coloured fields, blue for negative and red for positive entries, with its numbers if they fit."""
    values = np.asarray(values, float)
    ax = axes(ax, 1.5 + 0.55 * len(columns), 1.2 + 0.45 * len(rows))
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    ax.imshow(values, cmap="RdBu_r", vmin=-1.6 * largest, vmax=1.6 * largest, aspect="auto")
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_title(title, fontsize="medium")
    if values.size <= 200:
        for i, row in enumerate(values):
            for j, x in enumerate(row):
                ax.text(j, i, f"{x:.3g}" if x else "0", ha="center", va="center", fontsize="small")
    return ax


def draw_tangent(result: Tangent, ax: Axes | None) -> Axes:
    names = [f"${letter}_{{{i}}}$" for letter in "qp" for i in range(len(result.q))]
    return matrix_plot(result.state, names, names, "derivative of the state after by the state before", ax)


def draw_symmetries(result: Symmetries, ax: Axes | None) -> Axes:
    n = result.system.n
    columns = [f"$A_{{{i}{j}}}$" for i in range(n) for j in range(n)] + [f"$b_{{{i}}}$" for i in range(n)]
    rows = [np.concatenate([symmetry.A.ravel(), symmetry.b]) for symmetry in result.generators]
    values = np.array(rows).reshape(len(rows), n * n + n)
    return matrix_plot(values, list(result.names), columns, f"affine symmetries of {result.system.name}", ax)


def draw_equivalences(result: Equivalences, ax: Axes | None) -> Axes:
    rows = {
        "Gauss collocation": (result.gauss, result.gauss),
        "Lobatto IIIA–IIIB": (result.lobatto_pair != "no", result.lobatto_pair == "always"),
        **{twin.name: (True, False) for twin in result.twins},
    }
    title = f"what {result.method.name} is"
    return matrix_plot(list(rows.values()), list(rows), ["constant mass", "every L"], title, ax)


def outside_legend(ax: Axes) -> None:
    """A legend beside the axes, where it hides nothing."""
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")


def step_ticks(ax: Axes, h: Any) -> None:
    """Ticks of a logarithmic axis at the steps themselves, as far as they fit."""
    from matplotlib.ticker import NullFormatter

    steps = np.unique(np.asarray(h, float))
    if len(steps) <= 9:
        ax.set_xticks(steps, [f"{x:.3g}" for x in steps])
        ax.xaxis.set_minor_formatter(NullFormatter())


def draw_stability(result: Stability, ax: Axes | None, x: tuple[float, float] | None = None) -> Axes:
    ax = axes(ax)
    ends = [end for interval in result for end in interval.floats if math.isfinite(end)]
    lower, upper = x if x is not None else (0.0, 1.15 * max(ends) if max(ends) > 0 else 20.0)
    # Thin gaps get points of their own; otherwise they could not be seen.
    places = [np.linspace(lower, upper, 1500)]
    for gap in result.gaps:
        left, right = max(float(gap.lower), lower), min(float(gap.upper), upper)
        if left < right:
            places.append(np.linspace(left, right, 200))
            ax.axvspan(left, right, color=COLOURS[4], alpha=0.15, linewidth=0)
    points = np.unique(np.concatenate(places))
    large = result.growth(points)
    small = large if result.method.name.startswith("rk4") else 1 / large
    ax.plot(points, large, color=COLOURS[0], linewidth=1.2, label=r"$|\lambda_1|$")
    ax.plot(points, small, color=COLOURS[1], linewidth=1.2, linestyle="--", label=r"$|\lambda_2|$")
    top = max([gap.growth for gap in result.gaps if gap.growth < math.inf and lower <= gap.at <= upper], default=2.0)
    highest = max(top - 1, 0.0) * 1.3 or 0.5
    ax.set(xlabel=r"$x = h\omega$", ylabel="modulus of the eigenvalues", xlim=(lower, upper))
    ax.set_ylim(max(0.0, 1 - highest), 1 + highest)
    verdict = "stable for every $h$" if result.for_all_h else "unstable where shaded"
    ax.set_title(f"{result.method.name}: {verdict}", fontsize="medium")
    ax.legend(frameon=False, loc="upper left")
    return ax


def draw_structure(result: Structure, ax: Axes | None) -> Axes:
    ax = axes(ax)
    floor = np.finfo(float).eps / 16  # where exact zeros are drawn
    for i, chosen in enumerate(result.methods):
        look = line(chosen)
        ax.loglog(result.h, np.maximum(result.symplectic[i], floor), **look | {"marker": "o"}, label=chosen.name)
        hollow = look | {"marker": "s", "linewidth": 0.8, "fillstyle": "none"}
        ax.loglog(result.h, np.maximum(result.reversibility[i], floor), **hollow)
    ax.set(xlabel="step $h$", ylabel="defect of one step")
    ax.set_title(r"symplectic $\Vert\Phi'^TJ\Phi'-J\Vert$ (dots), reversal (squares)", fontsize="medium")
    step_ticks(ax, result.h)
    outside_legend(ax)
    return ax


def draw_lyapunov(result: Lyapunov, ax: Axes | None) -> Axes:
    ax = axes(ax)
    ax.set_prop_cycle(color=COLOURS)
    for i, last in enumerate(result.exponents):
        ax.semilogx(result.t, result.history[:, i], linewidth=1, label=rf"$\lambda_{{{i + 1}}}$ = {last:.4g}")
    late = result.history[len(result.t) // 10 :]
    reach = 1.5 * float(np.abs(late).max()) or 1.0
    ax.set(
        xlabel="time $t$", ylabel="estimate until $t$", ylim=(-reach, reach), xlim=(result.t[-1] / 500, result.t[-1])
    )
    ax.set_title(f"Lyapunov exponents of {result.system.name}, {result.method.name}", fontsize="medium")
    if len(result.exponents) <= 20:
        outside_legend(ax)
    return ax


def draw_conservation(result: Conservation, ax: Axes | None) -> Axes:
    ax = axes(ax)
    floor = np.finfo(float).eps / 16
    for i, one in enumerate(result.kept):
        away = np.abs(one.values - one.values[0]) / (one.size or 1.0)
        ax.semilogy(
            result.path.t, np.maximum(away, floor), color=COLOURS[i % len(COLOURS)], linewidth=0.8, label=one.name
        )
    ax.set(xlabel="time $t$", ylabel=r"$|J - J_0|$ relative to its terms")
    ax.set_title(f"{result.path.system.name}, {result.path.method.name}, h = {result.path.h:g}", fontsize="medium")
    outside_legend(ax)
    return ax


def draw_convergence(result: Convergence | OrderTable, ax: Axes | None) -> Axes:
    ax = axes(ax)
    results: Sequence[Convergence] = getattr(result, "results", [result])
    for result in results:
        chosen, fit = result.method, result.fit
        look = line(chosen)
        paint, mark, dashes = look["color"], look["marker"], look["linestyle"]
        if len(results) > len(COLOURS):  # a grid: marks for r
            mark = "os^vDPX"[len(chosen.root.linear_form().tau) % 7]
        label = f"{result.method.name}, order {fit.order:.2f}"
        ax.loglog(result.h, result.error, mark, color=paint, fillstyle="none", markersize=5)
        ax.loglog(result.h[fit.used], result.error[fit.used], mark, color=paint, markersize=5)
        ends = result.h[fit.used][[0, -1]] if fit.used.any() else result.h[:0]
        ax.loglog(ends, fit.constant * ends**fit.order, dashes, color=paint, linewidth=1, label=label)
    one = results[0]
    ax.set(xlabel="step $h$", ylabel="relative error")
    ax.set_title(f"{one.problem}, $t$ = {one.t_end:g}: fitted where filled", fontsize="medium")
    step_ticks(ax, np.concatenate([result.h for result in results]))
    outside_legend(ax)
    return ax


def draw_dispersion(result: Dispersion, ax: Axes | None) -> Axes:
    ax = axes(ax)
    x = np.geomspace(0.02, 3.0, 400)
    phase = np.abs(result.frequency_ratio(x) - 1)
    energy = np.array([_energy_error(result, float(y)) for y in x])
    for values, first, colour, label in (
        (phase, result.phase_error, COLOURS[0], r"$|\omega_h/\omega - 1|$"),
        (energy, result.energy_error, COLOURS[1], "energy"),
    ):
        if first.coefficient == 0:
            continue
        shown = values > 100 * np.finfo(float).eps  # below, the difference is round-off
        ax.loglog(x[shown], values[shown], color=colour, linewidth=1.5, label=label)
        size = abs(float(first.coefficient))
        top, bottom = abs(first.coefficient).as_numer_denom()
        term = f"${'' if top == 1 else top}x^{{{first.power}}}/{bottom}$"
        ax.loglog(x, size * x**first.power, ":", color=colour, linewidth=1, label=term)
    ax.set(xlabel=r"$x = h\omega$", ylabel="relative error")
    ax.set_title(f"{result.method.name} on the harmonic oscillator", fontsize="medium")
    outside_legend(ax)
    return ax


def _energy_error(result: Dispersion, x: float) -> float:
    """|ρ − 1|, or for RK4 the energy lost in a step; nan where the method is unstable."""
    try:
        low, high = result.energy_bounds(x)
    except ValueError:
        return abs(float(result.energy(x, 1)) / 0.5 - 1) if result.method.name.startswith("rk4") else math.nan
    return (high - low) / high


def draw_same_map(result: SameMap, ax: Axes | None) -> Axes:
    ax = axes(ax)
    for values, mark, label in (
        (result.difference, "o-", "mass depends on $q$"),
        (result.constant_mass_difference, "s--", "constant mass"),
    ):
        ax.loglog(result.h, np.maximum(values, 1e-40), mark, label=label)
    ax.set(xlabel="step $h$", ylabel="distance after one step")
    ax.set_title(f"{result.first.name} and {result.second.name}", fontsize="medium")
    step_ticks(ax, result.h)
    outside_legend(ax)
    return ax


def draw_efficiency(result: Efficiency, ax: Axes | None) -> Axes:
    ax = axes(ax)
    for i, chosen in enumerate(result.methods):
        ax.loglog(result.time[i], result.error[i], **line(chosen), markersize=4, linewidth=1, label=chosen.name)
    ax.set(xlabel="run time (s)", ylabel="relative error")
    ax.set_title(f"{result.problem}: error against run time (Gauss dashed)", fontsize="medium")
    outside_legend(ax)
    return ax


def draw_resonance(result: Resonance, ax: Axes | None) -> Axes:
    ax = axes(ax)
    wrong = np.array([bool(remark) for remark in result.remark])
    failed = np.isinf(result.error)
    ax.semilogy(result.h[~failed], result.error[~failed], "-", color="0.6", linewidth=0.8)
    ax.semilogy(result.h[~wrong], result.error[~wrong], ".", color=COLOURS[0], label="as expected")
    shown = wrong & ~failed
    if shown.any():
        ax.semilogy(result.h[shown], result.error[shown], "o", color=COLOURS[1], markersize=4, label="degraded")
    for k, h in enumerate(result.h[failed]):
        ax.axvline(h, color=COLOURS[3], linewidth=0.8, alpha=0.6, label="a step failed" if k == 0 else None)
    ax.set(xlabel="step $h$", ylabel="largest relative energy error")
    ax.set_title(f"{result.system.name}, {result.method.name}, $t$ = {result.t_end:g}", fontsize="medium")
    ax.legend(frameon=False, fontsize="small")
    return ax
