"""Noether: every affine point symmetry q ↦ q + ε (A q + b) of a Lagrangian, found from L itself.

L is invariant where, at every (t, q, v),

    L_q · (A q + b) + L_v · (A v) = 0,

which is linear in the n² + n numbers A, b: at random points it is a linear system, whose null space is the Lie algebra
of the symmetries. L may jump at the zeros of functions f by which it decides: these f must be invariant, too. So must
every constraint g: then the reactions have no effect along the symmetry.

At points of ordinary size a condition may hold because L is flat there. So the same system is solved modulo a prime, on
the Program of L, where nothing is small (`identities`): its solutions are proven. Solutions that hold at the points
alone are tested in far more places, and are listed apart. Each symmetry conserves its momentum map J = p · (A q + b),
and a variational integrator conserves J too (Ober-Blöbaum and Saake 2014, section 4.1). If L does not depend on t, the
energy is conserved, though by the exact motion only. A force F changes J by ∫ F · (A q + b) dt, and the integrator's
own quadrature of this integral is its exact discrete form (`impulses`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.analysis import figures, identities
from leastaction.analysis.conservation import Conservation, check
from leastaction.analysis.discrete_symmetries import DiscreteSymmetry, discrete
from leastaction.analysis.generators import LARGEST_DENOMINATOR, ROUND, SHARE, describe, number, readable_basis
from leastaction.docstrings import described, documented
from leastaction.numbers.arrays import FloatArray
from leastaction.program import Builder, Program
from leastaction.results import looks
from leastaction.results.path import Path
from leastaction.systems.lagrangian import Lagrangian
from leastaction.systems.protocol import require_lagrangian

MOST_DEGREES = 40  # n² + n unknowns, found by a dense singular value decomposition
ZERO = 1e-11  # singular values up to this, relative to the largest, belong to symmetries …
DEFINITE = float(np.finfo(float).eps) / ROUND  # … and from this on not: then generators are known to ROUND
FARTHER = 10.0  # times scale: how far away points are drawn if nearer points leave a doubt
SURE = 1e-10  # relative residual on fresh points
SPARE = 12  # points more than unknowns, modulo a prime
SHOWN = 5e-11  # entries below this, which would be written as 0, are left out of formulas
# Where more holds at the points than is proven: this many more points for each unknown, up to 10^FARTHEST times as far
# away.
FAR, FAR_AT_LEAST, FARTHEST = 20, 400, 3.0
MOST_RATIO = 1e9  # of speeds to lengths


@described
@dataclass(frozen=True, eq=False)
class Symmetry:
    """L is invariant under q ↦ q + ε (A q + b). `la.analysis.symmetries` gives it."""

    name: Annotated[str, 'Such as "rotation in the plane (q0, q1)".']
    A: Annotated[FloatArray, "shape (n, n)", "The linear part of the generator."]
    b: Annotated[FloatArray, "shape (n,)", "Its translation."]

    def momentum(self, q: ArrayLike, p: ArrayLike) -> FloatArray:
        """The conserved momentum J = p·(A q + b).

        Parameters
        ----------
        q, p : array_like, shape (n,) or (K, n)
            One state, or K states.
        """
        Q, P = np.asarray(q, float), np.asarray(p, float)
        return np.einsum("...i,...i->...", P, Q @ self.A.T + self.b)

    @property
    def formula(self) -> str:
        """The conserved momentum J, written out."""
        factors: dict[tuple[str, str], list[str]] = {}
        for i in range(len(self.b)):
            entries = [*((x, f"q{j}") for j, x in enumerate(self.A[i])), (self.b[i], "")]
            inside = [_term(x, symbol) for x, symbol in entries if abs(x) > SHOWN]
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
class Symmetries(figures.Drawn, picture=figures.draw_symmetries):
    """The affine point symmetries of a system: a basis of them, proven on the Program of L. `la.analysis.symmetries`
    gives it.

    It is a sequence of `la.analysis.Symmetry`. `plot` draws the generators, a row each: the entries of A and b in
    q ↦ q + ε (A q + b).
    """

    system: Annotated[Lagrangian, "Which system."]
    generators: Annotated[tuple[Symmetry, ...], "The basis."]
    energy: Annotated[bool, "Whether L does not depend on time, so that the energy is conserved."]
    discrete: Annotated[tuple[DiscreteSymmetry, ...], "Generators of permutations and reflections of coordinates."] = ()
    candidates: Annotated[tuple[Symmetry | DiscreteSymmetry, ...], "True at every point tried, not proven."] = ()
    sampled: Annotated[str, "Which points were tried."] = ""

    def __iter__(self) -> Iterator[Symmetry]:
        return iter(self.generators)

    def __len__(self) -> int:
        return len(self.generators)

    def __getitem__(self, index: int) -> Symmetry:
        return self.generators[index]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the generators."""
        return tuple(symmetry.name for symmetry in self.generators)

    def check(self, path: Path) -> Conservation:
        """Which of them a run preserved, and how well.

        Where a force acts, what the force brought to a momentum or to the energy is taken away before the judgement.

        Parameters
        ----------
        path : Path
            A run of the same system.
        """
        return check(self, path)

    def __repr__(self) -> str:
        lines = [f"  {symmetry!r}" for symmetry in self.generators] or ["  no affine point symmetry"]
        lines.append("  invariance in time: energy" if self.energy else "  L depends on time: energy is not conserved")
        if self.system.forced:
            lines.append("  a force acts: each changes by what the force brings, by its impulse or its work")
        if self.discrete:
            lines.append("  discrete: " + "; ".join(one.name for one in self.discrete))
        if self.candidates:
            lines.append(f"  not proven, but true at {self.sampled}:")
            lines.extend(f"    {symmetry!r}" for symmetry in self.candidates)
        return f"Symmetries of {self.system.name}\n" + "\n".join(lines)


