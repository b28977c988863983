"""Pace and tolerances: `python benchmarks/accuracy.py`, or `--only` some of these, with commas between them:

comet        Kepler, e = 0.99, ten orbits with order 16: steps per orbit and error of position, equal steps and paces.
             The exact motion begins with the same floats as the runs; it comes from Kepler's equation with 50 digits.
pythagorean  masses 3, 4, 5 until t = 70, with 60 digits: in how many digits two runs agree (minutes).
arenstorf    one period, closed to 10⁻¹⁰, beside heyoka and REBOUND's IAS15 if they are installed. Of some paces, the
             member and the step whose steps take the least time. Three times each: the steps alone; the steps with the
             end at t_end of a stepper that is ready, which is what heyoka's propagate_until does; and all that a user
             calls in a process in which the same was run before: la.integrate, or heyoka's taylor_adaptive with
             propagate_until. Of IAS15 all of a simulation. All are measured in turns.
             The closure is the largest |q(T) − q(0)| of a coordinate in the rotating frame, for all alike.
tolerances   tol = 10⁻³ … 10⁻¹² on the catalogue and on strangers, systems nobody tuned anything for: the error reached,
             the time of the chosen run with its preparation, the time of the best (method, h) found by brute force
             among equal steps, and among steps of pace="auto" where no equal step does; the ratio of both times, and
             the time of advice and both runs. "told": the tolerance was missed, and the run has said so.
first        where the chosen run takes more than 3 times as long as the best one of brute force: both for the first
             time, each in a process with an empty cache of machine code.
advice       how long la.advise takes, beside the run that it chooses: for the first time, in a process with an empty
             cache of machine code, where the run compiles, too, in a process of its own; and again in the same process.

Times are of the processor, without compilation. Prints tables in Markdown.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import mpmath
import numpy as np
from core import processor_seconds, steps_alone
from measured import keep, kept, table

import leastaction as la

COMET = 0.99
TOLERANCES = (1e-3, 1e-6, 1e-9, 1e-12)
ADVISED = (1e-6, 1e-12)  # tolerances for which advice is timed
MEMBERS = ("P2N2Q4Gau", "P3N3Q6Gau", "P4N4Q8Gau", "P6N6Q12Gau", "P8N8Q16Gau", "P12N12Q24Gau")
BRUTE_STEPS = 2.0 ** np.arange(3, 16, 0.5)
REPEATS, ENOUGH = 15, 0.15  # runs, or seconds of the processor after which no more are done
WITHIN = 3.0  # times as long as the best run the chosen one may take
PYTHAGOREAN_STEPS = (0.0375, 0.03)  # of s, with 60 digits
CLOSED, TURNS = 1e-10, 100  # the closure asked for, and how often each run is measured
ALONE, UNTIL, WHOLE = "the steps alone", "a stepper that is ready, until t_end", "la.integrate"
READY, BUILT, SIMULATED = "propagate_until", "taylor_adaptive and propagate_until", "a simulation"
BITS = 128
# Problems whose truth needs more digits, with the masses of their bodies.
ENCOUNTERS = {
    "pythagorean": (3.0, 4.0, 5.0),
    **dict.fromkeys(("arenstorf", "butterfly", "moth", "yin-yang"), (1.0,) * 3),
}
CATALOGUE = la.problems.names()


def fastest(run: Callable[[], Any]) -> float:
    """Seconds of the processor of the quickest of some runs."""
    found: list[float] = []
    while len(found) < REPEATS and (len(found) < 3 or sum(found) < ENOUGH):
        clock = time.process_time()
        run()
        found.append(time.process_time() - clock)
    return min(found)


def distance(q: Any) -> Any:
    return np.sqrt(np.sum(q**2))


def comet() -> None:
    """Ten orbits of a comet."""
    problem = la.problems.get("kepler", eccentricity=str(COMET))
    q0, p0 = problem.q0, problem.p0
    exact = la.problems.get("kepler", q0=tuple(q0), p0=tuple(p0))  # of these very floats
    t_end = float(10 * problem.period)
    with mpmath.workdps(50):
        truth = exact.exact(mpmath.mpf(t_end), digits=50)[0].astype(float)
    rows = []
    for label, pace, h in (
        ("equal", None, problem.period / 100),
        ("equal", None, problem.period / 10_000),
        ("equal", None, problem.period / 30_000),
        ("σ = |q|", distance, 2 * np.pi / 40),
        ("σ = |q|", distance, 2 * np.pi / 60),
        ("σ = |q|", distance, 2 * np.pi / 80),
        ("auto", "auto", 0.48 * (1 - COMET) ** 1.5),
        ("auto", "auto", 0.24 * (1 - COMET) ** 1.5),
        ("auto", "auto", 0.12 * (1 - COMET) ** 1.5),
    ):
        try:
            path = la.integrate(problem.system, "P8N8Q16Gau", q0, p0, h=h, t_end=t_end, pace=pace)
            error = np.abs(path.q[-1] - truth).max()
            rows.append([label, f"{path.stats['steps'] / 10:.0f}", f"{error:.1e}", f"{np.ptp(path.energy()):.1e}"])
        except la.StepFailed:
            rows.append([label, f"{problem.period / h:.0f}", "fails", ""])
    table(
        "comet",
        f"Kepler, e = {COMET}, ten orbits, order 16",
        ["pace", "steps per orbit", "error of position", "range of energy"],
        rows,
    )


def arenstorf() -> None:
    """One period of Arenstorf's orbit: for each pace the member and the step that close to CLOSED in the least time."""
    problem = la.problems.get("arenstorf")
    t, q, _ = problem.reference
    mu = problem.params["mu"]

    def earth(q: Any) -> Any:
        return np.sqrt((q[0] + mu) ** 2 + q[1] ** 2)

    def moon(q: Any) -> Any:
        return np.sqrt((q[0] - (1 - mu)) ** 2 + q[1] ** 2)

    paces = {
        "auto": "auto",
        "σ = r₁ r₂": lambda q: earth(q) * moon(q),
        "σ = 1/(1/2r₁ + 1/r₂)": lambda q: 1 / (0.5 / earth(q) + 1 / moon(q)),
        "σ = (1/r₁² + 1/r₂²)^(−½)": lambda q: 1 / np.sqrt(1 / earth(q) ** 2 + 1 / moon(q) ** 2),
    }
    runs: list[Timed] = []
    for label, pace in paces.items():
        found = []
        for s in (6, 7, 8, 10, 12):
            name = f"P{s}N{s}Q{2 * s}Gau"
            given = {"q0": problem.q0, "p0": problem.p0, "pace": pace, "every": 2**40}
            h = 1e-3 if pace == "auto" else 2e-2
            length = h * la.integrate(problem.system, name, h=h, t_end=t, **given).stats["steps"]
            for steps in (40, 42, 44, 46, 48, 50, 52, 54, 56, 60, 66, 72, 85, 100, 120, 150, 200, 250, 300):
                h = length / steps
                try:
                    path = la.integrate(problem.system, name, h=h, t_end=t, **given)
                except la.StepFailed:
                    continue
                closure, count = np.abs(path.q[-1] - q).max(), path.stats["steps"]
                if closure < CLOSED:
                    bare = min(steps_alone(problem, name, h, count, pace=pace) for _ in range(5))
                    found.append((bare, name, count, closure, h))
        _, name, count, closure, h = min(found)
        whole = partial(la.integrate, problem.system, name, h=h, t_end=t, **given)
        bare = partial(steps_alone, problem, name, h, count, pace=pace)
        about = (name, f"{count}", f"{closure:.1e}")
        runs += [
            Timed(f"leastaction, {label}", ALONE, *about, bare),
            Timed("…", UNTIL, *about, partial(bare, until=t)),
            Timed("…", WHOLE, *about, partial(processor_seconds, whole)),
        ]
    runs += _heyoka(problem) + _ias15(problem)
    least = in_turns([one.seconds for one in runs])
    rows = [
        [one.program, one.what, one.settings, one.steps, one.closure, f"{1e3 * seconds:.3f}"]
        for one, seconds in zip(runs, least, strict=True)
    ]
    table(
        "arenstorf", "Arenstorf, one period", ["program", "what is timed", "settings", "steps", "closure", "ms"], rows
    )

    def best(what: str) -> float:
        times = zip(runs, least, strict=True)
        known = [s for one, s in times if one.what == what and float(one.closure) < CLOSED]
        return min(known, default=float("nan"))

    ready, whole = best(READY), best(BUILT)
    for label, ours, other in (
        ("the steps alone, and heyoka's integrator that is ready", best(ALONE), ready),
        ("a stepper that is ready, and heyoka's", best(UNTIL), ready),
        ("la.integrate, and heyoka's integrator that is ready", best(WHOLE), ready),
        ("la.integrate, and heyoka's integrator built and run", best(WHOLE), whole),
        ("la.integrate, and a simulation of IAS15", best(WHOLE), best(SIMULATED)),
    ):
        print(f"{label}: {1e3 * ours:.3f} and {1e3 * other:.3f} ms, {ours / other:.2f}")


