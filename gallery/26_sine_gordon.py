"""
Solitons pass through each other
================================

The sine-Gordon field, φ_tt = φ_xx − sin φ, carries kinks: twists by 2π that travel without change. A kink and an
antikink run into each other, and each comes out as it went in, only a little ahead of where it would have been. The
field is a sum of one small Lagrangian over the points of a line, compiled once whatever their number.
"""

import matplotlib.pyplot as plt
import numpy as np

import leastaction as la

size, dx, speed = 800, 0.1, 0.6
x = dx * (np.arange(size) - size / 2)


def point(q, v):
    return 0.5 * v[0] ** 2 - (1 - np.cos(q[0]))


def neighbours(q, v, dx):
    return -0.5 * ((q[1] - q[0]) / dx) ** 2


line = np.arange(size)
system = la.Lagrangian.sum(
    [la.Term(point, over=line), la.Term(neighbours, over=np.stack([line[:-1], line[1:]], axis=1), params={"dx": dx})],
    n=size,
)


# %%
# The exact collision: tan(φ/4) = sinh(γut) / (u cosh γx), γ = 1/√(1 − u²); kink and antikink meet at t = 0.
def exact(t):
    gamma = 1 / np.sqrt(1 - speed**2)
    return 4 * np.arctan(np.sinh(gamma * speed * t) / (speed * np.cosh(gamma * x)))


begin, end, small = -30.0, 30.0, 1e-4
v0 = (exact(begin + small) - exact(begin - small)) / (2 * small)
path = la.integrate(system, "verlet", q0=exact(begin), v0=v0, h=0.05, t0=begin, t_end=end, every=10)
error = np.abs(path.q[-1] - exact(end)).max()
energy = path.energy()
print(
    f"largest error after the collision {error:.2f}, where a kink is 2π high; "
    f"energy error {np.abs(energy / energy[0] - 1).max():.0e}"
)
assert error < 0.1

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", width_ratios=(1.3, 1))
slope = np.gradient(path.q, dx, axis=1)
image = axes[0].imshow(
    slope, origin="lower", aspect="auto", extent=(x[0], x[-1], begin, end), cmap="RdBu_r", vmin=-2.6, vmax=2.6
)
axes[0].set(xlabel="x", ylabel="time t", title="slope ∂φ/∂x: kink and antikink pass")
figure.colorbar(image)
for t in (begin, -3.0, 0.0, 3.0, end):
    k = int(np.argmin(np.abs(path.t - t)))
    axes[1].plot(
        x, path.q[k], label=f"t = {path.t[k]:g}", color=plt.colormaps["viridis"](0.9 * (t - begin) / (end - begin))
    )
axes[1].set(xlabel="x", ylabel="φ", title="the field")
axes[1].legend(fontsize=8)
plt.show()
