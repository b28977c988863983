"""What a force costs: a step of the double pendulum with friction and a motor against one without.

`python benchmarks/forces.py`. Both are weak, so that both systems move alike and need as many iterations. Runs of both
are taken in turn, and the fastest of each counts.
"""

from __future__ import annotations

import time

import numpy as np

import leastaction as la

STEPS, TURNS, LANES = 20_000, 15, 64
METHODS = ("midpoint", "simpson", "P3N3Q6Gau", "P4N4Q8Gau", "P8N8Q16Gau", "rk4")


def double_pendulum(q, v, g):
    T = v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * np.cos(q[0] - q[1])
    return T + g * (2 * np.cos(q[0]) + np.cos(q[1]))


def joints(t, q, v, c, u):
    """Friction in both joints, and a motor in the first."""
    slip = v[1] - v[0]
    return np.array([-c * v[0] + c * slip + u * np.sin(2 * t), -c * slip])


FREE = la.Lagrangian(double_pendulum, 2, {"g": 9.81})
FORCED = la.Lagrangian(double_pendulum, 2, {"g": 9.81, "c": 1e-6, "u": 1e-4}, force=joints)


def seconds(run) -> float:
    clock = time.perf_counter()
    run()
    return time.perf_counter() - clock


def ratio(method: str, lanes: int) -> tuple[float, float]:
    """Microseconds of an unforced step, and how many times that a forced one takes."""
    q0 = np.array([0.6, 0.4]) + np.linspace(0, 0.1, lanes)[:, None]
    steps = STEPS if lanes == 1 else STEPS // 10
    options = {"h": 0.01, "steps": steps, "every": steps}

    def run(system):
        if lanes == 1:
            la.integrate(system, method, q0[0], v0=[0.0, 0.0], **options)
        else:
            la.ensemble(system, method, q0=q0, v0=np.zeros((lanes, 2)), **options)

    runs = [lambda system=system: run(system) for system in (FREE, FORCED)]
    for one in runs:
        one()
    free, forced = (min(times) for times in zip(*([seconds(one) for one in runs] for _ in range(TURNS)), strict=True))
    return 1e6 * free / steps / lanes, forced / free


def main() -> None:
    print("| method | one: µs a step | forced | 64 lanes: µs a step | forced |\n|---|---|---|---|---|")
    for method in METHODS:
        (one, more), (lane, more_lanes) = ratio(method, 1), ratio(method, LANES)
        print(f"| {method} | {one:.2f} | × {more:.2f} | {lane:.3f} | × {more_lanes:.2f} |")


if __name__ == "__main__":
    main()
