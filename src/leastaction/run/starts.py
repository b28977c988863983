"""Where trajectories begin: initial data broadcast, completed and checked, for one or many, at any precision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import DegenerateLagrangianError
from leastaction.events import Watch
from leastaction.kernel import loops
from leastaction.numbers.rounding import Digits, Reals, all_finite
from leastaction.run.standing import Status
from leastaction.step.inputs import Inputs
from leastaction.step.status import GOING_WELL
from leastaction.systems.lagrangian import Lagrangian
from leastaction.systems.mechanics import check_start
from leastaction.systems.pace import STIFFNESS, Paced
from leastaction.systems.projection import check_starts
from leastaction.systems.protocol import System, mechanics
from leastaction.systems.sums import MOST_EXPANDED

TINY = float(np.finfo(float).tiny)
ROUNDED_ONCE = 40  # digits of numbers that are then rounded to float64

Numbers = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Starts:
    """Where B trajectories begin: q, p, v (B, n), parameters (B, …), and a status: some cannot begin at all.

    A linear system does not need v: its v is (B, 0).
    """

    q: NDArray[Any]
    p: NDArray[Any]
    v: NDArray[Any]
    params: NDArray[Any]
    status: NDArray[np.int8]
    inputs: Inputs | None = None

    def __len__(self) -> int:
        return len(self.q)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name, with a row for each trajectory."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "inputs"}

    def part(self, begin: int, end: int) -> Starts:
        """The starts of some trajectories; the part of all trajectories is this object."""
        if begin == 0 and end >= len(self):
            return self
        inputs = None if self.inputs is None else self.inputs.part(begin, end)
        return Starts(**{name: array[begin:end] for name, array in self.arrays().items()}, inputs=inputs)


def begin(
    system: System, reals: Reals, q0: Any, p0: Any, v0: Any, t0: Any, params: Mapping[str, Any] | None, many: bool,
    inputs: Inputs | None = None,
) -> Starts:  # fmt: skip
    """All trajectories' q, p, v and parameters; in an ensemble, the status marks a trajectory that cannot begin."""
    if p0 is None and v0 is None:
        raise ValueError("the start lacks its momenta or velocities: give p0= or v0=")
    if p0 is not None and v0 is not None:
        raise ValueError("give either p0= (momenta) or v0= (velocities), not both")
    name, given = ("p0", p0) if v0 is None else ("v0", v0)
    q, other = (_read(what, x, (system.n,), reals, many) for what, x in (("q0", q0), (name, given)))
    if many:
        q, other, table = _of_equal_size(q, other, _parameters(system, params, reals), inputs, reals)
    else:
        table = system.values(params, reals)[None]
    p, v = (other, None) if v0 is None else (None, other)
    driven = None if inputs is None else inputs.instant(reals.array(np.zeros(len(q))) + t0, np.arange(len(q)))
    p, v, status = _complete(system, reals, t0, q, p, v, table, many, driven)
    begins = status == GOING_WELL
    if not begins.any():
        raise DegenerateLagrangianError(
            "no trajectory of the ensemble can begin: ∂²L/∂v² is singular, or L or its derivatives are not finite, at "
            f"every initial state (the first is q = {q[0]}, p = {p[0]}). la.integrate on one of them says more."
        )
    if system.constraints is not None:
        check_starts(cast(Lagrangian, system), reals, t0, q[begins], v[begins], table[begins], name)
    return Starts(q, p, v, table, status, inputs)


def _complete(
    system: System, reals: Reals, t0: Any, q: NDArray[Any], p: NDArray[Any] | None, v: NDArray[Any] | None,
    params: NDArray[Any], many: bool, inputs: NDArray[Any] | None,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int8]]:  # fmt: skip
    """p, v and the status of all trajectories: in float64 of all at once, at more digits of one after the other."""

    def row(i: int) -> tuple[Any, ...]:
        given = (None if x is None else x[i] for x in (q, p, v, params))
        return (t0, *given) if inputs is None else (t0, *given, inputs[i])

    if not isinstance(reals, Digits):
        found = system.begin(t0, q, p, v, params, *([] if inputs is None else [inputs]))
        if not many and found[2][0] != GOING_WELL:
            system.check_start(*row(0))
        return found
    nothing, status = np.full(q.shape, reals.array(np.nan)[()]), np.full(len(q), GOING_WELL, np.int8)
    found_p, found_v = nothing.copy(), nothing
    for i in range(len(q)):
        try:
            found_p[i], found_v[i] = check_start(mechanics(system, params[i], reals), *row(i))
        except (DegenerateLagrangianError, ValueError) as error:
            if not many:
                raise
            degenerate = isinstance(error, DegenerateLagrangianError)
            status[i] = Status.SINGULAR if degenerate else Status.NOT_FINITE
    return found_p, found_v, status


