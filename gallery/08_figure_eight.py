"""
Three bodies chase each other on a figure eight
===============================================

Three equal masses can follow one another for ever on one curve; Moore found it in 1993, Chenciner and Montgomery
proved it in 2000. It is stable: pushed a little, the bodies stay near it. Here one body starts a hundredth aside: for
a hundred rounds the three still chase each other on an eight, which turns.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, GREEN, VERMILION

problem = la.problems.get("figure-eight")
exact = la.integrate(problem.system, "P6N6Q12Gau", problem.q0, problem.p0, h=problem.period / 60, t_end=problem.period)
print(f"after one period back at the start to {np.abs(exact.q[-1] - problem.q0).max():.1e}")
assert np.abs(exact.q[-1] - problem.q0).max() < 1e-9

# %%
# Another start: the first body a hundredth aside, the others half of it the other way. Now there is an angular
# momentum.
aside = problem.q0 + 0.01 * np.array([1, 0, -0.5, 0, -0.5, 0])
near = la.integrate(problem.system, "P6N6Q12Gau", aside, problem.p0, h=problem.period / 60, t_end=100 * problem.period)
energy = near.energy()
print(f"relative energy error over a hundred rounds: {np.abs(energy / energy[0] - 1).max():.1e}")

figure, ax = plt.subplots(figsize=(5.6, 5.2), layout="constrained")
ax.plot(near.q[:, 0::2], near.q[:, 1::2], color="#cccccc", linewidth=0.3)
eight = exact(np.linspace(0, problem.period, 600))
ax.plot(eight[:, 0], eight[:, 1], color="#222222", linewidth=1.5)
for i, colour in enumerate((BLUE, VERMILION, GREEN)):
    ax.plot(*problem.q0[2 * i : 2 * i + 2], "o", color=colour, markersize=10)
ax.set(xlabel="x", ylabel="y", aspect="equal", title="the eight, and a hundred rounds beside it")
plt.show()
