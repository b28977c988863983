"""Advice: what the library has chosen for a run, and what it was chosen from. Plain data, kept with the run's files."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.methods import method as method_named
from leastaction.numbers.notation import to_text
from leastaction.reading import entry, integer, listing, mapping, real, text
from leastaction.systems.pace import AUTO, OWN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EPS = float(np.finfo(float).eps)
MOST_OPTIONS = 1000  # that a file may tell of
LEAST_RANGE = 5.0  # of the seconds of a plot: labels of a smaller one overlap


@dataclass(frozen=True)
class Option:
    """A way to run: what it would cost, and why it was left out, if it was. NaN: not measured. `pilots` are errors and
    seconds of it with several steps, the longest first: as measured, or by formulas for linear systems.
    """

    method: str
    h: float
    pace: Any
    error: float
    seconds: float
    steps: int
    why: str = ""
    pilots: tuple[tuple[float, float], ...] = field(default=(), repr=False)

    @property
    def label(self) -> str:
        return self.method if self.pace is None else f"{self.method}, pace {shown_pace(self.pace)}"


@dataclass(frozen=True)
class Growth:
    """How errors grow from the end of the pilot to the end of the run: by `factor`; exponentially if `rate` > 0."""

    factor: float
    rate: float = 0.0

    def over(self, time: float) -> float:
        """The factor by which an error grows in this time, if errors grow exponentially."""
        return math.exp(min(600.0, self.rate * time))

    def __str__(self) -> str:
        if self.rate:
            return (
                f"exponentially, by a factor e in {1 / self.rate:.3g}; by {self.factor:.1e} from the pilot to the end"
            )
        return f"by a factor {self.factor:.2g} from the pilot to the end, no faster than a power of t"


@dataclass(frozen=True)
class MadePace:
    """The pace that the library has made from L: its numbers for this run."""

    unit: float
    energy: float

    def __str__(self) -> str:
        return (
            "pace: σ = [tr A² + (g·M⁻¹g/W)²]^(−1/4)/σ₀, A = M⁻¹ ∂²L/∂q², g = ∂L/∂q, M = ∂²L/∂v² at v = 0, "
            f"with σ₀ = {self.unit:.6g}, W = {self.energy:.6g}: σ = 1 at the start"
        )


@dataclass(frozen=True, eq=False)
class Advice:
    """What was chosen for a run, and what it was chosen from. Files and archives keep it.

    Attributes
    ----------
    tol : float or None
        The error asked for at `t_end`. None of a run with a method and h, for which the pace alone was made.
    chosen : Option
        The cheapest option that keeps `tol`, or the most accurate one if none does.
    options : tuple of Option
        All ways to run that were measured or computed, the cheapest first: method, h, pace, error, seconds, steps, why
        it was not taken, and `pilots`: errors and seconds with other steps, which `plot` draws.
    growth : Growth or None
        How errors grow until the end of the run.
    horizon : float or None
        The time until which `tol` can be kept, if it cannot be kept until `t_end`: of chaotic motions, about.
    size : float
        The size of the motion: the largest range of a coordinate.
    rounding : float
        A bound of rounding on the way, relative to `size`: what one unit in the last place of the state, at the worst
        time, makes of the end, or the rounding of all steps. The difference of two runs may not show it. NaN: not
        known.
    common : float
        What one unit in the last place of the start, and of the energy of a pace, makes of the end: all runs have it in
        common. NaN: not known.
    reached : float or None
        After the run, its estimated error; for an ensemble, the largest of the trajectories that were measured. None:
        not estimated, since a second run would take more than a minute.
    made : MadePace or None
        The pace that the library made from L, with its numbers ``unit`` (σ₀) and ``energy`` (W).
    notes : tuple of str
        Remarks, such as how long a tolerance can be kept.

    Methods
    -------
    plot(ax)
        Draw work against precision.

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> pendulum = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    >>> advice = la.integrate(pendulum, q0=[1.0], v0=[0.0], t_end=2, tol=1e-6).advice
    >>> advice.tol, advice.reached < advice.tol
    (1e-06, True)

    Of a run with ``pace="auto"`` the advice shows the pace:

    >>> kepler = la.problems.get("kepler")
    >>> paced = la.integrate(kepler.system, "simpson", kepler.q0, kepler.p0, h=0.05, steps=10, pace="auto")
    >>> paced.advice.tol is None, paced.advice.made.unit > 0
    (True, True)
    """

    system: str
    chosen: Option
    t0: float = math.nan
    t_end: float = math.nan
    tol: float | None = None
    options: tuple[Option, ...] = ()
    growth: Growth | None = None
    horizon: float | None = None
    size: float = math.nan
    rounding: float = math.nan
    common: float = math.nan
    bytes_per_state: int = 0
    reached: float | None = None
    made: MadePace | None = None
    notes: tuple[str, ...] = field(default_factory=tuple)

    def __repr__(self) -> str:
        asked = "" if self.tol is None else f", t = {self.t0:g} … {self.t_end:g}, tol = {self.tol:g}"
        head = f"Advice for {self.system}{asked}"
        told = [] if self.growth is None else [f"errors grow {self.growth}"]
        told += [*([] if self.made is None else [str(self.made)]), *self.notes]
        if self.reached is not None:
            told.append(
                f"error reached: {self.reached:.1e} with h = {self.chosen.h:.6g} (estimated by a run with longer steps)"
            )
        return "\n".join([head, *self._table(), *told])

    def _table(self) -> list[str]:
        rows = [["", "method", "h", "pace", "error", "seconds", "steps", "MB", ""]]
        for one in self.options or (self.chosen,):
            memory = one.steps * self.bytes_per_state / 1e6
            mark = "→" if self._is_chosen(one) else ""
            error, seconds = (
                ("" if math.isnan(x) else f"{x:{f}}") for x, f in ((one.error, ".1e"), (one.seconds, ".2g"))
            )
            rows.append([
                mark, one.method, f"{one.h:.6g}", shown_pace(one.pace), error, seconds, str(one.steps), f"{memory:.3g}",
                one.why or self._slower(one),
            ])  # fmt: skip
        wide = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        return ["  ".join(x.ljust(w) for x, w in zip(row, wide, strict=True)).rstrip() for row in rows]

    def _slower(self, one: Option) -> str:
        """How much longer an option takes than the chosen one took in the same table."""
        ratio = one.seconds / next((row.seconds for row in self.options if self._is_chosen(row)), math.nan)
        longer = f"{ratio:{'.2g' if ratio < 10 else '.0f'}} times as long" if ratio >= 1.05 else "about as long"
        return "" if self._is_chosen(one) else longer

    def _is_chosen(self, option: Option) -> bool:
        """Whether the run was made with this option. Its step may have become shorter on the way."""
        return (option.method, option.pace) == (self.chosen.method, self.chosen.pace)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw work against precision, log–log: for every option the error and the seconds of a whole run, as its
        pilots predict them with several steps; all steps of an option count alike. Where one pilot was run, a dotted
        line has the order of the member. The tolerance is a vertical line, and a star is the option that was chosen.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw. Without `ax` a new figure is made, with the legend beside the axes.

        Returns
        -------
        matplotlib axes

        Raises
        ------
        ValueError
            The advice is about the pace alone.
        """
        if self.tol is None:
            raise ValueError("this advice is about the pace alone: la.advise, or tol=, compares methods and steps")
        beside = ax is None
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots(figsize=(7, 4), layout="constrained")[1]
        options = sorted(self.options, key=lambda one: (method_named(one.method).order, one.pace is not None))
        colours = {name: f"C{k}" for k, name in enumerate(dict.fromkeys(one.method for one in options))}
        for one in options:
            _draw(ax, one, colours[one.method])
        ax.axvline(self.tol, color="0.6", linewidth=0.8, zorder=0, label="tol")
        for one in filter(self._is_chosen, options):
            (star,) = ax.plot(max(one.error, EPS), one.seconds, "*", color=colours[one.method], label="chosen")
            star.set(markersize=13, markeredgecolor="k")
        ax.set(xscale="log", yscale="log")
        low, high = ax.get_ylim()
        wider = max(1.0, math.sqrt(LEAST_RANGE * low / high))
        ax.set_ylim(low / wider, high * wider)
        ax.tick_params(axis="x", which="minor", labelbottom=False)  # these would overlap
        where = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if beside else {"loc": "best"}
        ax.legend(fontsize="small", **where)
        ax.set(xlabel="error of the position at the end", ylabel="seconds", title=f"{self.system}, tol = {self.tol:g}")
        return ax

    def record(self) -> dict[str, Any]:
        """The advice as a file's header has it. A user's own pace is kept by its name: the run has its Program."""
        return {
            "system": self.system,
            "span": [_text(self.t0), _text(self.t_end)],
            "tol": None if self.tol is None else to_text(self.tol),
            "chosen": _recorded(self.chosen),
            "options": [_recorded(one) for one in self.options],
            "growth": None if self.growth is None else [_text(self.growth.factor), _text(self.growth.rate)],
            "horizon": None if self.horizon is None else _text(self.horizon),
            "size": _text(self.size),
            "rounding": _text(self.rounding),
            "common": _text(self.common),
            "bytes_per_state": self.bytes_per_state,
            "reached": None if self.reached is None else _text(self.reached),
            "notes": list(self.notes),
        }

    @classmethod
    def from_record(cls, record: Any) -> Advice:
        """What a header says, checked."""
        told = {name: entry(record, name) for name in ("system", "span", "tol", "chosen", "options", "growth", "size")}
        t0, t_end = (_real(x) for x in listing(told["span"], "the span of the advice", 2))
        options = listing(told["options"], "the options of the advice")
        notes = listing(entry(record, "notes"), "the notes of the advice")
        if max(len(options), len(notes)) > MOST_OPTIONS:
            raise ValueError(f"an advice has at most {MOST_OPTIONS} options and notes")
        growth = told["growth"] and Growth(*(_real(x) for x in listing(told["growth"], "growth", 2)))
        reached, horizon = entry(record, "reached"), record.get("horizon")  # earlier versions had no horizon
        return cls(
            system=text(told["system"], "the system of the advice"),
            t0=t0,
            t_end=t_end,
            tol=None if told["tol"] is None else real(told["tol"], "tol"),
            chosen=_option(told["chosen"]),
            options=tuple(_option(one) for one in options),
            growth=growth or None,
            horizon=None if horizon is None else _real(horizon),
            size=_real(told["size"]),
            rounding=_real(record.get("rounding")),  # earlier versions had none, …
            common=_real(record.get("common")),  # … nor this
            bytes_per_state=integer(entry(record, "bytes_per_state"), "bytes_per_state"),
            reached=None if reached is None else _real(reached),
            notes=tuple(text(note, "a note") for note in notes),
        )


