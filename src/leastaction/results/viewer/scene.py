"""Scene: all that a page shows of one run, or of several beside each other, as plain data and packed arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.numbers.arrays import FloatArray
from leastaction.results import looks
from leastaction.results.colours import COLOURS, colour
from leastaction.results.looks import Look, conserves_energy, look, with_unit
from leastaction.results.viewer.bodies import mesh
from leastaction.results.viewer.drawing import Drawing, drawing, hint
from leastaction.results.viewer.frames import MOST_ROWS, frames, rows
from leastaction.results.viewer.pack import Pack

if TYPE_CHECKING:
    from leastaction.results.path import Path

SHOWN = 12  # coordinates that have their own curves
BUCKETS = 1200  # buckets of a curve over time; each bucket keeps its lowest and its highest value
MEGABYTES = 1.4


@dataclass(frozen=True, eq=False)
class SceneOptions:
    """The options of a scene."""

    draw: Any = None  # a drawing of the user's
    megabytes: float = MEGABYTES  # how large the frames of all runs may become, in the page
    begin: float | None = None  # the time from which the motion is shown; energies are shown from the start
    momenta: bool = True  # whether to look for conserved momenta where none are known, which takes time
    quick: bool = False  # whether speed matters more than smooth lines


def scene(paths: Sequence[Path], options: SceneOptions, pack: Pack) -> dict[str, Any]:
    """The scene of paths of one system, all drawn alike."""
    first = paths[0]
    if any(path.system is not first.system and path.system.name != first.system.name for path in paths):
        raise ValueError("paths shown beside each other must be of one system")
    n = first.q.shape[1]
    seen = _stored_look(look(first.system), first)
    params = floats(first.params)
    made = drawing(options.draw, seen, n, params, _state(first))
    runs = [_run(path, seen, made, options, options.megabytes / len(paths), pack) for path in paths]
    mark_alike(runs)
    return page_of("paths", seen.title or first.system.name, params, seen, n, stage(made, runs, n), runs)


def page_of(
    kind: str, title: str, params: Mapping[str, FloatArray], seen: Look, n: int, shape: Any, runs: list[dict[str, Any]]
) -> dict[str, Any]:
    """A scene of plain data."""
    return {
        "kind": kind,
        "title": title,
        "params": [[name, value.tolist()] for name, value in params.items()],
        "time": with_unit("t", seen.unit("t")),
        "seconds": seen.unit("t") == "s",
        "coordinates": coordinates(seen, min(n, SHOWN)),
        "hidden": max(0, n - SHOWN),
        "palette": list(COLOURS),
        "stage": shape,
        "runs": runs,
    }


def stage(made: Drawing, runs: list[dict[str, Any]], n: int, call: str = "path.show") -> dict[str, Any]:
    return {
        "dim": runs[0]["dim"],
        "equal": made.equal,
        "axes": list(made.axes),
        "what": made.what,
        "hint": hint(n, call) if made.what else "",
        "links": [list(link) for link in made.links],
        "bodies": [_body(points, kind) for *points, kind in made.bodies],
        "trails": list(made.trails),
    }


def _body(points: list[int], kind: str) -> dict[str, Any]:
    shape = mesh(kind, len(points) - 1)
    vertices = shape.vertices.round(4).tolist()
    return {"points": points, "vertices": vertices, "faces": shape.faces, "shades": shape.shades}


def coordinates(seen: Look, count: int) -> list[dict[str, str]]:
    return [
        {
            "q": seen.name(j),
            "p": seen.momentum(j),
            "q_label": with_unit(seen.name(j), seen.unit("q", j)),
            "p_label": with_unit(seen.momentum(j), seen.unit("p", j)),
            "colour": COLOURS[j % len(COLOURS)],
        }
        for j in range(count)
    ]


def floats(params: Mapping[str, Any]) -> dict[str, FloatArray]:
    return {name: np.asarray(value).astype(float) for name, value in params.items()}


def _state(path: Path) -> tuple[float, FloatArray, FloatArray]:
    return float(path.t[0]), np.asarray(path.q[0]).astype(float), np.asarray(path.p[0]).astype(float)


def _stored_look(seen: Look, path: Path) -> Look:
    """The look of a path that stores only some degrees of freedom: named by their numbers, without a drawing."""
    if path.output is None:
        return seen
    names, momenta = (tuple(word(int(j)) for j in path.output) for word in (seen.name, seen.momentum))
    return Look(title=seen.title, names=names, momenta=momenta, unknown=True)


def _run(path: Path, seen: Look, made: Drawing, options: SceneOptions, megabytes: float, pack: Pack) -> dict[str, Any]:
    begin = 0
    if options.begin is not None:
        times = np.asarray(path.t).astype(float)
        forward = times[-1] >= times[0]
        begin = int(np.searchsorted(times, options.begin) if forward else np.searchsorted(-times, -options.begin))
        begin = max(0, min(begin, len(path) - 2))
    columns = min(path.q.shape[1], SHOWN)
    some = made.points(*(x[None] for x in map(np.asarray, _state(path))))
    bytes_each = 2 * (some.size + 2 * columns)
    found = frames(path, max(3, int(0.75 * megabytes * 1e6 / bytes_each)), made.judged, begin, options.quick)
    points = made.points(found.t, found.q, found.p)
    still = (points == points[0]).all(axis=(0, 2))
    name = _method_name(path)
    return {
        "label": f"{name}, h = {float(path.h):.4g}",
        "method": name,
        "member": path.method.name if path.method.name != name else "",
        "colour": colour(path.method),
        "dash": False,
        "facts": _facts(path, seen, len(found), found.whole),
        "begin": float(found.t[0]),
        "end": float(found.t[-1]),
        "dt": found.dt,
        "count": len(found),
        "dim": points.shape[2],
        "fixed": [place.tolist() if rest else None for place, rest in zip(points[0], still, strict=True)],
        "corners": made.corners(points).tolist(),
        "points": pack.coarse(points[:, ~still].reshape(len(points), -1)),
        "q": pack.coarse(found.q[:, :columns]),
        "p": pack.coarse(found.p[:, :columns]),
        "curves": _curves(path, seen, options, pack) if path.output is None else [],
    }


def mark_alike(runs: list[dict[str, Any]]) -> None:
    """Runs whose methods share a colour are told apart by dashes."""
    for k, run in enumerate(runs):
        run["dash"] = any(run["colour"] == other["colour"] for other in runs[:k])


def _method_name(path: Path) -> str:
    from leastaction.methods import ALIASES

    return next((alias for alias, chosen in ALIASES.items() if chosen == path.method), path.method.name)


def _facts(path: Path, seen: Look, count: int, whole: bool) -> list[str]:
    unit = seen.unit("t")
    span = f"t = {float(path.t[0]):g} … {float(path.t[-1]):g}{' ' + unit if unit else ''}"
    facts = [f"h = {float(path.h):.4g}", span, f"{len(path):,} states".replace(",", " ")]
    if path.digits is not None:
        facts.append(f"{path.digits} digits")
    if not whole:
        facts.append(f"shown by {count:,} frames, too few for smooth lines".replace(",", " "))
    return facts


def _curves(path: Path, seen: Look, options: SceneOptions, pack: Pack) -> list[dict[str, Any]]:
    """Energy and invariants over the whole run, as changes from their first values."""
    skip = max(1, -(-len(path) // MOST_ROWS))
    t, q, p = rows(path, 0, skip)
    params = floats(path.params)
    energy = np.asarray(path.energy()).astype(float) if skip == 1 else path.system.energy(q, p, t, params)
    kept: Mapping[str, Any] = seen.invariants
    if seen.unknown and options.momenta:
        kept = looks.invariants(path.system, params)
    name = "energy error" if conserves_energy(path.system) else "energy change"
    curves = [_change(name, "energy", t, energy, seen.unit("energy"), pack)]
    return curves + [_change(key, "invariant", t, f(q, p, params), "", pack) for key, f in kept.items()]


def _change(name: str, kind: str, t: FloatArray, values: FloatArray, unit: str, pack: Pack) -> dict[str, Any]:
    """The change of a quantity from its first value; relative for an energy, unless the first value is small."""
    values = np.broadcast_to(np.asarray(values, float), t.shape)
    change, relative = looks.change(values) if kind == "energy" else (values - values[0], False)
    times, lows = extremes(t, change, BUCKETS)
    return {
        "name": f"relative {name}" if relative else with_unit(name, unit),
        "kind": kind,
        "first": float(values[0]),
        "largest": float(np.abs(change).max(initial=0.0)),
        "t": pack.fine(times),
        "y": pack.fine(lows),
    }


def extremes(t: FloatArray, y: FloatArray, buckets: int) -> tuple[FloatArray, FloatArray]:
    """A curve with fewer points and the same outline: of each stretch of time its lowest and its highest point.

    >>> extremes(np.arange(8.0), np.array([0, 9, 1, 2, 3, -5, 4, 4.0]), 2)
    (array([0., 1., 5., 6., 7.]), array([ 0.,  9., -5.,  4.,  4.]))
    """
    if len(t) <= 2 * buckets:
        return t, y
    width = -(-len(t) // buckets)
    whole = len(t) // width
    Y = y[: whole * width].reshape(whole, width)
    starts = np.arange(whole) * width
    places = [starts + Y.argmin(axis=1), starts + Y.argmax(axis=1), [0, len(t) - 1]]
    if whole * width < len(t):
        rest = y[whole * width :]
        places.append(whole * width + np.array([rest.argmin(), rest.argmax()]))
    chosen = np.unique(np.concatenate(places))
    return t[chosen], y[chosen]
