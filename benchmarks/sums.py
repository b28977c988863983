"""Large systems as sums, side by side with C by hand and with REBOUND, in processor time.

    python benchmarks/sums.py [--quick]

FPUT chains from 10³ to 10⁶ masses against fput.c; 1,000 bodies against REBOUND's leapfrog, and P8N8Q16Gau against its
IAS15 over a crossing time (where rebound is installed); chains of rods in angles and as terms with
constraints; and the cost of a stiff step.
Prints tables in Markdown.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import leastaction as la

HERE = Path(__file__).parent


def fput(n: int) -> la.Lagrangian:
    """The chain of fput.c."""
    i = np.arange(n - 1)
    return la.Lagrangian.sum(
        [
            la.Term(lambda q, v: 0.5 * v[0] ** 2, over=np.arange(n)),
            la.Term(lambda q, v: -0.5 * (q[1] - q[0]) ** 2 - 0.25 * (q[1] - q[0]) ** 4, over=np.stack([i, i + 1], 1)),
            la.Term(lambda q, v: -0.5 * q[0] ** 2, over=[0, n - 1]),
        ],
        n=n,
    )


def per_step(run: Callable[[int], la.Path], steps: int, repeats: int) -> tuple[float, float, la.Path]:
    """Processor seconds and iterations of a step: of a long run less those of a short one, each the least of some."""
    least, short = [np.inf, np.inf], max(2, steps // 20)
    run(2)  # compiled before the clock begins
    for _ in range(repeats):
        clock = time.process_time()
        first = run(short)
        begun = time.process_time()
        last = run(short + steps)
        least = [min(least[0], begun - clock), min(least[1], time.process_time() - begun)]
    best = (least[1] - least[0]) / steps
    spent = (last.stats["newton_iterations"] - first.stats["newton_iterations"]) / steps
    return best, spent, last


def moving(n: int, method: str) -> Callable[..., la.Path]:
    """A function of the number of steps: a run of the chain of fput.c from its start."""
    system, k = fput(n), np.arange(n)
    q0 = 0.5 * np.sin(np.pi * 300 * (k + 1) / (n + 1)) + 0.2 * np.sin(0.37 * k)

    def run(steps: int) -> la.Path:
        return la.integrate(system, method, q0, np.zeros(n), h=0.1, steps=steps, every=steps)

    return run


def chains(quick: bool) -> None:
    """Ours and C in turns, the least of some. Of ours a run less one of an eighth."""
    print("| FPUT, h = 0.1 | masses | ns per mass and step | C | ratio |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "fput"
        subprocess.run(["cc", "-O3", "-march=native", str(HERE / "fput.c"), "-o", str(program), "-lm"], check=True)
        for n in (10**3, 10**4, 10**5, 10**6):
            for method, names in (("stormer-verlet", ("plain", "compensated")), ("simpson", ("simpson",))):
                steps = (2 * 10**7 if method == "stormer-verlet" else 2 * 10**6) // n
                run, best = moving(n, method), dict.fromkeys(("ours", "begun", *names), np.inf)
                for _ in range(4 if quick else 12):
                    for name, count in (("begun", steps // 8), ("ours", steps)):
                        clock = time.process_time()
                        run(count)
                        best[name] = min(best[name], time.process_time() - clock)
                    for name in names:
                        call = [str(program), name, str(n), str(steps)]
                        found = subprocess.run(call, check=True, capture_output=True, text=True)
                        best[name] = min(best[name], float(found.stdout.split()[0]))
                ours = (best["ours"] - best["begun"]) / (steps - steps // 8) / n * 1e9
                for name in names:
                    theirs = best[name] / n * 1e9
                    row = f"{n:,} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} |"
                    print(f"| {method}, C {name} | {row}", flush=True)


def first_step() -> None:
    print("\n| FPUT, 10⁵ masses, from definition to the first Simpson step | |\n|---|---|")
    code = (
        "import time; c = time.process_time(); w = time.perf_counter()\n"
        "import sys; sys.path.insert(0, sys.argv[1]); import numpy as np, leastaction as la; from sums import fput\n"
        "i = time.process_time() - c; s = fput(10**5)\n"
        "la.integrate(s, 'simpson', q0=np.sin(np.arange(10**5) * 0.1), p0=np.zeros(10**5), h=0.1, steps=1)\n"
        "import resource; print(time.process_time() - c, time.perf_counter() - w, "
        "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o700)
        for name in ("caches empty", "caches full"):
            environment = {**os.environ, "LEASTACTION_CACHE": folder}
            call = [sys.executable, "-c", code, str(HERE)]
            shown = subprocess.run(call, check=True, capture_output=True, text=True, env=environment)
            cpu, wall, memory = map(float, shown.stdout.split())
            print(f"| {name} | {cpu:.1f} s of processor time, {wall:.1f} s, {memory:.0f} MB |")


def cluster(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A ball of equal masses."""
    rng = np.random.default_rng(0)
    r = (rng.uniform(0.05, 0.95, count) ** (-2 / 3) - 1) ** -0.5
    u = rng.standard_normal((count, 3))
    Q = r[:, None] * u / np.linalg.norm(u, axis=1)[:, None]
    V = 0.4 * rng.standard_normal((count, 3)) / (1 + r[:, None] ** 2) ** 0.25
    return np.full(count, 1.0 / count), Q, V - V.mean(axis=0)


