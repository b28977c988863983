"""
A broken comet spreads over its orbit
=====================================

A hundred bodies start almost alike, with energies that differ by a part in a thousand. Periods differ with them, so
the cloud shears into an arc, and in time into a ring. For two bodies the truth is known: after a thousand revolutions
the computed places agree with Kepler's equation to six digits.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, ORANGE

revolutions, size = 1000, 128
e, per_revolution = 0.4, 64


def kepler(q, v):
    return 0.5 * (v @ v) + 1 / np.sqrt(q @ q)


# %%
# Pericentre of ellipses with semi-axis a near 1: r = a (1 − e), v² = 2/r − 1/a.
a = 1 + 1e-3 * np.random.default_rng(0).normal(size=size)
r = 1 - e
paths = la.ensemble(
    la.Lagrangian(kepler, n=2),
    "P4N4Q8Gau",
    q0=[r, 0.0],
    v0=np.stack([np.zeros(size), np.sqrt(2 / r - 1 / a)], axis=1),
    h=2 * np.pi / per_revolution,
    steps=per_revolution * revolutions,
    every=per_revolution,
)


def exact(t, a):
    """Position at time t after pericentre distance r, by Kepler's equation E − ε sin E = t a^(−3/2)."""
    eccentricity = 1 - r / a
    mean = t * a**-1.5
    E = mean.copy()
    for _ in range(50):
        E -= (E - eccentricity * np.sin(E) - mean) / (1 - eccentricity * np.cos(E))
    return a[:, None] * np.stack([np.cos(E) - eccentricity, np.sqrt(1 - eccentricity**2) * np.sin(E)], axis=1)


distance = np.linalg.norm(paths.q[:, -1] - exact(paths.t[-1], a), axis=1)
energy = paths.energy()
drift = np.abs(energy - energy[:, :1]).max()
print(f"{size} orbits, {revolutions} revolutions, {paths.steps.sum():.3g} steps")
print(f"largest distance from the exact solution {distance.max():.1e}, largest energy error {drift:.1e}")

assert distance.max() < 1e-6

figure, axes = plt.subplots(1, 4, figsize=(12, 3.6), layout="constrained", sharey=True)
for ax, k in zip(axes, (0, revolutions // 100, revolutions // 10, revolutions), strict=True):
    row = int(np.argmin(np.abs(paths.t - 2 * np.pi * k)))
    ax.plot(0, 0, "o", color=ORANGE, markersize=7)
    ax.plot(*paths.q[:, row].T, ".", color=BLUE, markersize=4)
    ax.set(title=f"{k} revolutions", xlabel="x", aspect="equal", xlim=(-1.6, 1.0), ylim=(-1.3, 1.3))
axes[0].set_ylabel("y")
plt.show()
