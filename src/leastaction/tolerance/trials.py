"""The runs that a choice looks at: of one trajectory, or of many side by side. Both give a `Trial`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import StepFailed
from leastaction.events import Event, Impact
from leastaction.numbers.rounding import FLOAT64
from leastaction.results.assembly import execute
from leastaction.results.path import Path
from leastaction.run.advice import EPS
from leastaction.run.plan import number
from leastaction.run.starts import begin
from leastaction.systems.pace import AUTO, paced, worth_a_pace
from leastaction.systems.protocol import System
from leastaction.tolerance.constants import FEW, ITERATIONS, ROWS
from leastaction.tolerance.ladder import degree

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Trial:
    """A run of B trajectories, with K of its states each, the last one last.

    run      the Path or the Paths
    t, q     (B, K), (B, K, n)
    p        (B, K, n)
    ended    (B,) whether a trajectory has come to its end
    length   of time that was asked for
    h, steps, work    the step, the steps of one trajectory, and the instructions of all
    """

    run: Any
    t: FloatArray
    q: FloatArray
    p: FloatArray
    ended: NDArray[np.bool_]
    length: float
    h: float
    steps: int
    work: float

    @cached_property
    def size(self) -> FloatArray:
        """The size of each motion: the largest range of a coordinate; 1 at rest."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # trajectories that failed have no numbers
            ranges = np.nanmax(np.nanmax(self.q, axis=1) - np.nanmin(self.q, axis=1), axis=1)
        return np.where(ranges > 0, ranges, 1.0)

    @cached_property
    def v(self) -> FloatArray:
        system, params = self.run.system, [one.params for one in self._each]
        rows = zip(self.q, self.p, self.t, params, strict=True)
        found = [system.velocity(np.nan_to_num(q), np.nan_to_num(p), np.nan_to_num(t), w) for q, p, t, w in rows]
        return np.array(found, float)

    @property
    def _each(self) -> list[Path]:
        return [self.run] if isinstance(self.run, Path) else list(self.run)

    @property
    def strained(self) -> bool:
        """Whether steps take so many iterations that shorter ones cost less."""
        return int(self.run.stats.get("newton_iterations", 0)) > 10 * ITERATIONS * self.steps * len(self.q)

    def apart(self, other: Trial) -> FloatArray:
        """How far this run is from another one at the end, of the size of its motion: (B,), infinite if one failed."""
        found = self.differences(other)[:, -1]
        return np.where(self.ended & other.ended & np.isfinite(found), found, np.inf)

    def differences(self, other: Trial) -> FloatArray:
        """The same at all states that both have stored, (B, K). Runs with a pace, and runs that an event ends, are
        compared at the same times: the states of the other one are moved by its velocity.
        """
        K = min(self.t.shape[1], other.t.shape[1]) - 1
        mine, its = (np.r_[:K, one.t.shape[1] - 1] for one in (self, other))
        away, late = self.q[:, mine] - other.q[:, its], self.t[:, mine] - other.t[:, its]
        if np.any(np.abs(late) > 4 * EPS * np.abs(self.t[:, mine])):
            away = away - late[..., None] * other.v[:, its]
        found: FloatArray = np.abs(away).max(axis=2) / self.size[:, None]
        return found


