"""tol= on the catalogue, and on strangers, systems nobody tuned anything for: `python benchmarks/tolerance.py`.

For 5.3 periods and four tolerances: the true error, the error that the run tells, what was chosen, and the seconds of
the processor of the whole call, choice and run, the least of three. "told": the tolerance was missed, and the run has
said so.

--against FOLDER   the `src` of another checkout: the same calls with it, in turns, and the ratio of the seconds
--problems A,B     these alone; rows of others stay as they were measured
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
from measured import keep, kept

import leastaction as la

TOLERANCES = (1e-3, 1e-6, 1e-9, 1e-12)
CALLS = 3
BITS = 128
# Problems whose truth needs more digits, with the masses of their bodies.
ENCOUNTERS = {
    "pythagorean": (3.0, 4.0, 5.0),
    **dict.fromkeys(("arenstorf", "butterfly", "moth", "yin-yang"), (1.0,) * 3),
}
CATALOGUE = la.problems.names()


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


def named(name: str) -> tuple[Any, float]:
    """A problem or a stranger, and the end of its run."""
    problem = la.problems.get(name) if name in CATALOGUE else next(one for one in strangers() if one.name == name)
    return problem, 5.3 * (problem.period if problem.period and np.isfinite(problem.period) else 1.0)


def calls(name: str) -> None:
    """All tolerances of one problem: a line of JSON each."""
    problem, t_end = named(name)
    for tol in TOLERANCES:
        spent = []
        for _ in range(CALLS):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                clock = time.process_time()
                path = la.integrate(problem.system, q0=problem.q0, p0=problem.p0, t_end=t_end, tol=tol)
                spent.append(time.process_time() - clock)
        chosen = path.advice.chosen
        print(json.dumps({
            "tol": tol, "q": [float(x) for x in path.q[-1]], "size": path.advice.size, "reached": path.advice.reached,
            "told": any("missed" in str(one.message) for one in told), "steps": int(path.stats["steps"]),
            "chosen": chosen.method + (" auto" if chosen.pace else ""), "first": spent[0], "seconds": min(spent),
        }))  # fmt: skip


def measured(name: str, source: str) -> list[dict[str, Any]]:
    """The calls of one problem in a process of its own, with the library in this folder."""
    environment = os.environ | {"PYTHONPATH": source, "LEASTACTION_QUIET": "1"}
    found = subprocess.run(
        [sys.executable, __file__, "--calls", name], env=environment, capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in found.stdout.splitlines()]


def reference(problem: Any, t_end: float) -> tuple[Any, float]:
    """The position at the end, and how well it is known: from a formula, or by two runs with far finer steps;
    near collisions by heyoka's Taylor method with 128 bits and two tolerances, kept since it takes a while.
    """
    if problem.has_exact:
        return problem.exact(t_end)[0], 1e-15
    if problem.name in ENCOUNTERS:
        return _near_collisions(problem, t_end)
    method, counts = ("P4N4Q8Gau", (4000, 5000)) if problem.system.m else ("P8N8Q16Gau", (1600, 2000))
    start = {"q0": problem.q0, "p0": problem.p0, "t_end": t_end, "every": 2**40}
    ends = [la.integrate(problem.system, method, **start, h=t_end / count).q[-1] for count in counts]
    return ends[1], float(np.abs(ends[1] - ends[0]).max())


def _near_collisions(problem: Any, t_end: float) -> tuple[Any, float]:
    """The end of a motion with close encounters."""
    known = {row[0]: row for row in kept("tolerance").get("encounters", {"rows": []})["rows"]}
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


def rows_of(name: str, against: str | None) -> list[list[str]]:
    problem, t_end = named(name)
    q, known = reference(problem, t_end)
    here = measured(name, str(Path(la.__file__).parents[1]))
    there = measured(name, against) if against else [None] * len(here)
    rows = []
    for one, other in zip(here, there, strict=True):
        error = float(np.abs(np.array(one["q"]) - q).max()) / one["size"]
        mark = "" if error <= one["tol"] + known / one["size"] else " told" if one["told"] else " MISSED"
        reached = "not measured" if one["reached"] is None else f"{one['reached']:.1e}"
        ratio = f"{one['seconds'] / other['seconds']:.2f}" if other else ""
        rows.append([
            name, f"{one['tol']:.0e}", f"{error:.1e}{mark}", reached, f"{one['chosen']}, {one['steps']}",
            f"{one['seconds']:.3f}", ratio,
        ])  # fmt: skip
    return rows


def main(names: list[str], against: str | None) -> None:
    header = ["problem", "tol", "error", "error told", "chosen, steps", "s", "ratio"]
    rows: list[list[str]] = []
    for name in names:
        fresh = rows_of(name, against)
        print("\n".join("  ".join(row) for row in fresh), flush=True)
        rows = [row for row in kept("tolerance").get("tolerances", {"rows": []})["rows"] if row[0] != name] + fresh
        keep("tolerances", "Tolerances", header, rows)
    ratios = [float(row[6]) for row in rows if row[6]]
    well = sum("MISSED" not in row[2] and "told" not in row[2] for row in rows)
    silent = sum("MISSED" in row[2] for row in rows)
    print(f"{well} of {len(rows)} kept, {silent} missed silently")
    if ratios:
        print(f"seconds beside the other checkout: median {np.median(ratios):.2f}, worst {max(ratios):.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", default=",".join([one.name for one in strangers()] + [*CATALOGUE]))
    parser.add_argument("--against", help="the src folder of another checkout")
    parser.add_argument("--calls", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.calls:
        calls(options.calls)
    else:
        main(options.problems.split(","), options.against)
