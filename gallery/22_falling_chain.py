"""
The end of a chain falls faster than a stone
============================================

A chain hangs folded from two hooks, and one is opened. The loose end overtakes a stone that is let go beside it: the
part of the chain that has come to rest holds back on the bend, and the bend pulls the end down. Nine rigid links,
nine constraints, show it.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, VERMILION

problem = la.problems.get("falling-chain")
path = la.integrate(problem.system, "P2N2Q4Gau", problem.q0, problem.p0, h=1e-3, t_end=0.44)
points = np.concatenate([np.zeros((len(path), 1, 2)), path.q.reshape(len(path), -1, 2)], axis=1)
links = np.linalg.norm(np.diff(points, axis=1), axis=2)
print(f"links keep their length to {np.abs(links - problem.params['l']).max():.0e} m")
stone = points[0, -1, 1] - 0.5 * problem.params["g"] * path.t**2
ahead = stone - points[:, -1, 1]
print(f"at t = {path.t[ahead.argmax()]:.3f} s the end is {100 * ahead.max():.1f} cm ahead of the stone")
assert ahead.max() > 0.03

figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained", width_ratios=(1.8, 1.2))
shades = plt.colormaps["viridis"](np.linspace(0, 0.9, 9))
for i, (k, shade) in enumerate(zip(np.linspace(0, len(path) - 1, 9).astype(int), shades, strict=True)):
    axes[0].plot(points[k, :, 0] + 0.2 * i, points[k, :, 1], ".-", color=shade, linewidth=1.2)
axes[0].set(xticks=[], ylabel="y (m)", aspect="equal", title="nine moments, side by side")
axes[1].plot(path.t, points[:, -1, 1], color=BLUE, label="end of the chain")
axes[1].plot(path.t, stone, "--", color=VERMILION, label="stone")
axes[1].set(xlabel="time t (s)", ylabel="height (m)", title="who falls faster?")
axes[1].legend()
plt.show()
