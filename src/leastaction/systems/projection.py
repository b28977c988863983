"""States on the constraints: whether a state is on them, how far it is off, and the nearest state that is.

Distances are those of the mass M = ∂²L/∂v², in which q − q₀ and v − v₀ have the size of a kinetic energy. With G =
∂g/∂q a state that misses g = 0 by g and ġ = 0 by c is, to first order, nearest to

    q − K g,      v − K c,      K = M⁻¹Gᵀ (G M⁻¹Gᵀ)⁻¹ .
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.errors import ConstraintError
from leastaction.kernel import loops
from leastaction.numbers.rounding import Digits, Reals, all_finite, reals
from leastaction.program import Builder, Program
from leastaction.step.constraints import rate
from leastaction.systems.lagrangian import Lagrangian
from leastaction.systems.protocol import check_system
from leastaction.systems.sums import Sum
from leastaction.trace import jacobian

FloatArray = NDArray[np.float64]

ROUND_OFF = 64  # units in the last place of the terms of g and ġ, or of the state
SQUARED = 1e-150, 1e150  # sizes between which a number may be squared in float64, and divided by its square
DEPENDENT = 1e-10  # in parts of its length: what remains of a row of G that depends on others
INVOLVED = 1e-6  # smaller coefficients of a combination count as zero
NEAR_SINGULAR = 1 / 3  # below this part of its first value the smallest singular value of G's unit rows is near zero
BESIDE = 1e-3  # in parts of the state: how far away it is tested whether rows follow from others …
FOLLOWING = 1e-9  # … rows that follow miss zero there by at most this part of the size of their terms
RETURNS = 8  # Newton's iterations back to the other constraints
MOST_ITERATIONS, MOST_HALVINGS = 60, 30


def project(
    system: Lagrangian | Sum,
    q0: ArrayLike,
    v0: ArrayLike,
    *,
    t: Any = 0.0,
    params: Mapping[str, Any] | None = None,
    digits: int | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The state on the constraints that is nearest to (q0, v0), in the metric of the mass.

    q minimises (q − q0)·M (q − q0) over g(t, q) = 0, with M = ∂²L/∂v² at (q0, v0). Then v minimises (v − v0)·M (v −
    v0) over ∂g/∂q v + ∂g/∂t = 0, with M at q. `la.integrate` with ``q0=q, v0=v`` begins there.

    Parameters
    ----------
    system : Lagrangian or Sum
        A system with constraints.
    q0, v0 : array_like, shape (n,)
        Positions and velocities near the constraints.
    t : number, default 0
        The time, where constraints move.
    params : mapping, optional
        Values of parameters, in place of the defaults.
    digits : int, optional
        Decimal digits to which the state is to be consistent.

    Returns
    -------
    q, v : ndarray, shape (n,)

    Raises
    ------
    ConstraintError
        No state on the constraints was found near (q0, v0), or the constraints depend on each other there.

    Examples
    --------
    >>> import leastaction as la
    >>> def falling(q, v, g):
    ...     return 0.5 * (v @ v) - g * q[1]
    >>> rod = la.Lagrangian(falling, n=2, params={"g": 9.81}, constraints=lambda q: q @ q - 25)
    >>> q, v = la.project(rod, [3.3, -4.4], [1.0, 1.0])
    >>> q.round(12), v.round(12)
    (array([ 3., -4.]), array([1.12, 0.84]))
    """
    check_system(system)
    if not system.m:
        raise TypeError(
            f"project is for systems with constraints, as from la.Lagrangian(…, constraints=g); got {system!r}"
        )
    arithmetic = reals(digits)
    with arithmetic.working():
        values, time = system.values(params, arithmetic), arithmetic.array(t)[()]
        start = []
        for name, given in (("q0", q0), ("v0", v0)):
            array = arithmetic.array(given)
            if array.shape != (system.n,) or not all_finite(array):
                raise ValueError(f"{name} must be {system.n} finite numbers; got {given!r}")
            start.append(array)
        rough = [np.asarray(x, float) for x in (time, *start, values)]
        if system.constraints is None and not isinstance(arithmetic, Digits):
            return cast(Sum, system).project(rough[1], rough[2], float(rough[0]), rough[3])
        whole = system.expanded()
        near = _nearest(whole, *rough)
        if not isinstance(arithmetic, Digits):
            return near
        return _refined(whole, arithmetic, time, near, start, values)


