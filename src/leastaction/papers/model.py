"""What a paper is, to this project: tables of published numbers, figures, errata, and how each is computed again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Options:
    """How thorough a reproduction is: `full` adds the long runs, `digits` sets the precision of those that have one."""

    full: bool = False
    digits: int | None = None


@dataclass(frozen=True)
class Cell:
    """One published number, as printed, beside the same computed again.

    It agrees when the computed number, rounded or cut to the digits printed, is the published one.
    """

    table: str
    row: str
    column: str
    published: str
    computed: float
    note: str = ""

    @property
    def agrees(self) -> bool:
        printed = Decimal(self.published)
        unit = Decimal(1).scaleb(int(printed.as_tuple().exponent))
        computed = Decimal(repr(float(self.computed)))
        if not computed.is_finite():
            return False
        return any(computed.quantize(unit, mode) == printed for mode in (ROUND_HALF_EVEN, ROUND_DOWN))

    def shown(self) -> str:
        """The computed number as the published one is written, with a digit more.

        >>> Cell("1", "row", "column", "2.93e-2", 0.02933251).shown(), Cell("1", "row", "column", "2.0", 2.0).shown()
        ('2.933e-2', '2.00')
        """
        printed = Decimal(self.published)
        if "e" not in self.published.lower():
            return f"{self.computed:.{max(0, -int(printed.as_tuple().exponent)) + 1}f}"
        mantissa, _, exponent = f"{self.computed:.{len(printed.as_tuple().digits)}e}".partition("e")
        return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def by_note(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    """Cells that share a note, together."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.note, []).append(cell)
    return found


@dataclass(frozen=True)
class Claim:
    """A quantitative statement of a caption, and whether it holds here; if it does not, `note` says why."""

    text: str
    holds: bool
    measured: str
    note: str = ""


@dataclass(frozen=True)
class Drawing:
    """A figure drawn again, with the claims of its caption checked."""

    figure: Figure
    claims: Sequence[Claim] = ()


@dataclass(frozen=True)
class Table:
    """A published table: its number, what it shows, and how to compute its cells."""

    number: str
    title: str
    compute: Callable[[Options], list[Cell]]
    setting: str = ""


@dataclass(frozen=True)
class FigureSpec:
    """A published figure: its number, what it shows, and how to draw it."""

    number: str
    title: str
    draw: Callable[[Options], Drawing]


@dataclass(frozen=True)
class Erratum:
    """Something wrong in print: where, what it should be, and the evidence, which is computed."""

    place: str
    printed: str
    correct: str
    evidence: Callable[[], str]


@dataclass(frozen=True)
class Paper:
    """A paper whose results are computed again."""

    key: str
    authors: str
    title: str
    reference: str
    tables: Sequence[Table] = ()
    figures: Sequence[FigureSpec] = ()
    errata: Sequence[Erratum] = ()
