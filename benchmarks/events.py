"""What the search for events costs, and the energy over many elastic impacts.

    python benchmarks/events.py [--impacts 100000]

The cost is measured side by side: short runs with and without an event function take turns, and the fastest of each
counts, in processor time. Other work on the machine then hardly matters.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import leastaction as la


def double_pendulum(q, v, m, g):
    T = 0.5 * (1 + m) * v[0] ** 2 + 0.5 * m * v[1] ** 2 + m * v[0] * v[1] * np.cos(q[0] - q[1])
    return T + (1 + m) * g * np.cos(q[0]) + m * g * np.cos(q[1])


PENDULUM = la.Lagrangian(double_pendulum, n=2, params={"m": 1.0, "g": 9.81})
FUNCTIONS = {
    "no event function": None,
    "q₀ − 50": la.Event(lambda q, p: q[0] - 50),
    "sin q₀ + sin q₁ − 5": la.Event(lambda q, p: np.sin(q[0]) + np.sin(q[1]) - 5),
    "p₀ − 500": la.Event(lambda q, p: p[0] - 500),
    "p₀ + m sin q₁ cos q₀ − 500": la.Event(lambda q, p, m: p[0] + m * np.sin(q[1]) * np.cos(q[0]) - 500),
    "q₀ − 50, stop": la.Event(lambda q, p: q[0] - 50, stop=True),
}


def cost(method: str, steps: int = 4_000, rounds: int = 100) -> None:
    """Nanoseconds of a step with each event function, and its ratio to one without: a run less one of an eighth.
    Runs are short, so that some of them are not disturbed by other work.
    """
    fastest = {name: [np.inf, np.inf] for name in FUNCTIONS}
    for _ in range(rounds):
        for name, function in FUNCTIONS.items():
            events = None if function is None else {"x": function}
            for k, count in enumerate((steps, steps // 8)):
                clock = time.process_time()
                la.integrate(PENDULUM, method, [1.0, 0.5], [0.0, 0.0], h=0.01, steps=count, every=count, events=events)
                fastest[name][k] = min(fastest[name][k], time.process_time() - clock)
    cost = {name: (long - short) / (steps - steps // 8) for name, (long, short) in fastest.items()}
    print(f"\n{method}, double pendulum, ns per step")
    for name, seconds in cost.items():
        print(f"  {name:32s} {seconds * 1e9:8.1f}  {seconds / cost['no event function']:6.3f}")


def crossings(steps: int = 20_000, rounds: int = 10) -> None:
    """What a crossing costs that is found: runs with an event q₀ = 0, and with one that never happens, in turns."""
    never, zero = la.Event(lambda q, p: q[0] - 50), la.Event(lambda q, p: q[0])
    fastest, count = {never: np.inf, zero: np.inf}, 0
    for k in range(2 * rounds):
        event = (never, zero)[k % 2]
        clock = time.process_time()
        path = la.integrate(
            PENDULUM, "simpson", [1.0, 0.5], [0.0, 0.0], h=0.01, steps=steps, every=steps, events={"x": event}
        )
        fastest[event] = min(fastest[event], time.process_time() - clock)
        count = path.events["x"].count
    spent, ratio = (fastest[zero] - fastest[never]) / count, fastest[zero] / fastest[never]
    print(
        f"  q₀: {count} crossings in {steps} steps, {spent * 1e6:.0f} µs each; the run takes {ratio:.2f} times as long"
    )


LANES = {
    "no event function": None,
    "cos(q₁/2)": la.Event(lambda q, p: np.cos(q[1] / 2)),
    "cos(q₁/2), stop": la.Event(lambda q, p: np.cos(q[1] / 2), stop=True),
    "q₀": la.Event(lambda q, p: q[0]),
}


def lanes(size: int = 512, steps: int = 2_000, rounds: int = 5) -> None:
    """The same for trajectories in lanes, on one core; and what an impact of many trajectories costs."""
    q0 = np.random.default_rng(0).uniform(-1.5, 1.5, (size, 2))
    fastest, found = dict.fromkeys(LANES, np.inf), dict.fromkeys(LANES, 0)
    for k in range(rounds * len(LANES)):
        name = list(LANES)[k % len(LANES)]
        event = LANES[name]
        how = {"h": 0.01, "steps": steps, "final_only": True, "threads": 1}
        clock = time.process_time()
        paths = la.ensemble(PENDULUM, "simpson", q0, [0.0, 0.0], **how, events=None if event is None else {"x": event})
        fastest[name] = min(fastest[name], time.process_time() - clock)
        found[name] = 0 if event is None else int(paths.events["x"].count.sum())
    base = fastest["no event function"]
    print(f"\nsimpson, {size} double pendulums in lanes, ns per step, processor time")
    for name, seconds in fastest.items():
        print(f"  {name:32s} {seconds / size / steps * 1e9:8.1f}  {seconds / base:6.3f}  {found[name]} events")
    ball = la.Lagrangian(lambda q, v: 0.5 * (v @ v) - 9.81 * q[0], n=2)
    high = np.random.default_rng(0).uniform([1, 0], [2, 1], (256, 2))
    how = {"h": 0.02, "steps": 500, "final_only": True, "threads": 1, "events": {"w": la.Impact(lambda q: q[0])}}
    spent = []
    for _ in range(rounds):
        clock = time.process_time()
        count = int(la.ensemble(ball, "simpson", high, [0.0, 0.3], **how).events["w"].count.sum())
        spent.append(time.process_time() - clock)
    print(f"  {count} impacts of 256 balls: {min(spent) / count * 1e6:.0f} µs each")


def stadium(q):
    return 1 - np.maximum(np.abs(q[0]) - 0.5, 0.0) ** 2 - q[1] ** 2


def _summing_to_one():
    """Simpson's method with the middle weight a last place larger: the sum of the three rounded ones is then 1."""
    return la.galerkin(2, la.rule([0.0, 0.5, 1.0], [1 / 6, 1 - 2 * (1 / 6), 1 / 6]))


