"""Convergence: errors over h, and the order they show.

Errors are the paper's (5.2): the largest over nodes and components of |q_k − q(t_k)| and of |p_k − p(t_k)|, or those at
the end of the run. The order is fitted to the larger of the two, each relative to the size of its own values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from leastaction.analysis import figures
from leastaction.analysis.cases import At, Case, case_of
from leastaction.analysis.fit import Fit, fit_order
from leastaction.docstrings import documented
from leastaction.errors import StepFailed
from leastaction.methods import Galerkin, Method
from leastaction.methods import method as method_named
from leastaction.methods.quadrature import gauss, lobatto
from leastaction.numbers.arrays import FloatArray
from leastaction.printing import table

HALVINGS = 7  # how many steps are tried where none are given: t_end / 8 and its halves


@dataclass(frozen=True, eq=False)
class Convergence(figures.Drawn, picture=figures.draw_convergence):
    """Errors of a method over steps h, and the order that they show. `la.analysis.convergence` gives it.

    `plot` draws errors over h, log–log, with the fitted line. Hollow points were left out of the fit.
    """

    problem: str
    method: Method
    t_end: float
    at: At
    digits: int | None
    h: Annotated[FloatArray, "shape (K,)", "Steps used, descending."]
    q: Annotated[FloatArray, "shape (K,)", "Error of the position; nan where the run failed."]
    p: Annotated[FloatArray, "shape (K,)", "Error of the momentum."]
    error: Annotated[FloatArray, "shape (K,)", "The larger one, relative to max |q| or max |p|; it is fitted."]
    round_off: Annotated[FloatArray, "shape (K,)", "The part that may be round-off, or an error of the reference."]
    fit: Annotated[Fit, "How the order was fitted."]

    @property
    def order(self) -> float:
        """The fitted order."""
        return self.fit.order

    @property
    def expected(self) -> int:
        """The order of the method."""
        return self.method.order

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


@documented()
def convergence(
    system: Any, method: str | Method, q0: Any = None, p0: ArrayLike | None = None, *, v0: ArrayLike | None = None,
    h: Sequence[Any] | None = None, t_end: Any = None, at: At = "nodes", digits: int | None = None,
    params: Mapping[str, Any] | None = None, exact: Callable[..., Any] | None = None,
) -> Convergence:  # fmt: skip
    """Measure the errors of a method over steps h, and the order that they show.

    Parameters
    ----------
    {case, method}
    h : sequence of numbers, optional
        Steps. Without `h`: t_end divided by 8, 16, … 512.
    {t_end, at, digits, params}
    exact : callable, optional
        The solution, exact(t) ↦ (q, p), for these parameters. Where none is known a fine reference of high order takes
        its place.

    Raises
    ------
    ValueError
        Fewer than two steps, or no t_end where the problem has no period.

    Examples
    --------
    >>> import leastaction as la
    >>> kepler = la.problems.get("kepler")
    >>> la.analysis.convergence(kepler, "simpson", h=["1/16", "1/32", "1/64", "1/128"], t_end=1, digits=30)
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
    case, given = case_of(system, q0, p0, v0, h, t_end=t_end, exact=exact, digits=digits, params=params)
    steps = [case.t_end / 2 ** (3 + k) for k in range(HALVINGS)] if given is None else list(given)
    if len(steps) < 2:
        raise ValueError(f"an order needs errors at two steps at least; got {len(steps)}")
    rows = sorted((_row(case, chosen, step, at) for step in steps), key=lambda row: -row[0])
    used, q, p, error, round_off = np.array(rows).T
    fit = fit_order(used, error, round_off)
    return Convergence(case.name, chosen, float(case.t_end), at, digits, used, q, p, error, round_off, fit)


def _row(case: Case, chosen: Method, h: Any, at: At) -> tuple[float, ...]:
    """|h|, the errors of q and p, the larger of the two relative errors, and the round-off in that error."""
    try:
        path = case.run(chosen, h)
    except StepFailed:
        return abs(float(h)), np.nan, np.nan, np.nan, np.nan
    return abs(float(path.h)), *case.errors(path, at)


@dataclass(frozen=True, eq=False)
class OrderTable(figures.Drawn, picture=figures.draw_convergence):
    """Measured orders of members PsNrQu over s and r: the Galerkin paper's Tables 1 (Gauss) and 2 (Lobatto).

    `la.analysis.order_table` gives it. `plot` draws the errors of all members over h.
    """

    family: Annotated[Literal["Gau", "Lob"], "Which rules."]
    s: Annotated[tuple[int, ...], "Degrees."]
    r: Annotated[tuple[int, ...], "Numbers of nodes."]
    orders: Annotated[FloatArray, "shape (len(r), len(s))", "Measured; nan where r < s."]
    expected: Annotated[FloatArray, "shape (len(r), len(s))", "min(2s, u)."]
    results: Annotated[tuple[Convergence, ...], "The measurements."]

    def __repr__(self) -> str:
        pairs = [zip(*rows, strict=True) for rows in zip(self.orders, self.expected, strict=True)]
        cells = [[f"{order:.2f} ({most:.0f})" if most == most else "" for order, most in row] for row in pairs]
        rows = [[f"r = {r}", *row] for r, row in zip(self.r, cells, strict=True)]
        name = "Gauss" if self.family == "Gau" else "Lobatto"
        head = f"{name} on {self.results[0].problem}: measured order (expected min(2s, u))\n"
        return head + table(["", *(f"s = {s}" for s in self.s)], rows)


@documented()
def order_table(
    system: Any, family: Literal["Gau", "Lob"], q0: Any = None, p0: ArrayLike | None = None, *,
    v0: ArrayLike | None = None, h: Sequence[Any] | None = None, s: Sequence[int] = (1, 2, 3, 4, 5),
    r: Sequence[int] = (2, 3, 4, 5), t_end: Any = None, at: At = "nodes", digits: int | None = None,
) -> OrderTable:  # fmt: skip
    """Measure the order of every member with degree in s and nodes in r ≥ s.

    Parameters
    ----------
    {case}
    family : {"Gau", "Lob"}
        "Gau" gives the Galerkin paper's Table 1, "Lob" Table 2.
    h, t_end, at, digits
        As for `la.analysis.convergence`.
    s : sequence of int, default (1, 2, 3, 4, 5)
        Degrees.
    r : sequence of int, default (2, 3, 4, 5)
        Numbers of nodes.

    Examples
    --------
    >>> import leastaction as la
    >>> kepler = la.problems.get("kepler")
    >>> la.analysis.order_table(kepler, "Lob", h=[0.04, 0.02, 0.01], s=(1, 2), r=(2, 3), t_end=1).expected
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
                member = Galerkin(degree, rule(nodes))
                found = convergence(system, member, q0, p0, v0=v0, h=h, t_end=t_end, at=at, digits=digits)
                orders[i, j], expected[i, j] = found.order, found.expected
                results.append(found)
    return OrderTable(family, tuple(s), tuple(r), orders, expected, tuple(results))
