"""The report as a reader meets it, in a real browser: desktop, phone, dark, print."""

import json
import re
from pathlib import Path

import matplotlib
import pytest

from browser import CHROMIUM, Browser
from leastaction.papers.model import (
    Cell,
    Claim,
    Erratum,
    FigureSpec,
    Kind,
    Options,
    Other,
    Paper,
    PublishedTable,
    Redrawn,
    Statement,
)
from leastaction.papers.pendulum2023 import PAPER as PENDULUM
from leastaction.report import reproduce

matplotlib.use("Agg")

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine; as root on Debian `make browser` installs it"
)

LONG = "a reason that is long enough to need several lines on a phone, since it tells all that was tried " * 4


def troubled() -> Paper:
    """A paper in which everything that can be wrong is: cells, claims, formulas, and a table wider than a phone."""

    def cells(options: Options) -> list[Cell]:
        wide = [Cell("9.1", f"row {i}", f"column {j}", "1.25e-3", 1.251e-3) for i in range(4) for j in range(12)]
        return [
            *wide,
            Cell("9.1", "row 4", "column 0", "7.82e-1", 0.0782, LONG),
            Cell("9.1", "row 4", "order", "2.0", 1),
        ]

    def draw(options: Options) -> Redrawn:
        import matplotlib.pyplot as plt

        claims = [Claim("it holds & is <shown>", True, "yes"), Claim("it fails", False, "3 of 4", LONG)]
        return Redrawn(plt.figure(), [*claims, Claim("it is slow", False, "3 µs", timed=True)])

    errata = [
        Erratum(Kind.MISPRINT, "(1) & (2)", "a < b", "a > b" + 80 * " and so on", lambda: LONG),
        Erratum(Kind.AS_READ, "(3)", "x", "x²", lambda: "1 and 2.", "One exponent."),
        Erratum(Kind.REMARK, "(4)", "y", "z", lambda: "3.", "Both versions."),
    ]
    statements = [
        Statement("lemma 1", lambda options: Claim("all is well", True, "to 1e-16")),
        Statement("lemma 2", lambda options: Claim("all is ill", False, "by 0.1", "a counterexample")),
    ]
    others = [Other("Table 1", "constants", lambda: "a_1 = 2"), Other("Figure 1", "a drawing")]
    table = PublishedTable("9.1", "Numbers <wide>", cells, "setting & all.")
    figure = FigureSpec("9.2", "Nothing's there", draw)
    text = "A scan & nothing else."
    title, place = "Troubles & cures", "Nowhere 1 (1900)"
    return Paper("troubled", "N. N.", title, place, text, [table], [figure], statements, errata, others)


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("report")
    reproduce([PENDULUM, troubled()], out, Options(), lambda what, done, total: None)
    return out


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


SCREENS = {
    "desktop": {},
    "phone": {"width": 390, "height": 844, "phone": True},
    "dark": {"dark": True},
    "dark phone": {"width": 360, "height": 740, "phone": True, "dark": True},
}


@pytest.fixture(params=SCREENS)
def screen(request, browser, report) -> Browser:
    browser.look(**SCREENS[request.param])
    browser.open(report / "index.html")
    return browser


def test_nothing_is_missing(screen):
    """No complaint on the console, nothing asked of a network, every image there at its own size."""
    images = screen.evaluate(
        "[...document.images].map(i => [i.complete, i.naturalWidth, i.naturalHeight, +i.getAttribute('width'),"
        " +i.getAttribute('height'), i.alt.length > 0])"
    )
    assert len(images) == len(PENDULUM.figures) + 1
    for complete, width, height, told_width, told_height, described in images:
        assert complete and described
        assert width == told_width > 500
        assert height == told_height > 300
    assert screen.complaints == []
    assert screen.requested <= {"file", "data"}
    assert screen.evaluate("document.scripts.length") == 0


def test_the_page_never_scrolls_sideways(screen):
    """Wide tables scroll in their own boxes; nothing else is cut off."""
    assert screen.evaluate("document.documentElement.scrollWidth <= innerWidth")
    outside = screen.evaluate(
        "[...document.querySelectorAll('p, li, h1, h2, h3, h4, dd, figcaption, img, .wide')]"
        ".filter(e => !e.closest('nav') && e.getBoundingClientRect().right > innerWidth + 0.5).map(e => e.outerHTML)"
    )
    assert outside == []


def test_a_wide_table_scrolls_in_its_box(browser, report):
    browser.look(**SCREENS["phone"])
    browser.open(report / "index.html")
    box = "document.querySelector(\"[data-paper='troubled']\").parentElement"
    assert browser.evaluate(f"{box}.scrollWidth > {box}.clientWidth")
    assert browser.evaluate(f"({box}.scrollLeft = 400, {box}.scrollLeft)") == 400
    # The rows keep their names in sight.
    assert browser.evaluate(f"{box}.querySelector('tbody th').getBoundingClientRect().left >= 0")


CONTRAST = """(() => {
  const rgb = c => c.match(/[\\d.]+/g).map(Number);
  const linear = x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  const light = c => { const [r, g, b] = rgb(c).map(x => linear(x / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
    if (!/, 0\\)$/.test(c)) return c; } return 'rgb(255, 255, 255)'; };
  return [...document.querySelectorAll('p, li, a, td, th, span, dd, dt, h1, h2, h3, h4, figcaption')].map(e => {
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))];
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.outerHTML.slice(0, 80)]; })
    .sort((a, b) => a[0] - b[0])[0]; })()"""


