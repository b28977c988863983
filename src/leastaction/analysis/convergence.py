"""Convergence: errors over h, and the order they show.

Errors are the paper's (5.2): the largest over nodes and components of |q_k − q(t_k)| and of |p_k − p(t_k)|, or those at
the end of the run. The order is fitted to the larger of the two, each relative to the size of its own values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from leastaction.analysis.cases import Case, answer, as_case, epsilon
from leastaction.analysis.fit import Fit, fit_order
from leastaction.analysis.tables import table
from leastaction.errors import StepFailed
from leastaction.methods import Galerkin, Method
from leastaction.methods import method as method_named
from leastaction.methods.quadrature import gauss, lobatto

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]
At = Literal["nodes", "end"]

HALVINGS = 7  # how many steps are tried where none are given: t_end / 8 and its halves


@dataclass(frozen=True, eq=False)
class Convergence:
    """Errors of a method over steps h, and the order that they show. `la.analysis.convergence` gives it.

    Attributes
    ----------
    h : ndarray, shape (K,)
        Steps used, descending.
    q, p : ndarray, shape (K,)
        Errors of position and momentum; nan where the run failed.
    error : ndarray, shape (K,)
        The larger of the two, each relative to the largest |q| or |p|. The order is fitted to it.
    round_off : ndarray, shape (K,)
        The part of the error that may be round-off, or an error of the reference.
    fit : Fit
        How the order was fitted.
    order : float
        The fitted order.
    expected : int
        The order of the method.
    errors : ndarray, shape (K,)
        The same as `error`.

    Methods
    -------
    plot(ax)
        Draw errors over h.

    Examples
    --------
    >>> import leastaction as la
    >>> kepler = la.problems.get("kepler")
    >>> found = la.analysis.convergence(kepler, "simpson", [0.04, 0.02, 0.01], t_end=1)
    >>> round(found.order), found.expected
    (4, 4)
    """

    problem: str
    method: Method
    t_end: float
    at: At
    digits: int | None
    h: FloatArray
    q: FloatArray
    p: FloatArray
    error: FloatArray
    round_off: FloatArray
    fit: Fit

    @property
    def order(self) -> float:
        """The fitted order."""
        return self.fit.order

    @property
    def expected(self) -> int:
        """The order of the method."""
        return self.method.order

    @property
    def errors(self) -> FloatArray:
        """The same as `error`."""
        return self.error

    def __repr__(self) -> str:
        rows = []
        for k, h in enumerate(self.h):
            slope = "" if np.isnan(self.fit.slopes[k]) else f"{self.fit.slopes[k]:.2f}"
            remark = "fitted" if self.fit.used[k] else "failed" if np.isnan(self.error[k]) else ""
            rows.append([f"{h:.6g}", f"{self.q[k]:.3e}", f"{self.p[k]:.3e}", slope, remark])
        where = "over all nodes" if self.at == "nodes" else "at the end"
        how = f", {self.digits} digits" if self.digits else ""
        certain = "" if self.fit.settled else ", not settled: no three errors agree on it"
        return (
            f"{self.method.name} on {self.problem}, t = {self.t_end:g}, errors {where}{how}\n"
            + table(["h", "error of q", "error of p", "slope", ""], rows, left=0)
            + f"\norder {self.order:.2f} (expected {self.expected}){certain}"
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw errors over h, log–log, with the fitted line. Hollow points were left out of the fit.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw. Without `ax` a new figure is made.

        Returns
        -------
        matplotlib axes
        """
        from leastaction.analysis.figures import plot_convergence

        return plot_convergence([self], ax)


