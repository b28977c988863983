"""The map of the heart in docs/design.md names every module once, with what the module says of itself.

`python tests/docs/test_design.py` writes the map anew.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "design.md"
PACKAGES = ("step", "engine", "flint")
BLOCK = re.compile(r"(<!-- modules -->\n\n)(.*?)(\n<!-- end -->)", re.DOTALL)


def purpose(module: Path) -> str:
    """The first paragraph of a module's docstring, or its first sentence where that is long."""
    told = " ".join((ast.get_docstring(ast.parse(module.read_text("utf-8"))) or "").split("\n\n")[0].split())
    return told if len(told) < 160 else told.split(". ")[0] + "."


def modules() -> str:
    rows = ["| module | what is inside |", "|---|---|"]
    for package in PACKAGES:
        found = sorted((ROOT / "src" / "leastaction" / package).glob("*.py"))
        rows += [f"| `{package}/{file.stem}` | {purpose(file)} |" for file in found if file.stem != "__init__"]
    return "\n".join(rows) + "\n"


def test_the_map_names_every_module_with_its_purpose():
    found = BLOCK.search(PAGE.read_text("utf-8"))
    assert found and found[2] == modules(), "python tests/docs/test_design.py writes the map anew"
    assert "|  |" not in found[2]


if __name__ == "__main__":
    PAGE.write_text(BLOCK.sub(lambda found: found[1] + modules() + found[3], PAGE.read_text("utf-8")), "utf-8")
