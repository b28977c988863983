"""
The recurrence of Fermi, Pasta, Ulam and Tsingou
================================================

In 1955 one of the first experiments on a computer put all energy of a chain with slightly nonlinear springs into its
lowest mode, and waited for it to spread evenly. It did not: after some hundred and fifty swings nearly all of it came
back. Thirty-two springs with α = 1/4 do it again, the energy kept to ten digits.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import COLOURS

size, alpha = 31, 0.25  # moving beads between two walls


def bead(q, v):
    return 0.5 * v[0] ** 2


def spring(q, v, a):
    r = q[1] - q[0]
    return -0.5 * r**2 - a * r**3 / 3


def left(q, v, a):
    return -0.5 * q[0] ** 2 - a * q[0] ** 3 / 3


def right(q, v, a):
    return -0.5 * q[0] ** 2 + a * q[0] ** 3 / 3


beads = np.arange(size)
a = {"a": alpha}
system = la.Lagrangian.sum(
    [
        la.Term(bead, over=beads),
        la.Term(spring, over=np.stack([beads[:-1], beads[1:]], axis=1), params=a),
        la.Term(left, over=[0], params=a),
        la.Term(right, over=[size - 1], params=a),
    ],
    n=size,
)

# %%
# Modes of the linear chain: q_j = Σ_k a_k √(2/32) sin(π j k/32), ω_k = 2 sin(π k/64).
k = np.arange(1, size + 1)
shapes = np.sqrt(2 / (size + 1)) * np.sin(np.pi * np.outer(np.arange(1, size + 1), k) / (size + 1))
omega = 2 * np.sin(np.pi * k / (2 * (size + 1)))
q0 = 4 * shapes[:, 0]
path = la.integrate(system, "P3N3Q6Gau", q0=q0, v0=np.zeros(size), h=0.25, t_end=11_000, every=40)
energy = path.energy()
modes = 0.5 * (path.p @ shapes) ** 2 + 0.5 * omega**2 * (path.q @ shapes) ** 2
late = np.where(path.t > 5000, modes[:, 0], 0)
back = late.max() / modes[0, 0]
swings = path.t[late.argmax()] * omega[0] / (2 * np.pi)
low = modes[path.t < 8000, 0].min() / modes[0, 0]
print(f"mode 1 falls to {low:.0%} of its energy and comes back to {back:.0%} after {swings:.0f} swings")
print(f"relative energy error {np.abs(energy / energy[0] - 1).max():.0e}")
assert back > 0.9 > 0.2 > low and np.abs(energy / energy[0] - 1).max() < 1e-10

figure, ax = plt.subplots(figsize=(8.5, 4.2), layout="constrained")
for i in range(5):
    ax.plot(path.t, modes[:, i] / modes[0, 0], color=COLOURS[i], linewidth=1, label=f"mode {i + 1}")
ax.set(xlabel="time t", ylabel="energy, of the whole", title="where the energy is, α = 1/4, 32 springs")
ax.legend(loc="upper right", ncols=5, fontsize=8)
plt.show()