def energy(impacts: int) -> None:
    """The largest error of the energy, and its mean drift, over elastic impacts."""
    free = la.Lagrangian(lambda q, v: 0.5 * (v @ v), n=2)
    ball = la.Lagrangian(lambda q, v: 0.5 * (v @ v) - q[0], n=1)
    swing = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    cases = {
        "ball": (ball, "simpson", [1.0], [0.0], 0.5, lambda q: q[0], 2.83),
        "ball, midpoint": (ball, "midpoint", [1.0], [0.0], 0.5, lambda q: q[0], 2.83),
        "ball, h = 0.37": (ball, "midpoint", [1.0], [0.0], 0.37, lambda q: q[0], 2.83),
        "ball, P3N3Q6Gau": (ball, "P3N3Q6Gau", [1.0], [0.0], 0.5, lambda q: q[0], 2.83),
        "ball, weights of sum 1": (ball, _summing_to_one(), [1.0], [0.0], 0.5, lambda q: q[0], 2.83),
        "circle": (free, "midpoint", [0.3, 0.1], [0.7, 0.4], 0.5, lambda q: 1 - q @ q, 2.5),
        "stadium": (free, "midpoint", [0.1, 0.2], [0.8, 0.6], 0.5, stadium, 1.8),
        "pendulum, simpson": (swing, "simpson", [1.0], [0.0], 0.2, lambda q: q[0] + 0.3, 2.6),
    }
    print("\nenergy over elastic impacts: largest relative error, slope per impact, µs per impact")
    for name, (system, method, q, p, h, g, between) in cases.items():
        count = impacts if name != "pendulum, simpson" else impacts // 10
        steps = round(count * between / h)
        clock = time.perf_counter()
        path = la.integrate(system, method, q, p, h=h, steps=steps, events={"wall": la.Impact(g)})
        spent = time.perf_counter() - clock
        error = path.energy() / path.energy()[0] - 1
        n = path.events["wall"].count
        drift = np.polyfit(np.linspace(0, n, len(error)), error, 1)[0]
        print(f"  {name:24s} {n:7d} impacts  {np.abs(error).max():.1e}  {drift:+.1e}  {spent / n * 1e6:.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--impacts", type=int, default=100_000)
    arguments = parser.parse_args()
    cost("simpson")
    cost("midpoint")
    crossings()
    lanes()
    energy(arguments.impacts)
