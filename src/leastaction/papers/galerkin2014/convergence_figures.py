"""Figures 5.1 to 5.4 and 5.7 to 5.10: errors over h and orders, on the oscillator and on Kepler's problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from leastaction.papers.galerkin2014.runs import (
    KEPLER,
    OSCILLATOR,
    STEPS,
    T_END,
    Errors,
    errors,
    member,
    order,
    precision,
)
from leastaction.papers.model import Claim, Drawing, FigureSpec, Options
from leastaction.papers.style import line
from leastaction.plots import COLOURS
from leastaction.problems import get

NODES = {"Gau": (2, 3, 4, 5), "Lob": (3, 4, 5, 6)}  # r of the four panels
FITTED = STEPS[-3:]  # of the paper's steps those in the range of the leading term
ROUNDING = 1e-15  # float64 errors of the oscillator that are below a few of these are round-off


def _all(family: str) -> list[Any]:
    return [member(family, s, r) for r in NODES[family] for s in range(1, r + 1)]


def _shown(problem: str, chosen: Any, options: Options) -> list[Errors]:
    """At the paper's steps; the paper's error for Kepler is limited by its data, more digits would not show."""
    digits = precision(chosen, options) if problem == OSCILLATOR else None
    return [errors(problem, chosen, h, digits) for h in STEPS]


def draw_errors(problem: str, family: str, options: Options) -> Drawing:
    """Errors of q and p over h, a panel for each quadrature."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(7, 7), sharex=True, sharey=True)
    h = [float(step) for step in STEPS]
    suffix = "" if problem == OSCILLATOR else "_back"
    for ax, r in zip(axes.flat, NODES[family], strict=True):
        for s in range(1, r + 1):
            chosen = member(family, s, r)
            found = _shown(problem, chosen, options)
            look = line(chosen)
            ax.loglog(h, [getattr(e, f"q{suffix}") for e in found], label=f"P{s}", **look)
            ax.loglog(h, [getattr(e, f"p{suffix}") for e in found], **look | {"linestyle": "none", "fillstyle": "none"})
        if problem == KEPLER:
            for value, dashes in zip(_floor(), (":", "--"), strict=True):
                ax.axhline(value, color="#777777", linewidth=0.9, linestyle=dashes)
        u = member(family, 1, r).rule.order
        ax.set_title(f"{'Gauss' if family == 'Gau' else 'Lobatto'}, r = {r}, order {u}", fontsize="medium")
        ax.legend(fontsize="small", loc="lower right", handlelength=1.6)
    figure.supxlabel("step $h$")
    what = "largest error until $T$" if problem == OSCILLATOR else "distance from the initial point after $T$"
    figure.supylabel(f"{what} = {T_END[problem]}: $q$ (filled, lines), $p$ (open)")
    return Drawing(figure, [*_error_claims(problem, family, options)])


def _floor() -> tuple[float, float]:
    """How far the exact solution itself is from the initial point at T: the printed k has not quite the period 5."""
    given = get(KEPLER)
    q, p = given.exact(T_END[KEPLER], digits=30)
    exact = given.data(30)
    return float(max(abs(q - np.array(exact.q0)))), float(max(abs(p - np.array(exact.p0))))


def _error_claims(problem: str, family: str, options: Options) -> list[Claim]:
    claims = []
    if family == "Lob":
        pairs = [(member("Lob", s - 1, s), member("Lob", s, s)) for s in NODES["Lob"]]
        apart = 0.0
        for low, high in pairs:
            for a, b in zip(_shown(problem, low, options), _shown(problem, high, options), strict=True):
                if min(a.q, a.p) > (1e-12 if problem == OSCILLATOR else 1e-9):
                    apart = max(apart, abs(a.q / b.q - 1), abs(a.p / b.p - 1))
        claims.append(
            Claim(
                "the values of P(s−1)NsQ2s−2Lob and PsNsQ2s−2Lob are superimposed",
                apart < 1e-2,
                f"errors above round-off differ by {apart:.0e} of their size at most: for a constant mass the two are "
                "the same method",
            )
        )
    if problem == KEPLER:
        unsolved = [(m, h) for m in _all(family) for h in STEPS if np.isnan(errors(KEPLER, m, h).q)]
        largest = {s: max((h for m, h in unsolved if m.s == s), default=None) for s in (1, 2)}
        names = ", ".join(sorted({f"P{m.s} at h = {h}" for m, h in unsolved}))
        claims.append(
            Claim(
                "errors for every method at h = 1, 0.5, 0.25, 0.125, 0.1, 0.0625, 0.03125",
                not unsolved,
                f"all but {len(unsolved)} of {len(_all(family)) * len(STEPS)}: there (some of {names}) a step has no "
                "solution that is connected with the motion"
                if largest
                else "all",
            )
        )
        best = [errors(KEPLER, m, STEPS[-1]) for m in _all(family) if m.order >= 8]
        q, p = min(e.q_back for e in best), min(e.p_back for e in best)
        true_q = max(e.q for e in (errors(KEPLER, m, STEPS[-1]) for m in _all(family) if m.order == 10))
        floor_q, floor_p = _floor()
        claims.append(
            Claim(
                "errors do not fall far below 10⁻¹⁰",
                1e-11 < q < 1e-9 and 1e-11 < p < 1e-9,
                f"smallest {q:.1e} (q) and {p:.1e} (p), where the exact orbit of the printed k is itself {floor_q:.1e} "
                f"and {floor_p:.1e} off (grey lines: q dotted, p dashed); against the exact solution the error of q at "
                f"order 10 is {true_q:.0e}, so neither the solver nor float64 is the reason",
            )
        )
    return claims


