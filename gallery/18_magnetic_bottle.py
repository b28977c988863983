"""
A magnetic bottle
=================

A charge spirals along the field; where the field grows it winds tighter, slows down, and turns back. No force holds
it in the middle: a magnetic field enters the Lagrangian by v·A alone and does no work. The method keeps the energy of
three hundred turns to eight digits, and the magnetic moment v⊥²/B to a hundredth, as theory says.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, ORANGE, VERMILION


def bottle(q, v, B, length):
    """A = ½ B(z) (−y, x, 0) with B(z) = B (1 + z²/length²): a field without divergence, B_z on the axis."""
    x, y, z = q
    return 0.5 * (v @ v) + 0.5 * B * (1 + z**2 / length**2) * (x * v[1] - y * v[0])


system = la.Lagrangian(bottle, n=3, params={"B": 10.0, "length": 3.0})
path = la.integrate(system, "P4N4Q8Gau", q0=[0.3, 0.0, 0.0], v0=[0.0, 1.0, 0.7], h=0.05, t_end=200)
energy = path.energy()
v = system.velocity(path.q, path.p)
x, y, z = path.q.T
field = np.stack([-x * z / 9, -y * z / 9, 1 + z**2 / 9], axis=1) * 10
strength = np.linalg.norm(field, axis=1)
along = (v * field).sum(axis=1) / strength
moment = ((v**2).sum(axis=1) - along**2) / strength
print(f"relative energy error {np.abs(energy / energy[0] - 1).max():.0e}")
print(
    f"v⊥²/B stays within {np.ptp(moment) / moment.mean():.0%}, while B changes by {strength.max() / strength.min():.2f}"
)
assert np.ptp(moment) / moment.mean() < 0.02 and np.abs(energy / energy[0] - 1).max() < 1e-8

figure = plt.figure(figsize=(9, 4), layout="constrained")
space = figure.add_subplot(1, 2, 1, projection="3d")
some = path(np.linspace(0, 22, 3000))
space.plot(some[:, 0], some[:, 1], some[:, 2], color=BLUE, linewidth=0.6)
space.set(xlabel="x", ylabel="y", zlabel="z", title="to and fro between two mirrors", box_aspect=(1, 1, 2))
space.set(xticks=[0.3, 0.4], yticks=[-0.1, 0, 0.1])
ax = figure.add_subplot(1, 2, 2)
some = path.t < 40
ax.plot(path.t[some], z[some], color=BLUE, label="place along the field, z")
ax.plot(path.t[some], along[some], color=VERMILION, label="speed along the field")
ax.plot(path.t[some], 10 * moment[some], color=ORANGE, label="10 v⊥²/B")
ax.set(xlabel="time t")
ax.legend(loc="lower right", fontsize=8)
plt.show()
