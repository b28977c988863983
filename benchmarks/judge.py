"""Two states of the library side by side, case by case (`cases.py`).

    python benchmarks/judge.py OLD NEW [--cases WORD …] [--lanes] [--cpu x86-64-v3] [--quick] [--list]

OLD and NEW are checkouts: folders that contain src/leastaction. For each case both run in processes of their own. They
take turns, and of many short runs the least processor time counts:

    µs       of a step of a trajectory, (time of a run of N steps − time of one of N/8)/(7N/8); or of a call of
             la.integrate
    ratio    new/old, and in brackets the least and the largest of three ratios, each from a third of the runs
    first    processor seconds from the definition of the system to the end of its first steps, nothing in the cache of
             machine code but native loops, which a state may come with
    compile  how much longer these first steps take than the same ones again
    it, res  iterations a step; steps in a thousand that were continued or rescued
    energy   the largest relative change of the energy, less the work of forces, at 20 states of a run of N steps; none
             for lanes under forces, which have no work()
    apart    how far both are from each other after 20 steps, relative to the largest coordinate

Two numbers are of OLD and of NEW. The last lines have the seconds of `import leastaction`, and the mean of all ratios.
`--cases` takes parts of names.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import platformdirs

SECONDS = 0.015  # about how long a timed run takes
FIRST = 8  # steps of a first run
EACH = 20  # steps after which both states are compared
FEWEST = 64  # steps of a timed run, unless that takes long: an eighth of them begins the motion
TURNS, QUICK_TURNS = 60, 15  # fewer of longer runs, more of shorter ones
HEADER = ["case", "µs: old", "new", "ratio", "first, s", "compile, s", "it", "res ‰", "energy", "apart"]
HERE = Path(platformdirs.user_cache_dir("leastaction-judge"))


# The process of one state and one case -------------------------------------------------------------------------------


def serve(name: str) -> None:
    """Begin a case, and answer questions about it, a line of JSON each."""
    clock = time.process_time()
    from cases import all_cases, in_lanes

    told: dict[str, Any] = {"import": time.process_time() - clock}
    warnings.simplefilter("ignore")
    case = next(one for each in all_cases() for one in (each, *in_lanes(each)) if one.name == name)
    clock = time.process_time()
    run = case.start()
    made, clocks = time.process_time(), []
    for _ in range(2):
        run(1 if case.call else FIRST)
        clocks.append(time.process_time())
    told |= {"first": clocks[0] - clock, "compile": 2 * clocks[0] - made - clocks[1]}
    print(json.dumps(told), flush=True)
    for line in sys.stdin:
        what, steps = json.loads(line)
        if what == "time":
            clock = time.process_time()
            run(steps)
            answer: Any = time.process_time() - clock
        else:
            answer = facts(run, steps, case.lanes, case.call is not None)
        print(json.dumps(answer), flush=True)


def facts(run: Callable[..., Any], steps: int, lanes: int, called: bool) -> dict[str, Any]:
    import numpy as np

    path = run(1 if called else steps, 20)
    count = path.stats["steps"] if called else steps * max(1, lanes)
    energy = np.atleast_2d(np.asarray(path.energy(), float))
    forced = getattr(path.system, "forced", False)
    if forced and not lanes:
        energy = energy - np.atleast_2d(np.asarray(path.work(), float))
    size = np.abs(energy[:, :1])
    found = {
        key: next((path.stats[name] / count for name in names if name in path.stats), None)
        for key, names in (("it", ("newton_iterations", "iterations")), ("res", ("continued", "rescued")))
    }
    end = np.asarray(run(1 if called else EACH, 2).q, float)[..., -1, :]
    change = np.abs(energy - energy[:, :1]) / np.where(size > 1e-9, size, 1)
    return found | {"energy": None if forced and lanes else float(np.nanmax(change)), "end": end.ravel().tolist()}


def sow() -> None:
    """One run of each kind, of systems of no case: native loops come into the cache."""
    import numpy as np

    import leastaction as la

    def L(q, v):
        return 0.5 * (1 + 0.1234 * q[0] ** 2) * v[0] ** 2 - 0.4321 * q[0] ** 4

    system, start = la.Lagrangian(L, n=1), {"q0": [1.0], "p0": [0.1], "h": 0.01, "steps": 20}
    path = la.integrate(system, "simpson", **start, events={"x": la.Event(lambda q, p: q[0] - 0.999)}, tangent=True)
    path([0.005, 0.015]), path.energy(), path.velocity(), path.work()
    for method in ("rk4", la.compose("simpson", "yoshida")):
        la.integrate(system, method, **start)
    la.ensemble(system, "simpson", **start | {"q0": np.linspace(1, 2, 16)[:, None]}, threads=1).energy()
    held = la.Lagrangian(lambda q, v: 0.55 * v @ v - q[1], n=2, constraints=lambda q: q @ q - 1)
    la.integrate(held, "simpson", [1.0, 0.0], [0.0, 0.0], h=0.01, steps=2)
    mass = la.Term(lambda q, v: 0.5432 * v[0] ** 2, over=np.arange(401))
    spring = la.Term(lambda q, v: -0.3456 * (q[1] - q[0]) ** 2 - 0.1 * q[0] ** 4, over=[(k, k + 1) for k in range(400)])
    for method in ("simpson", "stormer-verlet", "P2N2Q4Gau"):
        total = la.Lagrangian.sum([mass, spring], n=401)
        la.integrate(total, method, np.sin(np.arange(401)), np.zeros(401), h=0.1, steps=2).energy()
    la.integrate(la.Quadratic(np.eye(3), 1.7 * np.eye(3)), "simpson", np.ones(3), np.zeros(3), h=0.1, steps=2)


# The process that asks -----------------------------------------------------------------------------------------------


class Side:
    """A state of the library, and the environment of its processes."""

    def __init__(self, checkout: str, cpu: str | None) -> None:
        source = Path(checkout).resolve() / "src"
        if not (source / "leastaction").is_dir():
            raise SystemExit(f"expected a folder that contains src/leastaction, got {checkout}")
        self.environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self.environment |= {"PYTHONPATH": str(source), "PYTHONPYCACHEPREFIX": str(HERE / "bytecode")}
        self.environment |= {"LEASTACTION_QUIET": "1", **({"LEASTACTION_CPU": cpu} if cpu else {})}
        text = hashlib.sha256(repr(cpu).encode())
        for file in sorted((source / "leastaction").rglob("*.py")):
            text.update(file.read_bytes())
        self.imports: list[float] = []
        self.seed = HERE / "loops"  # of all states: entries of a cache are named by what decides their content
        self.seed.mkdir(mode=0o700, parents=True, exist_ok=True)
        done = HERE / text.hexdigest()[:16]
        if not done.exists():
            print(f"(native loops of {checkout} are prepared)", file=sys.stderr, flush=True)
            self.call("--sow", cache=self.seed)
            done.touch()

    def call(self, *arguments: str, cache: Path, file: str = __file__) -> str:
        command = [sys.executable, file, *arguments]
        environment = self.environment | {"LEASTACTION_CACHE": str(cache)}
        return subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout


def seeded(seed: Path, cache: Path) -> Path:
    """A cache with all entries of the seed."""
    cache.mkdir(mode=0o700, exist_ok=True)
    for entry in seed.iterdir():
        with contextlib.suppress(FileExistsError):
            os.link(entry, cache / entry.name)
    return cache


class Process:
    """A case in a process of its own; `error` is what ended it."""

    def __init__(self, side: Side, case: str, cache: Path) -> None:
        environment = side.environment | {"LEASTACTION_CACHE": str(seeded(side.seed, cache))}
        command = [sys.executable, __file__, "--serve", case]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.child: Any = subprocess.Popen(command, env=environment, text=True, **pipes)
        self.error = ""
        self.told = self.read()
        side.imports += [self.told["import"]] if self.told else []

    def read(self) -> Any:
        line = self.child.stdout.readline()
        if not line and not self.error:
            self.error = (self.child.stderr.read().strip().splitlines() or ["it ended"])[-1][:150]
        return json.loads(line) if line else None

    def ask(self, what: str, steps: int) -> Any:
        if self.error:
            return None
        print(json.dumps([what, steps]), file=self.child.stdin, flush=True)
        return self.read()

    def time(self, steps: int) -> float:
        spent = self.ask("time", steps)
        return math.nan if spent is None else spent


def compared(name: str, lanes: int, most: int, pair: list[Process], turns: int) -> tuple[list[str], float]:
    """The row of a case, and new/old."""

    def slowest(steps: int) -> float:
        return max([0.0, *(min(one.time(steps) for _ in range(2)) for one in pair if not one.error)])

    steps = FIRST
    while 0 < (spent := slowest(steps)) < (SECONDS if steps >= FEWEST else 20 * SECONDS) and steps < most:
        steps = min(most, steps * (2 if spent > SECONDS / 8 else 8))
    turns = max(6, math.ceil(turns * min(2.0, SECONDS / max(spent, 1e-6))))
    times: list[tuple[list[float], list[float]]] = [([], []) for _ in pair]
    for k in range(turns):
        for at in (k % 2, 1 - k % 2):
            times[at][0].append(pair[at].time(steps))
            times[at][1].append(pair[at].time(steps // 8))

    def cost(at: int, part: slice) -> float:
        long, short = (min(found[part]) for found in times[at])
        return (long - short) / (steps - steps // 8) / max(1, lanes) * 1e6

    old, new = (cost(at, slice(None)) for at in (0, 1))
    found = [one.ask("facts", steps) for one in pair]
    cells = [name, *(f"{x:.0f}" if x >= 1000 else f"{x:.3g}" for x in (old, new))]
    if any(one.error for one in pair):
        words = [f"{word}: {one.error}" for word, one in zip(("old", "new"), pair, strict=True) if one.error]
        return [*cells, "; ".join(words), *[""] * (len(HEADER) - 4)], math.nan

    def both(answers: list[Any], key: str, form: str) -> str:
        return " / ".join("–" if each[key] is None else form.format(each[key]) for each in answers)

    parts = [cost(1, slice(k, None, 3)) / cost(0, slice(k, None, 3)) for k in range(3)]
    first, second = (each["end"] for each in found)
    apart = max(abs(a - b) for a, b in zip(first, second, strict=True)) / max(map(abs, first))
    told = [one.told for one in pair]
    cells += [f"{new / old:.2f} ({min(parts):.2f}–{max(parts):.2f})", both(told, "first", "{:.2f}")]
    cells += [both(told, "compile", "{:.2f}"), both(found, "it", "{:.2f}")]
    cells += [both([each | {"res": each["res"] and 1000 * each["res"]} for each in found], "res", "{:.3g}")]
    return [*cells, both(found, "energy", "{:.1e}"), f"{apart:.0e}"], new / old


def names(words: list[str] | None, lanes: bool, quick: bool) -> None:
    """Print the names of the cases and their lanes."""
    from cases import all_cases, in_lanes

    for case in all_cases():
        if case.quick or not quick or words:
            for one in (case, *in_lanes(case)) if lanes else (case,):
                if not words or any(word in one.name for word in words):
                    print(f"{one.lanes}\t{one.most}\t{one.name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="*", metavar="OLD NEW")
    parser.add_argument("--cases", nargs="+", help="parts of the names of cases")
    parser.add_argument("--lanes", action="store_true", help="the cases in 16 and in 64 lanes, too")
    parser.add_argument("--cpu", help="for LEASTACTION_CPU, such as x86-64-v3")
    parser.add_argument(
        "--quick", action="store_true", help="fewer repeats, and without --cases fewer cases: two to three minutes"
    )
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--sow", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve or given.sow or given.list:
        return (
            serve(given.serve) if given.serve else sow() if given.sow else names(given.cases, given.lanes, given.quick)
        )
    if len(given.checkouts) != 2:
        parser.error(f"expected two checkouts, OLD and NEW, got {len(given.checkouts)}")
    sides = [Side(checkout, given.cpu) for checkout in given.checkouts]
    chosen = ["--list", *(["--lanes"] * given.lanes), *(["--quick"] * given.quick)]
    chosen += ["--cases", *given.cases] if given.cases else []
    ratios: dict[str, float] = {}
    print(f"| {' | '.join(HEADER)} |\n{'|---' * len(HEADER)}|")
    for line in sides[0].call(*chosen, cache=HERE / "loops").splitlines():
        lanes, most, name = line.split("\t")
        with tempfile.TemporaryDirectory(dir=HERE) as folder:
            pair = [Process(side, name, Path(folder) / str(k)) for k, side in enumerate(sides)]
            cells, ratio = compared(name, int(lanes), int(most), pair, QUICK_TURNS if given.quick else TURNS)
            for one in pair:
                one.child.communicate()
        print(f"| {' | '.join(cells)} |", flush=True)
        if ratio > 0:
            ratios[name] = ratio
    print("\nimport, s: " + " / ".join(f"{min(side.imports):.2f}" for side in sides))
    if ratios:
        mean, worst = math.exp(sum(map(math.log, ratios.values())) / len(ratios)), max(ratios, key=ratios.__getitem__)
        print(f"ratio, geometric mean of {len(ratios)}: {mean:.2f}; largest: {ratios[worst]:.2f}, {worst}")


if __name__ == "__main__":
    main()