@dataclass(frozen=True)
class Timed:
    """A run that closes Arenstorf's orbit, and what measures its seconds."""

    program: str
    what: str
    settings: str
    steps: str
    closure: str
    seconds: Callable[[], float]


def in_turns(timers: list[Callable[[], float]]) -> list[float]:
    """The least seconds of each of some timers, which take turns."""
    least = [float("inf")] * len(timers)
    for _ in range(TURNS):
        least = [min(known, timer()) for known, timer in zip(least, timers, strict=True)]
    return least


def nearness(q: Any) -> Any:
    """A pace for three bodies: (Σ |q_i − q_j|⁻³)^(−½), one over a frequency."""
    pairs = ((0, 1), (0, 2), (1, 2))
    squares = [(q[2 * i] - q[2 * j]) ** 2 + (q[2 * i + 1] - q[2 * j + 1]) ** 2 for i, j in pairs]
    return 1 / np.sqrt(sum(square**-1.5 for square in squares))


def with_the_third(q: Any) -> Any:
    """All places, or velocities, of the Pythagorean problem from those of the masses 3 and 4: the centre is at rest."""
    return np.array([*q, *(-(3 * q[k] + 4 * q[k + 2]) / 5 for k in range(2))])


def pythagorean(last: int = 70) -> None:
    """The Pythagorean problem with 60 digits: how many agree for two steps, and for float64 and the finer one.

    With 60 digits a step costs like the cube of its unknowns: so these runs have four coordinates, those of the masses
    3 and 4. The run of float64 is of the catalogue's system, with six.
    """
    problem, times = la.problems.get("pythagorean"), range(10, last + 1, 10)
    events = {str(t): la.Event(lambda t, q, p, at=t: t - at) for t in times}
    few = la.Lagrangian(lambda q, v: problem.system.fn(with_the_third(q), with_the_third(v)), n=4)
    found, rows, places = [], [], []
    for system, pace, method, h, digits in (
        (problem.system, nearness, "P12N12Q24Gau", 0.1, None),
        *((few, lambda q: nearness(with_the_third(q)), "P16N16Q32Gau", h, 60) for h in PYTHAGOREAN_STEPS),
    ):
        clock = time.process_time()
        given = {"q0": problem.q0[: system.n], "p0": problem.p0[: system.n], "h": h, "digits": digits, "pace": pace}
        path = la.integrate(system, method, **given, t_end=last, events=events, every=2**40)
        spent = time.process_time() - clock
        print(f"{method}, h = {h}, {digits or 16} digits: {path.stats['steps']} steps, {spent:.0f} s", flush=True)
        found.append({t: path.events[str(t)].q[0][:4] for t in times})
    rough, coarse, fine = found
    for t in times:
        with mpmath.workdps(70):
            gap = max(abs(a - b) for a, b in zip(coarse[t], fine[t], strict=True))
            off = max(abs(a - mpmath.mpf(float(b))) for a, b in zip(fine[t], rough[t], strict=True))
            agreed = int(-mpmath.log10(gap))
            leading = [int(mpmath.floor(mpmath.log10(abs(x)))) + 1 for x in fine[t]]
            known = [mpmath.nstr(x, agreed + k, strip_zeros=False) for x, k in zip(fine[t], leading, strict=True)]
            rows.append([f"{t}", f"{-float(mpmath.log10(gap)):.1f}", f"{-float(mpmath.log10(off)):.1f}", *known[:2]])
            places.append([f"{t}", *known])
    table("pythagorean places", "Places of the masses 3 and 4", ["t", "x₃", "y₃", "x₄", "y₄"], places)
    coarser, finer = PYTHAGOREAN_STEPS
    table(
        "pythagorean",
        "Pythagorean problem: digits after the point in which all positions agree; x and y of the mass 3",
        ["t", f"h = {coarser} and {finer}, 60 digits", "float64 and 60 digits", "x", "y"],
        rows,
    )


