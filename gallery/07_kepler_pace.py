"""
A comet, with steps that follow it
==================================

An orbit of eccentricity 0.99 is quick near the sun and slow far away. To close ten orbits within 10⁻¹², equal steps
of time must be twelve thousand in each; steps by a pace dt = r ds need eighty, and stay symplectic. The pace changes
the Lagrangian, not the method: σ (L + E) has the same orbits.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, ORANGE, VERMILION


def kepler(q, v):
    return 0.5 * (v @ v) + 1 / np.sqrt(q @ q)


# %%
# At its farthest point, with semi-axis 1: r = 1 + e, v² = 2/r − 1. After ten periods it is there again.
e = 0.99
system, turns = la.Lagrangian(kepler, n=2), 10
start = {"q0": [-(1 + e), 0.0], "v0": [0.0, -np.sqrt(2 / (1 + e) - 1)], "t_end": 2 * np.pi * turns}
steps, errors = (24, 32, 40, 50, 64, 80, 100), []
for per_turn in steps:
    path = la.integrate(system, "P8N8Q16Gau", h=2 * np.pi / per_turn, pace=lambda q: np.sqrt(q @ q), **start)
    errors.append(np.linalg.norm(path.q[-1] - path.q[0]))
plain_steps, plain = (4000, 6000, 8000, 12000), []
for per_turn in plain_steps:
    equal = la.integrate(system, "P8N8Q16Gau", h=2 * np.pi / per_turn, **start)
    plain.append(np.linalg.norm(equal.q[-1] - equal.q[0]))
for name, some, found in (("paced", steps, errors), ("equal", plain_steps, plain)):
    print(name, ", ".join(f"{n}: {x:.0e}" for n, x in zip(some, found, strict=True)))
assert errors[5] < 1e-12 < plain[2]

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", width_ratios=(1.3, 1))
path = la.integrate(
    system, "P8N8Q16Gau", h=2 * np.pi / 80, pace=lambda q: np.sqrt(q @ q), **(start | {"t_end": 2 * np.pi})
)
axes[0].plot(*path(np.linspace(0, path.t[-1], 4000)).T, color=BLUE, linewidth=0.6)
axes[0].plot(*path.q.T, "o", color=BLUE, markersize=3)
axes[0].plot(0, 0, "o", color=ORANGE, markersize=9)
axes[0].set(xlabel="x", ylabel="y", title=f"the {len(path) - 1} steps of one orbit, e = 0.99")
axes[1].loglog(steps, np.maximum(errors, 1e-16), "o-", color=BLUE, label="by pace, dt = r ds")
axes[1].loglog(plain_steps, plain, "s--", color=VERMILION, label="equal steps")
axes[1].set(xlabel="steps for an orbit", ylabel="distance from the start", title="after ten orbits, P8N8Q16Gau")
axes[1].legend()
plt.show()
