"""How one step is applied to a large system: factorise once, then solve.

Each class below is made for one method and one h, and offers

    increments(q, p, F) → q_{k+1} − q_k, p_{k+1} − p_k           F (r, n): the load at the nodes c, or None
    polynomial(q, p, F) → z^1 … z^s, the step's polynomial at its control points, where it has one
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.linear.factor import Factorised, factor
from leastaction.linear.forcing import Rayleigh
from leastaction.linear.matrices import is_sparse
from leastaction.linear.shifts import shifts
from leastaction.methods import LinearForm, Method

if TYPE_CHECKING:
    from leastaction.linear.system import Quadratic

FloatArray = NDArray[np.float64]
Increments = tuple[FloatArray, FloatArray]

STIFF = 10.0  # (h ω)² of the stiffest mode, about, from which on momenta come from velocities


class Solves(ABC):
    """The interface above."""

    how: str
    c: FloatArray
    factors: list[Factorised]

    @abstractmethod
    def increments(self, q: FloatArray, p: FloatArray, F: FloatArray | None) -> Increments:
        """What one step adds to q and p."""

    @abstractmethod
    def polynomial(self, q: FloatArray, p: FloatArray, F: FloatArray | None) -> FloatArray:
        """The increments z of one step, at all control points."""


class Shifted(Solves):
    """s solves with M − h²γ_j K, conjugate pairs halved: see `shifts`. No damping, or Rayleigh's."""

    def __init__(self, system: Quadratic, form: LinearForm, h: float) -> None:
        rayleigh = system.C if isinstance(system.C, Rayleigh) else Rayleigh()
        self.K, self.M, self.h, self.rayleigh = system.K, system.M, h, rayleigh
        self.c, self.w = form.tau, form.w
        self.small = small = shifts(form, h, rayleigh.alpha, rayleigh.beta)
        self.factors = [self._factor(system, gamma) for gamma in small.gamma]
        self.a = h * (small.into @ form.start)
        self.g = h**2 * (small.into @ form.beta)
        self.f = -(h**2) * (small.into @ form.load)
        self.mean, self.end = form.mean @ small.out, form.end @ small.out
        self.momentum = _from_velocities(system, form, h)
        self.slope = self.end if self.momentum is None else self.momentum[1:] @ small.out / h
        count = f"{np.count_nonzero(small.gamma.imag)} complex" if np.any(small.gamma.imag) else "no complex"
        self.how = f"{len(self.factors)} shifted solves, {count}" + (", in Schur form" if small.coupled else "")

    def _factor(self, system: Quadratic, gamma: complex) -> Factorised:
        """M − h²γK, factorised; without pivoting unless γ > 0, which may make the matrix indefinite."""
        if gamma == 0:
            return system.mass_factor
        shift = self.h**2 * (gamma if gamma.imag else gamma.real)
        definite = bool(gamma.imag) or gamma.real < 0
        diagonal = system.mass_diagonal
        if diagonal is not None and system.stiffness_diagonal is not None:
            return factor(diagonal - shift * system.stiffness_diagonal)
        return factor(self.M - shift * self.K, definite=definite)

    def _solve(self, q: FloatArray, p: FloatArray, F: FloatArray | None) -> list[NDArray[Any]]:
        """w_j, from the last to the first (the order matters only in Schur form)."""
        small, Kq = self.small, self.K @ q
        w: list[Any] = [None] * len(self.factors)
        coupling: list[NDArray[Any]] = []  # h² K w_k of the later w_k
        for j in reversed(range(len(w))):
            real = not (small.coupled or small.gamma[j].imag)
            a, g, f = (x[j].real if real else x[j] for x in (self.a, self.g, self.f))
            right = a * p
            right += g * Kq
            if F is not None:
                right += f @ F
            for k, Kw in enumerate(reversed(coupling)):
                right += small.T[j, j + 1 + k] * Kw
            w[j] = self.factors[j].solve(right)
            if small.coupled and j:
                coupling.append(self.h**2 * (self.K @ w[j]))
        return w

    def _combine(self, weights: NDArray[np.complex128], w: list[NDArray[Any]]) -> FloatArray:
        total = np.zeros(len(w[0]))
        for weight, each in zip(weights, w, strict=True):
            total += weight.real * each.real
            if np.iscomplexobj(each):
                total -= weight.imag * each.imag
        return total

    def increments(self, q: FloatArray, p: FloatArray, F: FloatArray | None) -> Increments:
        w = self._solve(q, p, F)
        z = self._combine(self.end, w)
        if self.momentum is not None:
            return z, self.momentum[0] * p + self.M @ self._combine(self.slope, w)
        mean = self._combine(self.mean, w)
        mean += q
        alpha, beta = self.rayleigh.alpha, self.rayleigh.beta
        mean *= -self.h
        if beta:
            mean -= beta * z
        dp = self.K @ mean
        if alpha:
            dp -= alpha * (self.M @ z)
        if F is not None:
            dp += (self.h * self.w) @ F
        return z, dp

    def polynomial(self, q: FloatArray, p: FloatArray, F: FloatArray | None) -> FloatArray:
        w = self._solve(q, p, F)
        return np.array([self._combine(row, w) for row in self.small.out])


