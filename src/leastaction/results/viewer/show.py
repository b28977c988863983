"""Pages of paths and ensembles: as text, in a file, in a notebook's cell, in a browser's window."""

from __future__ import annotations

import os
import sys
import tempfile
import webbrowser
from collections.abc import Sequence
from html import escape
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from leastaction.results import files
from leastaction.results.viewer.cloud import cloud_scene
from leastaction.results.viewer.pack import Pack
from leastaction.results.viewer.page import asset, bundle, page
from leastaction.results.viewer.scene import MEGABYTES, SceneOptions, scene

if TYPE_CHECKING:
    from leastaction.results.path import Path

CELL_MEGABYTES = 0.4  # of a page in a notebook, which keeps what it shows
START = 'start(document.getElementById("view"), JSON.parse(document.getElementById("data").textContent));'


def path_page(
    path: Path, draw: Any = None, beside: Sequence[Path] = (), begin: float | None = None, megabytes: float = MEGABYTES
) -> str:
    """The page of a path, and of others of the same system beside it, from the time `begin` on."""
    pack = Pack()
    options = SceneOptions(draw=draw, megabytes=_positive(megabytes), begin=begin)
    return _page(scene([path, *beside], options, pack), pack)


def cloud_page(paths: Any, draw: Any = None, megabytes: float = MEGABYTES) -> str:
    """The page of an ensemble: a cloud of trajectories."""
    pack = Pack()
    return _page(cloud_scene(paths, draw, _positive(megabytes), pack), pack)


def _page(made: dict[str, Any], pack: Pack) -> str:
    script = f"{bundle()}\n{START}"
    return page(f"{made['title']} · leastaction", script, asset("page.css") + asset("view.css"), pack.to_text(made))


def _positive(megabytes: float) -> float:
    if not 0 < megabytes <= 1000:
        raise ValueError(f"megabytes, the room for the frames, must be between 0 and 1000; got {megabytes!r}")
    return float(megabytes)


def write(text: str, file: str | os.PathLike[str]) -> FilePath:
    """Write a page; an existing file is replaced only by a whole one."""
    with files.replacing(file) as stream:
        stream.write(text.encode())
    return FilePath(file)


def frame(text: str, height: int = 620) -> str:
    """A page inside another, such as a notebook: in a frame of its own, which may run its script and nothing else."""
    return (
        f'<iframe srcdoc="{escape(text)}" sandbox="allow-scripts" title="motion" '
        f'style="width:100%;height:{height}px;border:0" loading="lazy"></iframe>'
    )


def show(text: str) -> None:
    """Show a page: in a notebook as the cell's output, else in a browser's window."""
    if _in_notebook():
        from IPython.display import HTML, display

        display(HTML(frame(text)))
        return
    folder = tempfile.mkdtemp(prefix="leastaction-")
    file = write(text, FilePath(folder) / "motion.html")
    if not webbrowser.open(file.as_uri()):
        print(f"no browser could be opened; the page is {file}", file=sys.stderr)


def _in_notebook() -> bool:
    """Whether a notebook's kernel runs this code; IPython's terminal is no such kernel."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and getattr(shell, "kernel", None) is not None
