"""
A bead on a turning hoop: a pitchfork
=====================================

A bead slides on a hoop that a motor turns about its vertical diameter. Below the speed √(g/R) the bead rests at the
bottom; above it the bottom is unstable and the bead climbs, to the one side or to the other, until cos θ = g/RΩ².
Four hundred hoops, each with its own speed and a little friction, draw the bifurcation.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, VERMILION


def bead(q, v, Omega):
    return 0.5 * (v[0] ** 2 + Omega**2 * np.sin(q[0]) ** 2) + np.cos(q[0])


system = la.Lagrangian(bead, n=1, params={"Omega": 1.0}, dissipation=lambda q, v: 0.1 * v[0] ** 2)

# %%
# The motor is in the Lagrangian, friction is a Rayleigh function. Only the last state is kept.
speed = np.repeat(np.linspace(0.5, 2.5, 200), 2)
start = np.tile([0.05, -0.05], 200)[:, None]
paths = la.ensemble(system, "simpson", q0=start, p0=[0.0], params={"Omega": speed}, h=0.05, t_end=400, final_only=True)
final = paths.q[:, -1, 0]
expected = np.sign(start[:, 0]) * np.arccos(np.minimum(1, 1 / speed**2))
far = np.abs(speed - 1) > 0.1
print(f"largest distance from ±arccos(1/Ω²): {np.abs(final - expected)[far].max():.1e}")
assert np.abs(final - expected)[far].max() < 1e-3

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
ax.plot(speed, final, ".", color=BLUE, markersize=3, label="after 400 time units")
known = np.linspace(1, 2.5, 200)
ax.plot(known, np.arccos(1 / known**2), color=VERMILION, linewidth=0.8, label="cos θ = g/RΩ²")
ax.plot(known, -np.arccos(1 / known**2), color=VERMILION, linewidth=0.8)
ax.plot([1, 2.5], [0, 0], ":", color=VERMILION, label="unstable")
ax.set(xlabel="speed of the hoop, Ω/√(g/R)", ylabel="angle of the bead (rad)", title="where a bead comes to rest")
ax.legend(loc="upper left")
plt.show()
