"""Tables 2, 4 and 5: the largest errors of energy and nutation over runs of growing length, and the order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from leastaction.papers.model import Cell, Options, Published, PublishedTable, error_cells, published
from leastaction.papers.top2025 import long_runs
from leastaction.papers.top2025.long_runs import Errors, LongRun, all_errors
from leastaction.papers.top2025.runs import METHODS, PAPER_DIGITS, RK4

Found = dict[tuple[str, int], Errors]  # by method and mesh

SHORT = 10  # lengths up to this are seconds of work with 64 digits
_LONG: dict[Any, Found] = {}  # Tables 4 and 5 share their runs

# {(length, method): errors at three steps, order}, as printed.
TABLE_2 = published("top 2")
TABLE_4 = published("top 4")
TABLE_5 = published("top 5")

PENDULUM_MESHES = (25, 50, 100)  # steps in a second
TOP_MESHES = (50, 100, 200)  # steps in a nutation period
TOP_COLUMNS = ("h = 0.02 (printed 0.05)", "h = 0.01", "h = 0.005")

_COPIED = "the row of T = 1 s printed again; the order printed here, 4.75, is that of the errors recomputed"
NOTES: dict[tuple[str, int, str, int], str] = {("2", 1000, RK4, i): _COPIED for i in range(3)}


@lru_cache(maxsize=64)
def errors(name: str, method: str, mesh: int, lengths: tuple[int, ...], digits: int | None = None) -> Errors:
    """The largest errors by quantity and length; one run serves all lengths."""
    return long_runs.errors(LongRun(name, method, mesh, lengths, digits))


def precision(lengths: tuple[int, ...], options: Options) -> dict[int, int]:
    """Digits of each length that is run with many: none unless asked for, since float64 shows every printed digit.

    `digits` alone takes the short rows, in seconds; a full run takes every row.
    """
    digits = options.digits or (PAPER_DIGITS if options.full else None)
    return {} if digits is None else {n: digits for n in lengths if options.full or n <= SHORT}


def long_errors(name: str, meshes: tuple[int, ...], lengths: dict[int, int], options: Options) -> Found:
    """Errors with many digits by method and mesh, each run once."""
    key = (name, tuple(lengths.items()))
    if lengths and key not in _LONG:
        (digits,) = set(lengths.values())
        runs = [LongRun(name, method, mesh, tuple(lengths), digits) for method in METHODS for mesh in meshes]
        found = all_errors(runs, options.tick)
        _LONG[key] = {(run.method, run.mesh): largest for run, largest in found.items()}
    return _LONG.get(key, {})


def _lengths(published: Published) -> tuple[int, ...]:
    return tuple(sorted({length for length, _ in published}))


@dataclass(frozen=True)
class ErrorTable:
    """A table of one quantity's errors on one problem, with so many steps in a unit of time."""

    number: str
    published: Published
    name: str
    quantity: str
    meshes: tuple[int, ...]
    unit: str
    columns: tuple[str, ...]

    def cells(self, options: Options, lengths: tuple[int, ...] | None = None) -> list[Cell]:
        """The cells, for these lengths."""
        lengths = lengths or _lengths(self.published)
        digits = precision(lengths, options)
        fast = tuple(length for length in lengths if length not in digits)
        precise = long_errors(self.name, self.meshes, digits, options)
        found: dict[tuple[int, str], tuple[float, ...]] = {}
        for method in METHODS:
            each = [errors(self.name, method, mesh, fast)[self.quantity] if fast else {} for mesh in self.meshes]
            if precise:
                many = [precise[method, mesh][self.quantity] for mesh in self.meshes]
                each = [e | m for e, m in zip(each, many, strict=True)]
            found |= {(length, method): tuple(e[length] for e in each) for length in lengths}
        return error_cells(
            self.number,
            self.columns,
            (
                (
                    f"T = {length} {self.unit}, {method}",
                    printed,
                    found[length, method],
                    [NOTES.get((self.number, length, method, i), "") for i in range(4)],
                )
                for (length, method), printed in self.published.items()
                if (length, method) in found
            ),
        )

    def of_paper(self, title: str, setting: str) -> PublishedTable:
        lengths = _lengths(self.published)
        return PublishedTable(
            self.number, title, self.cells, setting, lambda options: arithmetic(options, lengths, self.unit)
        )


def arithmetic(options: Options, lengths: tuple[int, ...], unit: str) -> str:
    """Which arithmetic the rows of a table were computed in."""
    digits = precision(lengths, options)
    if not digits:
        return f"All rows in float64; the paper's were computed with {PAPER_DIGITS} digits."
    many = f"{next(iter(digits.values()))} digits"
    rest = [length for length in lengths if length not in digits]
    if not rest:
        return f"All rows with {many}, as in the paper."
    return f"T ≤ {max(digits)} {unit} with {many}, the longer rows in float64."


_TOP_SETTING = (
    "Data of Table 3 with g = 9.81, t̄ = 1.84671 s the nutation period, h in units of t̄; the first column is labelled "
    "0.05 in print but holds the errors at h = 0.02. RK4 on the state (q, q̇); the implicit midpoint rule is the "
    "variational one, the same as on Hamilton's equations. Order = ½ log₂(e₁/e₃)."
)

PENDULUM_ENERGY = ErrorTable(
    "2",
    TABLE_2,
    "double-pendulum",
    "energy",
    PENDULUM_MESHES,
    "s",
    tuple(f"h = {1 / mesh:g}" for mesh in PENDULUM_MESHES),
)
TOP_NUTATION = ErrorTable("4", TABLE_4, "lagrange-top", "nutation", TOP_MESHES, "t̄", TOP_COLUMNS)
TOP_ENERGY = ErrorTable("5", TABLE_5, "lagrange-top", "energy", TOP_MESHES, "t̄", TOP_COLUMNS)

TABLES = [
    PENDULUM_ENERGY.of_paper(
        "Double pendulum: largest relative error of the energy over runs of growing length",
        "m₁ = m₂ = 1, ω₀ = 2π, g = 9.81, ℓ = g/ω₀² (as read g/ω₀), q(0) = (π/4, π/3), p(0) = 0; H as in (15), without "
        "an offset; RK4 on Hamilton's equations. Order = ½ log₂(e₁/e₃).",
    ),
    TOP_NUTATION.of_paper(
        "Top with loops: largest relative error of the nutation over runs of growing length", _TOP_SETTING
    ),
    TOP_ENERGY.of_paper(
        "Top with loops: largest relative error of the energy over runs of growing length", _TOP_SETTING
    ),
]
