"""One look for all figures: one colour and marker for each degree s everywhere, and for RK4."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from leastaction.methods import Galerkin, Method, method
from leastaction.plots import COLOURS

# Colour and marker by degree s = 1, 2, …, wherever a member of the family is drawn; RK4's are its own.
_BY_DEGREE = (
    (COLOURS[1], "s"),
    (COLOURS[0], "o"),
    (COLOURS[3], "D"),
    (COLOURS[4], "v"),
    (COLOURS[5], "P"),
    (COLOURS[6], "X"),
)
_RK4 = (COLOURS[2], "^")
EXACT = {"color": "#444444", "linewidth": 1.0, "linestyle": "-"}

_SETTINGS: Any = {
    "figure.constrained_layout.use": True,
    "figure.figsize": (7.0, 4.0),
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "lines.markersize": 4.5,
    "lines.linewidth": 1.3,
    "savefig.dpi": 160,
}


@contextmanager
def style() -> Iterator[None]:
    """Draw inside this in the project's look."""
    import matplotlib

    with matplotlib.rc_context(_SETTINGS):
        yield


def line(name: str | Method) -> dict[str, Any]:
    """Keyword arguments for plot() that mark a method: its degree by colour and marker, Gauss dashed, Lobatto solid."""
    chosen = method(name)
    if not isinstance(chosen, Galerkin):
        return {"color": _RK4[0], "marker": _RK4[1], "linestyle": "-."}
    colour, marker = _BY_DEGREE[(chosen.s - 1) % len(_BY_DEGREE)]
    return {"color": colour, "marker": marker, "linestyle": "--" if chosen.name.endswith("Gau") else "-"}
