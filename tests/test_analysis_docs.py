"""The examples of pages of docs/, run; and names that only the source told."""

import doctest
from pathlib import Path

import pytest

import leastaction as la

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("name", "least"), [("analysis", 25), ("quadratic", 14), ("forces", 13), ("methods", 18), ("constraints", 7)]
)
def test_examples_of_the_page(name, least):
    page = ROOT / "docs" / f"{name}.md"
    failed, tried = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried >= least and failed == 0


@pytest.mark.parametrize(
    "name", ["path.velocity()", "la.Samples", "Rayleigh.from_ratios", "analysis.efficiency", "leastaction bench"]
)
def test_names_stand_in_the_documentation(name):
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    assert any(name in page.read_text(encoding="utf-8") for page in pages)
    assert la.Path.velocity and la.Samples and la.linear.Rayleigh.from_ratios and la.analysis.efficiency
