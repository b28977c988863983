"""What the benchmarks have measured, kept as data: benchmarks/measured/*.json, one file for each script.

`table` prints a table in Markdown and keeps it. `python benchmarks/measured.py` writes the tables of the README and of
docs (`PAGES`) from these files; the site shows them all. A quick run (`--quick`) prints and keeps nothing.
"""

from __future__ import annotations

import json
import os
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "measured"
README = Path(__file__).parents[1] / "README.md"
DOCS = Path(__file__).parents[1] / "docs"
WITH_TABLES = ("pace.md", "ensembles.md", "explanation/speed.md", "explanation/tolerance.md")
PAGES = (README, *(DOCS / name for name in WITH_TABLES))
BLOCK = re.compile(r"(<!-- measured: (\w+) -->\n\n)(.*?)(\n<!-- end -->)", re.DOTALL)

Table = dict[str, Any]  # title, header, rows; processor, load, date


def table(key: str, title: str, header: list[str], rows: list[list[str]]) -> None:
    """Print a table; keep it under its key in the file of the script that runs."""
    print(f"\n### {title}\n\n{markdown(header, rows)}", flush=True)
    if "--quick" not in sys.argv:
        keep(key, title, header, rows)


def keep(key: str, title: str, header: list[str], rows: list[list[str]]) -> None:
    """Keep a table under its key in the file of the script that runs."""
    file = FOLDER / f"{Path(sys.argv[0]).stem}.json"
    kept = json.loads(file.read_text("utf-8")) if file.exists() else {}
    here = {"processor": processor(), "load": round(os.getloadavg()[0], 1), "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    kept[key] = {"title": title, "header": header, "rows": rows} | here
    FOLDER.mkdir(exist_ok=True)
    file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")


def markdown(header: list[str], rows: list[list[str]]) -> str:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return "\n".join([line(header), f"|{'---|' * len(header)}", *map(line, rows)]) + "\n"


def processor() -> str:
    """The model of the processor, as Linux names it."""
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.*)", info.read_text()) if info.exists() else None
    return found[1] if found else "an unknown processor"


def kept(script: str) -> dict[str, Table]:
    """The tables of a script; none if it has kept none."""
    file = FOLDER / f"{script}.json"
    return json.loads(file.read_text("utf-8")) if file.exists() else {}


# Tables of the README and of docs/explanation/speed.md ----------------------------------------------------------------


def short(number: str) -> str:
    """Two or three digits of a number, as people read them; other words stay."""
    try:
        value = float(number)
    except ValueError:
        return number or "–"
    return f"{value:.0f}" if value >= 100 else f"{value:.2g}" if value < 10 else f"{value:.1f}"


def one_trajectory() -> str:
    rows = kept("core")["one trajectory"]["rows"]
    return markdown(["program", "µs per step", "relative"], [[name, short(t), short(x)] for name, t, x in rows])


def comparison() -> str:
    """Every program on two problems, at an error of 10⁻⁸."""
    tables = [kept("peers")[key] for key in ("kepler", "outer-solar-system")]
    columns = [{row[0]: row[table["header"].index("1e-08")] for row in table["rows"]} for table in tables]
    times = [(name, *(float(c.get(name) or "nan") for c in columns)) for name in columns[1]]
    rows = [[name, *(short(f"{t}") if t == t else "–" for t in (a, 1000 * b))] for name, a, b in times]
    return markdown(["program", "Kepler, e = 0.6", "outer solar system, per 1,000 days"], rows)


def peers() -> str:
    tables, rows = kept("peers"), []
    for key, what, unit in (
        ("kepler", "Kepler, e = 0.6", 1),
        ("outer-solar-system", "outer solar system, per 1,000 days", 1000),
    ):
        for number, (name, *times, _) in enumerate(tables[key]["rows"]):
            cells = [short(f"{unit * float(t)}") if t else "–" for t in times]
            rows.append([f"{what}: {name}" if number == 0 else name, *cells])
    raised = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
    errors = [f"10⁻{str(int(e.partition('-')[2])).translate(raised)}" for e in tables["kepler"]["header"][1:-1]]
    return markdown(["µs per unit of time, at an error of", *errors], rows)


