"""
Orders from two to sixteen, at sixty digits
===========================================

Polynomials of degree s with s Gauss nodes have order 2s, for every s. Ordinary numbers end at sixteen digits and hide
it for the high ones; with sixty digits the lines go straight down. Halving the step of the last method makes its
error sixty-five thousand times smaller.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la
from leastaction.results.colours import line

problem = la.problems.get("kepler")
steps = ["1/10", "1/20", "1/40"]
figure, ax = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
for s in (1, 2, 3, 4, 6, 8):
    name = f"P{s}N{s}Q{2 * s}Gau"
    found = la.analysis.convergence(problem, name, h=steps, t_end=1, digits=60, at="end")
    error = np.array([float(x) for x in found.error])
    h = np.array([float(x) for x in found.h])
    slope = np.log(error[-2] / error[-1]) / np.log(h[-2] / h[-1])
    print(f"{name}: order {slope:.2f}")
    assert abs(slope - 2 * s) < 0.3
    ax.loglog(h, error, label=f"{name}, order {2 * s}", **line(name))
ax.set_xticks([0.025, 0.05, 0.1], ["1/40", "1/20", "1/10"])
ax.set_xticks([], minor=True)
ax.axhline(2.2e-16, color="#888888", linewidth=0.8, linestyle=":")
ax.annotate("where float64 ends", (0.026, 4e-16), color="#666666", fontsize=8)
ax.set(xlabel="step h", ylabel="relative error after t = 1", title="Kepler's problem with sixty digits")
ax.legend(fontsize=8, loc="lower right")
plt.show()
