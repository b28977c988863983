"""Pace: `python benchmarks/accuracy.py`, or `--only` some of these, with commas between them:

comet        Kepler, e = 0.99, ten orbits with order 16: steps per orbit and error of position, equal steps and paces.
             The exact motion begins with the same floats as the runs; it comes from Kepler's equation with 50 digits.
pythagorean  masses 3, 4, 5 until t = 70, with 60 digits: in how many digits two runs agree (minutes).
arenstorf    one period, closed to 10⁻¹⁰, beside heyoka and REBOUND's IAS15 if they are installed. Of some paces, the
             member and the step whose steps take the least time. Three times each: the steps alone; the steps with the
             end at t_end of a stepper that is ready, which is what heyoka's propagate_until does; and all that a user
             calls in a process in which the same was run before: la.integrate, or heyoka's taylor_adaptive with
             propagate_until. Of IAS15 all of a simulation. All are measured in turns.
             The closure is the largest |q(T) − q(0)| of a coordinate in the rotating frame, for all alike.

Times are of the processor, without compilation. Prints tables in Markdown.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import mpmath
import numpy as np
from core import processor_seconds, steps_alone
from measured import table

import leastaction as la

COMET = 0.99
MEMBERS = ("P2N2Q4Gau", "P3N3Q6Gau", "P4N4Q8Gau", "P6N6Q12Gau", "P8N8Q16Gau", "P12N12Q24Gau")
REPEATS, ENOUGH = 15, 0.15  # runs, or seconds of the processor after which no more are done
PYTHAGOREAN_STEPS = (0.0375, 0.03)  # of s, with 60 digits
CLOSED, TURNS = 1e-10, 100  # the closure asked for, and how often each run is measured
ALONE, UNTIL, WHOLE = "the steps alone", "a stepper that is ready, until t_end", "la.integrate"
READY, BUILT, SIMULATED = "propagate_until", "taylor_adaptive and propagate_until", "a simulation"


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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="comet,arenstorf")
    parser.add_argument("--until", type=int, default=70, help="the Pythagorean problem until this time, 10, 20, …")
    options = parser.parse_args()
    if "comet" in options.only:
        comet()
    if "arenstorf" in options.only:
        arenstorf()
    if "pythagorean" in options.only:
        pythagorean(options.until)
