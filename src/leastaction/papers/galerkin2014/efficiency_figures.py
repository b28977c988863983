"""Figures 5.13 and 5.14: error over run time, on the oscillator.

Run times are those of the machine at hand, the best of several runs, without compilation. A run here is over T = 1000:
with the T = 10 of the other figures it would be too short to be timed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from leastaction.errors import measuring
from leastaction.integrate import integrate
from leastaction.methods import Galerkin
from leastaction.papers.galerkin2014.runs import OSCILLATOR, STEPS, member
from leastaction.papers.model import Claim, Drawing, FigureSpec, Options
from leastaction.papers.style import line
from leastaction.problems import get

T_TIMED = 1000
ENOUGH = 1e-10  # the step is reduced until the error is below this
REPEATS = 7
DASHES: dict[int, Any] = {3: "-", 4: "--", 5: "-.", 6: ":"}  # by r


@dataclass(frozen=True)
class Timed:
    """The largest error of q and p until T, the seconds of the run, and its steps."""

    error: float
    seconds: float
    steps: int


@lru_cache(maxsize=4)
@measuring()
def timed(methods: tuple[Galerkin, ...]) -> dict[Galerkin, list[Timed]]:
    """Each method at the paper's steps until its error is below 10⁻¹⁰."""
    given = get(OSCILLATOR)
    found: dict[tuple[Galerkin, Fraction], tuple[float, int]] = {}
    for chosen in methods:
        for h in STEPS:
            path = integrate(given.system, chosen, given.q0, given.p0, h=h, t_end=T_TIMED)
            q, p = given.exact(path.t)
            error = max(float(np.abs(path.q - q).max()), float(np.abs(path.p - p).max()))
            found[chosen, h] = error, len(path.t) - 1
            if error < ENOUGH:
                break
    seconds = dict.fromkeys(found, np.inf)
    for _ in range(REPEATS):  # in turns, so that a disturbance does not meet all runs of one method
        for chosen, h in found:
            path = integrate(given.system, chosen, given.q0, given.p0, h=h, t_end=T_TIMED)
            seconds[chosen, h] = min(seconds[chosen, h], path.stats["run_time"])
    return {m: [Timed(e, seconds[m, h], n) for (k, h), (e, n) in found.items() if k == m] for m in methods}


def _per_step(runs: Sequence[Timed]) -> float:
    """Microseconds per step, in the longest run."""
    return 1e6 * runs[-1].seconds / runs[-1].steps


def _axes(ax: Any) -> None:
    ax.set(xlabel="run time (s)", ylabel=f"largest error of $q$ and $p$ until $T$ = {T_TIMED}")
    ax.axhline(ENOUGH, color="#777777", linewidth=0.9, linestyle=":")


def _curve(ax: Any, runs: Sequence[Timed], **look: Any) -> None:
    ax.loglog([run.seconds for run in runs], [run.error for run in runs], **look)


def figure_5_13(options: Options) -> Drawing:
    """PsNrQ2r−2Lob, s ≤ r, r = 3 … 6."""
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    methods = tuple(member("Lob", s, r) for r in DASHES for s in range(1, r + 1))
    found = timed(methods)
    figure, axes = plt.subplots(2, 3, figsize=(7, 6), sharex=True, sharey=True)
    for ax, s in zip(axes.flat, range(1, 7), strict=True):
        for chosen in methods:
            if chosen.s == s:
                _curve(ax, found[chosen], **line(chosen) | {"linestyle": DASHES[chosen.rule.r], "linewidth": 1.0})
        ax.axhline(ENOUGH, color="#777777", linewidth=0.9, linestyle=":")
        ax.set_title(f"s = {s}", fontsize="medium")
    handles = [Line2D([], [], color="#333333", linestyle=dashes, label=f"r = {r}") for r, dashes in DASHES.items()]
    figure.legend(handles=handles, ncols=4, loc="outside upper center")
    figure.supxlabel("run time (s)", fontsize="medium")
    figure.supylabel(f"largest error of $q$ and $p$ until $T$ = {T_TIMED}", fontsize="medium")
    cost = {chosen.name: _per_step(runs) for chosen, runs in found.items()}
    nodes = ["P2N3Q4Lob", "P2N4Q6Lob", "P2N5Q8Lob", "P2N6Q10Lob"]
    degrees = [("P2N3Q4Lob", "P3N3Q4Lob"), ("P5N6Q10Lob", "P6N6Q10Lob")]
    return Drawing(
        figure,
        [
            Claim(
                "of the methods of order four with s = 2, more nodes take longer",
                cost[nodes[-1]] > cost[nodes[0]],
                "a step here: " + ", ".join(f"{name} {cost[name]:.2f} µs" for name in nodes),
                timed=True,
            ),
            Claim(
                "a higher degree without a higher order takes longer",
                all(cost[high] > cost[low] for low, high in degrees),
                "a step here: " + "; ".join(f"{a} {cost[a]:.2f} µs, {b} {cost[b]:.2f} µs" for a, b in degrees),
                timed=True,
            ),
        ],
    )


def figure_5_14(options: Options) -> Drawing:
    """PsNsQ2sGau and PsNs+1Q2sLob, s = 1 … 6."""
    import matplotlib.pyplot as plt

    pairs = [(member("Gau", s, s), member("Lob", s, s + 1)) for s in range(1, 7)]
    found = timed(tuple(chosen for pair in pairs for chosen in pair))
    figure, ax = plt.subplots(figsize=(7, 5))
    for pair in pairs:
        for chosen, dashes in zip(pair, (":", "-"), strict=True):
            hollow = {"fillstyle": "none"} if dashes == ":" else {}
            _curve(ax, found[chosen], label=chosen.name, **line(chosen) | {"linestyle": dashes} | hollow)
    _axes(ax)
    figure.legend(ncols=4, loc="outside upper center", fontsize="small")
    cost = [_per_step(found[lobatto]) for _, lobatto in pairs]
    reach = {chosen: _time_to(runs, 1e-6) for chosen, runs in found.items()}
    simpson, third = pairs[1][1], pairs[2][1]
    fewest = {chosen.s for chosen, runs in found.items() if runs[-1].error <= ENOUGH}
    return Drawing(
        figure,
        [
            Claim(
                "larger s: a longer time for a step",
                cost[-1] > cost[0],
                "PsNs+1Q2sLob here: " + ", ".join(f"s = {s} {c:.2f} µs" for s, c in enumerate(cost, 1)),
                timed=True,
            ),
            Claim(
                "larger s: a higher order, so that the accuracy wanted decides which is fastest",
                reach[third] < reach[simpson],
                f"to an error below 1e-6: {simpson.name} takes {reach[simpson] / reach[third]:.1f} times as long as "
                f"{third.name}; only s ≥ {min(fewest)} comes below 1e-10 with these steps",
                timed=True,
            ),
        ],
    )


def _time_to(runs: Sequence[Timed], error: float) -> float:
    """Seconds of the first run with an error below this."""
    return next((run.seconds for run in runs if run.error < error), np.inf)


FIGURES = [
    FigureSpec(
        "5.13",
        "Harmonic oscillator: error over run time of PsNrQ2r−2Lob; run times are those of the machine of this report",
        figure_5_13,
    ),
    FigureSpec(
        "5.14",
        "Harmonic oscillator: error over run time of PsNsQ2sGau (dotted, open) and PsNs+1Q2sLob (solid); run times are "
        "those of the machine of this report",
        figure_5_14,
    ),
]
