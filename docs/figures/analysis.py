"""Draws analysis.png, the figure of analysis.md."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction import analysis


def henon_heiles(q, v):
    return 0.5 * (v @ v) - 0.5 * (q @ q) - q[0] ** 2 * q[1] + q[1] ** 3 / 3


def main() -> None:
    figure, axes = plt.subplots(3, 2, figsize=(14, 12), layout="constrained")
    analysis.stability("P3N4Q6Lob").plot(axes[0, 0])
    analysis.stability("P3N4Q6Lob").plot(axes[0, 1], x=(3.0, 3.3))
    analysis.dispersion("P3N4Q6Lob").plot(axes[1, 0])
    table = analysis.order_table(la.problems.get("kepler"), "Lob", h=["1/16", "1/32", "1/64"], t_end=1, digits=40)
    table.plot(axes[1, 1])
    system = la.Lagrangian(henon_heiles, n=2)
    analysis.lyapunov(system, "P3N3Q6Gau", [0.0, -0.1], [0.559, 0.1], h=0.1, steps=50000).plot(axes[2, 0])
    methods = [f"P{s}N{s}Q{2 * s}Gau" for s in (1, 2, 3, 4)] + [f"P{s}N{s + 1}Q{2 * s}Lob" for s in (1, 2, 3, 4)]
    steps = np.array([1, 0.5, 0.25, 0.125, 0.1, 0.0625, 0.03125])
    analysis.efficiency(la.problems.get("harmonic-oscillator-2d"), methods, h=steps, t_end=500).plot(axes[2, 1])
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=80)


if __name__ == "__main__":
    main()
