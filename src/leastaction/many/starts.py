"""Initial data of many trajectories: broadcast, completed and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.backends import points
from leastaction.errors import DegenerateLagrangianError
from leastaction.lagrangian import Lagrangian, equilibrated
from leastaction.many.job import Job, Start, Status
from leastaction.numbers.rounding import FLOAT64

FloatArray = NDArray[np.float64]


def starts(
    system: Lagrangian,
    q0: ArrayLike,
    p0: ArrayLike | None,
    v0: ArrayLike | None,
    t0: float,
    params: Mapping[str, Any] | None,
) -> Start:
    """All trajectories' q, p, v and parameters; one that cannot begin is marked by its status."""
    if (p0 is None) == (v0 is None):
        raise ValueError("give either p0= (momenta) or v0= (velocities), not both")
    n = system.n
    q, other = _block("q0", q0, (n,)), _block("v0" if p0 is None else "p0", v0 if p0 is None else p0, (n,))
    values = _parameters(system, params)
    sizes = {
        name: len(block)
        for name, block in {"q0": q, "p0 or v0": other, **values}.items()
        if block.ndim and len(block) != 1
    }
    if len(set(sizes.values())) > 1:
        raise ValueError(f"the batch sizes differ: {sizes}; give B rows, or one set for all trajectories")
    size = next(iter(sizes.values()), 1)
    flat = [np.broadcast_to(block, (size, *block.shape[1:])).reshape(size, -1) for block in values.values()]
    table = np.ascontiguousarray(np.concatenate([np.zeros((size, 0)), *flat], axis=1))
    q, other = (np.ascontiguousarray(np.broadcast_to(block, (size, n))) for block in (q, other))
    t = np.full(size, t0)
    status = np.full(size, Status.COMPLETE, np.int8)
    if p0 is None:
        v = other
        p = _at(system, "Lv", t, q, v, table)
    else:
        p = other
        v, found = velocities(system, t, q, p, table)
        status[~found] = Status.SINGULAR
    a, regular = _accelerations(system, t, q, v, table)
    status[~regular] = Status.SINGULAR
    status[~(np.isfinite(p).all(axis=1) & (np.isfinite(a).all(axis=1) | ~regular))] = Status.NOT_FINITE
    if (status != Status.COMPLETE).all():
        raise DegenerateLagrangianError(
            f"no trajectory of the ensemble can begin: ∂²L/∂v² is singular, or L or its derivatives are not finite, "
            f"at every initial state (the first is q = {q[0]}, p = {p[0]}). la.integrate on one of them says more."
        )
    return Start(q, p, v, table, status)


def velocities(
    system: Lagrangian, t: FloatArray, q: FloatArray, p: FloatArray, params: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """v(t, q, p) at many points, each with its own parameters, and where there is one; NaN elsewhere."""
    v, found = np.full(q.shape, np.nan), np.zeros(len(q), bool)
    begin = 0
    while begin < len(q):
        rest = slice(begin, None)
        part, failed = points.velocities(system.node, system.n, t[rest], q[rest], p[rest], params[rest])
        end = len(q) if failed is None else begin + failed
        v[begin:end], found[begin:end] = part[: end - begin], True
        begin = end + 1
    return v, found


def energies(system: Lagrangian, t: FloatArray, q: FloatArray, p: FloatArray, params: FloatArray) -> FloatArray:
    """E = p·v − L at many points, each with its own parameters."""
    v, _ = velocities(system, t, q, p, params)
    return np.einsum("ki,ki->k", p, v) - _at(system, "L", t, q, v, params)[:, 0]


def _at(system: Lagrangian, name: str, t: FloatArray, q: FloatArray, v: FloatArray, params: FloatArray) -> FloatArray:
    rows = np.concatenate([t[:, None], q, v, params], axis=1)
    return points.evaluate(system.hessian.select(name), rows)


def _accelerations(
    system: Lagrangian, t: FloatArray, q: FloatArray, v: FloatArray, params: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The Euler–Lagrange acceleration, and where ∂²L/∂v² has full rank after scaling rows and columns."""
    n, size = system.n, len(q)
    rows = np.concatenate([t[:, None], q, v, params], axis=1)
    values = points.evaluate(system.point, rows)
    blocks = {name: values[:, system.point.output_slice(name)] for name, _ in system.point.outputs}
    Lqv, Lvv = blocks["Lqv"].reshape(size, n, n), blocks["Lvv"].reshape(size, n, n)
    force = blocks["Lq"] - np.einsum("bkj,bk->bj", Lqv, v) - blocks["Lvt"]
    usable = np.isfinite(Lvv).all(axis=(1, 2)) & (np.abs(Lvv).max(axis=2) > 0).all(axis=1)
    safe = np.where(usable[:, None, None], Lvv, np.eye(n))
    regular = usable & (np.linalg.matrix_rank(equilibrated(safe)) == n)
    a = np.linalg.solve(np.where(regular[:, None, None], safe, np.eye(n)), force[:, :, None])[:, :, 0]
    return a, regular | ~np.isfinite(Lvv).all(axis=(1, 2))


def _block(name: str, value: Any, shape: tuple[int, ...]) -> FloatArray:
    """An array (B, *shape), or (1, *shape) where one value serves all."""
    try:
        array = FLOAT64.array(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numbers, of shape {shape} or (B, …); got {value!r} ({error})") from None
    if array.shape == shape or (shape == (1,) and array.ndim == 0):
        array = array.reshape(1, *shape)
    elif shape == (1,) and array.ndim == 1:
        array = array[:, None]
    if array.shape[1:] != shape or len(array) == 0:
        raise ValueError(
            f"{name} must have shape {shape}, the same for all, or (B, {', '.join(map(str, shape))}); got {array.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(array).reshape(len(array), -1).all(axis=1))
    if len(bad):
        raise ValueError(f"{name} must be finite; row {bad[0]} is {array[bad[0]]}")
    return array


def _parameters(system: Lagrangian, params: Mapping[str, Any] | None) -> dict[str, FloatArray]:
    """Each parameter as (B, *shape) or (1, *shape), in the system's order."""
    defaults = {name: np.asarray(value, float) for name, value in system.params.items()}
    for name in params or {}:
        if name not in defaults:
            raise ValueError(f"{system.name} has no parameter {name!r}; it has {sorted(defaults) or 'none'}")
    given = {**defaults, **(params or {})}
    return {name: _block(name, given[name], default.shape) for name, default in defaults.items()}


def check_events(job: Job, start: Start) -> None:
    """Refuse event functions that are not a number where a trajectory begins: its crossings would not be noticed."""
    program = job.plan.program
    if program is None:
        return
    begins = np.flatnonzero(start.status == Status.COMPLETE)
    t = np.full((len(begins), 1), job.t0)
    g = points.evaluate(program, np.concatenate([t, start.q[begins], start.p[begins], start.params[begins]], axis=1))
    if np.isnan(g).any():
        i, e = np.argwhere(np.isnan(g))[0]
        name = [name for name, kind in job.plan.kinds if kind != "energy"][e]
        raise ValueError(
            f"the event function of {name!r} is not a number at the start of trajectory {begins[i]}, q = "
            f"{start.q[begins[i]]}, p = {start.p[begins[i]]}: its crossings could not be noticed"
        )