@documented()
def symmetries(
    system: Lagrangian, *, params: Mapping[str, Any] | None = None, scale: float | None = None,
    around: ArrayLike | None = None, path: Path | None = None, seed: int = 0,
) -> Symmetries:  # fmt: skip
    """Find every affine point symmetry of L, with its conserved momentum; and permutations and reflections of
    coordinates.

    Symmetries are found at random points and then proven on the Program of L. Forces are not asked: where one acts,
    `la.analysis.Symmetries.check` takes away what the force brought.

    Parameters
    ----------
    system : Lagrangian
        Which system.
    {params}
    scale : float, optional
        Typical size of the coordinates, from which points are drawn. Without `scale`: 1.
    around : array_like, shape (n,), optional
        A configuration near which L is defined, where that is not so near the origin.
    path : Path, optional
        A motion near which points are drawn, in place of `scale` and `around`.
    seed : int, default 0
        Of the random points.

    Raises
    ------
    ValueError
        The system has too many degrees of freedom.

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> def kepler(q, v):
    ...     return 0.5 * (v @ v) + 1 / np.sqrt(q @ q)
    >>> la.analysis.symmetries(la.Lagrangian(kepler, n=2))
    Symmetries of kepler
      rotation in the plane (q0, q1): J = q0 p1 − q1 p0
      invariance in time: energy
      discrete: reflection of q0; reflection of q1; exchange of q0 and q1
    """
    require_lagrangian(system, "symmetries")
    if system.n > MOST_DEGREES:
        raise ValueError(
            f"{system.name} has n = {system.n} degrees of freedom, {system.n**2 + system.n} unknowns; "
            f"symmetries are sought up to n = {MOST_DEGREES}"
        )
    values = system.values(params)
    centre, size = _region(system, scale, around, path)
    proof = Proof(system, values, seed)
    try:
        found, sampler = _at_points(system, values, size, centre, seed, proof)
    except _UndecidedError:  # perhaps because the points are too near to each other to show how L bends
        found, sampler = _at_points(system, values, FARTHER * size, centre, seed, proof)
    translations = np.array([b for A, b in found if not A.any()]).reshape(-1, system.n)
    sorted_out: tuple[list[Symmetry], list[Symmetry]] = [], []
    for A, b in found:
        proven = len(found) <= proof.count or proof.holds(A, b)
        sorted_out[not proven].append(Symmetry(describe(A, b, translations), A, b))
    mirrors, doubtful = discrete(sampler, proof)
    candidates: tuple[Symmetry | DiscreteSymmetry, ...] = (*sorted_out[1], *doubtful)
    return Symmetries(system, tuple(sorted_out[0]), proof.autonomous, mirrors, candidates, sampler.sampled)


