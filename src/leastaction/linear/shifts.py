"""A step as shifted solves: the partial fractions of a member PsNrQu in h² M⁻¹K.

The step's equations (see `methods.linear_form`) are Â⊗M − h² B̂⊗K on the s increments, with Â = A − hαD and B̂ = B +
(β/h)D for Rayleigh damping αM + βK. With Ĝ = Â⁻¹B̂ = V Γ V⁻¹ they fall apart,

    (M − h²γ_j K) w_j = row j of V⁻¹Â⁻¹ (right-hand side),      z = V w.

γ_j is real or one of a conjugate pair; of a pair only one equation is solved, in complex arithmetic. A γ_j = 0, as all
Lobatto members with r ≤ s + 1 have, needs M alone, which is no work when M is diagonal. For Newmark γ = −1/4; for
Simpson γ = −1/24 and 0; for PsNsQ2sGau the γ_j are −λ², λ the eigenvalues of the Gauss collocation matrix.

The sums z = V w cancel: an error of one unit in w_j is amplified by Σ_j |V_sj (V⁻¹Â⁻¹)_js|, 1 for s = 1, 12 for
P4N4Q8Gau, 10³ for P8N8Q16Gau. Beyond LIMIT, and where V does not exist, as for RK4, whose γ_j are all zero, the unitary
Schur form Ĝ = U T Uᴴ is used: nothing is amplified, but there are no pairs to halve the work, and the solves come one
after the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leastaction.methods import LinearForm

ComplexArray = NDArray[np.complex128]

LIMIT = 1e3  # the partial fractions may lose three digits


@dataclass(frozen=True, eq=False)
class Shifts:
    """One row per solve, j = 1 … m ≤ s, each with T_jj = γ_j:

        (M − h²γ_j K) w_j = h² K Σ_{k>j} T_jk w_k + h (into start)_j p + h² (into β)_j Kq − h² Σ_i (into load)_ji f_i
        z^ν = Re Σ_j out_νj w_j

    T is diagonal unless `coupled`. out (s, m); into (m, s). `amplification`: units in the last place that one unit in
    each w_j may cost in q⁺.
    """

    T: ComplexArray
    out: ComplexArray
    into: ComplexArray
    coupled: bool
    amplification: float

    @property
    def gamma(self) -> ComplexArray:
        return np.diag(self.T)


def shifts(form: LinearForm, h: float, alpha: float = 0.0, beta: float = 0.0) -> Shifts:
    """Partial fractions of the step, or its Schur form where they would lose more than LIMIT."""
    A = form.A - h * alpha * form.D
    G = np.linalg.solve(A, form.B + (beta / h) * form.D)
    A_inverse = np.linalg.inv(A)
    gamma, V = np.linalg.eig(G)
    gamma = np.where(np.abs(gamma) < 1e-14 * len(G), 0.0, gamma)
    if np.linalg.cond(V) < 1 / np.finfo(float).eps:
        into = np.linalg.solve(V, A_inverse.astype(V.dtype))
        amplification = float(np.abs(form.end @ V) @ np.abs(into @ form.start))
        if amplification <= LIMIT:
            keep = gamma.imag >= 0
            weight = np.where(gamma.imag > 0, 2.0, 1.0)[keep]
            T, out = np.diag(gamma[keep]) + 0j, V[:, keep] * weight + 0j
            return Shifts(T, out, into[keep] + 0j, coupled=False, amplification=amplification)
    from scipy.linalg import schur

    T, U = schur(G.astype(complex), output="complex")
    into = U.conj().T @ A_inverse
    amplification = float(np.abs(form.end @ U) @ np.abs(into @ form.start))
    T[np.diag_indices(len(T))] = np.where(np.abs(np.diag(T)) < 1e-14 * len(G), 0.0, np.diag(T))
    return Shifts(T, U, into, coupled=True, amplification=amplification)