def test_text_stands_out_from_its_ground(screen):
    """The contrast that accessibility guidelines ask of ordinary text, 4.5, everywhere."""
    worst, where = screen.evaluate(CONTRAST)
    assert worst > 4.5, where


def test_dark_is_dark(browser, report):
    shades = {}
    for name in ("desktop", "dark"):
        browser.look(**SCREENS[name])
        browser.open(report / "index.html")
        colour = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        shades[name] = sum(map(int, re.findall(r"\d+", colour)[:3]))
    assert shades["desktop"] > 700 and shades["dark"] < 100


TABLES = """[...document.querySelectorAll('table[data-table]')].map(t => [t.dataset.paper, t.dataset.table,
  [...t.querySelectorAll('thead th')].slice(1).map(c => c.textContent),
  [...t.querySelectorAll('tbody tr')].map(r => [r.querySelector('th').textContent,
    [...r.querySelectorAll('td')].map(c =>
      [c.querySelector('.computed')?.textContent, c.querySelector('.published')?.textContent, c.className])])])"""


def test_numbers_on_the_page_are_those_of_the_results(screen, report):
    cells = [record for record in json.loads((report / "results.json").read_text("utf-8")) if "table" in record]
    shown = {}
    for paper, table, columns, rows in screen.evaluate(TABLES):
        for row, entries in rows:
            for column, (computed, published, look) in zip(columns, entries, strict=True):
                if computed is not None:
                    shown[paper, table, row, column] = computed, published, look
    assert len(shown) == len(cells) > 70
    for cell in cells:
        computed, published, look = shown[cell["paper"], cell["table"], cell["row"], cell["column"]]
        assert published == cell["published"]
        digits = len(re.sub(r"e.*|[-.]", "", computed).lstrip("0"))
        assert float(computed) == pytest.approx(cell["computed"], rel=0.51 * 10.0 ** (1 - digits))
        assert (look == "differs") == (not cell["agrees"])
    totals = screen.evaluate(
        "[...document.querySelectorAll('#summary tbody tr')]"
        ".map(r => [...r.querySelectorAll('td')].map(c => c.innerText))"
    )
    for (numbers, agree, differ, *_), paper in zip(totals, ("pendulum", "troubled"), strict=True):
        own = [cell for cell in cells if cell["paper"] == paper]
        right = sum(cell["agrees"] for cell in own)
        assert [int(word.split()[0]) for word in (numbers, agree, differ)] == [len(own), right, len(own) - right]


def test_every_figure_and_claim_is_shown(screen, report):
    figures = [record for record in json.loads((report / "results.json").read_text("utf-8")) if "figure" in record]
    for record in figures:
        place = f"figure[data-paper='{record['paper']}'][data-figure='{record['figure']}'] .claims li"
        lines = screen.evaluate(f'[...document.querySelectorAll("{place}")].map(e => [e.className, e.textContent])')
        assert len(lines) == len(record["claims"])
        for (look, text), claim in zip(lines, record["claims"], strict=True):
            assert all(part.strip() in text for part in (claim["text"], claim["measured"], claim["note"]))
            assert (look == "fails") == (not claim.get("holds", True))


def test_statements_and_errata_on_the_page_are_those_of_the_results(screen, report):
    records = [r for r in json.loads((report / "results.json").read_text("utf-8")) if r["paper"] == "troubled"]
    errata = [record for record in records if "erratum" in record]
    kinds = screen.evaluate("[...document.querySelectorAll('#troubled .erratum')].map(e => e.dataset.kind)")
    assert kinds == [record["erratum"] for record in errata] == ["misprint", "as read", "remark"]
    texts = screen.evaluate("[...document.querySelectorAll('#troubled .erratum')].map(e => e.textContent)")
    for text, record in zip(texts, errata, strict=True):
        assert all(record[name].strip() in text for name in ("place", "says", "should", "evidence", "either"))
    statements = [record for record in records if "statement" in record]
    shown = screen.evaluate(
        "[...document.querySelectorAll('#troubled-statements + ul li')].map(e => [e.className, e.textContent])"
    )
    assert [look == "fails" for look, _ in shown] == [not record["holds"] for record in statements] == [False, True]
    assert all(record["text"] in text for (_, text), record in zip(shown, statements, strict=True))
    row = screen.evaluate("[...document.querySelectorAll('#summary tbody tr:last-child td')].map(c => c.innerText)")
    counts = [text.split("\n")[0] for text in row]
    # Of four claims that can be judged two hold; the one about run times counts on neither side.
    assert counts[4:] == ["2 of 4", "1", "1", "1"]
    page = screen.evaluate("document.body.textContent")
    assert "machine-read text" in page and "Text read: A scan & nothing else." in page
    assert "Table 1: constants. Taken here: a1 = 2." in page


def test_what_differs_is_said_with_its_reason(screen):
    text = screen.evaluate("document.querySelector('#differences').textContent")
    assert text.count(LONG.strip()) == 2  # the cell's and the claim's
    assert "row 4, order (printed 2.0, computed 1.00): not explained" in text
    assert "“it fails”" in text
    assert LONG.strip() in screen.evaluate("document.querySelector('#troubled .erratum').textContent")


def test_every_link_leads_somewhere(screen):
    assert screen.evaluate("[...document.links].filter(a => !document.querySelector(a.hash)).map(a => a.href)") == []
    ids = screen.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


def test_print(browser, report):
    """Dark readers too print on white; the navigation stays on the screen."""
    browser.look(dark=True)
    browser.open(report / "index.html")
    pdf = browser.pdf()
    assert pdf.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 10
    browser.call(
        "Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}]
    )
    assert browser.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.evaluate("getComputedStyle(document.querySelector('img')).filter") == "none"
