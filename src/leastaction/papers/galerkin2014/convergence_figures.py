"""Figures 5.1 to 5.4 and 5.7 to 5.10: errors over h and orders, on the oscillator and on Kepler's problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from leastaction.methods import Galerkin
from leastaction.papers.galerkin2014.coarse_steps import why_none
from leastaction.papers.galerkin2014.runs import (
    KEPLER,
    OSCILLATOR,
    STEPS,
    T_END,
    Errors,
    asymptotic_order,
    errors,
    member,
    order,
    precision,
)
from leastaction.papers.model import Claim, Drawing, FigureSpec, Options
from leastaction.papers.style import line
from leastaction.problems import get
from leastaction.results.colours import COLOURS

NODES = {"Gau": (2, 3, 4, 5), "Lob": (3, 4, 5, 6)}  # r of the four panels
FITTED = {OSCILLATOR: STEPS[2:], KEPLER: STEPS[4:]}  # those of the paper's steps at which the leading term rules
ROUNDING = 3e-14  # errors below this are of float64, not of a method
SETTLED = 0.3  # an order fitted farther than this from min(2s, u) is marked: its steps are not small enough


def _all(family: str) -> list[Galerkin]:
    return [member(family, s, r) for r in NODES[family] for s in range(1, r + 1)]


def _shown(problem: str, chosen: Galerkin, options: Options) -> list[Errors]:
    """Errors at the paper's steps. The data limit the paper's error for Kepler: more digits would not show."""
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
            look = line(chosen) | {"linestyle": "-"}
            ax.loglog(h, [getattr(e, f"q{suffix}") for e in found], label=f"P{s}", **look)
            ax.loglog(h, [getattr(e, f"p{suffix}") for e in found], **look | {"linestyle": "none", "fillstyle": "none"})
            for step in _unsolved(problem, [chosen]):
                anyway = errors(problem, chosen, step[1], branch="any")
                for value, mark in ((anyway.q_back, "x"), (anyway.p_back, "+")):
                    ax.loglog([float(step[1])], [value], **look | {"linestyle": "none", "marker": mark})
        if problem == KEPLER:
            for value, dashes in zip(_floor(), (":", "--"), strict=True):
                ax.axhline(value, color="#777777", linewidth=0.9, linestyle=dashes)
        u = member(family, 1, r).rule.order
        ax.set_title(f"{'Gauss' if family == 'Gau' else 'Lobatto'}, r = {r}, order {u}", fontsize="medium")
        ax.legend(fontsize="small", loc="lower right", handlelength=1.6, frameon=True, framealpha=1, edgecolor="none")
    figure.supxlabel("step $h$", fontsize="medium")
    what = "largest error until" if problem == OSCILLATOR else "distance from the initial point after"
    figure.supylabel(f"{what} $T$ = {T_END[problem]}: $q$ (filled, lines) and $p$ (open)", fontsize="medium")
    return Drawing(figure, [*_error_claims(problem, family, options)])


def _floor() -> tuple[float, float]:
    """How far the exact solution itself is from the initial point at T: the period of the printed k is not quite 5."""
    given = get(KEPLER)
    q, p = given.exact(T_END[KEPLER], digits=30)
    exact = given.data(30)
    return float(max(abs(q - np.array(exact.q0)))), float(max(abs(p - np.array(exact.p0))))


def _error_claims(problem: str, family: str, options: Options) -> list[Claim]:
    claims = []
    if problem == OSCILLATOR:
        ratios = [e.p / e.q for m in _all(family) for e in _shown(problem, m, options)]
        claims.append(
            Claim(
                "the errors of q and p are superimposed",
                min(ratios) > 0.5 and max(ratios) < 2,
                f"the error of p is {min(ratios):.2f} to {max(ratios):.2f} times that of q",
            )
        )
    if family == "Lob":
        claims.append(_superimposed(problem, options))
    if problem == KEPLER:
        claims += [_solved(family), _limited(family)]
    return claims


def _superimposed(problem: str, options: Options) -> Claim:
    """P(s−1)Ns and PsNs, where the paper's error is above round-off and above the limit of its data."""
    floor = 1e-12 if problem == OSCILLATOR else 1e-9
    apart = 0.0
    for s in NODES["Lob"]:
        low, high = (_shown(problem, member("Lob", degree, s), options) for degree in (s - 1, s))
        for a, b in zip(low, high, strict=True):
            if min(a.q, a.p) > floor:
                apart = max(apart, abs(a.q / b.q - 1), abs(a.p / b.p - 1))
    return Claim(
        "the values of P(s−1)NsQ2s−2Lob and PsNsQ2s−2Lob are superimposed",
        apart < 1e-2,
        f"errors above round-off differ by {apart:.0e} of their size at most: for a constant mass the two are the same "
        "method",
    )


