"""
Where a method is stable, exactly
=================================

On an oscillator a symplectic method is stable while the trace of its step lies between −2 and 2. For P3N4Q6Lob there
is a gap near hω = π, a twentieth wide, which trying would miss. The intervals below are found exactly, as roots of
polynomials.
"""

import matplotlib.pyplot as plt
import numpy as np
import sympy

import leastaction as la
from leastaction.results.colours import colour

names = ["P1N2Q2Lob", "P2N3Q4Lob", "P3N4Q6Lob", "P1N1Q2Gau", "P2N2Q4Gau", "P3N3Q6Gau"]
figure, axes = plt.subplots(2, 1, figsize=(9, 5.6), layout="constrained", height_ratios=(1, 1.3))
for row, name in enumerate(names):
    found = la.analysis.stability(name)
    print(name, *found[:3])
    for interval in found:
        begin, end = float(interval.lower), min(12.0, float(interval.upper))
        if begin < 12:
            axes[0].barh(row, end - begin, left=begin, height=0.55, color=colour(name))
    trace = found.trace
    (symbol,) = trace.free_symbols
    values = np.linspace(0.01, 12, 4000)
    heights = sympy.lambdify(symbol, trace)(values)
    if name.endswith("Lob"):
        axes[1].plot(values, np.clip(heights, -6, 6), color=colour(name), label=name)
axes[0].set_yticks(range(len(names)), names)
axes[0].set(xlim=(0, 12), title="stable steps hω")
axes[0].invert_yaxis()
axes[1].axhspan(-2, 2, color="#eeeeee")
axes[1].set(xlim=(0, 12), ylim=(-5, 5), xlabel="hω", ylabel="trace of a step", title="stable between −2 and 2")
axes[1].legend(loc="lower right", fontsize=8)
plt.show()
