"""Work against precision, single trajectories, beside other programs: `python benchmarks/peers.py`.

Against heyoka (Taylor series), REBOUND (IAS15, WHFast, leapfrog), SciPy (DOP853) and diffrax (Dopri8), one core each,
on the motions of motions.py; errors of position by references.py. A program is as good as its best settings: only
settings count that no other setting beats in both error and time. Times are of the processor, for one unit of the
motion's time, without compilation and set-up on any side: for the library the steps in the native loop count, without
the first one, for the others the call that integrates. The best settings of all programs are measured again, in turns,
and the best of each is taken. Prints tables in Markdown and draws docs/figures/peers.png; `--only kepler,pleiades` does
just these motions, and `--quick` fewer repeats. heyoka stands there twice: as it comes, and with
fast_math=True, an option that lets its compiler change the order of sums.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one core for everyone

import numpy as np
from core import at, processor_seconds, steps_alone
from measured import kept, table
from motions import SAMPLES, Motion, motions
from numpy.typing import NDArray
from references import reference

import leastaction as la

FIGURE = Path(__file__).parent.parent / "docs" / "figures" / "peers.png"
ERRORS = (1e-6, 1e-8, 1e-10, 1e-12, 1e-14)
DEGREES = (8, 6, 10, 12, 4, 5, 3, 2, 14, 16)  # the likely ones first: others end early where they are far behind
SECONDS = 0.01  # about how long a timed run takes at least: short enough for quiet moments
PATIENCE = 1.5  # seconds for the repeats of one setting
WORST = 1e-2  # larger errors are of no interest
ROUND_OFF = 5e-15  # errors below this count as equal
FAST = "heyoka, fast_math"
ALIKE = 9  # settings that differ by little, whose median error counts where errors are round-off


@dataclass(frozen=True)
class Run:
    """A program with its settings on a motion: where it says the motion is, and how long it takes."""

    program: str
    settings: str
    places: Callable[[], NDArray[np.float64]]  # (SAMPLES, n)
    seconds: Callable[[], float]  # for one unit of time
    alike: tuple[Callable[[], NDArray[np.float64]], ...] = ()  # places with settings that differ by little


@dataclass(frozen=True)
class Point:
    run: Run
    error: float
    seconds: float


# leastaction ---------------------------------------------------------------------------------------------------------


def ours(motion: Motion, s: int, quarters: int) -> Run:
    """PsNsQ2sGau; four `quarters` halve the longest step."""
    h = s * motion.stage * 2 ** (-quarters / 4)
    steps = SAMPLES * max(1, int(np.ceil(motion.span / h / SAMPLES)))
    h, problem, name = motion.span / steps, motion.problem, f"P{s}N{s}Q{2 * s}Gau"
    run = partial(la.integrate, problem.system, name, problem.q0, problem.p0)
    # Timed over the span, or longer until SECONDS are full, but not longer than the others are timed. The first step,
    # which has no step before it to be predicted from, belongs to the set-up.
    timed = partial(steps_alone, problem, name, h, first=1)
    times = int(np.clip(SECONDS / timed(steps), 1, max(1, motion.timed / motion.span)))

    def places(more: int = 0) -> NDArray[np.float64]:
        number = steps + SAMPLES * more
        return run(h=motion.span / number, steps=number, every=number // SAMPLES).q[1:]

    def seconds() -> float:
        return timed(times * steps) / (times * steps * h)

    alike = tuple(partial(places, more) for more in range(ALIKE))
    return Run("leastaction", f"{name}, h = {h:.3g}", places, seconds, alike)


def ours_all(motion: Motion, exact: NDArray[np.float64]) -> Iterator[Point]:
    """Members with steps that shrink by √2, each until it is far behind what is known while its time grows, or until it
    gains no more. Steps so coarse that they are continued take longer than finer ones: these are not the end. Then
    steps between those of the best settings: an error of order 16 differs by 256 from one setting to the next, where
    tolerances of heyoka differ by ten.
    """
    known: dict[tuple[int, int], Point] = {}
    for s in DEGREES:
        before, last, lost = np.inf, np.inf, 0
        for quarters in range(0, 48, 2):
            point = _tried(motion, exact, s, quarters)
            if point is None:
                continue
            error, seconds = point.error, point.seconds
            behind = any(p.error <= max(error, ROUND_OFF) and 3 * p.seconds < seconds for p in known.values())
            lost, last = lost + (behind and seconds > last), seconds
            lost += error < 1e-12 and error > before / 1.5
            if lost > 1:
                break
            before = min(before, error)
            known[s, quarters] = point
            yield point
    good = front([*known.values()], 1.25)
    between = {(s, quarters + k) for (s, quarters), point in known.items() if point in good for k in (-1, 1)}
    for s, quarters in sorted(between):
        point = _tried(motion, exact, s, quarters) if quarters >= 0 else None
        if point is not None:
            yield point


def _tried(motion: Motion, exact: NDArray[np.float64], s: int, quarters: int) -> Point | None:
    """A setting of ours, measured once; None where a step cannot be solved."""
    try:
        run = ours(motion, s, quarters)
        return Point(run, motion.error(run.places(), exact), run.seconds())
    except la.StepFailed:
        return None


# Others --------------------------------------------------------------------------------------------------------------


class Heyokas:
    """The functions that fields call, for heyoka's expressions."""

    def __init__(self) -> None:
        import heyoka

        self.sin, self.cos, self.number = heyoka.sin, heyoka.cos, float

    def inverse_cube(self, square: Any) -> Any:
        return square**-1.5


