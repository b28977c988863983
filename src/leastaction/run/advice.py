"""Advice: what the library has chosen for a run, and why its error is believed. Plain data, kept with its files."""

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
MOST_TRIED = 1000  # that a file may tell of
NUMBERS = ("t0", "t_end", "tol", "reached", "horizon", "rate", "rounding", "size")
TEXTS = ("system", "reason", "code")


@dataclass(frozen=True)
class Option:
    """A way to run: method, step and pace; its error, NaN if not measured; its steps, and its work in instructions."""

    method: str
    h: float
    pace: Any
    error: float
    steps: int
    work: float

    @property
    def label(self) -> str:
        return self.method if self.pace is None else f"{self.method}, pace {shown_pace(self.pace)}"


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
    """What was chosen for a run, the error that can be expected, and how to repeat the run. Files and archives keep it.

    It prints three lines; ``print(advice.details)`` shows all that was measured.

    Attributes
    ----------
    tol : float or None
        The error asked for at `t_end`. None of a run with a method and h, for which the pace alone was made.
    chosen : Option
        ``method``, ``h``, ``pace``, ``steps``, and ``work`` in instructions.
    reached : float or None
        The error of the position at `t_end`, relative to `size`: two runs with different steps differ by this, or
        rounding makes this of the end, whichever is larger. Of an ensemble the largest of all trajectories. None: no
        second run was compared, and `reason` says why.
    reason : str
        How the error is known.
    code : str
        The line of code that repeats the run, bit for bit.
    horizon : float or None
        The time until which `tol` can be kept, if rounding forbids to keep it until `t_end`; None if it does not, or
        if this was not measured.
    rate : float or None
        The rate at which errors grow exponentially; 0 if they grow no faster than a power of time. None: not measured.
    rounding : float or None
        What rounding makes of the end, relative to `size`. None: not measured.
    size : float or None
        The size of the motion: the largest range of a coordinate. None: not measured.
    tried : tuple of Option
        All runs that were made. The error of each is its difference from a run with shorter steps.
    made : MadePace or None
        The pace that the library made from L, with its numbers ``unit`` (σ₀) and ``energy`` (W).
    notes : tuple of str
        Further remarks.

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
    reached: float | None = None
    reason: str = ""
    code: str = ""
    horizon: float | None = None
    rate: float | None = None
    rounding: float | None = None
    size: float | None = None
    tried: tuple[Option, ...] = ()
    made: MadePace | None = None
    notes: tuple[str, ...] = field(default_factory=tuple)

    def __repr__(self) -> str:
        one = self.chosen
        pace = "equal steps" if one.pace is None else f"steps with the pace {shown_pace(one.pace)}"
        lines = [f"{self.system}: {one.method} with h = {one.h:.6g}, {one.steps} {pace}"]
        if self.tol is not None:
            lines += [self.expected, self.code]
        if self.tol is None and self.made is not None:
            lines.append(str(self.made))
        return "\n".join(lines)

    @property
    def expected(self) -> str:
        """The error that can be expected, and why."""
        asked = f"tol = {self.tol:g}"
        if self.reached is None:
            return f"error at t = {self.t_end:g}: not measured ({asked}), since {self.reason}"
        kept = "within" if self.tol is not None and self.reached <= self.tol else "above"
        until = "" if self.horizon is None else f", which can be kept until t = {self.horizon:.4g}"
        told = f"error at t = {self.t_end:g}: about {self.reached:.1e} of the size of the motion"
        return f"{told}, {kept} {asked}{until}: {self.reason}"

    @property
    def details(self) -> str:
        """All that was measured: each run with its error and its work, how errors grow, and remarks."""
        rows = [["method", "h", "pace", "steps", "error", "million instructions"]]
        for one in self.tried:
            error = "" if math.isnan(one.error) else f"{one.error:.1e}"
            pace = shown_pace(one.pace)
            rows.append([one.method, f"{one.h:.6g}", pace, str(one.steps), error, f"{one.work / 1e6:.3g}"])
        wide = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        table = ["  ".join(x.ljust(w) for x, w in zip(row, wide, strict=True)).rstrip() for row in rows]
        grown = {None: "how errors grow was not measured", 0.0: "errors grow no faster than a power of time"}
        rate = grown.get(self.rate) or f"errors grow e-fold every {1 / (self.rate or 1):.3g} units of time"
        rounding = [] if self.rounding is None else [f"rounding makes an error of {self.rounding:.1e} at the end"]
        made = [] if self.made is None else [str(self.made)]
        return "\n".join([repr(self), "", *(table if self.tried else []), rate, *rounding, *made, *self.notes])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw work against precision, log–log: the runs that were tried, a curve for each method and pace. The
        tolerance is a vertical line, and a star is the run that was chosen.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw. Without `ax` a new figure is made.

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
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots(figsize=(7, 4), layout="constrained")[1]
        for label in dict.fromkeys(one.label for one in self.tried):
            runs = [one for one in self.tried if one.label == label and one.error == one.error]
            error = [max(one.error, EPS) for one in runs]
            ax.plot(error, [one.work for one in runs], "o-", label=label, markersize=4, linewidth=1)
        ax.axvline(self.tol, color="0.6", linewidth=0.8, zorder=0, label="tol")
        if self.reached is not None:
            ax.plot(max(self.reached, EPS), self.chosen.work, "*k", label="chosen", markersize=13)
        ax.set(xscale="log", yscale="log", xlabel="error of the position at the end", ylabel="instructions",
               title=f"{self.system}, tol = {self.tol:g}")  # fmt: skip
        ax.legend(fontsize="small")
        return ax

    def record(self) -> dict[str, Any]:
        """The advice as a file's header has it. A user's own pace is kept by its name: the run has its Program."""
        return {
            **{name: _text(getattr(self, name)) for name in NUMBERS},
            **{name: getattr(self, name) for name in TEXTS},
            "chosen": _recorded(self.chosen),
            "tried": [_recorded(one) for one in self.tried],
            "notes": list(self.notes),
        }

    @classmethod
    def from_record(cls, record: Any) -> Advice:
        """What a header says, checked."""
        tried = listing(entry(mapping(record, "the advice"), "tried"), "the runs that were tried")
        notes = listing(entry(record, "notes"), "the notes of the advice")
        if max(len(tried), len(notes)) > MOST_TRIED:
            raise ValueError(f"an advice has at most {MOST_TRIED} runs and notes")
        told: dict[str, Any] = {name: text(entry(record, name), name) for name in TEXTS}
        told |= {name: _real(entry(record, name)) for name in NUMBERS}
        told |= {name: math.nan for name in ("t0", "t_end") if told[name] is None}
        return cls(
            chosen=_option(entry(record, "chosen")),
            tried=tuple(map(_option, tried)),
            notes=tuple(text(note, "a note") for note in notes),
            **told,
        )


def shown_pace(pace: Any) -> str:
    """The text of a pace that people read."""
    return "" if pace is None else pace if isinstance(pace, str) else getattr(pace, "__name__", "σ")


def with_pace(run: Any, given: Advice | None) -> Advice | None:
    """The advice of a run in s, with the pace if the library has made the pace."""
    if not run.system.automatic:
        return given
    made = MadePace(*(float(run.params[name]) for name in OWN))
    if given is not None:
        return replace(given, made=made)
    steps = int(run.stats.get("steps", len(run) - 1))
    chosen = Option(run.method.name, abs(float(run.h)), AUTO, math.nan, steps, math.nan)
    return Advice(run.system.of.name, chosen, made=made)


def _recorded(one: Option) -> dict[str, Any]:
    pace = None if one.pace is None else shown_pace(one.pace)
    return {"method": one.method, "pace": pace, "steps": one.steps} | {
        name: _text(getattr(one, name)) for name in ("h", "error", "work")
    }


def _option(record: Any) -> Option:
    pace = entry(mapping(record, "a run that was tried"), "pace")
    method = text(entry(record, "method"), "method")
    method_named(method)
    return Option(
        method=method,
        h=_finite(entry(record, "h")),
        pace=None if pace is None else text(pace, "pace"),
        error=_finite(entry(record, "error")),
        steps=integer(entry(record, "steps"), "steps"),
        work=_finite(entry(record, "work")),
    )


def _text(x: float | None) -> str | None:
    """A number as text; None for None and NaN."""
    return to_text(x) if x is not None and math.isfinite(x) else None


def _real(value: Any) -> float | None:
    return None if value is None else real(value, "a number of the advice")


def _finite(value: Any) -> float:
    return math.nan if value is None else real(value, "a number of the advice")


def check_tolerance(tol: Any) -> float:
    """tol as a float; an error says what is wrong with it."""
    if isinstance(tol, bool) or not isinstance(tol, int | float | np.number) or not EPS < tol < 1:
        raise ValueError(f"tol must be a number between 2e-16 and 1, relative to the size of the motion; got {tol!r}")
    return float(tol)
