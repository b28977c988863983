"""One look for all figures: one colour for each degree s everywhere, and for RK4 (leastaction.results.colours)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from leastaction.results.colours import line

__all__ = ["EXACT", "HOLLOW", "REFERENCE", "VISIBLE", "line", "style"]

VISIBLE = 0.01  # of a curve's range: about the width of a line at page width
EXACT: Any = {"color": "#444444", "linewidth": 1.0, "linestyle": "-"}
REFERENCE: Any = {"color": "#bbbbbb", "linewidth": 3}  # a curve under the points that should follow it
HOLLOW: Any = {"linestyle": "none", "markerfacecolor": "none"}  # states alone: those of another are seen through them

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
