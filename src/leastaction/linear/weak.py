"""The small matrices of a member PsNrQu: what is left of the method when L is quadratic.

With z^ν = q^ν − q_k (ν = 1 … s), the force −K q − C q̇ + f(t), and the discrete Lagrange–d'Alembert principle at the
method's own nodes, the step's equations (μ = 0 … s−1) are

    Σ_ν (A_μν M − h D_μν C − h² B_μν K) z^ν = −h p_k δ_μ0 + h² β_μ K q_k − h² Σ_i b_i l_iμ f(t_i),

    A_μν = Σ_i b_i l′_iμ l′_iν,   B_μν = Σ_i b_i l_iμ l_iν,   D_μν = Σ_i b_i l_iμ l′_iν,   β_μ = Σ_i b_i l_iμ,

and the sum of all s + 1 derivatives of the action gives the impulse

    p_{k+1} − p_k = −h K (q_k + Σ_ν β_ν z^ν) − C z^s + h Σ_i b_i f(t_i),

where Σ_i b_i l′_iν is 1 for ν = s and 0 for the others, since r ≥ s nodes integrate a derivative (degree s − 1)
exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from leastaction.methods import Galerkin

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Weak:
    """A, B, D (s, s): rows μ = 0 … s−1, columns ν = 1 … s. beta (s+1,). load (s, r): b_i l_iμ. b, c (r,)."""

    A: FloatArray
    B: FloatArray
    D: FloatArray
    beta: FloatArray
    load: FloatArray
    b: FloatArray
    c: FloatArray


@lru_cache(maxsize=64)
def weak(method: Galerkin) -> Weak:
    """The small matrices of the method."""
    table = method.table
    l, dl, bl, bdl = table.l, table.dl, table.b[:, None] * table.l, table.b[:, None] * table.dl
    return Weak(
        A=(bdl.T @ dl)[:-1, 1:],
        B=(bl.T @ l)[:-1, 1:],
        D=(bl.T @ dl)[:-1, 1:],
        beta=bl.sum(axis=0),
        load=bl.T[:-1],
        b=table.b,
        c=table.c,
    )