def bodies(quick: bool) -> None:
    m, Q, V = cluster(1000)
    ball = la.problems.n_body(m, Q, V, softening=0.01)
    steps = 20 if quick else 100

    def run(steps: int) -> la.Path:
        start = {"q0": ball.q0, "p0": ball.p0, "h": 1e-3}
        return la.integrate(ball.system, "stormer-verlet", **start, steps=steps, every=steps)

    ours, _, _ = per_step(run, steps, 3)
    print("\n| 1,000 bodies, all pairs | ms a step |\n|---|---|")
    print(f"| leastaction, Störmer–Verlet | {ours * 1e3:.2f} |")
    try:
        import rebound
    except ImportError:
        print("| REBOUND | not installed |")
        return

    def simulation(integrator: str) -> rebound.Simulation:
        sim = rebound.Simulation()
        sim.gravity, sim.integrator, sim.softening, sim.dt = "basic", integrator, 0.01, 1e-3
        for a, b, c in zip(m, Q, V, strict=True):
            sim.add(m=a, x=b[0], y=b[1], z=b[2], vx=c[0], vy=c[1], vz=c[2])
        return sim

    sim = simulation("leapfrog")
    sim.steps(1)
    best = np.inf
    for _ in range(3):
        clock = time.process_time()
        sim.steps(steps)
        best = min(best, (time.process_time() - clock) / steps)
    print(f"| REBOUND, leapfrog, basic gravity | {best * 1e3:.2f} |\n| ratio | {ours / best:.2f} |")
    crossing = 0.2 if quick else 2.0
    print(f"\n| 1,000 bodies over t = {crossing} | s | relative change of the energy |\n|---|---|---|")
    for h in (0.04, 0.02, 0.01, 0.005):
        clock = time.process_time()
        start = {"q0": ball.q0, "p0": ball.p0, "h": h}
        path = la.integrate(ball.system, "P8N8Q16Gau", **start, t_end=crossing, every=10**6)
        spent, E = time.process_time() - clock, path.energy()
        print(f"| P8N8Q16Gau, h = {h} | {spent:.1f} | {abs(E[-1] / E[0] - 1):.1e} |")
    sim = simulation("ias15")
    clock = time.process_time()
    sim.integrate(crossing)
    spent = time.process_time() - clock
    x, v = np.zeros((len(m), 3)), np.zeros((len(m), 3))
    sim.serialize_particle_data(xyz=x, vxvyvz=v)  # REBOUND's own energy knows nothing of softening
    E = [ball.system.energy(q, (m[:, None] * w).ravel()) for q, w in ((ball.q0, V), (x.ravel(), v))]
    print(f"| REBOUND, IAS15 | {spent:.1f} | {abs(E[1] / E[0] - 1):.1e} |")