def heyoka(motion: Motion, fast_math: bool = False) -> Iterator[Run]:
    import heyoka as hy

    y = hy.make_vars(*(f"y{i}" for i in range(len(motion.start))))
    equations = [*zip(y, motion.field(Heyokas(), y), strict=True)]  # for bodies, as fast as heyoka's model.nbody
    for digits in range(4, 19):
        options = {"tol": 10.0**-digits, "compact_mode": False, "fast_math": fast_math}
        integrator = hy.taylor_adaptive(equations, motion.start.copy(), **options)

        def restart(integrator: Any = integrator) -> None:
            integrator.time = 0.0
            integrator.state[:] = motion.start

        def places(integrator: Any = integrator, restart: Callable[[], None] = restart) -> NDArray[np.float64]:
            restart()
            found = []
            for t in motion.times:
                integrator.propagate_until(t)
                found.append(integrator.state[: motion.n].copy())
            return np.array(found)

        def seconds(integrator: Any = integrator, restart: Callable[[], None] = restart) -> float:
            restart()
            return processor_seconds(lambda: integrator.propagate_until(motion.timed)) / motion.timed

        yield Run(FAST if fast_math else "heyoka", f"tolerance 1e-{digits}", places, seconds)


def rebound(motion: Motion) -> Iterator[Run]:
    """IAS15 at its own accuracy and coarser ones; leapfrog; WHFast, except where its Kepler solver is exact."""
    import rebound as rb

    if not motion.masses and motion.name != "kepler":
        return
    masses = motion.masses or (1.0, 0.0)  # Kepler: a body without mass about a fixed one
    dimensions = motion.n // len(motion.masses or (1.0,))
    at_rest = len(masses) - motion.n // dimensions

    def simulation(integrator: str, dt: float | None, settings: dict[str, Any]) -> Any:
        sim = rb.Simulation()
        sim.G = motion.G
        state = motion.start.reshape(2, -1, dimensions)
        for k, m in enumerate(masses):
            place, speed = (
                np.zeros((2, 3)) if k < at_rest else np.pad(state[:, k - at_rest], ((0, 0), (0, 3 - dimensions)))
            )
            names = ("x", "y", "z", "vx", "vy", "vz")
            sim.add(m=m, **dict(zip(names, map(float, (*place, *speed)), strict=True)))
        sim.integrator = integrator
        for name, value in settings.items():
            setattr(sim.integrator, name, value)
        if dt:
            sim.dt = dt
        return sim

    def run(
        label: str, integrator: str, dt: float | None, alike: Sequence[dict[str, Any]] = (), **settings: Any
    ) -> Run:
        def places(settings: dict[str, Any] = settings) -> NDArray[np.float64]:
            sim, found = simulation(integrator, dt, settings), []
            for t in motion.times:
                sim.integrate(float(t))
                found.append([p.xyz[:dimensions] for p in sim.particles[at_rest:]])
            return np.array(found).reshape(SAMPLES, motion.n)

        def seconds() -> float:
            sim = simulation(integrator, dt, settings)
            return processor_seconds(lambda: sim.integrate(motion.span)) / motion.span

        words = [f"{name} = {value}" for name, value in settings.items()] + ([f"h = {dt:.3g}"] if dt else [])
        near = tuple(partial(places, other) for other in alike)
        return Run(f"REBOUND {label}", ", ".join(words) or "as it comes", places, seconds, near)

    near = [{"epsilon": 1e-9 * 2 ** (k / 4)} for k in range(-(ALIKE // 2), ALIKE // 2 + 1)]  # its own is 1e-9
    yield run("IAS15", "ias15", None, near)
    for epsilon in (1e-7, 1e-5):
        yield run("IAS15", "ias15", None, epsilon=epsilon)
    for halves in range(4, 13, 2):
        steps = SAMPLES * int(np.ceil(motion.span / (motion.stage * 2.0**-halves) / SAMPLES))
        yield run("leapfrog", "leapfrog", motion.span / steps)
        yield run("leapfrog", "leapfrog", motion.span / steps, order=8)
    if motion.name == "outer-solar-system":
        for halves in range(0, 9, 2):
            dt = motion.span / (SAMPLES * int(np.ceil(motion.span / (motion.stage * 2.0**-halves) / SAMPLES)))
            yield run("WHFast", "whfast", dt, safe_mode=0)
            yield run("WHFast", "whfast", dt, safe_mode=0, corrector=17)


@cache
def numba_field(name: str) -> Callable[..., NDArray[np.float64]]:
    """The field as machine code, f(t, y)."""
    import numba
    import sympy as sp

    motion = motions()[name]

    class Symbols:
        sin, cos, number = sp.sin, sp.cos, float

        @staticmethod
        def inverse_cube(square: Any) -> Any:
            return 1 / (square * sp.sqrt(square))

    y = sp.symbols(f"y:{len(motion.start)}")
    replaced, results = sp.cse(motion.field(Symbols, y))
    lines = [f"{name} = y[{i}]" for i, name in enumerate(y)]
    lines += [f"{name} = {sp.pycode(value)}" for name, value in replaced]
    lines += ["out = np.empty_like(y)", *(f"out[{i}] = {sp.pycode(value)}" for i, value in enumerate(results))]
    scope: dict[str, Any] = {"np": np, "math": __import__("math")}
    exec("def field(t, y):\n    " + "\n    ".join(lines) + "\n    return out", scope)
    return numba.njit(scope["field"])


def scipy(motion: Motion) -> Iterator[Run]:
    from scipy.integrate import solve_ivp

    field = numba_field(motion.name)
    field(0.0, motion.start)
    for digits in range(3, 14, 2):
        options = {"method": "DOP853", "rtol": 10.0**-digits, "atol": 10.0 ** -(digits + 2)}

        def places(options: dict[str, Any] = options) -> NDArray[np.float64]:
            y, found = motion.start, []
            for begin, end in zip((0.0, *motion.times[:-1]), motion.times, strict=True):
                y = solve_ivp(field, (begin, end), y, **options).y[:, -1]
                found.append(y[: motion.n])
            return np.array(found)

        def seconds(options: dict[str, Any] = options) -> float:
            return (
                processor_seconds(lambda: solve_ivp(field, (0.0, motion.span), motion.start, **options)) / motion.span
            )

        yield Run("SciPy DOP853", f"rtol 1e-{digits}", places, seconds)


def diffrax(motion: Motion) -> Iterator[Run]:
    import diffrax as dfx
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    class Arrays:
        sin, cos, number = jnp.sin, jnp.cos, float

        @staticmethod
        def inverse_cube(square: Any) -> Any:
            return 1 / (square * jnp.sqrt(square))

    term = dfx.ODETerm(lambda t, y, args: jnp.stack(motion.field(Arrays, [y[i] for i in range(len(motion.start))])))
    for digits in range(4, 15, 2):
        controller = dfx.PIDController(rtol=10.0**-digits, atol=10.0 ** -(digits + 2))

        @jax.jit
        def advance(y: Any, begin: float, end: float, controller: Any = controller) -> Any:
            solution = dfx.diffeqsolve(
                term, dfx.Dopri8(), begin, end, None, y, stepsize_controller=controller, max_steps=10**6
            )
            return solution.ys[-1]

        def places(advance: Any = advance) -> NDArray[np.float64]:
            y, found = jnp.array(motion.start), []
            for begin, end in zip((0.0, *motion.times[:-1]), motion.times, strict=True):
                y = advance(y, begin, float(end))
                found.append(np.asarray(y)[: motion.n])
            return np.array(found)

        def seconds(advance: Any = advance) -> float:
            start = jnp.array(motion.start)
            return processor_seconds(lambda: advance(start, 0.0, motion.span).block_until_ready()) / motion.span

        yield Run("diffrax Dopri8", f"rtol 1e-{digits}", places, seconds)


# The comparison ------------------------------------------------------------------------------------------------------


def front(points: list[Point], slack: float = 1.0) -> list[Point]:
    """The points that no other beats in both error and time, by increasing time; with slack, also points near them."""
    return sorted(
        (p for p in points if not any(o.error <= p.error and slack * o.seconds < p.seconds for o in points)),
        key=lambda p: p.seconds,
    )


def cost(points: list[Point], error: float) -> float | None:
    """Seconds per unit of time at this error, with the best settings."""
    return at(error, [(p.error, p.seconds) for p in points])


def measure(motion: Motion, peers: dict[str, Callable[[Motion], Iterator[Run]]], repeats: int) -> list[Point]:
    exact, points = reference(motion), [*ours_all(motion, reference(motion))]
    for name, peer in peers.items():
        try:
            for run in peer(motion):
                error = motion.error(run.places(), exact)
                if error < WORST:  # others are not timed: a motion that has gone astray may take for ever
                    run.seconds()  # compiles
                    points.append(Point(run, error, run.seconds()))
        except ImportError:
            print(f"({name} is not installed: pip install --group bench)")
    points = [p for p in points if p.error < WORST]  # of ours
    programs = {p.run.program for p in points}
    good = [p for name in programs for p in front([o for o in points if o.run.program == name], 1.5)]
    least, spent = {id(p.run): p.seconds for p in points}, dict.fromkeys((id(p.run) for p in good), 0.0)
    for _ in range(repeats):  # in turns
        for p in good:
            if spent[id(p.run)] < PATIENCE:
                clock = time.perf_counter()
                least[id(p.run)] = min(least[id(p.run)], p.run.seconds())
                spent[id(p.run)] += time.perf_counter() - clock
    return [Point(p.run, p.error, least[id(p.run)]) for p in points]


def by_program(points: list[Point]) -> dict[str, list[Point]]:
    names = dict.fromkeys(p.run.program for p in points)
    return {name: front([p for p in points if p.run.program == name]) for name in names}


def report(motion: Motion, points: list[Point]) -> None:
    """Prints all numbers, and the ratios of times to heyoka's."""
    rows = []
    for name, found in by_program(points).items():
        rows += [[name, p.run.settings, f"{p.error:.1e}", f"{p.seconds * 1e6:.4g}"] for p in found]
    unit = "day" if motion.name == "outer-solar-system" else "unit of time"
    header = ["program", "settings", "error of position", f"µs per {unit}"]
    table(f"{motion.name}, all", f"{motion.problem.title}, to t = {motion.span:g}", header, rows)
    mine = [p for p in points if p.run.program == "leastaction"]
    rows = []
    for name in by_program(points):
        theirs = [p for p in points if p.run.program == name]
        rows.append([name, *(_microseconds(cost(theirs, e)) for e in ERRORS), f"{min(p.error for p in theirs):.0e}"])
    header = ["µs at an error of", *(f"{e:.0e}" for e in ERRORS), "least error"]
    table(motion.name, f"{motion.problem.title}: interpolated", header, rows)
    for key, program, last in (("ratios", "heyoka", [_against_ias15(motion, points)]), ("ratios, fast_math", FAST, [])):
        taylor = [p for p in points if p.run.program == program]
        ratios = [_ratio(cost(mine, e), cost(taylor, e)) for e in ERRORS]
        header = [f"leastaction / {program}, time at an error of", *(f"{e:.0e}" for e in ERRORS)]
        header += ["IAS15 / leastaction"] * len(last)
        table(key, "Time ratios", header, beside_others(key, [motion.problem.title, *ratios, *last]))


def _microseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e6:.4g}"


def _ratio(mine: float | None, theirs: float | None) -> str:
    if mine is None or theirs is None:
        return {(True, True): "neither", (True, False): "heyoka alone", (False, True): "leastaction alone"}[
            mine is None, theirs is None
        ]
    return f"{mine / theirs:.2f}"


def _against_ias15(motion: Motion, points: list[Point]) -> str:
    """The time of IAS15 with its defaults over ours at the same error, or at our least error if ours is larger.

    Errors are round-off there, which is chance: with ε within a factor of two of its own IAS15 misses the Pleiades by
    7·10⁻¹⁵ to 6·10⁻¹⁴. So on both sides the median error of settings that differ by little counts.
    """
    theirs = [p for p in points if p.run.program == "REBOUND IAS15" and p.run.settings == "as it comes"]
    if not theirs:
        return ""
    mine = [p for p in points if p.run.program == "leastaction" and p.error < 1e-11 and p.seconds < theirs[0].seconds]
    typical = [(_median(motion, p.run), p.seconds) for p in mine]
    reached = max(_median(motion, theirs[0].run), min(error for error, _ in typical))
    return f"{theirs[0].seconds / at(reached, typical):.1f} at {reached:.0e}"


def _median(motion: Motion, run: Run) -> float:
    return float(np.median([motion.error(places(), reference(motion)) for places in run.alike]))


def draw() -> None:
    """The figure, from the tables that are kept of all motions: those of this run, and of runs before it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    tables = kept("peers")
    results = {name: tables[f"{name}, all"]["rows"] for name in motions() if f"{name}, all" in tables}
    columns = min(4, len(results))
    rows = -(-len(results) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(3.6 * columns, 3.4 * rows), layout="constrained", squeeze=False)
    names = [*dict.fromkeys(program for found in results.values() for program, *_ in found)]
    for axes, (name, found) in zip(grid.flat, results.items(), strict=False):
        for i, program in enumerate(names):
            points = [(float(error), float(time)) for one, _, error, time in found if one == program]
            if points:
                axes.loglog(*zip(*points, strict=True), ".-", color=f"C{i}", lw=2.2 if i == 0 else 1.2)
        axes.set(title=motions()[name].problem.title, xlim=(1e-2, 1e-16))
        axes.grid(alpha=0.3)
    for axes in grid.flat[len(results) :]:
        axes.axis("off")
    for axes in grid[:, 0]:
        axes.set_ylabel("µs per unit of time")
    for axes in grid[-1]:
        axes.set_xlabel("error of position")
    lines = [plt.Line2D([], [], color=f"C{i}", marker=".", label=name) for i, name in enumerate(names)]
    figure.legend(handles=lines, loc="outside lower center", ncols=len(lines), fontsize="small")
    figure.savefig(FIGURE, dpi=150)
    print(f"\n(drawn in {FIGURE.name})")


PEERS = {
    "heyoka": heyoka,
    "fast_math": partial(heyoka, fast_math=True),
    "rebound": rebound,
    "scipy": scipy,
    "diffrax": diffrax,
}


def beside_others(key: str, row: list[str]) -> list[list[str]]:
    """A row of ratios among those that were kept of other motions, in the order of the motions."""
    rows = {name: others for name, *others in kept("peers").get(key, {"rows": []})["rows"]}
    rows[row[0]] = row[1:]
    return [
        [motion.problem.title, *rows[motion.problem.title]]
        for motion in motions().values()
        if motion.problem.title in rows
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--only", default=",".join(motions()), help="motions, with commas between: %(default)s")
    parser.add_argument("--peers", default=",".join(PEERS), help="programs, with commas between: %(default)s")
    options = parser.parse_args()
    peers = {name: PEERS[name] for name in options.peers.split(",")}
    for name in options.only.split(","):
        motion = motions()[name]
        report(motion, measure(motion, peers, 3 if options.quick else 25))
    if not options.quick:
        draw()


if __name__ == "__main__":
    main()
