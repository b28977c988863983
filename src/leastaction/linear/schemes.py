"""The paper's schemes as matrices: Newmark, Simpson's two variants, and their kin.

Rojas-Quintero, Dubois and Cabrera-Díaz (2024). With η = (p, q) a step is A η_{j+1} = B η_j,

    A = | I  −X |     B = | −I  −X |                                                          (34)
        | I   Y |         |  I  −Y |

for symmetric X and Y: Newmark's are X = 2M/h, Y = hK/2 (11); Simpson's X = 2M/h − hK/6, Y = (h/3)(K L⁻¹ + K/2) (31)
with L = I − (h²/8) M⁻¹K (26). Every symmetric method has this form: `members` gives the X and Y of any PsNrQu.

These functions are for reading, checking and small systems. Runs form no inverse (`solves`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.docstrings import documented
from leastaction.linear.matrices import is_sparse
from leastaction.linear.operator import operator as step_operator
from leastaction.methods import Method
from leastaction.methods import method as by_name

FloatArray = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Scheme:
    """X and Y of the form (34) of the quadratic paper, and what follows from them.

    Parameters
    ----------
    X, Y : ndarray, shape (n, n)
        p₁ + p₀ = X (q₁ − q₀) and p₁ − p₀ = −Y (q₁ + q₀).

    Attributes
    ----------
    A, B : ndarray, shape (2n, 2n)
        A η_{j+1} = B η_j with η = (p, q).
    Phi : ndarray, shape (2n, 2n)
        Φ = A⁻¹B, equations (12) and (32).
    xi, zeta : ndarray, shape (n, n)
        ξ = (X + Y)⁻¹ and ζ = (X⁻¹ + Y⁻¹)⁻¹ of Proposition 7.

    Methods
    -------
    phi

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> scheme = la.linear.newmark(np.eye(1), 4 * np.eye(1), 0.5)
    >>> scheme.X, scheme.Y
    (array([[4.]]), array([[1.]]))
    """

    X: FloatArray
    Y: FloatArray

    @property
    def A(self) -> FloatArray:
        I = np.eye(len(self.X))
        return np.block([[I, -self.X], [I, self.Y]])

    @property
    def B(self) -> FloatArray:
        I = np.eye(len(self.X))
        return np.block([[-I, -self.X], [I, -self.Y]])

    @property
    def Phi(self) -> FloatArray:
        return np.linalg.solve(self.A, self.B)

    @property
    def xi(self) -> FloatArray:
        return np.linalg.inv(self.X + self.Y)

    @property
    def zeta(self) -> FloatArray:
        zeta = self.X @ np.linalg.solve(self.X + self.Y, self.Y)  # X ξ Y, since Y of a free structure is singular
        return (zeta + zeta.T) / 2

    @documented("state")
    def phi(self, p: FloatArray, q: FloatArray) -> float:
        """φ(p, q) = ½ pᵀξp + ½ qᵀζq, which every step conserves (42)."""
        return float(p @ self.xi @ p + q @ self.zeta @ q) / 2


@dataclass(frozen=True, eq=False)
class SimpsonWithMiddle:
    """Simpson's first variant, (26) to (29) of the quadratic paper: A (q_{j+1/2}, p_{j+1}, q_{j+1}) = B (p_j, q_j).

    Attributes
    ----------
    L : ndarray, shape (n, n)
        I − (h²/8) M⁻¹K.
    A : ndarray, shape (3n, 3n)
        Of the states after the step, with the middle.
    B : ndarray, shape (3n, 2n)
        Of the states before the step.
    Phi : ndarray, shape (3n, 2n)
        A⁻¹B (29). Its first n rows give the middle, the others η_{j+1}.

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> la.linear.simpson_first(np.eye(1), np.eye(1), 0.5).Phi.shape
    (3, 2)
    """

    L: FloatArray
    A: FloatArray
    B: FloatArray

    @property
    def Phi(self) -> FloatArray:
        return np.linalg.solve(self.A, self.B)


@documented("matrices")
def newmark(M: Any, K: Any, h: float) -> Scheme:
    """Newmark's scheme (γ = ½, β = ¼), equations (11) and (12) of the quadratic paper: X = 2M/h, Y = hK/2.

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> la.linear.newmark(np.eye(1), 4 * np.eye(1), 0.5).Phi
    array([[ 0.6, -1.6],
           [ 0.4,  0.6]])
    """
    M, K = _full(M), _full(K)
    return Scheme(2 / h * M, h / 2 * K)


@documented("matrices")
def simpson_L(M: Any, K: Any, h: float) -> FloatArray:
    """L = I − (h²/8) M⁻¹K, below equation (26) of the quadratic paper: q_{j+1/2} = ½ L⁻¹ (q_j + q_{j+1}).

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> la.linear.simpson_L(np.eye(1), 4 * np.eye(1), 1.0)
    array([[0.5]])
    """
    M, K = _full(M), _full(K)
    return np.eye(len(M)) - h**2 / 8 * np.linalg.solve(M, K)


@documented("matrices")
def simpson_first(M: Any, K: Any, h: float) -> SimpsonWithMiddle:
    """Simpson's first variant, with the middle of the step: equations (26) to (28) of the quadratic paper.

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> la.linear.simpson_first(np.eye(2), np.eye(2), 0.5).A.shape
    (6, 6)
    """
    M, K = _full(M), _full(K)
    I = np.eye(len(M))
    O = np.zeros_like(I)
    L, X = simpson_L(M, K, h), 2 / h * M - h / 6 * K
    A = np.block([[L, O, -I / 2], [O, I, -X], [2 * h / 3 * K, I, h / 6 * K]])
    B = np.block([[O, I / 2], [-I, -X], [I, -h / 6 * K]])
    return SimpsonWithMiddle(L, A, B)


@documented("matrices")
def simpson_second(M: Any, K: Any, h: float) -> Scheme:
    """Simpson's second variant, without the middle: equations (30) to (32) of the quadratic paper.

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> first = la.linear.simpson_first(np.eye(1), np.eye(1), 0.5)
    >>> second = la.linear.simpson_second(np.eye(1), np.eye(1), 0.5)
    >>> bool(np.allclose(first.Phi[1:], second.Phi))
    True
    """
    M, K = _full(M), _full(K)
    KL_inverse = np.linalg.solve(simpson_L(M, K, h).T, K).T
    Y = h / 3 * (KL_inverse + K / 2)
    return Scheme(2 / h * M - h / 6 * K, (Y + Y.T) / 2)


@documented()
def members(method: Method | str, M: Any, K: Any, h: float) -> Scheme:
    """X and Y of any symmetric member PsNrQu: p₁ + p₀ = X (q₁ − q₀), p₁ − p₀ = −Y (q₁ + q₀).

    A step from q₀ = 0 leads to q₁ = b p₀ and p₁ = d p₀: so X = (1 + d) b⁻¹ and Y = (1 − d) b⁻¹.

    Parameters
    ----------
    {method, matrices}

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> same = la.linear.members("newmark", np.eye(1), 4 * np.eye(1), 0.5)
    >>> bool(np.allclose(same.Phi, la.linear.newmark(np.eye(1), 4 * np.eye(1), 0.5).Phi))
    True
    """
    method = by_name(method)
    if not (method.symmetric and method.symplectic):
        raise ValueError(f"{method.name} is not symmetric and has no X and Y; take a member PsNrQu")
    M, K = _full(M), _full(K)
    step = step_operator(method, h, M, K, None)
    n = len(M)
    b, d = np.split(step.W[:, n:] + step.W_low[:, n:], 2)
    X, Y = (np.linalg.solve(b.T, x.T).T for x in (2 * np.eye(n) + d, -d))
    return Scheme((X + X.T) / 2, (Y + Y.T) / 2)


def _full(a: Any) -> FloatArray:
    """M or K as `Quadratic` takes them, written out."""
    a = np.asarray(a.toarray() if is_sparse(a) else a)
    return np.diag(a) if a.ndim == 1 else np.atleast_2d(a)
