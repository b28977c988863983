"""One look for every method: the same colour, marker and dashes in every picture, page and paper.

The colours are those of Okabe and Ito, which people with every kind of colour vision can distinguish. Each degree s has
a colour and a marker, and so has RK4; Gauss' rules are dashed, so that a print without colours can be read too.
"""

from __future__ import annotations

from typing import Any

from leastaction.methods import Method, method

BLUE, VERMILION, GREEN, PINK, ORANGE, SKY, BLACK = (
    *("#0072B2", "#D55E00", "#009E73"),
    *("#CC79A7", "#E69F00", "#56B4E9", "#000000"),
)
COLOURS = (BLUE, VERMILION, GREEN, PINK, ORANGE, SKY, BLACK)

_BY_DEGREE = (VERMILION, BLUE, ORANGE, PINK, SKY, BLACK)  # s = 1, 2, …; green is left to RK4
_MARKERS = "soDvP*"  # s = 1, 2, …


def colour(name: str | Method) -> str:
    """A method's colour, as #rrggbb.

    >>> colour("simpson") == colour("P2N2Q4Gau"), colour("rk4") == colour("rk4-lagrange")
    (True, True)
    """
    degree = method(name).root.degree
    return GREEN if degree is None else _BY_DEGREE[(degree - 1) % len(_BY_DEGREE)]


def line(name: str | Method) -> dict[str, Any]:
    """Keyword arguments of Matplotlib's plot() that mark a method."""
    root = method(name).root
    if root.degree is None:
        return {"color": GREEN, "marker": "^", "linestyle": "-."}
    dashes = "--" if root.name.endswith("Gau") else "-"
    return {"color": colour(root), "marker": _MARKERS[(root.degree - 1) % len(_MARKERS)], "linestyle": dashes}
