"""
What the axis of a top draws
============================

A heavy top is held tilted, spun, and its axis let go: it falls, the spin turns the fall aside, and the axis comes to
rest again at its old height, in a cusp. Pushed forward at the release it draws waves, pushed backward loops. All
three come from the same Lagrangian in Euler's angles.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, GREEN, VERMILION


def top(q, v, I, I3, mgl):
    _, theta, _ = q
    around = v[2] + v[0] * np.cos(theta)
    return 0.5 * I * (v[1] ** 2 + (v[0] * np.sin(theta)) ** 2) + 0.5 * I3 * around**2 - mgl * np.cos(theta)


system = la.Lagrangian(top, n=3, params={"I": 1.0, "I3": 0.5, "mgl": 1.0})
spin, tilt = 5.0, 0.7
precession = 1.0 / (0.5 * spin)  # of a fast top: m g l / I₃ω₃

figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained", subplot_kw={"projection": "polar"})
for ax, name, push, colour in zip(
    axes, ("cusps", "waves", "loops"), (0.0, 0.6 * precession, -1.5 * precession), (BLUE, GREEN, VERMILION), strict=True
):
    path = la.integrate(
        system, "P4N4Q8Gau", q0=[0, tilt, 0], v0=[push, 0, spin - push * np.cos(tilt)], h=0.02, t_end=40
    )
    v = system.velocity(path.q, path.p)
    energy = path.energy()
    assert np.abs(path.p[:, [0, 2]] - path.p[0, [0, 2]]).max() < 1e-12  # two momenta are conserved
    print(f"{name}: precession at least {v[:, 0].min():.4f}, energy error {np.abs(energy / energy[0] - 1).max():.0e}")
    ax.plot(path.q[:, 0], path.q[:, 1], color=colour, linewidth=1)
    ax.set(title=name, rticks=[0.5, 1.0], ylim=(0, 1.15), xticklabels=[])
plt.show()
