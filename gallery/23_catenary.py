"""
A chain finds its catenary
==========================

A chain is held in folds between two nails and let go; friction brings it to rest. Nothing in its Lagrangian tells
where. It hangs in a hyperbolic cosine, the curve of lowest centre of mass, as Leibniz, Huygens and Johann Bernoulli
found in 1691.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import brentq

import leastaction as la
from leastaction.results.colours import BLUE, VERMILION

size, span, length = 12, 1.0, 1.5  # points between the nails
link = length / (size + 1)


def points(q):
    return [(0.0, 0.0), *((q[2 * i], q[2 * i + 1]) for i in range(size)), (span, 0.0)]


def chain(q, v, g):
    return 0.5 * (v @ v) - g * sum(q[2 * i + 1] for i in range(size))


def lengths(q):
    nails = points(q)
    return [(a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 - link**2 for a, b in pairwise(nails)]


system = la.Lagrangian(
    chain, n=2 * size, params={"g": 9.81}, constraints=lengths, dissipation=lambda q, v: 1.2 * (v @ v)
)

# %%
# A zigzag of the right length, put on the constraints exactly, is the start.
x = np.linspace(0, span, size + 2)[1:-1]
zigzag = np.where(np.arange(size) % 2, -1.0, 1.0) * 0.5 * np.sqrt(link**2 - (x[1] - x[0]) ** 2)
q0, v0 = la.project(system, np.stack([x, zigzag], axis=1).ravel(), np.zeros(2 * size))
path = la.integrate(system, "midpoint", q0=q0, v0=v0, h=0.005, t_end=8)
rest = np.array(points(path.q[-1]))

# %%
# The curve y = a cosh((x − ½)/a) − a cosh(1/2a) of this length between the nails.
a = brentq(lambda a: 2 * a * np.sinh(span / (2 * a)) - length, 0.1, 10)
known = a * np.cosh((rest[:, 0] - 0.5) / a) - a * np.cosh(0.5 / a)
print(f"the links' ends are within {np.abs(rest[:, 1] - known).max():.1e} of the catenary, a link is {link:.3f} long")
assert np.abs(rest[:, 1] - known).max() < 0.01

figure, ax = plt.subplots(figsize=(6.5, 4.6), layout="constrained")
shades = plt.colormaps["Greys"](np.linspace(0.2, 0.7, 12))
for k, shade in zip(np.linspace(0, 150, 12).astype(int), shades, strict=True):
    ax.plot(*np.array(points(path.q[k])).T, color=shade, linewidth=0.8)
fine = np.linspace(0, span, 200)
ax.plot(fine, a * np.cosh((fine - 0.5) / a) - a * np.cosh(0.5 / a), color=VERMILION, label="catenary")
ax.plot(*rest.T, "o-", color=BLUE, label="after 8 s")
ax.set(xlabel="x (m)", ylabel="y (m)", aspect="equal", title="thirteen links")
ax.legend(loc="upper center")
plt.show()
