"""Speed of ensembles and of stored runs, every figure from one run: `python benchmarks/ensemble.py`.

Runs are timed side by side: repeats are interleaved and the best of each is taken, since machines are noisy. Runs on
one core are compared by their processor time, threads and clusters by the clock. Prints tables in Markdown; `--quick`
does fewer repeats, `--only dask,threads` just those parts.
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
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np
from core import START, at, best, jax_step
from measured import table

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
    times = best(repeats, one=cpu(singles), lanes=ensemble())
    return {"one": times["one"] / 8 / STEPS * 1e6, "lanes": times["lanes"] / B / STEPS * 1e6, "count": lanes()}


def lanes() -> int:
    return la.ensemble(SYSTEM, "simpson", Q, REST, h=H, steps=1).stats["lanes"]


def one_core(repeats: int) -> None:
    """Simpson on the double pendulum, per trajectory and step: lanes, one trajectory, JAX's vmap."""
    paths = la.ensemble(SYSTEM, "simpson", Q, REST, h=H, steps=STEPS, final_only=True, threads=1)
    flip = la.Event(lambda q, p: np.cos(q[1] / 2))
    runs = {
        "one trajectory": (cpu(singles), 8 * STEPS),
        f"ensemble, {paths.stats['lanes']} lanes": (ensemble(), B * STEPS),
        "… with the energy's range": (ensemble(reduce={"E": la.EnergyRange()}), B * STEPS),
        "… with an event function": (ensemble(events={"flip": flip}), B * STEPS),
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
        "one core",
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
    table("processors", f"Kinds of processors: double pendulum, Simpson, {here()}", header, rows)


def drift(repeats: int) -> None:
    """Round-off over long times: 256 pendulums of order 6 at steps where truncation is far below ε."""
    system = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    steps, eps = 10**6, np.finfo(float).eps
    even = np.linspace(1.0, 2.0, 256)
    runs = [(h, even) for h in (2**-7, 0.0093, 0.01, 0.01 + 1e-9, 0.01 + 1e-7, 0.01003, 0.0101, 0.0105, 0.011, 0.0115)]
    # The even starts at 2⁻⁷ are 3.5 standard errors from zero: a bias, or chance? Four times as many other starts
    # decide.
    runs += [(0.012, even), (2**-6, even), (2**-7, np.random.default_rng(5).uniform(1.0, 2.0, 1024))]
    rows = []
    for h, start in runs:
        paths = la.ensemble(system, "P3N3Q6Gau", start, v0=[0.1], h=h, steps=steps, every=steps)
        E = paths.energy()
        error = (E[:, -1] - E[:, 0]) / eps
        mean = f"{error.mean():+.2f} ± {error.std() / len(start) ** 0.5:.2f}"
        rows.append([f"{h:.10g}", str(len(start)), mean, f"{error.std():.1f}"])
    header = ["h", "pendulums", "mean energy error, ε per 10⁶ steps", "scatter"]
    table("round-off", f"Pendulums, P3N3Q6Gau, {steps} steps", header, rows)


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


SMALL = 0.4 * Q  # regular motion, so that errors measure the method
LONG, SHORT = 1000.0, 20.0  # times of the energy errors and of the position errors
TIMED = 100.0  # the span that is timed: short, so that it fits into quiet moments
TOO_SLOW = 150e-6  # seconds per unit of time and trajectory
ROUND_OFF = 2e-15
ERRORS = (1e-6, 1e-8, 1e-10, 1e-12, 1e-14)
PEERS = ("heyoka", "heyoka with fast_math")
MEMBERS = {  # degree: how often the longest step is divided by the root of two
    2: range(2, 6), 3: range(2, 5), 4: range(7), 5: range(1, 7), 6: range(1, 7), 7: range(1, 7), 8: range(1, 6)
}  # fmt: skip


class Setting(NamedTuple):
    """A method with its step, or a tolerance: states (q, p) of all trajectories at a time, (B, 2) each."""

    side: str
    name: str
    states: Callable[[float], tuple[np.ndarray, np.ndarray]]


def ours(name: str, h: float) -> Setting:
    def states(t_end: float) -> tuple[np.ndarray, np.ndarray]:
        paths = la.ensemble(SYSTEM, name, SMALL, REST, h=h, t_end=t_end, every=10**9, threads=1)
        return paths.q[:, -1], paths.p[:, -1]

    return Setting("leastaction", f"{name}, h = {h:.3g}", states)


def candidates() -> Iterator[list[Setting]]:
    """Members, each with smaller and smaller steps: those at which it may be the best one."""
    for s, steps in MEMBERS.items():
        yield [ours(f"P{s}N{s}Q{2 * s}Gau", 0.04 * s / 2 ** (k / 2)) for k in steps]


def pendulums(hy, real: Callable[[float], object] = float) -> tuple[list, list]:
    """Hamilton's equations of the double pendulum, and their variables, for heyoka."""
    y = q0, q1, p0, p1 = hy.make_vars("q0", "q1", "p0", "p1")
    m, l, g = (real(SYSTEM.params[name]) for name in ("m", "l", "g"))
    c = hy.cos(q0 - q1)
    det = m * l * l * (2.0 - c * c)
    v0, v1 = (p0 - c * p1) / det, (2.0 * p1 - c * p0) / det
    s = m * l * l * v0 * v1 * hy.sin(q0 - q1)
    return [
        (q0, v0),
        (q1, v1),
        (p0, -s - 2.0 * m * g * l * hy.sin(q0)),
        (p1, s - m * g * l * hy.sin(q1)),
    ], y


def heyoka_batch(width: int, tolerance: float, fast_math: bool) -> Setting:
    """Taylor integration of Hamilton's equations, in batches; with fast_math its compiler may change orders of sums."""
    import heyoka as hy

    equations, _ = pendulums(hy)
    options = {"tol": tolerance, "compact_mode": False, "fast_math": fast_math}
    integrator = hy.taylor_adaptive_batch(equations, np.zeros((4, width)), **options)

    def states(t_end: float) -> tuple[np.ndarray, np.ndarray]:
        found = []
        for begin in range(0, B, width):
            integrator.set_time(0.0)
            integrator.state[:2], integrator.state[2:] = SMALL[begin : begin + width].T, 0.0
            integrator.propagate_until(t_end)
            found.append(integrator.state.T.copy())
        y = np.concatenate(found)
        return y[:, :2].copy(), y[:, 2:].copy()

    side = PEERS[fast_math]
    return Setting(side, f"{side}: batches of {width}, tolerance {tolerance:.0e}", states)


def true_places() -> np.ndarray:
    """q at t = SHORT, from heyoka's Taylor method in 80 bits, one trajectory after the other."""
    import heyoka as hy

    equations, _ = pendulums(hy, np.longdouble)
    integrator = hy.taylor_adaptive(equations, np.zeros(4, np.longdouble), fp_type=np.longdouble)
    found = []
    for q in SMALL:
        integrator.time = np.longdouble(0)
        integrator.state[:] = [*q, 0, 0]
        integrator.propagate_until(np.longdouble(SHORT))
        found.append(integrator.state[:2].astype(float))
    return np.array(found)


def errors_of(setting: Setting, places: np.ndarray) -> tuple[float, float]:
    """Medians over the trajectories: the relative energy error at t = LONG, the error of position at t = SHORT."""
    q, p = setting.states(LONG)
    if not np.isfinite(q).all():  # steps too coarse to be solved
        return np.inf, np.inf
    energy = np.abs(SYSTEM.energy(q, p) / SYSTEM.energy(SMALL, REST) - 1)
    return float(np.median(energy)), float(np.median(np.abs(setting.states(SHORT)[0] - places)))


def work_precision(repeats: int, width: int | None) -> dict:
    """Errors and µs per unit of time and trajectory of both sides, as JSON takes them."""
    import heyoka as hy

    width = width or hy.recommended_simd_size()
    places = true_places()
    # name → setting, energy error, position error, seconds
    known: dict[str, tuple[Setting, float, float, float]] = {}
    digits = (6, 8, 9, 10, 12, 13, 14, 15, 16, 18)
    for setting in [heyoka_batch(width, 10.0**-k, fast_math) for fast_math in (False, True) for k in digits]:
        setting.states(SHORT)
        known[setting.name] = setting, *errors_of(setting, places), cpu(partial(setting.states, TIMED))()
    for family in candidates():
        lost, slow = 0, 0
        for setting in family:
            setting.states(1.0)  # compiles
            if cpu(partial(setting.states, SHORT))() > TOO_SLOW * B * SHORT:
                slow += 1  # perhaps since the step is too coarse
                if slow > 2:
                    break
                continue
            seconds = cpu(partial(setting.states, TIMED))()
            energy, place = errors_of(setting, places)
            mine = [entry for entry in known.values() if entry[0].side == setting.side]
            worse = (max(e / energy, p / place) < 1 and 2 * t < seconds for _, e, p, t in mine)
            lost += any(worse) or max(energy, place) < ROUND_OFF
            if lost > 2:
                break
            if np.isfinite(energy):
                known[setting.name] = setting, energy, place, seconds
    times = best(repeats, **{name: cpu(partial(entry[0].states, TIMED)) for name, entry in known.items()})
    return {
        "width": width,
        "lanes": lanes(),
        "rows": [
            [entry[0].side, name, times[name] / (B * TIMED) * 1e6, entry[1], entry[2]] for name, entry in known.items()
        ],
    }


def against_heyoka(repeats: int) -> None:
    """Work against precision of lanes and of heyoka's batches, on one core, for this processor and for x86-64-v3.

    heyoka cannot be held to a kind of processor, but its batches can be as wide as the lanes are.
    """
    try:
        import heyoka  # noqa: F401
    except ImportError:
        print("(heyoka is not installed: pip install --group bench)")
        return
    for kind in ("native", "x86-64-v3"):
        count = _lanes(kind)
        if kind != "native" and count == _lanes("native"):
            print(
                "\n(This processor has as many lanes as x86-64-v3: holding the compiler to that kind is not measured.)"
            )
            return
        width = [] if kind == "native" else ["--width", str(count)]
        _print_work_precision(kind, _child(kind, "--work-precision", str(repeats), *width))


def _child(kind: str, *arguments: str) -> dict:
    """What this script prints as JSON in a process of its own, with the compiler held to a kind of processor."""
    command, environment = [sys.executable, __file__, *arguments], {**os.environ, "LEASTACTION_CPU": kind}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{kind}: {done.stderr}")
    return json.loads(done.stdout)


def _lanes(kind: str) -> int:
    return int(_child(kind, "--lanes")["lanes"])


def _print_work_precision(kind: str, found: dict) -> None:
    rows = [[name, f"{t:.2f}", f"{energy:.1e}", f"{place:.1e}"] for _, name, t, energy, place in found["rows"]]
    header = ["method", "µs per unit of time and trajectory", f"median relative energy error at t = {LONG:g}"]
    title = f"{kind}, {found['lanes']} lanes, one core, {B} double pendulums, {here()}"
    table(f"against heyoka, {kind}", title, [*header, f"median error of position at t = {SHORT:g}"], rows)
    rows = []
    for what, column in (("energy", 3), ("position", 4)):
        costs = {
            side: [least(e, [row for row in found["rows"] if row[0] == side], column) for e in ERRORS]
            for side in ("leastaction", *PEERS)
        }
        for side, values in costs.items():
            rows.append([f"{what}: {side}, µs", *("not reached" if t is None else f"{t:.2f}" for t in values)])
        for peer in PEERS:
            pairs = zip(costs["leastaction"], costs[peer], strict=True)
            ratios = ("" if None in pair else f"{pair[0] / pair[1]:.2f}" for pair in pairs)
            rows.append([f"{what}: leastaction / {peer}", *ratios])
    title = f"{kind}: both sides at the same error, each member interpolated between its steps"
    table(f"same error, {kind}", title, ["error of", *(f"{e:.0e}" for e in ERRORS)], rows)


def least(error: float, rows: list[list], column: int) -> float | None:
    """The least time that this error takes: between two steps of one member, or two tolerances, there are others, so
    each member is interpolated by itself.
    """
    families: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        families.setdefault(row[1].split(", ")[0], []).append((row[column], row[2]))
    times = [at(error, points) for points in families.values()]
    return min((t for t in times if t is not None), default=None)


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
    table("threads", title, ["run", "seconds", "one thread / it", "processor seconds"], rows)


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
    from leastaction.run.cluster import CHUNKS_PER_THREAD

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
    table("cluster", title, header, rows)


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
    table("storing", "Storing", header, rows)


PARTS = (one_core, processors, against_heyoka, threads, dask, storing, drift)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = [part.__name__ for part in PARTS]
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--only", default=",".join(names), help="parts, with commas between: %(default)s")
    parser.add_argument("--rates", type=int, metavar="REPEATS", help="one trajectory and lanes alone, as JSON")
    parser.add_argument("--lanes", action="store_true", help="how many lanes there are, as JSON")
    parser.add_argument("--work-precision", type=int, metavar="REPEATS", help="against heyoka alone, as JSON")
    parser.add_argument("--width", type=int, help="trajectories in a batch of heyoka's, unless it may choose")
    options = parser.parse_args()
    if options.rates:
        print(json.dumps(rates(options.rates)))
        return
    if options.lanes:
        print(json.dumps({"lanes": lanes()}))
        return
    if options.work_precision:
        print(json.dumps(work_precision(options.work_precision, options.width)))
        return
    asked = options.only.split(",")
    if unknown := set(asked) - set(names):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    for part in PARTS:
        if part.__name__ in asked:
            part(2 if options.quick else 5)


if __name__ == "__main__":
    main()
