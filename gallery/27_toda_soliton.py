"""
A soliton on a lattice
======================

Springs with the force 1 − exp(−r) make Toda's chain, which has exact solitons: lumps that run along a lattice of
beads as if it were not there. A tall one is quick, and overtakes a low one; both go on unchanged. Newton's equations
of five hundred beads know nothing of this; it follows from hidden conserved quantities.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import BLUE, VERMILION

size = 500
system = la.problems.lattice([[j, j + 1] for j in range(size - 1)], lambda r: np.exp(-r) + r)
beads = np.arange(size)


def soliton(t, k, at):
    """Positions with one soliton: q_j = ln (1 + exp z_j) − ln (1 + exp(z_j − 2k)), z_j = 2 (t sinh k − k (j − at))."""
    phase = -2 * (k * (beads - at) - np.sinh(k) * t)
    return np.logaddexp(0, phase) - np.logaddexp(0, phase - 2 * k)


# %%
# Far apart, two solitons add up; the taller behind the lower.
def both(t):
    return soliton(t, 1.8, 60) + soliton(t, 0.8, 120)


small = 1e-5
v0 = (both(small) - both(-small)) / (2 * small)
path = la.integrate(system, "P2N2Q4Gau", q0=both(0.0), v0=v0, h=0.05, t_end=220, every=20)
squeeze = -np.diff(path.q, axis=1)
energy = path.energy()
print(f"relative energy error {np.abs(energy / energy[0] - 1).max():.0e}")
heights = [squeeze[some].max() for some in (slice(10), slice(-10, None))]
print(f"height of the taller one before and after: {heights[0]:.5f}, {heights[1]:.5f}")
assert abs(heights[1] / heights[0] - 1) < 0.02

figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
for k in range(0, len(path), 10):
    ax.fill_between(
        beads[:-1], path.t[k], path.t[k] + 24 * squeeze[k], color="white", edgecolor=BLUE, linewidth=0.8, zorder=-k
    )
ax.plot(60 + np.sinh(1.8) / 1.8 * path.t, path.t, ":", color=VERMILION, label="where the taller would be alone")
ax.set(xlabel="bead", ylabel="time t", xlim=(0, size - 1), title="how much each spring is squeezed")
ax.legend(loc="upper left")
plt.show()
