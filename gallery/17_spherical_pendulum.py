"""
A pendulum in space, by a constraint
====================================

In Cartesian coordinates a pendulum is a falling point and one equation, x² + y² + z² = l². No pole disturbs it, as
one does in angles, and the rod's force comes with the motion. The ellipse that the bob draws turns, faster the wider
it is: by three quarters of its area over l² in a swing.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, VERMILION


def falling(q, v, g):
    return 0.5 * (v @ v) - g * q[2]


system = la.Lagrangian(falling, n=3, params={"g": 9.81}, constraints=lambda q: q @ q - 1)

# %%
# Released at a quarter of a radian with a slow push sideways.
a, b = 0.25, 0.08
q0 = [np.sin(a), 0.0, -np.cos(a)]
path = la.integrate(
    system,
    "P3N3Q6Gau",
    q0=q0,
    v0=[0.0, b * np.sqrt(9.81), 0.0],
    h=0.02,
    t_end=60,
    events={"out": la.Event(lambda q, p: q[0] * p[0] + q[1] * p[1], direction=-1)},
)
print(f"off the sphere by {np.abs((path.q**2).sum(axis=1) - 1).max():.0e} at most")
out = path.events["out"]
angles = np.unwrap(2 * np.arctan2(out.q[:, 1], out.q[:, 0])) / 2
swing = 2 * np.pi / np.sqrt(9.81)
turn = np.polyfit(np.arange(len(angles)), angles, 1)[0] * 2  # it is farthest out twice in a swing
print(f"turns by {turn:.4f} rad in a swing; 3/4 π a b is {0.75 * np.pi * a * b:.4f}")
assert abs(turn / (0.75 * np.pi * a * b) - 1) < 0.1

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained", width_ratios=(1, 1.3))
axes[0].plot(path.q[:, 0], path.q[:, 1], color=BLUE, linewidth=0.5)
axes[0].set(xlabel="x (m)", ylabel="y (m)", aspect="equal", title="from above, 60 s")
force = np.linalg.norm(path.reaction(), axis=1)
some = path.t < 6
axes[1].plot(path.t[some], force[some], color=VERMILION)
axes[1].set(xlabel="time t (s)", ylabel="force in the rod (N)", title="1 kg, found with the motion")
plt.show()
