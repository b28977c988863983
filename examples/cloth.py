"""A cloth of 100 × 100 points, held at two corners, falls and swings: 30,000 coordinates.

    python examples/cloth.py [--small] [--picture cloth.png]

Three terms: points with weight, springs along threads and diagonals that resist to be stretched, and air that resists
motion, a force. Some minutes, or with --small some seconds.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import leastaction as la

SIZE, MASS, GRAVITY, AIR = 1.0, 0.3, 9.81, 0.05  # metres, kilograms
THREAD, DIAGONAL = 400.0, 40.0  # newtons per metre


def springs(points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of points that are joined, their distances at rest, and stiffnesses."""
    number = np.arange(points**2).reshape(points, points)
    step = SIZE / (points - 1)
    threads = [(number[:, :-1], number[:, 1:]), (number[:-1], number[1:])]
    diagonals = [(number[:-1, :-1], number[1:, 1:]), (number[1:, :-1], number[:-1, 1:])]
    pairs, rest, stiff = [], [], []
    for group, length, k in ((threads, step, THREAD), (diagonals, np.sqrt(2) * step, DIAGONAL)):
        for a, b in group:
            pairs.append(np.stack([a.ravel(), b.ravel()], axis=1))
            rest.append(np.full(a.size, length))
            stiff.append(np.full(a.size, k))
    return np.concatenate(pairs), np.concatenate(rest), np.concatenate(stiff)


def spring(q, v, rest, k):
    return -0.5 * k * (np.sqrt(np.sum((q[3:] - q[:3]) ** 2)) - rest) ** 2


def cloth(points: int) -> tuple[la.Lagrangian, np.ndarray]:
    """The system and its coordinates at the start, point after point; two corners hang on stiff hooks."""
    place = np.arange(3 * points**2).reshape(-1, 3)
    pairs, rest, stiff = springs(points)
    x = np.linspace(0, SIZE, points)
    X, Y = np.meshgrid(x, x, indexing="ij")
    q0 = np.stack([X, Y, 0.02 * np.sin(np.pi * Y / SIZE)], axis=-1).reshape(-1, 3)
    corners = np.array([0, points - 1])
    m = MASS / points**2
    terms = [
        la.Term(lambda q, v, m, g: 0.5 * m * np.sum(v**2) - m * g * q[2], over=place, params={"m": m, "g": GRAVITY}),
        la.Term(
            spring,
            over=np.concatenate([place[pairs[:, 0]], place[pairs[:, 1]]], axis=1),
            params={"rest": rest, "k": stiff},
        ),
        la.Term(
            lambda q, v, hook: -0.5 * 2000.0 * np.sum((q - hook) ** 2),
            over=place[corners],
            params={"hook": q0[corners]},
        ),
        la.Term(over=place, params={"air": AIR * m / MASS}, force=lambda q, v, air: -air * v),
    ]
    return la.Lagrangian.sum(terms, n=3 * points**2), q0.ravel()


def draw(file: str, path: la.Path, points: int) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    places = path.q.reshape(len(path), points, points, 3)
    low, high = places.min(axis=(0, 1, 2)), places.max(axis=(0, 1, 2))
    figure = plt.figure(figsize=(15, 5), layout="constrained")
    for k, (t, place) in enumerate(zip(path.t, places, strict=True)):
        axis = figure.add_subplot(1, len(path), k + 1, projection="3d")
        X, Y, Z = place.transpose(2, 0, 1)
        axis.plot_surface(X, Y, Z, cmap="viridis", rcount=50, ccount=50, linewidth=0.1, edgecolor="#3338")
        axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]), title=f"t = {t:.2f} s")
        axis.set_box_aspect(high - low)
        axis.view_init(18, -60)
    figure.savefig(file, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(usage="python examples/cloth.py [--small] [--picture FILE]", description=__doc__)
    parser.add_argument("--small", action="store_true", help="20 × 20 points")
    parser.add_argument("--picture", metavar="FILE", help="draw the cloth at four times")
    given = parser.parse_args()
    points = 20 if given.small else 100
    clock = time.perf_counter()
    system, q0 = cloth(points)
    fastest = np.sqrt(8 * (THREAD + DIAGONAL) * points**2 / MASS)  # of a point between its springs, at most
    steps = 3 * int(np.ceil(0.9 / (1.0 / fastest) / 3))
    path = la.integrate(
        system, "stormer-verlet", q0=q0, v0=np.zeros(len(q0)), h=0.9 / steps, steps=steps, every=steps // 3
    )
    E = path.energy()
    print(f"{points}² points, {steps} steps in {path.stats['run_time']:.1f} s; all in all "
          f"{time.perf_counter() - clock:.1f} s")  # fmt: skip
    print(f"energy {E[0]:.4g} J at first, {E[-1]:.4g} J at last: the air took the rest")
    if given.picture:
        draw(given.picture, path, points)


if __name__ == "__main__":
    main()
