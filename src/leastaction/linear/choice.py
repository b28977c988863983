"""Method and step of a linear system for a tolerance, before the run: by the modes that start and load excite.

The motion is projected on a small space (`excited`): it holds the start, the answers to the load at rest, what
(K + μM)⁻¹M makes of them, again and again, and what M⁻¹K makes of the start, for its quick part. In the modes of this
space the error of a member PsNsQ2sGau is known.

From the start: a step multiplies e^{λt} by R(hλ) = e^{hλ + δ}, the diagonal Padé approximant, where λ² + cλ + ω² = 0.
R is, up to factors, the quotient of spherical Bessel functions, so that with hλ = ix

    δ = 2i arctan(j_s(x/2)/y_s(x/2))

is correct to the last bit also where it is far below x. After N steps the amplitude is off by the factor e^{Nδ} − 1.

From the load: the modes run from rest, each step a 2 × 2 matrix, and are compared with far shorter steps.

A mode whose amplitude is below the tolerance may be stepped as coarsely as the others allow, since these members are
stable for every h. Work is counted, never timed: by the entries of factors that a run reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.linear.factor import factor, one_thread
from leastaction.linear.forcing import Load, Rayleigh, at_times
from leastaction.linear.oscillators import march, steps
from leastaction.linear.shifts import shifts
from leastaction.methods import Galerkin
from leastaction.methods import method as by_name
from leastaction.step.kronecker import kronecker_of
from leastaction.step.samples import Samples

if TYPE_CHECKING:
    from leastaction.linear.system import Quadratic

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]
Operator = Callable[[FloatArray], FloatArray]

EPS = float(np.finfo(float).eps)
DEGREES = (1, 2, 3, 4, 5, 6, 7, 8)  # s of the members PsNsQ2sGau that may be chosen
SPACE, QUICK, SHAPES = 48, 24, 8  # dimensions of the space, more of them for quick modes, and those of the load
SAFETY = 0.5  # of tol: the error that is aimed at, since few modes know the largest error to a factor of two
SAMPLED = 2048  # times at which a load that is a function is asked
NUMBERS = 2**21  # positions of modes in one run of the modes
STORED = 2**27  # numbers that a run may store: longer runs are not chosen
STEP, FACTORED = 20_000, 20  # work of a step beside its solves, and of a factorisation over that of a solve with it
BLURRED = 8.0  # times a mean of n roundings of K: so much the members of odd degree lose on stiff beams
TIMES, LOOKED = 64, 4096  # at which a motion is looked at, and so many coordinates


@dataclass(frozen=True)
class Choice:
    """A method and a step for a tolerance.

    method   its name
    h        the length of the step, positive
    error    that is expected of the position, relative to the size of the motion; above tol if no run keeps tol
    reason   how the error is known, for people
    """

    method: str
    h: float
    error: float
    reason: str


def chosen(system: Quadratic, q: FloatArray, p: FloatArray, t0: float, t_end: float, tol: float) -> Choice:
    """The member and the step that keep a tolerance with the least work, or come nearest to it."""
    with one_thread():  # small products all along: threads would wait for each other
        return _chosen(system, q, p, t0, t_end, tol)


def _chosen(system: Quadratic, q: FloatArray, p: FloatArray, t0: float, t_end: float, tol: float) -> Choice:
    there = excited(system, q, p, t0, t_end)
    driven = None if there.load is None else Driven(there, SAFETY * tol)
    size = there.size(driven)
    most, found = max(1, STORED // system.n), []
    for s in DEGREES:
        aim = SAFETY * tol * size
        count, off = (0, 0.0) if driven is None else driven.fewest(s, aim / 2, most)
        count = max(count, there.fewest(s, aim - min(off, aim / 2), most))
        error = (there.error(s, count) + off) / size + _rounding(there, system, s, count)
        found.append((error > tol, error if error > tol else _work(there, system, s, count), s, count, error))
    missed, _, s, count, error = min(found)
    reason = f"by formulas, for {len(there.omega)} modes that start and load excite"
    if driven is not None and driven.part < 1:
        reason += f", from the first {driven.part:.1g} of the run"
    if missed:
        reason += f"; rounding and the most steps that are chosen, {most}, allow no less"
    return Choice(_member(s).name, there.span / count, max(float(error), 50 * EPS), reason)


def _member(s: int) -> Galerkin:
    found = by_name(f"P{s}N{s}Q{2 * s}Gau")
    assert isinstance(found, Galerkin)
    return found


def _work(there: Excited, system: Quadratic, s: int, count: int) -> float:
    """The work of a run: one solve for each degree; with general damping one of s times the size."""
    solve = there.entries * (s * s if _general(system) else s)
    return count * (STEP + solve) + FACTORED * solve * (s if _general(system) else 1)


def _general(system: Quadratic) -> bool:
    return system.C is not None and not isinstance(system.C, Rayleigh)


def _rounding(there: Excited, system: Quadratic, s: int, count: int) -> float:
    """What rounding makes of the end, about: in each step a last place, times what the sums of the partial fractions
    amplify; and, in stiff systems, frequencies are known as well as the entries of K, whose errors have a mean.
    """
    if system.propagator(_member(s), there.span / count).small or _general(system):
        amplified = 1.0
    else:
        damping = system.C if isinstance(system.C, Rayleigh) else Rayleigh()
        form, h = kronecker_of(_member(s)), there.span / count
        amplified = max(1.0, shifts(form, h, damping.alpha, damping.beta).amplification)
    return float(EPS * amplified * (np.sqrt(count) + BLURRED * there.blur / system.n))


@dataclass(frozen=True, eq=False)
class Excited:
    """The modes in which a motion takes place.

    t0, span, forward    the start, the length of time, and 1.0, or −1.0 where time runs backward
    omega, c             (k,) frequencies and damping
    shape                (…, k) at many coordinates, those among them where a mode is largest
    q, p                 (k,) the start
    load                 on the modes, or None
    entries              of one factor
    coupling             (k,) |φ|ᵀ|K||φ|: a last place of the entries of K may change ω² by ε times this
    """

    t0: float
    span: float
    forward: float
    omega: FloatArray
    c: FloatArray
    shape: FloatArray
    q: FloatArray
    p: FloatArray
    load: Samples | None
    entries: int
    coupling: FloatArray

    def __post_init__(self) -> None:
        """λ and amplitudes of e^{λt}, (2, k): of a pair that oscillates the first, doubled; real parts count."""
        c = self.forward * self.c
        c = np.where(np.abs(c * c / 4 - self.omega**2) < 1e-10 * self.omega**2, c * (1 - 1e-4), c)  # two different λ
        root = np.sqrt((c * c / 4 - self.omega**2).astype(complex))
        large = -(c / 2 + np.where(c < 0, -root, root))
        with np.errstate(all="ignore"):
            rates = np.array([np.where(large == 0, 0.0, self.omega**2 / large), large])
            v = self.forward * self.p
            parts = np.array([v - rates[1] * self.q, rates[0] * self.q - v]) / (rates[0] - rates[1])
        swinging = root.imag > np.abs(c) / 2
        parts = np.where(root == 0, 0.0, np.where(swinging, parts * [[2], [0]], parts))  # a free body is exact
        object.__setattr__(self, "waves", (rates, parts))

    waves: tuple[ComplexArray, ComplexArray] = field(init=False)

    def error(self, s: int, count: int) -> float:
        """The largest error that the start brings, at the end or before."""
        rates, parts = self.waves
        z, found = self.span / count * rates, 0.0
        delta = _excess(s, z)
        for k in count * np.array([1 / 64, 1 / 16, 1 / 4, 1.0]):
            with np.errstate(all="ignore"):
                lost = np.abs(np.exp(k * z)) + np.abs(np.exp(k * (z + delta)))
                grown = np.where(np.abs(k * delta) < 1, np.exp(k * z) * np.expm1(k * delta), lost)
                off = self.shape @ np.where(parts == 0, 0.0, parts * grown).sum(axis=0)
            found = max(found, float(np.nan_to_num(np.abs(off), nan=np.inf).max()))
        return found

    def fewest(self, s: int, wanted: float, most: int) -> int:
        """The fewest steps with no larger error, to a percent; `most` if that is not enough."""
        low, high = 0, 1
        while high < most and self.error(s, high) > wanted:
            low, high = high, 2 * high
        high = min(high, most)
        while high - low > max(1, high // 100):
            middle = (low + high) // 2
            low, high = (low, middle) if self.error(s, middle) <= wanted else (middle, high)
        return high

    def size(self, driven: Driven | None) -> float:
        """The size of the motion: the largest range of a coordinate; 1 at rest."""
        rates, parts = self.waves
        at = np.arange(TIMES + 1) / TIMES * self.span
        modes = np.where(parts == 0, 0.0, parts * np.exp(at[:, None, None] * rates)).sum(axis=1).real
        free = self.omega == 0
        modes[:, free] = self.q[free] + at[:, None] * self.p[free]
        if driven is not None:
            modes[1:] += driven.reference[np.linspace(0, len(driven.reference), TIMES + 1).astype(int)[1:] - 1]
        return float(np.ptp(modes @ self.shape.T, axis=0).max()) or 1.0

    @property
    def rate(self) -> float:
        """The frequency of the motion, in the mean of the squares."""
        weight = self._weight()
        return float(np.sqrt((weight * self.omega**2).sum() / weight.sum())) if weight.any() else 0.0

    @property
    def blur(self) -> float:
        """By how many last places ω² of the motion may change with one of K, in the same mean."""
        weight = self._weight()
        square = (weight * self.omega**2).sum()
        return float((weight * self.coupling).sum() / square) if square else 0.0

    def _weight(self) -> FloatArray:
        """The squares of the amplitudes of the modes, about."""
        slow = np.maximum(self.omega, 1 / self.span)
        pushed = 0.0 if self.load is None else np.abs(self.load.values).max(axis=0)
        return np.asarray(self.q**2 + (self.p / slow) ** 2 + (pushed / slow**2) ** 2)


def _excess(s: int, z: ComplexArray) -> ComplexArray:
    """δ with R(z) = e^{z + δ}; by R itself where e^z is far from it."""
    from scipy.special import spherical_jn, spherical_yn

    x, k = -1j * z, np.arange(s)
    terms = np.append(1.0, np.cumprod((s - k) / ((2 * s - k) * (k + 1))))[::-1]
    with np.errstate(all="ignore"):
        near = 2j * np.arctan(spherical_jn(s, x / 2) / spherical_yn(s, x / 2))
        far = np.log(np.polyval(terms, z) / np.polyval(terms, -z)) - z
    return np.where(z == 0, 0.0, np.where(np.abs(z.real) > 30, far, near))


class Driven:
    """The answer of the modes to the load, from rest.

    part        of the span that is looked at: errors grow like time beyond it
    reference   (count, k) positions of the modes, with far shorter steps
    unsure      by how much the reference may be off
    """

    def __init__(self, there: Excited, tol: float) -> None:
        self.there, self.part = there, 1.0
        while True:
            count = self._first()
            most = max(NUMBERS // len(there.omega), 2 * count)
            self.reference = self._run(DEGREES[-1], count)
            while 2 * count <= most:
                before, count = self.reference, 2 * count
                self.reference = self._run(DEGREES[-1], count)
                self.unsure = self._apart(before)
                if self.unsure <= tol / 10 * there.size(self):
                    return
            if self.part < 1e-3:
                return
            self.part /= 8

    def _first(self) -> int:
        """Three times as many steps as samples: three on each where all are equally long and lines join them."""
        there, load = self.there, self.there.load
        assert load is not None
        span = there.span * self.part
        gap = float(np.diff(load.times).min())
        equal = load.rule != "cubic" and np.ptp(np.diff(load.times)) < 1e-9 * gap
        lattice = round(span / gap)
        self.unit = lattice if equal and lattice and abs(lattice * gap - span) < 1e-9 * span else 1
        inside = int(np.count_nonzero(np.abs(load.times - there.t0 - there.forward * span / 2) < span / 2))
        count = 3 * self.unit
        while count < min(max(32, inside), NUMBERS // len(there.omega)):
            count *= 2
        return count

    def _run(self, s: int, count: int) -> FloatArray:
        there, method = self.there, _member(s)
        assert there.load is not None
        h = there.forward * there.span * self.part / count
        W, G = steps(method, h, there.omega, there.c)
        at = there.t0 + h * (np.arange(count)[:, None] + method.table.c)
        return march(W, np.einsum("kir,nrk->nki", G, there.load.at(at)))[..., 0]

    def _apart(self, one: FloatArray) -> float:
        """How far another run is from the reference, at most: each mode counts where its shape is largest."""
        every = len(self.reference) // len(one)
        largest = np.abs(self.there.shape).max(axis=0)
        return float((np.abs(one - self.reference[every - 1 :: every]) @ largest).max())

    def fewest(self, s: int, wanted: float, most: int) -> tuple[int, float]:
        """The fewest steps for the whole span with no larger error, of those that divide the reference; the error."""
        units = len(self.reference) // (3 * self.unit)
        counts = sorted(m * self.unit * 2**i for m in (1, 3) for i in range(units.bit_length()))
        for count in counts:
            error = (self._apart(self._run(s, count)) + self.unsure) / self.part
            if error <= wanted or count / self.part > most / 2:
                break
        return round(count / self.part), error


def excited(system: Quadratic, q: FloatArray, p: FloatArray, t0: float, t_end: float) -> Excited:
    """The modes of the space that start and load begin."""
    M, K, span = system.M, system.K, abs(t_end - t0)
    load, at = system.f, np.linspace(t0, t_end, SAMPLED + 1)
    shapes = np.zeros((system.n, 0))
    if isinstance(load, Load):
        shapes = load.vector
    elif load is not None:
        values = load.values if isinstance(load, Samples) else at_times(load, system.n, at[:: SAMPLED // 32])
        mixed = np.random.default_rng(0).standard_normal((len(values), SHAPES))
        shapes = values.T @ mixed  # they span nearly the same
    largest = float((K.diagonal() / M.diagonal()).max())
    mu = max(span**-2, 1e-13 * largest)
    with one_thread():
        stiffness = factor(K + mu * M)
        solve = stiffness.solve
        state = np.column_stack([q, system.velocity(q, p)])
        answers = solve(np.ascontiguousarray(shapes[:, :SHAPES]))
        V = _grown(np.zeros((system.n, 0)), np.column_stack([state, answers]), lambda x: solve(M @ x), M, SPACE)
        inverse = system.mass_factor.solve
        V = _grown(V, inverse(K @ state), lambda x: inverse(K @ x), M, V.shape[1] + QUICK)
        if not V.shape[1]:
            V = _orthonormal(np.ones((system.n, 1)), V, M)  # at rest
        theta, turn = np.linalg.eigh(V.T @ (M @ solve(M @ V)))
    shape = V @ turn
    square = 1 / np.maximum(theta, EPS * theta[-1]) - mu
    omega = np.sqrt(np.where(square > 1e-6 * mu, square, 0.0))
    coupling = (np.abs(shape) * (abs(K) @ np.abs(shape))).sum(axis=0)
    if isinstance(system.C, Rayleigh):
        c = system.C.alpha + system.C.beta * omega**2
    else:
        c = np.zeros(len(omega)) if system.C is None else np.maximum((shape * (system.C @ shape)).sum(axis=0), 0.0)
    if isinstance(load, Load):
        load = Samples(load.times, load.values @ (load.vector.T @ shape), load.rule)
    elif isinstance(load, Samples):
        load = Samples(load.times, load.values @ shape, load.rule)
    elif load is not None:
        at = np.sort(at)
        load = Samples(at, np.array([at_times(load, system.n, t)[0] @ shape for t in at[:, None]]))
    amplitudes = shape.T @ (M @ q), shape.T @ p
    rows = np.unique(np.r_[np.linspace(0, system.n - 1, LOOKED).astype(int), np.abs(shape).argmax(axis=0)])
    forward = float(np.sign(t_end - t0))
    return Excited(t0, span, forward, omega, c, shape[rows], *amplitudes, load, stiffness.nnz, coupling)


def _grown(V: FloatArray, new: FloatArray, apply: Operator, M: Any, most: int) -> FloatArray:
    """A basis, with what an operator makes of some vectors, again and again."""
    while V.shape[1] < min(most, len(V)) and (new := _orthonormal(new, V, M)).shape[1]:
        V = np.column_stack([V, new])[:, :most]
        new = apply(new)
    return V


def _orthonormal(x: FloatArray, V: FloatArray, M: Any) -> FloatArray:
    """What the columns of x add to those of V, orthonormal in the inner product of M."""
    found: list[FloatArray] = []
    for column in x.T:
        given = np.sqrt(column @ (M @ column))
        for _ in range(2):
            for base in (V, np.array(found).T if found else V):
                column = column - base @ (base.T @ (M @ column))
        size = np.sqrt(column @ (M @ column))
        if size > 1e-8 * given:
            found.append(column / size)
    return np.array(found).T if found else np.zeros((len(x), 0))
