"""One method at one step h on one system: the matrix of the step for small dense systems, solves for the others."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.docstrings import documented
from leastaction.linear.forcing import at_times
from leastaction.linear.operator import Operator, operator
from leastaction.linear.solves import Solves, solves
from leastaction.methods import Method
from leastaction.methods import method as by_name

if TYPE_CHECKING:
    from leastaction.linear.system import Quadratic

FloatArray = NDArray[np.float64]

SMALL, SMALL_BLOCK = 32, 128  # dense systems with n and s n up to these get their step as a matrix


@documented()
class Propagator:
    """One method at one step h on one linear system, ready to step.

    Parameters
    ----------
    system : Quadratic
        The system.
    {method, h}

    Attributes
    ----------
    matrix : ndarray, shape (2n, 2n)
        Φ of one step without load: (q, p) ↦ Φ (q, p).

    Methods
    -------
    increments, power, conserved

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> step = la.linear.Propagator(la.Quadratic([1.0], [1.0]), "midpoint", 1.0)
    >>> step.matrix
    array([[ 0.6,  0.8],
           [-0.8,  0.6]])
    """

    def __init__(self, system: Quadratic, method: Method | str, h: float) -> None:
        self.system, self.method, self.h = system, by_name(method), float(h)
        if not np.isfinite(self.h) or self.h == 0:
            raise ValueError(f"the step h must be finite and not zero; got {h!r}")
        size = system.n * len(self.method.root.linear_form().A)
        self.small = not system.sparse and system.n <= SMALL and size <= SMALL_BLOCK
        self._power: tuple[int, FloatArray] | None = None

    @cached_property
    def operator(self) -> Operator:
        system = self.system
        return operator(self.method, self.h, system.M, system.K, system.damping_matrix())

    @cached_property
    def solves(self) -> Solves:
        return solves(self.system, self.method, self.h)

    @cached_property
    def matrix(self) -> FloatArray:
        """Φ, (2n, 2n), of one step without load: y_{k+1} = Φ y_k."""
        n = self.system.n
        if self.small:
            return np.asarray(np.eye(2 * n) + self.operator.W + self.operator.W_low)
        columns = [np.concatenate(self._increments(e[:n], e[n:], None)) for e in np.eye(2 * n)]
        return np.asarray(np.eye(2 * n) + np.array(columns).T)

    def power(self, k: int) -> FloatArray:
        """Φᵏ: the derivative of k steps by the state at their beginning. The last power asked for is kept.

        Parameters
        ----------
        k : int
            How many steps.
        """
        if self._power is None or self._power[0] != k:
            self._power = k, np.linalg.matrix_power(self.matrix, k)
        return self._power[1]

    def prepare(self) -> None:
        """Make the matrix or the factors now, not at the first step."""
        _ = self.operator if self.small else self.solves

    def counts(self) -> dict[str, Any]:
        """How the step is applied, and what it keeps."""
        if self.small:
            return {"how": f"matrix of one step, {2 * self.system.n} × {2 * self.system.n}"}
        factors = self.solves.factors
        return {
            "how": self.solves.how,
            "factor_entries": [f.nnz for f in factors],
            "factor_bytes": sum(f.nnz * (f.itemsize + 4) for f in factors),
        }

    @property
    def c(self) -> FloatArray:
        """Where in a step, 0 to 1, the method asks for the load."""
        return self.operator.c if self.small else self.solves.c

    def load(self, t: ArrayLike) -> FloatArray | None:
        """f at the nodes of the step that begins at t, (r, n); of many steps, t.shape + (r, n)."""
        f = self.system.f
        if f is None:
            return None
        return at_times(f, self.system.n, np.asarray(t, float)[..., None] + self.h * self.c)

    @documented("state", "t")
    def increments(self, q: FloatArray, p: FloatArray, t: float = 0.0) -> tuple[FloatArray, FloatArray]:
        """q_{k+1} − q_k and p_{k+1} − p_k of one step that begins at the time t."""
        return self._increments(q, p, self.load(t))

    def _increments(self, q: FloatArray, p: FloatArray, F: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        if not self.small:
            return self.solves.increments(q, p, F)
        y = np.concatenate([q, p])
        op = self.operator
        d = op.W @ y + op.W_low @ y + (0 if F is None else op.G @ F.ravel())
        return d[: len(q)], d[len(q) :]

    def polynomial(self, q: FloatArray, p: FloatArray, t: float = 0.0) -> FloatArray:
        """z^1 … z^s, (s, n): the polynomial of a member PsNrQu, less q, at the control points."""
        F = self.load(t)
        if not self.small:
            return self.solves.polynomial(q, p, F)
        known = np.concatenate([q, p] if F is None else [q, p, F.ravel()])
        return np.asarray(self.operator.Z[:, :, : len(known)] @ known)

    @documented("state")
    def conserved(self, q: ArrayLike, p: ArrayLike) -> float:
        """φ(p, q) = ½ pᵀξp + ½ qᵀζq of Proposition 7, with ξ = (X + Y)⁻¹ and ζ = (X⁻¹ + Y⁻¹)⁻¹ = X ξ Y, for any
        symmetric method on a system without damping.

        From q = 0 a step moves by 2 ξ p, and from p = 0 it changes the momentum by −2 ζ q: two half states give φ.
        """
        if self.system.C is not None or not (self.method.symmetric and self.method.symplectic):
            raise ValueError("φ is conserved by symmetric members PsNrQu and compositions, on systems without damping")
        q, p = np.asarray(q, dtype=float), np.asarray(p, dtype=float)
        zero = np.zeros_like(q)
        return float(p @ self._increments(zero, p, None)[0] - q @ self._increments(q, zero, None)[1]) / 4