def hanging(count: int) -> tuple[la.Lagrangian, np.ndarray, np.ndarray]:
    """A chain of rods in Cartesian coordinates, from the origin, and a start at rest."""
    xy = np.arange(2 * count).reshape(count, 2)
    terms = [
        la.Term(lambda q, v: 0.5 * (v @ v) - 9.81 * q[1], over=xy),
        la.Term(over=xy[:1], constraints=lambda q: (q @ q - 1) / 2),
        la.Term(
            over=np.concatenate([xy[:-1], xy[1:]], axis=1),
            constraints=lambda q: ((q[2:] - q[:2]) @ (q[2:] - q[:2]) - 1) / 2,
        ),
    ]
    angles = np.pi / 6 + 0.3 * np.sin(np.arange(count))
    q = np.stack([np.cumsum(np.sin(angles)), -np.cumsum(np.cos(angles))], axis=1).ravel()
    system = la.Lagrangian.sum(terms, n=2 * count)
    return system, *la.project(system, q, np.zeros(2 * count))


def in_angles(count: int) -> tuple[la.Lagrangian, np.ndarray, np.ndarray]:
    """The same chain in its angles: no constraints, and a dense mass."""

    def chain(q, v):  # type: ignore[no-untyped-def]
        x, y = np.cumsum(np.cos(q) * v), np.cumsum(np.sin(q) * v)
        return 0.5 * np.sum(x**2 + y**2) + 9.81 * np.sum(np.cumsum(np.cos(q)))

    return la.Lagrangian(chain, n=count), np.pi / 6 + 0.3 * np.sin(np.arange(count)), np.zeros(count)


def links(quick: bool) -> None:
    h = 2e-3
    print(f"\n| planar chain, Simpson, h = {h} | links | first step, s | ms a step | µs a step and link | iterations |")
    print("|---|---|---|---|---|---|")
    cases = [("angles, dense mass", in_angles, count) for count in ((20,) if quick else (20, 100))]
    cases += [("Cartesian, terms and constraints", hanging, count) for count in (20, 100, 300, 1000, 3000)]
    for name, make, count in cases:
        clock = time.process_time()
        system, q0, v0 = make(count)
        la.integrate(system, "simpson", q0=q0, v0=v0, h=h, steps=1)
        first = time.process_time() - clock

        def run(steps: int) -> la.Path:
            return la.integrate(system, "simpson", q0=q0, v0=v0, h=h, steps=steps, every=steps)  # noqa: B023

        cost, spent, _ = per_step(run, 40, 2)
        print(f"| {name} | {count} | {first:.1f} | {cost * 1e3:.2f} | {cost / count * 1e6:.1f} | {spent:.1f} |")


def stiff() -> None:
    print("\n| stiff chains, ω h = 20, P2N2Q4Gau | masses | ms a step | iterations |\n|---|---|---|---|")
    for n in (10**3, 10**4, 10**5):
        i = np.arange(n - 1)
        springs = la.Term(
            lambda q, v: -0.5e4 * (q[1] - q[0]) ** 2 - 50.0 * (q[1] - q[0]) ** 4, over=np.stack([i, i + 1], 1)
        )
        system = la.Lagrangian.sum([la.Term(lambda q, v: 0.5 * v[0] ** 2, over=np.arange(n)), springs], n=n)
        q0 = np.sin(2 * np.pi * np.arange(n) / 200)

        def run(steps: int) -> la.Path:
            v0 = np.zeros(n)  # noqa: B023
            return la.integrate(system, "P2N2Q4Gau", q0=q0, v0=v0, h=0.1, steps=steps, every=steps)  # noqa: B023

        cost, spent, _ = per_step(run, 20, 1)
        print(f"| | {n:,} | {cost * 1e3:.2f} | {spent:.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer steps")
    given = parser.parse_args()
    first_step()  # first, since the memory of a process counts what its parent had
    chains(given.quick)
    bodies(given.quick)
    links(given.quick)
    stiff()
    print(f"\nmost memory of all: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
