"""Noether: every affine point symmetry q ↦ q + ε (A q + b) of a Lagrangian, found from L itself.

L is invariant where, at every (t, q, v),

    L_q · (A q + b) + L_v · (A v) = 0,

which is linear in the n² + n numbers A, b: at random points it is a linear system, whose null space is the Lie algebra
of the symmetries. Where L may jump, at the zeros of functions f that it decides by, f must be invariant, too.

At points of ordinary size a condition may hold because L is flat there. So the same system is looked at modulo a prime,
on the Program of L, where nothing is small (`identities`): what holds there is proven. What holds at the points alone
is looked at in far more places, and told apart from what is proven. Each symmetry conserves its momentum map
J = p · (A q + b), and a variational integrator conserves J too (Ober-Blöbaum and Saake 2014, section 4.1). If L does
not depend on t, the energy is conserved, though by the exact motion only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction import looks
from leastaction.analysis import identities
from leastaction.analysis.conservation import Conservation, check
from leastaction.analysis.figures import matrix_plot
from leastaction.analysis.generators import LARGEST_DENOMINATOR, ROUND, describe, readable_basis
from leastaction.lagrangian import Lagrangian
from leastaction.path import Path
from leastaction.program import Program

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]

MOST_DEGREES = 40  # n² + n unknowns, found by a dense singular value decomposition
ZERO = 1e-11  # singular values up to this, relative to the largest, belong to symmetries …
DEFINITE = 1e-8  # … and from this on they do not; in between it cannot be told
SURE = 1e-10  # relative residual on fresh points
SPARE = 12  # points more than unknowns, modulo a prime
# Where more holds than is proven, so many points more for each unknown, up to 10^FARTHEST times as far away.
FAR, FAR_AT_LEAST, FARTHEST = 20, 400, 3.0
MOST_RATIO = 1e9  # of speeds to lengths


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
    """The affine point symmetries of a system, a basis of them, proven on the Program of L. Iterates over them.

    energy       whether L does not depend on time, so that the energy is conserved
    candidates   maps under which L is invariant at all points where it was looked at, though that could not be proven:
                 L may be flat there
    sampled      where that was
    """

    system: Lagrangian
    generators: tuple[Symmetry, ...]
    energy: bool
    candidates: tuple[Symmetry, ...] = ()
    sampled: str = ""

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
        if self.candidates:
            lines.append(f"  not proven, but true at {self.sampled}:")
            lines.extend(f"    {symmetry!r}" for symmetry in self.candidates)
        return f"Symmetries of {self.system.name}\n" + "\n".join(lines)


def symmetries(
    system: Lagrangian,
    *,
    params: Mapping[str, Any] | None = None,
    scale: float | None = None,
    around: ArrayLike | None = None,
    path: Path | None = None,
    seed: int = 0,
) -> Symmetries:
    """Every affine point symmetry of the system, from L at random points, and from its Program.

    scale    typical size of the coordinates, from which points are drawn; 1 unless told
    around   a configuration near which L is defined, where that is not so near the origin
    path     a motion near which points are drawn, in place of scale and around

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
    values = system.values(params)
    centre, size = _region(system, scale, around, path)
    sampler = _Sampler(system, values, size, centre, np.random.default_rng(seed))
    unknowns = system.n**2 + system.n
    proof = Proof(system, values, seed)
    rows = sampler.conditions(6 * unknowns + 60)
    null = _null_space(sampler, rows, proof.count)
    wide = len(null) > proof.count
    if wide:  # more than is proven: L may be flat at these points
        rows = np.concatenate([rows, sampler.conditions(FAR * unknowns + FAR_AT_LEAST, far=True)])
        null = _null_space(sampler, rows, proof.count)
    pairs = readable_basis(null, system.n)
    fresh = [sampler.conditions(4 * unknowns + 40, far=far) for far in (False, True)[: 1 + wide]]
    translations = np.array([b for A, b in pairs if not A.any()]).reshape(-1, system.n)
    found: tuple[list[Symmetry], list[Symmetry]] = [], []
    for A, b in pairs:
        x = np.concatenate([A.ravel(), b / sampler.scale])
        residual = max(np.abs(part @ x).max(initial=0.0) for part in fresh) / np.abs(x).max()
        if residual > SURE:
            raise ArithmeticError(
                f"a symmetry found at some random points of {system.name} does not hold at others (by {residual:.1e}): "
                "L is perhaps defined piecewise. Draw points where it is smooth with around= and scale=."
            )
        proven = len(pairs) <= proof.count or proof.holds(A, b)
        found[not proven].append(Symmetry(describe(A, b, translations), A, b))
    return Symmetries(system, tuple(found[0]), proof.autonomous, tuple(found[1]), sampler.sampled)


