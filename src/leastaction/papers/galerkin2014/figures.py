"""Figures 4.1 to 4.3 and 5.1 to 5.14: stability, errors and orders over h, conservation, and error over run time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sympy import eye, simplify

from leastaction.analysis import Efficiency, efficiency, iteration_matrix, stability
from leastaction.errors import measuring
from leastaction.integrate import integrate
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
    fitted_order,
    member,
    precision,
)
from leastaction.papers.model import Claim, FigureSpec, Options, Redrawn, redrawn
from leastaction.papers.style import line
from leastaction.papers.typeset import root
from leastaction.problems import get
from leastaction.results.colours import COLOURS

# The moduli of the eigenvalues of one step on the oscillator, over x = hω.


def _draw(method: str, window: tuple[float, float], claims: list[Claim]) -> Redrawn:
    figure, ax = plt.subplots(figsize=(7, 3.8))
    stability(method).plot(ax, x=window)
    return Redrawn(figure, claims)


@redrawn("4.1", "Modulus of the eigenvalues of a step of P2N3Q4Lob on the oscillator")
def figure_4_1(options: Options) -> Redrawn:
    found = stability("P2N3Q4Lob")
    first, second = found[0], found[1]
    return _draw(
        "P2N3Q4Lob",
        (0.0, 5.6),
        [
            Claim(
                "the method is stable for |hω| < 2√2",
                first.lower == 0 and first.floats[1] == 2 * math.sqrt(2),
                f"first stable interval, exactly: (0, {root(first.upper)}); as the figure shows, it is stable again on "
                f"({root(second.lower)}, {root(second.upper)})",
            )
        ],
    )


@redrawn("4.2", "Modulus of the eigenvalues of a step of P3N4Q6Lob on the oscillator")
def figure_4_2(options: Options) -> Redrawn:
    found = stability("P3N4Q6Lob")
    text = ", ".join(f"({lower:.4f}, {upper:.4f})" for lower, upper in (interval.floats for interval in found))
    gauss = ("P1N1Q2Gau", "P2N2Q4Gau", "P3N3Q6Gau")
    products = [M * M.T for M in map(iteration_matrix, gauss)]
    orthogonal = all(product.applyfunc(simplify) == eye(2) for product in products)
    return _draw(
        "P3N4Q6Lob",
        (0.0, 9.6),
        [
            Claim("the stable region is bounded, with gaps", len(found) == 3, f"stable on {text}"),
            Claim(
                "PsNsQ2sGau, s = 1, 2, 3: the iteration matrices are orthogonal, stable for every h",
                orthogonal and all(stability(name).for_all_h for name in gauss),
                "exactly: M Mᵀ = 1, and no x > 0 where stability could end",
            ),
        ],
    )


@redrawn("4.3", "Zoom of Figure 4.2 to the first gap")
def figure_4_3(options: Options) -> Redrawn:
    gap = stability("P3N4Q6Lob").gaps[0]
    return _draw(
        "P3N4Q6Lob",
        (3.05, 3.25),
        [
            Claim(
                "the zoom of Figure 4.2 shows a thin gap of stability",
                float(gap.upper) - float(gap.lower) < 0.1 and gap.growth > 1,
                f"exactly from {root(gap.lower)} ≈ {float(gap.lower):.5f} to {root(gap.upper)} ≈ "
                f"{float(gap.upper):.5f}, with "
                f"|λ| up to {gap.growth:.4f} at x = {gap.at:.4f}",
            )
        ],
    )


# Errors over h and orders, on the oscillator and on the Kepler problem.

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


def draw_errors(problem: str, family: str, options: Options) -> Redrawn:
    """Errors of q and p over h, a panel for each quadrature."""
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
    return Redrawn(figure, [*_error_claims(problem, family, options)])


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
    return fitted_order([*used], [e.q for e in used.values()]), fitted_order([*used], [e.p for e in used.values()])


def draw_orders(problem: str, family: str, options: Options) -> Redrawn:
    """Orders of q (left bar) and p (right bar) over the degree, a panel for each quadrature."""
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
    return Redrawn(figure, claims)


def _return_orders(count: int) -> tuple[float, float]:
    """P5N5Q10Gau by the paper's error and the first `count` of its steps."""
    found = [errors(KEPLER, member("Gau", 5, 5), h) for h in STEPS[:count]]
    return fitted_order(STEPS[:count], [e.q_back for e in found]), fitted_order(
        STEPS[:count], [e.p_back for e in found]
    )


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


