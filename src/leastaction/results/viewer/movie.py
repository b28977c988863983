"""A path as a film: .mp4 by ffmpeg, .gif by Pillow. What stands still is drawn once; each frame adds what moves."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.results.colours import colour
from leastaction.results.inside_steps import states
from leastaction.results.looks import look
from leastaction.results.viewer.bodies import mesh
from leastaction.results.viewer.drawing import Drawing, drawing
from leastaction.results.viewer.frames import rows
from leastaction.results.viewer.scene import floats
from leastaction.run.waiting import bar

if TYPE_CHECKING:
    from leastaction.results.path import Path

RATES = {".mp4": 30, ".m4v": 30, ".mov": 30, ".gif": 20}  # frames in a second; a gif counts time in hundredths of one
TRAIL = 2.0  # length of a trail, in seconds of the film
FINER = 32  # points of a trail for each frame
INK = "#444444"


def animate(
    path: Path, file: str | os.PathLike[str], draw: Any = None, seconds: float = 10.0, fps: int | None = None,
    dpi: int = 120,
) -> None:  # fmt: skip
    """Film the whole path in this number of seconds."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    target = FilePath(file)
    ending = target.suffix.lower()
    if ending not in RATES:
        raise ValueError(f"a film is one of {', '.join(RATES)}; got {target.name!r}")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent} to write {target.name} to")
    rate = RATES[ending] if fps is None else fps
    if not (math.isfinite(seconds) and seconds > 0 and rate > 0):
        raise ValueError(f"seconds and fps must be positive; got {seconds!r} and {fps!r}")
    encode = _gif if ending == ".gif" else _Video(_ffmpeg())
    count = max(2, round(seconds * rate))
    t, q, p = _at_equal_times(path, (count - 1) * FINER + 1)
    made = drawing(draw, look(path.system), q.shape[1], floats(path.params), (t[0], q[0], p[0]))
    canvas = FigureCanvasAgg(Figure(figsize=(6, 6), dpi=dpi, layout="constrained"))
    picture = _Picture(canvas, path, made, t, made.points(t, q, p), int(TRAIL * rate))
    with bar(count, " frames", desc=target.name, delay=1.0) as progress:
        encode(target, picture.frames(count, progress), rate)


def _ffmpeg() -> str:
    """The program ffmpeg: of the package imageio-ffmpeg, or of the system."""
    try:
        from imageio_ffmpeg import get_ffmpeg_exe
    except ImportError:
        if found := shutil.which("ffmpeg"):
            return found
        raise ImportError(
            "this film needs ffmpeg: pip install 'leastaction[film]' brings it; a .gif can always be written"
        ) from None
    return str(get_ffmpeg_exe())


