"""Tables 1 and 2: the orders measured on the oscillator, and the same on Kepler's problem."""

from __future__ import annotations

from leastaction.papers.galerkin2014.runs import DIGITS, FULL_DIGITS, KEPLER, OSCILLATOR, asymptotic_order, member
from leastaction.papers.model import Cell, Options, PublishedTable, published

# {r: orders for s = 1, 2, …}, as printed.
TABLE_1, TABLE_2 = ({r: orders for (r,), orders in published(f"galerkin {k}").items()} for k in (1, 2))


def _cells(number: str, family: str, published: dict[int, tuple[str, ...]], options: Options) -> list[Cell]:
    return [
        Cell(number, f"r = {r}, {name}", f"s = {s}", printed, asymptotic_order(problem, member(family, s, r), options))
        for r, orders in published.items()
        for problem, name in ((OSCILLATOR, "oscillator"), (KEPLER, "Kepler"))
        for s, printed in enumerate(orders, 1)
    ]


def table_1(options: Options) -> list[Cell]:
    """PsNrQ2rGau."""
    return _cells("1", "Gau", TABLE_1, options)


def table_2(options: Options) -> list[Cell]:
    """PsNrQ2r−2Lob."""
    return _cells("2", "Lob", TABLE_2, options)


_SETTING = (
    "Order: slope of log(error) over log(h) by least squares through three steps; error: the larger of those of q and "
    "p against the exact solution. Oscillator: q(0) = (1, 0), p(0) = (1/2, 1), T = 10 (the paper gives neither initial "
    "data nor T), largest error over all nodes and components, h = 1/4, 1/8, 1/16. Kepler: the paper's data, error at "
    "T = 25, h = 1/128, 1/256, 1/512 for order 2, 1/32, 1/64, 1/128 for order 4, 1/16, 1/32, 1/64 for order 6, 1/10, "
    "1/16, 1/32 for orders 8 and 10."
)


def arithmetic(options: Options) -> str:
    """Which arithmetic the orders were measured in."""
    low = 4 if options.full else 8
    digits = max(options.digits or (FULL_DIGITS if options.full else 0), DIGITS)
    return f"Orders {low} and above with {digits} digits, the others in float64."


TABLES = [
    PublishedTable("1", "Orders of PsNrQ2rGau, measured", table_1, _SETTING, arithmetic),
    PublishedTable("2", "Orders of PsNrQ2r−2Lob, measured", table_2, _SETTING, arithmetic),
]
