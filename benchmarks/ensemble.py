"""Speed of ensembles and of stored runs, every figure from one run: `python benchmarks/ensemble.py`.

Side by side, repeats interleaved and the best of each taken, since machines are noisy. What runs on one core is
compared by the processor time it takes, threads and clusters by the clock. Prints tables in Markdown; `--quick` does
fewer repeats, `--only dask,threads` just those parts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np
from core import START, best, jax_step, table

import leastaction as la


def double_pendulum(q, v, m, l, g):
    T = m * l**2 * (v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * np.cos(q[0] - q[1]))
    V = -m * g * l * (2 * np.cos(q[0]) + np.cos(q[1]))
    return T - V


SYSTEM = la.Lagrangian(double_pendulum, n=2, params={"m": 1.0, "l": 0.25, "g": 9.81})
B = 64
Q = np.random.default_rng(0).uniform(-1.2, 1.2, (B, 2))
REST = np.zeros((B, 2))
CHUNK_SECONDS = 1.2  # of a chunk on a cluster


def cpu(run: Callable[[], object]) -> Callable[[], float]:
    def timed() -> float:
        clock = time.process_time()
        run()
        return time.process_time() - clock

    return timed


def wall(run: Callable[[], object]) -> Callable[[], float]:
    def timed() -> float:
        clock = time.perf_counter()
        run()
        return time.perf_counter() - clock

    return timed


STEPS, H = 20_000, START["h"]


def ensemble(**options) -> Callable[[], float]:
    """Processor time of an ensemble on one core."""
    options = {"h": H, "steps": STEPS, "final_only": True, "threads": 1, **options}
    return cpu(lambda: la.ensemble(SYSTEM, "simpson", Q, REST, **options))


def singles() -> None:
    for q in Q[:8]:
        la.integrate(SYSTEM, "simpson", q, [0, 0], h=H, steps=STEPS, every=STEPS)


def rates(repeats: int) -> dict[str, float]:
    """µs per step of one trajectory, and of the lanes, side by side; and how many lanes there are."""
    lanes = la.ensemble(SYSTEM, "simpson", Q, REST, h=H, steps=1).stats["lanes"]
    times = best(repeats, one=cpu(singles), lanes=ensemble())
    return {"one": times["one"] / 8 / STEPS * 1e6, "lanes": times["lanes"] / B / STEPS * 1e6, "count": lanes}


def one_core(repeats: int) -> None:
    """Simpson on the double pendulum, per trajectory and step: lanes, one trajectory, JAX's vmap."""
    paths = la.ensemble(SYSTEM, "simpson", Q, REST, h=H, steps=STEPS, final_only=True, threads=1)
    flip = la.FirstCrossing(lambda q, p: np.cos(q[1] / 2))
    runs = {
        "one trajectory": (cpu(singles), 8 * STEPS),
        f"ensemble, {paths.stats['lanes']} lanes": (ensemble(), B * STEPS),
        "… with the energy's range": (ensemble(reduce={"E": la.EnergyRange()}), B * STEPS),
        "… with an event function": (ensemble(reduce={"flip": flip}), B * STEPS),
    }
    try:
        few, times_over = 200, 16  # JAX likes large batches better
        runs["JAX vmap"] = (jax_vmap(few, np.tile(Q, (times_over, 1))), times_over * B * few)
    except ImportError:
        print("(JAX is not installed: pip install --group bench)")
    times = best(repeats, **{name: run for name, (run, _) in runs.items()})
    cost = {name: times[name] / count * 1e6 for name, (_, count) in runs.items()}
    base = cost["one trajectory"]
    rows = [[name, f"{c:.3f}", f"{base / c:.1f}"] for name, c in cost.items()]
    table(
        f"One core: double pendulum, Simpson, h = 0.01, {here()}",
        ["run", "µs per step and trajectory", "one trajectory / it"],
        rows,
    )


