"""Dense output: the motion between stored states, by solving the steps wanted once more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.backends.stepper import PolynomialStepper, Start, Stepper, stepper
from leastaction.lagrangian import Lagrangian
from leastaction.linear import Quadratic
from leastaction.linear.stepper import LinearStepper
from leastaction.methods import Galerkin
from leastaction.numbers.rounding import Digits, all_finite

if TYPE_CHECKING:
    from leastaction.path import Path

Reals = NDArray[Any]  # float64, or mpmath numbers


def positions(path: Path, t: Reals) -> Reals:
    """q(t), shape t.shape + (n,)."""
    if not all_finite(t):
        raise ValueError("path(t) needs finite times")
    times = t.ravel()
    begin, end = path.t[0], path.t[-1]
    slack = 1e-9 * max(abs(path.h), abs(begin), abs(end))
    outside = (times < min(begin, end) - slack) | (times > max(begin, end) + slack)
    if outside.any():
        asked = float(times[outside][0])
        raise ValueError(f"the path covers t = {float(begin):g} … {float(end):g}; asked for t = {asked:g}")
    n = path.system.n
    if len(path) == 1 or not times.size:
        return np.broadcast_to(path.q[0], (*t.shape, n)).copy()
    steps = round(float((end - begin) / path.h))
    place = (times - begin) / path.h
    index = np.clip(_floor(place), 0, steps - 1)
    wanted, inverse = np.unique(index, return_inverse=True)
    left = _states(path, wanted)
    tau = place - index
    if isinstance(path.method, Galerkin):
        result = _polynomial(path, path.method, wanted, left, inverse, tau)
    else:
        right = _states(path, wanted + 1)
        result = _hermite(path, wanted, left, right, inverse, tau)
    return result.reshape(*t.shape, n)


def _floor(x: Reals) -> NDArray[np.int64]:
    if x.dtype == object:
        return np.array([int(mpmath.floor(value)) for value in x], dtype=np.int64)
    return np.floor(x).astype(np.int64)


def _states(path: Path, wanted: NDArray[np.int64]) -> Reals:
    """States (q, p) after the given numbers of steps, integrating again from the stored ones in between."""
    n = path.system.n
    stored = np.concatenate([path.q, path.p], axis=1)
    row = np.minimum(wanted // path.every, len(path) - 1)
    exact = np.rint(((path.t[row] - path.t[0]) / path.h).astype(float)).astype(np.int64)
    last = round(float((path.t[-1] - path.t[0]) / path.h))
    result = stored[row].copy()
    result[wanted == last] = stored[-1]
    behind = np.flatnonzero((wanted > exact) & (wanted != last))
    for r in np.unique(row[behind]):
        mine = behind[row[behind] == r]
        ahead = int((wanted[mine] - exact[mine]).max())
        rows = np.empty((ahead, 2 * n), stored.dtype)
        _stepper_from(path, path.t[r], path.q[r], path.p[r]).advance(ahead, 1, ahead, rows)
        result[mine] = rows[wanted[mine] - exact[mine] - 1]
    return result


def _stepper_from(path: Path, t: Any, q: Reals, p: Reals) -> Stepper:
    if isinstance(path.system, Quadratic) and path.digits is None:
        return LinearStepper(path.system, path.method, t, q, p, path.h, allow_unstable=True)
    v = path.mechanics.velocity(q, p, t, path.params)
    start = Start(t, q, p, v, path.h, path.system.values(path.params, path.reals))
    if isinstance(path.reals, Digits):
        from leastaction.backends import flint

        return flint.stepper(path.mechanics, path.method, start)
    assert isinstance(path.system, Lagrangian)
    return stepper(path.system, path.method, start)


def _polynomial(
    path: Path,
    method: Galerkin,
    wanted: NDArray[np.int64],
    left: Reals,
    inverse: NDArray[np.intp],
    tau: Reals,
) -> Reals:
    """q_k + Σ_ν z^ν l_ν(τ) on each step."""
    n = path.system.n
    t = path.t[0] + wanted * path.h
    starts = np.ascontiguousarray(np.concatenate([t[:, None], left], axis=1))
    solver = cast(PolynomialStepper, _stepper_from(path, t[0], left[0, :n], left[0, n:]))
    z, solved = solver.polynomials(starts)
    if solved < len(starts):
        raise ArithmeticError(f"the step at t = {float(t[solved]):g} could not be solved again for dense output")
    d = method.table.d if path.digits is None else np.array(method.exact_table(path.digits)["d"], dtype=object)
    basis = lagrange(d, tau)[:, 1:]
    return left[inverse, :n] + np.einsum("kv,kvi->ki", basis, z[inverse])


def lagrange(d: Reals, x: Reals) -> Reals:
    """l_ν(x) for every x, (len(x), len(d))."""
    columns = []
    for v in range(len(d)):
        others = np.delete(d, v)
        columns.append(np.prod((x[:, None] - others) / (d[v] - others), axis=1))
    return np.stack(columns, axis=1)


def _hermite(
    path: Path,
    wanted: NDArray[np.int64],
    left: Reals,
    right: Reals,
    inverse: NDArray[np.intp],
    tau: Reals,
) -> Reals:
    """The cubic through positions and velocities at both ends of each step."""
    n, h = path.system.n, path.h
    t = path.t[0] + wanted * h
    v_left = path.mechanics.velocity(left[:, :n], left[:, n:], t, path.params)[inverse]
    v_right = path.mechanics.velocity(right[:, :n], right[:, n:], t + h, path.params)[inverse]
    q_left, q_right = left[inverse, :n], right[inverse, :n]
    x = tau[:, None]
    return (
        q_left
        + (3 * x**2 - 2 * x**3) * (q_right - q_left)
        + h * (x - 2 * x**2 + x**3) * v_left
        + h * (x**3 - x**2) * v_right
    )
