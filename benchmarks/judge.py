"""Two states of the library side by side, case by case (`cases.py`).

    python benchmarks/judge.py OLD NEW [--cases WORD …] [--lanes] [--cpu x86-64-v3] [--quick] [--list]

OLD and NEW are checkouts: folders that contain src/leastaction. For each case both run in a process of their own. They
take turns, and of many short runs the least processor time counts:

    µs a step   (time of a run of N steps − time of one of N/8)/(7N/8), per trajectory; of "one step, warm" of a call
    ratio       new/old, and the least and largest ratio of the minima of three parts of the runs
    first       seconds of the processor from the definition of the system to the end of its first steps: the cache of
                machine code is empty but for what comes with the package (native loops, where a state has them)
    compile     of it path.stats["compile_time"]
    it, res     iterations a step; continued (rescued) steps in a thousand
    energy      the largest relative change of the energy (less work done) in a run of N steps, at 20 states
    apart       how far both states of the library are from each other after 20 steps, relative to the largest |q|

A case that only one state can run is shown, too. `--cases` takes parts of names.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import platformdirs

SECONDS = 0.015  # about how long a timed run takes
FIRST = 8  # steps of a first run
EACH = 20  # steps after which both states are compared
TURNS, QUICK_TURNS = 60, 12
HEADER = ["case", "µs a step: old", "new", "ratio", "first, s", "compile, s", "it", "res ‰", "energy", "apart"]


# The process of one state --------------------------------------------------------------------------------------------


def serve(name: str) -> None:
    """Answer questions, lines of JSON, about one case: each with the processor seconds of what was asked."""
    clock = time.process_time()
    from cases import all_cases, in_lanes

    told: dict[str, Any] = {"import": time.process_time() - clock}
    warnings.simplefilter("ignore")
    case = next(one for each in all_cases() for one in (each, *in_lanes(each)) if one.name == name)
    clock = time.process_time()
    run = case.start()
    path = run(FIRST)
    told |= {"first": time.process_time() - clock, "compile": path.stats.get("compile_time")}
    print(json.dumps(told), flush=True)
    for line in sys.stdin:
        ask, steps = json.loads(line)
        if ask == "time":
            clock = time.process_time()
            run(steps)
            print(json.dumps(time.process_time() - clock), flush=True)
        else:
            print(json.dumps(facts(run, steps, max(1, case.lanes))), flush=True)


def facts(run: Any, steps: int, lanes: int) -> dict[str, Any]:
    import numpy as np

    path = run(steps, 20)
    stats, count = path.stats, steps * lanes
    energy = np.atleast_2d(np.asarray(path.energy(), float))
    if getattr(path.system, "forced", False) or getattr(path.system, "force", None) is not None:
        energy = energy - np.atleast_2d(np.asarray(path.work(), float))
    scale = np.maximum(np.abs(energy[:, 0]), 1e-3)
    iterations = stats.get("newton_iterations", stats.get("iterations"))
    rescued = stats.get("continued", stats.get("rescued"))
    return {
        "iterations": None if iterations is None else iterations / count,
        "rescued": None if rescued is None else 1000 * rescued / count,
        "energy": float(np.nanmax(np.abs(energy - energy[:, :1]) / scale[:, None])),
        "end": np.asarray(run(EACH, 2).q, float)[..., -1, :].ravel().tolist(),
    }


# The process that asks -----------------------------------------------------------------------------------------------


class Side:
    """A state of the library: where it is, and a cache with the native loops that it comes with."""

    def __init__(self, checkout: str, cpu: str | None) -> None:
        self.source = Path(checkout).resolve() / "src"
        if not (self.source / "leastaction").is_dir():
            raise SystemExit(f"expected a folder that contains src/leastaction, got {checkout}")
        self.environment = {**os.environ, "PYTHONPATH": str(self.source), "LEASTACTION_QUIET": "1"}
        self.environment |= {"LEASTACTION_CPU": cpu} if cpu else {}
        text = hashlib.sha256(repr((cpu, str(self.source))).encode())
        for file in sorted((self.source / "leastaction").rglob("*.py")):
            text.update(file.read_bytes())
        self.seed = Path(platformdirs.user_cache_dir("leastaction-judge")) / text.hexdigest()[:16]
        self.imports: list[float] = []
        if not (self.seed / "whole").exists():
            self.sow()

    def sow(self) -> None:
        """Run a system of no case by every kind of run, so that the native loops are in the cache."""
        self.seed.mkdir(mode=0o700, parents=True, exist_ok=True)
        print(f"(native loops of {self.source.parent} are prepared)", file=sys.stderr, flush=True)
        environment = {**self.environment, "LEASTACTION_CACHE": str(self.seed)}
        subprocess.run([sys.executable, __file__, "--sow"], check=True, env=environment)
        (self.seed / "whole").touch()

    def process(self, case: str, cache: str) -> Process:
        shutil.copytree(self.seed, cache)
        os.chmod(cache, 0o700)
        return Process(case, {**self.environment, "LEASTACTION_CACHE": cache})


class Process:
    def __init__(self, case: str, environment: dict[str, str]) -> None:
        command = [sys.executable, __file__, "--serve", case]
        self.child = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.error: str | None = None
        self.told = self.read()

    def read(self) -> Any:
        assert self.child.stdout is not None and self.child.stderr is not None
        line = self.child.stdout.readline()
        if not line:
            self.error = (self.child.stderr.read().strip().splitlines() or ["it ended"])[-1]
            return None
        return json.loads(line)

    def ask(self, what: str, steps: int) -> Any:
        if self.error is not None:
            return None
        assert self.child.stdin is not None
        print(json.dumps([what, steps]), file=self.child.stdin, flush=True)
        return self.read()

    def end(self) -> None:
        self.child.communicate()


def sow() -> None:
    """One run of each kind."""
    import numpy as np

    import leastaction as la

    def L(q, v):
        return 0.5 * (1 + 0.1234 * q[0] ** 2) * v[0] ** 2 - 0.4321 * q[0] ** 4

    system, start = la.Lagrangian(L, n=1), {"q0": [1.0], "p0": [0.1], "h": 0.01, "steps": 20}
    path = la.integrate(system, "simpson", **start, events={"x": la.Event(lambda q, p: q[0] - 0.999)}, tangent=True)
    path([0.005, 0.015]), path.energy(), path.velocity(), path.work()
    for method in ("rk4", la.compose("simpson", "yoshida")):
        la.integrate(system, method, **start)
    paths = la.ensemble(system, "simpson", **start | {"q0": np.linspace(1, 2, 16)[:, None], "p0": [0.1]}, threads=1)
    paths.energy()
    held = la.Lagrangian(lambda q, v: 0.55 * v @ v - q[1], n=2, constraints=lambda q: q @ q - 1)
    la.integrate(held, "simpson", [1.0, 0.0], [0.0, 0.0], h=0.01, steps=2)
    rows = [(k, k + 1) for k in range(400)]
    mass = la.Term(lambda q, v: 0.5432 * v[0] ** 2, over=np.arange(401))
    spring = la.Term(lambda q, v: -0.3456 * (q[1] - q[0]) ** 2 - 0.1 * q[0] ** 4, over=rows)
    for method in ("simpson", "stormer-verlet", "P2N2Q4Gau"):
        total = la.Lagrangian.sum([mass, spring], n=401)
        la.integrate(total, method, np.sin(np.arange(401)), np.zeros(401), h=0.1, steps=2, threads=2).energy()
    la.integrate(la.Quadratic(np.eye(3), 1.7 * np.eye(3)), "simpson", np.ones(3), np.zeros(3), h=0.1, steps=2)


def compare(name: str, sides: list[Side], turns: int) -> list[str]:
    """The row of a case."""
    with tempfile.TemporaryDirectory() as folder:
        pair = [side.process(name, f"{folder}/{k}") for k, side in enumerate(sides)]
        try:
            return row(name, sides, pair, turns)
        finally:
            for one in pair:
                one.end()


def row(name: str, sides: list[Side], pair: list[Process], turns: int) -> list[str]:
    for side, one in zip(sides, pair, strict=True):
        side.imports += [one.told["import"]] if one.told else []
    able = [one for one in pair if one.error is None]
    steps = 64
    while able and max(one.ask("time", steps) or 1.0 for one in able) < SECONDS and steps < 10**7:
        steps *= 2
    most = max(1, round(0.4 / max([SECONDS, *(one.ask("time", steps) or 0.0 for one in able)])))  # of long runs fewer
    rounds = max(3, min(turns, most * turns // 12))
    spent: list[tuple[list[float], list[float]]] = [([], []) for _ in pair]
    for k in range(rounds):
        for at in (k % 2, 1 - k % 2):
            for kind, count in enumerate((steps, steps // 8)):
                spent[at][kind].append(pair[at].ask("time", count) or float("nan"))
    found = [one.ask("facts", steps) for one in pair]
    lanes = int(next((name.split()[k - 1] for k, word in enumerate(name.split()) if word == "lanes"), 1))
    lanes = 1000 if name.startswith("1,000 members") else lanes

    def cost(at: int, part: slice) -> float:
        long, short = (min(times[part]) for times in spent[at])
        return (long - short) / (steps - steps // 8) / lanes * 1e6

    old, new = (cost(at, slice(None)) for at in (0, 1))
    parts = sorted(cost(1, slice(k, None, 3)) / cost(0, slice(k, None, 3)) for k in range(3))
    ratio = f"{new / old:.2f} ({parts[0]:.2f}–{parts[-1]:.2f})"
    if any(one.error is not None for one in pair):
        words = ", ".join(f"{w}: {one.error}" for w, one in zip(("old", "new"), pair, strict=True) if one.error)
        return [name, f"{old:.3g}", f"{new:.3g}", words, *[""] * 6]

    def both(values: Iterator[Any] | list[Any], form: str) -> str:
        return " / ".join("–" if x is None else form.format(x) for x in values)

    ends = [each["end"] for each in found]
    apart = max(abs(a - b) for a, b in zip(*ends, strict=True)) / max(abs(x) for x in ends[0])
    return [
        name,
        f"{old:.3g}",
        f"{new:.3g}",
        ratio,
        both([one.told["first"] for one in pair], "{:.2f}"),
        both([one.told["compile"] for one in pair], "{:.2f}"),
        both([each["iterations"] for each in found], "{:.2f}"),
        both([each["rescued"] for each in found], "{:.3g}"),
        both([each["energy"] for each in found], "{:.1e}"),
        f"{apart:.0e}",
    ]


def names(given: argparse.Namespace) -> list[str]:
    from cases import all_cases, in_lanes

    chosen = all_cases()
    if given.quick:
        chosen = [case for case in chosen if case.quick]
    found = [one.name for case in chosen for one in ((case, *in_lanes(case)) if given.lanes else (case,))]
    return [name for name in found if not given.cases or any(word in name for word in given.cases)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="*", metavar="OLD NEW")
    parser.add_argument("--cases", nargs="+", help="parts of the names of cases")
    parser.add_argument("--lanes", action="store_true", help="the cases in 16 and in 64 lanes, too")
    parser.add_argument("--cpu", help="for LEASTACTION_CPU, such as x86-64-v3")
    parser.add_argument("--quick", action="store_true", help="fewer cases and fewer repeats: some two minutes")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--sow", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        return serve(given.serve)
    if given.sow:
        return sow()
    if given.list:
        return print("\n".join(names(given)))
    if len(given.checkouts) != 2:
        parser.error(f"expected two checkouts, OLD and NEW; got {len(given.checkouts)}")
    sides = [Side(checkout, given.cpu) for checkout in given.checkouts]
    print(f"| {' | '.join(HEADER)} |\n{'|---' * len(HEADER)}|")
    for name in names(given):
        print("| " + " | ".join(compare(name, sides, QUICK_TURNS if given.quick else TURNS)) + " |", flush=True)
    print("\nimport, s: " + " / ".join(f"{min(side.imports):.2f}" for side in sides))
    return None


if __name__ == "__main__":
    main()
