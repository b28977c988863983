"""Tables 2, 4 and 5: the largest errors of energy and nutation over runs of growing length, and the order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from leastaction.papers.model import Cell, Options, PublishedTable, error_cells
from leastaction.papers.top2025 import long_runs
from leastaction.papers.top2025.long_runs import Errors, LongRun, all_errors
from leastaction.papers.top2025.runs import METHODS, MIDPOINT, PAPER_DIGITS, RK4, SIMPSON

Published = dict[tuple[int, str], tuple[str, str, str, str]]
Found = dict[tuple[str, int], Errors]  # by method and mesh

SHORT = 10  # lengths up to this are seconds of work with 64 digits
_LONG: dict[Any, Found] = {}  # Tables 4 and 5 share their runs

# {(length, method): errors at three steps, order}, as printed.
TABLE_2: Published = {
    (1, MIDPOINT): ("7.61e-4", "2.09e-4", "5.35e-5", "1.92"),
    (1, RK4): ("7.28e-5", "2.11e-6", "6.25e-8", "5.09"),
    (1, SIMPSON): ("8.09e-6", "4.94e-7", "3.07e-8", "4.02"),
    (10, MIDPOINT): ("8.31e-4", "2.29e-4", "5.78e-5", "1.92"),
    (10, RK4): ("1.04e-3", "3.41e-5", "1.08e-6", "4.96"),
    (10, SIMPSON): ("8.83e-6", "5.47e-7", "3.42e-8", "4.01"),
    (100, MIDPOINT): ("8.33e-4", "2.35e-4", "5.92e-5", "1.91"),
    (100, RK4): ("9.58e-3", "3.25e-4", "1.03e-5", "4.93"),
    (100, SIMPSON): ("9.75e-6", "5.96e-7", "3.71e-8", "4.02"),
    (1000, MIDPOINT): ("8.33e-4", "2.35e-4", "5.92e-5", "1.91"),
    (1000, RK4): ("7.28e-5", "2.11e-6", "6.25e-8", "4.75"),
    (1000, SIMPSON): ("9.78e-6", "5.98e-7", "3.72e-8", "4.02"),
    (10000, MIDPOINT): ("8.33e-4", "2.35e-4", "5.92e-5", "1.91"),
    (10000, RK4): ("2.90e-1", "2.88e-2", "1.03e-3", "4.07"),
    (10000, SIMPSON): ("9.78e-6", "5.98e-7", "3.72e-8", "4.02"),
}
TABLE_4: Published = {
    (1, MIDPOINT): ("1.53e-1", "3.70e-2", "9.21e-3", "2.03"),
    (1, RK4): ("2.84e-3", "1.66e-4", "1.01e-5", "4.07"),
    (1, SIMPSON): ("2.66e-4", "1.64e-5", "1.02e-6", "4.01"),
    (10, MIDPOINT): ("3.22e0", "5.48e-1", "1.21e-1", "2.37"),
    (10, RK4): ("9.32e-2", "3.72e-3", "1.71e-4", "4.55"),
    (10, SIMPSON): ("1.61e-3", "9.46e-5", "5.81e-6", "4.06"),
    (100, MIDPOINT): ("2.10e1", "2.10e1", "2.11e0", "1.66"),
    (100, RK4): ("2.10e1", "2.36e-1", "7.31e-3", "5.74"),
    (100, SIMPSON): ("1.62e-2", "9.41e-4", "5.77e-5", "4.07"),
    (1000, MIDPOINT): ("2.10e1", "2.10e1", "2.10e1", "0.00"),
    (1000, RK4): ("2.10e1", "2.10e1", "8.41e-1", "2.32"),
    (1000, SIMPSON): ("1.79e-1", "9.45e-3", "5.77e-4", "4.14"),
}
TABLE_5: Published = {
    (1, MIDPOINT): ("1.02e-5", "2.60e-6", "6.52e-7", "1.99"),
    (1, RK4): ("6.73e-7", "4.47e-8", "2.87e-9", "3.94"),
    (1, SIMPSON): ("3.56e-8", "2.20e-9", "1.37e-10", "4.01"),
    (10, MIDPOINT): ("1.02e-5", "2.60e-6", "6.52e-7", "1.99"),
    (10, RK4): ("1.28e-6", "4.47e-8", "2.87e-9", "4.40"),
    (10, SIMPSON): ("3.56e-8", "2.20e-9", "1.37e-10", "4.01"),
    (100, MIDPOINT): ("1.02e-5", "2.60e-6", "6.52e-7", "1.99"),
    (100, RK4): ("1.32e-5", "4.30e-7", "1.37e-8", "4.96"),
    (100, SIMPSON): ("3.58e-8", "2.20e-9", "1.37e-10", "4.01"),
    (1000, MIDPOINT): ("1.02e-5", "2.60e-6", "6.52e-7", "1.99"),
    (1000, RK4): ("1.28e-4", "4.30e-6", "1.37e-7", "4.93"),
    (1000, SIMPSON): ("3.64e-8", "2.20e-9", "1.37e-10", "4.02"),
}

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