def _region(
    system: Lagrangian, scale: float | None, around: ArrayLike | None, path: Path | None
) -> tuple[FloatArray, float]:
    """About where, and how far from there, points are drawn."""
    if path is not None:
        if scale is not None or around is not None:
            raise ValueError("give either path= or scale= and around=, not both")
        if path.system.n != system.n or path.output is not None:
            raise ValueError(f"path must hold the whole state of {system.n} degrees of freedom")
        q = np.asarray(path.q, float)
        return q.mean(axis=0), float(np.abs(q - q.mean(axis=0)).max()) or 1.0
    centre = np.zeros(system.n) if around is None else np.asarray(around, float)
    if centre.shape != (system.n,):
        raise ValueError(f"around must have shape ({system.n},); got {centre.shape}")
    size = 1.0 if scale is None else float(scale)
    if not size > 0:
        raise ValueError(f"scale must be positive; got {scale!r}")
    return centre, size


class Proof:
    """The invariance condition modulo a prime, on the Program of L: what it has for solutions are symmetries.

    count        how many independent ones there are
    autonomous   whether ∂L/∂t vanishes, or t is not even read
    """

    def __init__(self, system: Lagrangian, values: FloatArray, seed: int) -> None:
        self._n, self._values = system.n, values
        self._rng = np.random.default_rng(seed)
        functions = [system.gradient, *(gradient(f) for f in identities.jumps(system.program))]
        points = self._points(system.n**2 + system.n + SPARE)
        self._rows = np.concatenate([self._conditions(f, points) for f in functions])
        self.count = identities.null_space_size(self._rows)
        self.autonomous = not system.depends_on_time or self._without_time(system.program, points)

    def holds(self, A: FloatArray, b: FloatArray) -> bool:
        """Whether this map, its entries taken exactly, is one of them."""
        total = np.zeros(len(self._rows), np.uint64)
        for k, entry in enumerate([*A.ravel(), *b]):
            exact = Fraction(float(entry)).limit_denominator(LARGEST_DENOMINATOR)
            factor = np.uint64(
                identities.residue(exact if abs(exact - Fraction(float(entry))) < ROUND else float(entry))
            )
            total = (total + identities.times(self._rows[:, k], np.full_like(total, factor))) % np.uint64(identities.P)
        return not total.any()

    def _points(self, count: int) -> NDArray[np.uint64]:
        inside = self._rng.integers(1, identities.P, (count, 1 + 2 * self._n)).astype(np.uint64)
        params = np.array([identities.residue(float(x)) for x in self._values], np.uint64)
        return np.concatenate([inside, np.broadcast_to(params, (count, len(params)))], axis=1)

    def _conditions(self, program: Program, points: NDArray[np.uint64]) -> NDArray[np.uint64]:
        n = self._n
        at = identities.evaluate(program.select("Lq", "Lv"), points)
        q, v, Lq, Lv = points[:, 1 : 1 + n], points[:, 1 + n : 1 + 2 * n], at[:, :n], at[:, n:]
        by_A = [identities.times(G[:, :, None], x[:, None, :]) for G, x in ((Lq, q), (Lv, v))]
        total = (by_A[0] + by_A[1]) % np.uint64(identities.P)
        return np.concatenate([total.reshape(len(points), n * n), Lq], axis=1)

    def _without_time(self, program: Program, points: NDArray[np.uint64]) -> bool:
        from leastaction.trace import derivatives

        functions = [program, *identities.jumps(program)]
        slopes = (derivatives(f, second=False, parameters=True).select("Lt") for f in functions)
        return not any(identities.evaluate(slope, points).any() for slope in slopes)


def gradient(program: Program) -> Program:
    from leastaction.trace import derivatives

    return derivatives(program, second=False)


