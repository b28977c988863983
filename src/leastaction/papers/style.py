"""One look for all figures: the same method in the same colour and marker everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from leastaction.methods import Method, method
from leastaction.plots import COLOURS

# Colour, marker and line by method; members of the family without an entry take theirs by degree.
_KNOWN: dict[str, tuple[str, str, str]] = {
    "P1N1Q2Gau": (COLOURS[1], "s", "--"),
    "P1N2Q2Lob": (COLOURS[4], "v", "--"),
    "P2N3Q4Lob": (COLOURS[0], "o", "-"),
    "rk4": (COLOURS[2], "^", "-."),
    "rk4-lagrange": (COLOURS[2], "^", "-."),
}
_MARKERS = "osD^vP*Xh<>p"
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
    """Keyword arguments for plot() that mark a method."""
    chosen = method(name)
    if chosen.name in _KNOWN:
        colour, marker, dashes = _KNOWN[chosen.name]
    else:
        s = getattr(chosen, "s", 1)
        gauss = chosen.name.endswith("Gau")
        colour, marker, dashes = COLOURS[(s + 2) % len(COLOURS)], _MARKERS[s % len(_MARKERS)], "-" if gauss else ":"
    return {"color": colour, "marker": marker, "linestyle": dashes}
