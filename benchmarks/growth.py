"""How the cost of a step grows with the degree s and with the size n: `python benchmarks/growth.py`.

Pendulums side by side, coupled by springs, written as one Lagrangian, with Gauss' rules of s nodes: soft springs (h ω
is 1 at most), where mass chords solve a step, and stiff ones (h ω up to 30), where shifted chords do; a few of the
stiff ones by Newton's iteration, too. Times are of the processor, of steps alone. Prints tables in Markdown and draws
docs/figures/growth.png.
"""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import matplotlib.pyplot as plt
import numpy as np
from core import per_step
from measured import table
from numpy.typing import NDArray

import leastaction as la
from leastaction.backends.solver import Solvers
from leastaction.colours import COLOURS

FIGURE = Path(__file__).parent.parent / "docs" / "figures" / "growth.png"
DEGREES = (1, 2, 3, 4, 6, 8, 12, 16)
SIZES = (2, 5, 10, 20, 50, 100)
KINDS = {"soft": 1.0, "stiff": 30.0}  # h times the highest frequency
BY_NEWTON = ((10, 4), (10, 8), (20, 4), (20, 8), (50, 4), (50, 8))  # n, s
SECONDS = 0.1  # that a timed run takes, about
REPEATS = 3


def pendulums(q, v, k):
    g = 1 + 0.1 * np.sin(np.arange(len(q)))
    return 0.5 * v @ v + np.sum(g * np.cos(q)) - 0.5 * k * np.sum(np.diff(q) ** 2)


def microseconds(system: la.Lagrangian, s: int, stiff: float) -> float:
    """What a step takes."""
    n, h = system.n, 0.5
    params = {"k": (stiff / h / 2) ** 2}

    def run(steps: int) -> la.Path:
        start = {"q0": np.full(n, 0.5), "v0": np.zeros(n), "h": h, "params": params}
        return la.integrate(system, f"P{s}N{s}Q{2 * s}Gau", **start, steps=steps, every=steps)

    steps = max(20, int(SECONDS / run(100).stats["time_per_step"]))
    timed = per_step(run, steps)
    return min(timed() for _ in range(REPEATS)) * 1e6


def measured() -> dict[str, NDArray[np.float64]]:
    found = {kind: np.zeros((len(SIZES), len(DEGREES))) for kind in KINDS}
    for i, n in enumerate(SIZES):
        system = la.Lagrangian(pendulums, n=n, params={"k": 1.0})
        for j, s in enumerate(DEGREES):
            for kind, stiff in KINDS.items():
                found[kind][i, j] = microseconds(system, s, stiff)
    return found


def beside_newton() -> list[list[str]]:
    """What a stiff step takes by shifted chords, where they are tried, and by Newton's iteration."""
    rows = []
    for n, s in BY_NEWTON:
        by_shifts = microseconds(la.Lagrangian(pendulums, n=n, params={"k": 1.0}), s, KINDS["stiff"])
        with mock.patch.object(Solvers, "_shifts", lambda *_: (-1, 1)):
            by_newton = microseconds(la.Lagrangian(pendulums, n=n, params={"k": 1.0}), s, KINDS["stiff"])
        rows.append([str(n), str(s), f"{by_shifts:.3g}", f"{by_newton:.3g}", f"{by_newton / by_shifts:.2f}"])
    return rows


def draw(found: dict[str, NDArray[np.float64]]) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
    for ax, (kind, times) in zip(axes, found.items(), strict=True):
        for n, row, colour in zip(SIZES, times, COLOURS, strict=False):
            ax.plot(DEGREES, row, "o-", color=colour, markersize=4, label=f"n = {n}")
        ax.set(xscale="log", yscale="log", xlabel="degree s", title=f"{kind}: h ω ≤ {KINDS[kind]:g}")
        ax.set_xticks(DEGREES, map(str, DEGREES))
        ax.minorticks_off()
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("µs per step")
    axes[0].legend(fontsize="small")
    figure.savefig(FIGURE, dpi=120)


def main() -> None:
    found = measured()
    for kind, times in found.items():
        rows = [[str(n), *(f"{t:.3g}" for t in row)] for n, row in zip(SIZES, times, strict=True)]
        table(kind, f"µs per step, {kind}", ["n", *(f"s = {s}" for s in DEGREES)], rows)
    table("newton", "µs per stiff step", ["n", "s", "shifted chords", "Newton", "ratio"], beside_newton())
    draw(found)


if __name__ == "__main__":
    main()
