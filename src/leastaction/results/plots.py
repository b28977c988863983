"""Pictures of a path, with Matplotlib.

Alone on its axes, a path has a colour for each coordinate. Paths that share axes have one colour each, the colour of
the method unless another path has it already, and dashes for the coordinates; the legend names the paths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.linear.matrices import chosen_dofs
from leastaction.results import looks, sections
from leastaction.results.colours import COLOURS, colour
from leastaction.results.inside_steps import smooth
from leastaction.results.looks import Look, conserves_energy, look, stored_places, with_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from leastaction.results.path import Path
    from leastaction.results.paths import Paths

__all__ = ["COLOURS", "plot_path", "plot_paths"]

FloatArray = NDArray[np.float64]

MOST_LABELS = 12
MOST_LETTERS = 40  # the most letters of labels in one row
_DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))


@dataclass(frozen=True, eq=False)
class _Curve:
    """A line of a picture: what the line shows ("" if a path has only one line), and the artist."""

    name: str
    artist: Any
    place: int  # its number among the curves of the path


@dataclass(frozen=True, eq=False)
class _Drawn:
    path: Path
    curves: list[_Curve]


# An attribute of the axes records what has been drawn there: so a second path gets another look than the first.
_DRAWN = "_leastaction_drawn"


def _axes(what: str, ax: Axes | None, options: Mapping[str, Any]) -> Axes:
    """The axes to draw on, after a look at what is to be drawn."""
    if what not in _KINDS:
        raise ValueError(f"expected one of {', '.join(map(repr, _KINDS))}; got {what!r}")
    if what not in ("section", "history") and options:
        raise TypeError(f"{what!r} takes no option {next(iter(options))!r}")
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    return ax


def plot_paths(paths: Paths, what: str, ax: Axes | None, most: int, **options: Any) -> Axes:
    """Draw trajectories of an ensemble, coloured by their order; `Paths.plot` tells more."""
    from matplotlib import colormaps

    ax = _axes(what, ax, options)
    chosen = np.unique(np.linspace(0, len(paths) - 1, min(len(paths), max(1, most))).round().astype(int))
    for i in chosen.tolist():
        paint = colormaps["cividis"](i / max(1, len(paths) - 1))
        for j, (name, artist) in enumerate(_KINDS[what](paths[i], look(paths.system), ax, **options)):
            artist.set(color=paint, alpha=0.7, label=name if i == 0 and name else "_")
            if artist.get_linestyle() == "-":
                artist.set_linestyle(_DASHES[j % len(_DASHES)])
    if 1 < len(ax.get_legend_handles_labels()[1]) <= MOST_LABELS:
        ax.legend(frameon=False)
    shown = f"{len(chosen)} of {len(paths)}" if len(chosen) < len(paths) else f"{len(paths)}"
    title = f"{paths.system.name}, {paths.method.name}, h = {float(paths.h):g}: {shown} trajectories"
    ax.set_title(title, fontsize="medium", loc="left")
    ax.set_title("", loc="right")
    return ax


def plot_path(path: Path, what: str = "configuration", ax: Axes | None = None, **options: Any) -> Axes:
    """Draw one picture of a path; `Path.plot` lists the pictures."""
    ax = _axes(what, ax, options)
    curves = _KINDS[what](path, look(path.system), ax, **options)
    kept: dict[str, list[_Drawn]] = getattr(ax, _DRAWN, {})
    setattr(ax, _DRAWN, kept)
    drawn = kept.setdefault(what, [])
    drawn[:] = [one for one in drawn if all(curve.artist.axes is ax for curve in one.curves)]  # drop removed ones
    drawn.append(_Drawn(path, [_Curve(name, artist, j) for j, (name, artist) in enumerate(curves)]))
    _tell_apart(ax, drawn)
    return ax


def _tell_apart(ax: Axes, drawn: list[_Drawn]) -> None:
    """Colours, dashes, legend and title for all paths on the axes."""
    alone = len(drawn) == 1
    several = max(len(one.curves) for one in drawn) > 1
    for one, paint, whose in zip(drawn, _paints(drawn), _names(drawn), strict=True):
        for curve in one.curves:
            dots = curve.artist.get_linestyle() in ("None", "", " ", "none")
            if not dots and not (alone and several):
                curve.artist.set_linestyle(_DASHES[curve.place % len(_DASHES)])
            curve.artist.set_color(COLOURS[curve.place % len(COLOURS)] if alone and several else paint)
            words = curve.name if alone else f"{whose}: {curve.name}" if curve.name and several else whose
            curve.artist.set_label(words or "_")
    shown = [curve.artist for one in drawn for curve in one.curves]
    labels = [artist.get_label() for artist in shown]
    if len(shown) > MOST_LABELS and not alone:  # one label for each path, at its first curve
        shown, labels = [one.curves[0].artist for one in drawn], _names(drawn)
    if 1 < len(shown) <= MOST_LABELS:
        long = sum(map(len, labels)) > MOST_LETTERS
        ax.legend(shown, labels, frameon=False, ncols=1 if long or not alone else min(len(shown), 4))
    path = drawn[0].path
    title = f"{path.system.name}, {path.method.name}, h = {float(path.h):g}" if alone else ", ".join(_systems(drawn))
    ax.set_title(title, fontsize="medium", loc="left")
    if not alone:
        ax.set_title("", loc="right")


def _systems(drawn: list[_Drawn]) -> list[str]:
    return list(dict.fromkeys(one.path.system.name for one in drawn))


def _paints(drawn: list[_Drawn]) -> list[str]:
    """A colour for each path: the colour of its method, or one that no other path has."""
    paints: list[str] = []
    for k, one in enumerate(drawn):
        wanted = colour(one.path.method)
        left = [paint for paint in COLOURS if paint not in paints]
        paints.append(wanted if wanted not in paints else left[0] if left else COLOURS[k % len(COLOURS)])
    return paints


def _names(drawn: list[_Drawn]) -> list[str]:
    """A name that distinguishes each path from the others: its system, its method, its step, or its number."""
    names = [one.path.method.name for one in drawn]
    if len(_systems(drawn)) > 1:
        names = [f"{one.path.system.name}, {name}" for name, one in zip(names, drawn, strict=True)]
    if len({float(one.path.h) for one in drawn}) > 1:
        names = [f"{name}, h = {float(one.path.h):g}" for name, one in zip(names, drawn, strict=True)]
    return [
        f"{name}, run {names[: k + 1].count(name)}" if names.count(name) > 1 else name for k, name in enumerate(names)
    ]


_Lines = list[tuple[str, Any]]


def _times(path: Path) -> FloatArray:
    return np.asarray(path.t).astype(float)


def _time_label(seen: Look) -> str:
    return with_unit("time $t$", seen.unit("t"))


def _name(path: Path, seen: Look, j: int) -> str:
    dof = j if path.output is None else int(path.output[j])
    return seen.names[dof] if dof < len(seen.names) else f"$q_{{{dof}}}$"


def _common_unit(seen: Look, what: str, n: int) -> str:
    units = {seen.unit(what, j) for j in range(n)} if what in seen.units else {""}
    return units.pop() if len(units) == 1 else ""


def _configuration(path: Path, seen: Look, ax: Axes) -> _Lines:
    n = path.q.shape[1]
    ax.set(xlabel=_time_label(seen), ylabel=with_unit("position $q$", _common_unit(seen, "q", n)))
    t, q, _ = smooth(path, lambda t, q, p: q)
    return [(_name(path, seen, j), ax.plot(t, q[:, j], linewidth=1)[0]) for j in range(n)]


_QUANTITIES = {"q": "position", "v": "velocity", "a": "acceleration"}


def _history(
    path: Path, seen: Look, ax: Axes, dofs: Any = None, of: str = "q", names: Mapping[int, str] | None = None
) -> _Lines:
    """q, v or a of some degrees of freedom over t."""
    if of not in _QUANTITIES:
        raise ValueError(f"of must be one of {', '.join(map(repr, _QUANTITIES))}; got {of!r}")
    if of == "q":
        chosen, places = stored_places(path, dofs)
        values = np.asarray(path.q)[:, places]
    else:
        chosen = stored_places(path)[0] if dofs is None else chosen_dofs(dofs, path.system.n).tolist()
        values = path.velocity(chosen) if of == "v" else path.acceleration(chosen)
    unit = _common_unit(seen, "q", path.system.n) if of == "q" else ""
    ax.set(xlabel=_time_label(seen), ylabel=with_unit(f"{_QUANTITIES[of]} ${of}$", unit))
    given = dict(enumerate(seen.names)) | dict(names or {})
    labels = [given.get(dof, f"${of}_{{{dof}}}$") for dof in chosen]
    return [(label, ax.plot(path.t, column, linewidth=1)[0]) for label, column in zip(labels, values.T, strict=True)]


def _phase(path: Path, seen: Look, ax: Axes) -> _Lines:
    n = path.q.shape[1]
    ax.set(
        xlabel=with_unit("position $q$", _common_unit(seen, "q", n)),
        ylabel=with_unit("momentum $p$", _common_unit(seen, "p", n)),
    )
    names = [
        f"{_name(path, seen, j)}, {seen.momentum(j)}" if seen.names else f"$(q_{{{j}}}, p_{{{j}}})$" for j in range(n)
    ]
    _, q, p = smooth(path, _phase_plane)
    return [(names[j], ax.plot(q[:, j], p[:, j], linewidth=1)[0]) for j in range(n)]


def _phase_plane(t: FloatArray, q: FloatArray, p: FloatArray) -> FloatArray:
    """Positions and momenta in parts of their ranges."""
    return np.stack([x / (float(np.ptp(x)) or 1.0) for x in (q, p)], axis=-1)


def _energy(path: Path, seen: Look, ax: Axes) -> _Lines:
    energy = path.energy()
    change, relative = looks.change(energy)
    (line,) = ax.plot(path.t, change, linewidth=1)
    largest = float(np.abs(change).max())
    name = "energy error" if conserves_energy(path.system) else "energy change"
    ax.set(xlabel=_time_label(seen), ylabel=f"relative {name}" if relative else with_unit(name, seen.unit("energy")))
    ax.set_title(f"largest {largest:.1e}", fontsize="medium", loc="right")
    return [("", line)]


def _invariants(path: Path, seen: Look, ax: Axes) -> _Lines:
    """|J − J₀|, relative to |J₀| unless |J₀| is smaller than the changes; a constant J is drawn at 10⁻¹⁷."""
    path._require_whole("what the motion conserves")
    t, q, p = (np.asarray(x).astype(float) for x in (path.t, path.q, path.p))
    params = {name: np.asarray(value).astype(float) for name, value in path.params.items()}
    values: dict[str, Any] = {"energy": np.asarray(path.energy())} if conserves_energy(path.system) else {}
    values |= {name: f(q, p, params) for name, f in looks.invariants(path.system, params).items()}
    if not values:
        raise ValueError(f"{path.system.name} conserves nothing that is known: neither its energy nor a momentum")
    ax.set(
        xlabel=_time_label(seen), ylabel=r"$|J/J_0 - 1|$, or $|J - J_0|$ if that is larger than $|J_0|$", yscale="log"
    )
    lines = []
    for name, one in values.items():
        change = np.abs(looks.change(one)[0]).astype(float)
        lines.append((name, ax.plot(t, np.maximum(change, 1e-17), linewidth=1)[0]))
    return lines


def _spectrum(path: Path, seen: Look, ax: Axes) -> _Lines:
    """Amplitudes of q by frequency: the transform of q minus its mean, with Hann's window, at equal times."""
    t, q = _times(path), np.asarray(path.q).astype(float)
    if len(t) < 8:
        raise ValueError(f"a spectrum needs at least 8 states; this path has {len(t)}")
    if path.pace is not None:
        t = np.linspace(t[0], t[-1], len(t))
        q = np.asarray(path(t)).astype(float)
    if not np.isclose(t[-1] - t[-2], t[1] - t[0], rtol=1e-6):
        t, q = t[:-1], q[:-1]  # the last state is not equally spaced
    window = np.hanning(len(t) + 1)[:-1]
    amplitude = 2 * np.abs(np.fft.rfft((q - q.mean(axis=0)) * window[:, None], axis=0)) / window.sum()
    frequency = np.fft.rfftfreq(len(t), abs(t[1] - t[0]))
    unit = seen.unit("t")
    ax.set(
        xlabel=with_unit("frequency", {"s": "Hz", "": ""}.get(unit, f"1/{unit}")),
        ylabel=with_unit("amplitude of $q$", _common_unit(seen, "q", q.shape[1])),
        yscale="log",
        xlim=(0, frequency[-1]),
    )
    return [
        (_name(path, seen, j), ax.plot(frequency[1:], np.maximum(amplitude[1:, j], 1e-300), linewidth=1)[0])
        for j in range(q.shape[1])
    ]