def losses() -> str:
    """Where others are faster: the least and the largest ratio of the times."""
    rows = []
    for key, program in (("ratios", "heyoka"), ("ratios, fast_math", "heyoka with `fast_math=True`")):
        for name, *ratios in kept("peers")[key]["rows"]:
            if max(_numbers(ratios[:5]), default=0.0) > 1:
                rows.append([f"one trajectory, {name}, errors of 10⁻⁶ to 10⁻¹⁴", program, _range(ratios[:5])])
            if "heyoka alone" in ratios:
                rows.append([f"one trajectory, {name}, an error of 10⁻¹⁴", program, "not reached"])
    for name, *_, ratio in kept("peers")["ratios"]["rows"]:
        ias15, _, error = ratio.partition(" at ")
        if ias15 and float(ias15) < 1:
            rows.append([f"one trajectory, {name}, an error of {error}", "REBOUND IAS15", f"{1 / float(ias15):.1f}"])
    for key, vectors in (("native", "AVX-512"), ("x86-64-v3", "AVX2")):
        for name, *ratios in kept("ensemble")[f"same error, {key}"]["rows"]:
            error, _, sides = name.partition(": leastaction / ")
            if sides and max(_numbers(ratios), default=0.0) > 1:
                what = f"an ensemble of double pendulums, {vectors}, the same error of {error}"
                rows.append([what, f"{sides}, batches", _range(ratios)])
    for key, what in (("kepler", "Kepler's problem"), ("outer-solar-system", "the outer solar system")):
        found = kept("orders")[key]
        columns = [k for k, name in enumerate(found["header"]) if name.startswith("leastaction / C")]
        ratios = [max((row[k] for k in columns), key=float) for row in found["rows"]]  # beside the faster build of C
        rows.append([f"{what}, P4N4Q8Gau to P16N16Q32Gau", "the scheme in C, by hand", _range(ratios)])
    return markdown(["problem", "other program", "time of leastaction / time of the other"], rows)


def _numbers(ratios: list[str]) -> list[float]:
    return [float(x) for x in ratios if re.fullmatch(r"[\d.]+", x)]


def _range(ratios: list[str]) -> str:
    values = _numbers(ratios)
    return f"{min(values):.1f} to {max(values):.1f}"


def first_run() -> str:
    times = dict(kept("core")["start-up"]["rows"])
    chain = next(row for row in kept("core")["chains"]["rows"] if row[0] == "20")
    rows = [[name, f"{times[name]} s"] for name in times if name not in ("python alone", "import numpy")]
    rows.append(["a chain of 20 pendulums: from its definition to its first step", f"{chain[1]} s"])
    rows.append(["… and a step of it, Simpson, h = 0.001", f"{short(chain[2])} µs"])
    return markdown(["new processes, seconds of the processor", ""], rows)


# The table of docs/ensembles.md --------------------------------------------------------------------------------------


def ensembles() -> str:
    """Both sides at the same error, with vectors of eight numbers and of four."""
    rows = []
    for key, vectors in (("native", "AVX-512"), ("x86-64-v3", "AVX2")):
        for what, *numbers in kept("ensemble")[f"same error, {key}"]["rows"]:
            rows.append([f"{vectors}, {what}", *map(short, numbers)])
    return markdown(
        ["µs per unit of time and trajectory, at an error of", "10⁻⁶", "10⁻⁸", "10⁻¹⁰", "10⁻¹²", "10⁻¹⁴"], rows
    )


# Tables of docs/pace.md and docs/explanation/tolerance.md -------------------------------------------------------------


def _whole(key: str) -> str:
    found = kept("accuracy")[key]
    return markdown(found["header"], found["rows"])


def comet() -> str:
    return _whole("comet")


def arenstorf() -> str:
    return _whole("arenstorf")


def pythagorean() -> str:
    return _whole("pythagorean")


def tolerances() -> str:
    """For each problem and tolerance the true error, the reported error and the seconds of the call."""
    every = kept("tolerance")["tolerances"]["rows"]
    found: dict[str, dict[str, str]] = {}
    for problem, tol, error, told, _, seconds, _ in every:
        found.setdefault(problem, {})[tol] = f"{error.replace('told', '(warned)')}; {told}; {seconds}"
    columns = list(dict.fromkeys(tol for row in found.values() for tol in row))
    header = ["problem", *(f"tol = {tol}: error; reported; s" for tol in columns)]
    rows = [[name, *(row.get(tol, "") for tol in columns)] for name, row in found.items()]
    spent, ratios = (sorted(float(row[k]) for row in every if row[k]) for k in (5, 6))
    missed, silent = (sum(word in row[2] for row in every) for word in ("told", "MISSED"))
    told = (
        f"{len(every) - missed - silent} of {len(every)} tolerances were kept, {missed} were missed with a warning, "
        f"{silent} without. A call took {spent[len(spent) // 2]} s in the median and {spent[-1]} s at most. In "
        f"units of the time of the version before this is {ratios[len(ratios) // 2]} in the median and {ratios[-1]} at "
        "most."
    )
    return f"{markdown(header, rows)}\n{told}\n"


BLOCKS = {
    f.__name__: f
    for f in (
        comparison,
        one_trajectory,
        peers,
        losses,
        first_run,
        ensembles,
        comet,
        arenstorf,
        pythagorean,
        tolerances,
    )
}


def with_tables(text: str) -> tuple[str, list[str]]:
    """A page with its tables as they were measured, and the names of the tables that no file holds yet."""
    untold: list[str] = []

    def made(block: re.Match[str]) -> str:
        try:
            return block[1] + BLOCKS[block[2]]() + block[4]
        except KeyError as missing:
            untold.append(f"{block[2]} ({missing.args[0]})")
            return block[0]

    return BLOCK.sub(made, text), untold


def main() -> None:
    for page in PAGES:
        text, untold = with_tables(page.read_text("utf-8"))
        page.write_text(text, "utf-8")
        print(f"written into {page.name}; not measured yet: {untold or 'none'}")


if __name__ == "__main__":
    main()