def _heyoka(problem: Any) -> list[Timed]:
    try:
        import heyoka as hy
    except ImportError:
        print("heyoka is not installed")
        return []
    mu, (t, q, _) = problem.params["mu"], problem.reference
    x, y, vx, vy = hy.make_vars("x", "y", "vx", "vy")
    r1, r2 = (x + mu) ** 2 + y**2, (x - (1 - mu)) ** 2 + y**2
    ax = x + 2 * vy - (1 - mu) * (x + mu) * r1**-1.5 - mu * (x - (1 - mu)) * r2**-1.5
    ay = y - 2 * vx - (1 - mu) * y * r1**-1.5 - mu * y * r2**-1.5
    start = [*problem.q0, problem.p0[0] + problem.q0[1], problem.p0[1] - problem.q0[0]]
    equations, runs = [(x, vx), (y, vy), (vx, ax), (vy, ay)], []
    for tol in (1e-10, 1e-11, 1e-12, 1e-14, 1e-16):
        ta = hy.taylor_adaptive(equations, state=start, tol=tol)

        def again(ta: Any = ta) -> int:
            ta.state[:], ta.time = start, 0.0
            return int(ta.propagate_until(t)[3])

        def built(tol: float = tol) -> None:
            hy.taylor_adaptive(equations, state=start, tol=tol).propagate_until(t)

        about = (f"tol = {tol:g}", f"{again()}", f"{np.abs(ta.state[:2] - q).max():.1e}")
        runs.append(Timed("heyoka", READY, *about, partial(processor_seconds, again)))
        runs.append(Timed("…", BUILT, *about, partial(processor_seconds, built)))
    return runs