def _read(name: str, value: Any, shape: tuple[int, ...], reals: Reals, many: bool) -> NDArray[Any]:
    """An array (B, *shape) of the trajectories of an ensemble, or (1, *shape) of one, or where one value serves all."""
    try:
        array = reals.array(value)
    except (TypeError, ValueError) as error:
        also = " or (B, …)" if many else ""
        raise TypeError(f"{name} must be numbers, of shape {shape}{also}; got {value!r} ({error})") from None
    if array.shape == shape or (shape == (1,) and array.ndim == 0):
        array = array.reshape(1, *shape)
    elif not many:
        raise ValueError(f"{name} must have shape {shape}, one entry per degree of freedom; got shape {array.shape}")
    elif shape == (1,) and array.ndim == 1:
        array = array[:, None]
    if array.shape[1:] != shape or len(array) == 0:
        raise ValueError(
            f"{name} must have shape {shape}, the same for all, or (B, {', '.join(map(str, shape))}); got {array.shape}"
        )
    for i, one in enumerate(array) if not all_finite(array) else ():
        if not all_finite(np.atleast_1d(one)):
            raise ValueError(f"{name} must be finite; {f'row {i} is' if many else 'got'} {one}")
    return array


def _parameters(system: System, params: Mapping[str, Any] | None, reals: Reals) -> dict[str, NDArray[Any]]:
    """Each parameter as (B, *shape) or (1, *shape), in the system's order."""
    shapes = {name: np.shape(value) for name, value in system.params.items()}
    for name in params or {}:
        if name not in shapes:
            raise ValueError(f"{system.name} has no parameter {name!r}; it has {sorted(shapes) or 'none'}")
    given = {**system.given, **(params or {})}
    return {name: _read(name, given[name], shape, reals, True) for name, shape in shapes.items()}


