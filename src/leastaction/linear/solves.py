"""How one step is applied to a large system: factorise once, then solve.

Each way answers for one method and one h:

    increments(q, p, F) → q_{k+1} − q_k, p_{k+1} − p_k           F (r, n): the load at the nodes c, or None
    polynomial(q, p, F) → z^1 … z^s, the step's polynomial at its control points
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.linear.factor import Factor, factor
from leastaction.linear.forcing import Rayleigh
from leastaction.linear.matrices import is_sparse
from leastaction.linear.shifts import shifts
from leastaction.linear.weak import weak
from leastaction.methods import Galerkin, Method

if TYPE_CHECKING:
    from leastaction.linear.system import Quadratic

FloatArray = NDArray[np.float64]
Increments = tuple[FloatArray, FloatArray]


class Solves(ABC):
    """The interface above."""

    how: str
    c: FloatArray
    factors: list[Factor]

    @abstractmethod
    def increments(self, q: FloatArray, p: FloatArray, F: FloatArray | None) -> Increments:
        """What one step adds to q and p."""

    def polynomial(self, q: FloatArray, p: FloatArray, F: FloatArray | None) -> FloatArray:
        """The increments z of one step, at all control points, of a method that has them."""
        raise TypeError(f"a step by {self.how} has no polynomial of its own")


class Shifted(Solves):
    """s solves with M − h²γ_j K, conjugate pairs halved: see `shifts`. No damping, or Rayleigh's."""

    def __init__(self, system: Quadratic, method: Galerkin, h: float) -> None:
        rayleigh = system.C if isinstance(system.C, Rayleigh) else Rayleigh()
        self.K, self.M, self.h, self.rayleigh = system.K, system.M, h, rayleigh
        self.weak = weak(method)
        self.c = self.weak.c
        self.small = small = shifts(self.weak, h, rayleigh.alpha, rayleigh.beta)
        self.factors = [self._factor(system, gamma) for gamma in small.gamma]
        self.a = -h * small.into[:, 0]
        self.g = h**2 * (small.into @ self.weak.beta[:-1])
        self.f = -(h**2) * (small.into @ self.weak.load)
        self.mean = self.weak.beta[1:] @ small.out
        count = f"{np.count_nonzero(small.gamma.imag)} complex" if np.any(small.gamma.imag) else "no complex"
        self.how = f"{len(self.factors)} shifted solves, {count}" + (", in Schur form" if small.coupled else "")

    def _factor(self, system: Quadratic, gamma: complex) -> Factor:
        """M − h²γK; without pivoting unless γ > 0 might make it indefinite."""
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
        coupling: list[NDArray[Any]] = []  # h² K w_k of the later ones
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
        z = self._combine(self.small.out[-1], w)
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
            dp += (self.h * self.weak.b) @ F
        return z, dp

    def polynomial(self, q: FloatArray, p: FloatArray, F: FloatArray | None) -> FloatArray:
        w = self._solve(q, p, F)
        return np.array([self._combine(row, w) for row in self.small.out])


class Block(Solves):
    """General damping: Σ (A⊗M − hD⊗C − h²B⊗K) in one factorisation of size s n, since three matrices share no modes."""

    def __init__(self, system: Quadratic, method: Galerkin, h: float) -> None:
        self.M, self.K, self.C, self.h = system.M, system.K, system.C, h
        self.weak = weak(method)
        self.c = self.weak.c
        if is_sparse(self.K):
            from scipy.sparse import kron
        else:
            from numpy import kron
        A, D, B = self.weak.A, self.weak.D, self.weak.B
        block = kron(A, self.M) - h * kron(D, self.C) - h**2 * kron(B, self.K)
        self.factors = [factor(block, definite=False)]
        self.how = f"one solve of size {method.s} n"

    def polynomial(self, q: FloatArray, p: FloatArray, F: FloatArray | None) -> FloatArray:
        right = np.outer(self.h**2 * self.weak.beta[:-1], self.K @ q)
        right[0] -= self.h * p
        if F is not None:
            right -= (self.h**2 * self.weak.load) @ F
        return self.factors[0].solve(right.ravel()).reshape(right.shape)

    def increments(self, q: FloatArray, p: FloatArray, F: FloatArray | None) -> Increments:
        z = self.polynomial(q, p, F)
        dp = -self.h * (self.K @ (q + self.weak.beta[1:] @ z)) - self.C @ z[-1]
        if F is not None:
            dp += (self.h * self.weak.b) @ F
        return z[-1], dp


class RungeKutta(Solves):
    """RK4 on q̇ = M⁻¹p, ṗ = −Kq − C M⁻¹p + f(t): four solves with M."""

    def __init__(self, system: Quadratic, h: float) -> None:
        self.system, self.h = system, h
        self.c = np.array([0.0, 0.5, 1.0])
        self.factors = [system.mass_factor]
        self.how = "four stages"

    def increments(self, q: FloatArray, p: FloatArray, F: FloatArray | None) -> Increments:
        h = self.h
        load = np.zeros((3, 1)) if F is None else F

        def rate(q: FloatArray, p: FloatArray, f: FloatArray) -> Increments:
            v = self.system.mass_factor.solve(p)
            return v, f - self.system.K @ q - self.system.damping_force(v)

        k1 = rate(q, p, load[0])
        k2 = rate(q + h / 2 * k1[0], p + h / 2 * k1[1], load[1])
        k3 = rate(q + h / 2 * k2[0], p + h / 2 * k2[1], load[1])
        k4 = rate(q + h * k3[0], p + h * k3[1], load[2])
        z, dp = (h / 6 * (a + 2 * b + 2 * c + d) for a, b, c, d in zip(k1, k2, k3, k4, strict=True))
        return z, dp


def solves(system: Quadratic, method: Method, h: float) -> Solves:
    """The cheapest stable way to apply the method to the system."""
    if not isinstance(method, Galerkin):
        return RungeKutta(system, h)
    if system.C is None or isinstance(system.C, Rayleigh):
        return Shifted(system, method, h)
    return Block(system, method, h)
