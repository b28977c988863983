"""High orders: P4 … P16 against C by hand: `python benchmarks/orders.py`.

`gauss.c` is the same scheme for two separable problems, the stages in vectors, iterated to round-off. Both sides run in
turns, and the best of each is taken, since machines are noisy. Compilation and set-up are left out on both sides: for
the library the steps alone count, for C the call. Prints tables in Markdown; `--quick` does fewer repeats.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import mpmath
import numpy as np
from core import best, per_step
from measured import table
from numpy.typing import NDArray

import leastaction as la

HERE = Path(__file__).parent
MEMBERS = (4, 6, 8, 10, 12, 14, 16)
PROCESSORS = ("native", "x86-64-v3")
SECONDS = 0.1  # about how long one timed run of the library takes
SHORT_RUNS, SHORT_STEPS = 9, 2000  # of C in each turn: its runs are much shorter and so more easily disturbed


def member(s: int) -> str:
    return f"P{s}N{s}Q{2 * s}Gau"


@cache
def gauss(s: int) -> tuple[NDArray[np.float64], ...]:
    """c, b, A A and the prolongation of Gauss' collocation with s stages, found with 50 digits and rounded once.

    In Legendre's polynomials P_k on [−1, 1], whose Gauss rule has the nodes x_j and the weights 2 b_j, the Lagrange
    polynomials are l_j(x) = b_j Σ_{k<s} (2k + 1) P_k(x_j) P_k(x); A integrates them, the prolongation takes x to x + 2.
    """
    with mpmath.workdps(50):
        P = mpmath.legendre
        nodes = [mpmath.findroot(partial(P, s), x) for x in np.polynomial.legendre.leggauss(s)[0]]
        # P_s' = s (x P_s − P_{s−1})/(x² − 1), at a root
        b = [(1 - x**2) / (s * P(s - 1, x)) ** 2 for x in nodes]

        def integral(k: int, x: mpmath.mpf) -> mpmath.mpf:
            """The integral of P_k from −1 to x, in units of a step."""
            return (x + 1) / 2 if k == 0 else (P(k + 1, x) - P(k - 1, x)) / (2 * (2 * k + 1))

        def at(basis: Callable[[int, mpmath.mpf], mpmath.mpf], shift: int) -> mpmath.matrix:
            values = [[basis(k, x + shift) for k in range(s)] for x in nodes]
            weights = [[b[j] * (2 * k + 1) * P(k, nodes[j]) for j in range(s)] for k in range(s)]
            return mpmath.matrix(values) * mpmath.matrix(weights)

        A, prolongation = at(integral, 0), at(P, 2)
        columns = [(x + 1) / 2 for x in nodes], b, (A * A).tolist(), prolongation.tolist()
        return tuple(np.array(column, dtype=object).astype(float) for column in columns)


@dataclass(frozen=True)
class Case:
    """A separable problem that gauss.c knows: its start and how its steps grow with s."""

    name: str
    bodies: int
    h: float  # per stage

    @property
    def problem(self) -> la.problems.Problem:
        return la.problems.get(self.name)

    @property
    def masses(self) -> NDArray[np.float64]:
        """One per coordinate."""
        if not self.bodies:
            return np.ones(2)
        planets = [value for name, value in self.problem.params.items() if name != "G"]
        return np.repeat(planets, 3)

    @property
    def mu(self) -> NDArray[np.float64]:
        params = self.problem.params
        return params["G"] * self.masses[::3] if self.bodies else np.array([params["k"]])


# The same number of stages per orbit, or per year, for every s: steps of P8 are 1/30 of an orbit, and 600 days.
CASES = (Case("kepler", 0, 2 * np.pi / 240), Case("outer-solar-system", 6, 75.0))


class Comparator:
    """gauss.c for one problem and one s."""

    def __init__(self, case: Case, s: int, processor: str, folder: str) -> None:
        self.case, self.s, library = case, s, Path(folder) / f"gauss-{case.name}-{s}-{processor}.so"
        flags = ["-O3", f"-march={processor}", "-fno-math-errno", "-shared", "-fPIC"]
        macros = [f"-DS={s}", f"-DBODIES={case.bodies}"]
        subprocess.run(["gcc", *flags, *macros, "-o", library, HERE / "gauss.c"], check=True)
        self._run = ctypes.CDLL(str(library)).run
        array = np.ctypeslib.ndpointer(np.float64, flags="C_CONTIGUOUS")
        self._run.argtypes = [ctypes.c_long, ctypes.c_double, *[array] * 7, ctypes.c_void_p]
        self._run.restype = ctypes.c_long
        problem = case.problem
        self.q, self.v = problem.q0, problem.p0 / case.masses
        self.data = case.mu, *gauss(s)
        self.evaluations = 0.0

    def __call__(self, h: float, steps: int, out: NDArray[np.float64] | None = None) -> float:
        """Seconds of so many steps; `out` takes the states (q, v) after each."""
        q, v = self.q.copy(), self.v.copy()
        clock = time.process_time()
        count = self._run(steps, h, q, v, *self.data, None if out is None else out.ctypes.data)
        seconds = time.process_time() - clock
        if count < 0:
            raise RuntimeError(f"gauss.c did not converge in step {-1 - count}: {self.case.name}, s = {self.s}")
        self.evaluations = count / steps
        return seconds

    def difference(self, path: la.Path) -> float:
        """The largest difference of the states from this path's, relative to the largest coordinate or momentum."""
        states = np.empty((len(path.t) - 1, 2, len(self.q)))
        self(path.h, len(states), states)
        pairs = (path.q[1:], states[:, 0]), (path.p[1:], states[:, 1] * self.case.masses)
        return max(float(np.abs(x - y).max() / np.abs(x).max()) for x, y in pairs)