def _at_points(
    system: Lagrangian, values: FloatArray, size: float, centre: FloatArray, seed: int, proof: Proof
) -> tuple[list[tuple[FloatArray, FloatArray]], _Sampler]:
    """The maps (A, b) under which L is invariant at random points, and the sampler that drew the points."""
    sampler = _Sampler(system, values, size, centre, np.random.default_rng(seed))
    unknowns = system.n**2 + system.n
    rows, terms = sampler.conditions(6 * unknowns + 60)
    null, doubtful = _null_space(sampler, rows, terms)
    wide = len(null) > proof.count
    if wide:  # more than is proven: L may be flat at these points
        more = sampler.conditions(FAR * unknowns + FAR_AT_LEAST, far=True)
        rows, terms = np.concatenate([rows, more[0]]), np.concatenate([terms, more[1]])
        null, doubtful = _null_space(sampler, rows, terms)
    pairs = readable_basis(null, system.n, sampler.speed**-2)
    # If all proven symmetries were found exactly, what is in doubt is none: round-off has not mixed it into the others.
    if doubtful.size and sum(proof.holds(A, b) for A, b in pairs) < proof.count:
        raise _UndecidedError(
            f"it cannot be told whether {system.name} has {len(null)} or {len(null) + doubtful.size} symmetries: the "
            f"invariance condition holds up to {doubtful.max():.1e}. L is nearly symmetric, or of very unlike "
            "magnitudes: give the typical size of the coordinates, scale="
        )
    fresh = [sampler.conditions(4 * unknowns + 40, far=far)[0] for far in (False, True)[: 1 + wide]]
    residual = max((sampler.residual(part, A, b) for part in fresh for A, b in pairs), default=0.0)
    if residual > SURE:
        raise ArithmeticError(
            f"a symmetry found at some random points of {system.name} does not hold at others (by {residual:.1e}): "
            "L is perhaps defined piecewise, or its terms are of very unlike magnitudes. Draw points where it is "
            "smooth with around= and scale=."
        )
    return pairs, sampler


class _UndecidedError(ArithmeticError):
    """A singular value is neither clearly zero nor clearly positive."""