class Trials:
    """Trajectories that can be run with any method, step and pace: one (`One`), or many (`Many`).

    given    the start, as the user gave it: q0, p0, v0
    events   of the user; those that change the motion belong to all runs
    """

    many = False

    def __init__(
        self,
        system: System,
        given: tuple[Any, Any, Any],
        t_end: Any,
        t0: Any,
        params: Mapping[str, Any] | None,
        pace: Any,
        events: Mapping[str, Event | Impact] | None,
    ) -> None:
        if t_end is None:
            raise ValueError("tol= bounds the error at the end of the run: give t_end=")
        self.system, self.given, self.params, self.pace, self.events = system, given, params, pace, events or {}
        self.t0, self.t_end = number("t0", t0), number("t_end", t_end)
        if self.t0 == self.t_end:
            raise ValueError(f"t_end must differ from the start, t0 = {self.t0:g}")
        self.starts = begin(system, FLOAT64, *given, self.t0, params, self.many)
        self.batch = len(self.starts)
        self.failure: Exception | None = None  # why the latest run of one trajectory came to nothing

    @property
    def length(self) -> float:
        return abs(self.t_end - self.t0)

    @property
    def decisive(self) -> dict[str, Event | Impact] | None:
        """The events on which the end of the run depends: walls, and events that stop it."""
        found = {name: one for name, one in self.events.items() if isinstance(one, Impact) or one.stop}
        return found or None

    @property
    def may_be_paced(self) -> bool:
        """Whether a pace that the library makes is worth a try."""
        return self.pace is None and self.system.has_tangent and worth_a_pace(self.system)

    def until(self, length: float) -> Trials:
        """The same trajectories until an earlier end."""
        found = copy(self)
        found.t_end = self.t0 + math.copysign(length, self.t_end - self.t0)
        return found

    @cached_property
    def _rate(self) -> float:
        """ω of the quickest of some trajectories; at least one over the length of the run."""
        starts, rate = self.starts, 1.0 / self.length
        for i in _some(np.flatnonzero(starts.status == 0), FEW):
            at = (self.t0, starts.q[i], starts.p[i], starts.v[i], starts.params[i], self.length)
            rate = max(rate, self.system.frequency(*at))
        return rate

    def first_step(self, pace: Any) -> float:
        """1/ω, in units of a pace of the user's own."""
        if pace is None or pace == AUTO:
            return 1.0 / self._rate
        at_pace = paced(self.system, pace, FLOAT64)
        unit = float(at_pace.paces(np.array([self.t0]), self.starts.q[:1], self.starts.params[:1])[0])
        return 1.0 / self._rate / (unit if math.isfinite(unit) and unit > 0 else 1.0)  # the run tells what is wrong

    def price(self, method: str, h: float) -> float:
        """The instructions that a run is expected to take before one has been made."""
        steps = math.ceil(self.length / h)
        return ITERATIONS * steps * self.iteration(degree(method)) * len(self.starts)

    def iteration(self, s: int, run: Any = None) -> float:
        """The instructions of one iteration of a step: the forces at s nodes, where a gradient costs up to four times
        its function, and sums over nodes; where constraints hold, the elimination of a matrix, sparse if it is large.
        """
        system = self.system if run is None or run.pace is None else run.pace.system
        rows = system.n + system.m
        width = rows if system.m and system.has_tangent else 1
        return float(s * 4 * system.instructions + 2 * s**2 * rows * width)

    def _work(self, run: Any, s: int, steps: int) -> float:
        """The instructions that a run has taken."""
        return self.iteration(s, run) * max(steps, int(run.stats.get("newton_iterations", 0)))

    def displaced(self) -> tuple[FloatArray, FloatArray]:
        """The starts, each number moved by one unit in its last place, up or down at random."""
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (2, self.system.n))
        return self.starts.q * (1 + EPS * signs[0]), self.starts.p * (1 + EPS * signs[1])

    def run(self, method: str, h: float, pace: Any, moved: bool = False, most: float = math.inf) -> Trial | None:
        """A run with this method; None if a step of all trajectories cannot be solved.

        moved    from the displaced start
        most     instructions after which a run with a pace may end, wherever it is
        """
        raise NotImplementedError

    def _kept(self, h: float) -> dict[str, Any]:
        """What trials store, and what happens to them."""
        rows = max(FEW, ROWS // (1 + self.starts.q.size // ROWS))  # about ROWS² numbers, at most
        return {"every": max(1, math.ceil(self.length / h) // rows), "events": self.decisive}

    def _signed(self, h: float) -> float:
        piece = self.system.longest_step(float(self.t0))
        return math.copysign(h if piece is None else piece / math.ceil(piece / h - 1e-9), self.t_end - self.t0)


class One(Trials):
    """One trajectory."""

    def run(self, method: str, h: float, pace: Any, moved: bool = False, most: float = math.inf) -> Trial | None:
        start = self.given
        if moved:
            q, p = self.displaced()
            start = (q[0], p[0], None)
        s = degree(method)
        steps = None if pace is None or math.isinf(most) else max(ROWS, int(most / (ITERATIONS * self.iteration(s))))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                path = execute(
                    self.system, method, start, h=self._signed(h), t_end=self.t_end, t0=self.t0, params=self.params,
                    pace=pace, most=steps, hasty=not self.system.has_tangent, **self._kept(h),
                )  # fmt: skip
            except (StepFailed, ArithmeticError, np.linalg.LinAlgError) as failure:
                self.failure = failure
                return None
            except ValueError as failure:
                if pace is self.pace:
                    raise
                self.failure = failure  # no pace can be made at this start
                return None
        if path.stats.get("interrupted"):
            raise KeyboardInterrupt
        t, q, p = (np.asarray(x, float)[None] for x in (path.t, path.q, path.p))
        done = int(path.stats.get("steps", len(path) - 1))
        ended = np.isfinite(q[:, -1]).all(axis=1) & np.array([steps is None or done < steps])
        return Trial(path, t, q, p, ended, self.length, abs(float(path.h)), done, self._work(path, s, done))

    def whole(self, method: str, h: float, pace: Any, **options: Any) -> Path:
        """The user's own run."""
        return execute(
            self.system, method, self.given, h=self._signed(h), t_end=self.t_end, t0=self.t0, params=self.params,
            pace=pace, **options,
        )  # fmt: skip


class Many(Trials):
    """Many trajectories, run by `runs`: (method, q0, p0, v0, params, h, t_end, pace, every, events) ↦ Paths."""

    many = True

    def __init__(self, *given: Any, runs: Callable[..., Any]) -> None:
        super().__init__(*given)
        self.runs, self.some = runs, np.arange(self.batch)

    def sample(self) -> Many:
        """Some of the trajectories. Those of linear systems stay together: factors of matrices are not divided."""
        if self.system.linear or len(self.some) <= FEW:
            return self
        found = copy(self)
        found.some = _some(self.some, FEW)
        some: dict[str, Any] = {name: x[found.some] for name, x in self.starts.arrays().items()}
        found.starts = replace(self.starts, **some)
        return found

    def run(self, method: str, h: float, pace: Any, moved: bool = False, most: float = math.inf) -> Trial | None:
        q0, p0, v0 = self.given
        params = self.params
        if moved:
            (q0, p0), v0 = self.displaced(), None
        elif len(self.some) < self.batch:
            q0, p0, v0 = self.starts.q, self.starts.p, None
        if len(self.some) < self.batch:
            named = [self.system.named(row) for row in self.starts.params]
            params = {name: np.array([one[name] for one in named]) for name in named[0]}
        start = {"q0": q0, "p0": p0, "v0": v0, "params": params, "t_end": self.t_end}
        paths = self.runs(method=method, h=self._signed(h), pace=pace, **start, **self._kept(h))
        ends = {name: np.asarray(paths.last[name], float)[:, None] for name in ("q", "p")}
        q, p = (np.concatenate([np.asarray(getattr(paths, name), float), ends[name]], axis=1) for name in ("q", "p"))
        t = np.broadcast_to(np.asarray(paths.t, float), (len(q), q.shape[1] - 1))
        t = np.concatenate([t, np.asarray(paths.end_time, float)[:, None]], axis=1)
        ended = ~np.asarray(paths.failed) & np.isfinite(q[:, -1]).all(axis=1)
        if not ended.any():
            return None
        done = int(paths.steps.max())
        work = self._work(paths, degree(method), done * len(q))
        return Trial(paths, t, q, p, ended, self.length, abs(float(paths.h)), done, work)


def _some(indices: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """So many of these, evenly."""
    return indices[np.unique(np.linspace(0, len(indices) - 1, count).astype(int))] if len(indices) else indices
