"""Pages and pictures that come from code: methods, problems, papers, peers, the command line, the reference, a motion.

They are written before Sphinx reads its sources, into folders that git ignores: `generated/`, `reference/api/` and
`_static/made/`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from _extensions import reference

ROOT = Path(__file__).parents[2]


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in lines) + "\n"


def methods() -> str:
    """Every member with s ≤ 5 and r ≤ s + 1, what else it is, and where it is stable; compositions; RK4."""
    from leastaction import analysis
    from leastaction.linear import stable_intervals
    from leastaction.methods import ALIASES, family
    from leastaction.methods.composition import KNOWN

    aliases: dict[str, list[str]] = {}
    for alias, method in ALIASES.items():
        aliases.setdefault(method.name, []).append(alias)
    rows = []
    for member in family(5):
        also = analysis.equivalences(member)
        is_also = ["Gauss collocation"] if also.gauss else []
        if also.lobatto_pair != "no":
            where = "" if also.lobatto_pair == "always" else ", constant mass"
            is_also.append(f"Lobatto IIIA–IIIB{where}")
        first, *others = stable_intervals(member)
        limit = "every h" if first[1] == float("inf") else f"{first[1]:.4f}{' +' if others else ''}"
        names = ", ".join(f'`"{name}"`' for name in aliases.get(member.name, []))
        rows.append([f"`{member.name}`", names, member.order, limit, "; ".join(is_also)])
    known = [[f'`la.compose(method, "{name}")`', what] for name, what in KNOWN.items()]
    return f"""# Methods by name

Any name of this page is a method for `la.integrate`, and so is any other PsNrQu: polynomials of degree s, r quadrature
nodes, quadrature order u. The order of the method is min(2s, u). The table is computed when the site is built.

"Stable" is the largest hω up to which steps stay bounded on an oscillator of frequency ω. A plus sign means that there
are further stable intervals beyond: `la.analysis.stability` lists them exactly.

{table(["method", "also called", "order", "stable up to hω =", "the same map as"], rows)}

## Compositions

{table(["call", "what it does"], known)}

## Runge–Kutta

`"rk4"` is the classical method on (q, p), `"rk4-lagrange"` the same on (q, v). It is explicit and has order 4. It is
neither symplectic nor symmetric: it is there to compare with.
"""


def problems() -> str:
    """The catalogue."""
    import inspect

    from leastaction import problems as catalogue

    rows, parts = [], []
    for name in sorted((*catalogue.names(), *catalogue.driven())):
        problem = catalogue.get(name)
        n, m = problem.system.n, problem.system.m
        known = ", ".join(problem.invariants) or "–"
        inputs = ", ".join(f"`{one}`" for one in problem.system.inputs)
        rows.append([f"[`{name}`](#{name})", n, m or "", inputs, "yes" if problem.has_exact else "", known])
        settings = ", ".join(f"`{setting}`" for setting in inspect.signature(catalogue.maker(name)).parameters)
        parts.append(
            f"({name})=\n### {problem.title}\n\n`la.problems.get({name!r})`. {problem.description}\n\n"
            + (f"Settings: {settings}. " if settings else "")
            + f"Source: {problem.source}\n"
        )
    return f"""# The catalogue of problems

`la.problems.get(name)` gives a problem: its system, its start, its invariants and, where one is known, its exact
solution. n is the number of coordinates, m the number of constraints. A run of a problem with inputs has to bring what
drives it. The page is made from the catalogue itself.

{table(["name", "n", "m", "inputs", "exact solution", "invariants"], rows)}

## Each problem

{chr(10).join(parts)}"""


def papers() -> str:
    """What the reproduction of the papers gave, from the counts that a test compares with a whole run."""
    from leastaction.papers import papers as registry

    counts = json.loads((ROOT / "tests" / "data" / "reproduction.json").read_text(encoding="utf-8"))
    rows, parts = [], []
    for key, paper in registry().items():
        own = counts[key]
        rows.append(
            [
                f"{paper.authors}, *{paper.title}*",
                f"{own['reproduced']} of {own['published']}",
                own["figures"],
                f"{own['hold']} of {own['claims']}",
                own["misprint"],
                own["as read"],
                own["remark"],
            ]
        )
        tables = "; ".join(f"Table {part.number}: {part.title}" for part in paper.tables)
        parts.append(f"**{paper.authors}**, *{paper.title}*, {paper.reference}. {tables}.\n")
    head = ["paper", "numbers reproduced", "figures drawn again", "statements that hold"]
    head += ["misprints proved", "as read", "remarks"]
    return f"""# What was recomputed