def _of_equal_size(
    q: NDArray[Any], other: NDArray[Any], values: Mapping[str, NDArray[Any]], inputs: Inputs | None, reals: Reals
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Positions, momenta or velocities, and parameters of an ensemble, a row for each trajectory."""
    blocks = {"q0": q, "p0 or v0": other, **values}
    sizes = {name: len(block) for name, block in blocks.items() if len(block) != 1}
    if inputs is not None and inputs.batch != 1:
        sizes["inputs"] = inputs.batch
    if len(set(sizes.values())) > 1:
        raise ValueError(f"the batch sizes differ: {sizes}; give B rows, or one set for all trajectories")
    size = next(iter(sizes.values()), 1)
    q, other, *flat = (np.broadcast_to(x, (size, *x.shape[1:])).reshape(size, -1) for x in blocks.values())
    table = np.concatenate([reals.array(np.zeros((size, 0))), *flat], axis=1)
    return np.ascontiguousarray(q), np.ascontiguousarray(other), table


def begin_paced(system: Paced, reals: Reals, starts: Starts, t0: Any, t_end: Any, many: bool) -> tuple[Starts, float]:
    """The same starts for a paced system: after q and p stand energy and time, or time and −energy. Also the least
    pace at the starts.
    """
    one, params = reals.array(np.ones(len(starts))), starts.params
    q, p, v, w = (np.asarray(x).astype(float) for x in (starts.q, starts.p, starts.v, params))
    if system.automatic:
        own = system.own(float(t0), q, p, v, _accelerations(system.of, float(t0), q, v, w), w)
        bad = np.flatnonzero(~(np.isfinite(own) & (own > 0)).all(axis=1) & (starts.status == GOING_WELL))
        if len(bad):
            raise ValueError(
                'pace="auto" takes the frequency of L at the start as its unit, and L has no frequency at q = '
                f"{starts.q[bad[0]]}: give pace= as a function of q"
            )
        params = np.concatenate([params, reals.array(own)], axis=1)
    if isinstance(reals, Digits):
        from leastaction.flint import evaluated

        sigma = np.full(len(starts), reals.array(np.nan)[()])
        for i in np.flatnonzero(starts.status == GOING_WELL):
            row = np.concatenate([one[:1] * t0, starts.q[i], starts.q[i] * 0])[None]
            sigma[i] = evaluated(system.sigma, row, params[i, : system.sigma.inputs[-1][1]], reals)[0, 0]
    else:
        sigma = system.paces(np.full(len(starts), t0), starts.q, params)
    begins = np.flatnonzero(starts.status == GOING_WELL)
    paces = sigma[begins]
    good = (paces > 0).astype(bool) & (paces < np.inf).astype(bool)
    if not good.all():
        i = begins[~good][0]
        raise ValueError(
            f"the pace must be a positive number everywhere; at the start{f' of trajectory {i}' if many else ''}, q = "
            f"{starts.q[i]}, it is σ = {float(sigma[i]):g}"
        )
    clock, energy = one * t0, _energies(system.of, reals, starts, t0, many)
    speeds, rest = starts.v * sigma[:, None], clock / 2**system.bits
    if system.clock.block == "q":
        stiff = reals.array(_stiffness(system, float(t0), q, p, v, w) * np.asarray(sigma).astype(float))
        clock, energy, rest, params = -energy, clock, sigma, np.column_stack([params, stiff])
    until = one * (t0 if t_end is None else t_end)
    q, p, v, params = (
        np.concatenate([x, y[:, None]], axis=1)
        for x, y in ((starts.q, energy), (starts.p, clock), (speeds, rest), (params, until))
    )
    return Starts(q, p, v, params, starts.status), max(float(paces.min()), TINY)


def _stiffness(system: Paced, t0: float, q: Any, p: Any, v: Any, params: Any) -> NDArray[np.float64]:
    """C/σ of each trajectory: a multiple of the energy W that its motion has at its start, or soon after; else of
    |p·v|; else of one.
    """
    if system.of.m:
        W = np.zeros(len(q))
    else:
        with np.errstate(all="ignore"):
            W = system.own(t0, q, p, v, _accelerations(system.of, t0, q, v, params), params)[:, 1]
    kinetic = np.abs(np.einsum("bi,bi->b", p, v))
    W = np.where(np.isfinite(W) & (W > 0), W, kinetic)
    return STIFFNESS * np.where(np.isfinite(W) & (W > 0), W, 1.0)


def _accelerations(system: Lagrangian, t0: Any, q: Any, v: Any, params: Any) -> NDArray[np.float64]:
    rows = zip(q, v, params, strict=True)
    return np.array([system.acceleration(one, speed, float(t0), values) for one, speed, values in rows])


def _energies(system: Lagrangian, reals: Reals, starts: Starts, t0: Any, many: bool) -> NDArray[Any]:
    """E of the starts; for a single run, E is rounded once: near a pericentre E is a small difference of large numbers,
    and its error becomes a drift in time.
    """
    if many and not isinstance(reals, Digits):
        return system.energies(np.full(len(starts), t0), starts.q, starts.p, starts.params)
    E = np.full(len(starts), reals.array(np.nan)[()])
    for i in np.flatnonzero(starts.status == GOING_WELL):
        arithmetic: Any = reals
        E[i] = _energy(system, arithmetic, *(tuple(x[i].tolist()) for x in (starts.q, starts.p, starts.params)), t0)
    return E


@lru_cache(maxsize=64)
def _energy(system: Lagrangian, reals: Any, q: Numbers, p: Numbers, params: Numbers, t0: Any) -> Any:
    """E of one start, rounded once; runs with other steps begin with the same E."""
    exact = reals if isinstance(reals, Digits) else Digits(ROUNDED_ONCE)
    at = mechanics(system, exact.array(np.array(params, object)), exact)
    E = at.energy(exact.array(q), exact.array(p), t0 + exact.array(0).item())
    return reals.array(np.asarray(E).item())[()]


def check_events_begin(watch: Watch, t0: Any, starts: Starts) -> None:
    """Refuse event functions that are NaN at the start of a trajectory, since their events would not be noticed. Refuse
    trajectories that begin behind a wall, by more than rounding.
    """
    if all(item.monotone for item in watch.items):
        return  # such a function is a time, which is always a number
    begins = np.flatnonzero(starts.status == GOING_WELL)
    states = np.concatenate([starts.q[begins], starts.p[begins]], axis=1).astype(float)
    if starts.q.shape[1] > MOST_EXPANDED:
        watch, columns = watch.narrow
        states = states[:, columns]
    state = np.concatenate([np.full((len(begins), 1), float(t0)), states], axis=1)
    params = starts.params[begins].astype(float)
    found = loops.evaluate(watch.bounds, np.concatenate([state, params, 1e-14 * np.abs(state)], axis=1))
    g, spread = np.split(found, 2, axis=1)
    for i, e in np.argwhere(np.isnan(g)):
        raise ValueError(
            f"the function of event {watch.items[e].name!r} is not a number at the start"
            f"{_which(starts, begins[i])}: its events could not be noticed"
        )
    walls = np.array([item.restitution is not None for item in watch.items])
    for i, e in np.argwhere((g < -spread) & walls):
        raise ValueError(
            f"the motion begins behind the wall of {watch.items[e].name!r}{_which(starts, begins[i])}, at g = "
            f"{g[i, e]:.3g}: an impact keeps it where g ≥ 0. Begin on that side, or give −g"
        )


def _which(starts: Starts, i: int) -> str:
    return "" if len(starts) == 1 else f" of trajectory {i}, q = {starts.q[i]}, p = {starts.p[i]}"