def _ias15(problem: Any) -> list[Timed]:
    try:
        import rebound
    except ImportError:
        print("REBOUND is not installed")
        return []
    mu, (t, q, _) = problem.params["mu"], problem.reference
    runs = []
    for epsilon in (1e-9, 1e-12):

        def run(epsilon: float = epsilon) -> Any:
            """In the frame at rest: earth, moon and a satellite without mass."""
            sim = rebound.Simulation()
            sim.integrator = "ias15"
            sim.integrator.epsilon = epsilon
            sim.add(m=1 - mu, x=-mu, vy=-mu)
            sim.add(m=mu, x=1 - mu, vy=1 - mu)
            x, y = problem.q0
            sim.add(m=0.0, x=x, y=y, vx=problem.p0[0], vy=problem.p0[1])
            sim.integrate(t, exact_finish_time=1)
            return sim

        sim = run()
        one, turned = sim.particles[2], np.array([[np.cos(t), np.sin(t)], [-np.sin(t), np.cos(t)]])
        closure = np.abs(turned @ [one.x, one.y] - q).max()
        about = (f"ε = {epsilon:g}", f"{sim.steps_done}", f"{closure:.1e}")
        runs.append(Timed("REBOUND IAS15", SIMULATED, *about, partial(processor_seconds, run)))
    return runs


@dataclass(frozen=True)
class Stranger:
    """A system of no catalogue."""

    name: str
    system: Any
    q0: Any
    p0: Any
    period: float
    has_exact: bool = False


def strangers() -> list[Stranger]:
    """Systems that nobody has tuned anything for; the random ones are always the same."""
    found = []
    for seed in (1, 2, 3):
        rng = np.random.default_rng(seed)
        A, c, w = rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=(3, 3))
        K, M = A @ A.T + np.eye(3), np.eye(3) + 0.3 * np.outer(c, c)

        def random(q: Any, v: Any, K: Any = K, M: Any = M, w: Any = w) -> Any:
            """A mass that depends on place, a quartic well, and waves on it."""
            moving = (1 + 0.3 * np.sin(q[0] + q[1])) * (v @ (M @ v)) / 2
            return moving - q @ (K @ q) / 2 - (q @ q) ** 2 / 4 + 0.5 * np.sum(np.cos(w @ q))

        found.append(
            Stranger(f"random {seed}", la.Lagrangian(random, n=3), rng.normal(size=3), rng.normal(size=3), 3.0)
        )
    duffing = la.Lagrangian(
        lambda q, v: 0.5 * v[0] ** 2 + 0.5 * q[0] ** 2 - 0.25 * q[0] ** 4,
        n=1,
        force=lambda t, q, v: -0.1 * v + 0.3 * np.cos(1.2 * t),
    )
    found.append(Stranger("forced Duffing", duffing, [1.0], [0.0], 5.0))

    def chain(q: Any, v: Any) -> Any:
        """Eight masses between walls, springs that harden."""
        r = np.array([q[0], *(q[1:] - q[:-1]), -q[7]])
        return 0.5 * (v @ v) - np.sum(r**2) / 2 - 0.3 * np.sum(r**4)

    found.append(Stranger("chain of 8", la.Lagrangian(chain, n=8), np.sin(np.arange(8.0)), np.zeros(8), 6.0))
    return found


