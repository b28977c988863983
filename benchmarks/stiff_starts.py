"""Stiff steps from random starts: how many are continued, and their cost: `python benchmarks/stiff_starts.py`.

Random systems with a mass, dense or diagonal, stiff springs and something that is not linear; h = 1, and h ω is the
largest one. Times are of the processor, of a run with all that it needs, the least of some. `tests/test_uniqueness.py`
asks whether the roots are those that continuation finds. Prints a table in Markdown.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from numpy.typing import NDArray

import leastaction as la

SIZES = ((12, 7, True), (12, 7, False), (6, 4, True), (8, 3, False), (5, 2, True))  # n, s, dense
KINDS = {"cosines": 30.0, "quartic": 20.0, "springs": 30.0, "quartic springs": 10.0, "both": 10.0}  # the largest h ω
RUNS, STEPS, REPEATS = 3, 40, 3


def system(rng: np.random.Generator, n: int, dense: bool, kind: str, firm: float) -> la.Lagrangian:
    """Random springs between all coordinates, or between pairs of them; and cosines, or fourth powers, or both."""
    A, W = rng.standard_normal((2, n, n))
    M = np.eye(n) + 0.5 * A @ A.T / n if dense else np.diag(rng.uniform(0.5, 2, n))
    K = W @ W.T
    K *= firm**2 / np.linalg.eigvals(np.linalg.solve(M, K)).real.max()
    a, f = rng.uniform(0.2, 1.0, n), rng.uniform(0, 6, n)
    pairs = rng.integers(0, n, (2 * n, 2))
    i, j = pairs[pairs[:, 0] != pairs[:, 1]].T.tolist()
    k = rng.uniform(0.2, 1, len(i)) * firm**2 / 6

    def L(q, v):
        if kind in ("springs", "quartic springs"):
            V = 0.5 * np.sum(k * (q[i] - q[j]) ** 2)
        else:
            V = 0.5 * q @ K @ q
        if kind == "quartic springs":
            V = V + 0.05 / firm * np.sum(k * (q[i] - q[j]) ** 4) + 0.1 * np.sum(q**2)
        elif kind == "quartic":
            V = V + 0.03 * np.sum(a * q**4)
        elif kind == "both":
            V = V - 0.5 * np.sum(a * np.cos(0.5 * q + f)) + 0.01 * np.sum(a * q**4)
        else:
            V = V - (0.7 if kind == "springs" else 1.0) * np.sum(a * np.cos(q + f))
        return 0.5 * v @ M @ v - V

    return la.Lagrangian(L, n=n)


def start(rng: np.random.Generator, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    q, v = rng.uniform(-1, 1, (2, n))
    return q, v


def main() -> None:
    warnings.simplefilter("ignore", la.EnergyWarning)  # such steps are too long for that
    print("| n | s | mass | kind | h ω | steps | continued | iterations a step | µs a step |")
    print("|" + " --- |" * 9)
    for n, s, dense in SIZES:
        for kind, firm in KINDS.items():
            rng = np.random.default_rng([1, n, s, *kind.encode()])
            own, method = system(rng, n, dense, kind, firm), f"P{s}N{s}Q{2 * s}Gau"
            continued, iterations, seconds = 0, 0, 0.0
            for _ in range(RUNS):
                q, v = start(rng, n)
                least = np.inf
                for _ in range(REPEATS + 1):
                    clock = time.process_time()
                    path = la.integrate(own, method, q, v0=v, h=1.0, steps=STEPS)
                    least = min(least, time.process_time() - clock)
                continued, iterations = (
                    continued + path.stats["continued"],
                    iterations + path.stats["newton_iterations"],
                )
                seconds += least
            steps = RUNS * STEPS
            mass = "dense" if dense else "diagonal"
            print(
                f"| {n} | {s} | {mass} | {kind} | {firm:g} | {steps} | {continued} | {iterations / steps:.1f} "
                f"| {seconds / steps * 1e6:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