@dataclass(frozen=True)
class _Video:
    """Frames to a file, by a program that is told of each on its standard input."""

    ffmpeg: str

    def __call__(self, target: FilePath, frames: Iterator[Any], fps: int) -> None:
        first = next(frames)
        raw = ["-f", "rawvideo", "-pix_fmt", "rgba", "-s", f"{first.shape[1]}x{first.shape[0]}", "-r", str(fps)]
        even = ["-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p"]  # what players read
        command = [self.ffmpeg, "-y", "-loglevel", "error", *raw, "-i", "-", *even, str(target)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdin is not None
            with suppress(BrokenPipeError):  # then the program has ended, and says why
                for frame in chain([first], frames):
                    process.stdin.write(frame.tobytes())
            told = process.communicate()[1].decode(errors="replace").strip()
        if process.returncode:
            raise OSError(f"ffmpeg could not write {target.name}: {told}")


def _gif(target: FilePath, frames: Iterator[Any], fps: int) -> None:
    """All frames have the colours of the last one, whose trails are full."""
    from PIL import Image

    pictures = [Image.fromarray(frame).convert("RGB") for frame in frames]
    palette = pictures[-1].quantize(255)
    palette.putpalette([x if x < 250 else 255 for x in palette.getpalette() or ()])  # one white
    first, *others = (one.quantize(palette=palette, dither=Image.Dither.NONE) for one in pictures)
    first.save(target, save_all=True, append_images=others, duration=1000 / fps, loop=0)


def _at_equal_times(path: Path, count: int) -> Any:
    """States at equal times: by the method's own polynomial, or the nearest stored ones if not all is stored."""
    t, q, p = rows(path)
    if path.output is not None or len(path) < 2:
        nearest = np.linspace(0, len(t) - 1, count).round().astype(int)
        return t[nearest], q[nearest], p[nearest]
    times = np.linspace(t[0], t[-1], count)
    return times, *states(path, times)


class _Picture:
    """The artists of one frame, moved from frame to frame; the layout and all that stands still are drawn once."""

    def __init__(self, canvas: Any, path: Path, made: Drawing, t: Any, points: Any, trail: int) -> None:
        self.canvas, self.t, self.points, self.made, self.trail = canvas, t, points, made, trail
        self.unit = look(path.system).unit("t")
        self.solid = points.shape[2] == 3
        self.ax: Any = canvas.figure.add_subplot(projection="3d" if self.solid else None)
        reached = np.vstack([points.reshape(-1, points.shape[2]), made.corners(points)])
        low, high = reached.min(axis=0), reached.max(axis=0)
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
        elif self.solid:  # the ground and the axes tell how space is turned
            self.ax.set(xlabel="x", ylabel="y", zlabel="z", xticklabels=[], yticklabels=[], zticklabels=[])
        else:
            self.ax.set_axis_off()
        if made.equal:
            self.ax.set_aspect("equal")
        self.ax.set_title(
            f"{path.system.name}, {path.method.name}, h = {float(path.h):g}", fontsize="medium", loc="left"
        )
        self.clock = self.ax.set_title(f"t = {t[-1]:.2f}", fontsize="medium", loc="right")
        tint = colour(path.method)
        self.trails = [self._line(color=tint, linewidth=1.2, alpha=0.6) for _ in made.trails]
        self.links = [self._line(color=INK, linewidth=0.8 if kind == "thread" else 1.8) for *_, kind in made.links]
        self.bodies = [self._faces(len(body) - 2, body[-1], tint) for body in made.bodies]
        still = (points == points[0]).all(axis=(0, 2))
        dot = np.array([i not in made.loose for i in range(points.shape[1])])
        self.dots = [
            (which & dot, self._line(marker="o", linestyle="", color=paint, markersize=size))
            for which, paint, size in ((~still, tint, 8), (still, INK, 4))
        ]
        turning, dots = ([artist for _, artist in some] for some in (self.bodies, self.dots))
        self.moving = [*self.trails, *self.links, *turning, *dots, self.clock]
        for artist in self.moving:
            artist.set_animated(True)
        canvas.draw()
        canvas.figure.set_layout_engine("none")
        self.still = canvas.copy_from_bbox(canvas.figure.bbox)

    def _line(self, **how: Any) -> Any:
        return self.ax.plot(*[[]] * self.points.shape[2], **how)[0]

    def _faces(self, axes: int, kind: str, tint: str) -> Any:
        """The mesh of a body, and its faces as one artist."""
        from matplotlib.collections import PolyCollection
        from matplotlib.colors import to_rgb
        from mpl_toolkits.mplot3d.art3d import Poly3DCollection  # type: ignore[import-untyped]

        shape = mesh(kind, axes)
        paints = [1 - shade * (1 - np.array(to_rgb(tint))) for shade in shape.shades]
        made = (Poly3DCollection if self.solid else PolyCollection)(
            [], facecolors=paints, edgecolors=paints, linewidths=0.5
        )
        self.ax.add_collection(made, autolim=False)
        return shape, made

    def frames(self, count: int, progress: Any) -> Iterator[Any]:
        """The pixels of one frame after the other, (height, width, 4)."""
        for k in range(count):
            self._move(k)
            self.canvas.restore_region(self.still)
            for artist in self.moving:
                self.ax.draw_artist(artist)
            yield np.array(self.canvas.buffer_rgba())
            progress.update()

    def _move(self, k: int) -> None:
        at = k * FINER
        now = self.points[at]
        since = max(0, k - self.trail) * FINER
        for artist, i in zip(self.trails, self.made.trails, strict=True):
            _put(artist, self.points[since : at + 1, i])
        for artist, (i, j, _) in zip(self.links, self.made.links, strict=True):
            _put(artist, now[[i, j]])
        for (shape, artist), (*corners, _) in zip(self.bodies, self.made.bodies, strict=True):
            vertices = shape.placed(now[corners])
            artist.set_verts([vertices[face] for face in shape.faces])
            if self.solid:
                artist.do_3d_projection()
        for which, artist in self.dots:
            _put(artist, now[which])
        unit = f" {self.unit}" if self.unit else ""
        self.clock.set_text(f"t = {self.t[at]:.2f}{unit}")


def _put(artist: Any, points: Any) -> None:
    artist.set_data(points[:, 0], points[:, 1])
    if points.shape[1] == 3:
        artist.set_3d_properties(points[:, 2])
