"""The equations of a step where f and m are linear: what is left of the method are small matrices.

With m = M v and f = −K q − C v + F(t) at the nodes, the equations of `form` times h are

    Σ_μ (A_νμ M − h D_νμ C − h² B_νμ K) z^μ = h δ_νs p + h² β_ν K q − h² Σ_i load_νi F(t_i),      ν, μ = 1 … s,

    A = Σ_i w_i scatter_m[i, ν] gather_v[i, μ],    D = Σ_i w_i scatter_f[i, ν] gather_v[i, μ],
    B = Σ_i w_i scatter_f[i, ν] gather_q[i, μ],    load_νi = w_i scatter_f[i, ν],    β_ν = Σ_i load_νi,

with the stencils of h = 1, and the impulse is

    p⁺ − p = −h K (q + Σ_μ mean_μ z^μ) − C z^s + h Σ_i w_i F(t_i),        mean_μ = Σ_i w_i gather_q[i, μ],

where Σ_i w_i gather_v[i, μ] is 1 for μ = s and 0 for the others, since r ≥ s nodes integrate a derivative (degree
s − 1) exactly. A is symmetric and positive definite.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from leastaction.methods import Galerkin
from leastaction.step.form import Array, Samples, samples, stencils


@dataclass(frozen=True, eq=False)
class Kronecker:
    """A, B, D (s, s); beta, mean (s,); load (s, r); the nodes tau and their weights w (r,)."""

    A: Array
    B: Array
    D: Array
    beta: Array
    mean: Array
    load: Array
    tau: Array
    w: Array


def kronecker(samples: Samples) -> Kronecker:
    """The small matrices, in the arithmetic of the samples."""
    table = stencils(samples, 1)
    q, v = table.gather["q"], table.gather["v"]
    momentum, load = ((table.weights[:, None] * table.scatter[name]).T for name in ("m", "f"))
    return Kronecker(
        A=momentum @ v,
        B=load @ q,
        D=load @ v,
        beta=load.sum(axis=1),
        mean=table.weights @ q,
        load=load,
        tau=samples.tau,
        w=samples.w,
    )


@lru_cache(maxsize=64)
def kronecker_of(method: Galerkin) -> Kronecker:
    """The small matrices of a method in float64."""
    return kronecker(samples(method))


@lru_cache(maxsize=64)
def short_pivots(method: Galerkin) -> NDArray[np.float64]:
    """The pivots of A, (s,). Those of ∂R/∂z are, at h → 0, products of theirs, of those of L_vv, and of 1/h."""
    return np.asarray(np.linalg.cholesky(kronecker_of(method).A).diagonal() ** 2)
