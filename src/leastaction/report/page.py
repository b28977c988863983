"""The report's page: one HTML file with everything in it, figures and style included; it asks for no script."""

from __future__ import annotations

import base64
import os
import platform
import re
import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING

from leastaction.papers.model import KINDS, Cell, Claim, Erratum, Kind, Options, Other, by_note

if TYPE_CHECKING:
    from leastaction.report.build import FigureOutcome, Outcome, TableOutcome

_LIBRARIES = ("numpy", "scipy", "llvmlite", "python-flint", "matplotlib")


def page(outcomes: Sequence[Outcome], out: Path, seconds: float, options: Options) -> str:
    """The whole report as HTML."""
    style = resources.files("leastaction.report").joinpath("page.css").read_text(encoding="utf-8")
    links = [("summary", "Summary"), ("differences", "Differences")]
    links += [(outcome.paper.key, outcome.paper.key.capitalize()) for outcome in outcomes]
    links += [("facts", "Run")]
    nav = "".join(f"<li><a href='#{place}'>{escape(name)}</a></li>" for place, name in links)
    return (
        "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        "<link rel='icon' href='data:,'>\n"
        f"<title>leastaction: the papers, recomputed</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<nav aria-label='Parts'><ul>{nav}</ul></nav>\n"
        f"<header>\n<h1>The papers, recomputed</h1>\n{_lead(outcomes)}\n</header>\n<main>\n"
        f"{_summary(outcomes)}\n{_differences(outcomes)}\n"
        + "\n".join(_paper(outcome, out) for outcome in outcomes)
        + f"\n</main>\n{_facts(outcomes, seconds, options)}\n</body>\n</html>\n"
    )


_LONG = " class='long'"  # a heading that may break on a phone
_SCRIPT = re.compile(r"([_^])(?:\{([^{}]*)\}|([a-z0-9]+|[α-ωℓ½]+|[A-Z]))")


def _prose(text: str) -> str:
    """Text as HTML, with the indices it writes as q_m, p_{j+1} or g^β.

    >>> _prose("p_{j+1} < ω²_max")
    'p<sub>j+1</sub> &lt; ω²<sub>max</sub>'
    """
    tags = {"_": "sub", "^": "sup"}
    return _SCRIPT.sub(lambda m: f"<{tags[m[1]]}>{m[2] or m[3]}</{tags[m[1]]}>", escape(text))


def _lead(outcomes: Sequence[Outcome]) -> str:
    cells = [cell for outcome in outcomes for cell in outcome.cells]
    claims = [claim for outcome in outcomes for claim in outcome.claims]
    kinds = {kind: sum(len(outcome.kind(kind)) for outcome in outcomes) for kind in Kind}
    timed = sum(len(outcome.timed) for outcome in outcomes)
    return (
        f"<p class='lead'>{sum(cell.agrees for cell in cells)} of {len(cells)} published numbers come out again to the "
        f"digits printed; {sum(claim.holds for claim in claims)} of {len(claims)} statements hold. "
        f"{_count(kinds[Kind.MISPRINT], 'misprint')} {_are(kinds[Kind.MISPRINT])} proved; "
        f"{_count(kinds[Kind.AS_READ], 'place')} {_are(kinds[Kind.AS_READ])} wrong as read, perhaps by the reading; "
        f"{_count(kinds[Kind.REMARK], 'remark')} {_are(kinds[Kind.REMARK])} made.</p>"
        "<p><b>What was read.</b> The papers were read as machine-read text, in which signs, dots, letters, exponents "
        "and indices may be lost or exchanged. “Printed” is said of numbers in the cells of tables, and of what the "
        "text contradicts by more than one mark, in words or in two versions. What is wrong by one mark in each place "
        "is given “as read”. Each paper below names the text that was read.</p>"
        "<p><b>What was computed.</b> All runs, orders, stability limits and conserved quantities come from "
        "leastaction's own functions. Formulas of the papers that are put to the test, and exact solutions, are "
        "written out apart from it, in NumPy, SymPy and mpmath."
        + (f" {_count(timed, 'statement')} on run times {_are(timed)} reported, not counted.</p>" if timed else "</p>")
    )


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


_COLUMNS = (
    "numbers",
    "reproduced",
    "different",
    "figures",
    "statements hold",
    "misprints proved",
    "as read",
    "remarks",
)


