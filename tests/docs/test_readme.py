"""The tables of the README and of docs are what was computed and measured.

tests/data/reproduction.json holds the counts of the reproduction; the table is always compared with this file, and the
slow test compares the file with a whole run. benchmarks/measured holds what the benchmarks have measured.
"""

import json
import re
from pathlib import Path

import pytest

from leastaction.cli import main
from leastaction.papers import papers

ROOT = Path(__file__).parents[2]
STORED = json.loads((ROOT / "tests" / "data" / "reproduction.json").read_text(encoding="utf-8"))
KINDS = ("misprint", "as read", "remark")


def table() -> dict[str, list[str]]:
    """The rows of the table of the page about the papers, by paper."""
    text = (ROOT / "docs" / "explanation" / "papers.md").read_text(encoding="utf-8")
    rows = re.search(r"^\| paper \| published numbers .*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert rows is not None, "papers.md has no table of the reproduction"
    cells = [[entry.strip() for entry in row.strip("|").split("|")] for row in rows[1].splitlines()]
    return {name.split()[0].lower(): entries for name, *entries in cells}


def counts(records: list[dict]) -> dict[str, dict[str, int]]:
    """What results.json says of each paper."""
    found = {}
    for paper in dict.fromkeys(record["paper"] for record in records):
        own = [record for record in records if record["paper"] == paper]
        agree = [record["agrees"] for record in own if "table" in record]
        figures = [record for record in own if "figure" in record]
        claims = [claim for f in figures for claim in f["claims"]] + [r for r in own if "statement" in r]
        hold = [claim["holds"] for claim in claims if "timed" not in claim]
        found[paper] = {
            "published": len(agree),
            "reproduced": sum(agree),
            "different": len(agree) - sum(agree),
            "figures": len(figures),
            "hold": sum(hold),
            "claims": len(hold),
            "timed": len(claims) - len(hold),
            **{kind: sum(record.get("erratum") == kind for record in own) for kind in KINDS},
        }
    return found


def test_the_table_is_true():
    shown = table()
    assert list(shown) == list(STORED) == list(papers())
    for key, paper in papers().items():
        own = STORED[key]
        assert own["reproduced"] + own["different"] == own["published"]
        assert own["figures"] == len(paper.figures)
        numbers = [str(own[name]) for name in ("published", "reproduced", "different", "figures")]
        kinds = [sum(erratum.kind == kind for erratum in paper.errata) for kind in KINDS]
        assert kinds == [own[kind] for kind in KINDS]
        assert shown[key] == [*numbers, f"{own['hold']} of {own['claims']}", *map(str, kinds)], key
    published, reproduced = (sum(own[name] for own in STORED.values()) for name in ("published", "reproduced"))
    told = f"recomputes {published} published numbers, of which {reproduced} agree"
    assert told in (ROOT / "README.md").read_text(encoding="utf-8")


def test_tables_of_times_are_those_measured(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import measured

    assert measured.README == ROOT / "README.md"
    texts = [page.read_text(encoding="utf-8") for page in measured.PAGES]
    assert {name for text in texts for _, name, _, _ in measured.BLOCK.findall(text)} == set(measured.BLOCKS)
    for text in texts:
        assert measured.with_tables(text)[0] == text, "run python benchmarks/measured.py"


def test_a_benchmark_keeps_its_tables(monkeypatch, tmp_path, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import measured

    monkeypatch.setattr(measured, "FOLDER", tmp_path / "measured")
    monkeypatch.setattr("sys.argv", ["benchmarks/core.py"])
    measured.table("one trajectory", "A title", ["program", "µs", "/"], [["leastaction", "0.4567", "1.00"]])
    measured.table("start-up", "Another", ["what", "s"], [["`import leastaction`", "0.47"]])
    assert list(measured.kept("core")) == ["one trajectory", "start-up"]
    assert measured.one_trajectory().splitlines()[2] == "| leastaction | 0.46 | 1 |"
    text, untold = measured.with_tables("<!-- measured: one_trajectory -->\n\nold\n<!-- end -->")
    assert "0.46" in text and "old" not in text and not untold
    monkeypatch.setattr("sys.argv", ["benchmarks/core.py", "--quick"])
    measured.table("one trajectory", "A title", ["program", "µs", "/"], [["leastaction", "99", "1.00"]])
    assert measured.kept("core")["one trajectory"]["rows"][0][1] == "0.4567"
    assert "| leastaction | 99 | 1.00 |" in capsys.readouterr().out


def test_what_others_do_faster_is_told(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import measured

    monkeypatch.setattr(measured, "FOLDER", tmp_path)
    head = ["µs at an error of", "1e-06", "1e-08", "1e-10", "1e-12", "1e-14", "least error"]
    times = [
        ["leastaction", "2.2", "2.2", "2.21", "2.2", "5.4", "1e-15"],
        ["heyoka", "1.3", "1.6", "1.9", "2.3", "", "3e-14"],
    ]
    ratios = [
        ["Kepler problem", "1.70", "1.4", "1.2", "0.96", "neither", ""],
        ["Outer", "0.5", "0.5", "0.4", "0.4", "", ""],
    ]
    fast = [["Kepler problem", "0.9", "0.9", "0.8", "0.8", "heyoka alone"]]
    c = {
        "header": ["member", "leastaction / C native", "leastaction / C x86-64-v3"],
        "rows": [["P4", "3.1", "2.9"], ["P8", "6.9", "7.9"]],
    }
    motions = {key: {"header": head, "rows": times} for key in ("kepler", "outer-solar-system")}
    for script, tables in {
        "peers": motions | {"ratios": {"rows": ratios}, "ratios, fast_math": {"rows": fast}},
        "ensemble": {
            "same error, native": {"rows": [["position: leastaction / heyoka", "2.2", "", "2.71"]]},
            "same error, x86-64-v3": {"rows": [["position: leastaction / heyoka", "0.98", "0.7", ""]]},
        },
        "orders": {"kepler": c, "outer-solar-system": c},
    }.items():
        (tmp_path / f"{script}.json").write_text(json.dumps(tables))
    lines = measured.peers().splitlines()
    assert lines[0] == "| µs per unit of time, at an error of | 10⁻⁶ | 10⁻⁸ | 10⁻¹⁰ | 10⁻¹² | 10⁻¹⁴ |"
    assert lines[3] == "| heyoka | 1.3 | 1.6 | 1.9 | 2.3 | – |"
    assert lines[4].endswith("| 2200 | 2200 | 2210 | 2200 | 5400 |")
    losses = measured.losses()
    assert "Kepler problem, errors of 10⁻⁶ to 10⁻¹⁴ | heyoka | 1.0 to 1.7 |" in losses and "Outer" not in losses
    assert "Kepler problem, an error of 10⁻¹⁴ | heyoka with `fast_math=True` | not reached |" in losses
    assert "AVX-512, the same error of position | heyoka, batches | 2.2 to 2.7 |" in losses and "AVX2" not in losses
    assert losses.count("3.1 to 7.9") == 2


@pytest.mark.slow
def test_a_whole_reproduction_gives_these_counts(tmp_path):
    assert main(["reproduce", "--out", str(tmp_path)]) == 0
    records = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert counts(records) == STORED
    assert all(record["note"] for record in records if "table" in record and not record["agrees"])
    assert all(record["evidence"] for record in records if "erratum" in record)
    # Run times belong to the machine: their figures are drawn, and no verdict is given.
    timed = {r["figure"] for r in records if "figure" in r and any("timed" in claim for claim in r["claims"])}
    assert timed == {"5.13", "5.14"}