class Kronecker(Solves):
    """General damping: Σ (A⊗M − hD⊗C − h²B⊗K) in one factorisation of size s n, since three matrices share no modes."""

    def __init__(self, system: Quadratic, form: LinearForm, h: float) -> None:
        self.M, self.K, self.h, self.form, self.c = system.M, system.K, h, form, form.tau
        self.C: Any = system.C
        self.momentum = _from_velocities(system, form, h)
        if is_sparse(self.K):
            from scipy.sparse import kron
        else:
            from numpy import kron
        block = kron(form.A, self.M) - h * kron(form.D, self.C) - h**2 * kron(form.B, self.K)
        size = np.sqrt(self.M.diagonal() + h**2 * self.K.diagonal())
        self.scale = np.tile(
            1 / size, len(form.A)
        )  # else units of coordinates, as of turns, would decide on the pivots
        self.factors = [factor((block.T * self.scale).T * self.scale, definite=False)]
        self.how = f"one solve of size {len(form.A)} n"

    def polynomial(self, q: FloatArray, p: FloatArray, F: FloatArray | None) -> FloatArray:
        right = np.outer(self.h**2 * self.form.beta, self.K @ q) + np.outer(self.h * self.form.start, p)
        if F is not None:
            right -= (self.h**2 * self.form.load) @ F
        z = self.scale * self.factors[0].solve(self.scale * right.ravel())
        return np.asarray(z.reshape(right.shape))

    def increments(self, q: FloatArray, p: FloatArray, F: FloatArray | None) -> Increments:
        z = self.polynomial(q, p, F)
        dq = self.form.end @ z
        if self.momentum is not None:
            return dq, self.momentum[0] * p + self.M @ (self.momentum[1:] @ z / self.h)
        dp = -self.h * (self.K @ (q + self.form.mean @ z)) - self.C @ dq
        if F is not None:
            dp += (self.h * self.form.w) @ F
        return dq, dp


def _from_velocities(system: Quadratic, form: LinearForm, h: float) -> FloatArray | None:
    """How p_{k+1} − p_k follows from p_k and M z where that is better than the sum of forces; else None.

    With r = s Gauss nodes p is a polynomial of degree s on the step, M v at the nodes, and p_{k+1} is its value at the
    end. The sum of forces −h K (…) would multiply the rounding of q by h ω², in each step, which stiff modes keep for
    ever. Where h ω is small for all modes the sum of forces loses less: it gives p_{k+1} − p_k and not p_{k+1}.
    """
    bound = float((system.K.diagonal() / system.M.diagonal()).max())  # about the square of the highest frequency
    if form.momentum is None or h * h * bound < STIFF:
        return None
    return form.momentum - np.eye(len(form.momentum))[0]


class Composed(Solves):
    """The steps of a composition, one after the other; factors that repeat share their solves."""

    def __init__(self, system: Quadratic, method: Method, h: float) -> None:
        form = method.root.linear_form()
        kind = Shifted if system.C is None or isinstance(system.C, Rayleigh) else Kronecker
        made: dict[float, Solves] = {part: kind(system, form, part * h) for part in set(method.parts.tolist())}
        self.steps = [made[part] for part in method.parts.tolist()]
        offsets = np.concatenate([[0.0], np.cumsum(method.parts)[:-1]])
        parts = zip(offsets, method.parts, self.steps, strict=True)
        self.c = np.concatenate([offset + part * step.c for offset, part, step in parts])
        self.factors = [factor for step in made.values() for factor in step.factors]
        self.how = f"{len(self.steps)} steps, each {self.steps[0].how}"

    def increments(self, q: FloatArray, p: FloatArray, F: FloatArray | None) -> Increments:
        z, dp, before = np.zeros_like(q), np.zeros_like(p), 0
        for step in self.steps:
            own = None if F is None else F[before : before + len(step.c)]
            change = step.increments(q + z, p + dp, own)
            z, dp, before = z + change[0], dp + change[1], before + len(step.c)
        return z, dp

    def polynomial(self, q: FloatArray, p: FloatArray, F: FloatArray | None) -> FloatArray:
        raise TypeError("a step of a composition has no polynomial of its own")


def solves(system: Quadratic, method: Method, h: float) -> Solves:
    """The cheapest stable way to apply the method to the system."""
    found = Composed(system, method, h)
    return found if len(found.steps) > 1 else found.steps[0]