def _unsolved(problem: str, members: Sequence[Galerkin]) -> list[tuple[Galerkin, Fraction]]:
    """The runs in which a step has no root that is connected with the motion; on the oscillator there is none."""
    return [(m, h) for m in members for h in STEPS if problem == KEPLER and np.isnan(errors(KEPLER, m, h).q)]


def _solved(family: str) -> Claim:
    unsolved = _unsolved(KEPLER, _all(family))
    names = ", ".join(f"{m.name} h = {h}" for m, h in unsolved)
    anyway = [(m, h) for m, h in unsolved if not np.isnan(errors(KEPLER, m, h, branch="any").q)]
    none = "; ".join(f"{m.name} h = {h}, {why_none(m, h)}" for m, h in unsolved if (m, h) not in anyway)
    return Claim(
        "errors for every method at h = 1, 0.5, 0.25, 0.125, 0.1, 0.0625, 0.03125",
        not unsolved,
        f"{len(_all(family)) * len(STEPS) - len(unsolved)} of {len(_all(family)) * len(STEPS)}; without a solution of "
        f"some step that is connected with the motion: {names or 'none'}",
        ""
        if not unsolved
        else "Followed from h → 0, these steps' solutions end before h is reached: a root found there anyway belongs "
        "to no motion, and the library does not take it. With branch='any' it takes what Newton's iteration finds: "
        f"{len(anyway)} of these {len(unsolved)} runs then come to an end, as in the paper, and are shown by crosses "
        "(× for q, + for p), with errors as large as the orbit, and larger. In the others Newton finds no root of "
        f"some step, from the prediction and from the uniform motion. Of that step: {none}.",
    )


def _limited(family: str) -> Claim:
    """The smallest errors are those of the data, not of the method."""
    finest = [errors(KEPLER, m, STEPS[-1]) for m in _all(family) if m.order == 10]
    q, p = min(e.q_back for e in finest), min(e.p_back for e in finest)
    floor_q, floor_p = _floor()
    return Claim(
        "errors do not fall far below 10⁻¹⁰",
        1e-11 < q < 1e-9 and 1e-11 < p < 1e-9,
        f"smallest {q:.1e} (q) and {p:.1e} (p), but the exact orbit of the printed k is itself {floor_q:.1e} and "
        f"{floor_p:.1e} off (grey lines: q dotted, p dashed); against the exact solution the error of q at order 10 is "
        f"{max(e.q for e in finest):.0e}, so that neither the solver nor float64 is the reason",
    )


def _orders(problem: str, chosen: Galerkin, options: Options) -> tuple[float, float]:
    """Orders of q and p, against the exact solution, from the steps fitted, without errors that are round-off."""
    digits = precision(chosen, options)
    found = {h: errors(problem, chosen, h, digits) for h in FITTED[problem]}
    used = {h: e for h, e in found.items() if digits is not None or e.state > ROUNDING}
    return order([*used], [e.q for e in used.values()]), order([*used], [e.p for e in used.values()])


