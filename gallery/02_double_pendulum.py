"""
A double pendulum, and what methods do to its energy
====================================================

The Lagrangian is two lines, the motion is chaos. On the left the lower mass draws for twelve seconds; on the right
four methods take the same step of five milliseconds for five hundred. The symplectic ones keep the energy within a
bound for as long as one likes; the classical Runge–Kutta method loses it steadily.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, line


def double_pendulum(q, v, m, l, g):
    T = m * l**2 * (v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * np.cos(q[0] - q[1]))
    V = -m * g * l * (2 * np.cos(q[0]) + np.cos(q[1]))
    return T - V


system = la.Lagrangian(double_pendulum, n=2, params={"m": 1.0, "l": 0.25, "g": 9.81})
start = {"q0": [2.0, 2.5], "v0": [0, 0], "h": 0.005, "t_end": 500}
path = la.integrate(system, "simpson", **start)

# %%
# Between two steps the method has a polynomial of its own, ``path(t)``.
angles = path(np.linspace(0, 12, 4000))
x, y = 0.25 * np.cumsum(np.sin(angles), axis=1), -0.25 * np.cumsum(np.cos(angles), axis=1)

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", width_ratios=(1, 1.5))
axes[0].plot(x[:, 1], y[:, 1], color=BLUE, linewidth=0.7)
axes[0].plot([0, *x[0]], [0, *y[0]], "o-", color="#222222", linewidth=1.5, markersize=5)
axes[0].set(xlabel="x (m)", ylabel="y (m)", title="the lower mass, 12 s", aspect="equal")
for name in ("rk4", "midpoint", "simpson", "P4N4Q8Gau"):
    run = la.integrate(system, name, **start)
    energy = run.energy()
    largest = np.maximum.accumulate(np.abs(energy / energy[0] - 1))  # so far
    axes[1].loglog(run.t[1:], np.maximum(largest[1:], 1e-17), label=name, color=line(name)["color"])
axes[1].set(xlabel="time t (s)", ylabel="energy error, largest so far", title="h = 5 ms, chaotic motion")
axes[1].legend(frameon=False, ncols=2)
plt.show()
