"""
The Pythagorean problem
=======================

Masses 3, 4 and 5 are let go at rest at the corners of a 3-4-5 triangle, each opposite to the side of its length. They
pass one another within a thousandth of the triangle, and after some sixty time units a pair flies off one way and the
lightest body the other (Szebehely and Peters, 1967). Steps shrink with a pace that the library makes from the
Lagrangian.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, ORANGE, VERMILION

problem = la.problems.get("pythagorean")
path = la.integrate(problem.system, "P4N4Q8Gau", problem.q0, problem.p0, h=0.05, t_end=70, pace="auto")
energy = path.energy()
bodies = path.q.reshape(len(path), 3, 2)
apart = np.linalg.norm(bodies - np.roll(bodies, 1, axis=1), axis=2).min(axis=1)
print(f"{len(path) - 1} steps, from {np.diff(path.t).min():.1e} to {np.diff(path.t).max():.1e} long")
print(f"closest approach {apart.min():.1e} at t = {path.t[apart.argmin()]:.2f}")
print(f"relative energy error {np.abs(energy / energy[0] - 1).max():.1e}")
assert apart.min() < 1e-2 and np.linalg.norm(bodies[-1, 0]) > 10

# %%
# The whole dance, and its end.
figure, axes = plt.subplots(1, 2, figsize=(10, 5), layout="constrained")
for ax, begin, end in ((axes[0], 0, 40), (axes[1], 40, 70)):
    some = (path.t >= begin) & (path.t <= end)
    for i, (mass, colour) in enumerate(((3, BLUE), (4, ORANGE), (5, VERMILION))):
        ax.plot(*bodies[some, i].T, color=colour, linewidth=0.8, label=f"mass {mass}")
        ax.plot(*bodies[some, i][-1], "o", color=colour, markersize=2 + mass)
    ax.set(xlabel="x", ylabel="y", aspect="equal", title=f"t = {begin} … {end}")
axes[0].legend()
plt.show()
