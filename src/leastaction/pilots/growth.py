"""How errors grow: from the tangent map D(t) of a pilot, carried by a cheaper member if that follows the motion."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.pilots.asked import Asked
from leastaction.pilots.lab import Lab, Pilot, apart
from leastaction.run.advice import EPS, Growth

FloatArray = NDArray[np.float64]

FOLLOWED = 1e-3  # a member may carry derivatives if its end of the pilot is right up to this
FEWEST, ROWS = 64, 512  # states of a pilot at which its derivative is looked at, at least and at most …
NUMBERS = 2**20  # … and the most numbers of it
BESIDE = 1e-8  # how far beside a motion another one begins, of its size …
TINY = 1e-30  # … and the least distance that counts
STEEPER = 8.0  # errors that grow more than so many times as much in a pilot's second half as in its first: exponential
ROUNDED = 4.0  # units in the last place: the rounding of the start and of the first steps
WALKED = 0.4  # units in the last place of what a step adds to the state: the standard deviation of its rounding …
ENDS = 16  # times in the second half of a pilot at which the walk of rounding may end
SURE = 3.0  # … and so many standard deviations of their sum are a bound


def followed(lab: Lab, known: Pilot, pace: Any, cheap: int) -> Any:
    """The same run by a `cheap` member if that follows the motion, or by that of the answer if only steps half as long
    of the cheap one do; with the longest steps that follow, but none longer than those with which the answer was
    sought; at ROWS of its states or fewer; with its derivative, if there is one.
    """
    s = lab.budget.at_hand(min(lab.asked.reference, cheap), pace)
    longest = min(known.steps / FEWEST, lab.coarsest(lab.asked.reference, pace) / known.h)
    halvings = range(math.floor(math.log2(max(longest, 1.0)) + 1e-9), -1, -1)
    tried = (lab.pilot(degree, 2**k * known.h, pace) for k in halvings for degree in (s, lab.asked.reference))
    one = next((x for x in tried if x is not None and _follows(x, known)), known)
    tangent = not lab.asked.linear and lab.asked.near is None
    numbers = (2 * lab.asked.n) ** (2 if tangent else 1)
    every = max(1, one.steps // max(1, min(ROWS, NUMBERS // numbers)))
    return lab.timed(one.s, one.h, lab.t_end, pace, every, tangent)[0]


def _follows(one: Pilot, known: Pilot) -> bool:
    """Whether a pilot follows the motion, without strain if its steps are longer than those of the answer."""
    return apart(one, known) <= FOLLOWED and (not one.strained or one.h < 1.5 * known.h)


def scales(path: Any) -> tuple[FloatArray, float]:
    """The sizes of positions and momenta, for each of the 2n numbers: the largest range of one in the pilot."""
    q, p = (np.asarray(x, float) for x in (path.q, path.p))
    sizes = [max(float(np.ptp(x, axis=0).max()), EPS * float(np.abs(x).max()), 1e-300) for x in (q, p)]
    return np.repeat(sizes, q.shape[1]), sizes[0]


@dataclass(frozen=True)
class Rounding:
    """What rounding makes of the positions at the end of the run: the rounding of the start, if the largest error that
    it was on the way may come again; one unit in the last place of the state at the worst time; what all runs have in
    common, one unit in the last place of the start and of E₀; and a bound of the walk of rounding in N steps, times √N.
    """

    largest: float = 0.0
    last: float = 0.0
    common: float = 0.0
    walk: float = 0.0

    def walked(self, steps: int) -> float:
        """A bound of the walk of rounding in so many steps."""
        return self.walk / math.sqrt(max(1, steps))


def growth_of(
    path: Any, spread: Spread, asked: Asked, tol: float, length: float, pilot: float
) -> tuple[Growth, Rounding, float]:
    """How errors grow from the end of the pilot on; what rounding makes of the end, and how long it stays below tol."""
    if asked.linear:
        return Growth(max(1.0, length / pilot)), Rounding(), length
    t = np.abs(np.asarray(path.t, float) - asked.t0)
    middle = int(np.searchsorted(t, t[-1] / 2))
    steeper = spread.size.max() / spread.size[: middle + 1].max()
    rate = math.log(steeper) / (t[-1] - t[middle]) if steeper > STEEPER else 0.0
    growth = Growth(max(1.0, length / pilot), rate)
    growth = replace(growth, factor=growth.over(length - pilot)) if rate else growth
    largest = float(spread.rounded.max()) * growth.factor
    # Beyond the pilot rounding is taken to grow like t: if it grows exponentially, two runs differ by as much.
    longer = max(1.0, length / pilot)
    rounding = Rounding(largest, spread.last * longer, spread.common * longer, spread.walk * longer**2)
    return growth, rounding, _until(t, np.maximum.accumulate(spread.rounded), tol, rate) if largest > tol else length


@dataclass(frozen=True, eq=False)
class Spread:
    """How far motions that begin close together come apart, at the stored states of a pilot.

    size      of the tangent map
    rounded   what the rounding of the start makes of positions
    last      what one unit in the last place of the state at the worst time makes of the positions at the end
    common    what such units of the start and of E₀ do, which are the same in all runs
    walk      what the rounding of all steps does, times the square root of their number
    """

    size: FloatArray
    rounded: FloatArray
    last: float
    common: float
    walk: float = 0.0


def spread_of(lab: Lab, path: Any, scale: FloatArray) -> Spread:
    """How far motions come apart: from the tangent map; where a run cannot carry it, from a run that begins beside."""
    asked = lab.asked
    if asked.linear:
        return Spread(np.ones(len(path.t)), np.zeros(len(path.t)), 0.0, 0.0)
    start = np.abs(np.concatenate([path.q[0], path.p[0]]).astype(float)) / scale
    if asked.near is not None:
        return _from_beside(lab, path, scale, float(start.max()))
    D = np.asarray(at_fixed_time(path), float) * scale[None, None, :] / scale[None, :, None]
    rounded = ROUNDED * EPS * (np.abs(D[:, : asked.n]) * start).max(axis=(1, 2))
    energy = float((EPS * _by_energy(path) / scale[: asked.n]).max())
    first = float(EPS * (np.abs(D[-1, : asked.n]) @ start).max())
    last, walk = _on_the_way(path, scale)
    return Spread(np.abs(D).max(axis=(1, 2)), rounded, max(last, energy), max(first, energy), walk)


def _from_beside(lab: Lab, path: Any, scale: FloatArray, start: float) -> Spread:
    """From one motion that begins BESIDE, in all coordinates by as much: a random direction has a part of every other
    one. Any unit in the last place is taken to grow as this step does from then on.
    """
    asked = lab.asked
    assert asked.near is not None
    step = BESIDE * scale * np.random.default_rng(0).choice([-1.0, 1.0], 2 * asked.n)
    every = max(1, math.ceil(int(path.stats["steps"]) / (len(path.t) - 1)))
    other = lab.counted(asked.near, step, path.method.name, float(path.h), lab.t_end, every)
    away = [np.abs(np.asarray(a, float) - np.asarray(b, float)) for a, b in ((path.q, other.q), (path.p, other.p))]
    size = np.maximum(np.concatenate(away, axis=1) / scale, TINY).max(axis=1) / BESIDE
    states = np.abs(np.concatenate([path.q, path.p], axis=1).astype(float) / scale).max(axis=1)
    worst = EPS * float((states * size[-1] / size).max())
    return Spread(size, ROUNDED * EPS * start * size, worst, EPS * start * float(size[-1]))


def _until(t: FloatArray, rounded: FloatArray, tol: float, rate: float) -> float:
    """How long a growing error stays below tol. Its growth is exponential between two states; and beyond the last one,
    where it has a rate: else the error grows like t.
    """
    over = np.flatnonzero(rounded > tol)
    if not len(over):
        return float(t[-1] + math.log(tol / rounded[-1]) / rate if rate else t[-1] * tol / rounded[-1])
    k = int(over[0])
    if k == 0:
        return 0.0
    part = math.log(tol / rounded[k - 1]) / math.log(rounded[k] / rounded[k - 1])
    return float(t[k - 1] + part * (t[k] - t[k - 1]))


def at_fixed_time(path: Any) -> Any:
    """∂(q, p)/∂(q₀, p₀) at the stored times.

    With a pace the run's own derivative is taken at fixed s and E. The state at a fixed time also changes with E(q₀,
    p₀), and along the motion with the time.
    """
    if path.pace is None:
        return path.tangent
    whole, n, (state, clock, E) = path.pace.tangent, path.system.n, _places(path)
    along, pull = _rates(path)
    gradient = np.concatenate([-pull[0], along[0, :n]])
    if clock < E:  # the last momentum is −E
        gradient = -gradient
    free = whole[:, state[:, None], state] + whole[:, state, E, None] * gradient
    later = whole[:, clock, state] + whole[:, clock, E, None] * gradient
    return free - along[:, :, None] * later[:, None, :]


def _places(path: Any) -> tuple[Any, int, int]:
    """Where the state of a run with a pace has q and p, the time, and E."""
    n = path.system.n
    E, clock = (2 * n + 1, n) if path.pace.system.clock.block == "q" else (n, 2 * n + 1)
    return np.r_[0:n, n + 1 : 2 * n + 1], clock, E


def _rates(path: Any) -> tuple[FloatArray, FloatArray]:
    """(dq/dt, dp/dt) at the stored times, without the forces of constraints, and ∂L/∂q."""
    system = path.system
    v = system.velocity(path.q, path.p, path.t, path.params)
    pull = system._evaluate(system.gradient, path.q, v, path.t, path.params)["Lq"]
    force = pull + system.external_force(path.q, v, path.t, path.params)
    return np.concatenate([v, force], axis=1).astype(float), pull


def _on_the_way(path: Any, scale: FloatArray) -> tuple[float, float]:
    """What rounding at later times makes of the positions at the end, by C D(T) D(t)⁻¹: one unit in the last place of
    the state at the worst time; and the rounding of all steps, times the square root of their number N.

    Steps carry what sums of the state round away. So a step rounds what it adds, ż Δt, and these errors are as good as
    random:

        σ² = Σ_k |C D(T) D(t_k)⁻¹ WALKED ε ż Δt|².

    D is the tangent map of the run, with a pace that of (q, E₀, p, t) at fixed s, and C takes positions at fixed time,
    δq − v δt. D is symplectic, so that D⁻¹ is made of its transposed blocks. Where forces act or constraints hold, D(t)
    is taken in place of D(T) D(T − t)⁻¹, as if the motion came back to itself, and of the state the start alone is
    looked at.
    """
    n, t = path.system.n, np.asarray(path.t, float)
    along, state = _rates(path)[0], np.concatenate([path.q, path.p], axis=1).astype(float)
    D = np.asarray((path if path.pace is None else path.pace).tangent, float)
    moved = D[:, :n]
    if path.pace is not None:
        places, clock, _ = _places(path)
        moved = moved - along[:, :n, None] * D[:, None, clock]
        along, state = _placed(along, 1.0, D, places, clock), _placed(state, t, D, places, clock)
    moved, state = moved / scale[:n, None], np.abs(state)
    added = (along * np.gradient(t)[:, None]) ** 2  # between two stored states
    if path.system.forced or path.system.m:
        last, walked = (np.abs(moved[-1]) @ state[0]).max(), len(t) * np.einsum("tij,tj->i", moved**2, added).max()
        return EPS * float(last), SURE * WALKED * EPS * math.sqrt(walked)
    turned, m = D.transpose(0, 2, 1), D.shape[1] // 2
    inverse = np.block([[turned[:, m:, m:], -turned[:, m:, :m]], [-turned[:, :m, m:], turned[:, :m, :m]]])
    with np.errstate(over="ignore", invalid="ignore"):  # errors may grow beyond all numbers
        last, walked = np.einsum("tij,tj->ti", np.abs(moved[-1] @ inverse), state).max(), 0.0
        for k in np.unique(np.linspace(len(t) / 2, len(t) - 1, ENDS).astype(int)):
            one = np.einsum("tij,tj->i", (moved[k] @ inverse[: k + 1]) ** 2, added[: k + 1]).max()
            walked = max(walked, (k + 1) * _number(one) * float((t[-1] - t[0]) / (t[k] - t[0])) ** 4)
    return EPS * _number(last), SURE * WALKED * EPS * math.sqrt(walked)


def _number(x: Any) -> float:
    """This number; infinity where a product of numbers that overflow is none."""
    return math.inf if np.isnan(x) else float(x)


def _placed(state: FloatArray, clock: Any, D: FloatArray, places: Any, at: int) -> FloatArray:
    """Rows of (q, p) as a run with a pace has them, with this time; there is nothing of E."""
    whole = np.zeros(D.shape[:2])
    whole[:, places], whole[:, at] = state, clock
    return whole


def _by_energy(path: Any) -> FloatArray:
    """|E₀ ∂q/∂E₀| at the end of a run with a pace, at fixed time and start: E₀ is rounded once, for all runs alike."""
    n = path.system.n
    if path.pace is None or path.pace.system.clock.block == "q":
        return np.zeros(n)
    _, clock, E = _places(path)
    whole, v = np.asarray(path.pace.tangent[-1], float), path.system.velocity(path.q, path.p, path.t, path.params)[-1]
    return np.abs(float(path.pace.q[-1, n]) * (whole[:n, E] - v * whole[clock, E]))
