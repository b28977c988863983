"""Speed and size of the core, every figure from one run: `make bench`.

Runs are timed side by side: repeats are interleaved and the best of each is taken, since machines are noisy. Prints
tables in Markdown; `--quick` does fewer repeats.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from measured import table

import leastaction as la
from leastaction.run.drive import at_work, prepare
from leastaction.run.plan import plan_run
from leastaction.run.standing import Standing

HERE = Path(__file__).parent
START = {"q0": [np.pi / 4, np.pi / 3], "v0": [0.0, 0.0], "h": 0.01}


def double_pendulum(q, v, m, l, g):
    T = m * l**2 * (v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * np.cos(q[0] - q[1]))
    V = -m * g * l * (2 * np.cos(q[0]) + np.cos(q[1]))
    return T - V


def chain(q, v, g):
    """n equal links with a mass at each joint: positions are running sums along the chain."""
    x, y = np.cumsum(np.cos(q) * v), np.cumsum(np.sin(q) * v)
    return 0.5 * np.sum(x**2 + y**2) + g * np.sum(np.cumsum(np.cos(q)))


SYSTEM = la.Lagrangian(double_pendulum, n=2, params={"m": 1.0, "l": 0.25, "g": 9.81})


def best(repeats: int, **runs: Callable[[], float]) -> dict[str, float]:
    """The least time of each run, the runs taking turns."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            times[name].append(run())
    return {name: min(values) for name, values in times.items()}


def processor_seconds(call: Callable[[], object]) -> float:
    """Processor time of a call: unlike the clock, it does not count the time of other processes."""
    clock = time.process_time()
    call()
    return time.process_time() - clock


def per_step(run: Callable[[int], la.Path], steps: int) -> Callable[[], float]:
    """Seconds per step of run(steps), set-up left out.

    The smaller of two upper bounds counts: the time of the loop by the clock, which is right in quiet moments; and the
    processor time of the run less the least processor time of a run of one step, which is right in long runs.
    """
    set_up = min(processor_seconds(lambda: run(1)) for _ in range(3))

    def timed() -> float:
        nonlocal set_up
        set_up = min(set_up, processor_seconds(lambda: run(1)))
        clock = time.process_time()
        path = run(1 + steps)
        spent = time.process_time() - clock - set_up
        return min(spent / steps, path.stats["run_time"] / (1 + steps)) if spent > 0 else path.stats["time_per_step"]

    return timed


def steps_alone(
    problem: Any, method: str, h: float, steps: int, first: int = 0, pace: Any = None, until: float | None = None
) -> float:
    """Seconds of the processor of so many steps after the first ones, or of all until a time, without the preparation
    of a run and the return of its result.
    """
    how = {"steps": first + steps} if until is None else {"t_end": until}
    plan, starts = plan_run(problem.system, method, (problem.q0, problem.p0, None), h=h, every=0, pace=pace, **how)
    prepare(plan, starts)
    rows = np.zeros((1, 1, plan.row.width))
    stepper = at_work(plan, starts, Standing.begin(plan, starts))
    if first:
        stepper.advance(first, 0, 0, rows)
    return processor_seconds(lambda: stepper.advance(plan.steps - first, 0, 0, rows))


def at(error: float, points: Iterable[tuple[float, float]]) -> float | None:
    """The time that this error takes, from points (error, time); None if no point is as good.

    Only points that no other point beats in both count; between them the logarithms are interpolated by straight lines.
    """
    known = sorted(points)
    front = [(e, t) for i, (e, t) in enumerate(known) if all(t < other for _, other in known[:i])]
    if not front or error < front[0][0]:
        return None
    return float(np.exp(np.interp(np.log(error), *(np.log(column) for column in zip(*front, strict=True)))))


def single_trajectory(repeats: int) -> None:
    """Simpson on the double pendulum against C by hand and against JAX: Newton from the last parabola, prolonged."""
    steps = 200_000
    reference = la.integrate(SYSTEM, "simpson", **START, steps=steps)
    iterations = reference.stats["newton_iterations"] / steps
    with tempfile.TemporaryDirectory() as folder:

        def native(name: str, *flags: str) -> Callable[[], float]:
            program = Path(folder) / name
            source = HERE / "double_pendulum.c"
            subprocess.run(["gcc", "-O3", "-march=native", *flags, "-o", program, source, "-lm"], check=True)

            def run() -> float:
                out = subprocess.run([program, str(steps), "0.01"], check=True, capture_output=True, text=True).stdout
                seconds, q0, q1, count = out.split()
                if not flags:  # without -ffast-math: the same up to round-off; predictions save iterations
                    same = np.allclose([float(q0), float(q1)], reference.q[-1], rtol=0, atol=1e-6)
                    assert same and iterations <= int(count) / steps, out
                return float(seconds)

            return run

        ours = per_step(lambda count: la.integrate(SYSTEM, "simpson", **START, steps=count), steps)
        runs: dict[str, Callable[[], float]] = {
            "leastaction": lambda: ours() * steps,
            "C by hand, `gcc -O3 -march=native`": native("plain"),
            "the same with `-ffast-math`": native("fast", "-ffast-math"),
        }
        try:
            runs["JAX `lax.scan`, x64"] = jax_scan(20_000, scale=steps / 20_000, like=reference)
        except ImportError:
            print("(JAX is not installed: `make bench` installs it)")
        times = best(repeats, **runs)
    rows = [[name, f"{t / steps * 1e6:.3f}", f"{t / times['leastaction']:.2f}"] for name, t in times.items()]
    title = f"One trajectory: double pendulum, Simpson, h = 0.01, {iterations:.2f} Newton iterations per step"
    table("one trajectory", title, ["program", "µs per step", "time / leastaction"], rows)


