"""What an ensemble can compute while it runs, so that its states need not be stored.

EnergyRange     the lowest and the highest energy over all steps
FirstCrossing   the first time an event function g crosses zero
Crossings       all such crossings with their states, as for a Poincaré section

An event function is written like a Lagrangian, as a plain NumPy function g(q, p) or g(t, q, p), with parameters of the
system by their names if it wants them; it is traced and compiled. A crossing is noticed when g changes its sign from
one step to the next (two crossings within one step are not), and refined on the step's own polynomial,

    q(τ) = q_k + Σ_ν z^ν l_ν(τ),      p(τ) = p_k + h Σ_i L_q(q_i, v_i) ∫₀^τ λ_i,

with λ_i the Lagrange basis at the quadrature nodes, so that q(1) = q_{k+1} and p(1) = p_{k+1}: both are within
O(h^{s+1}) of the motion, and so is the time of the crossing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.layout import MOST_EVENTS
from leastaction.errors import TraceError
from leastaction.lagrangian import takes_time
from leastaction.program import Builder, Program
from leastaction.systems import System

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class EnergyRange:
    """The lowest and the highest energy over all steps of each trajectory: an array (B, 2)."""


@dataclass(frozen=True)
class FirstCrossing:
    """The first time g crosses zero, in direction +1 (rising), −1 (falling) or 0 (either): times (B,), NaN if never.

    The direction is that of the run: with a negative h, +1 is what falls in time.

    With `stop` a trajectory ends with the step in which that happens.
    """

    g: Callable[..., Any]
    direction: int = 0
    stop: bool = False


@dataclass(frozen=True)
class Crossings:
    """The first `most` crossings of g through zero in a direction: a `Section`."""

    g: Callable[..., Any]
    direction: int = 0
    most: int = 100


Reduction = EnergyRange | FirstCrossing | Crossings


@dataclass(frozen=True, eq=False)
class Section:
    """Crossings of many trajectories.

    count     how many each trajectory had, also beyond those kept, (B,)
    t, q, p   time and state of those kept, (B, most), (B, most, n), (B, most, n); NaN where there were fewer
    """

    count: NDArray[np.int64]
    t: FloatArray
    q: FloatArray
    p: FloatArray


@dataclass(frozen=True)
class Event:
    """An event function's place in a run: its direction, how many crossings to keep, whether it ends the run."""

    direction: int
    most: int
    stop: bool


@dataclass(frozen=True)
class Watch:
    """What is computed on the way, compiled: plain data that can travel to other processes.

    program   (t, q, p, params) ↦ g, one entry for each event
    kinds     for each name "energy", "first" or "section"; the latter two take the events in their order
    """

    program: Program | None
    events: tuple[Event, ...]
    kinds: tuple[tuple[str, str], ...]

    @property
    def energy(self) -> bool:
        return any(kind == "energy" for _, kind in self.kinds)

    @property
    def records(self) -> int:
        """Crossings kept per trajectory, of all events."""
        return sum(event.most for event in self.events)


NOTHING = Watch(None, (), ())


def watch(reduce: Mapping[str, Reduction] | None, system: System) -> Watch:
    """Check the reductions asked for, and trace their event functions."""
    events, kinds, functions = [], [], []
    if reduce is not None and not isinstance(reduce, Mapping):
        raise TypeError(
            f"reduce must be a mapping of names to reductions, such as {{'E': EnergyRange()}}; got {reduce!r}"
        )
    for name, reduction in (reduce or {}).items():
        if isinstance(reduction, EnergyRange):
            kinds.append((name, "energy"))
            continue
        if not isinstance(reduction, FirstCrossing | Crossings):
            raise TypeError(
                f"reduce[{name!r}] must be la.EnergyRange(), la.FirstCrossing(g) or la.Crossings(g); got {reduction!r}"
            )
        if reduction.direction not in (-1, 0, 1):
            raise ValueError(
                f"the direction of {name!r} must be +1 (rising), −1 (falling) or 0; got {reduction.direction!r}"
            )
        if isinstance(reduction, Crossings):
            if isinstance(reduction.most, bool) or not isinstance(reduction.most, int) or reduction.most < 1:
                raise ValueError(f"{name!r} needs most ≥ 1 crossings to keep; got {reduction.most!r}")
            events.append(Event(reduction.direction, reduction.most, False))
            kinds.append((name, "section"))
        else:
            events.append(Event(reduction.direction, 1, bool(reduction.stop)))
            kinds.append((name, "first"))
        functions.append((name, reduction.g))
    if len(events) > MOST_EVENTS:
        raise ValueError(f"at most {MOST_EVENTS} event functions in one run; got {len(events)}")
    return Watch(_traced(functions, system) if functions else None, tuple(events), tuple(kinds))


def _traced(functions: Sequence[tuple[str, Callable[..., Any]]], system: System) -> Program:
    """(t, q, p, params) ↦ g of all event functions."""
    from leastaction.trace import trace

    defaults = {name: np.asarray(value) for name, value in system.params.items()}
    places, start = {}, 0
    for name, value in defaults.items():
        places[name] = range(start, start + value.size)
        start += value.size
    B = Builder([("t", 1), ("q", system.n), ("p", system.n), ("params", start)])
    t, q, p, params = (B.input(name) for name, _ in B.inputs)
    results = []
    for name, g in functions:
        if not callable(g):
            raise TypeError(f"the event function of {name!r} must be a function g(q, p) or g(t, q, p); got {g!r}")
        try:
            wanted = {key: value for key, value in defaults.items() if key in inspect.signature(g).parameters}
        except (TypeError, ValueError):
            wanted = {}
        try:
            program = trace(g, system.n, {key: value.shape for key, value in wanted.items()}, takes_time(g, wanted))
        except TraceError as error:
            raise TraceError(f"the event function of {name!r}, g(q, p) or g(t, q, p): {error}") from error
        mine = [params[i] for key in wanted for i in places[key]]
        results.append(B.inline(program, t=t, q=q, v=p, params=mine)["L"][0])
    return B.build(g=results)
