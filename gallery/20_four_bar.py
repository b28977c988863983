"""
A four-bar linkage, and what holds it together
==============================================

Three bars and the ground make the commonest of all mechanisms: a crank goes round, a rocker goes to and fro, and the
bar between them draws a curve. Here the crank is given a push and then left alone: the linkage turns on by itself,
now quick now slow. The lengths hold to round-off at every step, and the forces in the bars come with the motion.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, GREEN, ORANGE, VERMILION

problem = la.problems.get("four-bar-linkage")
path = la.integrate(problem.system, "P3N3Q6Gau", problem.q0, problem.p0, h=0.005, t_end=3)
A, B, ground = path.q[:, :2], path.q[:, 2:], np.array([problem.params["c"], 0.0])
coupler = problem.params["b"]
print(f"coupler too long by {np.abs(np.linalg.norm(B - A, axis=1) - coupler).max():.0e} at most")
assert np.abs(np.linalg.norm(B - A, axis=1) - coupler).max() < 1e-13

# %%
# A tracing point on a triangle that stands on the coupler.
along = (B - A) / coupler
tracer = A + 1.2 * along + 0.9 * np.stack([-along[:, 1], along[:, 0]], axis=1)
v = problem.system.velocity(path.q, path.p)
speed = np.linalg.norm(v[:, :2], axis=1) / problem.params["a"]

figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for k in range(0, 120, 8):
    axes[0].plot(*np.array([[0, 0], A[k], B[k], ground]).T, color="#bbbbbb", linewidth=0.8)
axes[0].plot(*tracer.T, color=VERMILION, linewidth=1.6, label="tracing point")
axes[0].plot(*A.T, color=BLUE, linewidth=1, label="crank")
axes[0].plot(*B.T, color=GREEN, linewidth=1, label="rocker")
axes[0].plot(*np.array([[0, 0], A[0], B[0], ground]).T, "o-", color="#222222")
axes[0].set(xlabel="x (m)", ylabel="y (m)", aspect="equal", title="the linkage")
axes[0].legend(fontsize=8)
axes[1].plot(path.t, speed, color=BLUE, label="speed of the crank (rad/s)")
axes[1].plot(
    path.t,
    np.linalg.norm(path.reaction()[:, :2], axis=1) / 10,
    color=ORANGE,
    label="constraint force at its end (10 N)",
)
axes[1].set(xlabel="time t (s)", title="left to itself")
axes[1].set_ylim(0, 80)
axes[1].legend(fontsize=8, loc="upper right")
plt.show()