def convergence(
    problem: Any,
    method: str | Method,
    hs: Sequence[Any] | None = None,
    *,
    t_end: Any = None,
    at: At = "nodes",
    digits: int | None = None,
    params: Mapping[str, Any] | None = None,
) -> Convergence:
    """Measure the errors of a method over steps h, and the order that they show.

    Parameters
    ----------
    problem : Problem or tuple
        One of the catalogue, or (system, q0, p0), or (system, q0, p0, exact) with exact(t) ↦ (q, p). Without an exact
        solution a fine reference of high order takes its place.
    method : str or method
        The method.
    hs : sequence of numbers, optional
        Steps. Without `hs`: t_end divided by 8, 16, … 512.
    t_end : number, optional
        Until when. Without `t_end`: the period of the problem.
    at : {"nodes", "end"}, default "nodes"
        The largest error over the run, or the error at t_end.
    digits : int, optional
        Decimal digits of the arithmetic. Without `digits` float64. Orders of 8 and more show with 40 digits or so.
    params : mapping, optional
        Values of parameters. An `exact` given with the system must be the solution for these.

    Returns
    -------
    Convergence
        A table that prints itself.

    Raises
    ------
    ValueError
        Fewer than two steps, or no t_end where the problem has no period.

    Examples
    --------
    >>> import leastaction as la
    >>> kepler = la.problems.get("kepler")
    >>> la.analysis.convergence(kepler, "simpson", ["1/16", "1/32", "1/64", "1/128"], t_end=1, digits=30)
    P2N3Q4Lob on kepler, t = 1, errors over all nodes, 30 digits
            h  error of q  error of p  slope
       0.0625   1.697e-05   2.481e-05         fitted
      0.03125   1.046e-06   1.523e-06   4.02  fitted
     0.015625   6.516e-08   9.502e-08   4.00  fitted
    0.0078125   4.069e-09   5.934e-09   4.00  fitted
    order 4.01 (expected 4)
    """
    chosen = method_named(method)
    if at not in ("nodes", "end"):
        raise ValueError(f"at must be 'nodes' or 'end'; got {at!r}")
    case = as_case(problem, digits)
    if params and not isinstance(problem, tuple):
        case = replace(case, exact=None)  # the catalogue's exact solution holds for its own parameters only
    t_end = until(case, t_end)
    steps = [t_end / 2 ** (3 + k) for k in range(HALVINGS)] if hs is None else list(hs)
    if len(steps) < 2:
        raise ValueError(f"an order needs errors at two steps at least; got {len(steps)}")
    rows = [_errors(case, chosen, h, t_end, at, digits, params) for h in steps]
    rows.sort(key=lambda row: -row[0])
    h, q, p, error, round_off = np.array(rows).T
    return Convergence(
        case.name, chosen, float(t_end), at, digits, h, q, p, error, round_off, fit_order(h, error, round_off)
    )


def until(case: Case, t_end: Any) -> Any:
    until = case.period if t_end is None else t_end
    if until is None or not np.isfinite(float(until)):
        raise ValueError(f"{case.name} has no period: say until when with t_end=")
    return until


def _errors(
    case: Case, chosen: Method, h: Any, t_end: Any, at: At, digits: int | None, params: Mapping[str, Any] | None
) -> tuple[float, float, float, float, float]:
    """h, the errors of q and p, the larger of the two relative errors, and the round-off in that error."""
    try:
        path = case.run(chosen, h, t_end, digits, params=params)
    except StepFailed:
        return abs(float(h)), np.nan, np.nan, np.nan, np.nan
    known = answer(case, path, digits)
    rows = slice(None) if at == "nodes" else slice(-1, None)
    away = [float(abs(x - y)[rows].max()) for x, y in ((path.q, known.q), (path.p, known.p))]
    size = [float(abs(x).max()) or 1.0 for x in (known.q, known.p)]
    # Rounding is a random walk over the steps, and no answer is known better than to its last digits.
    steps = round(float((path.t[-1] - path.t[0]) / path.h))
    round_off = epsilon(digits) * np.sqrt(max(steps, 1)) / 4 + known.uncertainty
    larger = max(x / y for x, y in zip(away, size, strict=True))
    return abs(float(path.h)), away[0], away[1], larger, float(round_off)


