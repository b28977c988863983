"""Figures 5.5, 5.6, 5.11 and 5.12: angular momentum and energy over time, beside Runge and Kutta's method."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from leastaction.errors import measuring
from leastaction.integrate import integrate
from leastaction.papers.galerkin2014.runs import KEPLER, OSCILLATOR
from leastaction.papers.model import Claim, Drawing, FigureSpec, Options
from leastaction.papers.style import line
from leastaction.problems import get

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


def _momentum(problem: str, methods: list[str], h: float, unit: float, size: str) -> Drawing:
    import matplotlib.pyplot as plt

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
    return Drawing(
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


def _energy(problem: str, runs: list[tuple[str, float]]) -> Drawing:
    import matplotlib.pyplot as plt

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
    return Drawing(
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


def figure_5_5(options: Options) -> Drawing:
    """Angular momentum of the oscillator."""
    return _momentum(OSCILLATOR, ["P2N3Q4Lob", "P3N4Q6Lob", "P4N5Q8Lob"], 0.5, 1e-15, "1e-14")


def figure_5_6(options: Options) -> Drawing:
    """Energy of the oscillator."""
    return _energy(OSCILLATOR, [("P3N4Q6Lob", 0.25), ("P4N5Q8Lob", 0.5)])


def figure_5_11(options: Options) -> Drawing:
    """Angular momentum of Kepler's problem, I = 85."""
    return _momentum(KEPLER, ["P2N2Q4Gau", "P3N3Q6Gau", "P4N4Q8Gau"], 0.25, 1e-14, "1e-12")


def figure_5_12(options: Options) -> Drawing:
    """Energy of Kepler's problem."""
    return _energy(KEPLER, [("P3N3Q6Gau", 0.125), ("P4N4Q8Gau", 0.25)])


OSCILLATOR_FIGURES = [
    FigureSpec(
        "5.5", "Harmonic oscillator: error of the angular momentum, variational h = 0.5, RK4 h = 2⁻⁶", figure_5_5
    ),
    FigureSpec("5.6", "Harmonic oscillator: error of the energy", figure_5_6),
]
KEPLER_FIGURES = [
    FigureSpec("5.11", "Kepler problem: error of the angular momentum, variational h = 0.25, RK4 h = 2⁻⁶", figure_5_11),
    FigureSpec("5.12", "Kepler problem: error of the energy", figure_5_12),
]
