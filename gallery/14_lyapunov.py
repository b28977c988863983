"""
How quickly chaos forgets
=========================

Two stars in the same potential with the same energy: one moves on a torus, the other in the chaotic sea. Their
Lyapunov exponents, from the exact derivative of every step, tell them apart: for the one all go to zero, for the
other the largest stays positive. They come in pairs ±λ, since the method is symplectic.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, VERMILION


def henon_heiles(q, v):
    return 0.5 * (v @ v) - 0.5 * (q @ q) - q[0] ** 2 * q[1] + q[1] ** 3 / 3


system, E = la.Lagrangian(henon_heiles, n=2), 1 / 8
figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
for name, y, colour in (("on a torus", 0.2, BLUE), ("in the sea", -0.25, VERMILION)):
    # x = 0, p_y = 0, and p_x from the energy
    p_x = np.sqrt(2 * E - y**2 + 2 * y**3 / 3)
    found = la.analysis.lyapunov(system, "P3N3Q6Gau", [0.0, y], [p_x, 0.0], h=0.1, steps=60_000)
    print(name, np.array2string(found.exponents, precision=4))
    assert np.abs(found.exponents + found.exponents[::-1]).max() < 2e-3
    ax.loglog(found.t, np.abs(found.history[:, 0]), color=colour, label=f"{name}, λ = {found.exponents[0]:.4f}")
t = np.array([20.0, 6000.0])
ax.loglog(t, 2 / t, ":", color="#444444", label="∝ 1/t")
ax.set(xlabel="time t", ylabel="largest exponent, estimate until t", title="Hénon–Heiles, E = 1/8")
ax.legend()
plt.show()
