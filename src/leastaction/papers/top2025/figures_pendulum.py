"""Figures 2–5: the double pendulum.

The reference is RK4 with h = 10⁻⁵, as in the paper. A deviation is visible from a hundredth of a curve's range on.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from leastaction.papers.model import Claim, Drawing, FigureSpec, Options
from leastaction.papers.top2025.drawing import REFERENCE, VISIBLE, listed, mark, order_line, points, slopes, step_axis
from leastaction.papers.top2025.energy import energy_claims
from leastaction.papers.top2025.runs import METHODS, MIDPOINT, RK4, SIMPSON, energy_error, run
from leastaction.results.path import Path

NAME = "double-pendulum"
SECONDS = 10


@lru_cache(maxsize=1)
def _reference() -> Path:
    return run(NAME, RK4, 1e-5, SECONDS * 10**5, every=10**3)


@lru_cache(maxsize=3)
def _coarse(method: str) -> Path:
    return run(NAME, method, 0.1, SECONDS * 10)


def _evolution(quantity: str, symbols: tuple[str, str], unit: str, words: str) -> Drawing:
    """Both components against the reference, one panel each."""
    import matplotlib.pyplot as plt

    reference = _reference()
    curves = getattr(reference, quantity)
    span = np.ptp(curves, axis=0)
    figure, axes = plt.subplots(2, 1, sharex=True, figsize=(7, 5.5))
    for i, ax in enumerate(axes):
        ax.plot(reference.t, curves[:, i], label="RK4, h = 10⁻⁵", **REFERENCE)
        ax.set_ylabel(f"{symbols[i]} ({unit})")
    seen, worst = {}, {}
    for method in METHODS:
        path = _coarse(method)
        for i, ax in enumerate(axes):
            ax.plot(path.t, getattr(path, quantity)[:, i], **points(method, NAME))
        off = (np.abs(getattr(path, quantity) - curves[::10]) / span).max(axis=1)
        seen[method] = float(path.t[np.argmax(off > VISIBLE)]) if off.max() > VISIBLE else np.inf
        worst[method] = float(off.max())
    axes[0].legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=9)
    axes[1].set_xlabel("time $t$ (s)")
    follows = Claim(
        f"Simpson's {words}, h = 10⁻¹, follow the reference curve over all 10 s",
        bool(np.isinf(seen[SIMPSON])),
        f"largest deviation {worst[SIMPSON]:.2%} of the curve's range",
    )
    deviate = Claim(
        "the implicit midpoint method and RK4, h = 10⁻¹, deviate early on",
        seen[MIDPOINT] < SECONDS / 4 and seen[RK4] < SECONDS / 4,
        f"more than {VISIBLE:.0%} of the range away from t = {seen[MIDPOINT]:.1f} s on (midpoint) and "
        f"{seen[RK4]:.1f} s on (RK4); largest {worst[MIDPOINT]:.0%} and {worst[RK4]:.1%}",
    )
    return Drawing(figure, [follows, deviate])


def figure_2(options: Options) -> Drawing:
    """Angles over ten seconds."""
    return _evolution("q", ("upper angle $q^1$", "lower angle $q^2$"), "rad", "angles")


def figure_3(options: Options) -> Drawing:
    """Momenta over ten seconds."""
    return _evolution("p", ("momentum $p_1$", "momentum $p_2$"), "kg m² s⁻¹", "momenta")


def figure_4(options: Options) -> Drawing:
    """The largest energy error over ten seconds against the step."""
    import matplotlib.pyplot as plt

    h = 0.04 / 2.0 ** np.arange(-1, 6)
    figure, ax = plt.subplots(figsize=(7, 4.5))
    local = {}
    for method in METHODS:
        error = np.array([np.abs(energy_error(run(NAME, method, x, round(SECONDS / x)))).max() for x in h])
        ax.loglog(h, error, **mark(method, NAME))
        local[method] = slopes(h, error)
        if method != RK4:
            order_line(ax, h, error, 2 if method == MIDPOINT else 4)
    step_axis(ax, h[::-1])
    ax.set(xlabel="step $h$ (s)", ylabel=r"largest energy error $\|e_H\|_\infty$ over 10 s")
    ax.legend()
    claims = [
        Claim(
            f"the {method} method's rate is {order}",
            abs(local[method][-1] - order) < 0.1,
            f"orders {listed(local[method])} as h is halved",
        )
        for method, order in ((MIDPOINT, 2), (SIMPSON, 4))
    ]
    claims.append(
        Claim(
            "RK4's rate is higher than four",
            all(order > 4.5 for order in local[RK4]),
            f"orders {listed(local[RK4])} as h is halved: near five at the smallest steps too, so "
            "not because errors are high at large steps",
        )
    )
    return Drawing(figure, claims)


def figure_5(options: Options) -> Drawing:
    """The energy error over ten seconds with h = 10⁻¹, the step of Figures 2 and 3; the paper does not give it."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 1, sharex=True, figsize=(7, 5))
    largest, later = {}, {}
    for method in METHODS:
        path = _coarse(method)
        error = energy_error(path)
        largest[method] = float(np.abs(error).max())
        later[method] = float(np.abs(energy_error(run(NAME, method, 0.1, 1000 * SECONDS))).max())
        axes[0].plot(path.t, error, **mark(method, NAME, markersize=3))
        if method != RK4:
            axes[1].plot(path.t, error, **mark(method, NAME, markersize=3))
    axes[0].set_ylabel("energy error $e_H$")
    axes[1].set_ylabel("energy error $e_H$, closer")
    axes[1].set_xlabel("time $t$ (s)")
    axes[0].legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    claims = energy_claims(largest, later, "10 s", "1000 s")
    return Drawing(figure, claims)


FIGURES = [
    FigureSpec("2", "Angles of the double pendulum, h = 10⁻¹, against a fine reference", figure_2),
    FigureSpec("3", "Momenta of the double pendulum, h = 10⁻¹, against a fine reference", figure_3),
    FigureSpec("4", "Convergence of the double pendulum's energy over 10 s", figure_4),
    FigureSpec("5", "Energy error of the double pendulum over 10 s, h = 10⁻¹", figure_5),
]