def draw_orders(problem: str, family: str, options: Options) -> Drawing:
    """Orders of q (left bar) and p (right bar) over the degree, a panel for each quadrature."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    figure, axes = plt.subplots(2, 2, figsize=(7, 5.6), sharey=True)
    worst, where = 0.0, ""
    early: dict[str, tuple[Galerkin, tuple[float, float]]] = {}
    for ax, r in zip(axes.flat, NODES[family], strict=True):
        bars = []
        for s in range(1, r + 1):
            chosen = member(family, s, r)
            found = _orders(problem, chosen, options)
            off = max(abs(value - chosen.order) for value in found)
            if off > SETTLED:
                early[chosen.name] = chosen, found
            elif off > worst:
                worst, where = off, chosen.name
            bars.append((f"P{s}*" if chosen.name in early else f"P{s}", found))
            ax.plot([s - 1.42, s - 0.58], [chosen.order] * 2, color="#333333", linewidth=1.0)
        if (problem, family, r) == (KEPLER, "Gau", 5):
            six, five = _return_orders(6), _return_orders(5)
            bars += [("P5\n6 h", six), ("P5\n5 h", five)]
        _bars(ax, bars)
        u = member(family, 1, r).rule.order
        ax.set_title(f"{'Gauss' if family == 'Gau' else 'Lobatto'}, r = {r}, order {u}", fontsize="medium")
    figure.supylabel("order; lines: min(2s, u)", fontsize="medium")
    handles = [Patch(label="of $q$", **LEFT), Patch(label="of $p$", **RIGHT)]
    figure.legend(handles=handles, ncols=2, loc="outside upper center")
    settled = {name: asymptotic_order(problem, chosen, options) for name, (chosen, _) in early.items()}
    fitted = f"fitted over h = {', '.join(map(str, FITTED[problem]))}"
    note = ""
    if early:
        of_q, of_p = (sorted({f"{pair[k]:.1f}" for _, pair in early.values()}) for k in (0, 1))
        note = (
            f"; *: {' and '.join(of_q)} (q), {' and '.join(of_p)} (p) are pre-asymptotic, these steps being too long "
            "for the leading term. With the smaller steps of the tables: "
            + ", ".join(f"{name} {order:.2f}" for name, order in settled.items())
        )
    claims = [
        Claim(
            "the orders are min(2s, u)",
            worst <= SETTLED and all(abs(settled[name] - early[name][0].order) < 0.05 for name in early),
            f"largest difference {worst:.2f} ({where}), {fitted}{note}",
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


# Bars differ by hatching, not by brightness: in a dark theme the page is inverted.
LEFT: dict[str, Any] = {"facecolor": COLOURS[0], "edgecolor": COLOURS[0]}
RIGHT: dict[str, Any] = {"facecolor": "none", "edgecolor": COLOURS[0], "hatch": "////"}


def _bars(ax: Any, bars: Sequence[tuple[str, tuple[float, float]]]) -> None:
    for k, (look, shift) in enumerate(((LEFT, -0.2), (RIGHT, 0.2))):
        places = np.arange(len(bars)) + shift
        heights = [pair[k] for _, pair in bars]
        ax.bar(places, heights, width=0.38, **look)
        for x, height in zip(places, heights, strict=True):
            ax.text(x, height + 0.4, f"{height:.1f}", ha="center", va="bottom", fontsize=7 if len(bars) < 6 else 5.5)
    ax.set_xticks(range(len(bars)), [name for name, _ in bars])
    ax.grid(axis="x", visible=False)
    ax.set_ylim(0, 12)


def _figure(number: str, title: str, draw: Callable[..., Drawing], problem: str, family: str) -> FigureSpec:
    return FigureSpec(number, title, partial(draw, problem, family))


_HO, _KP = "Harmonic oscillator", "Kepler problem"
_CROSSES = "crosses: roots that belong to no motion, as published"
_ARITHMETIC = "float64; orders 8 and 10 with 32 digits"
OSCILLATOR_FIGURES = [
    _figure("5.1", f"{_HO}: errors of PsNrQ2rGau over h ({_ARITHMETIC})", draw_errors, OSCILLATOR, "Gau"),
    _figure("5.2", f"{_HO}: orders of PsNrQ2rGau", draw_orders, OSCILLATOR, "Gau"),
    _figure("5.3", f"{_HO}: errors of PsNrQ2r−2Lob over h ({_ARITHMETIC})", draw_errors, OSCILLATOR, "Lob"),
    _figure("5.4", f"{_HO}: orders of PsNrQ2r−2Lob", draw_orders, OSCILLATOR, "Lob"),
]
KEPLER_FIGURES = [
    _figure("5.7", f"{_KP}: errors of PsNrQ2rGau over h ({_CROSSES})", draw_errors, KEPLER, "Gau"),
    _figure("5.8", f"{_KP}: orders of PsNrQ2rGau", draw_orders, KEPLER, "Gau"),
    _figure("5.9", f"{_KP}: errors of PsNrQ2r−2Lob over h ({_CROSSES})", draw_errors, KEPLER, "Lob"),
    _figure("5.10", f"{_KP}: orders of PsNrQ2r−2Lob", draw_orders, KEPLER, "Lob"),
]