def against_c(repeats: int) -> None:
    """Time of a step of P4 … P16, the library's over that of C, and how far their states are apart."""
    for case in CASES:
        problem, rows = case.problem, []
        with tempfile.TemporaryDirectory() as folder:
            for s in MEMBERS:
                h, start = s * case.h, {"q0": problem.q0, "p0": problem.p0}
                run = partial(la.integrate, problem.system, member(s), **start, h=h)
                compared = run(steps=100)
                probe = per_step(lambda count, run=run: run(steps=count, every=count), 200)()  # first steps are long
                steps = int(np.clip(SECONDS / probe, 200, 50_000))
                c = {name: Comparator(case, s, name, folder) for name in PROCESSORS}
                difference = max(each.difference(compared) for each in c.values())
                assert difference < 1e-10, f"gauss.c computes something else: {case.name}, s = {s}, {difference:.1e}"
                runs: dict[str, Callable[[], float]] = {
                    name: lambda c=comparator, h=h: min(c(h, SHORT_STEPS) for _ in range(SHORT_RUNS)) / SHORT_STEPS
                    for name, comparator in c.items()
                }
                runs["here"] = per_step(lambda count, run=run: run(steps=count, every=count), steps)
                times = {name: 1e6 * t for name, t in best(repeats, **runs).items()}
                fields = [times["here"], *(times[name] for name in PROCESSORS)]
                rows.append(
                    [
                        member(s),
                        f"{h:.4g}",
                        *(f"{x:.3f}" for x in fields),
                        *(f"{times['here'] / times[name]:.2f}" for name in PROCESSORS),
                        f"{c['native'].evaluations:.2f}",
                        f"{difference:.1e}",
                    ]
                )
        header = ["member", "h", "leastaction, µs per step", *(f"C {name}, µs per step" for name in PROCESSORS)]
        header += [*(f"leastaction / C {name}" for name in PROCESSORS), "iterations of C"]
        table(case.name, f"{problem.title}: the same scheme in C", [*header, "difference after 100 steps"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    options = parser.parse_args()
    against_c(3 if options.quick else 9)


if __name__ == "__main__":
    main()
