"""A path as a film, by Matplotlib's writers: .mp4 through ffmpeg, .gif through Pillow."""

from __future__ import annotations

import math
import os
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.results.between import states
from leastaction.results.colours import colour
from leastaction.results.looks import look
from leastaction.results.viewer.drawing import Drawing, drawing
from leastaction.results.viewer.frames import rows
from leastaction.results.viewer.scene import floats

if TYPE_CHECKING:
    from leastaction.results.path import Path

WRITERS = {".mp4": "ffmpeg", ".m4v": "ffmpeg", ".mov": "ffmpeg", ".gif": "pillow"}
TRAIL = 1.0  # length of a trail, in seconds of the film
FINER = 32  # points of a trail for each frame


def animate(
    path: Path,
    file: str | os.PathLike[str],
    draw: Any = None,
    seconds: float = 10.0,
    fps: int = 30,
    dpi: int = 120,
) -> None:
    """Film the whole path in this number of seconds."""
    import matplotlib.animation
    from matplotlib.figure import Figure

    target = FilePath(file)
    writer = WRITERS.get(target.suffix.lower())
    if writer is None:
        raise ValueError(f"a film is one of {', '.join(WRITERS)}; got {target.name!r}")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent} to write {target.name} to")
    if not matplotlib.animation.writers.is_available(writer):
        raise ImportError(f"{target.suffix} needs {writer}, which is not installed; a .gif can always be written")
    if not (math.isfinite(seconds) and seconds > 0 and fps > 0):
        raise ValueError(f"seconds and fps must be positive; got {seconds!r} and {fps!r}")
    count = max(2, round(seconds * fps))
    t, q, p = _at_equal_times(path, (count - 1) * FINER + 1)
    made = drawing(draw, look(path.system), q.shape[1], floats(path.params), (t[0], q[0], p[0]))
    points = made.points(t, q, p)
    figure = Figure(figsize=(6, 6), layout="constrained")
    update = _Picture(figure, path, made, t, points, int(TRAIL * fps))
    film = matplotlib.animation.FuncAnimation(figure, update, frames=count, interval=1000 / fps, blit=False)
    film.save(str(target), writer=writer, fps=fps, dpi=dpi)


def _at_equal_times(path: Path, count: int) -> Any:
    """States at equal times: by the method's own polynomial, or the nearest stored ones if not all is stored."""
    t, q, p = rows(path)
    if path.output is not None or len(path) < 2:
        nearest = np.linspace(0, len(t) - 1, count).round().astype(int)
        return t[nearest], q[nearest], p[nearest]
    times = np.linspace(t[0], t[-1], count)
    return times, *states(path, times)


class _Picture:
    """The artists of one frame, moved from frame to frame."""

    def __init__(self, figure: Any, path: Path, made: Drawing, t: Any, points: Any, trail: int) -> None:
        self.t, self.points, self.made, self.trail = t, points, made, trail
        self.unit = look(path.system).unit("t")
        solid = points.shape[2] == 3
        self.ax: Any = figure.add_subplot(projection="3d" if solid else None)
        low, high = points.min(axis=(0, 1)), points.max(axis=(0, 1))
        if made.equal:
            middle, reach = (low + high) / 2, 0.55 * float((high - low).max() or 1.0)
            low, high = middle - reach, middle + reach
        else:
            low, high = low - 0.05 * (high - low + 1e-300), high + 0.05 * (high - low + 1e-300)
        for d, axis in enumerate("xyz"[: points.shape[2]]):
            if high[d] > low[d]:
                getattr(self.ax, f"set_{axis}lim")(low[d], high[d])
        if made.axes:
            self.ax.set(**{f"{axis}label": name for axis, name in zip("xyz", made.axes, strict=False)})
        else:
            self.ax.set_axis_off()
        if made.equal:
            self.ax.set_aspect("equal")
        self.ax.set_title(
            f"{path.system.name}, {path.method.name}, h = {float(path.h):g}", fontsize="medium", loc="left"
        )
        tint = colour(path.method)
        none: list[list[float]] = [[]] * points.shape[2]
        self.trails = [self.ax.plot(*none, color=tint, linewidth=1.2, alpha=0.6)[0] for _ in made.trails]
        self.links = [
            self.ax.plot(*none, color="#444444", linewidth=0.8 if kind == "thread" else 1.8)[0]
            for _, _, kind in made.links
        ]
        still = (points == points[0]).all(axis=(0, 2))
        body = np.array([i not in made.loose for i in range(points.shape[1])])
        self.dots = [
            (which & body, self.ax.plot(*none, "o", color=paint, markersize=size)[0])
            for which, paint, size in ((~still, tint, 8), (still, "#444444", 4))
        ]

    def __call__(self, k: int) -> list[Any]:
        at = k * FINER
        now = self.points[at]
        since = max(0, k - self.trail) * FINER
        for artist, i in zip(self.trails, self.made.trails, strict=True):
            _put(artist, self.points[since : at + 1, i])
        for artist, (i, j, _) in zip(self.links, self.made.links, strict=True):
            _put(artist, now[[i, j]])
        for which, artist in self.dots:
            _put(artist, now[which])
        unit = f" {self.unit}" if self.unit else ""
        self.ax.set_title(f"t = {self.t[at]:.2f}{unit}", fontsize="medium", loc="right")
        return []


def _put(artist: Any, points: Any) -> None:
    artist.set_data(points[:, 0], points[:, 1])
    if points.shape[1] == 3:
        artist.set_3d_properties(points[:, 2])
