"""The site: built strictly, every link and asset within it there, nothing loaded from elsewhere.

The scripts of the gallery become pages here without being run; `make docs` runs them.
"""

import os
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from os.path import normpath
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

pytest.importorskip("sphinx")

ROOT = Path(__file__).parents[2]
LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("link", "href"), ("source", "src")}


class Page(HTMLParser):
    """The anchors of a page, its links, and what it loads."""

    def __init__(self, file):
        super().__init__()
        self.anchors, self.links, self.loaded = {""}, [], []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {value for name, value in attributes if name in ("id", "name") and value}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        for name, value in attributes:
            if (
                (tag, name) in LOADED
                and value
                and given.get("rel") not in ("canonical", "index", "search", "next", "prev")
            ):
                self.loaded.append(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    source, out = folder / "docs", folder / "out"
    # A copy without what an earlier build made, beside the folders that the pages read: a build writes into its source.
    made = shutil.ignore_patterns("generated", "gallery", "api", "made", "*.rst", "__pycache__")
    shutil.copytree(ROOT / "docs", source, ignore=made)
    for page in ROOT.glob("*.md"):
        shutil.copy(page, folder / page.name)
    for name in ("gallery", "src", "tests", "benchmarks"):
        (folder / name).symlink_to(ROOT / name)
    call = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", str(source), str(out)]
    done = subprocess.run(call, capture_output=True, text=True, check=False, env=os.environ | {"GALLERY": "off"})
    assert done.returncode == 0, done.stderr[-3000:]
    return out


@pytest.fixture(scope="module")
def pages(site):
    return {
        file.relative_to(site).as_posix(): Page(file) for file in site.rglob("*.html") if "_static" not in file.parts
    }


def test_links_within_the_site_lead_somewhere(site, pages):
    files = {file.relative_to(site).as_posix() for file in site.rglob("*") if file.is_file()}
    broken = []
    for name, page in pages.items():
        for link in page.links + page.loaded:
            parts = urlparse(link)
            if parts.scheme:
                continue
            target = normpath(Path(name).parent / unquote(parts.path)) if parts.path else name
            if target not in files or (target in pages and unquote(parts.fragment) not in pages[target].anchors):
                broken.append((name, link))
    assert not broken


def test_pictures_of_a_page_differ(site, pages):
    """Each block of MyST counts its plots anew: without names of their own two plots of a page would be one file."""
    for name, page in pages.items():
        drawn = [normpath(Path(name).parent / file) for file in page.loaded if "_images" in file]
        assert len({(site / file).read_bytes() for file in drawn}) == len(drawn) or "gallery" in name, name


def test_nothing_is_loaded_from_elsewhere(pages):
    outside = {
        (name, link)
        for name, page in pages.items()
        for link in page.loaded
        if urlparse(link).scheme in ("http", "https")
    }
    assert not outside


def test_what_a_site_needs_is_there(site, pages):
    landing = (site / "index.html").read_text(encoding="utf-8")
    assert (
        "double-pendulum.html" in landing
        and (site / "_static" / "made" / "double-pendulum.html").stat().st_size > 10_000
    )
    for kind in ("tutorial", "howto", "explanation", "reference", "gallery"):
        assert f"{kind}/index.html" in pages
    assert (site / "searchindex.js").exists()
