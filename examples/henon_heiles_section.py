"""A Poincaré section of the Hénon–Heiles system: order and chaos in one picture.

    L = (ẋ² + ẏ²)/2 − (x² + y²)/2 − x²y + y³/3

Every trajectory of energy E is cut by x = 0, ẋ > 0; the points (y, p_y) of one on a torus lie on a curve, those of a
chaotic one fill an area (Hénon and Heiles, 1964). The crossings are found on each step's own polynomial while the
ensemble runs.

    python examples/henon_heiles_section.py docs/figures/henon_heiles.png
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la


def henon_heiles(q, v):
    x, y = q
    return 0.5 * (v @ v) - 0.5 * (q @ q) - x**2 * y + y**3 / 3


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("figure", nargs="?", help="where to save the figure")
options = parser.parse_args()

system = la.Lagrangian(henon_heiles, n=2)
rng = np.random.default_rng(1)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
for ax, E, name in zip(axes, (1 / 12, 1 / 8), ("1/12", "1/8"), strict=True):
    # Starts on the section: y and p_y at random where the energy leaves p_x² ≥ 0.
    y, p_y = rng.uniform(-0.5, 0.8, 4000), rng.uniform(-0.5, 0.5, 4000)
    square = 2 * E - p_y**2 - y**2 + 2 * y**3 / 3
    chosen = np.flatnonzero(square > 0)[:120]
    q0 = np.stack([np.zeros(len(chosen)), y[chosen]], axis=1)
    p0 = np.stack([np.sqrt(square[chosen]), p_y[chosen]], axis=1)
    paths = la.ensemble(
        system,
        "P4N4Q8Gau",
        q0,
        p0,
        h=0.1,
        t_end=2000,
        final_only=True,
        events={"section": la.Event(lambda q, p: q[0], direction=+1, most=300)},
        reduce={"E": la.EnergyRange()},
    )
    section = paths.events["section"]
    drift = np.abs(paths.reduced["E"] - E).max()
    print(f"E = {name}: {section.count.sum()} crossings, largest energy error {drift:.1e}")
    assert np.nanmax(np.abs(section.q[..., 0])) < 1e-9, "a crossing is not on the section"
    for points_y, points_p in zip(section.q[..., 1], section.p[..., 1], strict=True):
        ax.plot(points_y, points_p, ".", markersize=1.2, markeredgewidth=0)
    ax.set(xlabel="$y$", ylabel="$p_y$", title=f"Hénon–Heiles, E = {name}")
if options.figure:
    figure.savefig(options.figure, dpi=140)
