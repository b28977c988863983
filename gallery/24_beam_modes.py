"""
How a beam rings
================

A clamped beam of twenty elements is bent at its end and let go. Its motion is the sum of its modes, whose frequencies
go like (1.875, 4.694, 7.855 …)²: no harmonics, which is why a ruler on a table's edge clangs and does not sing. M and
K are what any finite-element program gives.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, COLOURS


def beam(size):
    """M and K of an Euler–Bernoulli beam of length 1, ρA = EI = 1: deflection and slope at each node."""
    l = 1 / size
    mass = [
        [156, 22 * l, 54, -13 * l],
        [22 * l, 4 * l**2, 13 * l, -3 * l**2],
        [54, 13 * l, 156, -22 * l],
        [-13 * l, -3 * l**2, -22 * l, 4 * l**2],
    ]
    stiff = [
        [12, 6 * l, -12, 6 * l],
        [6 * l, 4 * l**2, -6 * l, 2 * l**2],
        [-12, -6 * l, 12, -6 * l],
        [6 * l, 2 * l**2, -6 * l, 4 * l**2],
    ]
    M, K = np.zeros((2, 2 * size + 2, 2 * size + 2))
    for e in range(size):
        some = slice(2 * e, 2 * e + 4)
        M[some, some] += l / 420 * np.array(mass)
        K[some, some] += np.array(stiff) / l**3
    return M, K


size = 20
M, K = beam(size)
system = la.Quadratic.without([0, 1], M, K)  # clamped at the left
modes = system.modes(4)
known = np.array([1.8751040687, 4.6940911330, 7.8547574382, 10.9955407349]) ** 2
print("ω:", ", ".join(f"{x:.4f}" for x in modes.omega), "  exact:", ", ".join(f"{x:.4f}" for x in known))
assert np.abs(modes.omega / known - 1).max() < 2e-4

# %%
# Bent by a force at the free end, K q = f, and let go: the higher a mode, the less of it there is.
f = np.zeros(2 * size)
f[-2] = 1.0
q0 = np.linalg.solve(K[2:, 2:], f)
path = la.integrate(system, "P3N3Q6Gau", q0, v0=np.zeros(2 * size), h=2e-3, t_end=20, output=[2 * size - 2])
tip = path.q[:, 0]
spectrum = np.abs(np.fft.rfft(tip * np.hanning(len(tip))))
omega = 2 * np.pi * np.fft.rfftfreq(len(tip), path.t[1])

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
x = np.linspace(0, 1, size + 1)
for k in range(4):
    shape = np.array([0, *modes.shape[::2, k]])
    axes[0].plot(
        x, shape / np.abs(shape).max() * np.sign(shape[-1]), color=COLOURS[k], label=f"ω = {modes.omega[k]:.2f}"
    )
axes[0].set(xlabel="along the beam", title="the lowest four modes")
axes[0].legend(fontsize=8)
axes[1].semilogy(omega, spectrum / spectrum.max(), color=BLUE, linewidth=0.8)
for k in range(4):
    axes[1].axvline(modes.omega[k], color=COLOURS[k], linewidth=3, alpha=0.3)
axes[1].set(xlim=(0, 140), ylim=(1e-7, 2), xlabel="frequency ω", title="what the free end rings with")
plt.show()