def _figure(number: str, title: str, draw: Callable[..., Redrawn], problem: str, family: str) -> FigureSpec:
    return FigureSpec(number, title, partial(draw, problem, family))


_HO, _KP = "Harmonic oscillator", "Kepler problem"
_CROSSES = "crosses: roots that belong to no motion, as published"
_ARITHMETIC = "float64; orders 8 and 10 with 32 digits"
CONVERGENCE = [
    _figure("5.1", f"{_HO}: errors of PsNrQ2rGau over h ({_ARITHMETIC})", draw_errors, OSCILLATOR, "Gau"),
    _figure("5.2", f"{_HO}: orders of PsNrQ2rGau", draw_orders, OSCILLATOR, "Gau"),
    _figure("5.3", f"{_HO}: errors of PsNrQ2r−2Lob over h ({_ARITHMETIC})", draw_errors, OSCILLATOR, "Lob"),
    _figure("5.4", f"{_HO}: orders of PsNrQ2r−2Lob", draw_orders, OSCILLATOR, "Lob"),
    _figure("5.7", f"{_KP}: errors of PsNrQ2rGau over h ({_CROSSES})", draw_errors, KEPLER, "Gau"),
    _figure("5.8", f"{_KP}: orders of PsNrQ2rGau", draw_orders, KEPLER, "Gau"),
    _figure("5.9", f"{_KP}: errors of PsNrQ2r−2Lob over h ({_CROSSES})", draw_errors, KEPLER, "Lob"),
    _figure("5.10", f"{_KP}: orders of PsNrQ2r−2Lob", draw_orders, KEPLER, "Lob"),
]


# Angular momentum and energy over time, beside RK4.

LONG = {OSCILLATOR: 200, KEPLER: 100}  # the paper gives no times: 32 and 20 revolutions
RK4_STEP = 2.0**-6


@lru_cache(maxsize=64)
@measuring()
def drift(problem: str, method: str, h: float, invariant: str) -> tuple[Any, Any]:
    """t, and the invariant minus its value at the start."""
    given = get(problem)
    path = integrate(given.system, method, given.q0, given.p0, h=h, t_end=LONG[problem])
    values = given.invariants[invariant](path.q, path.p)
    return path.t, values - values[0]


def _look(method: str) -> dict[str, Any]:
    return line(method) | ({"marker": "none", "linestyle": "-"} if method == "rk4" else {"linestyle": "none", "ms": 3})


