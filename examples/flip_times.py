"""When does a double pendulum first flip? A million trajectories, one for each pixel.

Both rods start at rest at angles (θ₁, θ₂); the colour is the time, in units of √(l/g), at which one of them first goes
over the top. A trajectory ends there, and no state is stored. White ones never flip in the time given; inside the
curve 2 cos θ₁ + cos θ₂ = 1 the energy does not suffice.

    python examples/flip_times.py docs/figures/flip_times.png     (a size, such as 200, makes it coarser)
"""

import argparse
import time

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm

import leastaction as la


def double_pendulum(q, v):
    T = v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * np.cos(q[0] - q[1])
    return T + 2 * np.cos(q[0]) + np.cos(q[1])


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("figure", nargs="?", help="where to save the figure")
parser.add_argument("size", nargs="?", type=int, default=1000, help="pixels along each side (default: 1000)")
options = parser.parse_args()
file, size = options.figure, options.size
angles = (np.arange(size) + 0.5) * (2 * np.pi / size) - np.pi
start = np.stack(np.meshgrid(angles, angles), axis=-1).reshape(-1, 2)
system = la.Lagrangian(double_pendulum, n=2)

clock = time.perf_counter()
paths = la.ensemble(
    system,
    "simpson",
    q0=start,
    p0=[0, 0],
    h=0.05,
    t_end=60,
    final_only=True,
    events={
        "upper": la.Event(lambda q, p: np.cos(q[0] / 2), stop=True),
        "lower": la.Event(lambda q, p: np.cos(q[1] / 2), stop=True),
    },
    progress=file is not None,
)
flip = np.where(paths.status == la.run.Status.STOPPED, paths.end_time, np.nan)
enough = 2 * np.cos(start[:, 0]) + np.cos(start[:, 1]) < 1
assert np.isnan(flip[~enough]).all(), "a pendulum without the energy for it has flipped"
print(f"{len(paths)} trajectories, {paths.steps.sum():.3g} steps, {time.perf_counter() - clock:.0f} s")
print(f"{np.isfinite(flip).mean():.1%} flip within t = 60, {paths.failed.sum()} steps could not be solved")

figure, ax = plt.subplots(figsize=(6.4, 5.4), layout="constrained")
image = ax.imshow(
    flip.reshape(size, size), origin="lower", extent=(-np.pi, np.pi, -np.pi, np.pi), norm=LogNorm(1, 60), cmap="magma"
)
ax.contour(angles, angles, (2 * np.cos(start[:, 0]) + np.cos(start[:, 1])).reshape(size, size), [1.0], colors="#0072B2")
ax.set(xlabel="θ₁ at the start", ylabel="θ₂ at the start", title="first flip of a double pendulum released at rest")
figure.colorbar(image, label="time (√(l/g))")
if file:
    figure.savefig(file, dpi=150)