def _region(
    system: Lagrangian, scale: float | None, around: ArrayLike | None, path: Path | None
) -> tuple[FloatArray, float]:
    """The centre and the size of the region in which points are drawn."""
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
    """The invariance condition modulo a prime, on the Program of L: its solutions are symmetries.

    count        how many independent solutions there are
    autonomous   whether ∂L/∂t vanishes, or t is not even read
    """

    def __init__(self, system: Lagrangian, values: FloatArray, seed: int) -> None:
        self._n, self._values = system.n, values
        self._rng = np.random.default_rng(seed)
        self._L = system.program.select("L")
        self._held = levels(system)
        points = self._points(system.n**2 + system.n + SPARE)
        self._rows = np.concatenate([self._conditions(f, points) for f in gradients(system)])
        self.count = identities.null_space_size(self._rows)
        still = not any(f.depends("L", "t") for f in self._held)
        self.autonomous = not system.depends_on_time or (still and self._without_time(system.program, points))

    def holds(self, A: FloatArray, b: FloatArray) -> bool:
        """Whether this map, its entries taken exactly, is a solution."""
        total = np.zeros(len(self._rows), np.uint64)
        for k, entry in enumerate([*A.ravel(), *b]):
            exact = Fraction(float(entry)).limit_denominator(LARGEST_DENOMINATOR)
            factor = np.uint64(
                identities.residue(exact if abs(exact - Fraction(float(entry))) < SHARE else float(entry))
            )
            total = (total + identities.times(self._rows[:, k], np.full_like(total, factor))) % np.uint64(identities.P)
        return not total.any()

    def leaves(self, order: Sequence[int], sign: Sequence[int]) -> bool:
        """Whether L stays unchanged when coordinate i is replaced by coordinate order[i], with a sign."""
        x, turned = self._turned(order, sign)
        return np.array_equal(identities.evaluate(self._L, x), identities.evaluate(self._L, turned))

    def keeps(self, order: Sequence[int], sign: Sequence[int]) -> bool:
        """Whether the constraints stay as they are; they may change places, and signs."""
        x, turned = self._turned(order, sign)
        before, after = ([identities.evaluate(f, at)[:, 0] for f in self._held] for at in (x, turned))
        signed = [*before, *(identities.minus(np.zeros_like(row), row) for row in before)]
        return all(any(np.array_equal(row, other) for other in signed) for row in after)

    def _turned(self, order: Sequence[int], sign: Sequence[int]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Points, and the same points with coordinate i replaced by coordinate order[i], with a sign."""
        x = self._points(SPARE)
        place = np.array([0, *(1 + i for i in order), *(1 + self._n + i for i in order)])
        turned = x.copy()
        turned[:, : 1 + 2 * self._n] = x[:, place]
        minus = 1 + np.flatnonzero(np.tile(np.array(sign), 2) < 0)
        turned[:, minus] = identities.minus(np.zeros_like(turned[:, minus]), turned[:, minus])
        return x, turned

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


def gradients(system: Lagrangian) -> list[Program]:
    """The gradients of all that has to be invariant: of L, of the functions by which L decides, of the constraints."""
    from leastaction.trace import derivatives

    beside = (*identities.jumps(system.program), *levels(system))
    return [system.gradient, *(derivatives(f, second=False) for f in beside)]


def levels(system: Lagrangian) -> list[Program]:
    """The constraints, each as L of a program (t, q, v, params)."""
    found = []
    for i in range(system.m):
        assert system.constraints is not None
        B = Builder(system.program.inputs)
        at = B.inline(system.constraints, **{name: B.input(name) for name, _ in system.constraints.inputs})
        found.append(B.build(L=[at["g"][i]]))
    return found


class _Sampler:
    """Rows of the invariance condition at random points."""

    def __init__(
        self, system: Lagrangian, values: FloatArray, scale: float, centre: FloatArray, rng: np.random.Generator
    ) -> None:
        self.system, self.values, self.scale, self.centre, self.rng = system, values, scale, centre, rng
        self.functions = gradients(system)
        self.seen, self.farthest = 0, 0.0
        self.speed = np.ones(system.n)
        self.speed = self._balanced_speed()

    @property
    def sampled(self) -> str:
        """Where L was looked at."""
        about = "" if not self.centre.any() else f" about {np.array2string(self.centre, precision=3)}"
        return f"{self.seen} points up to {self.farthest:.2g} away{about or ' from the origin'}"

    def points(self, count: int, far: bool = False) -> tuple[FloatArray, FloatArray, FloatArray, Any]:
        """t, q, v at which L is smooth, and the gradients there of L and of the functions by which L decides."""
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
            if far:  # fast and slow: a force that acts only far away did not count in the usual speed
                pace *= 10 ** self.rng.uniform(-FARTHEST, FARTHEST, (count, 1))
            q = self.centre + self.scale * size * self.rng.standard_normal((count, n))
            v = self.speed * pace * self.rng.standard_normal((count, n)) * self._moving(count)
            t = self.rng.uniform(-2, 2, count) * 10 ** self.rng.uniform(0, FARTHEST if far else 0, count)
            gradients, fine = self._gradients(t, q, v)
            kept.append((t[fine], q[fine], v[fine], gradients[fine]))
        t, q, v, gradients = (np.concatenate([part[k] for part in kept])[:count] for k in range(4))
        self.seen += count
        self.farthest = max(self.farthest, float(np.abs(q - self.centre).max()))
        return t, q, v, gradients

    def _gradients(self, t: FloatArray, q: FloatArray, v: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        """(Lq, Lv) of each function, (K, functions, 2n), and where all are finite."""
        each = [self.system._evaluate(f, q, v, t, self.values) for f in self.functions]
        values = np.concatenate([at[name] for at in each for name in ("L", "Lq", "Lv")], axis=1)
        gradients = np.stack([np.concatenate([at["Lq"], at["Lv"]], axis=1) for at in each], axis=1)
        return gradients, np.isfinite(values).all(axis=1)

    def _moving(self, count: int) -> FloatArray:
        """Which coordinates move: all of them, or a few, so that light ones are seen beside heavy ones at rest."""
        few = self.rng.random((count, self.system.n)) < 2 / self.system.n
        return np.where(self.rng.random((count, 1)) < 0.5, 1.0, few.astype(float))

    def _balanced_speed(self) -> FloatArray:
        """Velocities, by coordinate, at which all terms of the condition weigh alike, whatever units and masses."""
        _, q, v, gradients = self.points(200)
        Lq, Lv = np.split(gradients[:, 0], 2, axis=1)
        force = np.abs(Lq * (q - self.centre)).max(axis=1)
        speed = np.ones(self.system.n)
        for i in range(self.system.n):
            used = (force > 0) & (Lv[:, i] * v[:, i] != 0)
            if used.any():
                speed[i] = np.sqrt(np.median(force[used] / np.abs(Lv[used, i] * v[used, i])))
        return np.clip(speed, self.scale / MOST_RATIO, self.scale * MOST_RATIO)  # L may be flat here

    def conditions(self, count: int, far: bool = False) -> tuple[FloatArray, FloatArray]:
        """Rows of the condition in (A, (b + Ac)/scale), c the centre, so scaled that round-off in each is about eps.

        The second result holds the sizes of the terms before they cancel. A third of the rows are differences of two
        rows, between which some velocities change their sign. Terms that are the same in both, bit for bit, cancel,
        such as the energies of heavy bodies, which would hide a light body.
        """
        t, q, v, gradients = self.points(count, far)
        part = slice(0, count // 3)
        turned = v[part] * self.rng.choice([-1.0, 1.0], v[part].shape)
        others, _ = self._gradients(t[part], q[part], turned)
        found = []
        for k in range(len(self.functions)):
            by_q, by_v = self._terms(q, v, gradients[:, k])
            other_q, other_v = self._terms(q[part], turned, others[:, k])
            rows, terms = by_q + by_v, np.abs(by_q) + np.abs(by_v)
            rows[part] -= other_q + other_v
            terms[part] = _unequal(by_q[part], other_q) + _unequal(by_v[part], other_v)
            size = np.linalg.norm(terms, axis=1)
            fine = np.isfinite(rows).all(axis=1) & np.isfinite(size) & (size > 0)
            found.append((rows[fine] / size[fine, None], terms[fine] / size[fine, None]))
        return np.concatenate([rows for rows, _ in found]), np.concatenate([terms for _, terms in found])

    def _terms(self, q: FloatArray, v: FloatArray, gradient: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The terms of L_q and of L_v in the condition, by the unknowns (A, (b + Ac)/scale)."""
        Lq, Lv = np.split(gradient, 2, axis=1)
        count, n = q.shape
        by_q = (Lq[:, :, None] * (q - self.centre)[:, None, :]).reshape(count, n * n)
        by_v = (Lv[:, :, None] * v[:, None, :]).reshape(count, n * n)
        return np.concatenate([by_q, Lq * self.scale], axis=1), np.concatenate([by_v, np.zeros((count, n))], axis=1)

    def residual(self, rows: FloatArray, A: FloatArray, b: FloatArray) -> float:
        """How far q ↦ q + ε (A q + b) is from leaving L invariant, in these rows."""
        x = np.concatenate([A.ravel(), (b + A @ self.centre) / self.scale])
        return float(np.abs(rows @ x).max(initial=0.0) / np.abs(x).max())


def _unequal(a: FloatArray, b: FloatArray) -> FloatArray:
    """|a| + |b| where they differ."""
    return np.where(a == b, 0.0, np.abs(a) + np.abs(b))


def _null_space(sampler: _Sampler, rows: FloatArray, terms: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A basis (k, n² + n) of the solutions (A, b), of rows of length one; and the singular values that leave a doubt.

    Columns are scaled by the sizes of their terms. Otherwise the small terms of a body of mass 10⁻⁹ would pass for
    zero, and the body would seem to have symmetries of its own.
    """
    n = sampler.system.n
    if len(rows) == 0:
        return np.eye(n * n + n), np.zeros(0)
    sizes = np.linalg.norm(terms, axis=0)
    sizes[sizes == 0] = 1.0
    _, values, right = np.linalg.svd(rows / sizes, full_matrices=len(rows) < n * n + n)
    relative = values / values[0]
    count = int((relative <= ZERO).sum())
    doubtful = relative[(relative > ZERO) & (relative < DEFINITE)]
    null = right[len(values) - count :] / sizes
    A, b = null[:, : n * n].reshape(-1, n, n), null[:, n * n :] * sampler.scale
    null = np.concatenate([null[:, : n * n], b - A @ sampler.centre], axis=1)
    if len(null):
        null /= np.linalg.norm(null, axis=1, keepdims=True)
    return null, doubtful


def _term(x: float, symbol: str) -> tuple[str, str]:
    size = number(abs(x))
    body = symbol if size == "1" and symbol else f"{size} {symbol}".strip()
    return ("−" if x < 0 else "+"), body


def _joined(terms: list[tuple[str, str]]) -> str:
    first, *rest = terms
    text = ("−" if first[0] == "−" else "") + first[1]
    return text + "".join(f" {sign} {body}" for sign, body in rest)


def momenta(system: Any, params: Mapping[str, Any]) -> Mapping[str, looks.Invariant]:
    """The conserved momenta of a small Lagrangian, for its pictures; none where they are not known or a force acts."""
    if system.linear or system.n > 6 or system.forced:
        return {}
    try:
        found = symmetries(system.expanded(), params=params)
    except (ArithmeticError, ValueError):
        return {}

    def momentum(one: Symmetry, q: Any, p: Any, params: Mapping[str, Any]) -> FloatArray:
        return one.momentum(q, p)

    return {one.formula: partial(momentum, one) for one in found}
