"""The largest errors of the runs of Tables 2, 4 and 5, whatever their length: in pieces, and on all cores.

A run of a million steps with many digits would keep a million states of mpmath numbers. So each piece begins with the
last state of the piece before, and only the largest errors so far are kept. Between pieces the method forgets its
prediction. This changes only digits that Newton's iteration settles anyway, and none of the errors.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastaction.numbers.precision import mpmath_digits
from leastaction.papers.top2025.runs import PAPER_DIGITS, nutation_step, problem, run

PIECE = 2000  # steps with many digits: some seconds

Errors = dict[str, dict[int, float]]  # by quantity and length


@dataclass(frozen=True)
class LongRun:
    """A method on a problem with so many steps in a unit of time: a second, or a nutation period of the top."""

    name: str
    method: str
    mesh: int
    lengths: tuple[int, ...]
    digits: int | None = None

    @property
    def steps(self) -> int:
        return max(self.lengths) * self.mesh


def errors(long: LongRun, tick: Callable[[int], None] = lambda steps: None, piece: int | None = None) -> Errors:
    """The largest relative errors of the energy, and of a top's nutation, over each length; `tick` counts steps."""
    top = long.name == "lagrange-top"
    h = nutation_step(long.name, long.mesh) if top else f"1/{long.mesh}"
    exact = _nutation(long, h) if top else None
    largest = {"energy": 0.0} | ({"nutation": 0.0} if top else {})
    found: Errors = {quantity: {} for quantity in largest}
    start, first_energy, done = None, None, 0
    piece = piece or (long.steps if long.digits is None else PIECE)
    for end in sorted({*range(piece, long.steps, piece), *(length * long.mesh for length in long.lengths)}):
        path = run(long.name, long.method, h, end - done, digits=long.digits, start=start)
        H = path.energy()
        with path.reals.working():
            first_energy = H[0] if first_energy is None else first_energy
            e = {"energy": (H - first_energy) / first_energy}
            if exact is not None:
                at = exact[(done + np.arange(len(path))) % long.mesh]
                e["nutation"] = (path.q[:, 1] - at) / at
            largest = {name: max(largest[name], float(abs(e[name]).max())) for name in largest}
        tick(end - done)
        start, done = (path.q[-1], path.p[-1]), end
        if done % long.mesh == 0 and done // long.mesh in long.lengths:
            for name, value in largest.items():
                found[name][done // long.mesh] = value
    return found


def _nutation(long: LongRun, h: Any) -> Any:
    """θ at the nodes of one period, to the digits of the run; it is the same in every period."""
    with mpmath_digits(2 * (long.digits or PAPER_DIGITS)):
        t = np.array([k * h for k in range(long.mesh)], dtype=object)
    return problem(long.name).exact(t, digits=long.digits)[0][:, 1]


def all_errors(
    runs: Sequence[LongRun], tick: Callable[[int, int], None], workers: int | None = None
) -> dict[LongRun, Errors]:
    """The errors of many runs, one process for each core, the longest first; `tick(done, total)` counts steps."""
    total, done, found = sum(long.steps for long in runs), 0, {}
    context = multiprocessing.get_context("spawn")  # a fork would copy threads of libraries in any state
    with ProcessPoolExecutor(min(len(runs), workers or os.cpu_count() or 1), context) as pool:
        waiting = {pool.submit(errors, long): long for long in sorted(runs, key=lambda long: -long.steps)}
        for future in as_completed(waiting):
            found[waiting[future]] = future.result()
            done += waiting[future].steps
            tick(done, total)
    return found