def jax_step(solve: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], tuple[Any, Any, Any]]:
    """The same step in JAX, (q, p, z) ↦ (q, p, z): derivatives of the discrete Lagrangian, three Newton iterations."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    h = START["h"]

    def lagrangian(q, v):
        T = 0.25**2 * (v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * jnp.cos(q[0] - q[1]))
        return T + 9.81 * 0.25 * (2 * jnp.cos(q[0]) + jnp.cos(q[1]))

    def discrete(q, a, b):
        left = lagrangian(q, (-3 * q + 4 * a - b) / h)
        middle, right = lagrangian(a, (b - q) / h), lagrangian(b, (q - 4 * a + 3 * b) / h)
        return h * (left + 4 * middle + right) / 6

    def residual(z, q, p):
        d_left, d_middle = jax.grad(discrete, (0, 1))(q, q + z[:2], q + z[2:])
        return jnp.concatenate([p + d_left, d_middle])

    def step(q, p, z):
        z = jnp.concatenate([-3 * z[:2] + 2 * z[2:], -8 * z[:2] + 5 * z[2:]])
        for _ in range(3):
            z = z - solve(jax.jacfwd(residual)(z, q, p), residual(z, q, p))
        return q + z[2:], jax.grad(discrete, 2)(q, q + z[:2], q + z[2:]), z

    return step


def jax_scan(steps: int, scale: float, like: la.Path) -> Callable[[], float]:
    """The step of `jax_step`, in one scan."""
    import jax
    import jax.numpy as jnp

    one = jax_step(jnp.linalg.solve)

    def step(state, _):
        after = one(*state)
        return after, after[:2]

    run = jax.jit(lambda state: jax.lax.scan(step, state, length=steps))
    state = (jnp.array(START["q0"]), jnp.zeros(2), jnp.zeros(4))
    (q, _, _), _ = jax.block_until_ready(run(state))
    assert np.allclose(q, like.q[steps], rtol=0, atol=1e-6), "JAX computes something else"

    return lambda: processor_seconds(lambda: jax.block_until_ready(run(state))) * scale


def chain_child(n: int) -> None:
    """In a process of its own: from definition to first step, and the cost of a step."""
    clock = time.process_time()
    system = la.Lagrangian(chain, n=n, params={"g": 9.81})
    start = {"q0": np.linspace(0.5, 1.0, n), "v0": np.zeros(n), "h": 1e-3}
    la.integrate(system, "simpson", **start, steps=1)
    first = time.process_time() - clock
    step = per_step(lambda count: la.integrate(system, "simpson", **start, steps=count, every=count), 300)
    print(first, min(step() for _ in range(3)) * 1e6, len(system.node.code), peak_memory())


def peak_memory() -> float:
    """The most physical memory that this process has needed, in MB (Linux)."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def child(*arguments: str, cache: str) -> str:
    environment = {**os.environ, "LEASTACTION_CACHE": cache}
    command = [sys.executable, __file__, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def cost_against_size() -> None:
    """Chains of pendulums, each with an empty cache."""
    rows = []
    for n in (2, 5, 10, 20, 50):
        with tempfile.TemporaryDirectory() as cache:
            first, step, code, size = map(float, child("--chain", str(n), cache=cache).split())
            rows.append([str(n), f"{first:.2f}", f"{step:.1f}", f"{code:.0f}", f"{size:.0f}"])
    header = [
        "links",
        "definition to first step, s of the processor",
        "µs per step",
        "instructions at a point",
        "peak memory, MB",
    ]
    table("chains", "Chains of pendulums, Simpson, h = 0.001", header, rows)


def startup_child() -> None:
    path = la.integrate(SYSTEM, "simpson", **START, steps=1000)
    print(len(path))


def startup(repeats: int) -> None:
    """Import, and a first trajectory of 1,000 steps in a new process, whole, in processor time."""
    with tempfile.TemporaryDirectory() as bytecode:
        rest = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

        def process(*arguments: str, cache: str) -> Callable[[], float]:
            environment = {**rest, "PYTHONPYCACHEPREFIX": bytecode, "LEASTACTION_CACHE": cache}

            def run() -> float:
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

            return run

        def emptied(*arguments: str) -> Callable[[], float]:
            def run() -> float:
                with tempfile.TemporaryDirectory() as cold:
                    return process(*arguments, cache=cold)()

            return run

        with tempfile.TemporaryDirectory() as warm:
            process(__file__, "--startup", cache=warm)()
            times = best(
                repeats,
                **{
                    "python alone": process("-c", "pass", cache=warm),
                    "import numpy": process("-c", "import numpy", cache=warm),
                    "`import leastaction`": process("-c", "import leastaction", cache=warm),
                    "first 1,000 steps, warm cache": process(__file__, "--startup", cache=warm),
                    "first 1,000 steps, empty cache": emptied(__file__, "--startup"),
                },
            )
    table(
        "start-up",
        "Start-up, seconds of processor time, whole processes",
        ["what", "s"],
        [[name, f"{t:.2f}"] for name, t in times.items()],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--chain", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--startup", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.chain:
        chain_child(options.chain)
    elif options.startup:
        startup_child()
    else:
        repeats = 3 if options.quick else 9
        single_trajectory(repeats)
        cost_against_size()
        startup(min(repeats, 5))


if __name__ == "__main__":
    main()