class _Sampler:
    """Rows of the invariance condition at random points."""

    def __init__(
        self, system: Lagrangian, values: FloatArray, scale: float, centre: FloatArray, rng: np.random.Generator
    ) -> None:
        self.system, self.values, self.scale, self.centre, self.rng = system, values, scale, centre, rng
        self.functions = [system.gradient, *(gradient(f) for f in identities.jumps(system.program))]
        self.seen, self.farthest = 0, 0.0
        self.speed = 1.0
        self.speed = self._balanced_speed()

    @property
    def sampled(self) -> str:
        """Where L was looked at."""
        about = "" if not self.centre.any() else f" about {np.array2string(self.centre, precision=3)}"
        return f"{self.seen} points up to {self.farthest:.2g} away{about or ' from the origin'}"

    def points(self, count: int, far: bool = False) -> tuple[FloatArray, FloatArray, FloatArray, Any]:
        """t, q, v at which L is smooth, and the gradients of L, and of what it decides by, there."""
        n, tried = self.system.n, 0
        kept: list[tuple[FloatArray, ...]] = []
        while sum(len(part[0]) for part in kept) < count:
            if tried > 60:
                raise ValueError(
                    f"{self.system.name} is infinite or not a number at nearly all random points of size "
                    f"{self.scale:g} about q = {self.centre}: say where it is defined, with around= and scale="
                )
            tried += 1
            near, wide = (-2.0, FARTHEST) if far else (-0.7, 0.7)
            size = 10 ** self.rng.uniform(near, wide, (count, 1))
            pace = 10 ** self.rng.uniform(-1, 1, (count, 1))
            if far:  # fast and slow, since a force that is seen there only has had no say in the usual speed
                pace *= 10 ** self.rng.uniform(-FARTHEST, FARTHEST, (count, 1))
            q = self.centre + self.scale * size * self.rng.standard_normal((count, n))
            v = self.speed * pace * self.rng.standard_normal((count, n))
            t = self.rng.uniform(-2, 2, count) * 10 ** self.rng.uniform(0, FARTHEST if far else 0, count)
            each = [self.system._evaluate(f, q, v, t, self.values) for f in self.functions]
            fine = np.isfinite(np.concatenate([at[name] for at in each for name in ("L", "Lq", "Lv")], axis=1)).all(
                axis=1
            )
            gradients = np.stack([np.concatenate([at["Lq"], at["Lv"]], axis=1) for at in each], axis=1)
            kept.append((t[fine], q[fine], v[fine], gradients[fine]))
        t, q, v, gradients = (np.concatenate([part[k] for part in kept])[:count] for k in range(4))
        self.seen += count
        self.farthest = max(self.farthest, float(np.abs(q - self.centre).max()))
        return t, q, v, gradients

    def _balanced_speed(self) -> float:
        """Velocities at which both terms of the condition weigh alike, whatever the units of L."""
        _, q, v, gradients = self.points(50)
        Lq, Lv = np.split(gradients[:, 0], 2, axis=1)
        force, momentum = np.abs(Lq * q).max(axis=1), np.abs(Lv * v).max(axis=1)
        used = (force > 0) & (momentum > 0)
        if not used.any():
            return 1.0
        speed = float(np.sqrt(np.median(force[used] / momentum[used])))
        return float(np.clip(speed, self.scale / MOST_RATIO, self.scale * MOST_RATIO))  # L may be flat here

    def conditions(self, count: int, far: bool = False) -> FloatArray:
        """Rows of the condition in (A, b/scale), each so scaled that round-off in it is about eps."""
        n = self.system.n
        _, q, v, gradients = self.points(count, far)
        found = []
        for k in range(len(self.functions)):
            Lq, Lv = np.split(gradients[:, k], 2, axis=1)
            by_A = (Lq[:, :, None] * q[:, None, :], Lv[:, :, None] * v[:, None, :])
            rows = np.concatenate([(by_A[0] + by_A[1]).reshape(count, n * n), Lq * self.scale], axis=1)
            terms = (np.abs(by_A[0]) + np.abs(by_A[1])).reshape(count, n * n)
            size = np.hypot(np.linalg.norm(terms, axis=1), np.linalg.norm(Lq * self.scale, axis=1))
            fine = (size > 0) & np.isfinite(size)
            found.append(rows[fine] / size[fine, None])
        return np.concatenate(found)


def _null_space(sampler: _Sampler, rows: FloatArray, proven: int) -> FloatArray:
    """An orthonormal basis (k, n² + n) of the solutions (A, b); what is in doubt is none, if the proven are clear."""
    n = sampler.system.n
    if len(rows) == 0:
        return np.eye(n * n + n)
    _, values, right = np.linalg.svd(rows, full_matrices=len(rows) < n * n + n)
    relative = values / values[0]
    count = int((relative <= ZERO).sum())
    doubtful = relative[(relative > ZERO) & (relative < DEFINITE)]
    if doubtful.size and count < proven:
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
