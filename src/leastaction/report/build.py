"""Compute what the papers publish, and write the report."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from leastaction.papers.model import Cell, Claim, FigureSpec, Options, Paper, by_note
from leastaction.report.page import page


@dataclass
class TableOutcome:
    """A table's cells, computed, and how long that took."""

    number: str
    title: str
    setting: str
    cells: list[Cell]
    seconds: float


@dataclass
class FigureOutcome:
    """A figure drawn to a file, its claims checked."""

    number: str
    title: str
    file: str
    claims: Sequence[Claim]
    seconds: float


@dataclass
class ErratumOutcome:
    """A misprint with its computed evidence."""

    place: str
    printed: str
    correct: str
    evidence: str


@dataclass
class Outcome:
    """What became of one paper."""

    paper: Paper
    tables: list[TableOutcome] = field(default_factory=list)
    figures: list[FigureOutcome] = field(default_factory=list)
    errata: list[ErratumOutcome] = field(default_factory=list)

    @property
    def cells(self) -> list[Cell]:
        return [cell for table in self.tables for cell in table.cells]

    @property
    def claims(self) -> list[Claim]:
        return [claim for figure in self.figures for claim in figure.claims]

    @property
    def differences(self) -> list[tuple[TableOutcome, str, list[Cell]]]:
        """The cells that differ, by table and reason."""
        return [
            (table, note, cells)
            for table in self.tables
            for note, cells in by_note(cell for cell in table.cells if not cell.agrees).items()
        ]

    @property
    def failures(self) -> list[tuple[FigureOutcome, Claim]]:
        """The claims that do not hold."""
        return [(figure, claim) for figure in self.figures for claim in figure.claims if not claim.holds]

    @property
    def seconds(self) -> float:
        return sum(table.seconds for table in self.tables) + sum(figure.seconds for figure in self.figures)


def reproduce(
    papers: Sequence[Paper], out: Path, options: Options, progress: Callable[[str, int, int], None]
) -> list[Outcome]:
    """Compute all tables and figures, and write out/index.html, out/results.json and out/figures/.

    `progress(what, done, total)` is called before each part.
    """
    import matplotlib

    matplotlib.use("Agg")
    (out / "figures").mkdir(parents=True, exist_ok=True)
    total = sum(len(paper.tables) + len(paper.figures) + bool(paper.errata) for paper in papers)
    done = 0
    begun = time.perf_counter()
    outcomes = []
    for paper in papers:
        outcome = Outcome(paper)
        outcomes.append(outcome)
        for table in paper.tables:
            progress(f"{paper.key}: Table {table.number}", done, total)
            clock = time.perf_counter()
            cells = table.compute(options)
            seconds = time.perf_counter() - clock
            outcome.tables.append(TableOutcome(table.number, table.title, table.setting, cells, seconds))
            done += 1
        for figure in paper.figures:
            progress(f"{paper.key}: Figure {figure.number}", done, total)
            outcome.figures.append(_draw(paper, figure, out, options))
            done += 1
        if paper.errata:
            progress(f"{paper.key}: errata", done, total)
            outcome.errata = [ErratumOutcome(e.place, e.printed, e.correct, e.evidence()) for e in paper.errata]
            done += 1
    progress("report", done, total)
    _write(out / "results.json", json.dumps(records(outcomes), indent=1, ensure_ascii=False) + "\n")
    _write(out / "index.html", page(outcomes, out, time.perf_counter() - begun, options))
    return outcomes


def _draw(paper: Paper, figure: FigureSpec, out: Path, options: Options) -> FigureOutcome:
    import matplotlib.pyplot as plt

    from leastaction.papers.style import style

    clock = time.perf_counter()
    file = f"figures/{paper.key}-{figure.number.replace('.', '-')}.png"
    with style():
        drawing = figure.draw(options)
        drawing.figure.savefig(out / file)
        plt.close(drawing.figure)
    return FigureOutcome(figure.number, figure.title, file, drawing.claims, time.perf_counter() - clock)


def _write(path: Path, text: str) -> None:
    """Replace a file only by a whole one."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def records(outcomes: Sequence[Outcome]) -> list[dict[str, object]]:
    """Every cell and every figure, as plain data."""
    rows: list[dict[str, object]] = []
    for outcome in outcomes:
        key = outcome.paper.key
        for cell in outcome.cells:
            rows.append(
                {
                    "paper": key,
                    "table": cell.table,
                    "row": cell.row,
                    "column": cell.column,
                    "published": cell.published,
                    "computed": float(cell.computed),
                    "agrees": cell.agrees,
                    "note": cell.note,
                }
            )
        for figure in outcome.figures:
            claims = [
                {"text": c.text, "holds": bool(c.holds), "measured": c.measured, "note": c.note} for c in figure.claims
            ]
            rows.append({"paper": key, "figure": figure.number, "file": figure.file, "claims": claims})
    return rows
