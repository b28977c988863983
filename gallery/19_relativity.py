"""
Relativity turns an ellipse
===========================

A fast particle is heavier: with L = −c² √(1 − v²/c²) + 1/r an orbit does not close. In every round it advances by 2π
(1/√(1 − 1/(cℓ)²) − 1), ℓ the angular momentum, the formula from which Sommerfeld explained the fine lines of
hydrogen. The Lagrangian is written as it stands; nothing is expanded in 1/c.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, ORANGE, VERMILION


def atom(q, v, c):
    return -(c**2) * np.sqrt(1 - (v @ v) / c**2) + 1 / np.sqrt(q @ q)


c = 4.0
system = la.Lagrangian(atom, n=2, params={"c": c})
path = la.integrate(
    system,
    "P6N6Q12Gau",
    q0=[1.6, 0.0],
    v0=[0.0, 0.5],
    h=0.02,
    t_end=60,
    events={"out": la.Event(lambda q, p: q @ p, direction=-1)},
)
spin = path.q[:, 0] * path.p[:, 1] - path.q[:, 1] * path.p[:, 0]
out = path.events["out"]
advance = np.diff(np.unwrap(np.arctan2(out.q[:, 1], out.q[:, 0])))
turned = (advance + np.pi) % (2 * np.pi) - np.pi
expected = 2 * np.pi * (1 / np.sqrt(1 - 1 / (c * spin[0]) ** 2) - 1)
print(f"advance in a round {turned.mean():.10f}, Sommerfeld {expected:.10f}")
print(f"top speed {np.linalg.norm(system.velocity(path.q, path.p), axis=1).max() / c:.2f} c")
assert np.abs(turned - expected).max() < 1e-6

# %%
# The same start with c a hundred times larger is Kepler's ellipse.
slow = la.integrate(system, "P6N6Q12Gau", q0=[1.6, 0.0], v0=[0.0, 0.5], h=0.02, t_end=20, params={"c": 400.0})
figure, ax = plt.subplots(figsize=(5.6, 5.4), layout="constrained")
ax.plot(*path(np.linspace(0, 60, 6000)).T, color=BLUE, linewidth=0.7, label=f"c = {c:g}")
ax.plot(*slow.q.T, color=VERMILION, label="c = 400")
ax.plot(*out.q.T, "o", color="#222222", markersize=3)
ax.plot(0, 0, "o", color=ORANGE, markersize=8)
ax.set(xlabel="x", ylabel="y", aspect="equal", title="the far points advance")
ax.legend(loc="upper right")
plt.show()
