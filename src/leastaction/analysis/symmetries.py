"""Noether: every affine point symmetry q ↦ q + ε (A q + b) of a Lagrangian, found from L itself.

L is invariant where, at every (t, q, v),

    L_q · (A q + b) + L_v · (A v) = 0,

which is linear in the n² + n numbers A, b: at random points it is a linear system, whose null space is the Lie algebra
of the symmetries. Each one conserves its momentum map J = p · (A q + b), and a variational integrator conserves J too
(Ober-Blöbaum and Saake 2014, section 4.1). If L does not depend on t, the energy is conserved, though by the exact
motion only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction import looks
from leastaction.analysis.conservation import Conservation, check
from leastaction.analysis.figures import matrix_plot
from leastaction.analysis.generators import describe, readable_basis
from leastaction.backends import points
from leastaction.lagrangian import Lagrangian
from leastaction.path import Path

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]

MOST_DEGREES = 40  # n² + n unknowns, found by a dense singular value decomposition
ZERO = 1e-11  # singular values up to this, relative to the largest, belong to symmetries …
DEFINITE = 1e-8  # … and from this on they do not; in between it cannot be told
SURE = 1e-10  # relative residual on fresh points


@dataclass(frozen=True, eq=False)
class Symmetry:
    """L is invariant under q ↦ q + ε (A q + b)."""

    name: str
    A: FloatArray
    b: FloatArray

    def momentum(self, q: ArrayLike, p: ArrayLike) -> FloatArray:
        """The conserved momentum map J = p · (A q + b), at one state (n,) or many (K, n)."""
        Q, P = np.asarray(q, float), np.asarray(p, float)
        return np.einsum("...i,...i->...", P, Q @ self.A.T + self.b)

    @property
    def formula(self) -> str:
        """J written out; momenta with the same factor are taken together."""
        factors: dict[tuple[str, str], list[str]] = {}
        for i in range(len(self.b)):
            inside = [_term(self.A[i, j], f"q{j}") for j in range(len(self.b)) if self.A[i, j] != 0]
            inside += [_term(self.b[i], "")] if self.b[i] != 0 else []
            if inside:
                key = inside[0] if len(inside) == 1 else ("+", f"({_joined(inside)})")
                factors.setdefault(key, []).append(f"p{i}")
        terms = []
        for (sign, factor), momenta in factors.items():
            together = momenta[0] if len(momenta) == 1 else f"({' + '.join(momenta)})"
            if factor != "1":
                terms.append((sign, f"{factor} {together}"))
            else:
                terms.extend((sign, momentum) for momentum in momenta)
        return _joined(sorted(terms, key=lambda term: term[0] == "−"))

    def __repr__(self) -> str:
        return f"{self.name}: J = {self.formula}"


@dataclass(frozen=True, eq=False)
class Symmetries:
    """The affine point symmetries of a system, a basis of them. Iterates over them.

    energy   whether L does not depend on time, so that the energy is conserved
    """

    system: Lagrangian
    generators: tuple[Symmetry, ...]
    energy: bool

    def __iter__(self) -> Iterator[Symmetry]:
        return iter(self.generators)

    def __len__(self) -> int:
        return len(self.generators)

    def __getitem__(self, index: int) -> Symmetry:
        return self.generators[index]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(symmetry.name for symmetry in self.generators)

    def check(self, path: Path) -> Conservation:
        """Which of them the run preserved, and how well."""
        return check(self, path)

    def plot(self, ax: Axes | None = None) -> Axes:
        """The generators, a row each: the entries of A and b in q ↦ q + ε(Aq + b)."""
        n = self.system.n
        columns = [f"$A_{{{i}{j}}}$" for i in range(n) for j in range(n)] + [f"$b_{{{i}}}$" for i in range(n)]
        rows = [np.concatenate([symmetry.A.ravel(), symmetry.b]) for symmetry in self.generators]
        values = np.array(rows).reshape(len(rows), n * n + n)
        return matrix_plot(values, list(self.names), columns, f"affine symmetries of {self.system.name}", ax)

    def __repr__(self) -> str:
        lines = [f"  {symmetry!r}" for symmetry in self.generators] or ["  no affine point symmetry"]
        lines.append("  invariance in time: energy" if self.energy else "  L depends on time: energy is not conserved")
        return f"Symmetries of {self.system.name}\n" + "\n".join(lines)


def symmetries(
    system: Lagrangian,
    *,
    params: Mapping[str, Any] | None = None,
    scale: float = 1.0,
    around: ArrayLike | None = None,
    seed: int = 0,
) -> Symmetries:
    """Every affine point symmetry of the system, from L at random points.

    scale    typical size of the coordinates, from which points are drawn
    around   a configuration near which L is defined, where that is not so near the origin

    >>> def kepler(q, v):
    ...     return 0.5 * (v @ v) + 1 / np.sqrt(q @ q)
    >>> symmetries(Lagrangian(kepler, n=2))
    Symmetries of kepler
      rotation in the plane (q0, q1): J = q0 p1 − q1 p0
      invariance in time: energy
    """
    if not isinstance(system, Lagrangian):
        raise TypeError(f"expected a system, as from la.Lagrangian(fn, n=…); got {system!r}")
    if system.n > MOST_DEGREES:
        raise ValueError(
            f"{system.name} has n = {system.n} degrees of freedom, {system.n**2 + system.n} unknowns; "
            f"symmetries are sought up to n = {MOST_DEGREES}"
        )
    sampler = _Sampler(system, system.values(params), float(scale), around, np.random.default_rng(seed))
    null = _null_space(sampler)
    pairs = readable_basis(null, system.n)
    fresh = sampler.conditions(4 * (system.n**2 + system.n) + 40)
    translations = np.array([b for A, b in pairs if not A.any()]).reshape(-1, system.n)
    found = []
    for A, b in pairs:
        x = np.concatenate([A.ravel(), b / sampler.scale])
        residual = np.abs(fresh @ x).max() / np.abs(x).max()
        if residual > SURE:
            raise ArithmeticError(
                f"a symmetry found at some random points of {system.name} does not hold at others (by {residual:.1e}): "
                "L is perhaps defined piecewise. Draw points where it is smooth with around= and scale=."
            )
        found.append(Symmetry(describe(A, b, translations), A, b))
    return Symmetries(system, tuple(found), sampler.autonomous())


class _Sampler:
    """Rows of the invariance condition at random points."""

    def __init__(
        self, system: Lagrangian, values: FloatArray, scale: float, around: ArrayLike | None, rng: np.random.Generator
    ) -> None:
        self.system, self.values, self.scale, self.rng = system, values, scale, rng
        self.centre = np.zeros(system.n) if around is None else np.asarray(around, float)
        if self.centre.shape != (system.n,):
            raise ValueError(f"around must have shape ({system.n},); got {self.centre.shape}")
        if not scale > 0:
            raise ValueError(f"scale must be positive; got {scale!r}")
        self.speed = 1.0
        self.speed = self._balanced_speed()

    def points(self, count: int) -> tuple[FloatArray, FloatArray, FloatArray, Any]:
        """t, q, v at which L is smooth, and its gradient there."""
        n, tried = self.system.n, 0
        kept: list[tuple[FloatArray, ...]] = []
        while sum(len(part[0]) for part in kept) < count:
            if tried > 60:
                raise ValueError(
                    f"{self.system.name} is infinite or not a number at nearly all random points of size "
                    f"{self.scale:g} about q = {self.centre}: say where it is defined, with around= and scale="
                )
            tried += 1
            size = 10 ** self.rng.uniform(-0.7, 0.7, (count, 1))
            pace = 10 ** self.rng.uniform(-1, 1, (count, 1))
            q = self.centre + self.scale * size * self.rng.standard_normal((count, n))
            v = self.speed * pace * self.rng.standard_normal((count, n))
            t = self.rng.uniform(-2, 2, count)
            at = self.system._evaluate(self.system.gradient, q, v, t, self.values)
            fine = np.isfinite(np.concatenate([at["L"], at["Lq"], at["Lv"]], axis=1)).all(axis=1)
            kept.append((t[fine], q[fine], v[fine], at["Lq"][fine], at["Lv"][fine]))
        t, q, v, Lq, Lv = (np.concatenate([part[k] for part in kept])[:count] for k in range(5))
        return t, q, v, (Lq, Lv)

    def _balanced_speed(self) -> float:
        """Velocities at which both terms of the condition weigh alike, whatever the units of L."""
        _, q, v, (Lq, Lv) = self.points(50)
        force, momentum = np.abs(Lq * q).max(axis=1), np.abs(Lv * v).max(axis=1)
        used = (force > 0) & (momentum > 0)
        return float(np.sqrt(np.median(force[used] / momentum[used]))) if used.any() else 1.0

    def conditions(self, count: int) -> FloatArray:
        """Rows of the condition in (A, b/scale), each so scaled that round-off in it is about eps."""
        n = self.system.n
        _, q, v, (Lq, Lv) = self.points(count)
        by_A = (Lq[:, :, None] * q[:, None, :], Lv[:, :, None] * v[:, None, :])
        rows = np.concatenate([(by_A[0] + by_A[1]).reshape(count, n * n), Lq * self.scale], axis=1)
        terms = (np.abs(by_A[0]) + np.abs(by_A[1])).reshape(count, n * n)
        size = np.hypot(np.linalg.norm(terms, axis=1), np.linalg.norm(Lq * self.scale, axis=1))
        return rows[size > 0] / size[size > 0, None]

    def autonomous(self) -> bool:
        """Whether ∂L/∂t = 0: at once if L does not read t, else at random points."""
        program = self.system.program
        if not any(op == "input" and args[0] == 0 for op, *args in program.select("L").code):
            return True
        from leastaction.trace import derivatives

        t, q, v, _ = self.points(50)
        slope = derivatives(program, second=False, parameters=True).select("L", "Lt")
        rows = np.concatenate([t[:, None], q, v, np.broadcast_to(self.values, (50, len(self.values)))], axis=1)
        L, Lt = points.evaluate(slope, rows).T
        return bool((np.abs(Lt) <= SURE * (np.abs(L) + 1e-300)).all())


def _null_space(sampler: _Sampler) -> FloatArray:
    """An orthonormal basis (k, n² + n) of the solutions (A, b)."""
    n = sampler.system.n
    rows = sampler.conditions(6 * (n * n + n) + 60)
    if len(rows) == 0:
        return np.eye(n * n + n)
    _, values, right = np.linalg.svd(rows)
    relative = values / values[0]
    count = int((relative <= ZERO).sum())
    doubtful = relative[(relative > ZERO) & (relative < DEFINITE)]
    if doubtful.size:
        raise ArithmeticError(
            f"it cannot be told whether {sampler.system.name} has {count} or {count + doubtful.size} symmetries: the "
            f"invariance condition holds up to {doubtful.max():.1e}. L is nearly symmetric, or of very unlike "
            "magnitudes: give the typical size of the coordinates, scale="
        )
    null = right[len(values) - count :]
    null[:, n * n :] *= sampler.scale
    return null


def _term(x: float, symbol: str) -> tuple[str, str]:
    from leastaction.analysis.generators import number

    size = number(abs(x))
    body = symbol if size == "1" and symbol else f"{size} {symbol}".strip()
    return ("−" if x < 0 else "+"), body


def _joined(terms: list[tuple[str, str]]) -> str:
    first, *rest = terms
    text = ("−" if first[0] == "−" else "") + first[1]
    return text + "".join(f" {sign} {body}" for sign, body in rest)


def _momenta(system: Any, params: Mapping[str, Any]) -> Mapping[str, looks.Invariant]:
    """The conserved momenta of a small Lagrangian, for its pictures; none where they cannot be told."""
    if not isinstance(system, Lagrangian) or system.n > 6:
        return {}
    try:
        found = symmetries(system, params=params)
    except (ArithmeticError, ValueError):
        return {}
    return {one.formula: partial(_momentum, one) for one in found}


def _momentum(one: Symmetry, q: Any, p: Any, params: Mapping[str, Any]) -> FloatArray:
    return one.momentum(q, p)


looks.momenta.append(_momenta)
