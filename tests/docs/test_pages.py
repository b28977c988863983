"""Every code block of the README and of the pages of docs/, run as a reader would type them, page by page.

Blocks of a page share their names. Blocks of `>>>` are doctests. A block that cannot run here stands behind a comment
`<!-- not run: why -->`; it must still be Python.
"""

import doctest
import re
from pathlib import Path

import matplotlib
import pytest

matplotlib.use("Agg")

ROOT = Path(__file__).parents[2]
MADE = {"generated", "gallery"}  # by the build of the site
PAGES = [ROOT / "README.md", *(p for p in sorted((ROOT / "docs").rglob("*.md")) if p.parent.name not in MADE)]
BLOCK = re.compile(r"(?:<!-- not run: (?P<why>[^\n]+) -->\n+)?```python\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(page):
    """The blocks of a page: line, reason why it is not run, code."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, m.start("code")) + 1, m["why"], m["code"]) for m in BLOCK.finditer(text)]


WITH_CODE = {str(page.relative_to(ROOT)): found for page in PAGES if (found := blocks(page))}


@pytest.mark.parametrize("name", WITH_CODE)
def test_the_code_of_a_page_runs(name, tmp_path, monkeypatch):
    import matplotlib.pyplot as plt

    from leastaction.results import viewer

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(viewer, "show", lambda text: None)  # no window opens
    names: dict = {"__name__": "__main__"}
    for line, why, code in WITH_CODE[name]:
        padded = "\n" * (line - 1) + code  # errors name the page's own line
        if why is not None:
            compile(padded, name, "exec")
        elif code.startswith(">>>"):
            case = doctest.DocTestParser().get_doctest(code, names, name, name, line - 1)
            told: list[str] = []
            result = doctest.DocTestRunner(optionflags=FLAGS).run(case, out=told.append, clear_globs=False)
            assert not result.failed, f"{name}, block at line {line}:\n{''.join(told)}"
            names.update(case.globs)
        else:
            exec(compile(padded, str(ROOT / name), "exec"), names)
    plt.close("all")


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=lambda page: page.name)
def test_links_of_the_front_pages_lead_somewhere(page):
    """README and its like, as they are read in the repository; `test_site.py` follows the links of the site."""
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    inside = [link.split("#")[0] for link in links if "://" not in link]
    assert not [link for link in inside if link and not (ROOT / link).exists()]


def test_code_blocks_are_narrow():
    """At most 80 columns: the site cuts longer lines off. Directives are no code that a reader sees."""
    wide = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in re.finditer(r"^```(\{?)[^\n]*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            lines = enumerate(block[2].splitlines(), text.count("\n", 0, block.start(2)) + 1)
            long = [(k, len(line)) for k, line in lines if len(line) > 80 and not block[1]]
            wide += [f"{page.relative_to(ROOT)}:{k}: {length} columns" for k, length in long]
    assert not wide, "\n".join(wide)


def test_few_blocks_are_not_run():
    """Only blocks that need another package, a cluster or more time than a test has are not run."""
    left = {name: [why for _, why, _ in found if why] for name, found in WITH_CODE.items()}
    assert sum(map(len, left.values())) <= 12, left


@pytest.mark.parametrize(
    "name", ["path.velocity()", "la.Samples", "Rayleigh.from_ratios", "analysis.efficiency", "leastaction bench"]
)
def test_names_stand_in_the_documentation(name):
    assert any(name in page.read_text(encoding="utf-8") for page in PAGES)


def test_every_promise_names_the_tests_that_hold_it():
    """Each promise has a file of tests, or "the same" as the promise before, and each file is there."""
    rows = re.findall(
        r"^\| ([^|]+) \| ([^|]+) \| [^|]*\|$", (ROOT / "docs/promises.md").read_text(encoding="utf-8"), re.M
    )
    held = [(promise, by) for promise, by in rows if promise != "promise" and "---" not in promise]
    limits = [promise for promise, by in held if ".py" not in by and by != "the same"]
    named = {name for _, by in held for name in re.findall(r"`([^`]+\.py)`", by)}
    assert len(held) - len(limits) > 30 and not [promise for promise in limits if promise.endswith(".")]
    assert not [name for name in named if not any((ROOT / place / name).exists() for place in ("tests", "."))]


def test_tests_that_pages_name_are_there():
    """By their place in tests/, or by their name alone."""
    tests = {str(file.relative_to(ROOT / "tests")) for file in (ROOT / "tests").rglob("test_*.py")}
    known = tests | {f"tests/{name}" for name in tests} | {Path(name).name for name in tests}
    pages = {*PAGES, *ROOT.glob("*.md")}
    named = {name for page in pages for name in re.findall(r"`([\w/]*test_\w+\.py)`", page.read_text("utf-8"))}
    assert named <= known, named - known
