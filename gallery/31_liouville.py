"""
A cloud in phase space keeps its area
=====================================

Four thousand pendulums start within a small disc of the phase plane. The disc is stretched, bent and wound up, yet
its area never changes: Liouville's theorem. A symplectic method keeps it exactly, since each of its steps does: the
derivative of the motion has determinant one, to round-off.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la


def pendulum(q, v):
    return 0.5 * v[0] ** 2 + np.cos(q[0])


rng = np.random.default_rng(0)
radius, turn = 0.45 * np.sqrt(rng.uniform(size=4000)), rng.uniform(0, 2 * np.pi, 4000)
q0, p0 = (1.2 + radius * np.cos(turn))[:, None], (radius * np.sin(turn))[:, None]
system = la.Lagrangian(pendulum, n=1)
paths = la.ensemble(system, "simpson", q0=q0, p0=p0, h=0.1, t_end=60, every=10)

# %%
# The determinant of a step's derivative is the factor by which it changes areas.
tangents = la.ensemble(system, "simpson", q0=q0[:50], p0=p0[:50], h=0.1, t_end=60, every=100, tangent=True)
factors = np.linalg.det(tangents.tangent)
print(f"areas change by factors 1 ± {np.abs(factors - 1).max():.0e}")
assert np.abs(factors - 1).max() < 1e-9

figure, axes = plt.subplots(1, 4, figsize=(12, 3.3), layout="constrained", sharey=True)
for ax, t in zip(axes, (0, 6, 20, 60), strict=True):
    k = int(np.argmin(np.abs(paths.t - t)))
    ax.scatter(paths.q[:, k, 0], paths.p[:, k, 0], s=0.8, c=radius * np.cos(turn), cmap="viridis")
    ax.set(xlabel="angle θ", title=f"t = {t}", xlim=(-2, 2), ylim=(-1.9, 1.9), aspect="equal")
axes[0].set_ylabel("momentum p")
plt.show()
