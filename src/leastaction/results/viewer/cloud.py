"""An ensemble as a cloud: one point for each trajectory, at every time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.numbers.arrays import FloatArray
from leastaction.results.colours import colour
from leastaction.results.looks import conserves_energy, look, with_unit
from leastaction.results.viewer.drawing import drawing
from leastaction.results.viewer.pack import Pack
from leastaction.results.viewer.scene import SHOWN, extremes, page_of, stage

MOST = 2000  # trajectories drawn
FEWEST = 120  # frames, if there are as many: fewer trajectories are better than a motion in jumps
BUCKETS = 600


def cloud_scene(paths: Any, draw: Any, megabytes: float, pack: Pack) -> dict[str, Any]:
    """The scene of an ensemble, with as many trajectories and times as there is room for, evenly chosen."""
    if paths.pace is not None:
        raise ValueError(
            "a cloud shows all trajectories at the same times, and with a pace each has its own: show one, with "
            "paths[i].show()"
        )
    seen, n = look(paths.system), paths.system.n
    columns = min(n, SHOWN)
    whole = paths[0]
    made = drawing(draw, seen, n, whole.params, (float(paths.t[0]), whole.q[0], whole.p[0]))
    outline = made.points(paths.t[:1], whole.q[:1], whole.p[:1])
    dim = outline.shape[2]
    shown = made.trails[-1] if made.trails else outline.shape[1] - 1  # the point that stands for a trajectory
    room = int(0.75 * megabytes * 1e6 / (2 * (dim + 2 * columns)))  # the number of states that fit
    times = min(len(paths.t), max(FEWEST, room // MOST))
    some = _evenly(len(paths), min(MOST, max(1, room // times)))
    rows = _evenly(len(paths.t), min(len(paths.t), max(2, room // len(some))))
    t = np.asarray(paths.t, float)[rows]
    q, p = np.empty((len(some), len(rows), n)), np.empty((len(some), len(rows), n))
    points = np.full((len(some), len(rows), dim), np.nan)
    for k, i in enumerate(some):
        q[k], p[k] = np.asarray(paths.q[int(i)])[rows], np.asarray(paths.p[int(i)])[rows]
        there = np.isfinite(q[k]).all(axis=1) & np.isfinite(p[k]).all(axis=1)
        if there.any():
            mine = drawing(draw, seen, n, paths.system.named(paths.values[int(i)]), (t[0], q[k, 0], p[k, 0]))
            points[k, there] = mine.points(t[there], q[k, there], p[k, there])[:, shown]
    facts = [
        f"{len(paths):,} trajectories".replace(",", " "),
        f"h = {float(paths.h):.4g}",
        f"{len(paths.t)} states each",
    ]
    if len(some) < len(paths):
        facts.append(f"{len(some)} of them shown")
    if int(paths.failed.sum()):
        facts.append(f"{int(paths.failed.sum())} failed")
    run = {
        "label": paths.method.name,
        "method": paths.method.name,
        "member": "",
        "colour": colour(paths.method),
        "dash": False,
        "facts": facts,
        "begin": float(t[0]),
        "end": float(t[-1]),
        "dt": float((t[-1] - t[0]) / max(1, len(t) - 1)),
        "count": len(t),
        "dim": dim,
        "members": len(some),
        "t": pack.fine(t),
        # frame after frame: the points of all trajectories at one time are neighbours
        "points": _shared(pack, points.transpose(1, 0, 2)),
        "q": _shared(pack, q[..., :columns].transpose(1, 0, 2)),
        "p": _shared(pack, p[..., :columns].transpose(1, 0, 2)),
        "curves": [_spread(paths, pack, seen.unit("energy"))],
    }
    title = f"{seen.title or paths.system.name}: {len(paths):,} trajectories".replace(",", " ")
    shape = stage(made, [run], n, "paths.show") | {"links": [], "trails": [], "bodies": []}
    return page_of("cloud", title, {}, seen, n, shape, [run])


def _evenly(count: int, most: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def _shared(pack: Pack, values: FloatArray) -> dict[str, Any]:
    """(M, B, C) packed with one range for each of the C columns, whatever the trajectory."""
    M, B, C = values.shape
    return pack.coarse(values.reshape(M * B, C)) | {"rows": M, "cols": B * C, "each": C}


def _spread(paths: Any, pack: Pack, unit: str) -> dict[str, Any]:
    """The largest energy error of any trajectory, over time."""
    energy = paths.energy()
    first = energy[:, :1]
    change = np.abs(energy - first)
    relative = bool((np.abs(first) > 0).all())
    if relative:
        change = change / np.abs(first)
    largest = np.where(np.isfinite(change), change, 0.0).max(axis=0)
    name = "largest energy error" if conserves_energy(paths.system) else "largest energy change"
    t, y = extremes(np.asarray(paths.t, float), largest, BUCKETS)
    return {
        "name": f"{name}, relative" if relative else with_unit(name, unit),
        "kind": "energy",
        "first": float(np.nanmean(first)),
        "largest": float(largest.max(initial=0.0)),
        "t": pack.fine(t),
        "y": pack.fine(y),
    }
