"""
Foucault's pendulum
===================

On the turning earth a pendulum's plane turns the other way, once in a day divided by the sine of the latitude. In
coordinates that turn with the ground this is one term of the Lagrangian, Ω (x ẏ − y ẋ). Here the earth turns two
hundred times too fast, so that the rosette can be seen.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE


def foucault(q, v, omega, turn):
    x, y = q
    rotation = turn * (x * v[1] - y * v[0]) + 0.5 * turn**2 * (q @ q)
    return 0.5 * (v @ v) + rotation - 0.5 * omega**2 * (q @ q)


# %%
# A pendulum of 67 m, as in the Panthéon, at its latitude of 48.85°.
turn = 200 * 7.2921e-5 * np.sin(np.radians(48.85))
omega = np.sqrt(9.81 / 67)
system = la.Lagrangian(foucault, n=2, params={"omega": omega, "turn": turn})
path = la.integrate(
    system,
    "P3N3Q6Gau",
    q0=[6.0, 0.0],
    v0=[0.0, 0.0],
    h=0.1,
    t_end=600,
    events={"away": la.Event(lambda q, p: q @ p, -1)},
)

# %%
# Seen from the stars it is a plane oscillator that was pushed by the ground: an ellipse, which stays. The places
# where it is farthest away turn by −Ω t.
away = path.events["away"]
angles = np.unwrap(2 * np.arctan2(away.q[:, 1], away.q[:, 0])) / 2  # a line, so modulo π
rate = np.polyfit(away.t, angles, 1)[0]
print(f"the plane turns by {rate:.6f} rad/s; −Ω sin λ is {-turn:.6f}")
assert abs(rate + turn) < 1e-5

figure, ax = plt.subplots(figsize=(5.2, 5), layout="constrained")
ax.plot(*path(np.linspace(0, np.pi / turn, 6000)).T, color=BLUE, linewidth=0.7)
ax.plot(*away.q.T, "o", color="#222222", markersize=2)
ax.set(xlabel="x (m)", ylabel="y (m)", aspect="equal", title="Foucault's pendulum on a quick earth")
plt.show()