`make reproduce` computes the published numbers, figures and statements again. It lists what it does not: schematic
figures and tables of parameters. The counts below are those of a whole run; a slow test compares them.

{table(head, rows)}

Reproduced means: equal to the printed digits, rounded or cut. "As read" counts places where one mark is wrong, which
machine reading may have lost; remarks accuse nothing. The report that `make reproduce` writes gives the reason for
every number that differs.

{chr(10).join(parts)}"""


def peers() -> str:
    """Features beside those of other packages; our own column is checked by evaluating an expression."""
    import inspect

    import leastaction as la

    data = tomllib.loads((Path(__file__).parent / "peers.toml").read_text(encoding="utf-8"))
    options = {name: set(inspect.signature(getattr(la, name)).parameters) for name in ("integrate", "ensemble")}
    rows = []
    for feature in data["feature"]:
        if "check" in feature and not eval(feature["check"], {"la": la, "options": options}):
            raise ValueError(f"peers.toml says of leastaction {feature['name']!r}, and {feature['check']} is not true")
        rows.append([feature["name"], feature["leastaction"], *(feature[peer] for peer in data["peers"])])
    links = [f"[{peer}]({data['links'][peer]})" for peer in data["peers"]]
    return f"""# Beside other packages

Each of these packages is the right one for something. The column of leastaction is checked against the code when the
site is built. The other columns are a reader's summary of the packages' own documentation, read in 2026; the heads of
the columns link to it. No code checks these columns, and a later version may have more.

{table(["", "leastaction", *links], rows)}

How fast they are beside each other stands on [the page of speed](../explanation/speed.md), with what leastaction loses.
"""


def measured() -> str:
    """Every table that the benchmarks have kept, with the day and the processor."""
    folder = ROOT / "benchmarks"
    script = "import measured as m; print(*(x for p in m.PAGES for x in m.with_tables(p.read_text('utf-8'))[1]))"
    told = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder, check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    parts = []
    for file in sorted((folder / "measured").glob("*.json")):
        parts.append(f"## `benchmarks/{file.stem}.py`\n")
        for one in json.loads(file.read_text(encoding="utf-8")).values():
            when = f"Measured on {one['date']}, {one['processor']}, load {one['load']}."
            parts.append(f"**{one['title']}**\n\n{table(one['header'], one['rows'])}\n{when}\n")
    untold = (
        f"These tables of the pages are written by hand, since no benchmark has kept them yet: {told}." if told else ""
    )
    return f"""# Measured

`make bench` runs the benchmarks. They keep their tables in `benchmarks/measured`. This page and the tables of the other
pages are made from these files. Times are processor times where a column does not say otherwise. {untold}

{chr(10).join(parts)}"""


def command_line() -> str:
    """The help of every command, as the command prints it."""
    import argparse

    from leastaction.cli import _parser

    parser = _parser()
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    parts = [
        f"## `leastaction {name}`\n\n```text\n{command.format_help().strip()}\n```\n"
        for name, command in commands.choices.items()
    ]
    return "# The command line\n\nWhat each command prints with `--help`.\n\n" + "\n".join(parts)


def motion(file: Path, landing: Path) -> None:
    """The moving picture of the landing page, by the landing page's own code."""
    code = landing.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    written = code.replace("path.show(draw)", f"path.to_html({str(file)!r}, draw, megabytes=0.35)")
    assert written != code, "the first code of the landing page ends with path.show(draw)"
    file.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-c", written], check=True)


PAGES: dict[str, Callable[[], str]] = {
    "methods": methods,
    "problems": problems,
    "papers": papers,
    "peers": peers,
    "measured": measured,
    "command_line": command_line,
}


def write(file: Path, text: str) -> None:
    """Write a page where it changed, so that Sphinx reads it again only then."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


def generate(app: Sphinx) -> None:
    source = Path(app.srcdir)
    for name, make in PAGES.items():
        write(source / "generated" / f"{name}.md", make())
    names = reference.pages()
    for stale in (source / "reference" / "api").glob("*.rst"):
        if f"api/{stale.name}" not in names:
            stale.unlink()
    for name, text in names.items():
        write(source / "reference" / name, text)
    motion(source / "_static" / "made" / "double-pendulum.html", source / "index.md")
    if not any((ROOT / "gallery").glob("*.py")):
        write(source / "gallery" / "index.rst", "Gallery\n=======\n\nNo script stands in ``gallery/`` yet.\n")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", generate, priority=100)  # before the gallery's own
    return {"parallel_read_safe": True, "parallel_write_safe": True}
