"""
A pendulum in its phase plane
=============================

Every swing of a pendulum is a closed curve of angle and momentum; every turn over the top is a wave without end.
Between them lies the separatrix, on which a pendulum takes for ever to reach the top. Simpson's method keeps all of
them for the time of a hundred small swings: each curve below is drawn many times over itself.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, ORANGE, VERMILION


def pendulum(q, v):
    return 0.5 * v[0] ** 2 + np.cos(q[0])


# %%
# Forty pendulums start at the bottom, each with another push, and run side by side; their mirror images go the
# other way.
push = np.linspace(0.1, 3.3, 40)
paths = la.ensemble(la.Lagrangian(pendulum, n=1), "simpson", q0=[0.0], p0=push[:, None], h=0.1, t_end=200 * np.pi)
energy = paths.energy()
print(f"largest change of an energy: {np.abs(energy - energy[:, :1]).max():.1e}")

figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for q, p, E in zip(paths.q[..., 0], paths.p[..., 0], energy[:, 0], strict=True):
    turned = (q + np.pi) % (2 * np.pi) - np.pi
    for side in (1, -1):
        ax.plot(side * turned, side * p, ".", color=BLUE if E < 1 else ORANGE, markersize=0.7)
angle = np.linspace(-np.pi, np.pi, 400)
ax.plot(angle, 2 * np.cos(angle / 2), color=VERMILION, label="separatrix, $p = ± 2 \\cos θ/2$")
ax.plot(angle, -2 * np.cos(angle / 2), color=VERMILION)
ax.set(xlabel="angle θ", ylabel="momentum p", title="eighty pendulums, many swings each")
ax.legend(loc="upper right")
plt.show()
