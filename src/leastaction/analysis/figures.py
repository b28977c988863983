"""The pictures of the analysis; each belongs to a result and is drawn by its `plot()`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.plots import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from leastaction.analysis.stability import Stability


def axes(ax: Axes | None, width: float = 7.0, height: float = 4.0) -> Axes:
    """The axes given, or new ones."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def plot_stability(result: Stability, ax: Axes | None, x: tuple[float, float] | None) -> Axes:
    ax = axes(ax)
    ends = [end for interval in result for end in interval.floats if math.isfinite(end)]
    lower, upper = x if x is not None else (0.0, 1.15 * max(ends) if max(ends) > 0 else 20.0)
    # Thin gaps get points of their own, or they would be drawn as nothing.
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
    top = max([gap.growth for gap in result.gaps if gap.growth < math.inf and _seen(gap, lower, upper)], default=2.0)
    highest = max(top - 1, 0.0) * 1.3 or 0.5
    ax.set(xlabel=r"$x = h\omega$", ylabel="modulus of the eigenvalues", xlim=(lower, upper))
    ax.set_ylim(max(0.0, 1 - highest), 1 + highest)
    verdict = "stable for every $h$" if result.for_all_h else "unstable where shaded"
    ax.set_title(f"{result.method.name}: {verdict}", fontsize="medium")
    ax.legend(frameon=False, loc="upper left")
    return ax


def _seen(gap: Any, lower: float, upper: float) -> bool:
    return bool(lower <= gap.at <= upper)