def processors(repeats: int) -> None:
    """The same with the compiler held to other kinds of processors, each in a process of its own."""
    rows = []
    for kind in ("native", "x86-64-v3", "x86-64-v2"):
        command = [sys.executable, __file__, "--rates", str(repeats)]
        done = subprocess.run(
            command, env={**os.environ, "LEASTACTION_CPU": kind}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            rows.append([kind, done.stderr.splitlines()[-1], "", "", ""])
            continue
        found = json.loads(done.stdout)
        ratio = found["one"] / found["lanes"]
        rows.append([kind, str(found["count"]), f"{found['one']:.3f}", f"{found['lanes']:.3f}", f"{ratio:.2f}"])
    header = ["LEASTACTION_CPU", "lanes", "µs per step, one trajectory", "µs per step, lanes", "gain"]
    table(f"Kinds of processors: double pendulum, Simpson, {here()}", header, rows)


def drift(repeats: int) -> None:
    """Round-off over long times: 256 pendulums of order 6 at steps where truncation is far below ε."""
    system = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    steps, eps = 10**6, np.finfo(float).eps
    even = np.linspace(1.0, 2.0, 256)
    runs = [(h, even) for h in (2**-7, 0.0093, 0.01, 0.01 + 1e-9, 0.01 + 1e-7, 0.01003, 0.0101, 0.0105, 0.011, 0.0115)]
    # The even starts at 2⁻⁷ are 3.5 standard errors from zero: a bias, or their chance? Four times as many others tell.
    runs += [(0.012, even), (2**-6, even), (2**-7, np.random.default_rng(5).uniform(1.0, 2.0, 1024))]
    rows = []
    for h, start in runs:
        paths = la.ensemble(system, "P3N3Q6Gau", start, v0=[0.1], h=h, steps=steps, every=steps)
        E = paths.energy()
        error = (E[:, -1] - E[:, 0]) / eps
        mean = f"{error.mean():+.2f} ± {error.std() / len(start) ** 0.5:.2f}"
        rows.append([f"{h:.10g}", str(len(start)), mean, f"{error.std():.1f}"])
    header = ["h", "pendulums", "mean energy error, ε per 10⁶ steps", "scatter"]
    table(f"Pendulums, P3N3Q6Gau, {steps} steps", header, rows)


def jax_vmap(steps: int, start: np.ndarray) -> Callable[[], float]:
    """The same scheme in JAX, one loop of vmaps."""
    import jax
    import jax.numpy as jnp

    def solve(A, b):
        """Gaussian elimination, written out: faster here than jnp.linalg.solve on many small matrices."""
        rows = [[*(A[i, j] for j in range(4)), b[i]] for i in range(4)]
        for k in range(4):
            rows[k] = [x / rows[k][k] for x in rows[k]]
            for i in range(4):
                if i != k:
                    rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
        return jnp.stack([row[4] for row in rows])

    many = jax.vmap(jax_step(solve))
    run = jax.jit(lambda state: jax.lax.fori_loop(0, steps, lambda _, s: many(*s), state))
    state = (jnp.array(start), jnp.zeros((len(start), 2)), jnp.zeros((len(start), 4)))
    found = np.asarray(jax.block_until_ready(run(state))[0])
    ours = la.ensemble(SYSTEM, "simpson", start, [0, 0], h=H, steps=steps, final_only=True).q[:, 0]
    assert np.allclose(found, ours, rtol=0, atol=1e-6), "JAX computes something else"
    return cpu(lambda: jax.block_until_ready(run(state)))


def against_heyoka(repeats: int) -> None:
    """Processor time against the energy error at t = 1000, one core, many trajectories."""
    t_end = 1000.0
    small = 0.4 * Q  # regular motion, so that errors measure the method
    runs: dict[str, Callable[[], np.ndarray]] = {}

    def ours(name: str, h: float) -> Callable[[], np.ndarray]:
        def run() -> np.ndarray:
            paths = la.ensemble(SYSTEM, name, small, REST, h=h, t_end=t_end, every=10**9, threads=1)
            E = paths.energy()
            return np.abs(E[:, -1] / E[:, 0] - 1)

        return run

    for name, h in (
        ("simpson", 0.05),
        ("simpson", 0.01),
        ("P3N3Q6Gau", 0.1),
        ("P3N3Q6Gau", 0.05),
        ("P4N4Q8Gau", 0.1),
        ("P4N4Q8Gau", 0.05),
        ("P4N4Q8Gau", 0.02),
    ):
        runs[f"{name}, h = {h}"] = ours(name, h)
    try:
        import heyoka

        width = heyoka.recommended_simd_size()
        for tolerance in (1e-6, 1e-9, 1e-12, 1e-15):
            runs[f"heyoka, batches of {width}, tolerance {tolerance:.0e}"] = heyoka_batch(
                small, t_end, width, tolerance
            )
    except ImportError:
        print("(heyoka is not installed: pip install --group bench)")
    errors = {name: np.median(run()) for name, run in runs.items()}
    times = best(repeats, **{name: cpu(run) for name, run in runs.items()})
    rows = [[name, f"{times[name] / (B * t_end) * 1e6:.2f}", f"{errors[name]:.1e}"] for name in runs]
    header = ["method", "µs per unit of time and trajectory", "median relative energy error at t = 1000"]
    table("One core, 64 double pendulums over 1000 s", header, rows)


def heyoka_batch(start: np.ndarray, t_end: float, width: int, tolerance: float) -> Callable[[], np.ndarray]:
    """Taylor integration of Hamilton's equations, in batches."""
    import heyoka as hy

    q0, q1, p0, p1 = hy.make_vars("q0", "q1", "p0", "p1")
    m, l, g = 1.0, 0.25, 9.81
    c = hy.cos(q0 - q1)
    det = m * l**2 * (2.0 - c * c)
    v0, v1 = (p0 - c * p1) / det, (2.0 * p1 - c * p0) / det
    s = m * l**2 * v0 * v1 * hy.sin(q0 - q1)
    equations = [
        (q0, v0),
        (q1, v1),
        (p0, -s - 2 * m * g * l * hy.sin(q0)),
        (p1, s - m * g * l * hy.sin(q1)),
    ]
    integrator = hy.taylor_adaptive_batch(equations, np.zeros((4, width)), tol=tolerance, compact_mode=False)

    def run() -> np.ndarray:
        errors = []
        for begin in range(0, B, width):
            q = start[begin : begin + width].T
            integrator.set_time(0.0)
            integrator.state[:2], integrator.state[2:] = q, 0.0
            integrator.propagate_until(t_end)
            y = integrator.state
            first = SYSTEM.energy(q.T.copy(), np.zeros_like(q.T))
            errors.append(np.abs(SYSTEM.energy(y[:2].T.copy(), y[2:].T.copy()) / first - 1))
        return np.concatenate(errors)

    return run


def many(steps: int, size: int) -> Callable[..., Callable[[], float]]:
    """Clocked runs of so many double pendulums for so many steps, with the options of `la.ensemble`."""
    start = np.random.default_rng(1).uniform(-1.2, 1.2, (size, 2))

    def run(**options) -> Callable[[], float]:
        return wall(
            lambda: la.ensemble(SYSTEM, "simpson", start, [0, 0], h=0.01, steps=steps, final_only=True, **options)
        )

    return run


def here() -> str:
    return f"{os.cpu_count()} cores here, load {os.getloadavg()[0]:.1f}"


def threads(repeats: int) -> None:
    """Two threads against one, by the clock; the processor time shows whether threads cost any."""
    steps, size = 4000, 2048
    run, title = many(steps, size), f"Threads: {size} double pendulums, {steps} steps, {here()}"
    runs = {"1 thread": run(threads=1), "2 threads": run(threads=2)}
    runs["1 thread"]()  # compiled
    times = best(repeats, **runs)
    spent = {name: cpu(timed)() for name, timed in runs.items()}
    rows = [[name, f"{t:.2f}", f"{times['1 thread'] / t:.2f}", f"{spent[name]:.2f}"] for name, t in times.items()]
    table(title, ["run", "seconds", "one thread / it", "processor seconds"], rows)


def dask(repeats: int) -> None:
    """What a Dask cluster on this machine costs beyond as many threads, with chunks of a second or more.

    The number of steps is chosen so that a chunk takes CHUNK_SECONDS on one thread. The work is the
    same on both sides, so that the difference is Dask's: serialising, scheduling, and moving results.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        print("(distributed is not installed: pip install 'leastaction[dask]')")
        return
    from leastaction.many.cluster import CHUNKS_PER_THREAD

    in_chunk, trial = 256, 20_000
    title = f"Dask: chunks of about {CHUNK_SECONDS} s, {here()}"
    probe = many(trial, in_chunk)(threads=1)
    probe()  # compiled
    steps = int(trial * CHUNK_SECONDS / min(probe() for _ in range(3)))
    rows = []
    for workers in (1, 2):
        chunks = CHUNKS_PER_THREAD * workers
        run = many(steps, in_chunk * chunks)
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            client.wait_for_workers(workers)
            many(1, in_chunk * chunks)(client=client)()  # compiled there
            times = best(repeats, threads=run(threads=workers), dask=run(client=client))
        local, remote = times["threads"], times["dask"]
        overhead = f"{100 * (remote / local - 1):+.1f} %"
        rows.append(
            [str(workers), str(chunks), f"{local * workers / chunks:.2f}", f"{local:.2f}", f"{remote:.2f}", overhead]
        )
    header = ["workers, or threads", "chunks", "seconds per chunk", "seconds, threads", "seconds, Dask", "overhead"]
    table(title, header, rows)


def storing(repeats: int) -> None:
    """What streaming to Zarr costs a path and an ensemble that keep every 100th step, and their memory."""
    with tempfile.TemporaryDirectory() as folder:
        names = iter(range(10**6))

        def path(steps: int, stored: bool = True) -> la.Path:
            return la.integrate(SYSTEM, "simpson", Q[0], [0, 0], h=0.01, steps=steps, every=100, store=new(stored))

        def paths(steps: int, stored: bool = True, size: int = B, every: int = 100) -> la.Paths:
            options = {"h": 0.01, "steps": steps, "every": every, "store": new(stored), "threads": 1}
            return la.ensemble(SYSTEM, "simpson", Q[:size], REST[:size], **options)

        def new(stored: bool) -> Path | None:
            return Path(folder) / f"{next(names)}.zarr" if stored else None

        def peak(run: Callable[[], object]) -> str:
            tracemalloc.start()
            run()
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return f"{most / 1e6:.1f}"

        rows = []
        for title, run, steps, kept in (
            ("a path, 10⁶ steps", path, 10**6, [lambda steps=10**k: path(steps) for k in (6, 7)]),
            # Enough rows to fill blocks: every step of a few trajectories.
            (f"{B} trajectories, 3·10⁵ steps", paths, 300_000, [lambda n=10**k: paths(n, True, 8, 1) for k in (5, 6)]),
        ):
            run(1000)
            times = best(repeats, memory=cpu(partial(run, steps, False)), zarr=cpu(partial(run, steps)))
            ratio = f"{times['zarr'] / times['memory']:.2f}"
            peaks = ", ".join(peak(each) for each in kept)
            rows.append([title, f"{times['memory']:.2f}", f"{times['zarr']:.2f}", ratio, peaks])
    header = [
        "every 100th step of",
        "processor seconds in memory",
        "with store=",
        "ratio",
        "MB at most, and ten times as long",
    ]
    table("Storing", header, rows)


PARTS = (one_core, processors, against_heyoka, threads, dask, storing, drift)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = [part.__name__ for part in PARTS]
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--only", default=",".join(names), help="parts, with commas between: %(default)s")
    parser.add_argument("--rates", type=int, metavar="REPEATS", help="one trajectory and lanes alone, as JSON")
    options = parser.parse_args()
    if options.rates:
        print(json.dumps(rates(options.rates)))
        return
    asked = options.only.split(",")
    if unknown := set(asked) - set(names):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    for part in PARTS:
        if part.__name__ in asked:
            part(2 if options.quick else 5)


if __name__ == "__main__":
    main()
