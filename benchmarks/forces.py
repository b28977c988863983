"""What a force costs: a step of the double pendulum with friction and a motor against one without; and what an input
costs: the motor's torque held in each step, or by samples, against a constant one.

`python benchmarks/forces.py`. Forces are weak, so that all systems move alike and need as many iterations. Runs of all
systems take turns, and the fastest of each counts, in processor time.
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


def steady(q, v, c, u):
    """The same with a constant torque, or one from outside."""
    slip = v[1] - v[0]
    return np.array([-c * v[0] + c * slip + u, -c * slip])


FREE = la.Lagrangian(double_pendulum, 2, {"g": 9.81})
FORCED = la.Lagrangian(double_pendulum, 2, {"g": 9.81, "c": 1e-6, "u": 1e-4}, force=joints)


STEADY = la.Lagrangian(double_pendulum, 2, {"g": 9.81, "c": 1e-6, "u": 1e-4}, force=steady)
DRIVEN = la.Lagrangian(double_pendulum, 2, {"g": 9.81, "c": 1e-6}, force=steady, inputs={"u": ()})
TIMES = np.linspace(0, 201, 2000)
SAMPLES = la.Samples(TIMES, 1e-4 * np.sin(2 * TIMES))


def seconds(run) -> float:
    clock = time.process_time()
    run()
    return time.process_time() - clock


def ratio(method: str, lanes: int) -> tuple[float, float, float, float]:
    """Microseconds of an unforced step; the time of a forced step relative to it; and the times of steps with an input,
    held and by samples, relative to a step with a constant torque.
    """
    q0 = np.array([0.6, 0.4]) + np.linspace(0, 0.1, lanes)[:, None]
    steps = STEPS if lanes == 1 else STEPS // 10
    options = {"h": 0.01, "steps": steps, "every": steps}
    held = 1e-4 * np.sin(0.02 * np.arange(steps))

    def run(system, inputs=None):
        if lanes == 1:
            la.integrate(system, method, q0[0], v0=[0.0, 0.0], inputs=inputs, **options)
        else:
            la.ensemble(system, method, q0=q0, v0=np.zeros((lanes, 2)), inputs=inputs, threads=1, **options)

    given = [(FREE,), (FORCED,), (STEADY,), (DRIVEN, {"u": held}), (DRIVEN, {"u": SAMPLES})]
    runs = [lambda one=one: run(*one) for one in given]
    for one in runs:
        one()
    times = zip(*([seconds(one) for one in runs] for _ in range(TURNS)), strict=True)
    free, forced, constant, driven, sampled = map(min, times)
    return 1e6 * free / steps / lanes, forced / free, driven / constant, sampled / constant


def main() -> None:
    print(
        "| method | one: µs a step | forced | input held | by samples | 64 lanes: µs a step | forced | held | samples |"
    )
    print("|---" * 9 + "|")
    for method in METHODS:
        one, lane = ratio(method, 1), ratio(method, LANES)
        cells = [f"{one[0]:.2f}", *(f"× {x:.2f}" for x in one[1:]), f"{lane[0]:.3f}", *(f"× {x:.2f}" for x in lane[1:])]
        print(f"| {method} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
