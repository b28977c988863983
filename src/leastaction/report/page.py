"""The report's page: one HTML file with everything in it."""

from __future__ import annotations

import base64
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from leastaction.papers.model import Cell, Options

if TYPE_CHECKING:
    from leastaction.report.build import ErratumOutcome, FigureOutcome, Outcome, TableOutcome

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --soft: #f3f5f7; --line: #d5dae0; --faint: #5b6570;
  --good: #00664f; --bad: #a84300; --bad-back: #fff1e6; --link: #0a58a8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ea; --paper: #15181c; --soft: #1e2328; --line: #3a4149;
  --faint: #9aa4ae; --good: #4fd1a5; --bad: #ffab73; --bad-back: #3a2415; --link: #7db7f0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1rem; font: 16px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); }
h1 { font-size: 1.7rem; margin: .5rem 0 0; } h2 { margin-top: 2.5rem; border-bottom: 2px solid var(--line); }
h3 { margin: 1.8rem 0 .3rem; } a { color: var(--link); } p.setting, figcaption, .faint { color: var(--faint); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .6rem 0; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child, td.text, th.text { text-align: left; } td.text { white-space: normal; }
thead th { background: var(--soft); } td.differs { background: var(--bad-back); }
.published { display: block; font-size: .8em; color: var(--faint); } .yes { color: var(--good); }
.no { color: var(--bad); } figure { margin: 1rem 0; } figure img { width: 100%; height: auto; background: #fff;
  border-radius: 4px; } ul.claims { margin: .3rem 0; padding-left: 1.2rem; font-size: .92em; }
@media print { body { max-width: none; font-size: 10pt; } figure, table { break-inside: avoid; } }
"""


def page(outcomes: Sequence[Outcome], out: Path, seconds: float, options: Options) -> str:
    """The whole report as HTML."""
    body = [
        "<h1>The papers, recomputed</h1>",
        f"<p class='faint'>leastaction {metadata.version('leastaction')} · {_machine()} · "
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC · {seconds:.0f} s{' · full' if options.full else ''}</p>",
        _summary(outcomes),
    ]
    for outcome in outcomes:
        paper = outcome.paper
        body.append(f"<h2 id='{paper.key}'>{escape(paper.title)}</h2>")
        body.append(f"<p>{escape(paper.authors)}. {escape(paper.reference)}</p>")
        body.extend(_table(table) for table in outcome.tables)
        body.extend(_figure(figure, out) for figure in outcome.figures)
        if outcome.errata:
            body.append(_errata(outcome.errata))
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<link rel='icon' href='data:,'>"
        f"<title>leastaction: the papers, recomputed</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _machine() -> str:
    return f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"


def _summary(outcomes: Sequence[Outcome]) -> str:
    rows = []
    for outcome in outcomes:
        cells, claims = outcome.cells, outcome.claims
        agree, hold = sum(cell.agrees for cell in cells), sum(claim.holds for claim in claims)
        rows.append(
            f"<tr><td class='text'><a href='#{outcome.paper.key}'>{escape(outcome.paper.title)}</a></td>"
            f"<td>{len(cells)}</td><td class='yes'>{agree}</td><td class='{'no' if agree < len(cells) else ''}'>"
            f"{len(cells) - agree}</td><td>{len(outcome.figures)}</td><td>{hold} of {len(claims)}</td></tr>"
        )
    return (
        "<div class='wide'><table id='summary'><thead><tr><th class='text'>paper</th><th>numbers published</th>"
        "<th>reproduced</th><th>different</th><th>figures</th><th>claims that hold</th></tr></thead><tbody>"
        + "".join(rows)
        + "</tbody></table></div><p class='faint'>A number is reproduced when the computed one, rounded or cut to the "
        "digits printed, is the published one. Every difference is marked, with its reason below the table.</p>"
    )


def _table(table: TableOutcome) -> str:
    columns = list(dict.fromkeys(cell.column for cell in table.cells))
    rows = list(dict.fromkeys(cell.row for cell in table.cells))
    found = {(cell.row, cell.column): cell for cell in table.cells}
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    lines = []
    for row in rows:
        entries = "".join(_entry(found.get((row, column))) for column in columns)
        lines.append(f"<tr><td class='text'>{escape(row)}</td>{entries}</tr>")
    notes = [cell for cell in table.cells if cell.note]
    text = f"<h3>Table {escape(table.number)}. {escape(table.title)}</h3>"
    if table.setting:
        text += f"<p class='setting'>{escape(table.setting)}</p>"
    body = "".join(lines)
    text += f"<div class='wide'><table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    if notes:
        items = "".join(
            f"<li>{escape(cell.row)}, {escape(cell.column)}: printed {escape(cell.published)}, computed "
            f"{escape(cell.shown())}: {escape(cell.note)}</li>"
            for cell in notes
        )
        text += f"<ul class='claims'>{items}</ul>"
    return text


def _entry(cell: Cell | None) -> str:
    if cell is None:
        return "<td></td>"
    mark = "" if cell.agrees else " class='differs'"
    return f"<td{mark}>{escape(cell.shown())}<span class='published'>{escape(cell.published)}</span></td>"


def _figure(figure: FigureOutcome, out: Path) -> str:
    data = base64.b64encode((out / figure.file).read_bytes()).decode()
    title = f"Figure {escape(figure.number)}. {escape(figure.title)}"
    items = "".join(
        f"<li><span class='{'yes' if c.holds else 'no'}'>{'✓' if c.holds else '✗'}</span> {escape(c.text)}: "
        f"{escape(c.measured)}</li>"
        for c in figure.claims
    )
    claims = f"<ul class='claims'>{items}</ul>" if items else ""
    return (
        f"<figure><img alt='{escape(figure.title, quote=True)}' src='data:image/png;base64,{data}'>"
        f"<figcaption>{title}</figcaption>{claims}</figure>"
    )


def _errata(errata: Sequence[ErratumOutcome]) -> str:
    rows = "".join(
        f"<tr><td class='text'>{escape(e.place)}</td><td class='text'>{escape(e.printed)}</td>"
        f"<td class='text'>{escape(e.correct)}</td><td class='text'>{escape(e.evidence)}</td></tr>"
        for e in errata
    )
    return (
        "<h3>Errata</h3><div class='wide'><table><thead><tr><th class='text'>where</th><th class='text'>printed</th>"
        "<th class='text'>should be</th><th class='text'>evidence, computed</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )
