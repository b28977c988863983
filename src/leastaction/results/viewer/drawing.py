"""Drawing: a function of the state that gives points and links, evaluated on many states."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastaction.numbers.arrays import FloatArray
from leastaction.results.looks import Look, with_unit
from leastaction.results.viewer.bodies import AXES

Link = tuple[Any, ...]  # the numbers of its points, and its kind

KINDS = ("rod", "spring", "thread")
EXAMPLES = {
    1: "    return [(0, 0), (np.sin(q[0]), -np.cos(q[0]))]",
    2: "    x, y = np.sin(q[0]), -np.cos(q[0])\n    return [(0, 0), (x, y), (x + np.sin(q[1]), y - np.cos(q[1]))]",
}
THREAD = 1 / 40
PROFILE = 200  # coordinates of a profile that are drawn
BEADS = 40  # coordinates of a profile that are drawn as beads
PAIRS = 12  # coordinates up to this, if even, are drawn as points of a plane; more of them as a profile


@dataclass(frozen=True, eq=False)
class Drawing:
    """What is drawn of a system."""

    points: Callable[[FloatArray, FloatArray, FloatArray], FloatArray]  # (t, q, p) of M states ↦ (M, P, 2 or 3)
    links: tuple[Link, ...]  # which points are joined, and by what: "rod", "spring" or "thread"
    trails: tuple[int, ...]  # the points whose way is drawn
    equal: bool = True  # whether one unit is as long across as it is high
    axes: tuple[str, ...] = ()  # labels of the axes if the plane is one of coordinates, else ()
    what: str = ""  # what a plain drawing shows, in words
    bodies: tuple[Link, ...] = ()  # centres and ends of half axes, and what they are: "disc", "box" or "ellipsoid"

    def judged(self, t: FloatArray, q: FloatArray, p: FloatArray) -> FloatArray:
        """The points, with loose ones scaled down: these may be coarser than the others."""
        points = self.points(t, q, p)
        if loose := self.loose - set(self.trails):
            points = points.copy()
            points[:, sorted(loose)] *= THREAD
        return points

    def corners(self, points: FloatArray) -> FloatArray:
        """Lowest and highest places that bodies reach, (2, 2 or 3) for each body, of the points of many states."""
        found = []
        for *at, kind in self.bodies:
            centre, along = points[:, at[:1]], np.abs(points[:, at[1:]] - points[:, at[:1]])
            reach = along.sum(axis=1) if kind == "box" else np.sqrt((along**2).sum(axis=1))
            found += [(centre[:, 0] - reach).min(axis=0), (centre[:, 0] + reach).max(axis=0)]
        return np.array(found).reshape(-1, points.shape[2])

    @property
    def loose(self) -> set[int]:
        """The points that only threads and bodies hold: they are corners of an outline, and no dots."""
        outline = {k for *ends, kind in self.links if kind == "thread" for k in ends}
        outline |= {k for *corners, _ in self.bodies for k in corners}
        return outline - {k for *ends, kind in self.links if kind != "thread" for k in ends}


def drawing(draw: Any, look: Look, n: int, params: Mapping[str, Any], start: tuple[Any, Any, Any]) -> Drawing:
    """The drawing asked for, else the look's own, else a plain one of the coordinates.

    `start` is a state (t, q, p) at which a user's function is tried.
    """
    trails = None
    if draw is None:
        if look.draw is None:
            return plain(look, n)
        draw, trails = look.draw, look.trails
    if not callable(draw):
        raise TypeError(f"draw= must be a function of q that gives points, or points and links; got {draw!r}")
    function = _Function(draw, params)
    count, told = function.outline(*start)
    links, bodies = (tuple(one for one in told if (one[-1] in AXES) is body) for body in (False, True))
    if trails is None:
        centres = tuple(body[0] for body in bodies)
        trails = centres or ((count - 1,) if links else tuple(range(count)))
    return Drawing(function, links, trails, bodies=bodies)


def hint(n: int, call: str) -> str:
    """The code with which a reader of a plain drawing sees the bodies."""
    return f"def draw(q):  # points, each linked to the next\n{EXAMPLES[min(n, 2)]}\n{call}(draw=draw)"


def plain(look: Look, n: int) -> Drawing:
    """Without a drawing: pairs of coordinates as points of a plane, three as one in space, many as a profile."""

    def label(j: int) -> str:
        return with_unit(look.name(j), look.unit("q", j))

    if n == 1:
        axes = label(0), with_unit(look.momentum(0), look.unit("p", 0))
        return Drawing(lambda t, q, p: np.stack([q, p], axis=-1), (), (0,), False, axes, "phase plane")
    if n == 3:
        return Drawing(lambda t, q, p: q[:, None, :], (), (0,), True, tuple(label(j) for j in range(3)), "coordinates")
    if n % 2 == 0 and n <= PAIRS:
        points = tuple(range(n // 2))
        axes = (label(0), label(1)) if n == 2 else ("first of each pair", "second of each pair")
        return Drawing(lambda t, q, p: q.reshape(len(q), -1, 2), (), points, False, axes, "coordinates in pairs")

    some = np.unique(np.linspace(0, n - 1, min(n, PROFILE)).round().astype(int))

    def profile(t: FloatArray, q: FloatArray, p: FloatArray) -> FloatArray:
        return np.stack([np.broadcast_to(some.astype(float), (len(q), len(some))), q[:, some]], axis=-1)

    links = tuple((j, j + 1, "rod" if n <= BEADS else "thread") for j in range(len(some) - 1))
    return Drawing(profile, links, (), False, ("coordinate", "q"), "all coordinates")


class _Function:
    """A user's drawing, whose arguments name what it needs: q, and t, p or parameters of the system.

    The function is written for one state. For many states it is tried with arrays, which most formulas allow, and its
    result is compared with single states. If the function fails or the results differ, it is called state by state.
    """

    def __init__(self, draw: Callable[..., Any], params: Mapping[str, Any]) -> None:
        self.draw, self.params, self.wanted = draw, params, _wanted(draw, params)

    def outline(self, t: Any, q: Any, p: Any) -> tuple[int, tuple[Link, ...]]:
        """The number of points, and the links between them: a chain, unless the function gives links."""
        points, links = self._call(t, q, p)
        array = self._checked(points)
        if links is None:
            links = [(i, i + 1) for i in range(len(array) - 1)]
        return len(array), tuple(_link(entry, len(array)) for entry in links)

    def __call__(self, t: FloatArray, q: FloatArray, p: FloatArray) -> FloatArray:
        first = self._checked(self._call(t[0], q[0], p[0])[0])
        if len(t) > 8:
            try:
                points = self._at_once(t, q, p, first.shape)
                some = np.unique(np.linspace(0, len(t) - 1, 5).astype(int))
                alone = np.stack([self._checked(self._call(t[k], q[k], p[k])[0]) for k in some])
                if np.allclose(points[some], alone, rtol=1e-9, atol=1e-12 * max(1.0, np.abs(alone).max())):
                    return points
            except Exception:  # the function is not written for arrays; any other error of it is raised below
                pass
        return np.stack([self._checked(self._call(t[k], q[k], p[k])[0], first.shape) for k in range(len(t))])

    def _at_once(self, t: FloatArray, q: FloatArray, p: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        points, _ = self._call(t, q.T, p.T)
        result = np.empty((len(t), *shape))
        for i, point in enumerate(points):
            for d, x in enumerate(point):
                result[:, i, d] = x
        return result

    def _call(self, t: Any, q: Any, p: Any) -> tuple[Any, Any]:
        given = {"t": t, "q": q, "p": p}
        found = self.draw(*(given[name] if name in given else self.params[name] for name in self.wanted))
        if isinstance(found, tuple) and len(found) == 2 and _are_links(found[1]):
            return found
        return found, None

    def _checked(self, points: Any, shape: tuple[int, ...] | None = None) -> FloatArray:
        try:
            array = np.array([[float(x) for x in point] for point in points])
        except (TypeError, ValueError) as error:
            raise TypeError(f"draw= must give points, each two or three numbers; got {points!r} ({error})") from None
        if array.ndim != 2 or array.shape[1] not in (2, 3) or not len(array):
            raise ValueError(f"draw= must give points of two or three numbers; got an array of shape {array.shape}")
        if shape is not None and array.shape != shape:
            raise ValueError(
                f"draw= gave {shape[0]} points at first and {array.shape[0]} later; their number must stay"
            )
        return array


def _wanted(draw: Callable[..., Any], params: Mapping[str, Any]) -> tuple[str, ...]:
    try:
        arguments = inspect.signature(draw).parameters.values()
    except (TypeError, ValueError):
        return ("q",)
    plain_kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [a.name for a in arguments if a.kind in plain_kinds and (a.default is a.empty or a.name in params)]
    if len(names) == 1 and names[0] not in params:
        return ("q",)  # whatever the name of its only argument
    if unknown := [name for name in names if name not in ("t", "q", "p") and name not in params]:
        raise ValueError(
            f"draw= asks for {unknown[0]!r}; it may take q, t, p and the parameters {', '.join(params) or '(none)'}"
        )
    return tuple(names)


def _are_links(found: Any) -> bool:
    """Whether this is a list of links, rather than the second of two points."""
    return isinstance(found, list | tuple) and all(isinstance(x, list | tuple) and 2 <= len(x) <= 5 for x in found)


def _link(entry: Sequence[Any], count: int) -> Link:
    *points, kind = entry if isinstance(entry[-1], str) else (*entry, "rod")
    if kind not in KINDS and kind not in AXES:
        raise ValueError(f"a link is one of {', '.join(map(repr, (*KINDS, *AXES)))}; got {kind!r}")
    if (kind in KINDS and len(points) != 2) or (kind in AXES and len(points) - 1 not in AXES[kind]):
        told = "a centre and the ends of its half axes" if kind in AXES else "two points"
        raise ValueError(f"a {kind} is told by {told}; got {tuple(entry)!r}")
    if not all(isinstance(x, int | np.integer) and 0 <= x < count for x in points):
        raise ValueError(f"a link joins some of the points 0 … {count - 1}; got {tuple(entry)!r}")
    return (*map(int, points), kind)
