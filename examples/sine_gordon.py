"""Four ring solitons of the sine-Gordon equation meet: a field on a grid of 1000 × 1000 points.

    python examples/sine_gordon.py [--small] [--picture sine_gordon.png]

    φ_tt − φ_xx − φ_yy + sin φ = 0

The Lagrangian is a sum of two terms: one over the points, one over the edges of the grid. About half a minute, or with
--small a second.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import leastaction as la

SIDE = 28.0  # the quarter [0, SIDE]², mirrored at its edges


def grid_edges(points: int) -> np.ndarray:
    """Pairs of neighbours on a square grid, row after row."""
    number = np.arange(points**2).reshape(points, points)
    along = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
    across = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
    return np.concatenate([along, across])


def field(points: int) -> tuple[la.Lagrangian, np.ndarray, np.ndarray, float]:
    """The system, φ and φ_t at the start, and the distance of the points."""
    dx = 2 * SIDE / (points - 1)
    at_points = la.Term(lambda q, v: 0.5 * v[0] ** 2 - (1 - np.cos(q[0])), over=np.arange(points**2))
    on_edges = la.Term(lambda q, v, w: -0.5 * w * (q[1] - q[0]) ** 2, over=grid_edges(points), params={"w": dx**-2})
    x = np.linspace(-SIDE, SIDE, points)
    X, Y = np.meshgrid(np.abs(x), np.abs(x), indexing="ij")
    rim = (4.0 - np.hypot(X - 11.0, Y - 11.0)) / 0.436  # of a ring about (11, 11), and its mirror images
    phi, rate = 4 * np.arctan(np.exp(rim)), 4.13 / np.cosh(rim)
    return la.Lagrangian.sum([at_points, on_edges], n=points**2), phi.ravel(), rate.ravel(), dx


def draw(file: str, path: la.Path, points: int) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(path), figsize=(4 * len(path), 4.4), layout="constrained")
    for axis, t, q in zip(axes, path.t, path.q, strict=True):
        shown = np.sin(q.reshape(points, points) / 2).T
        image = axis.imshow(shown, extent=(-SIDE, SIDE) * 2, origin="lower", cmap="RdBu_r", vmin=-1, vmax=1)
        axis.set(title=f"t = {t:.1f}", xlabel="x", ylabel="y")
    figure.colorbar(image, ax=axes, label="sin φ/2", shrink=0.8)
    figure.savefig(file, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        usage="python examples/sine_gordon.py [--small] [--picture FILE]", description=__doc__
    )
    parser.add_argument("--small", action="store_true", help="150 × 150 points")
    parser.add_argument("--picture", metavar="FILE", help="draw the field at four times")
    given = parser.parse_args()
    points = 150 if given.small else 1000
    clock = time.perf_counter()
    system, phi, rate, dx = field(points)
    steps = 4 * int(np.ceil(18.0 / (0.6 * dx) / 4))
    h = 18.0 / steps
    path = la.integrate(system, "stormer-verlet", q0=phi, v0=rate, h=h, steps=steps, every=steps // 4)
    E = path.energy()
    print(f"{points}² points, {steps} steps of {h:.3g} in {path.stats['run_time']:.1f} s; all in all "
          f"{time.perf_counter() - clock:.1f} s")  # fmt: skip
    print(f"the energy {E[0]:.6g} changed by at most {np.abs(E / E[0] - 1).max():.1e} of itself")
    if given.picture:
        draw(given.picture, path, points)


if __name__ == "__main__":
    main()