def _summary(outcomes: Sequence[Outcome]) -> str:
    rows = []
    for outcome in outcomes:
        cells, claims = outcome.cells, outcome.claims
        agree, hold = sum(cell.agrees for cell in cells), sum(claim.holds for claim in claims)
        held = f"{hold} of {len(claims)}"
        kinds = [len(outcome.kind(kind)) for kind in Kind]
        counts = (len(cells), agree, len(cells) - agree, len(outcome.figures), held, *kinds)
        looks = ("", "yes", "no" if agree < len(cells) else "", "", "no" if hold < len(claims) else "", "", "", "")
        rows.append(
            f"<tr><th scope='row'><a href='#{outcome.paper.key}'>{escape(outcome.paper.title)}</a></th>"
            + "".join(
                f"<td class='{look}' data-name='{name}'>{count}</td>"
                for name, look, count in zip(_COLUMNS, looks, counts, strict=True)
            )
            + "</tr>"
        )
    head = "".join(f"<th scope='col'>{name}</th>" for name in _COLUMNS)
    return (
        f"<div class='wide'><table id='summary'><thead><tr><th scope='col'>paper</th>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
        "<p class='faint'>A number is reproduced when the computed one, rounded or cut to the digits printed, is the "
        "published one. Figures of results are drawn anew; the statements are those of captions, theorems and text, "
        "checked by code.</p>"
    )


def _differences(outcomes: Sequence[Outcome]) -> str:
    """Every cell that differs, grouped by reason, and every claim that does not hold."""
    parts = []
    for outcome in outcomes:
        paper = outcome.paper
        items = [
            f"<li><a href='#{_place(outcome, 'table', table.number)}'>Table {escape(table.number)}</a>, "
            f"{_said(cells)}: {_prose(note) or 'not explained'}</li>"
            for table, note, cells in outcome.differences
        ]
        items += [
            f"<li><a href='#{paper.key}-{place.replace('.', '-')}'>{escape(where)}</a>, "
            f"“{_prose(claim.text)}”: {_prose(claim.note)} <span class='measured'>{_prose(claim.measured)}</span></li>"
            for where, place, claim in outcome.failures
        ]
        if items:
            parts.append(f"<h3>{escape(paper.title)}</h3><ul class='notes'>{''.join(items)}</ul>")
    body = "".join(parts) or "<p>None: every number is reproduced and every statement holds.</p>"
    return f"<section id='differences'><h2>What differs, and why</h2>{body}</section>"


def _paper(outcome: Outcome, out: Path) -> str:
    paper = outcome.paper
    links = [(_place(outcome, "table", t.number), f"Table {t.number}") for t in outcome.tables]
    links += [(_place(outcome, "figure", f.number), f"Figure {f.number}") for f in outcome.figures]
    links += [(f"{paper.key}-statements", "Statements")] if outcome.statements else []
    found = [kind for kind in Kind if outcome.kind(kind)]
    links += [(_kind_place(outcome, kind), KINDS[kind].capitalize()) for kind in found]
    links += [(f"{paper.key}-others", "Not recomputed")] if paper.others else []
    parts = [
        f"<h2>{escape(paper.title)}</h2>",
        f"<p>{escape(paper.authors)}. {escape(paper.reference)}.</p>",
        f"<p class='setting'>Text read: {escape(paper.text)}</p>" if paper.text else "",
        "<p class='parts'>" + " ".join(f"<a href='#{place}'>{escape(name)}</a>" for place, name in links) + "</p>",
        *(_table(outcome, table) for table in outcome.tables),
        *(_figure(outcome, figure, out) for figure in outcome.figures),
    ]
    if outcome.statements:
        told = "".join(_claim(claim, place) for place, claim in outcome.statements)
        parts.append(f"<h3 id='{paper.key}-statements'>Statements</h3><ul class='claims'>{told}</ul>")
    for kind in found:
        entries = outcome.kind(kind)
        title = f"{KINDS[kind].capitalize()} ({len(entries)})"
        parts.append(f"<h3 id='{_kind_place(outcome, kind)}'>{title}</h3>")
        parts += [_erratum(*entry) for entry in entries]
    if paper.others:
        listed = "".join(f"<li>{_other(other)}</li>" for other in paper.others)
        parts.append(f"<h3 id='{paper.key}-others'>Not recomputed</h3><ul class='notes'>{listed}</ul>")
    return f"<section id='{paper.key}'>\n" + "\n".join(parts) + "\n</section>"


def _kind_place(outcome: Outcome, kind: Kind) -> str:
    return f"{outcome.paper.key}-{kind.replace(' ', '-')}"


def _other(other: Other) -> str:
    data = other.data()
    return f"{escape(other.name)}: {_prose(other.what)}." + (f" Taken here: {_prose(data)}." if data else "")


def _place(outcome: Outcome, kind: str, number: str) -> str:
    return f"{outcome.paper.key}-{kind}-{number.replace('.', '-')}"


def _said(cells: Sequence[Cell]) -> str:
    """Cells in words: where, what is printed and what was computed."""
    return "; ".join(
        f"{escape(cell.row)}, {escape(cell.column)} (printed {escape(cell.published)}, computed {escape(cell.shown())})"
        for cell in cells
    )


