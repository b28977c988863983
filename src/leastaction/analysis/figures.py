"""The pictures of the analysis; each belongs to a result and is drawn by its `plot()`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from leastaction.docstrings import described, documented
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
    """A result that draws itself, by a function that gives the title: ``class Structure(Drawn, picture=…)``."""

    _picture: ClassVar[Callable[[Any, Axes], str]]

    def __init_subclass__(cls, picture: Callable[[Any, Axes], str]) -> None:
        cls._picture = staticmethod(picture)
        described(cls)

    @documented("ax")
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the result; the description of the class says what is drawn."""
        return drawn(self._picture, self, ax)


def drawn(picture: Callable[..., str], result: Any, ax: Axes | None, **options: Any) -> Axes:
    """The axes given, or new ones, with this picture and its title."""
    figure = None
    if ax is None:
        import matplotlib.pyplot as plt

        figure, ax = plt.subplots(figsize=(7.0, 4.0), layout="constrained")
    ax.set_title(picture(result, ax, **options), fontsize="medium")
    if figure and ax.images:  # a matrix, with room for its numbers
        rows, columns = ax.images[0].get_size()
        figure.set_size_inches(1.5 + 0.55 * columns, 1.2 + 0.45 * rows)
    return ax


def matrix_plot(values: Any, rows: list[str], columns: list[str], ax: Axes) -> None:
    """A matrix as coloured fields, blue for negative and red for positive entries, with its numbers if they fit."""
    values = np.asarray(values, float)
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    ax.imshow(values, cmap="RdBu_r", vmin=-1.6 * largest, vmax=1.6 * largest, aspect="auto")
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    if values.size <= 200:
        for i, row in enumerate(values):
            for j, x in enumerate(row):
                ax.text(j, i, f"{x:.3g}" if x else "0", ha="center", va="center", fontsize="small")


def draw_tangent(result: Tangent, ax: Axes) -> str:
    names = [f"${letter}_{{{i}}}$" for letter in "qp" for i in range(len(result.q))]
    matrix_plot(result.state, names, names, ax)
    return "derivative of the state after by the state before"


def draw_symmetries(result: Symmetries, ax: Axes) -> str:
    n = result.system.n
    columns = [f"$A_{{{i}{j}}}$" for i in range(n) for j in range(n)] + [f"$b_{{{i}}}$" for i in range(n)]
    rows = [np.concatenate([symmetry.A.ravel(), symmetry.b]) for symmetry in result.generators]
    values = np.array(rows).reshape(len(rows), n * n + n)
    matrix_plot(values, list(result.names), columns, ax)
    return f"affine symmetries of {result.system.name}"


def draw_equivalences(result: Equivalences, ax: Axes) -> str:
    rows = {
        "Gauss collocation": (result.gauss, result.gauss),
        "Lobatto IIIA–IIIB": (result.lobatto_pair != "no", result.lobatto_pair == "always"),
        **{twin.name: (True, False) for twin in result.twins},
    }
    matrix_plot(list(rows.values()), list(rows), ["constant mass", "every L"], ax)
    return f"what {result.method.name} is"


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


def draw_stability(result: Stability, ax: Axes, x: tuple[float, float] | None = None) -> str:
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
    ax.legend(frameon=False, loc="upper left")
    return f"{result.method.name}: {verdict}"


def draw_structure(result: Structure, ax: Axes) -> str:
    floor = np.finfo(float).eps / 16  # where exact zeros are drawn
    for i, chosen in enumerate(result.methods):
        look = line(chosen)
        ax.loglog(result.h, np.maximum(result.symplectic[i], floor), **look | {"marker": "o"}, label=chosen.name)
        hollow = look | {"marker": "s", "linewidth": 0.8, "fillstyle": "none"}
        ax.loglog(result.h, np.maximum(result.reversibility[i], floor), **hollow)
    ax.set(xlabel="step $h$", ylabel="defect of one step")
    step_ticks(ax, result.h)
    outside_legend(ax)
    return r"symplectic $\Vert\Phi'^TJ\Phi'-J\Vert$ (dots), reversal (squares)"


def draw_lyapunov(result: Lyapunov, ax: Axes) -> str:
    ax.set_prop_cycle(color=COLOURS)
    for i, last in enumerate(result.exponents):
        ax.semilogx(result.t, result.history[:, i], linewidth=1, label=rf"$\lambda_{{{i + 1}}}$ = {last:.4g}")
    late = result.history[len(result.t) // 10 :]
    reach = 1.5 * float(np.abs(late).max()) or 1.0
    ax.set(
        xlabel="time $t$", ylabel="estimate until $t$", ylim=(-reach, reach), xlim=(result.t[-1] / 500, result.t[-1])
    )
    if len(result.exponents) <= 20:
        outside_legend(ax)
    return f"Lyapunov exponents of {result.system.name}, {result.method.name}"


def draw_conservation(result: Conservation, ax: Axes) -> str:
    floor = np.finfo(float).eps / 16
    for i, one in enumerate(result.kept):
        away = np.abs(one.values - one.values[0]) / (one.size or 1.0)
        ax.semilogy(
            result.path.t, np.maximum(away, floor), color=COLOURS[i % len(COLOURS)], linewidth=0.8, label=one.name
        )
    ax.set(xlabel="time $t$", ylabel=r"$|J - J_0|$ relative to its terms")
    outside_legend(ax)
    return f"{result.path.system.name}, {result.path.method.name}, h = {result.path.h:g}"


def draw_convergence(result: Convergence | OrderTable, ax: Axes) -> str:
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
    step_ticks(ax, np.concatenate([result.h for result in results]))
    outside_legend(ax)
    return f"{one.problem}, $t$ = {one.t_end:g}: fitted where filled"


def draw_dispersion(result: Dispersion, ax: Axes) -> str:
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
    outside_legend(ax)
    return f"{result.method.name} on the harmonic oscillator"


def _energy_error(result: Dispersion, x: float) -> float:
    """|ρ − 1|, or for RK4 the energy lost in a step; nan where the method is unstable."""
    try:
        low, high = result.energy_bounds(x)
    except ValueError:
        return abs(float(result.energy(x, 1)) / 0.5 - 1) if result.method.name.startswith("rk4") else math.nan
    return (high - low) / high


def draw_same_map(result: SameMap, ax: Axes) -> str:
    for values, mark, label in (
        (result.difference, "o-", "mass depends on $q$"),
        (result.constant_mass_difference, "s--", "constant mass"),
    ):
        ax.loglog(result.h, np.maximum(values, 1e-40), mark, label=label)
    ax.set(xlabel="step $h$", ylabel="distance after one step")
    step_ticks(ax, result.h)
    outside_legend(ax)
    return f"{result.first.name} and {result.second.name}"


def draw_efficiency(result: Efficiency, ax: Axes) -> str:
    for i, chosen in enumerate(result.methods):
        ax.loglog(result.time[i], result.error[i], **line(chosen), markersize=4, linewidth=1, label=chosen.name)
    ax.set(xlabel="run time (s)", ylabel="relative error")
    outside_legend(ax)
    return f"{result.problem}: error against run time (Gauss dashed)"


def draw_resonance(result: Resonance, ax: Axes) -> str:
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
    ax.legend(frameon=False, fontsize="small")
    return f"{result.system.name}, {result.method.name}, $t$ = {result.t_end:g}"
