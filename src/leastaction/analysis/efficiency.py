"""Efficiency: error against run time (the paper's Figures 5.13 and 5.14), on a machine that may be busy.

Every run is repeated, and the repeats of all runs are interleaved, so that a disturbance meets all runs alike. The
shortest time of each run counts, without compile time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.analysis.cases import answer, as_case
from leastaction.analysis.convergence import At, until
from leastaction.analysis.tables import table
from leastaction.errors import StepFailed
from leastaction.methods import Method
from leastaction.methods import method as method_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Efficiency:
    """Errors and run times of methods over steps. `la.analysis.efficiency` gives it.

    Attributes
    ----------
    problem : str
        The problem's name.
    methods : tuple of methods
        The rows.
    h : ndarray, shape (K,)
        Steps, the columns, descending.
    error : ndarray, shape (methods, K)
        The larger of the errors of q and p, each relative to the size of its values; nan where a run failed.
    time : ndarray, shape (methods, K)
        Seconds of the shortest repeat.
    noise : float
        The median of the repeats over the shortest, at worst: 1 on a quiet machine.

    Methods
    -------
    fastest(error)
        The method that reaches an error first.
    plot(ax)
        Draw error against run time.

    Examples
    --------
    >>> import leastaction as la
    >>> kepler = la.problems.get("kepler")
    >>> found = la.analysis.efficiency(kepler, ["simpson", "P4N4Q8Gau"], [0.1, 0.05], t_end=1, repeats=1)
    >>> found.error.shape
    (2, 2)
    """

    problem: str
    methods: tuple[Method, ...]
    h: FloatArray
    error: FloatArray
    time: FloatArray
    noise: float

    def __repr__(self) -> str:
        rows = [
            [chosen.name, f"{self.h[k]:.6g}", f"{self.error[i, k]:.2e}", f"{1e3 * self.time[i, k]:.4g}"]
            for i, chosen in enumerate(self.methods)
            for k in range(len(self.h))
        ]
        return f"Efficiency on {self.problem} (repeats spread by up to {self.noise:.2f})\n" + table(
            ["method", "h", "error", "ms"], rows
        )

    def fastest(self, error: float) -> tuple[Method, float]:
        """The method that reaches an error in the shortest time, and the time, interpolated between its runs.

        Parameters
        ----------
        error : float
            Relative error.

        Returns
        -------
        method, seconds

        Raises
        ------
        ValueError
            No run reached this error.
        """
        best: tuple[Method, float] | None = None
        for i, chosen in enumerate(self.methods):
            fine = np.isfinite(self.error[i]) & (self.error[i] > 0)
            e, t = np.log(self.error[i, fine]), np.log(self.time[i, fine])
            if not len(e) or not e.min() <= np.log(error):
                continue
            order = np.argsort(e)
            seconds = float(np.exp(np.interp(np.log(error), e[order], t[order])))
            if best is None or seconds < best[1]:
                best = (chosen, seconds)
        if best is None:
            raise ValueError(f"no run reached an error of {error:g}; the least is {np.nanmin(self.error):.1e}")
        return best

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw error against run time, log–log.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw. Without `ax` a new figure is made.

        Returns
        -------
        matplotlib axes
        """
        from leastaction.analysis.figures import plot_efficiency

        return plot_efficiency(self, ax)


def efficiency(
    problem: Any,
    methods: Sequence[str | Method],
    hs: Sequence[float],
    *,
    t_end: float | None = None,
    at: At = "nodes",
    repeats: int = 5,
) -> Efficiency:
    """Measure error against run time for methods and steps.

    All runs are repeated in a random order, and the shortest time of each counts. Compile time is not part of it.

    Parameters
    ----------
    problem : Problem or tuple
        One of the catalogue, or (system, q0, p0), or (system, q0, p0, exact).
    methods : sequence of str or method
        Which methods.
    hs : sequence of float
        Which steps.
    t_end : float, optional
        Until when. Without `t_end`: the period of the problem.
    at : {"nodes", "end"}, default "nodes"
        The largest error over the run, or the error at t_end.
    repeats : int, default 5
        How often each run is done.

    Returns
    -------
    Efficiency
        A table that prints itself.

    Examples
    --------
    >>> import leastaction as la
    >>> kepler = la.problems.get("kepler")
    >>> found = la.analysis.efficiency(kepler, ["simpson", "P4N4Q8Gau"], [0.1, 0.05], t_end=1, repeats=1)
    >>> bool((found.error[1] < found.error[0]).all())
    True
    """
    if isinstance(methods, str) or not isinstance(methods, Sequence) or not methods:
        raise TypeError(f"expected a list of methods or their names; got {methods!r}")
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1; got {repeats!r}")
    chosen = tuple(method_named(m) for m in methods)
    case = as_case(problem)
    end = until(case, t_end)
    h = np.sort(np.asarray(hs, float))[::-1]
    error, runs = np.full((len(chosen), len(h)), np.nan), []
    rows = slice(None) if at == "nodes" else slice(-1, None)
    for i, m in enumerate(chosen):
        for k, step in enumerate(h):
            try:
                path = case.run(m, step, end, None)
            except StepFailed:
                continue
            known = answer(case, path, None)
            error[i, k] = max(
                float(np.abs(x - y)[rows].max()) / (float(np.abs(y).max()) or 1.0)
                for x, y in ((path.q, known.q), (path.p, known.p))
            )
            runs.append((i, k))
    times = np.full((repeats, len(chosen), len(h)), np.nan)
    rng = np.random.default_rng(0)
    for repeat in range(repeats):
        for place in rng.permutation(len(runs)):
            i, k = runs[place]
            times[repeat, i, k] = case.run(chosen[i], h[k], end, None).stats["run_time"]
    shortest = times.min(axis=0)
    noise = float(np.nanmax(np.median(times, axis=0) / shortest)) if runs else float("nan")
    return Efficiency(case.name, chosen, h, error, shortest, noise)
