"""The gallery: every script runs, checks what it says, and draws one picture."""

import re
import runpy
from pathlib import Path

import matplotlib
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt

GALLERY = Path(__file__).parents[2] / "gallery"
SCRIPTS = sorted(GALLERY.glob("*.py"))
QUICK = ("01_pendulum", "20_four_bar", "30_bouncing_ball", "37_composition")  # the others run with `make docs`


@pytest.mark.parametrize(
    "script",
    [pytest.param(file, id=file.stem, marks=[pytest.mark.slow] * (file.stem not in QUICK)) for file in SCRIPTS],
)
def test_scripts_run(script, tmp_path, monkeypatch):
    """Without a warning, with what it asserts, and with something to see; it leaves no file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.close("all")
    try:
        runpy.run_path(str(script), run_name="__main__")
        (number,) = plt.get_fignums()
        figure = plt.figure(number)
        assert figure.axes and all(axes.has_data() for axes in figure.axes)
        figure.canvas.draw()
    finally:
        plt.close("all")
    assert not list(tmp_path.iterdir())


def test_there_are_enough():
    assert len(SCRIPTS) >= 25


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda file: file.stem)
def test_scripts_say_what_they_show(script):
    """A title with its line below, three sentences, and a picture at the end: as sphinx-gallery reads them."""
    text = script.read_text("utf-8")
    found = re.match(r'r?"""\n(.+)\n(=+)\n\n(.*?)"""\n', text, re.DOTALL)
    assert found is not None
    title, line, words = found.groups()
    assert len(line) == len(title)
    assert len(re.findall(r"[.?!](?=\s+[A-Z]|\s*$)", words)) == 3
    assert text.rstrip().endswith("plt.show()")
    assert re.fullmatch(r"\d\d_[a-z0-9_]+", script.stem)