def _nearest(
    system: Lagrangian, t: Any, q0: FloatArray, v0: FloatArray, values: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The nearest state in float64."""
    here = look_at_constraints(system, t, q0[None], v0[None], values[None])
    require_independent(system, here, t, q0, v0, values)
    M = here.M[0]
    q = q0
    miss = np.abs(here.g[0] / here.g_size[0]).max()
    for _ in range(MOST_ITERATIONS):
        # The nearest point of the constraints linearised at q: q0 + K (G (q − q0) − g).
        K, G, g = lift(M, here.G[0]), here.G[0], here.g[0]
        step = q0 + K @ (G @ (q - q0) - g) - q
        if _length(M, step) <= 4 * np.finfo(float).eps * _length(M, q):
            break
        for _ in range(MOST_HALVINGS):
            there = look_at_constraints(system, t, (q + step)[None], v0[None], values[None])
            found = np.abs(there.g[0] / there.g_size[0]).max()
            if found < miss or found <= ROUND_OFF * np.finfo(float).eps:
                break
            step = step / 2
        else:
            raise ConstraintError(
                f"no state on the constraints was found near q0 = {q0}: from q = {q}, g = {g.tolist()}, no step brings "
                "g nearer to zero. Begin nearer, or ask whether the constraints contradict each other"
            )
        q, here, miss = q + step, there, found
    if not miss <= ROUND_OFF * np.finfo(float).eps and not _small(here, "g"):
        raise ConstraintError(
            f"no state on the constraints was found near q0 = {q0}: at q = {q} they are still g = {here.g[0].tolist()}"
        )
    require_independent(system, here, t, q, v0, values)
    v = v0 - lift(here.M[0], here.G[0]) @ here.c[0]
    there = look_at_constraints(system, t, q[None], v[None], values[None])
    return q, v - lift(there.M[0], there.G[0]) @ there.c[0]


def _refined(
    system: Lagrangian,
    arithmetic: Digits,
    t: Any,
    near: tuple[FloatArray, FloatArray],
    start: list[NDArray[Any]],
    values: NDArray[Any],
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The nearest state to all digits: with the directions of float64, each step gains some fifteen digits."""
    here = look_at_constraints(system, float(t), near[0][None], near[1][None], np.asarray(values, float)[None])
    K = lift(here.M[0], here.G[0])
    q, v = start
    q, v = (x + arithmetic.array(y - np.asarray(x, float)) for x, y in zip(start, near, strict=True))
    for _ in range(arithmetic.digits // 8 + 4):
        q = q - K @ sizes_at(system, arithmetic, t, q, v, values)["g"]
    for _ in range(arithmetic.digits // 8 + 4):
        v = v - K @ sizes_at(system, arithmetic, t, q, v, values)["c"]
    return q, v


@dataclass(frozen=True, eq=False)
class Constrained:
    """The constraints at K states: g, c = ġ and the sizes of their terms, (K, m); G, (K, m, n); M, (K, n, n); the
    states themselves.
    """

    g: NDArray[Any]
    c: NDArray[Any]
    g_size: FloatArray
    c_size: FloatArray
    G: FloatArray
    M: FloatArray
    q: FloatArray
    v: FloatArray


@lru_cache(maxsize=32)
def sizes(constraints: Program) -> Program:
    """(t, q, v, params) ↦ g, c, G, and the sizes Σ_x |∂g/∂x x| and Σ_x |∂c/∂x x| over all variables x of g and c."""
    still, moving = jacobian(constraints, "t", "q", "params"), jacobian(rate(constraints), "t", "q", "v", "params")
    B = Builder(moving.inputs)
    given = {name: B.input(name) for name, _ in B.inputs}
    found = {}
    for name, program in (("g", still), ("c", moving)):
        at = B.inline(program, **{block: given[block] for block, _ in program.inputs})
        found[name], m = at[name], len(at[name])
        parts: list[list[int]] = [[] for _ in range(m)]
        for block, size in program.inputs:
            slopes = at[f"{name}_{block}"]
            for i in range(m):
                row = slopes[i * size : (i + 1) * size]
                parts[i] += [B.op("abs", B.mul(a, x)) for a, x in zip(row, given[block], strict=True)]
        found[f"{name}_size"] = [B.sum(part) for part in parts]
        if name == "g":
            found["G"] = at["g_q"]
    return B.build(**found)


def look_at_constraints(system: Lagrangian, t: Any, q: FloatArray, v: FloatArray, params: FloatArray) -> Constrained:
    """The constraints at K states with parameters (K, …), in float64."""
    assert system.constraints is not None
    K, n = q.shape
    at = np.concatenate([np.broadcast_to(np.asarray(t, float), K)[:, None], q, v, params], axis=1)
    program = sizes(system.constraints)
    values, mass = loops.evaluate(program, at), loops.evaluate(system.inertia.select("m_v"), at)
    found = {name: values[:, program.output_slice(name)] for name, _ in program.outputs}
    tiny = np.finfo(float).tiny
    return Constrained(
        found["g"], found["c"], found["g_size"] + tiny, found["c_size"] + tiny, found["G"].reshape(K, -1, n),
        mass.reshape(K, n, n), q, v,
    )  # fmt: skip


def sizes_at(
    system: Lagrangian, arithmetic: Digits, t: Any, q: NDArray[Any], v: NDArray[Any], values: NDArray[Any]
) -> dict[str, NDArray[Any]]:
    """g, c and their sizes at one state, at any precision."""
    from leastaction.flint import evaluated

    assert system.constraints is not None
    program = sizes(system.constraints)
    (row,) = evaluated(program, np.concatenate([[t], q, v])[None], values, arithmetic)
    return {name: row[program.output_slice(name)] for name, _ in program.outputs}


def lift(M: FloatArray, G: FloatArray) -> FloatArray:
    """K = M⁻¹Gᵀ (G M⁻¹Gᵀ)⁻¹: the shortest change of the state, in the metric of M, that changes g by one."""
    pulled = np.linalg.solve(M, G.T)
    return np.linalg.solve((G @ pulled).T, pulled.T).T


def _small(here: Constrained, name: str) -> bool:
    """Whether the distance of one state from g = 0, or from c = 0, is round-off of the state."""
    x, off = (here.q[0], here.g[0]) if name == "g" else (here.v[0], here.c[0])
    M, change = here.M[0], lift(here.M[0], here.G[0]) @ off
    return bool(_length(M, change) <= ROUND_OFF * np.finfo(float).eps * _length(M, x))


def _length(M: FloatArray, x: FloatArray) -> float:
    """A length of x in the metric of the sizes of M's entries, also for a mass that is not positive."""
    return float(np.sqrt(np.abs(x) @ np.abs(M) @ np.abs(x)))


def check_starts(
    system: Lagrangian, arithmetic: Reals, t: Any, q: NDArray[Any], v: NDArray[Any], params: NDArray[Any], given: str
) -> None:
    """Refuse states, (B, n) each, that are off the constraints by more than round-off, or at which the constraints
    depend on each other; `given` names what was given beside q0: "v0" or "p0".
    """
    rough = [np.asarray(x, float) for x in (t, q, v, params)]
    here = look_at_constraints(system, *rough)
    for k in np.flatnonzero(~_independent(here)).tolist():
        require_independent(system, _one(here, k), rough[0], rough[1][k], rough[2][k], rough[3][k])
    eps = ROUND_OFF * float(np.finfo(float).eps)
    seen = (np.abs(here.g) <= eps * here.g_size).all(axis=1) & (np.abs(here.c) <= eps * here.c_size).all(axis=1)
    for k in range(len(q)) if isinstance(arithmetic, Digits) else np.flatnonzero(~seen).tolist():
        one = _one(here, k)
        if isinstance(arithmetic, Digits):
            found = sizes_at(system, arithmetic, t, q[k], v[k], params[k])
            allowed = ROUND_OFF * arithmetic.array(f"1e{1 - arithmetic.digits}")[()]
            good = {name: bool((abs(found[name]) <= allowed * found[f"{name}_size"]).all()) for name in ("g", "c")}
        else:
            found = {"g": one.g[0], "c": one.c[0]}
            size = {"g": one.g_size[0], "c": one.c_size[0]}
            good = {name: bool((abs(x) <= eps * size[name]).all()) or _small(one, name) for name, x in found.items()}
        if not all(good.values()):
            off = {name: np.asarray(found[name], float) for name in good}
            which = "" if len(q) == 1 else f" of trajectory {k}"
            raise ConstraintError(_off(one, off, good, given, which, arithmetic))


@lru_cache(maxsize=32)
def _slopes(constraints: Program) -> Program:
    """(t, q, v, params) ↦ c, c_q, c_v = G."""
    return jacobian(rate(constraints), "q", "v")


def tangent_basis(system: Lagrangian, t: float, q: FloatArray, p: FloatArray, params: FloatArray) -> FloatArray:
    """Directions (dq, dp) tangent to g = 0 and ġ = 0 at (q, p), orthonormal, (2n, 2(n − m)); without constraints all.

    ġ = c(q, v(q, p)) changes by (c_q − G m_v⁻¹ m_q) dq + G m_v⁻¹ dp.
    """
    n, m = system.n, system.m
    if system.constraints is None:
        return np.eye(2 * n)
    v = system.velocity(q, p, t, params)
    row = np.concatenate([[t], q, v, params])[None]
    program = _slopes(system.constraints)
    at, inertia = loops.evaluate(program, row)[0], loops.evaluate(system.inertia, row)[0]
    c_q, G = (at[program.output_slice(name)].reshape(m, n) for name in ("c_q", "c_v"))
    m_q, m_v = (inertia[system.inertia.output_slice(name)].reshape(n, n) for name in ("m_q", "m_v"))
    pulled = np.linalg.solve(m_v.T, G.T).T  # G m_v⁻¹
    rows = np.block([[G, np.zeros((m, n))], [c_q - pulled @ m_q, pulled]])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.linalg.svd(rows)[2][2 * m :].T


def _one(here: Constrained, k: Any) -> Constrained:
    return Constrained(*(getattr(here, name)[k : k + 1] for name in here.__dataclass_fields__))


def _off(
    one: Constrained, off: dict[str, FloatArray], good: dict[str, bool], given: str, which: str, arithmetic: Reals
) -> str:
    """The message: which part of the start is off the constraints, and by how much."""
    K, parts = lift(one.M[0], one.G[0]), []
    digits = "" if arithmetic.digits is None else f", digits={arithmetic.digits}"
    if not good["g"]:
        change = -K @ off["g"]
        parts.append(
            f"q0{which} is off the constraints, g = {_numbers(off['g'])}: the nearest point on them is about "
            f"{_numbers(change)} away"
        )
    if not good["c"]:
        change = -K @ off["c"]
        parts.append(
            f"the velocity of {given}{which} leaves them, ∂g/∂q v + ∂g/∂t = {_numbers(off['c'])}: the nearest one that "
            f"does not differs by about {_numbers(change)}"
        )
    return "; ".join(parts) + f". Begin with q0, v0 = la.project(system, q0, v0{digits})"


def _numbers(x: FloatArray) -> str:
    return "[" + ", ".join(f"{value:.3g}" for value in x) + "]"


# ------------------------------------------------------------------------------------------ independence


def _unit_rows(here: Constrained) -> tuple[FloatArray, FloatArray]:
    """The rows of G in the metric of the mass, M^(−½)Gᵀ, each of length one, (K, m, n); and their lengths."""
    K, m, n = here.G.shape
    rows = np.empty((K, m, n))
    for k in range(K):
        try:
            rows[k] = np.linalg.solve(np.linalg.cholesky(here.M[k]), here.G[k].T).T
        except np.linalg.LinAlgError:  # a mass that is not positive has no metric
            rows[k] = here.G[k] / np.sqrt(np.abs(np.diag(here.M[k])) + np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(rows, axis=2)
    return rows / np.where(lengths > 0, lengths, 1.0)[:, :, None], lengths


def smallest(here: Constrained) -> FloatArray:
    """The smallest singular value of the rows of G, each of length one, at each state: zero where rows depend."""
    rows, _ = _unit_rows(here)
    finite = np.isfinite(rows).all(axis=(1, 2))
    found = np.zeros(len(rows))
    if finite.any():
        found[finite] = np.linalg.svd(rows[finite], compute_uv=False)[:, -1]
    return found


def _independent(here: Constrained) -> NDArray[np.bool_]:
    return smallest(here) > DEPENDENT


def dependent_rows(here: Constrained) -> list[tuple[int, list[int], FloatArray]]:
    """Rows that depend on earlier rows: (row, rows it depends on, the combination of all rows that is zero)."""
    rows, lengths = _unit_rows(here)
    found: list[tuple[int, list[int], FloatArray]] = []
    basis: list[int] = []
    for i, row in enumerate(rows[0]):
        chosen = rows[0][basis].T
        part = np.linalg.lstsq(chosen, row, rcond=None)[0] if basis else np.zeros(0)
        rest = row - chosen @ part if basis else row
        if np.linalg.norm(rest) > DEPENDENT:
            basis.append(i)
            continue
        combination = np.zeros(len(rows[0]))
        combination[i] = 1.0 / (lengths[0][i] or 1.0)
        involved = [k for k, x in zip(basis, part, strict=True) if abs(x) > INVOLVED]
        for k, x in zip(basis, part, strict=True):
            combination[k] = -x / lengths[0][k]
        found.append((i, involved, combination))
    return found


def require_independent(
    system: Lagrangian, here: Constrained, t: Any, q: FloatArray, v: FloatArray, params: FloatArray
) -> None:
    """Raise if constraints depend on each other at one state; the message says which rows, and a possible reason."""
    if not np.isfinite(here.G).all():
        raise ConstraintError(f"∂g/∂q is not finite at q = {q}: {here.G[0].tolist()}")
    for i, size in enumerate(np.abs(here.G[0]).max(axis=1)):
        if size and not SQUARED[0] < size < SQUARED[1]:
            raise ConstraintError(
                f"row {i} of ∂g/∂q is of the size {size:.1g}, whose square is beyond float64: divide that constraint "
                "by it"
            )
    rows = dependent_rows(here)
    if not rows:
        return
    parts = []
    for i, others, combination in rows:
        text = f"row {i} depends on row{'s' if len(others) > 1 else ''} {', '.join(map(str, others))}"
        if not others:
            text = f"row {i} does not change with q"
        gap, size = combination @ here.g[0], np.abs(combination) @ here.g_size[0]
        if abs(gap) > 1e-9 * size:
            text += f", and contradicts {'them' if len(others) > 1 else 'it' if others else 'zero'}"
        parts.append(text)
    if any("contradicts" in part for part in parts):
        advice = (
            "Constraints that no state can meet together, or that q0 is far from; leave out one, or begin elsewhere"
        )
    elif _follow(system, t, q, v, params, [i for i, _, _ in rows]):
        advice = "Leave out the rows that follow from others: λ is not determined with them"
    else:
        advice = (
            "Beside this state they are independent: it is a singular configuration of the mechanism, where its motion "
            "is not determined. Begin elsewhere"
        )
    raise ConstraintError(f"the constraints g depend on each other at q = {q}: {'; '.join(parts)}. {advice}")


def _follow(system: Lagrangian, t: Any, q: FloatArray, v: FloatArray, params: FloatArray, rows: list[int]) -> bool:
    """Whether rows that depend on the others at q hold wherever the others hold; tested at one such state beside q.

    Rows of mechanisms with more constraints than their mobility needs, such as Bricard's, do so: G has the same rank at
    all states of the mechanism, and a higher rank elsewhere.
    """
    unit = np.maximum(1.0, np.abs(q))
    others = [i for i in range(system.m) if i not in rows]
    beside = q + BESIDE * np.random.default_rng(0).standard_normal(system.n) * unit
    for _ in range(RETURNS):
        there = look_at_constraints(system, t, beside[None], v[None], params[None])
        beside = beside - unit * np.linalg.lstsq(there.G[0][others] * unit, there.g[0][others], rcond=None)[0]
    there = look_at_constraints(system, t, beside[None], v[None], params[None])
    return bool((np.abs(there.g[0]) <= FOLLOWING * there.g_size[0]).all())


def near_singular(system: Any, t: NDArray[Any], q: NDArray[Any], p: NDArray[Any], params: NDArray[Any]) -> str | None:
    """A note about a run that ends where constraints nearly depend on each other; None for other runs. The times and
    states are those of the run, from the first to the last.
    """
    if system.constraints is None:
        return None
    ends = [0, len(t) - 1]
    t, q, p, params = (np.asarray(x, float) for x in (t[ends], q[ends], p[ends], params))
    here = look_at_constraints(system, t, q, system.velocity(q, p, t, params), np.tile(params, (2, 1)))
    first, last = smallest(here)
    if not last < NEAR_SINGULAR * first:
        return None
    rows, _ = _unit_rows(here)
    null = np.abs(np.linalg.svd(rows[1].T)[2][-1])
    involved = np.flatnonzero(null > 0.1 * null.max()).tolist()
    return (
        f"rows {', '.join(map(str, involved))} of the constraints nearly depend on each other (the smallest singular "
        f"value of ∂g/∂q, its rows of length one, has come from {first:.2g} to {last:.2g}): a singular configuration, "
        "beyond which the motion is not determined"
    )
