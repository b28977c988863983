r"""
Order and chaos in one picture: Hénon and Heiles
================================================

A star in the plane of a galaxy, :math:`L = (\dot x^2 + \dot y^2)/2 - (x^2 + y^2)/2 - x^2 y + y^3/3`, is looked at
whenever it passes x = 0. Where a second constant of the motion exists its points lie on a curve; where none does they
fill an area. At energy 1/12 there are curves nearly everywhere, at 1/8 a sea with islands (Hénon and Heiles, 1964).
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la


def henon_heiles(q, v):
    x, y = q
    return 0.5 * (v @ v) - 0.5 * (q @ q) - x**2 * y + y**3 / 3


system = la.Lagrangian(henon_heiles, n=2)
rng = np.random.default_rng(1)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
for ax, E, name in zip(axes, (1 / 12, 1 / 8), ("1/12", "1/8"), strict=True):
    # Starts on the section: y and p_y at random where the energy leaves p_x² ≥ 0.
    y, p_y = rng.uniform(-0.5, 0.8, 4000), rng.uniform(-0.5, 0.5, 4000)
    square = 2 * E - p_y**2 - y**2 + 2 * y**3 / 3
    chosen = np.flatnonzero(square > 0)[:120]
    paths = la.ensemble(
        system,
        "P4N4Q8Gau",
        q0=np.stack([np.zeros(len(chosen)), y[chosen]], axis=1),
        p0=np.stack([np.sqrt(square[chosen]), p_y[chosen]], axis=1),
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
    ax.set(xlabel="$y$", ylabel="$p_y$", title=f"E = {name}")
plt.show()
