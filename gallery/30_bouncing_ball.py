"""
A ball that bounces infinitely often, in finite time
====================================================

A ball that loses a fifth of its speed at every impact bounces infinitely often within a finite time. Heights and
pauses shrink like a geometric series. The library follows it through more than a hundred impacts, and then says that
the ball rests: ``la.RestingContact``, with the path so far.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, VERMILION

restitution, g, height = 0.8, 9.81, 1.0


def ball(q, v, g):
    return 0.5 * v[0] ** 2 - g * q[0]


system = la.Lagrangian(ball, n=1, params={"g": g})
try:
    la.integrate(
        system,
        "simpson",
        q0=[height],
        v0=[0.0],
        h=0.01,
        t_end=10,
        events={"floor": la.Impact(lambda q: q[0], restitution=restitution)},
    )
    raise AssertionError("it bounced on")
except la.RestingContact as rest:
    path = rest.path

# %%
# The sum of the series: t = √(2H/g) (1 + e)/(1 − e).
impacts = path.events["floor"]
end = np.sqrt(2 * height / g) * (1 + restitution) / (1 - restitution)
print(f"{impacts.count} impacts; the last at {impacts.t[-1]:.12f} s, the series ends at {end:.12f} s")
known = end - 2 * np.sqrt(2 * height / g) * restitution ** np.arange(1, impacts.count + 1) / (1 - restitution)
assert np.abs(impacts.t - known).max() < 1e-9

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", width_ratios=(1.4, 1))
t = np.linspace(0, path.t[-1], 3000)
axes[0].plot(t, path(t)[:, 0], color=BLUE)
axes[0].axvline(end, color=VERMILION, linestyle=":", label="where the series ends")
axes[0].set(xlabel="time t (s)", ylabel="height (m)", title="restitution 0.8")
axes[0].legend()
count = np.arange(1, impacts.count + 1)
axes[1].semilogy(count, end - impacts.t, ".", color=BLUE)
axes[1].semilogy(count, end - known, color=VERMILION, linewidth=0.8, label="geometric series")
axes[1].set(xlabel="impact", ylabel="time that is left (s)", title="all of them")
axes[1].legend()
plt.show()
