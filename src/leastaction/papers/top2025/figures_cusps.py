"""Figures 12–14: the top with cusps, whole (Simpson, midpoint) and reduced (RK4).

RK4 steps the reduced first order system (26), y = (φ, θ, ξ). Its φ is a quadrature that does not act back on θ and ξ,
and these two are Routh's nutation as a Lagrangian system with one degree of freedom; so RK4 on the state (θ, θ') of
that system gives the same θ, step by step.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from leastaction.papers.model import Claim, Drawing, FigureSpec, Options
from leastaction.papers.top2025.drawing import (
    REFERENCE,
    FloatArray,
    axis_path,
    listed,
    mark,
    order_line,
    points,
    slopes,
    step_axis,
)
from leastaction.papers.top2025.runs import METHODS, MIDPOINT, RK4, SIMPSON, problem, run

WHOLE, REDUCED = "lagrange-top-cusps", "lagrange-top-cusps-reduced"


def nutation(method: str, steps: int, every: int = 1) -> tuple[FloatArray, FloatArray]:
    """t and θ over one second: RK4 on the reduced system, the others on the whole one."""
    if method == RK4:
        path = run(REDUCED, method, 1 / steps, steps, every)
        return path.t, path.q[:, 0]
    path = run(WHOLE, method, 1 / steps, steps, every)
    return path.t, path.q[:, 1]


@lru_cache(maxsize=1)
def _reference() -> tuple[FloatArray, FloatArray]:
    return nutation(RK4, 10**5, every=100)


def figure_12(options: Options) -> Drawing:
    """Five nutations of the exact motion."""
    top = problem(WHOLE)
    assert top.reduced is not None and top.period is not None
    periods = np.linspace(0, 5, 2001)
    phi, theta, xi = top.reduced.exact(periods * top.period).T
    figure = axis_path(periods, phi, theta, top.params["l"])
    rate = top.reduced.rhs(np.stack([phi, theta, xi], axis=-1))[:, 0]
    speed = np.hypot(xi, rate * np.sin(theta))
    at_cusps = float(speed[::400].max())
    claim = Claim(
        "the axis draws cusps: it comes to rest, at θ₀, in every nutation",
        at_cusps < 1e-9 * float(speed.max()) and float(np.ptp(theta[::400])) < 1e-12,
        f"angular speed of the axis at the six cusps at most {at_cusps:.0e} rad/s, elsewhere up to {speed.max():.2f} "
        f"rad/s; a nutation takes {top.period:.5f} s",
    )
    return Drawing(figure, [claim])


def figure_13(options: Options) -> Drawing:
    """Nutation over one second."""
    import matplotlib.pyplot as plt

    t, reference = _reference()
    figure, ax = plt.subplots(figsize=(7, 4.2))
    ax.plot(t, reference, label="RK4, reduced, h = 10⁻⁵", **REFERENCE)
    off = {}
    for method in METHODS:
        times, theta = nutation(method, 10)
        which = "reduced" if method == RK4 else "whole"
        ax.plot(times, theta, **(points(method, WHOLE) | {"label": f"{method}, {which}"}))
        off[method] = float(np.abs(theta - reference[::100]).max())
    ax.set(xlabel="time $t$ (s)", ylabel=r"nutation $\theta$ (rad)")
    ax.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=9)
    exact = float(np.abs(reference - problem(REDUCED).exact(t)[0][:, 0]).max())
    span = float(np.ptp(reference))
    claims = [
        Claim(
            "with h = 0.1 Simpson tracks the reference more precisely than RK4 on the reduced system",
            off[SIMPSON] < off[RK4] < off[MIDPOINT],
            f"largest deviation: Simpson {off[SIMPSON]:.4f}, RK4 {off[RK4]:.4f}, midpoint {off[MIDPOINT]:.3f} rad, of "
            f"a range of {span:.2f} rad",
        ),
        Claim(
            "RK4 on the reduced system at h = 10⁻⁵ will do as a reference",
            exact < 1e-12,
            f"it is {exact:.0e} rad away from the exact solution",
        ),
    ]
    return Drawing(figure, claims)


def figure_14(options: Options) -> Drawing:
    """‖θ_SIM − θ_RK4‖∞ over one second against the step."""
    import matplotlib.pyplot as plt

    steps = 10 * 2 ** np.arange(9)
    h = 1.0 / steps
    pairs = [(nutation(SIMPSON, int(n))[1], nutation(RK4, int(n))[1]) for n in steps]
    difference = np.array([np.abs(a - b).max() for a, b in pairs])
    figure, ax = plt.subplots(figsize=(7, 4.5))
    ax.loglog(h, difference, color="#000000", marker="D", label="Simpson, whole, minus RK4, reduced")
    exact = [problem(REDUCED).exact(np.arange(n + 1) / n)[0][:, 0] for n in steps]
    for i, method in enumerate((SIMPSON, RK4)):
        error = np.array([np.abs(pair[i] - e).max() for pair, e in zip(pairs, exact, strict=True)])
        ax.loglog(h, error, **mark(method, WHOLE, label=f"{method} minus exact", linewidth=0.8, markersize=3))
    order_line(ax, h, difference, 4)
    step_axis(ax, h[::-1], [f"1/{n}" for n in steps[::-1]])
    ax.set(xlabel="step $h$ (s)", ylabel=r"largest difference of $\theta$ over 1 s (rad)")
    ax.legend()
    local = slopes(h, difference)
    claim = Claim(
        "the difference of Simpson on the whole system and RK4 on the reduced one is of order four",
        all(round(order) == 4 for order in local) and abs(local[-1] - 4) < 0.1,
        f"orders {listed(local)} as h is halved",
    )
    return Drawing(figure, [claim])


FIGURES = [
    FigureSpec("12", "The top with cusps over five nutations, in space", figure_12),
    FigureSpec("13", "Nutation of the top with cusps over one second, h = 0.1", figure_13),
    FigureSpec("14", "Simpson on the whole top minus RK4 on the reduced one", figure_14),
]
