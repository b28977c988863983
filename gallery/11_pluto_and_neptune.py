"""
Why Pluto never meets Neptune
=============================

Pluto's orbit reaches inside Neptune's, yet the two never come near each other. Pluto goes round twice while Neptune
goes round three times, so that they pass each other when Pluto is far out. Seen by someone who turns with Neptune,
twenty thousand years of Pluto draw two loops that lean to and fro and never touch the planet.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, ORANGE, VERMILION

problem = la.problems.get("outer-solar-system")
years = 20_000
path = la.integrate(
    problem.system, "P6N6Q12Gau", problem.q0, problem.p0, h=400, t_end=365.25 * years // 400 * 400, every=1
)
energy = path.energy()
print(f"{len(path) - 1} steps of 400 days, relative energy error {np.abs(energy / energy[0] - 1).max():.1e}")

# %%
# Positions relative to the sun, turned with Neptune.
sun, _, _, _, neptune, pluto = np.moveaxis(path.q.reshape(len(path), 6, 3), 1, 0)
neptune, pluto = neptune - sun, pluto - sun
turn = np.exp(-1j * np.arctan2(neptune[:, 1], neptune[:, 0]))
seen = (pluto[:, 0] + 1j * pluto[:, 1]) * turn
nearest = np.linalg.norm(pluto - neptune, axis=1).min()
inside = (np.linalg.norm(pluto, axis=1) < np.linalg.norm(neptune, axis=1)).mean()
print(f"never nearer than {nearest:.1f} AU, though inside Neptune's orbit for {inside:.0%} of the time")
assert nearest > 15

figure, ax = plt.subplots(figsize=(6, 5.6), layout="constrained")
dots = ax.scatter(seen.real, seen.imag, s=0.3, c=path.t / 365.25, cmap="viridis")
ax.plot(0, 0, "o", color=ORANGE, markersize=10, label="sun")
ax.plot(np.linalg.norm(neptune[0]), 0, "o", color=VERMILION, markersize=8, label="Neptune")
circle = 30.07 * np.exp(1j * np.linspace(0, 2 * np.pi, 200))
ax.plot(circle.real, circle.imag, color=BLUE, linewidth=0.6)
ax.set(xlabel="AU", ylabel="AU", aspect="equal", title="Pluto, seen by who turns with Neptune")
figure.colorbar(dots, label="years")
ax.legend(loc="upper right")
plt.show()
