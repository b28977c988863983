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
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.analysis.conservation import Conservation, check
from leastaction.analysis.discrete_symmetries import DiscreteSymmetry, discrete
from leastaction.analysis.figures import matrix_plot
from leastaction.analysis.generators import ROUND, describe, readable_basis
from leastaction.lagrangian import Lagrangian
from leastaction.path import Path
from leastaction.stepping import pointwise

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]

MOST_DEGREES = 40  # n² + n unknowns, found by a dense singular value decomposition
ZERO = 1e-11  # singular values up to this, relative to the largest, belong to symmetries …
DEFINITE = float(np.finfo(float).eps) / ROUND  # … and from this on not: then generators are known to ROUND
FARTHER = 10.0  # times scale: where points are drawn if those nearer leave a doubt
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

    energy     whether L does not depend on time, so that the energy is conserved
    discrete   permutations and reflections of coordinates, from which the others found follow
    """

    system: Lagrangian
    generators: tuple[Symmetry, ...]
    energy: bool
    discrete: tuple[DiscreteSymmetry, ...] = ()

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
        if self.discrete:
            lines.append("  discrete: " + "; ".join(one.name for one in self.discrete))
        return f"Symmetries of {self.system.name}\n" + "\n".join(lines)


def symmetries(
    system: Lagrangian,
    *,
    params: Mapping[str, Any] | None = None,
    scale: float = 1.0,
    around: ArrayLike | None = None,
    seed: int = 0,
) -> Symmetries:
    """Every affine point symmetry of the system, and permutations and reflections, from L at random points.

    scale    typical size of the coordinates, from which points are drawn
    around   a configuration near which L is defined, where that is not so near the origin

    >>> def kepler(q, v):
    ...     return 0.5 * (v @ v) + 1 / np.sqrt(q @ q)
    >>> symmetries(Lagrangian(kepler, n=2))
    Symmetries of kepler
      rotation in the plane (q0, q1): J = q0 p1 − q1 p0
      invariance in time: energy
      discrete: reflection of q0; reflection of q1; exchange of q0 and q1
    """
    if not isinstance(system, Lagrangian):
        raise TypeError(f"expected a system, as from la.Lagrangian(fn, n=…); got {system!r}")
    if system.n > MOST_DEGREES:
        raise ValueError(
            f"{system.name} has n = {system.n} degrees of freedom, {system.n**2 + system.n} unknowns; "
            f"symmetries are sought up to n = {MOST_DEGREES}"
        )
    values = system.values(params)
    sampler = _Sampler(system, values, float(scale), around, np.random.default_rng(seed))
    try:
        null = _null_space(sampler)
    except _UndecidedError:  # perhaps because the points are too near to each other to show how L bends
        sampler = _Sampler(system, values, FARTHER * float(scale), around, np.random.default_rng(seed))
        null = _null_space(sampler)
    pairs = readable_basis(null, system.n, sampler.speed**-2)
    fresh, _ = sampler.conditions(4 * (system.n**2 + system.n) + 40)
    residual = max((sampler.residual(fresh, A, b) for A, b in pairs), default=0.0)
    if residual > SURE:
        raise ArithmeticError(
            f"a symmetry found at some random points of {system.name} does not hold at others (by {residual:.1e}): "
            "L is perhaps defined piecewise, or its terms are of very unlike magnitudes. Draw points where it is "
            "smooth with around= and scale=."
        )
    translations = np.array([b for A, b in pairs if not A.any()]).reshape(-1, system.n)
    found = [Symmetry(describe(A, b, translations), A, b) for A, b in pairs]
    return Symmetries(system, tuple(found), sampler.autonomous(), discrete(sampler))


class _UndecidedError(ArithmeticError):
    """A singular value is neither zero nor not."""


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
        self.speed = np.ones(system.n)
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
            v = self.speed * pace * self.rng.standard_normal((count, n)) * self._moving(count)
            t = self.rng.uniform(-2, 2, count)
            at = self.system._evaluate(self.system.gradient, q, v, t, self.values)
            fine = np.isfinite(np.concatenate([at["L"], at["Lq"], at["Lv"]], axis=1)).all(axis=1)
            kept.append((t[fine], q[fine], v[fine], at["Lq"][fine], at["Lv"][fine]))
        t, q, v, Lq, Lv = (np.concatenate([part[k] for part in kept])[:count] for k in range(5))
        return t, q, v, (Lq, Lv)

    def _moving(self, count: int) -> FloatArray:
        """Which coordinates move: all of them, or a few, so that light ones are seen beside heavy ones at rest."""
        few = self.rng.random((count, self.system.n)) < 2 / self.system.n
        return np.where(self.rng.random((count, 1)) < 0.5, 1.0, few.astype(float))

    def _balanced_speed(self) -> FloatArray:
        """Velocities, by coordinate, at which all terms of the condition weigh alike, whatever units and masses."""
        _, q, v, (Lq, Lv) = self.points(200)
        force = np.abs(Lq * (q - self.centre)).max(axis=1)
        speed = np.ones(self.system.n)
        for i in range(self.system.n):
            used = (force > 0) & (Lv[:, i] * v[:, i] != 0)
            if used.any():
                speed[i] = np.sqrt(np.median(force[used] / np.abs(Lv[used, i] * v[used, i])))
        return speed

    def conditions(self, count: int) -> tuple[FloatArray, FloatArray]:
        """Rows of the condition in (A, (b + Ac)/scale), c the centre, so scaled that round-off in each is about eps.

        And the sizes of their terms, before these cancel. A third of the rows are differences of two, between which
        some velocities change their sign: terms that are the same in both, bit for bit, are gone, such as the energies
        of heavy bodies, beside which nothing of a light one would be seen.
        """
        t, q, v, gradient = self.points(count)
        by_q, by_v = self._terms(q, v, gradient)
        part = slice(0, count // 3)
        turned = v[part] * self.rng.choice([-1.0, 1.0], v[part].shape)
        other_q, other_v = self._terms(q[part], turned, self._gradient(t[part], q[part], turned))
        rows, terms = by_q + by_v, np.abs(by_q) + np.abs(by_v)
        rows[part] -= other_q + other_v
        terms[part] = _unequal(by_q[part], other_q) + _unequal(by_v[part], other_v)
        size = np.linalg.norm(terms, axis=1)
        fine = np.isfinite(rows).all(axis=1) & (size > 0)
        return rows[fine] / size[fine, None], terms[fine] / size[fine, None]

    def _gradient(self, t: FloatArray, q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        at = self.system._evaluate(self.system.gradient, q, v, t, self.values)
        return at["Lq"], at["Lv"]

    def _terms(self, q: FloatArray, v: FloatArray, gradient: Any) -> tuple[FloatArray, FloatArray]:
        """The terms of L_q and of L_v in the condition, by the unknowns (A, (b + Ac)/scale)."""
        Lq, Lv = gradient
        count, n = q.shape
        by_q = (Lq[:, :, None] * (q - self.centre)[:, None, :]).reshape(count, n * n)
        by_v = (Lv[:, :, None] * v[:, None, :]).reshape(count, n * n)
        return np.concatenate([by_q, Lq * self.scale], axis=1), np.concatenate([by_v, np.zeros((count, n))], axis=1)

    def residual(self, rows: FloatArray, A: FloatArray, b: FloatArray) -> float:
        """How far q ↦ q + ε (A q + b) is from leaving L invariant, in these rows."""
        x = np.concatenate([A.ravel(), (b + A @ self.centre) / self.scale])
        return float(np.abs(rows @ x).max() / np.abs(x).max())

    def autonomous(self) -> bool:
        """Whether ∂L/∂t = 0: at once if L does not read t, else at random points."""
        program = self.system.program
        if not any(op == "input" and args[0] == 0 for op, *args in program.select("L").code):
            return True
        from leastaction.trace import derivatives

        t, q, v, _ = self.points(50)
        slope = derivatives(program, second=False, parameters=True).select("L", "Lt")
        rows = np.concatenate([t[:, None], q, v, np.broadcast_to(self.values, (50, len(self.values)))], axis=1)
        L, Lt = pointwise.evaluate(slope, rows).T
        return bool((np.abs(Lt) <= SURE * (np.abs(L) + 1e-300)).all())


def _unequal(a: FloatArray, b: FloatArray) -> FloatArray:
    """|a| + |b| where they differ."""
    return np.where(a == b, 0.0, np.abs(a) + np.abs(b))


def _null_space(sampler: _Sampler) -> FloatArray:
    """A basis (k, n² + n) of the solutions (A, b), of rows of length one.

    Columns are scaled by the sizes of their terms: a body of mass 10⁻⁹ has no symmetries of its own because its terms
    are small.
    """
    n = sampler.system.n
    rows, terms = sampler.conditions(6 * (n * n + n) + 60)
    if len(rows) == 0:
        return np.eye(n * n + n)
    sizes = np.linalg.norm(terms, axis=0)
    sizes[sizes == 0] = 1.0
    _, values, right = np.linalg.svd(rows / sizes, full_matrices=len(rows) < n * n + n)
    relative = values / values[0]
    count = int((relative <= ZERO).sum())
    doubtful = relative[(relative > ZERO) & (relative < DEFINITE)]
    if doubtful.size:
        raise _UndecidedError(
            f"it cannot be told whether {sampler.system.name} has {count} or {count + doubtful.size} symmetries: the "
            f"invariance condition holds up to {doubtful.max():.1e}. L is nearly symmetric, or of very unlike "
            "magnitudes: give the typical size of the coordinates, scale="
        )
    null = right[len(values) - count :] / sizes
    A, b = null[:, : n * n].reshape(-1, n, n), null[:, n * n :] * sampler.scale
    null = np.concatenate([null[:, : n * n], b - A @ sampler.centre], axis=1)
    if len(null):
        null /= np.linalg.norm(null, axis=1, keepdims=True)
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
