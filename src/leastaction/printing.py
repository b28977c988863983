"""Plain tables and counts for people to read."""

from __future__ import annotations

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Columns under a header; the first `left` are flush left, the others flush right.

    >>> print(table(["name", "h"], [["a", "0.5"], ["long", "0.25"]]))
    name     h
    a      0.5
    long  0.25
    """
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]

    def line(row: Sequence[str]) -> str:
        cells = [x.ljust(w) if k < left else x.rjust(w) for k, (x, w) in enumerate(zip(row, widths, strict=True))]
        return "  ".join(cells).rstrip()

    return "\n".join(line(row) for row in [header, *rows])


def freedom(n: int) -> str:
    """
    >>> freedom(1), freedom(2)
    ('1 degree of freedom', '2 degrees of freedom')
    """
    return f"{n} degree{'' if n == 1 else 's'} of freedom"