def _table(outcome: Outcome, table: TableOutcome) -> str:
    place = _place(outcome, "table", table.number)
    columns = list(dict.fromkeys(cell.column for cell in table.cells))
    rows = list(dict.fromkeys(cell.row for cell in table.cells))
    found = {(cell.row, cell.column): cell for cell in table.cells}
    notes = {note: cells for note, cells in by_note(table.cells).items() if note}
    marks = {note: f"<sup><a href='#{place}-note-{i}'>{i}</a></sup>" for i, note in enumerate(notes, 1)}
    head = "".join(f"<th scope='col'{_LONG if len(column) > 14 else ''}>{escape(column)}</th>" for column in columns)
    body = "".join(
        f"<tr><th scope='row'>{escape(row)}</th>"
        + "".join(_entry(found.get((row, column)), marks) for column in columns)
        + "</tr>"
        for row in rows
    )
    listed = "".join(
        f"<li id='{place}-note-{i}'>{_said(cells)}: {_prose(note)}</li>"
        for i, (note, cells) in enumerate(notes.items(), 1)
    )
    return (
        f"<h3 id='{place}'>Table {escape(table.number)}. {_prose(table.table.title)}</h3>"
        f"<p class='setting'>{_prose(table.table.setting)} {_prose(table.arithmetic)} Each entry: computed, and "
        f"published below it. {table.seconds:.1f} s.</p>"
        f"<div class='wide'><table data-paper='{outcome.paper.key}' data-table='{escape(table.number)}'>"
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        + (f"<ol class='notes'>{listed}</ol>" if listed else "")
    )


def _entry(cell: Cell | None, marks: dict[str, str]) -> str:
    if cell is None:
        return "<td></td>"
    look = "" if cell.agrees else " class='differs'"
    return (
        f"<td{look}><span class='computed'>{escape(cell.shown())}</span>{marks.get(cell.note, '')}"
        f"<span class='published'>{escape(cell.published)}</span></td>"
    )


def _figure(outcome: Outcome, figure: FigureOutcome, out: Path) -> str:
    data = (out / figure.file).read_bytes()
    width, height = struct.unpack(">II", data[16:24])  # from the first chunk of the PNG: the page keeps room for it
    return (
        f"<figure id='{_place(outcome, 'figure', figure.number)}' data-paper='{outcome.paper.key}' "
        f"data-figure='{escape(figure.number)}'>"
        f"<figcaption>Figure {escape(figure.number)}. {_prose(figure.title)}</figcaption>"
        f"<img alt='{escape(figure.title)}' width='{width}' height='{height}' "
        f"src='data:image/png;base64,{base64.b64encode(data).decode()}'>"
        f"<ul class='claims'>{''.join(_claim(claim) for claim in figure.claims)}</ul></figure>"
    )


def _claim(claim: Claim, place: str = "") -> str:
    where = f"<b>{escape(place[0].upper() + place[1:])}.</b> " if place else ""
    text = f"{where}{_prose(claim.text)} <span class='measured'>— {_prose(claim.measured)}</span>"
    if claim.timed:
        return f"<li><span class='mark' title='run times: reported, not counted'>◷</span>{text}</li>"
    if claim.holds:
        return f"<li><span class='mark yes' title='holds'>✓</span>{text}</li>"
    why = f"<span class='why'>{_prose(claim.note)}</span>" if claim.note else ""
    return f"<li class='fails'><span class='mark no' title='does not hold'>✗</span>{text}{why}</li>"


_WORDS = {  # the headings of an entry: what the paper says, and the correction
    Kind.MISPRINT: ("printed", "should be"),
    Kind.AS_READ: ("as read", "should be"),
    Kind.REMARK: ("it says", "to add"),
}


def _erratum(erratum: Erratum, evidence: str) -> str:
    says, should = _WORDS[erratum.kind]
    lines = [(says, erratum.says), (should, erratum.should), ("evidence", evidence)]
    if erratum.either:
        lines.append(("doubt" if erratum.kind == Kind.AS_READ else "text", erratum.either))
    body = "".join(f"<dt>{name}</dt><dd>{_prose(text)}</dd>" for name, text in lines)
    return f"<div class='erratum' data-kind='{erratum.kind}'><h4>{_prose(erratum.place)}</h4><dl>{body}</dl></div>"


def _facts(outcomes: Sequence[Outcome], seconds: float, options: Options) -> str:
    kind = "with the long runs" if options.full else "default"
    if options.digits:
        kind += f", {options.digits} digits"
    facts = {
        "leastaction": metadata.version("leastaction"),
        "run": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {seconds:.0f} s ({kind})",
        "machine": f"{platform.system()} {platform.machine()}, {_processor()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "libraries": ", ".join(f"{name} {metadata.version(name)}" for name in _LIBRARIES),
        "papers": ", ".join(f"{outcome.paper.key} {outcome.seconds:.0f} s" for outcome in outcomes),
    }
    body = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in facts.items())
    return f"<footer id='facts'><h3>This run</h3><dl>{body}</dl></footer>"


def _processor() -> str:
    """The name of the processor, if the system tells it, and the number of processors."""
    name = platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{name or 'processor unknown'}, {os.cpu_count()} cores"
