"""How a cloud of Kepler orbits spreads: 10⁴ revolutions of bodies that start almost alike.

Energies that differ by one part in 10⁴ give periods that differ, so a cloud on one orbit shears into an arc and in time
into a ring, as a broken comet does. For two bodies the truth is known, so the picture is also a test: after 10⁴
revolutions the computed positions are compared with Kepler's equation.

    python examples/kepler_spread.py docs/figures/kepler_spread.png     (a number of revolutions makes it shorter)
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la


def kepler(q, v):
    return 0.5 * (v @ v) + 1 / np.sqrt(q @ q)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("figure", nargs="?", help="where to save the figure")
parser.add_argument("revolutions", nargs="?", type=int, default=10_000, help="how many (default: 10000)")
options = parser.parse_args()
file, revolutions = options.figure, options.revolutions
e, per_revolution, size = 0.4, 64, 128
system = la.Lagrangian(kepler, n=2)

# Pericentre of ellipses with semi-axis a near 1: r = a (1 − e), v² = 2/r − 1/a.
a = 1 + 1e-4 * np.random.default_rng(0).normal(size=size)
r = 1 - e
v0 = np.stack([np.zeros(size), np.sqrt(2 / r - 1 / a)], axis=1)
paths = la.ensemble(
    system,
    "P4N4Q8Gau",
    q0=[r, 0.0],
    v0=v0,
    h=2 * np.pi / per_revolution,
    steps=per_revolution * revolutions,
    every=per_revolution * max(1, revolutions // 1000),
    progress=file is not None,
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
print(f"{size} orbits, {revolutions} revolutions, {paths.steps.sum():.3g} steps in {paths.stats['run_time']:.0f} s")
drift = np.abs(energy - energy[:, :1]).max()
print(f"largest distance from the exact solution {distance.max():.1e}, largest energy error {drift:.1e}")

when = [0, revolutions // 100, revolutions // 10, revolutions]
figure, axes = plt.subplots(1, len(when), figsize=(12, 3.6), layout="constrained", sharey=True)
for ax, k in zip(axes, when, strict=True):
    row = int(np.argmin(np.abs(paths.t - 2 * np.pi * k)))
    ax.plot(0, 0, "o", color="#E69F00", markersize=7)
    ax.plot(*paths.q[:, row].T, ".", color="#0072B2", markersize=4)
    ax.set(title=f"{k} revolutions", xlabel="x", aspect="equal", xlim=(-1.6, 1.0), ylim=(-1.3, 1.3))
axes[0].set_ylabel("y")
if file:
    figure.savefig(file, dpi=140)
