"""The examples of docs/analysis.md, run."""

import doctest
from pathlib import Path


def test_examples_of_the_page():
    page = Path(__file__).parent.parent / "docs" / "analysis.md"
    failed, tried = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried > 25 and failed == 0
