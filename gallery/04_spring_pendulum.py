"""
A spring that turns into a pendulum
===================================

A mass on a spring is pulled straight down and let go, a hair's breadth beside the vertical. If the spring swings up
and down exactly twice as fast as the pendulum swings to and fro, the vertical motion dies and a wide swing takes its
place, and back again. The exchange comes from the coupling alone: nothing drives it.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, VERMILION


def spring_pendulum(q, v, k, l, g):
    r, angle = q
    return 0.5 * (v[0] ** 2 + (r * v[1]) ** 2) - 0.5 * k * (r - l) ** 2 + g * r * np.cos(angle)


# %%
# At rest the length is r₀ = l + g/k. The spring has ω² = k, the pendulum ω² = g/r₀; a ratio of 2 needs k = 4 g/r₀.
g, rest = 9.81, 1.0
k = 4 * g / rest
system = la.Lagrangian(spring_pendulum, n=2, params={"k": k, "l": rest - g / k, "g": g})
path = la.integrate(system, "P4N4Q8Gau", q0=[rest * 1.12, 0.01], p0=[0, 0], h=0.02, t_end=90)
r, angle = path.q.T
print(f"swing grows from 0.01 to {np.abs(angle).max():.2f} rad")
assert np.abs(angle).max() > 0.1

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", width_ratios=(1, 2))
axes[0].plot(r * np.sin(angle), -r * np.cos(angle), color=BLUE, linewidth=0.4)
axes[0].set(xlabel="x (m)", ylabel="y (m)", title="the mass")
axes[1].plot(path.t, r - rest, color=VERMILION, linewidth=0.8, label="stretch (m)")
axes[1].plot(path.t, angle, color=BLUE, linewidth=0.8, label="angle (rad)")
axes[1].set(xlabel="time t (s)", title="up and down, to and fro")
axes[1].legend(loc="upper right")
plt.show()
