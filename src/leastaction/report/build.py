"""Compute what the papers publish, and write the report."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from leastaction.disk import replacing
from leastaction.papers.model import Cell, Claim, Erratum, FigureSpec, Kind, Options, Paper, PublishedTable, by_note
from leastaction.report.page import page


@dataclass
class TableOutcome:
    """A table's cells, computed, and how long that took."""

    table: PublishedTable
    arithmetic: str
    cells: list[Cell]
    seconds: float

    @property
    def number(self) -> str:
        return self.table.number


@dataclass
class FigureOutcome:
    """A figure drawn to a file, its claims checked."""

    number: str
    title: str
    file: str
    claims: Sequence[Claim]
    seconds: float


@dataclass
class Outcome:
    """What became of one paper."""

    paper: Paper
    tables: list[TableOutcome] = field(default_factory=list)
    figures: list[FigureOutcome] = field(default_factory=list)
    statements: list[tuple[str, Claim]] = field(default_factory=list)
    errata: list[tuple[Erratum, str]] = field(default_factory=list)  # each with its computed evidence
    statement_seconds: float = 0.0

    @property
    def cells(self) -> list[Cell]:
        return [cell for table in self.tables for cell in table.cells]

    @property
    def claims(self) -> list[Claim]:
        """All statements of figures, theorems and text that can be judged; statements about run times cannot."""
        return [claim for claim in self._all_claims if not claim.timed]

    @property
    def timed(self) -> list[Claim]:
        """The statements about run times, which this machine cannot judge."""
        return [claim for claim in self._all_claims if claim.timed]

    @property
    def _all_claims(self) -> list[Claim]:
        drawn = [claim for figure in self.figures for claim in figure.claims]
        return [*drawn, *(claim for _, claim in self.statements)]

    def kind(self, kind: Kind) -> list[tuple[Erratum, str]]:
        """The entries of this kind."""
        return [entry for entry in self.errata if entry[0].kind == kind]

    @property
    def differences(self) -> list[tuple[TableOutcome, str, list[Cell]]]:
        """The cells that differ, by table and reason."""
        return [
            (table, note, cells)
            for table in self.tables
            for note, cells in by_note(cell for cell in table.cells if not cell.agrees).items()
        ]

    @property
    def failures(self) -> list[tuple[str, str, Claim]]:
        """The claims that do not hold: the place in the paper, the place on the page, and the claim."""
        drawn = [
            (f"Figure {figure.number}", f"figure-{figure.number}", claim)
            for figure in self.figures
            for claim in figure.claims
        ]
        told = [(place, "statements", claim) for place, claim in self.statements]
        return [entry for entry in (*drawn, *told) if not entry[2].holds and not entry[2].timed]

    @property
    def seconds(self) -> float:
        parts = [*(table.seconds for table in self.tables), *(figure.seconds for figure in self.figures)]
        return sum(parts) + self.statement_seconds


def reproduce(
    papers: Sequence[Paper], out: Path, options: Options, progress: Callable[[str, int, int], None]
) -> list[Outcome]:
    """Compute all tables and figures, and write out/index.html, out/results.json and out/figures/.

    `progress(what, done, total)` is called before each part, and now and then within one that takes minutes.
    """
    import matplotlib

    matplotlib.use("Agg")
    (out / "figures").mkdir(parents=True, exist_ok=True)
    total = sum(len(p.tables) + len(p.figures) + bool(p.statements) + bool(p.errata) for p in papers)
    done = 0
    begun = time.perf_counter()
    outcomes = []
    for paper in papers:
        outcome = Outcome(paper)
        outcomes.append(outcome)
        for table in paper.tables:
            progress(f"{paper.key}: Table {table.number}", done, total)
            told = replace(options, tick=_within(progress, f"{paper.key}: Table {table.number}", done, total))
            clock = time.perf_counter()
            cells = table.compute(told)
            seconds = time.perf_counter() - clock
            outcome.tables.append(TableOutcome(table, table.arithmetic(options), cells, seconds))
            done += 1
        for figure in paper.figures:
            progress(f"{paper.key}: Figure {figure.number}", done, total)
            outcome.figures.append(_draw(paper, figure, out, options))
            done += 1
        if paper.statements:
            progress(f"{paper.key}: statements", done, total)
            clock = time.perf_counter()
            outcome.statements = [(statement.place, statement.check(options)) for statement in paper.statements]
            outcome.statement_seconds = time.perf_counter() - clock
            done += 1
        if paper.errata:
            progress(f"{paper.key}: errata", done, total)
            outcome.errata = [(erratum, erratum.evidence()) for erratum in paper.errata]
            done += 1
    progress("report", done, total)
    _write(out / "results.json", json.dumps(records(outcomes), indent=1, ensure_ascii=False) + "\n")
    _write(out / "index.html", page(outcomes, out, time.perf_counter() - begun, options))
    return outcomes


def _within(progress: Callable[[str, int, int], None], what: str, done: int, total: int) -> Callable[[int, int], None]:
    """The function by which a part reports its progress: as percent in the name."""
    return lambda part, whole: progress(f"{what}, {part / whole:.0%}", done, total)


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
    with replacing(path) as stream:
        stream.write(text.encode())


def records(outcomes: Sequence[Outcome]) -> list[dict[str, object]]:
    """Every cell, figure, statement and erratum, as plain data."""
    rows: list[dict[str, object]] = []
    for outcome in outcomes:
        key = outcome.paper.key
        arithmetic = {table.number: table.arithmetic for table in outcome.tables}
        for cell in outcome.cells:
            told = {name: getattr(cell, name) for name in ("table", "row", "column", "published")}
            found = {"computed": float(cell.computed), "agrees": cell.agrees, "note": cell.note}
            rows.append({"paper": key, **told, **found, "arithmetic": arithmetic[cell.table]})
        for figure in outcome.figures:
            claims = [_record(claim) for claim in figure.claims]
            rows.append({"paper": key, "figure": figure.number, "file": figure.file, "claims": claims})
        rows += [{"paper": key, "statement": place, **_record(claim)} for place, claim in outcome.statements]
        for erratum, evidence in outcome.errata:
            entry = {"place": erratum.place, "says": erratum.says, "should": erratum.should, "evidence": evidence}
            rows.append({"paper": key, "erratum": str(erratum.kind), **entry, "either": erratum.either})
    return rows


def _record(claim: Claim) -> dict[str, object]:
    """A claim as plain data; a claim about run times has no verdict."""
    verdict = {"timed": True} if claim.timed else {"holds": bool(claim.holds)}
    return {"text": claim.text, **verdict, "measured": claim.measured, "note": claim.note}
