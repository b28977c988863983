"""How the cost of a step grows with the degree s and with the size n: `python benchmarks/growth.py`.

Plain Lagrangians with Gauss' rules of s nodes. Some are pendulums side by side, coupled by springs: soft springs (h ω
at most 1), where mass chords solve a step, and stiff ones (h ω up to 30), where shifted chords do: as kernels, or in
the loops where kernels would be too long; a few stiff steps are also solved in the loops, by shifted chords and by
Newton's iteration. The others are chains of pendulums, each hanging from the one before, whose mass is dense. Times are
of the processor, of steps alone. Prints tables in Markdown and draws docs/figures/growth.png.

Tracing, compiling and first steps of the largest systems take minutes. A row of a table (one kind, one n) has BUDGET
seconds of the processor; degrees, and whole rows, that would take more are left out, and the table says so by a dash.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest import mock

import matplotlib.pyplot as plt
import numpy as np
from core import chain, processor_seconds
from measured import kept, table
from numpy.typing import NDArray

import leastaction as la
from leastaction.backends import backend
from leastaction.backends.fused import stiff
from leastaction.backends.solver import Solvers
from leastaction.results.colours import COLOURS

FIGURE = Path(__file__).parent.parent / "docs" / "figures" / "growth.png"
DEGREES = (1, 2, 3, 4, 6, 8, 12, 16)
SIZES = (2, 5, 10, 20, 50, 100)
SOFT, STIFF = 1.0, 30.0  # h times the highest frequency
BY_NEWTON = ((10, 4), (10, 8), (20, 4), (20, 8))  # n, s
SECONDS = 0.05  # a timed run takes at least so long …
FEWEST = 10  # … and so many steps
REPEATS = 5
BUDGET = 120.0  # seconds of the processor for one kind and one n


def pendulums(q, v, k):
    g = 1 + 0.1 * np.sin(np.arange(len(q)))
    return 0.5 * v @ v + np.sum(g * np.cos(q)) - 0.5 * k * np.sum(np.diff(q) ** 2)


def microseconds(system: la.Lagrangian, s: int, h: float, q0: NDArray[np.float64], **params: float) -> float:
    """The time of one step of a run that has its kernels: those of stiff steps are made after some steps."""
    start = {"q0": q0, "v0": np.zeros(system.n), "h": h, "params": params}
    method = la.method(f"P{s}N{s}Q{2 * s}Gau")

    def run(steps: int) -> la.Path:
        return la.integrate(system, method, **start, steps=steps, every=steps)

    begun = 2 + system.backend(method).patience
    run(begun)  # compiles
    steps, set_up = FEWEST, min(processor_seconds(partial(run, begun)) for _ in range(3))
    while processor_seconds(partial(run, begun + steps)) - set_up < SECONDS:
        steps *= 4
    least = min(processor_seconds(partial(run, begun + steps)) for _ in range(REPEATS))
    set_up = min(set_up, *(processor_seconds(partial(run, begun)) for _ in range(REPEATS)))
    return (least - set_up) / steps * 1e6


def coupled(n: int, s: int, firm: float) -> float:
    """The time of a step of pendulums coupled by springs; h times their highest frequency is `firm`."""
    h = 0.5
    system = la.Lagrangian(pendulums, n=n, params={"k": 1.0})
    return microseconds(system, s, h, np.full(n, 0.5), k=(firm / h / 2) ** 2)


def hanging(n: int, s: int) -> float:
    """The time of a step of a chain that swings gently. It is bent where it begins: of a straight chain only the first
    link is moved at first, and the next links by rounding alone, so that the first steps are continued in h.
    """
    return microseconds(la.Lagrangian(chain, n=n, params={"g": 9.81}), s, 1e-3, np.linspace(0.5, 1.0, n))


KINDS: dict[str, Callable[[int, int], float]] = {
    "soft springs, h ω ≤ 1": partial(coupled, firm=SOFT),
    "stiff springs, h ω ≤ 30": partial(coupled, firm=STIFF),
    "chains, dense mass": hanging,
}


def measure(name: str) -> None:
    """The table of one kind: times by n and s, and a dash where the budget does not reach."""
    times, first = np.full((len(SIZES), len(DEGREES)), np.nan), 0.0
    for i, n in enumerate(SIZES):
        grown = (n / SIZES[i - 1]) ** 2 if i else 1.0
        if first * grown > BUDGET:
            break
        spent = row(KINDS[name], n, times[i])
        first = spent[0]
        print(f"({name}, n = {n}: {sum(spent):.0f} s)", flush=True)
    rows = [[str(n), *("–" if np.isnan(t) else f"{t:.3g}" for t in row)] for n, row in zip(SIZES, times, strict=True)]
    table(name, f"µs per step, {name}", ["n", *(f"s = {s}" for s in DEGREES)], rows)


def row(kind: Callable[[int, int], float], n: int, times: NDArray[np.float64]) -> list[float]:
    """Measure the degrees of one n until the next one would exceed the budget. Returns the seconds of each."""
    spent: list[float] = []
    for k, s in enumerate(DEGREES):
        if k and sum(spent) + spent[-1] * (s / DEGREES[k - 1]) ** 2 > BUDGET:
            break
        clock = time.process_time()
        times[k] = kind(n, s)
        spent.append(time.process_time() - clock)
    return spent


def beside_newton() -> list[list[str]]:
    """The time of a stiff step in the loops by shifted chords, where they are tried, and by Newton's iteration."""
    rows = []
    for n, s in BY_NEWTON:
        with mock.patch.object(stiff, "stiffens", lambda *_: False):
            backend.backend.cache_clear()
            by_shifts = coupled(n, s, STIFF)
            backend.backend.cache_clear()
            with mock.patch.object(Solvers, "_shifts", lambda *_: (-1, 1)):
                by_newton = coupled(n, s, STIFF)
        backend.backend.cache_clear()
        rows.append([str(n), str(s), f"{by_shifts:.3g}", f"{by_newton:.3g}", f"{by_newton / by_shifts:.2f}"])
    return rows


def draw() -> None:
    """The figure, from the tables that are kept."""
    tables = kept("growth")
    figure, axes = plt.subplots(1, len(KINDS), figsize=(12, 4), sharey=True, layout="constrained")
    for ax, name in zip(axes, KINDS, strict=True):
        for (n, *row), colour in zip(tables[name]["rows"], COLOURS, strict=False):
            times = [np.nan if cell == "–" else float(cell) for cell in row]
            ax.plot(DEGREES, times, "o-", color=colour, markersize=4, label=f"n = {n}")
        ax.set(xscale="log", yscale="log", xlabel="degree s", title=name)
        ax.set_xticks(DEGREES, map(str, DEGREES))
        ax.minorticks_off()
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("µs per step")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right", fontsize="small")
    figure.savefig(FIGURE, dpi=120)


def main() -> None:
    for name in KINDS:
        measure(name)
    table("newton", "µs per stiff step in the loops", ["n", "s", "shifted chords", "Newton", "ratio"], beside_newton())
    draw()


if __name__ == "__main__":
    main()
