"""
When does a double pendulum first flip?
=======================================

Each pixel is a double pendulum released at rest, its two angles the place of the pixel. The colour is the time, in
units of √(l/g), at which one of its rods first goes over the top; white ones do not within forty. Inside the blue
curve the energy does not suffice; outside it, a fractal.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm

import leastaction as la
from leastaction.results.colours import BLUE

size = 100  # pixels along each side; with 1000 and t_end = 60, the picture of docs/ensembles.md, a million trajectories


def double_pendulum(q, v):
    T = v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * np.cos(q[0] - q[1])
    return T + 2 * np.cos(q[0]) + np.cos(q[1])


angles = (np.arange(size) + 0.5) * (2 * np.pi / size) - np.pi
start = np.stack(np.meshgrid(angles, angles), axis=-1).reshape(-1, 2)

# %%
# A trajectory ends when a rod passes the top, and no state is stored.
paths = la.ensemble(
    la.Lagrangian(double_pendulum, n=2),
    "simpson",
    q0=start,
    p0=[0, 0],
    h=0.05,
    t_end=40,
    final_only=True,
    events={
        "upper": la.Event(lambda q, p: np.cos(q[0] / 2), stop=True),
        "lower": la.Event(lambda q, p: np.cos(q[1] / 2), stop=True),
    },
)
flip = np.where(paths.status == la.run.Status.STOPPED, paths.end_time, np.nan)
enough = 2 * np.cos(start[:, 0]) + np.cos(start[:, 1]) < 1
assert np.isnan(flip[~enough]).all(), "a pendulum without the energy for it has flipped"
print(f"{len(paths)} trajectories, {paths.steps.sum():.3g} steps, {paths.failed.sum()} could not be solved")
print(f"{np.isfinite(flip).mean():.1%} flip within t = 40")

figure, ax = plt.subplots(figsize=(6.4, 5.4), layout="constrained")
image = ax.imshow(
    flip.reshape(size, size), origin="lower", extent=(-np.pi, np.pi, -np.pi, np.pi), norm=LogNorm(1, 40), cmap="magma"
)
ax.contour(angles, angles, (2 * np.cos(start[:, 0]) + np.cos(start[:, 1])).reshape(size, size), [1.0], colors=BLUE)
ax.set(xlabel="θ₁ at the start", ylabel="θ₂ at the start", title="first flip of a double pendulum released at rest")
figure.colorbar(image, label="time (√(l/g))")
plt.show()
