"""
The sleeping top
================

A top that spins fast enough stands upright as if asleep. Below the spin I₃ω = 2 √(I m g l) the slightest push wakes
it, and it leans over. Two hundred tops, each with another spin and tilted by half a degree, show the edge.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, VERMILION


def top(q, v, I, I3, mgl):
    """In u = tan(θ/2) cos φ, w = tan(θ/2) sin φ, which are regular where Euler's angles are not, and χ = φ + ψ."""
    u, w, _ = q
    square = u**2 + w**2
    turn = 2 * (u * v[1] - w * v[0]) / (1 + square)  # (1 − cos θ) dφ/dt
    swing = 4 * (v[0] ** 2 + v[1] ** 2) / (1 + square) ** 2
    return 0.5 * I * swing + 0.5 * I3 * (v[2] - turn) ** 2 - mgl * (1 - square) / (1 + square)


I, I3, mgl = 1.0, 0.5, 1.0
system = la.Lagrangian(top, n=3, params={"I": I, "I3": I3, "mgl": mgl})
critical = 2 * np.sqrt(I * mgl) / I3
spin = np.linspace(0.3, 1.7, 200) * critical
paths = la.ensemble(
    system,
    "P3N3Q6Gau",
    q0=[np.tan(np.radians(0.25)), 0.0, 0.0],
    v0=np.stack([0 * spin, 0 * spin, spin], axis=1),
    h=0.05,
    t_end=200,
)
energy = paths.energy()
print(f"largest relative energy error {np.abs(energy / energy[:, :1] - 1).max():.0e}")

# %%
# How far each one leans at most. For small tilts the lean below the edge follows from energy and momenta: cos θ =
# (I₃ω)²/(2 I m g l) − 1.
lean = 2 * np.arctan(np.hypot(paths.q[..., 0], paths.q[..., 1]).max(axis=1))
known = np.arccos(np.clip((I3 * spin) ** 2 / (2 * I * mgl) - 1, -1, 1))
assert np.abs(lean - known)[spin < 0.95 * critical].max() < 0.05 and lean[spin > 1.1 * critical].max() < 0.05

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
ax.plot(spin / critical, np.degrees(lean), ".", color=BLUE, label="200 tops, at most")
ax.plot(spin / critical, np.degrees(known), color=VERMILION, linewidth=0.8, label="cos θ = 2 (ω/ω*)² − 1")
ax.axvline(1, color="#888888", linewidth=0.8, linestyle=":")
ax.set(xlabel="spin, ω/ω*", ylabel="lean (degrees)", title="a top wakes below ω* = 2 √(I m g l)/I₃")
ax.legend()
plt.show()
