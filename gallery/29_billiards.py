"""
Billiards, regular and wild
===========================

A ball in a circle touches one smaller circle for ever, since its angular momentum stays. Cut the circle in two and
push the halves apart, and the same ball goes everywhere (Bunimovich's stadium, 1979). Elastic impacts keep the energy
to round-off, through hundreds of them.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, VERMILION


def free(q, v):
    return 0.5 * (v @ v)


def circle(q):
    return 1 - q @ q


def stadium(q):
    beyond = np.maximum(np.abs(q[0]) - 0.5, 0.0)  # how far the ball is beyond the straight sides
    return 1 - beyond**2 - q[1] ** 2


angle = np.linspace(0, 2 * np.pi, 400)
figure, axes = plt.subplots(1, 2, figsize=(10, 3.9), layout="constrained", width_ratios=(1, 1.4))
for ax, wall, shift, colour, name in (
    (axes[0], circle, 0.0, BLUE, "circle"),
    (axes[1], stadium, 0.5, VERMILION, "stadium"),
):
    path = la.integrate(
        la.Lagrangian(free, n=2),
        "midpoint",
        q0=[0.3, 0.1],
        v0=[np.cos(1.1), np.sin(1.1)],
        h=0.1,
        t_end=250,
        events={"wall": la.Impact(wall)},
    )
    hits = path.events["wall"]
    energy = path.energy()
    print(f"{name}: {hits.count} impacts, relative energy error {np.abs(energy / energy[0] - 1).max():.0e}")
    assert np.abs(energy / energy[0] - 1).max() < 1e-12
    corners = np.concatenate([path.q[:1], hits.q, path.q[-1:]])
    ax.plot(*corners.T, color=colour, linewidth=0.4)
    ax.plot(np.cos(angle) + shift * np.sign(np.cos(angle)), np.sin(angle), color="#222222")
    ax.set(aspect="equal", title=f"{name}, {hits.count} impacts")
    ax.axis("off")
plt.show()