def shown_pace(pace: Any) -> str:
    """The text of a pace that people read."""
    return "" if pace is None else pace if isinstance(pace, str) else getattr(pace, "__name__", "σ")


def _draw(ax: Axes, one: Option, colour: str) -> None:
    """The curve of an option; of one pilot the slope of its order, seconds ~ error^(−1/order), a decade each way."""
    marker, dashes = ("o", "-") if one.pace is None else ("^", "--")
    points = np.array(one.pilots or [(one.error, one.seconds)])
    error, seconds = np.maximum(points[:, 0], EPS), points[:, 1]
    ax.plot(error, seconds, marker + dashes, color=colour, label=one.label, markersize=4, linewidth=1)
    if len(points) == 1:
        x = error * [0.1, 10.0]
        ax.plot(x, seconds * (x / error) ** (-1 / method_named(one.method).order), ":", color=colour, linewidth=1)


def with_pace(run: Any, given: Advice | None) -> Advice | None:
    """The advice of a run in s, with the pace if the library has made the pace."""
    if not run.system.automatic:
        return given
    made = MadePace(*(float(run.params[name]) for name in OWN))
    if given is not None:
        return replace(given, made=made)
    steps = int(run.stats.get("steps", len(run) - 1))
    chosen = Option(run.method.name, abs(float(run.h)), AUTO, math.nan, math.nan, steps)
    return Advice(run.system.of.name, chosen, bytes_per_state=8 * (2 * run.system.of.n + 1), made=made)