def tolerances(names: list[str]) -> None:
    """tol= on the catalogue, and on strangers. Rows of problems that are not named stay as they were measured."""
    header = ["problem", "tol", "error", "chosen", "ms", "best", "ms", "ratio", "advice s"]
    known = [one for one in strangers() if one.name in names] + [la.problems.get(n) for n in names if n in CATALOGUE]
    rows: list[list[str]] = []
    for problem in known:
        t_end = _named(problem.name)[1]
        reference = _reference(problem, t_end)
        if reference is None:
            continue
        fresh = []
        for tol in TOLERANCES:
            fresh.append(_tolerance(problem, t_end, tol, *reference))
            print("  ".join(fresh[-1]), flush=True)
        rows = kept("accuracy").get("tolerances", {"rows": []})["rows"]
        rows = [row for row in rows if row[0] != problem.name] + fresh
        keep("tolerances", "Tolerances", header, rows)
    ratios = np.array([float(row[7]) for row in rows if row[5] != "none"])
    well = sum("MISSED" not in row[2] and "told" not in row[2] for row in rows)
    print(f"{well} of {len(rows)} kept; ratios: median {np.median(ratios):.1f}, worst {ratios.max():.1f}, at most 3: "
          f"{(ratios <= WITHIN).sum()} of {len(ratios)}")  # fmt: skip


def first() -> None:
    """Runs that take more than WITHIN times as long as the best: both for the first time, and again, as tabulated."""
    rows = []
    for row in kept("accuracy")["tolerances"]["rows"]:
        if row[5] != "none" and float(row[7]) > WITHIN:
            ours, best = (_alone(_running, row[0], _labelled(row[0], label)) for label in (row[3], row[5]))
            pays = (best - ours) / (1e-3 * (float(row[4]) - float(row[6])))
            rows.append([row[0], row[1], row[3], f"{ours:.2f}", row[5], f"{best:.2f}", f"{max(pays, 0.0):.0f}"])
    header = ["problem", "tol", "chosen", "first: s", "best", "first: s", "runs after which the best is ahead"]
    table("first", "The first run, with an empty cache", header, rows)


def _labelled(name: str, label: str) -> dict[str, Any]:
    """Method, step and pace of a run that a table names, "P2N2Q4Gau auto, 1919"."""
    how, steps = label.split(", ")
    method, _, pace = how.partition(" ")
    if pace:
        raise ValueError(f"the step of {label} is one of s, which its number does not tell")
    return {"method": method, "h": _named(name)[1] / int(steps), "pace": None}


def advice(names: list[str]) -> None:
    """How long advice takes, and the run that it chooses: for the first time, and again. Problems that are not named
    stay as they were measured.
    """
    header = ["problem", "tol", "first: advice s", "run s", "again: advice s", "run s"]
    rows = [row for row in kept("accuracy").get("advice", {"rows": []})["rows"] if row[0] not in names]
    for name in names:
        for tol in ADVISED:
            first, again, own, chosen = _alone(_advising, name, tol)
            rows.append(
                [name, f"{tol:.0e}", *(f"{x:.2f}" for x in (first, _alone(_running, name, chosen), again, own))]
            )
            print("  ".join(rows[-1]), flush=True)
        keep("advice", "Advice beside its run", header, rows)
    for what, k in (("for the first time", 2), ("again", 4)):
        late = [f"{row[0]}, {row[1]}" for row in rows if float(row[k]) > float(row[k + 1]) + 1]
        print(f"{what}: longer than the run and a second in {len(late)} of {len(rows)}: {'; '.join(late)}")