def _momentum(problem: str, methods: list[str], h: float, unit: float, size: str) -> Redrawn:
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.8))
    worst = {}
    for method in methods:
        t, error = drift(problem, method, h, "angular-momentum")
        worst[method] = float(np.abs(error).max())
        left.plot(t, error / unit, label=method, markevery=max(1, len(t) // 100), **_look(method))
        right.semilogy(t, np.maximum(np.abs(error), unit / 10), markevery=max(1, len(t) // 100), **_look(method))
    t, error = drift(problem, "rk4", RK4_STEP, "angular-momentum")
    right.semilogy(t[1:], np.maximum(np.abs(error[1:]), unit / 10), label="RK4", **_look("rk4"))
    left.set(xlabel="time $t$", ylabel=rf"error of $I$ / $10^{{{round(np.log10(unit))}}}$")
    right.set(xlabel="time $t$", ylabel="|error of $I$|")
    figure.legend(ncols=4, loc="outside upper center")
    bound = float(size)
    half = len(error) // 2
    grows = float(np.abs(error[-1]) / np.abs(error[half]))
    most = ", ".join(f"{name} {value:.1e}" for name, value in worst.items())
    return Redrawn(
        figure,
        [
            Claim(
                f"the variational integrators conserve the angular momentum to round-off, less than {size}",
                max(worst.values()) < bound,
                f"largest error until t = {LONG[problem]}: {most}",
            ),
            Claim(
                "Runge–Kutta of order four with h = 2⁻⁶ does not",
                abs(error[-1]) > 1e3 * bound and 1.8 < grows < 2.2,
                f"error {abs(error[-1]):.1e} at the end, {grows:.2f} times that of half the time",
            ),
        ],
    )


def _energy(problem: str, runs: list[tuple[str, float]]) -> Redrawn:
    figure, ax = plt.subplots(figsize=(7, 4))
    ratios, sizes = {}, {}
    for method, h in [*runs, ("rk4", RK4_STEP)]:
        t, error = drift(problem, method, h, "energy")
        label = "RK4, $h$ = 2⁻⁶" if method == "rk4" else f"{method}, $h$ = {h:g}"
        ax.plot(t, error, label=label, **_look(method))
        half = len(t) // 2
        first, second = (float(np.abs(part).max()) for part in (error[:half], error[half:]))
        ratios[method], sizes[method] = second / first, max(first, second)
    ax.set(xlabel="time $t$", ylabel="error of the energy")
    figure.legend(ncols=3, loc="outside upper center")
    bounded = [method for method, _ in runs]
    text = ", ".join(f"{name} {sizes[name]:.1e}, ratio {ratios[name]:.2f}" for name in bounded)
    return Redrawn(
        figure,
        [
            Claim(
                "the energy error of the variational integrators oscillates but stays bounded",
                all(ratios[name] < 1.05 for name in bounded),
                f"largest error, and largest of the second half of the time to that of the first: {text}",
            ),
            Claim(
                "Runge–Kutta of order four with h = 2⁻⁶ shows an energy drift",
                1.8 < ratios["rk4"] < 2.2,
                f"{sizes['rk4']:.1e}, ratio {ratios['rk4']:.2f}: it grows in proportion to time",
            ),
        ],
    )


@redrawn("5.5", "Harmonic oscillator: error of the angular momentum, variational h = 0.5, RK4 h = 2⁻⁶")
def figure_5_5(options: Options) -> Redrawn:
    return _momentum(OSCILLATOR, ["P2N3Q4Lob", "P3N4Q6Lob", "P4N5Q8Lob"], 0.5, 1e-15, "1e-14")


@redrawn("5.6", "Harmonic oscillator: error of the energy")
def figure_5_6(options: Options) -> Redrawn:
    return _energy(OSCILLATOR, [("P3N4Q6Lob", 0.25), ("P4N5Q8Lob", 0.5)])


@redrawn("5.11", "Kepler problem: error of the angular momentum, variational h = 0.25, RK4 h = 2⁻⁶")
def figure_5_11(options: Options) -> Redrawn:
    return _momentum(KEPLER, ["P2N2Q4Gau", "P3N3Q6Gau", "P4N4Q8Gau"], 0.25, 1e-14, "1e-12")


@redrawn("5.12", "Kepler problem: error of the energy")
def figure_5_12(options: Options) -> Redrawn:
    return _energy(KEPLER, [("P3N3Q6Gau", 0.125), ("P4N4Q8Gau", 0.25)])


# Error over run time, on the oscillator. Run times are those of the machine at hand, the best of several runs, without
# compilation. A run is over T = 1000: one with the T = 10 of the other figures would be too short to be timed.

T_TIMED = 1000
ENOUGH = 1e-10  # curves end at the first error below this
REPEATS = 7
DASHES: dict[int, Any] = {3: "-", 4: "--", 5: "-.", 6: ":"}  # by r


@lru_cache(maxsize=4)
def timed(methods: tuple[Galerkin, ...]) -> Efficiency:
    """Errors and run times of methods at the paper's steps."""
    return efficiency(get(OSCILLATOR), methods, h=[float(h) for h in STEPS], t_end=T_TIMED, repeats=REPEATS)


def _per_step(found: Efficiency) -> dict[str, float]:
    """Microseconds per step, in the longest run."""
    times = 1e6 * found.time[:, -1] * found.h[-1] / T_TIMED
    return {chosen.name: float(time) for chosen, time in zip(found.methods, times, strict=True)}


def _curve(ax: Any, found: Efficiency, chosen: Galerkin, **look: Any) -> None:
    """Error over run time, until the error is small enough."""
    i = found.methods.index(chosen)
    shown = slice(0, 1 + int((found.error[i] >= ENOUGH).sum()))
    ax.loglog(found.time[i, shown], found.error[i, shown], **look)


@redrawn(
    "5.13",
    "Harmonic oscillator: error over run time of PsNrQ2r−2Lob; run times are those of the machine of this report",
)
def figure_5_13(options: Options) -> Redrawn:
    from matplotlib.lines import Line2D

    methods = tuple(member("Lob", s, r) for r in DASHES for s in range(1, r + 1))
    found = timed(methods)
    figure, axes = plt.subplots(2, 3, figsize=(7, 6), sharex=True, sharey=True)
    for ax, s in zip(axes.flat, range(1, 7), strict=True):
        for chosen in methods:
            if chosen.s == s:
                _curve(ax, found, chosen, **line(chosen) | {"linestyle": DASHES[chosen.rule.r], "linewidth": 1.0})
        ax.axhline(ENOUGH, color="#777777", linewidth=0.9, linestyle=":")
        ax.set_title(f"s = {s}", fontsize="medium")
    handles = [Line2D([], [], color="#333333", linestyle=dashes, label=f"r = {r}") for r, dashes in DASHES.items()]
    figure.legend(handles=handles, ncols=4, loc="outside upper center")
    figure.supxlabel("run time (s)", fontsize="medium")
    figure.supylabel(f"largest error of $q$ and $p$ until $T$ = {T_TIMED}", fontsize="medium")
    cost = _per_step(found)
    nodes = ["P2N3Q4Lob", "P2N4Q6Lob", "P2N5Q8Lob", "P2N6Q10Lob"]
    degrees = [("P2N3Q4Lob", "P3N3Q4Lob"), ("P5N6Q10Lob", "P6N6Q10Lob")]
    return Redrawn(
        figure,
        [
            Claim(
                "of the methods of order four with s = 2, more nodes take longer",
                cost[nodes[-1]] > cost[nodes[0]],
                "a step here: " + ", ".join(f"{name} {cost[name]:.2f} µs" for name in nodes),
                timed=True,
            ),
            Claim(
                "a higher degree without a higher order takes longer",
                all(cost[high] > cost[low] for low, high in degrees),
                "a step here: " + "; ".join(f"{a} {cost[a]:.2f} µs, {b} {cost[b]:.2f} µs" for a, b in degrees),
                timed=True,
            ),
        ],
    )


@redrawn(
    "5.14",
    "Harmonic oscillator: error over run time of PsNsQ2sGau (dotted, open) and PsNs+1Q2sLob (solid); run times are "
    "those of the machine of this report",
)
def figure_5_14(options: Options) -> Redrawn:
    pairs = [(member("Gau", s, s), member("Lob", s, s + 1)) for s in range(1, 7)]
    found = timed(tuple(chosen for pair in pairs for chosen in pair))
    figure, ax = plt.subplots(figsize=(7, 5))
    for pair in pairs:
        for chosen, dashes in zip(pair, (":", "-"), strict=True):
            hollow = {"fillstyle": "none"} if dashes == ":" else {}
            _curve(ax, found, chosen, label=chosen.name, **line(chosen) | {"linestyle": dashes} | hollow)
    ax.set(xlabel="run time (s)", ylabel=f"largest error of $q$ and $p$ until $T$ = {T_TIMED}")
    ax.axhline(ENOUGH, color="#777777", linewidth=0.9, linestyle=":")
    figure.legend(ncols=4, loc="outside upper center", fontsize="small")
    steps = _per_step(found)
    cost = [steps[lobatto.name] for _, lobatto in pairs]
    simpson, third = pairs[1][1], pairs[2][1]
    errors_of, times = (dict(zip(found.methods, rows, strict=True)) for rows in (found.error, found.time))
    reach = {m: times[m][np.argmax(errors_of[m] < 1e-6)] for m in (simpson, third)}  # seconds of the first such run
    fewest = {m.s for pair in pairs for m in pair if errors_of[m].min() <= ENOUGH}
    return Redrawn(
        figure,
        [
            Claim(
                "larger s: a longer time for a step",
                cost[-1] > cost[0],
                "PsNs+1Q2sLob here: " + ", ".join(f"s = {s} {c:.2f} µs" for s, c in enumerate(cost, 1)),
                timed=True,
            ),
            Claim(
                "larger s: a higher order, so that the accuracy wanted decides which is fastest",
                reach[third] < reach[simpson],
                f"to an error below 1e-6: {simpson.name} takes {reach[simpson] / reach[third]:.1f} times as long as "
                f"{third.name}; only s ≥ {min(fewest)} comes below 1e-10 with these steps",
                timed=True,
            ),
        ],
    )


FIGURES = sorted(
    [*CONVERGENCE, *(entry for entry in tuple(globals().values()) if isinstance(entry, FigureSpec))],
    key=lambda one: [int(part) for part in one.number.split(".")],
)