@dataclass(frozen=True, eq=False)
class OrderTable:
    """Measured orders of members PsNrQu over s and r: the Galerkin paper's Tables 1 (Gauss) and 2 (Lobatto).

    Attributes
    ----------
    family : {"Gau", "Lob"}
        Which rules.
    s, r : tuple of int
        Degrees and numbers of nodes.
    orders : ndarray, shape (len(r), len(s))
        Measured; nan where r < s.
    expected : ndarray, shape (len(r), len(s))
        min(2s, u).
    results : tuple of Convergence
        The measurements.

    Methods
    -------
    plot(ax)
        Draw the errors of all members over h.

    Examples
    --------
    >>> import leastaction as la
    >>> kepler = la.problems.get("kepler")
    >>> table = la.analysis.order_table(kepler, "Gau", [0.04, 0.02, 0.01], s=(1, 2), r=(2,), t_end=1)
    >>> table.orders.round(1)
    array([[2., 4.]])
    """

    family: Literal["Gau", "Lob"]
    s: tuple[int, ...]
    r: tuple[int, ...]
    orders: FloatArray
    expected: FloatArray
    results: tuple[Convergence, ...]

    def __repr__(self) -> str:
        rows = []
        for i, r in enumerate(self.r):
            cells = [
                "" if np.isnan(expected) else f"{order:.2f} ({expected:.0f})"
                for order, expected in zip(self.orders[i], self.expected[i], strict=True)
            ]
            rows.append([f"r = {r}", *cells])
        name = "Gauss" if self.family == "Gau" else "Lobatto"
        one = self.results[0]
        return f"{name} on {one.problem}: measured order (expected min(2s, u))\n" + table(
            ["", *(f"s = {s}" for s in self.s)], rows
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the errors of all members over h.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw. Without `ax` a new figure is made.

        Returns
        -------
        matplotlib axes
        """
        from leastaction.analysis.figures import plot_convergence

        return plot_convergence(list(self.results), ax)


def order_table(
    problem: Any,
    family: Literal["Gau", "Lob"],
    hs: Sequence[Any] | None = None,
    *,
    s: Sequence[int] = (1, 2, 3, 4, 5),
    r: Sequence[int] = (2, 3, 4, 5),
    t_end: Any = None,
    at: At = "nodes",
    digits: int | None = None,
) -> OrderTable:
    """Measure the order of every member with degree in s and nodes in r ≥ s.

    Parameters
    ----------
    problem : Problem or tuple
        As for `la.analysis.convergence`.
    family : {"Gau", "Lob"}
        "Gau" gives the Galerkin paper's Table 1, "Lob" Table 2.
    hs, t_end, at, digits
        As for `la.analysis.convergence`.
    s : sequence of int, default (1, 2, 3, 4, 5)
        Degrees.
    r : sequence of int, default (2, 3, 4, 5)
        Numbers of nodes.

    Returns
    -------
    OrderTable
        A table that prints itself.

    Examples
    --------
    >>> import leastaction as la
    >>> kepler = la.problems.get("kepler")
    >>> la.analysis.order_table(kepler, "Lob", [0.04, 0.02, 0.01], s=(1, 2), r=(2, 3), t_end=1).expected
    array([[2., 2.],
           [2., 4.]])
    """
    if family not in ("Gau", "Lob"):
        raise ValueError(f"family must be 'Gau' or 'Lob'; got {family!r}")
    rule = gauss if family == "Gau" else lobatto
    orders, expected = np.full((2, len(r), len(s)), np.nan)
    results = []
    for i, nodes in enumerate(r):
        for j, degree in enumerate(s):
            if nodes >= degree:
                found = convergence(problem, Galerkin(degree, rule(nodes)), hs, t_end=t_end, at=at, digits=digits)
                orders[i, j], expected[i, j] = found.order, found.expected
                results.append(found)
    return OrderTable(family, tuple(s), tuple(r), orders, expected, tuple(results))