def _orders(problem: str, chosen: Any, options: Options) -> tuple[float, float]:
    """Orders of q and p, against the exact solution, from the steps fitted."""
    steps = FITTED if problem == KEPLER else STEPS[2:]
    found = [errors(problem, chosen, h, precision(chosen, options)) for h in steps]
    usable = [i for i, e in enumerate(found) if problem == KEPLER or e.state > 30 * ROUNDING or _precise(chosen, options)]
    return tuple(order([steps[i] for i in usable], [getattr(found[i], z) for i in usable]) for z in "qp")  # type: ignore


def _precise(chosen: Any, options: Options) -> bool:
    return precision(chosen, options) is not None


def draw_orders(problem: str, family: str, options: Options) -> Drawing:
    """Orders of q (left bar) and p (right bar) over the degree, a panel for each quadrature."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(7, 5.4), sharey=True)
    worst, where = 0.0, ""
    for ax, r in zip(axes.flat, NODES[family], strict=True):
        bars = []
        for s in range(1, r + 1):
            chosen = member(family, s, r)
            bars.append((f"P{s}", _orders(problem, chosen, options)))
            for value in bars[-1][1]:
                if abs(value - chosen.order) > worst:
                    worst, where = abs(value - chosen.order), chosen.name
            ax.plot([s - 1.42, s - 0.58], [chosen.order] * 2, color="#333333", linewidth=1.0)
        if (problem, family, r) == (KEPLER, "Gau", 5):
            six, five = _return_orders(6), _return_orders(5)
            bars += [("P5, 6 h", six), ("P5*, 5 h", five)]
        _bars(ax, bars)
        u = member(family, 1, r).rule.order
        ax.set_title(f"{'Gauss' if family == 'Gau' else 'Lobatto'}, r = {r}, order {u}", fontsize="medium")
    figure.supylabel("order: $q$ (left, dark), $p$ (right, light); line: min(2s, u)")
    steps = FITTED if problem == KEPLER else STEPS[2:]
    claims = [
        Claim(
            "the orders are min(2s, u)",
            worst < 0.5,
            f"largest difference {worst:.2f} ({where}), fitted over h = {', '.join(str(h) for h in steps)}",
        )
    ]
    if (problem, family) == (KEPLER, "Gau"):
        claims.append(
            Claim(
                "with six values P5N5Q10Gau seems to have a lower order than with five, as the sixth no longer falls",
                six[0] < five[0] and six[1] < five[1],
                f"distance from the initial point: six values {six[0]:.1f} (q), {six[1]:.1f} (p), five {five[0]:.1f}, "
                f"{five[1]:.1f}; against the exact solution {bars[4][1][0]:.1f}, {bars[4][1][1]:.1f}",
            )
        )
    return Drawing(figure, claims)


def _return_orders(count: int) -> tuple[float, float]:
    """P5N5Q10Gau by the paper's error and the first `count` of its steps."""
    found = [errors(KEPLER, member("Gau", 5, 5), h) for h in STEPS[:count]]
    return order(STEPS[:count], [e.q_back for e in found]), order(STEPS[:count], [e.p_back for e in found])


def _bars(ax: Any, bars: Sequence[tuple[str, tuple[float, float]]]) -> None:
    for k, (colour, shift) in enumerate(((COLOURS[0], -0.2), (COLOURS[5], 0.2))):
        places = np.arange(len(bars)) + shift
        heights = [pair[k] for _, pair in bars]
        ax.bar(places, heights, width=0.38, color=colour)
        for x, height in zip(places, heights, strict=True):
            ax.text(x, height + 0.15, f"{height:.1f}", ha="center", va="bottom", fontsize=7)
    ax.set_xticks(range(len(bars)), [name for name, _ in bars])
    ax.grid(axis="x", visible=False)
    ax.set_ylim(0, 12)


def _figure(number: str, title: str, draw: Callable[..., Drawing], problem: str, family: str) -> FigureSpec:
    return FigureSpec(number, title, partial(draw, problem, family))


_HO, _KP = "Harmonic oscillator", "Kepler problem"
_SUPER = "float64; orders 8 and 10 with 32 digits"
OSCILLATOR_FIGURES = [
    _figure("5.1", f"{_HO}: errors of PsNrQ2rGau over h ({_SUPER})", draw_errors, OSCILLATOR, "Gau"),
    _figure("5.2", f"{_HO}: orders of PsNrQ2rGau", draw_orders, OSCILLATOR, "Gau"),
    _figure("5.3", f"{_HO}: errors of PsNrQ2r−2Lob over h ({_SUPER})", draw_errors, OSCILLATOR, "Lob"),
    _figure("5.4", f"{_HO}: orders of PsNrQ2r−2Lob", draw_orders, OSCILLATOR, "Lob"),
]
KEPLER_FIGURES = [
    _figure("5.7", f"{_KP}: errors of PsNrQ2rGau over h", draw_errors, KEPLER, "Gau"),
    _figure("5.8", f"{_KP}: orders of PsNrQ2rGau", draw_orders, KEPLER, "Gau"),
    _figure("5.9", f"{_KP}: errors of PsNrQ2r−2Lob over h", draw_errors, KEPLER, "Lob"),
    _figure("5.10", f"{_KP}: orders of PsNrQ2r−2Lob", draw_orders, KEPLER, "Lob"),
]
