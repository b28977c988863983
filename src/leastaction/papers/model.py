"""What a paper is, to this project: tables of published numbers, figures, errata, and how each is computed again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Decimal
from enum import StrEnum
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Options:
    """How thorough a reproduction is: `full` adds the long runs, `digits` sets the precision of those that have one.

    `tick(done, total)` is called now and then in a part that takes minutes.
    """

    full: bool = False
    digits: int | None = None
    tick: Callable[[int, int], None] = lambda done, total: None


Published = dict[tuple[Any, ...], tuple[str, ...]]


def published(table: str) -> Published:
    """The numbers of a table as printed, by the name of the row, in which whole numbers are int."""
    text = resources.files("leastaction.papers").joinpath("published.txt").read_text(encoding="utf-8")
    found: Published = {}
    for row in text.split(f"[{table}]\n")[1].split("\n\n")[0].splitlines():
        *name, numbers = row.split(" | ")
        found[tuple(int(part) if part.isdigit() else part for part in name)] = tuple(numbers.split())
    return found


@dataclass(frozen=True)
class Cell:
    """One published number, as printed, beside the same number computed again.

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


def order(e: Sequence[float]) -> float:
    """½ log₂(e₁/e₃), the step being halved twice."""
    return 0.5 * math.log2(e[0] / e[2])


def error_cells(
    table: str, columns: Sequence[str], rows: Iterable[tuple[str, Sequence[str], Sequence[float], Sequence[str]]]
) -> list[Cell]:
    """The cells of a table of errors at three steps and their order: (name, published, errors, notes) of each row."""
    return [
        Cell(table, name, column, text, computed, note)
        for name, published, errors, notes in rows
        for column, text, computed, note in zip(
            (*columns, "order"), published, (*errors, order(errors)), notes or [""] * 4, strict=True
        )
    ]


def by_note(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    """Cells that share a note, together."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.note, []).append(cell)
    return found


@dataclass(frozen=True)
class Claim:
    """What a caption, a theorem or the text states, and whether it holds here; if it does not, `note` says why.

    A claim about run times is `timed`: it was measured on another machine with another program, so that it is
    reported, and counted neither among those that hold nor among those that do not.
    """

    text: str
    holds: bool
    measured: str
    note: str = ""
    timed: bool = False


@dataclass(frozen=True)
class Redrawn:
    """A figure drawn again, with the claims of its caption checked."""

    figure: Figure
    claims: Sequence[Claim] = ()


@dataclass(frozen=True)
class PublishedTable:
    """A published table: its number, what it shows, and how to compute its cells."""

    number: str
    title: str
    compute: Callable[[Options], list[Cell]]
    setting: str = ""
    arithmetic: Callable[[Options], str] = lambda options: "In float64."


@dataclass(frozen=True)
class FigureSpec:
    """A published figure: its number, what it shows, and how to draw it."""

    number: str
    title: str
    draw: Callable[[Options], Redrawn]


@dataclass(frozen=True)
class Statement:
    """A theorem, a proposition or a sentence of the text that numbers can check: where it stands, and the check."""

    place: str
    check: Callable[[Options], Claim]


def redrawn(number: str, title: str) -> Callable[[Callable[[Options], Redrawn]], FigureSpec]:
    """What a function draws."""
    return lambda draw: FigureSpec(number, title, draw)


def statement(place: str) -> Callable[[Callable[[Options], Claim]], Statement]:
    """What a function checks."""
    return lambda check: Statement(place, check)


class Kind(StrEnum):
    """How sure it is that something is wrong in print. The papers were read as machine-read text, which loses marks.

    MISPRINT   the text contradicts itself, its own numbers or its source: by more than one mark of one formula, or
               in words, or in both versions of a text that was read twice
    AS_READ    the text as read is wrong, but in each place by one mark, which the reading may have lost or
               exchanged: a sign, a dot, a letter, a digit, an index, the exponents of one symbol
    REMARK     nothing is wrong: the statement is true but incomplete or loose, or has another cause than the given one
    """

    MISPRINT = "misprint"
    AS_READ = "as read"
    REMARK = "remark"


KINDS = {Kind.MISPRINT: "misprints proved", Kind.AS_READ: "as read, perhaps lost in reading", Kind.REMARK: "remarks"}


@dataclass(frozen=True)
class Erratum:
    """Something to know about a place of the text: what it says, what it should say, and the evidence, computed.

    For text that is wrong as read, `either` says what speaks for the print and what for the reading as the cause.
    """

    kind: Kind
    place: str
    says: str
    should: str
    evidence: Callable[[], str]
    either: str = ""


def _of_kind(kind: Kind) -> Callable[..., Callable[[Callable[[], str]], Erratum]]:
    def told(place: str, says: str, should: str, either: str = "") -> Callable[[Callable[[], str]], Erratum]:
        """What a function gives evidence for."""
        return lambda evidence: Erratum(kind, place, says, should, evidence, either)

    return told


misprint, as_read, remark = map(_of_kind, Kind)


@dataclass(frozen=True)
class Other:
    """A table or figure that holds no result: what it is, and, for a table of data, the data that runs here take."""

    name: str
    what: str
    data: Callable[[], str] = lambda: ""


@dataclass(frozen=True)
class Paper:
    """A paper whose results are computed again; `text` says which text of it was read."""

    key: str
    authors: str
    title: str
    reference: str
    text: str = ""
    tables: Sequence[PublishedTable] = ()
    figures: Sequence[FigureSpec] = ()
    statements: Sequence[Statement] = ()
    errata: Sequence[Erratum] = ()
    others: Sequence[Other] = ()
