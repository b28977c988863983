"""
A tower in an earthquake
========================

Ten floors on columns, two per cent of damping, and a ground that shakes for twenty seconds. The tower answers with
its own frequencies, whatever the ground says: the top goes on swinging with the first mode when the ground is still
again. The response spectrum shows which towers would have had it worse.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, ORANGE, VERMILION

floors, mass, stiffness = 10, 2e5, 3e8  # kg, N/m
M = np.full(floors + 1, mass)
K = stiffness * (np.diag([1.0] + [2.0] * (floors - 1) + [1.0]) - np.eye(floors + 1, k=1) - np.eye(floors + 1, k=-1))
free = la.Quadratic.without([0], M, K)
first, second = free.modes(2).omega
print(f"periods of the first two modes: {2 * np.pi / first:.2f} s, {2 * np.pi / second:.2f} s")

# %%
# In place of a record: noise between 0.5 and 5 Hz that rises and dies away, 3 m/s² at most.
rng = np.random.default_rng(3)
times = np.arange(0, 40, 0.01)
record = sum(rng.normal() * np.sin(2 * np.pi * f * times + rng.uniform(0, 2 * np.pi)) for f in np.linspace(0.5, 5, 60))
record *= np.clip(times / 3, 0, 1) * np.clip((20 - times) / 8, 0, 1)
record *= 3 / np.abs(record).max()

damping = la.linear.Rayleigh.from_ratios((first, 0.02), (second, 0.02))
tower = la.Quadratic.without([0], M, K, C=damping, f=la.linear.Load.base(M, np.ones(floors + 1), times, record))
path = la.integrate(tower, "P2N2Q4Gau", np.zeros(floors), v0=np.zeros(floors), h=0.01, t_end=39.9)
storeys = np.diff(np.concatenate([np.zeros((len(path), 1)), path.q], axis=1), axis=1)
print(
    f"top {100 * np.abs(path.q[:, -1]).max():.1f} cm, largest shift of a storey {1000 * np.abs(storeys).max():.1f} mm"
)

figure, axes = plt.subplots(3, 1, figsize=(8.5, 6.4), layout="constrained")
axes[0].plot(times, record, color=ORANGE, linewidth=0.7)
axes[0].set(ylabel="ground (m/s²)", title="ten floors in an earthquake", xlim=(0, 40))
axes[1].plot(path.t, 100 * path.q[:, -1], color=BLUE, linewidth=0.9)
axes[1].set(ylabel="top (cm)", xlabel="time t (s)", xlim=(0, 40))
spectrum = la.linear.response_spectrum(times, record, periods=np.geomspace(0.1, 5, 80), damping=[0.02])
axes[2].semilogx(spectrum.period, spectrum.acceleration[:, 0], color=VERMILION)
axes[2].axvline(2 * np.pi / first, color=BLUE, linestyle=":", label="this tower")
axes[2].set(xlabel="period of a tower (s)", ylabel="its acceleration (m/s²)")
axes[2].legend()
plt.show()
