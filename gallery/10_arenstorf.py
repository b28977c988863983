"""
To the moon and back: Arenstorf's orbit
=======================================

In the plane of the earth and the moon, turning with them, a satellite can follow a closed orbit with four loops,
found by Arenstorf in 1963 for a fly-by. Seventy steps by pace close it. With one part in a thousand more speed at the
start it misses the moon when it comes back.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, ORANGE, VERMILION

problem = la.problems.get("arenstorf")
v0 = problem.system.velocity(problem.q0, problem.p0)
method = {"method": "P8N8Q16Gau", "h": 0.002, "pace": "auto"}
path = la.integrate(problem.system, q0=problem.q0, v0=v0, t_end=problem.period, **method)
print(f"{len(path) - 1} steps; back at the start to {np.linalg.norm(path.q[-1] - problem.q0):.1e}")
assert np.linalg.norm(path.q[-1] - problem.q0) < 1e-6
other = la.integrate(problem.system, q0=problem.q0, v0=1.001 * v0, t_end=1.2 * problem.period, **method)

# %%
# The dots are the steps: close together near the moon, where all is decided.
mu = problem.params["mu"]
figure, ax = plt.subplots(figsize=(7.5, 5.4), layout="constrained")
ax.plot(*other(np.linspace(0, other.t[-1], 4000)).T, color=VERMILION, linewidth=0.9, label="0.1 % quicker at the start")
ax.plot(*path(np.linspace(0, path.t[-1], 4000)).T, color=BLUE, label="Arenstorf's orbit")
ax.plot(*path.q.T, "o", color=BLUE, markersize=3)
ax.plot(-mu, 0, "o", color=ORANGE, markersize=14, label="earth")
ax.plot(1 - mu, 0, "o", color="#888888", markersize=7, label="moon")
ax.set(xlabel="x", ylabel="y", aspect="equal", title="seen by who turns with earth and moon")
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
plt.show()