def _alone(what: Callable[..., Any], *given: Any) -> Any:
    """The answer of a function in a process of its own, with an empty cache of machine code."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ.update(LEASTACTION_CACHE=cache, LEASTACTION_QUIET="1")
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            return pool.apply(what, given)


def _named(name: str) -> tuple[Any, float]:
    """A problem or a stranger, and the end of its run."""
    problem = la.problems.get(name) if name in CATALOGUE else next(one for one in strangers() if one.name == name)
    return problem, 5.3 * (problem.period if problem.period and np.isfinite(problem.period) else 1.0)


def _advising(name: str, tol: float) -> tuple[float, float, float, Any]:
    """Seconds of advice for the first time and again, and of the run again; and what was chosen at first."""
    problem, t_end = _named(name)
    clock = time.process_time()
    found = la.advise(problem.system, problem.q0, problem.p0, t_end=t_end, tol=tol)
    first = time.process_time() - clock
    chosen = {"method": found.chosen.method, "h": found.chosen.h, "pace": found.chosen.pace}
    again = fastest(lambda: la.advise(problem.system, problem.q0, problem.p0, t_end=t_end, tol=tol))
    _run(problem, t_end, chosen)
    return first, again, _run(problem, t_end, chosen), chosen


def _running(name: str, chosen: Any) -> float:
    """Seconds of a run for the first time."""
    return _run(*_named(name), chosen)


def _run(problem: Any, t_end: float, chosen: Any) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clock = time.process_time()
        la.integrate(problem.system, q0=problem.q0, p0=problem.p0, t_end=t_end, **chosen)
        return time.process_time() - clock


def _reference(problem: Any, t_end: float) -> tuple[Any, float] | None:
    """The position at the end, and how well it is known: from a formula, or by two runs of order 24 with two steps;
    near collisions by heyoka's Taylor method with 128 bits and two tolerances, kept since it takes a while.
    """
    if problem.has_exact:
        return problem.exact(t_end)[0], 1e-15
    if problem.name in ENCOUNTERS:
        return _near_collisions(problem, t_end)
    ends = []
    for part in (300, 400):
        try:
            h = t_end / (5.3 * part)
            ends.append(la.integrate(problem.system, "P12N12Q24Gau", problem.q0, problem.p0, h=h, t_end=t_end).q[-1])
        except la.StepFailed:
            return None
    return ends[1], float(np.abs(ends[1] - ends[0]).max())


def _near_collisions(problem: Any, t_end: float) -> tuple[Any, float]:
    """The end of a motion with close encounters."""
    known = {row[0]: row for row in kept("accuracy").get("encounters", {"rows": []})["rows"]}
    found = known.get(problem.name)
    if found is None or found[1] != f"{t_end:.17g}":
        ends = [_by_taylor(problem, t_end, tolerance) for tolerance in ("1e-30", "1e-32")]
        gap = max(abs(a - b) for a, b in zip(*ends, strict=True))
        found = [problem.name, f"{t_end:.17g}", f"{float(gap):.1e}", " ".join(mpmath.nstr(x, 25) for x in ends[1])]
        known[problem.name] = found
        header = ["problem", "t", "difference of two tolerances", "q"]
        keep("encounters", "Motions with close encounters, heyoka, 128 bits", header, [*known.values()])
    return np.array([float(x) for x in found[3].split()]), float(found[2])


def _by_taylor(problem: Any, t_end: float, tolerance: str) -> list[Any]:
    """The positions at the end as mpmath numbers, from the very floats with which the runs begin."""
    import heyoka as hy

    def number(value: float) -> Any:
        return hy.real(float(value), BITS)

    q0, p0 = problem.q0, problem.p0
    if problem.name == "arenstorf":
        mu, one = hy.expression(number(problem.params["mu"])), hy.expression(number(1.0))
        x, y, px, py = hy.make_vars("x", "y", "px", "py")  # momenta, since velocities would be rounded
        r1, r2 = (x + mu) ** 2 + y**2, (x - (one - mu)) ** 2 + y**2
        pull = ((one - mu) * r1**-1.5, mu * r2**-1.5)
        fx = py - pull[0] * (x + mu) - pull[1] * (x - (one - mu))
        equations, start = [(x, px + y), (y, py - x), (px, fx), (py, -px - (pull[0] + pull[1]) * y)], [*q0, *p0]
    else:
        masses = ENCOUNTERS[problem.name]
        q, p = (hy.make_vars(*(f"{name}{k}" for k in range(6))) for name in "qp")
        forces: list[Any] = [hy.expression(number(0.0))] * 6
        for i, j in ((0, 1), (0, 2), (1, 2)):
            away = [q[2 * i + k] - q[2 * j + k] for k in range(2)]
            pull_ij = masses[i] * masses[j] * (away[0] ** 2 + away[1] ** 2) ** -1.5
            for k in range(2):
                forces[2 * i + k] = forces[2 * i + k] - pull_ij * away[k]
                forces[2 * j + k] = forces[2 * j + k] + pull_ij * away[k]
        equations = [(q[k], p[k] / masses[k // 2]) for k in range(6)] + list(zip(p, forces, strict=True))
        start = [*q0, *p0]
    state = np.array([number(x) for x in start], dtype=hy.real)
    how = {"fp_type": hy.real, "prec": BITS, "tol": hy.real(tolerance, BITS), "compact_mode": True}
    integrator = hy.taylor_adaptive(equations, state, high_accuracy=True, **how)
    integrator.propagate_until(number(t_end))
    with mpmath.workdps(40):
        return [mpmath.mpf(str(x)) for x in integrator.state[: len(q0)]]


def _tolerance(problem: Any, t_end: float, tol: float, q: Any, known: float) -> list[str]:
    start = {"q0": problem.q0, "p0": problem.p0}
    spent, calls = [], []
    for _ in range(3):  # the least: what is to be compiled is compiled before
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            clock = time.process_time()
            path = la.integrate(problem.system, **start, t_end=t_end, tol=tol)
            spent.append(time.process_time() - clock)
        error = float(np.abs(path.q[-1] - q).max() / path.advice.size)
        missed = any("missed" in str(one.message) for one in told)
        calls.append((error, "" if error <= tol + known / path.advice.size else " told" if missed else " MISSED"))
    error, mark = worst(calls)
    advising, chosen, size = min(spent), path.advice.chosen, path.advice.size

    def again() -> Any:
        return la.integrate(
            problem.system, chosen.method, **start, h=chosen.h, t_end=t_end, pace=chosen.pace, every=2**40
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", la.EnergyWarning)  # coarse steps of brute force
        own = fastest(again)
        counts = BRUTE_STEPS * t_end / problem.period if problem.period else BRUTE_STEPS
        best, label = _brute(problem, start, t_end, [t_end / count for count in counts], None, q, tol * size + known)
        if label == "none" and chosen.pace is not None:
            steps = [chosen.h * 2.0**k for k in np.arange(4, -4, -0.5)]
            best, label = _brute(problem, start, t_end, steps, "auto", q, tol * size + known)
    pace = " auto" if chosen.pace else ""
    return [
        problem.name, f"{tol:.0e}", f"{error:.1e}{mark}", f"{chosen.method}{pace}, {path.stats['steps']}",
        f"{1e3 * own:.2f}", label, f"{1e3 * best:.2f}", f"{own / best:.1f}", f"{advising:.2f}",
    ]  # fmt: skip


def worst(calls: list[tuple[float, str]]) -> tuple[float, str]:
    """Of some calls, each with its error and with the mark that its own warnings give it, the worst."""
    return max(calls, key=lambda call: (("", " told", " MISSED").index(call[1]), call[0]))


def _brute(
    problem: Any, start: Any, t_end: float, steps: Any, pace: Any, q: Any, error: float
) -> tuple[float, str]:  # fmt: skip
    """The seconds of the quickest run among all members and these steps whose error is no larger, and which it is."""
    best, label = np.inf, "none"
    for method in MEMBERS:
        for h in steps:
            how = {"method": method, "h": h, "t_end": t_end, "pace": pace, "every": 2**40}
            clock = time.process_time()
            try:
                run = la.integrate(problem.system, **start, **how)
            except la.StepFailed:
                continue
            spent = time.process_time() - clock
            if np.abs(run.q[-1] - q).max() <= error:
                seconds = fastest(lambda how=how: la.integrate(problem.system, **start, **how))
                if seconds < best:
                    best, label = seconds, f"{method}{' auto' if pace else ''}, {run.stats['steps']}"
                break
            if spent > 4 * best:
                break
    return best, label


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="comet,arenstorf,tolerances,advice")
    parser.add_argument("--problems", default=",".join([one.name for one in strangers()] + [*CATALOGUE]))
    parser.add_argument("--until", type=int, default=70, help="the Pythagorean problem until this time, 10, 20, …")
    options = parser.parse_args()
    if "comet" in options.only:
        comet()
    if "arenstorf" in options.only:
        arenstorf()
    if "advice" in options.only:
        advice(options.problems.split(","))
    if "pythagorean" in options.only:
        pythagorean(options.until)
    if "first" in options.only:
        first()
    if "tolerances" in options.only:
        tolerances(options.problems.split(","))