def _recorded(one: Option) -> dict[str, Any]:
    pace = None if one.pace is None else shown_pace(one.pace)
    numbers = {name: _text(getattr(one, name)) for name in ("h", "error", "seconds")}
    pilots = [[_text(error), _text(seconds)] for error, seconds in one.pilots]
    return {"method": one.method, "pace": pace, "steps": one.steps, "why": one.why, "pilots": pilots, **numbers}


def _option(record: Any) -> Option:
    pace = entry(mapping(record, "an option"), "pace")
    pilots = listing(record.get("pilots", []), "the pilots of an option")  # earlier versions had none
    if len(pilots) > MOST_OPTIONS:
        raise ValueError(f"an option has at most {MOST_OPTIONS} pilots")
    pairs = (listing(pair, "error and seconds of a pilot", 2) for pair in pilots)
    return Option(
        method=text(entry(record, "method"), "method"),
        h=_real(entry(record, "h")),
        pace=None if pace is None else text(pace, "pace"),
        error=_real(entry(record, "error")),
        seconds=_real(entry(record, "seconds")),
        steps=integer(entry(record, "steps"), "steps"),
        why=text(entry(record, "why"), "why"),
        pilots=tuple((_real(error), _real(seconds)) for error, seconds in pairs),
    )


def _text(x: float) -> str | None:
    """A number as text; None for NaN."""
    return to_text(x) if math.isfinite(x) else None


def _real(value: Any) -> float:
    return math.nan if value is None else real(value, "a number of the advice")


def check_tolerance(tol: Any) -> float:
    """tol as a float; an error says what is wrong with it."""
    if isinstance(tol, bool) or not isinstance(tol, int | float | np.number) or not EPS < tol < 1:
        raise ValueError(f"tol must be a number between 2e-16 and 1, relative to the size of the motion; got {tol!r}")
    return float(tol)