def _section(
    path: Path,
    seen: Look,
    ax: Axes,
    coordinate: int | None = None,
    value: float = 0.0,
    direction: int = 1,
    show: int | None = None,
    period: float | None = None,
) -> _Lines:
    path._require_whole("a section")
    n = path.system.n
    if period is None and coordinate is None and n == 1 and seen.period is not None:
        period = seen.period(path.params)
    if period is not None:
        found, title = sections.strobe(path, float(period)), f"once in {float(period):g}"
        show = 0 if show is None else show
    else:
        chosen = 0 if coordinate is None else coordinate
        found = sections.crossings(path, chosen, value, direction)
        title = f"{seen.name(chosen)} = {value:g}{ {1: ', rising', -1: ', falling', 0: ''}[direction] }"
        show = next(j for j in range(n - 1, -1, -1) if j != chosen) if show is None else show
    if not 0 <= show < n:
        raise ValueError(f"show must be one of the coordinates 0 … {n - 1}; got {show!r}")
    x = sections.wrapped(found.q[:, show]) if show in seen.angles else found.q[:, show]
    (dots,) = ax.plot(x, found.p[:, show], linestyle="none", marker=".", markersize=3)
    ax.set(
        xlabel=with_unit(seen.name(show), seen.unit("q", show)),
        ylabel=with_unit(seen.momentum(show), seen.unit("p", show)),
    )
    ax.set_title(f"{title}: {len(found)} points", fontsize="medium", loc="right")
    return [("", dots)]


_KINDS: dict[str, Callable[..., _Lines]] = {
    "configuration": _configuration,
    "phase": _phase,
    "energy": _energy,
    "section": _section,
    "invariants": _invariants,
    "spectrum": _spectrum,
    "history": _history,
}
