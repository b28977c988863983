"""The examples of docs/viewer.md, run, and the examples' files."""

import re
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

PAGE = Path(__file__).parent.parent / "docs" / "viewer.md"


def test_examples_of_the_page(tmp_path, monkeypatch):
    """All blocks, one after another, as a reader would type them."""
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 4
    names: dict = {}
    for block in blocks:
        exec(block, names)
    plt.close("all")
    written = {file.name for file in tmp_path.iterdir()}
    assert written == {"pendulum.html", "pendulum.gif", "spring.html", "cloud.html", "kepler.csv"}
