"""The README's table of the reproduction is what a reproduction gives.

tests/data/reproduction.json holds the counts; the table is compared with it always, and it with a whole run in the
slow test.
"""

import json
import re
from pathlib import Path

import pytest

from leastaction.cli import main
from leastaction.papers import papers

ROOT = Path(__file__).parents[1]
STORED = json.loads((ROOT / "tests" / "data" / "reproduction.json").read_text(encoding="utf-8"))
TIMED = {("galerkin", "5.13"), ("galerkin", "5.14")}  # claims about run times, which a test does not judge


def table() -> dict[str, list[str]]:
    """The rows of the README's table, by paper."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.search(r"^\| paper \| published numbers .*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert rows is not None, "README.md has no table of the reproduction"
    cells = [[entry.strip() for entry in row.strip("|").split("|")] for row in rows[1].splitlines()]
    return {name.split()[0].lower(): entries for name, *entries in cells}


def counts(records: list[dict]) -> dict[str, dict[str, int]]:
    """What results.json says of each paper."""
    found = {}
    for paper in dict.fromkeys(record["paper"] for record in records):
        own = [record for record in records if record["paper"] == paper]
        agree = [record["agrees"] for record in own if "table" in record]
        figures = [record for record in own if "figure" in record]
        hold = [claim["holds"] or (paper, f["figure"]) in TIMED for f in figures for claim in f["claims"]]
        found[paper] = {
            "published": len(agree),
            "reproduced": sum(agree),
            "different": len(agree) - sum(agree),
            "figures": len(figures),
            "hold": sum(hold),
            "claims": len(hold),
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
        assert shown[key] == [*numbers, f"{own['hold']} of {own['claims']}", str(len(paper.errata))], key


@pytest.mark.slow
def test_a_whole_reproduction_gives_these_counts(tmp_path):
    assert main(["reproduce", "--out", str(tmp_path)]) == 0
    records = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert counts(records) == STORED
    assert all(record["note"] for record in records if "table" in record and not record["agrees"])
