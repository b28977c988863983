"""Efficiency: error against run time (the paper's Figures 5.13 and 5.14), on a machine that may be busy.

Every run is repeated, and the repeats of all runs are interleaved, so that a disturbance meets all runs alike. The
shortest time of each run counts, without compile time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from leastaction.analysis import figures
from leastaction.analysis.cases import At, case_of
from leastaction.docstrings import documented
from leastaction.errors import StepFailed
from leastaction.methods import Method
from leastaction.methods import method as method_named
from leastaction.numbers.arrays import FloatArray
from leastaction.printing import table


@dataclass(frozen=True, eq=False)
class Efficiency(figures.Drawn, picture=figures.draw_efficiency):
    """Errors and run times of methods over steps. `la.analysis.efficiency` gives it.

    `plot` draws error against run time, log–log.
    """

    problem: Annotated[str, "The problem's name."]
    methods: Annotated[tuple[Method, ...], "The rows."]
    h: Annotated[FloatArray, "shape (K,)", "Steps, the columns, descending."]
    error: Annotated[FloatArray, "shape (methods, K)", "The larger relative error of q and p; nan where a run failed."]
    time: Annotated[FloatArray, "shape (methods, K)", "Seconds of the shortest repeat."]
    noise: Annotated[float, "The median of the repeats over the shortest, at worst: 1 on a quiet machine."]

    def __repr__(self) -> str:
        rows = [
            [chosen.name, f"{self.h[k]:.6g}", f"{self.error[i, k]:.2e}", f"{1e3 * self.time[i, k]:.4g}"]
            for i, chosen in enumerate(self.methods)
            for k in range(len(self.h))
        ]
        head = f"Efficiency on {self.problem} (repeats spread by up to {self.noise:.2f})\n"
        return head + table(["method", "h", "error", "ms"], rows)

    def fastest(self, error: float) -> tuple[Method, float]:
        """The method that reaches an error in the shortest time, and the time, interpolated between its runs.

        Parameters
        ----------
        error : float
            Relative error.

        Raises
        ------
        ValueError
            No run reached this error.
        """
        times: dict[Method, float] = {}
        for i, chosen in enumerate(self.methods):
            fine = np.isfinite(self.error[i]) & (self.error[i] > 0)
            e, t = np.log(self.error[i, fine]), np.log(self.time[i, fine])
            if len(e) and e.min() <= np.log(error):
                order = np.argsort(e)
                times[chosen] = float(np.exp(np.interp(np.log(error), e[order], t[order])))
        if not times:
            raise ValueError(f"no run reached an error of {error:g}; the least is {np.nanmin(self.error):.1e}")
        return min(times.items(), key=lambda item: item[1])


@documented()
def efficiency(
    system: Any, methods: Sequence[str | Method], q0: Any = None, p0: ArrayLike | None = None, *,
    v0: ArrayLike | None = None, h: Sequence[float] | None = None, t_end: float | None = None, at: At = "nodes",
    repeats: int = 5,
) -> Efficiency:  # fmt: skip
    """Measure error against run time for methods and steps.

    All runs are repeated in a random order, and the shortest time of each counts. Compile time is not part of it.

    Parameters
    ----------
    {case}
    methods : sequence of str or method
        Which methods.
    h : sequence of float
        Which steps.
    {t_end, at}
    repeats : int, default 5
        How often each run is done.

    Examples
    --------
    >>> import leastaction as la
    >>> kepler = la.problems.get("kepler")
    >>> found = la.analysis.efficiency(kepler, ["simpson", "P4N4Q8Gau"], h=[0.1, 0.05], t_end=1, repeats=1)
    >>> bool((found.error[1] < found.error[0]).all())
    True
    """
    if isinstance(methods, str) or not isinstance(methods, Sequence) or not methods:
        raise TypeError(f"expected a list of methods or their names; got {methods!r}")
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1; got {repeats!r}")
    chosen = tuple(method_named(m) for m in methods)
    case, given = case_of(system, q0, p0, v0, h, t_end=t_end)
    if given is None:
        raise TypeError("give the steps to be tried: h=[…]")
    steps = np.sort(np.asarray(given, float))[::-1]
    error, runs = np.full((len(chosen), len(steps)), np.nan), []
    for i, m in enumerate(chosen):
        for k, step in enumerate(steps):
            try:
                path = case.run(m, step)
            except StepFailed:
                continue
            error[i, k] = case.errors(path, at)[2]
            runs.append((i, k))
    times = np.full((repeats, len(chosen), len(steps)), np.nan)
    rng = np.random.default_rng(0)
    for repeat in range(repeats):
        for place in rng.permutation(len(runs)):
            i, k = runs[place]
            times[repeat, i, k] = case.run(chosen[i], steps[k]).stats["run_time"]
    shortest = times.min(axis=0)
    noise = float(np.nanmax(np.median(times, axis=0) / shortest)) if runs else float("nan")
    return Efficiency(case.name, chosen, steps, error, shortest, noise)
